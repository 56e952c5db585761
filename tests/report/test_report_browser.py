"""The page of a report in a real browser: it loads alone, without a complaint, and answers."""

import json
import math

import pytest

import efhc_jax as efhc
from browser import Browser
from efhc_jax.report import page as pages
from efhc_jax.report.page import write_report
from efhc_jax.report.studies import study_values
from odd_results import CLAIM, evil_file, named_file
from small import QUADRATIC

pytestmark = pytest.mark.browser

FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
LINES = "[...document.querySelectorAll('.curves .line')].map(line => line.getAttribute('d'))"
RASTER = "document.querySelector('canvas').toDataURL()"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    grid = efhc.sweep(QUADRATIC, policy=["efhc", "rg"], seed=[0, 1], audit=True, progress=False)
    efhc.save(grid, folder / "sweep.nc")
    efhc.save(grid.drop_vars(["fired", "adjacency"]), folder / "plain.nc")
    return write_report([folder / "sweep.nc"], folder / "report.html")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("chromium")) as one:
        yield one


@pytest.fixture
def opened(browser, page):
    browser.look(1200, 900)
    browser.open(page)
    browser.ask(FRAMES)
    yield browser
    assert browser.problems == []
    assert browser.requests == [page.as_uri()]


def choose(browser, position):
    """Click on a policy."""
    browser.ask(f"document.querySelectorAll('.chip')[{position}].click()")
    browser.ask(FRAMES)


def choose_seed(browser, position):
    browser.ask(
        "(() => { const seed = document.querySelector('[data-axis=seed]');"
        f"seed.value = {position}; seed.dispatchEvent(new Event('change')); }})()"
    )
    browser.ask(FRAMES)


def scrub(browser, frame):
    browser.ask(
        "(() => { const slider = document.querySelector('input[type=range]');"
        f"slider.value = {frame}; slider.dispatchEvent(new Event('input')); }})()"
    )
    browser.ask(FRAMES)


def test_every_part_is_there(opened):
    titles = opened.ask("[...document.querySelectorAll('h2, h3, h4')].map(title => title.textContent)")
    for part in ("Settings", "Headline figures", "Curves", "Broadcasts and links", "Network"):
        assert part in titles
    assert opened.ask("document.querySelectorAll('.curves .line').length") == 8
    assert opened.ask("document.querySelectorAll('.network .device').length") == 6
    assert opened.ask("document.querySelectorAll('.audit tbody tr').length") > 8
    assert opened.ask("document.querySelector('.command').textContent").startswith("efhc sweep --model")


def test_the_scrubber_moves_the_network_and_the_raster(opened):
    states, rasters = set(), set()
    for frame in (0, 5, 20, 39):
        scrub(opened, frame)
        text = opened.ask("document.querySelector('output').textContent")
        assert text.startswith(f"Iteration {frame}: ")
        lit = opened.ask("document.querySelectorAll('.link.on').length")
        assert f"{lit} of " in text
        states.add(text)
        rasters.add(opened.ask(RASTER))
    assert len(states) == len(rasters) == 4


def test_what_lights_up_is_what_was_used(opened, page):
    run = efhc.load(page.parent / "sweep.nc").isel(policy=0, seed=0)
    for frame in range(0, 40, 3):
        scrub(opened, frame)
        assert opened.ask("document.querySelectorAll('.link.on').length") == run.links_used[frame]
        assert opened.ask("document.querySelectorAll('.fires').length") == run.fired[frame].sum()


def test_playing_goes_on_by_itself_and_stops(opened):
    scrub(opened, 36)
    opened.ask("document.querySelector('.player button').click()")
    opened.ask("new Promise(done => setTimeout(done, 1500))")
    assert opened.ask("document.querySelector('input[type=range]').value") == "39"
    assert "Play" in opened.ask("document.querySelector('.player button').textContent")


def test_choosing_a_policy_changes_what_is_shown(opened):
    raster, command = opened.ask(RASTER), "document.querySelector('tr.chosen').textContent"
    assert "EF-HC" in opened.ask(command)
    widths = (
        "[...document.querySelectorAll('.curves .line')].map(line => line.getAttribute('stroke-width'))"
    )
    colors = "[...document.querySelectorAll('.curves .line')].at(-1).getAttribute('stroke')"
    assert opened.ask(colors) == "#0072B2", "the chosen policy lies on top"
    choose(opened, 1)
    assert "RG" in opened.ask(command)
    assert opened.ask(colors) == "#CC79A7"
    assert opened.ask(RASTER) != raster
    assert set(opened.ask(widths)) == {"1.5", "2.6"}


