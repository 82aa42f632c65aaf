"""Comparisons of joint forecasts: what they score, how certain they are, and what they show."""

from __future__ import annotations

import json

import numpy as np
import pytest

import censcore as cs
from censcore.distributions.joint_events import in_order
from censcore.exceptions import (
    ContradictionError,
    InvalidInputError,
    InvalidTypeError,
    UnsupportedOutcomeError,
)

MARGINALS = [cs.Exponential(1.0), cs.Exponential(0.5)]
TRUTH = cs.Copula("clayton", MARGINALS, theta=3.0)
INDEPENDENT = cs.Independent(MARGINALS)
NAMES = ["relapse", "death"]
OPTIONS = {"names": NAMES, "discrimination": False, "reference": None, "horizon": 2.0, "times": [0.5, 1.5]}
ENSEMBLES = {
    "true": cs.Ensemble(TRUTH.sample(60, seed=1)),
    "independent": cs.Ensemble(INDEPENDENT.sample(60, seed=2)),
}
C_ONE = cs.Uniform(0.0, 4.0)
C_EACH = cs.Independent([C_ONE, C_ONE])


def KM() -> cs.Censoring:
    return cs.Censoring(cs.KaplanMeier())


def observed(n: int, seed: int = 0, each: bool = False) -> cs.RightCensored:
    rng = np.random.default_rng([seed, 9])
    T, C = TRUTH.sample(n, seed=[seed, 1])[0], rng.uniform(0, 4, (n, 2 if each else 1))
    return cs.RightCensored(np.minimum(T, C), T <= C)


def means(comparison: cs.Comparison, model: str = "true") -> dict:
    frame = comparison.frame()
    frame = frame[(frame.by == "") & (frame.model == model)]
    return {
        (r.score, r.outcome, r.at): (r.mean, r.standard_error) for r in frame.itertuples() if r.at == r.at
    } | {(r.score, r.outcome): (r.mean, r.standard_error) for r in frame.itertuples() if r.at != r.at}


# ---- what is scored ------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [False, True])
def test_means_are_those_of_the_scores(each):
    y, C = observed(80, 1, each), C_EACH if each else C_ONE
    scores = [
        "energy_score",
        "energy_score:fair",
        "log_score",
        "crps",
        "log_score[death]",
        "brier_score:ipcw",
    ]
    found = means(cs.compare({"true": TRUTH}, y, C, scores=scores, **OPTIONS))
    C_1 = C.marginal(1) if each else C
    assert found["energy_score", "joint"][0] == pytest.approx(
        cs.energy_score(y, TRUTH, C, horizon=2.0).mean()
    )
    assert found["log_score", "joint"][0] == pytest.approx(cs.log_score(y, TRUTH, C, horizon=2.0).mean())
    y_1 = y.marginal(1)
    assert found["crps", "death"][0] == pytest.approx(cs.crps(y_1, MARGINALS[1], C_1, horizon=2.0).mean())
    assert found["log_score", "death"][0] == pytest.approx(
        cs.log_score(y_1, MARGINALS[1], horizon=2.0).mean()
    )
    both = cs.joint_brier_score(y, TRUTH, C, [0.5, 1.5], event="all", scale="ipcw", horizon=2.0)
    assert found["brier_score:ipcw", "both", 1.5][0] == pytest.approx(both[:, 1].mean())


def test_one_event_time_of_a_joint_comparison_is_its_comparison():
    """With a given C, means, errors, skills and discrimination agree with those of the event time alone."""
    y, x = observed(120, 2), np.random.default_rng(0).normal(size=120)
    margins = [cs.Weibull(1.2, np.exp(0.2 * x)), cs.Weibull(1.0, 2.0 * np.exp(0.1 * x))]
    joint = cs.Independent(margins)
    scores = ["crps", "brier_score", "brier_score:ipcw", "integrated_brier_score:ipcw", "binomial_log_score"]
    options = OPTIONS | {"levels": [0.2, 0.5], "discrimination": True}
    found = cs.compare({"a": joint, "true": TRUTH}, y, C_ONE, scores=[*scores, "pinball_score"], **options)
    options.pop("names")
    alone = cs.compare(
        {"a": margins[1], "true": MARGINALS[1]},
        y.marginal(1),
        C_ONE,
        scores=[*scores, "pinball_score"],
        **options,
    )
    frame = found.frame()
    frame = frame[frame.outcome == "death"].drop(columns="outcome").reset_index(drop=True)
    expected = alone.frame()
    assert frame.score.tolist() == expected.score.tolist()
    for column in ("mean", "standard_error", "low", "high", "rank", "events"):
        np.testing.assert_allclose(frame[column], expected[column], err_msg=column)
    pairs = found.differences()
    pairs = pairs[pairs.outcome == "death"]
    np.testing.assert_allclose(pairs.p_adjusted, alone.differences().p_adjusted)
    assert repr(found.of("death")).split("\n")[3:-1] == repr(alone).split("\n")[3:-1]


