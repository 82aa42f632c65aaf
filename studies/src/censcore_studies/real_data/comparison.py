"""Censored engression and independent baselines on real data, by held-out censored energy score."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from censcore.distributions import Distribution, Independent
from censcore.estimators import Censoring, CoxRegression, KaplanMeier, WeibullRegression
from censcore.estimators.copula import CopulaWeibull
from censcore.estimators.engression import CensoredEngression
from censcore.evaluation.resolved_censoring import resolve_censoring
from censcore.evaluation.subjects import Subjects
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.scores import energy_score, mean_loss
from censcore_studies.kit.cells import Cell, run_cells
from censcore_studies.kit.tables import StudyTable
from censcore_studies.real_data.data import DATA, load_survival_data

__all__ = ["METHODS", "real_data_cells", "report_real_data", "run_real_data", "score_fold", "summarise"]

#: Raise the number when the same settings give other scores.
STUDY = "real-data 1"
FOLDS = 5
OWN = "Censored engression"
DEFAULTS = "the same, default settings"
#: Below so many training rows engression takes ``SMALL_DATA`` instead of its default settings: a held-out
#: fifth is too small to choose an epoch by, so none is held out, and a narrow network with much weight decay
#: is trained for half the epochs.
FEW_ROWS = 1000
SMALL_DATA: dict[str, Any] = {"validation_fraction": 0.0, "epochs": 40, "width": 32, "weight_decay": 1.0}
DISTRIBUTIONS = {"kaplan-meier": KaplanMeier, "cox": lambda: CoxRegression(alpha=1.0)}

Fit = Callable[[pd.DataFrame, RightCensored, Any, dict[str, Any]], Callable[[pd.DataFrame], Distribution]]


def _each_alone(estimator: Callable[[], Any], covariates: bool) -> Fit:
    """One estimator per event time, joined as if the times were independent given x."""

    def fit(X: pd.DataFrame, y: RightCensored, distribution: Any, options: dict[str, Any]) -> Any:
        parts = [estimator().fit(X if covariates else None, y.marginal(j)) for j in range(y.k)]
        return lambda new: Independent([part.predict_distribution(new) for part in parts])

    return fit


def _engression(by_rows: bool) -> Fit:
    """The settings follow the number of rows, or are the default ones whatever it is."""

    def fit(X: pd.DataFrame, y: RightCensored, distribution: Any, options: dict[str, Any]) -> Any:
        settings = SMALL_DATA if by_rows and len(y) < FEW_ROWS else {}
        settings = settings | options["engression"]
        model = CensoredEngression(random_state=options["fold"], device="cpu", **settings)
        return model.fit(X, y, censoring=distribution).predict_distribution

    return fit


def _clayton(X: pd.DataFrame, y: RightCensored, distribution: Any, options: dict[str, Any]) -> Any:
    return CopulaWeibull("clayton", random_state=options["fold"]).fit(X, y).predict_distribution


#: Name in the table, and how to fit it.
METHODS: dict[str, Fit] = {
    OWN: _engression(by_rows=True),
    DEFAULTS: _engression(by_rows=False),
    "Independent Kaplan-Meier": _each_alone(KaplanMeier, covariates=False),
    "Independent Weibull": _each_alone(WeibullRegression, covariates=True),
    "Independent Cox": _each_alone(lambda: CoxRegression(alpha=1.0), covariates=True),
    "Clayton-Weibull": _clayton,
}


def score_fold(settings: dict[str, Any]) -> dict[str, Any]:
    """Fit every method to all folds but one, and score it on that one: one loss per held-out row.

    The censoring distribution, where it is not known, is estimated from the training rows, apart from all
    forecasts; the score ends at the largest time it supports.

    Parameters
    ----------
    settings : dict
        ``data`` (a key of ``DATA``), ``distribution`` (``"known"`` or a key of ``DISTRIBUTIONS``), ``fold``, ``repetition``,
        and ``engression``, settings of :class:`~censcore.CensoredEngression` other than the default.
    """
    options = {"methods": None, "engression": {}, "folder": None} | settings
    data = load_survival_data(options["data"], options["folder"])
    train, test = _fold(len(data.y), options["fold"], options["repetition"])
    X_train, X_test = _without_gaps(data.X.iloc[train], data.X.iloc[test])
    y_train, y_test = data.y.take(train), data.y.take(test)
    distribution = (
        None if options["distribution"] == "known" else Censoring(DISTRIBUTIONS[options["distribution"]]())
    )
    C = resolve_censoring(distribution, y_test, X_test, Subjects(X_train, y_train))
    losses = {}
    same = len(train) >= FEW_ROWS
    for name in options["methods"] or [name for name in METHODS if not (same and name == DEFAULTS)]:
        forecast = METHODS[name](X_train, y_train, distribution, options)(X_test)
        score = energy_score(
            y_test, forecast, C.distribution, fair=True, horizon=C.support(), seed=options["fold"]
        )
        losses[name] = [round(float(loss), 7) for loss in score]
    return {"losses": losses, "rows": test.tolist(), "horizon": C.support()}


def _fold(n: int, fold: int, repetition: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out rows; the folds of one repetition partition the rows."""
    order = np.random.default_rng([repetition, n]).permutation(n)
    test = np.sort(order[fold::FOLDS])
    return np.setdiff1d(np.arange(n), test), test


