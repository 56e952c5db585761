"""Settings without effect: each is named, with what to do, before anything is run."""

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.cli import main
from efhc_jax.experiment.effects import check_effects, settings_in_effect, why_no_effect
from efhc_jax.experiment.families import FAMILIES, family_in, full_names, users_of
from efhc_jax.network.topologies import GRAPHS
from efhc_jax.runs.grid import Grid, check_grid

OTHER_VALUES = {  # none of them the default
    "labels_per_device": 2,
    "dirichlet_alpha": 0.3,
    "connectivity": 0.6,
    "placement": 0.3,
    "allow_disconnected": True,
    "r": 5.0,
    "norm_order": 1.0,
    "threshold_schedule": "constant",
}
SHARED = [(setting, name) for setting, family in FAMILIES.items() for name in family.shared]


def experiment(**fields):
    if "file" in fields.values() or "trace" in fields.values():
        fields["graph_file"] = "links.csv"
    return efhc.Experiment(**fields)


@pytest.mark.parametrize(("setting", "name"), SHARED)
def test_a_setting_is_refused_where_nothing_uses_it(setting, name):
    value, registry = OTHER_VALUES[name], FAMILIES[setting].registry
    users = [member for member in registry if name in registry[member].uses]
    others = [member for member in registry if member not in users]
    assert users
    assert others
    for member in others:
        with pytest.raises(efhc.ExperimentError) as error:
            experiment(**{setting: member, name: value})
        assert f"{name}={value!r}: has no effect with" in str(error.value)
        assert f"{setting}={users[0]!r}" in str(error.value)
    for member in users:
        assert experiment(**{setting: member, name: value})[name] == value


TEXTS = {
    "method.compressor": "sign",
    "participation.gradients": "two",
    "participation.links": "normal",
    "participation.steps": "regular",
}
NEEDED = {  # other parameters without which one has no effect
    "method.ratio": {"method.compressor": "random_k"},
    "method.levels": {"method.compressor": "qsgd"},
}


@pytest.mark.parametrize("name", full_names())
def test_a_parameter_is_refused_where_no_chosen_member_has_it(name):
    setting, own = family_in(name)
    users = users_of(setting, own)
    one = next(iter(users.values()))
    if one.kind is str:
        value = TEXTS[name]
    elif one.kind is bool:
        value = not one.default
    else:
        value = one.default + 1 if one.kind is int else (min(one.default, 1) + 1) / 2
    for member in FAMILIES[setting].names:
        if member in users:
            more = {setting: member, name: value} | NEEDED.get(name, {})
            assert experiment(**more)[name] == value
            continue
        with pytest.raises(efhc.ExperimentError) as error:
            experiment(**{setting: member, name: value})
        assert f"{name}={value!r}: has no effect with {setting}={member!r}" in str(error.value)
        assert f"{setting}={next(iter(users))!r}" in str(error.value)


def test_every_member_of_the_package_states_what_it_uses():
    for setting, family in FAMILIES.items():
        for name in family.registry if family.shared else ():
            uses = family.registry[name].uses
            assert uses is not None, f"{setting} {name}"
            assert set(uses) <= set(family.shared)


def test_the_default_is_never_refused():
    for policy in ("zt", "rg", "local", "central"):
        assert efhc.Experiment(policy=policy, r=50.0).r == 50.0


def test_a_member_of_the_users_own_may_use_anything(monkeypatch):
    monkeypatch.setitem(GRAPHS, "mine", lambda settings, rng: np.array([[0, 1]]))
    assert efhc.Experiment(graph="mine", connectivity=0.6, placement=0.3).connectivity == 0.6


def test_what_is_inherited_may_wait_for_its_use():
    base = efhc.Experiment(r=5.0, connectivity=0.6)
    other = base.replace(policy="zt", graph="ring")
    assert other.replace(policy="gt").r == 5.0
    with pytest.raises(efhc.ExperimentError, match="r=7.0: has no effect with policy='zt'"):
        other.replace(r=7.0)


def test_bandwidths_without_effect():
    with pytest.raises(efhc.ExperimentError, match="weak_bandwidth=500.0: has no effect"):
        efhc.Experiment(weak_fraction=0.0, weak_bandwidth=500.0)
    with pytest.raises(efhc.ExperimentError, match="weak_fraction=0.2: has no effect"):
        efhc.Experiment(weak_fraction=0.2, weak_bandwidth=5000.0)


