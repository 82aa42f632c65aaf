from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError, MissingCensoringError

KM = cs.Censoring(cs.KaplanMeier())


def compare(split, censoring=KM, **options):
    options = {"X": split.x, "train": split.train, "discrimination": False} | options
    return cs.compare(options.pop("forecasts", split.forecasts), split.y, censoring, **options)


class Renamed(cs.KaplanMeier):
    """Not recognised as an estimator with an influence function."""


def refits(split, **options):
    """By influence function, and by refits of a Kaplan-Meier estimator that is not recognised as one."""
    options |= {"forecasts": {"cox": split.forecasts["cox"]}, "reference": None}
    drawn = compare(split, cs.Censoring(Renamed(), refits=150), **options)
    assert "bootstrap" in drawn.settings["standard errors"]
    return compare(split, **options), drawn


def line(frame: pd.DataFrame, score: str, model: str) -> pd.Series:
    return frame[(frame.score == score) & (frame.model == model) & (frame.by == "")].iloc[0]


def test_means_are_those_of_the_scores(split):
    comparison = compare(split, times=[0.5, 1.0], levels=[0.5], scores="all")
    C = cs.Censoring(cs.KaplanMeier()).fit(*split.train).predict_distribution()
    F = split.forecasts["cox"].predict_distribution(split.x)
    h = comparison.horizon
    frame = comparison.frame()
    expected = {
        "crps": cs.crps(split.y, F, C, horizon=h),
        "brier_score": cs.brier_score(split.y, F, C, 0.5, horizon=h),
        "brier_score:ipcw": cs.brier_score(split.y, F, C, 0.5, horizon=h, scale="ipcw"),
        "integrated_brier_score:ipcw": cs.integrated_brier_score(
            split.y, F, C, scale="ipcw", normalize=True, horizon=h
        ),
        "binomial_log_score": cs.binomial_log_score(split.y, F, C, 0.5, horizon=h),
        "pinball_score": cs.pinball_score(split.y, F, C, 0.5, horizon=h),
    }
    for score, losses in expected.items():
        assert line(frame, score, "cox")["mean"] == pytest.approx(losses.mean(), rel=1e-12)


def test_a_known_distribution_gives_the_plain_standard_error(split):
    frame = compare(split, cs.Uniform(0.0, 3.0), scores="crps", horizon=2.5).frame()
    F = split.forecasts["cox"].predict_distribution(split.x)
    losses = cs.crps(split.y, F, cs.Uniform(0.0, 3.0), horizon=2.5)
    assert line(frame, "crps", "cox").standard_error == pytest.approx(
        float(cs.mean_loss(losses)[1]), rel=1e-10
    )


def test_an_estimated_distribution_adds_to_the_standard_error(split):
    comparison = compare(split, scores=["crps", "brier_score:ipcw", "log_score"], times=[1.5], horizon=2.5)
    for model, score in comparison.losses.values:
        plain = float(cs.mean_loss(comparison.losses.values[model, score][:, 0])[1])
        found = comparison.estimate(model, score).standard_error[0]
        assert found == pytest.approx(plain) if score == "log_score" else found > plain * 1.0001


def test_influence_and_bootstrap_of_the_distribution_agree(split):
    scores = ["crps", "brier_score:ipcw", "pinball_score", "binomial_log_score"]
    found = refits(split, scores=scores, times=[1.5], levels=[0.5], horizon=2.2)
    for score in scores:
        terms = [c.estimate("cox", score).influence[len(split.y) :, 0] for c in found]
        exact, drawn = (np.sqrt((term**2).sum()) for term in terms)
        assert exact == pytest.approx(drawn, rel=0.2)


def test_in_sample_influence_agrees_with_the_bootstrap(split):
    found = refits(split, scores=["crps", "brier_score:ipcw"], times=[1.5], horizon=2.2, train=None)
    for score in ("crps", "brier_score:ipcw"):
        exact, drawn = (float(c.estimate("cox", score).standard_error[0]) for c in found)
        assert exact == pytest.approx(drawn, rel=0.2)


