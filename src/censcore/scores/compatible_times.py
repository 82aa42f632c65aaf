"""Censoring times that an observation allows: their distribution, and random numbers to draw from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import Array, convert, detach, namespace, to_numpy
from censcore.distributions import Independent
from censcore.exceptions import InvalidTypeError
from censcore.outcomes import RightCensored

__all__ = ["RandomNumbers", "check_componentwise", "compatible_times", "known_rows"]


def check_componentwise(C: Any) -> None:
    """Several censoring times must be independent, so that their conditional distribution is a product."""
    if C.k > 1 and not isinstance(C, Independent):
        raise InvalidTypeError(
            f"got {type(C).__name__} for one censoring time per coordinate, expected independent times: pass "
            "Independent([C_1, ..., C_k])."
        )


def known_rows(y: RightCensored, C: Any) -> np.ndarray:
    """Rows whose censoring time is known: seen, or the only time that C can have; (n,) booleans."""
    censored = to_numpy(y.censored).reshape(len(y), -1)
    times = [np.broadcast_to(to_numpy(C.marginal(j).known_time()), (len(y),)) for j in range(C.k)]
    known = ~np.isnan(np.stack(times, axis=1))
    if C.k == 1:
        return np.logical_or(censored.any(axis=1), known[:, 0])
    return np.all(censored | known, axis=1)


def compatible_times(y: RightCensored, C: Any, levels: Array) -> Array:
    r"""Quantiles of C given the observation, without a gradient.

    One C shared by all coordinates is the censored time where any coordinate is censored, and has the
    distribution of :math:`C\mid C\ge\max_j y_j` elsewhere. One C per coordinate (``Independent``) is
    :math:`y_j` where coordinate j is censored and :math:`C_j\mid C_j\ge y_j` elsewhere.

    Parameters
    ----------
    y : RightCensored
        n subjects.
    C : Distribution
        Censoring distribution, one for all coordinates or ``Independent`` ones.
    levels : array, (n, D, 1) or (n, D, k) for one distribution per coordinate
        Probabilities in (0, 1).

    Returns
    -------
    array, (n, D, 1) or (n, D, k)
    """
    n = len(y)
    time, event = y.time.reshape(n, -1), ~y.censored.reshape(n, -1)
    xp = namespace(time)
    if C.k == 1:
        time, event = xp.max(time, axis=1)[:, None], xp.all(event, axis=1)[:, None]
    times = [
        xp.where(event[:, j, None], C.marginal(j).icdf_beyond(time[:, j], levels[:, :, j]), time[:, j, None])
        for j in range(C.k)
    ]
    return detach(xp.stack(times, axis=2))


@dataclass(frozen=True)
class RandomNumbers:
    """The random numbers of subject r depend on the seed and r alone, whoever else is asked for."""

    seed: np.random.SeedSequence
    draws: int

    def order(self, m: int) -> np.ndarray:
        """A permutation of the members, so that neighbours have nothing in common."""
        return np.random.default_rng(self._stream(0)).permutation(m)

    def lags(self, rows: range, m: int) -> np.ndarray:
        """(rows, draws) lags in 1..m-1, uniform, and different within a subject as far as they go round."""
        first = (self._uniforms(1, rows, 1) * (m - 1)).astype(np.int64)
        return 1 + (first + np.arange(self.draws)) % (m - 1)

    def levels(self, rows: range, k: int, like: Array) -> Array:
        """(rows, draws, k) probabilities spread evenly over (0, 1)^k: strata, and nets in more dimensions."""
        p = self._strata(rows)[:, :, None] if k == 1 else self._nets(rows, k)
        below_one = np.nextafter(1, 0, dtype=np.dtype(str(like.dtype).removeprefix("torch.")))
        return convert(np.minimum(p, float(below_one)), like)

    def _strata(self, rows: range) -> np.ndarray:
        tiny = 2.0**-54  # a level of zero is no quantile
        return (np.arange(self.draws) + self._uniforms(2, rows, self.draws) + tiny) / self.draws

    def _nets(self, rows: range, k: int) -> np.ndarray:
        """One scrambled Sobol net, shifted digit by digit for every subject."""
        from scipy.stats import qmc

        rng = np.random.default_rng(self._stream(3))
        net = qmc.Sobol(k, scramble=True, seed=rng).random_base2(int(np.ceil(np.log2(self.draws))))
        digits = (net[: self.draws] * 2**32).astype(np.uint64)
        shift = (self._uniforms(2, rows, k) * 2**32).astype(np.uint64)
        return ((digits ^ shift[:, None, :]) + 0.5) / 2**32

    def _uniforms(self, stream: int, rows: range, per_row: int) -> np.ndarray:
        """The part of one long stream that belongs to these subjects."""
        bits = np.random.PCG64(self._stream(stream)).advance(rows.start * per_row)
        return np.random.Generator(bits).random((len(rows), per_row))

    def _stream(self, number: int) -> np.random.SeedSequence:
        key = (*self.seed.spawn_key, number)
        return np.random.SeedSequence(self.seed.entropy, spawn_key=key)
