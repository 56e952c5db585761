"""`efhc sweep`: a grid of runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from efhc_jax.cli.flags import Folder, MemberFiles, OptionalFile, OptionalFolder
from efhc_jax.cli.settings import Settings
from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.experiment import Experiment, first_values, sweep_from_toml
from efhc_jax.text.printing import in_table, in_three_digits, print_text

if TYPE_CHECKING:
    import xarray

_MOST_ROWS = 40  # of the table of results
_COLUMNS = ("accuracy (%)", "transmission\ntime", "megabits\nsent", "broadcasts\nper device")


@dataclass(frozen=True)
class Sweep:
    """Run every combination of settings: a flag with several values is an axis.

    For example: efhc sweep --policy efhc gt zt rg --r 5 50 500 --seeds 5
    """

    settings: Settings = field(default_factory=Settings)
    seeds: int = 1
    """Number of seeds, starting at --seed; several seeds are an axis."""
    config: OptionalFile = None
    """TOML file with settings by the same names; a list is an axis, and flags override it."""
    members: MemberFiles = ()
    """Python files that register policies, dynamics or other members of your own."""
    out: Folder = Path("out/sweep")
    """Folder for the results; a stopped sweep resumes from there."""
    data_dir: OptionalFolder = None
    """Folder with the files of the dataset."""
    runs_at_once: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Number of runs in a batch, computed together; chosen automatically by default."""
    nested: bool = False
    """Draw the graphs of all connectivities from the same positions, connected at the smallest."""
    audit: bool = False
    """Record graphs, broadcasts and gradient norms of every iteration, for `efhc report`."""
    checkpoint_seconds: float = 60.0
    """Minimum time between checkpoints of the batch in progress."""
    distributed: bool = False
    """Join a job of several processes; SLURM and Open MPI are detected automatically."""
    coordinator: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT")] = None
    """With --distributed elsewhere: address of process 0."""
    processes: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """With --distributed elsewhere: number of processes."""
    process_id: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """With --distributed elsewhere: index of this process, from 0."""

    def execute(self) -> int:
        """Run the sweep, then store, plot and print the results; 1 if runs diverged."""
        from efhc_jax.cli.startup import join_job, notes, one_device_a_core, start_jax
        from efhc_jax.runs.interrupts import stop_requests

        experiment, axes = self.plan()
        if self.distributed:
            join_job(self.coordinator, self.processes, self.process_id)
        start_jax()

        import jax

        from efhc_jax.data import load_dataset
        from efhc_jax.runs.divergence import diverged_runs
        from efhc_jax.runs.grid import Grid, check_grid
        from efhc_jax.runs.sweeps import predict, sweep

        grid = Grid.of(experiment, axes, self.nested)
        check_grid(grid, given=list(experiment.to_dict()))
        if not self.distributed:
            one_device_a_core(len(grid.experiments), self.runs_at_once)
        data = None
        if "dataset" in axes and self.data_dir is not None:
            raise ExperimentError(
                f"data_dir={self.data_dir}: holds one dataset, and the sweep has several; "
                "leave it out, or give one --dataset"
            )
        if "dataset" not in axes:
            data = load_dataset(experiment.dataset, self.data_dir)
        speaks = jax.process_index() == 0
        if speaks:
            print(predict(grid, data, self.runs_at_once, self.audit), flush=True)
        with notes(), stop_requests() as should_stop:
            try:
                result = sweep(
                    experiment,
                    data,
                    runs_at_once=self.runs_at_once,
                    out=self.out,
                    audit=self.audit,
                    nested=self.nested,
                    progress=None if speaks else False,
                    checkpoint_seconds=self.checkpoint_seconds,
                    should_stop=should_stop,
                    **axes,
                )
            except KeyboardInterrupt:
                print_text(f"Stopped. Run the same command again to resume from {self.out}")
                raise
        if speaks:
            self._finish(result)
        if should_stop():  # the work is done; still report the interrupt
            raise KeyboardInterrupt
        diverged = diverged_runs(result)
        for line in diverged if speaks else ():
            print_text(line)
        return 1 if diverged else 0

    def plan(self) -> tuple[Experiment, dict[str, Sequence[Any]]]:
        """The settings that all runs share, and the axes."""
        experiment, listed = (Experiment(), {}) if self.config is None else sweep_from_toml(self.config)
        given = {name: list(values) for name, values in self.settings.values().items()}
        for name, values in given.items():
            if not values:
                raise ExperimentError(f"{name}: no value; give one or more, or leave the flag out")
        fixed = {name: values[0] for name, values in given.items() if len(values) == 1}
        if "budgets" in given:
            fixed["budgets"] = tuple(given.pop("budgets"))
        axes: dict[str, Sequence[Any]] = {name: v for name, v in listed.items() if name not in given}
        axes |= {name: values for name, values in given.items() if len(values) > 1}
        if self.seeds < 1:
            raise ExperimentError(f"seeds={self.seeds}: give a whole number of 1 or more")
        if self.seeds > 1:
            if "seed" in axes:
                where = "--seed" if "seed" in given else f"seed in {self.config}"
                raise ExperimentError(f"seeds: {where} already lists them; give one of the two")
            first = fixed.get("seed", experiment.seed)
            axes["seed"] = range(first, first + self.seeds)
        return experiment.inherit(fixed | first_values(axes)), axes

    def _finish(self, result: xarray.Dataset) -> None:
        from rich.console import Console

        from efhc_jax.plotting.figures import draw_curves, save_figure
        from efhc_jax.results.selection import swept

        Console().print(sweep_table(result))
        written = [self.out / "sweep.nc"]
        others = [axis for axis in swept(result) if axis not in ("policy", "seed")]
        if "policy" in result.dims and not others:
            written.append(save_figure(draw_curves(result), self.out / "sweep.png"))
        if others == ["method"] and "policy" not in result.dims:  # methods differ most in bits
            figure = draw_curves(result, "method", costs=("iteration", "bits"))
            written.append(save_figure(figure, self.out / "sweep.png"))
            others = []
        for path in written:
            print_text(f"wrote {path}")
        if others:
            fixed = [f"{axis}={result[axis].values[0]}" for axis in others[1:]]
            select = f" --select {' '.join(fixed)}" if fixed else ""
            file = self.out / "sweep.nc"
            print_text(f"try: efhc plot {file} --x {others[0]} --y accuracy{select}")


