"""Estimators of event-time laws: ``fit(X, y)``, then ``predict_distribution(X)``."""

from censcore.estimators._base import SurvivalEstimator
from censcore.estimators.censoring import Censoring
from censcore.estimators.kaplan_meier import KaplanMeier

__all__ = ["Censoring", "KaplanMeier", "SurvivalEstimator"]
