r"""Marginal distributions of T and C that depend on each other by an assumed Archimedean copula.

The convention is that of survival copulas: with a generator :math:`\varphi`,

.. math:: P(T>t,C>c)=\varphi^{-1}\{\varphi(P(T>t))+\varphi(P(C>c))\},

and independence is :math:`\varphi=-\log`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._validation import as_number, as_weights, check_option
from censcore.distributions import Step
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike, as_outcome


@dataclass(frozen=True)
class Generator:
    """The generator of an Archimedean copula, a decreasing function with value 0 at 1, and its inverse."""

    of: Callable[[np.ndarray], np.ndarray]
    inverse: Callable[[np.ndarray], np.ndarray]


INDEPENDENCE = Generator(lambda u: -np.log(u), lambda s: np.exp(-s))


def _clayton(tau: float) -> Generator:
    theta = 2 * tau / (1 - tau)
    return Generator(
        lambda u: np.expm1(-theta * np.log(u)) / theta, lambda s: (1 + theta * s) ** (-1 / theta)
    )


def _gumbel(tau: float) -> Generator:
    theta = 1 / (1 - tau)
    return Generator(lambda u: (-np.log(u)) ** theta, lambda s: np.exp(-(s ** (1 / theta))))


def _frank(tau: float) -> Generator:
    """In forms that keep the digits of levels near one under strong dependence."""
    theta = frank_parameter(tau)
    size = abs(theta)
    if theta > 0:
        return Generator(
            lambda u: np.log1p(-np.exp(-size)) - np.log1p(-np.exp(-size * u)),
            lambda s: -np.log(-np.expm1(-s) + np.exp(-s - size)) / size,
        )
    whole = np.expm1(size)
    return Generator(
        lambda u: np.log(whole) - np.log(np.expm1(size * u)), lambda s: np.log1p(np.exp(-s) * whole) / size
    )


def frank_parameter(tau: float) -> float:
    r"""The root of :math:`\tau=1-4\{1-D_1(\theta)\}/\theta`, with the first Debye function :math:`D_1`."""
    from scipy.integrate import quad
    from scipy.optimize import brentq

    def excess(theta: float) -> float:
        debye = quad(lambda s: s * np.exp(-s) / -np.expm1(-s) if s else 1.0, 0, theta)[0] / theta
        return 1 - 4 * (1 - debye) / theta - abs(tau)

    return float(np.sign(tau) * brentq(excess, 1e-4, 200.0, xtol=1e-12))


#: Copulas by name: the smallest Kendall's tau (the largest is below 1), and the generator.
COPULAS: dict[str, tuple[float, Callable[[float], Generator]]] = {
    "frank": (-1.0, _frank),
    "clayton": (0.0, _clayton),
    "gumbel": (0.0, _gumbel),
}
STRONGEST = 0.95  # beyond it almost all of C would be known from T
WEAKEST = 1e-4  # below it the generators have too few digits, and the copula is independence to four of them


def generator(copula: str, tau: float) -> Generator:
    """The generator of a copula with Kendall's ``tau``; independence at zero."""
    check_option(copula, "copula", COPULAS)
    lowest, make = COPULAS[copula]
    tau = as_number(tau, "tau")
    if not (max(lowest, -STRONGEST) <= tau <= STRONGEST):
        raise InvalidInputError(
            f"Kendall's tau of a {copula} copula must lie between {max(lowest, -STRONGEST):g} and "
            f"{STRONGEST:g}; got {tau:g}. The frank copula has negative values too."
        )
    return INDEPENDENCE if abs(tau) < WEAKEST else make(float(tau))


@dataclass(frozen=True, eq=False)
class Curve:
    """The copula-graphic estimate at the distinct times (J,), for R sets of weights."""

    times: np.ndarray  #: (J,)
    followed: np.ndarray  #: P(Y > t), (R, J)
    events: np.ndarray  #: P(Y = t, Delta = 1), (R, J)
    S: np.ndarray  #: P(T > t), (R, J)
    G: np.ndarray  #: P(C > t), (R, J)

    @property
    def S_before(self) -> np.ndarray:
        """P(T >= t), (R, J)."""
        return np.concatenate([np.ones_like(self.S[:, :1]), self.S[:, :-1]], axis=1)


