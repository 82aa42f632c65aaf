"""Estimators of the censoring distribution by name; ``"auto"`` is a regression where covariates predict C."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from censcore._validation import columns_of
from censcore.estimators.censoring.censoring import Censoring
from censcore.estimators.censoring.covariate_test import CensoringTest, covariates_predict
from censcore.estimators.encoding import is_category
from censcore.estimators.nonparametric.kaplan_meier import KaplanMeier
from censcore.estimators.regression.cox import CoxRegression
from censcore.estimators.regression.parametric_regressions import WeibullRegression
from censcore.estimators.survival_estimator import SurvivalEstimator
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

ALARM = 0.01  # p-value of the test of covariates below which censoring counts as dependent
RIDGE = 1.0  # on standardised columns: about one subject that was censored at random


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
    >>> from censcore.estimators.censoring.censoring_choice import censoring_estimator
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


@dataclass(frozen=True)
class CensoringChoice:
    """The estimator of C that was chosen, not fitted, and why; None where nothing is estimated."""

    censoring: Any
    words: str

    @property
    def note(self) -> str:
        """For the reader of a comparison."""
        return f"censoring='auto': {self.words}."

    @property
    def pooled(self) -> bool:
        """Whether the covariates play no part."""
        return self.censoring is None or isinstance(self.censoring.estimator, KaplanMeier)


def is_automatic(censoring: Any) -> bool:
    """Whether the choice is left to :func:`choose_censoring`; any other text is an error."""
    if isinstance(censoring, str) and censoring != "auto":
        raise InvalidInputError(
            f"censoring: got {censoring!r}, expected 'auto', a distribution or an estimator such as "
            "Censoring(CoxRegression())."
        )
    return isinstance(censoring, str)


def choose_censoring(
    X: Any,
    y: RightCensored,
    *,
    sample_weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    seed: int = 0,
) -> CensoringChoice:
    """Choose the estimator of C by the test of "the covariates do not predict censoring".

    Kaplan-Meier where the test finds nothing (p of 0.01 or more) or cannot be made; else a Cox regression of
    C with a small penalty on standardised columns, in which text becomes indicators, and a missing number the
    median with an indicator. ``groups`` are labels of subjects that depend on each other, ``seed`` is that of
    the test.
    """
    test = censoring_test(X, y, sample_weight=sample_weight, groups=groups, seed=seed)
    if isinstance(test, str):
        return CensoringChoice(Censoring(KaplanMeier()), f"Kaplan-Meier, since no test was made: {test}")
    if test.p_value >= ALARM:
        return CensoringChoice(
            Censoring(KaplanMeier()), f"Kaplan-Meier, since covariates do not predict censoring: {test.told}"
        )
    regression = Censoring(_regression(X))
    return CensoringChoice(regression, f"Cox regression, since covariates predict censoring: {test.told}")


def censoring_test(X: Any, y: RightCensored, **options: Any) -> CensoringTest | str:
    """The test of the C that all event times share, or the one with the smallest p, adjusted for all C.

    ``options`` are those of :func:`covariates_predict`; where no test can be made, the reason in words.
    """
    if X is None or np.ndim(X) != 2 or not np.shape(X)[1]:
        return "there are no covariates"
    parts = [y] if y.shares_censoring else [y.marginal(j) for j in range(y.k)]
    tests = [covariates_predict(X, part, **options) for part in parts]
    usable = [test for test in tests if not isinstance(test, str)]
    if not usable:
        return tests[0]
    least = min(usable, key=lambda test: test.p_value)
    return replace(least, p_value=min(1.0, least.p_value * len(usable)))


def _regression(X: Any) -> Any:
    """Cox regression with a penalty on standardised numbers; text becomes indicators, as they are."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    text: list[Any] = []
    numbers: list[Any] = list(range(np.shape(X)[1]))
    if hasattr(X, "columns"):
        columns = columns_of(X)
        text = [name for name, column in columns if is_category(column)]
        numbers = [name for name, _ in columns if name not in text]
    levels = OneHotEncoder(drop="first", handle_unknown="ignore", sparse_output=False)
    scaled = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    encoder = make_column_transformer((levels, text), (scaled, numbers))
    return make_pipeline(encoder, CoxRegression(alpha=RIDGE))
