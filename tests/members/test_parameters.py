"""Parameters of members: declared once in a dataclass, checked, and values of the compiled program."""

import fractions
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from efhc_jax.errors import ExperimentError
from efhc_jax.members import declared, make_parameters, parameter
from efhc_jax.members.tracing import as_arrays, differs, texts_of


class Member(NamedTuple):
    parameters: type | None = None


@dataclass(frozen=True)
class Many:
    share: float = parameter(0.5, "A share.", low=0, high=1)
    count: int = parameter(3, "A count.", low=1)
    often: bool = parameter(False, "Whether often.")
    kind: str = parameter("plain", "A kind.")


MEMBER = Member(Many)


def test_a_declaration_has_type_default_range_and_help():
    known = declared(MEMBER)
    assert list(known) == ["share", "count", "often", "kind"]
    assert [one.kind for one in known.values()] == [float, int, bool, str]
    assert [one.default for one in known.values()] == [0.5, 3, False, "plain"]
    assert known["share"].help == "A share."
    assert str(known["share"].limit) == "of 0 or more, at most 1"
    assert declared(Member()) == {}
    assert make_parameters(Member(), {}) is None


def test_types_may_be_annotated_as_texts_or_as_types():
    @dataclass(frozen=True)
    class Plain:
        rate: "float" = 0.1
        number: int = 2

    assert [one.kind for one in declared(Member(Plain)).values()] == [float, int]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("share", 1.5, "member.share=1.5: out of range; give a number of 0 or more, at most 1"),
        ("share", "half", "member.share='half': give a number of 0 or more"),
        ("share", float("nan"), "out of range"),
        ("share", 1e31, "out of range"),
        ("count", 2.5, "give a whole number of 1 or more"),
        ("count", 2**31, "out of range"),
        ("often", 1, "member.often=1: give true or false"),
        ("kind", 3, "member.kind=3: give text"),
    ],
)
def test_a_wrong_value_is_said_with_the_full_name(name, value, said):
    with pytest.raises(ExperimentError) as error:
        declared(MEMBER)[name].check(f"member.{name}", value)
    assert said in str(error.value)


def test_an_integer_is_a_number():
    assert declared(MEMBER)["share"].check("member.share", 1) == 1.0


@dataclass
class Open:
    rate: float = 0.1


@dataclass(frozen=True)
class Required:
    rate: float


@dataclass(frozen=True)
class Listed:
    rates: list = field(default_factory=list)


@dataclass(frozen=True)
class Fraction:
    rate: fractions.Fraction = None


@dataclass(frozen=True)
class OutOfRange:
    rate: float = parameter(3.0, low=0, high=1)


@dataclass(frozen=True)
class Named:
    name: float = 0.5


@dataclass(frozen=True)
class Crossed:
    rate: float = parameter(1.5, low=2, high=1)


@dataclass(frozen=True)
class Optional:
    rate: float | None = None


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Open, "the class Open of its parameters can be changed; declare it with"),
        (Required, "the parameter rate has no default; give it one"),
        (Listed, "the parameter rates has no default; give it one"),
        (Fraction, "the parameter rate is annotated as 'Fraction'; use float, int, bool or str"),
        (OutOfRange, "rate=3.0: out of range"),
        (Named, "the parameter name has a name that is taken; rename it"),
        (Crossed, "the parameter rate has low=2 above high=1"),
        (Optional, "the parameter rate is annotated as 'float | None'"),
        ("text", "parameters='text' is not the class of a dataclass"),
        (int, "is not the class of a dataclass"),
        (Many(), "is not the class of a dataclass"),
    ],
)
def test_a_wrong_declaration_is_said_with_the_name_of_the_member(kind, said):
    with pytest.raises(ExperimentError) as error:
        declared(Member(kind), "policy='mine'")
    assert str(error.value).startswith("policy='mine': ")
    assert said in str(error.value)


def test_numbers_are_traced_and_texts_are_static():
    values = as_arrays(MEMBER, Many(share=0.25, count=7, often=True, kind="other"))
    leaves = jax.tree.leaves(values)
    assert [leaf.dtype for leaf in leaves] == [jnp.float32, jnp.int32, bool]
    assert values.kind == "other"
    assert isinstance(values, Many)
    compilations = []

    @jax.jit
    def used(values):
        compilations.append(values.kind)
        return values.share * values.count

    assert float(used(values)) == 0.25 * 7
    assert float(used(as_arrays(MEMBER, Many(share=0.5, kind="other")))) == 1.5
    assert compilations == ["other"]
    used(as_arrays(MEMBER, Many()))
    assert compilations == ["other", "plain"]
    assert texts_of(MEMBER, Many()) == (("kind", "plain"),)


def test_numbers_have_the_precision_of_the_program(x64):
    assert as_arrays(MEMBER, Many()).share.dtype == jnp.float64


def test_checks_of_a_users_own_see_numbers_alone():
    @dataclass(frozen=True)
    class Ordered:
        low: float = 0.1
        high: float = 0.2

        def __post_init__(self):
            if self.low > self.high:
                raise ValueError("low is above high")

    member = Member(Ordered)
    stacked = jax.tree.map(lambda *each: jnp.stack(each), *[as_arrays(member, Ordered())] * 3)
    assert jax.vmap(lambda values: values.low + values.high)(stacked).shape == (3,)


def test_differences_of_trees_are_said():
    zeros = {"a": jnp.zeros(3), "b": jnp.zeros(2, jnp.int32)}
    assert not differs(zeros, {"a": jnp.ones(3), "b": jnp.ones(2, jnp.int32)})
    assert "float32 (4,) in place of float32 (3,)" in differs(zeros, zeros | {"a": jnp.zeros(4)})
    assert "float32 (2,) in place of int32 (2,)" in differs(zeros, zeros | {"b": jnp.zeros(2)})
    assert "in place of" in differs(zeros, {"a": jnp.zeros(3)})
