"""What adapters share: the outcome in plain arrays, and cases that a library has no argument for."""

from __future__ import annotations

import numpy as np

from conformance.case import Case, numbers
from conformance.runner import NotOffered

__all__ = ["grid", "need_estimated_censoring", "need_plain", "need_uncensored", "risk_of"]


def need_plain(case: Case) -> None:
    """No delayed entry and no weights."""
    if case.outcome.entry is not None:
        raise NotOffered("no delayed entry")
    if case.outcome.weight is not None:
        raise NotOffered("no weights")


def need_estimated_censoring(case: Case) -> None:
    """Plain data, and a censoring distribution that is estimated from data."""
    need_plain(case)
    if not case.censoring_is("kaplan-meier"):
        raise NotOffered("the censoring distribution is estimated inside")


def need_uncensored(case: Case) -> None:
    """Plain data without any censoring."""
    need_plain(case)
    if not case.outcome.event.all() or not case.censoring_is("none"):
        raise NotOffered("no censored outcomes")
    if "horizon" in case.arguments:
        raise NotOffered("no horizon")


def risk_of(case: Case) -> np.ndarray:
    """The risk, (n,)."""
    assert case.forecast is not None
    return numbers(case.forecast["values"])


def grid(case: Case) -> np.ndarray:
    """The times that an integral is approximated on."""
    if "times" not in case.arguments:
        raise NotOffered("integrals are over given times")
    return case.times
