"""The program as it is lowered for accelerators, which takes none of them."""

import jax
import jax.numpy as jnp
import pytest

from efhc_jax.data import load_dataset
from efhc_jax.engine.evaluation import evaluate
from efhc_jax.engine.mixing import mix
from efhc_jax.engine.program import Samples, advance, initialise
from efhc_jax.engine.recording import record_summary
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.runs.prepare import make_spec, prepare, stack

RUNS = 4


def lowered(function, *arguments, platform):
    return function.trace(*arguments).lower(lowering_platforms=(platform,)).as_text()


@pytest.fixture(scope="module", params=["svm", "lenet5"])
def program(request):
    experiment = Experiment(model=request.param, dataset="fashion_mnist_mini", batch_size=2)
    data = load_dataset(experiment.dataset)
    spec = make_spec(experiment, data)
    runs = stack([prepare(experiment, data)] * RUNS, spec.dynamics)
    progress = jax.eval_shape(lambda runs: initialise(spec, runs), runs)
    return spec, runs, progress, Samples(data.train_images, data.train_labels)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_a_run_never_calls_the_host(program, platform):
    spec, runs, progress, train = program
    arguments = (spec, record_summary, 4, runs, progress, None, jnp.int32(0), train)
    text = lowered(advance, *arguments, platform=platform)
    assert "stablehlo.while" in text
    assert "callback" not in text


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_an_evaluation_never_calls_the_host(program, platform):
    spec, _, progress, test = program
    text = lowered(evaluate, spec, progress.state, test, platform=platform)
    assert "stablehlo.while" in text  # over chunks of images
    assert "callback" not in text


@pytest.mark.parametrize(
    ("devices", "platform", "form"),
    [
        (10, "cpu", "slice"),
        (10, "cuda", "reduce"),
        (10, "tpu", "reduce"),
        (20, "cpu", "dot_general"),
        (20, "cuda", "reduce"),
        (40, "cuda", "dot_general"),
    ],
)
def test_the_form_of_mixing_depends_on_the_number_of_devices_and_the_platform(devices, platform, form):
    transition, weights = jnp.eye(devices), jnp.ones((devices, 7))
    text = lowered(jax.jit(mix), transition, weights, platform=platform)
    for each in ("slice", "reduce", "dot_general"):
        assert (f"stablehlo.{each}" in text) == (each == form)


def test_models_are_evaluated_in_turn_on_a_cpu_only():
    model = make_spec(
        Experiment(model="lenet5", dataset="fashion_mnist_mini"), load_dataset("fashion_mnist_mini")
    ).rules.model
    rows, images = jnp.zeros((3, model.size)), jnp.zeros((2, 28, 28))
    every = jax.jit(model.logits_of_all)
    assert "stablehlo.while" in lowered(every, rows, images, platform="cpu")
    assert "stablehlo.while" not in lowered(every, rows, images, platform="cuda")
