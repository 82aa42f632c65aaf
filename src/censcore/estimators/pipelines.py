"""Models inside scikit-learn's pipelines and searches: what is at the end, and what reaches it."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from censcore.estimators.survival_estimator import NotFitted
from censcore.exceptions import InvalidInputError


def last_estimator(model: Any) -> Any:
    """The estimator at the end of pipelines and searches, as it was given to them; else the model itself."""
    if isinstance(model, Pipeline):
        return last_estimator(model.steps[-1][1])
    return last_estimator(model.estimator) if _is_search(model) else model


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """The fitted estimator at the end of pipelines and searches, and the covariates as they reach it."""
    if isinstance(model, Pipeline):
        if X is None and len(model.steps) > 1:
            raise InvalidInputError("A pipeline needs the covariates X to forecast; got None.")
        try:
            X = model[:-1].transform(X) if len(model.steps) > 1 else X
        except NotFittedError as error:
            raise NotFitted("This Pipeline is not fitted yet. Call fit(X, y) first.") from error
        return last_step(model.steps[-1][1], X)
    if _is_search(model) and hasattr(model, "best_estimator_"):
        return last_step(model.best_estimator_, X)
    return model, X


def weight_argument(model: Any) -> str | None:
    """The argument of ``model.fit`` that takes the weights of subjects; None where there is none.

    Pipelines take the weights of their last step as ``step__sample_weight``.
    """
    from sklearn import get_config

    if get_config().get("enable_metadata_routing"):  # then pipelines and searches pass weights on themselves
        return "sample_weight" if _takes_weights(last_estimator(model)) else None
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        inner = weight_argument(last)
        return None if inner is None else f"{name}__{inner}"
    if _is_search(model):
        return weight_argument(model.estimator)
    return "sample_weight" if _takes_weights(model) else None


def weights_for(model: Any, weight: Any) -> dict[str, Any]:
    """Weights as an argument of ``model.fit``, none for None; an error where the model takes none."""
    argument = None if weight is None else weight_argument(model)
    if weight is not None and argument is None:
        raise InvalidInputError(
            f"{type(last_estimator(model)).__name__}.fit takes no sample_weight, so that it cannot be "
            "fitted to weighted subjects. Use an estimator that does, such as KaplanMeier() or "
            "CoxRegression(), or repeat each subject as often as it counts and pass groups=."
        )
    return {} if argument is None else {argument: weight}


def _takes_weights(estimator: Any) -> bool:
    parameters = signature(estimator.fit).parameters
    return "sample_weight" in parameters or any(
        parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def _is_search(model: Any) -> bool:
    """Whether a model is a search over parameters of another one, such as ``GridSearchCV``."""
    words = "estimator", "scoring", "refit", "fit"
    return not isinstance(model, type) and all(hasattr(model, word) for word in words)
