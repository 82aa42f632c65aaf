"""The joint distribution of several event times given that all of them exceed a."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from censcore._arrays import Array, convert, is_neutral, to_numpy
from censcore._numerics import expm1, next_float
from censcore._validation import check_kind, name_subjects
from censcore.distributions._panels import merge_edges
from censcore.distributions.given_survival import check_possible, or_one
from censcore.distributions.joint import Joint
from censcore.distributions.random_draws import Draws, SubjectDraws, some_draws
from censcore.distributions.univariate import Univariate
from censcore.exceptions import InvalidInputError

__all__ = ["DRAWS", "GivenJointSurvival"]

DRAWS = 10_000  # candidates per sample, of those that survive to the entry one is kept


class GivenJointSurvival(Joint):
    r"""The joint distribution of :math:`(T_j)_j` given that all of them exceed a.

    .. math:: P(T_1>t_1,\dots,T_k>t_k\mid T_1>a,\dots,T_k>a)
        =\frac{P(T_1>\max(t_1,a),\dots,T_k>\max(t_k,a))}{P(T_1>a,\dots,T_k>a)}.

    Made by ``joint.given_survival(a)``. Samples are those of the joint distribution that survive to a.

    Parameters
    ----------
    joint : Joint
        The distribution of :math:`(T_j)_j`.
    a : number or array, (n,)
        What all event times exceed. A negative one says nothing.

    See Also
    --------
    GivenSurvival : The same for one event time.

    Examples
    --------
    >>> import censcore as cs
    >>> joint = cs.Copula("clayton", [cs.Exponential(1.0), cs.Exponential(2.0)], theta=2.0)
    >>> given = joint.given_survival(0.5)
    >>> given.sf([[0.5, 0.5], [1.0, 1.0]]).round(4)
    array([1.    , 0.3864])
    >>> given.marginal(0).sf(1.0).round(4)
    array([0.813])
    """

    _arrays: ClassVar[tuple[str, ...]] = ("_entry",)
    _distributions: ClassVar[tuple[str, ...]] = ("_distribution",)

    def __init__(self, joint: Joint, a: Array) -> None:
        check_kind(joint, "joint", Joint, "a joint distribution, such as Independent([...])")
        self._neutral = joint._is_neutral and is_neutral(a)
        self._distribution, self._entry = joint._with_start(a)
        check_possible(self._log_alive() == -np.inf, self._entry)

    @property
    def k(self) -> int:
        """Number of event times."""
        return self._distribution.k

    @property
    def has_density(self) -> bool:
        """Whether the joint distribution has one."""
        return self._distribution.has_density

    @property
    def _corner(self) -> Array:
        """(a, ..., a) as times (1 or n, 1, k), zero where a is negative."""
        xp = self._xp
        start = xp.maximum(self._entry, xp.zeros_like(self._entry))
        return xp.broadcast_to(start[:, :, None], (start.shape[0], 1, self.k))

    def _log_alive(self) -> Array:
        """Log P(T_j > a for all j), (1 or n, 1)."""
        value = self._distribution._logsf(self._corner)
        return self._xp.where(self._entry < 0, self._xp.zeros_like(value), value)

    def _logsf(self, t: Array, left: bool = False) -> Array:
        xp, a = self._xp, self._entry[:, :, None]
        start = xp.maximum(a, xp.zeros_like(a))
        first = xp.where(a < 0, start, next_float(start)) if left else start
        return self._distribution._logsf(xp.where(t > a, t, first), left) - self._log_alive()

    def _log_likelihood(self, t: Array, event: Array) -> Array:
        xp, a = self._xp, self._entry[:, :, None]
        value = self._distribution._log_likelihood(xp.maximum(t, self._corner), event) - self._log_alive()
        early = xp.any(event & (t <= a), axis=-1)
        return xp.where(early, xp.full_like(value, -np.inf), value)

    def _mass_at_infinity(self) -> Array:
        return self._distribution._mass_at_infinity() / or_one(self._xp.exp(self._log_alive()))[:, 0]

    def marginal(self, j: int) -> Univariate:
        """The distribution of coordinate ``j`` given that all coordinates exceed a."""
        return _MarginalGivenSurvival(self, self._coordinate(j))

    def given_survival(self, a: Array) -> Joint:
        """The distribution given that all times exceed the larger of both."""
        given, column = self._with_start(a)
        if bool((column <= given._entry).all()):
            return given
        return GivenJointSurvival(given._distribution, given._xp.maximum(column, given._entry)[:, 0])

    def _sample(self, m: int, rng: Draws) -> Array:
        """Candidates are drawn until enough of every subject survive to a."""
        n, k, size = len(self), self.k, (len(self), m, self.k)
        if isinstance(rng, SubjectDraws) and rng.flat:  # as many for every subject
            n, m = len(rng.keys), m // len(rng.keys)
        a = np.broadcast_to(to_numpy(self._entry), (n, 1))
        chosen, count = np.empty((n, m, k)), np.zeros(n, dtype=np.intp)
        joint = self._distribution.detach()
        for round_ in range(DRAWS):
            missing = np.nonzero(count < m)[0]
            if not missing.size:
                return convert(chosen.reshape(size), self._reference)
            draws = _candidates(joint, missing, m, some_draws(rng, missing, stream=16 + round_))
            for i, row in zip(missing, draws, strict=True):
                kept = row[(row > a[i]).all(axis=1)][: m - count[i]]
                chosen[i, count[i] : count[i] + len(kept)] = kept
                count[i] += len(kept)
        raise InvalidInputError(
            f"Survival to a is too rare for samples, in {name_subjects(np.nonzero(count < m)[0])}. Score by "
            "log_score, or pass an Ensemble of samples given survival."
        )


def _candidates(joint: Joint, rows: np.ndarray, m: int, rng: Draws) -> np.ndarray:
    """Draws for some subjects, (rows, m, k), different for each also where one distribution serves all."""
    if len(joint) == 1:
        rng = SubjectDraws(rng.keys, flat=True) if isinstance(rng, SubjectDraws) else rng
        return to_numpy(joint._sample(rows.size * m, rng)).reshape(rows.size, m, joint.k)
    return to_numpy(joint.take(rows)._sample(m, rng))


class _MarginalGivenSurvival(Univariate):
    """One coordinate of a :class:`GivenJointSurvival`: the others exceed a, and say something of it."""

    _distributions: ClassVar[tuple[str, ...]] = ("_joint",)

    def __init__(self, joint: GivenJointSurvival, j: int) -> None:
        self._joint = joint
        self._j = j

    @property
    def _alone(self) -> Univariate:
        """The coordinate without the condition."""
        return self._joint._distribution.marginal(self._j)

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        """Whether the joint distribution has one."""
        return self._joint.has_density

    @property
    def _degree(self) -> int | None:  # type: ignore[override]
        joint = self._joint._distribution
        return 0 if all(joint.marginal(j)._degree == 0 for j in range(joint.k)) else None

    def _at(self, t: Array) -> Array:
        """Times (n, q, k): t in this coordinate, zero in the others."""
        xp = self._xp
        rest = xp.zeros_like(t)
        return xp.stack([t if i == self._j else rest for i in range(self._joint.k)], axis=-1)

    def _logsf(self, t: Array) -> Array:
        return self._joint._logsf(self._at(t))

    def _sf(self, t: Array) -> Array:
        return self._xp.exp(self._logsf(t))

    def _cdf(self, t: Array) -> Array:
        return 0.0 - expm1(self._logsf(t))

    def _sf_left(self, t: Array) -> Array:
        return self._xp.exp(self._joint._logsf(self._at(t), left=True))

    def _logpdf(self, t: Array) -> Array:
        if not self.has_density:
            return super()._logpdf(t)
        xp = self._xp
        time = self._at(t)
        event = xp.broadcast_to(convert(np.arange(self._joint.k) == self._j, t), time.shape)
        return self._joint._log_likelihood(time, event)

    def _isf(self, p: Array) -> Array:
        return self._xp.where(p > 0, super()._isf(p), self._end())

    def _icdf(self, p: Array) -> Array:
        return self._xp.where(p < 1, super()._icdf(p), self._end())

    def _mass_at_infinity(self) -> Array:
        return self._sf_left(self._xp.full_like(self._joint._entry, np.inf))[:, 0]

    def _end(self) -> Array:
        return self._alone._end()

    def _excludes(self, t: Array) -> Array:
        return super()._excludes(t) | self._alone._excludes(t) | (t <= self._joint._entry)

    def _breaks(self) -> Array:
        xp, entry = self._xp, self._joint._entry
        start, inner = xp.maximum(entry, xp.zeros_like(entry)), self._alone._breaks()
        return merge_edges(start) if inner is None else merge_edges(xp.maximum(inner, start), start)
