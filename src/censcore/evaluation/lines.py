"""Lines of tables: one dictionary per line, and why a line may have no numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore.exceptions import MissingPackageError

if TYPE_CHECKING:
    import pandas as pd

Line = dict[str, Any]

CANNOT_TELL = "cannot tell"
MINIMUM_EVENTS = 5  # effective events below which no error, rank or p-value is given


def lines_of(about: Line, columns: Mapping[str, np.ndarray]) -> list[Line]:
    """One line per entry of the columns, (q,) each, which all are ``about`` the same."""
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [about | dict(zip(columns, row, strict=True)) for row in rows]


def data_frame(lines: Iterable[Line], columns: list[str] | None = None) -> pd.DataFrame:
    """Lines as a data frame, which needs pandas."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise MissingPackageError("Data frames need pandas: pip install pandas.") from error
    return pd.DataFrame(list(lines), columns=columns)


def cannot_tell(events: float) -> str:
    """Why a line has no error, rank or p-value."""
    return f"{CANNOT_TELL}: {events:.3g} effective events, at least {MINIMUM_EVENTS} are needed"
