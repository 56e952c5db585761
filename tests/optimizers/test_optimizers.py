"""Directions of local steps: each optimizer by its formula, in loops over devices and steps."""

import dataclasses
import itertools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import efhc_jax as efhc
from efhc_jax.members import make_parameters
from efhc_jax.members.tracing import as_arrays
from efhc_jax.optimizers import OPTIMIZERS, Adam, Momentum, Nesterov, Sgd
from efhc_jax.optimizers.base import Optimizer, direction, start
from efhc_jax.optimizers.checks import check_optimizer
from efhc_jax.optimizers.regularization import clip_by_norm
from small import SMALL

DEVICES, STEPS = 4, 6


def expected(parameters, gradients, weights, training):
    """The directions (step, device, …), by the formulas."""
    found = np.zeros_like(gradients)
    for i in range(DEVICES):
        v, m, n, t = 0.0, 0.0, 0.0, 0
        for k in range(STEPS):
            if not training[k, i]:
                continue
            g, w = gradients[k, i], weights[k, i]
            g = g * min(1, parameters.clip / np.linalg.norm(g)) + parameters.weight_decay * w
            if isinstance(parameters, Adam):
                t += 1
                m = parameters.b1 * m + (1 - parameters.b1) * g
                n = parameters.b2 * n + (1 - parameters.b2) * g**2
                mean, square = m / (1 - parameters.b1**t), n / (1 - parameters.b2**t)
                found[k, i] = mean / (np.sqrt(square) + parameters.eps)
            elif isinstance(parameters, Momentum):
                found[k, i] = v = parameters.momentum * v + g
            elif isinstance(parameters, Nesterov):
                v = parameters.momentum * v + g
                found[k, i] = parameters.momentum * v + g
            else:
                found[k, i] = g
    return found


def directions(optimizer, parameters, gradients, weights, training):
    """The directions (step, device, …) of the package, and the last states."""
    state, found = start(optimizer, parameters, weights[0]), []
    for k in range(len(gradients)):
        one, state = direction(
            optimizer, parameters, state, gradients[k], weights[k], jnp.asarray(training[k])
        )
        found.append(one)
    return jnp.stack(found), state


def some(shape=(3, 2), seed=0):
    """Gradients and models (step, device, …), and who trains (step, device)."""
    rng = np.random.default_rng(seed)
    gradients, weights = rng.normal(size=(2, STEPS, DEVICES, *shape))
    training = rng.random((STEPS, DEVICES)) < 0.7
    training[:, 0], training[:, 1], training[0] = True, False, [True, False, True, False]
    return gradients, weights, training


def optimizer_of(parameters):
    return next(one for one in OPTIMIZERS.values() if one.parameters is type(parameters))


EVERY = [
    Sgd(),
    Sgd(weight_decay=0.3, clip=1.5),
    Momentum(),
    Momentum(momentum=0.5, weight_decay=0.3, clip=1.5),
    Momentum(momentum=0.0),
    Nesterov(),
    Nesterov(momentum=0.5, weight_decay=0.3, clip=1.5),
    Adam(),
    Adam(b1=0.5, b2=0.7, eps=0.1, weight_decay=0.3, clip=1.5),
    Adam(b1=0.0, b2=0.0),
]


@pytest.mark.parametrize("parameters", EVERY, ids=str)
def test_every_device_follows_the_formula_with_a_state_of_its_own(x64, parameters):
    optimizer, (gradients, weights, training) = optimizer_of(parameters), some()
    traced = as_arrays(optimizer, parameters)
    found, _ = directions(
        optimizer, traced, jnp.asarray(gradients), jnp.asarray(weights), jnp.asarray(training)
    )
    np.testing.assert_allclose(
        found, expected(parameters, gradients, weights, training), rtol=1e-12, atol=1e-14
    )
    norms = np.linalg.norm(gradients, axis=(2, 3))
    assert ((norms > 1.5).sum(), (norms < 1.5).sum()) > (5, 5), "some are clipped, others are not"


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_who_does_not_train_has_no_direction_and_keeps_its_state(name):
    optimizer = OPTIMIZERS[name]
    parameters = as_arrays(optimizer, make_parameters(optimizer, {}))
    gradients, weights, _ = jax.tree.map(jnp.float32, some())
    before, training = start(optimizer, parameters, weights[0]), jnp.array([True, False, True, False])
    broken = gradients[0].at[1].set(jnp.nan)
    found, after = direction(optimizer, parameters, before, broken, weights[0], training)
    assert (found[~training] == 0).all()
    assert (found[training] != 0).all()
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        assert len(new) == DEVICES
        np.testing.assert_array_equal(new[~training], old[~training])
        assert (new[training] != old[training]).all()


