"""Pictures of risks by a time: calibration, decision and ROC curves, AUC, and the risks themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import check_option
from censcore.evaluation import lines as of_tables
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.measures.classification import ROC_POINTS, STATUS, auc_lines, roc_lines
from censcore.evaluation.measures.net_benefit import (
    TREAT_ALL,
    TREAT_NONE,
    decision_curves,
    default_thresholds,
    enough_events,
)
from censcore.evaluation.report.charts import Bars, Chart, Intervals, Line, Look, Mark, Panel, Rule, look_of
from censcore.evaluation.report.text import with_unit
from censcore.evaluation.report.verdict import d_calibrations
from censcore.exceptions import InvalidInputError
from censcore.plain_text import one_line

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

POINTS, BINS, MOST = 20, 25, 1000  # times of a curve, bins of a histogram, subjects of a scatter
INK, GREY = Look("ink", marker="square"), Look("grey", marker="square")
LOOKS = {"event": look_of(0), "free": replace(GREY, dashes=(7, 3))}
#: Ways to treat without a forecast, which have no error of their own.
POLICIES = {TREAT_ALL: Look("ink", (2, 2)), TREAT_NONE: INK}


def looks_of(comparison: Comparison) -> dict[str, Look]:
    """The look of every model; a reference is grey."""
    others = [model for model in comparison.models if model != comparison.reference]
    looks = {model: look_of(i) for i, model in enumerate(others)}
    return {model: looks.get(model, GREY) for model in comparison.models}


def level_of(comparison: Comparison) -> str:
    """The confidence of bands and intervals."""
    return f"{100 * comparison.confidence:g} %"


def time_label(comparison: Comparison, what: str = "time") -> str:
    """The label of a time axis, with its unit."""
    return f"{what} ({one_line(comparison.time_unit)})" if comparison.time_unit else what


def at_time(comparison: Comparison, t: float) -> str:
    """A time with its unit."""
    return with_unit(t, comparison.time_unit)


def curves_chart(
    comparison: Comparison, title: str, curves: list[Line], x: str, y: str, *rules: Rule, **axes: Any
) -> Chart:
    """Curves with pointwise bands in one panel, and their legend."""
    panel = Panel([*rules, *curves], x, y, **axes)
    legend = {curve.name: curve.look for curve in curves}
    return Chart(f"{title}, {level_of(comparison)} bands", [panel], legend)


def banded_curves(
    comparison: Comparison, x: np.ndarray, curves: dict[str, Estimate], known: np.ndarray | bool = True
) -> list[Line]:
    """Means with pointwise bands where these are ``known``."""
    looks, lines = looks_of(comparison), []
    for model, curve in curves.items():
        low, high = curve.interval(comparison.confidence)
        banded = known & curve.varies
        bands = (np.where(banded, low, np.nan), np.where(banded, high, np.nan))
        lines.append(Line(model, x, curve.value, looks[model], *bands))
    return lines


def _curves(
    comparison: Comparison, lines: list[of_tables.Line], x: str, y: str, prefix: str = ""
) -> list[Line]:
    """Of the lines of a table, one curve per model with its band."""
    looks, curves, names = looks_of(comparison), [], (x, y, f"{prefix}low", f"{prefix}high")
    for model in dict.fromkeys(line["model"] for line in lines):
        at, value, low, high = (np.array([x[k] for x in lines if x["model"] == model]) for k in names)
        curves.append(Line(model, at, value, looks[model], low, high))
    return curves


def roc_chart(comparison: Comparison, time: float | None = None, points: int = ROC_POINTS) -> Chart:
    """ROC curves at one time, with pointwise bands of the sensitivity, at so many thresholds at most."""
    comparison, t = comparison.at(time)
    curves = _curves(comparison, roc_lines(comparison, t, points), "fpr", "tpr", "tpr_")
    return curves_chart(
        comparison, f"ROC curves at {at_time(comparison, t)}", curves, "1 - specificity", "sensitivity",
        Rule("diagonal"), xlim=(0.0, 1.0), ylim=(0.0, 1.0),
    )  # fmt: skip


def auc_chart(comparison: Comparison, times: Sequence[float] | None = None) -> Chart:
    """AUC over time with pointwise bands, up to the time that 95 % of the follow-up reaches."""
    if times is None:
        followed = np.minimum(to_numpy(comparison.outcome.time), comparison.horizon)
        times = np.quantile(followed, np.linspace(0.05, 0.95, POINTS)).tolist()
        times = [t for t in np.unique(times).tolist() if 0 < t < comparison.horizon]
    curves = _curves(comparison, auc_lines(comparison, times), "time", "auc")
    return curves_chart(comparison, "AUC over time", curves, time_label(comparison), "AUC", Rule("y", 0.5))


def decision_chart(comparison: Comparison, time: float | None = None) -> Chart:
    """Decision curves: net benefit over thresholds, beside treating all and treating none."""
    comparison, t = comparison.at(time)
    theta, enough = default_thresholds(comparison, t), enough_events(comparison, t)
    means = decision_curves(comparison, t, theta)
    policies = [Line(name, theta, means.pop(name).value, look) for name, look in POLICIES.items()]
    curves = [*banded_curves(comparison, theta, means, enough), *policies]
    top = max(float(np.nanmax(curve.y)) for curve in curves)
    return curves_chart(
        comparison, f"Decision curves at {at_time(comparison, t)}", curves,
        f"threshold of the risk by {at_time(comparison, t)}", "net benefit",
        xlim=(0.0, float(curves[0].x[-1])), ylim=(-0.3 * top, 1.15 * top) if top > 0 else None,
    )  # fmt: skip


def calibration_chart(
    comparison: Comparison, time: float | None = None, bins: int | None = None, span: float = 0.75
) -> Chart:
    """Observed against forecast risk at one time: smoothed with bands, and binned with intervals."""
    (comparison, t), looks = comparison.at(time), looks_of(comparison)
    curves = {model: comparison.calibration(model, time, bins, span) for model in comparison.models}
    known = [point[side] for curve in curves.values() for point in [*curve.binned, *curve.smoothed]
             for side in ("predicted", "observed", "high") if np.isfinite(point[side])]  # fmt: skip
    top = min(1.0, 1.05 * max(known, default=1.0))
    panels = []
    for model, curve in curves.items():
        marks: list[Mark] = [Rule("diagonal")]
        if curve.smoothed:
            x, y, low, high = _columns(curve.smoothed)
            marks.append(Line(model, x, y, looks[model], low, high))
        x, y, low, high = _columns(curve.binned)
        marks.append(Intervals(model, x, y, low, high, looks[model]))
        ici = "" if np.isnan(curve.ici) else f", ICI {curve.ici:.3f}"
        panels.append(
            Panel(marks, "forecast risk", "observed risk", f"{one_line(model)}{ici}", (0.0, top), (0.0, top))
        )
    return Chart(f"Calibration at {at_time(comparison, t)}, {level_of(comparison)} bands", panels, small=True)


def _columns(points: list[dict[str, float]]) -> tuple[np.ndarray, ...]:
    names = ("predicted", "observed", "low", "high")
    return tuple(np.array([point[name] for point in points]) for name in names)


def calibration_curves(comparison: Comparison, time: float | None = None) -> Chart:
    """The smoothed calibration curves of all forecasts in one panel, without bands."""
    whole = calibration_chart(comparison, time)
    lines = [replace(mark, low=None, high=None)
             for panel in whole.panels for mark in panel.marks if isinstance(mark, Line)]  # fmt: skip
    panel = replace(whole.panels[0], marks=[Rule("diagonal"), *lines])
    return Chart(whole.title, [panel], {line.name: line.look for line in lines})


def d_calibration_chart(comparison: Comparison, bins: int = 10) -> Chart:
    """D-calibration: the share of subjects in each tenth of S(T), which is the same for all if calibrated."""
    panels, looks, by_model = [], looks_of(comparison), d_calibrations(comparison, bins)
    if not by_model:
        raise InvalidInputError("D-calibration: got forecasts that are known at one time, expected curves.")
    tallest = 1.08 * max(float(of_model.shares.max()) for of_model in by_model.values())
    edges = np.linspace(0, 1, bins + 1)
    for model, of_model in by_model.items():
        bars = Bars(model, edges, of_model.shares, looks[model])
        title = f"{one_line(model)}, {of_model.verdict}"
        panels.append(
            Panel([bars, Rule("y", 1 / bins)], "survival S(T) at the event", "share of subjects", title,
                  (0.0, 1.0), (0.0, tallest))
        )  # fmt: skip
    how = f"; p-values are {comparison.calibration_note}" if comparison.calibration_note else ""
    return Chart(f"D-calibration (dashed: calibrated{how})", panels, small=True)


def risks_chart(comparison: Comparison, time: float | None = None) -> Chart:
    """Densities of the forecast risks of those with and without the event by a time, for every model."""
    comparison, t = comparison.at(time)
    weight = comparison.subsets[0].weight
    known = {model: case.risk_at(t) for model, case in comparison.cases.items()}
    top = min(1.0, 1.02 * max(float(of_model.p.max()) for of_model in known.values()))
    edges, panels = np.linspace(0, max(top, 1e-6), BINS + 1), []
    middle = (edges[:-1] + edges[1:]) / 2
    for model, at in known.items():
        marks: list[Mark] = []
        for name, status in STATUS.items():
            w = weight * getattr(at, name)
            if w.any():
                height = np.histogram(at.p, edges, weights=w, density=True)[0]
                marks.append(Line(status, middle, height, LOOKS[name], steps=True))
        panels.append(Panel(marks, "forecast risk", "density", one_line(model), (0.0, float(edges[-1]))))
    legend = {status: LOOKS[name] for name, status in STATUS.items()}
    return Chart(f"Forecast risks by {at_time(comparison, t)}, by outcome", panels, legend, small=True)


def scatter_chart(
    comparison: Comparison, time: float | None = None, models: Sequence[str] | None = None
) -> Chart:
    """The risks that two models give to the same subjects, at most 1,000 of them, by what is known at t."""
    comparison, t = comparison.at(time)
    two = list(comparison.models[:2]) if models is None else list(models)
    if len(two) != 2:
        raise InvalidInputError(f"models: got {len(two)}, expected the names of two of the forecasts.")
    for model in two:
        check_option(model, "models", comparison.models)
    a, b = (comparison.cases[model].risk_at(t) for model in two)
    shown = np.unique(np.linspace(0, len(a.p) - 1, min(len(a.p), MOST)).astype(int))
    unknown = (a.event[shown] == 0) & (a.free[shown] == 0)
    who = {STATUS[name]: getattr(a, name)[shown] > 0 for name in STATUS} | {"not known": unknown}
    looks = {STATUS[name]: LOOKS[name] for name in STATUS} | {"not known": Look("ink", marker="cross")}
    p, q, who = a.p[shown], b.p[shown], {status: at for status, at in who.items() if at.any()}
    marks = [Intervals(status, p[at], *(q[at],) * 3, looks[status]) for status, at in who.items()]
    top = min(1.0, 1.02 * float(max(a.p.max(), b.p.max())))
    x, y = (f"risk by {at_time(comparison, t)}, {one_line(model)}" for model in two)
    panel = Panel([Rule("diagonal"), *marks], x, y, xlim=(0.0, top), ylim=(0.0, top))
    return Chart("Risks of the same subjects by two forecasts", [panel], looks)
