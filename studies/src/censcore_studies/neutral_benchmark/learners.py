"""The learners that are fitted here, each with its default settings."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from censcore.distributions import Distribution, ProportionalHazards
from censcore.estimators import Adapted, CoxRegression, KaplanMeier
from censcore.exceptions import CensoringWarning, MissingPackageError
from censcore.outcomes import RightCensored

__all__ = ["LEARNERS", "OURS", "REPRODUCED", "Learner"]

Forecasts = Callable[[pd.DataFrame, RightCensored, pd.DataFrame, int], Distribution]
OURS = "BestForecast"
#: Learners of the benchmark that are fitted here too, and their names there.
REPRODUCED = {"Kaplan-Meier": "KM", "Cox": "CPH"}


@dataclass(frozen=True)
class Learner:
    """How to forecast the test subjects of a fold, and what the result depends on.

    Attributes
    ----------
    forecast : callable
        ``forecast(X_train, y_train, X_test, seed)``.
    settings : callable
        What is part of the key of stored results: versions and default settings.
    """

    forecast: Forecasts
    settings: Callable[[], dict[str, Any]] = field(default=dict)


def _kaplan_meier(X: pd.DataFrame, y: RightCensored, X_new: pd.DataFrame, seed: int) -> Distribution:
    return KaplanMeier().fit(None, y).predict_distribution()


def _cox(X: pd.DataFrame, y: RightCensored, X_new: pd.DataFrame, seed: int) -> Distribution:
    r"""Cox regression with Efron's treatment of ties, in the coefficients and in the baseline.

    .. math:: d\hat\Lambda_0(u)=\sum_{l=0}^{d_u-1}\Bigl\{\sum_{i:\,y_i\ge u}r_i
        -\frac l{d_u}\sum_{i\in D_u}r_i\Bigr\}^{-1},

    with the :math:`d_u` events :math:`D_u` at u and :math:`r_i=\exp(\beta^\top x_i)`.
    """
    beta = np.asarray(CoxRegression(ties="efron").fit(X, y).coef_)
    center = X.to_numpy().mean(axis=0)
    risk, risk_new = (np.exp((Z.to_numpy() - center) @ beta) for Z in (X, X_new))
    time, event = np.asarray(y.time), np.asarray(y.event, dtype=bool)
    jumps = np.unique(time[event])
    hazard = np.cumsum([_efron_jump(risk, time >= u, (time == u) & event) for u in jumps])
    return ProportionalHazards(jumps, hazard, risk_new)


def _efron_jump(risk: np.ndarray, at_risk: np.ndarray, failing: np.ndarray) -> float:
    share = np.arange(failing.sum()) / failing.sum()
    return float((1 / (risk[at_risk].sum() - share * risk[failing].sum())).sum())


def _forest(X: pd.DataFrame, y: RightCensored, X_new: pd.DataFrame, seed: int) -> Distribution:
    from sksurv.ensemble import RandomSurvivalForest

    return _adapted(RandomSurvivalForest(random_state=seed), X, y, X_new)


def _boosting(X: pd.DataFrame, y: RightCensored, X_new: pd.DataFrame, seed: int) -> Distribution:
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis

    return _adapted(GradientBoostingSurvivalAnalysis(random_state=seed), X, y, X_new)


def _survival_boost(X: pd.DataFrame, y: RightCensored, X_new: pd.DataFrame, seed: int) -> Distribution:
    from hazardous import SurvivalBoost

    with warnings.catch_warnings():
        # its curves are made monotone by the adapter, which says by how much in every fold
        warnings.simplefilter("ignore")
        return _adapted(SurvivalBoost(random_state=seed, show_progressbar=False), X, y, X_new)


def _adapted(model: Any, X: pd.DataFrame, y: RightCensored, X_new: pd.DataFrame) -> Distribution:
    return Adapted(model).fit(X, y).predict_distribution(X_new)


def _stack(X: pd.DataFrame, y: RightCensored, X_new: pd.DataFrame, seed: int) -> Distribution:
    from censcore.learning.best_forecast import BestForecast

    with warnings.catch_warnings():
        # that covariates predict censoring is no reason to leave the default here
        warnings.simplefilter("ignore", CensoringWarning)
        return BestForecast(random_state=seed, device="cpu").fit(X, y).predict_distribution(X_new)


def _stack_defaults() -> dict[str, Any]:
    from censcore.learning.best_forecast import BestForecast

    settings = {name: value for name, value in BestForecast().get_params().items() if name != "device"}
    return settings | {"version": 6}  # raise it when the same settings give other forecasts


def _of_package(package: str) -> Callable[[], dict[str, Any]]:
    def settings() -> dict[str, Any]:
        try:
            return {package: version(package)}
        except ModuleNotFoundError as error:
            raise MissingPackageError(f"This learner needs {package}: pip install {package}.") from error

    return settings


LEARNERS: dict[str, Learner] = {
    "Kaplan-Meier": Learner(_kaplan_meier),
    "Cox": Learner(_cox),
    "Random survival forest": Learner(_forest, _of_package("scikit-survival")),
    "Gradient boosting": Learner(_boosting, _of_package("scikit-survival")),
    "SurvivalBoost": Learner(_survival_boost, _of_package("hazardous")),
    OURS: Learner(_stack, _stack_defaults),
}
