"""Names as people write them."""

import pytest

from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.text.names import ALIASES, known_name, meant, meant_field, nearest, other_fields, squashed

FIELDS = list(Experiment().to_dict())


def test_every_alias_leads_to_a_field_and_hides_none():
    assert set(ALIASES.values()) <= set(FIELDS)
    assert not {squashed(field) for field in FIELDS} & set(ALIASES)
    assert all(alias == squashed(alias) for alias in ALIASES)


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ("lr", "learning_rate"),
        ("num-clients", "devices"),
        ("clients", "devices"),
        ("nodes", "devices"),
        ("rounds", "iterations"),
        ("steps", "iterations"),
        ("batchsize", "batch_size"),
        ("bs", "batch_size"),
        ("batch", "batch_size"),
        ("topology", "graph"),
        ("algorithm", "policy"),
        ("algo", "policy"),
        ("radius", "connectivity"),
        ("learningRate", "learning_rate"),
        ("iter", "iterations"),
    ],
)
def test_the_field_that_is_meant(written, field):
    assert meant_field(written, FIELDS) == field


@pytest.mark.parametrize(
    ("written", "fields"),
    [("alpha", ["learning_rate", "dirichlet_alpha"]), ("Epochs", ["iterations"]), ("rounds", [])],
)
def test_a_name_that_means_something_else_elsewhere(written, fields):
    advice = other_fields(written)
    assert [field for field in FIELDS if repr(field) in advice] == sorted(fields, key=FIELDS.index)
    if fields:
        assert meant_field(written, FIELDS) is None
        with pytest.raises(ExperimentError) as error:
            Experiment.from_dict({written: 1})
        assert str(error.value) == f"{written}: no such field; {advice}"


@pytest.mark.parametrize("written", ["link", "nonsense", "", "-", None, 3])
def test_what_may_be_several_fields_or_none_is_not_guessed(written):
    assert meant_field(written, FIELDS) is None


def test_a_known_name_stays_and_what_is_ambiguous_too():
    assert known_name("my-graph", ["my-graph", "my_graph"]) == "my-graph"
    assert known_name("My Graph", ["my-graph", "my_graph"]) == "My Graph"
    assert known_name(3, ["3"]) == 3


def test_a_beginning_is_not_guessed_where_there_are_two():
    assert meant("g", ["grid", "geometric"]) is None
    assert meant("ge", ["grid", "geometric"]) == "geometric"


def test_a_typo_is_near():
    assert nearest("rnig", ["ring", "star"]) == "ring"
    assert nearest("x" * 10_000, ["ring", "star"]) is None
