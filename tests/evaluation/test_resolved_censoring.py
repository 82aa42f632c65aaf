"""The term that the estimation of the censoring distribution adds to every standard error."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.distributions import ProportionalHazards
from censcore.evaluation.inference.resolved_censoring import resolve_censoring
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CASE_SCORES, Custom
from censcore.evaluation.sample import Sample


def sample(n: int, seed: int, tied: bool = False) -> tuple[np.ndarray, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    T, C = rng.weibull(1.5, n) * np.exp(0.5 * x[:, 0]), rng.uniform(0, 2.5, n)
    y = np.minimum(T, C)
    return x, cs.RightCensored(np.ceil(8 * y) / 8 if tied else y, T <= C)


FORECASTS = {
    "step": cs.Step(np.linspace(0.1, 2, 20), sf=np.linspace(0.95, 0.05, 20)[None, :]),
    "smooth": cs.Weibull(1.4, 1.1),
}
CUSTOM = {
    "custom": Custom.of("custom", cs.crps),
    "custom:ipcw": Custom.of(
        "custom:ipcw", lambda y, F, C, horizon: cs.brier_score(y, F, C, 1.0, scale="ipcw", horizon=horizon)
    ),
}
JUMPS, HAZARD = np.linspace(0.05, 1.9, 25), np.full(25, 0.04)


def shared_curve(hazard: np.ndarray, x: np.ndarray) -> cs.Step:
    return cs.Step(JUMPS, sf=np.cumprod(1 - hazard)[None, :])


def curve_each(hazard: np.ndarray, x: np.ndarray) -> ProportionalHazards:
    return ProportionalHazards(JUMPS, -np.cumsum(np.log1p(-hazard)), np.exp(0.5 * x[:, 0]))


@pytest.mark.parametrize("distribution", [shared_curve, curve_each])
@pytest.mark.parametrize("forecast", FORECASTS)
@pytest.mark.parametrize("name", [*CASE_SCORES, *CUSTOM])
def test_derivative_is_that_of_the_mean(name, forecast, distribution):
    """A(u) against the change of the mean loss when the hazard of C at u is changed a little."""
    if name == "log_score" and forecast == "step":
        pytest.skip("a step distribution has no log score")
    x, y = sample(400, 1)
    F, score = FORECASTS[forecast], CASE_SCORES.get(name) or CUSTOM[name]
    risk = np.exp(0.5 * x[:, 0]) if distribution is curve_each else np.ones(400)
    w = np.random.default_rng(2).uniform(0.5, 1.5, size=(400, 2)) / 400

    def case(hazard: np.ndarray) -> Case:
        return Case(y, F, distribution(hazard, x), 1.8, np.array([0.5, 1.0]), np.array([0.25, 0.6]))

    here = case(HAZARD)
    losses = score.losses(here)
    A = score.derivative(here, losses, w * risk[:, None], JUMPS)
    assert A.shape == (2, 25, losses.shape[1])
    np.testing.assert_array_equal(A[:, JUMPS >= 1.8], 0.0)
    for j in np.nonzero(JUMPS < 1.8)[0][::4]:
        step = 1e-5
        more, less = HAZARD.copy(), HAZARD.copy()
        more[j], less[j] = 1 - (1 - 0.04) * np.exp(step), 1 - (1 - 0.04) * np.exp(-step)
        numerical = w.T @ (score.losses(case(more)) - score.losses(case(less))) / (2 * step)
        size = max(np.abs(A).max(), 1e-12)
        np.testing.assert_allclose(A[:, j], numerical, atol=0.04 * size)  # interpolated between cells


def influence(distribution, case: Case, score, weight: np.ndarray) -> np.ndarray:
    """What the mean owes to each training subject, (n_train, q)."""
    losses = score.losses(case)
    xi = np.zeros((distribution.n_train, losses.shape[1]))
    for part in distribution.parts:
        xi[part.training] += part.influence_on([score], [losses], case, weight[:, None])[:, 0]
    return xi


ESTIMATORS = {
    "kaplan-meier": cs.KaplanMeier(),
    "strata": cs.KaplanMeier(stratify=2),
    "cox": cs.CoxRegression(),
    "efron": cs.CoxRegression(ties="efron"),
    "breslow": cs.CoxRegression(ties="breslow"),
}


@pytest.mark.parametrize(
    ("name", "tied"),
    [(name, tied) for name in ESTIMATORS for tied in (False, True) if (name, tied) != ("breslow", True)],
)
def test_influence_is_the_derivative_by_the_weight_of_a_training_subject(name, tied):
    """A little more weight on one training subject moves the mean by its influence, on both scales."""
    x, y = sample(300, 3, tied)
    x = np.column_stack([x, x[:, 1] > 0])
    test, train = slice(0, 100), slice(100, 300)
    weight = np.random.default_rng(0).integers(1, 4, size=200).astype(float)
    censoring = cs.Censoring(ESTIMATORS[name])
    distribution = resolve_censoring(censoring, y[test], x[test], Sample(x[train], y[train], weight))
    assert distribution.parts
    case = Case(
        y[test], cs.Weibull(1.4, 1.1), distribution.distribution, 1.6, np.array([1.0]), np.array([0.4])
    )
    for score, tolerance in [("brier_score:ipcw", 1e-3), ("brier_score", 1e-3), ("pinball_score", 0.02)]:
        xi = influence(distribution, case, CASE_SCORES[score], np.full(100, 1 / 100))[:, 0]
        np.testing.assert_allclose(xi.sum(), 0.0, atol=1e-10)
        for r in (3, 77, 150):
            moved = []
            for step in (1e-4, -1e-4):
                w = weight.copy()
                w[r] *= 1 + step
                C = cs.Censoring(ESTIMATORS[name]).fit(x[train], y[train], w).predict_distribution(x[test])
                other = Case(y[test], case.F, C, 1.6, case.times, case.levels)
                moved.append(CASE_SCORES[score].losses(other).mean())
            assert (moved[0] - moved[1]) / 2e-4 == pytest.approx(xi[r], abs=tolerance * np.abs(xi).max())


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_errors_with_a_cox_model_of_censoring_and_an_end_are_those_of_the_jackknife(ties):
    """Monthly times for Efron's baseline; both with a common end of follow-up, which is treated apart."""
    x, y = sample(90, 11, tied=ties == "efron")
    y = y.censor_at(1.75)
    forecasts = {"weibull": cs.Weibull(1.5, np.exp(0.5 * x[:, 0])), "pooled": cs.Weibull(1.4, 1.1)}

    def compared(rows):
        some = {name: F.take(rows) if len(F) > 1 else F for name, F in forecasts.items()}
        C = cs.Censoring(cs.CoxRegression(ties=ties))
        options = {"times": [1.0], "scores": ["brier_score:ipcw", "crps"], "discrimination": False}
        found = cs.compare(some, y.take(rows), C, X=x[rows], horizon=1.5, reference=None, **options)
        assert not any("refit" in note or "bootstrap" in note for note in found.notes)
        return found.frame()

    n = len(y)
    everyone = np.arange(n)
    whole = compared(everyone)
    left_out = np.array([compared(everyone[everyone != i])["mean"] for i in range(n)])
    jackknife = np.sqrt((n - 1) / n * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))
    assert len(whole) == 4
    np.testing.assert_allclose(whole["standard_error"], jackknife, rtol=0.05)


