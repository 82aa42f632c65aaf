"""The built documentation in a browser: nothing overflows, formulas are set, no request leaves the machine.

``make test-docs`` builds the pages and runs these tests. Without a build or without Chromium they are
skipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chromium import Tab, browser, in_a_browser

ROOT = Path(__file__).resolve().parent.parent
HTML = Path(os.environ.get("CENSCORE_DOCS_HTML", ROOT / "docs" / "_build" / "html"))
WIDTHS = (390, 1280)
#: What the indices of the theme are, and no page of ours.
NO_PAGES = {"genindex", "py-modindex", "search"}
PAGES = sorted(
    str(path.relative_to(HTML).with_suffix(""))
    for path in HTML.rglob("*.html")
    if path.stem not in NO_PAGES and "_static" not in path.parts and "_modules" not in path.parts
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGES, reason=f"no built documentation in {HTML}; run make docs"),
]

OVERFLOW = """(() => {
    const page = document.scrollingElement;
    if (page.scrollWidth <= page.clientWidth) return [];
    return [...document.querySelectorAll("body *")]
        .filter(element => element.getBoundingClientRect().right > page.clientWidth + 1)
        .slice(-3).map(element => element.outerHTML.slice(0, 120));
})()"""
UNSET = """[...document.querySelectorAll(".math")]
    .filter(formula => !formula.querySelector("mjx-container svg")
                       || formula.querySelector("[data-mml-node=merror]"))
    .map(formula => formula.textContent.slice(0, 80))"""
BROKEN = """[...document.images]
    .filter(image => image.loading !== "lazy" && image.complete && image.naturalWidth === 0)
    .map(image => image.src)"""


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browser() as opened:
        yield opened


@in_a_browser
@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_and_is_complete_without_a_network(tab, page):
    tab.requests.clear()
    tab.resize(WIDTHS[-1])
    tab.open((HTML / f"{page}.html").as_uri())
    for width in WIDTHS:
        tab.resize(width)
        assert tab.evaluate("document.scrollingElement.clientWidth") <= width
        assert tab.evaluate(OVERFLOW) == [], f"{page} overflows at {width} px"
    assert tab.evaluate(UNSET) == []
    assert tab.evaluate(BROKEN) == []
    assert [url for url in tab.requests if not url.startswith(("file:", "data:", "blob:", "about:"))] == []


@in_a_browser
def test_formulas_are_pictures(tab):
    tab.open((HTML / "concepts.html").as_uri())
    assert tab.evaluate("document.querySelectorAll('.math mjx-container svg').length") > 10


@in_a_browser
@pytest.mark.parametrize(("scheme", "shown"), [("light", "only-light"), ("dark", "only-dark")])
def test_figures_follow_the_colours_of_the_reader(tab, scheme, shown):
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    tab.resize(1280)
    tab.open((HTML / "gallery" / "index.html").as_uri())
    visible = """[...document.querySelectorAll("img.only-light, img.only-dark")]
        .filter(image => getComputedStyle(image).display !== "none")
        .map(image => image.classList.contains("only-dark") ? "only-dark" : "only-light")"""
    found = tab.evaluate(visible)
    assert len(found) > 12
    assert set(found) == {shown}
    tab.call("Emulation.setEmulatedMedia", features=[])


#: What readers type, and the page that must be among the first three; names of functions come first.
SEARCHES = [
    ("sksurv", "coming_from"), ("cite", "cite"), ("C-index", "discrimination"),
    ("competing risks", "competing_risks"), ("IBS", "generated/censcore.integrated_brier_score"),
    ("churn", "five_minutes"), ("left truncation", "delayed_entry"), ("concordance", "discrimination"),
    ("Uno", "discrimination"), ("Graf", "two_brier_scores"), ("calibration slope", "calibration"),
    ("decision curve", "calibration"), ("crps", "generated/censcore.crps"),
    ("brier_score", "generated/censcore.brier_score"), ("compare", "generated/censcore.compare"),
    ("cross_validate", "generated/censcore.cross_validate"),
    ("CoxRegression", "generated/censcore.CoxRegression"),
    ("quantile loss", "generated/censcore.pinball_score"), ("IPCW", "censoring_distribution"),
    ("Turnbull", "generated/censcore.Turnbull"),
]  # fmt: skip


@in_a_browser
@pytest.mark.parametrize(("words", "page"), SEARCHES)
def test_a_reader_finds_the_page_by_searching(tab, words, page):
    tab.resize(1280)
    tab.open((HTML / "search.html").as_uri() + f"?q={words.replace(' ', '+')}")
    results = """new Promise(resolve => {
        const links = () => [...document.querySelectorAll("#search-results li a")]
            .map(link => link.getAttribute("href"));
        const look = tries => links().length >= 5 || tries === 0
            ? resolve(links()) : setTimeout(look, 50, tries - 1);
        look(100);
    })"""
    found = [href.split("?")[0].split("#")[0].removesuffix(".html") for href in tab.evaluate(results)]
    assert page in list(dict.fromkeys(found))[:3], found[:8]


@pytest.mark.parametrize(("words", "page"), SEARCHES)
def test_the_search_index_has_the_words_of_readers(words, page):
    """As a title, or as an entry of the index."""
    text = (HTML / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    found = {
        index["docnames"][doc]
        for kind in ("alltitles", "indexentries")
        for title, where in index[kind].items()
        for doc, *_ in where
        if words.lower() in title.lower()
    }
    assert page in found


REFERENCE = [page for page in PAGES if page == "api" or page.startswith("generated/")]
LONGEST = 8000  # pixels of a page of the reference
DOORS = """[...document.querySelectorAll(".bd-header .navbar-nav .nav-link")]
    .map(link => link.innerText.trim())"""
ENTRIES = """[...document.querySelectorAll(".bd-sidebar-primary .bd-links a")]
    .filter(link => link.checkVisibility()).length"""


@in_a_browser
def test_pages_of_the_reference_are_short(tab):
    tab.resize(1280)
    heights = {}
    for page in REFERENCE:
        tab.open((HTML / f"{page}.html").as_uri())
        heights[page] = tab.evaluate("document.querySelector('article').getBoundingClientRect().height")
    assert len(heights) > 100
    assert {page: height for page, height in heights.items() if height > LONGEST} == {}


@in_a_browser
@pytest.mark.parametrize(
    "page", ["api", "calibration", "scores", "what_works", "install", "generated/censcore.crps"]
)
def test_four_doors_and_a_short_side_bar(tab, page):
    tab.resize(1280)
    tab.open((HTML / f"{page}.html").as_uri())
    found = tab.evaluate(DOORS)
    assert [text for text in found if text][:4] == ["User guide", "Gallery", "API reference", "Evidence"]
    assert 3 <= tab.evaluate(ENTRIES) <= 20


@in_a_browser
@pytest.mark.parametrize(("width", "shown"), [(390, ".tree-steps"), (1280, ".tree")])
def test_the_decision_tree_can_be_read(tab, width, shown):
    """On a phone as steps, since letters of the drawing would be tiny."""
    tab.resize(width)
    tab.open((HTML / "which_score.html").as_uri())
    visible = """[".tree", ".tree-steps"].filter(
        what => document.querySelector(what).checkVisibility())"""
    assert tab.evaluate(visible) == [shown]
