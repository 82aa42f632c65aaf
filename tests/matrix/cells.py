"""The matrix: kinds of outcome x measures x designs x sources of C, each cell with its state.

A cell *works* if the censored estimate equals what uncensored data give (a measure of the uncensored time), or
what known censoring times give (a score of min(T, C)), and the truth is not beaten by a wrong forecast. It is
*refused* if an error, or a note in place of a number, says why. Anything else *fails*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from tests.matrix.worlds import HORIZON, TIMES, World, world

import censcore as cs
from censcore.evaluation.murphy import Elementary
from censcore.exceptions import CenscoreError

TOLERANCE = 1e-9
THRESHOLDS = np.array([0.2, 0.45])
LANDMARK = 1.0
KM = cs.Censoring(cs.KaplanMeier())
MODELS = ("truth", "bold", "shy", "late")
Key = tuple[Any, ...]

#: Kinds of outcome, with and without delayed entry.
KINDS = [(kind, entry) for kind in ("one time", "causes", "several times") for entry in (False, True)]
KINDS += [("semi-competing", False)]

#: What is measured, and what it must equal: "full" without censoring, "known" with known censoring times.
TARGETS = {
    "brier_score": "known",
    "binomial_log_score": "known",
    "crps": "known",
    "pinball_score": "known",
    "energy_score": "known",
    "brier_score:ipcw": "full",
    "integrated_brier_score:ipcw": "full",
    "concordance:uno": "full",
    "auc": "full",
    "observed risk": "full",
    "net benefit": "full",
    "Murphy diagram": "known",
}
PROPER = [name for name in TARGETS if name not in ("concordance:uno", "auc", "observed risk")]


# ---- sources of C -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """Where C comes from: the outcome and the options of ``compare`` that say so."""

    options: Callable[[World], dict[str, Any]]
    by_site: bool = False
    knows: bool = False


def _train(w: World) -> dict[str, Any]:
    other = w.take(np.arange(len(w.weight))[::-1])
    return {"censoring": KM, "train": (other.X, other.seen), "train_weight": other.weight, "reference": None}


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
    "given by site": Source(lambda w: {"censoring": w.C}, by_site=True),
    "Kaplan-Meier by site": Source(
        lambda w: {"censoring": cs.Censoring(cs.KaplanMeier(stratify="site"))}, by_site=True
    ),
}


# ---- designs ----------------------------------------------------------------------------------------------

Design = Callable[[World, Any, dict[str, Any]], list[Any]]


def fixed(w: World, y: Any, options: dict[str, Any], **more: Any) -> list[Any]:
    return [cs.compare(w.forecasts, y, X=w.X, sample_weight=w.weight, **options, **more)]


def subgroups(w: World, y: Any, options: dict[str, Any]) -> list[Any]:
    return fixed(w, y, options, by="site")


def clusters(w: World, y: Any, options: dict[str, Any]) -> list[Any]:
    return fixed(w, y, options, groups=np.arange(len(w.weight)) // 2)


def landmarks(w: World, y: Any, options: dict[str, Any]) -> list[Any]:
    late = {**options, "times": TIMES[TIMES > LANDMARK]}
    found = cs.compare_landmarks(
        w.forecasts, y, X=w.X, sample_weight=w.weight, landmarks=[LANDMARK], **late
    )
    return found.comparisons


def _split(n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Every subject is there twice, in a row: each fold is the whole population."""
    one, other = np.arange(0, n, 2), np.arange(1, n, 2)
    return [(one, other), (other, one)]


def folds(w: World, y: Any, options: dict[str, Any], repeats: int = 1) -> list[Any]:
    X = w.X.assign(row=np.arange(len(w.weight)))

    def forecast(F: Any) -> Callable[..., Any]:
        return lambda X_train, y_train, X_test, sample_weight=None: F.take(X_test["row"].to_numpy())

    models = {name: forecast(F) for name, F in w.forecasts.items()}
    cv = _split(len(X)) * repeats
    return [cs.compare(models, X, y, sample_weight=w.weight, cv=cv, **{"reference": None, **options})]


def repeated_folds(w: World, y: Any, options: dict[str, Any]) -> list[Any]:
    return folds(w, y, options, repeats=2)


def batches(w: World, y: Any, options: dict[str, Any]) -> list[Any]:
    frame = pd.DataFrame({"time": y.time, "event": y.event, "weight": w.weight, "site": w.X["site"]})
    frame["row"] = np.arange(len(frame))
    columns = {}
    for name, values in (("censoring_time", y.censoring_time), ("entry", y.entry)):
        if values is not None:
            frame[name], columns[name] = values, name
    table = cs.OutcomeTable(frame, "time", "event", rows=7, **columns)
    forecasts = {name: lambda rows, F=F: F.take(rows["row"].to_numpy()) for name, F in w.forecasts.items()}
    return [cs.compare(forecasts, table, sample_weight="weight", **options)]


DESIGNS: dict[str, Design] = {
    "fixed forecasts": fixed,
    "subgroups": subgroups,
    "clusters": clusters,
    "landmarks": landmarks,
    "folds": folds,
    "repeated folds": repeated_folds,
    "batches": batches,
}


# ---- what is found ----------------------------------------------------------------------------------------


