from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import censcore as cs
from censcore.estimators.subjects import NO_PAIRS
from censcore.evaluation.inference.adjustment import adjust
from censcore.evaluation.inference.estimates import (
    SMALLEST_P,
    Estimate,
    effective_number,
    hall,
    hall_inverse,
    skill_interval,
)
from censcore.evaluation.inference.pooling import contributions, estimate_by_unit, weighted_sums
from censcore.evaluation.inference.units import Units, sums_within
from censcore.exceptions import InvalidInputError


def of_mean(losses: np.ndarray, weight: np.ndarray, groups: np.ndarray | None = None) -> Estimate:
    """A mean whose weights sum to one, by the contributions of units."""
    units, used = Units.of(len(losses), 0, groups, None, NO_PAIRS), weight > 0
    mean = weighted_sums(losses, weight[:, None])[0]
    psi = contributions(losses, weight[:, None], np.ones(1), mean)[:, 0]
    psi = sums_within(psi, units.scored, units.count)
    return estimate_by_unit(mean, psi, units, used, used, fitted=False)


def independent(z: list[float]) -> list[Estimate]:
    """Statistics with nearly normal, symmetric influences that do not overlap."""
    found = []
    for i, v in enumerate(z):
        influence = np.zeros((400 * len(z), 1))
        influence[400 * i : 400 * (i + 1), 0] = np.tile([1, -1], 200) / 20
        found.append(Estimate(np.array([v]), influence))
    return found


def test_estimates_of_different_units_are_aligned_by_their_numbers():
    a = Estimate(np.array([1.0]), np.array([[0.1], [0.2]]), rows={"units": np.array([0, 2])})
    b = Estimate(np.array([2.0]), np.array([[0.3], [0.4]]), rows={"units": np.array([2, 5])})
    assert (a - b).influence.ravel() == pytest.approx([0.1, -0.1, -0.4])
    assert (a + b).influence.ravel() == pytest.approx([0.1, 0.5, 0.4])
    assert (a / b).influence.ravel() == pytest.approx([0.05, 0.1 - 0.075, -0.1])
    assert (a - b).rows["units"].tolist() == [0, 2, 5]


def test_the_estimate_of_a_mean_is_mean_loss():
    rng = np.random.default_rng(0)
    losses, weight, groups = rng.normal(size=(50, 2)), rng.random(50), rng.integers(0, 9, 50)
    found = of_mean(losses, weight / weight.sum(), groups)
    expected = cs.mean_loss(losses, weight, groups)
    np.testing.assert_allclose(found.value, expected.mean)
    np.testing.assert_allclose(found.standard_error, expected.standard_error)


def test_infinite_losses_give_an_infinite_mean_and_no_error():
    found = of_mean(np.array([[1.0], [np.inf], [2.0]]), np.full(3, 1 / 3))
    assert np.isinf(found.value[0])
    assert np.isnan(found.standard_error[0])


def test_rows_without_weight_do_not_count():
    losses = np.array([[1.0], [np.inf], [2.0], [4.0]])
    found = of_mean(losses, np.array([1, 0, 1, 1]) / 3)
    expected = cs.mean_loss(losses[[0, 2, 3]])
    assert found.value[0] == pytest.approx(expected.mean[0])
    assert found.standard_error[0] == pytest.approx(expected.standard_error[0])


def test_max_t_of_independent_statistics_is_sidak():
    z = [2.0, 1.0, 0.3]
    p = adjust(independent(z), "none", 0.95).p_value
    found = adjust(independent(z), "max-t", 0.95)
    np.testing.assert_allclose(found.p_value, 1 - (1 - p) ** 3, atol=0.015)
    assert found.confidence == pytest.approx(0.95 ** (1 / 3), abs=0.002)


def test_max_t_of_equal_statistics_needs_no_adjustment():
    same = independent([2.0]) * 4
    found = adjust(same, "max-t", 0.95)
    np.testing.assert_allclose(found.p_value, 0.0455, atol=0.006)
    assert found.confidence == pytest.approx(0.95, abs=0.005)


