"""Estimators of the censoring distribution by name, for the command line, comparisons and studies."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, clone

from censcore.estimators.base import SurvivalEstimator
from censcore.estimators.censoring import Censoring
from censcore.estimators.cox import CoxRegression
from censcore.estimators.kaplan_meier import KaplanMeier
from censcore.estimators.parametric_regressions import WeibullRegression
from censcore.exceptions import InvalidInputError

__all__ = ["CENSORING_ESTIMATORS", "censoring_estimator"]

#: Name -> estimator of event times, which estimates the censoring distribution on the flipped outcome.
CENSORING_ESTIMATORS: dict[str, type[SurvivalEstimator]] = {
    "kaplan-meier": KaplanMeier,
    "cox": CoxRegression,
    "weibull": WeibullRegression,
}


def censoring_estimator(
    name: str | BaseEstimator,
    *,
    stratify: str | int | None = None,
    cv: Any = None,
    random_state: int | None = 0,
    **options: Any,
) -> Censoring:
    """An estimator of the censoring distribution by its name, not fitted yet.

    Parameters
    ----------
    name : {"kaplan-meier", "cox", "weibull"}, or estimator
        The estimator of event times that is applied to the flipped outcome; also an estimator itself, such
        as a ``Pipeline`` that ends in one, with the ``options`` it has.
    stratify : str or int, optional
        Column of X with one curve per value, for "kaplan-meier".
    cv, random_state
        As of :class:`~censcore.Censoring`.
    **options
        Of the estimator, such as ``alpha=1.0`` for "cox".

    Returns
    -------
    Censoring

    Examples
    --------
    >>> from censcore.estimators.by_name import censoring_estimator
    >>> censoring_estimator("cox", cv=5)
    Censoring(cv=5, estimator=CoxRegression())
    """
    if not isinstance(name, str):
        return Censoring(clone(name).set_params(**options), cv=cv, random_state=random_state)
    if name not in CENSORING_ESTIMATORS:
        raise InvalidInputError(
            f"Estimator of the censoring distribution: got {name!r}, expected one of "
            f"{', '.join(CENSORING_ESTIMATORS)}."
        )
    if stratify is not None:
        if name != "kaplan-meier":
            raise InvalidInputError(f"stratify belongs to 'kaplan-meier'; got it with {name!r}.")
        options["stratify"] = stratify
    return Censoring(CENSORING_ESTIMATORS[name](**options), cv=cv, random_state=random_state)
