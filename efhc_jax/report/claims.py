"""The verdicts of `efhc figure1` on the paper's claims, for the sweeps of that figure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from efhc_jax.errors import DataError
from efhc_jax.papers.efhc.settings import CLASSIFIERS

_SWEEPS = {f"{classifier}-{kind}" for classifier in CLASSIFIERS for kind in ("curves", "connectivity")}
_TEXTS = ("classifier", "panel", "statement", "quantity", "verdict")
_NUMBERS = ("difference", "low", "high", "at_least", "seeds")


def figure_folder(path: Path) -> Path | None:
    """The folder of Figure 1 to which a result belongs, judging by its name; None if there is none.

    Example:
        >>> str(figure_folder(Path("out/figure1/svm-curves/sweep.nc")))
        'out/figure1'
        >>> str(figure_folder(Path("docs/figure1/svm-curves.nc")))
        'docs/figure1'
        >>> figure_folder(Path("out/figure1/mine/sweep.nc")) is None
        True
    """
    if path.stem in _SWEEPS:
        return path.parent
    if path.name == "sweep.nc" and path.absolute().parent.name in _SWEEPS:
        return path.parent.parent if path.parent.name else path.absolute().parents[1]
    return None


def claims_of(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """The claims in the folders of Figure 1 to which results belong; each file is read once.

    A `claims.json` that does not contain claims was written by another program and is ignored.

    Raises:
        DataError: a file is not JSON, or its claims are damaged.
    """
    folders = dict.fromkeys(figure_folder(path) for path in paths)
    claims: list[dict[str, Any]] = []
    for folder in folders:
        if folder is not None and (folder / "claims.json").is_file():
            claims += _read(folder / "claims.json")
    return claims


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file}: cannot be read ({error})") from None
    if not isinstance(found, list) or not all(map(_is_meant_as_claim, found)):
        return []
    for number, claim in enumerate(found, start=1):
        if wrong := _what_is_wrong(claim):
            raise DataError(f"{file}: is damaged ({wrong} of claim {number})")
    return found


def _is_meant_as_claim(row: Any) -> bool:
    return isinstance(row, dict) and {"classifier", "panel", "statement", "verdict"} <= row.keys()


def _what_is_wrong(claim: dict[str, Any]) -> str:
    """The reason why a claim cannot be shown; empty if it can."""
    for name in _TEXTS:
        if not isinstance(claim.get(name), str):
            return f"the {name} is not text"
    for name in _NUMBERS:
        if not isinstance(claim.get(name), (int, float, type(None))):
            return f"the {name} is not a number"
    return ""
