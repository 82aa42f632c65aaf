"""The copula-graphic estimate, and scores under an assumed dependence of T and C."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.sensitivity.copula_graphic import copula_graphic_curve, frank_parameter, generator
from censcore.exceptions import InvalidInputError, InvalidTypeError, PositivityError

GRID = np.linspace(0.05, 1.5, 30)


def outcome(T, C):
    return cs.RightCensored(np.minimum(T, C), T <= C)


@pytest.fixture(scope="module")
def tied():
    """Times on a grid, so that events and censoring tie; a stratum per subject."""
    rng = np.random.default_rng(3)
    stratum = rng.integers(0, 2, 400)
    T, C = np.ceil(8 * rng.exponential(1.0, 400)) / 8, np.ceil(8 * rng.exponential(1 + stratum)) / 8
    return outcome(T, C), stratum


# ---- the estimate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("copula", ["frank", "clayton", "gumbel"])
def test_independence_is_kaplan_meier(tied, copula):
    y, _ = tied
    T, C = cs.copula_graphic(y, copula, 0.0)
    t = np.unique(y.time)[None, :]
    km = cs.KaplanMeier().fit(None, y).predict_distribution()
    km_of_c = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    np.testing.assert_allclose(T.sf(t), km.sf(t), atol=1e-14)
    np.testing.assert_allclose(C.sf(t), km_of_c.sf(t), atol=1e-14)


@pytest.mark.parametrize(
    ("copula", "tau"), [("frank", -0.9), ("frank", 0.95), ("clayton", 0.6), ("gumbel", 0.9)]
)
def test_both_marginals_reproduce_the_data(tied, copula, tau):
    """Joined by the copula, the two curves give back the empirical P(Y > t)."""
    y, _ = tied
    phi = generator(copula, tau)
    curve = copula_graphic_curve(y.time, y.event, phi)
    inside = curve.followed > 0
    joined = phi.inverse(phi.of(curve.S[inside]) + phi.of(curve.G[inside]))
    np.testing.assert_allclose(joined, curve.followed[inside], atol=1e-10)
    assert (np.diff(curve.S) <= 1e-12).all()


def test_weights_are_counts(tied):
    y, _ = tied
    counts = np.arange(len(y)) % 3
    weighted = cs.copula_graphic(y, "frank", 0.4, sample_weight=counts)[0]
    repeated = cs.copula_graphic(y.take(np.repeat(np.arange(len(y)), counts)), "frank", 0.4)[0]
    np.testing.assert_allclose(weighted.sf(GRID[None, :]), repeated.sf(GRID[None, :]), atol=1e-13)


def test_parameter_of_the_frank_copula():
    """Published: tau = 0.5 at theta = 5.74; and the rank correlation of draws."""
    assert frank_parameter(0.5) == pytest.approx(5.7363, abs=1e-3)
    assert frank_parameter(-0.3) == -frank_parameter(0.3)


def frank_partner(u, theta, rng):
    """V with (u, V) from a Frank copula, by inversion of the conditional distribution."""
    p, e = rng.random(len(u)), np.exp(-theta * u)
    return -np.log1p(p * (1 - np.exp(-theta)) / (p * (e - 1) - e)) / theta


def dependent(copula, tau, n, seed):
    """T and C, exponential with means 1 and 1.2, joined by a survival copula."""
    if copula == "frank":
        rng = np.random.default_rng(seed)
        u = rng.random(n)
        return -np.log(u), -1.2 * np.log(frank_partner(u, frank_parameter(tau), rng))
    theta = 2 * tau / (1 - tau) if copula == "clayton" else 1 / (1 - tau)
    distribution = cs.Copula(copula, [cs.Exponential(1.0), cs.Exponential(1 / 1.2)], theta)
    return distribution.sample(n, seed=seed)[0].T


@pytest.mark.parametrize(
    ("copula", "tau"), [("frank", 0.5), ("frank", -0.4), ("clayton", 0.5), ("gumbel", 0.5)]
)
def test_the_right_copula_finds_the_marginals(copula, tau):
    T, C = dependent(copula, tau, 40_000, seed=1)
    y = outcome(T, C)
    found = cs.copula_graphic(y, copula, tau)
    np.testing.assert_allclose(found[0].sf(GRID[None, :])[0], np.exp(-GRID), atol=0.015)
    np.testing.assert_allclose(found[1].sf(GRID[None, :])[0], np.exp(-GRID / 1.2), atol=0.015)
    naive = cs.KaplanMeier().fit(None, y).predict_distribution().sf(GRID[None, :])[0]
    assert np.abs(naive - np.exp(-GRID)).max() > 0.05


# ---- the scores ------------------------------------------------------------------------------------

FORECASTS = {
    "smooth": cs.Weibull(1.2, 0.9),
    "steps": cs.Step([0.3, 0.7, 1.1], sf=[0.7, 0.5, 0.2]),
    "bends": cs.PiecewiseLinear([0.0, 0.5, 2.0], sf=[1.0, 0.5, 0.0]),
}


@pytest.mark.parametrize("stratified", [False, True])
def test_independence_is_the_ipcw_scale_under_kaplan_meier(tied, stratified):
    y, stratum = tied
    X = stratum[:, None]
    km = cs.KaplanMeier(stratify=0) if stratified else cs.KaplanMeier()
    C = cs.Censoring(km).fit(X, y).predict_distribution(X)
    found = cs.dependent_censoring_sensitivity(
        FORECASTS,
        y,
        times=[0.5, 1.0],
        horizon=1.3,
        tau=[0.0],
        strata=stratum if stratified else None,
        replicates=0,
    )
    for m, F in enumerate(FORECASTS.values()):
        expected = [
            *cs.brier_score(y, F, C, [0.5, 1.0], scale="ipcw").mean(axis=0),
            cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=1.3, normalize=True).mean(),
        ]
        np.testing.assert_allclose(found.means[0, m], expected, rtol=1e-10)
    assert np.isnan(found.standard_errors).all()


@pytest.mark.parametrize(
    ("copula", "tau"),
    [("frank", -0.4), ("clayton", 0.5), pytest.param("frank", 0.5, marks=pytest.mark.slow)],
)
def test_at_the_right_tau_the_means_are_those_of_uncensored_data(copula, tau):
    T, C = dependent(copula, tau, 2000, seed=2)
    F, t, h = cs.Exponential(0.5), 0.8, 1.2
    found = cs.dependent_censoring_sensitivity(
        {"F": F}, outcome(T, C), times=t, horizon=h, tau=[0.0, tau], copula=copula, replicates=25
    )
    here = found.tau.tolist().index(tau)
    uncensored = cs.RightCensored(T, np.ones(len(T)))
    truth = [
        cs.brier_score(uncensored, F, times=t).mean(),
        cs.integrated_brier_score(uncensored, F, horizon=h, normalize=True).mean(),
    ]
    z = (found.means[:, 0] - truth) / found.standard_errors[:, 0]
    assert np.abs(z[here]).max() < 3
    assert np.abs(z[1 - here]).min() > 4


def test_the_bootstrap_knows_the_spread_over_data_sets():
    """Also where data and bootstrap have the same seed."""
    means, errors = [], []
    for seed in range(60):
        y = outcome(*dependent("frank", 0.3, 200, seed))
        found = cs.dependent_censoring_sensitivity(
            {"F": cs.Exponential(0.5)}, y, times=0.8, tau=[0.3], replicates=60, seed=seed
        )
        means.append(found.means[0, 0, 0])
        errors.append(found.standard_errors[0, 0, 0])
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.25)


def test_subjects_of_a_group_are_drawn_together(tied):
    y, _ = tied
    twice = y.take(np.repeat(np.arange(len(y)), 2))
    options = {"times": 0.6, "horizon": 1.0, "tau": [0.0, 0.5], "replicates": 30}
    once = cs.dependent_censoring_sensitivity(FORECASTS, y, **options)
    grouped = cs.dependent_censoring_sensitivity(
        FORECASTS, twice, groups=np.repeat(np.arange(len(y)), 2), **options
    )
    np.testing.assert_allclose(grouped.standard_errors, once.standard_errors, rtol=1e-8)
    np.testing.assert_allclose(grouped.difference_errors[:, 1:], once.difference_errors[:, 1:], rtol=1e-8)


def test_one_distribution_per_subject(tied):
    y, stratum = tied
    each = cs.Exponential(np.where(stratum == 0, 0.7, 1.3))
    found = cs.dependent_censoring_sensitivity(
        {"F": each}, y, times=0.6, tau=[0.4], strata=stratum, replicates=0
    )
    parts = [
        cs.dependent_censoring_sensitivity(
            {"F": cs.Exponential(rate)}, y.take(stratum == s), times=0.6, tau=[0.4], replicates=0
        ).means[0, 0, 0]
        for s, rate in ((0, 0.7), (1, 1.3))
    ]
    assert found.means[0, 0, 0] == pytest.approx(np.average(parts, weights=np.bincount(stratum)))


# ---- what is reported ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result(tied):
    forecasts = {"low": cs.Exponential(0.5), "high": cs.Exponential(1.6)}
    return cs.dependent_censoring_sensitivity(forecasts, tied[0], times=0.9, horizon=1.5, replicates=20)


def test_frame_and_order(result):
    frame = result.frame()
    assert len(frame) == 2 * 6 * 2
    best = frame[frame["rank"] == 1].groupby(["score", "tau"])["mean"].first()
    assert (best == frame.groupby(["score", "tau"])["mean"].min()).all()
    assert (frame[frame["model"] == "low"]["difference"] == 0).all()
    changes = result.order_changes()
    brier = changes[changes["score"] == "brier_score"]
    assert len(brier) == 1
    row = brier.iloc[0]
    assert (row["order_below"], row["order_above"]) == ("low < high", "high < low")
    text = repr(result)
    assert "tau is assumed, not estimated" in text
    assert f"between tau = {row['tau_below']:g} (low < high) and {row['tau_above']:g} (high < low)" in text


def test_plot(result):
    figure = result.plot()
    assert len(figure.axes) == 2
    assert "not identified" in figure.axes[-1].get_xlabel()
    assert len(figure.axes[0].lines) == 3  # tau = 0, the reference and the other forecast
    assert len(result.plot(differences=False).axes[0].lines) == 3


def test_bootstrap_samples_without_anyone_left_are_counted():
    y = cs.RightCensored(np.append(np.linspace(0.1, 1, 20), 2.0), [1, 0] * 10 + [0])
    found = cs.dependent_censoring_sensitivity(
        {"F": cs.Exponential(1.0)}, y, times=1.5, tau=[0.2], replicates=50
    )
    assert "bootstrap samples have nobody followed to the last time" in repr(found).replace("\n", " ")
    assert np.isfinite(found.standard_errors).all()


def test_bad_input(tied):
    y, _ = tied
    F = {"F": cs.Exponential(1.0)}
    call = cs.dependent_censoring_sensitivity
    with pytest.raises(InvalidInputError, match="got neither"):
        call(F, y)
    with pytest.raises(PositivityError, match="Nobody is followed beyond"):
        call(F, y, times=1e3)
    with pytest.raises(InvalidInputError, match=r"between 0 and 0\.95; got -0\.2"):
        call(F, y, times=1.0, tau=[-0.2], copula="clayton")
    with pytest.raises(InvalidInputError, match="got 'normal'"):
        call(F, y, times=1.0, copula="normal")
    with pytest.raises(InvalidTypeError, match="got Exponential"):
        call(F["F"], y, times=1.0)
    with pytest.raises(InvalidTypeError, match="got float"):
        call({"F": 1.0}, y, times=1.0)
    with pytest.raises(InvalidInputError, match="for 3 subjects; expected 400"):
        call({"F": cs.Exponential([1.0, 2.0, 3.0])}, y, times=1.0)
    with pytest.raises(InvalidInputError, match=r"strata must have one label per subject, \(400,\)"):
        call(F, y, times=1.0, strata=[1, 2])
    with pytest.raises(InvalidInputError, match="got 1"):
        call(F, y, times=1.0, replicates=1)
    with pytest.raises(InvalidInputError, match="at least two forecasts"):
        call(F, y, times=1.0, tau=[0.0], replicates=0).plot(differences=True)
