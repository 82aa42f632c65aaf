from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation import concordance, dynamic_auc
from censcore.exceptions import InvalidInputError, PositivityError


def by_pairs(y: cs.RightCensored, risk: np.ndarray, weight: np.ndarray) -> float:
    """The definition: all pairs, one by one."""
    won = pairs = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            later = y.time[j] > y.time[i] or (y.time[j] == y.time[i] and not y.event[j])
            if i != j and y.event[i] and later:
                pairs += weight[i]
                won += weight[i] * ((risk[j] < risk[i]) + 0.5 * (risk[j] == risk[i]))
    return won / pairs


def sample(seed: int, tied: bool) -> tuple[cs.RightCensored, np.ndarray]:
    rng = np.random.default_rng(seed)
    T, C, noise = rng.exponential(1.0, 80), rng.exponential(1.5, 80), rng.normal(size=80)
    time, risk = np.minimum(T, C), noise - T
    if tied:
        time, risk = np.ceil(4 * time) / 4, np.round(risk)
    return cs.RightCensored(time, T <= C), risk


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_concordance_is_its_definition(seed, tied):
    y, risk = sample(seed, tied)
    assert concordance(y, risk) == pytest.approx(by_pairs(y, risk, np.ones(80)), rel=1e-12)
    law = cs.Exponential(0.4)
    weight = 1 / law.sf_left(y.time) ** 2
    assert concordance(y, risk, law) == pytest.approx(by_pairs(y, risk, weight), rel=1e-12)


def test_agreement_with_scikit_survival_on_untied_data():
    metrics, util = pytest.importorskip("sksurv.metrics"), pytest.importorskip("sksurv.util")
    y, risk = sample(1, tied=False)
    theirs = util.Surv.from_arrays(y.event, y.time)
    law = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    assert concordance(y, risk) == pytest.approx(metrics.concordance_index_censored(y.event, y.time, risk)[0])
    uno = metrics.concordance_index_ipcw(theirs, theirs, risk, tau=1.0)[0]
    assert concordance(y, risk, law, horizon=1.0) == pytest.approx(uno, rel=1e-10)
    times = np.array([0.3, 0.6, 0.9])
    auc = metrics.cumulative_dynamic_auc(theirs, theirs, risk, times)[0]
    np.testing.assert_allclose(dynamic_auc(y, risk, law, times), auc, rtol=1e-10)


def test_one_risk_for_all_is_a_half():
    y, _ = sample(0, tied=True)
    assert concordance(y, np.zeros(80)) == 0.5
    np.testing.assert_allclose(dynamic_auc(y, np.zeros(80), cs.Exponential(0.4), [0.5]), [0.5])


def test_nothing_to_compare_is_nan():
    y = cs.RightCensored([1.0, 2.0], [0, 0])
    assert np.isnan(concordance(y, [0.1, 0.2]))
    assert np.isnan(dynamic_auc(y, [0.1, 0.2], cs.Exponential(1.0), [1.5])).all()


def test_refusals():
    y, risk = sample(0, tied=False)
    with pytest.raises(InvalidInputError, match="one number per row"):
        concordance(y, risk[:3])
    with pytest.raises(PositivityError, match="smaller horizon"):
        concordance(y, risk, cs.Uniform(0.0, 0.3))
    with pytest.raises(InvalidInputError, match="below the horizon"):
        dynamic_auc(y, risk, cs.Exponential(1.0), [2.0], horizon=1.0)
