"""Inputs that nobody should give, and what must hold whatever is given.

Used by `test_fuzz.py` with a few hundred inputs, and by `scripts/fuzz` with thousands.
"""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import io
import json
import os
import time
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import efhc_jax as efhc
from efhc_jax import data
from efhc_jax.cli import COMMANDS, main
from efhc_jax.errors import EfhcError
from efhc_jax.experiment.families import FAMILIES, full_names
from efhc_jax.network import geometry
from efhc_jax.runs import diagnosis, simulation, sweeps, verification
from efhc_jax.storage.checkpoints import Checkpoints
from efhc_jax.theory import audits

SECONDS = 20.0  # of computing; nothing here should take longer
HANG = 300.0  # after which a command that has not answered is given up, and all with it
OUTCOMES: collections.Counter[str] = collections.Counter()
FIELDS = [*efhc.Experiment.defaults(), *full_names()]
SMALL = efhc.Experiment(dataset="synthetic", devices=4, iterations=6, eval_every=3)


class Enough(EfhcError):
    """Everything up to the simulation went well, and the simulation is not what is tested here."""


def stop_before_simulating(monkeypatch):
    """Let commands do all but simulate and fetch: every input would be a compilation."""

    def enough(*arguments, **options):
        raise Enough("everything is ready")

    for module in (simulation, sweeps):
        monkeypatch.setattr(module, "run_batch", enough)
    monkeypatch.setattr(verification, "simulate", enough)
    monkeypatch.setattr(audits, "least_loss", lambda *arguments: None)
    monkeypatch.setattr(diagnosis, "_self_test", enough)
    monkeypatch.setattr(data, "fetch", enough)
    monkeypatch.setattr(geometry, "MAX_DRAWS", 1000)


def call(words, where: Path):
    """Run a command in an empty folder; it must end, in time, with a code and without a traceback.

    Returns:
        The exit code and what was printed on standard error.
    """
    before = set(where.rglob("*"))
    output, errors = io.StringIO(), io.StringIO()
    here = Path.cwd()
    os.chdir(where)
    began = time.process_time()
    faulthandler.dump_traceback_later(HANG, exit=True)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = main(words)
    except SystemExit as stop:  # how tyro ends
        code = stop.code if isinstance(stop.code, int) else 2
    finally:
        os.chdir(here)
        faulthandler.cancel_dump_traceback_later()
    assert time.process_time() - began < SECONDS, f"took too long: {words}"
    text = output.getvalue() + errors.getvalue()
    assert "Traceback" not in text, text
    assert code in (0, 1, 2), (code, words)
    assert code == 0 or text.strip(), f"said nothing: {words}"
    made = set(where.rglob("*")) - before
    assert not [path for path in made if "efhc-part" in path.name or path.name == ".efhc.lock"], made
    return code, errors.getvalue()


def note(kind: str, code: int, errors: str) -> None:
    """Count what came out."""
    ready = "everything is ready" in errors
    OUTCOMES[f"{kind}: {'accepted' if ready or code == 0 else 'refused'}"] += 1


# Numbers and words at the edges of what is allowed, and beyond.
NUMBERS = st.one_of(
    st.integers(-3, 50).map(str),
    st.integers(-(10**25), 10**25).map(str),
    st.floats().map(str),
    st.sampled_from(["0", "-0", "1e-320", "1e30", "1e31", "0x10", "1_0", "٣", "½", "NaN", "+inf", ""]),
)
NAMES = st.sampled_from([name for family in FAMILIES.values() for name in family.names])
PATHS = st.sampled_from(
    ["", ".", "/dev/null", "/proc/self/mem", "no/such", "a\nb", "模型 🙂", "-", "~", "[b]"]
)
WORDS = st.one_of(NUMBERS, NAMES, PATHS, st.text(st.characters(exclude_characters="\0"), max_size=12))
FLAGS = st.sampled_from(
    [
        *(f"--{name.replace('_', '-')}" for name in FIELDS),
        *("--out", "--config", "--data-dir", "--checkpoint-seconds", "--audit", "--trace", "--log"),
        *(
            "--seeds",
            "--runs-at-once",
            "--x",
            "--y",
            "--hue",
            "--rows",
            "--select",
            "--iteration",
            "--budget",
        ),
        *("--runs", "--preset", "--help", "--", "-h", "--nonsense", "--r="),
    ]
)
# Commands that take minutes whatever their flags are, or that reach for the network, stay away.
NAMED = st.sampled_from([name for name in COMMANDS if name not in ("figure1", "bench", "doctor")])


@st.composite
def command_lines(draw):
    """A command with flags and words in some order, most of them in their place."""
    words = [draw(st.one_of(NAMED, NAMED, NAMED, WORDS))]
    for _ in range(draw(st.integers(0, 5))):
        words.append(draw(FLAGS))
        words += draw(st.lists(WORDS, max_size=2))
    return [*words, "--dataset", "synthetic"] if words[0] in ("run", "sweep") else words


