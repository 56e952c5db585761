"""An experiment is checked the moment it is made, and survives being written down."""

import inspect
import math
import pickle
import pydoc
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.experiment import Experiment, sweep_from_toml
from efhc_jax.experiment.families import FAMILIES
from efhc_jax.experiment.limits import LIMITS


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
        ("weak_fraction", 1.0),
        ("weak_fraction", -0.1),
        ("mean_bandwidth", 0.0),
        ("mean_bandwidth", math.inf),
        ("weak_bandwidth", -3),
        ("norm_order", 0.5),
        ("learning_rate", 0.0),
        ("learning_rate", None),
        ("learning_rate_schedule.offset", 0.0),
        ("learning_rate_schedule.exponent", -0.5),
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
        "graph_file",
        "allow_disconnected",
    } == set(Experiment.defaults())


@pytest.mark.parametrize("field", FAMILIES)
def test_an_unknown_name_lists_the_known_ones(field):
    with pytest.raises(ExperimentError) as error:
        Experiment(**{field: "nonsense"})
    assert str(error.value).startswith(f"{field}='nonsense'")
    assert all(name in str(error.value) for name in FAMILIES[field].names)


def test_a_typo_is_recognised():
    with pytest.raises(ExperimentError, match="did you mean 'lenet5'"):
        Experiment(model="lenet")
    with pytest.raises(ExperimentError, match="conectivity: no such field, did you mean 'connect"):
        Experiment.from_dict({"conectivity": 0.4})


@pytest.mark.parametrize(
    ("field", "written", "known"),
    [
        ("policy", "EF-HC", "efhc"),
        ("policy", "GT", "gt"),
        ("policy", "ZT", "zt"),
        ("policy", "RG", "rg"),
        ("model", "SVM", "svm"),
        ("model", "LeNet5", "lenet5"),
        ("model", "LeNet-5", "lenet5"),
        ("dataset", "Fashion-MNIST", "fashion_mnist"),
        ("dataset", "FashionMNIST", "fashion_mnist"),
        ("dataset", "fashion mnist mini", "fashion_mnist_mini"),
        ("split", "IID", "iid"),
        ("graph", "Erdos-Renyi", "erdos_renyi"),
        ("dynamics", "Markov", "markov"),
    ],
)
def test_a_name_in_another_spelling(field, written, known):
    experiment = Experiment(**{field: written})
    assert getattr(experiment, field) == known
    assert experiment == Experiment(**{field: known})


@pytest.mark.parametrize("word", ["noniid", "non-iid", "non_iid", "Non-IID"])
def test_not_iid_is_one_of_two(word):
    with pytest.raises(ExperimentError, match="'dirichlet' .* or 'labels'") as error:
        Experiment(split=word)
    assert "did you mean" not in str(error.value)


def test_an_unknown_dataset_says_how_to_add_one():
    with pytest.raises(ExperimentError) as error:
        Experiment(dataset="cifar10")
    for part in ("fashion_mnist_mini", "synthetic", "data=", "efhc_jax.data.DATASETS", "extending.md"):
        assert part in str(error.value)


@pytest.mark.parametrize(("begun", "name"), [("erdos", "erdos_renyi"), ("watts", "watts_strogatz")])
def test_the_beginning_of_a_name_is_recognised(begun, name):
    with pytest.raises(ExperimentError, match=f"did you mean '{name}'"):
        Experiment(graph=begun)


@pytest.mark.parametrize(
    "make",
    [lambda **f: Experiment(**f), lambda **f: Experiment().replace(**f), Experiment.from_dict],
    ids=["new", "replace", "from_dict"],
)
@pytest.mark.parametrize(
    ("name", "field"),
    [("lr", "learning_rate"), ("num_clients", "devices"), ("rounds", "iterations"), ("polcy", "policy")],
)
def test_an_unknown_field_is_answered_by_the_one_that_is_meant(make, name, field):
    with pytest.raises(ExperimentError, match=f"^{name}: no such field, did you mean '{field}'?"):
        make({name: 1}) if make == Experiment.from_dict else make(**{name: 1})


