"""Pictures of risks by a time: ROC curves, AUC over time, risks by outcome, and of two models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import check_option
from censcore.evaluation.measures.classification import STATUS, auc_lines, roc_lines
from censcore.evaluation.report.charts import Chart, Intervals, Line, Look, Panel, Rule, look_of
from censcore.exceptions import InvalidInputError
from censcore.plain_text import one_line

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

__all__ = ["auc_chart", "risks_chart", "roc_chart", "scatter_chart"]

POINTS, BINS, MOST = 20, 25, 1000  # times of a curve, bins of a histogram, subjects of a scatter
LOOKS = {"event": look_of(0), "free": Look("grey", (7, 3), marker="square")}


def _named(comparison: Comparison) -> dict[str, Look]:
    from censcore.evaluation.report.plots import looks_of

    return looks_of(comparison)


def _by_time(comparison: Comparison, t: float) -> str:
    return f"{t:.4g} {one_line(comparison.time_unit)}".rstrip()


def roc_chart(comparison: Comparison, time: float | None = None) -> Chart:
    """ROC curves at one time, with pointwise bands of the sensitivity."""
    t, looks, marks = comparison.one_time(time), _named(comparison), []
    lines = roc_lines(comparison, t)
    for model in comparison.models:
        mine = [line for line in lines if line["model"] == model]
        x, y, low, high = (
            np.array([line[k] for line in mine]) for k in ("fpr", "tpr", "tpr_low", "tpr_high")
        )
        marks.append(Line(model, x, y, looks[model], low, high))
    panel = Panel(
        [Rule("diagonal"), *marks], "1 - specificity", "sensitivity", xlim=(0.0, 1.0), ylim=(0.0, 1.0)
    )
    title = f"ROC curves at {_by_time(comparison, t)}, {100 * comparison.confidence:g} % bands"
    return Chart(title, [panel], {model: looks[model] for model in comparison.models})


def auc_chart(comparison: Comparison, times: Sequence[float] | None = None) -> Chart:
    """AUC over time with pointwise bands, up to the time that 95 % of the follow-up reaches."""
    if times is None:
        seen = np.minimum(to_numpy(comparison.outcome.time), comparison.horizon)
        times = np.quantile(seen, np.linspace(0.05, 0.95, POINTS)).tolist()
        times = [t for t in np.unique(times).tolist() if 0 < t < comparison.horizon]
    looks, marks = _named(comparison), []
    lines = auc_lines(comparison, times)
    for model in comparison.models:
        mine = [line for line in lines if line["model"] == model]
        x, y, low, high = (np.array([line[k] for line in mine]) for k in ("time", "auc", "low", "high"))
        marks.append(Line(model, x, y, looks[model], low, high))
    unit = f" ({one_line(comparison.time_unit)})" if comparison.time_unit else ""
    panel = Panel([Rule("y", 0.5), *marks], f"time{unit}", "AUC")
    title = f"AUC over time, {100 * comparison.confidence:g} % bands"
    return Chart(title, [panel], {model: looks[model] for model in comparison.models})


def risks_chart(comparison: Comparison, time: float | None = None) -> Chart:
    """Densities of the forecast risks of those with and without the event by a time, for every model."""
    t, weight = comparison.one_time(time), comparison.subsets[0].weight
    known = {model: case.risk_at(t) for model, case in comparison.cases.items()}
    top = min(1.0, 1.02 * max(float(of_model.p.max()) for of_model in known.values()))
    edges, panels = np.linspace(0, max(top, 1e-6), BINS + 1), []
    middle = (edges[:-1] + edges[1:]) / 2
    for model, at in known.items():
        marks: list[Line | Intervals | Rule] = []
        for name, status in STATUS.items():
            w = weight * getattr(at, name)
            if w.any():
                height = np.histogram(at.p, edges, weights=w, density=True)[0]
                marks.append(Line(status, middle, height, LOOKS[name], steps=True))
        panels.append(Panel([*marks], "forecast risk", "density", one_line(model), (0.0, float(edges[-1]))))
    legend = {status: LOOKS[name] for name, status in STATUS.items()}
    return Chart(f"Forecast risks by {_by_time(comparison, t)}, by outcome", panels, legend, small=True)


def scatter_chart(
    comparison: Comparison, time: float | None = None, models: Sequence[str] | None = None
) -> Chart:
    """The risks that two models give to the same subjects, at most 1,000 of them, by what is known at t."""
    t = comparison.one_time(time)
    two = list(comparison.models[:2]) if models is None else list(models)
    if len(two) != 2:
        raise InvalidInputError(f"models: got {len(two)}, expected the names of two of the forecasts.")
    for model in two:
        check_option(model, "models", comparison.models)
    a, b = (comparison.cases[model].risk_at(t) for model in two)
    some = np.unique(np.linspace(0, len(a.p) - 1, min(len(a.p), MOST)).astype(int))
    unknown = (a.event[some] == 0) & (a.free[some] == 0)
    who = {STATUS[name]: getattr(a, name)[some] > 0 for name in STATUS} | {"not known": unknown}
    looks = {STATUS[name]: LOOKS[name] for name in STATUS} | {"not known": Look("ink", marker="cross")}
    marks = [
        Intervals(status, a.p[some][at], b.p[some][at], b.p[some][at], b.p[some][at], looks[status])
        for status, at in who.items()
        if at.any()
    ]
    top = min(1.0, 1.02 * float(max(a.p.max(), b.p.max())))
    x, y = (f"risk by {_by_time(comparison, t)}, {one_line(model)}" for model in two)
    panel = Panel([Rule("diagonal"), *marks], x, y, xlim=(0.0, top), ylim=(0.0, top))
    return Chart("Risks of the same subjects by two forecasts", [panel], looks)
