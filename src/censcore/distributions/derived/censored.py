"""The distribution of min(T, tau), for one event time and for several."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike
from censcore._validation import check_kind
from censcore.distributions._panels import common_breaks, merge_edges
from censcore.distributions.joint.joint import Joint
from censcore.distributions.random_draws import Draws
from censcore.distributions.univariate.univariate import Univariate, check_one_time
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
    array_names: ClassVar[tuple[str, ...]] = ("_tau",)
    part_names: ClassVar[tuple[str, ...]] = ("_distribution",)

    def __init__(self, distribution: Univariate, tau: ArrayLike) -> None:
        check_one_time(distribution, "distribution")
        self._distribution, self._tau = distribution._with_end(tau)

    form = Univariate._form_of_parts

    def sf_at(self, t: Array) -> Array:
        return self.xp.where(t < self._tau, self._distribution.sf_at(t), 0.0)

    def sf_left_at(self, t: Array) -> Array:
        return self.xp.where(t <= self._tau, self._distribution.sf_left_at(t), 0.0)

    def cdf_at(self, t: Array) -> Array:
        return self.xp.where(t < self._tau, self._distribution.cdf_at(t), 1.0)

    def logsf_at(self, t: Array) -> Array:
        return self.xp.where(t < self._tau, self._distribution.logsf_at(t), -np.inf)

    def isf_at(self, p: Array) -> Array:
        return self._cut(self._distribution.isf_at(p))

    def icdf_at(self, p: Array) -> Array:
        return self._cut(self._distribution.icdf_at(p))

    def icdf_beyond_at(self, y: Array, p: Array) -> Array:
        xp = self.xp
        return xp.maximum(self._cut(self._distribution.icdf_beyond_at(y, p)), y)

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        return self._distribution.integrated_sf_at(self._cut(a), self._cut(b))

    def _cut(self, t: Array) -> Array:
        return self.xp.minimum(t, self._tau)

    def support_end(self) -> Array:
        return self._cut(self._distribution.support_end())

    def excludes_at(self, t: Array) -> Array:
        """Times beyond tau are excluded; tau itself is possible where the distribution reaches it."""
        before = (t < self._tau) | (self._distribution.sf_left_at(self._tau) <= 0)
        return (t > self._tau) | (before & self._distribution.excludes_at(t))

    def prob_never(self) -> Array:
        mass = self._distribution.prob_never()
        return self.xp.where(self.xp.isinf(self._tau[:, 0]), mass, 0.0)

    def breaks(self) -> Array:
        """Break points of the distribution below tau, and tau itself."""
        return self.remember("breaks", lambda: self._cut(common_breaks([self._distribution], self._tau)))

    def _make_panel_edges(self) -> Array:
        """Those of the distribution, cut at tau, beyond which the survival function is zero."""
        return merge_edges(self._cut(self._distribution.panel_edges()), self._tau)

    def censor_at(self, tau: ArrayLike) -> Univariate:
        """The distribution of min(T, tau, tau'), censored once."""
        distribution, end = self._with_end(tau)
        return distribution.replaced(_tau=distribution._cut(end))


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

    array_names: ClassVar[tuple[str, ...]] = ("_tau",)
    part_names: ClassVar[tuple[str, ...]] = ("_distribution",)

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

    def logsf_at(self, t: Array, left: bool = False) -> Array:
        xp = self.xp
        limit = self._tau[:, None, :]
        open_ = xp.all((t <= limit) if left else (t < limit), axis=-1)
        value = self._distribution.logsf_at(t, left)
        return xp.where(open_, value, -np.inf)

    def prob_never(self) -> Array:
        xp = self.xp
        mass = self._distribution.prob_never()
        unlimited = xp.all(xp.isinf(self._tau), axis=1)
        return xp.where(unlimited, mass, 0.0)

    def _end_of_first(self) -> Array:
        return self.xp.minimum(self._distribution._end_of_first(), self.xp.min(self._tau, axis=1))

    def log_likelihood_at(self, t: Array, event: Array) -> Array:
        if bool(self.xp.any(event)):
            raise NoDensityError(
                "A distribution censored at tau has an atom there and so no density. Take the likelihood "
                "under the distribution before censor_at, of the outcome y.censor_at(tau)."
            )
        return self.logsf_at(t)

    def draw(self, m: int, rng: Draws) -> Array:
        xp = self.xp
        draws = self._distribution.draw(m, rng)
        return xp.minimum(draws, self._tau[:, None, :] + xp.zeros_like(draws[..., :1]))
