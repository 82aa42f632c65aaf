"""Estimators of event-time distributions: ``fit(X, y)``, then ``predict_distribution(X)``."""

from censcore.estimators.adapted import Adapted
from censcore.estimators.adapters import as_forecast
from censcore.estimators.base import SurvivalEstimator
from censcore.estimators.censoring import Censoring
from censcore.estimators.cox import CoxRegression
from censcore.estimators.kaplan_meier import KaplanMeier
from censcore.estimators.weibull import WeibullRegression

__all__ = [
    "Adapted",
    "Censoring",
    "CoxRegression",
    "KaplanMeier",
    "SurvivalEstimator",
    "WeibullRegression",
    "as_forecast",
]
