"""Censored engression and independent baselines on real data, by held-out censored energy score."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from censcore.distributions import Distribution, Independent, PointMass
from censcore.estimators import CoxRegression, KaplanMeier, WeibullRegression
from censcore.estimators.censoring.censoring_choice import censoring_estimator
from censcore.evaluation import compare
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.resolved_censoring import resolve_censoring
from censcore.evaluation.sample import Sample
from censcore.exceptions import CensoringWarning, InvalidInputError
from censcore.learning.best_forecast import BestForecast
from censcore.learning.copula_weibull import CopulaWeibull
from censcore.outcomes import RightCensored
from censcore.scores import clustered_mean
from censcore_studies.kit.cells import Cell, run_cells
from censcore_studies.kit.tables import StudyTable
from censcore_studies.real_data.data import DATA, load_survival_data

__all__ = ["METHODS", "real_data_cells", "report_real_data", "run_real_data", "score_fold", "summarise"]

#: Raise the number when the same settings give other scores.
STUDY = "real-data 7"
FOLDS = 5
SCORE = "energy_score:fair"
OURS = "Censored engression"
#: Estimators of the censoring distribution, by the names of the library, and their options.
ESTIMATORS: dict[str, dict[str, Any]] = {"kaplan-meier": {}, "cox": {"alpha": 1.0}}

Fit = Callable[[pd.DataFrame, RightCensored, Any, dict[str, Any]], Callable[[pd.DataFrame], Distribution]]


def _each_alone(estimator: Callable[[], Any], covariates: bool) -> Fit:
    """One estimator per event time, joined as if the times were independent given x."""

    def fit(X: pd.DataFrame, y: RightCensored, censoring: Any, options: dict[str, Any]) -> Any:
        parts = [estimator().fit(X if covariates else None, y.marginal(j)) for j in range(y.k)]
        return lambda new: Independent([part.predict_distribution(new) for part in parts])

    return fit


def _engression(X: pd.DataFrame, y: RightCensored, censoring: Any, options: dict[str, Any]) -> Any:
    """The default settings, whatever the number of subjects."""
    model = BestForecast(random_state=options["fold"], **options["engression"])
    with warnings.catch_warnings():
        # "recurrence or death" is death for some, on purpose: the study does not ask what comes first
        warnings.filterwarnings("ignore", "Event.* (same time|coded as censoring)", CensoringWarning)
        return model.fit(X, y, censoring=censoring).predict_distribution


def _clayton(X: pd.DataFrame, y: RightCensored, censoring: Any, options: dict[str, Any]) -> Any:
    return CopulaWeibull("clayton", random_state=options["fold"]).fit(X, y).predict_distribution


#: Name in the table, and how to fit it.
METHODS: dict[str, Fit] = {
    OURS: _engression,
    "Independent Kaplan-Meier": _each_alone(KaplanMeier, covariates=False),
    "Independent Weibull": _each_alone(WeibullRegression, covariates=True),
    "Independent Cox": _each_alone(lambda: CoxRegression(alpha=1.0), covariates=True),
    "Clayton-Weibull": _clayton,
}


def score_fold(settings: dict[str, Any]) -> dict[str, Any]:
    """Fit every method to all folds but one, and score it on that one: one loss per held-out subject.

    The censoring distribution, where it is not known, is estimated from the training data, apart from all
    forecasts; the score ends at the largest time it supports.

    Parameters
    ----------
    settings : dict
        ``data`` (a key of ``DATA``), ``censoring_distribution`` (``"known"`` or a key of ``ESTIMATORS``),
        ``fold``, ``repetition``, and ``engression``, settings of :class:`~censcore.BestForecast` other
        than the default.
    """
    options = {"methods": None, "engression": {}, "folder": None} | settings
    data = load_survival_data(options["data"], options["folder"])
    train, test = _fold(len(data.y), options["fold"], options["repetition"])
    X_train, X_test = _without_gaps(data.X.iloc[train], data.X.iloc[test])
    y_train, y_test = data.y.take(train), data.y.take(test)
    name = options["censoring_distribution"]
    estimator = None if name == "known" else censoring_estimator(name, **ESTIMATORS[name])
    C = resolve_censoring(estimator, y_test, X_test, Sample(X_train, y_train)).distribution
    end = float(y_train.time.max())
    if not isinstance(C, PointMass):  # whose times are known
        end = min(end, *(float(C.marginal(j).isf(0.0).min()) for j in range(C.k)))
    methods = options["methods"] or list(METHODS)
    forecasts = {m: METHODS[m](X_train, y_train, estimator, options)(X_test) for m in methods}
    comparison = compare(
        forecasts,
        y_test,
        estimator,
        X=X_test,
        train=(X_train, y_train),
        scores=SCORE,
        reference=None,
        horizon=end,
        seed=options["fold"],
        discrimination=False,
    )
    losses = {m: comparison.losses.values[m, SCORE][:, 0].round(7).tolist() for m in methods}
    return {"losses": losses, "rows": test.tolist(), "horizon": end}


def _fold(n: int, fold: int, repetition: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of training and held-out subjects; the folds of one repetition partition all subjects."""
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
    """One cell per data set, estimator of the censoring distribution and fold; a known C needs none."""
    unknown = set(data) - set(DATA)
    if unknown:
        raise InvalidInputError(f"There are no data called {sorted(unknown)}; there are {list(DATA)}.")
    fixed = {
        "study": STUDY,
        "folds": FOLDS,
        "methods": list(METHODS),
        "engression": {},
        "folder": None,
    }
    cells = []
    for name in data:
        for C in ["known"] if name in ("rhDNase", "nafld") else list(ESTIMATORS):
            for repetition, fold in product(range(repetitions), range(FOLDS)):
                chosen = {"data": name, "censoring_distribution": C, "fold": fold, "repetition": repetition}
                label = f"{name.replace(' ', '-')}-{C}-{repetition}-{fold}"
                cells.append(Cell(label, chosen | settings, fixed))
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
    """Mean losses over the subjects, and how far each method is behind censored engression.

    ``behind`` is the mean paired difference of losses in percent of engression's mean loss, positive where
    engression is better; ``error`` is its standard error over subjects and ``folds`` counts the held-out sets
    where engression was better.
    """
    table = []
    for data, C in sorted({_block(r) for r in results}, key=str):
        parts = [r for r in results if _block(r) == (data, C)]
        ours = _by_subject(parts, OURS)
        for method in parts[0]["losses"]:
            loss = _by_subject(parts, method)
            scale = 100 / ours.value[0]
            behind = loss - ours
            won = sum(np.mean(p["losses"][method]) > np.mean(p["losses"][OURS]) for p in parts)
            table.append(
                {
                    "data": data,
                    "censoring distribution": C,
                    "n": len(loss.influence),
                    "method": method,
                    "energy score": loss.value[0],
                    "behind %": scale * behind.value[0],
                    "error %": scale * behind.standard_error[0],
                    "folds": f"{won}/{len(parts)}",
                }
            )
    return pd.DataFrame(table)


