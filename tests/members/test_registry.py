"""Registries: dictionaries whose members are imported when they are first used."""

import subprocess
import sys

import pytest

from efhc_jax.members import Registry, lazily


def test_a_member_is_imported_when_it_is_used():
    registry = Registry({"gcd": "math:gcd", "own": abs})
    assert list(registry) == ["gcd", "own"]
    assert "gcd" in registry
    assert len(registry) == 2
    assert registry["gcd"](12, 18) == 6
    assert registry["own"] is abs
    with pytest.raises(KeyError):
        registry["nothing"]


def test_users_register_as_in_any_dictionary():
    registry = Registry({"gcd": "math:gcd"})
    registry["mine"] = max
    registry.update(other=min)
    assert list(registry) == ["gcd", "mine", "other"]
    assert registry.pop("mine") is max
    del registry["other"]
    assert repr(registry) == "Registry(gcd)"


def test_it_knows_which_members_are_its_own():
    registry = Registry({"gcd": "math:gcd", "own": abs})
    assert registry.is_built_in("gcd")
    registry["gcd"](4, 6)
    assert registry.is_built_in("gcd")
    assert registry.is_built_in("own")
    registry["own"], registry["mine"] = max, min
    assert not registry.is_built_in("own")
    assert not registry.is_built_in("mine")
    assert not registry.is_built_in("nothing")
    del registry["gcd"]
    assert not registry.is_built_in("gcd")
    registry["gcd"] = __import__("math").gcd
    assert registry.is_built_in("gcd"), "restored"


def test_names_of_a_module_are_imported_when_they_are_used():
    find = lazily("xml", {"Element": "dom.minidom"})
    assert find("Element").__name__ == "Element"
    with pytest.raises(AttributeError, match="module 'xml' has no attribute 'Nothing'"):
        find("Nothing")


def test_families_are_known_without_jax():
    program = (
        "import sys\n"
        "from efhc_jax.experiment.families import FAMILIES\n"
        "assert 'markov' in FAMILIES['dynamics'].names\n"
        "assert 'adaptive' in FAMILIES['policy'].names\n"
        "assert 'jax' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