def test_choosing_a_seed_changes_the_curves(opened):
    found = [opened.ask(LINES)]
    for seed in (0, 1):
        choose_seed(opened, seed)
        found.append(opened.ask(LINES))
    assert all(len(lines) == 8 for lines in found)
    assert len({str(lines) for lines in found}) == 3
    assert "only for the first seed" in opened.ask("document.body.textContent")
    choose_seed(opened, -1)
    assert opened.ask(LINES) == found[0]


def test_values_are_shown_under_the_pointer(opened):
    opened.ask("document.querySelector('.curves .chart').scrollIntoView({block: 'center'})")
    box = opened.ask(
        "(() => { const box = document.querySelector('.curves .chart').getBoundingClientRect();"
        "return [box.left + box.width / 2, box.top + box.height / 2]; })()"
    )
    opened.point(*box)
    opened.ask(FRAMES)
    text = opened.ask("document.getElementById('tip').textContent")
    assert text.startswith("iteration 20")
    assert "EF-HC: " in text
    assert "RG: " in text
    opened.point(1, 1)


@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone_in_light_and_dark(browser, page, dark):
    browser.look(390, 844, dark=dark, phone=True)
    browser.open(page)
    browser.ask(FRAMES)
    assert browser.ask("document.documentElement.scrollWidth") <= 390
    light = browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(251, 251, 250)"
    assert light != dark
    assert browser.problems == []


def test_a_file_without_an_audit_and_several_files(browser, page):
    browser.look(1200, 900)
    files = [page.parent / "plain.nc", page.parent / "sweep.nc"]
    browser.open(write_report(files, page.parent / "several.html"))
    browser.ask(FRAMES)
    assert browser.ask("document.querySelectorAll('nav a').length") == 2
    plain = browser.ask("document.querySelector('#study-0').textContent")
    assert plain.count("efhc sweep --audit records") == 3
    scrub(browser, 2)
    text = browser.ask("document.querySelector('#study-0 output').textContent")
    assert text.startswith("Iterations 20 to 29: ")
    assert browser.problems == []
    assert len(browser.requests) == 1


def test_large_networks_are_drawn_in_part_and_others_follow(browser, page):
    browser.look(1200, 900)
    large = QUADRATIC.replace(devices=560, split="iid", connectivity=0.9, iterations=4, eval_every=2)
    run = efhc.simulate(large, audit=True, progress=False)
    links = int(run.degree.sum()) // 2
    assert links > 130_000, "more than a browser takes as arguments of one call"
    files = [efhc.save(run, page.parent / "large.nc"), page.parent / "sweep.nc"]
    written = write_report(files, page.parent / "large.html")
    assert written.stat().st_size < 2_500_000
    browser.open(written)
    browser.ask(FRAMES)
    assert browser.problems == []
    assert browser.ask("document.querySelectorAll('#study-0 .link').length") == 5_000
    assert browser.ask("document.querySelectorAll('#study-0 .device').length") == 300
    assert browser.ask("document.querySelectorAll('#study-1 .device').length") == 6
    drawn = f"300 of 560 devices and 5,000 of {links:,} links"
    assert browser.ask("document.querySelector('#study-0 .part').textContent").startswith(drawn)
    assert drawn in browser.ask(
        "document.querySelector('#study-0').textContent.split('Left out of this page')[1]"
    )
    for frame in range(4):
        scrub(browser, frame)
        used, fired = int(run.links_used[frame]), int(run.fired[frame].sum())
        text = browser.ask("document.querySelector('#study-0 output').textContent")
        assert f"{fired} of 560 devices broadcast" in text
        assert f"{used:,} of {links:,} links carried models" in text
    assert browser.problems == []