def test_plain_descent_is_the_gradient_bit_by_bit():
    optimizer, (gradients, weights, _) = OPTIMIZERS["sgd"], some()
    gradients = jnp.float32(gradients).at[0, 0].set(1e30).at[0, 2].set(0.0)  # of infinite norm, and of 0
    found, state = directions(
        optimizer,
        as_arrays(optimizer, Sgd()),
        gradients,
        jnp.float32(weights),
        np.ones((STEPS, DEVICES), bool),
    )
    np.testing.assert_array_equal(found, gradients)
    assert jax.tree.leaves(state) == [], "it has no state"


@pytest.mark.parametrize(
    ("bound", "gradient", "clipped"),
    [
        (np.inf, [3.0, 4.0], [3.0, 4.0]),
        (np.inf, [0.0, 0.0], [0.0, 0.0]),
        (np.inf, [np.inf, 1.0], [np.inf, 1.0]),
        (5.0, [3.0, 4.0], [3.0, 4.0]),
        (2.5, [3.0, 4.0], [1.5, 2.0]),
        (2.5, [0.0, 0.0], [0.0, 0.0]),
        (2.5, [[0.0, 4.0], [3.0, 0.0]], [[0.0, 2.0], [1.5, 0.0]]),
        (1e-6, [0.0, -1.0], [0.0, -1e-6]),
    ],
)
def test_a_gradient_is_scaled_down_to_the_bound(bound, gradient, clipped):
    clip = jax.jit(lambda bound, gradient: clip_by_norm(bound).update(gradient, optax.EmptyState())[0])
    found = clip(jnp.float32(bound), jnp.float32(gradient))
    np.testing.assert_array_equal(found, jnp.float32(clipped))


def test_values_of_parameters_share_a_compilation():
    gradients, weights, training = jax.tree.map(jnp.float32, some())

    @jax.jit
    def run(parameters):
        optimizer = optimizer_of(parameters)
        return directions(optimizer, parameters, gradients, weights, training > 0)[0]

    for one, other in itertools.pairwise(EVERY):
        if type(one) is type(other):
            pair = [as_arrays(optimizer_of(one), parameters) for parameters in (one, other)]
            before = run._cache_size()
            found = [run(parameters) for parameters in pair]
            assert run._cache_size() <= before + 1
            assert (found[0] != found[1]).any()
    assert run._cache_size() == 4


def test_runs_of_a_batch_have_parameters_of_their_own():
    optimizer = OPTIMIZERS["momentum"]
    gradients, weights, training = jax.tree.map(jnp.float32, some())
    runs = [
        as_arrays(optimizer, Momentum(momentum=one, clip=clip))
        for one, clip in ((0.2, 1.0), (0.8, np.inf))
    ]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)
    follow = lambda own: directions(optimizer, own, gradients, weights, training > 0)[0]  # noqa: E731
    for found, own in zip(jax.vmap(follow)(batch), runs, strict=True):
        np.testing.assert_allclose(found, follow(own), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"optimizer": "sgd", "weight_decay": -0.1}, "weight_decay=-0.1: out of range"),
        (
            {"optimizer": "sgd", "clip": 0},
            r"clip=0: out of range; give a number above 0 \(inf is allowed",
        ),
        (
            {"optimizer": "momentum", "momentum": 1},
            "momentum=1: out of range; give a number of 0 or more",
        ),
        ({"optimizer": "adam", "b2": 1.0}, "b2=1.0: out of range"),
        ({"optimizer": "adam", "eps": 0}, "eps=0: out of range"),
    ],
)
def test_parameters_have_ranges(parameters, message):
    (_, name), (field, value) = parameters.items()
    with pytest.raises(efhc.ExperimentError, match=message):
        efhc.members.declared(OPTIMIZERS[name])[field].check(field, value)


@dataclass(frozen=True)
class Warm:
    steps: int = efhc.parameter(2, "Steps until the direction has full length.", low=1)


def warm(parameters):
    return optax.chain(
        optax.scale_by_rms(), optax.scale_by_schedule(lambda k: jnp.minimum(1, k / parameters.steps))
    )


OWN = {
    "rms": Optimizer(lambda parameters: optax.scale_by_rms()),
    "lion": Optimizer(lambda parameters: optax.scale_by_lion()),
    "accelerated": Optimizer(lambda parameters: optax.chain(optax.centralize(), optax.trace(0.5, True))),
    "trust": Optimizer(
        lambda parameters: optax.chain(optax.scale_by_adam(), optax.scale_by_trust_ratio())
    ),
    "warm": Optimizer(warm, Warm),
}


