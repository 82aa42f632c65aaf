"""Comparisons of forecasts of relapse and death: every view is right, whatever the dependence."""

from __future__ import annotations

import json

import numpy as np
import pytest

import censcore as cs
from censcore.distributions.joint_events import before, first_is, in_order
from censcore.exceptions import InvalidInputError, UnsupportedOutcomeError

MARGINALS = [cs.Exponential(1.0), cs.Exponential(0.6)]
TRUTH = cs.Copula("clayton", MARGINALS, theta=2.0)
WRONG = {
    "death later": cs.Copula("clayton", [MARGINALS[0], cs.Exponential(0.6 / 1.25)], theta=2.0),
    "relapse later": cs.Copula("clayton", [cs.Exponential(0.8), MARGINALS[1]], theta=2.0),
    "independent": cs.Independent(MARGINALS),
}
NAMES = ["relapse", "death"]
OPTIONS = {"names": NAMES, "discrimination": False, "reference": None, "horizon": 3.0, "times": [0.5, 1.5]}
C_TRUE = cs.Uniform(0.0, 4.0)


def KM() -> cs.Censoring:
    return cs.Censoring(cs.KaplanMeier())


def seen(T: np.ndarray, C: np.ndarray, **options) -> cs.SemiCompetingRisks:
    """Relapse (T_1) and death (T_2), of which the latter ends the follow-up of the former."""
    end = np.minimum(T[:, 1], C)
    time, event = (
        np.column_stack([np.minimum(T[:, 0], end), end]),
        np.column_stack([T[:, 0] <= end, T[:, 1] <= C]),
    )
    return cs.SemiCompetingRisks(time, event, **options)


def observed(n: int, seed: int = 0, joint=TRUTH) -> tuple[cs.SemiCompetingRisks, np.ndarray, np.ndarray]:
    T = joint.sample(n if len(joint) == 1 else 1, seed=[seed, 1])
    T = T[0] if len(joint) == 1 else T[:, 0]
    C = np.random.default_rng([seed, 9]).uniform(0, 4, n)
    return seen(T, C), T, C


def ensembles(m: int = 400) -> dict[str, cs.Ensemble]:
    everyone = {"true": TRUTH, **WRONG}
    return {name: cs.Ensemble(F.sample(m, seed=[i, 5])) for i, (name, F) in enumerate(everyone.items())}


# ---- exact ---------------------------------------------------------------------------------------------

#: All pairs of a discrete world; a relapse after death is one that never happens.
VALUES, ENDS = [1.0, 2.0, 3.0, np.inf], np.array([0.5, 1.5, 2.5, 3.5])
PAIRS = np.array([(a, b) for a in VALUES for b in VALUES])
NEVER = np.where(PAIRS[:, 0] <= PAIRS[:, 1], PAIRS[:, 0], np.inf)
_rng = np.random.default_rng(0)
SHARE, OF_C = _rng.dirichlet(np.ones(len(PAIRS))), _rng.dirichlet(np.ones(len(ENDS)))
MEMBERS = cs.Ensemble(PAIRS[None], _rng.dirichlet(np.ones(len(PAIRS))))
C_STEPS = cs.Step([ENDS], cdf=np.cumsum(OF_C)[None])


def expectation(score) -> float:
    """The mean of a score of what is seen, over all pairs of times and all C."""
    found = [
        chance * SHARE @ score(seen(PAIRS, np.full(len(PAIRS), c)))
        for c, chance in zip(ENDS, OF_C, strict=True)
    ]
    return float(np.sum(found))


EVENTS = {
    "either": ("either", lambda a, b, t: min(a, b) <= t),
    "all": ("all", lambda a, b, t: a <= t and b <= t),
    "relapse first": (first_is(0), lambda a, b, t: a <= t and a < b),
    "death first": (first_is(1), lambda a, b, t: b <= t and b < a),
    "relapse, then death": (in_order(0, 1), lambda a, b, t: a < b <= t),
    "relapse, alive": (before(0, 1), lambda a, b, t: a <= t and a < b),
}


