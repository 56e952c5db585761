"""Live logging: what a run has reached, sent to a dashboard while it goes on.

A logger is told the mean of each quantity over the devices at every evaluation, and over the iterations
of every chunk in between. Nothing of it is part of the compiled program.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from efhc_jax.config import Experiment, check_choice
from efhc_jax.errors import ExperimentError


class Logger(Protocol):
    """Where values go while a run is under way."""

    def log(self, values: dict[str, float], iteration: int) -> None:
        """Take what was reached after so many iterations."""

    def close(self) -> None:
        """Send or store what is left."""


class TensorBoard:
    """Writes event files for `tensorboard --logdir FOLDER`."""

    def __init__(self, experiment: Experiment, folder: Path, name: str):
        writer = _imported("tensorboardX", "tensorboard")
        self._writer = writer.SummaryWriter(str(folder / "tensorboard" / name))
        self._writer.add_text("experiment", f"```toml\n{experiment.to_toml()}```")

    def log(self, values: dict[str, float], iteration: int) -> None:
        """One point on the curve of each name."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, iteration)
        self._writer.flush()

    def close(self) -> None:
        """Finish the event file."""
        self._writer.close()


class WeightsAndBiases:
    """Sends to Weights & Biases; with WANDB_MODE=offline it keeps files for `wandb sync`."""

    def __init__(self, experiment: Experiment, folder: Path, name: str):
        wandb = _imported("wandb", "wandb")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._run = wandb.init(
                project="efhc-jax", name=name, config=experiment.to_dict(), dir=str(folder.absolute())
            )
        except wandb.Error as error:
            raise ExperimentError(
                f"log=wandb: no run could be begun ({_first_line(error)}); "
                "log in with `wandb login`, or set WANDB_MODE=offline"
            ) from None
        self._run.define_metric("*", step_metric="iteration")

    def log(self, values: dict[str, float], iteration: int) -> None:
        """One entry with all values; the iteration is what they are drawn against."""
        self._run.log(values | {"iteration": iteration})

    def close(self) -> None:
        """Hand over what is left."""
        self._run.finish()


LOGGERS: dict[str, Callable[[Experiment, Path, str], Logger]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
}


def make_logger(kind: str, experiment: Experiment, folder: Path, name: str) -> Logger:
    """The logger of a kind, for one run.

    Args:
        kind: one of `LOGGERS`.
        experiment: what is run; its settings are logged too.
        folder: where files go.
        name: what the run is called there.

    Raises:
        ExperimentError: there is no such kind, or what it needs is not installed.
    """
    kind = check_choice("log", kind, LOGGERS)
    return LOGGERS[kind](experiment, folder, name)


def _imported(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ExperimentError(
            f"log={extra}: {module} cannot be imported ({_first_line(error)}); "
            f'pip install "efhc-jax[{extra}]"'
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
