"""Bootstrap cross-validation: who is drawn, the leave-one-out bootstrap, the .632+ estimate, its errors."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.parts.bootstrap import plus_weight, refit_influence
from censcore.exceptions import CenscoreError, InvalidInputError

PLAIN = {"scores": ["brier_score:ipcw", "crps"], "times": [0.8], "horizon": 2.0, "discrimination": False}


def drawn(n: int = 80, seed: int = 0) -> tuple[np.ndarray, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    T, C = rng.weibull(1.5, n) * np.exp(0.7 * x[:, 0]), np.minimum(rng.uniform(0, 4, n), 3)
    return x, cs.RightCensored(np.minimum(T, C), T <= C)


def by_hand(x, y, cv, G, model) -> np.ndarray:
    """The mean loss of every subject over the samples that leave it out."""
    total, count = np.zeros(len(y)), np.zeros(len(y))
    for train, test in cv.split(x):
        F = model.fit(x[train], y.take(train)).predict_distribution(x[test])
        total[test] += cs.brier_score(y.take(test), F, G, [0.8], scale="ipcw")[:, 0]
        count[test] += 1
    return total / count


def test_it_is_a_splitter():
    cv = cs.Bootstrap(n_splits=12, random_state=3)
    pairs = list(cv.split(np.zeros((50, 1))))
    assert len(pairs) == cv.get_n_splits() == 12
    for train, test in pairs:
        assert len(train) == 50
        assert set(train) | set(test) == set(range(50))
        assert not set(train) & set(test)
    assert np.mean([len(test) for _, test in pairs]) == pytest.approx(50 * np.exp(-1), rel=0.15)
    groups = np.arange(50) // 5
    for train, test in cv.split(np.zeros((50, 1)), groups=groups):
        assert not set(groups[train]) & set(groups[test])
    (train, test), *_ = cs.Bootstrap(5, size=30, replace=False).split(np.zeros((50, 1)))
    assert (len(np.unique(train)), len(test)) == (30, 20)


def test_the_mean_is_the_leave_one_out_bootstrap():
    x, y = drawn()
    cv, models = cs.Bootstrap(25), {"cox": cs.CoxRegression()}
    found = cs.cross_validate(models, x, y, cv=cv, **PLAIN)
    G = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    losses = by_hand(x, y, cv, G, cs.CoxRegression())
    line = found.frame().query("model == 'cox' and score == 'brier_score:ipcw'").iloc[0]
    assert line["mean"] == pytest.approx(losses.mean(), rel=1e-12)
    assert line["n"] == found.settings["subjects"] == 80
    assert found.settings["events"] == int(y.event.sum())
    assert "25 bootstrap samples" in found.settings["cross-validation"]
    known = cs.cross_validate(models, x, y, cv=cv, censoring=G.take([0]), **PLAIN)
    assert known.frame()["mean"].to_numpy() == pytest.approx(found.frame()["mean"].to_numpy(), rel=1e-12)


def test_the_error_is_that_of_the_losses_averaged_over_samples_and_of_the_refits():
    """With a known censoring distribution: one loss per subject, and how its losses vary over the samples."""
    x, y = drawn()
    C = cs.Uniform(0.0, 4.0)
    cv = cs.Bootstrap(25)
    found = cs.cross_validate({"cox": cs.CoxRegression()}, x, y, cv=cv, censoring=C, **PLAIN)
    line = found.frame().query("model == 'cox' and score == 'brier_score:ipcw'").iloc[0]
    losses = np.full((80, 25), np.nan)
    for b, (train, test) in enumerate(cv.split(x)):
        F = cs.CoxRegression().fit(x[train], y.take(train)).predict_distribution(x[test])
        losses[test, b] = cs.brier_score(y.take(test), F, C, [0.8], scale="ipcw")[:, 0]
    spread = np.nanmean(losses, axis=1).std(ddof=1) / np.sqrt(80)
    estimate = found.estimate("cox", "brier_score:ipcw")
    assert np.sqrt((estimate.influence[:80] ** 2).sum()) == pytest.approx(spread, rel=1e-10)
    deviation = losses - np.nanmean(losses, axis=1, keepdims=True)
    left_out = ~np.isnan(losses)
    share = left_out / left_out.sum(axis=1, keepdims=True)
    deviation -= np.nansum(share * deviation, axis=0) / share.sum(axis=0)
    drawn_times = np.stack([np.bincount(train, minlength=80) for train, _ in cv.split(x)])
    varied = np.nansum(deviation**2, axis=1) / (left_out.sum(axis=1) - 1)
    refits = np.sqrt(varied.sum()) / 80 / drawn_times.std()
    assert 0.1 * spread < refits < spread
    assert line["standard_error"] == pytest.approx(np.hypot(spread, refits), rel=1e-10)
    assert "with the term of the refits" in found.method


def test_the_term_of_the_refits_of_a_symmetric_effect_is_what_the_spread_misses():
    r"""Losses :math:`\sum_jN_{bj}\varphi_{ij}/n` of a symmetric :math:`\varphi`: the truth is known."""
    n, B = 60, 400
    rng = np.random.default_rng(1)
    phi = rng.normal(size=(n, n))
    phi = (phi + phi.T) / np.sqrt(2)
    np.fill_diagonal(phi, 0.0)
    phi -= phi.mean(axis=0) + phi.mean(axis=1)[:, None] - phi.mean()
    times = rng.multinomial(n, np.full(n, 1 / n), size=B)
    sample, subject = np.nonzero(times == 0)
    losses = (times[sample] * phi[subject]).sum(axis=1, keepdims=True) / n
    left_out = np.bincount(subject, minlength=n)
    weight = 1 / n / left_out[subject]
    more = refit_influence(losses, weight, subject, sample, times)
    assert (more**2).sum() == pytest.approx((phi**2).sum() / n**4, rel=0.1)
    shift = refit_influence(losses + rng.normal(size=B)[sample, None], weight, subject, sample, times)
    np.testing.assert_allclose(shift, more, atol=2e-3)  # what a model loses with everybody is no term of it


def test_groups_are_the_units_of_the_term_of_the_refits():
    """Copies of every subject with one label change nothing."""
    x, y = drawn(40)
    copies = np.repeat(np.arange(40), 3)
    options = {"cv": cs.Bootstrap(12), "censoring": cs.Uniform(0.0, 4.0), **PLAIN}
    once = cs.cross_validate({"cox": cs.CoxRegression()}, x, y, **options)
    thrice = cs.cross_validate({"cox": cs.CoxRegression()}, x[copies], y[copies], groups=copies, **options)
    expected = once.frame()[["mean", "standard_error"]].to_numpy()
    np.testing.assert_allclose(thrice.frame()[["mean", "standard_error"]], expected, rtol=1e-6)


def test_samples_drawn_elsewhere_and_who_is_never_left_out():
    x, y = drawn(40)
    samples = np.array([np.r_[np.arange(20), np.arange(20)], np.r_[np.arange(10, 30), np.arange(10, 30)]])
    found = cs.cross_validate(
        {"cox": cs.CoxRegression()}, x, y, cv=cs.Bootstrap(samples=samples), reference=None, **PLAIN
    )
    assert any("10 of 40 subjects are in every bootstrap sample" in note for note in found.notes)
    assert found.settings["subjects"] == 30
    for wrong, match in [([[0, 40]] * 2, "from 0 to 39"), ([0, 1], "one row of subject numbers")]:
        with pytest.raises(InvalidInputError, match=match):
            cs.cross_validate({"cox": cs.CoxRegression()}, x, y, cv=cs.Bootstrap(samples=wrong), **PLAIN)
    for wrong in ([[0, 1], [0, 1, 2]], [[0.5, 1.0], [1.0, 2.0]]):
        with pytest.raises(CenscoreError, match="samples"):
            cs.Bootstrap(samples=wrong)
    with pytest.raises(InvalidInputError, match="repeats: got 2 together with Bootstrap"):
        cs.cross_validate({"km": cs.KaplanMeier()}, x, y, cv=cs.Folds(cs.Bootstrap(3), repeats=2), **PLAIN)
    with pytest.raises(InvalidInputError, match="without replacement"):
        next(cs.Bootstrap(size=40, replace=False).split(x))


def test_groups_subgroups_causes_and_discrimination():
    x, y = drawn(60)
    groups, side = np.arange(60) // 3, np.where(x[:, 1] > 0, "right", "left")
    options = PLAIN | {"discrimination": True}
    found = cs.cross_validate(
        {"cox": cs.CoxRegression()}, x, y, cv=cs.Bootstrap(20), groups=groups, by=side, **options
    )
    frame = found.frame()
    assert found.settings["groups"] == 20
    counts = frame.query("model == 'cox' and score == 'crps'").set_index("group")["n"].to_dict()
    assert counts == {"all": 60, "left": int((side == "left").sum()), "right": int((side == "right").sum())}
    auc = frame.query("score == 'auc' and model == 'cox' and group == 'all'").iloc[0]
    assert 0.5 < auc["mean"] < 1
    assert auc["standard_error"] > 0
    assert len(found.folds()["fold"].unique()) == 20
    causes = cs.CompetingRisks(y.time, np.where(y.event, 1 + (np.arange(60) % 2), 0), names=["a", "b"])
    of_causes = cs.cross_validate(
        {"aj": cs.AalenJohansen()}, None, causes, cv=cs.Bootstrap(5), reference=None, **PLAIN
    )
    assert np.isfinite(of_causes.frame()["mean"]).all()


def test_the_632_plus_estimate():
    x, y = drawn(40)
    cv, C = cs.Bootstrap(25, plus=True), cs.Uniform(0.0, 4.0)
    found = cs.cross_validate({"cox": cs.CoxRegression()}, x, y, cv=cv, censoring=C, **PLAIN)
    F = cs.CoxRegression().fit(x, y).predict_distribution(x)
    apparent = cs.brier_score(y, F, C, [0.8], scale="ipcw").mean()
    everyone = [cs.brier_score(y, F.take(np.full(40, j)), C, [0.8], scale="ipcw").mean() for j in range(40)]
    out, gamma = by_hand(x, y, cv, C, cs.CoxRegression()).mean(), np.mean(everyone)
    overfit = (out - apparent) / (gamma - apparent)
    w = 0.632 / (1 - 0.368 * overfit)
    line = found.frame().query("model == 'cox' and score == 'brier_score:ipcw'").iloc[0]
    assert 0 < overfit < 1
    assert line["mean"] == pytest.approx(w * out + (1 - w) * apparent, rel=1e-12)
    assert ".632+" in found.settings["cross-validation"]


def test_the_weight_is_one_where_nothing_is_learned_and_0632_without_overfitting():
    out, apparent, gamma = np.array([0.3, 0.2, 0.1, 0.4]), np.array([0.1, 0.2, 0.2, 0.1]), np.full(4, 0.3)
    assert plus_weight(out, apparent, gamma) == pytest.approx([1.0, 0.632, 0.632, 1.0])


@pytest.mark.parametrize("rounding", [-1e-15, 0.0, 1e-15])
def test_a_forecast_that_is_the_same_for_all_learns_nothing_whatever_the_rounding(rounding):
    apparent = np.array([0.4])
    assert plus_weight(np.array([0.5]), apparent, apparent * (1 + rounding)) == 0.632


def test_the_formula_of_632_plus_is_that_of_pec():
    """The error of forecasts without information bounds the out-of-bag error.

    pec 2022.05.04, ``pec(list(two = coxph(...)), splitMethod = "Boot632plus", B = 40, times = c(600, 1200))``
    on 172 subjects of ``gbsg``: AppErr, BootCvErr, NoInfErr and Boot632plusErr.
    """
    apparent, out, gamma = np.array(
        [[0.14984874, 0.20326142], [0.15966545, 0.21960991], [0.15524612, 0.23543303]]
    )
    w = plus_weight(out, apparent, gamma)
    found = w * np.minimum(out, gamma) + (1 - w) * apparent
    assert found == pytest.approx([0.15524612, 0.21597028], abs=1e-8)
    _, y = drawn(30)
    noise = np.random.default_rng(5).normal(size=(30, 6))  # a model of noise, worse than no information
    cv, C = cs.Bootstrap(25, plus=True), cs.Uniform(0.0, 4.0)
    found = cs.cross_validate({"cox": cs.CoxRegression()}, noise, y, cv=cv, censoring=C, **PLAIN)
    F = cs.CoxRegression().fit(noise, y).predict_distribution(noise)
    gamma = np.mean(
        [cs.brier_score(y, F.take(np.full(30, j)), C, [0.8], scale="ipcw").mean() for j in range(30)]
    )
    assert by_hand(noise, y, cv, C, cs.CoxRegression()).mean() > gamma
    line = found.frame().query("model == 'cox' and score == 'brier_score:ipcw'").iloc[0]
    assert line["mean"] == pytest.approx(gamma, rel=1e-12)
