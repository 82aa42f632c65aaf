"""Net benefit: its definition, its estimate under censoring, and the coverage of its intervals."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.measures.case import risk_at
from censcore.evaluation.measures.murphy import elementary
from censcore.evaluation.measures.net_benefit import TREAT_ALL, TREAT_NONE, decision_lines, net_benefit
from censcore.exceptions import InvalidInputError
from censcore.scores.inputs.known_at import known_at
from censcore.scores.inputs.scoring_inputs import scoring_inputs

T0, THETA = 1.0, np.array([0.2, 0.4, 0.6])


def drawn(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, cs.RightCensored]:
    x = rng.normal(size=n)
    T, C = rng.exponential(np.exp(-x)), rng.uniform(0, 2.5, n)
    return x, T, cs.RightCensored(np.minimum(T, C), T <= C)


def compared(forecasts, y, censoring=None, **options) -> cs.Comparison:
    options = {"times": [T0], "horizon": 1.2, "scores": "brier_score:ipcw", "reference": None} | options
    censoring = cs.Censoring(cs.KaplanMeier()) if censoring is None else censoring
    return cs.compare(forecasts, y, censoring, discrimination=False, **options)


def test_without_censoring_it_counts_those_treated():
    x, T, _ = drawn(500, np.random.default_rng(0))
    p = -np.expm1(-np.exp(x))
    y = cs.RightCensored(T, np.ones(500))
    found = net_benefit(y, cs.Exponential(np.exp(x)), cs.PointMass(np.inf), T0, THETA).mean(axis=0)
    rightly = [((p > t) & (T <= T0)).mean() for t in THETA]
    in_vain = [((p > t) & (T > T0)).mean() for t in THETA]
    np.testing.assert_allclose(found, np.array(rightly) - THETA / (1 - THETA) * in_vain)


def test_it_is_an_affine_function_of_the_elementary_score():
    x, _, y = drawn(300, np.random.default_rng(1))
    F, C = cs.Exponential(np.exp(x)), cs.Uniform(0.0, 2.5)
    found = net_benefit(y, F, C, T0, THETA)
    known = risk_at(scoring_inputs(y, F, C), T0, "localized")
    losses = elementary(T0, THETA).values(known) / C.sf(T0)
    had, _ = known_at(y, C, np.array([[T0]]), "ipcw").weights()
    np.testing.assert_allclose(found, had - losses / (2 * (1 - THETA)), atol=1e-12)


def test_censoring_does_not_move_its_mean():
    x, T, y = drawn(100_000, np.random.default_rng(2))
    F, C = cs.Exponential(np.exp(x)), cs.Uniform(0.0, 2.5)
    seen = cs.RightCensored(T, np.ones(len(T)))
    a, b = net_benefit(y, F, C, T0, THETA), net_benefit(seen, F, cs.PointMass(np.inf), T0, THETA)
    error = (a - b).std(axis=0) / np.sqrt(len(T))
    assert (np.abs((a - b).mean(axis=0)) < 4 * error).all()


def test_the_truth_has_the_largest_net_benefit():
    x, _, y = drawn(20_000, np.random.default_rng(3))
    forecasts = {
        "true": cs.Exponential(np.exp(x)),
        "flat": cs.Exponential(np.exp(0.4 * x)),
        "high": cs.Exponential(2 * np.exp(x)),
    }
    frame = (
        compared(forecasts, y)
        .net_benefit(thresholds=THETA)
        .pivot(index="threshold", columns="model", values="net_benefit")
    )
    for other in ("flat", "high", TREAT_ALL, TREAT_NONE):
        assert (frame["true"] >= frame[other] - 1e-3).all()
        assert (frame["true"] > frame[other] + 0.003).any()


def test_intervals_cover():
    rng = np.random.default_rng(4)
    big = np.random.default_rng(99).normal(size=200_000)
    true = -np.expm1(-np.exp(big))
    value = np.array(
        [np.mean((-np.expm1(-np.exp(0.7 * big)) > t) * (true - t / (1 - t) * (1 - true))) for t in THETA]
    )
    held = []
    for _ in range(100):
        x, _, y = drawn(200, rng)
        lines = decision_lines(compared({"F": cs.Exponential(np.exp(0.7 * x))}, y), None, THETA)
        held += [a["low"] <= v <= a["high"] for a, v in zip(lines[:3], value, strict=True)]
    assert 0.91 <= np.mean(held) <= 0.985


def test_treating_all_and_none_are_the_ends():
    x, _, y = drawn(300, np.random.default_rng(5))
    found = compared({"F": cs.Exponential(np.exp(x)), "one risk": cs.Exponential(1.0)}, y)
    frame = found.net_benefit(thresholds=[0.3]).set_index("model")
    assert frame.loc[TREAT_NONE, "net_benefit"] == 0
    treat_all = frame.loc[TREAT_ALL, "net_benefit"]
    assert frame.loc["one risk", "net_benefit"] == pytest.approx(treat_all, rel=1e-12)
    G = found.resolved_censoring.distribution
    had, survived = known_at(y, G, np.array([[T0]]), "ipcw").weights()
    assert frame.loc[TREAT_ALL, "net_benefit"] == pytest.approx(had.mean() - 3 / 7 * survived.mean())
    assert frame.loc["F", "gain"] == pytest.approx(
        frame.loc["F", "net_benefit"] - max(frame.loc[TREAT_ALL, "net_benefit"], 0)
    )
    assert frame.loc["F", "gain_low"] < frame.loc["F", "gain"] < frame.loc["F", "gain_high"]


def test_thresholds_outside_are_named():
    x, _, y = drawn(60, np.random.default_rng(6))
    with pytest.raises(InvalidInputError, match="between 0 and 1; got"):
        compared({"F": cs.Exponential(np.exp(x))}, y).net_benefit(thresholds=[0.5, 1.0])