@pytest.mark.parametrize("name", EVENTS)
def test_the_brier_score_of_joint_events_by_enumeration(name):
    event, happened = EVENTS[name]
    for t in (1.0, 2.2, 3.0):
        B = np.array([happened(a, b, t) for a, b in zip(NEVER, PAIRS[:, 1], strict=True)])
        p = float(MEMBERS.weights[0] @ B)
        whole = SHARE @ (B - p) ** 2

        def score(y, scale, t=t):
            return cs.joint_brier_score(y, MEMBERS, C_STEPS, t, event=event, scale=scale)

        assert expectation(lambda y: score(y, "ipcw")) == pytest.approx(whole, rel=1e-12)
        assert expectation(lambda y: score(y, "localized")) == pytest.approx(
            C_STEPS.sf(t)[0] * whole, rel=1e-12
        )


@pytest.mark.parametrize("j", [0, 1])
def test_each_event_alone_by_enumeration(j):
    times = NEVER if j == 0 else PAIRS[:, 1]
    F = cs.Ensemble(times[None], MEMBERS.weights[0])
    t = 2.2
    B = times <= t
    whole = SHARE @ (B - MEMBERS.weights[0] @ B) ** 2
    brier = expectation(lambda y: cs.brier_score(y.marginal(j), F, C_STEPS, t, scale="ipcw"))
    assert brier == pytest.approx(whole, rel=1e-12)
    crps = expectation(lambda y: cs.crps(y.marginal(j), F, C_STEPS))
    at_known = [
        chance * SHARE @ cs.crps(cs.RightCensored(np.minimum(times, c), times <= c), F, cs.PointMass(c))
        for c, chance in zip(ENDS, OF_C, strict=True)
    ]
    assert crps == pytest.approx(np.sum(at_known), rel=1e-12)


def test_the_energy_score_by_enumeration():
    """It is that of (min(T_1, C), min(T_2, C)) at every C; an event after the terminal one never happens."""
    z, w = np.column_stack([NEVER, PAIRS[:, 1]]), MEMBERS.weights[0]
    expected = 0.0
    for c, chance in zip(ENDS, OF_C, strict=True):
        psi = np.minimum(z, c)
        distance = np.linalg.norm(psi[:, None] - psi[None], axis=2)
        expected += chance * SHARE @ (distance @ w - 0.5 * w @ distance @ w)
    found = expectation(lambda y: cs.energy_score(y, MEMBERS, C_STEPS, draws=500, pairs="all"))
    assert found == pytest.approx(expected, rel=5e-3)


def test_the_log_score_is_the_likelihood_of_what_was_seen():
    y, *_ = observed(50)
    expected = -TRUTH.log_likelihood(y.time, y.event)
    np.testing.assert_allclose(cs.log_score(y, TRUTH), expected)
    cut = y.censor_at(1.0)
    np.testing.assert_allclose(
        cs.log_score(y, TRUTH, C_TRUE, horizon=1.0), -TRUTH.log_likelihood(cut.time, cut.event)
    )


# ---- the comparison ------------------------------------------------------------------------------------


def test_means_are_those_of_the_scores_and_views():
    y, *_ = observed(80, 1)
    scores = ["energy_score", "log_score", "crps", "brier_score:ipcw", "log_score[relapse]"]
    found = cs.compare({"true": TRUTH}, y, C_TRUE, scores=scores, **OPTIONS)
    relapse = found.of("relapse").cases["true"]

    def mean(name, column=0):
        return found.estimate("true", name).value[column]

    assert mean("energy_score") == pytest.approx(cs.energy_score(y, TRUTH, C_TRUE, horizon=3.0).mean())
    assert mean("log_score") == pytest.approx(cs.log_score(y, TRUTH, horizon=3.0).mean())
    assert mean("crps[death]") == pytest.approx(
        cs.crps(y.terminal_event(), MARGINALS[1], C_TRUE, horizon=3.0).mean()
    )
    assert mean("crps[relapse]") == pytest.approx(
        cs.crps(y.marginal(0), relapse.F, C_TRUE, horizon=3.0).mean()
    )
    both = cs.joint_brier_score(y, TRUTH, C_TRUE, [0.5, 1.5], event="all", scale="ipcw", horizon=3.0)
    assert mean("brier_score:ipcw[both]", 1) == pytest.approx(both[:, 1].mean())
    assert found.outcomes == ["joint", "relapse", "death", "either", "both", "death first"]
    assert found.settings["terminal event"] == "death"
    assert any("'true': events that a forecast puts after 'death'" in note for note in found.notes)


