"""Rules for distributions of one event time; the docstring of a rule says what it requires."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from censcore._quadrature import integrate_panels
from censcore.distributions import Univariate
from censcore.exceptions import ImpossibleForecastError, NoDensityError
from censcore.testing.contract import Examined, Rule, close, expect_error

_AT_TIMES = ("sf", "cdf", "sf_left", "logsf")
_AT_LEVELS = ("icdf", "isf")


def _words(s: Examined) -> tuple[str, ...]:
    return (*_AT_TIMES, "logpdf") if s.distribution.has_density else _AT_TIMES


def shapes(s: Examined) -> None:
    """A number or (n,) gives (n,), (1, q) or (n, q) gives (n, q), with the same values."""
    rows = s.n if s.n > 1 else 3
    for word in (*_words(s), *_AT_LEVELS):
        grid = s.levels if word in _AT_LEVELS else s.times[:1, :5]
        q = grid.shape[1]
        whole = s.ask(word, grid)
        assert whole.shape == (s.n, q), f"{word} of (1, q) has shape {whole.shape}, expected {(s.n, q)}."
        wide = s.ask(word, np.repeat(grid, rows, axis=0))
        assert wide.shape == (rows, q), f"{word} of (n, q) has shape {wide.shape}."
        close(wide, whole, 8 * s.eps, f"{word} of (n, q) against (1, q)")
        one = s.ask(word, float(grid[0, 1]))
        assert one.shape == (s.n,), f"{word} of a number has shape {one.shape}, expected {(s.n,)}."
        close(one, whole[:, 1], 8 * s.eps, f"{word} of a number against (1, q)")
        column = s.ask(word, np.repeat(grid[0, 2], rows))
        assert column.shape == (rows,), f"{word} of (n,) has shape {column.shape}, expected {(rows,)}."
        close(column, whole[:, 2], 8 * s.eps, f"{word} of (n,) against (1, q)")
    assert s.ask("integrated_sf", 0.0, 1.0).shape == (s.n,), "integrated_sf of numbers is not (n,)."
    assert s.ask("integrated_sf", 0.0, s.times[:, :3]).shape == (s.n, 3), "integrated_sf is not (n, q)."
    column, beyond = s.times[:, :1], s.ask("icdf_beyond", s.times[:, 0], s.levels)
    assert s.ask("integrated_sf", column * 0, column).shape == (s.n, 1), "integrated_sf is not (n, 1)."
    assert beyond.shape == (s.n, s.levels.shape[1]), "icdf_beyond of y (n,) and p (1, q) is not (n, q)."
    for word in ("mean", "mass_at_infinity"):
        assert s.ask(word).shape == (s.n,), f"{word}() is not (n,)."


def probabilities(s: Examined) -> None:
    """P(T <= t) + P(T > t) = 1, both in [0, 1] and monotone, with the right values at the ends."""
    sf, cdf, left = (s.ask(word, s.times) for word in ("sf", "cdf", "sf_left"))
    close(sf + cdf, np.ones_like(sf), 16 * s.eps, "cdf + sf")
    assert (sf >= 0).all(), "sf falls below 0."
    assert (sf <= 1 + 8 * s.eps).all(), "sf exceeds 1."
    assert (np.diff(sf, axis=1) <= 8 * s.eps).all(), "sf increases."
    assert (left >= sf - 4 * s.eps).all(), "sf_left is below sf."
    tied = (np.diff(s.times, axis=1) == 0).any()
    assert tied or (left[:, 1:] <= sf[:, :-1] + 8 * s.eps).all(), "sf_left exceeds sf at an earlier time."
    ends = {"sf": (1.0, 0.0), "cdf": (0.0, 1.0), "logsf": (0.0, -np.inf)}
    for word, (before, after) in ends.items():
        close(s.ask(word, -1.0), np.full(s.n, before), 0.0, f"{word} at -1")
        at_infinity = s.ask(f"{word}_at", np.array([[np.inf]]))  # of the formula, which scores call
        close(at_infinity, np.full((s.n, 1), after), 0.0, f"{word} at infinity")
    close(s.ask("sf_left", 0.0), np.ones(s.n), 8 * s.eps, "sf_left at 0")
    close(s.ask("sf_left", np.inf), s.ask("mass_at_infinity"), 16 * s.eps, "sf_left at infinity", scale=1.0)


def logarithms(s: Examined) -> None:
    """Logarithms agree with what they are the logarithms of."""
    sf = s.ask("sf", s.times)
    with np.errstate(divide="ignore"):
        expected = np.log(sf)
    logsf = s.ask("logsf", s.times)
    scale = np.maximum(1.0, -expected.clip(-1e3))
    close(np.where(sf > 0, logsf, -np.inf), expected, 64 * s.eps, "logsf", scale)
    assert (logsf[sf == 0] < np.log(np.finfo(s.dtype).tiny) + 4).all(), "logsf is too large where sf is 0."


def left_limits(s: Examined) -> None:
    """Survival is right-continuous, and sf_left is its limit from the left, at every break and elsewhere."""
    t = s.times
    after = np.nextafter(t.astype(s.dtype), np.asarray(np.inf, s.dtype)).astype(np.float64)
    before = np.nextafter(t.astype(s.dtype), np.asarray(-np.inf, s.dtype)).astype(np.float64)
    tolerance = max(s.rtol * 1e-2, 64 * s.eps)
    close(s.ask("sf", after), s.ask("sf", t), tolerance, "sf just after t against sf", scale=1.0)
    close(s.ask("sf", before), s.ask("sf_left", t), tolerance, "sf just before t against sf_left", scale=1.0)


def quantiles(s: Examined) -> None:
    """Quantiles are generalized inverses: F(Q(p)) >= p, F(Q(p)-) <= p, Q(F(t)) <= t, and so for isf."""
    slack = 64 * s.eps
    p = s.levels
    up, down = 1 + 8 * s.eps, 1 - 8 * s.eps  # a time is known to its last digits only
    t = s.ask("icdf", p)
    finite = np.isfinite(t)
    t_in = np.where(finite, t, 1.0)
    never = s.ask("mass_at_infinity")[:, None]
    assert (~finite | (s.ask("cdf", t_in * up) >= p * (1 - slack) - 4 * s.eps)).all(), "F(icdf(p)) < p."
    assert (~finite | (1 - s.ask("sf_left", t_in * down) <= p + slack)).all(), "F(icdf(p)-) > p."
    assert (finite | (p > 1 - never - slack)).all(), "icdf(p) is infinite too soon."
    u = s.ask("isf", p)
    finite = np.isfinite(u)
    u_in = np.where(finite, u, 1.0)
    assert (~finite | (s.ask("sf", u_in * up) <= p * (1 + slack) + 4 * s.eps)).all(), "sf(isf(p)) > p."
    before = s.ask("sf_left", u_in * down)
    assert (~finite | (before >= p * (1 - slack) - 4 * s.eps)).all(), "sf_left(isf(p)) < p."
    assert (finite | (p < never + slack)).all(), "isf(p) is infinite too soon."
    assert (t[:, 1:] >= t[:, :-1]).all(), "icdf is not monotone."
    assert (u[:, 1:] <= u[:, :-1]).all(), "isf is not monotone."
    cdf, sf = s.ask("cdf", s.times), s.ask("sf", s.times)
    reach = s.times * (1 + max(1e-4, 1e3 * s.eps))
    # in the upper tail only isf resolves times, in the lower tail only icdf; where F is flat, a level is met
    # exactly or, by rounding, only after the flat part
    below, above = s.rounded(cdf * (1 - 8 * s.eps)), s.rounded(np.minimum(sf * (1 + 8 * s.eps), 1.0))
    assert (s.ask("icdf", below) <= reach)[cdf <= 0.9].all(), "icdf(cdf(t)) > t."
    assert (s.ask("isf", above) <= reach)[sf <= 0.9].all(), "isf(sf(t)) > t."


def quantiles_at_the_ends(s: Examined) -> None:
    """icdf(0) = isf(1) = 0, icdf(1) = isf(0) is the end of the support, and isf reaches far into the tail."""
    close(s.ask("icdf", 0.0), np.zeros(s.n), 0.0, "icdf(0)")
    close(s.ask("isf", 1.0), np.zeros(s.n), 0.0, "isf(1)")
    end = s.ask("isf", 0.0)
    close(s.ask("icdf", 1.0), end, s.rtol, "icdf(1) against isf(0)")
    assert np.isinf(end)[s.ask("mass_at_infinity") > 0].all(), "isf(0) is finite despite mass at infinity."
    inside = np.where(np.isfinite(end), end, 1.0)
    beyond = np.where(np.isfinite(end), s.ask("sf", inside), 0.0)
    close(beyond, np.zeros(s.n), 8 * s.eps, "sf(isf(0))", scale=1.0)
    tiny = np.array([[1e-30, 1e-20, 1e-10]])
    far = s.ask("isf", tiny)
    reached = np.isinf(far) | (s.ask("sf", np.where(np.isinf(far), 0.0, far)) <= tiny * (1 + s.rtol))
    assert reached.all(), "sf(isf(p)) > p for p down to 1e-30."


def derived_routes(s: Examined) -> None:
    """Closed forms agree with what the base class derives from the survival function alone."""
    distribution = s.distribution
    levels = s.levels * 0.9973  # not at jumps, which the base class finds up to rounding only
    for word, back in (("icdf", "cdf"), ("isf", "sf")):
        derived = s.plain(getattr(Univariate, f"{word}_at")(distribution, s.native(levels)))
        own = s.ask(f"{word}_at", levels)
        finite = np.isfinite(own) & np.isfinite(derived)
        reached, level = (s.ask(f"{back}_at", np.where(finite, t, 1.0)) * finite for t in (own, derived))
        close(reached, level, s.rtol, f"{word}: level reached")
    a, b = s.native(s.times[:, :-1]), s.native(s.times[:, 1:])
    derived = s.plain(Univariate.integrated_sf_at(distribution, a, b))
    own = s.ask("integrated_sf", s.times[:, :-1], s.times[:, 1:])
    close(own, derived, s.rtol, "integrated_sf", scale=s.times[:, -1:] * 1e-3)


def integral(s: Examined) -> None:
    """integrated_sf is additive, agrees with quadrature, and is infinite with mass at infinity."""
    t = s.times
    zero = np.zeros_like(t[:, :1])
    steps = s.ask("integrated_sf", np.concatenate([zero, t[:, :-1]], axis=1), t)
    whole = s.ask("integrated_sf", 0.0, t)
    scale = whole[:, -1:]
    total = np.cumsum(steps, axis=1)
    close(total, whole, max(1e-9, 1e2 * s.eps), "integrated_sf summed over steps", scale=scale)
    close(s.ask("integrated_sf", t, t), np.zeros_like(t), 16 * s.eps, "integrated_sf(t, t)", scale=scale)
    assert (whole <= t * (1 + 64 * s.eps)).all(), "integrated_sf(0, t) > t."
    if s.knows_every_break:
        quadrature = _quadrature(s, lambda t: s.ask("sf", t), np.concatenate([zero, t], axis=1))
        close(quadrature, steps, s.rtol, "integrated_sf against quadrature of sf", scale=scale * 1e-3)
    mean = s.ask("mean")
    close(s.ask("integrated_sf", 0.0, np.inf), mean, 8 * s.eps, "integrated_sf(0, inf) against mean()")
    rest = s.ask("integrated_sf", t[:, -1], np.inf)
    close(whole[:, -1] + rest, mean, max(1e-9, 1e2 * s.eps), "integrated_sf(0, t) + integrated_sf(t, inf)")
    assert np.isinf(mean)[s.ask("mass_at_infinity") > 0].all(), "mean() is finite despite mass at infinity."


def _quadrature(s: Examined, f: Callable[[np.ndarray], np.ndarray], edges: np.ndarray) -> np.ndarray:
    """The integral of f between consecutive edges (n, q), of which breaks are some, on panels that grow."""
    a, b = edges[:, :-1, None], edges[:, 1:, None]
    pieces = np.arange(17) / 16
    growing = np.where(a > 0, a, 1.0) * (b / np.where(a > 0, a, 1.0)) ** pieces
    cuts = np.where(a > 0, growing, b * pieces**4)
    low, high = (part.reshape(len(edges), -1) for part in (cuts[..., :-1], cuts[..., 1:]))
    return integrate_panels(f, low, high).reshape(len(edges), -1, 16).sum(axis=2)


def density(s: Examined) -> None:
    """The density is the slope of F; without a density, logpdf raises a NoDensityError."""
    if not s.distribution.has_density:
        expect_error(lambda: s.ask("logpdf", 1.0), "has_density is False, but logpdf(1.0)", NoDensityError)
        return
    mass = _quadrature(s, lambda t: np.exp(s.ask("logpdf", t)), s.times)
    gained = np.diff(s.ask("cdf", s.times), axis=1)
    close(mass, gained, s.rtol, "integral of the density", scale=1e-2)
    close(s.ask("logpdf", -1.0), np.full(s.n, -np.inf), 0.0, "logpdf at -1")
    close(s.ask("logpdf", np.inf), np.full(s.n, -np.inf), 0.0, "logpdf at infinity")
    t, everybody = s.times_of_levels[:, 4], np.ones(s.n, dtype=bool)
    for event, word in ((everybody, "logpdf"), (~everybody, "logsf")):
        got = np.asarray(s.ask("log_likelihood", t, event))
        close(got, s.ask(word, t), 8 * s.eps, f"log_likelihood against {word}")


def conditional_quantiles(s: Examined) -> None:
    """Given T >= y, icdf_beyond(y, p) is the first t >= y with P(T <= t | T >= y) >= p."""
    slack = 1e2 * s.eps
    for y in (s.times[:, 0], s.times_of_levels[:, 4], s.times_of_levels[:, -1], s.times[:, -1]):
        t = s.ask("icdf_beyond", y, s.levels)
        start = y[:, None]
        assert (t >= start * (1 - 4 * s.eps)).all(), "icdf_beyond(y, p) < y."
        alive = s.ask("sf_left", start)
        close(np.where(alive > 0, start, t), start, 8 * s.eps, "icdf_beyond where P(T >= y) = 0")
        ok = (alive > 1e-200) & np.isfinite(t)
        inside, share = np.where(ok, t, start), np.where(alive > 1e-200, alive, 1.0)
        past, short = ((alive - s.ask(word, inside)) / share for word in ("sf", "sf_left"))
        enough = ~ok | (past >= s.levels * (1 - s.rtol) - slack)
        assert enough.all(), "P(T <= icdf_beyond(y, p) | T >= y) < p."
        first = ~ok | (short <= s.levels * (1 + s.rtol) + slack)
        assert first.all(), "P(T < icdf_beyond(y, p) | T >= y) > p."
        never = s.ask("mass_at_infinity")[:, None] / share
        too_soon = np.isinf(t) & (alive > 1e-200) & (s.levels < 1 - never - slack)
        assert not too_soon.any(), "icdf_beyond(y, p) is infinite too soon."
        close(s.ask("icdf_beyond", y, 0.0), y, 8 * s.eps, "icdf_beyond(y, 0)")


def simulation(s: Examined) -> None:
    """Draws are non-negative and follow sf, sf_left, the mass at infinity and the integral of sf."""
    draws = s.draws
    assert draws.shape[0] == s.n, f"sample(m): got {draws.shape[0]} subjects, expected {s.n}."
    assert (draws >= 0).all(), "A draw is negative or NaN."
    s.expect_survival(draws, s.times, s.distribution, "")
    never = np.isinf(draws)[:, :, None].astype(float)
    s.expect_mean(never, s.ask("mass_at_infinity")[:, None], "mass_at_infinity")
    limit = s.times_of_levels[:, None, 4:]
    expected = s.ask("integrated_sf", 0.0, s.times_of_levels[:, 4:]) / limit[:, 0]
    s.expect_mean(np.minimum(draws[:, :, None], limit) / limit, expected, "integrated_sf(0, t) = E min(T, t)")


def censoring(s: Examined) -> None:
    """censor_at(tau) is the distribution of min(T, tau)."""
    tau = s.times_of_levels[:, 4]
    cut = s.distribution.censor_at(s.native(tau))
    end = tau[:, None]
    t = np.sort(np.concatenate([s.times, end], axis=1), axis=1)
    for word, before, after in (("sf", t < end, 0.0), ("cdf", t < end, 1.0), ("sf_left", t <= end, 0.0)):
        expected = np.where(before, s.ask(word, t), after)
        close(s.ask(word, t, of=cut), expected, 16 * s.eps, f"{word} of censor_at(tau)", scale=1.0)
    expected = np.minimum(s.ask("icdf", s.levels), end)
    close(s.ask("icdf", s.levels, of=cut), expected, s.rtol, "icdf of censor_at(tau)")
    close(s.ask("mass_at_infinity", of=cut), np.zeros(s.n), 0.0, "mass at infinity of censor_at(tau)")
    area = s.ask("integrated_sf", 0.0, tau)
    close(s.ask("mean", of=cut), area, max(1e-9, 1e2 * s.eps), "mean of censor_at(tau)")
    never, free = s.ask("sf_left", np.inf), s.distribution.censor_at(np.inf)
    close(s.ask("sf_left", np.inf, of=free), never, 16 * s.eps, "censor_at(inf)", scale=1.0)
    once, twice = (F.censor_at(s.native(tau / 2)) for F in (s.distribution, cut))
    close(s.ask("isf", 0.0, of=twice), s.ask("isf", 0.0, of=once), 8 * s.eps, "censored twice")


def survivors(s: Examined) -> None:
    """given_survival(a) is the distribution of T given T > a; an error where P(T > a) = 0."""
    F, t, p = s.distribution, s.times, s.levels
    for a in (np.full(s.n, s.times_of_levels.min() / 2), s.times_of_levels[:, 4]):
        alive = s.ask("sf", a)
        if (alive <= 0).any():
            call = partial(F.given_survival, s.native(a))
            expect_error(call, "given_survival(a) with P(T > a) = 0", ImpossibleForecastError)
            a = np.where(alive > 0, a, -1.0)
            alive = np.where(alive > 0, alive, 1.0)
        survivor, late, S = F.given_survival(s.native(a)), t > a[:, None], alive[:, None]
        for word in ("sf", "sf_left"):
            expected = np.where(late, s.ask(word, t) / S, 1.0)
            close(s.ask(word, t, of=survivor), expected, s.rtol, f"{word} of given_survival(a)", scale=1e-6)
        gone = s.ask("cdf", t, of=survivor)
        close(gone, 1 - s.ask("sf", t, of=survivor), 64 * s.eps, "cdf of given_survival(a)", scale=1.0)
        quantile = s.ask("icdf", p, of=survivor)
        inside = np.where(np.isfinite(quantile), quantile, 0.0) * (1 + 8 * s.eps)
        reached = np.isinf(quantile) | (s.ask("cdf", inside, of=survivor) >= p * (1 - s.rtol) - 64 * s.eps)
        assert reached.all(), "F(icdf(p)) < p for given_survival(a)."
        never = s.ask("mass_at_infinity", of=survivor)
        close(never, s.ask("mass_at_infinity") / alive, s.rtol, "mass at infinity of given_survival(a)")
        end = np.broadcast_to(t[:, -1], (s.n,))
        area = np.maximum(a, 0.0) + s.ask("integrated_sf", np.maximum(a, 0.0), np.maximum(end, a)) / alive
        restricted = s.ask("integrated_sf", 0.0, np.maximum(end, a), of=survivor)
        close(restricted, area, s.rtol, "integrated_sf of given_survival(a)", scale=1e-3)
        if F.has_density:
            expected = np.where(late, s.ask("logpdf", t) - np.log(S), -np.inf)
            got = np.where(t == a[:, None], expected, s.ask("logpdf", t, of=survivor))  # any will do at a
            close(got, expected, s.rtol, "logpdf of given_survival(a)", scale=1.0)
    nothing = F.given_survival(-1.0)
    close(s.ask("sf", t, of=nothing), s.ask("sf", t), 0.0, "given_survival(-1)")


def one_coordinate(s: Examined) -> None:
    """A distribution of one time equals its first event and its coordinate 0; it has no other."""
    assert s.distribution.k == 1, f"k is {s.distribution.k}."
    for F in (s.distribution.first(), s.distribution.marginal(0)):
        close(s.ask("sf", s.times, of=F), s.ask("sf", s.times), 8 * s.eps, "first() and marginal(0)")
    expect_error(lambda: s.distribution.marginal(1), "marginal(1)")


def bad_input(s: Examined) -> None:
    """NaN, levels outside [0, 1], a > b, negative tau, no draws and wrong shapes raise InvalidInputError."""
    for word in _words(s):
        expect_error(partial(s.ask, word, np.array([[np.nan]])), f"{word}(nan)")
    bad: list[tuple[Any, ...]] = [(word, level) for word in _AT_LEVELS for level in (-0.1, 1.1, np.nan)]
    bad += [("integrated_sf", 2.0, 1.0), ("integrated_sf", -1.0, 1.0), ("icdf_beyond", 1.0, 1.5)]
    bad += [
        ("censor_at", -1.0),
        ("censor_at", np.nan),
        ("given_survival", np.nan),
        ("given_survival", np.inf),
    ]
    for word, *args in (*bad, ("sample", 0)):
        expect_error(partial(getattr(s.distribution, word), *args), f"{word}({', '.join(map(str, args))})")
    expect_error(lambda: s.ask("sf", np.ones((1, 1, 1))), "sf of a 3-dimensional array")
    if s.n > 1:
        expect_error(lambda: s.ask("sf", np.ones(s.n + 1)), "sf at n + 1 times")


RULES: tuple[Rule, ...] = (
    shapes, probabilities, logarithms, left_limits, quantiles, quantiles_at_the_ends, derived_routes,
    integral, density, conditional_quantiles, simulation, censoring, survivors, one_coordinate, bad_input,
)  # fmt: skip
