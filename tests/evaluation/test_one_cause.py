"""One cause judged alone: the numbers of the comparison of all causes."""

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import CenscoreError, UnsupportedOutcomeError

KM = cs.Censoring(cs.KaplanMeier())
NAMES = ["relapse", "death"]
SCORES = ["integrated_brier_score:ipcw", "crps", "brier_score", "brier_score:ipcw", "log_score"]


@pytest.fixture(scope="module")
def data():
    truth = cs.CauseSpecificHazards([cs.Exponential(0.4), cs.Exponential(0.2)], names=NAMES)
    swapped = cs.CauseSpecificHazards([cs.Exponential(0.2), cs.Exponential(0.4)], names=NAMES)
    time, cause = (draws[0] for draws in truth.sample(300, seed=1))
    c = np.random.default_rng(0).uniform(0, 6, 300)
    y = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0), names=NAMES)
    return {"truth": truth, "swapped": swapped}, y


@pytest.mark.parametrize("number", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_numbers_are_those_of_all_causes(data, number):
    forecasts, y = data
    options = {"times": [0.5, 1.5], "horizon": 3.0}
    asked = [*SCORES[:-1], f"log_score[{NAMES[number - 1]}]"]
    whole = cs.compare(forecasts, y, KM, train=(None, y), scores=asked, **options)
    alone = cs.compare(
        {name: F.cause(number) for name, F in forecasts.items()},
        y.cause(number),
        KM,
        train=(None, y.cause(number)),
        scores=SCORES,
        **options,
    )
    assert alone.reference == "aalen-johansen"
    a, b = whole.of(NAMES[number - 1]).frame(), alone.frame()
    assert a["score"].tolist() == b["score"].tolist()
    for column in ("mean", "standard_error", "low", "high", "skill"):
        np.testing.assert_allclose(a[column], b[column], rtol=1e-10)


def test_sums_over_causes_may_exceed_one(data):
    forecasts, y = data
    curves = np.array([0.5, 0.7, 0.8])
    sure = cs.Step([0.5, 1.0, 2.0], sf=1 - curves)  # of each cause: more than one in all
    two = {"sure": sure, "truth": forecasts["truth"].cause(1)}
    found = cs.compare(two, y.cause(1), KM, scores="crps", reference=None)
    assert found.verdict.best == "truth"
    assert (found.net_benefit()["model"] == "sure").any()


def test_what_one_cause_does_not_know_is_an_error_by_name(data):
    forecasts, y = data
    late = cs.CompetingRisks(y.time + 0.5, y.causes, entry=np.full(len(y), 0.2), names=NAMES)
    with pytest.raises(UnsupportedOutcomeError, match="depends on all causes"):
        cs.compare({"truth": forecasts["truth"].cause(1)}, late.cause(1), KM)
    with pytest.raises(CenscoreError, match=r"y\.cause\(j\)"):
        cs.compare({"truth": forecasts["truth"].cause(1)}, y.cause(1), KM, train=(None, y))
