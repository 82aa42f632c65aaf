"""The default stack and models of other libraries, whose event times a Clayton copula joins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from censcore.distributions import Distribution
from censcore.estimators import Adapted, JointFromMargins, KaplanMeier, as_forecast
from censcore.outcomes import RightCensored

__all__ = ["MODELS", "OURS", "PycoxNetwork", "draws_of"]

OURS = "default stack"


class PycoxNetwork(BaseEstimator):
    """A network of pycox as its tutorials train it, on 15 time intervals, stopped by a held-out fifth.

    Parameters
    ----------
    kind : {"LogisticHazard", "DeepHitSingle"}
        Its model.
    seed : int
        Of starting values and of the held-out subjects.
    """

    def __init__(self, kind: str = "LogisticHazard", seed: int = 0) -> None:
        self.kind = kind
        self.seed = seed

    def fit(self, X: Any, y: RightCensored) -> Self:
        """Train the network."""
        import pycox.models
        import torch
        import torchtuples as tt

        torch.manual_seed(self.seed)
        kind = getattr(pycox.models, self.kind)
        labels = kind.label_transform(15)
        time, event = np.asarray(y.time, dtype=np.float32), np.asarray(y.event, dtype=np.float32)
        target = labels.fit_transform(time, event)
        order = np.random.default_rng(self.seed).permutation(len(time))
        held, rest = order[: len(order) // 5], order[len(order) // 5 :]
        Z = np.asarray(X, dtype=np.float32)
        network = tt.practical.MLPVanilla(Z.shape[1], [32, 32], labels.out_features, True, 0.1)
        self.model_ = kind(network, tt.optim.Adam(0.01), duration_index=labels.cuts)
        self.model_.fit(
            Z[rest],
            tuple(part[rest] for part in target),
            batch_size=256,
            epochs=100,
            callbacks=[tt.callbacks.EarlyStopping()],
            verbose=False,
            val_data=(Z[held], tuple(part[held] for part in target)),
        )
        return self

    def predict_distribution(self, X: Any) -> Distribution:
        """Survival curves, linear between the cuts."""
        return as_forecast(self.model_, X)


def _stack(seed: int) -> Any:
    from censcore.learning.best_forecast import BestForecast

    return BestForecast(random_state=seed, device="cpu")


def _lifelines(kind: str, penalizer: float) -> Callable[[int], Any]:
    def model(seed: int) -> Any:
        import lifelines

        return JointFromMargins(Adapted(getattr(lifelines, kind)(penalizer=penalizer)))

    return model


def _ensemble(kind: str, **settings: Any) -> Callable[[int], Any]:
    def model(seed: int) -> Any:
        from sksurv import ensemble

        return JointFromMargins(Adapted(getattr(ensemble, kind)(random_state=seed, **settings)))

    return model


def _survival_boost(seed: int) -> Any:
    from hazardous import SurvivalBoost

    return JointFromMargins(Adapted(SurvivalBoost(random_state=seed, show_progressbar=False)))


#: Models by seed. A forest of leaves with 15 subjects is better here than one with the default of 3.
MODELS: dict[str, Callable[[int], Any]] = {
    OURS: _stack,
    "Kaplan-Meier": lambda seed: JointFromMargins(KaplanMeier()),
    "lifelines Cox": _lifelines("CoxPHFitter", 0.01),
    "lifelines Weibull": _lifelines("WeibullAFTFitter", 0.01),
    "sksurv boosting": _ensemble("GradientBoostingSurvivalAnalysis"),
    "sksurv forest": _ensemble("RandomSurvivalForest", min_samples_leaf=15),
    "pycox LogisticHazard": lambda seed: JointFromMargins(PycoxNetwork("LogisticHazard", seed)),
    "pycox DeepHit": lambda seed: JointFromMargins(PycoxNetwork("DeepHitSingle", seed)),
    "SurvivalBoost": _survival_boost,
}


def draws_of(model: Any) -> Callable[[np.ndarray, int], np.ndarray]:
    """Draws of event times (n, m, k) from the forecasts of a fitted model."""

    def draw(X: np.ndarray, m: int) -> np.ndarray:
        if hasattr(model, "sample"):
            return np.asarray(model.sample(X, m))
        F = model.predict_distribution(X)
        return np.asarray(F.sample(m if len(F) > 1 else m * len(X), 3))

    return draw