def test_equal_weights_give_greenwoods_variance():
    x, y = sample(300, 2, tied=True)
    model = cs.Censoring(cs.KaplanMeier()).fit(x, y).estimators_[0]
    table = model.event_table_[:-1]
    A = np.random.default_rng(0).normal(size=(len(table), 3))
    xi = model.influence(np.vstack([A, np.zeros((1, 3))]))
    d, Y = table["events"][:, None], table["at_risk"][:, None]
    np.testing.assert_allclose((xi**2).sum(axis=0), (A**2 * d / (Y * (Y - d))).sum(axis=0), rtol=1e-10)


def test_out_of_fold_distributions_have_a_part_per_fold():
    x, y = sample(300, 5)
    distribution = resolve_censoring(cs.Censoring(cs.KaplanMeier(), cv=4), y, x, None)
    assert distribution.in_sample
    assert len(distribution.parts) == 4
    for part in distribution.parts:
        assert not np.intersect1d(part.subjects, part.training).size
        assert len(part.subjects) + len(part.training) == 300


def test_groups_stay_in_one_fold():
    x, y = sample(300, 5)
    groups = np.repeat(np.arange(30), 10)
    distribution = resolve_censoring(cs.Censoring(cs.KaplanMeier(), cv=4), y, x, None, groups=groups)
    for part in distribution.parts:
        assert not np.intersect1d(groups[part.subjects], groups[part.training]).size


