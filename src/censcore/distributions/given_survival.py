"""The distribution of T given T > a."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from censcore._arrays import (
    Array,
    is_neutral,
    namespace,
    possibly,
    to_numpy,
)
from censcore._numerics import expm1, next_float
from censcore._validation import check_kind, name_subjects
from censcore.distributions._panels import merge_edges
from censcore.distributions.step import Step
from censcore.distributions.univariate import Univariate
from censcore.exceptions import ImpossibleForecastError

__all__ = ["GivenSurvival", "check_possible", "or_one"]


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
    """P(T > a), or one where it underflows: there nothing is left to be divided by it."""
    xp = namespace(alive)
    return xp.where(alive > 0, alive, xp.ones_like(alive))


class GivenSurvival(Univariate):
    r"""The distribution of T given T > a: the forecast for a subject that has survived to a.

    .. math:: P(T>t\mid T>a)=\frac{P(T>\max(t,a))}{P(T>a)}.

    Made by ``distribution.given_survival(a)``. Times are on the scale of T, not counted from a. Mass at
    infinity is kept, as the share :math:`P(T=\infty)/P(T>a)`.

    Parameters
    ----------
    distribution : Univariate
        The distribution of T.
    a : number or array, (n,)
        What the event time exceeds, one for all subjects or one per subject. A negative one says nothing.

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

    _arrays: ClassVar[tuple[str, ...]] = ("_entry",)
    _distributions: ClassVar[tuple[str, ...]] = ("_distribution",)

    def __init__(self, distribution: Univariate, a: Array) -> None:
        check_kind(
            distribution,
            "distribution",
            Univariate,
            "a distribution of one event time, such as Weibull(shape, scale)",
        )
        self._neutral = distribution._is_neutral and is_neutral(a)
        self._distribution, self._entry = distribution._with_start(a)
        self._is_estimate = distribution._is_estimate
        check_possible(self._log_alive() == -np.inf, self._entry)

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        """Whether the distribution of T has one."""
        return self._distribution.has_density

    @property
    def _degree(self) -> int | None:  # type: ignore[override]
        return self._distribution._degree

    @property
    def _start(self) -> Array:
        """a, or zero where it is negative."""
        xp = self._xp
        return xp.maximum(self._entry, xp.zeros_like(self._entry))

    def _log_alive(self) -> Array:
        """Log P(T > a), (1 or n, 1); polynomials are divided by the probability itself."""
        xp = self._xp
        if self._degree is not None:
            alive = self._alive()
            some = alive > 0
            return xp.where(
                some, xp.log(xp.where(some, alive, xp.ones_like(alive))), xp.full_like(alive, -np.inf)
            )
        value = self._distribution._logsf(self._start)
        return xp.where(self._entry < 0, xp.zeros_like(value), value)

    def _alive(self) -> Array:
        """P(T > a), (1 or n, 1)."""
        xp = self._xp
        if self._degree is None:
            return xp.exp(self._log_alive())
        value = self._distribution._sf(self._start)
        return xp.where(self._entry < 0, xp.ones_like(value), value)

    def _late(self, t: Array) -> Array:
        return self._xp.maximum(t, self._entry)

    def _after(self, t: Array, values: Array, before: float) -> Array:
        """``values`` after a, ``before`` up to it."""
        return self._xp.where(t > self._entry, values, self._xp.full_like(values, before))

    def _sf(self, t: Array) -> Array:
        if self._degree is None:
            return self._xp.exp(self._logsf(t))
        return self._after(t, self._distribution._sf(self._late(t)) / self._alive(), 1.0)

    def _sf_left(self, t: Array) -> Array:
        """By the survival function where there is no atom, which has digits where P(T > a) underflows."""
        F, late = self._distribution, self._late(t)
        left = F._sf_left(late)
        atom = left != F._sf(late)
        if not possibly(self._xp.any(atom)):
            return self._sf(t)
        return self._after(t, self._xp.where(atom, left / or_one(self._alive()), self._sf(t)), 1.0)

    def _cdf(self, t: Array) -> Array:
        if self._degree is None:
            return 0.0 - expm1(self._logsf(t))
        return 1 - self._sf(t)

    def _logsf(self, t: Array) -> Array:
        if self._degree is not None:
            return super()._logsf(t)
        return self._after(t, self._distribution._logsf(self._late(t)) - self._log_alive(), 0.0)

    def _logpdf(self, t: Array) -> Array:
        return self._after(t, self._distribution._logpdf(self._late(t)) - self._log_alive(), -np.inf)

    def _log_slope(self, t: Array) -> Array | None:
        slope = self._distribution._log_slope(self._late(t))
        return None if slope is None else self._after(t, slope - self._log_alive(), -np.inf)

    def _isf(self, p: Array) -> Array:
        xp = self._xp
        if self._degree == 0:
            return self._step()._isf(p)
        t = xp.maximum(self._distribution._isf_given(self._start, self._alive(), p), self._start)
        return xp.where(p < 1, t, xp.zeros_like(t))

    def _icdf(self, p: Array) -> Array:
        xp = self._xp
        if self._degree == 0:
            return self._step()._icdf(p)
        t = self._distribution._icdf_beyond(self._first(), p)
        return xp.where(p > 0, t, xp.zeros_like(t))

    def _first(self) -> Array:
        """The first time that is possible: an atom at a itself is not."""
        xp, a, F = self._xp, self._start, self._distribution
        atom = (F._sf_left(a) != F._sf(a)) & (self._entry >= 0)
        return xp.where(atom, next_float(a), a)

    def _icdf_beyond(self, y: Array, p: Array) -> Array:
        if self._degree == 0:
            return self._step()._icdf_beyond(y, p)
        xp = self._xp
        t = xp.maximum(self._distribution._icdf_beyond(xp.maximum(y, self._first()), p), y)
        return xp.where(p > 0, t, y)

    def _integrated_sf(self, a: Array, b: Array) -> Array:
        if self._degree is None:
            return super()._integrated_sf(a, b)
        if self._degree == 0:
            return self._step()._integrated_sf(a, b)
        xp, start = self._xp, self._start
        beyond = self._distribution._integrated_sf(xp.maximum(a, start), xp.maximum(b, start))
        return xp.minimum(b, start) - xp.minimum(a, start) + beyond / self._alive()

    def _mass_at_infinity(self) -> Array:
        return self._distribution._mass_at_infinity() / or_one(self._alive())[:, 0]

    def _end(self) -> Array:
        return self._distribution._end()

    def _excludes(self, t: Array) -> Array:
        return super()._excludes(t) | self._distribution._excludes(t) | (t <= self._entry)

    def _breaks(self) -> Array:
        inner, start = self._distribution._breaks(), self._start
        return merge_edges(start) if inner is None else merge_edges(self._xp.maximum(inner, start), start)

    def _steps(self) -> tuple[Array, Array]:
        times, sf = self._distribution._steps()
        return self._xp.maximum(times, self._start), self._after(times, sf / self._alive(), 1.0)

    def _step(self) -> Step:
        """The jumps as a distribution, found once."""
        return self._remember("step", lambda: Step._trusted(*self._steps(), falls=True))

    def given_survival(self, a: Array) -> Univariate:
        """The distribution given that T exceeds the larger of both times."""
        given, column = self._with_start(a)
        if bool((column <= given._entry).all()):
            return given
        later = GivenSurvival(given._distribution, given._xp.maximum(column, given._entry)[:, 0])
        later._neutral = self._neutral and is_neutral(a)
        return later
