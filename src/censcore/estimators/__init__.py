"""Estimators of event-time distributions: ``fit(X, y)``, then ``predict_distribution(X)``.

Those that need torch live in :mod:`censcore.learning`.
"""

from censcore.estimators.censoring.censoring import Censoring
from censcore.estimators.conformal import conformal_lower_bound
from censcore.estimators.libraries.adapted import Adapted
from censcore.estimators.libraries.adapters import as_forecast
from censcore.estimators.libraries.competing_risks_adapters import as_competing_forecast
from censcore.estimators.libraries.draws import from_draws
from censcore.estimators.nonparametric.aalen_johansen import AalenJohansen
from censcore.estimators.nonparametric.kaplan_meier import KaplanMeier
from censcore.estimators.nonparametric.turnbull import Turnbull
from censcore.estimators.regression.cause_specific import CauseSpecific
from censcore.estimators.regression.cox import CoxRegression
from censcore.estimators.regression.fine_gray import FineGray
from censcore.estimators.regression.landmark_cox import LandmarkCox
from censcore.estimators.regression.parametric_regressions import (
    LogLogisticRegression,
    LogNormalRegression,
    WeibullRegression,
)
from censcore.estimators.regression.piecewise_exponential import PiecewiseExponentialRegression
from censcore.estimators.regression.published_models import PublishedAFT, PublishedCauses, PublishedCox
from censcore.estimators.regression.published_terms import column
from censcore.estimators.risk import from_risk
from censcore.estimators.stacking.joint_from_margins import JointFromMargins
from censcore.estimators.stacking.stacking import Stacking
from censcore.estimators.survival_estimator import NotFitted, SurvivalEstimator, one_event_time
from censcore.estimators.trees.boosted_hazards import BoostedHazards

__all__ = [
    "AalenJohansen",
    "Adapted",
    "BoostedHazards",
    "CauseSpecific",
    "Censoring",
    "CoxRegression",
    "FineGray",
    "JointFromMargins",
    "KaplanMeier",
    "LandmarkCox",
    "LogLogisticRegression",
    "LogNormalRegression",
    "NotFitted",
    "PiecewiseExponentialRegression",
    "PublishedAFT",
    "PublishedCauses",
    "PublishedCox",
    "Stacking",
    "SurvivalEstimator",
    "Turnbull",
    "WeibullRegression",
    "as_competing_forecast",
    "as_forecast",
    "column",
    "conformal_lower_bound",
    "from_draws",
    "from_risk",
    "one_event_time",
]
