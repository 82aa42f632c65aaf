"""Comparisons at landmarks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.exceptions import HorizonError, InvalidInputError, InvalidTypeError

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
    table = found.frame(discrimination=False)
    for s in (0.5, 1.5):
        here = Y.time > s
        assert table[table.landmark == s].at_risk.unique().tolist() == [here.sum()]
        for name, F in MODELS.items():
            given = F.take(here).given_survival(s)
            plain = cs.RightCensored(Y.time[here], Y.event[here])
            expected = cs.brier_score(plain, given, G, s + 1.0).mean()
            line = table[(table.landmark == s) & (table.model == name)]
            assert line["mean"].item() == pytest.approx(expected, rel=1e-10)
    assert set(found.differences(discrimination=False).landmark) == {0.5, 1.5}
    assert "0.5 (" in repr(found)
    assert len(found.plot().axes[0].lines) >= 2
    with pytest.raises(InvalidInputError, match="score: got 'crps'"):
        found.plot("crps")


def test_predictions_made_at_the_landmark():
    F = MODELS["scale"]
    both = {1: F, "anew": lambda s, subjects: F.take(subjects).given_survival(s)}
    found = cs.compare_landmarks(both, Y, G, landmarks=[1.0], scores="crps")
    means = found.frame(discrimination=False).set_index("model")["mean"]
    assert means["anew"] == pytest.approx(means["1"], rel=1e-10)


def test_models_and_an_estimated_censoring_distribution():
    model = cs.CoxRegression().fit(X[:150], Y[:150])
    found = cs.compare_landmarks(
        {"cox": model}, Y[150:], cs.Censoring(cs.KaplanMeier()), X=X[150:], train=(X[:150], Y[:150]),
        landmarks=[0.5, 1.0], window=1.0, scores="brier_score",
    )  # fmt: skip
    assert (found.frame(discrimination=False)["standard_error"] > 0).all()
    assert "kaplan-meier" in set(found.frame(discrimination=False)["model"])


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
    with pytest.raises(InvalidInputError, match=r"must not overlap.*1 subject \(first id = a"):
        cs.at_landmark(table, 1.0)


def test_a_landmark_is_a_comparison_of_those_at_risk():
    groups = np.arange(300) // 2
    options = {"scores": "brier_score", "discrimination": False}
    found = cs.compare_landmarks(MODELS, Y, G, landmarks=[0.5, 1.5], window=1.0, groups=groups, **options)
    assert isinstance(found, cs.evaluation.LandmarkComparison)
    for s, here in zip((0.5, 1.5), found, strict=True):
        rows = np.nonzero(Y.time > s)[0]
        models = {name: F if len(F) == 1 else F.take(rows) for name, F in MODELS.items()}
        expected = cs.compare(models, Y.after(s), G, times=[s + 1.0], groups=groups[rows], **options)
        pd.testing.assert_frame_equal(here.frame(), expected.frame())
        pd.testing.assert_frame_equal(here.differences(), expected.differences())
    at_zero = cs.compare_landmarks(MODELS, Y, G, landmarks=0.0, scores="crps")[0]
    plain = cs.compare(MODELS, Y, G, scores="crps", discrimination=False)
    pd.testing.assert_frame_equal(at_zero.frame(discrimination=False), plain.frame(discrimination=False))


def test_predictions_of_each_landmark_are_a_mapping():
    early, late = (Y.time > s for s in (0.5, 1.5))
    cox = {s: cs.CoxRegression().fit(X[Y.time > s], Y.after(s)) for s in (0.5, 1.5)}
    models = {
        "of those at risk": {0.5: cs.Weibull(1.5, 2 + X[early, 0] / 5), 1.5: cs.Weibull(1.5, 3.0)},
        "of all": {0.5: cs.Weibull(1.5, 2 + X[:, 0] / 5), 1.5: cs.Weibull(1.5, np.full(300, 3.0))},
        "models": cox,
        "with covariates": {0.5: (cox[0.5], X[early]), 1.5: (cox[1.5], X[late])},
        "predicted": lambda s, subjects: cox[s].predict_distribution(X[subjects]),
    }  # fmt: skip
    found = cs.compare_landmarks(models, Y, G, X=X, landmarks=[0.5, 1.5], scores="crps", horizon=5.0)
    for i, (s, here) in enumerate(((0.5, early), (1.5, late))):
        means = found[i].frame(discrimination=False).set_index("model")["mean"]
        assert means["of those at risk"] == pytest.approx(means["of all"], rel=1e-12)
        F = models["of all"][s].take(here).given_survival(s)
        expected = cs.crps(cs.RightCensored(Y.time[here], Y.event[here]), F, G, horizon=5.0).mean()
        assert means["of all"] == pytest.approx(expected, rel=1e-10)
        assert means["models"] == pytest.approx(means["predicted"], rel=1e-12)
        assert means["models"] == pytest.approx(means["with covariates"], rel=1e-12)
    with pytest.raises(InvalidInputError, match=r"'m' has none at the landmark 1; got forecasts at \[0.5\]"):
        cs.compare_landmarks({"m": {0.5: cs.Weibull(1.5, 2.0)}}, Y, G, landmarks=[0.5, 1.0])


def test_labels_and_covariates_follow_the_subjects_at_risk():
    side = np.where(X[:, 0] > 0, "right", "left")
    model = cs.CoxRegression().fit(X, Y)
    models = {"all": model, "pair": (model, X)}
    found = cs.compare_landmarks(models, Y, G, X=X, landmarks=[1.0], scores="crps", by={"side": side})
    again = cs.compare_landmarks(models, Y, G, X=X, landmarks=[1.0], scores="crps", by=side)
    here = Y.time > 1.0
    by_hand = cs.compare(
        {"all": model}, Y.after(1.0), G, X=X[here], scores="crps", by={"side": side[here]}, reference=None
    )
    table = found.frame(discrimination=False).query("model == 'all'")["mean"].to_numpy()
    assert table == pytest.approx(by_hand.frame(discrimination=False)["mean"].to_numpy(), rel=1e-12)
    assert table == pytest.approx(
        found.frame(discrimination=False).query("model == 'pair'")["mean"].to_numpy(), rel=1e-12
    )
    assert table == pytest.approx(
        again.frame(discrimination=False).query("model == 'all'")["mean"].to_numpy(), rel=1e-12
    )
    assert len(table) == 3


def test_bad_landmarks():
    with pytest.raises(InvalidInputError, match=r"groups must have one label per subject, \(300,\); got"):
        cs.compare_landmarks(MODELS, Y, G, landmarks=[1.0], groups=np.arange(301))
    with pytest.raises(InvalidInputError, match="by: 'side' must have one label per subject"):
        cs.compare_landmarks(MODELS, Y, G, landmarks=[1.0], by={"side": np.arange(2)})
    with pytest.raises(InvalidInputError, match=r"window must be a finite number above 0; got -1\.0"):
        cs.compare_landmarks(MODELS, Y, G, landmarks=[1.0], window=-1.0)
    with pytest.raises(InvalidTypeError, match="must be a dictionary"):
        cs.compare_landmarks([MODELS["flat"]], Y, G, landmarks=[1.0])
    with pytest.raises(TypeError, match="unexpected keyword argument 'window'"):
        cs.compare(MODELS, Y, G, window=1.0)
    with pytest.raises(InvalidInputError, match="at least one time"):
        cs.compare_landmarks(MODELS, Y, G, landmarks=[])
    with pytest.raises(InvalidInputError, match="times and window"):
        cs.compare_landmarks(MODELS, Y, G, landmarks=[1.0], window=1.0, times=[2.0])
    with pytest.raises(InvalidInputError, match="No subject is at risk after 99"):
        cs.compare_landmarks(MODELS, Y, G, landmarks=[99.0])


def test_a_landmark_that_follow_up_does_not_support_is_left_out_by_name():
    """With a horizon of the caller's, and where none is left, it is an error that names it."""
    asked = {"censoring": cs.Censoring(cs.KaplanMeier()), "window": 1.0, "scores": "brier_score"}
    found = cs.compare_landmarks(MODELS, Y, landmarks=[0.5, 1.0, 4.5], **asked)
    assert found.landmarks.tolist() == [0.5, 1.0]
    assert [len(part) for part in (found.comparisons, found.at_risk)] == [2, 2]
    (note,) = found.notes
    assert note.startswith("At the landmark 4.5: times must lie between 0 and the horizon")
    assert note.endswith("The landmark is left out.")
    assert f"note: {note}" in repr(found)
    alone = cs.compare_landmarks(MODELS, Y, landmarks=[0.5, 1.0], **asked)
    assert found.average().equals(alone.average())
    assert alone.notes == []
    with pytest.raises(HorizonError, match=r"At the landmark 1: times .* the horizon, 1\.8; got \[2\.0\]"):
        cs.compare_landmarks(MODELS, Y, landmarks=[0.5, 1.0], horizon=1.8, **asked)
    with pytest.raises(HorizonError, match=r"At the landmark 4\.5: times"):
        cs.compare_landmarks(MODELS, Y, landmarks=[4.4, 4.5], **asked)
    with pytest.raises(InvalidInputError, match="At the landmark 99: No subject is at risk"):
        cs.compare_landmarks(MODELS, Y, landmarks=[1.0, 99.0], **asked)


