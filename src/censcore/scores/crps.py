"""Continuous ranked probability score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._kernels import on_cpu
from censcore._numerics import chunked_rows
from censcore.distributions import Distribution, Grouped, Univariate
from censcore.outcomes import OutcomeLike
from censcore.scores._squares import as_steps, numbers_per_row, square_below, square_beyond
from censcore.scores.inputs import ScoringInputs, check_infinite, inverse_probability_weights, scoring_inputs

__all__ = ["add_to_events", "crps", "crps_of"]

CACHED_NUMBERS = 500_000  # a chunk of rows that stays in the cache


def crps(
    y: OutcomeLike, forecast: Distribution, censoring: Distribution | None = None, *, horizon: Array = None
) -> Array:
    r"""Continuous ranked probability score of a right-censored event time.

    .. math::
        \int_0^y F(s)^2\,ds+\delta\int_y^\infty\frac{G(s)}{G(y-)}\,(1-F(s))^2\,ds

    with :math:`G(t)=P(C>t)` and :math:`G(t-)=P(C\ge t)`: the CRPS of :math:`\min(T,C)`, averaged over the
    values of C that the observation allows. Without censoring (``PointMass(inf)``) it is the ordinary
    CRPS, under a known c (``PointMass(c)``) the threshold-weighted CRPS below c. Strictly proper where
    P(C > t) > 0, with a horizon on [0, horizon), if C is independent of T given the covariates and its distribution
    is right; with G(s)/G(y-) replaced by 1 it would not be.

    Parameters
    ----------
    y : RightCensored, structured array or frame
        The outcome, n rows.
    forecast : Distribution
        Distribution of T, one per row.
    censoring : Distribution, optional
        Censoring distribution. It may be left out only where it is known: nothing is censored, or ``y.censoring_time``
        is given.
    horizon : number or (n,) array, optional
        End of follow-up for the score: C becomes min(C, horizon). What happens at the horizon itself does not
        count; of discrete times take the first one after those that count (13 to judge month 12).

    Returns
    -------
    array, (n,)
        One loss per row, in the unit of time; lower is better.

    Notes
    -----
    A finite sum for step distributions and ensembles under any censoring distribution, and for piecewise-linear ones
    under step distributions; quadrature to 1e-8 relative for the rest.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> cs.crps(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0)).round(4)
    array([0.3358, 0.871 , 0.3362])
    """
    return crps_of(scoring_inputs(y, forecast, censoring, horizon))


def crps_of(inputs: ScoringInputs) -> Array:
    """The score of a posed inputs."""
    return check_infinite(_finite_or_not(inputs), inputs)


def _finite_or_not(inputs: ScoringInputs) -> Array:
    if isinstance(inputs.C, Grouped):
        return inputs.in_groups(_finite_or_not)
    if inputs.F._degree == 0:
        return _of_steps(inputs)

    def part(rows: slice) -> Array:
        some = inputs.take(rows)
        return add_to_events(square_below(some.F, some.time), some, some.C)

    numbers = numbers_per_row(inputs.F, inputs.C)
    return chunked_rows(part, inputs.n, numbers, like=inputs.y.time, budget=CACHED_NUMBERS)


def _of_steps(inputs: ScoringInputs) -> Array:
    """The score of a step forecast: sort its jumps once per chunk, then sum over them."""
    numbers = numbers_per_row(inputs.F, inputs.C)
    kernel = None
    if inputs.C._degree == 0:
        kernel = on_cpu("censcore.scores._crps_numba", "step_crps", inputs.y.time, inputs.n * numbers)
    if kernel and len(inputs.C) == 1:
        inputs = replace(inputs, C=as_steps(inputs.C))

    def part(rows: slice) -> Array:
        some = inputs.take(rows)
        some = replace(some, F=as_steps(some.F))
        if not kernel:
            return add_to_events(square_below(some.F, some.time), some, some.C)
        C = as_steps(some.C)
        return kernel(
            some.F._steps(), some.y.time, some.y.event, (*C._steps(), C._remember("areas", C._areas))
        )

    return chunked_rows(part, inputs.n, numbers, like=inputs.y.time, budget=CACHED_NUMBERS)


def add_to_events(loss: Array, inputs: ScoringInputs, C: Univariate) -> Array:
    r"""``loss`` plus :math:`\delta/G(y-)\int_y^\infty P(C>s)\,S(s)^2\,ds`, computed for events only."""
    events = np.nonzero(to_numpy(inputs.y.event))[0]
    if events.size == inputs.n:
        return loss + inverse_probability_weights(inputs)[:, 0] * square_beyond(inputs.F, inputs.time, C)
    if not events.size:
        return loss
    part = inputs.take(events)
    tail = square_beyond(part.F, part.time, C if len(C) == 1 else C.take(events))
    added = inputs.xp.zeros_like(loss)
    added[events] = inverse_probability_weights(part)[:, 0] * tail
    return loss + added