def test_fields_may_still_be_given_by_position():
    assert Experiment("lenet5", "synthetic").dataset == "synthetic"
    assert list(inspect.signature(Experiment).parameters) == list(Experiment.defaults())
    assert pickle.loads(pickle.dumps(Experiment(r=3))) == Experiment(r=3)


@pytest.mark.parametrize("values", [[5, 50], (5, 50), range(3)])
def test_several_values_make_a_sweep(values):
    with pytest.raises(ExperimentError, match=r"^r=.*efhc\.sweep\(experiment, r="):
        Experiment(r=values)


def test_every_field_is_explained_in_the_help():
    shown = pydoc.render_doc(Experiment, renderer=pydoc.plaintext)
    for name in Experiment.defaults():
        assert re.search(rf"^ \|      {name}: \S.{{6}}", shown, re.MULTILINE), name


def test_lists_of_a_file_are_axes(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text("r = [5, 50]\nseed = 3\nbudgets = [10]\npolicy = ['efhc']")
    experiment, axes = sweep_from_toml(path)
    assert experiment == Experiment(r=5, seed=3, budgets=(10,))
    assert axes == {"r": [5, 50], "policy": ["efhc"]}
    path.write_text("lr = [5, 50]")
    with pytest.raises(ExperimentError, match="study.toml: lr: no such field, did you mean 'learning_r"):
        sweep_from_toml(path)


def test_bandwidths_that_cannot_be_had():
    with pytest.raises(ExperimentError, match="all 4 devices weak.*try 0.75 or less"):
        Experiment(devices=4, weak_fraction=0.9)
    with pytest.raises(ExperimentError, match="weak_bandwidth=20000"):
        Experiment(weak_bandwidth=20000)


@pytest.mark.parametrize(
    ("devices", "weak_fraction", "weak", "strong"),
    [(10, 0.4, 4, 46000 / 6), (10, 0.8, 8, 21000.0), (10, 0.0, 0, 5000.0), (3, 0.4, 1, 7000.0)],
)
def test_strong_bandwidth_keeps_the_mean(devices, weak_fraction, weak, strong):
    experiment = Experiment(devices=devices, weak_fraction=weak_fraction)
    assert experiment.weak_devices == weak
    assert experiment.strong_bandwidth == pytest.approx(strong)
    total = weak * 1000 + (devices - weak) * experiment.strong_bandwidth
    assert total / devices == pytest.approx(5000)


experiments = st.builds(
    Experiment,
    policy=st.sampled_from(["efhc", "gt"]),
    devices=st.integers(1, 100),
    weak_fraction=st.floats(0, 0.4),
    r=st.floats(0, allow_nan=False),
    norm_order=st.floats(1, allow_nan=False),
    learning_rate=st.floats(1e-9, 1e9),
    seed=st.integers(0, 2**32 - 1),
)


@given(experiments)
def test_written_down_and_read_back(experiment):
    assert Experiment.from_json(experiment.to_json()) == experiment


@pytest.mark.parametrize("name", ["inf", "g\U0001f600.npy", 'a\x7f\n"b\\.npy', "größe.npy"])
def test_names_of_files_survive(tmp_path, name):
    experiment = Experiment(graph="file", graph_file=name)
    assert Experiment.from_json(experiment.to_json()) == experiment
    (tmp_path / "settings.toml").write_text(experiment.to_toml(), encoding="utf-8")
    assert Experiment.from_toml(tmp_path / "settings.toml") == experiment


@pytest.mark.parametrize("name", [3, "a\0b", "a\udc80b"])
def test_names_that_no_file_of_ours_can_hold(name):
    with pytest.raises(ExperimentError, match="graph_file=.*: give the name of a file"):
        Experiment(graph="file", graph_file=name)


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
        ("[svm]\nr = 3", "svm.r: no such field"),
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


def test_a_wrong_setting_is_a_value_error():
    with pytest.raises(ValueError, match="devices=0: out of range"):
        Experiment(devices=0)


def test_a_settings_file_that_is_too_large(tmp_path):
    (tmp_path / "large.toml").write_text("# " + "x" * 2**20)
    with pytest.raises(ExperimentError, match=r"config=.*large.toml: is too large for a settings file$"):
        Experiment.from_toml(tmp_path / "large.toml")
