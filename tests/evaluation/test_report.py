from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tests.chromium import Tab, browser, chromium, in_a_browser

import censcore as cs
from censcore.evaluation.report.style import FAINT, PALETTE
from censcore.evaluation.report.text import grids_of
from censcore.exceptions import MissingPackageError

VOID = {"meta", "img", "br", "link", "input"}


@pytest.fixture(scope="module")
def html(split) -> str:
    return compared(split).to_html(title="Two forecasts & a reference")


def compared(split, **options):
    names = {"cox & <friends>": split.forecasts["cox"], "weibull": split.forecasts["weibull"]}
    return cs.compare(
        names, split.y, cs.Censoring(cs.KaplanMeier()), X=split.x, train=split.train,
        by={"sign": np.sign(split.x[:, 1])}, time_unit="years", **options,
    )  # fmt: skip


class Tags(HTMLParser):
    """Tags with their attributes; every opened tag must be closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.found if name == tag]


def test_the_page_is_well_formed_and_escaped(html):
    tags = Tags(html)
    assert tags.open == []
    assert "cox &amp; &lt;friends&gt;" in html
    assert "<friends>" not in html


def test_the_page_fetches_nothing(html):
    assert not re.findall(r"(?:src|href)=[\"']?(?!'data:|'#)\w", html)
    assert html.count("<script") == 1
    assert "@import" not in html
    assert "http" not in html.replace("http-equiv", "")
    assert len(html) < 500_000
    assert "<h3>AUC over time, 95 % bands</h3>" in html
    assert html.count("<h3>ROC curves at ") == 3  # times that can be chosen


def test_the_page_speaks_to_screen_readers(html):
    tags = Tags(html)
    assert tags.all("html")[0]["lang"] == "en"
    images = [svg for svg in tags.all("svg") if svg.get("role") == "img"]
    assert len(images) >= 12  # of the verdict, and of each kind and time
    assert all(len(image["aria-label"]) > 40 for image in images)
    assert len(tags.all("caption")) == len(tags.all("table")) >= 4
    assert all("scope" in header for header in tags.all("th"))
    regions = [div for div in tags.all("div") if div.get("role") == "region"]
    assert all(div["aria-label"] and div["tabindex"] == "0" for div in regions)
    levels = [int(tag[1]) for tag, _ in tags.found if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert set(levels[1:]) == {2, 3}


def test_the_page_is_reproducible_and_says_its_settings(html, split):
    assert "Kaplan-Meier, fitted to the training subjects" in html
    assert "by the integrated Brier score (ipcw) up to" in html
    assert "Not available for" in html


def contrast(a: str, b: str) -> float:
    """Of two colours, as WCAG defines it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_has_contrast_on_light_and_on_dark(html):
    light, dark = html.split("color-scheme: light dark")[1].split(
        "@media screen and (prefers-color-scheme: dark)"
    )
    for style in (light, dark):
        colours = dict(re.findall(r"--([\w-]+): (#\w{6})", style))
        for name in ("ink", "soft", "best"):
            assert contrast(colours[name], colours["ground"]) >= 4.5
            assert contrast(colours[name], colours["shade"]) >= 4.5
        assert contrast(colours["ink"], colours["alarm"]) >= 4.5
    for on_white, on_dark in PALETTE.values():
        if on_white != FAINT:
            assert contrast(on_white, "#ffffff") >= 4.5
            assert contrast(on_dark, "#111827") >= 4.5


def test_the_verdict_is_the_same_everywhere(split):
    found = compared(split)
    verdict = str(found.verdict)
    assert verdict.replace(" ", "") in repr(found).replace("\n", "").replace(" ", "")
    for html in (found.to_html(), found._repr_html_(), found.verdict._repr_html_()):
        assert all(escape(sentence) in html for sentence in found.verdict.sentences)
    assert json.loads(found.to_json())["verdict"]["text"] == verdict
    assert "years" in verdict


def test_a_notebook_shows_the_tables_and_keeps_its_style_to_itself(split):
    html = compared(split)._repr_html_()
    tags = Tags(html)
    assert tags.open == []
    assert not tags.all("script")
    assert not tags.all("button")
    assert "@scope" in html
    assert ":root" not in html
    assert len(tags.all("table")) == 3  # scores, discrimination, subgroups


