"""Networks that change: each dynamics by hand, and the oracle follows all of them."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import efhc_jax as efhc
import oracle
import oracle_networks as networks
import small
from efhc_jax.data import Dataset
from efhc_jax.engine.mixing import transition_matrix
from efhc_jax.network import slots as network
from efhc_jax.network.connectivity import connection_window
from efhc_jax.network.dynamics import DYNAMICS, Churn, Failures, Markov, Mobility, Periodic
from efhc_jax.network.dynamics.base import first_memory
from efhc_jax.network.slots import as_matrix
from efhc_jax.randomness.draws import random_words, uniform
from efhc_jax.randomness.streams import Stream
from efhc_jax.runs.prepare import dynamics_values, network_values, prepare

BASE = efhc.Experiment(
    devices=6, connectivity=0.6, iterations=40, eval_every=20, batch_size=2, r=4000.0, learning_rate=0.5
)
STEPS = 40


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory):
    """A file of random links that change now and then."""
    rng = np.random.default_rng(0)
    lines = [
        f"{time},{i},{j}"
        for time in (0, 3, 4, 11, 30)
        for i, j in np.argwhere(np.triu(rng.random((6, 6)) < 0.4, 1))
    ]
    path = tmp_path_factory.mktemp("graphs") / "links.csv"
    path.write_text("\n".join(lines))
    return path


def experiment_with(dynamics, graph_file, **changes):
    if dynamics == "trace":
        changes["graph_file"] = str(graph_file)
    values = {
        "dynamics.speed": 0.05,
        "dynamics.leave_probability": 0.1,
        "dynamics.return_probability": 0.3,
    }
    return BASE.inherit(values | changes | {"dynamics": dynamics})


def network_of(experiment, data, iterations=400):
    """The links (iteration, device, device) and who trains (iteration, device)."""
    network, parameters = network_values(experiment), dynamics_values(experiment)
    dynamics = DYNAMICS[experiment.dynamics]

    def body(memory, k):
        now, memory = dynamics.at(network, parameters, memory, k)
        return memory, (as_matrix(now.links, now.neighbors), now.training)

    first = first_memory(dynamics, network, parameters)
    _, found = jax.lax.scan(body, first, jnp.arange(iterations))
    return jax.tree.map(np.asarray, found)


def expected_network(experiment, data):
    """What the oracle says, from the same chances: links and who is there."""
    e, m = experiment, experiment.devices
    network = network_values(e)
    graph = np.asarray(prepare(BASE, data).network.adjacency)
    everybody = np.ones((STEPS, m), bool)

    def chances(iteration, positions):
        return np.asarray(
            uniform(random_words(network.key, Stream.NETWORK, iteration, jnp.asarray(positions)))
        )

    low, high = np.sort(np.indices((m, m)), axis=0)
    of_links = [chances(k, (low * m + high).ravel()).reshape(m, m) for k in range(-1, STEPS)]
    if e.dynamics == "static":
        return networks.static(graph, STEPS), everybody
    if e.dynamics == "failures":
        return networks.failures(graph, of_links[1:], e["dynamics.up_probability"]), everybody
    if e.dynamics == "markov":
        return networks.markov(
            graph, of_links[0], of_links[1:], e["dynamics.failure"], e["dynamics.repair"]
        ), everybody
    if e.dynamics == "periodic":
        return networks.periodic(
            graph, STEPS, np.asarray(network.drawn), e["dynamics.period"]
        ), everybody
    if e.dynamics == "mobility":
        goals = [chances(k, np.arange(2 * m)).reshape(m, 2) for k in range(-1, STEPS)]
        places = np.asarray(network.drawn.places)
        return networks.mobility(places, goals, e["dynamics.speed"], e.connectivity), everybody
    if e.dynamics == "churn":
        of_devices = [chances(k, np.arange(m)) for k in range(STEPS)]
        return networks.churn(
            graph, of_devices, e["dynamics.leave_probability"], e["dynamics.return_probability"]
        )
    lines = [tuple(map(int, line.split(","))) for line in Path(e.graph_file).read_text().splitlines()]
    return networks.trace(lines, m, STEPS), everybody


@pytest.mark.parametrize("dynamics", DYNAMICS)
def test_links_are_symmetric_and_never_to_oneself(tiny, graph_file, dynamics):
    links, _ = network_of(experiment_with(dynamics, graph_file), tiny)
    assert (links == links.transpose(0, 2, 1)).all()
    assert not links.diagonal(axis1=1, axis2=2).any()
    if dynamics != "static":
        assert (links[1:] != links[:-1]).any(), "something changes"


@pytest.mark.parametrize(
    ("dynamics", "absent_train"), [*((name, False) for name in DYNAMICS), ("churn", True)]
)
def test_the_oracle_follows(x64, tiny, graph_file, dynamics, absent_train):
    """Every policy, in every iteration: the network, who broadcasts, and the models."""
    experiment = experiment_with(dynamics, graph_file, **{"dynamics.train_while_absent": absent_train})
    links, present = expected_network(experiment, tiny)
    for policy in oracle.POLICIES:
        chosen = experiment.replace(policy=policy)
        run = efhc.simulate(chosen, tiny, trace=True)
        np.testing.assert_array_equal(run.adjacency, links)
        truth = small.oracle_of(chosen, tiny, run, training=present | absent_train)
        for k, expected in enumerate(truth):
            np.testing.assert_array_equal(run.fired[k], expected.fired)
            np.testing.assert_array_equal(run.used_links[k], expected.used_links)
            np.testing.assert_allclose(run.weights[k + 1], expected.weights, atol=1e-11)
            np.testing.assert_allclose(run.transmission_time[k], expected.transmission_time)


@pytest.mark.parametrize("dynamics", DYNAMICS)
def test_weights_stay_doubly_stochastic_and_the_isolated_keep_their_own(x64, tiny, graph_file, dynamics):
    run = efhc.simulate(experiment_with(dynamics, graph_file), tiny, trace=True)
    graphs, used = jnp.asarray(run.adjacency.values), jnp.asarray(run.used_links.values)
    matrices = np.asarray(jax.vmap(transition_matrix)(graphs, used))
    assert (matrices >= 0).all()
    np.testing.assert_allclose(matrices.sum(1), 1, atol=1e-14)
    np.testing.assert_allclose(matrices.sum(2), 1, atol=1e-14)
    np.testing.assert_array_equal(matrices, matrices.transpose(0, 2, 1))
    isolated = ~run.adjacency.values.any(2)
    if dynamics in ("failures", "periodic", "churn"):
        assert isolated.any()
    assert (matrices[:, np.arange(6), np.arange(6)][isolated] == 1).all()


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
    links, _ = network_of(BASE.replace(dynamics=Failures(up_probability=0.7)), tiny, 4000)
    graph = np.asarray(prepare(BASE, tiny).network.adjacency)
    share = links[:, graph].mean(0)
    assert share == pytest.approx(0.7, abs=0.04)
    assert not links[:, ~graph].any()
    pairs = np.argwhere(np.triu(graph))
    one, other = (links[:, i, j].astype(float) for i, j in pairs[:2])
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.06, "links fail independently"
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.06, "and of their past"


def test_outages_of_markov_links_last(tiny):
    experiment = BASE.replace(dynamics=Markov(failure=0.05, repair=0.2))
    links, _ = network_of(experiment, tiny, 8000)
    graph = np.asarray(prepare(BASE, tiny).network.adjacency)
    up = links[:, graph]
    assert up.mean() == pytest.approx(0.2 / 0.25, abs=0.03)
    down = ~up
    ends = down[:-1] & up[1:]
    assert ends.sum() / down[:-1].sum() == pytest.approx(0.2, abs=0.02), "repaired one time in five"
    begins = up[:-1] & down[1:]
    assert begins.sum() / up[:-1].sum() == pytest.approx(0.05, abs=0.01)


def test_links_of_a_periodic_network_take_turns(tiny):
    experiment = BASE.replace(dynamics=Periodic(period=5), graph="complete")
    links, _ = network_of(experiment, tiny, 50)
    assert (links[:5].sum(0) == ~np.eye(6, dtype=bool)).all(), "each link once in a period"
    np.testing.assert_array_equal(links[:5], links[5:10])
    assert (links[:5].sum((1, 2)) == 6).all(), "15 links dealt evenly over 5 turns"


def test_a_periodic_ring_needs_the_whole_period_to_be_connected(tiny):
    experiment = BASE.replace(dynamics=Periodic(period=6), graph="ring")
    links, _ = network_of(experiment, tiny, 60)
    assert connection_window(links) == 5, "any five of a ring's six links connect it"


def test_devices_walk_and_links_follow_their_distance(tiny):
    experiment = BASE.replace(dynamics=Mobility(speed=0.03))
    network, parameters = network_values(experiment), dynamics_values(experiment)
    dynamics = DYNAMICS["mobility"]
    memory = dynamics.init(network, parameters)
    first, _ = dynamics.at(network, parameters, memory, jnp.int32(0))
    np.testing.assert_array_equal(first.links, network_values(BASE).adjacency)
    for k in range(60):
        now, following = dynamics.at(network, parameters, memory, jnp.int32(k))
        places = np.asarray(memory.places)
        distance = np.linalg.norm(places[:, None] - places, axis=2)
        np.testing.assert_array_equal(now.links, (distance <= 0.6) & ~np.eye(6, dtype=bool))
        walked = np.linalg.norm(np.asarray(following.places) - places, axis=1)
        assert (walked <= 0.03 + 1e-6).all()
        assert (np.asarray(following.places) >= 0).all()
        assert (np.asarray(following.places) <= 1).all()
        memory = following


def test_absent_devices_have_no_links_and_keep_their_models(tiny):
    leaving = Churn(leave_probability=0.2, return_probability=0.3)
    experiment = BASE.replace(dynamics=leaving, policy="zt", model="logistic")
    links, present = network_of(experiment, tiny, 40)
    assert 0.1 < (~present).mean() < 0.9
    assert not links[~present].any()
    run = efhc.simulate(experiment, tiny, trace=True)
    moved = (run.weights.diff("instant") != 0).any("parameter").values
    assert not moved[~present].any()
    assert moved[present].mean() > 0.8
    training = efhc.simulate(
        experiment.replace(**{"dynamics.train_while_absent": True}), tiny, trace=True
    )
    moved = (training.weights.diff("instant") != 0).any("parameter").values
    assert moved[~present].mean() > 0.3


@pytest.mark.parametrize(
    "down",
    [
        {"dynamics": "failures", "dynamics.up_probability": 0.0},
        {"dynamics": "markov", "dynamics.repair": 0.0},
        {"dynamics": "trace"},
    ],
)
def test_a_network_that_is_all_down_is_local(x64, tiny, tmp_path, down):
    if down["dynamics"] == "trace":
        np.save(tmp_path / "nothing.npy", np.zeros((6, 6), bool))
        down = down | {"graph_file": str(tmp_path / "nothing.npy"), "allow_disconnected": True}
    run = efhc.simulate(BASE.replace(**down), tiny, trace=True)
    local = efhc.simulate(BASE.replace(policy="local"), tiny, trace=True)
    np.testing.assert_array_equal(run.weights, local.weights)
    assert float(run.transmission_time.sum()) == 0


def test_links_that_never_fail_are_the_static_network(tiny):
    always = efhc.simulate(BASE.replace(dynamics=Failures(up_probability=1.0)), tiny)
    static = efhc.simulate(BASE, tiny)
    np.testing.assert_array_equal(always.links_used, static.links_used)
    np.testing.assert_array_equal(always.accuracy, static.accuracy)


@pytest.mark.parametrize("dynamics", ["failures", "markov", "periodic", "churn", "trace"])
def test_lists_of_neighbours_change_as_the_matrix_does(tiny, tmp_path, monkeypatch, dynamics):
    settings = {"dynamics": dynamics, "graph": "ring", "devices": 12, "split": "iid"}
    settings |= {"dynamics.leave_probability": 0.1}
    experiment = BASE.inherit(settings | file_for(dynamics, tmp_path))
    matrices, _ = network_of(experiment, tiny, 40)
    monkeypatch.setattr(network, "_MATRIX_UP_TO", 0)
    monkeypatch.setattr(network, "_SLOTS_TOGETHER", 1)
    assert prepare(experiment, tiny).network.neighbors is not None
    lists, _ = network_of(experiment, tiny, 40)
    np.testing.assert_array_equal(lists, matrices)


def file_for(dynamics, folder):
    """A file of two sparse graphs, where there is need of one."""
    if dynamics != "trace":
        return {}
    (folder / "links.csv").write_text("0,0,1\n0,2,3\n7,1,2\n7,10,11\n7,0,11\n")
    return {"graph_file": str(folder / "links.csv"), "allow_disconnected": True}


@pytest.fixture(scope="module")
def many(tiny):
    """Enough samples for 400 devices, and the settings of a network of them that moves."""
    images, labels = np.tile(tiny.train_images, (10, 1, 1)), np.tile(tiny.train_labels, 10)
    data = Dataset("many", images, labels, tiny.test_images, tiny.test_labels)
    moving = BASE.replace(devices=400, connectivity=0.1, dynamics="mobility", split="iid", batch_size=1)
    return data, moving.replace(iterations=12, eval_every=12, r=2000.0)


def test_many_devices_that_move_are_linked_as_all_pairs_would_be(x64, many, monkeypatch):
    data, moving = many
    assert prepare(moving, data).network.neighbors is not None
    lists = efhc.simulate(moving, data, trace=True)
    monkeypatch.setattr(network, "_MATRIX_UP_TO", 400)
    assert prepare(moving, data).network.neighbors is None
    pairs = efhc.simulate(moving, data, trace=True)
    assert (pairs.adjacency.values[1:] != pairs.adjacency.values[:-1]).any()
    assert int(pairs.new_links_used.sum()) > 100
    assert 0.02 < pairs.fired.mean() < 0.98
    for name in ("adjacency", "used_links", "fired", "degree", "new_links_used"):
        np.testing.assert_array_equal(lists[name], pairs[name])
    np.testing.assert_allclose(lists.weights, pairs.weights, atol=1e-12)


def test_a_crowd_for_which_there_is_no_room_is_reported(many, monkeypatch):
    data, moving = many
    monkeypatch.setattr("efhc_jax.network.dynamics.mobility.neighbor_capacity", lambda *_: 8)
    with pytest.raises(efhc.ExperimentError, match="a device has more than the 24 neighbours"):
        efhc.simulate(moving, data)


def test_files_of_different_length_are_swept(tiny, tmp_path):
    ring, star = (
        np.asarray(prepare(BASE.replace(graph=g), tiny).network.adjacency) for g in ("ring", "star")
    )
    np.save(tmp_path / "one.npy", ring)
    np.save(tmp_path / "two.npy", np.stack([ring, star, ring]))
    files = [str(tmp_path / "one.npy"), str(tmp_path / "two.npy")]
    experiment = BASE.replace(dynamics="trace", graph_file=files[0])
    grid = efhc.sweep(experiment, tiny, graph_file=files)
    for file in files:
        alone = efhc.simulate(experiment.replace(graph_file=file), tiny)
        np.testing.assert_array_equal(grid.sel(graph_file=file).links_used, alone.links_used)


def test_periodic_networks_of_different_size_are_swept(tiny, monkeypatch):
    """A ring as lists, a star as a matrix, in one batch."""
    experiment = BASE.replace(dynamics="periodic", devices=12, split="iid")
    alone = {g: efhc.simulate(experiment.replace(graph=g), tiny) for g in ("ring", "grid", "star")}
    monkeypatch.setattr(network, "_MATRIX_UP_TO", 0)
    monkeypatch.setattr(network, "_SLOTS_TOGETHER", 1)
    for graphs in (["ring", "grid"], ["ring", "star"]):
        grid = efhc.sweep(experiment, tiny, graph=graphs)
        for graph in graphs:
            np.testing.assert_array_equal(grid.sel(graph=graph).links_used, alone[graph].links_used)


def test_a_changing_run_resumes_from_its_checkpoint(tiny, tmp_path):
    experiment = BASE.replace(dynamics="markov", iterations=60)
    resumed, _ = small.stopped_and_resumed(experiment, tiny, tmp_path)
    assert resumed.equals(efhc.simulate(experiment, tiny))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dynamics": "trace"}, "graph_file: dynamics='trace' needs one"),
        ({"graph": "file"}, "graph_file: graph='file' needs one"),
        ({"graph_file": "x.npy"}, "graph_file='x.npy': has no effect without graph='file'"),
        (
            {"dynamics": "mobility", "graph": "ring"},
            "graph='ring': dynamics='mobility' needs graph='geometric'",
        ),
        (
            {"dynamics": "failures", "dynamics.up_probability": 1.5},
            "dynamics.up_probability=1.5: out of range",
        ),
        (
            {"dynamics": "churn", "dynamics.train_while_absent": "yes"},
            "dynamics.train_while_absent='yes': give true or false",
        ),
    ],
)
def test_settings_that_do_not_fit(changes, message):
    with pytest.raises(efhc.ExperimentError, match=message):
        BASE.replace(**changes)
