"""The energy score equals what it is defined to be, by routes that share no code with it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError, MissingCensoringError, PositivityError
from censcore.scores.kernels import energy_pairs
from censcore.scores.rules.energy import energy_score

BETAS = [0.3, 1.0, 1.7]


def definition(z, y, c, beta=1.0, fair=False, weights=None):
    """One row at one censoring time, straight from the formula: z (m, k), y (k,), c number or (k,)."""
    psi, m = np.minimum(z, c), len(z)
    w = np.full(m, 1 / m) if weights is None else weights
    pairs = w @ cdist(psi, psi) ** beta @ w
    return w @ cdist(psi, y[None])[:, 0] ** beta - pairs / 2 / ((1 - w @ w) if fair else 1)


def shared_scenario(rng, n=12, m=40, k=3, end=3.0):
    """Outcomes under one C ~ Uniform(0, end) per row, and an ensemble forecast of them."""
    T, C = rng.exponential(size=(n, k)), rng.uniform(0, end, n)
    y = cs.RightCensored(np.minimum(T, C[:, None]), C[:, None] >= T)
    return y, cs.Ensemble(rng.exponential(size=(n, m, k))), cs.Uniform(0.0, end)


def componentwise_scenario(rng, n=12, m=40, k=3, end=3.0):
    T, C = rng.exponential(size=(n, k)), rng.uniform(0, end, (n, k))
    y = cs.RightCensored(np.minimum(T, C), C >= T)
    distribution = cs.Independent([cs.Uniform(0.0, end)] * k)
    return y, cs.Ensemble(rng.exponential(size=(n, m, k))), distribution


# ---- definitions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("fair", [False, True])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_uncensored_and_localized_equal_the_definition(rng, beta, fair, k):
    z, T, c = rng.exponential(size=(6, 17, k)), rng.exponential(size=(6, k)), rng.uniform(0.2, 2, 6)
    loss = cs.energy_score(cs.RightCensored(T, np.ones_like(T)), cs.Ensemble(z), beta=beta, fair=fair)
    expected = [definition(z[r], T[r], np.inf, beta, fair) for r in range(6)]
    np.testing.assert_allclose(loss, expected, rtol=1e-12)
    y = cs.RightCensored(np.minimum(T, c[:, None]), c[:, None] >= T)
    loss = cs.energy_score(y, cs.Ensemble(z), cs.PointMass(c), beta=beta, fair=fair)
    expected = [definition(z[r], y.time[r], c[r], beta, fair) for r in range(6)]
    np.testing.assert_allclose(loss, expected, rtol=1e-12)


@pytest.mark.parametrize("beta", BETAS)
def test_marginalized_is_the_mean_of_localized_over_shared_censoring(rng, beta):
    y, F, distribution = shared_scenario(rng)
    loss = cs.energy_score(y, F, distribution, beta=beta, pairs="all", draws=1024)
    for r in range(len(y)):
        if y.event[r].all():  # simulate C given C >= max y by keeping the draws that comply
            C = rng.uniform(0, 3, 6000)
            localized = [definition(F.samples[r], y.time[r], c, beta) for c in C[y.time[r].max() <= C][:300]]
        else:
            localized = [definition(F.samples[r], y.time[r], y.time[r].max(), beta)]
        error = np.std(localized) / np.sqrt(len(localized))
        assert abs(loss[r] - np.mean(localized)) < 4 * error + 1e-12


def test_marginalized_is_the_mean_of_localized_over_componentwise_censoring(rng):
    y, F, distribution = componentwise_scenario(rng)
    loss = cs.energy_score(y, F, distribution, pairs="all", draws=1024)
    for r in range(len(y)):
        C = rng.uniform(np.where(y.event[r], y.time[r], 0), 3, (400, y.k))
        C = np.where(y.event[r], C, y.time[r])
        localized = [definition(F.samples[r], y.time[r], c) for c in C]
        assert abs(loss[r] - np.mean(localized)) < 4 * np.std(localized) / 20 + 1e-12


def test_componentwise_point_masses_use_their_own_censoring_times(rng):
    z, T, c = rng.exponential(size=(5, 20, 2)), rng.exponential(size=(5, 2)), rng.uniform(0.2, 2, (5, 2))
    y = cs.RightCensored(np.minimum(T, c), c >= T, censoring_time=c)
    expected = [definition(z[r], y.time[r], c[r]) for r in range(5)]
    np.testing.assert_allclose(cs.energy_score(y, cs.Ensemble(z)), expected, rtol=1e-12)


def test_one_shared_time_may_come_as_equal_times_per_coordinate(rng):
    z, T, c = rng.exponential(size=(5, 20, 2)), rng.exponential(size=(5, 2)), rng.uniform(0.2, 2, 5)
    y = cs.RightCensored(np.minimum(T, c[:, None]), c[:, None] >= T)
    both = cs.Independent([cs.PointMass(c), cs.PointMass(c)])
    shared = cs.energy_score(y, cs.Ensemble(z), cs.PointMass(c))
    np.testing.assert_allclose(cs.energy_score(y, cs.Ensemble(z), both), shared, rtol=1e-12)


# ---- agreement with other scores -------------------------------------------------------------------


def univariate(rng, n=30):
    T, C = rng.exponential(size=n), rng.uniform(0, 3, n)
    return cs.RightCensored(np.minimum(T, C), C >= T), cs.Ensemble(rng.exponential(size=(n, 50)))


@pytest.mark.parametrize("distribution", ["none", "known", "uniform", "exponential", "step"])
@pytest.mark.parametrize("shape", ["(n,)", "(n, 1)"])
def test_equals_crps_for_one_time(rng, distribution, shape):
    y, F = univariate(rng)
    if distribution == "none":
        y = cs.RightCensored(y.time, np.ones(len(y)))
    distributions = {
        "none": cs.PointMass(np.inf),
        "known": cs.PointMass(np.where(y.event, y.time + 0.5, y.time)),
        "uniform": cs.Uniform(0.0, 3.0),
        "exponential": cs.Exponential(0.4),
        "step": cs.Step(np.linspace(0.1, 3, 30), sf=np.linspace(0.99, 0.2, 30)),
    }
    expected = cs.crps(y, F, distributions[distribution])
    if shape == "(n, 1)":
        y, F = cs.RightCensored(y.time[:, None], y.event[:, None]), cs.Ensemble(F.samples[:, :, None])
    np.testing.assert_allclose(
        cs.energy_score(y, F, distributions[distribution], pairs="all"), expected, rtol=1e-12
    )


def test_equals_crps_under_an_estimated_distribution(rng):
    y, F = univariate(rng)
    distribution = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution(None)
    expected = cs.crps(y, F, distribution, horizon=2.0)
    np.testing.assert_allclose(cs.energy_score(y, F, distribution, horizon=2.0), expected, rtol=1e-12)


def test_draws_of_c_lead_to_the_crps_they_replace(rng):
    """The generic estimator, which k = 1 does not need, agrees with the closed form within its error."""
    y, F = univariate(rng)
    distribution = cs.Uniform(0.0, 3.0)
    seeds = [cs.energy_score(y, F, distribution, pairs="lagged", draws=64, seed=s) for s in range(60)]
    error = np.std(seeds, axis=0) / np.sqrt(60)
    assert (np.abs(np.mean(seeds, axis=0) - cs.crps(y, F, distribution)) < 4.5 * error + 1e-12).all()


def test_fair_score_of_one_time_equals_the_definition(rng):
    y, F = univariate(rng, n=8)
    distribution = cs.PointMass(np.where(y.event, y.time + 0.7, y.time))
    expected = [
        definition(F.samples[r][:, None], y.time[r : r + 1], distribution.location[r], fair=True)
        for r in range(8)
    ]
    np.testing.assert_allclose(cs.energy_score(y, F, distribution, fair=True), expected, rtol=1e-12)
    w = rng.random((8, 50))
    weighted = cs.Ensemble(F.samples, w)
    expected = [
        definition(
            F.samples[r][:, None], y.time[r : r + 1], distribution.location[r], 1.0, True, w[r] / w[r].sum()
        )
        for r in range(8)
    ]
    np.testing.assert_allclose(cs.energy_score(y, weighted, distribution, fair=True), expected, rtol=1e-12)


def test_fair_score_of_one_time_by_draws_and_in_closed_form(rng):
    y, F = univariate(rng, n=8)
    distribution = cs.Exponential(0.4)
    closed = cs.energy_score(y, F, distribution, fair=True)
    seeds = [cs.energy_score(y, F, distribution, fair=True, pairs="lagged", seed=s) for s in range(80)]
    error = np.std(seeds, axis=0) / np.sqrt(80)
    assert (np.abs(np.mean(seeds, axis=0) - closed) < 4.5 * error + 1e-12).all()


def test_distributions_that_are_no_ensemble_are_sampled_fairly(rng):
    y, _, distribution = shared_scenario(rng, n=300, k=2)
    F = cs.Independent([cs.Exponential(1.0), cs.Exponential(np.full(300, 1.0))])
    sampled = cs.energy_score(y, F, distribution, members=200)
    own = cs.energy_score(y, cs.Ensemble(F.sample(200, 5)), distribution, fair=True)
    assert abs(np.mean(sampled - own)) < 4 * np.std(sampled - own) / np.sqrt(300)
    again = cs.energy_score(y, F, distribution, members=200)
    np.testing.assert_allclose(sampled, again, rtol=1e-11)  # compiled kernels may have loaded in between
    assert np.unique(sampled[y.event.all(axis=1)]).size > 50


def test_a_distribution_of_one_time_is_scored_exactly(rng):
    y, _ = univariate(rng)
    F, distribution = cs.Weibull(1.3, 1.1), cs.Uniform(0.0, 3.0)
    np.testing.assert_array_equal(cs.energy_score(y, F, distribution), cs.crps(y, F, distribution))
    near = cs.energy_score(y, F, distribution, beta=1.0001, members=4000, draws=64)
    np.testing.assert_allclose(near, cs.crps(y, F, distribution), atol=0.03)


# ---- estimators ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fair", [False, True])
@pytest.mark.parametrize("scenario", [shared_scenario, componentwise_scenario])
def test_lagged_pairs_are_unbiased_for_all_pairs(rng, scenario, fair):
    """Sorted ensembles, weights and few draws: the mean over seeds is still the exact value."""
    y, F, distribution = scenario(rng, n=6, m=30)
    F = cs.Ensemble(np.sort(F.samples, axis=1), rng.random(30))
    exact = np.mean(
        [cs.energy_score(y, F, distribution, pairs="all", draws=512, fair=fair, seed=s) for s in (1, 2)], 0
    )
    seeds = np.array(
        [cs.energy_score(y, F, distribution, pairs="lagged", draws=4, fair=fair, seed=s) for s in range(200)]
    )
    error = seeds.std(axis=0) / np.sqrt(200)
    assert (np.abs(seeds.mean(axis=0) - exact) < 4.5 * error + 2e-4).all()
    assert (error > 0).sum() > len(y) // 2


def test_default_estimator_is_close_to_the_exact_score(rng):
    y, F, distribution = shared_scenario(rng, n=40, m=512)
    exact = cs.energy_score(y, F, distribution, pairs="all", draws=64)
    loss = cs.energy_score(y, F, distribution)
    known = ~y.event.all(axis=1)
    np.testing.assert_allclose(loss[known], exact[known], rtol=1e-12)
    assert 0 < np.sqrt(np.mean((loss - exact)[~known] ** 2)) < 0.01


@pytest.mark.parametrize("pairs", ["auto", "all", "lagged"])
@pytest.mark.parametrize("scenario", [shared_scenario, componentwise_scenario])
def test_result_does_not_depend_on_chunks(rng, monkeypatch, scenario, pairs):
    y, F, distribution = scenario(rng, n=30, m=70)
    whole = cs.energy_score(y, F, distribution, pairs=pairs)
    monkeypatch.setattr(energy_pairs, "CHUNK_NUMBERS", 4000)
    np.testing.assert_allclose(cs.energy_score(y, F, distribution, pairs=pairs), whole, rtol=1e-13)


def test_seed_decides_and_repeats(rng):
    y, F, distribution = shared_scenario(rng, m=70)
    unknown = y.event.all(axis=1)
    first, again, other = (cs.energy_score(y, F, distribution, seed=s) for s in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert (first != other)[unknown].all()
    np.testing.assert_array_equal(first[~unknown], other[~unknown])


def test_all_pairs_ignore_the_order_of_members(rng):
    y, F, distribution = shared_scenario(rng)
    shuffled = cs.Ensemble(F.samples[:, rng.permutation(40)])
    np.testing.assert_allclose(
        cs.energy_score(y, shuffled, distribution, pairs="all"),
        cs.energy_score(y, F, distribution, pairs="all"),
        rtol=1e-12,
    )


@pytest.mark.parametrize("pairs", ["all", "lagged"])
def test_rows_sharing_one_ensemble_are_drawn_independently(rng, pairs):
    T = np.full((200, 2), 0.3)
    y, F = cs.RightCensored(T, np.ones_like(T)), cs.Ensemble(rng.exponential(size=(1, 100, 2)))
    loss = cs.energy_score(y, F, cs.Uniform(0.0, 3.0), pairs=pairs, draws=4, ids=np.arange(200))
    exact = cs.energy_score(y[:1], F, cs.Uniform(0.0, 3.0), pairs="all", draws=4096)[0]
    assert loss.std() > 0
    assert abs(loss.mean() - exact) < 4.5 * loss.std() / np.sqrt(200)


# ---- weights, masks, horizons ----------------------------------------------------------------------


@pytest.mark.parametrize("beta", BETAS)
def test_weights_are_repeated_members(rng, beta):
    y, F, distribution = shared_scenario(rng, m=5)
    times = np.array([1, 3, 0, 2, 1])
    repeated = cs.Ensemble(np.repeat(F.samples, times, axis=1))
    weighted = cs.Ensemble(F.samples, times.astype(float))
    options = {"beta": beta, "pairs": "all"}
    np.testing.assert_allclose(
        cs.energy_score(y, weighted, distribution, **options),
        cs.energy_score(y, repeated, distribution, **options),
        rtol=1e-12,
    )


def test_u_and_v_statistics_differ_by_the_pairs_of_a_member_with_itself(rng):
    y, F, distribution = shared_scenario(rng, m=20)
    v, u = (cs.energy_score(y, F, distribution, pairs="all", fair=fair) for fair in (False, True))
    spread = 2 * (v - u) * (20 - 1)  # half the spread grows by the factor m / (m - 1)
    accuracy = v + spread / 2
    np.testing.assert_allclose(u, accuracy - spread / 2 * 20 / 19, rtol=1e-12)
    assert (u < v).all()


def test_fair_score_does_not_depend_on_the_ensemble_size_in_mean(rng):
    T = rng.exponential(size=(4000, 2))
    y = cs.RightCensored(T, np.ones_like(T))
    small, large = (cs.Ensemble(rng.exponential(size=(4000, m, 2))) for m in (4, 64))
    gap = cs.energy_score(y, small, fair=True) - cs.energy_score(y, large, fair=True)
    assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(4000)
    gap = cs.energy_score(y, small) - cs.energy_score(y, large)
    assert gap.mean() > 8 * gap.std() / np.sqrt(4000)


def test_masked_coordinates_count_for_nothing(rng):
    y, F, distribution = shared_scenario(rng, k=3)
    keep = np.tile([True, False, True], (12, 1))
    rest = cs.RightCensored(y.time[:, ::2], y.event[:, ::2])
    expected = cs.energy_score(rest, cs.Ensemble(F.samples[:, :, ::2]), distribution)
    np.testing.assert_allclose(cs.energy_score(y, F, distribution, mask=keep), expected, rtol=1e-12)
    # whatever stands in a masked place, a time that no shared C allows included
    odd = cs.RightCensored(np.where(keep, y.time, 9.0), y.event & keep)
    wild = cs.Ensemble(np.where(keep[:, None], F.samples, np.inf))
    np.testing.assert_allclose(cs.energy_score(odd, wild, distribution, mask=keep), expected, rtol=1e-12)


def test_mask_by_row_and_of_everything(rng):
    y, F, distribution = shared_scenario(rng, k=2)
    mask = rng.random((12, 2)) < 0.5
    mask[:2] = [[False, False], [True, True]]
    loss = cs.energy_score(y, F, distribution, mask=mask, draws=4096, pairs="all")
    assert loss[0] == 0
    np.testing.assert_allclose(
        loss[1], cs.energy_score(y, F, distribution, draws=4096, pairs="all")[1], rtol=2e-4
    )
    for j in (0, 1):
        alone = mask.sum(axis=1) == 1
        only = cs.crps(y.marginal(j), F.marginal(j), distribution)
        np.testing.assert_allclose(loss[alone & mask[:, j]], only[alone & mask[:, j]], rtol=2e-3)


def test_mask_of_one_time(rng):
    y, F = univariate(rng, n=4)
    mask = np.array([True, False, True, False])
    expected = np.where(mask, cs.crps(y, F, cs.Uniform(0.0, 3.0)), 0)
    np.testing.assert_array_equal(cs.energy_score(y, F, cs.Uniform(0.0, 3.0), mask=mask), expected)


def test_mask_does_not_make_a_missing_distribution_known(rng):
    y, F, _ = shared_scenario(rng)
    with pytest.raises(MissingCensoringError):
        cs.energy_score(y, F, mask=y.event)


@pytest.mark.parametrize("scenario", [shared_scenario, componentwise_scenario])
def test_horizon_ends_follow_up(rng, scenario):
    y, F, distribution = scenario(rng)
    expected = cs.energy_score(y.censor_at(0.8), F, distribution.censor_at(0.8))
    np.testing.assert_array_equal(cs.energy_score(y, F, distribution, horizon=0.8), expected)
    beyond = cs.Ensemble(np.where(F.samples > 0.8, np.inf, F.samples))
    np.testing.assert_allclose(cs.energy_score(y, beyond, distribution, horizon=0.8), expected, rtol=1e-12)


def test_mass_at_infinity_of_c_means_no_censoring_there(rng):
    y, F, _ = shared_scenario(rng, n=6, end=50.0)
    y = cs.RightCensored(y.time, np.ones_like(y.time))
    distribution = cs.Step([100.0], sf=[0.4])
    uncensored = cs.energy_score(y, F, cs.PointMass(np.inf))
    np.testing.assert_allclose(cs.energy_score(y, F, distribution, pairs="all"), uncensored, rtol=1e-12)


# ---- input -----------------------------------------------------------------------------------------


def test_members_at_infinity_need_an_end_of_follow_up(rng):
    y, F, _ = shared_scenario(rng, n=6, m=40)
    y = cs.RightCensored(y.time, np.ones_like(y.time))
    z = F.samples.copy()
    z[2, 0, 1] = np.inf
    with pytest.raises(PositivityError, match="1 subject"):
        cs.energy_score(y, cs.Ensemble(z))
    with pytest.raises(PositivityError, match="horizon"):  # a share of infinite C that draws would miss
        cs.energy_score(y, cs.Ensemble(z), cs.Step([60.0], sf=[1e-9]))
    finite = cs.energy_score(y, cs.Ensemble(z), horizon=2.0)
    assert np.isfinite(finite).all()


@pytest.mark.parametrize("scale", [1e-90, 1e-30, 1e30, 1e90])
def test_any_unit_of_time(rng, scale):
    y, F, _ = shared_scenario(rng)
    scaled = cs.RightCensored(y.time * scale, y.event)
    ids = np.arange(len(y))  # draws would follow from the times
    loss = cs.energy_score(scaled, cs.Ensemble(F.samples * scale), cs.Uniform(0.0, 3.0 * scale), ids=ids)
    np.testing.assert_allclose(loss / scale, cs.energy_score(y, F, cs.Uniform(0.0, 3.0), ids=ids), rtol=1e-9)


def test_times_whose_power_is_no_number_are_refused():
    y = cs.RightCensored([[1e250, 1.0]], [[1, 1]])
    with pytest.raises(InvalidInputError, match="unit of time"):
        cs.energy_score(y, cs.Ensemble([[[1.0, 1.0], [2.0, 3.0]]]), beta=1.7)


def test_one_member_is_a_point_forecast():
    y = cs.RightCensored([[3.0, 4.0]], [[1, 1]])
    F = cs.Ensemble([[[0.0, 0.0]]])
    for pairs in ("auto", "all", "lagged"):
        assert cs.energy_score(y, F, pairs=pairs)[0] == 5.0
    with pytest.raises(InvalidInputError, match="at least two"):
        cs.energy_score(y, F, fair=True)
    with pytest.raises(InvalidInputError, match="at least two"):
        cs.energy_score(cs.RightCensored([3.0], [1]), cs.Ensemble([[1.0, 2.0]], [[0.0, 4.0]]), fair=True)


@pytest.mark.parametrize("pairs", ["auto", "lagged"])
def test_two_members_have_one_pair(pairs):
    y = cs.RightCensored([[0.0, 0.0]], [[1, 1]])
    F = cs.Ensemble([[[3.0, 4.0], [0.0, 0.0]]])
    assert cs.energy_score(y, F, pairs=pairs)[0] == pytest.approx(2.5 - 5 / 4)
    assert cs.energy_score(y, F, pairs=pairs, fair=True)[0] == pytest.approx(2.5 - 5 / 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beta": 0.0}, "beta"),
        ({"beta": 2.0}, "beta"),
        ({"beta": float("nan")}, "beta"),
        ({"pairs": "some"}, "'lagged'"),
        ({"draws": 0}, "draws"),
        ({"draws": 2.5}, "draws"),
        ({"members": 1}, "members"),
        ({"seed": -1}, "seed"),
        ({"mask": np.ones((12, 2), bool)}, "mask"),
        ({"mask": np.ones((12, 3))}, "boolean"),
    ],
)
def test_wrong_options_are_named(rng, options, words):
    y, F, distribution = shared_scenario(rng)
    with pytest.raises(InvalidInputError, match=words):
        cs.energy_score(y, F, distribution, **options)


def test_dependent_censoring_times_are_refused(rng):
    y, F, _ = componentwise_scenario(rng, k=2)
    joint = cs.Ensemble(rng.uniform(3, 4, size=(12, 9, 2)))
    with pytest.raises(InvalidTypeError, match="Independent"):
        cs.energy_score(y, F, joint)


def test_events_beyond_follow_up_are_refused(rng):
    y, F, _ = shared_scenario(rng)
    with pytest.raises(PositivityError):
        cs.energy_score(cs.RightCensored(y.time + 1, np.ones_like(y.time)), F, cs.Uniform(0.0, 1.0))


def test_is_the_public_function():
    assert cs.energy_score is energy_score


def test_fair_score_of_members_that_never_have_the_event():
    """Beyond the end of follow-up infinity is as good as any late time."""
    y = cs.RightCensored([1.0, 2.0], [1, 0])
    z = np.array([[1.0, np.inf, 2.0, 0.5], [3.0, np.inf, 2.0, 0.5]])
    C = cs.Uniform(0.0, 5.0)
    late = cs.energy_score(y, cs.Ensemble(np.minimum(z, 5.0)), C, fair=True)
    np.testing.assert_allclose(cs.energy_score(y, cs.Ensemble(z), C, fair=True), late)


def test_one_censoring_time_for_all_and_one_per_subject_with_endless_members():
    y = cs.RightCensored([[1.0, 2.0], [0.5, 1.0]], [[1, 1], [1, 1]])
    F = cs.Ensemble(np.array([[[1.0, np.inf], [2.0, 1.0]]]))
    C = cs.Independent([cs.Uniform(0.0, 4.0), cs.PointMass([3.0, 2.0])])
    known = cs.Independent([cs.Uniform(0.0, [4.0, 4.0]), cs.PointMass([3.0, 2.0])])
    np.testing.assert_allclose(cs.energy_score(y, F, C), cs.energy_score(y, F, known))


def test_subjects_with_equal_times_have_other_random_numbers():
    """With an administrative end most are equal: a shared error of sampling would be one of the mean."""
    n = 100
    T = 2 * np.random.default_rng(0).exponential(size=(n, 2))
    y = cs.RightCensored(np.minimum(T, 0.8), T <= 0.8, censoring_time=np.full(n, 0.8))
    F = cs.Independent([cs.Weibull(np.ones(n), np.full(n, 2.0))] * 2)

    def spread(ids):
        return np.std([cs.energy_score(y, F, seed=seed, ids=ids).mean() for seed in range(20)])

    assert spread(None) < 1.5 * spread(np.arange(n))