@pytest.mark.parametrize("name", [*OPTIMIZERS, *OWN])
def test_optimizers_of_the_package_and_of_optax_pass(name):
    optimizer = OWN[name] if name in OWN else OPTIMIZERS[name]
    check_optimizer(name, optimizer)
    gradients, weights, training = jax.tree.map(jnp.float32, some(shape=(5,)))
    parameters = as_arrays(optimizer, make_parameters(optimizer, {}))
    found, _ = directions(optimizer, parameters, gradients, weights, training > 0)
    assert np.isfinite(found).all()


def changing(change):
    """An optimizer whose state changes from step to step."""
    return Optimizer(
        lambda parameters: optax.GradientTransformation(
            lambda weights: jnp.zeros(()), lambda updates, state, params=None: (updates, change(state))
        )
    )


def updating(update):
    return Optimizer(lambda parameters: optax.stateless(update))


def printed(updates, params):
    jax.debug.print("{}", updates[0])
    return updates


def called(updates, params):
    def within(updates):
        return jax.pure_callback(np.asarray, jax.ShapeDtypeStruct((5,), updates.dtype), updates)

    return jax.lax.cond(updates[0] > 0, within, lambda updates: updates, updates)


MISTAKES = {
    "transformation": (optax.sgd(0.1), "is a GradientTransformationExtraArgs; register efhc_jax.Opt"),
    "made": (Optimizer(optax.scale_by_rms()), "is not a function"),
    "parameters": (Optimizer(warm, int), "parameters=<class 'int'> is not the class of a dataclass"),
    "arguments": (Optimizer(lambda: optax.identity()), "make raises TypeError"),
    "gives": (Optimizer(lambda parameters: 3), "make gives a int; return an optax transformation"),
    "Python's if": (
        Optimizer(lambda own: optax.trace(0.5) if own.steps > 1 else optax.identity(), Warm),
        "make needs a concrete value during compilation",
    ),
    "NumPy": (updating(lambda updates, _: np.sign(np.asarray(updates))), "update calls NumPy"),
    "extra": (Optimizer(lambda _: optax.scale_by_backtracking_linesearch(9)), "update raises TypeError"),
    "shape": (updating(lambda updates, _: updates[:2]), "gives float32 (2,) in place of float32 (5,)"),
    "type": (updating(lambda updates, _: updates.astype(jnp.bfloat16)), "gives bfloat16 (5,) in place"),
    "structure": (changing(lambda state: (state,)), "update changes the state that init gives, "),
    "state's type": (changing(lambda state: state > 0), "gives, bool () in place of float32 ()"),
    "prints": (updating(printed), "update calls Python in every step, by debug"),
    "calls": (updating(called), "update calls Python in every step, by pure_callback"),
    "adam": (Optimizer(lambda parameters: optax.adam(1e-3)), "leave out the learning rate and its sign"),
    "schedule": (
        Optimizer(lambda _: optax.sgd(optax.linear_schedule(0.0, 1.0, 100))),
        "leave out the learning rate and its sign, which learning_rate stands for, as in optax.scale_by",
    ),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_said_with_the_name_of_the_optimizer(kind):
    optimizer, said = MISTAKES[kind]
    with pytest.raises(efhc.ExperimentError) as error:
        check_optimizer("mine", optimizer)
    assert str(error.value).startswith("optimizer='mine': ")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("update", "said"),
    [
        (
            lambda updates, _: updates.reshape(-1),
            "update gives float32 (40,) in place of float32 (4, 10)",
        ),
        (lambda updates, _: updates.T, "update gives float32 (10, 4) in place of float32 (4, 10)"),
    ],
)
def test_a_mistake_shows_with_the_shape_of_the_models_of_a_run(tiny, monkeypatch, update, said):
    """A vector of numbers would have passed."""
    monkeypatch.setitem(efhc.OPTIMIZERS, "mine", updating(update))
    check_optimizer("mine", efhc.OPTIMIZERS["mine"])
    with pytest.raises(efhc.ExperimentError) as error:
        efhc.simulate(SMALL.replace(optimizer="mine"), tiny)
    assert str(error.value).startswith("optimizer='mine': ")
    assert said in str(error.value)


def test_ones_own_is_registered_like_any_member(monkeypatch):
    monkeypatch.setitem(efhc.OPTIMIZERS, "mine", efhc.Optimizer(lambda parameters: optax.scale_by_rms()))
    assert not efhc.OPTIMIZERS.is_built_in("mine")
    check_optimizer("mine", efhc.OPTIMIZERS["mine"])
    assert all(
        dataclasses.is_dataclass(OPTIMIZERS[name].parameters) for name in OPTIMIZERS if name != "mine"
    )
