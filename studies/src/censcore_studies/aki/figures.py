"""The figures of the report: small panels, each an SVG in the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from censcore_studies.kit.figures import AMBER, FAINT, GREY, RED, TEAL
from censcore_studies.kit.pages import panels as side_by_side

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["calibration", "differences", "histories", "joint_forecasts", "risks"]

Values = NDArray[Any]
Epochs = Sequence[Mapping[str, Any]]

_COLOURS = {"censored": TEAL, "naive": AMBER}


def _withheld(ax: Axes) -> None:
    ax.set_axis_off()
    ax.text(0.5, 0.5, "withheld:\ntoo few patients", ha="center", va="center", color=GREY)


def differences(
    found: Mapping[str, Mapping[str, Any]], labels: Mapping[str, str], panels: Mapping[str, str]
) -> str:
    """Losses of each method less those of censored engression, with 95 % intervals by patient."""
    draws = {title: partial(_difference, found, labels, what) for what, title in panels.items()}
    return side_by_side(
        draws,
        3.9 if len(panels) < 4 else 3.0,
        0.28 * len(found) + 1.1,
        "Losses less those of censored engression",
    )


def _difference(
    found: Mapping[str, Mapping[str, Any]], labels: Mapping[str, str], what: str, ax: Axes
) -> None:
    names = list(reversed(list(found)))
    for place, name in enumerate(names):
        value = found[name][what]
        if value["mean"] is not None and value["standard_error"] is not None:
            reach = 1.96 * value["standard_error"]
            colour = _COLOURS.get(name, GREY)
            ax.errorbar(value["mean"], place, xerr=reach, fmt="o", color=colour, ms=4.5, capsize=2.5)
    ax.axvline(0, color=TEAL, lw=1.2)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_yticks(range(len(names)), [labels[name] for name in names])
    ax.locator_params(axis="x", nbins=4)
    ax.grid(axis="x")


def calibration(curves: Mapping[int, Mapping[str, tuple[Values, Values]]], labels: Mapping[str, str]) -> str:
    """Predicted against observed risk of either AKI, by horizon and method."""
    draws = {f"{horizon} h": partial(_calibration, methods, labels) for horizon, methods in curves.items()}
    return side_by_side(draws, 3.0, 3.1, "Calibration of the risk of either AKI")


def _calibration(methods: Mapping[str, tuple[Values, Values]], labels: Mapping[str, str], ax: Axes) -> None:
    # One point is no curve.
    curves = {name: curve for name, curve in methods.items() if np.isfinite(curve[1]).sum() > 1}
    if not curves:
        _withheld(ax)
        return
    ax.plot([0, 1], [0, 1], color=GREY, lw=1, ls="--")
    for name, (predicted, observed) in curves.items():
        ax.plot(predicted, observed, "o-", ms=4, lw=1.4, color=_COLOURS.get(name, GREY), label=labels[name])
    missing = [
        f"{labels[name]}: {_how_many(np.isnan(observed) | (name not in curves))}withheld"
        for name, (_, observed) in methods.items()
        if np.isnan(observed).any() or name not in curves
    ]
    ax.text(0.98, 0.03, "\n".join(missing), transform=ax.transAxes, ha="right", fontsize=7.5, color=GREY)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="predicted risk", ylabel="observed share")
    ax.set_aspect("equal")
    ax.grid()
    ax.legend(fontsize=8.5, loc="upper left")


def _how_many(withheld: Values) -> str:
    return "" if withheld.all() else f"{withheld.sum()} of {len(withheld)} "


def risks(groups: Mapping[int, tuple[Values, Values]]) -> str:
    """Share of rows by predicted risk, with and without the event by the horizon."""
    draws = {f"{horizon} h": partial(_risk, *shares) for horizon, shares in groups.items()}
    return side_by_side(draws, 3.0, 2.4, "Predicted risks with and without either AKI")


def _risk(with_event: Values, without: Values, ax: Axes) -> None:
    shown = ((without, GREY, "no AKI by then"), (with_event, RED, "AKI by then"))
    if not any((values > 0).any() for values, _, _ in shown):
        _withheld(ax)
        return
    edges = np.linspace(0, 1, 11)
    for values, colour, label in shown:
        drawn = (values > 0).any()  # what has no bar gets an entry without a colour
        ax.stairs(
            np.nan_to_num(values),
            edges,
            fill=True,
            color=colour,
            alpha=0.55 if drawn else 0.0,
            label=label + _what_is_missing(values),
        )
    ax.set(xlabel="predicted risk", ylabel="share of rows", xlim=(0, 1))
    ax.grid(axis="y")
    ax.legend(fontsize=7.5)


def _what_is_missing(shares: Values) -> str:
    """Bars that are NaN rest on too few patients; where all are zero there is no row."""
    bars = shares[shares != 0]
    if not len(bars):
        return ": none"
    withheld = np.isnan(bars)
    return f": {_how_many(withheld) or 'all '}bars withheld" if withheld.any() else ""


def joint_forecasts(
    samples: Sequence[Values], titles: Sequence[str], last: float, observed: Sequence[Any] | None = None
) -> str:
    """Draws of both remaining times; those after ``last``, where follow-up ends, are gathered in a strip."""
    seen = [None] * len(samples) if observed is None else observed
    draws = {
        title: partial(_joint, draw, last, seen_of)
        for title, draw, seen_of in zip(titles, samples, seen, strict=True)
    }
    return side_by_side(draws, 3.7, 3.9, "Joint forecast of the two remaining times")


def _joint(draws: Values, last: float, observed: Any, ax: Axes) -> None:
    first, beyond = 0.5, 2.0
    later = last * beyond**0.5
    # Places inside the strip mean nothing; they only keep draws from hiding each other.
    strip = last * beyond ** np.random.default_rng(0).uniform(0.15, 0.85, draws.shape)
    x, y = np.where(draws > last, strip, np.maximum(draws, first)).T
    ax.axvspan(first, 24, color=FAINT, alpha=0.6, lw=0)
    ax.axhspan(first, 24, color=FAINT, alpha=0.6, lw=0)
    ax.scatter(x, y, s=8, color=TEAL, alpha=0.4, lw=0)
    ax.axvline(last, color=GREY, lw=0.8)
    ax.axhline(last, color=GREY, lw=0.8)
    if observed is not None:
        time, event, censoring = observed
        censoring = min(censoring, later)
        ax.plot(*np.clip(time, first, last), "X" if event.any() else "P", color=RED, ms=9)
        ax.axvline(censoring, color=RED, lw=0.8, ls=":")
        ax.axhline(censoring, color=RED, lw=0.8, ls=":")
    ticks = [t for t in (1, 3, 6, 12, 24, 48, 96, 192, 384) if t < last]
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([])
    ax.set(xscale="log", yscale="log", xlim=(first, last * beyond), ylim=(first, last * beyond))
    ax.set(xlabel="hours to creatinine AKI", ylabel="hours to urine AKI")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([*ticks, later], [*map(str, ticks), "later"], fontsize=8)
        axis.set_ticks([], minor=True)
    ax.set_aspect("equal")
    either = (draws <= 24).any(axis=1).mean()
    ax.text(0.02, 0.02, f"either within 24 h: {either:.0%}", transform=ax.transAxes, fontsize=8.5)


def histories(losses: Mapping[str, tuple[Epochs, int]], labels: Mapping[str, str]) -> str:
    """Losses over the epochs of each method, and the epoch whose weights were kept."""
    draws = {labels[name]: partial(_history, epochs, kept) for name, (epochs, kept) in losses.items()}
    return side_by_side(draws, 3.0, 2.3, "Losses by epoch")


def _history(epochs: Epochs, kept: int, ax: Axes) -> None:
    for what, colour in (("training", GREY), ("validation", TEAL)):
        known = [(e["epoch"], e[what]) for e in epochs if e[what] is not None]
        if known:
            ax.plot(*zip(*known, strict=True), color=colour, lw=1.4, label=what)
    ax.axvline(kept, color=RED, lw=1, ls=":", label="kept")
    ax.set(xlabel="epoch", ylabel="loss")
    ax.grid()
    ax.legend(fontsize=8)