def test_not_available_and_infinite_scores_are_said_and_counted(split):
    late = cs.Uniform(1.0, 9.0)  # excludes the early events
    comparison = cs.compare(
        {"late": late, "ensemble": cs.Ensemble([[0.5, 1.0, 1.5]])},
        split.y,
        cs.Uniform(0.0, 3.0),
        scores=["log_score", "crps"],
        discrimination=False,
    )
    frame = comparison.frame()
    early = int((split.y.event & (split.y.time < 1.0)).sum())
    assert line(frame, "log_score", "late").infinite == early
    assert np.isinf(line(frame, "log_score", "late")["mean"])
    assert line(frame, "log_score", "ensemble").note == "not available"
    assert "Not available for ensemble" in " ".join(comparison.notes)
    assert "inf" in repr(comparison)
    assert "not available" in repr(comparison)


def test_ranks_and_skill(split):
    frame = compare(split, scores="crps").frame()
    ordered = frame.sort_values("mean")
    assert ordered["rank"].tolist() == [1.0, 2.0, 3.0]
    reference = line(frame, "crps", "kaplan-meier")
    assert reference.skill == 0.0
    assert reference.skill_standard_error == 0.0
    cox = line(frame, "crps", "cox")
    assert cox.skill == pytest.approx(1 - cox["mean"] / reference["mean"])


@pytest.mark.parametrize("weighted", [False, True])
def test_without_training_subjects_skill_is_against_their_own_null_model(split, weighted):
    """IPA: the reference is the curve of the scored subjects, as if it had been passed."""
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(split.y)) if weighted else None
    F, C = cs.Exponential(np.exp(-0.3 * split.x[:, 0])), cs.Censoring(cs.KaplanMeier())
    options = {"scores": ["brier_score:ipcw", "crps"], "sample_weight": w, "discrimination": False}
    found = cs.compare({"model": F}, split.y, C, **options)
    null = cs.KaplanMeier().fit(None, split.y, w).predict_distribution()
    named = cs.compare({"model": F, "kaplan-meier": null}, split.y, C, reference="kaplan-meier", **options)
    pd.testing.assert_frame_equal(found.frame(), named.frame())
    assert np.isfinite(found.frame()["skill"]).all()
    assert any("null model of the scored subjects" in note for note in found.notes)
    assert cs.compare({"model": F}, split.y, C, reference=None, **options).frame()["skill"].isna().all()


def test_the_null_model_of_the_scored_subjects_has_the_error_of_a_fixed_forecast():
    """Its curve minimises the mean over marginal forecasts, so that estimating it costs no first order."""
    means, errors = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        T, C = rng.exponential(1.0, 100), rng.uniform(0.2, 3.0, 100)
        y = cs.RightCensored(np.minimum(T, C), T <= C)
        found = cs.compare(
            {"fixed": cs.Exponential(1.0)}, y, cs.Uniform(0.2, 3.0), scores="brier_score:ipcw", times=[0.7],
            horizon=1.5, discrimination=False,
        )  # fmt: skip
        null = found.frame().query("model == 'kaplan-meier'").iloc[0]
        means.append(null["mean"])
        errors.append(null["standard_error"])
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.2)


def test_skill_error_by_the_delta_method(split):
    comparison = compare(split, cs.Uniform(0.0, 3.0), scores="crps", horizon=2.5)
    a, b = (comparison.losses.values[m, "crps"][:, 0] for m in ("cox", "kaplan-meier"))
    rng = np.random.default_rng(0)
    rows = rng.integers(300, size=(4000, 300))
    spread = np.std(1 - a[rows].mean(axis=1) / b[rows].mean(axis=1))
    assert line(comparison.frame(), "crps", "cox").skill_standard_error == pytest.approx(spread, rel=0.1)


def test_differences_are_paired(split):
    comparison = compare(split, cs.Uniform(0.0, 3.0), scores="crps", horizon=2.5)
    pairs = comparison.differences("none").set_index(["model", "versus"])
    a, b = (comparison.losses.values[m, "crps"][:, 0] for m in ("cox", "weibull"))
    row = pairs.loc[("cox", "weibull")]
    assert row.difference == pytest.approx((a - b).mean())
    assert row.standard_error == pytest.approx(np.std(a - b, ddof=1) / np.sqrt(300))
    assert len(pairs) == 3


