"""Parameters of members in an experiment: given, checked, compared, and written down."""

import json
import pickle

import pytest

import efhc_jax as efhc
from efhc_jax.experiment.experiment import Experiment, sweep_from_toml
from efhc_jax.experiment.families import FAMILIES
from efhc_jax.experiment.renamed import RENAMED

MARKOV = Experiment(dynamics="markov", **{"dynamics.failure": 0.3})


def test_an_object_and_full_names_are_the_same():
    assert Experiment(dynamics=efhc.dynamics.Markov(failure=0.3)) == MARKOV
    assert Experiment().replace(dynamics=efhc.dynamics.Markov(failure=0.3)) == MARKOV
    assert MARKOV["dynamics.failure"] == 0.3
    assert MARKOV["dynamics.repair"] == 0.2
    assert MARKOV.dynamics == "markov"
    assert MARKOV.parameters("dynamics") == efhc.dynamics.Markov(failure=0.3, repair=0.2)
    assert MARKOV.parameters("policy") is None


def test_defaults_are_not_different_from_nothing():
    given = Experiment(dynamics=efhc.dynamics.Markov(failure=0.05, repair=0.2))
    assert given == Experiment(dynamics="markov")
    assert hash(given) == hash(Experiment(dynamics="markov"))
    assert given.given == {}
    assert given != MARKOV
    assert len({given, MARKOV, Experiment(dynamics="markov")}) == 2


def test_an_object_replaces_what_was_given_before():
    assert MARKOV.replace(dynamics=efhc.dynamics.Markov(repair=0.5)).given == {"dynamics.repair": 0.5}


def test_a_parameter_waits_for_a_member_that_has_it():
    idle = MARKOV.replace(dynamics="churn")
    assert idle["dynamics.failure"] == 0.3
    assert idle.parameters("dynamics") == efhc.dynamics.Churn()
    assert idle.replace(dynamics="markov") == MARKOV


@pytest.mark.parametrize("experiment", [MARKOV, MARKOV.replace(dynamics="churn"), Experiment()])
def test_it_survives_being_written_down(experiment, tmp_path):
    assert Experiment.from_json(experiment.to_json()) == experiment
    assert Experiment.from_dict(experiment.to_dict()) == experiment
    assert pickle.loads(pickle.dumps(experiment)) == experiment
    assert eval(repr(experiment)) == experiment if "churn" not in repr(experiment) else True
    (tmp_path / "study.toml").write_text(experiment.to_toml())
    again = Experiment.from_toml(tmp_path / "study.toml")
    assert again.parameters("dynamics") == experiment.parameters("dynamics")


def test_a_member_with_parameters_is_a_table():
    assert '[dynamics]\nname = "markov"\nfailure = 0.3\nrepair = 0.2\n' in MARKOV.to_toml()
    assert "# dynamics.failure = 0.3" in MARKOV.replace(dynamics="churn").to_toml()


def test_a_table_without_a_name_has_the_default_member(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text("[learning_rate_schedule]\nexponent = 0.75\n")
    assert Experiment.from_toml(path)["learning_rate_schedule.exponent"] == 0.75


def test_lists_in_a_table_are_axes(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text('seed = [0, 1]\n[policy]\nname = ["efhc", "adaptive"]\nrate = [0.1, 0.3]\n')
    experiment, axes = sweep_from_toml(path)
    assert axes == {"seed": [0, 1], "policy": ["efhc", "adaptive"], "policy.rate": [0.1, 0.3]}
    assert experiment.policy == "efhc"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"dynamics.failur": 0.1},
            "dynamics.failur: no registered dynamics has this parameter, did you",
        ),
        ({"split.rate": 0.1}, "split.rate: no registered split has this parameter; there are none"),
        ({"nothing.rate": 0.1}, "nothing.rate: no such field"),
        ({"dynamics": "markov", "dynamics.failure": [0.1, 0.2]}, r"**{'dynamics.failure': [0.1, 0.2]})"),
        ({"dynamics": efhc.policies.Adaptive()}, "they are those of policy='adaptive'"),
        ({"dynamics": "markov", "dynamics.failure": 2}, "dynamics.failure=2: out of range"),
        (
            {"dynamics": efhc.dynamics.Markov(failure=0.1), "dynamics.failure": 0.2},
            "dynamics.failure=0.2: is given twice, also in dynamics=Markov(failure=0.1",
        ),
        ({"dynamics": efhc.dynamics.Markov}, "give the name of a registered member"),
        ({"policy": efhc.POLICIES["zt"]}, "give the name of a registered member"),
        ({"rate": 0.2}, "rate: no such field, did you mean 'policy.rate'?"),
        ({"dynamics.link_up": 0.2}, "dynamics.link_up: is now dynamics.up_probability"),
        ({"dynamics": efhc.dynamics.Markov(failure=2.0)}, "dynamics.failure=2.0: out of range"),
    ],
)
def test_a_mistake_is_named_with_what_to_do(settings, said):
    with pytest.raises(efhc.ExperimentError) as error:
        Experiment(**settings)
    assert said in str(error.value)


