"""How a contract is checked: every rule is applied, and all that are broken are reported together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from censcore._arrays import convert, to_numpy
from censcore.exceptions import InvalidInputError

_LEVELS = np.array([1e-6, 0.01, 0.1, 0.25, 0.5, 0.6, 0.8, 0.95, 0.999])
_DRAWS = 4000
_BREAKS = 25


def expect_kept(rules: Sequence[Callable[[Any], None]], examined: Any, name: str, kind: str) -> None:
    """Raise an AssertionError with every broken rule; a rule is named by the first line of its docstring."""
    broken = [f"- {rule.__doc__} {reason}" for rule in rules if (reason := _broken(rule, examined))]
    if broken:
        raise AssertionError(f"{name} breaks the contract of {kind}:\n" + "\n".join(broken))


def _broken(rule: Callable[[Any], None], examined: Any) -> str:
    """How the rule is broken; empty if it is kept."""
    try:
        rule(examined)
    except AssertionError as error:
        return " ".join(str(error).split())
    except Exception as error:  # a rule that cannot be checked is broken, whatever the reason
        return f"{type(error).__name__}: {error}"
    return ""


def expect_error(call: Callable[[], Any], what: str, *kinds: type[Exception]) -> None:
    """The call raises an error of one of these kinds, of bad input by default."""
    kinds = kinds or (InvalidInputError,)
    try:
        call()
    except kinds:
        return
    raise AssertionError(f"{what} raises no {kinds[0].__name__}.")


class Examined:
    """A distribution with the times and levels at which it is examined."""

    def __init__(self, distribution: Any, rtol: float | None, seed: int) -> None:
        self.distribution = distribution
        self.seed = seed
        dtype = to_numpy(distribution.reference).dtype
        self.eps = float(np.finfo(dtype).eps)
        self.dtype = dtype
        self.rtol = rtol if rtol is not None else 1e-6 if self.eps < 1e-10 else 3e-3
        self.n = len(distribution)

    def ask(self, word: str, *args: Any, of: Any = None) -> np.ndarray:
        """``distribution.word(*args)`` in double precision, with arrays in the distribution's library."""
        inputs = [self.native(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        asked = getattr(self.distribution if of is None else of, word)
        return self.plain(asked(*inputs))

    def plain(self, array: Any) -> np.ndarray:
        """``array`` in NumPy and double precision."""
        return np.asarray(to_numpy(array), dtype=np.float64)

    def native(self, array: np.ndarray) -> Any:
        """``array`` in the library, the dtype and on the device of the distribution."""
        return convert(array, self.distribution.reference)

    def rounded(self, values: Any) -> np.ndarray:
        """Values rounded to the distribution's dtype, in double precision."""
        return np.asarray(values, dtype=self.dtype).astype(np.float64)

    @cached_property
    def levels(self) -> np.ndarray:
        """Levels (1, q) from the lower to the upper tail."""
        return self.rounded(_LEVELS)[None, :]

    @cached_property
    def breaks(self) -> np.ndarray:
        """Positive finite times (n, b) at which the survival function may jump or bend."""
        breaks = self.distribution.breaks()
        if breaks is None:
            return np.empty((self.n, 0))
        times = np.broadcast_to(to_numpy(breaks).astype(np.float64), (self.n, breaks.shape[1]))
        times = times[:, np.unique(np.linspace(0, times.shape[1] - 1, _BREAKS).astype(int))]
        return np.where(np.isfinite(times) & (times > 0), times, self.times_of_levels[:, :1])

    @property
    def knows_every_break(self) -> bool:
        """Whether all breaks are among the times examined."""
        breaks = self.distribution.breaks()
        return breaks is None or breaks.shape[1] <= _BREAKS

    @cached_property
    def times_of_levels(self) -> np.ndarray:
        """Positive finite quantiles (n, q), ascending."""
        quantiles = np.broadcast_to(self.ask("icdf", self.levels), (self.n, self.levels.shape[1]))
        usable = np.isfinite(quantiles) & (quantiles > 0)
        return np.sort(np.where(usable, quantiles, 1.0), axis=1)

    @cached_property
    def times(self) -> np.ndarray:
        """Positive finite times (n, q), ascending: quantiles, breaks, and points between and beyond."""
        known = np.sort(np.concatenate([self.times_of_levels, self.breaks], axis=1), axis=1)
        between = (known[:, 1:] + known[:, :-1]) / 2
        every = np.concatenate([known, between, known[:, :1] / 2, known[:, -1:] * 1.5], axis=1)
        return self.rounded(np.sort(every, axis=1))

    @cached_property
    def draws(self) -> np.ndarray:
        """Times drawn from the distribution, (n, m) or (n, m, k)."""
        sample = self.distribution.sample(_DRAWS, self.seed)
        return self.plain(getattr(sample, "time", sample))

    @cached_property
    def grid(self) -> np.ndarray:
        """Times (1, q) spread over the draws."""
        finite = self.draws[np.isfinite(self.draws)]
        times = np.quantile(finite, np.linspace(0.02, 0.98, 7)) if finite.size else np.ones(7)
        return self.rounded(times)[None, :]

    def expect_mean(self, samples: np.ndarray, expected: np.ndarray, what: str) -> None:
        """The mean of samples (n, m, q) is ``expected`` (n, q), within six standard errors."""
        m = samples.shape[1]
        error = samples.std(axis=1) / np.sqrt(m) + 1 / m
        off = np.abs(samples.mean(axis=1) - expected) / (error * np.maximum(1.0, np.abs(expected)))
        assert (off < 6).all(), f"{what}: simulation is {off.max():.1f} standard errors away."

    def expect_survival(self, draws: np.ndarray, times: np.ndarray, of: Any, what: str) -> None:
        """Draws (n, m) follow P(T > t) and P(T >= t) of a distribution at times (n, q)."""
        for word, passes in (("sf", np.greater), ("sf_left", np.greater_equal)):
            above = passes(draws[:, :, None], times[:, None, :]).astype(float)
            self.expect_mean(above, self.ask(word, times, of=of), f"{what}{word}")


Rule = Callable[[Examined], None]


def close(
    got: np.ndarray, expected: np.ndarray, rtol: float, what: str, scale: np.ndarray | float = 0.0
) -> None:
    """Equal within ``rtol`` of the expected value or of ``scale``; infinities must coincide."""
    got, expected = np.broadcast_arrays(got, expected)
    assert not np.isnan(got).any(), f"{what} is NaN."
    same = got == expected
    finite = np.isfinite(got) & np.isfinite(expected)
    gap = np.abs(np.where(finite, got, np.inf) - np.where(finite, expected, 0.0))
    off = ~same & ~(gap <= rtol * np.maximum(np.abs(np.where(finite, expected, 0.0)), scale))
    if off.any():
        where = tuple(np.argwhere(off)[0].tolist())
        raise AssertionError(f"{what}: got {got[where]:.12g}, expected {expected[where]:.12g}, at {where}.")
