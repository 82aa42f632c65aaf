"""Energy score of semi-competing risks: events that never happen are scored at every C that is possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import Array, convert, to_numpy
from censcore._numerics import chunked_rows
from censcore.distributions import Distribution, Ensemble
from censcore.exceptions import InvalidInputError
from censcore.outcomes import SemiCompetingRisks
from censcore.scores._support import check_infinite
from censcore.scores.compatible_times import RandomNumbers, compatible_times
from censcore.scores.energy_pairs import energy_loss
from censcore.scores.inputs import scoring_inputs

__all__ = ["energy_of_semi_competing"]


def energy_of_semi_competing(
    y: SemiCompetingRisks,
    forecast: Distribution,
    censoring: Distribution | None,
    horizon: Array,
    random: RandomNumbers,
    *,
    beta: float,
    fair: bool,
    lagged: bool | None,
    members: int,
) -> Array:
    r"""The energy score of :math:`(\min(T_1,C),\dots,\min(T_k,C))`, (n,).

    Of an event that never happens :math:`\min(T_j,C)=C` is seen, so that the outcome moves with C, which has
    its distribution given :math:`C\ge y` for a subject with the terminal event at y, and is y otherwise.
    """
    if forecast.k != y.k:
        raise InvalidInputError(f"forecast: got {forecast.k} event times, expected {y.k}, as in the outcome.")
    inputs = scoring_inputs(y.terminal_event(), forecast.marginal(y.terminal), censoring, horizon)
    y = y if horizon is None else y.censor_at(convert(horizon, y.time) if np.ndim(horizon) else horizon)
    xp, n, end = inputs.xp, inputs.n, inputs.y
    endless = (inputs.C.mass_at_infinity() > 0) & end.event
    check_infinite(xp.where(endless, np.inf, xp.zeros_like(end.time)), inputs)
    z, w = _members(forecast, n, members, random)
    fair = fair or not isinstance(forecast, Ensemble)
    m = z.shape[1]
    known = convert(to_numpy(y.known_time), z)

    def losses(rows: slice) -> Array:
        some, numbers = inputs.take(rows), random.take(rows)
        part: Any = z if len(z) == 1 else z[rows]
        weights = w if w is None or len(w) == 1 else w[rows]
        c = compatible_times(some.y, some.C, numbers.levels(1, like=some.y.time))
        lags = convert(numbers.lags(m), end.time) if lagged or (lagged is None and m > 64) else None
        total = xp.zeros_like(some.y.time)
        for d in range(c.shape[1]):
            seen = xp.minimum(known[rows], c[:, d])
            lag = None if lags is None else lags[:, d : d + 1]
            total = total + energy_loss(
                part, seen, c[:, d : d + 1], weights=weights, beta=beta, fair=fair, lags=lag
            )
        return total / c.shape[1]

    return chunked_rows(losses, n, 8 * m * y.k, end.time)


def _members(forecast: Any, n: int, members: int, random: RandomNumbers) -> tuple[Array, Array]:
    """Samples (n or 1, m, k) and weights; drawn for every subject where the forecast is no ensemble."""
    if isinstance(forecast, Ensemble):
        return forecast.samples, forecast.weights
    one = len(forecast) == 1
    drawn = forecast.sample((n if one else 1) * members, random.samples(flat=one))
    return drawn.reshape(n, members, forecast.k), None
