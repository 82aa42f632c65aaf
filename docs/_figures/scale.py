"""Picture of the passes over a table that is too large for memory."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from censcore.evaluation.report.style import AMBER, FAINT, GREY, INK, TEAL, new_figure, styled
from kit import picture

PASSES = [
    ("1  count", "subjects by time, event\nand stratum", "Kaplan-Meier of C,\nhorizon, times"),
    (
        "2  score",
        "sums of losses, and of their\nderivatives by the hazard of C",
        "means, influence ξ\nof each outcome",
    ),
    ("3  spread", "sums of powers of\nw (loss − mean) + w ξ", "errors, p-values,\npaired differences"),
]


def _box(
    axes: Axes, x: float, y: float, width: float, height: float, text: str, colour: str, face: str = "#ffffff"
) -> None:
    shape = "round,pad=0.02,rounding_size=0.06"
    axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=shape, ec=colour, fc=face, lw=1.2))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=8.5, color=INK)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = GREY) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.2})


@picture
def at_scale() -> Figure:
    """Three passes over the batches; each is a sum, and small results go back to all workers."""
    with styled():
        figure = new_figure(9.6, 4.0)
        axes = figure.subplots()
        axes.set(xlim=(0, 9.6), ylim=(0, 4.1))
        axes.axis("off")
        for i in range(4):
            _box(axes, 0.1, 0.35 + 0.8 * i, 1.2, 0.5, f"batch {4 - i}" if i else "batch ...", GREY, FAINT)
        axes.text(0.7, 3.75, "table (Parquet, CSV, Dask)", ha="center", fontsize=8.5, color=GREY)
        for k, (name, sums, result) in enumerate(PASSES):
            x = 2.1 + 2.6 * k
            axes.text(x + 1.05, 3.75, name, ha="center", fontsize=10, color=TEAL, weight="bold")
            _box(axes, x, 2.35, 2.1, 1.0, sums, TEAL)
            _box(axes, x, 0.5, 2.1, 0.9, result, AMBER)
            _arrow(axes, (x + 1.05, 2.3), (x + 1.05, 1.45))
            axes.text(x + 1.12, 1.86, "merged, then", fontsize=7.5, color=GREY, va="center")
            if k:
                _arrow(axes, (x - 0.48, 1.2), (x + 0.15, 2.3), AMBER)
        for i in range(4):
            _arrow(axes, (1.35, 0.6 + 0.8 * i), (2.05, 2.85))
        note = "amber: small, broadcast to all workers for the next pass"
        axes.text(5.75, 0.08, note, ha="center", fontsize=8, color=AMBER)
        return figure