def test_what_fails_says_so_in_its_place_and_the_rest_is_shown(browser, page):
    browser.look(1200, 900)
    study = study_values(efhc.load(page.parent / "sweep.nc"), "sweep.nc", 10**9)

    def broken(change):
        copy = json.loads(json.dumps(study))
        change(copy)
        return copy

    studies = [
        broken(lambda one: one["runs"]["0,0"].update(fired="?")),
        broken(lambda one: one["curves"].clear() or one["headline"].update(rows=None)),
        broken(lambda one: one.update(axes=None)),
        study,
    ]
    written = page.parent / "broken.html"
    values = {"claims": [CLAIM | {"statement": None, "verdict": 5}, None], "studies": studies}
    written.write_text(pages.page("broken", values), encoding="utf-8")
    browser.open(written)
    browser.ask(FRAMES)
    failed = [
        browser.ask(f"document.querySelectorAll('#{name} .failure').length")
        for name in ("claims", "study-0", "study-1", "study-2", "study-3")
    ]
    assert failed == [1, 1, 1, 1, 0]
    assert not [problem for problem in browser.problems if "Uncaught" in problem]
    after = "document.querySelector('#study-0 .failure').previousElementSibling.textContent"
    assert browser.ask(after) == "Broadcasts and links"
    assert browser.ask("document.querySelectorAll('#study-0 .curves .line').length") == 8
    assert browser.ask("document.querySelectorAll('#study-0 .audit tbody tr').length") > 8
    assert browser.ask("document.querySelectorAll('#study-1 .device').length") == 6
    assert browser.ask("document.querySelectorAll('#study-3 .curves .line').length") == 8
    assert browser.ask("document.querySelectorAll('nav a').length") == 5
    choose(browser, 1)
    assert browser.ask("document.querySelectorAll('#study-0 .failure').length") == 0
    assert browser.ask("document.querySelectorAll('#study-0 .device').length") == 6
    choose(browser, 0)
    assert browser.ask("document.querySelectorAll('#study-0 .failure').length") == 1
    browser.ask("setTimeout(() => { throw Error('later'); })")
    browser.ask(FRAMES)
    assert "later" in browser.ask("document.querySelector('#problems').textContent")


def test_infinite_values_are_shown_as_a_word(browser, page):
    browser.look(1200, 900)
    grid = efhc.sweep(QUADRATIC, r=[20.0, 200.0, math.inf], policy=["efhc", "gt"], progress=False)
    path = efhc.save(grid, page.parent / "infinite.nc")
    browser.open(write_report([path], page.parent / "infinite.html"))
    browser.ask(FRAMES)
    assert browser.problems == []
    assert browser.ask("document.querySelector('[data-axis=r]').textContent") == "r 20r 200r inf"
    assert "inf has no place on this axis" in browser.ask("document.body.textContent")
    browser.ask(
        "(() => { const r = document.querySelector('[data-axis=r]');"
        "r.value = 2; r.dispatchEvent(new Event('change')); })()"
    )
    browser.ask(FRAMES)
    assert "inf" in browser.ask("document.querySelector('tr.chosen').textContent")
    assert browser.problems == []


def test_a_network_that_is_not_stored_is_not_drawn(browser, page):
    browser.look(1200, 900)
    run = efhc.load(page.parent / "plain.nc").isel(policy=0, seed=0, drop=True)
    run = named_file(run, "missing.npy", graph="file").drop_vars("diverged_at")
    run.attrs.pop("axes")
    path = efhc.save(run, page.parent / "named.nc")
    browser.open(write_report([path], page.parent / "named.html"))
    browser.ask(FRAMES)
    network = browser.ask("document.querySelector('.network').innerText")
    assert "The network is not stored in this result; efhc run --audit records it." in network
    assert "weak device" not in network
    assert browser.ask("document.querySelector('output').textContent").startswith("Iterations 0 to 9")
    assert browser.problems == []


def test_markup_and_escape_sequences_are_text(browser, page):
    browser.look(1200, 900)
    path = evil_file(efhc.load(page.parent / "sweep.nc"), page.parent / "evil.nc")
    browser.open(write_report([path], page.parent / "evil.html"))
    browser.ask(FRAMES)
    assert browser.problems == []
    assert browser.ask("document.querySelectorAll('img').length") == 0
    text = browser.ask("document.body.innerText")
    assert text.count("\\x1b[31m[bold]red[/bold]\\x07\\u202e<img src=x onerror=alert(1)>") > 5
    assert "\x1b" not in browser.ask("document.documentElement.outerHTML")
