"""Tables of the package SurvSet, split as for the published results of SurvivalPFN.

The results are read from the folder ``survivalpfn`` below the one that the environment variable CENSCORE_DATA
names; the tables come with the package SurvSet.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import pandas as pd

from censcore.exceptions import InvalidInputError, MissingPackageError
from censcore.outcomes import RightCensored
from censcore_studies.kit.data import folder_below_data

__all__ = ["SPLITS", "TABLES", "load_table", "published_results", "split_table"]

#: Splits of the published results, each 70 % for training.
SPLITS = 10

#: Tables with published results that are read from SurvSet and have fewer than 5,000 subjects. FRTCS is left
#: out: it has several lines per subject, and the end of each among its covariates.
TABLES = (
    "Bergamaschi", "micro.censure", "cgd", "veteran", "nki70", "stagec", "burn", "Melanoma", "hepatoCellular",
    "cancer", "mgus", "e1684", "ova", "diabetes", "zinc", "Unemployment", "whas500", "cost", "vlbw",
    "dataOvarian1", "colon", "LeukSurv", "actg", "dataDIVAT2", "scania", "rott2", "divorce", "acath",
    "dataDIVAT3", "Framingham",
)  # fmt: skip


@lru_cache(maxsize=4)
def load_table(name: str) -> tuple[pd.DataFrame, RightCensored]:
    """Covariates, with indicators of levels and missing values as they are, and the outcome."""
    if name not in TABLES:
        raise InvalidInputError(f"name: got {name!r}, expected one of {', '.join(TABLES)}.")
    try:
        from SurvSet.data import SurvLoader
    except ImportError as error:
        raise MissingPackageError("The tables come with the package SurvSet: pip install SurvSet.") from error
    table = SurvLoader().load_dataset(name)["df"].query("time > 0").reset_index(drop=True)
    factors = [column for column in table if column.startswith("fac_")]
    X = pd.get_dummies(table.drop(columns=["pid", "time", "event"]), columns=factors, drop_first=True)
    return X.astype(float), RightCensored(table["time"].to_numpy(float), table["event"].to_numpy(bool))


def split_table(name: str, split: int) -> tuple[pd.DataFrame, RightCensored, pd.DataFrame, RightCensored]:
    """Covariates and outcome of training and of test subjects; splits count from 0, as published."""
    X, y = load_table(name)
    shuffled = X.index.to_series().sample(frac=1, random_state=split).to_numpy()
    train, test = shuffled[: int(0.7 * len(X))], shuffled[int(0.7 * len(X)) :]
    return X.iloc[train], y.take(train), X.iloc[test], y.take(test)


def published_results(folder: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Means over ten splits by table: ``IBS``, ``CI`` and their standard deviations ``IBS sd``, ``CI sd``."""
    place = (
        Path(folder)
        if folder is not None
        else folder_below_data("survivalpfn", "benchmark_results.csv", "the published results")
    )
    table = pd.read_csv(place / "benchmark_results.csv").query("metric in ['IBS', 'CI']")
    wide = table.pivot(index="dataset", columns="metric", values=["mean", "std"])
    wide.columns = [metric if kind == "mean" else f"{metric} sd" for kind, metric in wide.columns]
    return wide
