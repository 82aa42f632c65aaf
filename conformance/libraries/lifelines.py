"""The cases by lifelines."""

from __future__ import annotations

from typing import Any

from conformance.case import Case
from conformance.libraries.needs import need_plain, risk_of

__all__ = ["ADAPTER"]


def _harrell(case: Case) -> Any:
    from lifelines.utils import concordance_index

    need_plain(case)
    return concordance_index(case.outcome.time, -risk_of(case), case.outcome.event)


def _curve(case: Case, event: Any) -> Any:
    from lifelines import KaplanMeierFitter

    seen = case.outcome
    fitted = KaplanMeierFitter().fit(seen.time, event, entry=seen.entry, weights=seen.weight)
    return fitted.survival_function_at_times(case.times).to_numpy()


def _incidence(case: Case) -> Any:
    from lifelines import AalenJohansenFitter

    seen = case.outcome
    fitter = AalenJohansenFitter(seed=0, calculate_variance=False)
    options = {"entry": seen.entry, "weights": seen.weight}
    fitter.fit(seen.time, seen.cause, case.arguments["cause"], **options)
    return fitter.predict(case.times, interpolate=False).to_numpy()


ADAPTER = {
    "kaplan_meier": lambda case: _curve(case, case.outcome.event),
    "censoring_kaplan_meier": lambda case: _curve(case, ~case.outcome.event),
    "cumulative_incidence": _incidence,
    "concordance": _harrell,
}
