r"""The Brier score integrated over time, on both scales, and the methods that are right for every input.

.. math:: \int_0^y\frac{F(s)^2}{G_1(s)}\,ds+\frac{\delta}{G(y-)}\int_y^\infty G_2(s)\,(1-F(s))^2\,ds

With :math:`G_1=1` and :math:`G_2=G` it is the CRPS; with :math:`G_1=G`, and :math:`G_2=1` up to the horizon,
the score on the ipcw scale. Beyond an event of another cause the integrand is :math:`G_2F^2`.
:mod:`censcore.scores.integration.routes` chooses the method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._numerics import CHUNK_NUMBERS, chunked_rows
from censcore.distributions import Grouped, PointMass, Univariate
from censcore.scores.inputs.scoring_inputs import ScoringInputs, inverse_probability_weights
from censcore.scores.integration.cdf_integrals import (
    as_steps,
    numbers_per_row,
    square_below,
    square_beyond,
    square_of_cdf_beyond,
)

CACHED_NUMBERS = 500_000  # a chunk of subjects that stays in the cache


@dataclass(frozen=True, eq=False)
class TimeIntegral:
    """What is integrated: scoring inputs, and on the ipcw scale the ``end``, a point mass at the horizon."""

    inputs: ScoringInputs
    end: PointMass | None = None

    @property
    def below(self) -> Univariate | None:
        """The distribution of which G_1 is the survival function; None for G_1 = 1."""
        return None if self.end is None else self.inputs.C

    @property
    def beyond(self) -> Univariate:
        """The distribution of which G_2 is the survival function."""
        return self.inputs.C if self.end is None else self.end

    @property
    def one_end(self) -> bool:
        """Whether on the ipcw scale all subjects have one finite end; True on the localized one."""
        return self.end is None or (len(self.end) == 1 and self.has_finite_end)

    @property
    def has_finite_end(self) -> bool:
        """Whether the integral on the ipcw scale ends."""
        return self.end is not None and bool(np.isfinite(to_numpy(self.end.location)).all())

    def in_groups(self, loss: Callable[[TimeIntegral], Array]) -> Array:
        """A loss of each group of subjects that share a censoring distribution, in the order of subjects."""
        C = self.inputs.C
        if not isinstance(C, Grouped) or not (self.end is None or len(self.end) == 1):
            return loss(self)
        groups = [(self.inputs if len(C) == 1 else self.inputs.take(rows), D) for rows, D in C.groups()]
        parts = [replace(self, inputs=replace(part, C=D)).in_groups(loss) for part, D in groups]
        return parts[0] if len(C) == 1 else C.in_row_order(parts)

    def take(self, rows: slice) -> TimeIntegral:
        """That of some subjects."""
        return TimeIntegral(self.inputs.take(rows), None if self.end is None else self.end.take(rows))


def squares(integral: TimeIntegral) -> Array:
    """The formula, (n,): sums, closed forms or quadrature, as the distributions allow."""
    inputs = integral.inputs
    below, weighted = square_below(inputs.F, inputs.time, integral.below), inputs
    if integral.end is not None:
        weighted = replace(inputs, C=integral.end)
    beyond = weighted.of_events(lambda part: square_beyond(part.F, part.time, part.C))
    if inputs.has_never:
        beyond = beyond + weighted.of_never(lambda part: square_of_cdf_beyond(part.F, part.time, part.C))
    return below + inverse_probability_weights(inputs)[:, 0] * beyond


def by_formula(integral: TimeIntegral) -> Array:
    """The formula for a few subjects at a time; jumps of a step forecast are found, or sorted, once."""
    numbers = numbers_per_subject(integral)
    budget = CACHED_NUMBERS if integral.end is None else CHUNK_NUMBERS

    def part(rows: slice) -> Array:
        subset = integral.take(rows)
        if subset.inputs.F.form == "steps":
            subset = replace(subset, inputs=replace(subset.inputs, F=as_steps(subset.inputs.F)))
        return squares(subset)

    return chunked_rows(part, integral.inputs.n, numbers, integral.inputs.y.time, budget)


def numbers_per_subject(integral: TimeIntegral) -> int:
    """How many numbers one subject needs at a time."""
    F, C = integral.inputs.F, integral.inputs.C
    if integral.end is None:
        return numbers_per_row(F, C)
    return 2 * numbers_per_row(F, C) + (0 if len(C) == 1 else numbers_per_row(C, C))
