"""Odd wordings stay out of the documentation and of the package."""

import io
import re
import tokenize
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

# Files to check, as patterns.
# Tables that commands write (docs/figure1, docs/performance) have the words of the package.
CHECKED = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/*.md",
    "docs/notebooks/*.md",
    "docs/*.py",
    "docs/extensions/*.py",
    "examples/*",
    "efhc_jax/**/*.py",
    "efhc_jax/report/*.js",
    "efhc_jax/report/template.html",
    "benchmarks/**/*.py",
    "scripts/*",
]

COUNTED = "once|twice|times?|rows?|booleans?|labels|bytes|broadcasts|evaluations|iterations|µs|ms|GB"
UNITS = "device|iteration|second|seed|run|run-iteration|step|gradient|image|pixel|class|model|link"
# Follows "once a run", unlike the verb in "once a run has ended" or "the times a link was used".
NO_VERB = r"(?=\s*(?:[^\w\s]|\Z|(?m:$)|(?:and|or|in|on|at|for|with|of|by|from|to|than|as)\b))"


class Wording(NamedTuple):
    """A wording to avoid, as a regular expression, with the usual one and an example."""

    avoid: str
    instead: str
    example: str


WORDINGS = [
    Wording(r"\bmend(s|ed|ing)?\b", "fix", "any of these mends it"),
    Wording(r"\b(goes?|went) on\b(?! to\b)", "resume, continue", "it goes on where it was"),
    Wording(r"\boverrul\w+", "override", "a flag overrules the file"),
    Wording(r"\bbeside\b", "next to, also", "the file beside the results"),
    Wording(r"\bpictures?\b", "figure, plot, frame", "open the picture"),
    Wording(
        r"\b(devices['’]|their|initial|random|own) places\b|\bplaces of (the )?devices\b",
        "positions",
        "the devices' places",
    ),
    Wording(r"\bgrey\b", "grayscale, gray", "grey images"),
    Wording(
        rf"\b({COUNTED}) a device and (an )?iteration\b",
        "per device per iteration",
        "broadcasts a device and iteration",
    ),
    Wording(
        rf"\b({COUNTED}) an? ({UNITS})\b{NO_VERB}",
        "per",
        "841 iterations a second",
    ),
    Wording(r"\bas many as is good\b", "chosen automatically", "in batches of as many as is good"),
    Wording(r"\bwhole inside\b", "full state", "keep the whole inside of every iteration"),
    Wording(r"\brandomness comes from\b", "random seed", "where all randomness comes from"),
    Wording(r"\bseeds do not decide\b", "inconclusive with … seeds", "20 seeds do not decide"),
    Wording(r"\bholds, for an?\b", "holds, by a", "the claim holds, for a quarter of a point"),
    Wording(r"\|\s*what\s*\|", "metric, description", "| variable | what |"),
    Wording(r"(?m)^#+ What\b", "a heading that names the subject", "## What it says"),
    Wording(r'"""What\b', "a first line that names the thing", '"""What the devices can look at."""'),
]


def prose(path):
    """The text of a file that people read, with the rest blanked so that lines keep their numbers."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py" or text.startswith("#!/usr/bin/env python3"):
        return _strings_and_comments(text)
    if path.suffix == ".js":
        return _only(r"//[^\n]*|\"[^\"\n]*\"|`[^`]*`", text)
    quoted = (
        r"^```(text|console)\n.*?^```$",  # output of the program
        r"^<!-- copy: docs/.*?^<!-- end of copy -->$",  # tables that commands write
        r"^<!-- copy: efhc_jax/.*?^<!-- end of copy -->$",  # code of the package
        r"`[^`\n]+`",  # names
    )
    for pattern in quoted if path.suffix == ".md" else ():
        text = re.sub(pattern, _blanked, text, flags=re.DOTALL | re.MULTILINE)
    return text


def _blanked(found):
    return re.sub(r"[^\n]", " ", found[0])


def _only(pattern, text):
    """The parts of a text that match, unless they are a name: a key such as "places" is no prose."""
    parts, end = [], 0
    for found in re.finditer(pattern, text):
        is_name = re.fullmatch(r"[\"'`][\w.-]*[\"'`]", found[0])
        parts += [
            re.sub(r"[^\n]", " ", text[end : found.start()]),
            _blanked(found) if is_name else found[0],
        ]
        end = found.end()
    return "".join(parts)


def _strings_and_comments(source):
    kinds = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
    lines = [""] * (source.count("\n") + 1)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds and not re.fullmatch(r"[rb]*[\"'][\w.-]*[\"']", token.string):
            for number, line in enumerate(token.string.splitlines(), token.start[0] - 1):
                lines[number] += f" {line}"
    return "\n".join(lines)


def found_in(text):
    """The wordings to avoid in a text, with their lines."""
    for wording in WORDINGS:
        for match in re.finditer(wording.avoid, text, re.IGNORECASE):
            yield text.count("\n", 0, match.start()) + 1, match[0].strip(), wording.instead


def files(patterns):
    return sorted({path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()})


@pytest.mark.parametrize("path", files(CHECKED), ids=lambda path: str(path.relative_to(ROOT)))
def test_wordings(path):
    found = [
        f"{path.name}:{line}: {words!r}; say: {usual}" for line, words, usual in found_in(prose(path))
    ]
    assert found == []


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.example)
def test_every_wording_is_noticed(wording):
    assert any(usual == wording.instead for _, _, usual in found_in(wording.example))


@pytest.mark.parametrize(
    "sentence",
    [
        "Each time a device fires, it counts.",
        "the number of times a link was used",
        "Once a run has diverged, it stops.",
        "the broadcasts a device makes",
        "for a device and an iteration",
        "three decimal places",
        "in some places",
        "Besides, it works.",
        "the paper goes on to prove",
        "what is going on",
    ],
)
def test_correct_english_is_accepted(sentence):
    assert list(found_in(sentence)) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "841 iterations a second",
        "once a seed, and again",
        "3 GB a run on a GPU",
        "5 ms a gradient\nor less",
        "a run that went on",
    ],
)
def test_more_odd_wordings_are_noticed(sentence):
    assert len(list(found_in(sentence))) == 1


def test_output_and_code_are_not_prose(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```text\niterations a second\n```\nThe `pictures` option.\n")
    assert list(found_in(prose(page))) == []
    module = tmp_path / "module.py"
    module.write_text('places = {"places": 1}\n\n\ndef f():\n    """What it does."""\n')
    assert [line for line, _, _ in found_in(prose(module))] == [5]
    script = tmp_path / "page.js"
    script.write_text(
        'const places = run["places"]; // the places of devices\nshow(`${a} a picture`);\n'
    )
    assert [line for line, _, _ in found_in(prose(script))] == [2, 1]
