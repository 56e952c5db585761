"""What people type by habit is answered by what to type."""

import shlex

import pytest

from efhc_jax.cli import parse
from efhc_jax.cli.words import as_sweep, check_words, flags_of, grouped, settings
from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.axes import NOT_AXES


def answer(line):
    with pytest.raises(ExperimentError) as error:
        check_words(shlex.split(line))
    return str(error.value)


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize(
    ("typed", "flag"),
    [
        ("--lr 0.1", "--learning-rate"),
        ("--lr=0.1", "--learning-rate"),
        ("--num-clients 5", "--devices"),
        ("--num_clients 5", "--devices"),
        ("--rounds 100", "--iterations"),
        ("--batchsize 4", "--batch-size"),
        ("--topology ring", "--graph"),
        ("--algorithm zt", "--policy"),
        ("--radius 0.3", "--connectivity"),
        ("--iter 100", "--iterations"),
    ],
)
def test_a_flag_of_another_tool(command, typed, flag):
    assert answer(f"{command} {typed}") == f"{typed.split()[0].split('=')[0]}: no such flag; use {flag}"


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_a_flag_that_means_something_else_elsewhere(command):
    epochs = answer(f"{command} --epochs 5")
    assert epochs.startswith("--epochs: no such flag; a run is counted in iterations, not in passes")
    assert epochs.endswith("use --iterations")
    alpha = answer(f"{command} --alpha 0.3")
    assert "--learning-rate for the step size α" in alpha
    assert "--dirichlet-alpha for the Dirichlet split" in alpha


def test_a_batch_is_one_thing_for_a_run_and_another_for_a_sweep():
    assert answer("run --batch 4").endswith("use --batch-size")
    assert "is now --runs-at-once" in answer("sweep --batch 4")


@pytest.mark.parametrize(
    ("typed", "corrected"),
    [
        ("--policy efhc gt", "efhc sweep --policy efhc gt"),
        ("--policy efhc,gt", "efhc sweep --policy efhc gt"),
        ("--policy=efhc,gt --seed 3", "efhc sweep --policy efhc gt --seed 3"),
        ("--policy efhc, gt", "efhc sweep --policy efhc gt"),
        ("--r 5 50 --trace --log wandb --out o", "efhc sweep --r 5 50 --out o"),
        ("--r 5 -1", "efhc sweep --r 5 -1"),
        ("--r [5,50]", "efhc sweep --r 5 50"),
        ("--seeds 3", "efhc sweep --seeds 3"),
        ("--seeds 3 --lr 0.1", "efhc sweep --seeds 3 --learning-rate 0.1"),
        ("--seeds 3 --allow-disconnected", "efhc sweep --seeds 3 --allow-disconnected True"),
        ("--seeds 3 --out 'a, b'", "efhc sweep --seeds 3 --out 'a, b'"),
    ],
)
def test_several_values_for_a_run_are_a_sweep(typed, corrected):
    assert answer(f"run {typed}").endswith(f"try: {corrected}")
    parse(shlex.split(corrected)[1:])


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        ("sweep --policy efhc,gt", "--policy efhc gt"),
        ("sweep --r 5,50,500", "--r 5 50 500"),
        ("sweep --devices 10,20", "--devices 10 20"),
        ("sweep --policy [efhc,gt]", "--policy efhc gt"),
        ("run --budgets 10,30", "--budgets 10 30"),
    ],
)
def test_values_are_separated_by_spaces(line, flag):
    assert answer(line).endswith(f": separate values by spaces; try: {flag}")


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ("--iterations 12,000", "12000"),
        ("--iterations 1,200,000", "1200000"),
        ("--placement 0,3", "0.3"),
        ("--placement=,3", ".3"),
    ],
)
def test_a_number_has_no_commas(command, typed, number):
    flag = typed.split()[0].split("=")[0]
    assert answer(f"{command} {typed}").endswith(f"try: {flag} {number}")


@pytest.mark.parametrize(
    ("typed", "number", "several"),
    [
        ("--devices 1,000", "--devices 1000", "--devices 1 000"),
        ("--batch-size 128,256", "--batch-size 128256", "--batch-size 128 256"),
        ("--learning-rate 0,1", "--learning-rate 0.1", "--learning-rate 0 1"),
        ("--r -0,5", "--r -0.5", "--r -0 5"),
    ],
)
def test_a_comma_in_a_number_or_between_two(typed, number, several):
    end = f"try: {number}, or for several values, separated by spaces: "
    assert answer(f"run {typed}").endswith(f"{end}efhc sweep {several}")
    assert answer(f"sweep {typed}").endswith(f"{end}{several}")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("run --iterations 6000,12000", "iterations=6000,12000"),
        ("sweep --iterations 6000,12000", "iterations=6000,12000"),
        ("run --iterations 100 200", "iterations=100 200"),
        ("run --iterations [100,200]", "iterations=[100,200]"),
    ],
)
def test_one_value_of_what_cannot_be_an_axis(line, shown):
    assert answer(line) == f"{shown}: give one value; {NOT_AXES['iterations']}"


def test_what_cannot_be_an_axis_is_a_setting():
    assert set(NOT_AXES) <= set(settings())


@pytest.mark.parametrize(
    "line",
    [
        "",
        "run",
        "run --policy efhc --r 5 --budgets 10 30 --dynamics.train-while-absent --out a,b",
        "run --dataset 'Fashion MNIST'",
        "run --graph file --graph-file a,b.csv",
        "run --r -inf",
        "run --lr 3 --help",
        "run --polcy zt",
        "run --policy efhc -v",
        "sweep --policy efhc gt --r 5 50 --seeds 3",
        "plot --lr 3",
        "figure1 --seeds 3",
    ],
)
def test_everything_else_is_left_to_the_parser(line):
    check_words(shlex.split(line))


def test_the_flags_are_those_of_the_parser(capsys):
    for command in ("run", "sweep"):
        with pytest.raises(SystemExit):
            parse([command, "--help"])
        shown = capsys.readouterr().out
        assert all(f"--{name.replace('_', '-')}" in shown for name in flags_of(command))


def test_a_run_without_flags_is_a_sweep_without_flags():
    assert as_sweep(grouped([])) == "efhc sweep"


def test_a_flag_that_is_given_twice_is_said(capsys):
    check_words(["sweep", "--policy", "efhc", "--seeds", "3", "--policy", "zt", "rg", "--seeds", "3"])
    said = capsys.readouterr().err
    assert said == "efhc: note: --policy is given twice; the last counts: zt rg\n"
