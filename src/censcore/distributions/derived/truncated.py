"""The distribution of T given T > a, for one event time and for several."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike, convert, namespace, possibly, to_numpy
from censcore._numerics import next_float, safe_log
from censcore._validation import check_kind, name_subjects
from censcore.distributions._panels import common_breaks
from censcore.distributions.distribution import Distribution
from censcore.distributions.joint.joint import Joint, OfJoint
from censcore.distributions.random_draws import Draws, SubjectDraws, some_draws
from censcore.distributions.univariate.step import Step
from censcore.distributions.univariate.univariate import ByLogSurvival, Univariate, check_one_time
from censcore.exceptions import ImpossibleForecastError, InvalidInputError


def check_possible(impossible: Array, a: Array) -> None:
    """Check that no subject has P(T > a) = 0; ``impossible`` is (1 or n, 1)."""
    wide, entry = np.broadcast_arrays(to_numpy(impossible), to_numpy(a))
    bad = np.nonzero(wide[:, 0])[0]
    if bad.size:
        raise ImpossibleForecastError(
            f"The forecast has P(T > a) = 0 in {name_subjects(bad)} (a = {entry[bad[0], 0]:g}), though the "
            "subjects are known to have survived to a: T given T > a does not exist. Pass a forecast whose "
            "support reaches beyond a (a longer curve, more members of an ensemble, a tail), or one that was "
            "made for subjects who survived to a.",
            rows=bad.tolist(),
        )


def or_one(alive: Array) -> Array:
    """P(T > a), or one where it underflows and all that it divides is zero."""
    xp = namespace(alive)
    return xp.where(alive > 0, alive, 1.0)


class _Given(Distribution):
    """What distributions given T > a have in common, of one event time and of several."""

    array_names: ClassVar[tuple[str, ...]] = ("_entry",)
    part_names: ClassVar[tuple[str, ...]] = ("_distribution",)
    _distribution: Any
    _entry: Array

    def _condition(self, distribution: Distribution, a: Array) -> None:
        self._distribution, self._entry = distribution._with_start(a)
        check_possible(self._log_alive() == -np.inf, self._entry)

    @property
    def _start(self) -> Array:
        """a, or zero where it is negative."""
        return self.xp.maximum(self._entry, self.xp.zeros_like(self._entry))

    @abstractmethod
    def _log_alive(self) -> Array:
        """Log P(T > a), or of P(T_j > a for all j), (1 or n, 1)."""

    def _alive(self) -> Array:
        """P(T > a), or P(T_j > a for all j), (1 or n, 1)."""
        return self.xp.exp(self._log_alive())

    def prob_never(self) -> Array:
        return self._distribution.prob_never() / or_one(self._alive())[:, 0]

    def given_survival(self, a: ArrayLike) -> Any:
        """The distribution given that the time, or all of them, exceed the larger of both."""
        F, column = self._with_start(a)
        if bool((column <= F._entry).all()):
            return F
        later = F.replaced(_entry=F.xp.maximum(column, F._entry))
        check_possible(later._log_alive() == -np.inf, later._entry)
        return later


class GivenSurvival(_Given, ByLogSurvival):
    r"""The distribution of T given T > a: the forecast for a subject that has survived to a.

    .. math:: P(T>t\mid T>a)=\frac{P(T>\max(t,a))}{P(T>a)}.

    Made by ``distribution.given_survival(a)``. Times are on the scale of T, not counted from a. Mass at
    infinity is kept, as the share :math:`P(T=\infty)/P(T>a)`.

    Parameters
    ----------
    distribution : Univariate
        The distribution of T.
    a : number or array, (n,)
        What the event time exceeds, one for all subjects or one per subject. Negative values have no effect.

    See Also
    --------
    Censored : The distribution of min(T, tau).
    GivenJointSurvival : The same for several event times.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.Weibull(2.0, 1.0).given_survival([0.0, 1.0])
    >>> distribution.sf([[1.0, 2.0]]).round(4)
    array([[0.3679, 0.0183],
           [1.    , 0.0498]])
    """

    def __init__(self, distribution: Univariate, a: ArrayLike) -> None:
        check_one_time(distribution, "distribution")
        self._condition(distribution, a)
        self.is_estimate = distribution.is_estimate

    form = Univariate._form_of_parts

    def _log_alive(self) -> Array:
        """Log P(T > a), (1 or n, 1); polynomials are divided by the probability itself."""
        if self.form != "smooth":
            return safe_log(self._alive())
        return self.xp.where(self._entry < 0, 0.0, self._distribution.logsf_at(self._start))

    def _alive(self) -> Array:
        if self.form == "smooth":
            return super()._alive()
        return self.xp.where(self._entry < 0, 1.0, self._distribution.sf_at(self._start))

    def _late(self, t: Array) -> Array:
        return self.xp.maximum(t, self._entry)

    def _after(self, t: Array, values: Array, before: float) -> Array:
        """``values`` after a, ``before`` up to it."""
        return self.xp.where(t > self._entry, values, before)

    def sf_at(self, t: Array) -> Array:
        if self.form == "smooth":
            return super().sf_at(t)
        return self._after(t, self._distribution.sf_at(self._late(t)) / self._alive(), 1.0)

    def sf_left_at(self, t: Array) -> Array:
        """By the survival function where there is no atom, which has digits where P(T > a) underflows."""
        F, late = self._distribution, self._late(t)
        left = F.sf_left_at(late)
        atom = left != F.sf_at(late)
        if not possibly(self.xp.any(atom)):
            return self.sf_at(t)
        return self._after(t, self.xp.where(atom, left / or_one(self._alive()), self.sf_at(t)), 1.0)

    def cdf_at(self, t: Array) -> Array:
        return super().cdf_at(t) if self.form == "smooth" else 1 - self.sf_at(t)

    def logsf_at(self, t: Array) -> Array:
        if self.form != "smooth":
            return super().logsf_at(t)
        return self._after(t, self._distribution.logsf_at(self._late(t)) - self._log_alive(), 0.0)

    def logpdf_at(self, t: Array) -> Array:
        return self._after(t, self._distribution.logpdf_at(self._late(t)) - self._log_alive(), -np.inf)

    def _log_slope(self, t: Array) -> Array | None:
        slope = self._distribution._log_slope(self._late(t))
        return None if slope is None else self._after(t, slope - self._log_alive(), -np.inf)

    def isf_at(self, p: Array) -> Array:
        xp = self.xp
        if self.form == "steps":
            return self.as_step().isf_at(p)
        t = xp.maximum(self._distribution._isf_given(self._start, self._alive(), p), self._start)
        return xp.where(p < 1, t, 0.0)

    def icdf_at(self, p: Array) -> Array:
        xp = self.xp
        if self.form == "steps":
            return self.as_step().icdf_at(p)
        t = self._distribution.icdf_beyond_at(self._first(), p)
        return xp.where(p > 0, t, 0.0)

    def _first(self) -> Array:
        """The first time that is possible: an atom at a itself is not."""
        xp, a, F = self.xp, self._start, self._distribution
        atom = (F.sf_left_at(a) != F.sf_at(a)) & (self._entry >= 0)
        return xp.where(atom, next_float(a), a)

    def icdf_beyond_at(self, y: Array, p: Array) -> Array:
        if self.form == "steps":
            return self.as_step().icdf_beyond_at(y, p)
        xp = self.xp
        t = xp.maximum(self._distribution.icdf_beyond_at(xp.maximum(y, self._first()), p), y)
        return xp.where(p > 0, t, y)

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        if self.form == "smooth":
            return super().integrated_sf_at(a, b)
        if self.form == "steps":
            return self.as_step().integrated_sf_at(a, b)
        xp, start = self.xp, self._start
        beyond = self._distribution.integrated_sf_at(xp.maximum(a, start), xp.maximum(b, start))
        return xp.minimum(b, start) - xp.minimum(a, start) + beyond / self._alive()

    def support_end(self) -> Array:
        return self._distribution.support_end()

    def excludes_at(self, t: Array) -> Array:
        return super().excludes_at(t) | self._distribution.excludes_at(t) | (t <= self._entry)

    def breaks(self) -> Array:
        """Those of the distribution from a on, and a itself."""
        return self.xp.maximum(common_breaks([self._distribution], self._start), self._start)

    def steps(self) -> tuple[Array, Array]:
        times, sf = self._distribution.steps()
        return self.xp.maximum(times, self._start), self._after(times, sf / self._alive(), 1.0)

    def as_step(self) -> Step:
        """The jumps as a distribution, found once."""
        return self.remember("step", lambda: Step.trusted(*self.steps(), falls=True))


DRAWS = 10_000  # candidates per sample that survives to the entry, at most


class GivenJointSurvival(_Given, Joint):
    r"""The joint distribution of :math:`(T_j)_j` given that all of them exceed a.

    .. math:: P(T_1>t_1,\dots,T_k>t_k\mid T_1>a,\dots,T_k>a)
        =\frac{P(T_1>\max(t_1,a),\dots,T_k>\max(t_k,a))}{P(T_1>a,\dots,T_k>a)}.

    Made by ``joint.given_survival(a)``. Samples are those of the joint distribution that survive to a.

    Parameters
    ----------
    joint : Joint
        The distribution of :math:`(T_j)_j`.
    a : number or array, (n,)
        What all event times exceed. Negative values have no effect.

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

    def __init__(self, joint: Joint, a: ArrayLike) -> None:
        check_kind(joint, "joint", Joint, "a joint distribution, such as Independent([...])")
        self._condition(joint, a)

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
        start = self._start
        return self.xp.broadcast_to(start[:, :, None], (start.shape[0], 1, self.k))

    def _log_alive(self) -> Array:
        return self.xp.where(self._entry < 0, 0.0, self._distribution.logsf_at(self._corner))

    def logsf_at(self, t: Array, left: bool = False) -> Array:
        xp, a, start = self.xp, self._entry[:, :, None], self._start[:, :, None]
        first = xp.where(a < 0, start, next_float(start)) if left else start
        return self._distribution.logsf_at(xp.where(t > a, t, first), left) - self._log_alive()

    def log_likelihood_at(self, t: Array, event: Array) -> Array:
        xp, a = self.xp, self._entry[:, :, None]
        value = self._distribution.log_likelihood_at(xp.maximum(t, self._corner), event) - self._log_alive()
        early = xp.any(event & (t <= a), axis=-1)
        return xp.where(early, -np.inf, value)

    def marginal(self, j: int) -> Univariate:
        """The distribution of coordinate ``j`` given that all coordinates exceed a."""
        return _MarginalGivenSurvival(self, self._coordinate(j))

    def draw(self, m: int, rng: Draws) -> Array:
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
                return convert(chosen.reshape(size), self.reference)
            draws = _candidates(joint, missing, m, some_draws(rng, missing, stream=16 + round_))
            for i, row in zip(missing, draws, strict=True):
                survivors = row[(row > a[i]).all(axis=1)][: m - count[i]]
                chosen[i, count[i] : count[i] + len(survivors)] = survivors
                count[i] += len(survivors)
        raise InvalidInputError(
            f"Survival to a is too rare for samples, in {name_subjects(np.nonzero(count < m)[0])}. Score by "
            "log_score, or pass an Ensemble of samples given survival."
        )


