"""Digests of code: other code, constants and helpers are noticed, and nothing else."""

import functools
import textwrap
import types

import networkx
import numpy as np

import efhc_jax as efhc
from efhc_jax.storage.code_digests import code_digest, member_digests


def module_of(text):
    """A module with this source, as a user's script."""
    module = types.ModuleType("study")
    exec(compile(textwrap.dedent(text), "study.py", "exec"), vars(module))
    return module


SCRIPT = """
    SCALE = 2.0
    LABELS = {"a", "b", "c"}

    def helper(x):
        return x * SCALE

    def unrelated(x):
        return x

    class Net:
        width = 3
        def __call__(self, x):
            return helper(x) + self.width

    def member(x, offset=1):
        return [Net()(one) for one in x] if x in {"a", "b"} else offset
"""


def digest_of(old="", new=""):
    assert old in SCRIPT
    return code_digest(module_of(SCRIPT.replace(old, new)).member)


def test_the_same_code_has_the_same_digest():
    assert digest_of() == digest_of()
    assert digest_of() == digest_of("return x\n\n    class", "return -x\n\n    class")
    assert digest_of() == digest_of("SCALE = 2.0", "SCALE = 2.0  # a comment")


def test_other_code_has_another():
    changes = [
        ("x * SCALE", "x / SCALE"),
        ("SCALE = 2.0", "SCALE = 3.0"),
        ("width = 3", "width = 4"),
        ("+ self.width", "- self.width"),
        ("offset=1", "offset=2"),
        ('{"a", "b"}', '{"a", "c"}'),
    ]
    digests = [digest_of(), *(digest_of(*change) for change in changes)]
    assert len(set(digests)) == len(digests)


def test_values_that_are_closed_over_count():
    def make(value):
        return lambda x: x + value

    assert code_digest(make(1)) == code_digest(make(1))
    assert code_digest(make(1)) != code_digest(make(2))
    assert code_digest(make(np.arange(3))) != code_digest(make(np.arange(3) + 1))
    assert code_digest(functools.partial(make, 1)) != code_digest(functools.partial(make, 2))


def test_only_members_of_the_users_own_have_a_digest(monkeypatch):
    assert member_digests([efhc.Experiment()]) == {}
    monkeypatch.setitem(efhc.GRAPHS, "wheel", efhc.from_networkx(networkx.wheel_graph(10)))
    (before,) = member_digests([efhc.Experiment(graph="wheel")]).items()
    assert before[0] == "graph 'wheel'"
    monkeypatch.setitem(efhc.GRAPHS, "wheel", efhc.from_networkx(networkx.cycle_graph(10)))
    (after,) = member_digests([efhc.Experiment(graph="wheel")]).items()
    assert before != after
