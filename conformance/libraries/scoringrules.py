"""The cases by scoringrules: outcomes without censoring, and ensembles cut at a known time."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.case import Case, numbers
from conformance.libraries.needs import need_uncensored
from conformance.runner import NotOffered

__all__ = ["ADAPTER"]


def _members(case: Case) -> np.ndarray:
    if not case.forecast_is("ensemble"):
        raise NotOffered("no step forecasts")
    assert case.forecast is not None
    return numbers(case.forecast["members"])


def _brier(case: Case) -> Any:
    import scoringrules as sr

    need_uncensored(case)
    happened = (case.outcome.time[:, None] <= case.times).astype(float)
    return sr.brier_score(happened, 1 - case.survival(), backend="numpy").mean(axis=0)


def _crps(case: Case) -> Any:
    import scoringrules as sr

    members = _members(case)
    if case.censoring_is("known"):
        assert case.censoring is not None
        end = float(numbers(case.censoring["time"]))
        return sr.twcrps_ensemble(case.outcome.time, members, b=end, backend="numpy").mean()
    need_uncensored(case)
    return sr.crps_ensemble(case.outcome.time, members, backend="numpy").mean()


def _log(case: Case) -> Any:
    import scoringrules as sr

    need_uncensored(case)
    assert case.forecast is not None
    if case.forecast_is("exponential"):
        rate = numbers(case.forecast["rate"])
        return np.mean(sr.logs_exponential(case.outcome.time, rate, backend="numpy"))
    return np.mean(sr.logs_uniform(case.outcome.time, 0.0, numbers(case.forecast["high"]), backend="numpy"))


def _pinball(case: Case) -> Any:
    """Quantiles are those of NumPy with the inverse of the distribution function."""
    import scoringrules as sr

    need_uncensored(case)
    levels = numbers(case.arguments["levels"])
    quantiles = np.quantile(_members(case), levels, axis=1, method="inverted_cdf").T
    return sr.quantile_score(case.outcome.time[:, None], quantiles, levels, backend="numpy").mean(axis=0)


def _energy(case: Case) -> Any:
    import scoringrules as sr

    members, time = _members(case), case.outcome.time
    if case.censoring_is("known"):
        assert case.censoring is not None
        end = float(numbers(case.censoring["time"]))
        return sr.twes_ensemble(time, members, lambda x: np.minimum(x, end), backend="numpy").mean()
    need_uncensored(case)
    return sr.es_ensemble(time, members, backend="numpy").mean()


ADAPTER = {
    "brier_score": _brier,
    "crps": _crps,
    "log_score": _log,
    "pinball_score": _pinball,
    "energy_score": _energy,
}