@pytest.mark.parametrize("name", RENAMED)
def test_a_former_name_is_answered_with_the_new_one(name):
    for make in (lambda: Experiment(**{name: 0.3}), lambda: Experiment().replace(**{name: 0.3})):
        with pytest.raises(efhc.ExperimentError, match=f"^{name}: is now {RENAMED[name]}; give that"):
            make()


def test_every_new_name_exists():
    known = {*Experiment.defaults(), *efhc.Experiment(dynamics="markov").to_dict()}
    for name in RENAMED.values():
        setting = name.partition(".")[0]
        assert name in known or any(
            name
            in Experiment(dynamics=member, graph_file="a.npy" if member == "trace" else "").to_dict()
            for member in FAMILIES[setting].registry
        )


FORMER = {  # an experiment of format 1, in part
    "dynamics": "churn",
    "heterogeneity": 0.2,
    "link_up": 0.8,
    "link_failure": 0.05,
    "leave": 0.3,
    "come_back": 0.05,
    "absent_train": True,
    "learning_rate_offset": 10.0,
    "learning_rate_decay": 0.75,
    "seed": 4,
}


def test_an_experiment_of_format_1_is_read():
    read = Experiment.from_json(json.dumps(FORMER))
    assert read == Experiment(
        dynamics=efhc.dynamics.Churn(leave_probability=0.3, train_while_absent=True),
        learning_rate_schedule=efhc.schedules.Power(offset=10.0, exponent=0.75),
        weak_fraction=0.2,
        seed=4,
    )


def test_parameters_of_a_member_that_is_not_registered_are_kept():
    stored = json.loads(Experiment().to_json()) | {"policy": "gone", "policy.width": 3.5}
    read = Experiment.from_json(json.dumps(stored))
    assert read["policy.width"] == 3.5
    assert json.loads(read.to_json())["policy.width"] == 3.5


def test_an_axis_has_names_and_no_objects():
    from efhc_jax.runs.grid import Grid

    with pytest.raises(efhc.ExperimentError, match=r"policy: an axis has names of members; give their"):
        Grid.of(Experiment(), {"policy": ["efhc", efhc.policies.Adaptive()]})


def test_a_parameter_twice_in_a_file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text('"dynamics.failure" = 0.1\n[dynamics]\nname = "markov"\nfailure = 0.2\n')
    with pytest.raises(efhc.ExperimentError, match=r"study.toml: dynamics.failure is given twice"):
        Experiment.from_toml(path)


@pytest.mark.parametrize("uses", ["r", ("q",), ["r"]])
def test_what_a_member_uses_is_checked(monkeypatch, uses):
    monkeypatch.setitem(efhc.POLICIES, "mine", efhc.Policy(lambda now: now.coin > 0, uses=uses))
    with pytest.raises(
        efhc.ExperimentError, match=r"policy='mine': uses=.*; give a tuple of some of r, "
    ):
        Experiment(policy="mine")


def test_one_class_of_parameters_for_two_members_needs_the_name(monkeypatch):
    monkeypatch.setitem(efhc.POLICIES, "twin", efhc.POLICIES["adaptive"])
    with pytest.raises(efhc.ExperimentError, match="adaptive and twin have parameters of this class"):
        Experiment(policy=efhc.policies.Adaptive())


def test_a_name_that_is_no_text():
    with pytest.raises(efhc.ExperimentError, match="3: the name of a member is a text"):
        efhc.POLICIES[3] = efhc.POLICIES["zt"]
