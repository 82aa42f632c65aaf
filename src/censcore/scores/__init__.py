"""Proper scores of right-censored forecasts: one loss per subject, lower is better."""

from censcore.scores.augmented import (
    augmented_binomial_log_score,
    augmented_brier_score,
    augmented_integrated_brier_score,
)
from censcore.scores.decorator import score
from censcore.scores.mean import MeanLoss, clustered_mean, mean_loss
from censcore.scores.registry import SCORES, ScoreInfo, register, score_info
from censcore.scores.routes import routes

# each file registers its score: this is the order in which they are shown
# isort: off
from censcore.scores.log import log_score
from censcore.scores.crps import crps
from censcore.scores.brier import brier_score
from censcore.scores.integrated_brier import integrated_brier_score
from censcore.scores.binomial_log import binomial_log_score
from censcore.scores.pinball import pinball_score
from censcore.scores.energy import energy_score
from censcore.scores.joint_brier import joint_brier_score
# isort: on

__all__ = [
    "SCORES",
    "MeanLoss",
    "ScoreInfo",
    "augmented_binomial_log_score",
    "augmented_brier_score",
    "augmented_integrated_brier_score",
    "binomial_log_score",
    "brier_score",
    "clustered_mean",
    "crps",
    "energy_score",
    "integrated_brier_score",
    "joint_brier_score",
    "log_score",
    "mean_loss",
    "pinball_score",
    "register",
    "routes",
    "score",
    "score_info",
]