def test_the_default_scores_names_and_events():
    y = observed(100)
    comparison = cs.compare(ENSEMBLES, y, KM(), discrimination=False)
    frame = comparison.frame()
    assert frame.outcome.unique().tolist() == [
        "joint", "event 1", "event 2", "either", "both", "event 1 first", "event 2 first"
    ]  # fmt: skip
    assert set(frame.score) == {"energy_score", "log_score", "crps", "brier_score"}
    assert comparison.outcomes == frame.outcome.unique().tolist()
    assert list(comparison.differences().columns[2:4]) == ["score", "outcome"]


def test_names_of_a_frame():
    pd = pytest.importorskip("pandas")
    y = observed(60)
    frame = pd.DataFrame(np.hstack([y.time, y.event]), columns=["relapse", "death", "r", "d"])
    y = cs.RightCensored.from_frame(frame, time=NAMES, event=["r", "d"])
    found = cs.compare(ENSEMBLES, y, KM(), scores="crps", discrimination=False)
    assert found.frame().outcome.unique().tolist() == NAMES


def test_chosen_events_and_custom_ones():
    y = observed(60)
    chosen = cs.compare(ENSEMBLES, y, KM(), scores="brier_score", **OPTIONS | {"events": ["both"]})
    assert chosen.frame().outcome.unique().tolist() == [*NAMES, "both"]
    events = {"death, then relapse": in_order(1, 0), "either": None}
    comparison = cs.compare(ENSEMBLES, y, C_ONE, scores="brier_score", **OPTIONS | {"events": events})
    found = means(comparison)["brier_score", "death, then relapse", 1.5][0]
    expected = cs.joint_brier_score(y, ENSEMBLES["true"], C_ONE, 1.5, event=in_order(1, 0), horizon=2.0)
    assert found == pytest.approx(expected.mean())


@pytest.mark.parametrize("each", [False, True])
def test_repeated_folds_end_at_the_smallest_horizon(each):
    """That of every repeat, and of every C where each event time has one."""
    found = cs.cross_validate(
        {"true": lambda X, y, X_test: TRUTH},
        None,
        observed(90, each=each),
        cv=cs.Folds(2, repeats=2),
        scores="crps",
        discrimination=False,
    )
    ends = [cs.compare({"a": TRUTH}, found.outcome, one.censoring, scores="crps").horizon
            for one in found.repeats]  # fmt: skip
    assert found.horizon == min(ends)


def test_three_event_times_and_one():
    rng = np.random.default_rng(0)
    T, C = rng.exponential(size=(80, 3)), rng.uniform(0, 3, (80, 1))
    y, F = cs.RightCensored(np.minimum(T, C), T <= C), cs.Ensemble(rng.exponential(size=(1, 40, 3)))
    found = cs.compare({"a": F}, y, KM(), scores=["energy_score", "brier_score"], discrimination=False)
    assert found.outcomes[4:6] == ["any", "all"]
    single = cs.RightCensored(y.time[:, :1], y.event[:, :1])
    found = cs.compare(
        {"a": cs.Ensemble(F.samples[:, :, :1])}, single, KM(), discrimination=False, horizon=2.0
    )
    alone = cs.compare({"a": F.marginal(0)}, single.marginal(0), KM(), scores="crps", horizon=2.0)
    assert found.outcomes == ["joint", "event 1"]
    assert found.estimate("a", "energy_score").value[0] == pytest.approx(alone.estimate("a", "crps").value[0])
    assert found.estimate("a", "energy_score").standard_error[0] == pytest.approx(
        alone.estimate("a", "crps").standard_error[0], rel=0.02
    )


