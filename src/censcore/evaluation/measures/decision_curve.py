"""Decision curves of a comparison: net benefit over thresholds, beside treating all and treating none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._validation import as_numbers
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.lines import MINIMUM_EVENTS, Line
from censcore.evaluation.measures.net_benefit import NetBenefit, least_events
from censcore.exceptions import InvalidInputError

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

__all__ = ["TREAT_ALL", "TREAT_NONE", "decision_lines"]

TREAT_ALL, TREAT_NONE = "treat all", "treat none"
POINTS = 50


def decision_lines(comparison: Comparison, time: float | None = None, thresholds: Any = None) -> list[Line]:
    """See :meth:`Comparison.net_benefit`."""
    t = comparison.one_time(time)
    theta = _default(comparison, t) if thresholds is None else as_numbers(thresholds, "thresholds")
    if not ((theta > 0) & (theta < 1)).all():
        raise InvalidInputError(f"thresholds must lie between 0 and 1; got {theta.tolist()}.")
    some = comparison.models[0]
    events = least_events(comparison.cases[some], t, comparison.subsets[0].weight, comparison.groups)
    found = comparison.curve(NetBenefit(t, theta))
    everyone = comparison.curve(NetBenefit(t, theta, everyone=True))[some]
    nobody = Estimate(np.zeros(len(theta)), np.zeros_like(everyone.influence))
    told = events >= MINIMUM_EVENTS
    default = _either(everyone, nobody, everyone.value > 0)
    lines = []
    for model, curve in (found | {TREAT_ALL: everyone, TREAT_NONE: nobody}).items():
        lines += _lines(t, theta, model, curve, curve - default, comparison.confidence, told)
    return lines


def _either(a: Estimate, b: Estimate, first: np.ndarray) -> Estimate:
    return Estimate(np.where(first, a.value, b.value), np.where(first, a.influence, b.influence))


def _lines(
    t: float, theta: np.ndarray, model: str, curve: Estimate, gain: Estimate, confidence: float, told: bool
) -> list[Line]:
    low, high = curve.interval(confidence)
    gain_low, gain_high = gain.interval(confidence)
    numbers = {
        "standard_error": np.where(curve.varies, curve.standard_error, np.nan),
        "low": low,
        "high": high,
    }
    numbers |= {"gain_low": gain_low, "gain_high": gain_high}
    return [
        {"model": model, "time": t, "threshold": float(theta[j]), "net_benefit": float(curve.value[j]),
         "gain": float(gain.value[j])}
        | {name: float(values[j]) if told else np.nan for name, values in numbers.items()}
        for j in range(len(theta))
    ]  # fmt: skip


def _default(comparison: Comparison, t: float) -> np.ndarray:
    """From one per cent to the largest 99 % quantile of the forecast risks."""
    weight = comparison.subsets[0].weight > 0
    top = 0.02
    for case in comparison.cases.values():
        known = case.risk_at(t)
        counted = weight if known.counted is None else weight & known.counted
        top = max(top, float(np.quantile(known.p[counted], 0.99)))
    return np.linspace(0.01, min(top, 0.99), POINTS)
