"""Proper scores for right-censored forecasts.

Censor the forecast the way the data were censored, then apply the ordinary proper score:
``score(outcome, forecast, censoring)`` gives one loss per subject, where ``forecast`` is the distribution of
the event time T and ``censoring`` the distribution of the censoring time C.

Names load on first use, so ``import censcore`` itself costs next to nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as _EXPORTS, for type checkers and editors
    from censcore.distributions import CauseEnsemble as CauseEnsemble
    from censcore.distributions import CauseSpecificHazards as CauseSpecificHazards
    from censcore.distributions import Copula as Copula
    from censcore.distributions import CumulativeIncidence as CumulativeIncidence
    from censcore.distributions import Distribution as Distribution
    from censcore.distributions import Ensemble as Ensemble
    from censcore.distributions import Exponential as Exponential
    from censcore.distributions import Gamma as Gamma
    from censcore.distributions import Gompertz as Gompertz
    from censcore.distributions import Independent as Independent
    from censcore.distributions import JointGrid as JointGrid
    from censcore.distributions import JointMixture as JointMixture
    from censcore.distributions import LogLogistic as LogLogistic
    from censcore.distributions import LogNormal as LogNormal
    from censcore.distributions import Mixture as Mixture
    from censcore.distributions import PiecewiseExponential as PiecewiseExponential
    from censcore.distributions import PiecewiseLinear as PiecewiseLinear
    from censcore.distributions import PointMass as PointMass
    from censcore.distributions import Quantiles as Quantiles
    from censcore.distributions import Step as Step
    from censcore.distributions import Uniform as Uniform
    from censcore.distributions import Weibull as Weibull
    from censcore.estimators import AalenJohansen as AalenJohansen
    from censcore.estimators import Adapted as Adapted
    from censcore.estimators import BoostedHazards as BoostedHazards
    from censcore.estimators import CauseSpecific as CauseSpecific
    from censcore.estimators import Censoring as Censoring
    from censcore.estimators import CoxRegression as CoxRegression
    from censcore.estimators import FineGray as FineGray
    from censcore.estimators import JointFromMargins as JointFromMargins
    from censcore.estimators import KaplanMeier as KaplanMeier
    from censcore.estimators import LandmarkCox as LandmarkCox
    from censcore.estimators import LogLogisticRegression as LogLogisticRegression
    from censcore.estimators import LogNormalRegression as LogNormalRegression
    from censcore.estimators import PiecewiseExponentialRegression as PiecewiseExponentialRegression
    from censcore.estimators import PublishedAFT as PublishedAFT
    from censcore.estimators import PublishedCauses as PublishedCauses
    from censcore.estimators import PublishedCox as PublishedCox
    from censcore.estimators import Stacking as Stacking
    from censcore.estimators import Turnbull as Turnbull
    from censcore.estimators import WeibullRegression as WeibullRegression
    from censcore.estimators import as_competing_forecast as as_competing_forecast
    from censcore.estimators import as_forecast as as_forecast
    from censcore.estimators import column as column
    from censcore.estimators import conformal_lower_bound as conformal_lower_bound
    from censcore.estimators import from_draws as from_draws
    from censcore.estimators import from_risk as from_risk
    from censcore.evaluation import Comparison as Comparison
    from censcore.evaluation import WithCensoring as WithCensoring
    from censcore.evaluation import at_landmark as at_landmark
    from censcore.evaluation import censoring_diagnostic as censoring_diagnostic
    from censcore.evaluation import compare_landmarks as compare_landmarks
    from censcore.evaluation import dependent_censoring_sensitivity as dependent_censoring_sensitivity
    from censcore.evaluation.compare import compare as compare
    from censcore.evaluation.compare import evaluate as evaluate
    from censcore.evaluation.cross_validate import Folds as Folds
    from censcore.evaluation.cross_validate import cross_validate as cross_validate
    from censcore.evaluation.evaluation import Evaluation as Evaluation
    from censcore.evaluation.importance import Importance as Importance
    from censcore.evaluation.importance import importance as importance
    from censcore.evaluation.outcome_table import OutcomeTable as OutcomeTable
    from censcore.evaluation.parts.bootstrap import Bootstrap as Bootstrap
    from censcore.evaluation.plan_validation import ValidationPlan as ValidationPlan
    from censcore.evaluation.plan_validation import plan_validation as plan_validation
    from censcore.evaluation.sample import Sample as Sample
    from censcore.evaluation.sensitivity.copula_graphic import copula_graphic as copula_graphic
    from censcore.evaluation.sites import SitePool as SitePool
    from censcore.evaluation.sites import pool_sites as pool_sites
    from censcore.evaluation.sklearn_scorers import scorer as scorer
    from censcore.evaluation.sklearn_scorers import scorers as scorers
    from censcore.evaluation.update import Update as Update
    from censcore.evaluation.update import update as update
    from censcore.evaluation.validate import validate as validate
    from censcore.evaluation.validation import Validation as Validation
    from censcore.learning.best_forecast import BestForecast as BestForecast
    from censcore.learning.copula_weibull import CopulaWeibull as CopulaWeibull
    from censcore.learning.engression import CensoredEngression as CensoredEngression
    from censcore.learning.joint_grid_model import JointGridModel as JointGridModel
    from censcore.learning.mixture_density_network import MixtureDensityNetwork as MixtureDensityNetwork
    from censcore.model_files import load as load
    from censcore.outcomes import CompetingRisks as CompetingRisks
    from censcore.outcomes import IntervalCensored as IntervalCensored
    from censcore.outcomes import RightCensored as RightCensored
    from censcore.outcomes import SemiCompetingRisks as SemiCompetingRisks
    from censcore.outcomes import StartStop as StartStop
    from censcore.scores import augmented_binomial_log_score as augmented_binomial_log_score
    from censcore.scores import augmented_brier_score as augmented_brier_score
    from censcore.scores import augmented_integrated_brier_score as augmented_integrated_brier_score
    from censcore.scores import binomial_log_score as binomial_log_score
    from censcore.scores import brier_score as brier_score
    from censcore.scores import crps as crps
    from censcore.scores import energy_score as energy_score
    from censcore.scores import integrated_brier_score as integrated_brier_score
    from censcore.scores import joint_brier_score as joint_brier_score
    from censcore.scores import log_score as log_score
    from censcore.scores import mean_loss as mean_loss
    from censcore.scores import pinball_score as pinball_score

    __version__: str

_EXPORTS = {
    module: names.split()
    for module, names in {
        "outcomes": "RightCensored CompetingRisks SemiCompetingRisks IntervalCensored StartStop",
        "distributions": """
            Distribution Weibull Exponential LogNormal LogLogistic Gamma Gompertz Uniform PointMass
            PiecewiseExponential Mixture Step PiecewiseLinear Quantiles Ensemble Independent Copula
            JointGrid JointMixture CumulativeIncidence CauseSpecificHazards CauseEnsemble
        """,
        "scores": """
            log_score crps brier_score integrated_brier_score binomial_log_score pinball_score
            energy_score joint_brier_score augmented_brier_score augmented_integrated_brier_score
            augmented_binomial_log_score mean_loss
        """,
        "estimators": """
            KaplanMeier WeibullRegression LogNormalRegression LogLogisticRegression CoxRegression
            PiecewiseExponentialRegression Turnbull Adapted BoostedHazards Censoring as_forecast
            from_draws from_risk conformal_lower_bound AalenJohansen CauseSpecific FineGray Stacking
            JointFromMargins LandmarkCox as_competing_forecast PublishedCox PublishedAFT PublishedCauses
            column
        """,
        "learning.engression": "CensoredEngression",
        "learning.mixture_density_network": "MixtureDensityNetwork",
        "learning.best_forecast": "BestForecast",
        "model_files": "load",
        "learning.copula_weibull": "CopulaWeibull",
        "learning.joint_grid_model": "JointGridModel",
        "evaluation": """
            Comparison at_landmark censoring_diagnostic compare_landmarks WithCensoring
            dependent_censoring_sensitivity
        """,
        "evaluation.compare": "compare evaluate",
        "evaluation.evaluation": "Evaluation",
        "evaluation.parts.bootstrap": "Bootstrap",
        "evaluation.cross_validate": "Folds cross_validate",
        "evaluation.importance": "Importance importance",
        "evaluation.plan_validation": "ValidationPlan plan_validation",
        "evaluation.sample": "Sample",
        "evaluation.sensitivity.copula_graphic": "copula_graphic",
        "evaluation.sklearn_scorers": "scorer scorers",
        "evaluation.sites": "SitePool pool_sites",
        "evaluation.validate": "validate",
        "evaluation.validation": "Validation",
        "evaluation.outcome_table": "OutcomeTable",
        "evaluation.update": "Update update",
    }.items()
}
_SUBMODULES = [
    "outcomes",
    "distributions",
    "scores",
    "estimators",
    "evaluation",
    "published",
    "simulation",
    "testing",
    "exceptions",
]
#: These need torch, which the other estimators do not.
_IN_TORCH = {module for module in _EXPORTS if module.startswith("learning.")}
_HOME = {name: module for module, names in _EXPORTS.items() for name in names}


def _has_torch() -> bool:
    try:
        return find_spec("torch") is not None
    except (ImportError, ValueError):  # one that may not be imported
        return False


# import * asks for all of these
__all__ = [
    *(name for name, module in _HOME.items() if module not in _IN_TORCH or _has_torch()),
    *_SUBMODULES,
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        try:
            value = getattr(import_module(f"censcore.{_HOME[name]}"), name)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise _missing(f"{name} needs torch: pip install 'censcore[torch]'.") from error
    elif name in _SUBMODULES:
        value = import_module(f"censcore.{name}")
    elif name == "learning" and _has_torch():
        value = import_module("censcore.learning")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("censcore")
    else:
        raise AttributeError(f"module 'censcore' has no attribute {name!r}")
    globals()[name] = value
    return value


def _missing(words: str) -> Exception:
    """An error that hasattr understands, or one whose message an import statement preserves."""
    from censcore.exceptions import MissingNameError, MissingPackageError

    asking = sys._getframe(2).f_globals.get("__name__")
    return (MissingPackageError if asking in _IMPORTING else MissingNameError)(words)


_IMPORTING = ("importlib._bootstrap", "_frozen_importlib")  # what ``from censcore import name`` runs in


def __dir__() -> list[str]:
    return sorted(__all__)