def test_a_page_needs_matplotlib_and_a_notebook_does_not(split, monkeypatch):
    found = compared(split, discrimination=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=r"censcore\[plots\]"):
        found.to_html()
    assert "<table" in found._repr_html_()


def test_names_are_inert():
    """Names of models, groups, columns and units may hold anything."""
    evil = "</script><script>alert(1)</script>'\"&\n<b>"
    rng = np.random.default_rng(0)
    T, C = rng.exponential(1.0, 80), rng.uniform(0, 3, 80)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    forecasts = {evil: cs.Exponential(np.linspace(0.5, 1.5, 80)), "other": cs.Exponential(1.0)}
    found = cs.compare(
        forecasts, y, cs.Uniform(0.0, 3.0), horizon=2.0, scores=["crps", "brier_score:ipcw"], time_unit=evil,
        by={evil: np.where(np.arange(80) % 2, evil, "b")}, discrimination=False,
    )  # fmt: skip
    for html in (found.to_html(title=evil), found._repr_html_()):
        tags = Tags(html)
        assert tags.open == []
        assert not tags.all("b")
        assert len(tags.all("script")) <= 1
    assert "\n<b>" not in repr(found)
    assert r"\textless{}b\textgreater{}" in found.to_latex()
    assert r"\<b\>" in found.to_markdown()


def test_lines_of_several_outcomes_are_shown_apart():
    """Scores may be about different events; tables, verdicts and pages keep them apart."""
    rng = np.random.default_rng(0)
    T, C = rng.weibull(1.5, (120, 2)), rng.uniform(0, 3, (120, 1))
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    forecasts = {
        name: cs.Independent([cs.Weibull(shape, 1.0), cs.Weibull(shape, 1.0)])
        for name, shape in {"weibull": 1.5, "exponential": 1.0}.items()
    }
    found = cs.compare(
        forecasts,
        y,
        cs.Uniform(0.0, 3.0),
        names=["relapse", "death"],
        scores=["crps[relapse]", "brier_score:ipcw[death]"],
        discrimination=False,
    )
    assert [verdict.outcome for verdict in found.verdicts] == ["relapse", "death"]
    assert [grid.title.split(":")[0] for grid in grids_of(found)] == ["relapse", "death"]
    for shown in (repr(found), found.to_html(), found.to_markdown()):
        assert shown.lower().index("relapse: mean loss") < shown.lower().index("death: mean loss")
    assert set(found.frame()["outcome"]) == {"relapse", "death"}


MEASURE = """<script>addEventListener('load', () => {
  const all = what => [...document.querySelectorAll(what)];
  const outside = e => e.getBoundingClientRect().right > innerWidth + 1;
  const first = () => document.querySelector('.sortable tbody th').textContent;
  const tiny = e => e.getBoundingClientRect().width > 0 && e.getScreenCTM().a * 12 < 9;
  const before = first();
  const buttons = all('.sortable')[0].querySelectorAll('th button');
  buttons[1].click();
  const best = first();
  buttons[1].click();
  parent.postMessage(JSON.stringify({
    wide: all('main *:not(svg *, .controls *)').filter(outside).length,
    cut: all('.scroll').filter(e => e.scrollWidth > e.clientWidth + 1).length,
    small: all('p, td, th, li').filter(e => parseFloat(getComputedStyle(e).fontSize) < 12).length,
    tiny: all('.panels > div > svg').filter(tiny).length,
    ground: getComputedStyle(document.body).backgroundColor,
    before, best, worst: first(),
    scroll: document.documentElement.scrollWidth, inner: innerWidth,
  }), '*');
});</script>"""
# a window is never as narrow as a phone, a frame is
FRAME = """<!doctype html><title>waiting</title>
<script>addEventListener('message', message => { document.title = message.data; });</script>
<iframe src="page.html" style="width: WIDTHpx; height: 800px; border: 0"></iframe>"""


