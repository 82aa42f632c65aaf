"""ROC curves, sensitivity, specificity, predictive values, AUC over time and risks by outcome."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError
from censcore.scores.inputs.known_at import known_at

T0, THETA = 1.0, [0.2, 0.5]


def drawn(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    T, C = rng.exponential(np.exp(-x)), rng.uniform(0, 2.5, n)
    return x, T, cs.RightCensored(np.minimum(T, C), T <= C)


def compared(forecasts, y, censoring=None, **options) -> cs.Comparison:
    options = {"times": [0.5, T0], "horizon": 1.2, "scores": "brier_score:ipcw", "reference": None} | options
    return cs.compare(
        forecasts, y, cs.Censoring(cs.KaplanMeier()) if censoring is None else censoring, **options
    )


def shares(p, had, threshold) -> list[float]:
    above = p > threshold
    return [
        (above & had).sum() / had.sum(), (~above & ~had).sum() / (~had).sum(),
        (above & had).sum() / above.sum(), (~above & ~had).sum() / (~above).sum(),
    ]  # fmt: skip


MEASURES = ["sensitivity", "specificity", "ppv", "npv"]


def test_without_censoring_they_are_plain_shares_with_binomial_errors():
    x, T, _ = drawn(400)
    y, p = cs.RightCensored(T, np.ones(400)), -np.expm1(-np.exp(x))
    found = compared({"a": cs.Exponential(np.exp(x))}, y, cs.PointMass(np.inf)).classification(T0, THETA)
    for line, theta in zip(found.to_dict("records"), THETA, strict=True):
        expected, had = shares(p, T <= T0, theta), T <= T0
        assert [line[name] for name in MEASURES] == pytest.approx(expected, rel=1e-12)
        n = [had.sum(), (~had).sum(), (p > theta).sum(), (p <= theta).sum()]
        for name, share, count in zip(MEASURES, expected, n, strict=True):
            error = np.sqrt(share * (1 - share) / count)
            assert line[f"{name}_standard_error"] == pytest.approx(error, rel=5e-3)
            assert 0 < line[f"{name}_low"] < share < line[f"{name}_high"] < 1


def test_under_censoring_by_hand():
    x, _, y = drawn(300)
    p = -np.expm1(-np.exp(x))
    found = compared({"a": cs.Exponential(np.exp(x))}, y).classification(T0, THETA)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    had, free = (w[:, 0] for w in known_at(y, C, np.array([[T0]]), "ipcw").weights())
    for line, theta in zip(found.to_dict("records"), THETA, strict=True):
        tp, fp, fn, tn = (w[at].sum() for at in (p > theta, p <= theta) for w in (had, free))
        expected = [tp / (tp + fn), tn / (tn + fp), tp / (tp + fp), tn / (tn + fn)]
        assert [line[name] for name in MEASURES] == pytest.approx(expected, rel=1e-12)


def test_errors_are_those_of_the_jackknife():
    x, _, y = drawn(150)
    model = cs.Exponential(np.exp(x))
    line = compared({"a": model}, y).classification(T0, [0.5]).iloc[0]
    left_out = []
    for i in range(150):
        rows = np.delete(np.arange(150), i)
        some = compared({"a": model.take(rows)}, y.take(rows), discrimination=False)
        left_out.append(some.classification(T0, [0.5])[MEASURES].iloc[0].to_numpy())
    errors = np.std(left_out, axis=0) * np.sqrt(149)
    assert line[[f"{name}_standard_error" for name in MEASURES]].to_numpy() == pytest.approx(errors, rel=0.03)


def test_intervals_cover():
    x, T, _ = drawn(400_000, seed=1)
    truth = shares(-np.expm1(-np.exp(x)), T <= T0, 0.5)
    inside = []
    for seed in range(60):
        x, _, y = drawn(200, seed=10 + seed)
        found = compared({"a": cs.Exponential(np.exp(x))}, y, discrimination=False)
        line = found.classification(T0, [0.5]).iloc[0]
        inside.append(
            [line[f"{m}_low"] <= t <= line[f"{m}_high"] for m, t in zip(MEASURES, truth, strict=True)]
        )
    assert np.mean(inside) == pytest.approx(0.95, abs=0.05)


def test_the_roc_curve_has_the_area_of_the_auc_and_its_own_thresholds():
    x, _, y = drawn(150)
    p = np.round(np.exp(x), 1)  # with ties
    found = compared({"a": cs.Exponential(p)}, y)
    roc = found.roc(T0)
    assert np.trapezoid(roc["tpr"], roc["fpr"]) == pytest.approx(found.auc([T0])["auc"][0], abs=1e-12)
    assert (np.diff(roc["fpr"]) >= -1e-12).all()
    assert roc["threshold"].tolist()[:-1] == sorted(np.unique(-np.expm1(-p)), reverse=True)
    one = found.classification(T0, [roc["threshold"][5]]).iloc[0]
    assert one["sensitivity"] == pytest.approx(roc["tpr"][5])
    assert one["sensitivity_low"] == pytest.approx(roc["tpr_low"][5])


def test_auc_at_the_times_of_the_table_and_at_others():
    x, _, y = drawn(200)
    found = compared({"a": cs.Exponential(np.exp(x)), "b": cs.Exponential(1.0)}, y)
    table = found.frame().query("score == 'auc'")
    again = found.auc()
    shown = table.rename(columns={"mean": "auc"})
    for name in ("auc", "standard_error", "low", "high"):
        assert again[name].tolist() == pytest.approx(shown[name].tolist())
    assert found.auc([0.3, 0.7])["time"].tolist() == [0.3, 0.3, 0.7, 0.7]
    with pytest.raises(InvalidInputError, match="between 0 and the horizon"):
        found.auc([5.0])
    folds = cs.cross_validate(
        {"cox": cs.CoxRegression()}, x[:, None], y, cv=3, times=[T0], horizon=1.2, scores="brier_score:ipcw"
    )
    known = folds.frame().query("score == 'auc' and model == 'cox'")["mean"].iloc[0]
    assert folds.auc([T0])["auc"][0] == pytest.approx(known)
    assert 0.5 < folds.auc([0.4])["auc"][0] < 1
    assert np.isfinite(folds.classification(T0)["specificity"]).all()


def test_risks_by_outcome():
    x, T, _ = drawn(301)
    y, p = cs.RightCensored(T, np.ones(301)), -np.expm1(-np.exp(x))
    found = compared({"a": cs.Exponential(np.exp(x))}, y, cs.PointMass(np.inf)).risks(T0).set_index("status")
    for status, some in {"event by t": p[T <= T0], "no event by t": p[T > T0]}.items():
        assert found["mean"][status] == pytest.approx(some.mean())
        assert found["50 %"][status] == pytest.approx(np.quantile(some, 0.5, method="inverted_cdf"))
        assert found["share"][status] == pytest.approx(len(some) / 301)


def test_of_one_cause_and_of_few_events():
    x, _, y = drawn(120)
    causes = cs.CompetingRisks(y.time, np.where(y.event, 1 + (np.arange(120) % 2), 0), names=["a", "b"])
    F = cs.CauseSpecificHazards([cs.Exponential(0.5 * np.exp(x)), cs.Exponential(0.5)], names=["a", "b"])
    found = compared({"f": F}, causes, scores="brier_score:ipcw")
    for outcome in ("a", "b"):
        assert np.isfinite(found.classification(T0, [0.2], outcome=outcome)["sensitivity"]).all()
        assert (found.roc(T0, outcome)["tpr"] <= 1 + 1e-12).all()
    few = cs.RightCensored(np.full(40, 2.0), np.zeros(40))
    none = compared(
        {"a": cs.Exponential(np.linspace(0.1, 1, 40))}, few, cs.PointMass(3.0), discrimination=False
    )
    assert none.classification(T0, [0.5])["specificity_low"].isna().all()


def test_pictures_show_the_tables():
    x, _, y = drawn(120)
    found = compared({"a": cs.Exponential(np.exp(x)), "b": cs.Exponential(np.exp(0.5 * x))}, y)
    roc = found.chart("roc", time=T0).panels[0].marks[1]
    assert roc.y.tolist() == found.roc(T0).query("model == 'a'")["tpr"].tolist()
    auc = found.chart("auc", times=[0.5, 0.9]).panels[0].marks[1]
    assert auc.y.tolist() == found.auc([0.5, 0.9]).query("model == 'a'")["auc"].tolist()
    scatter = found.chart("scatter", time=T0, models=["b", "a"]).panels[0]
    assert sum(len(mark.x) for mark in scatter.marks[1:]) == 120
    assert [panel.title for panel in found.chart("risks", time=T0).panels] == ["a", "b"]
    with pytest.raises(InvalidInputError, match="two of the forecasts"):
        found.chart("scatter", models=["a"])


def test_roc_of_r(r_data):
    """``Score(plots = "ROC")`` on the veterans at 100 days: all points of its curve."""
    data = pd.read_csv(r_data / "data_veteran.csv")
    y = cs.RightCensored(data["time"], data["status"] > 0)
    F = cs.Step([50.0, 100.0, 200.0], cdf=data[[f"full__cdf@{t}" for t in (50, 100, 200)]].to_numpy())
    roc = compared({"full": F}, y, times=[100.0], horizon=210.0).roc(100.0)
    points = [
        (0.104717133680, 0.0), (0.287162449061, 0.0), (0.601060828677, 0.12), (0.866240078361, 0.28),
        (0.971783748696, 0.84),
    ]  # fmt: skip
    for point in points:
        away = np.abs(roc[["tpr", "fpr"]].to_numpy() - point).max(axis=1)
        assert away.min() < 1e-11
