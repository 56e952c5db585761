"""The rooms of the package: what is where, and which way imports point."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "efhc_jax"
ORDER = [  # a room may import from those before it; rooms in one line do not know each other
    {"errors"},
    {"text", "disk", "members"},
    {"data", "models", "optimizers", "policies", "schedules"},
    {"randomness"},
    {"network"},
    {"compressors", "participation", "resources"},
    {"methods"},
    {"experiment", "engine"},
    {"results"},
    {"storage"},
    {"runs"},
    {"theory"},
    {"plotting"},
    {"papers", "comparison"},
    {"report"},
    {"cli"},
]
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path):
    """The modules of the package that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "efhc_jax":
            yield node.module.split(".")[1:] or [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("efhc_jax."):
                    yield alias.name.split(".")[1:]


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem == "errors")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    own = room_of(path)
    for imported in imports_of(path):
        room = imported[0]
        if room not in (own, "__version__"):
            assert LEVEL[room] < LEVEL[own], f"{own} may not import {'.'.join(imported)}"


def test_every_room_has_a_place_in_the_order():
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(LEVEL) - {"errors"}
    modules = {path.name for path in PACKAGE.glob("*.py")}
    assert modules == {"__init__.py", "__main__.py", "errors.py"}


def test_the_engine_knows_no_files_and_no_settings():
    forbidden = {"xarray", "pathlib", "os", "io", "json", "h5netcdf", "orbax"}
    for path in (PACKAGE / "engine").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            alias.name.split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        names |= {
            (node.module or "").split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
        }
        assert not names & forbidden, path.name


def test_tests_are_in_the_same_rooms():
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    others = {"support", "benchmarks", "docs", "robustness"}
    found = {path.name for path in Path(__file__).parent.iterdir() if any(path.glob("test_*.py"))}
    assert found - others <= rooms


def test_the_map_of_the_documentation_has_every_room():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    for room in set(LEVEL) - {"errors"}:
        assert f"`{room}/`" in page, room
