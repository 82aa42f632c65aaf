"""The matrix: kinds of outcome x measures x designs x sources of C, each cell with its state.

A cell *works* if the censored estimate equals what uncensored data give (a measure of the uncensored time),
or what known censoring times give (a score of min(T, C)), and the truth is not beaten by a wrong forecast. It
is *refused* if an error, or a note in place of a number, says why. Anything else *fails*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import censcore as cs
from censcore.evaluation.measures.murphy import Elementary
from censcore.exceptions import CenscoreError
from tests.matrix.worlds import HORIZON, TIMES, World, world

TOLERANCE = 1e-9
THRESHOLDS = np.array([0.2, 0.45])
LANDMARK = 1.0
COMMON = {"scores": "all", "times": TIMES, "levels": [0.25, 0.5], "horizon": HORIZON}
KM = cs.Censoring(cs.KaplanMeier())
MODELS = ("truth", "bold", "shy", "late")
Key = tuple[Any, ...]

#: Kinds of outcome, with and without delayed entry.
KINDS = [(kind, entry) for kind in ("one time", "causes", "several times") for entry in (False, True)]
KINDS += [("semi-competing", False), ("intervals", False)]

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
#: The energy score draws values of C; everything else is a finite sum.
ROUGH = {"energy_score": 2e-3}
PROPER = [name for name in TARGETS if name not in ("concordance:uno", "auc", "observed risk")]


def measures_of(kind: str) -> list[str]:
    """The energy score is for several times; of one time it is the CRPS."""
    several = kind in ("several times", "semi-competing")
    return [measure for measure in TARGETS if several or measure != "energy_score"]


# ---- sources of C -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """Where C comes from: the outcome and the options of ``compare`` that say so."""

    options: Callable[[World], dict[str, Any]]
    by_site: bool = False
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
    found = cs.compare_landmarks(w.forecasts, y, X=w.X, sample_weight=w.weight, landmarks=[LANDMARK], **late)
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
    return [cs.cross_validate(models, X, y, sample_weight=w.weight, cv=cv, **{"reference": None, **options})]


def repeated_folds(w: World, y: Any, options: dict[str, Any]) -> list[Any]:
    return folds(w, y, options, repeats=2)


def batches(w: World, y: Any, options: dict[str, Any]) -> list[Any]:
    frame = pd.DataFrame(
        {"row": np.arange(len(w.weight)), "weight": w.weight, "site": w.X["site"].to_numpy()}
    )
    table = cs.OutcomeTable(frame, outcome=lambda rows: y.take(rows["row"].to_numpy()), rows=7)
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


@dataclass
class Found:
    """Numbers by (measure, by, group, outcome, at, model), and why measures have none."""

    values: dict[Key, float]
    reasons: dict[str, str]

    def number(self, measure: str, compute: Callable[[], Any]) -> Any:
        """A number; NaN with its reason where it is refused."""
        try:
            return compute()
        except CenscoreError as error:
            self.reasons.setdefault(measure, f"{type(error).__name__}: {error}")
            return np.nan


def values_of(comparison: Any) -> Found:
    """All numbers of a comparison."""
    found = Found({}, {})
    for line in comparison.frame().itertuples():
        measure = str(line.score).partition("[")[0]
        if measure in TARGETS:
            key = (measure, line.by, line.group, line.outcome, _place(line.at), line.model)
            found.values[key] = line.mean
    for (_, score), reason in comparison.losses.unavailable.items():
        found.reasons[score.partition("[")[0]] = reason
    left_out = [note for note in comparison.notes if "Concordance and AUC" in note]
    found.reasons |= {measure: left_out[0] for measure in ("concordance:uno", "auc") if left_out}
    for outcome, view in views_of(comparison):
        if view.discrimination:
            pairs = view.pair_measures
            found.reasons |= {pairs.measures[key[2]].name: why for key, why in pairs.unavailable.items()}
        found.values |= dict(_curves(outcome, view, found))
    return found


def _place(at: float) -> float:
    return -1.0 if np.isnan(at) else round(float(at), 9)


def views_of(found: Any) -> Iterator[tuple[str, Any]]:
    """Comparisons of one event each, which have calibration and decision curves."""
    if not found.outcomes:
        yield "", found
        return
    for name in found.outcomes:
        try:
            yield name, found.of(name)
        except CenscoreError:
            continue


def _curves(outcome: str, view: Any, found: Found) -> Iterator[tuple[Key, float]]:
    for t in view.settings["times"]:
        for model in MODELS:
            risk = found.number("observed risk", lambda t=t, m=model: view.calibration(m, t).observed)
            yield ("observed risk", "", "all", outcome, t, model), risk
        decisions = found.number("net benefit", lambda t=t: view.net_benefit(t, THRESHOLDS))
        score = Elementary(t, thresholds=THRESHOLDS)
        murphy = found.number("Murphy diagram", lambda t=t, score=score: _murphy(view, t, score))
        for i, threshold in enumerate(THRESHOLDS):
            for model in MODELS:
                gain = np.nan
                if isinstance(decisions, pd.DataFrame):
                    chosen = decisions[(decisions.model == model) & (decisions.threshold == threshold)]
                    gain = float(chosen.net_benefit.item())
                yield ("net benefit", "", "all", outcome, (t, threshold), model), gain
                loss = float(murphy[model].value[i]) if isinstance(murphy, dict) else np.nan
                yield ("Murphy diagram", "", "all", outcome, (t, threshold), model), loss


def _murphy(view: Any, t: float, score: Elementary) -> Any:
    if view.cases:
        view.one_time(t)  # as the diagram does, which is of one event
    return view.curve(score)


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
        return [Cell(name, measure, design, source, state, reason) for measure in measures_of(kind)]

    how = SOURCES[source]
    if kind == "intervals" and (how.knows or "given" in source):
        return all_in("refused", "the number of the last visit has a distribution, and is estimated")
    w = world(kind, by_site=how.by_site, entry=entry, copies=_copies(kind, design))
    try:
        options = COMMON | how.options(w)
        found = [values_of(c) for c in DESIGNS[design](w, w.known if how.knows else w.seen, options)]
    except CenscoreError as error:
        return all_in("refused", f"{type(error).__name__}: {error}")
    except Exception as error:
        return all_in("fails", f"{type(error).__name__}: {error}")
    expected = _expected(kind, entry, how.by_site, how.knows, design == "landmarks")
    return [_judged(name, measure, design, source, found, expected.get(target))
            for measure, target in TARGETS.items() if measure in measures_of(kind)]  # fmt: skip


@cache
def _expected(
    kind: str, entry: bool, by_site: bool, knows: bool, at_landmark: bool
) -> dict[str, list[Found]]:
    """What the measures are without censoring ("full"), and with known censoring times ("known")."""
    w, place = world(kind, by_site=by_site, entry=entry), "landmarks" if at_landmark else "subgroups"
    if at_landmark:  # those at risk in the data, also where C depends on the site
        w = w.take(np.nonzero(w.seen.at_risk(LANDMARK))[0])
    expected = {
        target: [values_of(c) for c in DESIGNS[place](w, y, {**COMMON, "censoring": None})]
        for target, y in (("full", w.full), ("known", w.known))
        if y is not None
    }
    if knows:  # of those whose censoring time is later, whoever else is in the data
        expected["full"] = [_of_followed(w, place)]
    return expected


def _copies(kind: str, design: str) -> int:
    """Folds need two of every subject, and drop-out several so that no visit has too few of them."""
    return (3 if kind == "intervals" else 1) * (2 if "folds" in design else 1)


def _of_followed(w: World, place: str) -> Found:
    """Measures at each time t without censoring, of the subjects with c > t."""
    values: dict[Key, float] = {}
    for t in TIMES[TIMES > LANDMARK] if place == "landmarks" else TIMES:
        some = w.take(np.nonzero(w.c > t)[0])
        [found] = DESIGNS[place](some, some.full, {**COMMON, "times": np.array([t]), "censoring": None})
        values |= {key: v for key, v in values_of(found).values.items() if _time_of(key) == t}
    return Found(values, {})


def _time_of(key: Key) -> Any:
    return key[4][0] if isinstance(key[4], tuple) else key[4]


def _judged(
    kind: str, measure: str, design: str, source: str, found: list[Found], expected: list[Found] | None
) -> Cell:
    def cell(state: str, reason: str = "") -> Cell:
        return Cell(kind, measure, design, source, state, reason)

    known = [
        {key: v for key, v in part.values.items() if key[0] == measure and not np.isnan(v)} for part in found
    ]
    if not any(known):
        reason = next((part.reasons[measure] for part in found if measure in part.reasons), "")
        return cell("refused" if reason else "fails", reason or "no number and no reason")
    allowed = ROUGH.get(measure, TOLERANCE)
    for i, part in enumerate(known):
        target = {} if expected is None else expected[i].values
        for key, value in part.items():
            if key in target and abs(value - target[key]) > allowed * max(1.0, abs(target[key])):
                return cell("fails", f"{key[1:]}: got {value:.9g}, expected {target[key]:.9g}")
        if expected is not None and not any(key in target for key in part):
            return cell("fails", f"nothing to compare with: {next(iter(part))}")
        if measure in PROPER:
            for key, value in part.items():
                best = part.get((*key[:-1], "truth"), np.nan)
                worse = value - best if measure != "net benefit" else best - value
                if worse < -allowed:
                    return cell("fails", f"{key[1:]} beats the truth by {-worse:.3g}")
    return cell("works")