def test_subgroups_are_comparisons_of_their_rows(split):
    by = np.where(split.x[:, 1] > 0, "high", "low")
    whole = compare(split, scores="crps", horizon=2.0, by={"second": by})
    high = by == "high"
    forecasts = {name: model.predict_distribution(split.x[high]) for name, model in split.forecasts.items()}
    alone = cs.compare(
        forecasts, split.y[high], KM, train=split.train, scores="crps", horizon=2.0, discrimination=False
    )
    columns = ["model", "mean", "standard_error", "skill", "skill_standard_error"]
    frame = whole.frame()
    found = frame[(frame.by == "second") & (frame.group == "high")][columns].reset_index(drop=True)
    # the cells of integrated scores depend on the rows, hence the tolerance
    pd.testing.assert_frame_equal(found, alone.frame()[columns], rtol=2e-3)


def test_by_a_column_of_a_frame(split):
    X = pd.DataFrame(split.x, columns=["a", "b"]).assign(sex=np.tile(["f", "m"], 150))
    distributions = {name: model.predict_distribution(split.x) for name, model in split.forecasts.items()}
    frame = cs.compare(distributions, split.y, KM, X=X, train=split.train, scores="crps", by="sex").frame()
    assert set(frame[frame.by == "sex"].group) == {"f", "m"}


def test_groups_widen_the_error_of_repeated_rows(split):
    twice = np.repeat(np.arange(300), 2)
    distributions = {n: m.predict_distribution(split.x[twice]) for n, m in split.forecasts.items()}
    options = {"train": split.train, "scores": "crps", "horizon": 2.0, "discrimination": False}
    once = compare(split, scores="crps", horizon=2.0).frame()
    repeated = cs.compare(distributions, split.y[twice], KM, groups=twice, **options).frame()
    ignored = cs.compare(distributions, split.y[twice], KM, **options).frame()
    np.testing.assert_allclose(repeated.standard_error, once.standard_error, rtol=1e-3)
    assert (ignored.standard_error < 0.8 * once.standard_error).all()


def test_weights_that_are_counts_repeat_rows(split):
    counts = np.random.default_rng(0).integers(0, 3, size=300)
    rows = np.repeat(np.arange(300), counts)
    distributions = {n: m.predict_distribution(split.x[rows]) for n, m in split.forecasts.items()}
    options = {"scores": ["crps", "pinball_score"], "levels": [0.3], "horizon": 2.0, "discrimination": False}
    weighted = compare(split, sample_weight=counts, **options).frame()
    repeated = cs.compare(distributions, split.y[rows], KM, train=split.train, groups=rows, **options).frame()
    np.testing.assert_allclose(weighted["mean"], repeated["mean"], rtol=1e-12)
    np.testing.assert_allclose(weighted.standard_error, repeated.standard_error, rtol=5e-3)


def test_train_groups_of_single_rows_change_nothing(split):
    plain = compare(split, scores="crps").frame().standard_error
    train = cs.Sample(*split.train, groups=np.arange(300))
    grouped = compare(split, scores="crps", train=train).frame().standard_error
    np.testing.assert_allclose(plain, grouped, rtol=1e-10)


def test_groups_of_the_scored_subjects_alone_are_told(split):
    """Unless the training subjects are the scored ones, or C does not depend on them."""
    groups = np.arange(300) // 3

    def told(censoring=KM, **options):
        more = {"scores": "crps", "horizon": 2.0, "discrimination": False, "groups": groups} | options
        notes = cs.compare({"weibull": cs.Weibull(1.5, 1.0)}, split.y, censoring, **more).notes
        return any("scored subjects have groups, the training subjects have none" in note for note in notes)

    assert told(train=split.train)
    assert not told(train=cs.Sample(*split.train, groups=groups))
    assert not told(train=(None, split.y))
    assert not told(cs.Uniform(0.0, 6.0), train=split.train)


def test_default_times_and_levels_lie_within_the_horizon(split):
    comparison = compare(split)
    settings = comparison.settings
    assert settings["horizon"] == comparison.horizon <= split.train[1].time.max()
    assert all(0 < t < comparison.horizon for t in settings["times"])
    assert len(settings["levels"]) >= 3
    early = compare(split, horizon=0.2)
    assert max(early.settings["levels"]) < 0.5


def test_results_do_not_depend_on_threads_or_chunks(split, monkeypatch):
    import censcore._numerics as numerics

    whole = compare(split).frame()
    monkeypatch.setattr(numerics, "CHUNK_NUMBERS", 1000)
    monkeypatch.setenv("CENSCORE_THREADS", "3")
    pd.testing.assert_frame_equal(whole, compare(split).frame(), check_exact=False, rtol=1e-12)


