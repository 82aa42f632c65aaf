"""Inverse-probability-of-censoring-weighted scores, in the conventions that libraries differ in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import Array, ArrayLike, to_numpy
from censcore._numerics import safe_log
from censcore._validation import as_number, check_flag, check_option, name_subjects
from censcore.distributions import Distribution
from censcore.exceptions import PositivityError
from censcore.outcomes import OutcomeLike
from censcore.scores.inputs.scoring_inputs import ScoringInputs, evaluation_times, scoring_inputs


@dataclass(frozen=True)
class Convention:
    """What an implementation of an IPCW score decides.

    Attributes
    ----------
    left_limit : bool
        Divide an event at y by G(y-) = P(C >= y), or by G(y) = P(C > y).
    survivor_left_limit : bool
        Divide a survivor at t by G(t-), or by G(t).
    normalize : {"subjects", "weights"}
        Divide by the number of subjects, or by the sum of the weights.
    floor : float
        Smallest value of G that is divided by.
    yielding : bool
        Where some positive G in use lies below the floor, half of the smallest of them is the floor.
    zero : float or None
        What stands for G where G = 0: infinity gives weight zero, a number that weight; with None it is
        an error.
    ties : {"events first", "censorings first"}
        Who comes first where an event and a censoring share a time. A property of the censoring distribution
        that is passed: events first is ``Censoring(KaplanMeier())``; censorings first is a Kaplan-Meier curve
        of the negated events, ``KaplanMeier().fit(None, RightCensored(time, ~event))``.

    Examples
    --------
    >>> from censcore.published import CONVENTIONS
    >>> CONVENTIONS["pycox"].normalize
    'weights'
    """

    left_limit: bool = True
    survivor_left_limit: bool = False
    normalize: str = "subjects"
    floor: float = 0.0
    yielding: bool = False
    zero: float | None = None
    ties: str = "events first"

    def __post_init__(self) -> None:
        check_option(self.normalize, "normalize", ("subjects", "weights"))
        check_option(self.ties, "ties", ("events first", "censorings first"))
        for name in ("left_limit", "survivor_left_limit", "yielding"):
            check_flag(getattr(self, name), name)
        as_number(self.floor, "floor", least=0, most=1)
        if self.zero is not None:
            as_number(self.zero, "zero", above=0, infinite=True)

    def divisor(self, G: np.ndarray, used: np.ndarray) -> np.ndarray:
        """G as it is divided by where ``used``; zero where the convention has no answer."""
        floor = self.floor
        if self.yielding and (small := G[used & (G > 0) & (floor > G)]).size:
            floor = small.min() / 2
        G = np.maximum(G, floor)
        return G if self.zero is None else np.where(G == 0, self.zero, G)


#: What common implementations do.
CONVENTIONS: dict[str, Convention] = {
    "graf": Convention(),
    "gerds-schumacher": Convention(),
    "scikit-survival": Convention(left_limit=False, zero=np.inf),
    "pycox": Convention(normalize="weights", ties="censorings first"),
    "hazardous": Convention(left_limit=False, floor=0.05, ties="censorings first"),
    "survival-eval": Convention(left_limit=False, zero=np.inf, ties="censorings first"),
    "mlr3proba": Convention(left_limit=False, zero=1e-3, ties="censorings first"),
    "yardstick": Convention(survivor_left_limit=True, floor=0.01, yielding=True),
}


def ipcw_brier(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    times: ArrayLike | None = None,
    *,
    convention: str | Convention = "graf",
) -> Array:
    r"""IPCW Brier score at given times, one loss per subject, (n, q).

    .. math:: \frac{S(t)^2\,\mathbb 1\{y\le t\}\,\delta}{G(y-)}+\frac{(1-S(t))^2\,\mathbb 1\{y>t\}}{G(t)}

    With the left limit, means over subjects, no floor and the censoring distribution given the covariates it
    is proper on the region where G is positive. It is not with a marginal censoring distribution and
    covariate-dependent censoring, with G(y) at ties, with a floor, with a value that stands for G = 0, or
    with random normalisation.

    Parameters
    ----------
    y, forecast, censoring : outcome and Distributions
        As for every score. The order of events and censorings at ties is a property of the censoring
        distribution, see :class:`Convention`.
    times : array
        Evaluation times.
    convention : str or Convention
        A key of ``CONVENTIONS``, or a choice of your own. Where G = 0 the conventions of scikit-survival and
        SurvivalEVAL give weight zero, mlr3proba's divides by 0.001; those that have no answer raise a
        :class:`~censcore.exceptions.PositivityError`. Losses of a convention that divides by the sum of the
        weights are scaled so that their plain mean is that ratio.

    Returns
    -------
    array, (n, q)

    See Also
    --------
    censcore.brier_score : the proper score, on the same scale with ``scale="ipcw"``.

    References
    ----------
    Graf, E., Schmoor, C., Sauerbrei, W. and Schumacher, M. (1999). Assessment and comparison of prognostic
    classification schemes for survival data. *Statistics in Medicine* 18, 2529-2545.

    Gerds, T. A. and Schumacher, M. (2006). Consistent estimation of the expected Brier score in general
    survival models with right-censored event times. *Biometrical Journal* 48, 1029-1040.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.published import ipcw_brier
    >>> y = cs.RightCensored([1.0, 3.0, 2.0], [1, 1, 0])
    >>> ipcw_brier(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0), times=[1.5]).round(4)
    array([[0.2789],
           [0.3977],
           [0.3977]])
    """
    inputs, t, rule = _prepare(y, forecast, censoring, times, convention)
    S = inputs.F.sf(t)
    return _weighted(inputs, t, rule, event=S**2, survivor=(1 - S) ** 2)


def ipcw_binomial_log(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    times: ArrayLike | None = None,
    *,
    convention: str | Convention = "graf",
) -> Array:
    """IPCW binomial log score, (n, q): :func:`ipcw_brier` with -log F(t) and -log S(t) for the squares.

    Parameters
    ----------
    y, forecast, censoring, times, convention
        As in :func:`ipcw_brier`.

    Returns
    -------
    array, (n, q)

    See Also
    --------
    censcore.binomial_log_score : the proper score.

    References
    ----------
    Graf, E., Schmoor, C., Sauerbrei, W. and Schumacher, M. (1999). Assessment and comparison of prognostic
    classification schemes for survival data. *Statistics in Medicine* 18, 2529-2545.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.published import ipcw_binomial_log
    >>> y = cs.RightCensored([1.0, 3.0, 2.0], [1, 1, 0])
    >>> ipcw_binomial_log(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0), times=[1.5]).round(4)
    array([[0.7992],
           [1.0714],
           [1.0714]])
    """
    inputs, t, rule = _prepare(y, forecast, censoring, times, convention)
    return _weighted(inputs, t, rule, event=-safe_log(inputs.F.cdf(t)), survivor=-inputs.F.logsf(t))


def _prepare(
    y: Any, forecast: Any, censoring: Any, times: Array, convention: str | Convention
) -> tuple[ScoringInputs, Array, Convention]:
    if not isinstance(convention, Convention):
        check_option(convention, "convention", CONVENTIONS)
        convention = CONVENTIONS[convention]
    # the convention decides on events that the censoring distribution excludes
    inputs = scoring_inputs(
        y, forecast, censoring, check_censoring=False, without_entry="A score as published elsewhere"
    )
    t, _ = evaluation_times(times, inputs)
    return inputs, t, convention


def _weighted(inputs: ScoringInputs, t: Array, rule: Convention, event: Array, survivor: Array) -> Array:
    """Losses of events and survivors by inverse probabilities, zero if censored before t, (n, q)."""
    C, y = inputs.C, inputs.y
    time, delta = to_numpy(y.time)[:, None], to_numpy(y.event)[:, None]
    at_event = to_numpy((C.sf_left if rule.left_limit else C.sf)(y.time))
    at_event = np.broadcast_to(at_event, (inputs.n,))[:, None]
    at_time = to_numpy((C.sf_left if rule.survivor_left_limit else C.sf)(t))
    dead, alive = (time <= t) & delta, time > t
    divisor = rule.divisor(np.where(dead, at_event, at_time), dead | alive)
    bad = (dead | alive) & (divisor <= 0)
    if bad.any():
        rows = np.unique(bad.nonzero()[0])
        raise PositivityError(
            f"This score divides by P(C > t) and P(C > y), and one of them is zero in {name_subjects(rows)}. "
            "Evaluate at earlier times.",
            rows=rows.tolist(),
        )
    weight = np.where(dead | alive, 1.0 / np.where(divisor > 0, divisor, 1.0), 0.0)
    loss = weight * np.where(weight > 0, np.where(dead, to_numpy(event), to_numpy(survivor)), 0.0)
    return loss if rule.normalize == "subjects" else loss * len(weight) / weight.sum(axis=0)
