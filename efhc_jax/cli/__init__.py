"""The command line: parses arguments and prints errors as one line.

Every command is a dataclass in its own file: the fields are the flags, and `execute` does the work. Slow
imports are made in `execute`, so that `--help` is fast.
"""

from __future__ import annotations

import importlib.metadata
import io
import os
import sys
from typing import Annotated, Any

import tyro

from efhc_jax import __version__
from efhc_jax.cli.animate import Animate
from efhc_jax.cli.audit import Audit
from efhc_jax.cli.bench import Bench
from efhc_jax.cli.compare_methods import CompareMethods
from efhc_jax.cli.data import Data
from efhc_jax.cli.doctor import Doctor
from efhc_jax.cli.figure1 import Figure1
from efhc_jax.cli.members import load_members
from efhc_jax.cli.plot import Plot
from efhc_jax.cli.report import Report
from efhc_jax.cli.run import Run
from efhc_jax.cli.settings import for_run, for_sweep, with_settings
from efhc_jax.cli.sweep import Sweep
from efhc_jax.cli.verify import Verify
from efhc_jax.cli.words import check_words
from efhc_jax.errors import EfhcError
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.toml import read_toml, said_of
from efhc_jax.text.printing import printable

COMMANDS = {
    "run": Run,
    "sweep": Sweep,
    "plot": Plot,
    "report": Report,
    "animate": Animate,
    "figure1": Figure1,
    "compare-methods": CompareMethods,
    "audit": Audit,
    "data": Data,
    "bench": Bench,
    "verify": Verify,
    "doctor": Doctor,
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code: 0, or 2 for an error that the user can fix."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] in (["--version"], ["-V"]):
        print(version())
        return 0
    try:
        command = parse(arguments)
        return command.execute() or 0
    except EfhcError as error:
        print(f"efhc: error: {printable(error, lines=True)}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of the output has exited
        sys.stderr.close()
        return 1
    except OSError as error:
        place = printable(f"{error.filename}: ") if error.filename else ""
        print(f"efhc: error: {place}{error.strerror or error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"efhc: error: not enough memory ({error}); try fewer devices or runs", file=sys.stderr)
        return 2
    except RuntimeError as error:  # JAX_PLATFORMS asks for one that is not here, next to the CPU
        if not str(error).startswith("Unable to initialize backend"):
            raise
        print(f"efhc: error: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("efhc: stopped", file=sys.stderr)
        return 130


def parse(arguments: list[str]) -> Any:
    """The command for these arguments; a config file sets the defaults of the flags of a run."""
    load_members(arguments)
    check_words(arguments)
    commands: dict[str, type] = dict(COMMANDS)  # with settings where they are needed: they import JAX
    if arguments[:1] == ["run"]:
        commands["run"] = with_settings(Run, for_run(_settings_of_config(arguments)))
    elif arguments[:1] == ["sweep"]:
        commands["sweep"] = with_settings(Sweep, for_sweep())
    choices: Any = None
    for name, kind in commands.items():
        choice = Annotated[kind, tyro.conf.subcommand(name)]  # type: ignore[valid-type]
        choices = choice if choices is None else choices | choice
    return tyro.cli(
        choices,
        args=arguments or ["--help"],
        prog="efhc",
        description="Simulate decentralized, event-triggered federated learning (EF-HC).\n"
        "`efhc --version` prints the versions.",
        config=(tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes),
    )


def version() -> str:
    """The versions of this package and of JAX, without importing JAX."""
    return f"efhc-jax {__version__} (jax {importlib.metadata.version('jax')})"


def _settings_of_config(arguments: list[str]) -> dict[str, Any]:
    """The settings in the file of the last `--config FILE`, if there is one."""
    path = None
    for word, following in zip(arguments, [*arguments[1:], None], strict=False):
        if word == "--config":
            path = following
        elif word.startswith("--config="):
            path = word.removeprefix("--config=")
    if path is None:
        return {}
    settings = read_toml(path)
    with said_of(path):
        return Experiment().inherit(settings).to_dict()


def entry() -> None:
    """The console script.

    Closed output streams are replaced by the null device; characters that cannot be encoded are escaped.
    """
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main())
