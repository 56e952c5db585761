"""Logging of metrics to a dashboard during a run.

A logger receives the mean of each metric over devices at every evaluation, and over the iterations of
every chunk in between. Logging is not part of the compiled program.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from efhc_jax.errors import ExperimentError, first_line
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.naming import check_choice


class Logger(Protocol):
    """Receiver of metrics during a run."""

    def log(self, values: dict[str, float], iteration: int) -> None:
        """Log the values after this many iterations."""

    def close(self) -> None:
        """Send or store remaining values."""


class TensorBoard:
    """Writes event files for `tensorboard --logdir FOLDER`."""

    def __init__(self, experiment: Experiment, folder: Path, name: str):
        writer = _imported("tensorboardX", "tensorboard")
        self._writer = writer.SummaryWriter(str(folder / "tensorboard" / name))
        self._writer.add_text("experiment", f"```toml\n{experiment.to_toml()}```")

    def log(self, values: dict[str, float], iteration: int) -> None:
        """Add a point to the curve of each metric."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, iteration)
        self._writer.flush()

    def close(self) -> None:
        """Finish the event file."""
        self._writer.close()


class WeightsAndBiases:
    """Logs to Weights & Biases; with WANDB_MODE=offline it writes files for `wandb sync`."""

    def __init__(self, experiment: Experiment, folder: Path, name: str):
        wandb = _imported("wandb", "wandb")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._run = wandb.init(
                project="efhc-jax", name=name, config=experiment.to_dict(), dir=str(folder.absolute())
            )
        except wandb.Error as error:
            raise ExperimentError(
                f"log=wandb: the run could not be started ({first_line(error)}); "
                "log in with `wandb login`, or set WANDB_MODE=offline"
            ) from None
        self._run.define_metric("*", step_metric="iteration")

    def log(self, values: dict[str, float], iteration: int) -> None:
        """Add an entry with all values and the iteration, which is the x axis."""
        self._run.log(values | {"iteration": iteration})

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


LOGGERS: dict[str, Callable[[Experiment, Path, str], Logger]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
}


def make_logger(kind: str, experiment: Experiment, folder: Path, name: str) -> Logger:
    """The logger of this kind for one run.

    Args:
        kind: one of `LOGGERS`.
        experiment: the experiment, whose settings are logged as well.
        folder: the folder for its files.
        name: the name of the run in the dashboard.

    Raises:
        ExperimentError: there is no such kind, or its package is not installed.
    """
    kind = check_choice("log", kind, LOGGERS)
    return LOGGERS[kind](experiment, folder, name)


def _imported(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ExperimentError(
            f"log={extra}: {module} cannot be imported ({first_line(error)}); "
            f'pip install "efhc-jax[{extra}]"'
        ) from None
