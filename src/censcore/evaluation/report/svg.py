"""Charts as SVG that takes its colours from the page, so that one figure serves light and dark.

The script of the page reads the values where the pointer rests from the paths and the axes. What belongs to a
model says so by ``data-model``, so that the page can hide it.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import ArrayLike

from censcore.evaluation.report.charts import Bars, Chart, Intervals, Line, Look, Panel, Rule
from censcore.plain_text import html_text, one_line

__all__ = ["chart_html", "swatch"]

WIDTH, HEIGHT = 400, 250  # of the drawing, in units of the text: 12 high, about 6.4 wide
SMALL_WIDTH, SMALL_HEIGHT = 250, 215
LETTER = 6.4
MARKS = 5  # markers along a curve
MANY = 2  # curves, beyond which bands are faint
ROW_TITLE, ROW_MARK = 17.0, 13.0  # heights in a panel of rows

#: Drawn by steps from where a marker is.
SHAPES = {
    "circle": "m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0z",
    "square": "m-3-3h6v6h-6z",
    "triangle": "m0-3.9l3.8 6.9h-7.6z",
    "diamond": "m0-4.3l4.3 4.3-4.3 4.3-4.3-4.3z",
    "down": "m0 3.9l3.8-6.9h-7.6z",
    "plus": "m-1.3-4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z",
    "cross": "m-3.7-2l1.7-1.7 2 2 2-2 1.7 1.7-2 2 2 2-1.7 1.7-2-2-2 2-1.7-1.7 2-2z",
}


def chart_html(chart: Chart, alternative: str) -> str:
    """A legend that wraps where there is no room, and one SVG per panel."""
    legend = "".join(
        f"<li{_of(name)}>{swatch(look)}{html_text(one_line(name))}</li>"
        for name, look in chart.legend.items()
    )
    kind = "panels" + (" small" if chart.small else "") + (" many" if len(chart.legend) > MANY else "")
    panels = "".join(
        _panel(panel, chart, alternative if i == 0 else "") for i, panel in enumerate(chart.panels)
    )
    shown = f"<ul class='legend'>{legend}</ul>" if legend else ""
    return f"{shown}<div class='{kind}'>{panels}</div>"


def _of(name: str) -> str:
    return f" data-model='{html_text(one_line(name))}'"


def swatch(look: Look) -> str:
    """A short line with the marker of a model."""
    return (
        f"<svg class='swatch c-{look.colour}' viewBox='0 0 30 12' width='30' height='12' aria-hidden='true'>"
        f"<path class='line'{_dash(look)} d='M0 6H30'/>"
        f"<path class='mark' d='M15 6{SHAPES[look.marker]}'/></svg>"
    )


def _panel(panel: Panel, chart: Chart, alternative: str) -> str:
    frame = _Frame(panel, chart.small)
    drawn = [_axes(frame), *(_mark(frame, mark) for mark in panel.marks)]
    hidden = (
        f"role='img' aria-label='{html_text(one_line(alternative))}'" if alternative else "aria-hidden='true'"
    )
    box = f"viewBox='0 0 {frame.width:g} {frame.height:g}'"
    ends = (frame.left, frame.right, *frame.xlim, frame.bottom, frame.top, *frame.ylim)
    axes = "" if panel.rows else f" data-axes='{' '.join(f'{end:.6g}' for end in ends)}'"
    title = f"<p class='title'>{html_text(one_line(panel.title))}</p>" if panel.title else ""
    names = {mark.name for mark in panel.marks if not isinstance(mark, Rule)}
    of_one = _of(*names) if chart.small and len(names) == 1 else ""
    return f"<div{of_one}>{title}<svg {hidden} {box}{axes}>{''.join(drawn)}</svg></div>"


class _Frame:
    """Where the axes lie, and how data become positions."""

    def __init__(self, panel: Panel, small: bool) -> None:
        self.panel = panel
        self.width = SMALL_WIDTH if small else WIDTH
        height: float = SMALL_HEIGHT if small else HEIGHT
        if panel.rows:
            height = 62 + len(panel.rows) * panel.row_height * ROW_MARK + len(panel.rows) * ROW_TITLE
        self.height = height
        self.xlim, self.ylim = panel.xlim or _limits(panel, "x"), panel.ylim or _limits(panel, "y")
        self.xticks = nice_ticks(*self.xlim, 4 if small else 6)
        self.yticks = [] if panel.rows else nice_ticks(*self.ylim, 5)
        longest = max([len(_number(t)) for t in self.yticks] or [1])
        self.left = 8 + LETTER * longest + 6 if not panel.rows else 10
        self.right = self.width - 12
        self.top = 28 if panel.ylabel else 12
        self.bottom = height - 38

    def x(self, value: ArrayLike) -> np.ndarray:
        a, b = self.xlim
        return self.left + (np.asarray(value, float) - a) / (b - a) * (self.right - self.left)

    def y(self, value: ArrayLike) -> np.ndarray:
        if self.panel.rows:  # the title of a row, then its marks
            each = (self.bottom - self.top) / len(self.panel.rows)
            row = np.floor(np.asarray(value, float) + 0.5)
            within = np.asarray(value, float) + 0.5 - row
            return self.top + row * each + ROW_TITLE + within * (each - ROW_TITLE)
        a, b = self.ylim
        return self.bottom - (np.asarray(value, float) - a) / (b - a) * (self.bottom - self.top)


def _limits(panel: Panel, axis: str) -> tuple[float, float]:
    """From the smallest to the largest that is drawn, with some room."""
    values = []
    for mark in panel.marks:
        if isinstance(mark, Bars):
            values.append(mark.edges if axis == "x" else np.append(mark.heights, 0.0))
        elif isinstance(mark, Rule):
            values.append(np.array([mark.at]) if mark.kind == axis else np.array([]))
        else:
            along = axis == "x" if isinstance(mark, Intervals) and mark.horizontal else axis == "y"
            own = mark.x if axis == "x" else mark.y
            ends = (mark.low, mark.high) if along else ()
            values += [own, *(end for end in ends if end is not None)]
    known = np.concatenate([np.ravel(v) for v in values]) if values else np.array([])
    known = known[np.isfinite(known)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    room = 0.04 * (high - low) or 0.1 * abs(high) or 1.0
    return (0.0 if low >= 0 and low < 0.4 * high and axis == "y" else low - room), high + room


def nice_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between two ends.

    Examples
    --------
    >>> from censcore.evaluation.report.svg import nice_ticks
    >>> nice_ticks(0.0, 0.23, 5)
    [0.0, 0.05, 0.1, 0.15, 0.2]
    """
    rough = (high - low) / most
    if not np.isfinite(rough) or rough <= 0:
        return [low]
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * (1 - 1e-9))
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [float(f"{k * step:.10g}") for k in range(first, last + 1)]


