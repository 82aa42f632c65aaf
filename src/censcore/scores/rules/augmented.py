"""Augmented (doubly robust) scores on the scale of uncensored data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from censcore._arrays import Array, common_rows, one_namespace, to_numpy
from censcore._numerics import chunked_rows, xlogy
from censcore._validation import check_flag, name_subjects
from censcore.distributions import Distribution, Univariate
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import as_outcome
from censcore.scores.decorator import score
from censcore.scores.inputs.alignment import in_dtype_of
from censcore.scores.inputs.scoring_inputs import ScoringInputs, known_to_exceed
from censcore.scores.inputs.support import check_unreached
from censcore.scores.integration.augmentation import (
    augmented_indicator,
    augmented_integral,
    check_event_model_support,
    numbers_per_subject,
)

EARLIER = "brier_score and crps need no such division."


@score(None, axis="time", causes=None, intervals=None)
def augmented_brier_score(inputs: ScoringInputs, times: Array, *, event_model: Distribution) -> Array:
    r"""Doubly robust Brier score at given times: right if the censoring or the event model is right.

    .. math:: Z(t)\,(1-S(t))^2+(1-Z(t))\,S(t)^2

    where :math:`S(t)` is the forecast's survival and :math:`Z(t)` the augmented indicator of survival,

    .. math::
        Z(t)=\frac{1\{y>t\}}{G(t)}+\int_{[0,y\wedge t]}\frac{p_t(u)}{G(u)}\,dM_C(u),
        \qquad p_t(u)=\frac{P_W(T>t)}{P_W(T>u)}.

    :math:`G(u)=P(C>u)`; W is the event model; :math:`dM_C(u)=dN_C(u)-R(u)\,d\Lambda_C(u)` is the
    martingale of censoring, with :math:`R(u)` the indicator of being at risk of it: events come first, so a
    subject with an event at y is at risk only before y. Censored subjects, which the inverse-probability
    score (``brier_score(..., scale="ipcw")``) leaves out, take part by what W expects of them.

    Let C be independent of T given the covariates. Then :math:`E[Z(t)\mid x]=P(T>t\mid x)` if G is right
    given x *or* W is right given x, and so the mean loss is that of uncensored data and the score is
    proper. If both are wrong it is biased and proper for nothing. With both right, no other unbiased
    score of this kind has a smaller variance.

    Parameters
    ----------
    y : RightCensored, structured array or frame
        The outcome of n subjects.
    forecast : Distribution
        Forecast distribution of T, one per subject.
    censoring : Distribution, optional
        Distribution of C, with P(C > t) > 0 for all subjects and times. It may be left out only where it is
        known: nothing is censored, or ``y.censoring_time`` is given.
    times : array or number
        Evaluation times, (q,) or (n, q), in any order, below the horizon.
    event_model : Distribution
        Working distribution of T, one per subject, fitted apart from the forecasts (to training data). It
        must be the same for all forecasts that are compared, and none of them, which it would favour.
    horizon : number or (n,) array, optional
        End of follow-up for the score: C becomes min(C, horizon).

    Returns
    -------
    array, (n, q), or (n,) for a single number
        One loss per subject and time; lower is better. A single loss may be negative or exceed 1, since Z is
        no probability; it stays convex in S(t), with its minimum at Z.

    Notes
    -----
    The first-order effect of estimating G and W cancels when both are consistent: the spread of the losses
    over subjects (:func:`mean_loss`) is a valid standard error if the product of the two estimation errors
    vanishes faster than :math:`n^{-1/2}`, for instance both at rates better than :math:`n^{-1/4}`. If only
    one of them is right the mean is still right, but its standard error should come from a bootstrap that
    fits both anew.

    References
    ----------
    Robins, J. M. and Rotnitzky, A. (1992). Recovery of information and adjustment for dependent censoring
    using surrogate markers. In: AIDS Epidemiology, Birkhäuser, 297-331.

    Tsiatis, A. A. (2006). Semiparametric Theory and Missing Data. Springer, chapters 9 and 10.

    See Also
    --------
    brier_score : without an event model.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> F, C, W = cs.Exponential(0.5), cs.Uniform(0.0, 5.0), cs.Weibull(1.5, 2.5)
    >>> cs.augmented_brier_score(y, F, C, times=[1.5, 2.5], event_model=W).round(4)
    array([[0.2134, 0.0381],
           [0.2834, 0.6593],
           [0.2834, 0.4654]])
    """
    Z, S = _augmented(augmented_indicator, inputs, times, event_model), inputs.F.sf_at(times)
    return Z * (1 - S) ** 2 + (1 - Z) * S**2


@score(None, axis="time", causes=None, intervals=None)
def augmented_binomial_log_score(inputs: ScoringInputs, times: Array, *, event_model: Distribution) -> Array:
    r"""Doubly robust logarithmic score of "the event happens by t": right if either model is right.

    .. math:: -Z(t)\log S(t)-(1-Z(t))\log(1-S(t))

    with the forecast's survival :math:`S(t)` and the augmented indicator :math:`Z(t)` of
    :func:`augmented_brier_score`, under the same assumptions.

    Parameters
    ----------
    y, forecast, censoring, times, event_model, horizon
        As in :func:`augmented_brier_score`. Every forecast needs 0 < S(t) < 1: where Z lies outside [0, 1]
        the loss of a certain forecast would be infinite in either direction.

    Returns
    -------
    array, (n, q), or (n,) for a single number
        One loss per subject and time; lower is better in the mean. The loss of a single subject with Z
        outside [0, 1] has no lower bound.

    References
    ----------
    Robins, J. M. and Rotnitzky, A. (1992). Recovery of information and adjustment for dependent censoring
    using surrogate markers. In: AIDS Epidemiology, Birkhäuser, 297-331.

    Tsiatis, A. A. (2006). Semiparametric Theory and Missing Data. Springer, chapters 9 and 10.

    See Also
    --------
    censcore.augmented_brier_score : The same with the Brier score, and the assumptions.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> F, C, W = cs.Exponential(0.5), cs.Uniform(0.0, 5.0), cs.Weibull(1.5, 2.5)
    >>> cs.augmented_binomial_log_score(y, F, C, times=[1.5, 2.5], event_model=W).round(4)
    array([[0.6199, 0.2435],
           [0.7601, 1.5709],
           [0.7601, 1.1566]])
    """
    Z = _augmented(augmented_indicator, inputs, times, event_model)
    S, P = inputs.F.sf_at(times), inputs.F.cdf_at(times)
    _check_open_interval(S, P, inputs.n)
    return -xlogy(Z, S + 0 * Z) - xlogy(1 - Z, P + 0 * Z)


@score(None, causes=None, intervals=None)
def augmented_integrated_brier_score(
    inputs: ScoringInputs, *, event_model: Distribution, normalize: bool = False
) -> Array:
    r"""Doubly robust Brier score integrated up to a horizon: right if either model is right.

    .. math:: \int_0^h Z(t)\,(1-S(t))^2+(1-Z(t))\,S(t)^2\,dt

    with the augmented indicator of survival :math:`Z(t)` of :func:`augmented_brier_score`, under the same
    assumptions. Its mean is that of :math:`\int_0^h(1\{T\le t\}-F(t))^2dt`, the CRPS of uncensored data up to
    the horizon. Step functions give exact sums; all else is Gauss-Legendre quadrature between the quantiles
    and break points of the three distributions.

    Parameters
    ----------
    y, forecast, censoring, event_model
        As in :func:`augmented_brier_score`; P(C >= horizon) > 0 for all subjects.
    horizon : number or (n,) array
        h, the end of the integral.
    normalize : bool
        Divide by the horizon, which makes it a mean over [0, h].

    Returns
    -------
    array, (n,)
        One loss per subject; lower is better.

    References
    ----------
    Robins, J. M. and Rotnitzky, A. (1992). Recovery of information and adjustment for dependent censoring
    using surrogate markers. In: AIDS Epidemiology, Birkhäuser, 297-331.

    Tsiatis, A. A. (2006). Semiparametric Theory and Missing Data. Springer, chapters 9 and 10.

    See Also
    --------
    censcore.augmented_brier_score : The same with the Brier score, and the assumptions.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> F, C, W = cs.Exponential(0.5), cs.Uniform(0.0, 5.0), cs.Weibull(1.5, 2.5)
    >>> cs.augmented_integrated_brier_score(y, F, C, event_model=W, horizon=4.0).round(4)
    array([0.3227, 0.6269, 1.1316])
    """
    check_flag(normalize, "normalize")
    if inputs.horizon is None:
        raise InvalidInputError("horizon must be a time, the end of the integral; got None.")
    h = inputs.horizon.reshape(-1, 1)
    loss = _augmented(augmented_integral, inputs, h, event_model, before=True)
    return loss / h[:, 0] if normalize else loss


def _augmented(
    function: Callable[[ScoringInputs, Univariate, Array], Array],
    inputs: ScoringInputs,
    t: Array,
    event_model: Any,
    before: bool = False,
) -> Array:
    """Apply ``function`` to subjects, event model and times (1 or n, q), checked and some rows at a time."""
    as_outcome(inputs.y)  # one of several causes is an error
    inputs = inputs.given_entry()
    W = _as_event_model(event_model, inputs)
    check_unreached(inputs.n, inputs.C, t, before=before, remedy=EARLIER)
    check_event_model_support(inputs, W, t, before=before)

    def part(rows: slice) -> Array:
        return function(inputs.take(rows), W.take(rows), t if t.shape[0] == 1 else t[rows])

    numbers = numbers_per_subject(inputs.F, inputs.C, W) + t.shape[1]
    return chunked_rows(part, inputs.n, numbers, like=inputs.y.time)


def _as_event_model(W: Any, inputs: ScoringInputs) -> Univariate:
    if not isinstance(W, Univariate):
        raise InvalidTypeError(
            f"event_model must be a censcore Distribution of one event time; got {type(W).__name__}, "
            "expected for instance CoxRegression().fit(X_train, y_train).predict_distribution(X_test)."
        )
    time = inputs.y.time
    if not W.is_neutral:
        one_namespace(outcome=time, event_model=W.reference)
    common_rows(outcome=inputs.n, event_model=len(W))
    W = cast(Univariate, in_dtype_of(W, time))
    return W.given_survival(known_to_exceed(inputs.y.entry)) if inputs.y.has_delayed_entry else W


def _check_open_interval(S: Array, P: Array, n: int) -> None:
    bad = np.broadcast_to(to_numpy((S <= 0) | (P <= 0)).any(axis=1), (n,))
    if bad.any():
        raise InvalidInputError(
            "The augmented log score needs forecasts with 0 < P(T > t) < 1; got a certain forecast in "
            f"{name_subjects(np.nonzero(bad)[0])}. Score these by augmented_brier_score, or leave out the "
            "times at which the forecast is certain."
        )
