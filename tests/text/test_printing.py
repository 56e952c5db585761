"""Names that others chose are shown as they are, not obeyed by terminals, rich or Matplotlib."""

import io
import sys
import warnings

import numpy as np
import pytest
from rich.console import Console

import efhc_jax as efhc
from efhc_jax.cli import main
from efhc_jax.cli.run import summary_table
from efhc_jax.cli.startup import notes
from efhc_jax.cli.sweep import sweep_table
from efhc_jax.plotting.animation import animate
from efhc_jax.plotting.figures import draw_run, save_figure
from efhc_jax.storage.netcdf import save
from efhc_jax.text.printing import in_figure, in_table, print_text, printable

NAMES = ["[/a]", "[red]", "$^$", r"$\\frac$", "a\x1b[31mb", "trailing\\"]
BASE = efhc.Experiment(dataset="synthetic", devices=4, iterations=6, eval_every=3)


@pytest.fixture
def grid(monkeypatch):
    """A sweep over policies with such names, and with values that are not numbers."""
    for name in NAMES:
        monkeypatch.setitem(efhc.POLICIES, name, efhc.Policy(lambda now: now.coin < 0.5))
    return efhc.sweep(BASE, policy=NAMES, weak_fraction=[0.2, 0.4], seed=range(2), audit=True)


def shown(renderable):
    out = io.StringIO()
    Console(file=out, width=300).print(renderable)
    return out.getvalue()


def test_commands_to_the_terminal_are_written_out():
    assert printable("\x1b[2J\x9b\x07\u202e") == r"\x1b[2J\x9b\x07\u202e"
    assert printable("\u2066\u200b\u2028\udcff\ue000") == r"\u2066\u200b\u2028\udcff\ue000"
    assert printable("Größe\u00a0α 模型 ± 1") == "Größe\u00a0α 模型 ± 1"


def test_line_ends_are_kept_on_request():
    assert printable("one\n\ttwo\r\n") == r"one\n\ttwo\r\n"
    assert printable("one\n\ttwo\r\n", lines=True) == "one\n\\ttwo\\r\n"


@pytest.mark.parametrize("name", [*NAMES, "a:on:b", "two\nlines", "\udcff"])
def test_a_printed_line_shows_a_name_as_it_is(capsys, name):
    print_text(f"wrote {name}")
    print_text(f"note: {name}", file=sys.stderr)
    assert capsys.readouterr() == (f"wrote {printable(name)}\n", f"note: {printable(name)}\n")


ODD = "a:on:b[red]\x1b[31m\u202e"
SMALL = ["--dataset", "synthetic", "--devices", "4", "--iterations", "6", "--eval-every", "3"]


def obeyed(capsys, arguments):
    """Whether the folder with odd characters is not shown as it is in each line that names it."""
    assert main(arguments) == 0
    shown = "".join(capsys.readouterr())
    named = [line for line in shown.splitlines() if "a:on:b" in line]
    assert named, shown
    return not shown.replace("\n", "").isprintable() or any(printable(ODD) not in one for one in named)


def test_paths_that_commands_print(tmp_path, capsys):
    out = tmp_path / ODD
    assert not obeyed(capsys, ["run", *SMALL, "--audit", "--out", str(out)])
    assert not obeyed(capsys, ["audit", str(out), "--out", str(out / "audit.png")])
    assert not obeyed(capsys, ["plot", str(out), "--out", str(out / "plot.png")])
    assert not obeyed(capsys, ["report", str(out), "--out", str(out / "report.html")])
    assert not obeyed(capsys, ["animate", str(out), "--frames", "1", "--out", str(out / "run.gif")])
    axis = ["--connectivity", "0.4", "0.5"]
    assert not obeyed(capsys, ["sweep", *SMALL, *axis, "--out", str(out / "sweep")])
    assert not obeyed(capsys, ["verify", str(out)])


def test_notes_do_not_command_the_terminal(capsys):
    with notes():
        warnings.warn("out=\x1b[31m: cannot be locked", RuntimeWarning, stacklevel=1)
    assert capsys.readouterr().err == "efhc: note: out=\\x1b[31m: cannot be locked\n"


@pytest.mark.parametrize("command", ["run", "sweep", "figure1"])
def test_the_folder_of_stopped_work(tmp_path, capsys, monkeypatch, command):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("efhc_jax.runs.simulation.simulate", stop)
    monkeypatch.setattr("efhc_jax.runs.sweeps.sweep", stop)
    words = ["--preset", "quick"] if command == "figure1" else SMALL
    assert main([command, *words, "--out", str(tmp_path / ODD)]) == 130
    shown = capsys.readouterr().out.splitlines()
    resume = "Stopped. Run the same command again to resume from"
    assert shown[-1] == f"{resume} {tmp_path / printable(ODD)}"


@pytest.mark.parametrize("name", NAMES)
def test_rich_shows_a_name_as_it_is(name):
    assert printable(name) in shown(in_table(f"before {name} after"))


@pytest.mark.parametrize("name", NAMES)
def test_matplotlib_shows_a_name_as_it_is(name):
    from matplotlib.figure import Figure

    title = Figure().suptitle(in_figure(name))
    text, is_math = title._preprocess_math(title.get_text())
    assert (text, is_math) == (printable(name), False)


def test_names_of_policies_in_tables(grid):
    table = shown(sweep_table(grid))
    for name in NAMES:
        assert f" {printable(name)} " in table
    assert "\x1b" not in table
    for name in NAMES:
        experiment = BASE.replace(policy=name)
        table = shown(summary_table(experiment, efhc.simulate(experiment)))
        assert f"{printable(name)} on synthetic, svm" in table


@pytest.mark.parametrize(
    "axes",
    [
        {},
        {"x": "policy", "hue": "weak_fraction"},
        {"x": "weak_fraction"},
        {"x": "policy", "rows": "weak_fraction"},
        {"x": "weak_fraction", "rows": "seed", "hue": "policy"},
    ],
)
def test_names_of_policies_in_figures(grid, tmp_path, axes, recwarn):
    one = grid if "weak_fraction" in axes.values() else grid.isel(weak_fraction=slice(1))
    save_figure(efhc.plot(one, **axes), tmp_path / "figure.png")
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_policies_in_figures_of_one_run(grid, tmp_path, name):
    run = efhc.simulate(BASE.replace(policy=name), audit=True)
    save_figure(draw_run(run), tmp_path / "figure.svg")
    animate(run, tmp_path / "run.gif", frames=1)


def test_a_message_does_not_command_the_terminal(tmp_path, capsys):
    assert main(["plot", str(tmp_path / "a\x1b[31mb.nc")]) == 2
    assert (
        main(
            [
                "run",
                "--dataset",
                "synthetic",
                "--graph",
                "file",
                "--graph-file",
                str(tmp_path / "a\x1b[31mb.npy"),
            ]
        )
        == 2
    )
    shown = capsys.readouterr().err
    assert shown.count(r"a\x1b[31mb") == 2
    assert "\x1b" not in shown


def test_attributes_do_not_command_the_terminal(tmp_path, capsys):
    run = efhc.simulate(BASE)
    run.attrs["platform"] = "cpu \x1b[2Jgone"
    run.attrs["python"] = "3.\x1b]0;title\x07"
    run["accuracy"][-1, 0] = np.float32(0.5) - run["accuracy"][-1, 0]
    save(run, tmp_path / "run.nc")
    assert main(["verify", str(tmp_path / "run.nc")]) == 1
    shown = capsys.readouterr().out
    assert r"\x1b" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown
