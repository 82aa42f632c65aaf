"""Weibull hazards with a factor that changes at given times."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array, ArrayLike
from censcore._numerics import xlogy
from censcore._validation import check_between
from censcore.distributions.distribution import as_column
from censcore.distributions.univariate.hazard import ByHazard
from censcore.distributions.univariate.piecewise_exponential import PiecewiseExponential


class PiecewiseWeibull(ByHazard):
    r"""A Weibull hazard with a factor that changes.

    .. math:: h(t)=r_j\,a\,t^{a-1},\qquad b_j\le t<b_{j+1}.

    Then :math:`T^a` has the piecewise constant hazard :math:`r_j` between the :math:`b_j^a`. With one piece
    it is ``Weibull(a, r ** (-1 / a))``.

    Parameters
    ----------
    times : array, (J - 1,) or (n, J - 1)
        Where the factor changes: positive, finite, ascending; common to all subjects or one set per subject.
    rates : array, (J,) or (n, J)
        Factors r, non-negative. A last one of zero leaves mass at infinity.
    shape : array or number
        a > 0, one value per subject or one for all.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.distributions import PiecewiseWeibull
    >>> distribution = PiecewiseWeibull(times=[1.0], rates=[[0.5, 0.5], [0.5, 2.0]], shape=2.0)
    >>> distribution.sf(2.0).round(4), cs.Weibull(2.0, 0.5**-0.5).sf(2.0).round(4)
    (array([0.1353, 0.0015]), array([0.1353]))
    """

    _shape: Array

    def __init__(self, times: ArrayLike, rates: ArrayLike, shape: ArrayLike) -> None:
        self.store(times=times, rates=rates, shape=shape)
        self._shape = as_column(self._shape, "shape", "PiecewiseWeibull")
        check_between(self._shape, "shape", 1e-3, 1e8)
        plain = PiecewiseExponential(self._times, self._rates)
        self._times, self._rates = plain._times, plain._rates

    _times: Array
    _rates: Array

    @property
    def _power(self) -> PiecewiseExponential:
        """The distribution of T to the power of a."""
        return self.remember("power", lambda: PiecewiseExponential(self._times**self._shape, self._rates))

    def cumulative_hazard_at(self, t: Array) -> Array:
        return self._power.cumulative_hazard_at(t**self._shape)

    def inverse_hazard_at(self, h: Array) -> Array:
        return self._power.inverse_hazard_at(h) ** (1 / self._shape)

    def log_hazard_at(self, t: Array) -> Array:
        a, xp = self._shape, self.xp
        rate = self._power.log_hazard_at(t**a)
        none = rate == -np.inf
        return xp.where(none, rate, rate + xp.log(a) + xlogy(a - 1, xp.where(none, 1.0, t)))

    def prob_never(self) -> Array:
        return self._power.prob_never()

    def breaks(self) -> Array | None:
        return self._times if self._times.shape[1] else None
