"""Types of flags that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

OptionalFile = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]
MemberFiles = Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE.py …")]
OptionalFolder = Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")]
Folder = Annotated[Path, tyro.conf.arg(metavar="FOLDER")]