def test_death_alone_is_the_comparison_of_its_column():
    y, *_ = observed(150, 2)
    scores = ["crps", "brier_score:ipcw", "integrated_brier_score:ipcw"]
    options = OPTIONS | {"discrimination": True}
    found = cs.compare({"a": TRUTH, "b": WRONG["death later"]}, y, KM(), scores=scores, **options)
    options.pop("names")
    alone = cs.compare(
        {"a": MARGINALS[1], "b": WRONG["death later"].marginal(1)},
        y.terminal_event(), KM(), scores=scores, **options,
    )  # fmt: skip
    frame = found.frame()
    frame = frame[frame.outcome == "death"].drop(columns="outcome").reset_index(drop=True)
    for column in ("mean", "standard_error", "low", "high", "rank", "events"):
        np.testing.assert_allclose(frame[column], alone.frame()[column], err_msg=column)


def test_relapse_alone_is_the_comparison_of_a_cause():
    y, *_ = observed(150, 2)
    scores = ["crps", "brier_score:ipcw"]
    members = ensembles(60)
    causes = cs.CompetingRisks(
        y.time[:, 0], np.where(y.event[:, 0], 1, np.where(y.never[:, 0], 2, 0)), names=NAMES
    )
    of_causes = {}
    for name, F in members.items():
        first = F.samples[0].min(axis=1)
        of_causes[name] = cs.CauseEnsemble(first[None], 1 + F.samples[0].argmin(axis=1)[None], names=NAMES)
    options = OPTIONS | {"discrimination": True}
    found = cs.compare(members, y, C_TRUE, scores=scores, **options).of("relapse").frame()
    options.pop("names")
    alone = cs.compare(of_causes, causes, C_TRUE, scores=scores, **options).of("relapse").frame()
    for column in ("mean", "standard_error", "rank", "events"):
        np.testing.assert_allclose(found[column], alone[column], err_msg=column)


def test_the_reference_knows_the_order_of_events():
    y, *_ = observed(400, 3)
    found = cs.compare(
        {"true": TRUTH, "independent": WRONG["independent"]}, y[:200], KM(), train=(None, y[200:]),
        names=NAMES, discrimination=False, scores=["energy_score", "crps", "brier_score"],
    )  # fmt: skip
    assert found.reference == "aalen-johansen"
    z = found.cases["aalen-johansen"].F.samples[0]
    assert (np.isinf(z[:, 0]) | (z[:, 0] <= z[:, 1])).all()
    frame = found.frame()
    assert (frame[frame.model == "true"].skill.abs() < 0.05).all()
    levels = found.settings["levels"]
    assert max(levels) <= min((np.minimum(z, found.horizon + 1) < found.horizon).mean(axis=0)) + 0.05


def test_weights_are_copies_and_groups_keep_them_together():
    y, *_ = observed(60, 4)
    weight = np.random.default_rng(0).integers(1, 4, 60)
    rows = np.repeat(np.arange(60), weight)
    options = OPTIONS | {"scores": ["crps", "brier_score:ipcw"]}
    weighted = cs.compare(ensembles(40), y, KM(), sample_weight=weight, **options).frame()
    copied = cs.compare(ensembles(40), y.take(rows), KM(), groups=rows, **options).frame()
    np.testing.assert_allclose(weighted["mean"], copied["mean"])
    np.testing.assert_allclose(weighted.standard_error, copied.standard_error, rtol=1e-6)


def test_subgroups_page_and_files():
    y, *_ = observed(120, 5)
    x = np.random.default_rng(1).normal(size=(120, 1))
    found = cs.compare(
        ensembles(40), y, KM(), X=x, by={"sex": x[:, 0] > 0},
        scores=["energy_score", "crps", "brier_score:ipcw"], **OPTIONS | {"discrimination": True},
    )  # fmt: skip
    assert set(found.frame().group) == {"all", "True", "False"}
    assert len(found.verdicts) == 6
    page = found.to_html()
    assert "death first" in page
    content = json.loads(found.to_json())
    assert content["settings"]["terminal event"] == "death"
    assert {line["outcome"] for line in content["means"]} == set(found.outcomes)
    assert found.of("both").outcome.never.sum() == y.never[:, 0].sum()
    with pytest.raises(InvalidInputError, match="expected 'death'"):
        found.chart("d-calibration", outcome="relapse")
    for kind in ("brier", "calibration", "d-calibration", "decision", "murphy", "censoring", "differences"):
        assert found.chart(kind).panels
    known = found.calibration("true", outcome="relapse")
    assert 0 < known.observed < 1


