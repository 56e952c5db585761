"""`efhc run`: one experiment, with a summary, its results and a figure."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from efhc_jax.cli.flags import Folder, MemberFiles, OptionalFile, OptionalFolder
from efhc_jax.cli.settings import Settings
from efhc_jax.disk.files import output_folder, written_whole
from efhc_jax.disk.locks import held
from efhc_jax.experiment.effects import check_effects, why_no_effect
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.toml import read_toml, said_of
from efhc_jax.text.printing import in_table, in_three_digits, print_text

if TYPE_CHECKING:
    import xarray
    from rich.table import Table

    from efhc_jax.runs.loggers import Logger


@dataclass(frozen=True)
class Run:
    """Run one experiment. Every setting is a flag; the defaults are the paper's SVM setting."""

    settings: Settings = field(default_factory=Settings)
    config: OptionalFile = None
    """TOML file with settings by the same names; flags override it."""
    members: MemberFiles = ()
    """Python files that register policies, dynamics or other members of your own."""
    out: Folder = Path("out")
    """Folder for the results: a netCDF file, a figure, and the settings."""
    data_dir: OptionalFolder = None
    """Folder with the files of the dataset."""
    checkpoint_seconds: float = 60.0
    """Minimum time between checkpoints; a stopped run resumes from the last one."""
    audit: bool = False
    """Record graphs, broadcasts and gradient norms of every iteration, for `efhc audit`."""
    trace: bool = False
    """Record the full state of every iteration (small runs only)."""
    log: Annotated[str | None, tyro.conf.arg(metavar="tensorboard|wandb")] = None
    """Log metrics to this dashboard during the run; needs the extra of the same name."""

    @functools.cached_property
    def experiment(self) -> Experiment:
        """The experiment of the file, or the default one, with the flags that differ from it."""
        filed = {} if self.config is None else read_toml(self.config)
        with said_of(self.config) if self.config else contextlib.nullcontext():
            base = Experiment().inherit(filed)
        given = self.settings.values()
        flags = {name: given[name] for name in given if given[name] != base[name]}
        chosen = base.inherit(flags)
        check_effects(chosen, flags)
        with said_of(self.config) if self.config else contextlib.nullcontext():
            # A setting of the file may need a flag, or be left without effect by one.
            check_effects(base, [name for name in filed if why_no_effect(chosen, name)])
        return chosen

    def execute(self) -> None:
        """Run the simulation, then store, plot and print the results."""
        from efhc_jax.cli.startup import notes, start_jax
        from efhc_jax.data import load_dataset
        from efhc_jax.runs.interrupts import stop_requests
        from efhc_jax.runs.simulation import Control, DivergedError, simulate
        from efhc_jax.storage.checkpoints import Checkpoints
        from efhc_jax.storage.identity import owner
        from efhc_jax.storage.netcdf import check_holds_no_more, file_stem

        start_jax()

        import jax

        data = load_dataset(self.experiment.dataset, self.data_dir)
        stored = self.out / f"{file_stem(self.experiment)}.nc"
        check_holds_no_more(stored, audit=self.audit, trace=self.trace)
        with (
            output_folder(self.out),
            held(self.out),
            notes(),
            stop_requests() as should_stop,
            self._logger() as logger,
        ):
            checkpoints = None
            if not self.trace:
                folder = self.out / f".{file_stem(self.experiment)}.checkpoint"
                belongs_to = owner(
                    [self.experiment],
                    {data.name: data.digest},
                    audit=self.audit,
                    bits=8 * jax.numpy.zeros(()).dtype.itemsize,
                )
                checkpoints = Checkpoints(folder, self.checkpoint_seconds, belongs_to)
            control = Control(should_stop=should_stop, checkpoints=checkpoints, logger=logger)
            try:
                result = simulate(
                    self.experiment, data, trace=self.trace, audit=self.audit, control=control
                )
            except DivergedError as error:
                self._finish(error.result)
                if checkpoints:
                    checkpoints.clear()
                raise
            except KeyboardInterrupt:
                print_text(f"Stopped. Run the same command again to resume from {self.out}")
                raise
            self._finish(result)
            if checkpoints:
                checkpoints.clear()
            if should_stop():  # the work is done; still report the interrupt
                raise KeyboardInterrupt

    @contextlib.contextmanager
    def _logger(self) -> Iterator[Logger | None]:
        from efhc_jax.runs.loggers import make_logger
        from efhc_jax.storage.netcdf import file_stem

        if self.log is None:
            yield None
            return
        logger = make_logger(self.log, self.experiment, self.out, file_stem(self.experiment))
        with contextlib.closing(logger):
            yield logger

    def _finish(self, result: xarray.Dataset) -> None:
        from rich.console import Console

        from efhc_jax.plotting.figures import draw_run, save_figure
        from efhc_jax.storage.netcdf import file_stem, save

        stem = file_stem(self.experiment)
        written = [save(result, self.out / f"{stem}.nc")]
        written.append(self.out / f"{stem}.toml")
        with written_whole(written[-1]) as part:
            part.write_text(self.experiment.to_toml(), encoding="utf-8")
        if result.sizes["evaluation"]:
            written.append(save_figure(draw_run(result), self.out / f"{stem}.png"))
        Console().print(summary_table(self.experiment, result))
        for path in written:
            print_text(f"wrote {path}")


