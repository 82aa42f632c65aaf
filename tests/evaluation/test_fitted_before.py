"""A censoring distribution that was fitted before, to the subjects who are scored: ties, slices, folds."""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest

import censcore as cs
from censcore.estimators.subjects import SubjectKeys, shared_subjects
from censcore.evaluation.inference.resolved_censoring import resolve_censoring

KM = cs.Censoring(cs.KaplanMeier())


@cache
def gbsg() -> tuple[np.ndarray, cs.RightCensored]:
    """Recurrence of breast cancer in days: 686 subjects, many with equal times."""
    from lifelines.datasets import load_gbsg2

    table = load_gbsg2()
    X = table[["age", "tsize", "pnodes"]].to_numpy(dtype=float)
    return X, cs.RightCensored(table["time"].to_numpy(dtype=float), table["cens"].to_numpy())


def months(n: int, seed: int) -> tuple[np.ndarray, cs.RightCensored]:
    """Whole months: nearly every subject has the time and event of another."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    T, C = 12 * rng.weibull(1.5, n) * np.exp(0.4 * x[:, 0]), rng.uniform(0, 30, n)
    return x, cs.RightCensored(np.ceil(np.minimum(T, C)), T <= C)


DATA = {"days": gbsg, "months": lambda: months(300, 1)}
FORECASTS = {"days": (2500.0, 2000.0), "months": (14.0, 11.0)}


def table_of(data: str, y: Any, C: Any, **options: Any) -> tuple[np.ndarray, cs.evaluation.Comparison]:
    a, b = FORECASTS[data]
    forecasts = {"weibull": cs.Weibull(1.3, a), "exponential": cs.Exponential(1 / b)}
    found = cs.compare(forecasts, y, C, discrimination=False, reference=None, **options)
    errors = [found.frame()["standard_error"], found.differences()["high"] - found.differences()["low"]]
    return np.concatenate(errors).astype(float), found


def fitted_before(y: Any, X: Any) -> dict[str, tuple[Any, dict[str, Any]]]:
    """All ways to hand in an estimate that was made before, with the options of the comparison."""
    fitted, curve = cs.Censoring(cs.KaplanMeier()).fit(None, y), None
    curve = fitted.predict_distribution()
    return {
        "estimator": (fitted, {}),
        "distribution": (curve, {}),
        "fitted with covariates": (cs.Censoring(cs.KaplanMeier()).fit(X, y), {}),
        "scored with covariates": (fitted, {"X": X}),
        "predicted for covariates": (fitted.predict_distribution(X), {"X": X}),
        "other covariates": (cs.Censoring(cs.KaplanMeier()).fit(X * 2, y), {"X": X}),
        "pickled": (pickle.loads(pickle.dumps(fitted)), {}),
        "distribution pickled": (pickle.loads(pickle.dumps(curve)), {}),
        "train given": (curve, {"train": (None, y)}),
        "equal arrays": (cs.Censoring(cs.KaplanMeier()).fit(None, copied(y)), {}),
    }


def copied(y: cs.RightCensored) -> cs.RightCensored:
    return cs.RightCensored(y.time.copy(), y.event.copy())


@pytest.mark.parametrize("data", DATA)
def test_the_same_subjects_have_the_errors_of_an_estimate_in_the_call(data):
    X, y = DATA[data]()
    expected, _ = table_of(data, y, KM)
    for name, (C, options) in fitted_before(y, X).items():
        errors, found = table_of(data, y, C, **options)
        np.testing.assert_allclose(errors, expected, rtol=1e-12, err_msg=name)
        assert f"fitted before to {len(y)} subjects, {len(y)} of them scored" in str(found.settings)
        assert any("are those that the censoring distribution was fitted to" in note for note in found.notes)


def test_weights_and_groups_of_the_same_subjects():
    _, y = gbsg()
    rng = np.random.default_rng(0)
    weight, groups = rng.integers(1, 4, len(y)).astype(float), rng.integers(0, 60, len(y))
    options = {"sample_weight": weight, "groups": groups}
    expected, _ = table_of("days", y, KM, **options)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y, weight)
    np.testing.assert_allclose(table_of("days", y, C, **options)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("data", DATA)
def test_competing_risks_of_the_same_subjects(data):
    _, y = DATA[data]()
    cause = np.where(y.event, 1 + np.arange(len(y)) % 2, 0)
    risks = cs.CompetingRisks(y.time, cause)
    scale = FORECASTS[data][0]
    F = {"a": cs.CauseSpecificHazards([cs.Weibull(1.3, 2 * scale), cs.Weibull(1.3, 2 * scale)])}
    errors = [
        cs.compare(F, risks, C, discrimination=False, reference=None).frame()["standard_error"].to_numpy()
        for C in (KM, cs.Censoring(cs.KaplanMeier()).fit(None, risks))
    ]
    np.testing.assert_allclose(errors[1].astype(float), errors[0].astype(float), rtol=1e-12)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("cv", [None, 4])
def test_out_of_fold_estimates_and_several_times(cv, shared):
    """What fit_predict_distribution gave belongs to its training subjects, whatever their ties."""
    rng = np.random.default_rng(3)
    T = np.ceil(12 * rng.weibull(1.5, (240, 2)))
    C = np.ceil(rng.uniform(0, 30, (240, 1 if shared else 2)))
    pair = cs.RightCensored(np.minimum(T, C), T <= C)
    F = {"a": cs.Independent([cs.Weibull(1.3, 14.0), cs.Weibull(1.1, 12.0)])}
    censoring = cs.Censoring(cs.KaplanMeier(), cv=cv, shared=shared)
    given = cs.Censoring(cs.KaplanMeier(), cv=cv, shared=shared).fit_predict_distribution(None, pair)
    found = [
        cs.compare(F, pair, D, scores="crps", discrimination=False, reference=None)
        for D in (censoring, given)
    ]
    expected, errors = (one.frame()["standard_error"].to_numpy(dtype=float) for one in found)
    np.testing.assert_allclose(errors, expected, rtol=1e-12)


def test_out_of_fold_estimates_of_some_subjects_keep_their_training_subjects():
    _, y = months(240, 2)
    out_of_fold = cs.Censoring(cs.KaplanMeier(), cv=4).fit_predict_distribution(None, y)
    some = np.random.default_rng(0).permutation(240)[:90]
    resolved = resolve_censoring(out_of_fold.take(some), y.take(some), None, None)
    np.testing.assert_array_equal(resolved.shared.pairs, np.column_stack([np.arange(90), some]))
    for part in resolved.parts:
        assert not np.intersect1d(some[part.subjects], part.training).size
    again = resolve_censoring(out_of_fold.take(some).take([3, 5]), y.take(some[[3, 5]]), None, None)
    np.testing.assert_array_equal(again.shared.pairs[:, 1], some[[3, 5]])


# ---- some of the subjects --------------------------------------------------------------------------


def test_a_part_or_a_permutation_of_subjects_in_days_is_recognised():
    """Nobody else could have these times and events; which of two equal ones it is makes no difference."""
    _, y = gbsg()
    keys = SubjectKeys.of(None, y)
    rng = np.random.default_rng(0)
    for rows in (np.arange(200, 400), rng.permutation(686), np.sort(rng.choice(686, 150, replace=False))):
        some = y.take(rows)
        for pairs in (
            shared_subjects(SubjectKeys.of(None, some), keys).pairs,
            shared_subjects(keys, SubjectKeys.of(None, some)).pairs[:, ::-1],
        ):
            assert len(pairs) == len(rows)
            np.testing.assert_array_equal(y.time[pairs[:, 1]], some.time[pairs[:, 0]])
            np.testing.assert_array_equal(y.event[pairs[:, 1]], some.event[pairs[:, 0]])
    for data in DATA:  # in months only all of them together are recognised
        _, y = DATA[data]()
        shuffled = y.take(rng.permutation(len(y)))
        C = cs.Censoring(cs.KaplanMeier()).fit(None, y)
        errors = [table_of(data, shuffled, c)[0] for c in (KM, C)]
        np.testing.assert_allclose(errors[1], errors[0], rtol=1e-10)


def test_landmarks_of_tied_data_recognise_the_subjects_at_risk():
    """At a landmark the scored subjects are a part of those that C was fitted to."""
    _, y = gbsg()
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y)
    found = cs.compare_landmarks(
        {"a": cs.Weibull(1.3, 2500.0)}, y, C, landmarks=[200.0, 500.0], scores="crps", reference=None
    )
    for at, one in zip((200.0, 500.0), found.comparisons, strict=True):
        at_risk = int((y.time > at).sum())
        assert f"686 subjects, {at_risk} of them scored" in one.settings["censoring distribution"]


def test_what_ties_hide_is_said():
    """A part of subjects in whole months could be others: errors take them as such, and a note says so."""
    _, y = months(600, 4)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y)
    some = np.sort(np.random.default_rng(1).choice(600, 60, replace=False))
    resolved = resolve_censoring(C, y.take(some), None, None)
    assert not len(resolved.shared.pairs)
    _, found = table_of("months", y.take(some), C)
    assert any("Ties hide whether" in note for note in found.notes)
    assert "0 of them recognised" in found.settings["censoring distribution"]
    train = cs.Sample(None, y, groups=np.arange(600))
    named, found = table_of("months", y.take(some), C, groups=some, train=train)
    assert not any("Ties hide" in note for note in found.notes)
    assert not np.allclose(named, table_of("months", y.take(some), C)[0], rtol=1e-6)


def test_other_subjects_are_others():
    rng = np.random.default_rng(5)
    hits = 0
    for seed in range(200):
        n, m = rng.integers(20, 200), rng.integers(20, 200)
        _, a = months(int(n), 1000 + seed)
        _, b = months(int(m), 2000 + seed)
        hits += len(shared_subjects(SubjectKeys.of(None, a), SubjectKeys.of(None, b)).pairs) > 0
    assert hits == 0


def test_halves_of_data_in_days_are_others_without_a_word():
    """Ties between them are as many as chance makes, so that few subjects could be in both."""
    _, y = gbsg()
    order = np.random.default_rng(0).permutation(686)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y.take(order[:343]))
    resolved = resolve_censoring(C, y.take(order[343:]), None, None)
    assert resolved.shared.certain
    assert not resolved.notes + resolved.notes_on_ties
    assert "343 subjects, 0 of them scored" in resolved.description