def measured(html: str, folder: Path, width: int, *options: str) -> dict[str, object]:
    """What a browser finds on the page in a window of this width."""
    script = MEASURE.removeprefix("<script>").removesuffix("</script>")
    known = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = html.replace("script-src ", f"script-src 'sha256-{known}' ")  # else it is not run
    (folder / "page.html").write_text(allowed.replace("</body>", MEASURE + "</body>"), encoding="utf-8")
    (folder / "frame.html").write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
        *options,
    )
    options += ("--no-first-run", "--disable-background-networking", "--disable-sync")
    options += ("--window-size=1400,1000", "--virtual-time-budget=10000", "--dump-dom")
    command = [str(chromium()), *options, (folder / "frame.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(\{.*?\})</title>", done.stdout)
    assert title is not None
    found = json.loads(unescape(title[1]))
    assert found["inner"] == width
    return found


@pytest.fixture(scope="module")
def many(split) -> str:
    """Twelve forecasts, some with long names."""
    forecasts = {
        f"weibull with a scale of {1 + 0.08 * i:.2f}": cs.Weibull(1.5, 1 + 0.08 * i) for i in range(11)
    }
    forecasts["a" * 70] = split.forecasts["weibull"]
    found = cs.compare(
        forecasts, split.y, cs.Censoring(cs.KaplanMeier()), X=split.x, train=split.train, time_unit="years",
        by={"sign": np.sign(split.x[:, 1])}, discrimination=False,
    )  # fmt: skip
    return found.to_html()


LIGHT, DARK = ("rgb(255, 255, 255)", "1"), ("rgb(17, 24, 39)", "0")
VIEWS = [("many", 1280, LIGHT), ("many", 390, DARK), ("html", 390, LIGHT)]


@in_a_browser
@pytest.mark.parametrize(("which", "width", "scheme"), VIEWS)
def test_the_page_in_a_real_browser(which, width, scheme, request, tmp_path: Path):
    """Nothing is cut, text is not tiny, columns sort, dark where one wants it."""
    ground, setting = scheme
    option = f"--blink-settings=preferredColorScheme={setting}"
    found = measured(request.getfixturevalue(which), tmp_path, width, option)
    assert found["scroll"] <= width
    wrong = ("wide", "cut", "small", "tiny")
    assert {name: found[name] for name in wrong} == dict.fromkeys(wrong, 0)
    assert found["best"] != found["worst"]
    assert found["ground"] == ground


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browser() as opened:
        yield opened


def shown(tab: Tab, what: str) -> int:
    seen = "e => getComputedStyle(e).display !== 'none' && e.checkVisibility()"
    return tab.evaluate(f"[...document.querySelectorAll({what!r})].filter({seen}).length")


def opened(tab: Tab, html: str, folder: Path, width: int = 1280) -> None:
    (folder / "page.html").write_text(html, encoding="utf-8")
    tab.resize(width)
    tab.open((folder / "page.html").as_uri())


@in_a_browser
def test_models_are_chosen_once_for_the_whole_page(tab, html, tmp_path):
    opened(tab, html, tmp_path)
    parts = "[data-model=weibull]"
    before = shown(tab, parts)
    assert before > 10
    tab.evaluate("document.querySelector('[data-choose=weibull]').click()")
    assert shown(tab, parts) == 0
    assert shown(tab, "[data-model=kaplan-meier]") > 5
    tab.evaluate("document.querySelector('[data-choose=weibull]').click()")
    assert shown(tab, parts) == before


@in_a_browser
def test_a_time_is_chosen_once_for_tables_and_pictures(tab, html, tmp_path):
    opened(tab, html, tmp_path)
    times = tab.evaluate("[...document.querySelectorAll('.controls option')].map(o => o.value)")[1:]
    assert len(times) == 3
    columns = "th[data-time]"
    every = shown(tab, columns)
    for chosen in times:
        tab.evaluate(f"document.querySelector('select').value = '{chosen}'")
        tab.evaluate("document.querySelector('select').dispatchEvent(new Event('change'))")
        assert shown(tab, columns) == every / 3
        assert shown(tab, f"figure[data-time='{chosen}']") == 2  # calibration and decision; Murphy is folded
        assert sum(shown(tab, f"figure[data-time='{t}']") for t in times) == 2


@in_a_browser
def test_bands_are_hidden_on_request(tab, html, tmp_path):
    opened(tab, html, tmp_path)
    assert shown(tab, ".band") > 3
    tab.evaluate("document.querySelector('.controls input').click()")
    assert shown(tab, ".band") == 0


HOVER = """(() => {
    const svg = document.querySelector("SELECTOR"), box = svg.getBoundingClientRect();
    const at = { clientX: box.left + 0.6 * box.width, clientY: box.top + box.height / 2, bubbles: true };
    svg.dispatchEvent(new PointerEvent("pointermove", at));
    const told = [...document.querySelectorAll(".values div")].map(line => line.textContent);
    svg.dispatchEvent(new PointerEvent("pointerleave", at));
    return [...told, document.querySelector(".values").hidden];
})()"""


@in_a_browser
def test_hovering_over_curves_tells_their_values(tab, split, tmp_path):
    """What the script reads from a path is what the chart has there."""
    found = compared(split)
    opened(tab, found.to_html(), tmp_path)
    curve = next(
        mark for mark in found.chart("brier", versus="kaplan-meier").panels[0].marks if hasattr(mark, "look")
    )
    at, first, *_, gone = tab.evaluate(HOVER.replace("SELECTOR", "#pictures + .pictures svg[data-axes]"))
    x, told = float(at.removeprefix("at ")), float(first.split(": ")[1].split(" ")[0].replace("−", "-"))
    nearest = curve.y[np.argmin(np.abs(curve.x - x))]
    assert first.startswith(curve.name)
    assert told == pytest.approx(nearest, abs=0.002)
    assert "to" in first
    assert gone


POINT = """(() => {
    const group = document.querySelector("#calibration ~ .pictures figure:not([hidden]) .mark");
    const mark = group.querySelector("use"), [x, y] = ["x", "y"].map(name => mark.getAttribute(name));
    const at = new DOMPoint(x, y).matrixTransform(group.ownerSVGElement.getScreenCTM());
    mark.dispatchEvent(new PointerEvent("pointermove", { clientX: at.x, clientY: at.y, bubbles: true }));
    return [group.dataset.model, document.querySelector(".values").textContent];
})()"""


@in_a_browser
def test_hovering_over_a_bin_tells_its_risks(tab, split, tmp_path):
    found = compared(split)
    opened(tab, found.to_html(), tmp_path)
    model, told = tab.evaluate(POINT)
    first = found.calibration(model).binned[0]
    numbers = [float(number) for number in re.findall(r"\d+\.\d+", told.removeprefix(model))]
    expected = [first[name] for name in ("predicted", "observed", "low", "high")]
    assert numbers == pytest.approx(expected, abs=0.005)


@in_a_browser
def test_a_page_without_scripts_shows_everything_but_the_controls(tab, html, tmp_path):
    opened(tab, re.sub(r"<script>.*</script>", "", html, flags=re.DOTALL), tmp_path)
    assert shown(tab, ".controls") == 0
    assert shown(tab, ".verdict") == 1
    assert shown(tab, "figure") >= 5
    assert shown(tab, "table") >= 4


@in_a_browser
def test_tabs_choose_one_of_several_causes(tab, tmp_path):
    names, rng = ["relapse", "death"], np.random.default_rng(0)
    truth = cs.CauseSpecificHazards([cs.Exponential(0.4), cs.Exponential(0.2)], names=names)
    time, cause = (draws[0] for draws in truth.sample(150, seed=1))
    c = rng.uniform(0, 6, 150)
    y = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0), names=names)
    swapped = cs.CauseSpecificHazards([cs.Exponential(0.2), cs.Exponential(0.4)], names=names)
    found = cs.compare({"truth": truth, "swapped": swapped}, y, cs.Uniform(0, 6), discrimination=False)
    html = found.to_html()
    assert Tags(html).open == []
    opened(tab, html, tmp_path)
    titles = tab.evaluate("[...document.querySelectorAll('[role=tab]')].map(tab => tab.textContent)")
    assert titles == ["all causes", "relapse", "death", "any cause"]
    assert shown(tab, ".verdict") == 1
    tab.evaluate("document.querySelectorAll('[role=tab]')[2].click()")
    assert tab.evaluate(
        "[...document.querySelectorAll('.verdict')].find(v => v.checkVisibility()).textContent"
    ).startswith("death")
    assert shown(tab, "section.outcome") == 1


