"""Fields of `Experiment` that cannot be axes of a sweep.

The command line names them before JAX is imported.
"""

from __future__ import annotations

NOT_AXES = {  # with the reason, or the alternative
    "iterations": "a longer run contains the shorter ones: run the longest",
    "eval_every": "use the smallest",
    "early_evaluations": "use the largest",
    "budgets": "all budgets are evaluated in one run: give them together",
    "placement": "positions are shared by all runs of a seed",
}