def _toml_value(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, str):
        return '"' + "".join(c if c.isalnum() else f"\\U{ord(c):08X}" for c in value) + '"'
    return str(value)


VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.characters(codec="utf-8"), max_size=8),
        st.sampled_from(["svm", "zt", "ring", "trace", "/dev/zero"]),
    ),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
TOML = st.one_of(
    st.lists(
        st.one_of(
            st.sampled_from(
                [(name, value) for name, value in SMALL.to_dict().items() if name != "budgets"]
            ),
            st.tuples(st.sampled_from([*FIELDS, "polcy", "a.b", "[x]"]), VALUES),
        ),
        max_size=4,
    ).map(lambda pairs: "\n".join(f"{name} = {_toml_value(value)}" for name, value in pairs).encode()),
    st.binary(max_size=60),
    st.sampled_from(
        [
            b"r = " + b"9" * 5000,
            b"r = 0x" + b"F" * 5000,
            b"r = " + b"[" * 5000,
            b"\xef\xbb\xbfr = 3",
            b"r = 3\r\nr = 4",
            b"seed = 1979-05-27",
            b"x" * (2**20 + 1),
        ]
    ),
)


@st.composite
def damage(draw, size: int):
    """A change to a file of so many bytes: what to replace from where to where."""
    kind = draw(st.sampled_from(["flip", "cut", "overwrite", "insert", "remove"]))
    at = draw(st.integers(0, size - 1))
    if kind == "flip":
        return at, at + 1, None
    if kind == "cut":
        return at, size, b""
    length = draw(st.integers(1, 64))
    content = draw(st.binary(min_size=1, max_size=length))
    if kind == "remove":
        return at, at + length, b""
    return at, at + (len(content) if kind == "overwrite" else 0), content


def damaged(content: bytes, change) -> bytes:
    """The content after a change of `damage`."""
    first, last, new = change
    if new is None:
        new = bytes([content[first] ^ 0x10])
    return content[:first] + new + content[last:]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
ATTRIBUTES = st.one_of(st.none(), st.integers(-5, 2**40), st.floats(), TEXT, st.just("[]"))


@st.composite
def altered(draw, dataset):
    """A dataset that is stored well but put together wrongly."""
    kind = draw(
        st.sampled_from(["attribute", "experiment", "drop", "transpose", "values", "rename", "cut"])
    )
    name = draw(st.sampled_from(sorted(map(str, dataset.data_vars))))
    if kind == "attribute":
        key = draw(st.sampled_from(sorted(dataset.attrs)))
        value = draw(ATTRIBUTES)
        attrs = {k: v for k, v in dataset.attrs.items() if k != key}
        return (
            dataset.copy()
            .drop_attrs(deep=False)
            .assign_attrs(attrs if value is None else attrs | {key: value})
        )
    if kind == "experiment":
        field, value = draw(st.sampled_from(FIELDS)), draw(st.one_of(st.integers(), st.text(max_size=5)))
        fields = json.loads(dataset.attrs["experiment"]) | {field: value}
        return dataset.assign_attrs(experiment=json.dumps(fields))
    if kind == "drop":
        return dataset.drop_vars(name)
    if kind == "transpose":
        return dataset.transpose(*draw(st.permutations(sorted(map(str, dataset.dims)))))
    if kind == "rename":
        old = draw(st.sampled_from(sorted(map(str, dataset.dims))))
        return dataset.rename({old: "other"})
    if kind == "cut":
        dimension = draw(st.sampled_from(sorted(map(str, dataset.dims))))
        return dataset.isel({dimension: slice(0, draw(st.integers(0, 2)))})
    value = draw(st.sampled_from([np.nan, np.inf, -1.0, 1e300, 0.0]))
    return dataset.assign({name: dataset[name].astype(float) * 0 + value})


READERS = st.sampled_from(
    [["plot"], ["plot", "--x", "r"], ["audit"], ["verify"], ["report"], ["animate"]]
)


def use(reader: list[str], path: Path, where: Path) -> None:
    """Give a file to a command that reads one."""
    code, errors = call([reader[0], str(path), *reader[1:]], where)
    note(f"wrong result, {reader[0]}", code, errors)


def make_checkpoint(folder: Path) -> None:
    """A checkpoint with a little of everything."""
    rng = np.random.default_rng(0)
    tree = {"states": {"weights": rng.random((2, 50))}, "history": {"position": np.int64(3)}}
    Checkpoints(folder, belongs_to={"bits": 32}).save(3, tree)


def read_checkpoint(folder: Path) -> str:
    """What comes of reading one that was damaged: nothing but an answer, or a refusal."""
    faulthandler.dump_traceback_later(HANG, exit=True)
    try:
        found = Checkpoints(folder, belongs_to={"bits": 32}).newest()
    except efhc.DataError:
        return "refused"
    finally:
        faulthandler.cancel_dump_traceback_later()
    if found is None:
        return "nothing found"
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(found["states"]["weights"], rng.random((2, 50)))
    return "whole"
