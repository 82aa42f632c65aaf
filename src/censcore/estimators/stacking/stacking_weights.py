"""Weights of the members of a stack, by held-out proper scores and what is known beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import minimize_scalar

_SMALLEST = 0.01  # a weight below is none

# Of the priors: events at which baselines and the other members share equally; and the standard deviations,
# for the share of baselines, and between other members, of which none is likely to be much better. Chosen on
# simulated data, and flat there: 100 to 250, 0.25 to 0.5 and 0.1 to 0.35 give nearly the same forecasts.
_EVENLY, _SPREAD, _MEMBER_SPREAD = 200.0, 0.35, 0.2


class QuadraticLosses:
    r"""Held-out losses of mixtures under a score that is quadratic in the forecast, such as the CRPS.

    The loss of the mixture :math:`\sum_jw_jF_j` is :math:`s^\top w-\tfrac12w^\top Dw`, with the losses
    :math:`s_j` (n, J) of the members and half their squared distances (n, J, J),
    :math:`D_{jl}=4\{(s_j+s_l)/2-s_{jl}\}`, where :math:`s_{jl}` is the loss of the equal mixture of two. It
    is convex in the weights.

    >>> D = np.array([[[0.0, 0.2], [0.2, 0.0]]])
    >>> QuadraticLosses(np.array([[0.5, 0.5]]), D, np.ones(1)).along(*np.eye(2))[0]
    0.5
    """

    def __init__(self, s: np.ndarray, D: np.ndarray, weight: np.ndarray) -> None:
        self.s, self.D, self.share = s, D, weight / weight.sum()
        self.means = self.share @ s

    def along(self, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
        """The share of the first mixture beside the second with the smallest loss, and its squared error."""
        step, share = first - second, self.share
        curvature = -float(step @ np.einsum("i,ijk->jk", share, self.D) @ step)
        if curvature <= 0:  # they do not differ beyond the noise of draws
            return 0.0, np.inf
        slope = self.s @ step - np.einsum("j,ijk,k->i", second, self.D, step)
        return -float(share @ slope) / curvature, _squared_error(slope, share) / curvature**2


class LogLosses:
    r"""Held-out log scores of mixtures, :math:`-\log\sum_jw_jf_j`, by those of members, (n, J).

    >>> round(LogLosses(np.log([[0.5, 1.0], [1.0, 0.5]]), np.ones(2)).along(*np.eye(2))[0], 3)
    0.5
    """

    def __init__(self, s: np.ndarray, weight: np.ndarray) -> None:
        self.share = weight / weight.sum()
        self.means = self.share @ s
        self.f = np.exp(s.min(axis=1, keepdims=True) - s)  # up to a factor per subject

    def along(self, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
        """The share of the first mixture beside the second with the smallest loss, and its squared error."""
        f, g = self.f @ first, self.f @ second
        known = f + g > 0  # a subject that both exclude has no influence
        f, g, share = f[known], g[known], self.share[known]

        def loss(q: float) -> float:
            with np.errstate(divide="ignore"):
                return -float(share @ np.log(q * f + (1 - q) * g))

        q = float(minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded").x)
        slope = (g - f) / (q * f + (1 - q) * g)
        curvature = float(share @ slope**2)
        if curvature <= 0:
            return q, np.inf
        # a step of Newton's: at 0 or 1 the loss may fall beyond, by which the prior is outweighed
        return q - float(share @ slope) / curvature, _squared_error(slope, share) / curvature**2


def joined(folds: Sequence[tuple[np.ndarray, ...]]) -> QuadraticLosses | LogLosses:
    """The losses of all held-out subjects, from those of every fold."""
    kind = LogLosses if len(folds[0]) == 2 else QuadraticLosses
    return kind(*map(np.concatenate, zip(*folds, strict=True)))


def named_weights(
    names: Sequence[str],
    baselines: Sequence[str],
    folds: Sequence[tuple[np.ndarray, ...]],
    events: float,
    expected: Mapping[str, float],
) -> dict[str, float]:
    """Weights by name, of the losses of every fold; none that are small.

    ``expected`` are weights beforehand, relative to each other; one for a model that has none.
    """
    simple = [names.index(name) for name in baselines if name in names]
    flexible = [i for i in range(len(names)) if i not in simple]
    prior = [expected.get(name, 1.0) for name in names]
    w = stacked_weights(joined(folds) if folds else None, flexible, simple, events, prior)
    w = np.where(w < _SMALLEST, 0.0, w.round(9))  # the last digits depend on the processor
    return dict(zip(names, (w / w.sum()).tolist(), strict=True))


def stacked_weights(
    losses: QuadraticLosses | LogLosses | None,
    members: Sequence[int],
    baselines: Sequence[int],
    events: float,
    expected: Sequence[float] | None = None,
) -> np.ndarray:
    r"""Weights of members and of baselines.

    The shares of two mixtures follow from held-out subjects and from a prior: the best share
    :math:`\hat q` of the first has a standard error e, which follows from the spread of the slope of the
    loss over the subjects, and a normal prior with mean :math:`q_0` and standard deviation
    :math:`\tau`. The first gets the posterior mean
    :math:`(\hat q/e^2+q_0/\tau^2)/(1/e^2+1/\tau^2)`, cut to [0, 1].

    The members share one after the other, with ``expected`` shares beforehand (in proportion to these J
    numbers; by default equal) and :math:`\tau=0.2`, and so do the baselines, with :math:`\tau=0.35`. The two
    mixtures share with the prior mean :math:`E/(E+200)` for E events per event time and :math:`\tau=0.35`:
    flexible models need many events to be better than simple ones.

    ``members`` and ``baselines`` are places among the J models. Without losses the prior decides.

    >>> s, D = np.array([[0.5, 0.4], [0.5, 0.6]]), np.array([[0.0, 0.2], [0.2, 0.0]])
    >>> losses = QuadraticLosses(s, np.stack([D, D]), np.ones(2))
    >>> [stacked_weights(losses, [0], [1], events).round(2) for events in (50, 5000)]
    [array([0.4, 0.6]), array([0.66, 0.34])]
    """
    each = np.eye(len(members) + len(baselines))
    prior = np.ones(len(each)) if expected is None else np.asarray(expected, float)
    groups: list[np.ndarray] = []
    for places, deviation in ((members, _MEMBER_SPREAD), (baselines, _SPREAD)):
        for count, place in enumerate(places):
            first = groups.pop() if count else each[place]
            before = prior[list(places[:count])].sum()
            groups.append(_shared(losses, first, each[place], before / (before + prior[place]), deviation))
    if len(groups) == 1:
        return groups[0]
    return _shared(losses, groups[0], groups[1], events / (events + _EVENLY), _SPREAD)


def _shared(
    losses: QuadraticLosses | LogLosses | None,
    first: np.ndarray,
    second: np.ndarray,
    expected: float,
    deviation: float,
) -> np.ndarray:
    """The posterior mean of the mixture of two mixtures, given mean and deviation of the first's share."""
    q = expected
    if losses is not None:
        best, error = losses.along(first, second)
        q += (best - expected) * deviation**2 / (deviation**2 + error)
    return second + min(1.0, max(0.0, q)) * (first - second)


def _squared_error(slope: np.ndarray, share: np.ndarray) -> float:
    """Squared standard error of the mean slope."""
    alike = float(share @ share)  # one over the number of subjects
    return float(share**2 @ (slope - share @ slope) ** 2) / (1 - alike) if alike < 1 else np.inf


def shares(m: int, weights: Sequence[float], offset: float = 0.5) -> list[int]:
    """How many of m draws each component of a mixture makes.

    With a uniform ``offset`` the expected numbers are exactly proportional to the weights.

    >>> shares(10, [0.5, 0.3, 0.2])
    [5, 3, 2]
    >>> shares(1, [0.5, 0.3, 0.2], offset=0.9), shares(1, [0.5, 0.3, 0.2], offset=0.1)
    ([1, 0, 0], [0, 0, 1])
    """
    ends = np.cumsum([0.0, *weights])
    return [int(size) for size in np.diff(np.floor(ends / ends[-1] * m + offset))]
