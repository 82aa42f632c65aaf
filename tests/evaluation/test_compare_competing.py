"""Comparisons of forecasts of competing risks: what they score, how certain they are, and what they show."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.contracts.rules import check_distribution

import censcore as cs
from censcore.evaluation.kinds import one_score
from censcore.evaluation.kinds.causes import Causes
from censcore.evaluation.measures.case_scores import Custom
from censcore.exceptions import InvalidInputError, InvalidTypeError

NAMES = ["relapse", "death"]
HAZARDS = [cs.Weibull(1.3, 3.0), cs.Exponential(0.25)]
TRUTH = cs.CauseSpecificHazards(HAZARDS, names=NAMES)
GRID = np.linspace(0.25, 4.0, 16)
#: Curves that are scored fast, and exactly.
MATRIX = cs.CumulativeIncidence(GRID, TRUTH.cif(GRID), interpolation="linear", names=NAMES)
OTHER = cs.CumulativeIncidence(GRID, MATRIX.cif(GRID)[:, ::-1], interpolation="linear", names=NAMES)
MODELS = {"true": MATRIX, "other": OTHER}
OPTIONS = {"discrimination": False, "horizon": 3.0, "times": [0.7, 2.0], "levels": [0.1, 0.25]}


def KM() -> cs.Censoring:
    return cs.Censoring(cs.KaplanMeier())


def observed(n: int, seed: int = 0, names: list[str] | None = NAMES, digits: int = 9) -> cs.CompetingRisks:
    rng = np.random.default_rng([seed, 7])
    time, cause = (part[0] for part in TRUTH.sample(n, seed=[seed, 1]))
    c = rng.uniform(0.0, 5.0, n)
    seen = np.ceil(np.minimum(time, c) * 10**digits) / 10**digits
    return cs.CompetingRisks(seen, np.where(time <= c, cause, 0), names=names)


def means(comparison: cs.Comparison, model: str = "true") -> dict:
    frame = comparison.frame()
    frame = frame[(frame.by == "") & (frame.model == model)]
    return {
        (r.score, r.outcome) if np.isnan(r.at) else (r.score, r.outcome, r.at): r.mean
        for r in frame.itertuples()
    }


# ---- what is scored ------------------------------------------------------------------------------------


def test_means_are_those_of_the_scores():
    y, C = observed(40), cs.Uniform(0.0, 5.0)
    names = ["crps", "log_score", "log_score[death]", "brier_score:ipcw", "pinball_score[relapse]"]
    found = means(cs.compare(MODELS, y, C, scores=[*names, "energy_score"], **OPTIONS))
    assert found["crps", "all causes"] == pytest.approx(cs.crps(y, MATRIX, C, horizon=3.0).mean())
    assert found["energy_score", "all causes"] == pytest.approx(
        cs.energy_score(y, MATRIX, C, horizon=3.0).mean()
    )
    death, F_2 = y.cause("death"), MATRIX.cause("death")
    assert found["crps", "death"] == pytest.approx(cs.crps(death, F_2, C, horizon=3.0).mean())
    assert found["log_score", "death"] == pytest.approx(cs.log_score(death, F_2, C, horizon=3.0).mean())
    assert found["log_score", "all causes"] == pytest.approx(cs.log_score(y, MATRIX, horizon=3.0).mean())
    brier = cs.brier_score(death, F_2, C, [0.7, 2.0], scale="ipcw", horizon=3.0).mean(axis=0)
    assert found["brier_score:ipcw", "death", 2.0] == pytest.approx(brier[1])
    pinball = cs.pinball_score(y.cause(1), MATRIX.cause(1), C, [0.25], horizon=3.0).mean()
    assert found["pinball_score", "relapse", 0.25] == pytest.approx(pinball)
    any_cause = cs.crps(y.any_cause(), MATRIX.any_cause(), C, horizon=3.0).mean()
    assert found["crps", "any cause"] == pytest.approx(any_cause)


@pytest.mark.parametrize(("name", "chosen"), [
    ("crps", "crps[all causes]"), ("energy_score", "energy_score"), ("log_score", "log_score[all causes]"),
    ("crps[death]", "crps[death]"), ("brier_score", "brier_score[all causes]"),
])  # fmt: skip
def test_a_scorer_takes_the_score_of_all_causes(name, chosen):
    kind = Causes(cs.CompetingRisks([1.0, 2.0], [1, 2], names=["relapse", "death"]))
    assert one_score(kind, name, None).name == chosen


def test_a_scorer_of_a_score_without_all_causes_says_which_there_are():
    kind = Causes(cs.CompetingRisks([1.0, 2.0], [1, 2], names=["relapse", "death"]))
    with pytest.raises(InvalidInputError, match=r"got an outcome with 3 parts .* pinball_score\[death\]"):
        one_score(kind, "pinball_score", None)


def test_any_cause_is_the_comparison_of_one_event_time():
    """With the same censoring distribution, errors, skills and discrimination agree as well."""
    y, train, x = observed(90, 1), observed(70, 2), np.linspace(-1, 1, 90)
    F = cs.CauseSpecificHazards([cs.Weibull(1.3, 3 * np.exp(-x)), cs.Exponential(0.25)], names=NAMES)
    options = OPTIONS | {"discrimination": True, "train": (None, train)}
    whole = cs.compare({"true": F}, y, KM(), **options).of("any cause")
    options["train"] = (None, train.any_cause())
    alone = cs.compare({"true": F.any_cause()}, y.any_cause(), KM(), **options)
    columns = ["score", "at", "mean", "standard_error", "skill"]
    ours, theirs = (part.frame()[columns] for part in (whole, alone))
    assert (ours.score == theirs.score).all()
    np.testing.assert_allclose(ours.iloc[:, 1:], theirs.iloc[:, 1:], rtol=1e-9, equal_nan=True)


def test_defaults():
    found = cs.compare(MODELS, observed(80), KM(), train=(None, observed(80, 3)), discrimination=False)
    assert isinstance(found.kind, Causes)
    assert found.models == ["true", "other", "aalen-johansen"]
    assert found.reference == "aalen-johansen"
    frame = found.frame()
    assert frame.outcome.unique().tolist() == ["all causes", *NAMES, "any cause"]
    assert found.outcomes == frame.outcome.unique().tolist()
    by_outcome = frame.groupby("outcome").score.unique()
    assert "log_score" in by_outcome["all causes"]
    assert "log_score" not in by_outcome["death"]
    assert [verdict.outcome for verdict in found.verdicts] == found.outcomes
    assert found.settings["events by cause"] == {
        name: int((observed(80).causes == j).sum()) for j, name in enumerate(NAMES, start=1)
    }


def test_verdicts_count_the_events_of_the_cause():
    y = observed(200)
    found = cs.compare(MODELS, y, cs.Uniform(0.0, 5.0), scores="crps", **OPTIONS)
    events = {verdict.outcome: verdict.events for verdict in found.verdicts}
    for j, name in enumerate(NAMES, start=1):
        assert events[name] == ((y.causes == j) & (y.time <= 3.0)).sum()
    assert events["any cause"] == events["all causes"] == events["relapse"] + events["death"]


def test_a_competing_event_is_no_censoring():
    """Where competing events are taken for censored, the truth loses to 1 - Kaplan-Meier; here it wins."""
    y = observed(600, 5)
    naive = cs.RightCensored(y.time, y.causes == 1)
    curve = cs.KaplanMeier().fit(None, naive).predict_distribution()
    grid = np.linspace(0.05, 4.9, 150)
    zeros = np.zeros((1, len(grid)))
    wrong = cs.CumulativeIncidence(grid, np.stack([curve.cdf(grid[None, :]), zeros], axis=1), names=NAMES)
    found = cs.compare({"true": TRUTH, "wrong": wrong}, y, KM(), scores="crps[relapse]", **OPTIONS)
    pair = found.differences().iloc[0]
    assert (pair.difference, pair.high) < (0, 0)
    C = KM().fit(None, naive).predict_distribution()
    losses = [cs.crps(naive, F, C, horizon=3.0).mean() for F in (TRUTH.cause(1), wrong.cause(1))]
    assert losses[0] > losses[1]


# ---- how certain it is ---------------------------------------------------------------------------------

SCORES = [
    "crps",
    "integrated_brier_score:ipcw",
    "brier_score",
    "brier_score:ipcw",
    "binomial_log_score",
    "pinball_score",
    "log_score[relapse]",
]


@pytest.mark.parametrize("digits", [9, 1])
def test_influences_of_training_subjects_agree_with_leaving_them_out(digits):
    """Also where event times and censoring times are tied."""
    y, train = observed(150, 1, digits=digits), observed(150, 2, digits=digits)
    found = cs.compare({"true": MATRIX}, y, KM(), train=(None, train), scores=SCORES, **OPTIONS)
    case = found.cases["true"]

    def mean_without(score, i):
        kept = np.delete(np.arange(len(train)), i)
        C = KM().fit(None, train[kept]).predict_distribution()
        return score.losses(replace(case, C=C)).mean(axis=0)

    some = np.arange(0, len(train), 15)
    for score in found.scores:
        estimate = found.estimate("true", score.name)
        left_out = np.stack([mean_without(score, i) for i in some])
        moved = estimate.value - left_out
        xi = estimate.influence[len(y) :][some]
        size = np.abs(moved).max(axis=0)
        np.testing.assert_allclose(xi, moved, atol=0.08 * size.max() + 1e-12, err_msg=score.name)


@pytest.mark.parametrize("estimator", [cs.KaplanMeier(), cs.CoxRegression()])
def test_standard_errors_agree_with_numerical_derivatives(estimator):
    """Custom scores have a numerical derivative by the hazard of C, scores of the registry a formula."""
    y, train = observed(150, 3), observed(150, 4)
    X, X_train = (np.random.default_rng(i).normal(size=(150, 1)) for i in (0, 1))
    C = cs.Censoring(estimator)
    integrated = ["crps", "integrated_brier_score:ipcw", "log_score[relapse]"]
    found = cs.compare({"true": MATRIX}, y, C, X=X, train=(X_train, train), scores=integrated, **OPTIONS)
    for score in found.scores:
        if score.outcome in ("all causes", "relapse"):
            numerical = Custom.of(score.name, lambda *_, **__: None)
            object.__setattr__(numerical, "losses", score.losses)
            parts = [found.estimate("true", score.name), found.mean_of(numerical, "true")]
            ours, theirs = (part.influence[len(y) :] for part in parts)
            np.testing.assert_allclose(ours, theirs, atol=0.1 * np.abs(theirs).max(), err_msg=score.name)


def test_the_energy_score_of_causes_moves_with_the_censoring_distribution():
    """Exactly: with e(c) the loss at C = c, the loss of an event is the mean of e over the jumps of G."""
    y, train = observed(100, 3), observed(100, 4)
    forecast = cs.CauseEnsemble(*TRUTH.sample(30, seed=1), names=NAMES)
    found = cs.compare({"true": forecast}, y, KM(), train=(None, train), scores="energy_score", **OPTIONS)
    horizon, time, event = OPTIONS["horizon"], y.time, y.causes > 0
    censored = train.any_cause().flip()
    jumps = np.unique(np.append(censored.time[censored.event & (censored.time < horizon)], horizon))
    known = [np.minimum(np.where(event, np.maximum(c, time), time), horizon) for c in jumps]
    e = np.stack([cs.energy_score(y, forecast, cs.PointMass(c), horizon=horizon) for c in known], axis=1)

    def mean(subjects):
        G = KM().fit(None, train[subjects]).predict_distribution()
        mass = G.sf_left(jumps[None, :])[0] - np.append(G.sf(jumps[None, :-1])[0], 0.0)
        possible = np.where(jumps >= time[:, None], mass, 0.0)[event & (time <= horizon)]
        losses = (possible * e[event & (time <= horizon)]).sum(axis=1) / possible.sum(axis=1)
        return losses.sum() / len(y)

    everyone = np.arange(len(train))
    moved = mean(everyone) - np.array([mean(np.delete(everyone, i)) for i in everyone])
    ours = found.estimate("true", "energy_score").influence[len(y) :, 0]
    assert np.corrcoef(ours, moved)[0, 1] > 0.99
    assert np.linalg.norm(ours) == pytest.approx(np.linalg.norm(moved), rel=0.1)


def test_estimators_without_influence_function_are_refitted():
    y, train = observed(60, 1), observed(60, 2)
    x, x_train = (np.random.default_rng(i).normal(size=(60, 1)) for i in (0, 1))
    options = OPTIONS | {"scores": ["crps"], "train": (x_train, train), "X": x, "horizon": 2.5}
    by_refits = cs.compare({"true": MATRIX}, y, cs.Censoring(cs.WeibullRegression(), refits=5), **options)
    assert "bootstrap" in by_refits.method
    assert by_refits.frame().standard_error.notna().all()


# ---- weights, clusters, subgroups ----------------------------------------------------------------------


def test_weights_are_copies():
    y, train = observed(60, 1), observed(50, 2)
    weight = np.random.default_rng(0).integers(1, 3, 60)
    copies = np.repeat(np.arange(60), weight)
    options = OPTIONS | {"train": cs.Sample(None, train, weight=np.ones(50)), "scores": SCORES}
    weighted = cs.compare({"true": MATRIX}, y, KM(), sample_weight=weight, **options)
    copied = cs.compare({"true": MATRIX}, y[copies], KM(), groups=copies, **options)
    np.testing.assert_allclose(weighted.frame()["mean"], copied.frame()["mean"], rtol=1e-10)
    np.testing.assert_allclose(weighted.frame().standard_error, copied.frame().standard_error, rtol=0.03)


def test_subgroups():
    y, by = observed(200, 1), np.repeat(["a", "b"], 100)
    found = cs.compare(MODELS, y, cs.Uniform(0.0, 5.0), by=by, scores="crps[death]", **OPTIONS)
    frame = found.frame()
    alone = cs.crps(y[100:].cause(2), MATRIX.cause(2), cs.Uniform(0.0, 5.0), horizon=3.0).mean()
    (line,) = frame[(frame.group == "b") & (frame.model == "true")].itertuples()
    assert line.mean == pytest.approx(alone)
    assert line.n == 100


# ---- what it shows -------------------------------------------------------------------------------------


def test_calibration_of_one_cause():
    """The observed risk of a cause is the Aalen-Johansen estimate where C is estimated in the sample."""
    y = observed(300, 8)
    found = cs.compare(MODELS, y, KM(), scores="crps", **OPTIONS)
    curve = found.calibration("true", time=2.0, outcome="death")
    expected = cs.AalenJohansen().fit(None, y).predict_distribution().cif(2.0)[0, 1]
    assert curve.observed == pytest.approx(expected, abs=1e-9)
    assert curve.predicted == pytest.approx(MATRIX.cif(2.0)[0, 1])
    assert curve.observed_low < expected < curve.observed_high
    net = found.net_benefit(time=2.0, thresholds=[0.2], outcome="death").set_index("model").net_benefit
    assert net["treat all"] == pytest.approx(expected - 0.25 * (1 - expected), abs=1e-9)


def test_the_murphy_diagram_of_a_cause_integrates_to_its_brier_score():
    from censcore.evaluation.measures.murphy import elementary

    y = observed(50, 8)
    found = cs.compare({"true": TRUTH}, y, cs.Uniform(0.0, 5.0), scores="brier_score[death]", **OPTIONS)
    theta = (np.arange(2000) + 0.5) / 2000
    losses = elementary(2.0, theta).losses(found.of("death").cases["true"]).mean(axis=1)
    brier = cs.brier_score(y.cause(2), TRUTH.cause(2), cs.Uniform(0.0, 5.0), 2.0)
    np.testing.assert_allclose(losses, brier, atol=2e-3)


def test_pages_pictures_and_files():
    y, train = observed(120, 1), observed(120, 2)
    x = np.random.default_rng(0).uniform(0.6, 1.0, (120, 1, 1))
    F = cs.CumulativeIncidence(GRID, x * TRUTH.cif(GRID), interpolation="linear", names=NAMES)
    found = cs.compare({"x": F}, y, KM(), train=(None, train), time_unit="years")
    page = found.to_html()
    for words in ("all causes: ", "death: ", "relapse: Calibration", "any cause: ", "aalen-johansen"):
        assert words in page
    document = json.loads(found.to_json())
    assert {line["outcome"] for line in document["means"]} == set(found.outcomes)
    assert document["settings"]["events by cause"].keys() == set(NAMES)
    assert "relapse" in found.to_latex()
    assert "relapse" in found.to_markdown()
    assert found.chart("calibration", outcome="death").title.startswith("death: Calibration")
    assert found.chart("brier").title.startswith("all causes: ")
    assert found.chart("d-calibration").title.startswith("any cause: ")
    assert len(found.chart("censoring").panels) == 2
    assert found.chart("d-calibration", outcome="death").title.startswith("death: ")
    with pytest.raises(InvalidInputError, match="the risk of one event"):
        found.plot("calibration", outcome="all causes")
    with pytest.raises(InvalidInputError, match="expected one of all causes, relapse, death, any cause"):
        found.of("cure")


# ---- forecasts and outcomes of all kinds ---------------------------------------------------------------


def test_a_page_of_scores_of_all_causes_shows_pictures_of_each():
    found = cs.compare(MODELS, observed(100, 1), KM(), scores="energy_score", **OPTIONS)
    page = found.to_html()
    assert [verdict.outcome for verdict in found.verdicts] == ["all causes"]
    assert all(f"data-outcome='{name}'" in page and f"{name}: Calibration at" in page for name in NAMES)


def test_fitted_models_matrices_samples_and_frames():
    pd = pytest.importorskip("pandas")
    y, train = observed(60, 1), observed(150, 2)
    X, X_train = (np.random.default_rng(i).normal(size=(n, 1)) for i, n in ((0, 60), (1, 150)))
    grid = np.linspace(0.1, 4.0, 20)
    models = {
        "aj": cs.AalenJohansen().fit(None, train),
        "cox": cs.CauseSpecific(cs.CoxRegression()).fit(X_train, train),
        "matrix": cs.CumulativeIncidence(grid, TRUTH.cif(grid)),
        "sample": cs.CauseEnsemble(*TRUTH.sample(100, seed=0)),
    }
    options = OPTIONS | {"scores": "crps", "X": X, "train": (X_train, train)}
    found = cs.compare(models, y, KM(), **options)
    assert found.frame()["mean"].notna().all()
    frame = pd.DataFrame({"time": y.time, "cause": y.causes})
    again = cs.compare(models, frame, KM(), names=NAMES, **options)
    np.testing.assert_allclose(found.frame()["mean"], again.frame()["mean"])


def test_models_of_other_libraries():
    class Boost:
        """Curve 0 is survival; the curves of single times decrease here and there."""

        time_grid_ = np.array([1.0, 2.0, 3.0])

        def predict_cumulative_incidence(self, X):
            cif = np.array([[0.2, 0.19, 0.4], [0.1, 0.2, 0.2]])
            return np.tile(np.concatenate([1 - cif.sum(axis=0, keepdims=True), cif]), (len(X), 1, 1))

    class DeepHit:
        duration_index = np.array([1.0, 2.0])

        def predict_cif(self, X):
            return np.tile(np.array([[0.2, 0.3], [0.1, 0.2]])[:, :, None], (1, 1, len(X)))

    y = observed(50)
    models = {"boost": Boost(), "deephit": DeepHit()}
    found = cs.compare(models, y, cs.Uniform(0.0, 5.0), X=np.zeros((50, 1)), scores="crps", **OPTIONS)
    assert any("'boost': cumulative incidences that decrease" in note for note in found.notes)
    expected = cs.CumulativeIncidence([1.0, 2.0], [[[0.2, 0.3], [0.1, 0.2]]])
    loss = cs.crps(y, expected, cs.Uniform(0.0, 5.0), horizon=3.0).mean()
    assert means(found, "deephit")["crps", "all causes"] == pytest.approx(loss)


def test_a_cause_that_no_scored_subject_had():
    """The forecasts and the training subjects know of it."""
    y = observed(60, 1, names=None)
    y = y[y.causes != 2]
    assert y.n_causes == 2  # part of an outcome keeps its causes
    y = cs.CompetingRisks(y.time, y.causes)
    train = observed(60, 2, names=None)
    models = {"true": cs.CauseSpecificHazards(HAZARDS)}
    found = cs.compare(models, y, KM(), train=(None, train), scores="crps", **OPTIONS)
    assert found.outcomes == ["all causes", "cause 1", "cause 2", "any cause"]
    assert any(note.startswith("cause 2: No events") for note in found.notes)
    line = found.frame().query("outcome == 'cause 2'").iloc[0]
    assert line.note.startswith("cannot tell")


def test_delayed_entry():
    rng = np.random.default_rng(3)
    time, cause = (part[0] for part in TRUTH.sample(200, seed=3))
    entry, c = rng.uniform(0, 1, 200), rng.uniform(0, 5, 200)
    seen = np.minimum(time, c) > entry
    y = cs.CompetingRisks(
        np.minimum(time, c)[seen], np.where(time <= c, cause, 0)[seen], entry=entry[seen], names=NAMES
    )
    found = cs.compare(MODELS, y, KM(), scores=["crps", "brier_score:ipcw"], **OPTIONS)
    C = KM().fit(None, y).predict_distribution()
    loss = cs.crps(y.cause(2), MATRIX.given_survival(y.entry).cause(2), C, horizon=3.0)
    assert means(found)["crps", "death"] == pytest.approx(loss.mean())
    assert any(note.startswith("Delayed entry") for note in found.notes)


def test_torch():
    torch = pytest.importorskip("torch")
    y = observed(40)
    grid = np.linspace(0.1, 4.0, 20)
    F = cs.CumulativeIncidence(grid, TRUTH.cif(grid), names=NAMES)
    found = [
        means(cs.compare({"true": forecast}, outcome, cs.Uniform(0.0, 5.0), scores="crps", **OPTIONS))
        for forecast, outcome in ((F, y), (F.like(torch.zeros(1)), y.like(torch.zeros(1))))
    ]
    for key, value in found[0].items():
        assert found[1][key] == pytest.approx(value, rel=1e-4)


# ---- bad input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("forecast", "message"),
    [
        (cs.CumulativeIncidence([1.0], [[[0.2]]]), "got cumulative incidences of 1 cause, expected 2"),
        (cs.CauseSpecificHazards(HAZARDS, names=["death", "relapse"]), "The order differs"),
        (
            cs.CauseSpecificHazards(HAZARDS, names=["relapse", "cure"]),
            "got the causes relapse, cure, expected",
        ),
        (
            cs.CauseSpecificHazards([*HAZARDS, HAZARDS[0]]),
            "got cumulative incidences of 3 causes, expected 2",
        ),
        (cs.CumulativeIncidence([1.0], np.full((3, 2, 1), 0.2)), "forecasts of 3 subjects, expected 40"),
    ],
)
def test_forecasts_of_other_causes(forecast, message):
    with pytest.raises(InvalidInputError, match=f"Forecast 'bad'.*{message}"):
        cs.compare({"good": TRUTH, "bad": forecast}, observed(40), KM())


def test_forecasts_of_one_event_time():
    with pytest.raises(InvalidTypeError, match="Forecast 'bad': got Exponential, expected a distribution of"):
        cs.compare({"bad": cs.Exponential(1.0)}, observed(40), KM())


def test_training_outcomes_without_causes_or_with_others():
    y = observed(40)
    with pytest.raises(InvalidTypeError, match=r"train: got RightCensored.*expected CompetingRisks"):
        cs.compare(MODELS, y, KM(), train=(None, y.any_cause()))
    with pytest.raises(
        InvalidInputError, match="train: got the causes relapse, cure, expected relapse, death"
    ):
        cs.compare(MODELS, y, KM(), train=(None, y.with_names(["relapse", "cure"])))
    only = cs.CompetingRisks(y.time, np.minimum(y.causes, 1), names=NAMES)
    with pytest.raises(
        InvalidInputError, match="AalenJohansen learns from the events of every cause; got none"
    ):
        cs.compare(MODELS, y, KM(), train=(None, only))


def test_other_bad_input():
    y = observed(40)
    with pytest.raises(InvalidInputError, match="no score called 'crps\\[cure\\]' for these causes"):
        cs.compare(MODELS, y, KM(), scores="crps[cure]")
    with pytest.raises(InvalidInputError, match="no score called 'pinball_score\\[all causes\\]'"):
        cs.compare(MODELS, y, KM(), scores="pinball_score[all causes]")
    with pytest.raises(InvalidInputError, match="none of them 'all causes'"):
        cs.compare(MODELS, y, KM(), names=["all causes", "death"])
    with pytest.raises(InvalidInputError, match="mask: got an outcome of one event time"):
        cs.compare(MODELS, cs.Sample(None, y, mask=np.ones((40, 2))), KM())
    with pytest.raises(InvalidInputError, match="reference: got 'cox', expected 'aalen-johansen'"):
        cs.compare(MODELS, y, KM(), reference="cox")


# ---- cross-validation ----------------------------------------------------------------------------------


def test_cross_validation():
    y, x = observed(90, 1), np.random.default_rng(0).normal(size=(90, 1))
    models = {"cox": cs.CauseSpecific(cs.CoxRegression())}
    found = cs.cross_validate(models, x, y, cv=3, scores="crps", discrimination=False, horizon=3.0)
    assert isinstance(found.kind, Causes)
    assert found.models == ["cox", "aalen-johansen"]
    fold = next(split for split in found.folded.splits)
    C = KM().fit(None, y[fold.train]).predict_distribution()
    F = cs.AalenJohansen().fit(None, y[fold.train]).predict_distribution()
    losses = cs.crps(y[fold.test].cause(2), F.cause(2), C, horizon=3.0)
    found_losses = found.losses.values["aalen-johansen", "crps[death]"][fold.test, 0]
    np.testing.assert_allclose(found_losses, losses)
    assert found.folds().mean(numeric_only=True).notna().any()
    assert found.of("death").frame()["standard_error"].notna().all()


def test_cross_validation_of_a_model_of_another_library():
    hazardous = pytest.importorskip("hazardous")
    y, x = observed(120, 1), np.random.default_rng(0).normal(size=(120, 1))
    models = {"boost": hazardous.SurvivalBoost(n_iter=3, show_progressbar=False, n_time_grid_steps=10)}
    found = cs.cross_validate(models, x, y, cv=2, scores="crps", discrimination=False, horizon=3.0)
    assert found.frame()["mean"].notna().all()


def test_grouped_distributions_of_causes():
    from censcore.distributions import GroupedCauses

    grid, group = [1.0, 2.0], np.array([1, 0, 1, 0])
    cif = np.random.default_rng(0).uniform(0.0, 0.25, (2, 2, 2)).cumsum(axis=2)
    one, each = cs.CumulativeIncidence(grid, cif[:1]), cs.CumulativeIncidence(grid, cif)
    F = GroupedCauses([one, each], group)
    expected = np.stack([cif[0], cif[0], cif[1], cif[0]])
    np.testing.assert_allclose(F.cif(2.5), expected[:, :, 1])
    np.testing.assert_allclose(F.take([1, 2]).cif(2.5), expected[1:3, :, 1])
    given = F.given_survival(np.array([1.0, 1.0, -1.0, 1.5]))
    alive = 1 - cif[:, :, 0].sum(axis=1)
    np.testing.assert_allclose(given.cif(2.5)[0], (cif[0, :, 1] - cif[0, :, 0]) / alive[0])
    np.testing.assert_allclose(given.cif(2.5)[2], cif[1, :, 1])
    check_distribution(F)
    with pytest.raises(InvalidInputError, match="expected the same in all groups"):
        GroupedCauses([one, cs.CumulativeIncidence(grid, cif[:1], names=NAMES)], group)


# ---- real data -----------------------------------------------------------------------------------------


def test_progression_or_death():
    """mgus2: age predicts death, and hardly progression."""
    pd = pytest.importorskip("pandas")
    path = Path(os.environ.get("CENSCORE_DATA", "")) / "survival" / "mgus2.csv"
    if not path.exists():
        pytest.skip("mgus2.csv is not below CENSCORE_DATA/survival")
    table = pd.read_csv(path)
    progressed = table["pstat"] == 1
    y = cs.CompetingRisks(
        np.where(progressed, table["ptime"], table["futime"]).astype(float),
        np.where(progressed, 1, 2 * table["death"]),
        names=["progression", "death"],
    )
    X = table[["age"]].to_numpy(dtype=float) / 10
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:700], order[700:1000]
    model = cs.CauseSpecific(cs.CoxRegression()).fit(X[train], y[train])
    found = cs.compare(
        {"cox": model},
        y[test],
        KM(),
        X=X[test],
        train=(X[train], y[train]),
        scores="crps",
        discrimination=False,
    )
    worse = {verdict.outcome: [gap["model"] for gap in verdict.worse] for verdict in found.verdicts}
    assert worse["death"] == worse["all causes"] == ["aalen-johansen"]
    assert worse["progression"] == []


def test_the_censoring_diagnostic_looks_at_the_first_event_of_any_cause():
    y = observed(50)
    C = cs.Uniform(0.0, 5.0)
    assert cs.censoring_diagnostic(y, C) == cs.censoring_diagnostic(y.any_cause(), C)
    assert cs.censoring_diagnostic(y.cause(1), C).events == (y.causes > 0).sum()


def test_the_reference_is_a_copy_of_the_estimator_that_was_passed():
    y, train = observed(60), observed(80, 1)
    mine = cs.AalenJohansen()
    found = cs.compare(MODELS, y, KM(), train=(None, train), reference=mine, **OPTIONS)
    assert found.reference == "reference"
    assert not hasattr(mine, "cif_")


def test_a_reference_of_one_event_time_is_an_error():
    with pytest.raises(InvalidTypeError, match="Weibull"):
        cs.compare(MODELS, observed(60), KM(), reference=cs.Weibull(1.5, 2.0), **OPTIONS)
