"""Risk scores with Breslow's baseline: the formula, other libraries, and scores of any size."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.distributions import ProportionalHazards
from censcore.exceptions import InvalidInputError


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    eta = rng.normal(size=400)
    T, C = rng.exponential(np.exp(-eta)), rng.uniform(0.0, 3.0, 400)
    return eta, cs.RightCensored(np.minimum(T, C).round(2) + 0.01, T <= C)  # ties


def breslow_by_definition(eta, y, weight, t):
    """H_0(t), subject by subject."""
    total = 0.0
    for u in np.unique(y.time[y.event]):
        if u <= t:
            deaths = weight[(y.time == u) & y.event].sum()
            total += deaths / (weight * np.exp(eta))[y.time >= u].sum()
    return total


@pytest.mark.parametrize("weighted", [False, True])
def test_the_baseline_is_breslows(data, weighted):
    eta, y = data
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 400) if weighted else np.ones(400)
    F = cs.from_risk(eta, y, [-1.0, 0.0, 2.0], sample_weight=weight if weighted else None)
    for t in (0.05, 0.4, 1.7):
        expected = np.exp(-np.exp([-1.0, 0.0, 2.0]) * breslow_by_definition(eta, y, weight, t))
        np.testing.assert_allclose(F.sf(t), expected, rtol=1e-12)


def test_cox_regression_of_this_library_is_found_again(data):
    eta, y = data
    model = cs.CoxRegression(ties="breslow").fit(eta[:, None], y)
    score = eta * model.coef_[0]
    t = np.array([[0.1, 0.6, 2.0]])
    expected = model.predict_distribution(eta[:9, None]).sf(t)
    np.testing.assert_allclose(cs.from_risk(score, y, score[:9]).sf(t), expected, rtol=1e-10)
    estimated = cs.from_risk(5 + 3 * eta, y, 5 + 3 * eta[:9], slope="estimate")
    np.testing.assert_allclose(estimated.sf(t), expected, rtol=1e-6)
    ratios = cs.from_risk(np.exp(score), y, np.exp(score[:9]), scale="hazard")
    np.testing.assert_allclose(ratios.sf(t), expected, rtol=1e-10)


@pytest.mark.parametrize("shift", [-900.0, 900.0])
def test_scores_of_any_location_give_the_same_forecast(data, shift):
    eta, y = data
    plain, moved = cs.from_risk(eta, y, eta[:5]), cs.from_risk(eta + shift, y, eta[:5] + shift)
    assert isinstance(moved, ProportionalHazards)
    np.testing.assert_allclose(moved.sf([[0.3, 1.0]]), plain.sf([[0.3, 1.0]]), rtol=1e-9)


def test_scores_in_torch_and_columns(data):
    torch = pytest.importorskip("torch")
    eta, y = data
    column = torch.as_tensor(eta, dtype=torch.float32)[:, None].requires_grad_()
    F = cs.from_risk(column, y, column[:5])
    assert isinstance(F.sf(1.0), torch.Tensor)
    np.testing.assert_allclose(F.sf(1.0), cs.from_risk(eta, y, eta[:5]).sf(1.0), rtol=1e-5)


def test_mistakes(data):
    eta, y = data
    with pytest.raises(InvalidInputError, match="got 399 scores, expected 400"):
        cs.from_risk(eta[1:], y, eta)
    with pytest.raises(InvalidInputError, match="one score per subject"):
        cs.from_risk(np.stack([eta, eta], 1), y, eta)
    with pytest.raises(InvalidInputError, match="'log' or 'hazard'"):
        cs.from_risk(eta, y, eta, scale="linear")
    with pytest.raises(InvalidInputError, match="train_risk"):
        cs.from_risk(eta, y, eta, scale="hazard")  # negative hazard ratios
    with pytest.raises(InvalidInputError, match="'estimate'"):
        cs.from_risk(eta, y, eta, slope="fit")
    with pytest.raises(InvalidInputError, match=r"slope \* train_risk must be finite"):
        cs.from_risk(eta * 1e305, y, eta, slope=-3075.0)
    with pytest.raises(InvalidInputError, match="no event"):
        cs.from_risk(eta, cs.RightCensored(y.time, np.zeros(400)), eta)
    with pytest.raises(InvalidInputError, match="from their median"):
        cs.from_risk(eta, y, [0.0, 0.0, 2000.0])
