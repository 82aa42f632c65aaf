"""How many of its visits a subject attends: drop-out on the scale of visit numbers, and in time."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from censcore._arrays import Array, convert, namespace
from censcore._numerics import previous_float
from censcore._validation import check_kind
from censcore.distributions.distribution import Distribution
from censcore.distributions.random_draws import Draws
from censcore.distributions.univariate.step import Step
from censcore.distributions.univariate.univariate import Univariate
from censcore.exceptions import InvalidTypeError


class LastVisit(Distribution):
    r"""The distribution of the number M of the last visit that a subject attends.

    ``Censoring(estimator)`` predicts it from :class:`~censcore.IntervalCensored` data with visits. Subjects
    have visits of their own, so that one distribution of numbers is another distribution of the censoring
    time for each of them: :meth:`on`. Scores and comparisons of interval-censored data place it on the visits
    automatically.

    Parameters
    ----------
    numbers : Univariate
        The distribution of M, one per subject or one for all.

    Examples
    --------
    >>> import censcore as cs
    >>> C = LastVisit(cs.Step([0.0, 1.0, 2.0], sf=[0.9, 0.7, 0.5]))
    >>> C.on([[1.1, 2.3], [0.8, 3.0]]).sf([[1.0, 1.5, 2.9, 3.0]])
    array([[1. , 0.9, 0.7, 0.7],
           [0.9, 0.9, 0.9, 0.7]])
    """

    part_names: ClassVar[tuple[str, ...]] = ("numbers",)

    def __init__(self, numbers: Univariate) -> None:
        check_kind(numbers, "numbers", Univariate, "a distribution of one number per subject")
        self.numbers = numbers

    def on(self, visits: Array) -> Step:
        r"""The censoring distribution of subjects with these planned visits, :math:`v_1<v_2<\ldots`.

        A subject that does not come to visit k is followed until just before it, since the result of the
        visit before stands until then: :math:`P(C\ge v_k)=P(M\ge k)`. Who attends all visits is never
        censored.

        Parameters
        ----------
        visits : array, (1 or n, K)
            Ascending, padded by infinity.

        Returns
        -------
        Step
            One per subject.
        """
        xp, visits = self.xp, convert(visits, self.reference)
        k = xp.cumulative_sum(xp.ones_like(visits[:1]), axis=1)
        return dropping_out(visits, self.numbers.sf_left(k))._estimated_like(self)

    def draw(self, m: int, rng: Draws) -> Array:
        return self.numbers.draw(m, rng)

    def _not_in_time(self, *args: Any) -> NoReturn:
        """An error: there is no distribution of time before it is placed on visits."""
        raise InvalidTypeError(
            "got the distribution of the number of the last visit that subjects attend, expected a "
            "distribution of time. Pass the outcome with its visits, IntervalCensored(..., visits=...), on "
            "which scores and comparisons place it, or C.on(visits)."
        )

    marginal = first = log_likelihood = censor_at = given_survival = _not_in_time  # type: ignore[assignment]


def dropping_out(visits: Array, attended: Array) -> Step:
    r"""The distribution with :math:`P(C\ge v_k)` of own visits, just before which drop-out censors.

    Visits (1 or n, K) ascend and are padded by infinity; ``attended`` are :math:`P(M\ge k)`, falling, not
    read where visits are padded. What is left after the last visit sits at infinity.

    >>> import numpy as np
    >>> dropping_out(np.array([[1.0, 2.0, np.inf]]), np.array([[0.9, 0.5, 0.2]])).sf([[0.9, 1.0, 5.0]])
    array([[1. , 0.9, 0.5]])
    """
    xp = namespace(visits)
    return steps_at(visits, xp.maximum(previous_float(visits), xp.zeros_like(visits)), attended)


def steps_at(visits: Array, times: Array, sf: Array) -> Step:
    """Step functions that jump at times (1 or n, K), one for each visit of a subject.

    Visits are padded by infinity. There the jumps are after all visits, and nothing happens at them.
    """
    xp = namespace(visits)
    planned = xp.isfinite(visits)
    after = xp.max(xp.where(planned, visits, 0.0)) + 1 + xp.cumulative_sum(xp.ones_like(visits), axis=1)
    left = xp.min(xp.where(planned, sf, 1.0), axis=1, keepdims=True)
    return Step.trusted(xp.where(planned, times, after), xp.where(planned, sf, left), falls=True)
