"""Atoms of the censoring time, for estimators that cannot represent them."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

__all__ = ["before", "check_no_atoms", "common_end", "represents_atoms"]

#: An atom: at least this many censored at one time, and this share of those at risk. An estimate that is
#: smooth across it misses P(C > t) by up to half the share.
FEWEST, SHARE = 5, 0.05


def represents_atoms(estimator: Any) -> bool:
    """Whether an estimator declares that it is consistent where the time has atoms."""
    return bool(getattr(estimator, "represents_atoms", False))


def common_end(flipped: RightCensored, weight: np.ndarray) -> float | None:
    """The last time, if two or more subjects are censored there and nobody is seen later; otherwise None.

    Everybody at risk at the last time is censored there, so that C never exceeds it.
    """
    time, event = to_numpy(flipped.time)[weight > 0], to_numpy(flipped.event)[weight > 0]
    at_end = time == time.max()
    return float(time.max()) if event[at_end].all() and at_end.sum() > 1 else None


def before(end: float, flipped: RightCensored) -> RightCensored:
    """The outcome of C' where C = min(C', end): at the end it is not over."""
    return RightCensored(flipped.time, flipped.event & (flipped.time < end))


def check_no_atoms(flipped: RightCensored, weight: np.ndarray, estimator: Any) -> None:
    """Raise an error where censoring times have atoms that ``estimator`` would smooth over."""
    time, event = to_numpy(flipped.time), to_numpy(flipped.event)
    distinct, number = np.unique(time, return_inverse=True)
    count = np.bincount(number, event & (weight > 0), minlength=len(distinct))
    censored = np.bincount(number, event * weight, minlength=len(distinct))
    at_risk = np.cumsum(np.bincount(number, weight, minlength=len(distinct))[::-1])[::-1]
    atoms = np.nonzero((count >= FEWEST) & (censored >= SHARE * at_risk))[0]
    if not atoms.size:
        return
    largest = atoms[np.argmax(censored[atoms] / at_risk[atoms])]
    others = f" and {atoms.size - 1} more" if atoms.size > 1 else ""
    raise InvalidInputError(
        f"Censoring times have atoms: got {int(count[largest])} subjects censored at {distinct[largest]:g}, "
        f"{censored[largest] / at_risk[largest]:.0%} of those at risk{others}; {type(estimator).__name__} "
        f"does not represent atoms, and less than {SHARE:.0%} was expected at any time but a common end. Use "
        "Censoring(KaplanMeier()), Censoring(KaplanMeier(stratify=...)) or Censoring(CoxRegression()), or, "
        "if the times are rounded, record them to a finer unit. An estimator that represents atoms says so "
        "by the attribute represents_atoms = True."
    )