def test_fitted_models_enter_by_their_covariates():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(160, 1))
    T, C = np.exp(0.5 * x) * TRUTH.sample(160, seed=4)[0], rng.uniform(0, 4, (160, 1))
    y, a, b = cs.RightCensored(np.minimum(T, C), T <= C), slice(0, 80), slice(80, 160)
    model = cs.CopulaWeibull("clayton", random_state=0, epochs=3).fit(x[a], y[a])
    found = cs.compare(
        {"clayton": model},
        y[b],
        KM(),
        X=x[b],
        train=(x[a], y[a]),
        scores=["energy_score", "log_score"],
        discrimination=False,
    )
    frame = found.frame(discrimination=False)
    assert frame.model.tolist() == ["clayton", "kaplan-meier"] * 2
    reference = cs.Independent(
        [cs.KaplanMeier().fit(None, y[a].marginal(j)).predict_distribution() for j in (0, 1)]
    )
    C = KM().fit(x[a], y[a]).predict_distribution()
    expected = cs.energy_score(y[b], reference, C, horizon=found.horizon).mean()
    assert frame["mean"][1] == pytest.approx(expected)
    assert frame.skill[1] == 0
    assert frame.note[3] == "not available"


# ---- how certain it is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [False, True])
def test_influences_are_those_of_leaving_training_subjects_out(each):
    y, train = observed(60, 1, each), observed(50, 2, each)
    options = OPTIONS | {"scores": ["energy_score", "crps", "brier_score"], "train": (None, train)}
    F = {"true": ENSEMBLES["true"]}
    comparison = cs.compare(F, y, KM(), **options)
    case = comparison.cases["true"]
    for score in comparison.scores:
        found = comparison.estimate("true", score.name).influence[-50:, 0]
        moved = np.empty(50)
        for i in range(50):
            C = KM().fit(None, train[np.delete(np.arange(50), i)]).predict_distribution()
            moved[i] = (comparison.losses.values["true", score.name] - score.losses(case.with_censoring(C)))[
                :, 0
            ].mean()
        assert np.corrcoef(found, moved)[0, 1] > 0.98, score.name
        assert np.linalg.norm(found) == pytest.approx(np.linalg.norm(moved), rel=0.2), score.name


@pytest.mark.parametrize("each", [False, True])
def test_custom_scores_of_all_event_times_have_the_errors_of_known_ones(each):
    y, j = observed(70, 5, each), int(each)

    def mine(y, F, C, horizon):
        return cs.crps(y.marginal(1), F.marginal(1), C.marginal(j), horizon=horizon)

    found = cs.compare(ENSEMBLES, y, KM(), scores={"crps[death]": None, "mine": mine}, **OPTIONS)
    a, b = (found.estimate("true", name) for name in ("crps[death]", "mine"))
    np.testing.assert_allclose(a.value, b.value)
    assert a.standard_error[0] == pytest.approx(b.standard_error[0], rel=0.03)
    assert found.frame().outcome.unique().tolist() == ["death", "joint"]


@pytest.mark.slow  # influences are compared with leaving subjects out every time
@pytest.mark.parametrize("each", [False, True])
def test_intervals_cover(each):
    """Of 30 data sets at most a few miss; without the term of the censoring distribution more would."""
    true = {"true": ENSEMBLES["true"]}
    expected = cs.compare(
        true, observed(4000, 77, each), C_EACH if each else C_ONE,
        scores=["energy_score", "crps", "brier_score"], **OPTIONS,
    )  # fmt: skip
    held: dict[str, list[bool]] = {score.name: [] for score in expected.scores}
    for r in range(30):
        found = cs.compare(
            true, observed(80, [100, r], each), KM(), train=(None, observed(60, [200, r], each)),
            scores=["energy_score", "crps", "brier_score"], **OPTIONS,
        )  # fmt: skip
        for name in held:
            low, high = found.estimate("true", name).interval(0.95)
            value = expected.estimate("true", name).value
            held[name] += ((low <= value) & (value <= high)).tolist()
    for name, values in held.items():
        assert np.mean(values) > 0.82, name  # three standard errors of 30 data sets below 0.95
    assert 0.91 < np.mean(np.concatenate(list(held.values()))) < 0.985


