"""D-calibration: uniformity of the survival probabilities at the event times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from censcore._arrays import ArrayLike, to_numpy
from censcore._validation import as_count, as_labels, as_weights, check_option, check_same_order
from censcore.distributions import Distribution
from censcore.outcomes import EventOfCause, OutcomeLike
from censcore.scores.inputs.scoring_inputs import ScoringInputs, scoring_inputs

LEAST_EXPECTED = 5.0  # expected events of a bin of the test; bins with fewer are joined with the next
POINTS = 100  # quantiles of C given C >= y, over which a subject with another event is averaged
CHUNK = 2000  # such subjects at a time
LEAST_GROUPS = 5  # independent groups below which a covariance of the bins means nothing


@dataclass(frozen=True)
class DCalibration:
    """Result of :func:`d_calibration`.

    Attributes
    ----------
    shares : array, (bins,)
        Share of subjects in each bin of S(T), lowest survival first; 1 / bins each under calibration.
    contributions : array, (n, bins)
        What each subject adds to each bin; each sums to one.
    observed, expected : array, (bins,)
        Events seen in each bin, and events that the forecast expects there of those still at risk.
    statistic, degrees : float
        Sum over the joined bins of (observed - expected)² / expected, divided by its mean under calibration,
        and its degrees of freedom.
    p_value : float
        Of "the forecast is calibrated"; NaN where ``note`` says why it cannot be told.
    note : str
        Why there is no p-value; empty where there is one.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from censcore.published import d_calibration
    >>> T = cs.Exponential(1.0).sample(400, seed=0)[0]
    >>> d_calibration(cs.RightCensored(T, np.ones(400)), cs.Exponential(1.0)).shares.shape
    (10,)
    """

    shares: np.ndarray
    contributions: np.ndarray
    statistic: float
    p_value: float
    observed: np.ndarray
    expected: np.ndarray
    degrees: float
    note: str = ""

    @property
    def verdict(self) -> str:
        """The p-value in words for tables and titles."""
        if self.note:
            return "cannot tell"
        return "p < 0.0001" if self.p_value < 1e-4 else f"p = {self.p_value:.2g}"


def d_calibration(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    *,
    bins: int = 10,
    closed: Literal["left", "right"] = "left",
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> DCalibration:
    r"""D-calibration of a forecast on right-censored data, with a test that holds its level under censoring.

    If the forecast is the distribution of T, then U = S(T) is uniform; where the forecast has an atom, U is
    uniform between S(t) and S(t-). The *shares* are the published picture: an event at y adds one to the bin
    of S(y), spread over [S(y), S(y-)] at an atom; a subject censored at y adds the uniform distribution
    below s = S(y), :math:`(s-l)/s` to its bin [l, u) and width/s to every lower one. ``closed="right"`` takes
    the bins (l, u].

    *One of several causes*, ``y.cause(j)`` with the forecast :math:`F_j`: the time :math:`T_j` is infinite
    after an event of another cause, an atom between :math:`S_j(\infty)=1-F_j(\infty)` and 0. A subject with
    another event at y survives C, of which :math:`C\ge y` is known: it adds what a subject censored at C
    does, averaged over C given :math:`C\ge y`, to shares and to expected events. So the censoring
    distribution is needed here, and the test takes it as known.

    The *test* does not use the shares: mass that was spread varies less than counts, and Pearson's
    chi-square of the shares hardly ever rejects under censoring. It counts events where they were seen.
    On the scale of U, from 1 downwards, a subject at risk has hazard 1/u, so that bin k expects

    .. math:: E_{ik}=\log u_k-\log\max\{l_k,\min(u_k,U_i)\},\qquad M_{ik}=N_{ik}-E_{ik},

    events of subject i, averaged over U at an atom, and :math:`M_{ik}` has mean zero however much is
    censored. The statistic is :math:`Q=\sum_k(\sum_i w_iM_{ik})^2/\sum_iw_iE_{ik}`; its distribution
    follows from the covariance of the M between groups, by two moments.

    Parameters
    ----------
    y : outcome
        n subjects; of competing risks, that of one cause.
    forecast : Distribution
        Of T, one per subject or one for all.
    censoring : Distribution, optional
        Of C, for one of several causes. Else it is neither needed nor used; scores and calibration can be
        called alike.
    bins : int
        Equal bins of U. In the test, bins with fewer than five expected events are joined with the next; the
        lowest ends at a tenth of its width.
    closed : {"left", "right"}
        Which end belongs to a bin, and so where an event with S(y) on the edge of two bins is counted: in the
        upper one ("left", as in Haider et al.) or in the lower one ("right", as in mlr3proba).
    sample_weight : array, (n,), optional
        A weight of two counts like two subjects with the same data, in one group.
    groups : array, (n,), optional
        Labels of subjects that belong together; different groups are independent.

    Returns
    -------
    DCalibration

    See Also
    --------
    censcore.crps : A proper score, which rewards calibration and sharpness together.

    Notes
    -----
    The true distribution given the covariates passes if C is independent of T given them. Calibration is a
    necessary condition, not a score: a forecast that ignores the covariates passes too if C is independent of
    T and of them.

    References
    ----------
    .. [1] Haider, Hoehn, Davis, Greiner (2020). Effective ways to build and evaluate individual survival
       distributions. Journal of Machine Learning Research 21(85). The shares.
    .. [2] Akritas (1988). Pearson-type goodness-of-fit tests: the univariate case. Journal of the American
       Statistical Association 83, 222-230. Observed and expected events under censoring.
    .. [3] Rao, Scott (1981). The analysis of categorical data from complex sample surveys. Journal of the
       American Statistical Association 76, 221-230. The distribution of the statistic.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from censcore.published import d_calibration
    >>> rng = np.random.default_rng(0)
    >>> t, c = rng.exponential(1.0, 2000), rng.exponential(2.0, 2000)
    >>> y = cs.RightCensored(np.minimum(t, c), t <= c)
    >>> right, wrong = (d_calibration(y, cs.Exponential(rate)) for rate in (1.0, 1.5))
    >>> right.p_value > 0.01, wrong.p_value < 1e-6
    (True, True)
    """
    bins = as_count(bins, "bins", least=2, most=10**6)
    check_option(closed, "closed", ("left", "right"))
    check_same_order(y=y, sample_weight=sample_weight, groups=groups)
    one_cause = isinstance(y, EventOfCause)
    inputs = scoring_inputs(
        y, forecast, censoring if one_cause else None, needs_censoring=one_cause, one_cause=True
    )
    n, time, event = inputs.n, inputs.y.time, to_numpy(inputs.y.event)
    weight = np.ones(n) if sample_weight is None else as_weights(sample_weight, n)
    groups = None if groups is None else as_labels(groups, n)
    low = np.broadcast_to(to_numpy(inputs.F.sf(time)), (n,)).astype(np.float64)
    high = np.broadcast_to(to_numpy(inputs.F.sf_left(time)), (n,)).astype(np.float64)
    high = np.where(event, np.maximum(low, high), low)

    each = _contributions(low, high, event, bins, closed)
    N, E = _observed_and_expected(low, high, event, bins, closed)
    if inputs.has_never:
        _average_over_follow_up(inputs, each, E, closed)
    statistic, degrees, p, note = _test(N, E, weight, groups)
    return DCalibration(
        weight @ each / weight.sum(), each, statistic, p, weight @ N, weight @ E, degrees, note
    )


def _average_over_follow_up(inputs: ScoringInputs, each: np.ndarray, E: np.ndarray, closed: str) -> None:
    """Replace both, (n, bins), after events of another cause: as if censored at C, averaged over C >= y."""
    p = (np.arange(POINTS) + 0.5) / POINTS
    passed = np.nonzero(to_numpy(inputs.y.never))[0]
    for rows in np.array_split(passed, -(-len(passed) // CHUNK)):
        part = inputs.take(rows)
        c = part.C.icdf_beyond(part.y.time, part.xp.asarray(p[None, :], dtype=part.time.dtype))
        never = part.F.prob_never()[:, None]  # what is known where follow-up never ends
        S = to_numpy(part.xp.where(part.xp.isinf(c), never, part.F.sf(c))).astype(np.float64).reshape(-1)
        censored, bins = np.zeros(S.shape, dtype=bool), each.shape[1]
        added = _contributions(S, S, censored, bins, closed)
        expected = _observed_and_expected(S, S, censored, bins, closed)[1]
        for target, values in ((each, added), (E, expected)):
            target[rows] = values.reshape(len(rows), POINTS, bins).mean(axis=1)


def _contributions(
    low: np.ndarray, high: np.ndarray, event: np.ndarray, bins: int, closed: str
) -> np.ndarray:
    """The distribution of U over the bins: at S(y), within [S(y), S(y-)], or below S(y) where censored."""
    low, high = np.where(event, low, 0.0)[:, None], high[:, None]
    left = np.arange(bins) / bins
    covered = np.clip(np.minimum(high, left + 1 / bins) - np.maximum(low, left), 0.0, None)
    place = np.floor(high[:, 0] * bins) if closed == "left" else np.ceil(high[:, 0] * bins) - 1
    point = np.clip(place.astype(int), 0, bins - 1)
    width = high - low
    spread = covered / np.where(width > 0, width, 1.0)
    return np.where(width > _POINT, spread, np.eye(bins)[point])


_POINT = 1e-9  # jumps below this are points: averages over them would cancel


def _observed_and_expected(
    low: np.ndarray, high: np.ndarray, event: np.ndarray, bins: int, closed: str
) -> tuple[np.ndarray, np.ndarray]:
    """N_ik and E_ik, (n, bins), averaged over U uniform on [low, high]."""
    u = np.arange(1, bins + 1) / bins
    l = u - 1 / bins  # noqa: E741
    l[0] = 0.1 / bins  # the hazard 1/u has no end at 0, so that counting ends above it
    a, b = low[:, None], high[:, None]
    atom = b - a > _POINT
    width = np.where(atom, b - a, 1.0)

    def hazard(s: np.ndarray) -> np.ndarray:
        return np.log(u) - np.log(np.clip(s, l, u))

    def integral(s: np.ndarray) -> np.ndarray:
        """Of the hazard from 0 to s."""
        inside = np.clip(s, l, u)
        return np.where(s < l, s * np.log(u / l), inside * np.log(u / inside) + inside - l)

    E = np.where(atom, (integral(b) - integral(a)) / width, hazard(b))
    at_point = (b >= l) & ((b < u) | (u == 1)) if closed == "left" else (b > l) & (b <= u)
    within = np.clip(np.minimum(b, u) - np.maximum(a, l), 0.0, None) / width
    N = np.where(event[:, None], np.where(atom, within, at_point), 0.0)
    return N, E


def _test(
    N: np.ndarray, E: np.ndarray, weight: np.ndarray, groups: np.ndarray | None
) -> tuple[float, float, float, str]:
    """Statistic, degrees of freedom, p-value, and why there is none."""
    from scipy.special import fdtrc

    used = weight > 0
    N, E, weight = N[used], E[used], weight[used] / weight.max()
    group = None if groups is None else np.unique(groups[used], return_inverse=True)[1]
    size = weight if group is None else np.bincount(group, weight)
    equal = size.sum() / (size**2).sum()  # of equally large groups, per unit of weight
    joined = _join(equal * (weight @ E))
    N, E = N @ joined, E @ joined
    V = weight @ E
    if E.sum() < LEAST_EXPECTED:
        alone = len(size) == len(weight)
        return _few_expected(float(N.sum()), float(E.sum()), alone and bool((weight == weight[0]).all()))
    M = weight[:, None] * (N - E)
    if group is not None:
        M = np.column_stack([np.bincount(group, column) for column in M.T])
    Q = float((M.sum(axis=0) ** 2 / V).sum())
    g = len(M)
    if g < LEAST_GROUPS:
        return np.nan, np.nan, np.nan, f"got {g} independent groups, expected at least {LEAST_GROUPS}."
    deviation = (M - M.mean(axis=0)) / np.sqrt(V)
    covariance = deviation.T @ deviation * (g / (g - 1))
    mean, squares = float(np.trace(covariance)), float((covariance**2).sum())
    if not mean > 0:
        return np.nan, np.nan, np.nan, "All subjects (or groups) contribute the same; the spread is unknown."
    degrees = mean**2 / squares
    p = float(fdtrc(degrees, degrees * (g - 1), Q / mean))
    return Q / mean * degrees, degrees, max(p, np.finfo(float).tiny), ""


def _join(expected: np.ndarray) -> np.ndarray:
    """Indicators (bins, joined) of bins put together, from early to late, with enough expected events."""
    label, at, total = np.zeros(len(expected), dtype=int), 0, 0.0
    for k in range(len(expected) - 1, -1, -1):
        label[k] = at
        total += expected[k]
        if total >= LEAST_EXPECTED:
            at, total = at + 1, 0.0
    label = np.minimum(label, max(at - 1, 0))
    return np.eye(len(expected))[label][:, : label.max() + 1]


def _few_expected(observed: float, expected: float, alike: bool) -> tuple[float, float, float, str]:
    """Fewer than five expected events: one bin, and the Poisson distribution where subjects are alike."""
    from scipy.special import pdtrc

    too_many = 2 * float(pdtrc(observed - 1, expected)) if observed > expected else 1.0
    if alike and too_many < 0.05:
        statistic = (observed - expected) ** 2 / expected if expected > 0 else np.inf
        return statistic, 1.0, max(too_many, np.finfo(float).tiny), ""
    note = (
        f"The forecast expects {expected:.2g} events up to the observed times and {observed:.3g} were seen; "
        f"the test needs {LEAST_EXPECTED:g} expected events."
    )
    return np.nan, np.nan, np.nan, note
