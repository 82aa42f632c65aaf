"""Every error that censcore raises, and every warning that it gives, on purpose.

Each inherits :class:`CenscoreError` and the builtin a caller would expect, so both
``except censcore.exceptions.CenscoreError`` and ``except ValueError`` work.
"""

from __future__ import annotations

from collections.abc import Sequence

from censcore.plain_text import visible

__all__ = [
    "BeyondFollowUpError",
    "CenscoreError",
    "CensoringWarning",
    "ContradictionError",
    "DerivativeError",
    "ExtrapolationWarning",
    "FoldError",
    "HorizonError",
    "ImpossibleForecastError",
    "InvalidIndexError",
    "InvalidInputError",
    "InvalidTypeError",
    "MissingCensoringError",
    "MissingDependencyError",
    "MissingNameError",
    "MissingPackageError",
    "MissingVisitsError",
    "ModelFileError",
    "NoDensityError",
    "NotFittedError",
    "PositivityError",
    "RepairWarning",
    "RiskSetWarning",
    "StorageError",
    "UnknownCurveError",
    "UnsupportedOutcomeError",
]


class CenscoreError(Exception):
    """Base of every error that censcore raises on purpose."""

    def __str__(self) -> str:
        """The message, in which names from files and tables are text that no terminal obeys."""
        return visible(super().__str__())


class CensoringWarning(UserWarning):
    """An assumption about the censoring distribution was made for the caller, and may not hold."""


class ExtrapolationWarning(UserWarning):
    """A forecast was requested where there are no data: beyond follow-up, or far from their covariates."""


class RepairWarning(UserWarning):
    """Survival probabilities that were not monotone were changed, as asked for; the message says how much."""


class RiskSetWarning(UserWarning):
    """With delayed entry, everybody at risk has the event at a time after which others enter."""


class InvalidInputError(CenscoreError, ValueError):
    """A value outside what the function accepts (NaN, a negative time, a shape that does not fit)."""


class HorizonError(InvalidInputError):
    """Times were asked for beyond the horizon, or there is none that follow-up supports."""


class InvalidIndexError(CenscoreError, IndexError):
    """Subjects that do not exist were requested, or by an invalid index (a text, a fraction)."""


class DerivativeError(CenscoreError, RuntimeError):
    """A derivative that does not exist here, such as a third one in the shape of the gamma distribution."""


class InvalidTypeError(CenscoreError, TypeError):
    """An object of the wrong kind (a bare tuple for an outcome, NumPy mixed with torch)."""


class ContradictionError(CenscoreError, ValueError):
    """A censoring distribution under which the observed data are impossible."""


class ImpossibleForecastError(CenscoreError, ValueError):
    """A forecast that gives no chance to what is known already: P(T > a) = 0 of a subject that survived to a.

    Attributes
    ----------
    rows : sequence of int
        The numbers of the subjects concerned.
    """

    def __init__(self, message: str, rows: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.rows = tuple(int(row) for row in rows)


class MissingCensoringError(CenscoreError, ValueError):
    """A censoring distribution is needed and neither given nor known from the outcome."""


class MissingVisitsError(CenscoreError, ValueError):
    """Examination times are needed to score interval-censored data, and not all of them are known."""


class PositivityError(CenscoreError, ValueError):
    """The censoring distribution gives no chance to what was observed, or a tail integral is infinite.

    Attributes
    ----------
    rows : sequence of int
        The numbers of the subjects concerned.
    horizon : float or None
        The largest horizon under which every subject can be scored, where one exists.
    """

    def __init__(self, message: str, rows: Sequence[int] = (), horizon: float | None = None) -> None:
        super().__init__(message)
        self.rows = tuple(int(row) for row in rows)
        self.horizon = horizon


class NoDensityError(CenscoreError, TypeError):
    """The log score was asked of a distribution that has no density (a step distribution or an ensemble)."""


class UnknownCurveError(CenscoreError, ValueError):
    """A forecast that is known at one time was asked for another time, or for what needs a whole curve.

    Attributes
    ----------
    time : float
        The time that is known.
    """

    def __init__(self, message: str, time: float = float("nan")) -> None:
        super().__init__(message)
        self.time = time


class BeyondFollowUpError(PositivityError, ContradictionError):
    """Subjects were followed beyond the time at which the censoring distribution ends all follow-up.

    The data contradict the distribution, and a smaller horizon resolves it.
    """


class UnsupportedOutcomeError(CenscoreError, ValueError):
    """Data of a kind that the function cannot handle, such as competing risks or left truncation."""


class NotFittedError(CenscoreError, ValueError, AttributeError):
    """An estimator was asked to predict before it was fitted."""


class MissingDependencyError(CenscoreError):
    """An optional package is needed; the message names the extra that brings it."""


class MissingPackageError(MissingDependencyError, ImportError):
    """What was called needs an optional package."""


class MissingNameError(MissingDependencyError, AttributeError):
    """A name of ``censcore`` needs an optional package; ``hasattr`` is False for it."""


class FoldError(CenscoreError, RuntimeError):
    """A model could not be fitted, or gave no forecast, in a fold of a cross-validation."""


class StorageError(CenscoreError, OSError):
    """A file or folder cannot be written: no space is left, it may only be read, or the disk failed."""


class ModelFileError(CenscoreError, ValueError):
    """A saved model is corrupted, truncated, of a newer format or not a censcore model."""