def summary_table(experiment: Experiment, result: xarray.Dataset) -> Table:
    """Summary of a run as a table."""
    from rich.table import Table

    chosen = [] if experiment.is_default("method") else [str(experiment.method)]
    if not why_no_effect(experiment, "policy"):
        chosen.append(str(experiment.policy))
    title = f"{', '.join(chosen)} on {experiment.dataset}, {experiment.model}"
    table = Table(title=in_table(title, "table.title"))
    table.add_column("metric")
    table.add_column("value", justify="right")
    for what, value in summary(result):
        table.add_row(what, value)
    return table


def summary(result: xarray.Dataset) -> list[tuple[str, str]]:
    """Names and values of the most important metrics."""
    from efhc_jax.runs.machine import gigabytes, peak_memory

    steps = result.sizes["step"]
    lines = [("iterations", f"{steps:,}")]
    if result.sizes["evaluation"]:
        last = result.isel(evaluation=-1)
        best, worst = float(last.accuracy.max()), float(last.accuracy.min())
        lines += [
            ("accuracy, mean over devices", f"{float(last.accuracy.mean()):.2%}"),
            ("accuracy, worst and best device", f"{worst:.2%} to {best:.2%}"),
            ("accuracy of the average model", f"{float(last.mean_model_accuracy):.2%}"),
            ("consensus error", f"{float(last.consensus_error):.4g}"),
            ("broadcasts per device per iteration", f"{_rate(last):.3f}"),
        ]
    total = float(result.transmission_time.sum())
    seconds = result.attrs["seconds"]
    lines += [
        ("transmission time, total", f"{total:,.1f}"),
        ("transmission time per iteration", f"{total / max(1, steps):.4f}"),
        ("messages", f"{int(result.messages.sum()):,}"),
        ("megabits sent", in_three_digits(float(result.bits.sum(dtype=float)) / 1e6)),
        ("seconds", f"{seconds:.1f}"),
        ("seconds spent on evaluations", f"{result.attrs['evaluation_seconds']:.1f}"),
        ("iterations per second", _speed(steps, seconds - result.attrs["evaluation_seconds"])),
        ("peak memory", gigabytes(peak_memory())),
    ]
    return lines


def _speed(steps: int, seconds: float) -> str:
    speed = steps / max(seconds, 1e-3)
    return f"{speed:,.0f}" if speed >= 10 else f"{speed:.2f}"


def _rate(last: xarray.Dataset) -> float:
    return float(last.broadcasts.mean()) / max(1, int(last.iteration))
