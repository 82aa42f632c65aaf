"""Proper scores of right-censored forecasts: one loss per subject, lower is better."""

from censcore.scores.decorator import score
from censcore.scores.integration.routes import routes
from censcore.scores.registry import SCORES, ScoreInfo, register, score_info
from censcore.scores.rules.augmented import (
    augmented_binomial_log_score,
    augmented_brier_score,
    augmented_integrated_brier_score,
)
from censcore.scores.rules.mean import MeanLoss, clustered_mean, mean_loss

# each file registers its score: this is the order in which they are shown
# isort: off
from censcore.scores.rules.log import log_score
from censcore.scores.rules.crps import crps
from censcore.scores.rules.brier import brier_score
from censcore.scores.rules.integrated_brier import integrated_brier_score
from censcore.scores.rules.binomial_log import binomial_log_score
from censcore.scores.rules.pinball import pinball_score
from censcore.scores.rules.energy import energy_score
from censcore.scores.rules.joint_brier import joint_brier_score
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