def test_weights_are_copies_in_one_group():
    y = observed(70, 4)
    w = np.random.default_rng(0).integers(1, 4, 70)
    copies = np.repeat(np.arange(70), w)
    scores = ["energy_score", "crps", "brier_score"]
    weighted = means(cs.compare(ENSEMBLES, y, KM(), scores=scores, sample_weight=w.astype(float), **OPTIONS))
    repeated = means(cs.compare(ENSEMBLES, y[copies], KM(), scores=scores, groups=copies, **OPTIONS))
    for key, (mean, error) in weighted.items():
        same = 5e-3 if key[0] == "energy_score" else 1e-9  # it draws from C subject by subject
        np.testing.assert_allclose((mean, error), repeated[key], rtol=max(same, 2e-3), err_msg=str(key))


def test_an_estimator_without_an_influence_function_is_refitted():
    rng = np.random.default_rng(6)
    T, C = TRUTH.sample(120, seed=6)[0], np.minimum(rng.weibull(1.5, (120, 1)) * 2.5, 9.0)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    options = OPTIONS | {"scores": ["energy_score", "crps", "brier_score[either]"]}
    weibull = cs.compare(ENSEMBLES, y, cs.Censoring(cs.WeibullRegression(), refits=30), **options)
    assert "bootstrap" in weibull.settings["standard errors"]
    curve = means(cs.compare(ENSEMBLES, y, KM(), **options))
    for key, (_, error) in means(weibull).items():
        assert error == pytest.approx(curve[key][1], rel=0.5), key


def test_out_of_fold_and_stratified_censoring():
    y, x = observed(120, 3, each=True), np.repeat([0.0, 1.0, 0.0], 40)[:, None]
    scores = ["energy_score", "crps"]
    pooled = means(cs.compare(ENSEMBLES, y, KM(), scores=scores, **OPTIONS))
    for censoring in (cs.Censoring(cs.KaplanMeier(), cv=3), cs.Censoring(cs.KaplanMeier(stratify=0))):
        found = means(cs.compare(ENSEMBLES, y, censoring, X=x, scores=scores, **OPTIONS))
        for key, (mean, error) in found.items():
            np.testing.assert_allclose((mean, error), pooled[key], rtol=0.15, err_msg=str(key))


def test_cox_regression_of_the_censoring_times():
    y, x = observed(150, 3), np.random.default_rng(0).normal(size=(150, 1))
    options = OPTIONS | {"scores": ["energy_score", "crps", "brier_score"], "X": x}
    cox, pooled = (means(cs.compare(ENSEMBLES, y, cs.Censoring(model), **options)) for model in (
        cs.CoxRegression(), cs.KaplanMeier()
    ))  # fmt: skip
    for key, (mean, error) in cox.items():
        np.testing.assert_allclose((mean, error), pooled[key], rtol=0.1, err_msg=str(key))


# ---- who counts ----------------------------------------------------------------------------------------


def test_a_mask_leaves_subjects_out_of_the_scores_of_an_event_time():
    y = observed(90, 7)
    mask = np.random.default_rng(1).random((90, 2)) < 0.7
    comparison = cs.compare({"true": TRUTH}, cs.Sample(None, y, mask=mask), C_ONE, **OPTIONS)
    found = means(comparison)
    rows = mask[:, 1]
    expected = cs.mean_loss(cs.crps(y.marginal(1)[rows], MARGINALS[1], C_ONE, horizon=2.0))
    np.testing.assert_allclose(found["crps", "death"], expected)
    some = mask.any(axis=1)
    energy = cs.energy_score(y, TRUTH, C_ONE, mask=mask, horizon=2.0)[some]
    np.testing.assert_allclose(found["energy_score", "joint"], cs.mean_loss(energy))
    both = mask.all(axis=1)
    either = cs.brier_score(y[both].first(), TRUTH.first(), C_ONE, 1.5, horizon=2.0)
    np.testing.assert_allclose(found["brier_score", "either", 1.5], cs.mean_loss(either))
    counts = comparison.frame().groupby(["score", "outcome"]).n.agg(list)
    assert counts["crps", "death"] == [rows.sum()]
    assert counts["energy_score", "joint"] == [some.sum()]
    assert comparison.settings["subjects followed for each"] == mask.sum(axis=0).tolist()


