"""Results with contents that nobody expects, and a claim, for the tests of reports."""

import json

import efhc_jax as efhc

CLAIM = {"classifier": "svm", "panel": "i", "statement": "s", "quantity": "q", "difference": 1.0}
CLAIM |= {"low": None, "high": None, "at_least": 0.0, "seeds": 2, "verdict": "holds"}
EVIL = "\x1b[31m[bold]red[/bold]\x07\u202e<img src=x onerror=alert(1)></script>"


def named_file(run, name, **more):
    """The run as it would be stored with this name of a graph file."""
    fields = json.loads(run.attrs["experiment"]) | {"graph_file": str(name)} | more
    return run.assign_attrs(experiment=json.dumps(fields))


def evil_file(grid, path):
    """A result that has control characters and markup wherever it has text."""
    fields = json.loads(grid.attrs["experiment"]) | {"dataset": EVIL, "model": EVIL + "\ud800"}
    attrs = dict.fromkeys(("python", "platform", "created"), EVIL)
    attrs |= {"experiment": json.dumps(fields), "versions": json.dumps({EVIL: EVIL})}
    attrs |= {"data": json.dumps({EVIL: EVIL})}
    renamed = grid.assign_coords(policy=["efhc", EVIL]).assign_attrs(attrs)
    return efhc.save(renamed, path)
