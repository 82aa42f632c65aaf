"""Cases of grouped distributions, group by group, so that a curve that a fold shares stays shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from censcore.distributions import Distribution, Grouped
from censcore.exceptions import PositivityError

if TYPE_CHECKING:
    from censcore.evaluation.measures.case import Case

__all__ = ["by_pieces", "ungrouped"]

PIECES = 64  # groups up to which subjects are scored group by group


def by_pieces(case: Case, losses: Callable[[Case], np.ndarray]) -> np.ndarray:
    """Losses of a case, (n, q), from those of pieces within which no distribution is grouped."""
    n = len(case.y)
    grouped = [D for D in (case.F, case.C) if isinstance(D, Grouped) and len(D) == n]
    if not grouped:
        return losses(case)
    code = np.zeros(n, dtype=np.intp)
    for D in grouped:
        code = code * (int(D._group.max()) + 1) + D._group
    found = np.unique(code)
    if not 1 < len(found) <= PIECES:
        return losses(case)
    pieces = [np.nonzero(code == number)[0] for number in found]
    try:
        parts = [losses(ungrouped(case, rows)) for rows in pieces]
    except PositivityError:  # its message numbers the subjects of a piece: the whole case numbers all of them
        return losses(case)
    return np.concatenate(parts)[np.argsort(np.concatenate(pieces))]


def ungrouped(case: Case, rows: np.ndarray) -> Case:
    """The case of some subjects, without groups where all of them are of one."""
    some = case.take(rows)
    return replace(some, F=_plain(some.F), C=_plain(some.C))


def _plain(D: Distribution) -> Distribution:
    if isinstance(D, Grouped) and len(groups := D._groups()) == 1:
        return groups[0][1]
    return D