def _without_gaps(train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Missing values become the training median, and a column says where there were any."""
    gaps = [name for name in train if train[name].isna().any()]
    flags = [f"{name} missing" for name in gaps]
    middle = train.median()

    def fill(part: pd.DataFrame) -> pd.DataFrame:
        missing = part[gaps].isna().astype(float).set_axis(flags, axis=1)
        return pd.concat([part.fillna(middle), missing], axis=1)

    return fill(train), fill(test)


def real_data_cells(data: Sequence[str] = tuple(DATA), repetitions: int = 1, **settings: Any) -> list[Cell]:
    """One cell per data set, censoring distribution and fold; a known C needs no distribution."""
    unknown = set(data) - set(DATA)
    if unknown:
        raise InvalidInputError(f"There are no data called {sorted(unknown)}; there are {list(DATA)}.")
    fixed = {
        "study": STUDY,
        "folds": FOLDS,
        "small data": [FEW_ROWS, SMALL_DATA],
        "methods": list(METHODS),
        "engression": {},
        "folder": None,
    }
    cells = []
    for name in data:
        distributions = ["known"] if name in ("rhDNase", "nafld") else list(DISTRIBUTIONS)
        for distribution in distributions:
            for repetition in range(repetitions):
                for fold in range(FOLDS):
                    chosen = {
                        "data": name,
                        "distribution": distribution,
                        "fold": fold,
                        "repetition": repetition,
                        **settings,
                    }
                    cells.append(
                        Cell(f"{name.replace(' ', '-')}-{distribution}-{repetition}-{fold}", chosen, fixed)
                    )
    return cells


def run_real_data(
    out: str | os.PathLike[str] | None = None, *, jobs: int = 1, progress: bool = True, **chosen: Any
) -> pd.DataFrame:
    """Run the comparison and return :func:`summarise` of it."""
    cells = [_with_content(cell) for cell in real_data_cells(**chosen)]
    return summarise(run_cells(score_fold, cells, out, jobs=jobs, progress=progress))


def _with_content(cell: Cell) -> Cell:
    """The data themselves are part of what a result depends on, wherever their files are."""
    data = load_survival_data(cell.settings["data"], cell.settings.get("folder"))
    return replace(cell, fixed={**cell.fixed, "content": data.fingerprint})


def summarise(results: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Mean losses over the rows, and how far each method is behind censored engression.

    ``behind`` is the mean paired difference of losses in percent of engression's mean loss, positive where
    engression is better; ``error`` is its standard error over rows and ``folds`` counts the held-out sets
    where engression was better.
    """
    table = []
    keys = sorted({(r["settings"]["data"], r["settings"]["distribution"]) for r in results}, key=str)
    for data, distribution in keys:
        parts = [
            r
            for r in results
            if (r["settings"]["data"], r["settings"]["distribution"]) == (data, distribution)
        ]
        own = _by_row(parts, OWN)
        for method in parts[0]["losses"]:
            loss = _by_row(parts, method)
            behind = mean_loss((loss - own) / own.mean())
            won = sum(np.mean(p["losses"][method]) > np.mean(p["losses"][OWN]) for p in parts)
            table.append(
                {
                    "data": data,
                    "censoring distribution": distribution,
                    "n": len(loss),
                    "method": method,
                    "energy score": loss.mean(),
                    "behind %": 100 * behind.mean,
                    "error %": 100 * behind.standard_error,
                    "folds": f"{won}/{len(parts)}",
                }
            )
    return pd.DataFrame(table)


def _by_row(parts: Sequence[dict[str, Any]], method: str) -> np.ndarray:
    """The loss of every row, averaged over repetitions."""
    rows = np.concatenate([part["rows"] for part in parts])
    losses = np.concatenate([part["losses"][method] for part in parts])
    return np.bincount(rows, losses) / np.bincount(rows)


def report_real_data(table: pd.DataFrame) -> StudyTable:
    """The table to read: engression's score, and how far the others are behind it."""
    lines = []
    for (data, distribution), part in table.groupby(["data", "censoring distribution"], sort=False):
        line = {"data": data, "rows": f"{part['n'].iloc[0]:,}", "censoring distribution": distribution}
        for row in part.to_dict(orient="records"):
            own = row["method"] == OWN
            behind = f"{row['behind %']:+.1f} ± {row['error %']:.1f} %"
            line[row["method"]] = f"{row['energy score']:.3f}" if own else behind
        lines.append(line)
    caption = (
        "Held-out censored energy score of censored engression, and by how much the others exceed it (paired "
        "differences ± standard error; positive: engression is better)."
    )
    return StudyTable("real-data", table, pd.DataFrame(lines).fillna(""), caption)
