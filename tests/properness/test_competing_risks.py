"""The truth wins for every score of competing risks; scores that censor competing events are caught.

So are weights without left limits, on tied data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from tests.properness.margins import margins

import censcore as cs

N = 2000
TIMES = np.array([0.4, 0.8, 1.2])
LEVELS = np.array([0.05, 0.15, 0.25])
H = 1.4

OF_ONE_CAUSE: dict[str, Callable] = {
    "log": lambda y, F, C: cs.log_score(y, F, C, horizon=H),
    "crps": lambda y, F, C: cs.crps(y, F, C, horizon=H),
    "brier": lambda y, F, C: cs.brier_score(y, F, C, TIMES).mean(axis=1),
    "brier, ipcw": lambda y, F, C: cs.brier_score(y, F, C, TIMES, scale="ipcw").mean(axis=1),
    "integrated brier, ipcw": lambda y, F, C: cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=H),
    "binomial log": lambda y, F, C: cs.binomial_log_score(y, F, C, TIMES).mean(axis=1),
    "pinball": lambda y, F, C: cs.pinball_score(y, F, C, LEVELS, horizon=H).mean(axis=1),
}
OVER_CAUSES = {name: score for name, score in OF_ONE_CAUSE.items() if name != "pinball"}


def incidences(x: np.ndarray, scales=(1.5, 1.3), effect: float = 0.6) -> cs.CumulativeIncidence:
    """Weibull hazards, as cumulative incidences that are linear between a few times."""
    value, of = np.unique(x, return_inverse=True)  # few values: their curves serve all subjects
    hazards = [cs.Weibull(1.5, scales[0] * np.exp(-effect * value)), cs.Weibull(0.9, scales[1])]
    grid = np.array([0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 1.1, 1.5, 2.0])
    curves = cs.CauseSpecificHazards(hazards).cif(grid)
    return cs.CumulativeIncidence(grid, curves[of], interpolation="linear")


@cache
def scenario(kind: str, n: int = N):
    rng = np.random.default_rng(11)
    x = rng.choice([-0.7, 0.0, 0.7], n)
    truth = incidences(x)
    time, cause = (part[:, 0] for part in truth.sample(1, seed=rng))
    c, C = {
        "known": lambda: (c := rng.uniform(0.5, 2.0, n), cs.PointMass(c)),
        "uniform": lambda: (rng.uniform(0.0, 1.8, n), cs.Uniform(0.0, 1.8)),
        "Kaplan-Meier": lambda: (np.ceil(20 * rng.exponential(1.2, n)) / 20, None),
    }[kind]()
    y = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0))
    if C is None:
        C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    alternatives = {
        "too early": incidences(x, scales=(1.05, 1.3)),
        "too late": incidences(x, scales=(2.3, 1.3)),
        "other cause too early": incidences(x, scales=(1.5, 0.6)),
        "other cause too late": incidences(x, scales=(1.5, 5.0)),
        "blind to x": incidences(0 * x),
    }
    return y, C, truth, alternatives


@pytest.fixture(scope="module", params=["known", "uniform", "Kaplan-Meier"])
def case(request):
    return scenario(request.param)


@pytest.mark.parametrize("score", OF_ONE_CAUSE)
def test_truth_wins_for_one_cause(case, score):
    if "ipcw" in score and isinstance(case[1], cs.PointMass):
        return  # P(C > t) is zero for those who are known to leave before t
    y, C, truth, alternatives = case
    won = margins(
        OF_ONE_CAUSE[score],
        y.cause(1),
        C,
        truth.cause(1),
        {name: F.cause(1) for name, F in alternatives.items()},
    )
    assert min(won.values()) > 2.5, won


@pytest.mark.parametrize("score", OVER_CAUSES)
def test_truth_wins_over_all_causes(case, score):
    if "ipcw" in score and isinstance(case[1], cs.PointMass):
        return
    y, C, truth, alternatives = case
    won = margins(OVER_CAUSES[score], y, C, truth, alternatives)
    assert min(won.values()) > 3, won


def test_energy_score_over_one_cause_finds_the_truth():
    y, C, truth, alternatives = scenario("uniform", 400)

    def score(y, F, C):
        return cs.energy_score(y, F, C, beta=1.5, horizon=H, draws=4, members=64)

    won = margins(score, y.cause(1), C, truth.cause(1), {"late": alternatives["too late"].cause(1)})
    assert won["late"] > 1.5, won


# ---- what is caught ----------------------------------------------------------------------------------


@pytest.mark.parametrize("score", OF_ONE_CAUSE)
def test_to_censor_competing_events_is_caught(score):
    """The naive score prefers the distribution in which nobody dies of another cause, far from the truth."""
    y, C, truth, _ = scenario("uniform", N)
    naive = cs.RightCensored(y.time, y.causes == 1)
    C_naive = cs.Censoring(cs.KaplanMeier()).fit(None, naive).predict_distribution()
    x = np.random.default_rng(11).choice([-0.7, 0.0, 0.7], N)
    alone = {"without other causes": cs.Weibull(1.5, 1.5 * np.exp(-0.6 * x))}
    assert margins(OF_ONE_CAUSE[score], naive, C_naive, truth.cause(1), alone)["without other causes"] < -3
    assert margins(OF_ONE_CAUSE[score], y.cause(1), C, truth.cause(1), alone)["without other causes"] > 3


def tied(n: int = 20_000):
    """Whole times: T in 1, ..., 4 or later, of two causes; C in 1, ..., 5."""
    rng = np.random.default_rng(5)
    truth = cs.CumulativeIncidence([1.0, 2.0, 3.0, 4.0], [[[0.1, 0.2, 0.28, 0.34], [0.15, 0.26, 0.35, 0.4]]])
    time, cause = (part[0] for part in truth.sample(n, seed=rng))
    c = rng.integers(1, 6, n).astype(float)
    y = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0))
    return y, cs.Step(np.arange(1.0, 6.0), sf=np.arange(4, -1, -1) / 5), truth


def without_left_limits(y, F, C):
    """The Brier score at 3 with weights 1/G(y) in place of 1/G(y-)."""
    G, F3 = np.where(y.censored, 1.0, C.sf(y.time)), F.cdf(3.0)
    alive = y.time > 3.0
    square = np.where(alive | y.never, F3**2, (1 - F3) ** 2)
    return np.where(alive, 1 / C.sf(3.0), ~y.censored / G) * square


def test_ties_need_left_limits():
    y, C, truth = tied()
    cif = truth.cif([1.0, 2.0, 3.0, 4.0])
    more = {"more events": cs.CumulativeIncidence([1.0, 2.0, 3.0, 4.0], 1.15 * cif).cause(1)}
    fewer = {"fewer events": cs.CumulativeIncidence([1.0, 2.0, 3.0, 4.0], 0.85 * cif).cause(1)}
    score = lambda y, F, C: cs.brier_score(y, F, C, 3.0, scale="ipcw")  # noqa: E731
    assert margins(score, y.cause(1), C, truth.cause(1), more)["more events"] > 3
    assert margins(score, y.cause(1), C, truth.cause(1), fewer)["fewer events"] > 3
    assert margins(without_left_limits, y.cause(1), C, truth.cause(1), more)["more events"] < -3


@pytest.mark.parametrize("score", ["brier", "crps", "pinball", "binomial log", "integrated brier, ipcw"])
def test_truth_wins_on_tied_data(score):
    y, C, truth = tied()
    grid = [1.0, 2.0, 3.0, 4.0]
    scores = {
        "brier": lambda y, F, C: cs.brier_score(y, F, C, [1.0, 2.0, 3.0]).mean(axis=1),
        "crps": lambda y, F, C: cs.crps(y, F, C, horizon=4.5),
        "pinball": lambda y, F, C: cs.pinball_score(y, F, C, [0.12, 0.25], horizon=4.5).mean(axis=1),
        "binomial log": lambda y, F, C: cs.binomial_log_score(y, F, C, [1.0, 2.0, 3.0]).mean(axis=1),
        "integrated brier, ipcw": lambda y, F, C: cs.integrated_brier_score(
            y, F, C, scale="ipcw", horizon=3.5
        ),
    }
    cif = truth.cif(grid)
    wrong = {
        f"times {factor}": cs.CumulativeIncidence(grid, cif * np.array([factor, 1.0])[None, :, None]).cause(1)
        for factor in (0.6, 1.5)
    }
    won = margins(scores[score], y.cause(1), C, truth.cause(1), wrong)
    assert min(won.values()) > 3, won