def test_bootstrap_is_reproducible(split):
    distribution = cs.Censoring(Renamed(), refits=5)
    one, two, other = (
        compare(split, distribution, scores="crps", seed=seed).frame().standard_error for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


@pytest.mark.parametrize("estimator", [cs.KaplanMeier(), cs.CoxRegression()])
@pytest.mark.parametrize("inside", [False, True])
def test_custom_scores_have_the_errors_of_the_same_built_in_scores(split, estimator, inside):
    """Nobody tells a custom score's scale: the derivative of each is found numerically."""

    def brier(scale):
        return lambda y, F, C, horizon: cs.brier_score(y, F, C, 1.5, horizon=horizon, scale=scale)

    def integrated(y, F, C, horizon):
        return cs.integrated_brier_score(y, F, C, scale="ipcw", normalize=True, horizon=horizon)

    def pinball(y, F, C, horizon):
        return cs.pinball_score(y, F, C, 0.5, horizon=horizon)

    custom = {
        "crps": cs.crps,
        "brier_score": brier("localized"),
        "brier_score:ipcw": brier("ipcw"),
        "integrated_brier_score:ipcw": integrated,
        "pinball_score": pinball,
    }
    scores = dict.fromkeys(custom) | {f"my {name}": function for name, function in custom.items()}
    options = {"times": [1.5], "levels": [0.5], "horizon": 2.5, "reference": None}
    options |= {"forecasts": {"cox": split.forecasts["cox"]}}
    options |= {"train": None} if inside else {}
    frame = compare(split, cs.Censoring(estimator), scores=scores, **options).frame()
    for name in custom:
        same = line(frame, name, "cox"), line(frame, f"my {name}", "cox")
        assert same[0]["mean"] == pytest.approx(same[1]["mean"], rel=1e-12)
        assert same[0].standard_error == pytest.approx(same[1].standard_error, rel=0.015)


def test_reference_by_name_distribution_estimator_and_none(split):
    named = compare(split, scores="crps", reference="weibull").frame()
    assert line(named, "crps", "weibull").skill == 0.0
    assert "kaplan-meier" not in set(named.model)
    distribution = compare(split, scores="crps", reference=cs.Exponential(1.0)).frame()
    assert line(distribution, "crps", "reference").skill == 0.0
    estimator = cs.WeibullRegression()
    fitted = compare(split, scores="crps", reference=estimator)
    assert fitted.reference == "reference"
    assert not hasattr(estimator, "coef_")
    none = compare(split, scores="crps", reference=None).frame()
    assert none.skill.isna().all()


def test_json_is_strict_and_complete(split, tmp_path):
    comparison = compare(split, scores=["log_score", "crps"])
    text = comparison.to_json()
    assert comparison.to_json(tmp_path / "out.json") is None
    document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert document == json.loads(text)
    assert {"verdict", "verdicts", "settings", "means", "differences", "censoring", "notes"} == set(document)
    assert document["means"][0]["mean"] is None  # Cox has no log score


def test_discrimination_is_marked(split):
    frame = compare(split, scores="crps", discrimination=True).frame()
    marked = frame[~frame.proper]
    assert set(marked.score) == {"concordance:harrell", "concordance:uno", "auc"}
    assert (marked.note == "descriptive, not proper").all()
    assert line(frame, "concordance:uno", "kaplan-meier")["mean"] == 0.5


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"censoring": None, "train": None}, MissingCensoringError, "censoring distribution is missing"),
        ({"censoring": 3}, InvalidTypeError, "censoring distribution or an estimator"),
        ({"scores": "crsp"}, InvalidInputError, "no score called 'crsp'"),
        ({"times": [99.0]}, InvalidInputError, "horizon"),
        ({"horizon": "late"}, InvalidInputError, "'auto' or a positive"),
        ({"levels": [1.5]}, InvalidInputError, "strictly between"),
        ({"reference": "none"}, InvalidInputError, "expected .* or one of the forecasts"),
        ({"confidence": 95}, InvalidInputError, "between 0 and 1"),
        ({"confidence": None}, InvalidInputError, "got None, expected a number between 0 and 1"),
        ({"groups": [1, 2]}, InvalidInputError, "one label per"),
        ({"by": np.zeros(3)}, InvalidInputError, "one label per"),
        ({"train": 1}, InvalidTypeError, "pair"),
        ({"sample_weight": -np.ones(300)}, InvalidInputError, "non-negative"),
    ],
)
def test_errors_say_what_to_do(split, change, error, match):
    with pytest.raises(error, match=match):
        compare(split, **change)


