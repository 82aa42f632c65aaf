"""Scores as scikit-learn scorers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import Array
from censcore._validation import as_numbers, check_levels
from censcore.estimators.covariates import check_weights
from censcore.estimators.pipelines import last_step
from censcore.evaluation.measures.case_scores import CASE_SCORES, DEFAULT_SCORES, by_name, case_score
from censcore.evaluation.with_censoring import WithCensoring
from censcore.exceptions import InvalidTypeError
from censcore.outcomes import OutcomeLike
from censcore.scores import SCORES

__all__ = ["scorer", "scorers"]


def scorer(
    score: str | Mapping[str, Any] = "crps", *, times: Array | None = None, levels: Array = (0.1, 0.25, 0.5)
) -> Scorer:
    """A scorer for ``cross_val_score``, ``cross_validate`` and ``GridSearchCV``.

    The estimator must be a :class:`WithCensoring`, which fits the censoring distribution on the training
    fold, or a ``Pipeline`` that ends in one. Of interval-censored data, forecasts are scored by the detection
    time, and by the log score of the intervals, as in :func:`compare`.

    Parameters
    ----------
    score : str, or dict of one function
        A name as in :func:`compare`, such as "crps", "brier_score" or "log_score"; "energy_score" for several
        event times, joint.
    times, levels : array, optional
        For scores of single times or levels, over which the mean is taken; times are by default the
        quartiles of the training event times before the horizon.

    Returns
    -------
    callable
        ``(estimator, X, y, sample_weight=None) -> float``, minus the weighted mean loss, since scikit-learn
        maximises.

    See Also
    --------
    censcore.WithCensoring : The estimator that this scorer needs.
    censcore.compare : Comparisons with standard errors.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from sklearn.model_selection import GridSearchCV
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 3))
    >>> T, C = rng.exponential(np.exp(x[:, 0])), rng.uniform(0, 3, 200)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> model = cs.WithCensoring(cs.CoxRegression())
    >>> search = GridSearchCV(model, {"model__alpha": [0.1, 100.0]}, scoring=cs.scorer("crps"), cv=3)
    >>> search.fit(x, y).best_params_
    {'model__alpha': 0.1}
    """
    named = _named(score)
    if len(named) != 1:
        raise InvalidTypeError(f"scorer() makes one scorer; got {len(named)} scores. Use scorers([...]).")
    return Scorer(*next(iter(named.items())), times, levels)


def scorers(
    scores: Iterable[str] | Mapping[str, Any] = DEFAULT_SCORES,
    *,
    times: Array | None = None,
    levels: Array = (0.1, 0.25, 0.5),
) -> dict[str, Any]:
    """Several scorers for ``cross_validate``, and with them the horizon that each fold used.

    Parameters
    ----------
    scores : names, or dict of functions
        As in :func:`compare`, with the same default.
    times, levels : array, optional
        As in :func:`scorer`.

    Returns
    -------
    dict
        Name -> scorer, and ``"horizon"``, which is no score.

    See Also
    --------
    censcore.WithCensoring : The estimator that these scorers need.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from sklearn.model_selection import cross_validate
    >>> rng = np.random.default_rng(0)
    >>> T, C = rng.exponential(2.0, 90), rng.uniform(0, 5, 90)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> model = cs.WithCensoring(cs.KaplanMeier())
    >>> results = cross_validate(model, np.zeros((90, 1)), y, cv=3, scoring=cs.scorers(["crps"]))
    >>> results["test_crps"].round(3), results["test_horizon"].round(1)
    (array([-0.437, -0.407, -0.469]), array([2.8, 3.3, 2.9]))
    """
    made = {name: Scorer(name, function, times, levels) for name, function in _named(scores).items()}
    return {**made, "horizon": horizon_of}


def _named(scores: str | Iterable[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Functions by the names of scores, None for scores of the library, in the order asked for."""
    functions = by_name(scores, DEFAULT_SCORES, CASE_SCORES)
    for name, function in functions.items():
        if not callable(function) and name.partition("[")[0] not in SCORES:
            case_score(name)  # an error that says which there are
    return functions


def horizon_of(
    estimator: WithCensoring, X: Array | None, y: OutcomeLike, sample_weight: Array | None = None
) -> float:
    """The horizon that the scores of this fold used; not a score."""
    model, X = _checked(estimator, X)
    return model.case(X, y).horizon


@dataclass(frozen=True, eq=False)
class Scorer:
    """Minus the mean of one score under the censoring distribution of the training fold."""

    name: str
    function: Any = None
    times: Array | None = None
    levels: Array = (0.1, 0.25, 0.5)

    def __post_init__(self) -> None:
        if self.times is not None:
            as_numbers(self.times, "times")
        check_levels(as_numbers(self.levels, "levels"))

    def __call__(
        self, estimator: WithCensoring, X: Array | None, y: OutcomeLike, sample_weight: Array | None = None
    ) -> float:
        """Minus the mean loss of the subjects (X, y), weighted where weights are given."""
        model, X = _checked(estimator, X)
        kind, case = model.kind_and_case(X, y, self.times, self.levels)
        score = kind.one_score(self.name, self.function)
        weight = check_weights(sample_weight, len(case.y))
        losses = score.losses(case)[weight > 0]  # an infinite loss of weight zero does not count
        return -float(np.mean(weight[weight > 0] @ losses) / weight.sum())

    def __repr__(self) -> str:
        return f"scorer({self.name!r})"


def _checked(estimator: Any, X: Any) -> tuple[WithCensoring, Any]:
    """The fitted ``WithCensoring`` at the end of pipelines and searches, and the covariates that reach it."""
    model, X = last_step(estimator, X)
    if not isinstance(model, WithCensoring):
        raise InvalidTypeError(
            f"A scorer needs the censoring distribution of the training fold; {type(estimator).__name__} has "
            "none. Wrap the model: WithCensoring(model, censoring=Censoring(KaplanMeier()))."
        )
    return model, X
