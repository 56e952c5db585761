"""What a notebook shows: progress that updates in place, experiments and datasets as tables."""

import base64
import io
import sys
import types
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import efhc_jax as efhc
from efhc_jax.runs import notebooks, progress


def rows(page):
    """The names and values of all rows, and those that are emphasised."""
    tree = ElementTree.fromstring(page)
    found = {row[0].text: "".join(row[1].itertext()) for row in tree.iter("tr")}
    return found, {row[0].text for row in tree.iter("tr") if row[1].find("strong") is not None}


def test_an_experiment_shows_all_settings_and_emphasises_its_own():
    experiment = efhc.Experiment(policy="zt", devices=20, budgets=(10, 20))
    found, strong = rows(experiment._repr_html_())
    assert found.keys() == experiment.to_dict().keys()
    assert strong == {"policy", "devices", "budgets"}
    assert (found["policy"], found["budgets"], found["r"]) == ("zt", "[10.0, 20.0]", "50.0")
    assert rows(efhc.Experiment()._repr_html_())[1] == set()


def test_every_row_of_an_experiment_has_its_explanation():
    tree = ElementTree.fromstring(efhc.Experiment()._repr_html_())
    assert all(len(row.get("title")) > 5 for row in tree.iter("tr"))


def test_a_dataset_shows_its_sizes_and_samples(tiny):
    page = tiny._repr_html_()
    found, _ = rows(page)
    assert found == {
        "training samples": "40",
        "test samples": "20",
        "image shape": "3 × 3",
        "classes": "4",
        "digest": tiny.digest,
    }
    source = ElementTree.fromstring(page).find("img").get("src")
    kind, _, content = source.partition(",")
    assert kind == "data:image/png;base64"
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))
    for label in range(4):
        first = tiny.train_images[np.flatnonzero(tiny.train_labels == label)[0]]
        np.testing.assert_array_equal(picture[:, 5 * label : 5 * label + 3], first)


def test_large_images_are_shown_small(tiny):
    large = np.zeros((40, 500, 300), np.uint8)
    data = tiny._replace(train_images=large, test_images=large[:20])
    assert len(data._repr_html_()) < 5000


def test_a_dataset_that_cannot_be_used_says_why(tiny):
    data = tiny._replace(train_images=tiny.train_images / 255)
    assert "train_images of 'tiny': float64" in "".join(
        ElementTree.fromstring(data._repr_html_()).itertext()
    )


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", '"&<b>'])
def test_nothing_is_taken_for_markup(tiny, name):
    experiment = efhc.Experiment(graph="file", graph_file=name)
    assert rows(experiment._repr_html_())[0]["graph_file"] == name
    page = tiny._replace(name=name)._repr_html_()
    assert ElementTree.fromstring(page).find("strong").text == f"Dataset {name}"


@pytest.fixture
def outputs(monkeypatch):
    """A notebook: what each output has shown, one after the other."""
    shown = []

    class Output:
        def __init__(self, first):
            self.states = [first]

        def update(self, state, raw):
            assert raw
            self.states.append(state)

    def display(first, raw, display_id):
        assert raw
        assert display_id
        shown.append(Output(first))
        return shown[-1]

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    return shown


@pytest.fixture
def clock(monkeypatch):
    clock = types.SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(notebooks, "time", clock)
    return clock


def test_a_run_shows_a_bar_in_a_notebook(outputs, clock, capsys):
    with progress.run_progress(1000, "zt <svm>") as report:
        for done in (200, 400, 600, 1000):
            clock.now += 2
            report(done)
    (output,) = outputs
    texts = [state["text/plain"] for state in output.states]
    assert texts == [
        "zt <svm> · 0/1,000 · compiling…",
        "zt <svm> · 200/1,000",
        "zt <svm> · 400/1,000 · 100 it/s · 0:06 left",
        "zt <svm> · 600/1,000 · 100 it/s · 0:04 left",
        "zt <svm> · 1,000/1,000 · 133 it/s",
    ]
    last = ElementTree.fromstring(output.states[-1]["text/html"])
    assert last.find("progress").attrib == {"value": "1000", "max": "1000"}
    assert texts[-1] in "".join(last.itertext())
    assert capsys.readouterr() == ("", "")


def test_a_sweep_and_items_show_theirs(outputs, clock):
    with progress.sweep_progress(4, 100) as report:
        report(400)
    with progress.item_progress(3, "drawing") as step:
        for _ in range(3):
            clock.now += 1
            step()
    assert [output.states[-1]["text/plain"] for output in outputs] == [
        "sweep · 4 of 4 runs",
        "drawing · 3 of 3",
    ]


def test_a_notebook_is_not_flooded_and_sees_the_end(outputs, clock):
    with progress.run_progress(10_000, "zt") as report:
        for done in range(1, 10_001):
            clock.now += 0.001
            report(done)
    assert 50 < len(outputs[0].states) < 150
    assert outputs[0].states[-1]["text/plain"].startswith("zt · 10,000/10,000")


def test_silence_in_a_notebook_when_asked(outputs):
    with progress.run_progress(10, "zt", show=False) as report:
        report(10)
    with progress.sweep_progress(2, 10, show=False) as report:
        report(20)
    assert outputs == []


def test_an_ipython_terminal_is_no_notebook(outputs, monkeypatch):
    assert notebooks.in_notebook()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: types.SimpleNamespace())
    assert not notebooks.in_notebook()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    assert not notebooks.in_notebook()


@pytest.mark.parametrize(
    ("seconds", "shown"), [(7, "0:07"), (125.4, "2:05"), (3600 * 26 + 61, "26:01:01")]
)
def test_time_left(seconds, shown):
    assert notebooks._clock(seconds) == shown


@pytest.mark.filterwarnings("ignore")
def test_a_real_notebook():
    import nbclient
    import nbformat

    code = (
        "import efhc_jax as efhc\n"
        "experiment = efhc.Experiment(dataset='synthetic', iterations=20, eval_every=10)\n"
        "run = efhc.simulate(experiment)\n"
        "experiment"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    bar, shown = notebook.cells[0].outputs
    assert bar.data["text/plain"].startswith("efhc · svm · synthetic · 20/20")
    assert "<progress" in bar.data["text/html"]
    assert rows(shown.data["text/html"])[1] == {"dataset", "iterations", "eval_every"}