def values_of(found: Any) -> dict[Key, float]:
    """All numbers of a comparison by (measure, by, group, outcome, at, model)."""
    values: dict[Key, float] = {}
    for line in found.frame().itertuples():
        measure = str(line.score).partition("[")[0]
        if measure in TARGETS:
            key = (measure, line.by, line.group, line.outcome, _place(line.at), line.model)
            values[key] = line.mean
    for outcome, view in views_of(found):
        values |= dict(_curves(outcome, view))
    return values


def _place(at: float) -> float:
    return -1.0 if np.isnan(at) else round(float(at), 9)


def views_of(found: Any) -> Iterator[tuple[str, Any]]:
    """Comparisons of one event each, which have calibration and decision curves."""
    if not hasattr(found, "outcomes"):
        yield "", found
        return
    for name in found.outcomes:
        try:
            yield name, found.of(name)
        except CenscoreError:
            continue


def _curves(outcome: str, view: Any) -> Iterator[tuple[Key, float]]:
    for t in view.settings["times"]:
        for model in MODELS:
            yield ("observed risk", "", "all", outcome, t, model), _number(
                lambda t=t, m=model: view.calibration(m, t).observed
            )
        decisions = _number(lambda t=t: view.net_benefit(t, THRESHOLDS))
        murphy = _number(lambda t=t: view.curve(Elementary(t, thresholds=THRESHOLDS)))
        for i, threshold in enumerate(THRESHOLDS):
            for model in MODELS:
                gain = np.nan
                if isinstance(decisions, pd.DataFrame):
                    chosen = decisions[(decisions.model == model) & (decisions.threshold == threshold)]
                    gain = float(chosen.net_benefit.item())
                yield ("net benefit", "", "all", outcome, (t, threshold), model), gain
                loss = float(murphy[model].value[i]) if isinstance(murphy, dict) else np.nan
                yield ("Murphy diagram", "", "all", outcome, (t, threshold), model), loss


def _number(compute: Callable[[], Any]) -> Any:
    """A number, NaN where it is refused."""
    try:
        return compute()
    except CenscoreError:
        return np.nan


# ---- states -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One measure of one kind in one design under one source of C."""

    kind: str
    measure: str
    design: str
    source: str
    state: str
    reason: str = ""


def cells_of(kind: str, entry: bool, design: str, source: str) -> list[Cell]:
    """The cells of all measures, from one comparison of what was seen and two of what is known."""
    name = f"{kind}, delayed entry" if entry else kind

    def all_in(state: str, reason: str) -> list[Cell]:
        return [Cell(name, measure, design, source, state, reason) for measure in TARGETS]

    how = SOURCES[source]
    w = world(kind, by_site=how.by_site, entry=entry, copies=2 if "folds" in design else 1)
    common = {"scores": "all", "times": TIMES, "levels": [0.25, 0.5], "horizon": HORIZON}
    try:
        options = common | how.options(w)
        found = [values_of(c) for c in DESIGNS[design](w, w.known if how.knows else w.seen, options)]
    except CenscoreError as error:
        return all_in("refused", f"{type(error).__name__}: {error}")
    except Exception as error:
        return all_in("fails", f"{type(error).__name__}: {error}")
    place = "subgroups"
    if design == "landmarks":  # those at risk in the data, also where C depends on the site
        place, w = design, w.take(np.nonzero(w.seen.at_risk(LANDMARK))[0])
    expected = {
        target: [values_of(c) for c in DESIGNS[place](w, y, {**common, "censoring": None})]
        for target, y in (("full", w.full), ("known", w.known))
    }
    if how.knows:  # of those whose censoring time is later, whoever else is in the data
        expected["full"] = [_of_followed(w, place, common)]
    return [_judged(name, measure, design, source, found, expected[target])
            for measure, target in TARGETS.items()]  # fmt: skip


def _of_followed(w: World, place: str, common: dict[str, Any]) -> dict[Key, float]:
    """Measures at each time t without censoring, of the subjects with c > t."""
    values: dict[Key, float] = {}
    for t in common["times"]:
        some = w.take(np.nonzero(w.c > t)[0])
        [found] = DESIGNS[place](some, some.full, {**common, "times": [t], "censoring": None})
        values |= {key: value for key, value in values_of(found).items() if _time_of(key) == t}
    return values


def _time_of(key: Key) -> Any:
    return key[4][0] if isinstance(key[4], tuple) else key[4]


def _judged(kind: str, measure: str, design: str, source: str, found: list, expected: list) -> Cell:
    def cell(state: str, reason: str = "") -> Cell:
        return Cell(kind, measure, design, source, state, reason)

    values = [{key: v for key, v in part.items() if key[0] == measure} for part in found]
    known = [{key: v for key, v in part.items() if not np.isnan(v)} for part in values]
    if not any(known):
        return cell("refused", "no number")
    for part, target in zip(known, expected, strict=True):
        for key, value in part.items():
            if key in target and abs(value - target[key]) > TOLERANCE * max(1.0, abs(target[key])):
                return cell("fails", f"{key[1:]}: got {value:.9g}, expected {target[key]:.9g}")
        if not any(key in target for key in part):
            return cell("fails", f"nothing to compare with: {next(iter(part))}")
        if measure in PROPER:
            for key, value in part.items():
                best = part.get((*key[:-1], "truth"), np.nan)
                worse = value - best if measure != "net benefit" else best - value
                if worse < -TOLERANCE:
                    return cell("fails", f"{key[1:]} beats the truth by {-worse:.3g}")
    return cell("works")