def test_known_censoring_times_need_no_distribution():
    _, T, C = observed(100, 6)
    y = seen(T, C, censoring_time=C)
    found = cs.compare(ensembles(40), y, scores=["energy_score", "crps", "brier_score"], **OPTIONS)
    assert found.settings["censoring distribution"].startswith("known")
    assert np.isfinite(found.frame()["mean"]).all()


def test_two_right_censored_times_are_an_error_that_names_the_outcome():
    y, *_ = observed(200, 7)
    coded = cs.RightCensored(y.time, y.event)
    for use in (
        lambda: cs.compare({"true": TRUTH}, coded, KM(), names=NAMES),
        lambda: cs.compare({"true": TRUTH}, coded, C_TRUE),
        lambda: cs.cross_validate({"true": lambda X, y, X_test: TRUTH}, None, coded, cv=3),
        lambda: cs.compare({"true": TRUTH}, observed_apart(), C_TRUE, train=(None, coded)),
        lambda: KM().fit(None, coded),
    ):
        with pytest.raises(
            UnsupportedOutcomeError, match=r"SemiCompetingRisks\(y.time, y.event, terminal=1\)"
        ):
            use()


def observed_apart() -> cs.RightCensored:
    """Event times of which none prevents the other."""
    _, T, C = observed(100, 8)
    return cs.RightCensored(np.minimum(T, C[:, None]), C[:, None] >= T)


def test_what_does_not_fit_is_refused_by_name():
    y, *_ = observed(60)
    with pytest.raises(UnsupportedOutcomeError, match="mask"):
        cs.compare({"true": TRUTH}, cs.Sample(None, y, mask=np.ones((60, 2), dtype=bool)), C_TRUE)
    with pytest.raises(UnsupportedOutcomeError, match="landmarks"):
        cs.compare_landmarks({"true": TRUTH}, y, C_TRUE, landmarks=[1.0])
    with pytest.raises(InvalidInputError, match="train"):
        cs.compare({"true": TRUTH}, y, C_TRUE, train=(None, observed_apart()))
    with pytest.raises(InvalidInputError, match="3 event times"):
        cs.compare({"three": cs.Ensemble(np.ones((1, 5, 3)))}, y, C_TRUE)


# ---- cross-validation ----------------------------------------------------------------------------------


def test_cross_validation_fits_and_scores_every_fold():
    x = np.random.default_rng(0).normal(size=(160, 2))
    y, *_ = observed(160, 9, _joint(x))

    def truth(X, y, X_test):
        assert isinstance(y, cs.SemiCompetingRisks)
        return _joint(X_test)

    def weibulls(X, y, X_test):
        """The likelihood of times of which death hides the other is that of right-censored ones."""
        model = cs.CopulaWeibull("clayton", max_iter=25)
        return model.fit(X, cs.RightCensored(y.time, y.event)).predict_distribution(X_test)

    found = cs.cross_validate(
        {"truth": truth, "weibulls": weibulls},
        x,
        y,
        cv=2,
        names=NAMES,
        times=[1.0],
        scores=["energy_score", "crps", "brier_score:ipcw"],
    )
    assert found.reference == "aalen-johansen"
    frame = found.frame().query("by == '' and proper")
    skill = frame.pivot_table(index="outcome", columns="model", values="skill")
    assert (skill.truth.drop("both") > 0.05).all()
    assert (skill.weibulls[["joint", "relapse", "death"]] > 0.03).all()
    ranked = found.frame().query("score == 'concordance:uno' and model == 'truth'")
    assert (ranked["mean"] > 0.6).all()
    assert found.of("relapse").frame().shape[0] > 0


def _joint(x: np.ndarray) -> cs.Copula:
    margins = [cs.Exponential(np.exp(0.8 * x[:, 0])), cs.Exponential(0.6 * np.exp(0.6 * x[:, 1]))]
    return cs.Copula("clayton", margins, theta=2.0)


@pytest.mark.slow
def test_censored_engression_learns_relapse_and_death_in_folds():
    x = np.random.default_rng(0).normal(size=(400, 2))
    y, *_ = observed(400, 9, _joint(x))
    model = cs.CensoredEngression(epochs=10, random_state=0)
    found = cs.cross_validate(
        {"engression": model}, x, y, cv=3, names=NAMES, discrimination=False, scores="energy_score"
    )
    line = found.frame().query("model == 'engression'").iloc[0]
    assert line.skill_low > 0.05


# ---- by simulation -------------------------------------------------------------------------------------

