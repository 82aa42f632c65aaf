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

WIDTH, HEIGHT = 400, 250  # of the drawing, in units of the text: 12 high, about 6.4 wide
SMALL_WIDTH, SMALL_HEIGHT = 250, 215
LETTER = 6.4
MARKS = 5  # markers along a curve
ROOM = 4  # for markers at the ends of axes
CLOSE = 0.45  # what a curve may miss, where points of it are left out
MANY = 2  # curves, beyond which bands are faint
ROW_TITLE, ROW_MARK = 17.0, 13.0  # heights in a panel of rows

#: Drawn by steps from where a marker is.
SHAPES = {
    "circle": "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "square": "m-3-3h6v6h-6z",
    "triangle": "m0-4l4 7h-8z",
    "diamond": "m0-4l4 4-4 4-4-4z",
    "down": "m0 4l4-7h-8z",
    "plus": "m-1-4h2v3h3v2h-3v3h-2v-3h-3v-2h3z",
    "cross": "m-4-2l2-2 2 2 2-2 2 2-2 2 2 2-2 2-2-2-2 2-2-2 2-2z",
}


def chart_html(chart: Chart) -> str:
    """A legend that wraps where there is no room, and one SVG per panel."""
    legend = "".join(
        f"<li{_of(name)}>{swatch(look)}{html_text(one_line(name))}</li>"
        for name, look in chart.legend.items()
    )
    kind = "panels" + (" small" if chart.small else "") + (" many" if len(chart.legend) > MANY else "")
    panels = "".join(_panel(panel, chart, first=i == 0) for i, panel in enumerate(chart.panels))
    shown = f"<ul class='legend'>{legend}</ul>" if legend else ""
    return f"{shown}<div class='{kind}'>{panels}</div>"


def _of(name: str) -> str:
    return f" data-model='{html_text(one_line(name))}'"


def swatch(look: Look) -> str:
    """A short line with the marker of a model."""
    return (
        f"<svg class='swatch c-{look.colour}' aria-hidden='true'><path{_dash(look)} d='M0 6H30'/>"
        f"<path d='M15 6{SHAPES[look.marker]}'/></svg>"
    )


def _panel(panel: Panel, chart: Chart, first: bool) -> str:
    frame = _Frame(panel, chart.small)
    bends = _bends(frame, [mark for mark in panel.marks if isinstance(mark, Line) and not mark.steps])
    marks = "".join(
        _line(frame, mark, chart.small, bends.get(mark)) if isinstance(mark, Line) else _mark(frame, mark)
        for mark in panel.marks
    )
    drawn = [_axes(frame), _inside(frame, marks)]
    label = html_text(f"{one_line(chart.title)}. The numbers are in the tables of this page.")
    role = f"role='img' aria-label='{label}'" if first else "aria-hidden='true'"
    box = f"viewBox='0 0 {frame.width:g} {frame.height:g}'"
    ends = (frame.left, frame.right, *frame.xlim, frame.bottom, frame.top, *frame.ylim)
    axes = "" if panel.rows else f" data-axes='{' '.join(f'{end:.6g}' for end in ends)}'"
    title = f"<p class='title'>{html_text(one_line(panel.title))}</p>" if panel.title else ""
    names = {mark.name for mark in panel.marks if not isinstance(mark, Rule)}
    of_one = _of(*names) if chart.small and len(names) == 1 else ""
    return f"<div{of_one}>{title}<svg {role} {box}{axes}>{''.join(drawn)}</svg></div>"


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
    panel, at = frame.panel, frame.y(frame.yticks)
    ticks, left, right = frame.x(frame.xticks), f"{frame.left:.4g}", f"{frame.right:.4g}"
    grid = [f"M{left} {y:.4g}H{right}" for y in at]
    grid += [f"M{x:.4g} {frame.top}V{frame.bottom:.4g}" for x in ticks] if panel.rows else []
    axis = f"M{left} {frame.bottom:.4g}H{right}" + "".join(f"M{x:.4g} {frame.bottom:.4g}v4" for x in ticks)
    middle = [(x, frame.bottom + 15, _number(t)) for x, t in zip(ticks, frame.xticks, strict=True)]
    middle.append(((frame.left + frame.right) / 2, frame.height - 6, panel.xlabel))
    ends = [(frame.left - 6, y + 4, _number(t)) for y, t in zip(at, frame.yticks, strict=True)]
    parts = [f"<path class='grid' d='{''.join(grid)}'/><path class='axis' d='{axis}'/>"]
    parts += [f"<g class='{side}'>{''.join(_text(*text) for text in texts)}</g>"
              for side, texts in (("ends", ends), ("middle", middle)) if texts]  # fmt: skip
    if panel.ylabel:
        parts.append(_text(4, frame.top - 13, panel.ylabel, " class='faded'"))
    parts += [_text(frame.left + 2, float(frame.y(j - 0.5)) - 5, name, _of(name))
              for j, name in enumerate(panel.rows)]  # fmt: skip
    return "".join(parts)


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f"<text x='{x:.4g}' y='{y:.4g}'{attributes}>{html_text(one_line(text))}</text>"