@pytest.mark.slow
def test_a_page_of_six_models_and_two_causes_stays_small():
    names, x = ["relapse", "death"], np.random.default_rng(0).normal(size=(200, 2))

    def model(a, b):
        rates = 0.3 * np.exp(-a * x[:, 0]), 0.2 * np.exp(b * x[:, 1])
        return cs.CauseSpecificHazards([cs.Exponential(rate) for rate in rates], names=names)

    time, cause = (draws[:, 0] for draws in model(0.5, 0.3).sample(1, seed=1))
    c = np.random.default_rng(1).uniform(0, 6, 200)
    y = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0), names=names)
    forecasts = {f"model number {k}": model(0.1 * k, 0.05 * k) for k in range(6)}
    found = cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier()), X=x, train=(x, y))
    html = found.to_html()
    assert len(html.encode()) < 800_000
    assert "Paired differences from the best and the reference, with intervals" in html
    assert len(found.differences()) > html.count(" − ")


@in_a_browser
def test_six_models_print_on_six_pages_and_folded_parts_stay_folded(tab, split, tmp_path):
    forecasts = {f"weibull {k}": cs.Weibull(1.2 + 0.1 * k, np.exp(0.2 * split.x[:, 0])) for k in range(5)}
    found = cs.compare(
        forecasts, split.y, cs.Censoring(cs.KaplanMeier()), X=split.x, train=split.train,
        by={"sign": np.sign(split.x[:, 1])},
    )  # fmt: skip
    opened(tab, found.to_html(), tmp_path)
    tab.call("Emulation.clearDeviceMetricsOverride")

    def pages() -> int:
        printed = tab.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
        return len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed)))

    folded = pages()
    assert folded <= 6
    tab.evaluate("document.querySelector('.unfold').click()")
    assert pages() > folded