# ---- competing risks -------------------------------------------------------------------------------

NAMES = ["relapse", "death"]
RATES = np.stack([0.5 * np.exp(0.6 * X[:, 0]), 0.3 * np.exp(-0.4 * X[:, 0])])
FIRST = np.random.default_rng(1).exponential(1 / RATES)
RISKS = cs.CompetingRisks(
    np.minimum(FIRST.min(axis=0), C),
    np.where(FIRST.min(axis=0) <= C, FIRST.argmin(axis=0) + 1, 0),
    names=NAMES,
)
CAUSES = {
    "truth": cs.CauseSpecificHazards([cs.Exponential(rate) for rate in RATES], names=NAMES),
    "flat": cs.CumulativeIncidence(
        [0.5, 1.0, 2.0, 3.0, 4.0], [[[0.2, 0.3, 0.45, 0.5, 0.52], [0.1, 0.2, 0.3, 0.35, 0.38]]], names=NAMES
    ),
}


def test_causes_are_judged_given_no_event_before_the_landmark():
    """F_j(t | T > s) = {F_j(t) - F_j(s)} / P(T > s), written out, of the subjects at risk."""
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 300)
    found = cs.compare_landmarks(
        CAUSES,
        RISKS,
        G,
        landmarks=[1.5, 0.5],
        window=1.0,
        scores="brier_score",
        sample_weight=weight,
        groups=np.arange(300) // 2,
        by={"side": X[:, 0] > 0},
        reference=None,
    )
    table = found.frame(discrimination=False)
    for s in (0.5, 1.5):
        here = RISKS.time > s
        np.testing.assert_array_equal(RISKS.at_risk(s), here)
        time, cause, g = RISKS.time[here], RISKS.causes[here], G.sf(s + 1.0)[0]
        for model, F in CAUSES.items():
            at_s, at_t, alive = (part(t) for part, t in ((F.cif, s), (F.cif, s + 1.0), (F.sf, s)))
            for j, which in enumerate(NAMES):
                risk = np.broadcast_to((at_t - at_s)[:, j] / np.ravel(alive), (300,))[here]
                done = (time <= s + 1.0) & (cause > 0)
                known = np.where(done, g / G.sf_left(time), time > s + 1.0)
                losses = known * (risk - (done & (cause == j + 1))) ** 2
                lines = table[(table.landmark == s) & (table.model == model) & (table.group == "all")]
                line = lines[lines.outcome == which]
                assert line["mean"].item() == pytest.approx(
                    np.average(losses, weights=weight[here]), rel=1e-8
                )
    assert set(table["group"]) == {"all", "True", "False"}
    assert set(found.differences(discrimination=False)["outcome"]) == {"all causes", *NAMES, "any cause"}


