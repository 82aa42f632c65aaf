"""Regimes like real studies: covariates, event rates and follow-up of three public data sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd

from censcore.estimators import Censoring, CoxRegression, WeibullRegression
from censcore.exceptions import InvalidInputError, MissingPackageError
from censcore.outcomes import RightCensored
from censcore.simulation import DataScenario

__all__ = ["DATA_REGIMES", "data_scenario"]


def _breast_cancer(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    X = pd.DataFrame(
        {
            "hormone_therapy": frame.horTh == "yes",
            "grade_2": frame.tgrade == "II",
            "grade_3": frame.tgrade == "III",
            "age": frame.age,
            "tumour_size": frame.tsize,
            "log_nodes": np.log(frame.pnodes),
            "log_progesterone": np.log1p(frame.progrec),
        }
    )
    return X, frame.time, frame.cens


def _kidney_transplant(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    return frame.drop(columns=["time", "death"]), frame.time, frame.death


def _lung_cancer(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    frame = frame.dropna(subset=["ph.ecog", "age", "sex"])
    return frame[["age", "sex", "ph.ecog"]], frame.time, frame.status


#: Name, the loader of lifelines that brings the data, and the columns that are used.
DATA_REGIMES: dict[str, tuple[str, Callable[..., tuple[pd.DataFrame, pd.Series, pd.Series]]]] = {
    "lung cancer": ("load_lung", _lung_cancer),
    "breast cancer": ("load_gbsg2", _breast_cancer),
    "kidney transplant": ("load_kidney_transplant", _kidney_transplant),
}


@cache
def data_scenario(name: str) -> DataScenario:
    """A scenario like a public data set: T from a Weibull regression fitted to it, C from a Cox regression.

    Times are in units of the longest follow-up. Light, medium and heavy censoring: 28 % of the lung-cancer
    patients, 56 % of the breast-cancer and 84 % of the kidney-transplant patients have no event.

    Examples
    --------
    >>> from censcore_studies.forecast_evaluation import data_scenario
    >>> data = data_scenario("kidney transplant").sample(5000, seed=0)
    >>> round(float(data.y.event.mean()), 2)
    0.16
    """
    if name not in DATA_REGIMES:
        raise InvalidInputError(f"The data set must be one of {list(DATA_REGIMES)}; got {name!r}.")
    try:
        from lifelines import datasets
    except ImportError as error:
        raise MissingPackageError("The data sets come with lifelines: pip install lifelines.") from error
    loader, columns = DATA_REGIMES[name]
    X, time, event = columns(getattr(datasets, loader)())
    y = RightCensored(time.to_numpy(dtype=float) / time.max(), event.to_numpy())
    X = X.to_numpy(dtype=float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    T, C = WeibullRegression().fit(X, y), Censoring(CoxRegression()).fit(X, y)
    return DataScenario(X, T, C, end=1.0)
