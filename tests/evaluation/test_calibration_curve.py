"""Calibration at a time: right without censoring, covered with it, and honest where it cannot tell."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.measures.calibration_curve import _bin_numbers
from censcore.exceptions import InvalidInputError

T0 = 1.0


def drawn(n: int, rng: np.random.Generator, last: float = 2.5) -> tuple[np.ndarray, cs.RightCensored]:
    x = rng.normal(size=n)
    T, C = rng.exponential(np.exp(-x)), rng.uniform(0, last, n)
    return x, cs.RightCensored(np.minimum(T, C), T <= C)


def compared(forecast, y, censoring=None, **options) -> cs.Comparison:
    options = {"times": [T0], "horizon": 1.2, "scores": "brier_score:ipcw", "reference": None} | options
    censoring = cs.Censoring(cs.KaplanMeier()) if censoring is None else censoring
    return cs.compare({"F": forecast}, y, censoring, discrimination=False, **options)


def risk(slope: float, x: np.ndarray) -> np.ndarray:
    return -np.expm1(-T0 * np.exp(slope * x))


def test_without_censoring_bins_hold_shares_and_the_curve_is_least_squares():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    T = rng.exponential(np.exp(-x))
    y, F = cs.RightCensored(T, np.ones(300)), cs.Exponential(np.exp(0.7 * x))
    found = compared(F, y, cs.PointMass(np.inf), horizon=5.0).calibration("F", bins=5, span=1.0)
    p, D = risk(0.7, x), (T <= T0).astype(float)
    for j, line in enumerate(found.binned):
        inside = _bin_numbers(p, np.full(300, 1 / 300), 5) == j
        assert line["n"] == inside.sum() == 60
        assert line["predicted"] == pytest.approx(p[inside].mean())
        assert line["observed"] == pytest.approx(D[inside].mean())
        spread = D[inside].var(ddof=0)
        if spread > 0:
            assert line["standard_error"] == pytest.approx(np.sqrt(spread / 60), rel=0.02)
    at = found.smoothed[20]["predicted"]
    reach = np.abs(p - at).max() * (1 + 1e-9)
    root = np.sqrt((1 - (np.abs(p - at) / reach) ** 3) ** 3)
    design = np.column_stack([np.ones(300), p - at])
    level = np.linalg.lstsq(design * root[:, None], D * root, rcond=None)[0][0]
    assert found.smoothed[20]["observed"] == pytest.approx(level)


def test_observed_risk_is_that_of_kaplan_meier():
    """With the censoring distribution of the same subjects, inverse weights give the Kaplan-Meier curve."""
    x, y = drawn(400, np.random.default_rng(1))
    found = compared(cs.Exponential(np.exp(x)), y).calibration("F", bins=1)
    curve = cs.KaplanMeier().fit(None, y).predict_distribution()
    assert found.observed == pytest.approx(1 - float(curve.sf(T0)[0]), abs=1e-12)
    assert found.binned[0]["observed"] == pytest.approx(found.observed)


def coverage(n: int, replicates: int, slope: float, seed: int, last: float = 2.5) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    held: dict[str, list[float]] = {"binned": [], "smoothed": [], "rejected": []}
    for _ in range(replicates):
        x, y = drawn(n, rng, last)
        curve = compared(cs.Exponential(np.exp(slope * x)), y).calibration("F")
        p = risk(slope, x)
        number = _bin_numbers(p, np.full(n, 1 / n), len(curve.binned))
        for j, line in enumerate(curve.binned):
            held["binned"].append(line["low"] <= risk(1.0, x[number == j]).mean() <= line["high"])
        for line in curve.smoothed:
            true = risk(1.0, np.log(-np.log1p(-line["predicted"])) / slope)
            held["smoothed"].append(line["low"] <= true <= line["high"])
        held["rejected"].append(curve.p_value < 0.05)
    return {name: float(np.mean(values)) for name, values in held.items()}


def test_intervals_cover_and_the_test_keeps_its_level():
    found = coverage(n=200, replicates=80, slope=1.0, seed=0)
    assert 0.92 <= found["binned"] <= 0.99
    assert 0.90 <= found["smoothed"] <= 0.99
    assert found["rejected"] <= 0.13


@pytest.mark.slow
@pytest.mark.parametrize(("n", "last"), [(150, 2.5), (400, 2.5), (400, 1.5)])
def test_intervals_cover_in_many_data_sets(n, last):
    found = coverage(n, replicates=500, slope=1.0, seed=1, last=last)
    assert 0.93 <= found["binned"] <= 0.98
    assert 0.93 <= found["smoothed"] <= 0.97
    assert 0.02 <= found["rejected"] <= 0.09


def test_a_forecast_that_is_off_is_found():
    x, y = drawn(600, np.random.default_rng(2))
    right, wrong = (
        compared(F, y).calibration("F") for F in (cs.Exponential(np.exp(x)), cs.Exponential(2 * np.exp(x)))
    )
    assert right.p_value > 0.05 > 0.001 > wrong.p_value
    assert wrong.ici > 3 * right.ici
    assert wrong.e50 <= wrong.e90
    assert right.ici_by_chance == pytest.approx(0.02, abs=0.01)


def test_errors_hold_the_estimated_censoring_distribution():
    """The error of the overall risk is Greenwood's, which is smaller than under a known distribution."""
    x, y = drawn(500, np.random.default_rng(3))
    estimated = compared(cs.Exponential(np.exp(x)), y).calibration("F").binned
    known = compared(cs.Exponential(np.exp(x)), y, cs.Uniform(0.0, 2.5)).calibration("F").binned
    assert len(estimated) == len(known)
    whole = [compared(cs.Exponential(np.exp(x)), y, C).calibration("F", bins=1).binned[0]["standard_error"]
             for C in (None, cs.Uniform(0.0, 2.5))]  # fmt: skip
    assert whole[0] < whole[1]