def test_the_page_says_what_was_compared(html, split):
    found = compared(split)
    assert found.compared["call"].startswith("compare(")
    assert "numpy" in found.compared["versions"]
    for words in (
        "What was compared",
        "covariates",
        "columns without names",
        "model: weibull",
        found.compared["date"],
    ):
        assert words in html


def test_words_that_clinicians_do_not_use_are_gone(html):
    for words in ("told apart", "rests on", "It rests", "in vain", "Noise explains"):
        assert words not in html


def test_data_forecasts_and_diagnostics_are_tables_in_notebooks(split):
    shown = [split.y, cs.Weibull(1.5, [1.0, 2.0]), compared(split).censoring]
    shown += [
        cs.CompetingRisks([1.0, 2.0], [1, 0], names=["<b>", "death"]),
        cs.IntervalCensored([0.0], [1.0]),
    ]
    for each in shown:
        tags = Tags(each._repr_html_())
        assert tags.open == []
        assert len(tags.all("table")) == 1
        assert not tags.all("b")
        assert 2 <= len(tags.all("tr")) <= 20


def test_the_verdict_says_whether_the_best_is_calibrated():
    """The same order of subjects, and risks that are far too high: no score of ranking would notice."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    T, C = rng.exponential(np.exp(x)), rng.uniform(0, 3, 600)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    forecasts = {"true": cs.Exponential(np.exp(-x)), "too high": cs.Exponential(3 * np.exp(-x))}
    found = cs.compare(forecasts, y, cs.Uniform(0, 3), horizon=2.0, scores="crps", discrimination=False)
    lines = {line["model"]: line for line in found.verdict.calibration}
    assert lines["true"]["calibrated"] is True
    assert lines["too high"]["calibrated"] is False
    assert lines["too high"]["ici"] == found.calibration("too high").ici
    assert "The risks of true agree with the observed ones" in str(found.verdict)
    assert "Not calibrated: too high" in str(found.verdict)
    alone = cs.compare(
        {"too high": forecasts["too high"]}, y, cs.Uniform(0, 3), horizon=2.0, scores="crps", reference=None
    )
    assert "differ, by more than chance explains, from the observed ones" in str(alone.verdict)