def test_a_given_kaplan_meier_curve_is_recognised():
    x, y = sample(300, 6)
    train = Sample(x[100:], y[100:])
    C = cs.Censoring(cs.KaplanMeier()).fit(None, train.y).predict_distribution()
    copied = cs.Step(*C.steps()[:1], sf=C.steps()[1])
    for given in (C, copied):
        recognised = resolve_censoring(given, y[:100], None, train)
        assert recognised.estimated
        assert len(recognised.parts) == 1
        assert recognised.n_train == 200
        assert not len(recognised.shared.pairs)
    other = resolve_censoring(cs.Uniform(0.0, 2.5), y[:100], None, train)
    assert not other.estimated
    assert "taken as known" in other.description


def test_what_was_fitted_before_to_scored_subjects_is_recognised():
    x, y = sample(200, 6)
    fitted = cs.Censoring(cs.KaplanMeier()).fit(x, y)
    predicted = fitted.predict_distribution(x)
    out_of_fold = cs.Censoring(cs.KaplanMeier(), cv=4).fit_predict_distribution(x, y)
    for given in (fitted, predicted, out_of_fold):
        distribution = resolve_censoring(given, y, x, None)
        assert distribution.n_train == 200
        np.testing.assert_array_equal(distribution.shared.pairs, np.column_stack([np.arange(200)] * 2))
        assert "200 of them scored" in distribution.description
    assert len(resolve_censoring(out_of_fold, y, x, None).parts) == 4
    some = resolve_censoring(fitted, y[150:], x[150:], None)
    np.testing.assert_array_equal(some.shared.pairs, np.column_stack([np.arange(50), np.arange(150, 200)]))
    changed = resolve_censoring(predicted.censor_at(1.0), y, x, None)
    assert "taken as known" in changed.description
    weibull = resolve_censoring(cs.Censoring(cs.WeibullRegression()).fit(x, y), y, x, None)
    assert "200 of them scored; taken as known" in weibull.description
    assert "The scored subjects are those" in " ".join(weibull.notes)
    assert "pass train= to account for it" in " ".join(weibull.notes)


def test_training_subjects_that_are_scored_are_noticed():
    x, y = sample(100, 7)
    copy = cs.RightCensored(y.time.copy(), y.event.copy())
    km = cs.Censoring(cs.KaplanMeier())
    assert resolve_censoring(km, y, x, Sample(x, copy)).in_sample
    half = resolve_censoring(km, y, x, Sample(x[:50], y[:50]))
    assert not half.in_sample
    assert len(half.shared.pairs) == 50
    assert "50 of 100 scored subjects" in half.notes[0]
    without_X = resolve_censoring(km, y, None, Sample(None, y[50:]))
    np.testing.assert_array_equal(
        without_X.shared.pairs, np.column_stack([np.arange(50, 100), np.arange(50)])
    )


def test_equal_subjects_are_not_the_same_subject_where_ties_are_common():
    """Whole months without covariates: independent samples share many values, and that is no overlap."""
    rng = np.random.default_rng(8)
    km = cs.Censoring(cs.KaplanMeier())

    def months(n: int) -> cs.RightCensored:
        return cs.RightCensored(rng.integers(1, 40, n).astype(float), rng.random(n) < 0.6)

    for _ in range(20):
        distribution = resolve_censoring(km, months(150), None, Sample(None, months(300)))
        assert not len(distribution.shared.pairs)
        assert not distribution.notes + distribution.notes_on_ties
    pool = months(600)
    overlapping = resolve_censoring(km, pool[:400], None, Sample(None, pool[100:]))
    assert not len(overlapping.shared.pairs)
    assert "ties make it impossible" in overlapping.notes_on_ties[0]