def test_the_log_score_of_one_followed_time_is_that_of_its_marginal():
    y = observed(50, 7)
    mask = np.tile([True, False], (50, 1))
    found = means(
        cs.compare(
            {"true": TRUTH},
            cs.Sample(None, y, mask=mask),
            C_ONE,
            scores=["log_score", "energy_score"],
            **OPTIONS,
        )
    )
    alone = y.marginal(0)
    assert found["log_score", "joint"][0] == pytest.approx(
        cs.log_score(alone, MARGINALS[0], horizon=2.0).mean()
    )
    crps = cs.crps(alone, MARGINALS[0], C_ONE, horizon=2.0).mean()
    assert found["energy_score", "joint"][0] == pytest.approx(crps, rel=0.05)


def test_a_mask_of_the_training_subjects_reaches_the_censoring_distribution_and_the_reference():
    y, train = observed(90, 7), observed(80, 8)
    mask = np.random.default_rng(1).random((80, 2)) < 0.7
    options = OPTIONS | {
        "reference": "kaplan-meier",
        "scores": ["crps", "energy_score"],
    }
    found = cs.compare(ENSEMBLES, y, KM(), train=cs.Sample(None, train, mask=mask), **options)
    time = np.where(mask, train.time, 0.0)
    coded = cs.RightCensored(time, train.event | ~mask)
    C = KM().fit(None, coded).predict_distribution()
    np.testing.assert_allclose(found.resolved_censoring.distribution.sf(1.0), C.sf(1.0))
    curve = cs.KaplanMeier().fit(None, train.marginal(1)[mask[:, 1]]).predict_distribution()
    np.testing.assert_allclose(found.cases["kaplan-meier"].F.marginal(1).sf(1.0), curve.sf(1.0))
    everyone = cs.compare(
        ENSEMBLES, cs.Sample(None, y, mask=np.ones((90, 2), bool)), KM(), train=(None, train), **options
    )
    assert any("y, mask=) if some of their event times" in note for note in everyone.notes)


def test_default_times_are_those_of_the_events_that_are_followed():
    y = observed(200, 7)
    mask = np.random.default_rng(1).random((200, 2)) < 0.4
    found = cs.compare(
        ENSEMBLES, cs.Sample(None, y, mask=mask), KM(), scores="brier_score", discrimination=False
    )
    seen = y.time[mask & y.event & (y.time < found.horizon)]
    np.testing.assert_allclose(
        found.settings["times"], np.quantile(seen, [0.25, 0.5, 0.75], method="inverted_cdf")
    )


def test_subgroups_and_clusters():
    y, sex = observed(200, 3), np.tile(["f", "m"], 100)
    found = cs.compare(
        ENSEMBLES, y, KM(), by={"sex": sex}, groups=np.arange(200) // 4, scores="energy_score", **OPTIONS
    )
    frame = found.frame()
    assert frame.group.tolist() == ["all", "all", "f", "f", "m", "m"]
    women = cs.energy_score(y, ENSEMBLES["true"], found.resolved_censoring.distribution, horizon=2.0)[
        sex == "f"
    ]
    assert frame["mean"][2] == pytest.approx(women.mean())


def test_few_events_cannot_tell():
    y = observed(60, 3)
    found = cs.compare(ENSEMBLES, y, C_ONE, **OPTIONS | {"times": [0.01, 1.0]})
    frame = found.frame()
    early = frame[(frame["at"] == 0.01) & (frame.outcome == "both")]
    assert early.note.str.startswith("cannot tell").all()
    assert early.standard_error.isna().all()


# ---- propriety -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [False, True])
def test_the_true_dependence_wins_and_equal_margins_tie(each):
    z = TRUTH.sample(300, seed=1)
    order = np.random.default_rng(0).permutation(300)
    without = np.stack([z[..., 0], z[:, order, 1]], axis=2)  # the same margins, independent
    y = observed(900, 11, each)
    found = cs.compare({"true": cs.Ensemble(z), "independent": cs.Ensemble(without)}, y, KM(), **OPTIONS)
    pairs = found.differences().set_index(["score", "outcome"]).sort_index()
    for name in ("relapse", "death"):
        assert pairs.difference["crps", name].item() == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(pairs.difference["brier_score", name], 0, atol=1e-12)
    better = pairs.loc[[("energy_score", "joint")]]
    assert better.difference.item() < 0
    assert better.p_value.item() < 0.01
    for outcome in ("either", "both", "death first"):
        late = pairs.loc[("brier_score", outcome)].iloc[-1]
        assert late.difference < 0, outcome
        assert late.p_value < (0.2 if outcome == "both" else 0.05), outcome