def test_predictions_of_causes_made_at_the_landmark():
    F = CAUSES["flat"].take(np.zeros(300, dtype=int))
    same = {
        "fixed": F,
        "function": lambda s, subjects: F.take(subjects).given_survival(s),
        "mapping": {0.5: F, 1.0: F.given_survival(1.0)},
    }
    found = cs.compare_landmarks(same, RISKS, G, landmarks=[0.5, 1.0], scores="crps", horizon=3.0)
    means = found.frame(discrimination=False).pivot(
        index=["landmark", "outcome"], columns="model", values="mean"
    )
    for name in ("function", "mapping"):
        np.testing.assert_allclose(means[name], means["fixed"], rtol=1e-6)


def test_fitted_models_of_causes_and_the_reference():
    train, test = slice(0, 150), slice(150, 300)
    model = cs.CauseSpecific(cs.CoxRegression()).fit(X[train], RISKS[train])
    found = cs.compare_landmarks(
        {"cox": model},
        RISKS[test],
        cs.Censoring(cs.KaplanMeier()),
        X=X[test],
        train=(X[train], RISKS[train]),
        landmarks=[0.5, 1.0],
        window=1.0,
        scores="brier_score",
    )
    table = found.frame(discrimination=False)
    assert set(table["model"]) == {"cox", "aalen-johansen"}
    assert (table["standard_error"] > 0).all()
    assert "death" in found.plot(outcome="death").get_suptitle()
    assert "all causes" in found.plot().get_suptitle()
    with pytest.raises(InvalidInputError, match="outcome: got 'cure', expected one of all causes, relapse"):
        found.plot(outcome="cure")
    with pytest.raises(InvalidInputError, match="expected None: there is one event time"):
        cs.compare_landmarks(MODELS, Y, G, landmarks=[1.0], scores="brier_score").plot(outcome="death")