FORECASTS = {"true": TRUTH, **WRONG}


@pytest.fixture(scope="module", params=[800, pytest.param(8000, marks=pytest.mark.slow)])
def simulated(request):
    """Complete times, and a comparison of what is seen of them."""
    y, T, _ = observed(request.param, 11)
    scores = ["brier_score:ipcw", "integrated_brier_score:ipcw"]
    return T, cs.compare(FORECASTS, y, KM(), scores=scores, **OPTIONS)


def close(mine, theirs) -> bool:
    error = np.hypot(mine.standard_error, theirs.standard_error)
    return bool((np.abs(mine.value - theirs.value) < 4 * error + 1e-12).all())


def test_censored_estimates_are_those_of_complete_data(simulated):
    T, censored = simulated
    everything = seen(T, np.full(len(T), 1e9)), cs.PointMass(1e9)
    scores = ["brier_score", "integrated_brier_score:ipcw"]
    whole = cs.compare(FORECASTS, *everything, scores=scores, **OPTIONS)
    for score in censored.scores:
        of_whole = score.name if score.axis == "" else score.name.replace(":ipcw", "")
        for model in FORECASTS:
            assert close(censored.estimate(model, score.name), whole.estimate(model, of_whole)), score.name


def not_beaten(frame) -> set[str]:
    """No forecast is better than the truth; the outcomes by which one is clearly worse."""
    frame = frame[frame.model == "true"].fillna({"standard_error": 0.0})  # where forecasts are the same
    assert len(frame)
    assert (frame.difference < 3 * frame.standard_error + 1e-6).all()
    return set(frame[frame.difference < -4 * frame.standard_error].outcome)


def test_the_truth_is_not_beaten(simulated):
    T, censored = simulated
    found = not_beaten(censored.differences(adjustment="none"))
    if len(T) == 8000:  # fewer show that none is better, and not all that are worse
        assert found == {"relapse", "death", "either", "both", "death first"}


@pytest.mark.slow  # by enumeration it is checked every time
def test_the_energy_score_is_that_of_complete_data_and_finds_the_truth():
    y, T, C = observed(1500, 13)
    forecasts = {
        name: cs.Ensemble(F.sample(1500 * 50, seed=[i, 5])[0].reshape(1500, 50, 2))
        for i, (name, F) in enumerate(FORECASTS.items())
    }
    censored = cs.compare(forecasts, y, KM(), scores="energy_score:fair", **OPTIONS)
    known = cs.compare(forecasts, seen(T, C, censoring_time=C), scores="energy_score:fair", **OPTIONS)
    for model in forecasts:
        name = "energy_score:fair"
        assert close(censored.estimate(model, name), known.estimate(model, name)), model
    assert not_beaten(censored.differences(adjustment="none")) == {"joint"}


@pytest.mark.slow
def test_intervals_of_differences_cover():
    """200 data sets of 300 subjects, C estimated from the same subjects."""
    forecasts = {name: F for name, F in ensembles(100).items() if name in ("true", "death later")}
    options = OPTIONS | {"horizon": 2.5}
    _, T, C = observed(200_000, 12)
    complete = seen(T, np.full(len(T), 1e9)), cs.PointMass(1e9)
    targets = [
        cs.compare(forecasts, *complete, **options | {"scores": "brier_score"}),
        cs.compare(forecasts, seen(T, C, censoring_time=C), **options | {"scores": ["energy_score", "crps"]}),
    ]
    target = {
        (line.score, line.outcome, str(line.at)): line.difference
        for comparison in targets
        for line in comparison.differences(adjustment="none").itertuples()
        if line.difference != 0  # the ensembles may have one and the same share of members
    }
    hits: dict[tuple[str, str, str], list[bool]] = {}
    for seed in range(200):
        y, *_ = observed(300, 1000 + seed)
        scores = ["energy_score", "crps", "brier_score:ipcw"]
        frame = cs.compare(forecasts, y, KM(), **options | {"scores": scores}).differences("none")
        for line in frame.itertuples():
            key = (line.score.partition(":")[0], line.outcome, str(line.at))
            if key in target:
                hits.setdefault(key, []).append(line.low <= target[key] <= line.high)
    shares = {key: float(np.mean(found)) for key, found in hits.items()}
    assert 0.93 <= np.mean(list(shares.values())) <= 0.97, shares
    assert all(0.90 <= share <= 0.99 for share in shares.values()), shares