def sweep_table(result: xarray.Dataset) -> Any:
    """Accuracy and transmission time of every combination, with intervals over seeds."""
    import numpy as np
    from rich.table import Table

    from efhc_jax.plotting.styles import NAMED, look_of
    from efhc_jax.results.selection import swept
    from efhc_jax.results.statistics import interval, per_run

    axes = [axis for axis in swept(result) if axis != "seed"]
    seeds = result.sizes.get("seed", 1)
    title = f"{seeds} seed{'s' * (seeds > 1)}" + (", 95% intervals" if seeds > 1 else "")
    table = Table(title=title)
    for axis in axes:
        table.add_column(in_table(axis))
    diverged = "diverged_at" in result and bool((result.diverged_at >= 0).any())
    for column in _COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    if diverged:
        table.add_column("diverged")
    last = result.isel(evaluation=-1)
    accuracy = interval(100 * per_run(last, "accuracy"))
    time = interval(result.transmission_time.sum("step", skipna=False))
    megabits = interval(result.bits.sum("step", skipna=False) / 1e6)
    broadcasts = interval(per_run(last, "broadcasts"))
    shape = [result.sizes[axis] for axis in axes]
    combinations = math.prod(shape)
    for index in itertools.islice(np.ndindex(*shape), _MOST_ROWS):
        at = dict(zip(axes, index, strict=True))
        names = []
        for axis, place in at.items():
            value = result[axis].values[place].item()
            names.append(in_table(look_of(axis, value).label if axis in NAMED else value))
        table.add_row(
            *names,
            _with_interval(accuracy, at, ".2f"),
            _with_interval(time, at, ",.0f"),
            _with_interval(megabits, at),
            _with_interval(broadcasts, at, ",.0f", interval_too=False),
            *([_diverged(result.isel(at))] if diverged else []),
        )
    if combinations > _MOST_ROWS:
        table.caption = f"the first {_MOST_ROWS} of {combinations} combinations"
    return table


def _with_interval(found: Any, at: dict[str, int], form: str = "", interval_too: bool = True) -> str:
    """The mean over seeds that have a value, with its interval; a dash if none has one.

    Without a form, three significant digits of the mean are shown.
    """
    mean, low, high, seeds = (float(part.isel(at)) for part in found)
    if not seeds:
        return "–"

    def written(value: float) -> str:
        return f"{value:{form}}" if form else in_three_digits(value, like=mean)

    if low != low or not interval_too:
        return written(mean)
    return f"{written(mean)} ± {written((high - low) / 2)}"


def _diverged(runs: xarray.Dataset) -> str:
    """The number of runs of a row that diverged; the other columns cover those that did not."""
    at = runs.diverged_at.values.reshape(-1)
    gone = at[at >= 0]
    if not len(gone):
        return ""
    which = f"{len(gone)} of {len(at)} seeds, from" if len(at) > 1 else "at"
    return f"{which} iteration {gone.min():,}"
