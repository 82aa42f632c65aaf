"""The matrix: kinds of outcome x measures x designs x sources of C, each cell with its state.

A cell *works* if the censored estimate equals what uncensored data give (a measure of the uncensored time),
or what known censoring times give (a score of min(T, C)), and the truth is not beaten by a wrong forecast. It
is *refused* if an error, or a note in place of a number, says why. Anything else *fails*.

Populations that are written out show this to the last digits. Densities, Cox regression of C and
D-calibration need continuous times: there subjects are drawn, and "equal" means within four standard errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from censcore.evaluation.measures.murphy import elementary
from censcore.exceptions import CenscoreError
from tests.matrix import continuous
from tests.matrix.designs import DESIGNS, LANDMARK, SOURCES
from tests.matrix.worlds import HORIZON, TIMES, World, world

TOLERANCE = 1e-9
THRESHOLDS = np.array([0.2, 0.45])
COMMON = {"scores": "all", "times": TIMES, "levels": [0.25, 0.5], "horizon": HORIZON}
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
    "log_score": "known",
    "brier_score:ipcw": "full",
    "integrated_brier_score:ipcw": "full",
    "concordance:uno": "full",
    "auc": "full",
    "observed risk": "full",
    "net benefit": "full",
    "Murphy diagram": "known",
    "D-calibration": "",
}
#: Measures that need continuous times, the source that does, and how many subjects are drawn.
CONTINUOUS, COX = ("log_score", "D-calibration"), "Cox regression"
DRAWN = {"one time": 3000, "causes": 1500, "several times": 1000, "semi-competing": 500, "intervals": 3000}
ERRORS = 4.0  # standard errors that are noise
#: The energy score draws values of C; everything else is a finite sum.
ROUGH = {"energy_score": 2e-3}
PROPER = [
    name for name in TARGETS if name not in ("concordance:uno", "auc", "observed risk", "D-calibration")
]


def measures_of(kind: str, source: str, drawn: bool) -> list[str]:
    """Measures on populations that are written out, or drawn; of one time the energy score is the CRPS."""
    several = kind in ("several times", "semi-competing")
    measures = [measure for measure in TARGETS if several or measure != "energy_score"]
    if source == COX:
        return measures if drawn else []
    return [measure for measure in measures if (measure in CONTINUOUS) == drawn]


def population(kind: str, entry: bool, by: str, drawn: bool, copies: int = 1) -> World:
    """Written out with probabilities, or drawn."""
    if drawn:
        return continuous.world(kind, DRAWN[kind], 1, by=by, entry=entry)
    return world(kind, by_site=by == "site", entry=entry, copies=copies)


# ---- what is found ----------------------------------------------------------------------------------------


@dataclass
class Found:
    """Numbers by (measure, by, group, outcome, at, model), their standard errors, and why measures have none.

    ``leads`` are standard errors of differences from the truth.
    """

    values: dict[Key, float]
    reasons: dict[str, str]
    errors: dict[Key, float]
    leads: dict[Key, float]

    def number(self, measure: str, compute: Callable[[], Any]) -> Any:
        """A number; NaN with its reason where it is refused."""
        try:
            return compute()
        except CenscoreError as error:
            self.reasons.setdefault(measure, f"{type(error).__name__}: {error}")
            return np.nan


def values_of(comparison: Any, measures: list[str]) -> Found:
    """All numbers of a comparison."""
    found = Found({}, {}, {}, {})
    for line in comparison.frame().itertuples():
        key = _key(line, line.model)
        if key[0] in measures:
            found.values[key], found.errors[key] = line.mean, line.standard_error
    for line in comparison.differences("none").itertuples():
        if "truth" in (line.model, line.versus):
            other = line.model if line.versus == "truth" else line.versus
            found.leads[_key(line, other)] = line.standard_error
    for (_, score), reason in comparison.losses.unavailable.items():
        found.reasons[score.partition("[")[0]] = reason
    left_out = [note for note in comparison.notes if "Concordance and AUC" in note]
    found.reasons |= {measure: left_out[0] for measure in ("concordance:uno", "auc") if left_out}
    for outcome, view in views_of(comparison):
        if view.discrimination:
            pairs = view.pair_measures
            found.reasons |= {pairs.measures[key[2]].name: why for key, why in pairs.unavailable.items()}
        if "observed risk" in measures:
            _curves(outcome, view, found)
    if "D-calibration" in measures:
        found.number("D-calibration", lambda: _shares(comparison, found))
    return found


def _key(line: Any, model: str) -> Key:
    measure = str(line.score).partition("[")[0]
    return measure, line.by, line.group, line.outcome, _place(line.at), model


def _shares(comparison: Any, found: Found) -> None:
    """D-calibration: the bars of its picture, less what they should be."""
    for outcome in comparison.pictured("d-calibration") or [""]:
        for panel in comparison.chart("d-calibration", outcome=outcome or None).panels:
            shares, model = panel.marks[0].heights, panel.marks[0].name
            for k, share in enumerate(shares):
                key = ("D-calibration", "", "all", outcome, k, model)
                found.values[key] = share - 1 / len(shares)
                found.errors[key] = np.sqrt((1 - 1 / len(shares)) / len(shares) / len(comparison.outcome))


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


def _curves(outcome: str, view: Any, found: Found) -> None:
    for t in view.settings["times"]:
        for model in MODELS:
            curve = found.number("observed risk", lambda t=t, m=model: view.calibration(m, t))
            if not isinstance(curve, float):
                key = ("observed risk", "", "all", outcome, t, model)
                found.values[key] = curve.observed
                found.errors[key] = (curve.observed_high - curve.observed_low) / 3.92
        decisions = found.number("net benefit", lambda t=t: view.net_benefit(t, THRESHOLDS))
        score = elementary(t, thresholds=THRESHOLDS)
        murphy = found.number("Murphy diagram", lambda t=t, score=score: _murphy(view, t, score))
        for i, threshold in enumerate(THRESHOLDS):
            for model in MODELS:
                place = ("", "all", outcome, (t, threshold), model)
                if isinstance(decisions, pd.DataFrame):
                    [line] = decisions.query("model == @model and threshold == @threshold").itertuples()
                    found.values["net benefit", *place] = line.net_benefit
                    found.errors["net benefit", *place] = line.standard_error
                if isinstance(murphy, dict):
                    estimate = murphy[model]
                    found.values["Murphy diagram", *place] = float(estimate.value[i])
                    found.errors["Murphy diagram", *place] = float(estimate.standard_error[i])


def _murphy(view: Any, t: float, score: Any) -> Any:
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
    """The cells of all measures."""
    cells = [c for drawn in (False, True) for c in population_cells(kind, entry, design, source, drawn)]
    return sorted(cells, key=lambda cell: list(TARGETS).index(cell.measure))


def population_cells(kind: str, entry: bool, design: str, source: str, drawn: bool) -> list[Cell]:
    """Cells of one population, from one comparison of what was seen and two of what is known."""
    name = f"{kind}, delayed entry" if entry else kind
    measures = measures_of(kind, source, drawn)

    def all_in(state: str, reason: str) -> list[Cell]:
        return [Cell(name, measure, design, source, state, reason) for measure in measures]

    how = SOURCES[source]
    if kind == "intervals" and (how.knows or "given" in source):
        return all_in("refused", "the number of the last visit has a distribution, and is estimated")
    if "folds" in design and source == "training subjects":  # cross_validate has no such argument
        return all_in("refused", "the other folds are the training subjects")
    if not measures:
        return []
    w = population(kind, entry, how.by, drawn, _copies(kind, design))
    try:
        options = asked(measures) | how.options(w)
        comparisons = DESIGNS[design](w, w.known if how.knows else w.seen, options)
        found = [values_of(comparison, measures) for comparison in comparisons]
    except CenscoreError as error:
        return all_in("refused", f"{type(error).__name__}: {error}")
    except Exception as error:
        return all_in("fails", f"{type(error).__name__}: {error}")
    expected = _expected(kind, entry, how.by, how.knows, design == "landmarks", drawn, tuple(measures))
    return [
        _judged(Cell(name, measure, design, source, ""), found, expected.get(TARGETS[measure]), drawn)
        for measure in measures
    ]


def asked(measures: list[str]) -> dict[str, Any]:
    """What is asked of ``compare``."""
    return COMMON if "crps" in measures else COMMON | {"scores": "log_score", "discrimination": False}


@cache
def _expected(
    kind: str, entry: bool, by: str, knows: bool, at_landmark: bool, drawn: bool, measures: tuple[str, ...]
) -> dict[str, list[Found]]:
    """What the measures are without censoring ("full"), and with known censoring times ("known")."""
    w, place = population(kind, entry, by, drawn), "landmarks" if at_landmark else "subgroups"
    wanted = [measure for measure in measures if measure != "D-calibration"]
    if at_landmark:  # those at risk in the data, also where C depends on the site
        w = w.take(np.nonzero(w.seen.at_risk(LANDMARK))[0])
    expected = {
        target: [values_of(c, wanted) for c in DESIGNS[place](w, y, {**asked(wanted), "censoring": None})]
        for target, y in (("full", w.full), ("known", w.known))
        if y is not None and target in [TARGETS[measure] for measure in wanted]
    }
    if knows and "full" in expected:  # of those whose censoring time is later, whoever else is in the data
        expected["full"] = [_of_followed(w, place, wanted)]
    return expected


def _copies(kind: str, design: str) -> int:
    """Folds need two of every subject, and drop-out several so that no visit has too few of them."""
    return (3 if kind == "intervals" else 1) * (2 if "folds" in design else 1)


def _of_followed(w: World, place: str, measures: list[str]) -> Found:
    """Measures at each time t without censoring, of the subjects with c > t."""
    values: dict[Key, float] = {}
    for t in TIMES[TIMES > LANDMARK] if place == "landmarks" else TIMES:
        some = w.take(np.nonzero(w.c > t)[0])
        [found] = DESIGNS[place](some, some.full, {**COMMON, "times": np.array([t]), "censoring": None})
        values |= {key: v for key, v in values_of(found, measures).values.items() if _time_of(key) == t}
    return Found(values, {}, {}, {})


def _time_of(key: Key) -> Any:
    return key[4][0] if isinstance(key[4], tuple) else key[4]


def _judged(empty: Cell, found: list[Found], expected: list[Found] | None, drawn: bool) -> Cell:
    def cell(state: str, reason: str = "") -> Cell:
        return replace(empty, state=state, reason=reason)

    measure = empty.measure
    known = [
        {key: v for key, v in part.values.items() if key[0] == measure and not np.isnan(v)} for part in found
    ]
    if not any(known):
        reason = next((part.reasons[measure] for part in found if measure in part.reasons), "")
        return cell("refused" if reason else "fails", reason or "no number and no reason")
    if measure == "D-calibration":
        wrong = [
            why for part, values in zip(found, known, strict=True) for why in _uneven(values, part.errors)
        ]
        return cell("fails", wrong[0]) if wrong else cell("works")
    exact = ROUGH.get(measure, TOLERANCE)
    for i, part in enumerate(known):
        target = {} if expected is None else expected[i].values
        errors, leads = found[i].errors, found[i].leads
        for key, value in part.items():
            allowed = exact * max(1.0, abs(target.get(key, 0.0)))
            if drawn:  # without an error there are too few events to tell, or nothing varies
                allowed = np.inf if np.isnan(errors[key]) else ERRORS * errors[key]
            if key in target and abs(value - target[key]) > allowed:
                return cell(
                    "fails", f"{key[1:]}: got {value:.9g}, expected {target[key]:.9g} ± {allowed:.2g}"
                )
        if expected is not None and not any(key in target for key in part):
            return cell("fails", f"nothing to compare with: {next(iter(part))}")
        if measure in PROPER:
            for key, value in part.items():
                best = part.get((*key[:-1], "truth"), np.nan)
                worse = value - best if measure != "net benefit" else best - value
                apart = leads.get(key, np.hypot(*np.nan_to_num([errors[key], errors[*key[:-1], "truth"]])))
                if worse < -(ERRORS * apart if drawn else exact):  # never where apart is unknown
                    return cell("fails", f"{key[1:]} beats the truth by {-worse:.3g}")
    return cell("works")


def _uneven(shares: dict[Key, float], errors: dict[Key, float]) -> Iterator[str]:
    """Where the bars of the truth are uneven, or more so than those of all wrong forecasts."""
    for outcome in dict.fromkeys(key[3] for key in shares):
        bars = {
            m: np.array([shares[k] / errors[k] for k in shares if k[3::2] == (outcome, m)]) for m in MODELS
        }
        uneven = {model: float(z @ z) for model, z in bars.items()}
        if np.abs(bars["truth"]).max() > ERRORS or uneven["truth"] == max(uneven.values()):
            yield f"{outcome}: squares of the bars, less their mean, in standard errors: {uneven}"
