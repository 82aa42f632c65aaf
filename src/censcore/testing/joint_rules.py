"""Rules for distributions of several event times."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from censcore.exceptions import InvalidInputError, NoDensityError
from censcore.testing.contract import Examined, Rule, close, expect_error


def _times(s: Examined) -> np.ndarray:
    """Finite positive times (n, q, k): a few quantiles of the draws of each coordinate, slightly moved."""
    return s.rounded(_levels_of(s.draws).transpose(1, 0, 2) * 1.0137 + 1e-3)


def _levels_of(draws: np.ndarray) -> np.ndarray:
    """A few quantiles of the finite draws along axis 1, as first axis; one where there are none."""
    finite = np.isfinite(draws)
    usable = np.where(finite.any(axis=1, keepdims=True), np.where(finite, draws, np.nan), 1.0)
    return np.nanquantile(usable, [0.1, 0.35, 0.6, 0.85], axis=1)


def coordinates(s: Examined) -> None:
    """marginal(j) is the distribution of the j-th time: draws follow it."""
    times = _times(s)
    for j in range(s.distribution.k):
        distribution = s.distribution.marginal(j)
        assert distribution.k == 1, f"marginal({j}) has {distribution.k} coordinates."
        assert len(distribution) in (1, s.n), (
            f"marginal({j}): got {len(distribution)} subjects, expected {s.n}."
        )
        t = times[:, :, j]
        s.expect_survival(s.draws[:, :, j], t, distribution, f"marginal({j}).")
    t, k = times[:, :, -1], s.distribution.k
    last, same = (s.ask("sf", t, of=s.distribution.marginal(j)) for j in (-1, k - 1))
    close(last, same, 0.0, "marginal(-1)")


def first_event(s: Examined) -> None:
    """first() is the distribution of the smallest time: draws follow its survival, integral and quantiles."""
    distribution = s.distribution.first()
    earliest = s.draws.min(axis=2)
    t = s.rounded(_levels_of(earliest).T * 1.0137)
    s.expect_survival(earliest, t, distribution, "first().")
    limit = t[:, None, -1:]
    area = s.ask("integrated_sf", 0.0, t[:, -1:], of=distribution) / limit[:, 0]
    s.expect_mean(np.minimum(earliest[:, :, None], limit) / limit, area, "first().integrated_sf")
    p = np.array([[0.2, 0.5, 0.8]])
    quantile = s.ask("icdf", p, of=distribution)
    inside = np.where(np.isfinite(quantile), quantile, 0.0)
    reached = np.isinf(quantile) | (s.ask("cdf", inside, of=distribution) >= p - 1e2 * s.eps)
    assert reached.all(), "F(icdf(p)) < p for first()."


def survival(s: Examined) -> None:
    """The likelihood of a fully censored subject is the probability that all times are later."""
    times = _times(s)
    nothing = np.zeros((s.n, s.distribution.k), dtype=bool)
    for i in range(times.shape[1]):
        try:
            value = s.ask("log_likelihood", times[:, i], nothing)
        except NoDensityError:
            return  # an empirical distribution: draws are all that it has
        assert value.shape == (s.n,), f"log_likelihood has shape {value.shape}, expected {(s.n,)}."
        later = np.all(s.draws > times[:, None, i], axis=2, keepdims=True)
        s.expect_mean(later.astype(float), np.exp(value)[:, None], "survival of all coordinates")


def likelihood(s: Examined) -> None:
    """With events, the likelihood is the slope of survival in their coordinates."""
    if s.eps > 1e-10:
        return  # differences need double precision
    if not getattr(s.distribution, "has_density", True):
        all_events = np.ones((s.n, s.distribution.k), dtype=bool)
        call = partial(s.ask, "log_likelihood", _times(s)[:, 0], all_events)
        expect_error(call, "has_density is False, but log_likelihood of events", NoDensityError)
        return
    k = s.distribution.k
    for events in [*combinations(range(k), 1), *combinations(range(k), 2)]:
        event = np.zeros((s.n, k), dtype=bool)
        event[:, list(events)] = True
        for i in (1, 2):
            t = _times(s)[:, i]
            value = np.exp(s.ask("log_likelihood", t, event))
            close(value, _slope(s, t, events), 1e-3, f"log_likelihood with events in {events}", scale=1e-6)


def _slope(s: Examined, t: np.ndarray, events: tuple[int, ...]) -> np.ndarray:
    """Mixed central difference of the survival function in the coordinates ``events``."""
    nothing = np.zeros_like(t, dtype=bool)
    total = np.zeros(s.n)
    for signs in np.ndindex(*(2,) * len(events)):
        moved, sign = t.copy(), 1.0
        for j, up in zip(events, signs, strict=True):
            moved[:, j] *= 1 + (1e-4 if up else -1e-4)
            sign *= -1.0 if up else 1.0
        total += sign * np.exp(s.ask("log_likelihood", moved, nothing))
    return total / np.prod([2e-4 * t[:, j] for j in events], axis=0)


def censoring(s: Examined) -> None:
    """censor_at(tau), tau a number, (n,) or (n, k), is the distribution of min(T_j, tau_j)."""
    tau = _times(s)[:, 2]
    for limit in (float(tau.max()), tau[:, 0], tau):
        cut = s.distribution.censor_at(s.native(limit) if isinstance(limit, np.ndarray) else limit)
        limits = np.broadcast_to(limit[:, None] if np.ndim(limit) == 1 else limit, tau.shape)  # type: ignore[index]
        for j in range(s.distribution.k):
            end = limits[:, j]
            support = s.ask("isf", 0.0, of=cut.marginal(j))
            assert (support <= end * (1 + 8 * s.eps)).all(), "A censored coordinate exceeds tau."
            before = s.ask("sf", end / 2, of=s.distribution.marginal(j))
            close(s.ask("sf", end / 2, of=cut.marginal(j)), before, 64 * s.eps, "sf before tau", scale=1.0)
        draws = s.ask("sample", 50, s.seed, of=cut)
        assert (draws <= limits[:, None, :] * (1 + 4 * s.eps)).all(), "A draw of censor_at(tau) exceeds tau."


def survivors(s: Examined) -> None:
    """given_survival(a) is the distribution given that all times exceed a."""
    a = np.full(s.n, float(np.median(_times(s)[:, 0].min(axis=1))))
    later = np.all(s.draws > a[:, None, None], axis=2)
    share = later.mean(axis=1)
    usable = share > 0.05  # enough draws to compare with
    a = np.where(usable, a, -1.0)
    later |= ~usable[:, None]
    survivor = s.distribution.given_survival(s.native(a))
    weight = later / later.mean(axis=1, keepdims=True)
    for j in range(s.distribution.k):
        for i in range(_times(s).shape[1]):
            t = _times(s)[:, i, j]
            beyond = (s.draws[:, :, j] > t[:, None]) * weight
            expected = s.ask("sf", t, of=survivor.marginal(j))
            s.expect_mean(beyond[:, :, None], expected[:, None], "marginal sf of given_survival(a)")
    draws = s.ask("sample", 50, s.seed, of=survivor)
    assert (draws > a[:, None, None]).all(), "A draw of given_survival(a) does not exceed a."


def bad_input(s: Examined) -> None:
    """NaN, negative times, wrong shapes, coordinates out of range and no draws raise InvalidInputError."""
    k = s.distribution.k
    event = np.zeros((s.n, k), dtype=bool)
    wide = np.zeros((s.n, k + 1))
    bad: dict[str, Any] = {
        f"marginal({k})": lambda: s.distribution.marginal(k),
        "sample(0)": lambda: s.distribution.sample(0),
        "censor_at(-1)": lambda: s.distribution.censor_at(-1.0),
        "log_likelihood(nan)": lambda: s.ask("log_likelihood", np.full((s.n, k), np.nan), event),
        "log_likelihood(-1)": lambda: s.ask("log_likelihood", np.full((s.n, k), -1.0), event),
        "log_likelihood of k + 1 columns": lambda: s.ask("log_likelihood", wide + 1, wide > 0),
    }
    for what, call in bad.items():
        expect_error(call, what, InvalidInputError, NoDensityError)


RULES: tuple[Rule, ...] = (coordinates, first_event, survival, likelihood, censoring, survivors, bad_input)
