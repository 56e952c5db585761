"""An experiment is checked the moment it is made, and survives being written down."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efhc_jax.config import FAMILIES, LIMITS, Experiment
from efhc_jax.errors import ExperimentError


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("devices", 0),
        ("devices", 2.5),
        ("devices", True),
        ("devices", "ten"),
        ("labels_per_device", 0),
        ("dirichlet_alpha", 0.0),
        ("batch_size", -1),
        ("iterations", 0),
        ("eval_every", 0),
        ("early_evaluations", -1),
        ("connectivity", 0.0),
        ("connectivity", 1.6),
        ("r", -1.0),
        ("r", math.nan),
        ("heterogeneity", 1.0),
        ("heterogeneity", -0.1),
        ("mean_bandwidth", 0.0),
        ("mean_bandwidth", math.inf),
        ("weak_bandwidth", -3),
        ("norm_order", 0.5),
        ("learning_rate", 0.0),
        ("learning_rate", None),
        ("learning_rate_offset", 0.0),
        ("learning_rate_decay", -0.5),
        ("seed", -1),
        ("seed", 2**32),
    ],
)
def test_a_value_out_of_range_is_named_with_what_is_allowed(field, value):
    with pytest.raises(ExperimentError, match=rf"^{field}=.*give a (whole )?number"):
        Experiment(**{field: value})


def test_every_number_has_a_limit_and_every_word_a_family():
    assert set(LIMITS) | set(FAMILIES) | {
        "budgets",
        "absent_train",
        "graph_file",
        "allow_disconnected",
    } == set(Experiment().to_dict())


@pytest.mark.parametrize("field", FAMILIES)
def test_an_unknown_name_lists_the_known_ones(field):
    with pytest.raises(ExperimentError) as error:
        Experiment(**{field: "nonsense"})
    assert str(error.value).startswith(f"{field}='nonsense'")
    assert all(name in str(error.value) for name in FAMILIES[field])


def test_a_typo_is_recognised():
    with pytest.raises(ExperimentError, match="did you mean 'lenet5'"):
        Experiment(model="lenet")
    with pytest.raises(ExperimentError, match="conectivity: no such field, did you mean 'connect"):
        Experiment.from_dict({"conectivity": 0.4})


def test_bandwidths_that_cannot_be_had():
    with pytest.raises(ExperimentError, match="all 4 devices weak.*try 0.75 or less"):
        Experiment(devices=4, heterogeneity=0.9)
    with pytest.raises(ExperimentError, match="weak_bandwidth=20000"):
        Experiment(weak_bandwidth=20000)


@pytest.mark.parametrize(
    ("devices", "heterogeneity", "weak", "strong"),
    [(10, 0.4, 4, 46000 / 6), (10, 0.8, 8, 21000.0), (10, 0.0, 0, 5000.0), (3, 0.4, 1, 7000.0)],
)
def test_strong_bandwidth_keeps_the_mean(devices, heterogeneity, weak, strong):
    experiment = Experiment(devices=devices, heterogeneity=heterogeneity)
    assert experiment.weak_devices == weak
    assert experiment.strong_bandwidth == pytest.approx(strong)
    total = weak * 1000 + (devices - weak) * experiment.strong_bandwidth
    assert total / devices == pytest.approx(5000)


experiments = st.builds(
    Experiment,
    policy=st.sampled_from(["efhc", "gt"]),
    devices=st.integers(1, 100),
    heterogeneity=st.floats(0, 0.4),
    r=st.floats(0, allow_nan=False),
    norm_order=st.floats(1, allow_nan=False),
    learning_rate=st.floats(1e-9, 1e9),
    seed=st.integers(0, 2**32 - 1),
)


@given(experiments)
def test_written_down_and_read_back(experiment):
    assert Experiment.from_json(experiment.to_json()) == experiment


def test_toml(tmp_path):
    path = tmp_path / "experiment.toml"
    experiment = Experiment(policy="gt", norm_order=math.inf, r=7, iterations=300)
    path.write_text(experiment.to_toml())
    assert Experiment.from_toml(path) == experiment


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("polcy = 'zt'", "polcy: no such field, did you mean 'policy'"),
        ("r = 'many'", "r='many': give a number"),
        ("r = = 3", "is not valid TOML"),
        ("[svm]\nr = 3", "svm: no such field"),
    ],
)
def test_toml_with_a_mistake(tmp_path, text, message):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ExperimentError, match=message) as error:
        Experiment.from_toml(path)
    assert str(path) in str(error.value)


def test_toml_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(ExperimentError, match="cannot be read"):
        Experiment.from_toml(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ExperimentError, match="UTF-8"):
        Experiment.from_toml(tmp_path / "binary.toml")
