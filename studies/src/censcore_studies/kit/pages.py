"""Pages of the studies, built from the parts of the library's comparison report."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from censcore.evaluation.report.page import table
from censcore.evaluation.report.page import whole_page as _whole_page
from censcore.evaluation.report.style import svg_of
from censcore.plain_text import html_text
from censcore_studies.kit.figures import new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["note", "panels", "soft", "table", "whole_page"]

# Tables of a study are wide, and its figures are small panels side by side.
_STYLE = """body { max-width: 80rem; } table { width: auto; font-size: .85rem; }
.scroll { width: fit-content; max-width: 100%; margin: .8rem 0; }
th, td { padding: .25rem .5rem; } thead th { white-space: normal; vertical-align: bottom; }
th[scope=row] { font-weight: 400; } th:first-child { text-align: left; }
.error { color: var(--soft); font-size: .8rem; }
pre { overflow-x: auto; background: var(--shade); padding: .8rem; }
.panels { display: flex; flex-wrap: wrap; gap: .5rem 1rem; } .panels img { max-width: 100%; height: auto; }
@media (min-width: 60rem) { th[scope=row] { white-space: nowrap; } }
"""


def note(text: str) -> str:
    """A paragraph in small print."""
    return f"<p class='soft'>{text}</p>"


def soft(text: str) -> str:
    """Text that stands back."""
    return f"<span class='soft'>{text}</span>"


def image(figure: Figure, alternative: str) -> str:
    """A figure inside the page, the same bytes for the same figure; ``alternative`` is for screen readers."""
    content = base64.b64encode(svg_of(figure)).decode()
    return f"<img alt='{html_text(alternative)}' src='data:image/svg+xml;base64,{content}'>"


def whole_page(title: str, sections: Sequence[str]) -> str:
    """The document with these sections, in the style of the library's other pages."""
    return _whole_page(title, sections, style=_STYLE)


def panels(draws: Mapping[str, Callable[[Axes], None]], width: float, height: float, what: str) -> str:
    """One small figure for each title, side by side where there is room; ``what`` all of them show."""
    images = []
    with styled():
        for title, draw in draws.items():
            figure = new_figure(width, height)
            axes = figure.subplots()
            axes.set_title(title)
            draw(axes)
            images.append(image(figure, f"{what}: {title}"))
    return f"<div class='panels'>{''.join(images)}</div>"