def _number(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")


def _axes(frame: _Frame) -> str:
    parts, panel = [], frame.panel
    for t in frame.yticks:
        y = frame.y(t)
        parts.append(f"<path class='grid' d='M{frame.left:.1f} {y:.1f}H{frame.right:.1f}'/>")
        label = _number(t)
        parts.append(f"<text x='{frame.left - 6:.1f}' y='{y + 4:.1f}' text-anchor='end'>{label}</text>")
    for t in frame.xticks:
        x = frame.x(t)
        if panel.rows:
            parts.append(f"<path class='grid' d='M{x:.1f} {frame.top:.1f}V{frame.bottom:.1f}'/>")
        label = _number(t)
        parts.append(f"<text x='{x:.1f}' y='{frame.bottom + 15:.1f}' text-anchor='middle'>{label}</text>")
        parts.append(f"<path class='axis' d='M{x:.1f} {frame.bottom:.1f}v4'/>")
    parts.append(f"<path class='axis' d='M{frame.left:.1f} {frame.bottom:.1f}H{frame.right:.1f}'/>")
    at = f"x='{(frame.left + frame.right) / 2:.1f}' y='{frame.height - 6:.1f}'"
    parts.append(f"<text {at} text-anchor='middle'>{html_text(one_line(panel.xlabel))}</text>")
    if panel.ylabel:
        parts.append(
            f"<text class='faded' x='4' y='{frame.top - 13:.1f}'>{html_text(one_line(panel.ylabel))}</text>"
        )
    for j, name in enumerate(panel.rows):
        at = f"x='{frame.left + 2:.1f}' y='{float(frame.y(j - 0.5)) - 5:.1f}'"
        parts.append(f"<text {at}{_of(name)}>{html_text(one_line(name))}</text>")
    return "".join(parts)


def _mark(frame: _Frame, mark: Line | Intervals | Bars | Rule) -> str:
    if isinstance(mark, Line):
        return _line(frame, mark)
    if isinstance(mark, Intervals):
        return _intervals(frame, mark)
    if isinstance(mark, Bars):
        return _bars(frame, mark)
    if mark.kind == "diagonal":
        low = max(frame.xlim[0], frame.ylim[0])
        high = min(frame.xlim[1], frame.ylim[1])
        ends = f"M{frame.x(low):.1f} {frame.y(low):.1f}L{frame.x(high):.1f} {frame.y(high):.1f}"
    elif mark.kind == "x":
        ends = f"M{frame.x(mark.at):.1f} {frame.top:.1f}V{frame.bottom:.1f}"
    else:
        ends = f"M{frame.left:.1f} {frame.y(mark.at):.1f}H{frame.right:.1f}"
    return f"<path class='rule' d='{ends}'/>"


def _line(frame: _Frame, line: Line) -> str:
    x, y = _stepped(line.x, line.y) if line.steps else (line.x, line.y)
    parts = []
    if line.low is not None and line.high is not None:
        for some in _runs(np.isfinite(line.low) & np.isfinite(line.high)):
            sides = ((line.x[some], side[some]) for side in (line.high, line.low))
            (xs, high), (_, low) = (_stepped(*side) if line.steps else side for side in sides)
            around = _path(frame, np.append(xs, xs[::-1]), np.append(high, low[::-1]))
            parts.append(f"<path class='band' d='{around}Z'/>")
    for some in _runs(np.isfinite(y)):
        parts.append(f"<path class='line'{_dash(line.look)} d='{_path(frame, x[some], y[some])}'/>")
    parts = [f"<title>{html_text(one_line(line.name))}</title>", _inside(frame, "".join(parts))]
    if line.look.colour not in ("ink", "grey") and not line.steps:
        every = max(len(line.x) // MARKS, 1)
        marked = np.arange((3 * line.look.number + every // 2) % every, len(line.x), every)
        marked = marked[(line.y[marked] >= frame.ylim[0]) & (line.y[marked] <= frame.ylim[1])]
        parts.append(_points(frame, line.x[marked], line.y[marked], line.look))
    return f"<g class='c-{line.look.colour} curve'{_of(line.name)}>{''.join(parts)}</g>"


def _intervals(frame: _Frame, mark: Intervals) -> str:
    parts = []
    for x, y, low, high in zip(mark.x, mark.y, mark.low, mark.high, strict=True):
        if not np.isfinite(x + y):
            continue
        if np.isfinite(low + high):
            a, b = (frame.x(low), frame.x(high)) if mark.horizontal else (frame.y(low), frame.y(high))
            ends = (
                f"M{a:.1f} {frame.y(y):.1f}H{b:.1f}"
                if mark.horizontal
                else f"M{frame.x(x):.1f} {a:.1f}V{b:.1f}"
            )
            parts.append(f"<path class='line' d='{ends}'/>")
        told = _value(mark.name, np.nan if mark.horizontal else x, x if mark.horizontal else y, low, high)
        parts.append(_points(frame, [x], [y], mark.look, told))
    return f"<g class='c-{mark.look.colour}'{_of(mark.name)}>{''.join(parts)}</g>"


def _bars(frame: _Frame, mark: Bars) -> str:
    parts = []
    for a, b, height in zip(mark.edges[:-1], mark.edges[1:], mark.heights, strict=True):
        left, right, top, base = frame.x(a) + 0.7, frame.x(b) - 0.7, frame.y(height), frame.y(0.0)
        told = html_text(one_line(f"{mark.name}, {a:.3g} to {b:.3g}: {height:.4g}"))
        parts.append(
            f"<rect class='bar' x='{left:.1f}' y='{top:.1f}' width='{max(right - left, 0.5):.1f}' "
            f"height='{max(float(base - top), 0.0):.1f}'><title>{told}</title></rect>"
        )
    return f"<g class='c-{mark.look.colour}'>{''.join(parts)}</g>"


def _points(frame: _Frame, x: ArrayLike, y: ArrayLike, look: Look, value: str = "") -> str:
    """Markers as one path."""
    shape, title = SHAPES[look.marker], f"<title>{html_text(value)}</title>" if value else ""
    at = "".join(f"M{a:.1f} {b:.1f}{shape}" for a, b in zip(frame.x(x), frame.y(y), strict=True))
    return f"<path class='mark' d='{at}'>{title}</path>"


def _value(name: str, x: float, y: float, low: float, high: float) -> str:
    at = "" if np.isnan(x) else f" at {x:.4g}"
    interval = f" ({low:.4g} to {high:.4g})" if np.isfinite(low + high) else ""
    return one_line(f"{name}{at}: {y:.4g}{interval}")


def _dash(look: Look) -> str:
    return f" stroke-dasharray='{' '.join(f'{d:g}' for d in look.dashes)}'" if look.dashes else ""


def _path(frame: _Frame, x: np.ndarray, y: np.ndarray) -> str:
    """In tenths of a unit, from the first point on by differences: half as many letters."""
    at = np.rint(10 * np.column_stack([frame.x(x), frame.y(y)])) / 10
    steps = " ".join(f"{step:.1f}".removesuffix(".0") for step in np.diff(at, axis=0).ravel())
    return f"M{at[0, 0]:.1f} {at[0, 1]:.1f}l" + re.sub(r"\b0\.", ".", steps).replace(" -", "-")


def _inside(frame: _Frame, drawn: str) -> str:
    """What leaves the axes is not shown."""
    width, height = frame.right - frame.left, frame.bottom - frame.top
    return (
        f"<svg x='{frame.left:.1f}' y='{frame.top:.1f}' width='{width:.1f}' height='{height:.1f}'>"
        f"<g transform='translate({-frame.left:.1f} {-frame.top:.1f})'>{drawn}</g></svg>"
    )


def _stepped(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def _runs(known: np.ndarray) -> list[slice]:
    """Stretches of two or more true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    return [slice(a, b) for a, b in edges.reshape(-1, 2) if b - a >= 2]
