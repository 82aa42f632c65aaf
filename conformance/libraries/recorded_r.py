"""The cases by survival and riskRegression, which run in R: numbers recorded by ``r_numbers.R``.

``write_inputs(Path("inputs.json"))`` writes what the script reads, and
``Rscript conformance/libraries/r_numbers.R inputs.json conformance/libraries/r_numbers.json`` records.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from conformance.case import Case, cases
from conformance.libraries.needs import need_estimated_censoring, need_plain, risk_of
from conformance.runner import Adapter, NotOffered

__all__ = ["OFFERED", "adapter", "inputs", "versions", "write_inputs"]

RECORDED = Path(__file__).with_name("r_numbers.json")

#: What each package computes.
OFFERED = {
    "survival": ("kaplan_meier", "cumulative_incidence", "concordance", "concordance_ipcw"),
    "riskRegression": (
        "brier_score_ipcw", "cause_brier_score_ipcw", "dynamic_auc", "censoring_kaplan_meier",
    ),
}  # fmt: skip


def inputs() -> list[dict[str, Any]]:
    """The cases as R reads them, for every package that has a function for them."""
    found = []
    for package, quantities in OFFERED.items():
        for case in cases(*quantities):
            try:
                found.append({"package": package} | _input(package, case))
            except NotOffered:
                continue
    return found


def write_inputs(path: Path) -> None:
    """Write :func:`inputs` to a file, for the script."""
    path.write_text(json.dumps(inputs()), encoding="utf-8")


def _input(package: str, case: Case) -> dict[str, Any]:
    seen = case.outcome
    if package == "riskRegression":
        need_plain(case)
    if case.censoring is not None:
        need_estimated_censoring(case)
    if case.train is not case.outcome and not np.array_equal(case.train.time, seen.time):
        raise NotOffered("the censoring distribution is estimated from the scored subjects")
    given = {"id": case.id, "quantity": case.quantity, "time": seen.time.tolist()}
    given["event"] = (seen.event.astype(int) if seen.cause is None else seen.cause).tolist()
    given |= {"times": case.times.tolist(), "cause": case.arguments.get("cause", 1)}
    for name in ("entry", "weight"):
        if getattr(seen, name) is not None:
            given[name] = getattr(seen, name).tolist()
    if "horizon" in case.arguments:
        given["horizon"] = case.arguments["horizon"]
    if case.quantity == "brier_score_ipcw":
        given["risk"] = (1 - case.survival()).tolist()
    elif case.quantity == "cause_brier_score_ipcw":
        given["risk"] = case.incidence()[case.arguments["cause"] - 1].tolist()
    elif case.forecast_is("risk"):
        given["risk"] = risk_of(case).tolist()
    return given


@cache
def _recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def versions() -> dict[str, str]:
    """The packages of R that numbers are recorded of, and their versions."""
    return {name: str(_recorded()["versions"][name]) for name in OFFERED}


def adapter(package: str) -> Adapter:
    """The recorded numbers of a package, by quantity."""

    def of(case: Case) -> Any:
        found = _recorded()["numbers"].get(f"{package} {case.id}")
        if found is None:
            raise NotOffered("no weights, no delayed entry, or no such censoring distribution")
        if "error" in found:
            raise RuntimeError(found["error"])
        return [np.nan if value is None else float(value) for value in found["value"]]

    functions: dict[str, Callable[[Case], Any]] = dict.fromkeys(OFFERED[package], of)
    return functions
