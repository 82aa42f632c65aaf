"""Lower bounds of event times with a share of coverage that holds for any forecast."""

from __future__ import annotations

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import as_number, check_kind
from censcore.distributions import Distribution, Univariate
from censcore.estimators.survival_estimator import one_event_time
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike
from censcore.scores.inputs.known_at import over_reached
from censcore.scores.inputs.scoring_inputs import scoring_inputs

_FOLLOWED = 0.2  # P(C >= t) at the end of follow-up, by default
_ROUNDING = 1e-9  # of sums of weights


def conformal_lower_bound(
    y: OutcomeLike,
    forecast: Distribution,
    new: Univariate,
    censoring: Distribution | None = None,
    *,
    level: float = 0.9,
    horizon: float | None = None,
) -> np.ndarray:
    r"""Compute times L(x) that new subjects outlive with a given probability, whatever the forecast.

    .. math:: L(x)=\min\{\hat F^{-1}(\tau\mid x),h\},\qquad
        \sum_iw_i\,\mathbb 1\{T_i<L(x_i)\}+w_{\max}\le(1-\text{level})\Big(\sum_iw_i+w_{\max}\Big)

    with the largest such :math:`\tau`. The sums are over calibration subjects of whom :math:`\min(T,h)` is
    known: an event at :math:`T<h` has the weight :math:`w=1/P(C\ge T\mid x)`, a subject that is followed to
    the horizon h :math:`1/P(C\ge h\mid x)`. Without censoring this is split conformal prediction [1]_, and
    :math:`P\{T\ge L(x)\}\ge\text{level}` for any forecast and any number of subjects; with it the statement
    is that of [2]_ with weights by the time of each event, and holds as far as the censoring distribution is
    right. The probability is over all subjects, calibration and new: a bad forecast has low bounds, and may
    cover some kinds of subjects less and others more often.

    Parameters
    ----------
    y : RightCensored, structured array or frame
        Outcomes of the calibration subjects, one event time each. They come from the same population as the
        new ones, and were not used to fit the forecast.
    forecast : Distribution
        Forecasts of the calibration subjects.
    new : Distribution
        Forecasts of the new subjects, of the same model.
    censoring : Distribution, optional
        Distribution of C of the calibration subjects given covariates, for instance of
        :class:`~censcore.Censoring`; may be left out if nothing is censored.
    level : float
        The probability, below one.
    horizon : float, optional
        h; without it the largest time with :math:`P(C\ge t)\ge0.2` for all calibration subjects.

    Returns
    -------
    array, (n,)
        A time for each new subject.

    See Also
    --------
    censcore.BestForecast : A forecast whose quantiles are of this kind if it is calibrated.

    References
    ----------
    .. [1] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani and L. Wasserman (2018). Distribution-free
       predictive inference for regression. Journal of the American Statistical Association 113, 1094-1111.
    .. [2] E. Candès, L. Lei and Z. Ren (2023). Conformalized survival analysis. Journal of the Royal
       Statistical Society, Series B 85, 24-45.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> T, C = rng.exponential(1.0, 500), rng.uniform(0, 4, 500)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> F, new = cs.Exponential(0.2), cs.Exponential([0.2, 0.4])
    >>> cs.conformal_lower_bound(y, F, new, cs.Uniform(0, 4)).round(2)
    array([0.11, 0.05])
    """
    level = as_number(level, "level", above=0, below=1)
    check_kind(new, "new", Univariate, "forecast distributions of one event time")
    y = one_event_time(y, "conformal_lower_bound").like(np.empty(0))
    inputs = scoring_inputs(y, forecast, censoring)
    if inputs.n != len(y):
        raise InvalidInputError(
            f"forecast, censoring: got {inputs.n} subjects, expected one distribution per calibration "
            f"subject, {len(y)}, or one for all."
        )
    F, C, time, event = inputs.F, inputs.C, to_numpy(y.time), to_numpy(y.event)
    if not event.all() and not np.isnan(to_numpy(C.known_time())).all():
        raise InvalidInputError(
            "censoring: got known censoring times, expected the distribution of C given covariates, from "
            "which subjects with an event stand for others who were censored before. Pass for instance "
            "Censoring(KaplanMeier()).fit(X, y).predict_distribution(X)."
        )
    end = float(np.min(to_numpy(C.isf(_FOLLOWED))))
    if horizon is not None:
        end = as_number(horizon, "horizon", above=0)
    missed, followed = event & (time < end), time >= end
    reached = np.broadcast_to(C.sf_left(np.minimum(time, end)), time.shape)
    weight = to_numpy(over_reached(missed | followed, reached))
    allowed = (1 - level) * (weight.sum() + weight.max()) - weight.max() + _ROUNDING
    if not np.isfinite(allowed) or allowed < 0:
        raise InvalidInputError(
            f"got {int((missed | followed).sum())} calibration subjects whose time up to {end:g} is known, "
            f"with weights up to {weight.max():.3g}, which do not suffice for level={level:g}. Take more "
            "subjects, a lower level, or an earlier horizon."
        )
    rank = to_numpy(F.cdf(y.time))[missed]
    order = np.argsort(rank)
    place = int(np.searchsorted(weight[missed][order].cumsum(), allowed, side="right"))
    if place == len(order):  # no bound before the horizon is missed too often
        return np.full(len(new), end)
    return np.minimum(to_numpy(new.like(np.empty(0)).icdf(np.array([[rank[order][place]]])))[:, 0], end)
