"""Pictures of a comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import PointMass
from censcore.evaluation.case_scores import CASE_SCORES
from censcore.evaluation.inference import MINIMUM_EVENTS, Estimate
from censcore.evaluation.murphy import Elementary
from censcore.evaluation.style import GREY, INK, new_figure, styled
from censcore.evaluation.tables import difference_lines, mean_lines
from censcore.evaluation.text import label
from censcore.exceptions import InvalidInputError
from censcore.published import d_calibration
from censcore.scores import brier_score
from censcore.scores.inputs import known_to_exceed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from censcore.evaluation.comparison import Comparison

__all__ = ["PLOTS"]

COLOURS = ["#0f766e", "#c2410c", "#4338ca", "#be185d", "#0369a1", "#4d7c0f", "#7e22ce"]
DASHES: list[Any] = ["-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1))]
POINTS = 60  # of a curve
NOWHERE = -1.0  # in place of the time or level of a score without any
WIDTH, HEIGHT = 6.0, 4.0  # inches: readable on a phone


def _looks(comparison: Comparison) -> dict[str, dict[str, Any]]:
    """A colour and a dash per model; an added reference is grey."""
    looks, number = {}, 0
    for model in comparison.models:
        if model == comparison.reference:
            looks[model] = {"color": GREY, "linestyle": "-"}
        else:
            looks[model] = {
                "color": COLOURS[number % len(COLOURS)],
                "linestyle": DASHES[number % len(DASHES)],
            }
            number += 1
    return looks


def _curves(
    axes: Axes,
    comparison: Comparison,
    x: np.ndarray,
    curves: dict[str, Estimate],
    marker: str = "",
    known: np.ndarray | bool = True,
) -> None:
    """Means with pointwise bands where these are ``known``, and a legend above the axes."""
    for model, curve in curves.items():
        look = _looks(comparison)[model]
        low, high = curve.interval(comparison.confidence)
        axes.fill_between(x, low, high, where=known & curve.varies, color=look["color"], alpha=0.12, lw=0)
        axes.plot(x, curve.value, lw=2, label=model, marker=marker, ms=4, **look)
    _legend(axes, len(curves))


def _legend(axes: Axes, count: int) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=min(count, 3), borderaxespad=0.2)


def _titled(figure: Figure, title: str) -> Figure:
    figure.suptitle(title, x=0.01, ha="left", fontsize=11.5, fontweight="bold")
    return figure


def _level(comparison: Comparison) -> str:
    return f"{100 * comparison.confidence:g} %"


def plot_brier(comparison: Comparison, scale: str = "localized") -> Figure:
    """Brier score over time, with pointwise bands where there are at least five effective events."""
    of_scale = {
        score.info.scale: score for score in CASE_SCORES.values() if score.info.function is brier_score
    }
    if scale not in of_scale:
        raise InvalidInputError(f"scale must be 'localized' or 'ipcw'; got {scale!r}.")
    score = of_scale[scale]
    time = np.minimum(to_numpy(comparison.outcome.time), comparison.horizon)
    last = float(np.quantile(time, 0.99)) if score.ipcw else comparison.horizon
    x = np.linspace(0, last, POINTS + 2)[1:-1]
    with styled(grid=True):
        figure = new_figure(WIDTH, HEIGHT)
        axes = figure.subplots()
        known = comparison.effective_events(score, times=x) >= MINIMUM_EVENTS
        _curves(axes, comparison, x, comparison.curve(score, times=x), known=known)
        axes.set(xlabel="time", ylabel=score.title, xlim=(0, last))
        axes.set_ylim(bottom=0)
        return _titled(figure, f"Brier score over time, {_level(comparison)} bands")


def plot_pinball(comparison: Comparison) -> Figure:
    """Pinball score over quantile levels with pointwise bands."""
    top = min(0.95, max(comparison.settings["levels"]) + 0.05)
    x = np.linspace(0.05, top, 19)
    with styled(grid=True):
        figure = new_figure(WIDTH, HEIGHT)
        axes = figure.subplots()
        _curves(axes, comparison, x, comparison.curve(CASE_SCORES["pinball_score"], levels=x))
        axes.set(xlabel="quantile level", ylabel="pinball score")
        axes.set_ylim(bottom=0)
        return _titled(figure, f"Pinball score over levels, {_level(comparison)} bands")


def plot_murphy(comparison: Comparison, time: float | None = None) -> Figure:
    """Murphy diagram at one time: mean elementary scores of F(time) over all thresholds."""
    times = comparison.settings["times"]
    tau = float(times[len(times) // 2] if time is None else time)
    if not 0 < tau < comparison.horizon:
        raise InvalidInputError(f"time must lie between 0 and the horizon; got {tau}.")
    theta = np.linspace(0, 1, 101)[1:-1]
    with styled(grid=True):
        figure = new_figure(WIDTH, HEIGHT)
        axes = figure.subplots()
        _curves(axes, comparison, theta, comparison.curve(Elementary(tau, theta)))
        axes.set(xlabel="threshold θ", ylabel="elementary score", xlim=(0, 1))
        axes.set_ylim(bottom=0)
        return _titled(figure, f"Murphy diagram of P(T ≤ {tau:.4g}), {_level(comparison)} bands")


def plot_calibration(comparison: Comparison, bins: int = 10) -> Figure:
    """D-calibration: the share of subjects in each tenth of S(T), which is the same for all if calibrated."""
    models = comparison.models
    columns = min(2, len(models))
    rows = -(-len(models) // columns)
    with styled(grid=True):
        figure = new_figure(WIDTH, 1.1 + 1.7 * rows)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes in grid.flat[len(models) :]:
            axes.set_visible(False)
        for model, axes in zip(models, grid.flat, strict=False):
            found = d_calibration(
                comparison.outcome,
                comparison.cases[model].F,
                bins=bins,
                sample_weight=comparison.subsets[0].weight,
                groups=comparison.groups,
            )
            edges = np.arange(bins) / bins
            axes.bar(
                edges, found.shares, width=0.9 / bins, align="edge", color=_looks(comparison)[model]["color"]
            )
            axes.axhline(1 / bins, color=INK, lw=1, ls=(0, (4, 2)))
            axes.set_title(f"{model}, {found.verdict}", fontsize=10)
            axes.grid(axis="x", visible=False)
        figure.supxlabel("predicted survival at the event, S(T)", fontsize=10)
        figure.supylabel("share of subjects", fontsize=10)
        return _titled(figure, "D-calibration (dashed: calibrated)")


def plot_differences(comparison: Comparison, adjustment: str = "max-t") -> Figure:
    """Differences from the reference, in percent of its loss, with simultaneous intervals."""
    base = comparison.reference or comparison.models[0]
    titles = {score.name: (score.title, score.axis) for score in comparison.scores}
    blocks = _against(comparison, base, adjustment)
    others = [model for model in comparison.models if model != base]
    if not others or not blocks:
        raise InvalidInputError("A plot of differences needs at least two forecasts with a common score.")
    looks = _looks(comparison)
    with styled(grid=True):
        figure = new_figure(WIDTH, 1.4 + len(blocks) * (0.16 + 0.14 * len(others)))
        axes = figure.subplots()
        gap = 0.8 / len(others)
        for i, model in enumerate(others):
            offset = (i - (len(others) - 1) / 2) * gap
            found = [(row, block[model]) for row, block in enumerate(blocks.values()) if model in block]
            at = np.array([row + offset for row, _ in found])
            value, low, high = (np.array([numbers[k] for _, numbers in found]) for k in range(3))
            axes.errorbar(
                value, at, xerr=[value - low, high - value], fmt="o", ms=4, lw=1.6,
                color=looks[model]["color"], label=model,
            )  # fmt: skip
        axes.axvline(0, color=GREY, lw=1.5)
        axes.set_yticks(range(len(blocks)), [_line(*titles[s], at) for s, at in blocks])
        axes.set_ylim(len(blocks) - 0.5, -0.5)
        axes.set_xlabel(f"difference from {base}, % of its loss")
        axes.grid(axis="y", visible=False)
        _legend(axes, len(others))
        return _titled(figure, f"Paired differences (left is better), {_level(comparison)} intervals")


def _against(
    comparison: Comparison, base: str, adjustment: str
) -> dict[tuple[str, float], dict[str, tuple[float, float, float]]]:
    """Per score line and model: the difference from ``base`` and its interval, in percent of its loss."""
    blocks: dict[tuple[str, float], dict[str, tuple[float, float, float]]] = {}
    means = [line for line in mean_lines(comparison, discrimination=False) if line["model"] == base]
    scale = {(line["score"], _key(line["at"])): abs(line["mean"]) for line in means if line["by"] == ""}
    relative = {score.name for score in comparison.scores if score.info.has_skill}
    for line in difference_lines(comparison, adjustment, discrimination=False):
        sign = 1 if line["versus"] == base else -1
        other = line["model"] if sign == 1 else line["versus"]
        if line["by"] != "" or base not in (line["model"], line["versus"]) or line["score"] not in relative:
            continue
        key = line["score"], _key(line["at"])
        if np.isfinite(line["difference"] + line["standard_error"]) and scale[key] > 0:
            low, high = sorted((sign * line["low"], sign * line["high"]))
            numbers = np.array([sign * line["difference"], low, high]) * 100 / scale[key]
            blocks.setdefault(key, {})[other] = tuple(numbers)
    return blocks


def _key(at: float) -> float:
    """NaN is not equal to itself, so that it is no key."""
    return NOWHERE if np.isnan(at) else at


def _line(title: str, axis: str, at: float) -> str:
    return label(title, np.nan if at == NOWHERE else at, axis)


def plot_censoring(comparison: Comparison) -> Figure:
    """The censoring distribution over time, and the weights of the events."""
    G, y, h = comparison.resolved_censoring.distribution.marginal(0), comparison.outcome, comparison.horizon
    x = np.linspace(0, h, 300)
    some = G if len(G) == 1 else G.take(np.linspace(0, len(G) - 1, min(len(G), 500)).astype(int))
    curves = to_numpy(some.sf(x[None, :]))
    followed = np.broadcast_to(to_numpy(G.sf_left(y.time)), (len(y),))
    counted = to_numpy(y.event) & (to_numpy(y.time) <= h) & (followed > 0)
    with styled(grid=True):
        figure = new_figure(WIDTH, 3.4)
        left, right = figure.subplots(1, 2)
        left.plot(x, curves.mean(axis=0), color=COLOURS[0], lw=2, drawstyle="steps-post")
        if len(curves) > 1 and not isinstance(G, PointMass):
            low, high = np.quantile(curves, [0.05, 0.95], axis=0)
            left.fill_between(x, low, high, color=COLOURS[0], alpha=0.15, lw=0, step="post")
        left.set(xlabel="time", xlim=(0, h), ylim=(0, 1.02))
        left.set_title("followed beyond t: P(C > t)", fontsize=10)
        at_entry = np.ones(len(y)) if y.entry is None else to_numpy(G.sf(known_to_exceed(y.entry)))
        right.hist((at_entry / np.where(counted, followed, 1.0))[counted], bins=30, color=COLOURS[0])
        right.set(xlabel="weight of an event, 1/P(C ≥ y)")
        right.set_title("events", fontsize=10)
        right.grid(axis="x", visible=False)
        return _titled(figure, "The censoring distribution and the weights it gives")


PLOTS: dict[str, Callable[..., Any]] = {
    "brier": plot_brier,
    "pinball": plot_pinball,
    "murphy": plot_murphy,
    "calibration": plot_calibration,
    "censoring": plot_censoring,
    "differences": plot_differences,
}
