"""Pictures of a comparison, as charts that matplotlib or a page draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import check_option
from censcore.distributions import PointMass
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.lines import MINIMUM_EVENTS
from censcore.evaluation.measures.case_scores import CASE_SCORES, CaseScore
from censcore.evaluation.measures.murphy import elementary
from censcore.evaluation.report import risk_charts
from censcore.evaluation.report.charts import Bars, Chart, Intervals, Line, Look, Mark, Panel, Rule, look_of
from censcore.evaluation.report.risk_charts import (
    GREY,
    at_time,
    banded_curves,
    curves_chart,
    level_of,
    looks_of,
    time_label,
)
from censcore.evaluation.report.table_lines import (
    deciding,
    difference_lines,
    differences_from,
    key_of,
    mean_lines,
    ranked,
    title_of,
)
from censcore.evaluation.report.text import about, column_label
from censcore.evaluation.report.verdict import LARGE
from censcore.exceptions import CenscoreError, InvalidInputError
from censcore.plain_text import one_line
from censcore.scores import brier_score
from censcore.scores.inputs.known_at import weights_of_events
from censcore.scores.inputs.scoring_inputs import check_scale

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison
    from censcore.evaluation.report.verdict import Verdict

POINTS = 60  # of a curve


def _top(lines: list[Line]) -> tuple[float, float] | None:
    """From zero to what is drawn; bands at the end of follow-up may leave the picture."""
    if not lines:
        return None
    return 0.0, 1.05 * _largest([line.y for line in lines], [line.high for line in lines])


def _largest(curves: Iterable[np.ndarray], ends: Iterable[np.ndarray | None]) -> float:
    """The largest value of curves, and most of the ends of their bands."""
    bands = [np.nanquantile(end, 0.9) for end in ends if end is not None and np.isfinite(end).any()]
    return float(max([*map(np.nanmax, curves), *bands]))


def brier_chart(comparison: Comparison, scale: str | None = None, versus: str | None = None) -> Chart:
    """Brier score over time, with pointwise bands where there are at least five effective events.

    On the ipcw scale, or on the localized one where no forecast has that of ipcw; ``versus`` names a forecast
    that the others are compared with, subject by subject.
    """
    if scale is None:
        chart = brier_chart(comparison, "ipcw", versus)
        return chart if chart.legend else brier_chart(comparison, "localized", versus)
    of_scale: dict[str, CaseScore] = {
        str(score.info.scale): score for score in CASE_SCORES.values() if score.info.function is brier_score
    }
    check_option(scale, "scale", of_scale)
    score = of_scale[scale]
    time = np.minimum(to_numpy(comparison.outcome.time), comparison.horizon)
    last = float(np.quantile(time, 0.99)) if score.ipcw else comparison.horizon
    x = np.linspace(0, last, POINTS + 2)[1:-1]

    def over_time() -> tuple[np.ndarray, dict[str, Estimate]]:
        return comparison.effective_events(score, times=x), comparison.curve(score, times=x)

    small = comparison.settings["subjects"] * len(comparison.models) <= LARGE  # influences are kept
    events, curves = comparison.once(f"{score.name} over time", over_time) if small else over_time()
    rules, label = list[Rule](), score.title
    if versus is not None:
        check_option(versus, "versus", comparison.models)
        base = curves.get(versus)
        curves = {} if base is None else {m: curve - base for m, curve in curves.items() if m != versus}
        rules, label = [Rule("y", 0.0)], f"difference from {one_line(versus)}"
    lines = banded_curves(comparison, x, curves, events >= MINIMUM_EVENTS)
    axes = {"xlim": (0.0, last), "ylim": _around(lines) if versus else _top(lines)}
    x_label = time_label(comparison)
    return curves_chart(comparison, "Brier score over time", lines, x_label, label, *rules, **axes)


def _around(lines: list[Line]) -> tuple[float, float] | None:
    """Around zero, with most of the bands."""
    ends = [None if side is None else np.abs(side) for line in lines for side in (line.low, line.high)]
    most = 1.1 * _largest([np.zeros(1), *(np.abs(line.y) for line in lines)], ends)
    return (-most, most) if most else None


def pinball_chart(comparison: Comparison) -> Chart:
    """Pinball score over quantile levels with pointwise bands."""
    top = min(0.95, max(comparison.settings["levels"]) + 0.05)
    x = np.linspace(0.05, top, 19)
    lines = banded_curves(comparison, x, comparison.curve(CASE_SCORES["pinball_score"], levels=x))
    labels = ("quantile level", time_label(comparison, "pinball score"))
    return curves_chart(comparison, "Pinball score over levels", lines, *labels, ylim=_top(lines))


def murphy_chart(comparison: Comparison, time: float | None = None, scale: str = "localized") -> Chart:
    """Murphy diagram at one time: mean elementary scores of F(time) over all thresholds."""
    check_scale(scale)
    (comparison, t), theta = comparison.at(time), np.linspace(0, 1, 51)[1:-1]
    lines = banded_curves(comparison, theta, comparison.curve(elementary(t, theta, scale)))
    labels = ("threshold θ", "elementary score" if scale == "localized" else f"elementary score, {scale}")
    title = f"Murphy diagram of P(T ≤ {at_time(comparison, t)})"
    return curves_chart(comparison, title, lines, *labels, xlim=(0.0, 1.0), ylim=_top(lines))


def differences_chart(comparison: Comparison, adjustment: str = "max-t") -> Chart:
    """Differences from the reference, in percent of its loss, with simultaneous intervals."""
    base = comparison.reference or comparison.models[0]
    differences = _against(comparison, base, adjustment)
    others = [model for model in comparison.models if model != base]
    if not others or not differences:
        raise InvalidInputError("A plot of differences needs at least two forecasts with a common score.")
    looks, rows = looks_of(comparison), list(differences)
    drawn: list[Mark] = [Rule("x", 0.0)]
    for i, model in enumerate(others):
        offset = (i + 0.5) / len(others) - 0.5
        inside = {
            j + offset: differences[row][model] for j, row in enumerate(rows) if model in differences[row]
        }
        drawn.append(_across(model, inside, looks[model]))
    panel = Panel(
        drawn, f"difference from {one_line(base)}, % of its loss", rows=rows, row_height=len(others)
    )
    title = f"Paired differences (left is better), {level_of(comparison)} intervals"
    return Chart(title, [panel], {model: looks[model] for model in others})


def _across(model: str, rows: Mapping[float, np.ndarray], look: Look) -> Intervals:
    """Return values with their intervals along x, in the rows at the places y."""
    value, low, high = np.reshape(list(rows.values()), (-1, 3)).T
    return Intervals(model, value, np.array(list(rows), dtype=float), low, high, look, horizontal=True)


def verdict_chart(comparison: Comparison, verdict: Verdict) -> Chart:
    """What the verdict says: how much better or worse than the reference each forecast is, best first.

    Without a reference, the differences are those from the best forecast.
    """
    outcome, order = verdict.outcome, ranked(comparison, verdict.outcome)
    base = comparison.reference if comparison.reference in order else verdict.best
    score = next(s for s in comparison.scores if s.name == verdict.score)
    means = {x["model"]: x["mean"] for x in deciding(comparison, mean_lines(comparison, False), outcome)}
    scale = abs(means.get(base, np.nan)) / 100 if score.info.has_skill else 1.0
    looks = looks_of(comparison)
    pairs = deciding(comparison, difference_lines(comparison, discrimination=False), outcome)
    differences = {
        other: ends / scale for _, other, ends in differences_from(pairs, base) if np.isfinite(ends[1])
    }
    rows = [model for model in order if model in differences]
    if not rows:
        raise InvalidInputError("A picture of the verdict needs two forecasts with a common score.")
    shown = [_across(model, {j: differences[model]}, looks[model]) for j, model in enumerate(rows)]
    unit = ", % of its loss" if score.info.has_skill else ""
    label = f"← better · difference from {one_line(base)}{unit} · worse →"
    panel = Panel([Rule("x", 0.0), *shown], label, rows=rows, row_height=1.0)
    return Chart(f"{title_of(score)}: paired differences, {level_of(comparison)} intervals", [panel])


def overview_chart(comparison: Comparison, time: float | None = None) -> Chart:
    """The verdict, the Brier score over time, calibration and net benefit, side by side."""
    base, drawn = comparison.reference or comparison.verdict.best or None, []
    makers: list[Callable[[], Chart]] = [
        lambda: verdict_chart(comparison, comparison.verdict),
        lambda: brier_chart(comparison, versus=base if len(comparison.models) > 1 else None),
        lambda: risk_charts.calibration_curves(comparison, time),
        lambda: risk_charts.decision_chart(comparison, time),
    ]
    for make in makers:
        with suppress(CenscoreError):  # of one forecast there are no differences; a time may be too late
            chart = make()
            drawn.append((chart, replace(chart.panels[0], title=chart.title.partition(",")[0])))
    legend = {name: look for chart, _ in drawn for name, look in chart.legend.items()}
    known = {model: look for model, look in looks_of(comparison).items() if model in legend}
    return Chart("Comparison of forecasts", [panel for _, panel in drawn], known | legend, wide=True)


def _against(comparison: Comparison, base: str, adjustment: str) -> dict[str, dict[str, np.ndarray]]:
    """Per column of the table and model: the difference from ``base`` and its interval, in % of its loss."""
    differences: dict[str, dict[str, np.ndarray]] = {}
    means = [line for line in mean_lines(comparison, discrimination=False) if line["model"] == base]
    scale = {key_of(line): abs(line["mean"]) for line in means if line["by"] == ""}
    relative = {score.name for score in comparison.scores if score.info.has_skill}
    pairs = [x for x in difference_lines(comparison, adjustment, False) if x["score"] in relative]
    for line, other, ends in differences_from((x for x in pairs if x["by"] == ""), base):
        size = scale[key_of(line)]
        if np.isfinite(line["difference"] + line["standard_error"]) and size > 0:
            row = about(line["outcome"]) + column_label(comparison, line)
            differences.setdefault(row, {})[other] = 100 * ends / size
    return differences


def censoring_chart(comparison: Comparison) -> Chart:
    """The censoring distribution over time, and the weights of the events."""
    G, h = comparison.resolved_censoring.distribution.marginal(0), comparison.horizon
    y = comparison.outcome if comparison.outcome.time.ndim == 1 else comparison.outcome.last()
    x = np.linspace(0, h, 200)
    sample = G if len(G) == 1 else G.take(np.linspace(0, len(G) - 1, min(len(G), 500)).astype(int))
    curves = to_numpy(sample.sf(x[None, :]))
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


def folds_chart(comparison: Comparison, score: str | None = None, column: int = 0) -> Chart:
    """Mean losses of every fold, joined by fold, and the mean over all subjects with its interval."""
    known = {each.name: each for each in comparison.scores}
    name = next(iter(known)) if score is None else score
    check_option(name, "score", known)
    places = comparison.places(known[name])
    if not 0 <= column < len(places):
        raise InvalidInputError(f"column: got {column}, expected 0 to {len(places) - 1}.")
    at, models = float(places[column]), comparison.models
    lines = [line for line in comparison.fold_lines if line["score"] == name]
    if not lines:
        raise InvalidInputError("folds: got fixed forecasts; cross_validate(models, X, y) has folds.")
    by_fold: dict[tuple[int, int], dict[str, float]] = {}
    for line in lines:
        if np.isnan(at) or line["at"] == at:
            by_fold.setdefault((line["repeat"], line["fold"]), {})[line["model"]] = line["mean"]
    rows, drawn = np.arange(len(models), dtype=float), list[Mark]()
    for (_, fold), means in by_fold.items():
        x = np.array([means[model] for model in models])
        drawn.append(Line(f"fold {fold}", x, rows, GREY))
    for row, (model, look) in enumerate(looks_of(comparison).items()):
        estimate = comparison.estimate(model, name)
        if estimate is not None:
            ends = np.array([estimate.value, *estimate.interval(comparison.confidence)])
            drawn.append(_across(model, {row: ends[:, column]}, look))
    where = "" if np.isnan(at) else f" at {at_time(comparison, at)}"
    panel = Panel(drawn, f"{title_of(known[name])}{where}", rows=models, row_height=2.0)
    return Chart(f"Folds (grey), and the mean with its {level_of(comparison)} interval", [panel])


#: Pictures by the name that :meth:`Comparison.plot` takes.
CHARTS: dict[str, Callable[..., Chart]] = {
    "overview": overview_chart,
    "brier": brier_chart,
    "differences": differences_chart,
    "calibration": risk_charts.calibration_chart,
    "d-calibration": risk_charts.d_calibration_chart,
    "decision": risk_charts.decision_chart,
    "murphy": murphy_chart,
    "pinball": pinball_chart,
    "censoring": censoring_chart,
    "folds": folds_chart,
    "roc": risk_charts.roc_chart,
    "auc": risk_charts.auc_chart,
    "risks": risk_charts.risks_chart,
    "scatter": risk_charts.scatter_chart,
}


def options_of(chart: Callable[..., Chart]) -> list[str]:
    """What a picture can be asked for besides the comparison."""
    return list(signature(chart).parameters)[1:]
