"""Censoring times that an observation allows: their distribution, and random numbers to draw from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from censcore._arrays import Array, convert, detach, namespace, to_numpy
from censcore._numerics import scramble
from censcore.distributions import Independent
from censcore.distributions.random_draws import SubjectDraws, keys_of
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import RightCensored


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
    r"""Quantiles of C given the observation at ``levels`` in (0, 1), without a gradient; (n, D, 1 or k) both.

    One C shared by all coordinates is the censored time where any coordinate is censored, and has the
    distribution of :math:`C\mid C\ge\max_j y_j` elsewhere. One C per coordinate (``Independent``) is
    :math:`y_j` where coordinate j is censored and :math:`C_j\mid C_j\ge y_j` elsewhere.
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


def subject_keys(y: Any, ids: Any = None, seed: int = 0) -> np.ndarray:
    """What the random numbers of each subject follow from: its ``ids``, or its times and events, (n,).

    Times count in single precision, so that a subject has the same numbers in both. An event at time zero,
    which says nothing and stands for a time that is left out, does not count. Of subjects with equal times
    and events each has other numbers, by their order: with an administrative end that is most subjects, and
    a sampling error that they shared would not average out.

    >>> from censcore.outcomes import RightCensored
    >>> y = RightCensored([1.0, 2.0, 1.0], [True, True, True])
    >>> len(set(subject_keys(y))), len(set(subject_keys(y, ids=[7, 8, 7])))
    (3, 2)
    """
    if ids is None:
        time, event = to_numpy(y.time).reshape(len(y), -1), to_numpy(y.event).reshape(len(y), -1)
        key = np.broadcast_to(keys_of([], seed), (len(y),))
        for t, d in zip(time.T, event.T, strict=True):
            with_it = scramble(key ^ _single(t) ^ (d.astype(np.uint64) << np.uint64(63)))
            key = np.where((t == 0) & d, key, with_it)
        again = _occurrence(key)
        return np.where(again > 0, scramble(key ^ again), key)
    labels = to_numpy(ids)
    if labels.shape != (len(y),):
        raise InvalidInputError(
            f"ids: got an array of shape {labels.shape}, expected one label per subject, ({len(y)},)."
        )
    return keys_of([labels], seed)


def _occurrence(key: np.ndarray) -> np.ndarray:
    """How many times the same key came before.

    >>> _occurrence(np.array([5, 3, 5, 5], dtype=np.uint64)).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(key, kind="stable")
    place, is_new = np.arange(len(key)), np.ones(len(key), dtype=bool)
    is_new[1:] = key[order][1:] != key[order][:-1]
    count = np.empty(len(key), dtype=np.uint64)
    count[order] = place - np.maximum.accumulate(np.where(is_new, place, 0))
    return count


def _single(t: np.ndarray) -> np.ndarray:
    """The bits of times, rounded to 24 binary digits at any scale."""
    bits = (t.astype(np.float64) + 0.0).view(np.uint64)
    return (bits + np.uint64(2**28)) >> np.uint64(29)


@dataclass(frozen=True, eq=False)
class RandomNumbers:
    """The random numbers of subjects follow from the seed and their keys (n,), whatever the others are."""

    seed: int
    draws: int
    keys: np.ndarray

    def take(self, rows: Any) -> RandomNumbers:
        """Those of some subjects."""
        return replace(self, keys=self.keys[rows])

    def samples(self, flat: bool) -> SubjectDraws:
        """For samples from distributions, one per subject or (``flat``) one that serves all."""
        return SubjectDraws(SubjectDraws(self.keys).take(slice(None), 4).keys, flat)

    def order(self, m: int) -> np.ndarray:
        """A permutation of the members, so that neighbours have nothing in common."""
        return np.random.default_rng([self.seed, 0]).permutation(m)

    def lags(self, m: int) -> np.ndarray:
        """(n, draws) lags in 1..m-1, uniform, and different within a subject as far as they go round."""
        first = (self._uniforms(1, 1) * (m - 1)).astype(np.int64)
        return 1 + (first + np.arange(self.draws)) % (m - 1)

    def levels(self, k: int, like: Array) -> Array:
        """(n, draws, k) probabilities spread evenly over (0, 1)^k: strata, and nets in more dimensions."""
        p = self._strata()[:, :, None] if k == 1 else self._nets(k)
        below_one = np.nextafter(1, 0, dtype=np.dtype(str(like.dtype).removeprefix("torch.")))
        return convert(np.minimum(p, float(below_one)), like)

    def _strata(self) -> np.ndarray:
        tiny = 2.0**-54  # a level of zero is no quantile
        return (np.arange(self.draws) + self._uniforms(2, self.draws) + tiny) / self.draws

    def _nets(self, k: int) -> np.ndarray:
        """One scrambled Sobol net, shifted digit by digit for every subject."""
        from scipy.stats import qmc

        rng = np.random.default_rng([self.seed, 3])
        net = qmc.Sobol(k, scramble=True, seed=rng).random_base2(int(np.ceil(np.log2(self.draws))))
        digits = (net[: self.draws] * 2**32).astype(np.uint64)
        shift = (self._uniforms(2, k) * 2**32).astype(np.uint64)
        return ((digits ^ shift[:, None, :]) + 0.5) / 2**32

    def _uniforms(self, stream: int, per_subject: int) -> np.ndarray:
        """(n, per_subject) numbers, other ones for every stream."""
        return SubjectDraws(self.keys).take(slice(None), stream).random((len(self.keys), per_subject))
