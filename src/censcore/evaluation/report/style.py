"""The one look of all figures: those of comparisons, of the demo and of the studies."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from censcore.exceptions import MissingPackageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, FAINT, GREY = "#1f2937", "#e5e7eb", "#6b7280"
TEAL, AMBER, RED = "#0f766e", "#d97706", "#b91c1c"

#: Colours on a white and on a dark ground: of models (m0, m1, ...), of a reference, of text and of grids.
PALETTE: dict[str, tuple[str, str]] = {
    "m0": (TEAL, "#2dd4bf"),
    "m1": ("#c2410c", "#fb923c"),
    "m2": ("#4338ca", "#a5b4fc"),
    "m3": ("#be185d", "#f472b6"),
    "m4": ("#0369a1", "#38bdf8"),
    "m5": ("#4d7c0f", "#a3e635"),
    "m6": ("#7e22ce", "#d8b4fe"),
    "m7": ("#854d0e", "#facc15"),
    "grey": (GREY, "#9ca3af"),
    "ink": (INK, "#e5e7eb"),
    "faint": (FAINT, "#374151"),
}

STYLE: dict[str, Any] = {
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "text.usetex": False,  # names are text, never commands
    "axes.axisbelow": True,
    "axes.edgecolor": "#9ca3af",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "grid.color": FAINT,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "svg.hashsalt": "censcore",  # the same figure gives the same bytes
    "xtick.color": INK,
    "ytick.color": INK,
}


@contextmanager
def styled(grid: bool = False, **settings: Any) -> Iterator[None]:
    """Figures that are drawn and saved inside the block share one style; other settings come back after.

    Parameters
    ----------
    grid : bool
        Draw lines at the ticks of all axes.
    **settings
        Further settings of matplotlib, with underscores in place of dots.

    Examples
    --------
    >>> from censcore.evaluation.report.style import TEAL, new_figure, styled
    >>> with styled(grid=True):
    ...     axes = new_figure(4, 3).subplots()
    ...     lines = axes.plot([0, 1], [1, 0], color=TEAL)
    """
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as error:
        raise MissingPackageError("Plots need matplotlib: pip install 'censcore[plots]'.") from error
    more = {name.replace("_", "."): value for name, value in settings.items()}
    with mpl.rc_context(STYLE | {"axes.grid": grid} | more):
        yield


def svg_of(figure: Figure) -> bytes:
    """A figure as SVG, the same bytes for the same figure."""
    stream = io.BytesIO()
    with styled():
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def new_figure(width: float, height: float, layout: str | None = "constrained") -> Figure:
    """An empty figure of so many inches, known to no window system; to be called inside :func:`styled`.

    Notebooks show it by themselves, whatever the backend of matplotlib.
    """
    from censcore.evaluation.report.shown_figure import ShownFigure

    return ShownFigure(figsize=(width, height), layout=layout)
