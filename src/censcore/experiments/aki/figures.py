"""The pictures of the report, each as an SVG that a page can hold."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["calibration", "differences", "histories", "joint_forecasts", "risks"]

_INK, _FAINT, _BLUE, _RED, _GREY = "#1f2937", "#e5e7eb", "#1f4e79", "#b45309", "#9aa5b1"
_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": "#9ca3af",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "svg.hashsalt": "censcore",  # the same page gives the same bytes
}


Draw = TypeVar("Draw", bound=Callable[..., str])


def _styled(draw: Draw) -> Draw:
    """Draw in the report's style, and leave the user's alone."""

    @wraps(draw)
    def styled(*args: Any, **options: Any) -> str:
        import matplotlib as mpl

        with mpl.rc_context(_STYLE):
            return draw(*args, **options)

    return styled  # type: ignore[return-value]


def _figure(width: float, height: float, panels: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    return figure, list(np.atleast_1d(figure.subplots(1, panels)).ravel())


def _image(figure: Figure, alternative: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{alternative}" src="data:image/svg+xml;base64,{data}">'


@_styled
def differences(
    found: Mapping[str, Mapping[str, Any]], labels: Mapping[str, str], panels: Mapping[str, str]
) -> str:
    """Losses of each method less those of censored engression, with 95 % intervals by patient."""
    figure, axes = _figure(11, 0.45 * len(found) + 1.4, len(panels))
    for ax, (what, title) in zip(axes, panels.items(), strict=True):
        for i, name in enumerate(reversed(list(found))):
            value = found[name][what]
            if value["mean"] is None or value["standard_error"] is None:
                continue
            ax.errorbar(
                value["mean"], i, xerr=1.96 * value["standard_error"], fmt="o", color=_BLUE, ms=5, capsize=3
            )
        ax.axvline(0, color=_RED, lw=1)
        ax.set_ylim(-0.6, len(found) - 0.4)
        ax.set_yticks(
            range(len(found)), [labels[name] for name in reversed(list(found))] if ax is axes[0] else []
        )
        ax.set_title(title, loc="left", fontsize=10)
        ax.grid(axis="x", color=_FAINT)
    return _image(figure, "Differences of losses to censored engression with 95 percent intervals")


@_styled
def calibration(
    curves: Mapping[int, Mapping[str, tuple[NDArray[Any], NDArray[Any]]]], labels: Mapping[str, str]
) -> str:
    """Predicted against observed risk of either AKI, by horizon and method."""
    figure, axes = _figure(11, 3.4, len(curves))
    colours = {"censored": _BLUE, "naive": _RED}
    for ax, (horizon, methods) in zip(axes, curves.items(), strict=True):
        ax.plot([0, 1], [0, 1], color=_GREY, lw=1, ls="--")
        for name, (predicted, observed) in methods.items():
            ax.plot(
                predicted, observed, "o-", ms=4, lw=1.4, color=colours.get(name, _GREY), label=labels[name]
            )
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="predicted risk", aspect="equal")
        ax.set_title(f"{horizon} h", loc="left", fontsize=10)
        ax.grid(color=_FAINT)
    axes[0].set_ylabel("observed share")
    axes[0].legend(frameon=False, fontsize=8.5, loc="upper left")
    return _image(figure, "Calibration of the risk of either AKI")


@_styled
def risks(groups: Mapping[int, tuple[NDArray[Any], NDArray[Any]]]) -> str:
    """Share of rows by predicted risk, with and without the event by the horizon."""
    figure, axes = _figure(11, 2.8, len(groups))
    edges = np.linspace(0, 1, 11)
    for ax, (horizon, (with_event, without)) in zip(axes, groups.items(), strict=True):
        for values, colour, label in ((without, _GREY, "no AKI by then"), (with_event, _RED, "AKI by then")):
            ax.stairs(values, edges, fill=True, color=colour, alpha=0.65, label=label)
        ax.set(xlabel="predicted risk", xlim=(0, 1))
        ax.set_title(f"{horizon} h", loc="left", fontsize=10)
        ax.grid(axis="y", color=_FAINT)
    axes[0].set_ylabel("share of rows")
    axes[0].legend(frameon=False, fontsize=8.5)
    return _image(figure, "Predicted risks of rows with and without either AKI")


@_styled
def joint_forecasts(
    samples: Sequence[NDArray[Any]], titles: Sequence[str], observed: Sequence[Any] | None = None
) -> str:
    """Draws of both remaining times; the shaded square is AKI of both kinds within 24 h."""
    figure, axes = _figure(11, 3.9, len(samples))
    for i, (ax, draws, title) in enumerate(zip(axes, samples, titles, strict=True)):
        shown = np.clip(draws, 0.3, 3000)
        ax.axhspan(0.3, 24, xmax=1, color=_FAINT, alpha=0.7, lw=0)
        ax.axvspan(0.3, 24, color=_FAINT, alpha=0.7, lw=0)
        ax.scatter(shown[:, 0], shown[:, 1], s=9, color=_BLUE, alpha=0.45, lw=0)
        if observed is not None:
            time, event, censoring = observed[i]
            ax.plot(
                *np.clip(time, 0.3, 3000), "X" if event.any() else "P", color=_RED, ms=9, label="observed"
            )
            ax.axhline(censoring, color=_RED, lw=0.8, ls=":")
            ax.axvline(censoring, color=_RED, lw=0.8, ls=":")
        ax.set(
            xscale="log", yscale="log", xlim=(0.3, 3000), ylim=(0.3, 3000), xlabel="hours to creatinine AKI"
        )
        ax.set_aspect("equal")
        ax.set_title(title, loc="left", fontsize=10)
    axes[0].set_ylabel("hours to urine AKI")
    return _image(figure, "Joint forecasts of the two remaining times")


@_styled
def histories(losses: Mapping[str, Sequence[Mapping[str, Any]]], labels: Mapping[str, str]) -> str:
    """Validation loss over the epochs of each method, relative to its first and best."""
    figure, (ax,) = _figure(7, 3, 1)
    for name, epochs in losses.items():
        values = np.array([e["validation"] for e in epochs if e["validation"] is not None], dtype=float)
        if len(values) > 1 and values[0] > values.min():
            numbers = [e["epoch"] for e in epochs if e["validation"] is not None]
            ax.plot(numbers, (values - values.min()) / (values[0] - values.min()), lw=1.3, label=labels[name])
    ax.set(xlabel="epoch", ylabel="excess validation loss,\nshare of the first", ylim=(-0.02, 1.02))
    ax.grid(color=_FAINT)
    ax.legend(frameon=False, fontsize=8)
    return _image(figure, "Validation losses by epoch")
