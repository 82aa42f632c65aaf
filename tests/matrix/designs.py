"""Sources of C and designs: how ``compare`` is called for a cell of the matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import censcore as cs
from tests.matrix.worlds import TIMES, World

LANDMARK = 1.0
CLUSTER = 5
KM = cs.Censoring(cs.KaplanMeier())

# ---- sources of C -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """Where C comes from: the outcome and the options of ``compare`` that say so."""

    options: Callable[[World], dict[str, Any]]
    by: str = ""
    knows: bool = False


def _train(w: World) -> dict[str, Any]:
    other = w.take(np.arange(len(w.weight))[::-1])
    return {"censoring": KM, "train": cs.Sample(other.X, other.seen, weight=other.weight), "reference": None}


def _before(w: World, rows: np.ndarray) -> dict[str, Any]:
    fitted = cs.Censoring(cs.KaplanMeier()).fit(w.X.iloc[rows], w.seen.take(rows), w.weight[rows])
    return {"censoring": fitted.predict_distribution(w.X)}


SOURCES = {
    "known times": Source(lambda w: {"censoring": None}, knows=True),
    "given distribution": Source(lambda w: {"censoring": w.C}),
    "Kaplan-Meier in the call": Source(lambda w: {"censoring": KM}),
    "fitted before, same subjects": Source(lambda w: _before(w, np.arange(len(w.weight)))),
    "fitted before, other order": Source(lambda w: _before(w, np.arange(len(w.weight))[::-1])),
    "training subjects": Source(_train),
    "given by site": Source(lambda w: {"censoring": w.C}, by="site"),
    "Kaplan-Meier by site": Source(
        lambda w: {"censoring": cs.Censoring(cs.KaplanMeier(stratify="site"))}, by="site"
    ),
    "Cox regression": Source(lambda w: {"censoring": cs.Censoring(cs.CoxRegression())}, by="x"),
}


# ---- designs ----------------------------------------------------------------------------------------------

Design = Callable[[World, Any, dict[str, Any]], list[Any]]


def fixed(w: World, y: Any, options: dict[str, Any], **more: Any) -> list[Any]:
    return [
        cs.compare(w.forecasts, y, X=w.X, sample_weight=w.weight, **{"reference": None, **options, **more})
    ]


def subgroups(w: World, y: Any, options: dict[str, Any]) -> list[Any]:
    return fixed(w, y, options, by="site")


def clusters(w: World, y: Any, options: dict[str, Any]) -> list[Any]:
    return fixed(w, y, options, groups=np.arange(len(w.weight)) // CLUSTER)


def landmarks(w: World, y: Any, options: dict[str, Any]) -> list[Any]:
    late = {"reference": None, **options, "times": TIMES[TIMES > LANDMARK]}
    found = cs.compare_landmarks(w.forecasts, y, X=w.X, sample_weight=w.weight, landmarks=[LANDMARK], **late)
    return found.comparisons


def _split(n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Every subject is there twice, in a row: each fold is the whole population."""
    one, other = np.arange(0, n, 2), np.arange(1, n, 2)
    return [(one, other), (other, one)]


def folds(w: World, y: Any, options: dict[str, Any], repeats: int = 1) -> list[Any]:
    def forecast(F: Any) -> Callable[..., Any]:
        return lambda X_train, y_train, X_test, sample_weight=None: F.take(X_test.index.to_numpy())

    models = {name: forecast(F) for name, F in w.forecasts.items()}
    cv = _split(len(w.X)) * repeats
    return [
        cs.cross_validate(models, w.X, y, sample_weight=w.weight, cv=cv, **{"reference": None, **options})
    ]


def repeated_folds(w: World, y: Any, options: dict[str, Any]) -> list[Any]:
    return folds(w, y, options, repeats=2)


def batches(w: World, y: Any, options: dict[str, Any]) -> list[Any]:
    frame = w.X.assign(weight=w.weight, row=np.arange(len(w.X)))
    rows = 7 if len(frame) < 1000 else 1500
    table = cs.OutcomeTable(frame, outcome=lambda rows: y.take(rows["row"].to_numpy()), rows=rows)
    forecasts = {name: lambda rows, F=F: F.take(rows["row"].to_numpy()) for name, F in w.forecasts.items()}
    return [cs.compare(forecasts, table, sample_weight="weight", **{"reference": None, **options})]


DESIGNS: dict[str, Design] = {
    "fixed forecasts": fixed,
    "subgroups": subgroups,
    "clusters": clusters,
    "landmarks": landmarks,
    "folds": folds,
    "repeated folds": repeated_folds,
    "batches": batches,
}
