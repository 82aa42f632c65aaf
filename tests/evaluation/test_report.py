from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import censcore as cs

pytest.importorskip("matplotlib")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in BROWSERS if (found := shutil.which(name))), None)
VOID = {"meta", "img", "br", "link", "input"}


@pytest.fixture(scope="module")
def html(split) -> str:
    names = {"cox & <friends>": split.forecasts["cox"], "weibull": split.forecasts["weibull"]}
    comparison = cs.compare(
        names, split.y, cs.Censoring(cs.KaplanMeier()), X=split.x, train=split.train,
        scores=["log_score", "crps", "brier_score"], by={"sign": np.sign(split.x[:, 1])},
    )  # fmt: skip
    return comparison.to_html(title="Two forecasts & a reference")


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
    assert not re.findall(r"(?:src|href)='(?!data:|#)", html)
    assert "<script" not in html
    assert "@import" not in html
    assert len(html) < 1_500_000


def test_the_page_speaks_to_screen_readers(html):
    tags = Tags(html)
    assert tags.all("html")[0]["lang"] == "en"
    assert all(len(image["alt"]) > 40 for image in tags.all("img"))
    assert len(tags.all("caption")) == len(tags.all("table")) >= 4
    assert all("scope" in header for header in tags.all("th"))
    regions = [div for div in tags.all("div") if div.get("role") == "region"]
    assert all(div["aria-label"] and div["tabindex"] == "0" for div in regions)
    levels = [int(tag[1]) for tag, _ in tags.found if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert set(levels[1:]) == {2}


def test_the_page_is_reproducible_and_says_its_settings(html, split):
    assert "Kaplan-Meier, fitted to the training subjects" in html
    assert "has the smallest mean CRPS" in html
    assert "Not available for" in html


def contrast(a: str, b: str) -> float:
    """Of two colours, as WCAG defines it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_has_contrast(html):
    colours = dict(re.findall(r"--(\w+): (#\w{6})", html))
    for name in ("ink", "soft", "best"):
        assert contrast(colours[name], "#ffffff") >= 4.5
        assert contrast(colours[name], colours["shade"]) >= 4.5


MEASURE = """<script>addEventListener('load', () => {
  const all = what => [...document.querySelectorAll(what)];
  parent.postMessage(JSON.stringify({
    wide: all('main > *, figure, p').filter(e => e.getBoundingClientRect().right > innerWidth + 1).length,
    broken: all('img').filter(i => !i.naturalWidth).length,
    small: all('p, td, th, li').filter(e => parseFloat(getComputedStyle(e).fontSize) < 12).length,
    images: document.images.length, scroll: document.documentElement.scrollWidth, inner: innerWidth,
  }), '*');
});</script>"""
# a window is never as narrow as a phone, a frame is
FRAME = """<!doctype html><title>waiting</title>
<script>addEventListener('message', message => { document.title = message.data; });</script>
<iframe src="page.html" style="width: WIDTHpx; height: 800px; border: 0"></iframe>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_in_a_real_browser(html, tmp_path: Path, width: int):
    """Nothing but tables scrolls sideways, pictures load, text is not tiny."""
    (tmp_path / "page.html").write_text(html.replace("</body>", MEASURE + "</body>"), encoding="utf-8")
    (tmp_path / "frame.html").write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    options += ["--window-size=1400,1000", "--virtual-time-budget=10000", "--dump-dom"]
    command = [CHROMIUM, *options, (tmp_path / "frame.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(\{.*?\})</title>", done.stdout)
    assert title is not None
    found = json.loads(title[1])
    assert found["inner"] == width
    assert found["scroll"] <= width
    assert {name: found[name] for name in ("wide", "broken", "small")} == {"wide": 0, "broken": 0, "small": 0}
    assert found["images"] == 6
