"""Pictures of a comparison, as charts that matplotlib or a page draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import PointMass
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.lines import MINIMUM_EVENTS
from censcore.evaluation.measures.case_scores import CASE_SCORES
from censcore.evaluation.measures.murphy import Elementary
from censcore.evaluation.measures.net_benefit import TREAT_ALL, TREAT_NONE, decision_lines
from censcore.evaluation.report.charts import Bars, Chart, Intervals, Line, Look, Panel, Rule, look_of
from censcore.evaluation.report.risk_charts import auc_chart, risks_chart, roc_chart, scatter_chart
from censcore.evaluation.report.table_lines import difference_lines, key_of, mean_lines
from censcore.evaluation.report.text import column_label
from censcore.exceptions import InvalidInputError
from censcore.outcomes import EventOfCause
from censcore.plain_text import one_line
from censcore.published import d_calibration
from censcore.scores import brier_score
from censcore.scores.inputs import check_scale
from censcore.scores.known_at import weights_of_events

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

__all__ = ["CHARTS", "ON_REQUEST", "looks_of"]

POINTS = 60  # of a curve
INK, GREY = Look("ink", marker="square"), Look("grey", marker="square")


def looks_of(comparison: Comparison) -> dict[str, Look]:
    """The look of every model; a reference is grey."""
    others = [model for model in comparison.models if model != comparison.reference]
    looks = {model: look_of(i) for i, model in enumerate(others)}
    return {model: looks.get(model, GREY) for model in comparison.models}


def _level(comparison: Comparison) -> str:
    return f"{100 * comparison.confidence:g} %"


def time_label(comparison: Comparison, what: str = "time") -> str:
    """The label of a time axis, with its unit."""
    return f"{what} ({one_line(comparison.time_unit)})" if comparison.time_unit else what


def at_time(comparison: Comparison, t: float) -> str:
    """A time with its unit."""
    return f"{t:.4g} {one_line(comparison.time_unit)}".rstrip()


def _curves(
    comparison: Comparison, x: np.ndarray, curves: dict[str, Estimate], known: np.ndarray | bool = True
) -> tuple[list[Line], dict[str, Look]]:
    """Means with pointwise bands where these are ``known``, and the legend."""
    looks, lines = looks_of(comparison), []
    for model, curve in curves.items():
        low, high = curve.interval(comparison.confidence)
        told = known & curve.varies
        bands = (np.where(told, low, np.nan), np.where(told, high, np.nan))
        lines.append(Line(model, x, curve.value, looks[model], *bands))
    return lines, {model: looks[model] for model in curves}


def _top(lines: list[Line]) -> tuple[float, float]:
    """From zero to what is drawn; bands at the end of follow-up may leave the picture."""
    largest = max(float(np.nanmax(line.y)) for line in lines)
    ends = [
        float(np.nanquantile(line.high, 0.9))
        for line in lines
        if line.high is not None and np.isfinite(line.high).any()
    ]
    return 0.0, 1.05 * max([largest, *ends])


def brier_chart(comparison: Comparison, scale: str | None = None) -> Chart:
    """Brier score over time, with pointwise bands where there are at least five effective events.

    On the ipcw scale, or on the localized one where no forecast has that of ipcw.
    """
    if scale is None:
        chart = brier_chart(comparison, "ipcw")
        return chart if chart.legend else brier_chart(comparison, "localized")
    of_scale = {
        score.info.scale: score for score in CASE_SCORES.values() if score.info.function is brier_score
    }
    if scale not in of_scale:
        raise InvalidInputError(f"scale must be 'localized' or 'ipcw'; got {scale!r}.")
    score = of_scale[scale]
    time = np.minimum(to_numpy(comparison.outcome.time), comparison.horizon)
    last = float(np.quantile(time, 0.99)) if score.ipcw else comparison.horizon
    x = np.linspace(0, last, POINTS + 2)[1:-1]
    known = comparison.effective_events(score, times=x) >= MINIMUM_EVENTS
    lines, legend = _curves(comparison, x, comparison.curve(score, times=x), known)
    panel = Panel(
        [*lines], time_label(comparison), score.title, xlim=(0.0, last), ylim=_top(lines) if lines else None
    )
    return Chart(f"Brier score over time, {_level(comparison)} bands", [panel], legend)


def pinball_chart(comparison: Comparison) -> Chart:
    """Pinball score over quantile levels with pointwise bands."""
    top = min(0.95, max(comparison.settings["levels"]) + 0.05)
    x = np.linspace(0.05, top, 19)
    lines, legend = _curves(comparison, x, comparison.curve(CASE_SCORES["pinball_score"], levels=x))
    panel = Panel([*lines], "quantile level", time_label(comparison, "pinball score"), ylim=_top(lines))
    return Chart(f"Pinball score over levels, {_level(comparison)} bands", [panel], legend)


def murphy_chart(comparison: Comparison, time: float | None = None, scale: str = "localized") -> Chart:
    """Murphy diagram at one time: mean elementary scores of F(time) over all thresholds."""
    check_scale(scale)
    t, theta = comparison.one_time(time), np.linspace(0, 1, 101)[1:-1]
    lines, legend = _curves(comparison, theta, comparison.curve(Elementary(t, theta, scale)))
    label = "elementary score" if scale == "localized" else f"elementary score, {scale}"
    panel = Panel([*lines], "threshold θ", label, xlim=(0.0, 1.0), ylim=_top(lines) if lines else None)
    title = f"Murphy diagram of P(T ≤ {at_time(comparison, t)}), {_level(comparison)} bands"
    return Chart(title, [panel], legend)


def decision_chart(comparison: Comparison, time: float | None = None) -> Chart:
    """Decision curves: net benefit over thresholds, beside treating all and treating none."""
    t = comparison.one_time(time)
    looks = looks_of(comparison) | {TREAT_ALL: Look("ink", (2, 2)), TREAT_NONE: INK}
    lines = decision_lines(comparison, t)
    drawn, legend = [], {}
    for model in dict.fromkeys(line["model"] for line in lines):
        x, y, low, high = (
            np.array([line[name] for line in lines if line["model"] == model])
            for name in ("threshold", "net_benefit", "low", "high")
        )
        bands = (None, None) if model in (TREAT_ALL, TREAT_NONE) else (low, high)
        drawn.append(Line(model, x, y, looks[model], *bands))
        legend[model] = looks[model]
    top = max(float(np.nanmax(line.y)) for line in drawn)
    label, ylim = f"threshold of the risk by {at_time(comparison, t)}", (-0.3 * top, 1.15 * top)
    xlim = (0.0, float(drawn[0].x[-1]))
    panel = Panel([*drawn], label, "net benefit", xlim=xlim, ylim=ylim if top > 0 else None)
    return Chart(f"Decision curves at {at_time(comparison, t)}, {_level(comparison)} bands", [panel], legend)


def calibration_chart(
    comparison: Comparison, time: float | None = None, bins: int | None = None, span: float = 0.75
) -> Chart:
    """Observed against forecast risk at one time: smoothed with bands, and binned with intervals."""
    t, looks = comparison.one_time(time), looks_of(comparison)
    curves = {model: comparison.calibration(model, time, bins, span) for model in comparison.models}
    known = [point[side] for curve in curves.values() for point in [*curve.binned, *curve.smoothed]
             for side in ("predicted", "observed", "high") if np.isfinite(point[side])]  # fmt: skip
    top = min(1.0, 1.05 * max(known, default=1.0))
    panels = []
    for model, curve in curves.items():
        marks: list[Line | Intervals | Rule | Bars] = [Rule("diagonal")]
        if curve.smoothed:
            x, y, low, high = _columns(curve.smoothed)
            marks.append(Line(model, x, y, looks[model], low, high))
        x, y, low, high = _columns(curve.binned)
        marks.append(Intervals(f"{model}, binned", x, y, low, high, looks[model]))
        told = "" if np.isnan(curve.ici) else f", ICI {curve.ici:.3f}"
        panels.append(
            Panel(marks, "forecast risk", "observed risk", f"{one_line(model)}{told}", (0.0, top), (0.0, top))
        )
    return Chart(f"Calibration at {at_time(comparison, t)}, {_level(comparison)} bands", panels, small=True)


def _columns(points: list[dict[str, float]]) -> tuple[np.ndarray, ...]:
    names = ("predicted", "observed", "low", "high")
    return tuple(np.array([point[name] for point in points]) for name in names)


def d_calibration_chart(comparison: Comparison, bins: int = 10) -> Chart:
    """D-calibration: the share of subjects in each tenth of S(T), which is the same for all if calibrated."""
    panels, looks, tallest = [], looks_of(comparison), 0.0
    weight, groups = comparison.subsets[0].weight, comparison.groups
    found = {}
    for model, case in comparison.cases.items():
        y, C = case.y, None
        if isinstance(y, EventOfCause):  # C matters, and is known up to the horizon
            y, C = y.censor_at(case.horizon), case.C.censor_at(case.horizon)
        found[model] = d_calibration(y, case.F, C, bins=bins, sample_weight=weight, groups=groups)
    tallest = 1.08 * max(float(of_model.shares.max()) for of_model in found.values())
    edges = np.linspace(0, 1, bins + 1)
    for model, of_model in found.items():
        bars = Bars(model, edges, of_model.shares, looks[model])
        title = f"{one_line(model)}, {of_model.verdict}"
        panels.append(
            Panel([bars, Rule("y", 1 / bins)], "survival S(T) at the event", "share of subjects", title,
                  (0.0, 1.0), (0.0, tallest))
        )  # fmt: skip
    how = f"; p-values are {comparison.design.calibration_note}" if comparison.design.calibration_note else ""
    return Chart(f"D-calibration (dashed: calibrated{how})", panels, small=True)


def differences_chart(comparison: Comparison, adjustment: str = "max-t") -> Chart:
    """Differences from the reference, in percent of its loss, with simultaneous intervals."""
    base = comparison.reference or comparison.models[0]
    found = _against(comparison, base, adjustment)
    others = [model for model in comparison.models if model != base]
    if not others or not found:
        raise InvalidInputError("A plot of differences needs at least two forecasts with a common score.")
    looks, rows, marks = looks_of(comparison), list(found), [Rule("x", 0.0)]
    drawn: list[Line | Intervals | Rule | Bars] = [*marks]
    for i, model in enumerate(others):
        offset = (i + 0.5) / len(others) - 0.5
        inside = [(j, found[row][model]) for j, row in enumerate(rows) if model in found[row]]
        y = np.array([j + offset for j, _ in inside])
        value, low, high = (np.array([numbers[k] for _, numbers in inside]) for k in range(3))
        drawn.append(Intervals(model, value, y, low, high, looks[model], horizontal=True))
    panel = Panel(
        drawn, f"difference from {one_line(base)}, % of its loss", rows=rows, row_height=len(others)
    )
    title = f"Paired differences (left is better), {_level(comparison)} intervals"
    return Chart(title, [panel], {model: looks[model] for model in others})


def _against(
    comparison: Comparison, base: str, adjustment: str
) -> dict[str, dict[str, tuple[float, float, float]]]:
    """Per column of the table and model: the difference from ``base`` and its interval, in % of its loss."""
    found: dict[str, dict[str, tuple[float, float, float]]] = {}
    means = [line for line in mean_lines(comparison, discrimination=False) if line["model"] == base]
    scale = {key_of(line): abs(line["mean"]) for line in means if line["by"] == ""}
    relative = {score.name for score in comparison.scores if score.info.has_skill}
    for line in difference_lines(comparison, adjustment, discrimination=False):
        sign = 1 if line["versus"] == base else -1
        other = line["model"] if sign == 1 else line["versus"]
        if line["by"] != "" or base not in (line["model"], line["versus"]) or line["score"] not in relative:
            continue
        size = scale[key_of(line)]
        if np.isfinite(line["difference"] + line["standard_error"]) and size > 0:
            low, high = sorted((sign * line["low"], sign * line["high"]))
            value, low, high = (100 * v / size for v in (sign * line["difference"], low, high))
            about = f"{one_line(line['outcome'])}: " if line["outcome"] else ""
            found.setdefault(about + column_label(comparison, line), {})[other] = (value, low, high)
    return found


def censoring_chart(comparison: Comparison) -> Chart:
    """The censoring distribution over time, and the weights of the events."""
    G, y, h = comparison.resolved_censoring.distribution.marginal(0), comparison.outcome, comparison.horizon
    x = np.linspace(0, h, 200)
    some = G if len(G) == 1 else G.take(np.linspace(0, len(G) - 1, min(len(G), 500)).astype(int))
    curves = to_numpy(some.sf(x[None, :]))
    weights = weights_of_events(y, G, h)
    weights = weights[(weights > 0) & np.isfinite(weights)]
    low = high = None
    if len(curves) > 1 and not isinstance(G, PointMass):
        low, high = np.quantile(curves, [0.05, 0.95], axis=0)
    line = Line("P(C > t)", x, curves.mean(axis=0), look_of(0), low, high, steps=True)
    left = Panel(
        [line], time_label(comparison), title="followed beyond t: P(C > t)", xlim=(0.0, h), ylim=(0.0, 1.02)
    )
    panels = [left]
    if len(weights):
        heights, edges = np.histogram(weights, bins=30)
        bars = Bars("events", edges, heights.astype(float), look_of(0))
        label = "1/P(C ≥ y)" if y.entry is None else "P(C > a)/P(C ≥ y)"
        panels.append(Panel([bars], f"weight of an event, {label}", title="events"))
    return Chart("The censoring distribution and the weights it gives", panels)


#: Pictures by the name that :meth:`Comparison.plot` takes.
CHARTS: dict[str, Callable[..., Chart]] = {
    "brier": brier_chart,
    "differences": differences_chart,
    "calibration": calibration_chart,
    "d-calibration": d_calibration_chart,
    "decision": decision_chart,
    "murphy": murphy_chart,
    "pinball": pinball_chart,
    "censoring": censoring_chart,
    "roc": roc_chart,
    "auc": auc_chart,
    "risks": risks_chart,
    "scatter": scatter_chart,
}
#: Those that a page leaves out: they describe, or take long.
ON_REQUEST = ("roc", "auc", "risks", "scatter")
