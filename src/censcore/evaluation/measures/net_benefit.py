r"""Net benefit of acting on a forecast probability, under censoring, and decision curves of a comparison."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import Array, as_float, to_numpy
from censcore._validation import as_number, check_levels
from censcore.distributions import Distribution, PointMass
from censcore.evaluation.inference.estimates import Estimate, effective_number
from censcore.evaluation.lines import MINIMUM_EVENTS, Line, lines_of
from censcore.evaluation.measures.availability import check_available
from censcore.evaluation.measures.case import Case, RiskAt, risk_at
from censcore.evaluation.measures.case_scores import OfRisk
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike
from censcore.scores.inputs.scoring_inputs import check_scale, scoring_inputs

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

TREAT_ALL, TREAT_NONE = "treat all", "treat none"
POINTS = 50  # thresholds by default


def least_events(case: Case, time: float, weight: np.ndarray, groups: np.ndarray | None) -> float:
    """The smaller of the effective numbers of events by t and of subjects known to be free of it."""
    known = case.risk_at(time)
    return min(effective_number(weight * w, groups) for w in (known.event, known.free))


def enough_events(comparison: Comparison, t: float) -> bool:
    """Whether there are enough events by t, and subjects free of them, for errors."""
    case = comparison.case
    return least_events(case, t, comparison.subsets[0].weight, comparison.groups) >= MINIMUM_EVENTS


def net_benefit(
    y: OutcomeLike,
    forecast: Distribution | float,
    censoring: Distribution | None,
    time: float,
    thresholds: Array,
    *,
    scale: str = "ipcw",
) -> np.ndarray:
    r"""Net benefit of treating those with :math:`p=F(t)` above a threshold :math:`\theta`, per subject.

    .. math::
        \mathbb 1\{p>\theta\}\Bigl[\frac{\delta\,\mathbb 1\{y\le t\}}{G(y-)}
        -\frac{\theta}{1-\theta}\,\frac{\mathbb 1\{y>t\}}{G(t)}\Bigr]

    with :math:`G(t)=P(C>t)`; after an event of another cause by t the second weight is :math:`1/G(y-)`. With
    delayed entry, a, the forecast is that given survival to a and the weights are multiplied by
    :math:`G(a)`. A subject that enters at or after t has the value zero.

    Whoever treats above :math:`\theta` values one treated case as much as :math:`(1-\theta)/\theta` treated
    subjects without the event. The mean counts cases treated, less the equivalent of others who are treated,
    per subject. It is an affine function of the elementary score at :math:`\theta`, so that the true
    probability has the largest expected net benefit at every threshold.

    Parameters
    ----------
    y : RightCensored, structured array or frame
        Outcomes of n subjects; of competing risks, that of one cause.
    forecast : Distribution or number
        Of T; 1.0 treats all.
    censoring : Distribution, optional
        Of C; None only where it is known.
    time : float
        t.
    thresholds : array, (q,)
        :math:`\theta` in (0, 1).
    scale : {"ipcw", "localized"}
        On the ipcw scale the mean is that of uncensored data, and P(C > t) = 0 in any subject is an error.
        ``"localized"`` multiplies all by :math:`P(C>t\mid C>a)`. Where C is known for every subject, its
        values are those of subjects followed beyond t and zero for the others, so that their sum divided by
        the number of the former is the net benefit.

    Returns
    -------
    array, (n, q)
        Larger is better.

    See Also
    --------
    censcore.evaluation.measures.murphy.elementary : The same decision as a loss.

    References
    ----------
    .. [1] Vickers, A. J. and Elkin, E. B. (2006). Decision curve analysis: a novel method for evaluating
       prediction models. Medical Decision Making 26, 565-574.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.evaluation.measures.net_benefit import net_benefit
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.5], event=[1, 0, 1])
    >>> F = cs.Exponential([0.9, 0.1, 0.5])
    >>> net_benefit(y, F, cs.Uniform(0.0, 8.0), 2.0, [0.25, 0.5]).round(2)
    array([[ 1.14,  1.14],
           [ 0.  ,  0.  ],
           [-0.44, -1.33]])
    """
    check_scale(scale)
    theta, treated = check_thresholds(thresholds), None
    if not isinstance(forecast, Distribution):
        treated, forecast = as_number(forecast, "forecast", least=0, most=1), PointMass(np.inf)
    inputs = scoring_inputs(y, forecast, censoring, one_cause=True)
    known = risk_at(inputs, as_number(time, "time", least=0), scale)
    return _benefit(known.p if treated is None else treated, known, theta)


def check_thresholds(thresholds: Array) -> np.ndarray:
    """Thresholds of a risk, (q,), between 0 and 1."""
    theta = np.atleast_1d(to_numpy(as_float(thresholds, "thresholds")))
    check_levels(theta, "thresholds")
    if theta.ndim != 1:
        raise InvalidInputError(f"thresholds must be (q,); got an array of shape {theta.shape}.")
    return theta


def _benefit(p: np.ndarray | float, known: RiskAt, theta: np.ndarray) -> np.ndarray:
    """The net benefit (n, q) of a risk p, from the weights of "event by t" and of "no event by t"."""
    treated = np.reshape(p, (-1, 1)) > theta
    return np.where(treated, known.event[:, None] - theta / (1 - theta) * known.free[:, None], 0.0)


# ---- decision curves ---------------------------------------------------------------------------------


def decision_lines(comparison: Comparison, time: float | None = None, thresholds: Any = None) -> list[Line]:
    """See :meth:`Comparison.net_benefit`."""
    comparison, t = comparison.at(time)
    theta, lines = _thresholds(comparison, t, thresholds), list[Line]()
    score, function = OfRisk(t, partial(benefit_and_status, theta)), partial(curves_and_gains, theta)
    found, enough = comparison.of_means(score, function)
    for model in dict.fromkeys(model for model, _ in found):
        curve, gain = found[model, "curve"], found[model, "gain"]
        error = np.where(curve.varies, curve.standard_error, np.nan)
        ends = (*curve.interval(comparison.confidence), *gain.interval(comparison.confidence))
        names = ("standard_error", "low", "high", "gain_low", "gain_high")
        errors = (values if enough else np.full(len(theta), np.nan) for values in (error, *ends))
        columns = {"threshold": theta, "net_benefit": curve.value, "gain": gain.value}
        lines += lines_of({"model": model, "time": t}, columns | dict(zip(names, errors, strict=True)))
    return lines


def decision_curves(comparison: Comparison, t: float, theta: np.ndarray) -> dict[str, Estimate]:
    r"""Mean net benefit over thresholds, of every forecast and of treating all and none.

    That of treating all is :math:`\mathrm E\,w_1-\frac\theta{1-\theta}\,\mathrm E\,w_0`, with the weights of
    "event by t" and of "no event by t".
    """
    return curves_of(theta, comparison.curve(OfRisk(t, partial(benefit_and_status, theta))))


def benefit_and_status(theta: np.ndarray, known: RiskAt) -> np.ndarray:
    """Per subject: its net benefit at each of q thresholds, then both weights, (n, q + 2)."""
    return np.column_stack([_benefit(known.p, known, theta), known.event, known.free])


def curves_of(theta: np.ndarray, means: dict[str, Estimate]) -> dict[str, Estimate]:
    """Decision curves from the means of :func:`benefit_and_status`."""
    of_all, odds = next(iter(means.values())), theta / (1 - theta)
    event, free = of_all.column(len(theta)), of_all.column(len(theta) + 1)
    everyone = Estimate(event.value - odds * free.value, event.influence - odds * free.influence)
    nobody = Estimate(np.zeros(len(theta)), np.zeros_like(everyone.influence))
    curves = {model: mean.columns(slice(len(theta))) for model, mean in means.items()}
    return curves | {TREAT_ALL: everyone, TREAT_NONE: nobody}


def curves_and_gains(theta: np.ndarray, means: dict[str, Estimate]) -> dict[tuple[str, str], Estimate]:
    """Decision curves, and how much they lead over the better one of treating all and treating none."""
    curves = curves_of(theta, means)
    everyone = curves[TREAT_ALL]
    better = everyone.value > 0  # than treating nobody
    default = Estimate(np.where(better, everyone.value, 0.0), np.where(better, everyone.influence, 0.0))
    found = {(model, "curve"): curve for model, curve in curves.items()}
    return found | {(model, "gain"): curve - default for model, curve in curves.items()}


def _thresholds(comparison: Comparison, t: float, thresholds: Any) -> np.ndarray:
    """Thresholds as asked for, or from the risks of all subjects."""
    if thresholds is not None:
        return check_thresholds(thresholds)
    check_available("thresholds=None, which follows from all risks,", "observed risk", comparison.producer)
    return default_thresholds(comparison, t)


def default_thresholds(comparison: Comparison, t: float) -> np.ndarray:
    """From one per cent to the largest 99 % quantile of the forecast risks."""
    weight = comparison.subsets[0].weight > 0
    top = 0.02
    for case in comparison.cases.values():
        known = case.risk_at(t)
        counted = weight if known.counted is None else weight & known.counted
        top = max(top, float(np.quantile(known.p[counted], 0.99)))
    return np.linspace(0.01, min(top, 0.99), POINTS)
