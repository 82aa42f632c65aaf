"""Relations between scores of several event times: what must not depend on how the data are written down.

Joint forecasts of every kind, with margins of every kind, under one censoring time for all events and under
one for each. Random numbers follow the ids of subjects, so that the relations hold for each loss and not on
average.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from tests.contracts.distributions import UNIVARIATE
from tests.distributions.compositions import THETA, WEIGHTS, N, compositions, leaf
from tests.metamorphic.losses import rows_of, same_losses
from tests.metamorphic.units import in_unit

import censcore as cs
from censcore.distributions import Grouped
from censcore.distributions.joint_events import first_is
from censcore.exceptions import NoDensityError, PositivityError

TIMES, END = [0.3, 0.6], 0.8
UNITS = (1e-18, 60.0, 1e18)
ORDER = np.array([2, 0, 3, 1])
IDS = np.array([11, 12, 13, 14])
GAMMA = cs.Gamma([0.8, 1.2, 2.0, 3.0], [1.0, 2.0, 1.0, 1.5])
EDGES, CELLS = [0.0, 0.4, 1.0, 2.5], np.random.default_rng(5).dirichlet(np.ones(16), N).reshape(N, 4, 4)
SAMPLES = np.random.default_rng(6).weibull(1.3, (N, 12, 2))

energy = partial(cs.energy_score, draws=4, members=16)
joint_brier = partial(cs.joint_brier_score, members=16)
#: Scores, whether random numbers follow ids, the arguments that are times, and the power of the unit.
SCORES = {
    "log": (cs.log_score, False, {}, None),
    "energy": (energy, True, {}, 1),
    "energy, lagged": (partial(energy, pairs="lagged", fair=True), True, {}, 1),
    "brier, either": (joint_brier, True, {"times": TIMES}, 0),
    "brier, all, ipcw": (partial(joint_brier, event="all", scale="ipcw"), True, {"times": TIMES}, 0),
    "brier, first": (partial(joint_brier, event=first_is(0)), True, {"times": TIMES}, 0),
}
SHORT = ("log", "energy", "brier, all, ipcw")


def whole(name):
    """The distribution ``name`` of four subjects."""
    return leaf(UNIVARIATE[name]()).whole()


def margins(name):
    """A margin, and the same inside other distributions."""
    made = {"alone": whole(name)}
    made |= {kind: tree.whole() for kind, tree in compositions(UNIVARIATE[name]()).items()}
    return {kind: F for kind, F in made.items() if F.k == 1}


def forecasts(name):
    """Joint distributions that have the distribution ``name`` as one of their margins."""
    for kind, margin in margins(name).items():
        yield f"Independent of {kind}", cs.Independent([margin, GAMMA])
        yield f"Clayton of {kind}", cs.Copula("clayton", [GAMMA, margin], THETA)
        yield f"Gumbel of {kind}", cs.Copula("gumbel", [margin, GAMMA], 1 + THETA)


FREE = {
    "JointGrid": lambda: cs.JointGrid(EDGES, CELLS, tail=[0.5, 0.2]),
    "JointGrid, one for all": lambda: cs.JointGrid(EDGES, CELLS[:1], tail=0.5),
    "JointGrid, cured": lambda: cs.JointGrid(EDGES, CELLS, tail="infinity"),
    "JointGrid, censored": lambda: cs.JointGrid(EDGES, CELLS, tail=0.5).censor_at([0.7, 1.0, np.inf, 2.0]),
    "JointGrid, given survival": lambda: cs.JointGrid(EDGES, CELLS, tail=0.5).given_survival(0.05),
    "Ensemble": lambda: cs.Ensemble(SAMPLES),
    # fair scores compare members, so that every subject needs two of positive weight
    "Ensemble, weighted": lambda: cs.Ensemble(SAMPLES[:, :2], weights=0.9 * WEIGHTS + 0.05),
    "Ensemble, one for all": lambda: cs.Ensemble(SAMPLES[:1]),
    "Ensemble, given survival": lambda: cs.Ensemble(SAMPLES + 0.1).given_survival(0.05),
    "Copula, given survival": lambda: cs.Copula("clayton", [GAMMA, GAMMA], THETA).given_survival(0.05),
}
CENSORING = {
    "shared": lambda: cs.Uniform(0.05, 2.5),
    "shared, per subject": lambda: cs.Weibull(1.5, [1.0, 2.0, 3.0, 1.5]),
    "each": lambda: cs.Independent([cs.Uniform(0.05, 2.5), cs.Exponential([0.5, 0.2, 0.7, 1.0])]),
    "each, grouped": lambda: cs.Independent(
        [cs.Exponential(0.4), Grouped([cs.Exponential(1.0), cs.Uniform(0.1, 3.0)], [1, 0, 0, 1])]
    ),
}


def outcome(C):
    T = np.random.default_rng(1).weibull(1.3, (N, 2)) + 0.06
    c = np.broadcast_to(C.sample(1, 2)[:, 0], (N,)) if C.k == 1 else np.asarray(C.sample(1, 2))[:, 0, :]
    c = np.broadcast_to(c[:, None] if c.ndim == 1 else c, (N, 2))
    return cs.RightCensored(np.minimum(T, c), c >= T)


def losses(y, F, C, ids=IDS, unit=1.0, only=SCORES):
    """Losses by score, None where a forecast has no density or the censoring distribution no support."""
    found = {}
    for name in only:
        score, random, times, _ = SCORES[name]
        arguments = {word: [t * unit for t in value] for word, value in times.items()}
        if random:
            arguments["ids"] = ids
        try:
            found[name] = score(y, F, C, horizon=END * unit, **arguments)
        except (PositivityError, NoDensityError):
            found[name] = None
    return found


expect_same = partial(same_losses, rtol=1e-8, atol=1e-10)


def order_parts_and_copies(message, y, F, C, expected):
    """In another order, in a part of the sample, and with subjects that are there twice."""
    known = {name: value for name, value in expected.items() if value is not None}
    for word, rows in {"order": ORDER, "part": slice(0, 2), "twice": np.array([0, 1, 1, 3, 3, 2])}.items():
        found = losses(y[rows], F.take(rows), C.take(rows), IDS[rows], only=known)
        expect_same(found, rows_of(known, rows), f"{message}, {word}")


def units(message, y, F, C, expected, only, unit):
    """Times in another unit; a density is per unit of time, so that the log score moves by its logarithm."""
    scaled = cs.RightCensored(y.time * unit, y.event)
    found = losses(scaled, in_unit(F, unit), in_unit(C, unit), unit=unit, only=only)
    for name, value in found.items():
        if value is None:
            continue
        power = SCORES[name][3]
        cut = y.censor_at(END)
        found[name] = value - cut.event.sum(axis=1) * np.log(unit) if power is None else value / unit**power
    expect_same(found, expected, f"{message}, unit {unit:g}", rtol=1e-6, atol=1e-8)


def libraries(message, y, F, C, expected, only):
    """NumPy and torch."""
    like = torch.zeros(1, dtype=torch.float64)
    found = losses(y.like(like), F.like(like), C.like(like), only=only)
    expect_same({n: v if v is None else v.numpy() for n, v in found.items()}, expected, f"{message}, torch")


def hold(message, F, C, only, units_of=UNITS):
    y = outcome(C)
    expected = losses(y, F, C, only=only)
    order_parts_and_copies(message, y, F, C, expected)
    libraries(message, y, F, C, expected, only)
    for unit in units_of:
        units(message, y, F, C, expected, only, unit)
    return sum(value is not None for value in expected.values())


@pytest.mark.parametrize("name", FREE)
def test_grids_and_ensembles(name):
    number = list(FREE).index(name)
    for censoring in list(CENSORING)[number % 2 :: 2]:
        compared = hold(
            f"{name}, {censoring}", FREE[name](), CENSORING[censoring](), SHORT, [UNITS[number % 3]]
        )
        assert compared >= 2


#: A few margins of different kinds: smooth, with atoms, with mass at infinity, stepwise, shared, derived.
SOME = ("Weibull", "PointMass, some infinite", "Mixture, cured", "Step", "LogNormal", "Grouped")


@pytest.mark.parametrize("name", SOME)
def test_margins(name):
    compared = 0
    for number, (kind, F) in enumerate(list(forecasts(name))[SOME.index(name) % 4 :: 11]):
        censoring = list(CENSORING)[(number + SOME.index(name)) % 4]
        compared += hold(f"{kind}, {censoring}", F, CENSORING[censoring](), SHORT, [UNITS[number % 3]])
    assert compared > 3


NAMES = [n for n in UNIVARIATE if not any(w in n for w in ("float32", "CompactStep", "scipy", "Scipy"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FREE, *NAMES])
def test_all_relations(name):
    made = [(name, FREE[name]())] if name in FREE else list(forecasts(name))
    compared = sum(
        hold(f"{kind}, {word}", F, C(), tuple(SCORES)) for kind, F in made for word, C in CENSORING.items()
    )
    assert compared > 3


# ---- mixtures, members and weights -------------------------------------------------------------------

WRAPPED = {
    "one component": lambda F: cs.Mixture([F], [1.0]),
    "two alike": lambda F: cs.Mixture([F, F], [0.3, 0.7]),
    "one group": lambda F: Grouped([F], np.zeros(N, dtype=int)),
}


@pytest.mark.parametrize("word", WRAPPED)
def test_margins_that_are_mixtures_of_one_component(word):
    """Of scores without draws: a mixture draws its component first."""
    C = CENSORING["each"]()
    y, wrap = outcome(C), WRAPPED[word]
    for family, theta in (("clayton", THETA), ("gumbel", 1 + THETA)):
        plain = cs.Copula(family, [GAMMA, cs.Weibull(1.3, [1.0, 2.0, 1.5, 0.8])], theta)
        wrapped = cs.Copula(family, [wrap(GAMMA), wrap(plain.marginal(1))], theta)
        only = ("log", "brier, either")
        expect_same(losses(y, wrapped, C, only=only), losses(y, plain, C, only=only), f"{family}, {word}")


def test_members_that_are_there_twice_change_nothing():
    """An ensemble is the distribution of its members: copies, their order and equal weights are words."""
    C = CENSORING["shared"]()
    y = outcome(C)
    only = ("energy", "brier, either", "brier, all, ipcw", "brier, first")
    expected = losses(y, cs.Ensemble(SAMPLES), C, only=only)
    others = {
        "twice": cs.Ensemble(np.concatenate([SAMPLES, SAMPLES], axis=1)),
        "reversed": cs.Ensemble(SAMPLES[:, ::-1]),
        "weighted": cs.Ensemble(SAMPLES, weights=np.full(12, 1 / 12)),
    }
    for word, F in others.items():
        expect_same(losses(y, F, C, only=only), expected, word)


def test_an_independent_joint_is_the_product_of_its_margins():
    """The joint log score is the sum of those of the events; so it is of copulas at independence."""
    C = CENSORING["each"]()
    y = outcome(C)
    parts = [GAMMA, cs.Weibull(1.3, [1.0, 2.0, 1.5, 0.8])]
    expected = sum(cs.log_score(y.marginal(j), parts[j], C.marginal(j), horizon=END) for j in range(2))
    for F in (cs.Independent(parts), cs.Copula("clayton", parts, 0.0), cs.Copula("gumbel", parts, 1.0)):
        np.testing.assert_allclose(cs.log_score(y, F, C, horizon=END), expected, rtol=1e-10)


def test_a_weight_of_two_is_a_subject_twice():
    rng = np.random.default_rng(3)
    n = 40
    T, c = rng.weibull(1.3, (n, 2)), rng.uniform(0.2, 3.0, n)[:, None]
    y, twice = cs.RightCensored(np.minimum(T, c), c >= T), rng.integers(1, 4, n)
    rows = np.repeat(np.arange(n), twice)
    models = {"a": cs.Ensemble(rng.weibull(1.3, (n, 8, 2)))}
    options = {"scores": ["energy_score", "brier_score"], "horizon": 2.0, "reference": None}
    C = cs.Uniform(0.2, 3.0)
    weighted = cs.compare(models, y, C, sample_weight=twice, **options).frame()
    repeated = cs.compare({"a": models["a"][rows]}, y[rows], C, groups=rows, **options).frame()
    exact = ~weighted["score"].str.startswith("energy")  # draws of C differ between copies
    assert 0 < exact.sum() < len(weighted)
    np.testing.assert_allclose(weighted["mean"][exact], repeated["mean"][exact], rtol=1e-8)
    np.testing.assert_allclose(weighted["mean"], repeated["mean"], rtol=1e-3)
