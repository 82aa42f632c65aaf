"""``censoring="auto"``: Kaplan-Meier, or a regression of C where the covariates predict it."""

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.estimators.censoring.censoring_choice import choose_censoring


def table(n, seed, effect):
    """Covariates of an ordinary table (numbers with gaps, text), and censoring that depends on them."""
    rng = np.random.default_rng(seed)
    x, site = rng.normal(size=n), rng.choice(["north", "south", "west"], n)
    T = rng.weibull(1.5, n) * np.exp(-0.5 * x)
    C = rng.exponential(2.0, n) * np.exp(effect * (x + (site == "south")))
    X = pd.DataFrame({"x": x, "site": site, "noise": rng.normal(size=n)})
    X.loc[::17, "noise"] = np.nan
    return X, cs.RightCensored(np.minimum(T, C), T <= C)


FORECASTS = {"early": cs.Weibull(1.5, 0.9), "late": cs.Weibull(1.5, 1.4)}


def test_where_the_covariates_do_not_predict_censoring_it_is_kaplan_meier():
    X, y = table(400, 0, 0.0)
    found = cs.compare(FORECASTS, y, "auto", X=X)
    pooled = cs.compare(FORECASTS, y, cs.Censoring(cs.KaplanMeier()), X=X)
    pd.testing.assert_frame_equal(found.frame(), pooled.frame())
    assert any(note.startswith("censoring='auto': Kaplan-Meier, since") for note in found.notes)


def test_where_they_do_it_is_a_regression_and_both_answers_are_told():
    X, y = table(400, 1, 0.8)
    found = cs.compare(FORECASTS, y, "auto", X=X)
    chosen = choose_censoring(X, y).censoring
    pd.testing.assert_frame_equal(found.frame(), cs.compare(FORECASTS, y, chosen, X=X).frame())
    assert any(
        "Cox regression, since covariates predict censoring: p < 0.001" in note for note in found.notes
    )
    (told,) = [note for note in found.notes if note.startswith("With a pooled Kaplan-Meier")]
    assert "in place of" in told
    assert not found.censoring.warnings


def test_in_folds_the_choice_is_made_once():
    X, y = table(300, 2, 0.8)
    models = {"exponential": lambda X_train, y_train, X_test: FORECASTS["early"]}
    found = cs.cross_validate(models, X, y, cv=3, censoring="auto", discrimination=False)
    assert sum("Cox regression, since" in note for note in found.notes) == 1
    assert sum(note.startswith("With a pooled") for note in found.notes) == 1
    assert "Cox" in found.settings["censoring distribution"]


def test_causes_several_times_and_intervals():
    X, y = table(300, 3, 0.8)
    cause = np.where(y.event, 1 + (np.arange(300) % 2), 0)
    risks = cs.CompetingRisks(y.time, cause)
    F = cs.CauseSpecificHazards([cs.Exponential(0.5), cs.Exponential(0.5)])
    assert any("Cox" in note for note in cs.compare({"one": F}, risks, "auto", X=X, scores="crps").notes)
    ends = np.column_stack([y.time, y.time + 0.1])
    several = cs.RightCensored(ends, np.column_stack([y.event, y.event]))
    pair = {"one": cs.Independent([cs.Exponential(1.0), cs.Exponential(1.0)])}
    assert any("Cox" in note for note in cs.compare(pair, several, "auto", X=X, scores="crps").notes)
    seen = cs.IntervalCensored([0.0, 1.0, 2.0] * 20, [1.0, 2.0, np.inf] * 20, visits=[1.0, 2.0])
    assert cs.compare({"one": cs.Exponential(0.5)}, seen, "auto").settings["subjects"] == 60


def test_known_censoring_times_stay_known():
    X, y = table(200, 4, 0.8)
    known = cs.RightCensored(y.time, y.event, censoring_time=np.where(y.event, y.time + 1.0, y.time))
    found = cs.compare(FORECASTS, known, "auto", X=X, discrimination=False, scores="crps")
    assert found.settings["censoring distribution"].startswith("known")


def test_another_word_is_an_error():
    X, y = table(50, 5, 0.0)
    with pytest.raises(cs.exceptions.InvalidInputError, match="expected 'auto'"):
        cs.compare(FORECASTS, y, "cox", X=X)


def test_at_landmarks_it_is_chosen_as_elsewhere():
    """All enter at the landmark, before anyone leaves: nobody is missing from the test."""
    X, y = table(500, 4, 0.8)
    found = cs.compare_landmarks(FORECASTS, y, "auto", landmarks=[0.2, 0.5], X=X, discrimination=False)
    for s, comparison in zip((0.2, 0.5), found, strict=True):
        assert any("Cox regression, since covariates predict" in note for note in comparison.notes)
        assert not comparison.censoring.warnings
        rows, after = np.flatnonzero(y.at_risk(s)), y.after(s)
        from_s = cs.RightCensored(after.time - s, after.event)
        words = [choose_censoring(X.iloc[rows], each).words for each in (after, from_s)]
        assert words[0] == words[1]


def test_no_test_where_some_enter_after_others_have_left():
    X, y = table(300, 5, 0.8)
    late = cs.RightCensored(y.time, y.event, entry=0.5 * y.time)
    assert "no test was made: subjects enter late" in choose_censoring(X, late).words
