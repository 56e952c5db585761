"""Settings that had another name in results of format 1, and in earlier versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENAMED = {
    "heterogeneity": "weak_fraction",
    "learning_rate_offset": "learning_rate_schedule.offset",
    "learning_rate_decay": "learning_rate_schedule.exponent",
    "link_up": "dynamics.up_probability",
    "link_failure": "dynamics.failure",
    "link_repair": "dynamics.repair",
    "period": "dynamics.period",
    "speed": "dynamics.speed",
    "leave": "dynamics.leave_probability",
    "come_back": "dynamics.return_probability",
    "absent_train": "dynamics.train_while_absent",
}

_FORMER_DEFAULTS = {  # of settings that only some dynamics used, and that were stored in any case
    "link_up": 0.8,
    "link_failure": 0.05,
    "link_repair": 0.2,
    "period": 5,
    "speed": 0.01,
    "leave": 0.01,
    "come_back": 0.05,
    "absent_train": False,
}


def with_new_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Stored settings by their present names.

    Example:
        >>> with_new_names({"dynamics": "markov", "link_failure": 0.3, "period": 5})
        {'dynamics': 'markov', 'dynamics.failure': 0.3}
    """
    return {
        RENAMED.get(name, name): value
        for name, value in fields.items()
        if name not in _FORMER_DEFAULTS or value != _FORMER_DEFAULTS[name]
    }
