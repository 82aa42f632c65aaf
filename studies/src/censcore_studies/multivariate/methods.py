"""The methods of the tables: ways to forecast several event times from censored data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from censcore.distributions import Distribution
from censcore.estimators.censoring.censoring_choice import CENSORING_ESTIMATORS, censoring_estimator
from censcore.exceptions import InvalidInputError
from censcore.learning.copula_weibull import CopulaWeibull
from censcore.learning.joint_grid_model import JointGridModel
from censcore.simulation import LogNormalScenario, SimulatedData
from censcore_studies.kit.networks import ONE_NETWORK, engression

__all__ = ["FEASIBLE", "LINEAR", "METHODS", "OTHER_METHODS", "Fitted", "fit_method", "methods_for"]


@dataclass(frozen=True)
class Fitted:
    """A fitted method: the forecast distribution for new covariates, and the number of epochs."""

    predict: Callable[[Any], Distribution]
    epochs: int


def _oracle(
    scenario: LogNormalScenario, train: SimulatedData, valid: SimulatedData, options: dict[str, Any]
) -> Fitted:
    # follow-up ends long before the clip; a clipped distribution would have no density
    return Fitted(replace(scenario, clip=None).event_distribution, 0)


def _engression(objective: str) -> Callable[..., Fitted]:
    def fit(
        scenario: LogNormalScenario, train: SimulatedData, valid: SimulatedData, options: dict[str, Any]
    ) -> Fitted:
        model = engression(
            objective=objective,
            random_state=options["seed"],
            device=options.get("device", "cpu"),
            precision="float32",
            **ONE_NETWORK,
        )
        if objective == "latent":
            model.fit(train.X, train.latent, eval_set=(valid.X, valid.latent))
        elif objective == "naive":
            model.fit(train.X, train.y, eval_set=(valid.X, valid.y))
        else:
            name = options.get("censoring_distribution", "true")
            C, C_valid = _censoring_distributions(scenario, train, valid, name)
            model.fit(train.X, train.y, censoring=C, eval_set=(valid.X, valid.y, C_valid))
        return Fitted(lambda X: model.predict_distribution(X, options["members"]), len(model.history_.epochs))

    return fit


def _censoring_distributions(
    scenario: LogNormalScenario, train: SimulatedData, valid: SimulatedData, name: str
) -> list[Distribution]:
    """The censoring distributions of training and validation data: the true ones, or estimates."""
    if name == "true":
        return [scenario.censoring_distribution(part.X) for part in (train, valid)]
    if name not in CENSORING_ESTIMATORS:
        raise InvalidInputError(
            f"censoring_distribution must be 'true' or one of {list(CENSORING_ESTIMATORS)}; got {name!r}."
        )
    fitted = censoring_estimator(name).fit(train.X, train.y)
    return [fitted.predict_distribution(part.X) for part in (train, valid)]


def _likelihood(make: Callable[[int], Any]) -> Callable[..., Fitted]:
    def fit(
        scenario: LogNormalScenario, train: SimulatedData, valid: SimulatedData, options: dict[str, Any]
    ) -> Fitted:
        model = make(options["seed"])
        model.fit(train.X, train.y, eval_set=(valid.X, valid.y))
        return Fitted(model.predict_distribution, len(model.history_.epochs))

    return fit


_MLP: dict[str, Any] = {
    "hidden": (128, 128),
    "training": replace(CopulaWeibull.default_training, learning_rate=1e-3, weight_decay=1e-3),
}

#: Name in the tables, and how to fit it.
METHODS: dict[str, Callable[..., Fitted]] = {
    "DGP": _oracle,
    "Latent engression": _engression("latent"),
    "Naive observed engression": _engression("naive"),
    "Censored engression": _engression("censored"),
    "Independent Weibull": _likelihood(lambda seed: CopulaWeibull("independent", random_state=seed)),
    "MLP independent Weibull": _likelihood(
        lambda seed: CopulaWeibull("independent", random_state=seed, **_MLP)
    ),
    "Clayton-Weibull": _likelihood(lambda seed: CopulaWeibull("clayton", random_state=seed)),
    "MLP Clayton-Weibull": _likelihood(lambda seed: CopulaWeibull("clayton", random_state=seed, **_MLP)),
    "Gumbel-Weibull": _likelihood(lambda seed: CopulaWeibull("gumbel", random_state=seed)),
    "Joint grid likelihood": _likelihood(lambda seed: JointGridModel(random_state=seed)),
}

#: Methods that only extensions use.
OTHER_METHODS: dict[str, Callable[..., Fitted]] = {
    "Clayton-Weibull, margins first": _likelihood(
        lambda seed: CopulaWeibull("clayton", margins_first=True, random_state=seed)
    )
}

#: Methods without hidden layers, which are fitted to the maximum of their likelihood by L-BFGS.
LINEAR = ("Independent Weibull", "Clayton-Weibull", "Gumbel-Weibull", *OTHER_METHODS)

#: Methods that need nothing but censored data.
FEASIBLE = [name for name in METHODS if name not in ("DGP", "Latent engression")]


def methods_for(k: int) -> list[str]:
    """The methods for k event times; the Gumbel copula and the grid are for two."""
    return [name for name in METHODS if k == 2 or name not in ("Gumbel-Weibull", "Joint grid likelihood")]


def fit_method(
    name: str,
    scenario: LogNormalScenario,
    train: SimulatedData,
    valid: SimulatedData,
    options: dict[str, Any],
) -> Fitted:
    """Fit one method to the training data, with validation data for early stopping."""
    known = METHODS | OTHER_METHODS
    if name not in known:
        raise InvalidInputError(f"method must be one of {list(known)}; got {name!r}.")
    return known[name](scenario, train, valid, options)
