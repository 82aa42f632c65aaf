"""Subjects that train a network, and those that are held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore.learning.data.standardised import Data, rows_of
from censcore.learning.data.streamed import subjects_in

__all__ = ["Fold", "Subjects"]


@dataclass(frozen=True)
class Subjects:
    """Some subjects of the data.

    Attributes
    ----------
    data : Data
        All of them.
    rows : array of int, slice or None
        Which ones; None for all.
    """

    data: Data
    rows: np.ndarray | slice | None = None

    @property
    def taken(self) -> Data:
        """Their data alone."""
        return self.data if self.rows is None else rows_of(self.data, self.rows)

    @property
    def numbers(self) -> np.ndarray:
        """Their places in the data."""
        everybody = np.arange(subjects_in(self.data))
        return everybody if self.rows is None else everybody[self.rows]


@dataclass(frozen=True)
class Fold:
    """Subjects that train a network, and those held out for its validation.

    Attributes
    ----------
    training, validation : Subjects
        The former, and the latter if any.
    groups : array or None
        Groups of the training subjects.
    """

    training: Any
    validation: Subjects | None = None
    groups: np.ndarray | None = None
