"""Energy score of competing risks: of the times of all causes, all but one of which are C."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import Array, convert, namespace, to_numpy
from censcore._numerics import chunked_rows
from censcore.distributions import CauseEnsemble
from censcore.outcomes import CompetingRisks
from censcore.scores._energy_ensembles import FEW_MEMBERS, Method
from censcore.scores._support import check_infinite
from censcore.scores.compatible_times import RandomNumbers, compatible_times
from censcore.scores.competing_risks import check_causes
from censcore.scores.energy_pairs import energy_loss
from censcore.scores.inputs import scoring_inputs


def score_of_causes(
    y: CompetingRisks, forecast: Any, censoring: Any, horizon: Array, method: Method, members: int
) -> Array:
    """The score of the times (min(T_1, C), ..., min(T_m, C)), of which all but one are C.

    Samples of the forecast are scored, those of an ensemble as they are and others as a fair sample.
    """
    F: Any = check_causes(y, forecast)
    inputs = scoring_inputs(y.any_cause(), F.any_cause(), censoring, horizon)
    xp, m, random = inputs.xp, F.n_causes, method.random
    endless = (inputs.C.mass_at_infinity() > 0) & inputs.y.event
    check_infinite(xp.where(endless, np.inf, xp.zeros_like(inputs.y.time)), inputs)
    causes = xp.broadcast_to(convert(to_numpy(y.causes), inputs.y.time), (inputs.n,))
    of_cause = xp.stack([inputs.y.event & (causes == j + 1) for j in range(m)], axis=1)
    as_it_is = isinstance(F, CauseEnsemble) and F.weights is None
    options: dict[str, Any] = {"beta": method.beta, "fair": method.fair or not as_it_is}

    def losses(rows: slice) -> Array:
        some, numbers = inputs.take(rows), random.take(rows)
        time, cause = F.take(rows).samples if as_it_is else _draws_of(F, rows, some.n, members, numbers)
        z = _by_cause(time, cause, m)
        c = compatible_times(some.y, some.C, numbers.levels(1, like=some.y.time))
        lags = None
        if method.pairs == "lagged" or (method.pairs == "auto" and z.shape[1] > FEW_MEMBERS):
            lags = convert(numbers.lags(z.shape[1]), some.y.time)
        total = xp.zeros_like(some.y.time)
        for d in range(c.shape[1]):
            seen = xp.where(of_cause[rows], some.time, c[:, d])
            lag = None if lags is None else lags[:, d : d + 1]
            total = total + energy_loss(z, seen, c[:, d : d + 1], lags=lag, **options)
        return total / c.shape[1]

    size = F.samples.time.shape[1] if as_it_is else members
    return chunked_rows(losses, inputs.n, 4 * m * size, inputs.y.time)


def _draws_of(F: Any, rows: slice, n: int, members: int, random: RandomNumbers) -> tuple[Array, Array]:
    """Times and causes (n, members), drawn for every subject even where one distribution serves all."""
    one = len(F) == 1
    drawn = F.take(rows).sample((n if one else 1) * members, random.samples(flat=one))
    return drawn.time.reshape(n, members), drawn.cause.reshape(n, members)


def _by_cause(time: Array, cause: Array, m: int) -> Array:
    """The times of all causes, (n, M, m): infinite but for the one that happened."""
    xp = namespace(time)
    never = xp.full_like(time, np.inf)
    return xp.stack([xp.where(cause == j + 1, time, never) for j in range(m)], axis=2)
