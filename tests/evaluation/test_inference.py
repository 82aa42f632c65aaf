from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.inference import Estimate, adjust, row_influence
from censcore.exceptions import InvalidInputError


def independent(z: list[float]) -> list[Estimate]:
    return [Estimate(np.array([v]), np.eye(len(z))[:, [i]]) for i, v in enumerate(z)]


def test_row_influence_is_mean_loss():
    rng = np.random.default_rng(0)
    losses, weight, groups = rng.normal(size=(50, 2)), rng.random(50), rng.integers(0, 9, 50)
    found = row_influence(losses, weight / weight.sum(), groups)
    expected = cs.mean_loss(losses, weight, groups)
    np.testing.assert_allclose(found.value, expected.mean)
    np.testing.assert_allclose(found.standard_error, expected.standard_error)


def test_infinite_losses_give_an_infinite_mean_and_no_error():
    found = row_influence(np.array([[1.0], [np.inf], [2.0]]), np.full(3, 1 / 3))
    assert np.isinf(found.value[0])
    assert np.isnan(found.standard_error[0])


def test_rows_without_weight_do_not_count():
    losses = np.array([[1.0], [np.inf], [2.0], [4.0]])
    found = row_influence(losses, np.array([1, 0, 1, 1]) / 3)
    expected = cs.mean_loss(losses[[0, 2, 3]])
    assert found.value[0] == pytest.approx(expected.mean[0])
    assert found.standard_error[0] == pytest.approx(expected.standard_error[0])


def test_max_t_of_independent_statistics_is_sidak():
    z = [2.0, 1.0, 0.3]
    p = adjust(independent(z), "none", 0.95).p_value
    found = adjust(independent(z), "max-t", 0.95)
    np.testing.assert_allclose(found.p_value, 1 - (1 - p) ** 3, atol=0.015)
    assert found.critical == pytest.approx(2.388, abs=0.05)


def test_max_t_of_equal_statistics_needs_no_adjustment():
    same = [Estimate(np.array([2.0]), np.array([[1.0]])) for _ in range(4)]
    found = adjust(same, "max-t", 0.95)
    np.testing.assert_allclose(found.p_value, 0.0455, atol=0.006)
    assert found.critical == pytest.approx(1.96, abs=0.05)


def test_holm_by_hand():
    z = [3.0, 2.5, 0.1]
    p = adjust(independent(z), "none", 0.95).p_value
    expected = [3 * p[0], 2 * p[1], p[2]]
    np.testing.assert_allclose(adjust(independent(z), "holm", 0.95).p_value, expected)


def test_adjusted_p_values_are_never_below_single_ones_and_resolve_small_ones():
    z = [12.0, 4.0, 0.0]
    single = adjust(independent(z), "none", 0.95).p_value
    for method in ("holm", "max-t"):
        found = adjust(independent(z), method, 0.95).p_value
        assert (found >= single * (1 - 1e-12)).all()
        assert found[0] < 1e-20


def test_unknown_statistics_stay_unknown():
    odd = [Estimate(np.array([np.nan]), np.array([[1.0], [0.0]])), *independent([2.0, 1.0])]
    for method in ("holm", "max-t", "none"):
        found = adjust(odd, method, 0.95).p_value
        assert np.isnan(found[0])
        assert np.isfinite(found[1:]).all()


def test_unknown_adjustment_is_refused():
    with pytest.raises(InvalidInputError, match="max-t"):
        adjust(independent([1.0]), "bonferroni", 0.95)