def _block(result: dict[str, Any]) -> tuple[str, str]:
    return result["settings"]["data"], result["settings"]["censoring_distribution"]


def _by_subject(parts: Sequence[dict[str, Any]], method: str) -> Estimate:
    """The mean over subjects of the loss of each, averaged over repetitions; differences are paired."""
    rows = np.concatenate([part["rows"] for part in parts])
    losses = np.concatenate([part["losses"][method] for part in parts])
    by_subject = np.bincount(rows, losses) / np.bincount(rows)
    return Estimate(*clustered_mean(by_subject[:, None], np.full(len(by_subject), 1 / len(by_subject))))


def report_real_data(table: pd.DataFrame) -> StudyTable:
    """The table to read: engression's score, and how far the others are behind it."""
    lines = []
    for (data, C), part in table.groupby(["data", "censoring distribution"], sort=False):
        line = {"data": data, "subjects": f"{part['n'].iloc[0]:,}", "censoring distribution": C}
        for row in part.to_dict(orient="records"):
            ours = row["method"] == OURS
            error = "" if pd.isna(row["error %"]) else f" ± {row['error %']:.1f}"
            behind = f"{row['behind %']:+.1f}{error} %"
            line[row["method"]] = f"{row['energy score']:.3f}" if ours else behind
        lines.append(line)
    caption = (
        "Held-out censored energy score of censored engression, and by how much the others exceed it (paired "
        "differences ± standard error; positive: engression is better)."
    )
    return StudyTable("real-data", table, pd.DataFrame(lines).fillna(""), caption)
