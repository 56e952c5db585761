"""An experiment in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efhc_jax.experiment.families import family_in, users_of
from efhc_jax.text.docstrings import documentation
from efhc_jax.text.html import row, table

if TYPE_CHECKING:
    from efhc_jax.experiment.experiment import Experiment


def experiment_html(experiment: Experiment) -> str:
    """A table of the settings that differ from their defaults, with the others folded below it."""
    from efhc_jax.experiment.experiment import Experiment

    settings, texts = experiment.to_dict(), dict(documentation(Experiment))
    for name in settings:
        setting, own = family_in(name)
        if setting:
            texts[name] = next((one.help for one in users_of(setting, own).values()), "")
    changed = [name for name in settings if not experiment.is_default(name)]
    usual = [name for name in settings if name not in changed]

    def of(names: list[str], strong: bool) -> str:
        return table(row(name, settings[name], texts.get(name, ""), strong) for name in names)

    summary = f"<summary>{len(usual)} settings at their defaults</summary>"
    folded = f"<details>{summary}{of(usual, strong=False)}</details>"
    return f"<div><strong>Experiment</strong>{of(changed, strong=True)}{folded}</div>"