def _candidates(joint: Joint, rows: np.ndarray, m: int, rng: Draws) -> np.ndarray:
    """Draws for some subjects, (rows, m, k), different for each also where one distribution serves all."""
    if len(joint) == 1:
        rng = SubjectDraws(rng.keys, flat=True) if isinstance(rng, SubjectDraws) else rng
        return to_numpy(joint.draw(rows.size * m, rng)).reshape(rows.size, m, joint.k)
    return to_numpy(joint.take(rows).draw(m, rng))


class _MarginalGivenSurvival(OfJoint):
    """One coordinate of a :class:`GivenJointSurvival`: the others exceed a, which is informative about it."""

    def __init__(self, joint: GivenJointSurvival, j: int) -> None:
        self._joint, self._j = joint, j

    @property
    def _unconditional(self) -> Joint:
        return self._joint._distribution

    @property
    def _alone(self) -> Univariate:
        """The coordinate without the condition."""
        return self._unconditional.marginal(self._j)

    def _at(self, t: Array) -> Array:
        """T in this coordinate, zero in the others."""
        xp = self.xp
        rest = xp.zeros_like(t)
        return xp.stack([t if i == self._j else rest for i in range(self._joint.k)], axis=-1)

    def logpdf_at(self, t: Array) -> Array:
        return self._joint._log_density_of(self._j, self._at(t))

    def prob_never(self) -> Array:
        return self.sf_left_at(self.xp.full_like(self._joint._entry, np.inf))[:, 0]

    def support_end(self) -> Array:
        return self._alone.support_end()

    def excludes_at(self, t: Array) -> Array:
        return super().excludes_at(t) | self._alone.excludes_at(t) | (t <= self._joint._entry)

    def breaks(self) -> Array:
        start = self._joint._start
        return self.xp.maximum(common_breaks([self._alone], start), start)
