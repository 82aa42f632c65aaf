"""Comparisons at landmarks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 1))
T, C = 2 * np.exp(0.5 * X[:, 0]) * RNG.weibull(1.5, 300), RNG.uniform(0, 6, 300)
Y = cs.RightCensored(np.minimum(T, C), T <= C)
MODELS = {"scale": cs.Weibull(1.5, 2 * np.exp(0.5 * X[:, 0])), "flat": cs.Weibull(1.5, 2.0)}
G = cs.Uniform(0.0, 6.0)


def test_each_landmark_is_the_score_given_survival():
    found = cs.compare_landmarks(
        MODELS, Y, G, landmarks=[1.5, 0.5], window=1.0, scores="brier_score", groups=np.arange(300) // 2
    )
    assert found.landmarks.tolist() == [0.5, 1.5]
    table = found.frame()
    for s in (0.5, 1.5):
        here = Y.time > s
        assert table[table.landmark == s].at_risk.unique().tolist() == [here.sum()]
        for name, F in MODELS.items():
            given = F.take(here).given_survival(s)
            plain = cs.RightCensored(Y.time[here], Y.event[here])
            expected = cs.brier_score(plain, given, G, s + 1.0).mean()
            line = table[(table.landmark == s) & (table.model == name)]
            assert line["mean"].item() == pytest.approx(expected, rel=1e-10)
    assert set(found.differences().landmark) == {0.5, 1.5}
    assert "0.5 (" in repr(found)
    assert len(found.plot().axes[0].lines) >= 2
    with pytest.raises(InvalidInputError, match="score: got 'crps'"):
        found.plot("crps")


def test_predictions_made_at_the_landmark():
    F = MODELS["scale"]
    both = {"fixed": F, "anew": lambda s, subjects: F.take(subjects).given_survival(s)}
    found = cs.compare_landmarks(both, Y, G, landmarks=[1.0], scores="crps")
    means = found.frame().set_index("model")["mean"]
    assert means["anew"] == pytest.approx(means["fixed"], rel=1e-10)


def test_models_and_an_estimated_censoring_distribution():
    model = cs.CoxRegression().fit(X[:150], Y[:150])
    found = cs.compare_landmarks(
        {"cox": model}, Y[150:], cs.Censoring(cs.KaplanMeier()), X=X[150:], train=(X[:150], Y[:150]),
        landmarks=[0.5, 1.0], window=1.0, scores="brier_score",
    )  # fmt: skip
    assert (found.frame()["standard_error"] > 0).all()
    assert "kaplan-meier" in set(found.frame()["model"])


def test_rows_of_intervals():
    table = pd.DataFrame(
        [["b", 0, 1, 0, 3], ["a", 2, 5, 1, 9], ["a", 0, 2, 0, 7], ["c", 1, 4, 0, 4]],
        columns=["id", "start", "stop", "event", "x"],
    )
    rows, y = cs.at_landmark(table, 2.0)
    assert rows["x"].tolist() == [9, 4]
    assert (y.time.tolist(), y.event.tolist(), y.entry.tolist()) == ([5.0, 4.0], [True, False], [2.0, 2.0])
    rows, y = cs.at_landmark(table, 0.0)
    assert rows["x"].tolist() == [7, 3]
    assert not y.has_delayed_entry
    with pytest.raises(InvalidInputError, match="No subject is at risk at 5"):
        cs.at_landmark(table, 5.0)
    with pytest.raises(InvalidInputError, match=r"Columns \['subject'\]"):
        cs.at_landmark(table, 1.0, id="subject")
    table.loc[2, "stop"] = 3
    with pytest.raises(InvalidInputError, match=r"must not overlap.*1 subjects \(id = a"):
        cs.at_landmark(table, 1.0)


def test_bad_landmarks():
    with pytest.raises(InvalidInputError, match="at least one time"):
        cs.compare_landmarks(MODELS, Y, G, landmarks=[])
    with pytest.raises(InvalidInputError, match="times and window"):
        cs.compare_landmarks(MODELS, Y, G, landmarks=[1.0], window=1.0, times=[2.0])
    with pytest.raises(InvalidInputError, match="No subject is at risk after 99"):
        cs.compare_landmarks(MODELS, Y, G, landmarks=[99.0])
