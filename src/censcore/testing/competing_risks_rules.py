"""The rules of distributions of time and cause."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.exceptions import NoDensityError
from censcore.testing.contract import Examined, Rule, close, expect_error

_DRAWS = 4000


def _causes(distribution: Any) -> list[Any]:
    return [distribution.cause(j) for j in range(1, distribution.n_causes + 1)]


def incidences(s: Examined) -> None:
    """cif(t) is (n, m, q), rises, is the CDF of each cause, and sums with sf(t) to one."""
    t = s.grid[0]
    cif, sf = s.ask("cif", t), s.ask("sf", t)
    expected = (s.n, s.distribution.n_causes, len(t))
    assert cif.shape == expected, f"cif: got shape {cif.shape}, expected {expected}."
    assert sf.shape == (s.n, len(t)), f"sf: got shape {sf.shape}, expected {(s.n, len(t))}."
    assert (np.diff(cif, axis=2) >= -8 * s.eps).all(), "cif decreases with time."
    close(cif.sum(axis=1) + sf, np.ones_like(sf), max(s.rtol * 1e-2, 64 * s.eps), "sum of cif(t) and sf(t)")
    for j, part in enumerate(_causes(s.distribution)):
        close(s.ask("cdf", s.grid, of=part), cif[:, j], 16 * s.eps, f"cause({j + 1}).cdf", scale=1.0)
    close(s.ask("cif", float(t[3])), cif[:, :, 3], 16 * s.eps, "cif of a number", scale=1.0)


def draws(s: Examined) -> None:
    """sample(m, seed) gives times and causes with the frequencies cif(t), and depends on the seed alone."""
    time, cause = (np.asarray(to_numpy(part)) for part in s.distribution.sample(_DRAWS, s.seed))
    assert time.shape == cause.shape == (s.n, _DRAWS), f"sample: got shapes {time.shape} and {cause.shape}."
    assert ((cause == 0) == np.isinf(time)).all(), "The cause is 0 exactly where the time is infinite."
    again = s.distribution.sample(_DRAWS, s.seed)
    assert (to_numpy(again.time) == time).all(), "The same seed gives different draws."
    t = s.grid[0]
    cif = s.ask("cif", t)
    for j in range(cif.shape[1]):
        happened = (time[:, :, None] <= t) & (cause[:, :, None] == j + 1)
        s.expect_mean(happened.astype(np.float64), cif[:, j], f"cif of cause {j + 1}")


def likelihood(s: Examined) -> None:
    """log_likelihood is the log density of the cause, or log survival; an error where there is no density."""
    t = np.full(s.n, float(s.grid[0, 4]))
    alive = np.exp(s.ask("log_likelihood", t, np.zeros(s.n)))
    close(alive, s.ask("sf", float(t[0])), 1e-6 + 64 * s.eps, "likelihood of a censored time", scale=1.0)
    for j, part in enumerate(_causes(s.distribution), start=1):
        event = np.full(s.n, float(j))
        if not s.distribution.has_density:
            call = partial(s.ask, "log_likelihood", t, event)
            expect_error(call, "log_likelihood of an event without a density", NoDensityError)
            continue
        density = s.ask("logpdf", t, of=part)
        close(s.ask("log_likelihood", t, event), density, 64 * s.eps, f"log_likelihood of cause {j}")


def names(s: Examined) -> None:
    """Causes are found by number and by name; others are errors."""
    for j, name in enumerate(s.distribution.names, start=1):
        one, other = s.distribution.cause(j), s.distribution.cause(name)
        close(s.ask("sf", 1.0, of=one), s.ask("sf", 1.0, of=other), 0.0, "cause by name")
    for wrong in (0, s.distribution.n_causes + 1, "no such cause"):
        expect_error(partial(s.distribution.cause, wrong), f"cause({wrong!r})")


RULES: tuple[Rule, ...] = (incidences, draws, likelihood, names)
