"""Columns of a data frame from which an outcome is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import Array
from censcore._validation import as_frame
from censcore.exceptions import InvalidInputError

__all__ = ["Columns"]


class Columns:
    """Columns ``wanted`` of a pandas or polars frame; those that it does not have are an error.

    The error tells to name the ``parameters``, such as ``"time=..., event=..."``.
    """

    def __init__(self, frame: Any, wanted: list[str], parameters: str) -> None:
        self._data = as_frame(frame, *wanted)
        missing = [name for name in wanted if name not in self._data.columns]
        if missing:
            raise InvalidInputError(
                f"Columns {missing} are not in the frame, whose columns are {list(self._data.columns)[:20]}. "
                f"Name them: from_frame(frame, {parameters})."
            )

    def read(self, names: str | list[str] | None) -> Array:
        """One column, (n,); several, (n, k); None for none."""
        if names is None:
            return None
        found: np.ndarray = (
            self._data[names].to_numpy() if isinstance(names, str) else self._data.select(names).to_numpy()
        )
        return found
