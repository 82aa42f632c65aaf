"""Weights, spans and horizons of any size have a finite answer, or a sentence in its place."""

from __future__ import annotations

import numpy as np

import censcore as cs
from censcore import evaluation, published

TIME, EVENT = np.array([0.5, 1.0, 1.0, 2.0, 3.0, 0.25]), np.array([1, 0, 1, 1, 0, 1], dtype=bool)
Y, F, C = cs.RightCensored(TIME, EVENT), cs.Weibull(1.3, np.linspace(1.0, 3.0, 6)), cs.Uniform(0.0, 5.0)
MODELS, RISK = {"a": F, "b": cs.Exponential(1.0)}, np.linspace(1.0, 0.0, 6)
QUICK = {"scores": "crps", "reference": None, "horizon": 2.0}


def test_a_small_span_of_a_calibration_curve_reaches_two_subjects_with_a_known_status():
    rng = np.random.default_rng(2)
    T, c = rng.weibull(1.3, 40), rng.uniform(0.2, 3.0, 40)
    models = {"a": cs.Weibull(1.3, np.linspace(0.8, 1.4, 40))}
    found = cs.compare(models, cs.RightCensored(np.minimum(T, c), c >= T), cs.Uniform(0.2, 3.0), **QUICK)
    curve = found.calibration("a", time=1.0, span=1e-66)
    assert all(0 <= point["observed"] <= 1 for point in curve.smoothed)


def test_measures_without_a_pair_say_so_instead_of_nan():
    early = cs.compare(MODELS, Y, C, **{**QUICK, "horizon": 0.1})
    lines = early.frame()
    assert "no pair of subjects" in lines.loc[lines["score"] == "auc", "note"].iloc[0]
    assert "nan" not in repr(early)


def test_weights_of_any_size_have_an_error():
    """The square of a weight may be beyond all floats, and the product of two below."""
    weight = np.array([0.5, 1.0, 1e249, 2.0, 0.7, 1.5])
    estimate = evaluation.concordance_estimate(Y, RISK, C, sample_weight=weight)
    assert 0 <= estimate.value[0] <= 1
    small = published.d_calibration(Y, F, sample_weight=weight / 1e249)
    assert published.d_calibration(Y, F, sample_weight=weight).note == small.note
