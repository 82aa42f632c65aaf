"""Decision trees and flow charts as SVG that takes the colours of the theme (class .tree of censcore.css)."""

from __future__ import annotations

import math
from html import escape

from kit import picture

WIDTH, STEP = 760, 112
QUESTION, ANSWER = (20, 270, 64), (440, 300, 56)  # left edge, width, height


def _box(kind: str, left: float, top: float, width: float, height: float, lines: list[str]) -> str:
    parts = [f'<rect class="{kind}" x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="8"/>']
    first = top + height / 2 - 9 * (len(lines) - 1) + 5
    for i, line in enumerate(lines):
        bold = ' class="first"' if kind == "answer" and i == 0 else ""
        parts.append(f'<text x="{left + width / 2:g}" y="{first + 18 * i:g}"{bold}>{escape(line)}</text>')
    return "\n".join(parts)


def _arrow(x0: float, y0: float, x1: float, y1: float, label: str = "", beside: bool = False) -> str:
    angle = math.atan2(y1 - y0, x1 - x0)
    wings = [(x1 - 9 * math.cos(angle + turn), y1 - 9 * math.sin(angle + turn)) for turn in (0.4, -0.4)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(x1, y1), *wings])
    text = ""
    if label:
        x, y, anchor = (
            (x0 + 7, (y0 + y1) / 2 + 4, "start") if beside else ((x0 + x1) / 2, (y0 + y1) / 2 - 7, "middle")
        )
        text = (
            f'\n<text class="label" style="text-anchor:{anchor}" x="{x:g}" y="{y:g}">{escape(label)}</text>'
        )
    return f'<path d="M{x0:g} {y0:g}L{x1:g} {y1:g}"/>\n<polygon points="{points}"/>{text}'


def tree(about: str, steps: list[tuple[list[str], str, list[str], str]], last: list[str]) -> str:
    """Questions from top to bottom, each with one answer to the right and one way down, and a last answer."""
    left, width, height = QUESTION
    right, wide, high = ANSWER
    parts = []
    for i, (question, turn, answer, down) in enumerate(steps):
        top, middle = 16 + STEP * i, 16 + STEP * i + height / 2
        parts.append(_box("question", left, top, width, height, question))
        parts.append(_box("answer", right, middle - high / 2, wide, high, answer))
        parts.append(_arrow(left + width, middle, right - 2, middle, turn))
        parts.append(
            _arrow(left + width / 2, top + height, left + width / 2, top + STEP - 2, down, beside=True)
        )
    end = 16 + STEP * len(steps)
    parts.append(_box("answer", left, end, width, high, last))
    return _svg(about, end + high + 16, parts)


def _svg(about: str, height: float, parts: list[str]) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(about)}" xmlns="http://www.w3.org/2000/svg">'
    return "\n".join([f'<figure class="tree">{head}', *parts, "</svg></figure>", ""])


@picture
def censoring_tree() -> str:
    return tree(
        "Decision tree from what is known about censoring to the censoring distribution to pass",
        [
            (["Is anybody censored?"], "no", ["nothing to pass", "the scores are the ordinary ones"], "yes"),
            (
                ["Is C known for every subject,", "also for those with an event?"],
                "yes",
                ["censoring_time=c in the outcome", "no distribution has to be estimated"],
                "no, the usual case",
            ),
            (
                ["Do subjects leave because they", "feel worse, beyond covariates?"],
                "yes",
                ["no distribution is right", "page: When an assumption fails"],
                "no",
            ),
            (
                ["Does censoring depend on", "covariates? (design, diagnostic)"],
                "yes",
                ["Censoring(CoxRegression())", "groups: KaplanMeier(stratify=...)"],
                "no",
            ),
        ],
        ["Censoring(KaplanMeier())"],
    )


@picture
def command_line() -> str:
    parts = [
        _box("question", 20, 16, 220, 56, ["test.csv", "outcomes and forecasts"]),
        _box("question", 20, 96, 220, 56, ["train.csv", "outcomes of other subjects"]),
        _box("answer", 300, 24, 190, 48, ["censcore compare"]),
        _box("answer", 300, 104, 190, 48, ["censcore score"]),
        _box("question", 550, 16, 190, 56, ["verdict and table", "report.html, numbers.json"]),
        _box("question", 550, 96, 190, 56, ["losses.csv", "one loss per subject"]),
        _arrow(240, 44, 298, 46),
        _arrow(240, 52, 298, 122),
        _arrow(240, 118, 298, 58),
        _arrow(240, 126, 298, 130),
        _arrow(490, 47, 548, 44),
        _arrow(490, 128, 548, 126),
    ]
    return _svg("From files of outcomes and forecasts to a verdict, a page and losses", 168, parts)
