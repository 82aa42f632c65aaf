"""Cox regression with strata: a baseline for each, and one set of coefficients."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

import censcore as cs
from censcore.exceptions import InvalidInputError

TIES = ["product-limit", "efron", "breslow"]


def drawn(n: int = 200, seed: int = 0, tied: bool = False) -> tuple[pd.DataFrame, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
    frame["site"] = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    scale = frame["site"].map({"a": 1.0, "b": 3.0, "c": 0.4}).to_numpy()
    T, C = scale * rng.weibull(1.4, n) * np.exp(-0.6 * frame["x"].to_numpy()), rng.uniform(0, 3, n)
    time = np.minimum(T, C)
    return frame, cs.RightCensored(np.ceil(5 * time) / 5 if tied else time, T <= C)


def test_the_partial_likelihood_is_the_product_over_strata():
    """Breslow's, by brute force, also where subjects enter late."""
    frame, y = drawn(120)
    entry = np.random.default_rng(1).uniform(0, 0.9, 120) * y.time
    late = cs.RightCensored(y.time, y.event, entry=entry)
    Z, site = frame[["x", "z"]].to_numpy(), frame["site"].to_numpy()
    for outcome, start in ((y, np.full(120, -1.0)), (late, entry)):

        def loss(gamma, start=start):
            eta = Z @ gamma
            total = 0.0
            for i in np.nonzero(y.event)[0]:
                at_risk = (site == site[i]) & (y.time >= y.time[i]) & (start < y.time[i])
                total += np.log(np.exp(eta[at_risk]).sum()) - eta[i]
            return total

        expected = minimize(loss, np.zeros(2), tol=1e-10).x
        model = cs.CoxRegression(ties="breslow", strata="site").fit(frame, outcome)
        assert model.coef_ == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("ties", TIES)
def test_given_the_coefficients_each_stratum_has_its_own_baseline(ties):
    frame, y = drawn(tied=True)
    model = cs.CoxRegression(ties=ties, strata="site").fit(frame, y)
    assert model.columns_ == ["x", "z"]
    assert model.strata_.tolist() == ["a", "b", "c"]
    F = model.predict_distribution(frame)
    for i, site in enumerate("abc"):
        here = np.nonzero((frame["site"] == site).to_numpy())[0]
        alone = cs.CoxRegression(ties=ties, strata="site").fit(frame.iloc[here], y.take(here))
        times = model.baseline_times_[model.baseline_strata_ == i]
        assert times.tolist() == np.unique(y.time[here][y.event[here]]).tolist()
        assert len(alone.strata_) == 1
        assert (np.diff(F.take(here[:3]).sf(np.linspace(0.1, 2, 9)[None, :]), axis=1) <= 0).all()
    if ties == "product-limit":
        only = cs.CoxRegression(strata="site").fit(frame[["site"]], y)
        km = cs.KaplanMeier(stratify="site").fit(frame[["site"]], y)
        at = np.linspace(0.1, 2, 9)[None, :]
        np.testing.assert_allclose(
            only.predict_distribution(frame[["site"]]).sf(at), km.predict_distribution(frame[["site"]]).sf(at)
        )


@pytest.mark.parametrize("ties", TIES)
def test_one_stratum_is_none(ties):
    frame, y = drawn(tied=True)
    frame["site"] = 1
    plain = cs.CoxRegression(ties=ties).fit(frame[["x", "z"]], y)
    model = cs.CoxRegression(ties=ties, strata="site").fit(frame, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-10)
    np.testing.assert_allclose(model.covariance_, plain.covariance_, rtol=1e-9)
    np.testing.assert_allclose(model.baseline_hazard_, plain.baseline_hazard_, rtol=1e-10)
    np.testing.assert_allclose(model.coefficient_influence(), plain.coefficient_influence(), atol=1e-11)
    by_number = cs.CoxRegression(ties=ties, strata=2).fit(frame.to_numpy(), y)
    np.testing.assert_allclose(by_number.coef_, plain.coef_, rtol=1e-10)


@pytest.mark.parametrize("ties", TIES)
def test_influences_are_derivatives_by_the_weights(ties):
    frame, y = drawn(80, tied=True)

    def coef(weight):
        return cs.CoxRegression(ties=ties, strata="site").fit(frame, y, weight).coef_

    influence = cs.CoxRegression(ties=ties, strata="site").fit(frame, y).coefficient_influence()
    assert np.abs(influence.sum(axis=0)).max() < 1e-9
    for i in range(0, 80, 9):
        up, down = (coef(1 + sign * 1e-4 * (np.arange(80) == i)) for sign in (1, -1))
        assert influence[i] == pytest.approx((up - down) / 2e-4, abs=1e-5)


def test_strata_without_events_and_unknown_ones():
    frame, y = drawn()
    quiet = cs.RightCensored(y.time, y.event & (frame["site"] != "b").to_numpy())
    model = cs.CoxRegression(strata="site").fit(frame, quiet)
    of_b = model.predict_distribution(frame[frame["site"] == "b"])
    assert (np.asarray(of_b.sf(2.0)) == 1.0).all()
    with pytest.raises(InvalidInputError, match="not seen in fitting"):
        model.predict_distribution(frame.assign(site="d"))
    with pytest.raises(InvalidInputError, match="no column 'center'"):
        cs.CoxRegression(strata="center").fit(frame, y)
    assert clone(model).strata == "site"


def test_it_serves_as_a_censoring_distribution_and_in_a_cross_validation():
    frame, y = drawn(90)
    C = cs.Censoring(cs.CoxRegression(strata="site"), refits=5)
    found = cs.cross_validate(
        {"cox": cs.CoxRegression(strata="site")}, frame, y, cv=3, censoring=C, scores="crps", horizon=1.0,
        discrimination=False,
    )  # fmt: skip
    assert np.isfinite(found.frame()["standard_error"]).all()
    assert "bootstrap" in found.settings["standard errors"]


@pytest.mark.parametrize("ties", TIES)
def test_columns_that_say_nothing_within_strata_are_left_out(ties):
    """Constant in every stratum, or a combination of others there; as coxph, with a note that names them."""
    frame, y = drawn(tied=True)
    level = frame["site"].map({"a": 1.0, "b": 5.0, "c": 2.5})
    wide = frame.assign(level=level, shifted=frame["x"] - 2 * level**2, copy=frame["site"])
    model = cs.CoxRegression(ties=ties, strata="site").fit(wide, y)
    plain = cs.CoxRegression(ties=ties, strata="site").fit(frame, y)
    assert model.columns_ == ["x", "z"]
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-10)
    np.testing.assert_allclose(model.covariance_, plain.covariance_, rtol=1e-10)
    (note,) = [note for note in model.notes_ if "within every risk set" in note]
    assert "level, shifted" in note
    at = np.linspace(0.1, 2, 9)[None, :]
    found, expected = (m.predict_distribution(X).sf(at) for m, X in ((model, wide), (plain, frame)))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    only = cs.CoxRegression(ties=ties, strata="site").fit(wide[["level", "site"]], y)
    assert only.columns_ == []
    assert only.covariance_.shape == (0, 0)


def test_a_column_that_varies_among_nobody_at_risk_together_is_left_out():
    """Without strata too: only those who leave before the first event differ in it."""
    frame, y = drawn()
    first = y.time[y.event].min()
    frame["early"] = np.where(y.time < first, np.arange(len(frame)), 0.0)
    assert frame["early"].std() > 0
    model = cs.CoxRegression().fit(frame[["x", "z", "early"]], y)
    assert model.columns_ == ["x", "z"]
    assert any("every risk set: early" in note for note in model.notes_)