def _mark(frame: _Frame, mark: Intervals | Bars | Rule) -> str:
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


def _line(frame: _Frame, line: Line, small: bool, needed: np.ndarray | None) -> str:
    x, *sides = line.x, *(side for side in (line.y, line.high, line.low) if side is not None)
    if needed is None:  # a curve of steps
        x, *sides = np.repeat(x, 2)[1:], *(np.repeat(side, 2)[:-1] for side in sides)
    else:
        x, *sides = x[needed], *(side[needed] for side in sides)
    y, *band = sides
    parts = []
    for run in _runs(np.isfinite(band[0] + band[1])) if band else ():
        around = np.append(band[0][run], band[1][run][::-1])
        parts.append(f"<path class='band' d='{_path(frame, np.append(x[run], x[run][::-1]), around)}Z'/>")
    for run in _runs(np.isfinite(y)):
        parts.append(f"<path class='line'{_dash(line.look)} d='{_path(frame, x[run], y[run])}'/>")
    if line.look.colour not in ("ink", "grey") and not line.steps and not small:
        every = max(len(line.x) // MARKS, 1)
        marked = np.arange((3 * line.look.number + every // 2) % every, len(line.x), every)
        marked = marked[(line.y[marked] >= frame.ylim[0]) & (line.y[marked] <= frame.ylim[1])]
        parts.append(_points(frame, line.x[marked], line.y[marked], line.look))
    return f"<g class='c-{line.look.colour} curve'{_of(line.name)}>{''.join(parts)}</g>"


def _bends(frame: _Frame, curves: list[Line]) -> dict[Line, np.ndarray]:
    """Places of the points that each curve needs: straight lines between them miss none by ``CLOSE``."""
    if not curves:
        return {}
    x, y, high, low = (
        np.concatenate([np.full(len(curve.x), np.nan) if (side := getattr(curve, name)) is None else side
                        for curve in curves]) for name in ("x", "y", "high", "low")
    )  # fmt: skip
    x, sides, everywhere = frame.x(x), frame.y(np.stack([y, high, low])), np.arange(len(x))
    ends = np.cumsum([len(curve.x) for curve in curves])
    known = np.isfinite(sides + x)
    edges = np.flatnonzero((known[:, 1:] != known[:, :-1]).any(axis=0))
    # where a curve or its band begins or ends
    needed = np.unique([0, *ends[:-1], *(ends - 1), *edges, *(edges + 1)])
    while len(needed) > 1:  # in every piece between them, the farthest point is needed as well
        piece = np.minimum(np.searchsorted(needed, everywhere, side="right"), len(needed) - 1) - 1
        a, b = needed[piece], needed[piece + 1]
        with np.errstate(invalid="ignore"):
            width = x[b] - x[a]
            share = np.where(width > 0, x - x[a], 0.0) / np.where(width > 0, width, 1.0)
            missed = np.abs(sides - (sides[:, a] + share * (sides[:, b] - sides[:, a])))
        missed[1:] /= 2  # ends of bands
        missed = np.fmax.reduce(missed, axis=0)
        missed[needed] = 0.0
        farthest = np.fmax.reduceat(missed, needed[:-1])[piece]
        far = np.flatnonzero((missed > CLOSE) & (missed == farthest))
        if not len(far):
            break
        first = np.diff(piece[far], prepend=-1) > 0  # of the farthest points of a piece
        needed = np.sort(np.append(needed, far[first]))
    of_curves = np.split(needed, np.searchsorted(needed, ends[:-1]))
    return {curve: of - of[0] for curve, of in zip(curves, of_curves, strict=True)}


def _intervals(frame: _Frame, mark: Intervals) -> str:
    """Points with their intervals; those in rows, which have no axis, show their values."""
    known = np.isfinite(mark.x + mark.y)
    x, y, low, high = (values[known] for values in (mark.x, mark.y, mark.low, mark.high))
    at, place = (frame.y(y), frame.x) if mark.horizontal else (frame.x(x), frame.y)
    along = "M{1:.1f} {0:.1f}H{2:.1f}" if mark.horizontal else "M{0:.1f} {1:.1f}V{2:.1f}"
    ends = zip(at, place(low), place(high), strict=True)
    drawn = "".join(along.format(*each) for each in ends if np.isfinite(each).all())
    parts = [f"<path class='line' d='{drawn}'/>"] if drawn else []
    if not mark.horizontal:
        parts.append(_points(frame, x, y, mark.look))
    for i, j, a, b in zip(x, y, low, high, strict=True) if mark.horizontal else ():
        interval = f" ({a:.3g} to {b:.3g})" if np.isfinite(a + b) else ""
        parts.append(_points(frame, [i], [j], mark.look, one_line(f"{mark.name}: {i:.3g}{interval}")))
    kind = "" if mark.horizontal else " points"
    return f"<g class='c-{mark.look.colour}{kind}'{_of(mark.name)}>{''.join(parts)}</g>"


def _bars(frame: _Frame, mark: Bars) -> str:
    parts, base = [], float(frame.y(0.0))
    for a, b, height in zip(mark.edges[:-1], mark.edges[1:], mark.heights, strict=True):
        left, width = float(frame.x(a)) + 0.7, max(float(frame.x(b) - frame.x(a)) - 1.4, 0.5)
        title = f"<title>{a:.3g} to {b:.3g}: {height:.4g}</title>"
        drawn = f"M{left:.4g} {base:.4g}V{min(float(frame.y(height)), base):.4g}h{width:.4g}V{base:.4g}z"
        parts.append(f"<path class='bar' d='{drawn}'>{title}</path>")
    return f"<g class='c-{mark.look.colour}'>{''.join(parts)}</g>"


def _points(frame: _Frame, x: ArrayLike, y: ArrayLike, look: Look, value: str = "") -> str:
    """Markers as one path."""
    at = "".join(
        f"M{a:.1f} {b:.1f}{SHAPES[look.marker]}" for a, b in zip(frame.x(x), frame.y(y), strict=True)
    )
    return f"<path class='mark' d='{at}'" + (f"><title>{html_text(value)}</title></path>" if value else "/>")


def _dash(look: Look) -> str:
    return f" stroke-dasharray='{' '.join(f'{d:g}' for d in look.dashes)}'" if look.dashes else ""


def _path(frame: _Frame, x: np.ndarray, y: np.ndarray) -> str:
    """In tenths of a unit, from the first point on by differences: half as many letters."""
    at = np.rint(10 * np.column_stack([frame.x(x), frame.y(y)])) / 10
    steps = np.diff(at, axis=0).ravel().tolist()
    text = ("%.1f " * len(steps) % tuple(steps)).replace(".0 ", " ").rstrip()
    return f"M{at[0, 0]:.1f} {at[0, 1]:.1f}l" + re.sub(r"\b0\.", ".", text).replace(" -", "-")


def _inside(frame: _Frame, drawn: str) -> str:
    """What leaves the axes, by more than a marker, is not shown."""
    left, top = frame.left - ROOM, frame.top - ROOM
    width, height = frame.right - left + ROOM, frame.bottom - top + ROOM
    return (
        f"<svg x='{left:.1f}' y='{top:.1f}' width='{width:.1f}' height='{height:.1f}'>"
        f"<g transform='translate({-left:.1f} {-top:.1f})'>{drawn}</g></svg>"
    )


def _runs(known: np.ndarray) -> list[slice]:
    """Stretches of two or more true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    return [slice(a, b) for a, b in edges.reshape(-1, 2) if b - a >= 2]
