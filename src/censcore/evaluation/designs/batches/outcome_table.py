"""An outcome that stays in its table, for comparisons of more subjects than fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

from censcore._validation import check_kind
from censcore.tables import check_batch_rows

__all__ = ["OutcomeTable"]


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """Outcomes in columns of a table that is read in batches: Parquet or CSV files, or a Dask data frame.

    Passed to :func:`compare` in place of ``y``. Forecasts are then functions of the rows of a batch, or in
    columns with the names that the command line reads; ``groups``, ``sample_weight`` and ``by`` are names of
    columns. No more than a few batches are in memory at any time.

    Parameters
    ----------
    data : path, pattern, list of paths, Dask data frame or frame
        A Parquet or CSV file, a folder of such files, a pattern such as ``"predictions/*.parquet"``, or a
        table.
    time, event : str
        Columns of the observed times, and of whether each is an event.
    censoring_time : str, optional
        Column of the censoring times, where they are known for all subjects.
    rows : int
        How many rows to read at a time.
    dask : str or distributed.Client, optional
        A Dask cluster to work on, by the address of its scheduler. Files must have the same path on all of
        its workers.
    entry : str, optional
        Column of the entry times, for delayed entry (left truncation); zero for subjects seen from the start.
    n_jobs : int, optional
        Batches at a time, in processes of joblib.
    store : path, optional
        Folder for the sums of finished batches, so that a comparison that was stopped goes on.

    See Also
    --------
    compare : Takes it in place of the outcome.

    Examples
    --------
    >>> import numpy as np, pandas as pd, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=4000)
    >>> T, C = rng.weibull(1.5, 4000) * np.exp(x), rng.uniform(0, 4, 4000)
    >>> table = pd.DataFrame({"t": np.minimum(T, C).round(2), "d": T <= C, "scale": np.exp(x)})
    >>> comparison = cs.compare(
    ...     {"with x": lambda rows: cs.Weibull(1.5, rows["scale"]), "without": cs.Weibull(1.5, 1.0)},
    ...     cs.OutcomeTable(table, "t", "d", rows=1000), cs.Censoring(cs.KaplanMeier()), scores="crps",
    ... )
    >>> comparison.frame()[["model", "mean", "standard_error"]].round(3)
         model   mean  standard_error
    0   with x  0.207           0.004
    1  without  0.382           0.007
    """

    data: Any
    time: str
    event: str
    censoring_time: str | None = None
    rows: int = 100_000
    dask: Any = None
    entry: str | None = None
    n_jobs: int | None = None
    store: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        check_batch_rows(self.rows)
        for name in ("time", "event", "censoring_time", "entry"):
            value = getattr(self, name)
            if name in ("time", "event") or value is not None:
                check_kind(value, name, str, "the name of a column")
