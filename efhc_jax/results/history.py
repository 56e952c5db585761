"""Recorded values of a batch of runs, on the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Arrays = dict[str, np.ndarray]

_MOST_PARTS = 64  # pieces before they are joined; many small arrays take more memory than their contents


class Record(NamedTuple):
    """The results of one run as plain arrays."""

    bandwidth: np.ndarray  # (device,)
    degree: np.ndarray  # (device,)
    iterations: np.ndarray  # (evaluation,)
    evaluations: Arrays  # each (evaluation, …)
    steps: Arrays  # each (step, …)
    budgets: Arrays  # each (budget, …); empty where there are none
    initial_weights: np.ndarray | None = None  # (device, parameter), with a trace
    diverged_at: int = -1  # the iteration with the first model that is not finite, or −1
    diverged: tuple[int, ...] = ()  # the devices with these models
    seconds: float = 0.0  # its share of the time of its batch, without interruptions
    evaluation_seconds: float = 0.0  # the part of these spent on evaluations


class History:
    """Collects the recorded values, and detects models that are no longer finite."""

    def __init__(self, runs: int, devices: int):
        self.position = 0  # number of parts of the plan that are done
        self.steps: list[Arrays] = []  # each (run, step, …)
        self.evaluations: list[Arrays] = []  # each (run, 1, …)
        self.spent = np.zeros(runs)  # cumulative transmission time, in 64 bits
        self.seconds = 0.0  # wall time without interruptions
        self.evaluation_seconds = 0.0  # the part of these spent on evaluations
        self.diverged_at = np.full(runs, -1)
        self.diverged = np.zeros((runs, devices), bool)

    def add_steps(self, recorded: Arrays, first: int) -> None:
        """Add the values recorded by a chunk that began at iteration `first`."""
        self._note_divergence(recorded["finite"], first)
        self.spent += recorded["transmission_time"].sum(axis=1, dtype=np.float64)
        self._append(self.steps, {name: array for name, array in recorded.items() if name != "finite"})

    def add_evaluation(self, found: Arrays, iteration: int) -> None:
        """Add an evaluation."""
        finite = found["finite"][:, None]
        self._note_divergence(finite, iteration)
        entries = {name: array[:, None] for name, array in found.items() if name != "finite"}
        self._append(self.evaluations, entries)

    @staticmethod
    def _append(parts: list[Arrays], part: Arrays) -> None:
        """Append a copy, because a view would keep the accelerator's buffers alive."""
        parts.append({name: np.array(array) for name, array in part.items()})
        if len(parts) >= _MOST_PARTS:
            parts[:] = [_join(parts)]

    def _note_divergence(self, finite: np.ndarray, first: int) -> None:
        """`finite` is (run, step, device)."""
        broken = ~finite.all(axis=(1, 2)) & (self.diverged_at < 0)
        for run in np.flatnonzero(broken):
            step = int(finite[run].all(axis=1).argmin())
            self.diverged_at[run] = first + step
            self.diverged[run] = ~finite[run, step]

    @property
    def all_diverged(self) -> bool:
        """Whether no run is left to continue."""
        return bool((self.diverged_at >= 0).all())

    def to_tree(self) -> dict[str, Any]:
        """The history as nested dicts of arrays, for a checkpoint."""
        return {
            "position": np.int64(self.position),
            "steps": _join(self.steps),
            "evaluations": _join(self.evaluations),
            "spent": self.spent,
            "seconds": np.float64(self.seconds),
            "evaluation_seconds": np.float64(self.evaluation_seconds),
            "diverged_at": self.diverged_at,
            "diverged": self.diverged,
        }

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> History:
        """The history that `to_tree` returned."""
        history = cls(*tree["diverged"].shape)
        history.position = int(tree["position"])
        history.steps = [tree["steps"]] if tree.get("steps") else []
        history.evaluations = [tree["evaluations"]] if tree.get("evaluations") else []
        history.spent = tree["spent"].copy()
        history.seconds = float(tree["seconds"])
        history.evaluation_seconds = float(tree["evaluation_seconds"])
        history.diverged_at = tree["diverged_at"].copy()
        history.diverged = tree["diverged"].copy()
        return history

    def records(
        self,
        times: np.ndarray,
        bandwidth: np.ndarray,
        degree: np.ndarray,
        budgets: Arrays,
        initial_weights: np.ndarray | None,
    ) -> list[Record]:
        """One record per run; a run that diverged ends before that iteration."""
        steps, evaluations = _join(self.steps), _join(self.evaluations)
        made = []
        for run, diverged_at in enumerate(self.diverged_at):
            last = int(times[-1]) if diverged_at < 0 else max(0, int(diverged_at) - 1)
            kept = int((times <= last).sum())
            made.append(
                Record(
                    bandwidth=bandwidth[run],
                    degree=degree[run],
                    iterations=times[:kept],
                    evaluations={name: array[run, :kept] for name, array in evaluations.items()},
                    steps={name: array[run, :last] for name, array in steps.items()},
                    budgets=_before(budgets, run, int(diverged_at)),
                    initial_weights=None if initial_weights is None else initial_weights[run],
                    diverged_at=int(diverged_at),
                    diverged=tuple(int(device) for device in np.flatnonzero(self.diverged[run])),
                    seconds=self.seconds / len(self.diverged_at),
                    evaluation_seconds=self.evaluation_seconds / len(self.diverged_at),
                )
            )
        return made


def _before(budgets: Arrays, run: int, diverged_at: int) -> Arrays:
    """Values of one run at its budgets, without budgets that it reached after it diverged."""
    found = {name: array[run] for name, array in budgets.items()}
    if not found or diverged_at < 0:
        return found
    kept = found["iteration_at_budget"] < diverged_at
    return {
        "accuracy_at_budget": np.where(kept[:, None], found["accuracy_at_budget"], np.nan),
        "iteration_at_budget": np.where(kept, found["iteration_at_budget"], -1),
    }


def _join(parts: list[Arrays]) -> Arrays:
    """The recorded pieces, concatenated along the second axis."""
    if not parts:
        return {}
    return {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
