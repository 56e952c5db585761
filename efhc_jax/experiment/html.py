"""An experiment in a notebook."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from efhc_jax.text.docstrings import documentation
from efhc_jax.text.html import row, table

if TYPE_CHECKING:
    from efhc_jax.experiment.experiment import Experiment


def experiment_html(experiment: Experiment) -> str:
    """A table of the settings that differ from their defaults, with the others folded below it."""
    fields = dataclasses.fields(experiment)
    changed = [field.name for field in fields if getattr(experiment, field.name) != field.default]
    usual = [field.name for field in fields if field.name not in changed]

    def of(names: list[str], strong: bool) -> str:
        return table(row(name, getattr(experiment, name), texts.get(name, ""), strong) for name in names)

    texts = documentation(experiment.__class__)
    summary = f"<summary>{len(usual)} settings at their defaults</summary>"
    folded = f"<details>{summary}{of(usual, strong=False)}</details>"
    return f"<div><strong>Experiment</strong>{of(changed, strong=True)}{folded}</div>"
