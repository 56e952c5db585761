"""Networks that change: each dynamics by hand, and the oracle follows all of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import efhc_jax as efhc
import oracle
from efhc_jax import network
from efhc_jax.config import DYNAMICS_NAMES
from efhc_jax.connectivity import connection_window
from efhc_jax.draws import draw_coins
from efhc_jax.dynamics import DYNAMICS
from efhc_jax.network import as_matrix
from efhc_jax.scenario import prepare

BASE = efhc.Experiment(
    devices=6, connectivity=0.6, iterations=40, eval_every=20, batch_size=2, r=4000.0, learning_rate=0.5
)


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory):
    """A file of random graphs over forty iterations."""
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((40, 6, 6)) < 0.4, 1)
    path = tmp_path_factory.mktemp("graphs") / "graphs.npy"
    np.save(path, upper | upper.transpose(0, 2, 1))
    return path


def experiment_with(dynamics, graph_file, **changes):
    if dynamics == "trace":
        changes["graph_file"] = str(graph_file)
    return BASE.replace(dynamics=dynamics, absent_train=True, speed=0.05, leave=0.1, **changes)


def network_of(experiment, data, iterations=400):
    """The links (iteration, device, device) and who is there (iteration, device)."""
    hyper = prepare(experiment, data)
    hyper = hyper._replace(shards=jax.tree.map(jnp.asarray, hyper.shards))
    dynamics = DYNAMICS[experiment.dynamics]

    def body(memory, k):
        now = dynamics.at(hyper, memory, k)
        return now.memory, (now.links, now.present)

    _, found = jax.lax.scan(body, dynamics.begin(hyper), jnp.arange(iterations))
    return jax.tree.map(np.asarray, found)


def test_the_names_are_those_that_there_are():
    assert tuple(DYNAMICS) == DYNAMICS_NAMES


@pytest.mark.parametrize("dynamics", DYNAMICS)
def test_links_are_symmetric_and_never_to_oneself(tiny, graph_file, dynamics):
    links, _ = network_of(experiment_with(dynamics, graph_file), tiny)
    assert (links == links.transpose(0, 2, 1)).all()
    assert not links.diagonal(axis1=1, axis2=2).any()
    if dynamics != "static":
        assert (links[1:] != links[:-1]).any(), "something changes"


@pytest.mark.parametrize("policy", ["efhc", "rg", "local"])
@pytest.mark.parametrize("dynamics", DYNAMICS)
def test_the_oracle_follows(x64, tiny, graph_file, dynamics, policy):
    experiment = experiment_with(dynamics, graph_file, policy=policy)
    run = efhc.simulate(experiment, tiny, trace=True)
    key = prepare(experiment, tiny).key
    truth = oracle.simulate(
        weights=run.weights.values[0],
        adjacency=run.adjacency.values,
        bandwidth=run.bandwidth.values,
        samples=run["sample"].values,
        images=tiny.train_images,
        labels=tiny.train_labels,
        model="svm",
        policy=policy,
        r=experiment.r,
        norm_order=2.0,
        learning_rate=(0.5, 1.0, 0.5),
        coins=np.array([draw_coins(key, k, 6) for k in range(40)]),
        classes=4,
    )
    for k, expected in enumerate(truth):
        np.testing.assert_array_equal(run.fired[k], expected.fired)
        np.testing.assert_array_equal(run.used_links[k], expected.used_links)
        np.testing.assert_allclose(run.weights[k + 1], expected.weights, atol=1e-11)
        np.testing.assert_allclose(run.transmission_time[k], expected.transmission_time)


def test_event_1_is_counted_apart(x64, tiny, graph_file):
    run = efhc.simulate(experiment_with("failures", graph_file), tiny, trace=True)
    fired, used = run.fired.values, run.used_links.values
    nobody = ~(fired[:, :, None] | fired[:, None, :])
    assert run.new_links_used.values.tolist() == ((used & nobody).sum((1, 2)) // 2).tolist()
    assert run.new_links_used.sum() > 0
    expected = [
        oracle.transmission_time(alone, up, run.bandwidth.values, 40)
        for alone, up in zip(used & nobody, run.adjacency.values, strict=True)
    ]
    np.testing.assert_allclose(run.new_link_time, expected)
    static = efhc.simulate(BASE, tiny)
    assert int(static.new_links_used.sum()) == 0


def test_failures_leave_each_link_up_as_often_as_said(tiny):
    links, _ = network_of(BASE.replace(dynamics="failures", link_up=0.7), tiny, 4000)
    graph = np.asarray(prepare(BASE, tiny).adjacency)
    share = links[:, graph].mean(0)
    assert share == pytest.approx(0.7, abs=0.04)
    assert not links[:, ~graph].any()
    pairs = np.argwhere(np.triu(graph))
    one, other = (links[:, i, j].astype(float) for i, j in pairs[:2])
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.06, "links fail independently"
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.06, "and of their past"


def test_outages_of_markov_links_last(tiny):
    experiment = BASE.replace(dynamics="markov", link_failure=0.05, link_repair=0.2)
    links, _ = network_of(experiment, tiny, 8000)
    graph = np.asarray(prepare(BASE, tiny).adjacency)
    up = links[:, graph]
    assert up.mean() == pytest.approx(0.2 / 0.25, abs=0.03)
    down = ~up
    ends = down[:-1] & up[1:]
    assert ends.sum() / down[:-1].sum() == pytest.approx(0.2, abs=0.02), "repaired one time in five"
    begins = up[:-1] & down[1:]
    assert begins.sum() / up[:-1].sum() == pytest.approx(0.05, abs=0.01)


def test_links_of_a_periodic_network_take_turns(tiny):
    experiment = BASE.replace(dynamics="periodic", period=5, graph="complete")
    links, _ = network_of(experiment, tiny, 50)
    assert (links[:5].sum(0) == ~np.eye(6, dtype=bool)).all(), "each link once in a period"
    np.testing.assert_array_equal(links[:5], links[5:10])
    assert (links[:5].sum((1, 2)) == 6).all(), "15 links dealt evenly over 5 turns"


def test_a_periodic_ring_needs_the_whole_period_to_be_connected(tiny):
    experiment = BASE.replace(dynamics="periodic", period=6, graph="ring")
    links, _ = network_of(experiment, tiny, 60)
    assert connection_window(links) == 5, "any five of a ring's six links connect it"
    path = np.zeros((6, 6, 6), bool)
    for turn in range(5):
        path[turn, turn, turn + 1] = path[turn, turn + 1, turn] = True
    assert connection_window(np.tile(path[:5], (10, 1, 1))) == 5


def test_devices_walk_and_links_follow_their_distance(tiny):
    experiment = BASE.replace(dynamics="mobility", speed=0.03)
    hyper = prepare(experiment, tiny)
    dynamics = DYNAMICS["mobility"]
    memory = dynamics.begin(hyper)
    np.testing.assert_array_equal(
        dynamics.at(hyper, memory, jnp.int32(0)).links, prepare(BASE, tiny).adjacency
    )
    for k in range(60):
        now = dynamics.at(hyper, memory, jnp.int32(k))
        places = np.asarray(memory["places"])
        distance = np.linalg.norm(places[:, None] - places, axis=2)
        np.testing.assert_array_equal(now.links, (distance <= 0.6) & ~np.eye(6, dtype=bool))
        walked = np.linalg.norm(np.asarray(now.memory["places"]) - places, axis=1)
        assert (walked <= 0.03 + 1e-6).all()
        assert (np.asarray(now.memory["places"]) >= 0).all()
        assert (np.asarray(now.memory["places"]) <= 1).all()
        memory = now.memory


def test_absent_devices_have_no_links_and_keep_their_models(tiny):
    experiment = BASE.replace(dynamics="churn", leave=0.2, come_back=0.3, policy="zt", model="logistic")
    links, present = network_of(experiment, tiny, 40)
    assert 0.1 < (~present).mean() < 0.9
    assert not links[~present].any()
    run = efhc.simulate(experiment, tiny, trace=True)
    moved = (run.weights.diff("instant") != 0).any("parameter").values
    assert not moved[~present].any()
    assert moved[present].mean() > 0.8
    training = efhc.simulate(experiment.replace(absent_train=True), tiny, trace=True)
    moved = (training.weights.diff("instant") != 0).any("parameter").values
    assert moved[~present].mean() > 0.3


def test_a_network_that_is_all_down_is_local(x64, tiny):
    down = BASE.replace(dynamics="failures", link_up=0.0)
    run = efhc.simulate(down, tiny, trace=True)
    local = efhc.simulate(BASE.replace(policy="local"), tiny, trace=True)
    np.testing.assert_array_equal(run.weights, local.weights)
    assert float(run.transmission_time.sum()) == 0


def test_links_that_never_fail_are_the_static_network(tiny):
    always = efhc.simulate(BASE.replace(dynamics="failures", link_up=1.0), tiny)
    static = efhc.simulate(BASE, tiny)
    np.testing.assert_array_equal(always.links_used, static.links_used)
    np.testing.assert_array_equal(always.accuracy, static.accuracy)


@pytest.mark.parametrize("dynamics", ["failures", "markov", "periodic", "churn"])
def test_lists_of_neighbours_change_as_the_matrix_does(tiny, monkeypatch, dynamics):
    experiment = BASE.replace(dynamics=dynamics, graph="ring", devices=12, split="iid", leave=0.1)
    matrices, _ = network_of(experiment, tiny, 40)
    monkeypatch.setattr(network, "_MATRIX_UP_TO", 0)
    monkeypatch.setattr(network, "_SLOTS_TOGETHER", 1)
    neighbors = prepare(experiment, tiny).neighbors
    assert neighbors is not None
    lists, _ = network_of(experiment, tiny, 40)
    np.testing.assert_array_equal(jax.vmap(lambda links: as_matrix(links, neighbors))(lists), matrices)


def test_a_changing_run_goes_on_from_its_checkpoint(tiny, tmp_path):
    from efhc_jax.checkpoint import Checkpoints
    from efhc_jax.simulation import Control

    experiment = BASE.replace(dynamics="markov", iterations=60)
    whole = efhc.simulate(experiment, tiny)
    asked = iter([False, False, False, True])
    checkpoints = Checkpoints(tmp_path / "checkpoint", 0.0)
    with pytest.raises(KeyboardInterrupt):
        efhc.simulate(
            experiment, tiny, control=Control(should_stop=lambda: next(asked), checkpoints=checkpoints)
        )
    assert efhc.simulate(experiment, tiny, control=Control(checkpoints=checkpoints)).equals(whole)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dynamics": "trace"}, "graph_file='': goes with dynamics='trace'"),
        ({"graph_file": "x.npy"}, "graph_file='x.npy': goes with dynamics='trace'"),
        ({"dynamics": "mobility", "graph": "ring"}, "graph='ring': devices that move need"),
        ({"link_up": 1.5}, "link_up=1.5: out of range"),
        ({"absent_train": "yes"}, "absent_train='yes': give true or false"),
    ],
)
def test_settings_that_do_not_fit(changes, message):
    with pytest.raises(efhc.ExperimentError, match=message):
        BASE.replace(**changes)
