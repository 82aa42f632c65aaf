"""Estimators of event-time distributions: ``fit(X, y)``, then ``predict_distribution(X)``.

Those that need torch live in :mod:`censcore.learning`.
"""

from censcore.estimators.aalen_johansen import AalenJohansen
from censcore.estimators.adapted import Adapted
from censcore.estimators.adapters import as_forecast
from censcore.estimators.boosted_hazards import BoostedHazards
from censcore.estimators.cause_specific import CauseSpecific
from censcore.estimators.censoring import Censoring
from censcore.estimators.competing_risks_adapters import as_competing_forecast
from censcore.estimators.conformal import conformal_lower_bound
from censcore.estimators.cox import CoxRegression
from censcore.estimators.fine_gray import FineGray
from censcore.estimators.joint_from_margins import JointFromMargins
from censcore.estimators.kaplan_meier import KaplanMeier
from censcore.estimators.libraries.draws import from_draws
from censcore.estimators.parametric_regressions import (
    LogLogisticRegression,
    LogNormalRegression,
    WeibullRegression,
)
from censcore.estimators.piecewise_exponential_regression import PiecewiseExponentialRegression
from censcore.estimators.published_models import PublishedAFT, PublishedCauses, PublishedCox
from censcore.estimators.published_terms import column
from censcore.estimators.risk import from_risk
from censcore.estimators.stacking import Stacking
from censcore.estimators.survival_estimator import NotFitted, SurvivalEstimator, one_event_time
from censcore.estimators.turnbull import Turnbull

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