@pytest.mark.parametrize("k", [3, 12, 30])
def test_max_t_of_many_models_draws_their_means(k, monkeypatch):
    """From draws of k means as from the correlations of all pairs; equal and infinite models are left out."""
    rng = np.random.default_rng(k)
    losses = rng.gamma(1.0, size=(300, 1)) + 0.5 * rng.normal(size=(300, k)) * rng.random(k)
    losses[:, 1] = losses[:, 0]
    losses[7, 2] = np.inf
    means = [of_mean(losses[:, [j]], np.full(300, 1 / 300)) for j in range(k)]
    found = {}
    for many in (0, 10**9):
        monkeypatch.setattr("censcore.evaluation.inference.adjustment.MANY", many)
        pairs = Estimate.differences(means)
        assert pairs.influence.size == 0
        found[many] = adjust([pairs], "max-t", 0.95, seed=1)
    by_hand = means[0] - means[-1]
    np.testing.assert_allclose(pairs.p_value[k - 2], by_hand.p_value[0], rtol=1e-10)
    np.testing.assert_array_equal(np.isnan(found[0].p_value), np.isnan(pairs.p_value))
    assert np.isnan(pairs.p_value[0])  # equal
    assert np.isnan(pairs.p_value[1])  # infinite
    np.testing.assert_allclose(found[0].p_value, found[10**9].p_value, atol=0.02)  # of 20,000 draws each
    assert found[0].confidence == pytest.approx(found[10**9].confidence, abs=0.003 if k == 3 else 5e-4)


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
        assert SMALLEST_P <= found[0] < 1e-14


def test_unknown_statistics_stay_unknown():
    odd = [Estimate(np.array([np.nan]), np.ones((800, 1))), *independent([2.0, 1.0])]
    for method in ("holm", "max-t", "none"):
        found = adjust(odd, method, 0.95).p_value
        assert np.isnan(found[0])
        assert np.isfinite(found[1:]).all()


def test_unknown_adjustment_is_refused():
    with pytest.raises(InvalidInputError, match="max-t"):
        adjust(independent([1.0]), "bonferroni", 0.95)


# ---- small samples -----------------------------------------------------------------------------------


def mean_of(losses: np.ndarray) -> Estimate:
    return of_mean(losses[:, None], np.full(len(losses), 1 / len(losses)))


def test_many_symmetric_contributions_give_the_t_interval():
    losses = np.concatenate([np.arange(1.0, 11.0), -np.arange(1.0, 11.0)]) + 3
    low, high = mean_of(losses).interval(0.9)
    expected = stats.t.interval(0.9, 19, loc=3.0, scale=stats.sem(losses))
    np.testing.assert_allclose([low[0], high[0]], expected)
    assert mean_of(losses).p_value[0] == pytest.approx(stats.ttest_1samp(losses, 0.0).pvalue)


def test_hall_is_the_cubic_and_its_inverse():
    z = np.linspace(-5, 5, 41)
    for gamma in (-1.5, -0.2, 1e-9, 0.0, 0.3, 2.0):
        np.testing.assert_allclose(hall(z, gamma), z + gamma * (z**2 / 3 + 1 / 6) + gamma**2 * z**3 / 27)
        np.testing.assert_allclose(hall_inverse(hall(z, gamma), gamma), z, atol=1e-8)
        assert (np.diff(hall(z, gamma)) >= 0).all()


def test_degrees_of_freedom_count_contributions():
    one_large = np.array([0.0] * 40 + [1.0, -1.0, 1.0, -1.0])
    assert Estimate(np.zeros(1), one_large[:, None]).degrees_of_freedom[0] == pytest.approx(8)
    assert Estimate(np.zeros(1), np.ones((6, 1))).degrees_of_freedom[0] == 5
    assert Estimate(np.zeros(1), np.array([[1.0], [1e-9]])).degrees_of_freedom[0] == 1


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_p_values_and_intervals_agree(confidence):
    rng = np.random.default_rng(3)
    for _ in range(200):
        found = mean_of(rng.gamma(0.5, size=rng.integers(3, 30)) - rng.random())
        low, high = found.interval(confidence)
        assert (found.p_value[0] < 1 - confidence) == (low[0] > 0 or high[0] < 0)


