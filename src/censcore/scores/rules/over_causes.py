r"""Scores over all causes of competing risks, and what a score of one cause adds to that of one event time.

With one cause :math:`T_j` is an event time with mass at infinity. A subject with an event of another cause at
y has :math:`T_j=\infty` and is followed until C, of which :math:`C\ge y` is known; the scores of
:math:`\min(T_j,C)` are averaged over such C. Over all causes, at a time t, what happened is one of m + 1
classes: no event yet, or an event of cause j.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import Array, namespace, to_numpy
from censcore._numerics import chunked_rows, xlogy
from censcore.distributions import TimeAndCause, Univariate
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import CompetingRisks
from censcore.scores.inputs.scoring_inputs import (
    ScoringInputs,
    inverse_probability_weights,
    known_to_exceed,
    scoring_inputs,
)
from censcore.scores.integration.cdf_integrals import numbers_per_row, weighted_beyond


def check_causes(y: CompetingRisks, forecast: Any) -> TimeAndCause:
    """The forecast, if it is one of all causes of the outcome."""
    if not isinstance(forecast, TimeAndCause):
        raise InvalidTypeError(
            f"forecast: got {type(forecast).__name__} for an outcome of competing risks, expected a "
            "distribution of time and cause: CumulativeIncidence(times, cif), CauseSpecificHazards([...]), "
            "CauseEnsemble(times, causes). One cause alone is scored by score(y.cause(j), F_j, ...)."
        )
    if forecast.n_causes < y.n_causes:
        raise InvalidInputError(
            f"The forecast has {forecast.n_causes} causes and the outcome {y.n_causes} "
            f"({', '.join(y.names)}); expected a cumulative incidence for every cause of the outcome."
        )
    return forecast.given_survival(known_to_exceed(y.entry)) if y.any_cause().has_delayed_entry else forecast


@dataclass(frozen=True)
class InputsOfCauses(ScoringInputs):
    """Scoring inputs of the first event of any cause, and what is known of the causes.

    Parameters
    ----------
    causes : CompetingRisks
        The outcome as it was given.
    by_cause : TimeAndCause
        The forecast of all causes; with delayed entry it is given no event before the entry.
    """

    causes: Any = None
    by_cause: Any = None

    def of_its_cause(self, value: Callable[[Univariate, Any], Array], q: int = 1) -> Array:
        """``value(F_j, subjects)`` of the subjects with an event of cause j, for all j, (n, q); else one."""
        xp, F = self.xp, self.by_cause
        cause = np.broadcast_to(to_numpy(self.causes.causes), (self.n,))
        cause = np.where(to_numpy(self.y.event), cause, 0)
        values = xp.broadcast_to(xp.ones_like(self.time), (self.n, q)) + 0.0
        for j in np.unique(cause[cause > 0]).tolist():
            rows = np.nonzero(cause == j)[0]
            values[rows] = value(F.cause(j).like(self.y.time).take(rows), rows)
        return values


def inputs_of_causes(
    y: CompetingRisks, forecast: Any, censoring: Any, horizon: Array, *, needs_censoring: bool = True
) -> InputsOfCauses:
    """Check and align an outcome of competing risks and a forecast of all causes."""
    F = check_causes(y, forecast)
    inputs = scoring_inputs(y.any_cause(), F.any_cause(), censoring, horizon, needs_censoring=needs_censoring)
    return InputsOfCauses(inputs.y, inputs.F, inputs.C, inputs.reached, inputs.horizon, y, F)


def sum_over_classes(
    score: Callable[..., Array], y: CompetingRisks, forecast: Any, censoring: Any, *at: Array, **options: Any
) -> Array:
    r"""Half of the sum of a score over the m + 1 classes: any event, and an event of each cause.

    A sum of proper scores is proper. Of the Brier score,
    :math:`\tfrac12\sum_{k=0}^m(\mathbb 1\{\text{class }k\}-p_k)^2` is the score of Brier (1950) but for the
    half, which makes it the score of one event time where there is one cause.
    """
    F = check_causes(y, forecast)
    total = score(y.any_cause(), F.any_cause(), censoring, *at, **options)
    for j in range(1, F.n_causes + 1):
        total = total + score(y.event_of(j), F.cause(j), censoring, *at, **options)
    return total / 2


# ---- one cause ---------------------------------------------------------------------------------------


def log_survival_beyond(inputs: ScoringInputs) -> Array:
    r""":math:`\log P(T_j>y)-E[\log P(T_j>C)\mid C\ge y]` after an event of another cause, (n,); zero else.

    The log score of :math:`\min(T_j,C)` is :math:`-\log P(T_j>c)` where the event never comes and C = c.
    """

    def part(rows: slice) -> Array:
        return inputs.take(rows).of_never(_mean_fall)

    numbers = 8 * numbers_per_row(inputs.F, inputs.C)
    return chunked_rows(part, inputs.n, numbers, like=inputs.y.time)


def _mean_fall(inputs: ScoringInputs) -> Array:
    """The fall of log P(T > t) from y to C, averaged over C given C >= y."""
    F, C, y = inputs.F, inputs.C, inputs.time
    if C.form == "steps":
        return F.logsf_at(y)[:, 0] - _mean_log_survival(inputs)

    def hazard(t: Array) -> Array:
        return namespace(t).exp(F.logpdf_at(t) - F.logsf_at(t))

    return inverse_probability_weights(inputs)[:, 0] * weighted_beyond(hazard, F, y, C)


def _mean_log_survival(inputs: ScoringInputs) -> Array:
    r""":math:`\sum_{c\ge y}P(C=c)\log P(T>c)/G(y-)` over the jumps of C, and infinity as one of them."""
    F, C, y, xp = inputs.F, inputs.C, inputs.time, inputs.xp
    times, G = C.steps()
    finite = xp.isfinite(times)
    before = xp.concat([xp.ones_like(G[:, :1]), G[:, :-1]], axis=1)
    mass = xp.where(finite & (times >= y), before - G, xp.zeros_like(G))
    counts = mass > 0
    log_survival = F.logsf_at(xp.where(counts, times, y))
    mean = xp.sum(xp.where(counts, mass * log_survival, xp.zeros_like(mass)), axis=1)
    endless = C.prob_never() + xp.zeros_like(mean)
    log_never = xlogy(endless, F.prob_never() + xp.zeros_like(mean))
    return inverse_probability_weights(inputs)[:, 0] * (mean + log_never)
