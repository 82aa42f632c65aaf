"""Charts inside pages: SVG by matplotlib in the colours of the page, so that one serves light and dark.

Matplotlib writes the ids of what is drawn. Here they become classes and data, by which the script of the page
hides models and bands, and tells the values where the pointer rests.
"""

from __future__ import annotations

import io
import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from censcore.evaluation.report.charts import Chart, Look, Panel, Rule
from censcore.evaluation.report.draw import Tags, band_alpha, draw_panel, key_style
from censcore.evaluation.report.style import PALETTE, new_figure, styled
from censcore.plain_text import html_text, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINT = 1 / 72  # inches; a unit of the drawing
WIDTH, HEIGHT = 400, 250  # of the drawing, in units of the text, which is 12 high
SMALL_WIDTH, SMALL_HEIGHT = 250, 215
LETTER = 6.6  # the width of a letter
PASSES, CLOSE = 3, 0.15  # points are left out so often, where they are so close to the line without them
FEW_POINTS = 12  # of which none is left out
ROW_TITLE, ROW_MARK = 17.0, 13.0  # heights in a panel of rows

#: Colours of the page by those of the figure.
COLOURS = {light: f"var(--{name})" for name, (light, _) in PALETTE.items()} | {"#9ca3af": "var(--grey)"}
#: Classes of the style sheet for what is drawn most often.
CLASSES = {
    "fill: none; stroke: var(--faint); stroke-width: 0.8": "grid",
    "text-anchor: middle; fill: var(--ink)": "middle",
    "text-anchor: end; fill: var(--ink)": "ends",
    "text-anchor: start; fill: var(--ink)": "start",
} | {f"fill: var(--{name}); stroke: var(--{name})": f"c-{name}" for name in PALETTE}


def chart_html(chart: Chart) -> str:
    """Write a legend that wraps where there is no room, and one SVG per panel."""
    legend = "".join(
        f"<li data-model='{html_text(one_line(name))}'>{swatch(look)}{html_text(one_line(name))}</li>"
        for name, look in chart.legend.items()
    )
    kind = "panels small" if chart.small else "panels"
    panels = "".join(_panel(panel, chart, first=i == 0) for i, panel in enumerate(chart.panels))
    shown = f"<ul class='legend'>{legend}</ul>" if legend else ""
    return f"{shown}<div class='{kind}'>{panels}</div>"


def without_repeats(page: str) -> str:
    """Define every marker once: matplotlib names them by their content, and defines them in every figure."""
    known: set[str] = set()

    def first(found: re.Match[str]) -> str:
        if found[1] in known:
            return ""
        known.add(found[1])
        return found[0]

    return re.sub(r'<defs><path id="(m[0-9a-f]+)"[^>]*/></defs>', first, page)


@lru_cache(maxsize=1000)
def swatch(look: Look) -> str:
    """Draw a short line with the marker of a model."""
    with styled():
        figure = new_figure(30 * POINT, 12 * POINT, layout=None)
        figure.patch.set_visible(False)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.plot([0, 1, 2], [0, 0, 0], markevery=[1], **key_style(look))
        return _svg(figure, {}, "class='swatch' aria-hidden='true'")


def _panel(panel: Panel, chart: Chart, first: bool) -> str:
    width, height = (SMALL_WIDTH, SMALL_HEIGHT) if chart.small else (WIDTH, HEIGHT)
    if panel.rows:
        height = 62 + len(panel.rows) * round(panel.row_height * ROW_MARK + ROW_TITLE)
    tags = Tags()
    with styled(grid=True):
        figure = new_figure(width * POINT, height * POINT, layout=None)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.locator_params(nbins=4 if chart.small else 6)
        axes.tick_params(labelsize=12, pad=5, left=False, bottom=False)
        axes.patch.set_visible(False)
        figure.patch.set_visible(False)
        draw_panel(axes, panel, alpha=band_alpha(chart), tags=tags, names_inside=True)
        _place(axes, panel, width, height)
        label = html_text(f"{one_line(chart.title)}. The numbers are in the tables of this page.")
        role = f"role='img' aria-label='{label}'" if first else "aria-hidden='true'"
        drawn = _svg(figure, tags.attributes, role + ("" if panel.rows else _ends(axes)))
    title = f"<p class='title'>{html_text(one_line(panel.title))}</p>" if panel.title else ""
    names = {mark.name for mark in panel.marks if not isinstance(mark, Rule)}
    of_one = f" data-model='{html_text(one_line(*names))}'" if chart.small and len(names) == 1 else ""
    return f"<div{of_one}>{title}{drawn}</div>"


