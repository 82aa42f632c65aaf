"""Charts as matplotlib figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from censcore.evaluation.report.charts import MARKERS, Bars, Chart, Intervals, Line, Look, Panel
from censcore.evaluation.report.style import PALETTE, new_figure, styled
from censcore.plain_text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT, SMALL_HEIGHT, WIDE = 6.0, 4.0, 2.1, 10.0  # inches: but for the wide ones, readable on a phone
LEGEND_LINE = 0.22  # inches
LETTERS = 78  # of the legend in the width of a figure
SIGNS = dict(zip(MARKERS, "os^DvPX", strict=True))  # of markers, as matplotlib writes them


def figure_of(chart: Chart) -> Figure:
    """The chart as a figure; its height grows with panels, rows and the legend."""
    panels = chart.panels
    columns = min(2, len(panels)) if chart.small or len(panels) > 1 else 1
    rows = -(-len(panels) // columns)
    beside = _columns_of(chart)
    above = LEGEND_LINE * -(-len(chart.legend) // beside)
    if panels[0].rows and len(panels) == 1:
        height = 1.4 + sum(len(p.rows) * (0.2 + 0.14 * p.row_height) for p in panels)
    else:
        height = 0.7 + SMALL_HEIGHT * rows if chart.small else (HEIGHT if columns == 1 else 3.4) * rows
    width = WIDE if chart.wide else WIDTH
    letters = int(LETTERS * width / WIDTH)
    with styled(grid=True):
        figure = new_figure(width, height + above)
        grid = figure.subplots(rows, columns, squeeze=False, sharex=chart.small, sharey=chart.small)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for panel, axes in zip(panels, grid.flat, strict=False):
            _panel(axes, panel, letters // columns - 8, 0.6 / max(len(chart.legend), 5))
        if chart.legend:
            from matplotlib.lines import Line2D

            handles = [
                Line2D([], [], label=label_of(name, LETTERS - 20), ms=5, marker=SIGNS[look.marker],
                       **line_style(look)) for name, look in chart.legend.items()
            ]  # fmt: skip
            place = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "borderaxespad": 0.2}
            if any(panel.title for panel in panels):  # which stands where the legend would
                figure.legend(handles=handles, ncols=letters * beside // LETTERS, loc="outside lower left")
            else:
                grid[0, 0].legend(handles=handles, ncols=beside, **place)
        figure.suptitle(label_of(chart.title), x=0.01, ha="left", fontsize=11.5, fontweight="bold")
        return figure


def _columns_of(chart: Chart) -> int:
    """How many names of the legend have room beside each other."""
    longest = max((len(_short(name, LETTERS - 20)) for name in chart.legend), default=1)
    return max(1, min(3, len(chart.legend), LETTERS // (longest + 8)))


def _short(name: str, most: int) -> str:
    text = one_line(name)
    return text if len(text) <= most else text[: most - 1] + "…"


def line_style(look: Look) -> dict[str, Any]:
    """Colour and dashes."""
    return {"color": _colour(look), "linestyle": (0, look.dashes) if look.dashes else "-"}


def _colour(look: Look) -> str:
    return PALETTE[look.colour][0]


def label_of(name: str, most: int = LETTERS) -> str:
    """A name in a figure: a dollar would start a formula, and a leading underscore would hide it."""
    text = _short(name, most).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def _panel(axes: Axes, panel: Panel, letters: int, alpha: float) -> None:
    for mark in panel.marks:
        if isinstance(mark, Line):
            _line(axes, mark, alpha)
        elif isinstance(mark, Intervals):
            ends = [np.abs(mark.low - (mark.x if mark.horizontal else mark.y)),
                    np.abs(mark.high - (mark.x if mark.horizontal else mark.y))]  # fmt: skip
            along = {"xerr": ends} if mark.horizontal else {"yerr": ends}
            axes.errorbar(
                mark.x, mark.y, fmt=SIGNS[mark.look.marker], ms=4, lw=1.6, color=_colour(mark.look), **along
            )
        elif isinstance(mark, Bars):
            width = np.diff(mark.edges)
            axes.bar(mark.edges[:-1], mark.heights, 0.92 * width, align="edge", color=_colour(mark.look))
            axes.grid(axis="x", visible=False)
        elif mark.kind == "diagonal":
            axes.axline((0, 0), slope=1, color=PALETTE["grey"][0], lw=1, ls=(0, (4, 2)))
        else:
            draw = axes.axvline if mark.kind == "x" else axes.axhline
            draw(mark.at, color=PALETTE["grey"][0], lw=1, ls=(0, (4, 2)))
    axes.set(xlabel=label_of(panel.xlabel), ylabel=label_of(panel.ylabel))
    if panel.title:
        axes.set_title(label_of(panel.title, letters), fontsize=10)
    if panel.xlim is not None:
        axes.set_xlim(panel.xlim)
    if panel.ylim is not None:
        axes.set_ylim(panel.ylim)
    if panel.rows:
        axes.set_yticks(range(len(panel.rows)), [label_of(row) for row in panel.rows])
        axes.set_ylim(len(panel.rows) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)


def _line(axes: Axes, line: Line, alpha: float) -> None:
    step = "post" if line.steps else None
    if line.low is not None and line.high is not None:
        where = np.isfinite(line.low) & np.isfinite(line.high)
        colour = {"color": _colour(line.look), "alpha": alpha, "lw": 0}
        axes.fill_between(line.x, line.low, line.high, where=where, step=step, **colour)
    style = line_style(line.look) | ({"drawstyle": "steps-post"} if line.steps else {})
    if line.look.colour not in ("grey", "ink") and not line.steps:
        every = max(len(line.x) // 6, 1)
        style |= {
            "marker": SIGNS[line.look.marker],
            "markevery": (line.look.number % every, every),
            "ms": 4.5,
        }
    axes.plot(line.x, line.y, lw=1.8, label=label_of(line.name), **style)