def copula_graphic_curve(
    time: np.ndarray, event: np.ndarray, phi: Generator, weight: np.ndarray | None = None
) -> Curve:
    r"""The copula-graphic estimate for subjects with the given times, under weights (R, n).

    Every drop of :math:`P(Y>t)` adds its :math:`\varphi(P(Y>t))-\varphi(P(Y\ge t))` to
    :math:`\varphi(S)` if events make it and to :math:`\varphi(G)` if censoring does; events come first.
    """
    order = np.argsort(time, kind="stable")
    times, start = np.unique(time[order], return_index=True)
    w = np.ones((1, len(time))) if weight is None else weight
    share = (w / w.sum(axis=1, keepdims=True))[:, order]
    died = np.add.reduceat(share * event[order], start, axis=1)
    left = np.add.reduceat(share * ~event[order], start, axis=1)
    # from the end, so that nobody left is exactly zero
    at_risk = np.cumsum((died + left)[:, ::-1], axis=1)[:, ::-1]
    followed = np.concatenate([at_risk[:, 1:], np.zeros_like(at_risk[:, :1])], axis=1)
    survivors = followed + left
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = [phi.of(level) for level in (np.minimum(at_risk, 1.0), survivors, followed)]
        by_event = np.where(died > 0, levels[1] - levels[0], 0.0)
        by_censoring = np.where(left > 0, levels[2] - levels[1], 0.0)
        S, G = (phi.inverse(np.cumsum(part, axis=1)) for part in (by_event, by_censoring))
    return Curve(times, followed, died, S, G)


def copula_graphic(
    y: OutcomeLike, copula: str = "frank", tau: float = 0.0, sample_weight: Array | None = None
) -> tuple[Step, Step]:
    r"""Copula-graphic estimate of the distributions of T and C that depend on each other.

    The data identify only the distribution of (Y, Delta). With the dependence assumed,
    :math:`P(T>t,C>c)=\varphi^{-1}\{\varphi(S(t))+\varphi(G(c))\}` for a generator :math:`\varphi` with
    Kendall's tau as given, both marginals follow:

    .. math:: \varphi(S(t))=\sum_{y_i\le t,\,\delta_i=1}\varphi\{P(Y\ge y_i)-1/n\}-\varphi\{P(Y\ge y_i)\},

    and the same over censored subjects for G. At tau = 0 they are the Kaplan-Meier estimates. Consistent if
    the copula and its tau are right; the data cannot tell.

    Parameters
    ----------
    y : RightCensored, structured array or frame
        The outcome of n subjects.
    copula : {"frank", "clayton", "gumbel"}
        The survival copula of (T, C). Clayton: late times depend most; Gumbel: early times do.
    tau : float
        Kendall's tau of T and C: positive where subjects at high risk are censored early. Only the Frank
        copula has negative values.
    sample_weight : array, (n,), optional
        Weights of the subjects.

    Returns
    -------
    tuple of Step
        The distributions of T and of C.

    References
    ----------
    Zheng, M. and Klein, J. P. (1995). Estimates of marginal survival for dependent competing risks based on
    an assumed copula. Biometrika 82, 127-138.

    Rivest, L.-P. and Wells, M. T. (2001). A martingale approach to the copula-graphic estimator for the
    survival function under dependent censoring. Journal of Multivariate Analysis 79, 138-155.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 2.0, 2.0, 3.0, 4.0], event=[1, 1, 0, 1, 0])
    >>> for tau in (-0.5, 0.0, 0.5):
    ...     T, C = cs.copula_graphic(y, "frank", tau)
    ...     print(tau, T.sf([[1.0, 2.0, 3.0]]).round(3))
    -0.5 [[0.8   0.6   0.369]]
    0.0 [[0.8 0.6 0.3]]
    0.5 [[0.8   0.6   0.231]]
    """
    y = as_outcome(y).require_no_entry("copula_graphic").require_one_time("copula_graphic")
    weight = None if sample_weight is None else as_weights(sample_weight, len(y))[None, :]
    curve = copula_graphic_curve(to_numpy(y.time), to_numpy(y.event), generator(copula, tau), weight)
    return Step(curve.times, sf=curve.S), Step(curve.times, sf=curve.G)
