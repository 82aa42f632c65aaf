"""Models inside scikit-learn's pipelines and searches: what is at the end, and what reaches it."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

from sklearn import config_context, get_config
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, get_routing_for_object

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


def fit_weighted(
    model: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **options: Any
) -> Any:
    """Call ``model.fit`` with the weights and the groups of the subjects, where there are any.

    Weights that the model does not take are an error; a ``Pipeline`` receives them for its last step. Groups
    go to everything that takes them: the model or, in pipelines and searches of scikit-learn, every step,
    splitter and model, by its routing of metadata, for which requests are set in ``model``.
    """
    if groups is None or not _is_router(model):
        options |= accepted(model.fit, groups=groups)
        return model.fit(X, y, **weights_for(model, sample_weight), **options)
    with config_context(enable_metadata_routing=True):
        _request(model)
        taken = get_routing_for_object(model).consumes("fit", ["groups"])
        if taken:
            return model.fit(X, y, groups=groups, **weights_for(model, sample_weight), **options)
    return fit_weighted(model, X, y, sample_weight, **options)


def ignores_groups(model: Any) -> bool:
    """Whether a search over parameters, inside a model or the model itself, splits subjects of one group."""
    parts = [model, *(model.get_params(deep=True).values() if hasattr(model, "get_params") else [])]
    searches = [part for part in parts if _is_search(part) and hasattr(part, "cv")]
    splitters = [get_routing_for_object(check_cv(search.cv)) for search in searches]
    return any(not splitter.consumes("split", ["groups"]) for splitter in splitters)


def accepted(function: Any, **options: Any) -> dict[str, Any]:
    """Those of the options that a function takes, without any that is None."""
    names = signature(function).parameters
    return {name: value for name, value in options.items() if name in names and value is not None}


def _is_router(model: Any) -> bool:
    """Whether a model of scikit-learn hands on what its ``fit`` is given."""
    try:
        return isinstance(get_routing_for_object(model), MetadataRouter)
    except NotImplementedError:  # models of scikit-learn that do not hand on anything yet
        return False


def _request(model: Any) -> None:
    """Request groups wherever they are taken, and weights for the last estimator, where no request is set."""
    last = last_estimator(model)
    for part in model.get_params(deep=True).values():
        for method in ("fit", "score"):
            request = getattr(get_routing_for_object(part), method, None)
            for name, value in {} if request is None else request.requests.items():
                if value is None and name in ("groups", "sample_weight"):
                    wanted = method == "fit" and (name == "groups" or part is last)
                    getattr(part, f"set_{method}_request")(**{name: wanted})


def weight_argument(model: Any) -> str | None:
    """The argument of ``model.fit`` that takes the weights of subjects; None where there is none.

    Pipelines take the weights of their last step as ``step__sample_weight``.
    """
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