def test_the_log_score_tells_dependence_too():
    found = cs.compare(
        {"true": TRUTH, "independent": INDEPENDENT}, observed(300, 11), KM(), scores="log_score", **OPTIONS
    )
    line = found.differences().iloc[0]
    assert line.difference < 0
    assert line.p_value < 1e-6


# ---- what it shows -------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[False, True], ids=["shared", "componentwise"])
def comparison(request) -> cs.Comparison:
    x = np.random.default_rng(0).normal(size=(120, 1))
    y = observed(120, 12, request.param)
    options = OPTIONS | {"discrimination": True, "reference": "kaplan-meier", "by": {"half": x[:, 0] > 0}}
    return cs.compare(ENSEMBLES, y, KM(), X=x, train=(x, y), **options)


def test_text_json_and_page(comparison):
    text = repr(comparison)
    assert "\neither: mean loss" in text
    assert "\ndeath: share of pairs ranked correctly" in text
    document = json.loads(comparison.to_json())
    assert {line["outcome"] for line in document["means"]} == set(comparison.outcomes)
    assert {line["score"] for line in document["differences"]} >= {"energy_score", "crps", "auc"}


def test_pictures_and_page(comparison):
    pytest.importorskip("matplotlib")
    shared = comparison.resolved_censoring.distribution.k == 1
    assert comparison.pictured("brier") == (["relapse", "death", "either", "both"] if shared else NAMES)
    figure = comparison.plot("brier", outcome="death")
    assert figure._suptitle.get_text().startswith("death: Brier score over time")
    page = comparison.to_html()
    assert page.count("<figure>") >= sum(len(comparison.pictured(k)) for k in (
        "brier", "pinball", "murphy", "calibration", "censoring", "differences"
    ))  # fmt: skip


def test_folds_show_one_censoring_distribution_of_all_event_times():
    """The weights are those of subjects of whom all events were seen."""
    found = cs.cross_validate(
        {"true": lambda X, y, X_test: TRUTH}, None, observed(90), cv=2, scores="crps", discrimination=False
    )
    seen = sum(bar.heights.sum() for bar in found.chart("censoring").panels[1].marks)
    last = found.outcome.last()
    assert seen == (last.event & (last.time <= found.horizon)).sum() > 0


def test_the_diagnostic_is_of_every_censoring_time(comparison):
    lines = dict(comparison.censoring.lines())
    if comparison.resolved_censoring.distribution.k == 1:
        seen = comparison.outcome.event.all(axis=1).sum()
        assert f"({seen} events" in lines["subjects"]
    else:
        assert {"relapse: subjects", "death: subjects"} <= set(lines)
        assert comparison.censoring.weights["largest"] >= 1


def test_an_outcome_without_a_comparison(comparison):
    with pytest.raises(InvalidInputError, match="got 'death first', expected one of relapse, death"):
        comparison.of("death first")


# ---- bad input -----------------------------------------------------------------------------------------


def test_bad_input():
    y = observed(30)
    with pytest.raises(
        InvalidInputError, match=r"Forecast 'a': got a distribution of 1 event times, expected 2"
    ):
        cs.compare({"a": cs.Exponential(1.0)}, y, KM())
    with pytest.raises(
        InvalidInputError, match=r"names must be 2 different names, one per event time; got \['a'\]"
    ):
        cs.compare(ENSEMBLES, y, KM(), names=["a"])
    with pytest.raises(InvalidInputError, match=r"no score called 'crps.dead.'.*such as 'crps.relapse.'"):
        cs.compare(ENSEMBLES, y, KM(), names=NAMES, scores="crps[dead]")
    with pytest.raises(InvalidInputError, match="events: got 'neither', expected some of 'either', 'both'"):
        cs.compare(ENSEMBLES, y, KM(), events=["neither"])
    with pytest.raises(InvalidInputError, match="mask must have one entry per subject"):
        cs.compare(ENSEMBLES, cs.Sample(None, y, mask=np.ones((30, 3), bool)), KM())
    with pytest.raises(InvalidInputError, match="names: got an outcome of one event time"):
        cs.compare({"a": cs.Exponential(1.0)}, y.marginal(0), KM(), names=NAMES)
    with pytest.raises(InvalidInputError, match="train: got outcomes of 1 event times, expected 2"):
        cs.compare(ENSEMBLES, y, KM(), train=(None, y.marginal(0)))
    with pytest.raises(ContradictionError, match="one censoring time per coordinate"):
        cs.compare(ENSEMBLES, observed(30, each=True), C_ONE, horizon=2.0)


