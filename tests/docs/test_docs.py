"""The documentation agrees with the program, and reads on GitHub as in the site."""

import contextlib
import dataclasses
import glob
import importlib
import io
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import efhc_jax
from efhc_jax import cli
from efhc_jax.data import fashion_mnist
from efhc_jax.papers.efhc import settings
from efhc_jax.results.variables import DIMENSIONS
from efhc_jax.storage.netcdf import file_stem

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(DOCS.glob("*.md")),
    *sorted((DOCS / "notebooks").glob("*.md")),
]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def commands_of(page):
    """The `efhc` commands of a page's shell blocks, but for those with something left out."""
    for block in blocks(page, "bash"):
        for line in re.sub(r"\\\n", " ", block).splitlines():
            for part in line.split(";"):
                words = shlex.split(part, comments=True)
                if "efhc" in words and not any("…" in word for word in words):
                    yield words[words.index("efhc") + 1 :]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_on_a_page_is_one_that_the_program_takes(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    for words in commands_of(page):
        try:
            cli.parse(words)
        except SystemExit:
            pytest.fail(f"efhc {' '.join(words)}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_results_on_a_page_have_the_names_that_its_commands_give_them(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    runs = [cli.parse(words) for words in commands_of(page) if words[0] == "run"]
    made = {f"{run.out}/{file_stem(run.experiment)}" for run in runs}
    named = set(re.findall(r"out/\S*-[0-9a-f]{8}\b", page.read_text()))
    assert named <= made


def test_commands_are_found_and_wrong_ones_are_noticed():
    found = [words for page in PAGES for words in commands_of(page)]
    assert len(found) > 10
    assert {"run", "sweep", "plot", "audit"} <= {words[0] for words in found}
    with pytest.raises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
        cli.parse(["run", "--no-such-flag"])


def faq_entries():
    for block in blocks(DOCS / "faq.md", "console"):
        yield re.findall(r"^\$ efhc (.*)\n((?:(?!\$ ).*\n?)*)", block, re.MULTILINE)


@pytest.fixture
def fresh_machine(monkeypatch, tmp_path):
    """An empty folder on a machine without the full dataset."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("EFHC_DATA_DIR", raising=False)
    monkeypatch.delenv("TFDS_DATA_DIR", raising=False)
    monkeypatch.setattr(fashion_mnist, "DEBIAN_DIRECTORY", tmp_path / "no-such-package")


@pytest.mark.usefixtures("fresh_machine")
@pytest.mark.parametrize("entry", list(faq_entries()), ids=lambda entry: entry[-1][0][:40])
def test_errors_of_the_faq_are_those_of_the_program(entry, tmp_path, capsys):
    """In a folder with an example of a graph file."""
    shutil.copy(ROOT / "examples" / "links.csv", tmp_path)
    (tmp_path / "empty").mkdir()
    for command, expected in entry:
        try:
            code = cli.main(shlex.split(command))
        except SystemExit as stop:  # of the parser
            code = stop.code
        printed = capsys.readouterr().err
        if not expected:
            assert code == 0
            continue
        assert code == 2
        pattern = ".*".join(re.escape(part) for part in expected.strip().split("…"))
        assert re.search(pattern, printed, re.DOTALL), printed


def test_the_faq_has_its_entries():
    assert len(list(faq_entries())) > 15


def readme_commands():
    """The lines of the README's first block under "On the command line", as words."""
    section = (ROOT / "README.md").read_text().split("## On the command line\n")[1]
    block = re.search(r"^```bash\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[1]
    lines = re.sub(r"\\\n", " ", block).splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.mark.usefixtures("fresh_machine")
def test_commands_of_the_readme_work_one_after_the_other(monkeypatch, tmp_path):
    """All of them, with fewer iterations and without LeNet5.

    The block below them downloads data and PyTorch: of that only the flags are tested, further up.
    """
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    few = {"svm": 30}
    quick = settings.PRESETS["quick"]._replace(iterations=few, eval_every=few, budget_iterations=few)
    monkeypatch.setitem(settings.PRESETS, "quick", quick)
    few_iterations = ["--iterations", "30", "--eval-every", "15"]
    shorter = {
        "run": few_iterations,
        "sweep": few_iterations,
        "figure1": ["--classifier", "svm", "--seeds", "2"],
    }
    activate, *commands = readme_commands()
    assert activate == ["source", ".venv/bin/activate"]
    for program, *words in commands:
        assert program == "efhc"
        expanded = [path for word in words for path in glob.glob(word) or [word]]  # as the shell does
        assert cli.main([*expanded, *shorter.get(words[0], [])]) == 0, shlex.join(words)
    written = {path.suffix for path in tmp_path.rglob("*")}
    assert {".nc", ".toml", ".png", ".gif", ".html", ".pdf", ".json"} <= written
    assert {words[1] for words in commands} == set(cli.COMMANDS) - {"bench", "compare-methods"}


def test_every_page_is_in_the_list_of_pages():
    """In the list that GitHub shows, and in the one that the site makes its menu of."""
    index = (DOCS / "index.md").read_text()
    shown = re.findall(r"^- \[.*?\]\((.*?)\.md\)", index, re.MULTILINE)
    menu = []
    for tree in re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL):
        menu += [line for line in tree.splitlines() if line and not line.startswith(":")]
    present = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES if DOCS in page.parents}
    assert shown == menu
    assert set(shown) == present - {"index"}


def links_of(page):
    return re.findall(r"\]\(((?!http)[^)#]+)", without_code(page.read_text()))


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def test_links_lead_somewhere():
    assert len(links_of(ROOT / "README.md")) > 10
    broken = [
        f"{page.name}: {link}"
        for page in PAGES
        for link in links_of(page)
        if not (page.parent / link).exists()
    ]
    assert broken == []


GENERATED = {"api", "inside"}  # by Sphinx; each says so in its first lines


@pytest.mark.parametrize(
    "page", [page for page in PAGES if DOCS in page.parents], ids=lambda page: page.stem
)
def test_pages_read_on_github(page):
    """GitHub knows neither the roles nor the directives of MyST."""
    text = page.read_text()
    visible = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    assert re.findall(r"\{[\w:-]+\}`|^:::|^\(\w+\)=$|^\$\$ \(", visible, re.MULTILINE) == []
    if page.stem in GENERATED:
        assert "<!-- github -->" in text[:500]
    else:
        assert re.findall(r"^```\{.*", visible, re.MULTILINE) == []


def test_copies_in_pages_are_up_to_date():
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "copies", "--check"], capture_output=True
    )
    assert checked.returncode == 0, checked.stderr.decode()


