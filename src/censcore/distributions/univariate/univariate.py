"""The methods of a distribution of one event time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from censcore._arrays import (
    Array,
    ArrayLike,
    as_float,
    common_rows,
    one_namespace,
    possibly,
    surely,
    to_numpy,
)
from censcore._numerics import expm1
from censcore._validation import (
    as_coordinate,
    as_events,
    check_kind,
    check_not_nan,
    check_positive,
    check_probabilities,
    name_subjects,
)
from censcore.distributions.contract import Formulas
from censcore.exceptions import InvalidInputError
from censcore.plain_text import html_table

#: What errors expect.
ONE_TIME = "a distribution of one event time, such as Weibull(shape, scale)"


class Univariate(Formulas):
    """One distribution of an event time on [0, inf] per subject.

    Times and levels are a number, (n,) for one per subject, or (n, q) or (1, q) for several; answers are (n,)
    or (n, q). Mass at infinity is allowed: the event may never happen.

    Notes
    -----
    A subclass writes ``sf_at`` and whatever else it knows in closed form; the rest is derived, numerically if
    need be. :mod:`censcore.distributions` lists all formulas that it may write. Scores check their inputs
    once and then call these formulas.

    See Also
    --------
    censcore.distributions.ByHazard : Distributions known by their cumulative hazard.
    censcore.distributions.Parametric : Distributions with a few parameters per subject.
    censcore.testing.check_distribution : Checks that all routes to a number agree.

    Examples
    --------
    >>> import numpy as np
    >>> from censcore.distributions import Univariate
    >>> class Pareto(Univariate):
    ...     def __init__(self, shape):
    ...         self.store(shape=np.reshape(shape, (-1, 1)))
    ...
    ...     def sf_at(self, t):
    ...         return (1 + t) ** -self._shape
    ...
    ...     def logpdf_at(self, t):
    ...         return np.log(self._shape) - (self._shape + 1) * np.log1p(t)
    >>> Pareto([2.0, 3.0]).icdf(0.5).round(4)
    array([0.4142, 0.2599])
    """

    def _repr_html_(self) -> str:
        """Quartiles of the event time of the first subjects."""
        first, levels = self.take(slice(0, 5)), (0.25, 0.5, 0.75)
        quartiles = [to_numpy(first.icdf(level)) for level in levels]
        rows = [[str(i), *(f"{q[i]:.4g}" for q in quartiles)] for i in range(len(first))]
        return html_table(repr(self), ["subject", *(f"{level:.0%} quantile" for level in levels)], rows)

    def cdf(self, t: ArrayLike) -> Array:
        """P(T <= t).

        Parameters
        ----------
        t : number or array, (n,), (n, q) or (1, q)
            Times; negative ones are allowed.

        Returns
        -------
        array, (n,) or (n, q)
            One row per subject.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.Uniform(0.0, [4.0, 10.0]).cdf([[1.0, 2.0]])
        array([[0.25, 0.5 ],
               [0.1 , 0.2 ]])
        """
        return self._at_times("cdf_at", t, below=0.0, at_infinity=1.0)

    def sf(self, t: ArrayLike) -> Array:
        """P(T > t)."""
        return self._at_times("sf_at", t, below=1.0, at_infinity=0.0)

    def sf_left(self, t: ArrayLike) -> Array:
        """P(T >= t), the left limit of :meth:`sf`; they differ at atoms."""
        return self._at_times("sf_left_at", t, below=1.0)

    def logsf(self, t: ArrayLike) -> Array:
        """Logarithm of P(T > t)."""
        return self._at_times("logsf_at", t, below=0.0, at_infinity=-np.inf)

    def logpdf(self, t: ArrayLike) -> Array:
        """Log density at t; a :class:`~censcore.exceptions.NoDensityError` where there is none."""
        return self._at_times("logpdf_at", t, below=-np.inf, at_infinity=-np.inf)

    def icdf(self, p: ArrayLike) -> Array:
        """The p-quantile inf{t: F(t) >= p}; infinity beyond the finite mass."""
        return self._at_levels("icdf_at", p)

    def isf(self, p: ArrayLike) -> Array:
        """inf{t: P(T > t) <= p}, accurate in the upper tail."""
        return self._at_levels("isf_at", p)

    def integrated_sf(self, a: ArrayLike, b: ArrayLike) -> Array:
        r""":math:`\int_a^b P(T>s)\,ds` for 0 <= a <= b <= inf; infinite where the tail is too heavy."""
        distribution, (start, end), restore = self._as_columns(a=a, b=b)
        check_positive(start, "a", zero=True)
        check_positive(end, "b", zero=True, infinite=True)
        xp = distribution.xp
        if surely(xp.any(end < start)):
            bad = np.argwhere(to_numpy(end < start))
            raise InvalidInputError(
                f"integrated_sf(a, b) needs a <= b for every subject; got b < a in "
                f"{name_subjects(np.unique(bad[:, 0]))}. Exchange a and b."
            )
        wide = np.broadcast_shapes(tuple(start.shape), tuple(end.shape))
        return restore(
            distribution.integrated_sf_at(xp.broadcast_to(start, wide), xp.broadcast_to(end, wide))
        )

    def mean(self) -> Array:
        """Expected event time, (n,); infinite where mass sits at infinity."""
        return self.integrated_sf(0.0, np.inf)

    def mass_at_infinity(self) -> Array:
        """P(T = inf), (n,): the share that never has the event."""
        xp = self.xp
        return xp.broadcast_to(self.prob_never(), (len(self),))

    def known_time(self) -> Array:
        """The time that has all the mass, (n,); NaN where the mass is spread over several."""
        xp, end = self.xp, self.support_end()
        known = xp.where(self.sf_left_at(end) >= 1, end, np.nan)
        return xp.broadcast_to(known[:, 0], (len(self),))

    def excludes(self, t: ArrayLike) -> Array:
        """Whether the distribution rules out that the time is ``t``: booleans of the shape of ``sf(t)``.

        A time beyond the end of the support is ruled out, and where one time has all the mass every other is,
        unless the distribution was estimated: that nobody was censored among some subjects, or all at one
        date, is no certainty for others. So are times before the support of :class:`~censcore.Uniform`. A
        mixture rules out what all its components rule out. Otherwise a time without mass is not ruled out:
        the jumps of a step function or the members of an ensemble stand for the times around them, since
        estimates have atoms at the times of their data. Scores reject a censoring distribution that rules out
        an observed censoring time.

        Examples
        --------
        >>> import censcore as cs
        >>> closing = cs.Mixture([cs.PointMass(2.0), cs.PointMass(5.0)], weights=[0.5, 0.5])
        >>> closing.excludes([2.0, 3.0, 5.0])
        array([False,  True, False])
        >>> cs.Step([2.0, 5.0], sf=[0.5, 0.0]).excludes([2.0, 3.0, 6.0])
        array([False, False,  True])
        """
        distribution, (times,), restore = self._as_columns(t=t)
        check_not_nan(times, "t")
        return restore(distribution.excludes_at(times) | (times < 0))

    def icdf_beyond(self, y: ArrayLike, p: ArrayLike) -> Array:
        r"""Quantiles of the distribution given T >= y: :math:`\inf\{t\ge y: P(T\le t\mid T\ge y)\ge p\}`.

        Parameters
        ----------
        y : number or array, (n,)
            Times that the event is known not to precede.
        p : number or array, (n,), (1, q) or (n, q)
            Levels.

        Returns
        -------
        array, (n,) or (n, q)
            The conditional quantiles; y where P(T >= y) = 0 and so no such distribution exists.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.Exponential(1.0).icdf_beyond([0.0, 2.0], 0.5).round(3)
        array([0.693, 2.693])
        """
        distribution, (y, p), restore = self._as_columns(y=y, p=p)
        check_positive(y, "y", zero=True)
        check_probabilities(p, "p")
        return restore(distribution.icdf_beyond_at(y, p))

    def marginal(self, j: int) -> Univariate:
        """The distribution itself: it has one coordinate."""
        if type(j) is not int or j:
            as_coordinate(j, 1, f"The distribution {type(self).__name__}")
        return self

    def first(self) -> Univariate:
        """The distribution itself: the first of one event time is that time."""
        return self

    def log_likelihood(self, time: ArrayLike, event: ArrayLike) -> Array:
        """Log density where there is an event, log survival where the time is censored, (n,)."""
        distribution, (t,), _ = self._as_columns(time=time)
        check_positive(t, "time", zero=True)
        delta = as_events(event, t)
        common_rows(distribution=len(self), time=t.shape[0], event=delta.shape[0])
        return distribution.log_likelihood_at(t, delta)[:, 0]

    def censor_at(self, tau: ArrayLike) -> Univariate:
        """The distribution of min(T, tau): all mass beyond ``tau`` sits at ``tau``.

        Parameters
        ----------
        tau : number or array, (n,)
            End of follow-up; infinity is allowed.

        Returns
        -------
        Univariate
            The distribution of the censored time.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.Exponential(1.0).censor_at([1.0, 2.0]).mean().round(3)
        array([0.632, 0.865])
        """
        from censcore.distributions.derived.censored import Censored

        return Censored(self, tau)

    def given_survival(self, a: ArrayLike) -> Univariate:
        r"""The distribution of T given T > a, :math:`P(T>t\mid T>a)=P(T>\max(t,a))/P(T>a)`.

        What is forecast for a subject that is known to have survived to a: one that enters late
        (left truncation), or one that is at risk at a landmark. Times stay on the scale of T. Exact for
        every distribution, mass at infinity included.

        Parameters
        ----------
        a : number or array, (n,)
            What the event time exceeds; finite. Negative values have no effect, since T >= 0.

        Returns
        -------
        Univariate
            The conditional distribution.

        Raises
        ------
        ImpossibleForecastError
            Where P(T > a) = 0.

        See Also
        --------
        icdf_beyond : Quantiles given T >= y.
        RightCensored.after : The outcome at a landmark.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.Uniform(0.0, 10.0).given_survival([0.0, 4.0]).mean()
        array([5., 7.])
        >>> cs.Step([1.0, 2.0, 3.0], sf=[0.8, 0.4, 0.2]).given_survival(1.0).sf([[1.0, 2.0, 3.0]])
        array([[1.  , 0.5 , 0.25]])
        """
        from censcore.distributions.derived.truncated import GivenSurvival

        return self if surely((self._with_start(a)[1] < 0).all()) else GivenSurvival(self, a)

    # ---- shapes --------------------------------------------------------------------------------

    def _at_times(self, formula: str, t: Array, below: float, at_infinity: float | None = None) -> Array:
        """A formula at times from 0 on; values at negative times, and at infinity if known, are filled in."""
        distribution, (t,), restore = self._as_columns(t=t)
        check_not_nan(t, "t")
        outside = t < 0 if at_infinity is None else (t < 0) | (t == np.inf)
        if not possibly(outside.any()):
            return restore(getattr(distribution, formula)(t))
        xp = distribution.xp
        values = getattr(distribution, formula)(xp.where(outside, 0.0, t))
        values = xp.where(t < 0, below, values)
        if at_infinity is not None:
            values = xp.where(t == np.inf, at_infinity, values)
        return restore(values)

    def _at_levels(self, formula: str, p: Array) -> Array:
        distribution, (p,), restore = self._as_columns(p=p)
        check_probabilities(p, "p")
        return restore(getattr(distribution, formula)(p))

    def _as_columns(self, **named: Array) -> tuple[Self, list[Array], Callable[[Array], Array]]:
        """The distribution in the library of times or levels, these as (rows, q), and an answer's shape."""
        distribution = self
        for values in named.values():
            distribution = distribution._fitting(values)
        reference = distribution.reference
        one_namespace(**named, distribution=reference)
        columns, rows, several = [], {}, False
        for name, values in named.items():
            array = as_float(values, name, like=reference)
            if array.ndim > 2:
                raise InvalidInputError(
                    f"{name} must be a number, (n,) or (n, q); got an array of shape {tuple(array.shape)}."
                )
            several = several or array.ndim == 2
            columns.append(array if array.ndim == 2 else array.reshape(-1, 1))
            rows[name] = columns[-1].shape[0]
        common_rows(**rows, distribution=len(self))
        return distribution, columns, (lambda answer: answer) if several else (lambda answer: answer[:, 0])


class ByLogSurvival(Univariate):
    """A distribution that writes log P(T > t), from which both probabilities have all their digits."""

    def sf_at(self, t: Array) -> Array:
        return self.xp.exp(self.logsf_at(t))

    def cdf_at(self, t: Array) -> Array:
        return 0.0 - expm1(self.logsf_at(t))


def check_one_time(distribution: Any, owner: str) -> None:
    """Check that a distribution is of one event time; an ensemble may be of several."""
    check_kind(distribution, owner, Univariate, ONE_TIME)
    if distribution.k > 1:
        raise InvalidInputError(
            f"{owner} takes distributions of one event time; got one of {distribution.k}. "
            "Pass its marginal(j)."
        )
