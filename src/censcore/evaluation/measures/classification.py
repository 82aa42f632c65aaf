r"""Classification by a forecast risk: subjects above a threshold are predicted to have the event by a time.

With the weights :math:`w_1` of "event by t" and :math:`w_0` of "no event by t"
(:mod:`censcore.scores.inputs.known_at`) and the risk p = F(t), all measures are ratios of four means:

.. math::
    \text{sensitivity}=\frac{\mathrm E\,w_1\mathbb 1\{p>\theta\}}{\mathrm E\,w_1},\quad
    \text{specificity}=\frac{\mathrm E\,w_0\mathbb 1\{p\le\theta\}}{\mathrm E\,w_0},\quad
    \mathrm{PPV}=\frac{\mathrm E\,w_1\mathbb 1\{p>\theta\}}{\mathrm E(w_1+w_0)\mathbb 1\{p>\theta\}},\quad
    \mathrm{NPV}=\frac{\mathrm E\,w_0\mathbb 1\{p\le\theta\}}{\mathrm E(w_1+w_0)\mathbb 1\{p\le\theta\}}.

Their influences follow from those of the means, which cover the estimation of C; intervals are symmetric on
the scale of log odds. The ROC curve is sensitivity over 1 - specificity, for all thresholds; its references
are those of :func:`censcore.evaluation.dynamic_auc`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._validation import as_numbers
from censcore.evaluation.inference.estimates import Estimate, beside
from censcore.evaluation.inference.mean_losses import shares_of
from censcore.evaluation.lines import MINIMUM_EVENTS, Line, lines_of
from censcore.evaluation.measures.case import RiskAt
from censcore.evaluation.measures.case_scores import OfRisk
from censcore.evaluation.measures.discrimination import numbers_of_share
from censcore.evaluation.measures.net_benefit import check_thresholds, enough_events
from censcore.evaluation.measures.pair_statistics import ROUNDING
from censcore.exceptions import InvalidInputError
from censcore.plain_text import some_values

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

ROC_POINTS = 200  # thresholds of a curve, at most
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
STATUS = {"event": "event by t", "free": "no event by t"}


def positives(theta: np.ndarray, known: RiskAt) -> np.ndarray:
    """Per subject: w_1 and w_0 of those above each of q thresholds, then w_1 and w_0, (n, 2 q + 2)."""
    above = known.p[:, None] > theta
    weights = known.event[:, None], known.free[:, None]
    return np.concatenate([*(np.where(above, w, 0.0) for w in weights), *weights], axis=1)


def true_positives(theta: np.ndarray, known: RiskAt) -> np.ndarray:
    """Per subject: w_1 of those above each of q thresholds, then w_1, (n, q + 1)."""
    event = known.event[:, None]
    return np.concatenate([np.where(known.p[:, None] > theta, event, 0.0), event], axis=1)


def ratios(means: Estimate) -> dict[str, Estimate]:
    """Sensitivity, specificity, PPV and NPV at q thresholds, from the means of :func:`positives`."""
    q = len(means.value) // 2 - 1
    parts = slice(q), slice(q, 2 * q), slice(-2, -1), slice(-1, None)
    tp, fp, cases, controls = map(means.columns, parts)
    fn, tn = cases - tp, controls - fp
    return {
        "sensitivity": tp / cases,
        "specificity": tn / controls,
        "ppv": tp / (tp + fp),
        "npv": tn / (tn + fn),
    }


def of_share(share: Estimate, confidence: float, enough: bool = True) -> dict[str, np.ndarray]:
    """A share with its standard error and an interval that is symmetric in log odds, (q,) each.

    By the normal distribution: where a class is rare, Student's has so few degrees of freedom that intervals
    become several times longer and cover no more.
    """
    from scipy.special import expit, logit, ndtri

    whole = np.rint(share.value)
    p = np.where(np.abs(share.value - whole) < ROUNDING, whole, share.value)  # all are above, or none
    error = np.where((p > 0) & (p < 1) & enough, share.standard_error, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        width = ndtri(0.5 + confidence / 2) * error / (p * (1 - p))
        low, high = expit(logit(p) - width), expit(logit(p) + width)
    return {"": p, "_standard_error": error, "_low": low, "_high": high}


def classification_lines(
    comparison: Comparison, time: float | None = None, thresholds: Any = None
) -> list[Line]:
    """See :meth:`Comparison.classification`."""
    comparison, t = comparison.at(time)
    theta = check_thresholds([0.1, 0.2, 0.3, 0.4, 0.5] if thresholds is None else thresholds)
    found, enough = comparison.of_means(OfRisk(t, partial(positives, theta)), ratios_of_models)
    columns: dict[str, dict[str, np.ndarray]] = {}
    for (model, name), share in found.items():
        values = of_share(share, comparison.confidence, enough)
        of_model = columns.setdefault(model, {"threshold": theta})
        of_model |= {f"{name}{end}": value for end, value in values.items()}
    return [line for m, of in columns.items() for line in lines_of({"model": m, "time": t}, of)]


def ratios_of_models(means: dict[str, Estimate]) -> dict[tuple[str, str], Estimate]:
    """Sensitivity, specificity, PPV and NPV of every model."""
    return {(model, name): share for model, mean in means.items() for name, share in ratios(mean).items()}


def roc_lines(comparison: Comparison, time: float | None = None, points: int = ROC_POINTS) -> list[Line]:
    """See :meth:`Comparison.roc`."""
    (comparison, t), lines = comparison.at(time), list[Line]()
    enough, weight = enough_events(comparison, t), comparison.subsets[0].weight[:, None]
    for model, case in comparison.cases.items():
        known = case.risk_at(t)
        theta = np.unique(known.p)
        if len(theta) > points:
            theta = np.unique(np.quantile(theta, np.linspace(0, 1, points), method="nearest"))
        theta = theta[::-1]
        means = comparison.mean_of(OfRisk(t, partial(true_positives, theta)), model)
        sensitivity = means.columns(slice(-1)) / means.columns(slice(-1, None))
        tpr = of_share(sensitivity, comparison.confidence, enough)
        w = shares_of(weight, known.counted)[:, 0] * known.free
        with np.errstate(invalid="ignore"):  # nobody may be free of the event
            fpr = w @ (known.p[:, None] > theta) / w.sum()
        columns = {"threshold": theta, "fpr": fpr} | {f"tpr{end}": values for end, values in tpr.items()}
        everybody = dict.fromkeys(columns, np.nan) | {"threshold": -np.inf, "fpr": 1.0, "tpr": 1.0}
        about: Line = {"model": model, "time": t}
        lines += [*lines_of(about, columns), about | everybody]
    return lines


def auc_lines(comparison: Comparison, times: Any = None) -> list[Line]:
    """See :meth:`Comparison.auc`."""
    at = comparison.case.times if times is None else as_numbers(times, "times")
    if not ((at > 0) & (at < comparison.horizon)).all():
        raise InvalidInputError(
            f"times must lie between 0 and the horizon, {comparison.horizon:g}; got {some_values(at)}."
        )
    ranked, lines = comparison.ranked_at(at), []
    for k, measure in enumerate(ranked.measures):
        if measure.name != "auc":
            continue
        events = float(comparison.effective_events(measure)[0])
        known = {m: e for m in comparison.models if (e := ranked.values.get((0, m, k))) is not None}
        rows: dict[str, Line] = {}
        if known:
            shares = numbers_of_share(beside(list(known.values())), comparison.confidence)
            values = {"auc": shares.pop("mean")} | (shares if events >= MINIMUM_EVENTS else {})
            rows = dict(zip(known, lines_of({}, values), strict=True))
        for model in comparison.models:
            line: Line = {"model": model, "time": measure.at_time, "events": events}
            line |= dict.fromkeys(("auc", "standard_error", "low", "high"), np.nan)
            lines.append(line | rows.get(model, {}))
    return lines


def risk_lines(comparison: Comparison, time: float | None = None) -> list[Line]:
    """See :meth:`Comparison.risks`."""
    (comparison, t), lines = comparison.at(time), list[Line]()
    weight = comparison.subsets[0].weight
    for model, case in comparison.cases.items():
        known = case.risk_at(t)
        for name, status in STATUS.items():
            w = weight * getattr(known, name)
            if not w.any():
                continue
            line: Line = {"model": model, "time": t, "status": status, "share": float(w.sum())}
            line["mean"] = float(w @ known.p / w.sum())
            values = quantiles_of(known.p, w, np.array(QUANTILES)).tolist()
            lines.append(line | {f"{100 * q:g} %": v for q, v in zip(QUANTILES, values, strict=True)})
    return lines


def quantiles_of(p: np.ndarray, w: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Quantiles of p with weights w: the smallest value at which the share of the weight reaches each."""
    order = np.argsort(p, kind="stable")
    reached = np.cumsum(w[order])
    at = np.searchsorted(reached, shares * reached[-1] * (1 - 1e-12))
    return p[order][np.minimum(at, len(p) - 1)]
