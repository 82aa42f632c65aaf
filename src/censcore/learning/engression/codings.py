"""Whether several event times are coded so that their joint distribution can be learned."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import name_subjects
from censcore.exceptions import CensoringWarning, InvalidInputError
from censcore.outcomes import RightCensored
from censcore.outcomes.ended_follow_up import ended_follow_up, found_in_words

__all__ = ["check_order", "warn_of_ties"]

# Times in days or months coincide by chance in about one subject in a hundred.
_BY_CHANCE = 0.02


def warn_of_ties(y: RightCensored, mask: np.ndarray | None = None) -> None:
    """Warn of a death coded as censoring of another event, and of "recurrence or death" beside death.

    Times that do not count, where the mask is False, are no ties.

    >>> t = np.arange(1.0, 21.0)
    >>> y = RightCensored(np.column_stack([t, t]), np.column_stack([t < 5, t % 2 == 0]))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_ties(y)
    >>> len(caught)
    2
    """
    for found in ended_follow_up(y, mask):
        warnings.warn(f"y: got {found_in_words(found)}", CensoringWarning, stacklevel=5)
    time, counts = _counted(y, mask)
    event = to_numpy(y.event).reshape(len(y), -1) & counts
    for i, j in combinations(range(y.k), 2):
        both = (time[:, i] == time[:, j]) & event[:, i] & event[:, j]
        if both.mean() > _BY_CHANCE:
            warnings.warn(
                f"Events {i} and {j} happen at the same time in {name_subjects(np.nonzero(both)[0])}. The "
                "model has no ties, so which of them comes first will be wrong. If event "
                f'{i} is "something or event {j}", use SemiCompetingRisks.from_first_event(y).',
                CensoringWarning,
                stacklevel=5,
            )


def _counted(y: RightCensored, mask: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Times (n, k), and whether each counts."""
    time = to_numpy(y.time).reshape(len(y), -1)
    return time, np.ones(time.shape, dtype=bool) if mask is None else mask


def check_order(y: RightCensored, mask: np.ndarray | None = None) -> None:
    """Check that the times of every subject, those that count, come in the order of the coordinates.

    >>> check_order(RightCensored([[1.0, 3.0]], [[1, 0]]))
    """
    time, counts = _counted(y, mask)
    latest = np.maximum.accumulate(np.where(counts, time, 0.0), axis=1)
    late = (counts & (time < latest)).any(axis=1)
    if y.k < 2 or late.any():
        problem = "one event time" if y.k < 2 else f"another order in {name_subjects(np.nonzero(late)[0])}"
        raise InvalidInputError(
            "ordered=True needs two or more event times in the order of the coordinates; got "
            f"{problem}. Sort the coordinates, or leave ordered out."
        )
