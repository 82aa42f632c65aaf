"""Censored engression finds margins, dependence and joint probabilities where follow-up reaches."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from censcore_studies.engression.recovery import QUESTIONS, draw_recovery, kendall_tau, recover


@pytest.fixture(scope="module")
def found():
    return recover(2000, 60, 400, width=64, depth=2, noise_dim=16, epochs=25)


def test_margins_dependence_and_joint_probabilities_match_the_truth(found):
    errors = found.errors().loc["censored"]
    assert errors["P(T > t), t < 5"] < 0.03
    assert all(errors[question] < 0.06 for question in QUESTIONS)
    tau = found.tau("truth", 4.0).mean()
    assert abs(errors["mean tau, by 4"] - tau) < 0.06
    assert abs(tau - 2 / np.pi * np.arcsin(0.45)) < 0.03  # little lies beyond 4


def test_naive_training_misses_them(found):
    errors = found.errors().loc["naive"]
    assert errors["P(T > t), t < 5"] > 0.08
    assert errors["both before 2"] > 0.12
    assert errors["mean tau, by 4"] > 0.45


def test_kendall_tau(rng):
    z = rng.normal(size=(80, 2)) @ np.array([[1.0, 0.6], [0.0, 1.0]])
    assert kendall_tau(z) == pytest.approx(kendalltau(*z.T).statistic)


def test_picture(found, tmp_path):
    path = draw_recovery(tmp_path / "recovery.png", found)
    assert path.stat().st_size > 20_000