def _place(axes: Axes, panel: Panel, width: int, height: int) -> None:
    """Leave room for the numbers of the axes and their labels."""
    numbers = axes.yaxis.get_major_formatter().format_ticks(list(axes.get_yticks()))
    longest = 0 if panel.rows else max(map(len, numbers), default=1)
    left, right = 10 + LETTER * longest, width - 12
    bottom, top = 38, height - (28 if panel.ylabel else 12)
    axes.set_position((left / width, bottom / height, (right - left) / width, (top - bottom) / height))
    axes.set_title("")
    axes.set_xlabel(axes.get_xlabel(), fontsize=12, labelpad=3)
    if panel.ylabel:
        axes.set_ylabel("")
        axes.text(4 / width, 1 - 15 / height, one_line(panel.ylabel), transform=axes.figure.transFigure)


def _ends(axes: Axes) -> str:
    """Write where the axes begin and end, in the drawing and in the data."""
    box = axes.get_position()
    width, height = axes.figure.get_size_inches() / POINT
    here = (
        box.x0 * width,
        box.x1 * width,
        *axes.get_xlim(),
        height - box.y0 * height,
        height - box.y1 * height,
    )
    return f" data-axes='{' '.join(f'{end:.6g}' for end in (*here, *axes.get_ylim()))}'"


def _svg(figure: Figure, attributes: dict[str, str], more: str) -> str:
    """Write a figure without what only matplotlib needs: names of fonts, ids, and digits that nobody sees."""
    stream, nothing = io.StringIO(), dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with styled(svg_fonttype="none"):
        figure.savefig(stream, format="svg", metadata=nothing, dpi=72)
    text = stream.getvalue()
    box = text[text.index(" viewBox=") :].split('"', 2)[1]
    text = re.sub(r"\s*\n\s*", " ", text[text.index("</defs>") + len("</defs>") :]).replace("> <", "><")
    text = re.sub(r' transform="rotate\(-?0 [^"]*"', "", text)
    text = re.sub(r' (d|x|y|style)="([^"]*)"', _shortened, text)
    return f"<svg viewBox='{box}' {more}>{_grouped(text, attributes)}"


def _shortened(found: re.Match[str]) -> str:
    """Write an attribute with the colours of the page, without fonts, and to a tenth of a unit."""
    name, text = found.groups()
    if name == "style":
        text = re.sub(r"font-[a-z]+: [^;]*;? ?", "", text)
        text = re.sub(r"#[0-9a-f]{6}", lambda colour: COLOURS.get(colour[0], colour[0]), text)
        text = re.sub(r"; stroke-line(cap|join): (square|miter)", "", text)
        if text in CLASSES:
            return f" class='{CLASSES[text]}'"
    elif name == "d":
        text = re.sub(r"M [^MCQz]*", _from_point_to_point, text)
        text = re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.4g}", text)
    else:
        text = f"{float(text):.4g}"
    return f' {name}="{text.strip()}"'


def _from_point_to_point(found: re.Match[str]) -> str:
    """Write straight lines by differences from their first point, without points that nobody would miss."""
    numbers = re.findall(r"-?[\d.]+(?:e-?\d+)?", found[0])
    at = np.rint(10 * _needed(np.array(numbers, float).reshape(-1, 2)))
    steps = np.diff(at, axis=0)
    kept = steps[(steps != 0).any(axis=1)] / 10
    text = re.sub(
        r"\b0[.]", ".", " ".join(f"{step:.5g}" for step in kept.ravel().tolist()).replace(" -", "-")
    )
    return f"M{at[0, 0] / 10:g} {at[0, 1] / 10:g}" + (f"l{text}" if text else "")


def _needed(at: np.ndarray) -> np.ndarray:
    """Leave out every second point, (n, 2), that lies between its neighbours, and again."""
    for _ in range(PASSES if len(at) > FEW_POINTS else 0):
        a, m, b = at[:-2:2], at[1:-1:2], at[2::2]
        (x, y), (u, v) = (b - a).T, (m - a).T
        length, along = x * x + y * y, x * u + y * v
        between = (np.abs(x * v - y * u) <= CLOSE * np.sqrt(length)) & (along >= 0) & (along <= length)
        kept = np.ones(len(at), bool)
        kept[1:-1:2] = ~between
        at = at[kept]
    return at


def _grouped(text: str, attributes: dict[str, str]) -> str:
    """Keep the groups that are tagged or clipped."""
    parts, kept = [], []
    for part in re.split(r"(<g[^>]*>|</g>)", re.sub(r"<g[^>]*/>", "", text)):
        if part.startswith("<g"):
            known = re.match(r'<g id="([^"]*)">', part)
            part = part if known is None else f"<g{attributes[known[1]]}>" if known[1] in attributes else ""
            kept.append(part not in ("", "<g>"))
            part = part if kept[-1] else ""
        elif part == "</g>":
            part = part if kept.pop() else ""
        parts.append(part)
    return "".join(parts)