def test_rows_of_intervals_that_end_with_a_cause():
    table = pd.DataFrame(
        [["b", 0, 1, 0, 3], ["a", 2, 5, 2, 9], ["a", 0, 2, 0, 7], ["c", 1, 4, 0, 4]],
        columns=["id", "start", "stop", "cause", "x"],
    )
    rows, y = cs.at_landmark(table, 2.0, cause="cause", names=NAMES)
    assert rows["x"].tolist() == [9, 4]
    assert (y.time.tolist(), y.causes.tolist(), y.entry.tolist()) == ([5.0, 4.0], [2, 0], [2.0, 2.0])
    assert y.names == tuple(NAMES)
    with pytest.raises(InvalidInputError, match="without cause="):
        cs.at_landmark(table.rename(columns={"cause": "event"}), 2.0, names=NAMES)


# ---- means over landmarks ------------------------------------------------------------------------------


def averaged(y=Y, models=MODELS, censoring=G, **options):
    options = {"landmarks": [0.3, 0.8, 1.3], "window": 1.0, "scores": ["brier_score:ipcw"]} | options
    return cs.compare_landmarks(models, y, censoring, horizon=4.0, **options)


def test_the_average_is_that_of_the_landmarks():
    found = averaged(scores=["brier_score:ipcw", "crps"])
    table, average = found.frame(), found.average()
    assert set(average.score) == {"brier_score:ipcw", "crps"}
    for line in average.itertuples():
        parts = table[(table.score == line.score) & (table.model == line.model)]
        assert line.mean == pytest.approx(parts["mean"].mean(), rel=1e-12)
        assert line.low < line.mean < line.high
    difference = found.average_differences().iloc[0]
    means = average[average.score == "brier_score:ipcw"].set_index("model")["mean"]
    assert difference.difference == pytest.approx(means["scale"] - means["flat"], rel=1e-12)


def test_two_landmarks_with_the_same_subjects_are_one():
    """Where all subjects are the same, two landmarks know no more than one of them."""
    between = np.sort(Y.time)[:2].min() / 2
    for censoring in (G, cs.Censoring(cs.KaplanMeier())):
        one = averaged(censoring=censoring, landmarks=[between]).differences()
        two = averaged(censoring=censoring, landmarks=[between, between * (1 + 1e-9)]).average_differences()
        assert two.standard_error[0] == pytest.approx(one.standard_error[0], rel=1e-6)


@pytest.mark.parametrize(
    "how", ["groups", "train", *(pytest.param(how, marks=pytest.mark.slow) for how in ("known", "estimated"))]
)
def test_the_error_of_the_average_is_that_of_the_jackknife(how):
    rows = np.arange(80)
    groups = rows // 2 if how == "groups" else rows
    estimated = cs.Censoring(cs.KaplanMeier())
    train = {"train": (None, Y), "reference": None} if how == "train" else {}

    def difference(kept):
        some = Y.take(kept)
        models = {name: F if len(F) == 1 else F.take(kept) for name, F in MODELS.items()}
        options = train if not train else {"train": (None, some), "reference": None}
        labels = {"groups": groups[kept]} if how == "groups" else {}
        censoring = G if how in ("known", "groups") else estimated
        return averaged(some, models, censoring, **options, **labels).average_differences().iloc[0]

    out = [difference(rows[groups != g]).difference for g in np.unique(groups)]
    g = len(out)
    jackknife = np.sqrt((g - 1) / g * np.sum((out - np.mean(out)) ** 2))
    assert difference(rows).standard_error == pytest.approx(jackknife, rel=0.05)


def test_what_has_no_average_is_left_out_or_an_error():
    several = averaged(window=None, times=[2.0, 3.0], scores=["brier_score:ipcw", "crps"])
    assert set(several.average().score) == {"crps"}
    refitted = averaged(censoring=cs.Censoring(cs.WeibullRegression(), refits=2), X=X)
    with pytest.raises(InvalidInputError, match="influence function"):
        refitted.average()