def test_weights_are_copies_and_clusters_widen():
    x, y = drawn(200, np.random.default_rng(4))
    w = np.where(np.arange(200) % 3 == 0, 3.0, 1.0)
    copies = np.repeat(np.arange(200), w.astype(int))
    F = cs.Exponential(np.exp(x))
    weighted = compared(F, y, cs.Uniform(0, 2.5), sample_weight=w).calibration("F", bins=4)
    repeated = compared(
        cs.Exponential(np.exp(x[copies])), y[copies], cs.Uniform(0, 2.5), groups=copies
    ).calibration("F", bins=4)
    for a, b in zip(weighted.binned, repeated.binned, strict=True):
        for name in ("predicted", "observed", "standard_error", "low", "high"):
            assert a[name] == pytest.approx(b[name])


def test_one_risk_for_all_has_no_curve():
    _, y = drawn(200, np.random.default_rng(5))
    found = compared(cs.Exponential(1.0), y).calibration("F")
    assert found.smoothed == []
    assert len(found.binned) == 1
    assert np.isnan(found.ici)


def test_a_bin_without_events_has_an_interval_above_zero():
    rng = np.random.default_rng(6)
    p = np.repeat([0.001, 0.6], 100)
    event = np.concatenate([np.zeros(100, bool), rng.random(100) < 0.6])
    y = cs.RightCensored(np.where(event, 0.5, 1.1), event)
    F = cs.Step([0.5], sf=1 - p[:, None])
    found = cs.compare({"F": F}, y, cs.PointMass(1.1), times=[0.8], horizon=1.0, scores="brier_score:ipcw",
                       reference=None, discrimination=False).calibration("F", bins=2)  # fmt: skip
    assert found.binned[0]["observed"] == 0.0
    assert found.binned[0]["low"] == 0.0
    assert 0.02 < found.binned[0]["high"] < 0.06


def test_few_events_cannot_tell():
    event = np.arange(60) < 3
    y = cs.RightCensored(np.where(event, 0.5, 1.1), event)
    F = cs.Exponential(np.linspace(0.02, 0.3, 60))
    found = cs.compare({"F": F}, y, cs.PointMass(1.1), times=[0.8], horizon=1.0, scores="brier_score:ipcw",
                       reference=None, discrimination=False).calibration("F")  # fmt: skip
    assert found.note.startswith("cannot tell")
    assert np.isnan(found.p_value)
    assert all(np.isnan(line["low"]) for line in [*found.binned, *found.smoothed])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"model": "G"}, "model must be .*; got 'G'"), ({"time": 9.0}, "between 0 and the horizon"),
     ({"span": 0.0}, "span"), ({"bins": 0}, "bins")],
)  # fmt: skip
def test_bad_input_is_named(options, message):
    x, y = drawn(60, np.random.default_rng(7))
    with pytest.raises(InvalidInputError, match=message):
        compared(cs.Exponential(np.exp(x)), y).calibration(**({"model": "F"} | options))


def test_estimators_that_need_refits():
    rng = np.random.default_rng(8)
    x, y = drawn(120, rng)
    found = cs.compare(
        {"F": cs.Exponential(np.exp(x))},
        y,
        cs.Censoring(cs.WeibullRegression(), refits=3),
        X=x[:, None],
        times=[T0],
        horizon=1.2,
        scores="brier_score:ipcw",
        reference=None,
        discrimination=False,
    )
    assert np.isfinite(found.calibration("F").binned[0]["high"])
