"""Data, folds and published scores of the benchmark of Burk et al., as its repository holds them.

Nothing of it is shipped: the files are read from the folder ``neutral-benchmark`` below the one that the
environment variable CENSCORE_DATA names.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore_studies.kit.data import folder_below_data
from censcore_studies.kit.follow_up import eighty_percent_gone
from censcore_studies.neutral_benchmark.factors import treatment_coding

__all__ = [
    "DRAWN",
    "FOLDS",
    "PUBLISHED",
    "TASKS",
    "Fold",
    "Task",
    "data_folder",
    "load_task",
    "published_scores",
    "read_exactly",
]

#: Folds of one repetition: they partition the subjects, and repetitions follow each other.
FOLDS = 3

#: Data sets by number of subjects, and which of their columns are factors.
TASKS: dict[str, tuple[str, ...]] = {
    "veteran": ("trt", "prior", "celltype"),
    "lung": ("inst", "sex"),
    "e1684": (),
    "whas": ("mitype", "year"),
    "uis": ("HC",),
    "tumor": ("charlson_score",),
    "metabric": (),
    "gbsg": (),
    "support": (),
    "flchain": ("mgus", "flc.grp", "sex"),
    "nwtco": ("stage",),
}

#: Levels of factors that no training subject of a fold has, and what the benchmark drew for them, by the
#: position of the subject. Recovered from its score of Cox regression, see ``agreement.closest_draw``.
DRAWN: dict[tuple[str, int], tuple[str, dict[int, int]]] = {
    ("lung", 22): ("inst", {125: 11, 126: 6, 137: 1, 160: 16}),
}

#: What the published names of learners stand for. The four that have no survival function are left out.
PUBLISHED: dict[str, str] = {
    "KM": "Kaplan-Meier",
    "NEL": "Nelson-Aalen",
    "CPH": "Cox regression",
    "AK": "Akritas estimator",
    "GLMN": "elastic net Cox (glmnet)",
    "Pen": "penalised Cox (penalized)",
    "NCV": "MCP or SCAD Cox (ncvreg)",
    "GAM": "additive Cox (mgcv)",
    "CoxB": "CoxBoost",
    "AFT": "parametric AFT",
    "Flex": "flexible splines (flexsurv)",
    "RFSRC": "random forest (randomForestSRC)",
    "RAN": "random forest (ranger)",
    "CIF": "conditional inference forest",
    "ORSF": "oblique random forest (aorsf)",
    "MBSTCox": "boosted Cox (mboost)",
    "XGBCox": "boosted Cox (XGBoost)",
}


@dataclass(frozen=True)
class Fold:
    """Training and test subjects of one fold, with numeric covariates.

    Attributes
    ----------
    train, test : arrays of int
        Positions in the data.
    X_train, X_test : frames
        Covariates; factors are coded by what the training subjects show.
    y_train, y_test : RightCensored
        Outcomes.
    """

    train: np.ndarray
    test: np.ndarray
    X_train: pd.DataFrame
    X_test: pd.DataFrame
    y_train: RightCensored
    y_test: RightCensored


@dataclass(frozen=True)
class Task:
    """One data set with its folds.

    Attributes
    ----------
    name : str
        A key of ``TASKS``.
    X : frame, (n, p)
        Covariates as published.
    y : RightCensored
        Outcomes.
    tests : tuple of arrays
        Positions of the test subjects of each fold; all others train.
    """

    name: str
    X: pd.DataFrame
    y: RightCensored
    tests: tuple[np.ndarray, ...]

    def split(self, iteration: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions of training and test subjects; iterations count from 1, as published."""
        if not 1 <= iteration <= len(self.tests):
            raise InvalidInputError(
                f"iteration: got {iteration}, expected 1 to {len(self.tests)}, the folds of {self.name}."
            )
        test = self.tests[iteration - 1]
        return np.setdiff1d(np.arange(len(self.y)), test), test

    def fold(self, iteration: int) -> Fold:
        """The subjects of one fold."""
        train, test = self.split(iteration)
        X = self.X
        if (self.name, iteration) in DRAWN:
            factor, levels = DRAWN[self.name, iteration]
            X = X.assign(
                **{factor: pd.Series(levels).reindex(X.index).fillna(X[factor]).astype(X[factor].dtype)}
            )
        X_train, X_test = treatment_coding(X.iloc[train], X.iloc[test], TASKS[self.name])
        return Fold(train, test, X_train, X_test, self.y.take(train), self.y.take(test))

    @property
    def repetitions(self) -> int:
        """How often the subjects were partitioned."""
        return len(self.tests) // FOLDS

    @property
    def horizon(self) -> float:
        """The first time at which more than 80 % of the subjects are no longer at risk."""
        return float(eighty_percent_gone(np.asarray(self.y.time)))

    @property
    def fingerprint(self) -> str:
        """Hash of data and folds."""
        content = hashlib.sha256(pd.util.hash_pandas_object(self.X).to_numpy().tobytes())
        for part in (self.y.time, self.y.event, *self.tests):
            content.update(np.ascontiguousarray(part).tobytes())
        return content.hexdigest()


def data_folder() -> Path:
    """The folder ``neutral-benchmark`` below the one that the environment variable CENSCORE_DATA names."""
    return folder_below_data("neutral-benchmark", "folds.csv.gz", "the benchmark")


def load_task(name: str, folder: str | os.PathLike[str] | None = None) -> Task:
    """One of the data sets in ``TASKS``, with the folds of the benchmark."""
    if name not in TASKS:
        raise InvalidInputError(f"name: got {name!r}, expected one of {', '.join(TASKS)}.")
    return _load(name, Path(folder) if folder is not None else data_folder())


def read_exactly(path: Path) -> pd.DataFrame:
    """A table with numbers to the last digit; pandas has read them so from version 3.1 on, without asking."""
    major, minor = map(int, pd.__version__.split(".")[:2])
    options = {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}
    return pd.read_csv(path, **options)


@lru_cache(maxsize=4)
def _load(name: str, folder: Path) -> Task:
    table = read_exactly(folder / f"{name}.csv.gz")  # the last digit decides whether two times are tied
    y = RightCensored(table["time"].to_numpy(dtype=float), table["status"].to_numpy(dtype=bool))
    folds = pd.read_csv(folder / "folds.csv.gz").query("task == @name").sort_values("iteration")
    tests = tuple(np.sort(np.array(rows.split(), dtype=int) - 1) for rows in folds["test_rows"])
    return Task(name, table.drop(columns=["time", "status"]), y, tests)


def published_scores(folder: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Published ISBS by ``task``, ``learner`` and ``iteration``, of learners tuned on ISBS or not at all.

    ``errors`` counts failures of a learner, for which the benchmark puts Kaplan-Meier in its place.
    """
    place = Path(folder) if folder is not None else data_folder()
    table = read_exactly(place / "scores.csv.gz")
    chosen = table["isbs"].notna() & table["tuned_on"].str.contains("isbs")
    return table.loc[chosen, ["task", "learner", "iteration", "isbs", "errors"]].reset_index(drop=True)