def test_every_example_is_in_the_guide():
    guide = (DOCS / "extending.md").read_text()
    examples = [path.name for path in (ROOT / "examples").glob("*.py")]
    assert [name for name in examples if f"<!-- copy: examples/{name} -->" not in guide] == []


def names_of(page):
    """The Python names in backticks, as `efhc_jax.simulate` or `efhc.simulate(…)`."""
    for code in re.findall(r"`([^`\n]+)`", without_code(page.read_text())):
        yield from re.findall(r"(?<![\w./-])(?:efhc_jax|efhc)\.((?:\w+\.)*\w+)", code)


def resolves(name):
    """Whether a name of the package, dotted, is a module or something in one."""
    found = efhc_jax
    for position, part in enumerate(name.split("."), 1):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(".".join(["efhc_jax", *name.split(".")[:position]]))
            except ImportError:
                return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_names_on_a_page_exist(page):
    assert [name for name in names_of(page) if not resolves(name)] == []


def test_python_names_are_found_and_wrong_ones_are_noticed():
    assert len(set(names_of(DOCS / "mathematics.md"))) > 30
    assert resolves("theory.convexity")
    assert not resolves("theory.concavity")
    assert not resolves("simulated")


def test_every_public_name_is_in_the_reference():
    reference = (DOCS / "api.md").read_text()
    missing = [name for name in efhc_jax.__all__ if f":: efhc_jax.{name}\n" not in reference]
    assert missing == []


def test_every_variable_of_a_result_is_explained():
    page = (DOCS / "results.md").read_text()
    assert [name for name in DIMENSIONS if f"`{name}`" not in page] == []


def test_equations_have_the_papers_numbers():
    numbers = re.findall(r"\\tag\{(\d+)\}", (DOCS / "mathematics.md").read_text())
    assert numbers == [str(number) for number in range(1, 16)]


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == efhc_jax.__version__
    assert citation()["version"] == efhc_jax.__version__
    assert f"\n## [{efhc_jax.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_citation_has_what_its_format_asks_for():
    found = citation()
    assert found["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(found)
    assert "2204.03726" in found["references"][0]["doi"]


def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text())


@pytest.fixture
def reference(monkeypatch):
    """The extension of the documentation that describes the command line."""
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    import commands

    yield commands
    del sys.modules["commands"]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_reference_of_commands_has_every_flag(reference, name):
    text = reference.section(name, reference.help_of(name))
    flags = {field.name for field in dataclasses.fields(cli.COMMANDS[name])}
    if "experiment" in flags or "settings" in flags:
        flags |= {field.name for field in dataclasses.fields(efhc_jax.Experiment)}
    for flag in flags - {"experiment", "settings", "file", "files"}:
        assert re.search(rf"\{{option\}} (--{flag.replace('_', '-')}|{flag.upper()})\b", text), flag


def test_a_flag_and_its_description_stay_together(reference):
    about = reference.help_of("plot")
    flags = {flag.name: flag.description for group in about.groups.values() for flag in group}
    assert flags["--y STR"].startswith("Variable to plot.")
    assert flags["FILE"].startswith("Result file (netCDF), or a folder that contains one.")
    described = reference.help_of("run").groups["settings options"]
    assert all(flag.description.endswith(")") for flag in described)
