"""A forecast that is known at one time is judged at that time, and nothing is invented beside it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError, UnknownCurveError

HORIZON = 5.0
CURVES = ["integrated_brier_score:ipcw", "crps", "log_score"]


@pytest.fixture(scope="module")
def data() -> tuple[cs.RightCensored, cs.Weibull]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=800)
    true = cs.Weibull(1.5, 6 * np.exp(-0.5 * x))
    T, C = true.sample(1, seed=1)[:, 0], rng.uniform(2, 12, 800)
    return cs.RightCensored(np.minimum(T, C), T <= C), true


def at_five(true: cs.Weibull) -> cs.Distribution:
    return cs.as_forecast(true.sf(HORIZON), times=HORIZON)


def compare(forecasts: object, y: cs.RightCensored, **options: object) -> cs.evaluation.Comparison:
    return cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier()), **options)


@pytest.mark.parametrize(
    ("sf", "times"),
    [([0.3, 0.4], 5.0), ([[0.3], [0.4]], [5.0]), ([[1.0, 0.3], [1.0, 0.4]], [0.0, 5.0])],
)
def test_one_column_is_no_curve(sf, times):
    F = cs.as_forecast(np.array(sf), times=times)
    assert F.only_time == 5.0
    np.testing.assert_allclose(F.sf(5.0), [0.3, 0.4])
    np.testing.assert_allclose(F[1].cdf(5.0 * (1 + 1e-9)), [0.6])
    for ask in (lambda: F.sf(4.0), lambda: F.icdf(0.5), F.mean, lambda: F.logpdf(5.0), lambda: F.sample(2)):
        with pytest.raises(UnknownCurveError, match="known at t = 5 alone"):
            ask()


@pytest.mark.parametrize(
    "reading", [{"interpolation": "step"}, {"interpolation": "linear"}, {"tail": "last"}]
)
def test_a_curve_is_made_of_it_only_if_asked_for(reading):
    assert cs.as_forecast(np.array([[0.3], [0.4]]), times=[5.0], **reading).only_time is None


@pytest.mark.parametrize("score", [cs.crps, cs.integrated_brier_score, cs.log_score, cs.energy_score])
def test_scores_of_curves_are_errors(data, score):
    y, true = data
    with pytest.raises(UnknownCurveError, match="known at t = 5 alone"):
        score(y, at_five(true), cs.Uniform(2.0, 12.0))


@pytest.mark.parametrize("options", [{}, {"times": [5], "horizon": 5}, {"horizon": 5.0}, {"times": [5.0]}])
def test_the_true_risks_at_one_time(data, options):
    y, true = data
    found = compare({"true": at_five(true)}, y, **options)
    curve = compare({"true": true}, y, times=[HORIZON], horizon=9.0)
    frame = found.frame().query("model == 'true'").set_index("score")
    expected = curve.frame().query("model == 'true'").set_index("score")
    for name in ("brier_score:ipcw", "auc"):
        assert frame.loc[name, "mean"] == pytest.approx(expected.loc[name, "mean"], rel=1e-12)
        assert frame.loc[name, "standard_error"] == pytest.approx(
            expected.loc[name, "standard_error"], rel=1e-9
        )
    assert (frame.loc[CURVES, "note"] == "not available").all()
    assert frame.loc[CURVES, "mean"].isna().all()
    assert found.settings["times"] == [HORIZON]
    verdict = found.verdict
    assert (verdict.score, verdict.at, verdict.best) == ("brier_score:ipcw", HORIZON, "true")
    assert "agree with the observed ones" in str(verdict)
    assert "D-calibration" not in str(verdict)
    assert not any("depends on how" in note or "straight" in note for note in found.notes)
    assert sum("known at t = 5 alone" in note for note in found.notes) == 1
    known = found.calibration("true"), curve.calibration("true", HORIZON)
    assert known[0].ici == pytest.approx(known[1].ici, rel=1e-9)
    net = [c.net_benefit(HORIZON, [0.4]).query("model == 'true'").net_benefit.item() for c in (found, curve)]
    assert net[0] == pytest.approx(net[1], rel=1e-12)


def test_follow_up_that_is_cut_at_the_time(data):
    """Whoever is censored at the horizon has not had the event by then."""
    y, true = data
    whole = compare({"true": at_five(true)}, y, times=[5], horizon=5)
    cut = compare({"true": at_five(true)}, y.censor_at(HORIZON), times=[5], horizon=5)
    automatic = compare({"true": at_five(true)}, y.censor_at(HORIZON))
    for other in (cut, automatic):
        pd.testing.assert_frame_equal(other.frame(), whole.frame(), rtol=1e-9)
        assert other.settings["horizon"] == HORIZON
    mixed = compare({"true": at_five(true), "curve": true}, y.censor_at(HORIZON))
    same = mixed.frame().query("score == 'brier_score:ipcw' and model != 'kaplan-meier'")["mean"].to_numpy()
    assert same[0] == pytest.approx(same[1], rel=1e-12)


def test_a_curve_beside_it_is_scored_everywhere(data):
    y, true = data
    found = compare({"one": at_five(true), "curve": true}, y, times=[3, 5, 7])
    frame = found.frame(discrimination=False).query("score == 'brier_score:ipcw'").set_index(["at", "model"])
    assert frame.loc[(5.0, "one"), "mean"] == pytest.approx(frame.loc[(5.0, "curve"), "mean"], rel=1e-12)
    assert frame.loc[[(3.0, "one"), (7.0, "one")], "mean"].isna().all()
    assert (frame.loc[[(3.0, "one"), (7.0, "one")], "note"] == "not available").all()
    assert frame.loc[[(3.0, "curve"), (7.0, "curve")], "mean"].notna().all()
    assert found.verdict.at == HORIZON
    assert set(found.net_benefit(3.0).model) >= {"curve", "treat all"}
    assert "one" not in set(found.net_benefit(3.0).model)
    assert "known at t = 5 alone" in found.to_html()


def test_concordance_is_by_the_risk_at_the_time(data):
    y, true = data
    found = (
        compare({"one": at_five(true)}, y).frame().query("score == 'concordance:harrell'").set_index("model")
    )
    risk = true.cdf(HORIZON)
    expected = cs.evaluation.concordance(y, risk, horizon=HORIZON)
    assert found.loc["one", "mean"] == pytest.approx(float(np.ravel(expected)[0]), rel=1e-9)


def test_every_score_and_all_levels(data):
    y, true = data
    frame = compare({"one": at_five(true), "curve": true}, y, scores="all").frame(discrimination=False)
    known = set(frame.query("model == 'one' and mean == mean").score)
    assert known == {"brier_score:ipcw", "brier_score", "binomial_log_score"}


def test_delayed_entry_needs_the_survival_to_the_entry(data):
    y, true = data
    late = cs.RightCensored(y.time, y.event, entry=np.where(np.arange(800) % 2, y.time / 2, 0.0))
    with pytest.raises(UnknownCurveError, match="'one', given survival to the entry"):
        compare({"one": at_five(true)}, late)


def test_in_cross_validation_and_folds(data):
    y, true = data
    x = np.log(true.scale.reshape(-1, 1)) if hasattr(true, "scale") else np.arange(800.0).reshape(-1, 1)

    def model(X_train, y_train, X_test):
        curve = cs.CoxRegression(alpha=1.0).fit(X_train, y_train).predict_distribution(X_test)
        return cs.as_forecast(curve.sf(HORIZON), times=HORIZON)

    found = cs.cross_validate({"one": model}, x, y, cv=cs.Folds(3, repeats=2))
    assert found.settings["times"] == [HORIZON]
    assert found.verdict.score == "brier_score:ipcw"


def test_probabilities_of_the_event_get_a_hint(data):
    y, true = data
    wrong = compare({"wrong": cs.as_forecast(true.cdf(HORIZON), times=HORIZON)}, y)
    assert any("pass 1 - f" in note.lower() and "AUC 0.2" in note for note in wrong.notes)
    assert not any("wrong way round" in note for note in compare({"right": at_five(true)}, y).notes)


def test_cumulative_incidences_at_one_time():
    rng = np.random.default_rng(0)
    names, rate = ["relapse", "death"], 0.2 * np.exp(rng.normal(size=500))
    truth = cs.CauseSpecificHazards([cs.Exponential(rate), cs.Exponential(np.full(500, 0.1))], names=names)
    time, cause = (draws[:, 0] for draws in truth.sample(1, seed=1))
    c = rng.uniform(0, 8, 500)
    y = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0), names=names)
    F = cs.as_competing_forecast(truth.cif([[3.0]]).reshape(500, 2, 1), times=[3.0], names=names)
    found, curve = compare({"truth": F}, y), compare({"truth": truth}, y, times=[3.0], horizon=4.0)
    key = ["score", "outcome"]
    frames = [
        each.frame(discrimination=False).query("model == 'truth'").set_index(key)["mean"]
        for each in (found, curve)
    ]
    for outcome in ("all causes", *names, "any cause"):
        brier = [frame["brier_score:ipcw", outcome] for frame in frames]
        assert brier[0] == pytest.approx(brier[1], rel=1e-12)
        assert np.isnan(frames[0]["crps", outcome])
    with pytest.raises(InvalidInputError, match="is for one time; got 2 times"):
        cs.CumulativeIncidence([1.0, 2.0], [[0.1, 0.2]], interpolation="none")


def test_a_table_in_batches_gives_the_same(data, tmp_path):
    """Also where follow-up is cut at the time."""
    y, true = data
    cut = y.censor_at(HORIZON)
    columns = {"time": cut.time, "event": cut.event.astype(int), "one__sf@5": true.sf(HORIZON)}
    pd.DataFrame(columns).to_csv(tmp_path / "table.csv", index=False)
    table = cs.OutcomeTable(tmp_path / "table.csv", time="time", event="event", rows=300)
    found = cs.compare("columns", table, cs.Censoring(cs.KaplanMeier()), discrimination=False)
    expected = compare({"one": at_five(true)}, cut, discrimination=False)
    pd.testing.assert_frame_equal(found.frame(), expected.frame(), rtol=1e-7)
    assert found.settings["horizon"] == expected.settings["horizon"] == HORIZON
