"""The distribution of min(T, tau), for one event time and for several."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike
from censcore._validation import check_kind
from censcore.distributions._panels import common_breaks, merge_edges
from censcore.distributions.joint import Joint
from censcore.distributions.random_draws import Draws
from censcore.distributions.univariate import Univariate, check_one_time
from censcore.exceptions import NoDensityError


class Censored(Univariate):
    r"""The distribution of :math:`\min(T,\tau)`, the event time where follow-up ends at :math:`\tau`.

    .. math:: P(\min(T,\tau)>t)=P(T>t)\,\mathbb 1\{t<\tau\}.

    Made by ``distribution.censor_at(tau)``.

    Parameters
    ----------
    distribution : Univariate
        The distribution of T.
    tau : number or array, (n,)
        End of follow-up, one for all subjects or one per subject; infinity is allowed.

    See Also
    --------
    CensoredJoint : The same for several event times.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.Exponential(rate=1.0).censor_at(2.0)
    >>> distribution.sf([1.0, 2.0]).round(3), distribution.sf_left([2.0]).round(3)
    (array([0.368, 0.   ]), array([0.135]))
    """

    has_density: ClassVar[bool] = False
    _arrays: ClassVar[tuple[str, ...]] = ("_tau",)
    _distributions: ClassVar[tuple[str, ...]] = ("_distribution",)

    def __init__(self, distribution: Univariate, tau: ArrayLike) -> None:
        check_one_time(distribution, "distribution")
        self._distribution, self._tau = distribution._with_end(tau)

    _degree = Univariate._degree_of_parts

    def _sf(self, t: Array) -> Array:
        return self._xp.where(t < self._tau, self._distribution._sf(t), 0.0)

    def _sf_left(self, t: Array) -> Array:
        return self._xp.where(t <= self._tau, self._distribution._sf_left(t), 0.0)

    def _cdf(self, t: Array) -> Array:
        return self._xp.where(t < self._tau, self._distribution._cdf(t), 1.0)

    def _logsf(self, t: Array) -> Array:
        return self._xp.where(t < self._tau, self._distribution._logsf(t), -np.inf)

    def _isf(self, p: Array) -> Array:
        return self._cut(self._distribution._isf(p))

    def _icdf(self, p: Array) -> Array:
        return self._cut(self._distribution._icdf(p))

    def _icdf_beyond(self, y: Array, p: Array) -> Array:
        xp = self._xp
        return xp.maximum(self._cut(self._distribution._icdf_beyond(y, p)), y)

    def _integrated_sf(self, a: Array, b: Array) -> Array:
        return self._distribution._integrated_sf(self._cut(a), self._cut(b))

    def _cut(self, t: Array) -> Array:
        return self._xp.minimum(t, self._tau)

    def _end(self) -> Array:
        return self._cut(self._distribution._end())

    def _excludes(self, t: Array) -> Array:
        """Times beyond tau are excluded; tau itself is possible where the distribution reaches it."""
        before = (t < self._tau) | (self._distribution._sf_left(self._tau) <= 0)
        return (t > self._tau) | (before & self._distribution._excludes(t))

    def _mass_at_infinity(self) -> Array:
        mass = self._distribution._mass_at_infinity()
        return self._xp.where(self._xp.isinf(self._tau[:, 0]), mass, 0.0)

    def _breaks(self) -> Array:
        """Break points of the distribution below tau, and tau itself."""
        return self._remember("breaks", lambda: self._cut(common_breaks([self._distribution], self._tau)))

    def _make_panel_edges(self) -> Array:
        """Those of the distribution, cut at tau, beyond which the survival function is zero."""
        return merge_edges(self._cut(self._distribution._panel_edges()), self._tau)

    def censor_at(self, tau: ArrayLike) -> Univariate:
        """The distribution of min(T, tau, tau'), censored once."""
        distribution, end = self._with_end(tau)
        return distribution._replaced(_tau=distribution._cut(end))


class CensoredJoint(Joint):
    r"""The distribution of :math:`(\min(T_j,\tau_j))_j`, for joint distributions of any kind.

    Made by ``joint.censor_at(tau)``.

    Parameters
    ----------
    joint : Joint
        The distribution of :math:`(T_j)_j`.
    tau : number or array, (n,) or (n, k)
        End of follow-up, for all event times or one for each; infinity is allowed.

    See Also
    --------
    Censored : The same for one event time.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> grid = cs.JointGrid([0.0, 1.0, 2.0], np.full((1, 3, 3), 1 / 9), tail=1.0)
    >>> grid.censor_at(1.5).sf([[1.0, 1.0], [1.0, 1.5]]).round(3)
    array([0.444, 0.   ])
    """

    _arrays: ClassVar[tuple[str, ...]] = ("_tau",)
    _distributions: ClassVar[tuple[str, ...]] = ("_distribution",)

    def __init__(self, joint: Joint, tau: ArrayLike) -> None:
        check_kind(joint, "joint", Joint, "a joint distribution, such as Independent([...])")
        self._distribution, self._tau = joint._with_end(tau)

    @property
    def k(self) -> int:
        """Number of event times."""
        return self._distribution.k

    def marginal(self, j: int) -> Univariate:
        """The distribution of coordinate ``j``."""
        return self._distribution.marginal(j).censor_at(self._tau[:, self._coordinate(j)])

    def _logsf(self, t: Array, left: bool = False) -> Array:
        xp = self._xp
        limit = self._tau[:, None, :]
        open_ = xp.all((t <= limit) if left else (t < limit), axis=-1)
        value = self._distribution._logsf(t, left)
        return xp.where(open_, value, -np.inf)

    def _mass_at_infinity(self) -> Array:
        xp = self._xp
        mass = self._distribution._mass_at_infinity()
        unlimited = xp.all(xp.isinf(self._tau), axis=1)
        return xp.where(unlimited, mass, 0.0)

    def _end_of_first(self) -> Array:
        return self._xp.minimum(self._distribution._end_of_first(), self._xp.min(self._tau, axis=1))

    def _log_likelihood(self, t: Array, event: Array) -> Array:
        if bool(self._xp.any(event)):
            raise NoDensityError(
                "A distribution censored at tau has an atom there and so no density. Take the likelihood "
                "under the distribution before censor_at, of the outcome y.censor_at(tau)."
            )
        return self._logsf(t)

    def _sample(self, m: int, rng: Draws) -> Array:
        xp = self._xp
        draws = self._distribution._sample(m, rng)
        return xp.minimum(draws, self._tau[:, None, :] + xp.zeros_like(draws[..., :1]))