def test_a_graph_is_not_used_where_graphs_come_from_a_file():
    with pytest.raises(efhc.ExperimentError, match="graph='ring': has no effect"):
        efhc.Experiment(graph="ring", dynamics="trace", graph_file="links.csv")
    assert efhc.Experiment(graph="file", dynamics="trace", graph_file="links.csv").graph == "file"


def test_a_file_with_settings_is_held_to_the_same(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text("[dynamics]\nup_probability = 0.5\n")
    with pytest.raises(efhc.ExperimentError, match="dynamics.up_probability=0.5: has no effect"):
        efhc.Experiment.from_toml(file)
    idle = efhc.Experiment(r=5.0).replace(policy="zt")
    file.write_text(idle.to_toml())
    assert "# r = 5.0" in idle.to_toml()
    assert efhc.Experiment.from_toml(file).policy == "zt"


def test_a_stored_experiment_is_read_whatever_it_holds():
    idle = efhc.Experiment(r=5.0).replace(policy="zt")
    assert efhc.Experiment.from_json(idle.to_json()) == idle
    assert efhc.Experiment.from_dict(idle.to_dict()) == idle


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"dirichlet_alpha": [0.1, 1.0]}, "dirichlet_alpha: 0.1 and 1.0 give the same runs"),
        ({"dynamics.up_probability": [0.5, 0.7]}, "dynamics='failures'"),
        ({"policy": ["zt", "rg"], "r": [5.0, 50.0]}, "r: 5.0 and 50.0 give the same runs"),
        ({"weak_fraction": [0.4, 0.41]}, "rounded to whole devices"),
        ({"allow_disconnected": [True, False]}, "has no effect with graph='geometric'"),
        ({"graph": ["erdos_renyi"], "connectivity": [1.0, 1.5]}, "1.0 and 1.5 give the same runs"),
    ],
)
def test_an_axis_that_changes_nothing_is_refused(axes, said):
    with pytest.raises(efhc.ExperimentError) as error:
        check_grid(Grid.of(efhc.Experiment(), axes))
    assert said in str(error.value)


def test_an_axis_that_changes_some_runs_is_an_axis():
    """Baselines without thresholds stand in the grid for each of them."""
    check_grid(Grid.of(efhc.Experiment(), {"policy": ["efhc", "zt"], "r": [5, 50]}))
    axes = {"graph": ["ring", "geometric"], "connectivity": [0.4, 0.6]}
    check_grid(Grid.of(efhc.Experiment(), axes))


def test_a_flag_has_to_have_an_effect_in_some_run():
    base = efhc.Experiment().inherit({"dynamics.up_probability": 0.5})
    check_grid(Grid.of(base, {"dynamics": ["static", "failures"]}), ["dynamics.up_probability"])
    with pytest.raises(efhc.ExperimentError, match="dynamics.up_probability=0.5: has no effect"):
        check_grid(Grid.of(base, {"dynamics": ["static", "markov"]}), ["dynamics.up_probability"])


def test_experiments_with_the_same_settings_in_effect_are_the_same_run():
    one = efhc.Experiment(r=5.0).replace(policy="zt")
    other = efhc.Experiment(policy="zt", weak_fraction=0.41)
    assert settings_in_effect(one) == settings_in_effect(other)
    assert settings_in_effect(one) != settings_in_effect(one.replace(policy="efhc"))
    assert why_no_effect(one, "r")
    check_effects(one, ["policy"])


def test_only_graphs_of_ones_own_may_be_disconnected():
    with pytest.raises(efhc.ExperimentError, match="allow_disconnected=True: has no effect"):
        efhc.Experiment(allow_disconnected=True)
    efhc.Experiment(allow_disconnected=True, graph="file", graph_file="a.npy")
    efhc.Experiment(allow_disconnected=True, dynamics="trace", graph_file="a.npy")


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize(
    "flag",
    [["--dirichlet-alpha", "0.3"], ["--dynamics.up-probability", "0.5"], ["--policy", "rg", "--r", "5"]],
)
def test_the_command_line_refuses_them(command, flag, tmp_path, capsys):
    small = ["--dataset", "synthetic", "--iterations", "4", "--out", str(tmp_path / "out")]
    assert main([command, *small, *flag]) == 2
    assert "has no effect with" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
