"""Figures as data: what is drawn, in the coordinates of the data.

Matplotlib draws a chart, for :meth:`Comparison.plot` and for pages.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from censcore.evaluation.report.style import PALETTE

DASHES: tuple[tuple[float, ...], ...] = ((), (7, 3), (2, 2), (7, 2, 2, 2), (12, 3))
COLOURS = tuple(name for name in PALETTE if name.startswith("m"))
MARKERS = ("circle", "square", "triangle", "diamond", "down", "plus", "cross")


@dataclass(frozen=True)
class Look:
    """Colour (a name of ``PALETTE``), dashes and marker of a model."""

    colour: str = "ink"
    dashes: tuple[float, ...] = ()
    marker: str = "circle"
    number: int = 0


def look_of(number: int) -> Look:
    """The look of a model by its number: 280 of them differ in colour, dashes or marker.

    Examples
    --------
    >>> from censcore.evaluation.report.charts import look_of
    >>> looks = [look_of(i) for i in range(100)]
    >>> len({(look.colour, look.dashes, look.marker) for look in looks})
    100
    """
    colour, dashes = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    return Look(colour, dashes, MARKERS[number % len(MARKERS)], number)


@dataclass(frozen=True, eq=False)
class Line:
    """A curve, with a band where ``low`` and ``high`` are finite."""

    name: str
    x: np.ndarray
    y: np.ndarray
    look: Look
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    steps: bool = False


@dataclass(frozen=True, eq=False)
class Intervals:
    """Points with intervals, along x where ``horizontal``, else along y."""

    name: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    look: Look
    horizontal: bool = False


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars from ``edges`` (q + 1,) with heights (q,)."""

    name: str
    edges: np.ndarray
    heights: np.ndarray
    look: Look


@dataclass(frozen=True, eq=False)
class Rule:
    """A dashed line for comparison: at y, at x, or the diagonal."""

    kind: str
    at: float = 0.0


Mark = Line | Intervals | Bars | Rule


@dataclass(frozen=True, eq=False)
class Panel:
    """Axes with what they show; ``rows`` names positions 0, 1, ... on an axis that goes down."""

    marks: list[Mark]
    xlabel: str
    ylabel: str = ""
    title: str = ""
    xlim: tuple[float, float] | None = None
    ylim: tuple[float, float] | None = None
    rows: list[str] = field(default_factory=list)
    row_height: float = 0.0


@dataclass(frozen=True, eq=False)
class Chart:
    """One figure: panels side by side or below each other, one legend; ``wide`` for several kinds."""

    title: str
    panels: list[Panel]
    legend: dict[str, Look] = field(default_factory=dict)
    small: bool = False
    wide: bool = False
