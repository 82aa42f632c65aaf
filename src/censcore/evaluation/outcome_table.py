"""An outcome that stays in its table, for comparisons of more subjects than fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from censcore._validation import as_count, as_list, check_kind, column_names
from censcore.exceptions import InvalidInputError
from censcore.files import as_path
from censcore.outcomes import CompetingRisks, RightCensored
from censcore.plain_text import some_of
from censcore.tables import MOST_ROWS, is_lazy

IN_MEMORY = (
    "not available for a table that is read in batches. Read the table into memory, and pass its outcome in "
    "place of OutcomeTable."
)

OF_COLUMNS = ("time", "event", "censoring_time", "entry", "cause", "names")


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """Outcomes in columns of a table that is read in batches: files, or frames that are lazy or in parts.

    Passed to :func:`compare` in place of ``y``. Forecasts are then functions of the rows of a batch, or in
    columns with the names that the command line reads; ``groups``, ``sample_weight`` and ``by`` are names of
    columns. No more than a few batches are in memory at any time, and up to 256 MB of losses that
    are not computed twice.

    Parameters
    ----------
    data : path, pattern, list of paths, frame, or iterable of frames
        A Parquet or CSV file, a folder of such files, a pattern such as ``"predictions/*.parquet"``; a Dask
        data frame, a lazy frame of polars, a relation of DuckDB; frames in memory, or a function that gives
        an iterable of frames. It is read three times, always in the same order.
    time, event : str, or lists of str
        Columns of the observed times, and of whether each is an event; lists for several event times.
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
        Folder for the sums of finished batches, so that a comparison that was stopped goes on, to the numbers
        of an uninterrupted one to the last bit.
    cause : str, optional
        Column of the causes, in place of ``event``: 0 where the time is censored, for competing risks.
    names : sequence of str, optional
        Names of the causes 1, 2, ..., or of the event times.
    outcome : function, optional
        In place of ``time`` and ``event``: a function of the rows of a batch that gives their outcome, of any
        kind. Its attribute ``columns``, where it has one, names the columns that it needs.

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
    0        with x  0.207           0.004
    1       without  0.382           0.007
    2  kaplan-meier  0.362           0.006
    """

    data: Any
    time: str | Sequence[str] | None = None
    event: str | Sequence[str] | None = None
    censoring_time: str | None = None
    rows: int = 100_000
    dask: Any = None
    entry: str | None = None
    n_jobs: int | None = None
    store: str | PathLike[str] | None = None
    cause: str | None = None
    names: Sequence[str] | None = None
    outcome: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.store is not None:
            as_path(self.store, "store")
        object.__setattr__(self, "rows", as_count(self.rows, "rows", most=MOST_ROWS))
        named = [name for name in OF_COLUMNS if getattr(self, name) is not None]
        if self.outcome is not None:
            if named or not callable(self.outcome):
                got = f"{', '.join(named)} as well" if named else repr(self.outcome)
                raise InvalidInputError(f"outcome: got {got}, expected a function of rows alone.")
            return
        if (self.event is None) == (self.cause is None):
            got = "neither of event and cause" if self.event is None else "both event and cause"
            raise InvalidInputError(f"got {got}, expected the column of one of them.")
        several = self.cause is None and not isinstance(self.time, str)
        for name in dict.fromkeys(("time", *named)):
            value, many = getattr(self, name), name == "names" or (several and name in ("time", "event"))
            for column in as_list(value, name, "names of columns") if many else [value]:
                check_kind(column, name, str, "a name" if name == "names" else "the name of a column")
        if several:
            n_times, n_events = (0 if names is None else len(names) for names in (self.time, self.event))
            if n_times != n_events or not n_times:
                raise InvalidInputError(
                    f"time, event: got {n_times} and {n_events} columns, expected as many of both, and at "
                    "least one."
                )

    @property
    def reader(self) -> Callable[[Any], Any]:
        """What reads the outcome of some rows, without the table."""
        if self.outcome is not None:
            return self.outcome
        return replace(self, data=None, dask=None, store=None, n_jobs=None)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that the outcome is read from."""
        parts = (self.time, self.event, self.cause, self.censoring_time, self.entry)
        lists = ([x] if isinstance(x, str) else x for x in parts if x is not None)
        return tuple(dict.fromkeys(name for names in lists for name in names))

    def __call__(self, frame: Any) -> RightCensored | CompetingRisks:
        """The outcome in the columns of some rows: one event time, several, or competing risks."""
        known = (self.censoring_time, self.entry)
        names = None if self.names is None else tuple(self.names)
        if self.cause is None:
            time, event = (x if isinstance(x, str) else list(x or ()) for x in (self.time, self.event))
            y = RightCensored.from_frame(frame, time, event, *known)
            return y if names is None else y.with_names(list(names))
        causes_known = names is not None or (frame[self.cause] != 0).any()
        n_causes = None if causes_known else 1  # others may have more
        return CompetingRisks.from_frame(
            frame, str(self.time), self.cause, *known, names=names, n_causes=n_causes
        )


def as_table(y: Any) -> Any:
    """The outcome as it is; of a lazy frame, in its columns "time" and "event", and "entry" if there is one.

    Frames of Dask and polars and relations of DuckDB are lazy. Other columns are named by OutcomeTable.
    """
    if not is_lazy(y):
        return y
    names = column_names(y)
    if missing := [name for name in ("time", "event") if name not in names]:
        raise InvalidInputError(
            f"y: got a table without the column {' and '.join(missing)}, expected time and event, as a frame "
            "in memory has them. Name others by OutcomeTable(table, time=, event=), or cause= for competing "
            f"risks. There are: {some_of(list(map(str, names)), 12)}"
        )
    return OutcomeTable(y, "time", "event", entry="entry" if "entry" in names else None)


def check_in_memory(y: Any, what: str) -> None:
    """An error where ``what`` is asked of an outcome that stays in its table."""
    if isinstance(y, OutcomeTable):
        raise InvalidInputError(f"{what}: {IN_MEMORY}")