# ---- delayed entry -------------------------------------------------------------------------------------


def entered(n: int, seed: int) -> cs.RightCensored:
    """Subjects whose event times and C all exceed their entry."""
    rng = np.random.default_rng([seed, 11])
    T, C, a = TRUTH.sample(6 * n, seed=[seed, 5])[0], rng.uniform(0, 4, 6 * n), rng.uniform(0, 0.6, 6 * n)
    kept = np.nonzero((a[:, None] < T).all(axis=1) & (a < C))[0][:n]
    T, C, a = T[kept], C[kept, None], a[kept]
    return cs.RightCensored(np.minimum(T, C), T <= C, entry=a)


ENTRY_SCORES = ["energy_score", "log_score", "crps[death]", "brier_score:ipcw"]


def test_forecasts_are_judged_given_survival_to_the_entry():
    """The entry was ignored: the means were those of subjects who were all seen from the start."""
    y = entered(80, 1)
    comparison = cs.compare({"true": TRUTH}, y, C_ONE, scores=ENTRY_SCORES, **OPTIONS)
    assert any("Delayed entry in 80 of 80 subjects" in note for note in comparison.notes)
    found, given, options = means(comparison), TRUTH.given_survival(y.entry), {"horizon": 2.0}
    assert found["log_score", "joint"][0] == pytest.approx(cs.log_score(y, TRUTH, C_ONE, **options).mean())
    assert found["energy_score", "joint"][0] == pytest.approx(
        cs.energy_score(y, given, C_ONE, **options).mean(), rel=0.02
    )
    death = cs.crps(y.marginal(1), given.marginal(1), C_ONE, **options)
    assert found["crps", "death"][0] == pytest.approx(death.mean())
    both = cs.joint_brier_score(y, given, C_ONE, [1.5], event="all", scale="ipcw", **options)
    assert found["brier_score:ipcw", "both", 1.5][0] == pytest.approx(both.mean(), rel=0.02)


def test_the_ipcw_scale_counts_censoring_from_the_entry_on():
    y = entered(60, 2)
    first = cs.brier_score(y.first(), TRUTH.given_survival(y.entry).first(), C_ONE, [1.0], scale="ipcw")
    either = cs.joint_brier_score(y, TRUTH, C_ONE, [1.0], scale="ipcw")
    np.testing.assert_allclose(either, first, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("score", ENTRY_SCORES)
def test_errors_with_entries_cover_the_truth(score):
    """Known and estimated C: the mean of 300 data sets lies within two errors of each in 95 % of them."""
    z = {"known": [], "estimated": []}
    options = OPTIONS | {"times": [1.5]}
    for seed in range(300):
        y = entered(150, seed)
        F = cs.Ensemble(TRUTH.sample(4000, seed=3)) if score != "log_score" else TRUTH
        for name, C in (("known", C_ONE), ("estimated", KM())):
            train = None if name == "known" else (None, y)
            found = means(cs.compare({"true": F}, y, C, train=train, scores=[score], **options))
            z[name].append(next(iter(found.values())))
    for name, found in z.items():
        mean, error = np.array(found).T
        assert 0.92 < np.mean(np.abs(mean - np.mean(mean)) < 1.96 * error) < 0.98, name


def test_entries_with_times_that_are_not_followed():
    y = entered(40, 3)
    mask = np.ones((40, 2), dtype=bool)
    cs.compare({"true": TRUTH}, cs.Sample(None, y, mask=mask), C_ONE, scores=["log_score"], **OPTIONS)
    mask[3, 0] = False
    with pytest.raises(UnsupportedOutcomeError, match="mask: got event times that are not followed"):
        cs.compare({"true": TRUTH}, cs.Sample(None, y, mask=mask), C_ONE, **OPTIONS)


def test_a_reference_that_is_a_class_is_an_error_without_training_subjects_too():
    with pytest.raises(InvalidTypeError, match="reference: got the class Copula, expected an instance"):
        cs.compare({"true": TRUTH}, observed(20), C_ONE, reference=cs.Copula)
