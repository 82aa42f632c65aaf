"""Charts as matplotlib figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from censcore.evaluation.report.charts import MARKERS, Bars, Chart, Intervals, Line, Look, Panel, Rule
from censcore.evaluation.report.style import PALETTE, new_figure, styled
from censcore.plain_text import html_text, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT, SMALL_HEIGHT, WIDE = 6.0, 4.0, 2.1, 10.0  # inches: but for the wide ones, readable on a phone
GREY_DASHES: dict[str, Any] = {"color": PALETTE["grey"][0], "lw": 1, "ls": (0, (4, 2))}
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
            draw_panel(axes, panel, letters=letters // columns - 8, alpha=band_alpha(chart))
        if chart.legend:
            from matplotlib.lines import Line2D

            handles = [
                Line2D([], [], label=label_of(name, LETTERS - 20), **key_style(look))
                for name, look in chart.legend.items()
            ]  # fmt: skip
            place = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "borderaxespad": 0.2}
            if any(panel.title for panel in panels):  # which stands where the legend would
                figure.legend(handles=handles, ncols=letters * beside // LETTERS, loc="outside lower left")
            else:
                grid[0, 0].legend(handles=handles, ncols=beside, **place)
        figure.suptitle(label_of(chart.title), x=0.01, ha="left", fontsize=11.5, fontweight="bold")
        return figure


def band_alpha(chart: Chart) -> float:
    """Return the opacity of bands, which is smaller where there are many."""
    return 0.6 / max(len(chart.legend), 5)


def _columns_of(chart: Chart) -> int:
    """How many names of the legend have room beside each other."""
    longest = max((len(_short(name, LETTERS - 20)) for name in chart.legend), default=1)
    return max(1, min(3, len(chart.legend), LETTERS // (longest + 8)))


def _short(name: str, most: int) -> str:
    text = one_line(name)
    return text if len(text) <= most else text[: most - 1] + "…"


def line_style(look: Look) -> dict[str, Any]:
    """Return colour and dashes as matplotlib takes them."""
    return {"color": _colour(look), "linestyle": (0, look.dashes) if look.dashes else "-"}


def key_style(look: Look) -> dict[str, Any]:
    """Return the style of a line of the legend."""
    return {"marker": SIGNS[look.marker], "ms": 5, **line_style(look)}


def _colour(look: Look) -> str:
    return PALETTE[look.colour][0]


def label_of(name: str, most: int = LETTERS) -> str:
    """A name in a figure: a dollar would start a formula, and a leading underscore would hide it."""
    text = _short(name, most).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


class Tags:
    """What a page knows of the parts of a figure: classes and data by the id that matplotlib writes."""

    def __init__(self) -> None:
        self.attributes: dict[str, str] = {}

    def __call__(self, kind: str, model: str = "", tip: str = "") -> str:
        """Return the id of a part, of a model and with a text that is shown where the pointer rests."""
        gid, known = f"part {len(self.attributes)}", {"class": kind, "data-model": model, "data-tip": tip}
        self.attributes[gid] = "".join(
            f" {name}='{html_text(one_line(text))}'" for name, text in known.items() if text
        )
        return gid


def draw_panel(
    axes: Axes,
    panel: Panel,
    *,
    letters: int = LETTERS,
    alpha: float,
    tags: Tags | None = None,
    names_inside: bool = False,
) -> None:
    """Draw the marks of a panel with its labels, limits and rows.

    Parameters
    ----------
    axes : matplotlib axes
        Where to draw.
    panel : Panel
        What to draw.
    letters : int
        How long the title may be.
    alpha : float
        Opacity of bands.
    tags : Tags, optional
        Collects what a page should know of the parts.
    names_inside : bool
        Write the names of rows above their marks, not beside the axis.
    """
    tag = tags or (lambda *_: None)
    for mark in panel.marks:
        if isinstance(mark, Line):
            _line(axes, mark, alpha, tag)
        elif isinstance(mark, Intervals):
            _intervals(axes, mark, tag)
        elif isinstance(mark, Bars):
            _bars(axes, mark, tag)
        else:
            _rule(axes, mark)
    axes.set(xlabel=label_of(panel.xlabel), ylabel=label_of(panel.ylabel), xlim=panel.xlim, ylim=panel.ylim)
    if panel.title:
        axes.set_title(label_of(panel.title, letters), fontsize=10)
    if panel.rows:
        _rows(axes, panel, tag, names_inside)


def _rows(axes: Axes, panel: Panel, tag: Any, names_inside: bool) -> None:
    names = [label_of(row) for row in panel.rows]
    axes.set_yticks(range(len(names)), [] if names_inside else names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    if names_inside:
        axes.tick_params(axis="y", length=0)
        for j, name in enumerate(names):
            place = {"xytext": (2, -3), "textcoords": "offset points", "va": "top", "annotation_clip": False}
            axes.annotate(
                name,
                (0, j - 0.5),
                xycoords=axes.get_yaxis_transform(),
                gid=tag("name", panel.rows[j]),
                **place,
            )


def _rule(axes: Axes, rule: Rule) -> None:
    if rule.kind == "diagonal":
        axes.axline((0, 0), slope=1, **GREY_DASHES)
    else:
        draw = axes.axvline if rule.kind == "x" else axes.axhline
        draw(rule.at, **GREY_DASHES)


def _bars(axes: Axes, mark: Bars, tag: Any) -> None:
    for a, b, height in zip(mark.edges[:-1], mark.edges[1:], mark.heights, strict=True):
        gid = tag("bar", "", f"{a:.3g} to {b:.3g}: {height:.4g}")
        axes.bar(a, height, 0.92 * (b - a), align="edge", color=_colour(mark.look), gid=gid)
    axes.grid(axis="x", visible=False)


def _intervals(axes: Axes, mark: Intervals, tag: Any) -> None:
    """Draw points with their intervals, each with its values."""
    style = {"color": _colour(mark.look), "lw": 1.6}
    for x, y, low, high in zip(mark.x, mark.y, mark.low, mark.high, strict=True):
        value, at = (x, "") if mark.horizontal else (y, f" at {x:.4g}")
        known = f" ({low:.4g} to {high:.4g})" if np.isfinite(low + high) else ""
        gid = tag("mark", mark.name, f"{mark.name}{at}: {value:.4g}{known}")
        ends = ([low, x, high], [y, y, y]) if mark.horizontal else ([x, x, x], [low, y, high])
        axes.plot(*ends, marker=SIGNS[mark.look.marker], markevery=[1], ms=4, gid=gid, **style)


def _line(axes: Axes, line: Line, alpha: float, tag: Any) -> None:
    if line.low is not None and line.high is not None:
        where = np.isfinite(line.low) & np.isfinite(line.high)
        style: dict[str, Any] = {"color": _colour(line.look), "alpha": alpha, "lw": 0}
        axes.fill_between(
            line.x, line.low, line.high, where=where, step="post" if line.steps else None,
            gid=tag("band", line.name), **style,
        )  # fmt: skip
    style = line_style(line.look) | ({"drawstyle": "steps-post"} if line.steps else {})
    if line.look.colour not in ("grey", "ink") and not line.steps:
        every = max(len(line.x) // 6, 1)
        style |= {
            "marker": SIGNS[line.look.marker],
            "markevery": (line.look.number % every, every),
            "ms": 4.5,
        }
    axes.plot(line.x, line.y, lw=1.8, label=label_of(line.name), gid=tag("line", line.name), **style)