def test_the_skill_excludes_zero_exactly_where_the_difference_does():
    rng = np.random.default_rng(4)
    told = []
    for _ in range(200):
        both = rng.gamma(1.0, size=(15, 1)) * rng.gamma(2.0, size=(15, 2)) * [rng.random() + 0.3, 1.0]
        mean, reference = mean_of(both[:, 0]), mean_of(both[:, 1])
        low, high = skill_interval(mean, reference, 0.9)
        assert low <= mean.skill(reference).value[0] <= high
        told.append(low > 0 or high < 0)
        assert told[-1] == ((mean - reference).p_value[0] < 0.1)
    assert 20 < sum(told) < 180


def test_the_skill_of_many_subjects_is_that_of_the_delta_method():
    losses = np.random.default_rng(5).gamma(2.0, size=(20_000, 2)) * [0.8, 1.0]
    mean, reference = mean_of(losses[:, 0]), mean_of(losses[:, 1])
    low, high = mean.skill(reference).interval(0.95)
    np.testing.assert_allclose(skill_interval(mean, reference), [low[0], high[0]], atol=2e-4)


def test_skewed_means_of_few_events_are_covered():
    """Losses of an event that 15 of 60 have: the normal interval covers less."""
    rng = np.random.default_rng(6)
    hits, normal = [], []
    for _ in range(2000):
        found = mean_of(rng.gamma(2.0, 0.5, 60) * (rng.random(60) < 0.25))
        low, high = found.interval(0.95)
        hits.append(low[0] <= 0.25 <= high[0])
        normal.append(abs(found.value[0] - 0.25) < 1.96 * found.standard_error[0])
    assert 0.94 < np.mean(hits) < 0.98
    assert np.mean(normal) < 0.935


def test_eight_clusters_are_covered():
    rng = np.random.default_rng(7)
    groups, hits, normal = np.repeat(np.arange(8), 20), [], []
    for _ in range(1500):
        losses = rng.exponential(size=160) + rng.normal(size=8)[groups]
        found = of_mean(losses[:, None], np.full(160, 1 / 160), groups)
        low, high = found.interval(0.95)
        hits.append(low[0] <= 1 <= high[0])
        normal.append(abs(found.value[0] - 1) < 1.96 * found.standard_error[0])
    assert 0.93 < np.mean(hits) < 0.975
    assert np.mean(normal) < 0.92


def test_what_does_not_vary_is_not_certain():
    """Equal losses, also up to rounding: no interval, no p-value."""
    for losses in (np.full(40, 0.04), np.full(40, 0.1) * (1 + 1e-16 * np.arange(40))):
        found = mean_of(losses)
        assert np.isnan(found.p_value[0])
        assert np.isnan(found.interval(0.95)).all()
        assert np.isnan(adjust([found, found], "max-t", 0.95).p_value).all()
        assert np.isnan(skill_interval(found, found)).all()


def test_no_p_value_is_zero():
    strong = independent([60.0, 50.0])
    for method in ("none", "holm", "max-t"):
        assert (adjust(strong, method, 0.95).p_value >= SMALLEST_P).all()


def test_effective_number_of_subjects_and_groups():
    assert effective_number(np.array([2.0, 2.0, 0.0])) == pytest.approx(2)
    assert effective_number(np.array([3.0, 1.0])) == pytest.approx(1.6)
    assert effective_number(np.ones(4), np.array([0, 0, 1, 1])) == pytest.approx(2)
    assert effective_number(np.zeros(3)) == 0


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-80, 1e60, 1e200, 1e299])
def test_errors_and_intervals_in_any_unit_of_time(unit):
    """Squares and sixth powers of the influence are beyond the floats; those of its multiple are not."""
    rng = np.random.default_rng(0)
    mean, reference = (of_mean(rng.exponential(scale, (80, 1)), np.full(80, 1 / 80)) for scale in (1.0, 1.2))

    def numbers(u):
        a, b = (Estimate(one.value * u, one.influence * u) for one in (mean, reference))
        ends = [end[0] / u for each in (a, b, a - b) for end in (*each.interval(), each.standard_error)]
        return [*ends, (a - b).p_value[0], *skill_interval(a, b), a.skill(b).standard_error[0]]

    np.testing.assert_allclose(numbers(unit), numbers(1.0), rtol=1e-10)
