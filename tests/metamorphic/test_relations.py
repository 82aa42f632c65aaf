"""What must not depend on how the data are written down: relations between scores, over all compositions.

Every distribution inside every other is a forecast and a censoring distribution in turn. The losses follow
their subjects in any order and in any part of the sample, a weight of two is a subject twice, the unit of
time is the caller's choice, NumPy and torch agree, a horizon is an end of follow-up, and a mixture of one
component is that component. Warnings are errors here, as in all tests.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from tests.contracts.distributions import UNIVARIATE
from tests.distributions.compositions import N, compositions
from tests.metamorphic.losses import rows_of, same_losses
from tests.metamorphic.units import in_unit

import censcore as cs
from censcore.distributions import Grouped

TIMES, LEVELS, END = [0.3, 0.6], [0.2, 0.7], 0.8
#: Scores, the arguments that are times, and the power of the unit of time in which their losses are.
SCORES = {
    "crps": (cs.crps, {}, 1),
    "brier": (cs.brier_score, {"times": TIMES}, 0),
    "brier, ipcw": (partial(cs.brier_score, scale="ipcw"), {"times": TIMES}, 0),
    "integrated brier, ipcw": (partial(cs.integrated_brier_score, scale="ipcw"), {}, 1),
    "binomial log": (cs.binomial_log_score, {"times": TIMES}, 0),
    "pinball": (partial(cs.pinball_score, levels=LEVELS), {}, 1),
}
#: Units from attoseconds to beyond the age of the universe.
UNITS = (1e-18, 60.0, 1e18)
ORDER = np.array([2, 0, 3, 1])
NAMES = [name for name in UNIVARIATE if "float32" not in name and "CompactStep" not in name]


def trees(name):
    """Compositions of one event time that hold the distribution ``name``, and the distribution itself."""
    made = {kind: tree.whole() for kind, tree in compositions(UNIVARIATE[name]()).items()}
    return {kind: distribution for kind, distribution in made.items() if distribution.k == 1}


def cases(name, roles):
    """The composition as censoring distribution of what it can have censored, and as forecast.

    With ``roles`` below 2 compositions take turns in the two roles.
    """
    rng = np.random.default_rng(1)
    F, C = cs.Gamma([0.8, 1.2, 2.0, 3.0], [1.0, 2.0, 1.0, 1.5]), cs.Uniform(0.0, 2.5)
    for number, (kind, composed) in enumerate(trees(name).items()):
        both = [("C", F, composed), ("F", composed, C)]
        for role, forecast, censoring in both if roles == 2 else [both[number % 2]]:
            c = np.broadcast_to(censoring.sample(1, 2)[:, 0], (N,))
            T = rng.weibull(1.3, N)
            yield f"{kind} as {role}", cs.RightCensored(np.minimum(T, c), c >= T), forecast, censoring


def losses(y, F, C, unit=1.0, horizon=END, only=None):
    """Losses by score; a score that the censoring distribution does not support has none, for all alike."""
    found = {}
    for name, (score, times, _) in SCORES.items():
        if only is None or name in only:
            arguments = {word: [t * unit for t in value] for word, value in times.items()}
            try:
                found[name] = score(y, F, C, horizon=horizon * unit, **arguments)
            except cs.exceptions.PositivityError:
                found[name] = None
    return found


expect_same = partial(same_losses, rtol=1e-9, atol=1e-11)


# ---- relations -------------------------------------------------------------------------------------


def order_and_parts(message, y, F, C, expected, only):
    """In another order, and in two parts of the sample that are scored apart."""
    if any(value is None for value in expected.values()):
        return  # one subject beyond the support is an error for all of them
    found = losses(y[ORDER], F[ORDER], C[ORDER], only=only)
    expect_same(found, rows_of(expected, ORDER), f"{message}, order")
    for part in (slice(0, 2), slice(2, 4)):
        found = losses(y[part], F[part], C[part], only=only)
        expect_same(found, rows_of(expected, part), f"{message}, part")


def units(message, y, F, C, expected, only, unit):
    """Times in another unit."""
    scaled = cs.RightCensored(y.time * unit, y.event)
    try:
        found = losses(scaled, in_unit(F, unit), in_unit(C, unit), unit, only=only)
    except cs.exceptions.ContradictionError:
        return  # by rounding, a point mass is no longer at the time that it censored
    found = {word: v if v is None else v / unit ** SCORES[word][2] for word, v in found.items()}
    expect_same(found, expected, f"{message}, unit {unit:g}", rtol=1e-7, atol=1e-9)


def libraries(message, y, F, C, expected, only):
    """NumPy and torch."""
    like = torch.zeros(1, dtype=torch.float64)
    found = losses(y.like(like), F.like(like), C.like(like), only=only)
    found = {word: value if value is None else value.numpy() for word, value in found.items()}
    expect_same(found, expected, f"{message}, torch")


def horizons(message, y, F, C, expected, only):
    """Cut by hand it gives the same scores, and a smaller one inside a larger one is the smaller one."""
    only = [name for name in only if "ipcw" not in name]
    expected = {name: expected[name] for name in only}
    cut = (y.censor_at(END), F, C.censor_at(END))
    expect_same(losses(*cut, horizon=END, only=only), expected, f"{message}, cut")
    later = (y.censor_at(1.5 * END), F, C.censor_at(1.5 * END))
    expect_same(losses(*later, horizon=END, only=only), expected, f"{message}, nested")


WRAPPED = {
    "one component": lambda F: cs.Mixture([F], [1.0]),
    "two alike": lambda F: cs.Mixture([F, F], [0.3, 0.7]),
    "one group": lambda F: Grouped([F], np.zeros(N, dtype=int)),
}


def mixtures(message, y, F, C, expected, only, word):
    """A mixture of one component, or of two that are alike, is that component."""
    found = losses(y, WRAPPED[word](F), WRAPPED[word](C), only=only)
    expect_same(found, expected, f"{message}, {word}", rtol=1e-7, atol=1e-9)


def hold(name, only, roles, some):
    """All relations, of compositions with ``name``; or ``some`` of them, with some units and wrappings."""
    compared = 0
    chosen = list(cases(name, roles))
    for number, (message, y, F, C) in enumerate(chosen[NAMES.index(name) % 3 :: 3] if some else chosen):
        expected = losses(y, F, C, only=only)
        compared += sum(value is not None for value in expected.values())
        order_and_parts(message, y, F, C, expected, only)
        horizons(message, y, F, C, expected, only)
        for word in [list(WRAPPED)[number % 3]] if some else WRAPPED:
            mixtures(message, y, F, C, expected, only, word)
        if "scipy" not in name.lower():
            libraries(message, y, F, C, expected, only)
            for unit in [UNITS[number % 3]] if some else UNITS:
                units(message, y, F, C, expected, only, unit)
    assert compared > (3 if some else 10)


@pytest.mark.parametrize("name", NAMES)
def test_relations(name):
    hold(name, ("crps", "brier, ipcw"), roles=1, some=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_relations(name):
    hold(name, tuple(SCORES), roles=2, some=False)


def test_a_weight_of_two_is_a_subject_twice():
    """In the mean loss, in a comparison and in the estimators that take weights."""
    rng = np.random.default_rng(3)
    n = 60
    x = rng.normal(size=(n, 1))
    T, c = rng.weibull(1.3, n) * np.exp(x[:, 0]), rng.uniform(0.2, 3.0, n)
    y, twice = cs.RightCensored(np.minimum(T, c), c >= T), rng.integers(1, 4, n)
    rows = np.repeat(np.arange(n), twice)
    F, C = cs.Weibull(1.3, np.exp(x[:, 0])), cs.Uniform(0.2, 3.0)
    loss = cs.crps(y, F, C, horizon=2.0)
    mean = cs.mean_loss(loss, sample_weight=twice).mean
    np.testing.assert_allclose(mean, cs.mean_loss(loss[rows], groups=rows).mean, rtol=1e-12)
    options = {"scores": ["crps", "brier_score"], "horizon": 2.0, "reference": None}
    weighted = cs.compare({"a": F}, y, C, sample_weight=twice, **options).frame()
    repeated = cs.compare({"a": F[rows]}, y[rows], C, groups=rows, **options).frame()
    np.testing.assert_allclose(weighted["mean"], repeated["mean"], rtol=1e-10)
    for estimator in (cs.KaplanMeier(), cs.WeibullRegression(), cs.CoxRegression(ties="breslow")):
        once = estimator.fit(x, y, sample_weight=twice).predict_distribution(x[:5]).sf([[0.5, 1.0, 2.0]])
        again = estimator.fit(x[rows], y[rows]).predict_distribution(x[:5]).sf([[0.5, 1.0, 2.0]])
        np.testing.assert_allclose(once, again, rtol=1e-6)
