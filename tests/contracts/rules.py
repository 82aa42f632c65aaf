"""The contract of distributions with the rules that are of use within the library only."""

from __future__ import annotations

import numpy as np
from tests.contracts.selection import selection

from censcore import testing
from censcore.distributions import TimeAndCause, Univariate
from censcore.testing.contract import Examined, close, expect_kept


def check_distribution(distribution, *, rtol=None, seed=0):
    """Check the public contract, then the choice of subjects in depth and the routes of the base class."""
    testing.check_distribution(distribution, rtol=rtol, seed=seed)
    parts = distribution.n_causes if isinstance(distribution, TimeAndCause) else 0
    for F in [distribution.cause(j + 1) for j in range(parts)] or [distribution]:
        rules = (selection, derived_routes) if isinstance(F, Univariate) and F.k == 1 else (selection,)
        expect_kept(rules, Examined(F, rtol, seed), repr(F), "distributions")


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