def test_forecasts_are_named_in_errors(split):
    with pytest.raises(InvalidTypeError, match="dictionary"):
        cs.compare("cox", split.y, cs.Uniform(0.0, 3.0))
    named = cs.compare([cs.Exponential(1.0), cs.Exponential(2.0)], split.y, cs.Uniform(0.0, 3.0))
    assert named.models == ["Exponential", "Exponential 2", "kaplan-meier"]
    with pytest.raises(InvalidInputError, match="Forecast 'short'"):
        cs.compare({"short": cs.Exponential([1.0, 2.0])}, split.y, cs.Uniform(0.0, 3.0))


def test_known_censoring_times_need_no_distribution():
    rng = np.random.default_rng(0)
    T, C = rng.exponential(1.0, 100), rng.uniform(0.5, 2.0, 100)
    y = cs.RightCensored(np.minimum(T, C), T <= C, censoring_time=C)
    comparison = cs.compare({"right": cs.Exponential(1.0), "wrong": cs.Exponential(3.0)}, y)
    assert comparison.resolved_censoring.description.startswith("known")
    unavailable = " ".join(comparison.notes)
    assert "brier_score:ipcw" in unavailable
    rank = comparison.frame().query("score == 'crps'").set_index("model")["rank"]
    assert rank["right"] < rank["wrong"]


def test_an_end_of_study_for_all_needs_no_influence_of_the_censoring_distribution():
    """C is the end of the study: a Cox regression has no finite jump to estimate."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    T = np.ceil(rng.exponential(60 * np.exp(0.5 * x[:, 0])))
    y = cs.RightCensored(np.minimum(T, 52.0), T <= 52)
    forecasts = {
        "x": cs.Exponential(np.exp(-0.5 * x[:, 0]) / 60),
        "none": cs.Exponential(np.full(120, 1 / 60)),
    }
    pooled, given = (
        cs.compare(forecasts, y, cs.Censoring(estimator), X=x, train=(x, y), horizon=52.0).frame()
        for estimator in (cs.KaplanMeier(), cs.CoxRegression(alpha=1.0))
    )
    assert pooled["standard_error"].notna().any()
    columns = ["mean", "standard_error", "low", "high"]
    np.testing.assert_allclose(given[columns], pooled[columns], rtol=1e-9)


@pytest.mark.parametrize("source", ["memory", "table"])
def test_a_time_that_not_everybody_can_be_followed_to_is_the_only_one_lost(source):
    rng, n = np.random.default_rng(0), 200
    end, x = np.where(np.arange(n) < 100, 1.5, 3.0), rng.normal(size=n)
    T, c = rng.exponential(np.exp(-x)), end * rng.random(n)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    if source == "memory":
        F = {"a": cs.Exponential(np.exp(x)), "b": cs.Exponential(np.exp(0.3 * x))}
        C: object = cs.Uniform(0.0, end)
    else:
        grid = np.linspace(0.25, 2.5, 10)
        curves = {name: np.exp(-np.exp(b * x)[:, None] * grid) for name, b in {"a": 1.0, "b": 0.3}.items()}
        columns = {f"{m}__sf@{t:g}": sf[:, j] for m, sf in curves.items() for j, t in enumerate(grid)}
        frame = pd.DataFrame({"time": y.time, "event": y.event} | columns)
        F, C = "columns", cs.Uniform(0.0, 1.5)
        y = cs.OutcomeTable(frame[frame.time < 1.5], "time", "event")
    options = {"scores": ["brier_score:ipcw", "crps"], "horizon": 2.5, "discrimination": False}
    both = cs.compare(F, y, C, times=[0.5, 1.0], **options).frame()
    found = cs.compare(F, y, C, times=[0.5, 1.0, 2.0], **options)
    frame = found.frame()
    late = (frame.score == "brier_score:ipcw") & (frame["at"] == 2.0)
    assert frame[late]["mean"].isna().all()
    assert (frame[late].note == "not available").all()
    for column in ("mean", "standard_error", "low", "high"):
        np.testing.assert_allclose(frame[~late][column], both[column], rtol=1e-12)
    assert any("brier_score:ipcw at 2: " in note for note in found.notes)
    assert found.verdict.score == "brier_score:ipcw"
