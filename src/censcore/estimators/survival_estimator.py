"""The base class of estimators: ``fit(X, y)`` and ``predict_distribution(X)``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from censcore._arrays import ArrayLike, Covariates
from censcore._validation import check_flag, check_same_order
from censcore.distributions import Distribution
from censcore.exceptions import InvalidInputError, NotFittedError, UnsupportedOutcomeError
from censcore.outcomes import OutcomeLike, RightCensored, SemiCompetingRisks, StartStop, as_outcome


class NotFitted(NotFittedError, SklearnNotFittedError):
    """The library's error for an estimator that is not fitted, and the one that scikit-learn looks for."""


class SurvivalEstimator(BaseEstimator, ABC):
    """Base class of estimators of the distribution of an event time given covariates.

    A subclass writes :meth:`fit` and :meth:`predict_distribution`, and inherits the rest:

    - ``__init__`` stores its arguments unchanged under their names, as scikit-learn asks, so that
      ``get_params``, ``set_params`` and ``sklearn.base.clone`` work;
    - ``fit`` takes ``X``, ``y`` and ``sample_weight`` in this order, stores what it learns under names that
      end in an underscore, and returns ``self``; everything else it takes is keyword-only. A fit that fails
      leaves the estimator as it was, and what is learned is a NotFittedError before the first fit;
    - a ``fit`` that splits the subjects, or fits an estimator that may, takes ``groups=None`` too: labels of
      subjects that stay on one side of every split;
    - ``predict_distribution`` returns one :class:`~censcore.Distribution` per subject of X, or one for all
      subjects where the covariates play no part;
    - delayed entry, ``y.entry``, is respected or an error, which :func:`one_event_time` raises by default;
    - ``takes_intervals = True`` where ``fit`` learns from :class:`~censcore.StartStop`, whose rows respect
      delayed entry as others do; elsewhere such an outcome is an error;
    - ``represents_atoms = True`` where predictions are consistent for times with atoms;
    - optionally ``influence(hazard_derivative, ...)``, as :meth:`KaplanMeier.influence` and
      :meth:`CoxRegression.influence` have it: what each training subject contributes to functionals of the
      fitted model.

    The same estimator serves event times and, through :class:`~censcore.Censoring`, censoring times.
    :func:`censcore.testing.check_estimator` checks the contract.

    See Also
    --------
    censcore.Adapted : Estimators of other libraries.
    censcore.estimators.covariates : Checks of covariates and weights for use in ``fit``.
    censcore.testing.check_estimator : The contract of estimators.

    Examples
    --------
    An exponential distribution, the same for all subjects, by events per time at risk:

    >>> import numpy as np, censcore as cs
    >>> from censcore.estimators.covariates import check_rows, check_weights
    >>> class PooledExponential(cs.estimators.SurvivalEstimator):
    ...     def fit(self, X, y, sample_weight=None):
    ...         y = cs.estimators.one_event_time(y, "PooledExponential")
    ...         check_rows(X, len(y))
    ...         w = check_weights(sample_weight, len(y))
    ...         self.rate_ = (w @ y.event) / (w @ y.time)
    ...         return self
    ...
    ...     def predict_distribution(self, X=None):
    ...         self.check_fitted()
    ...         return cs.Exponential(np.array([self.rate_]))
    >>> y = cs.RightCensored(time=[1.0, 2.0, 3.0, 4.0], event=[1, 0, 1, 0])
    >>> PooledExponential().fit(None, y).predict_distribution().mean()
    array([5.])
    >>> C = cs.Censoring(PooledExponential()).fit(None, y).predict_distribution()
    """

    #: Fitted attributes that hold something of each training subject: a model file leaves them out.
    _of_subjects: ClassVar[tuple[str, ...]] = ()

    #: Whether ``fit`` learns from intervals of subjects whose covariates change.
    takes_intervals: bool = False

    #: The intervals that ``fit`` learned from; None where each row was a subject.
    _start_stop: StartStop | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let ``fit`` check labels and be all or nothing."""
        super().__init_subclass__(**kwargs)
        if "fit" in vars(cls):
            cls.fit = _in_order(cls.fit)  # type: ignore[method-assign]
        for name in ("fit", "cross_fit"):
            if callable(own := vars(cls).get(name)):
                setattr(cls, name, all_or_nothing(own))

    if not TYPE_CHECKING:  # a type checker would believe that every attribute exists

        def __getattr__(self, name: str) -> Any:
            """Say of what is learned that it is missing before ``fit``."""
            learned = name.endswith("_") or name.startswith("_")
            if learned and not name.startswith("__") and not SurvivalEstimator.__sklearn_is_fitted__(self):
                raise NotFitted(self._not_fitted_words())
            return object.__getattribute__(self, name)  # the error of Python, or of a property

    @property
    def represents_atoms(self) -> bool:
        """Whether predictions are consistent where the time has atoms, as Kaplan-Meier curves are.

        Atoms are common in censoring times: an administrative end of follow-up, closing dates, a grid of
        visits. False unless a class says otherwise, for instance by ``represents_atoms = True`` in its body.
        Where it is False, :class:`~censcore.Censoring` treats a common end of follow-up itself and raises an
        error for other atoms.
        """
        return False

    @abstractmethod
    def fit(self, X: Covariates | None, y: OutcomeLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the estimator.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates.
        y : RightCensored, another outcome that the class takes, structured array or frame
            The outcome.
        sample_weight : array, (n,), optional
            Weights of the subjects; ones if omitted.

        Returns
        -------
        self
        """

    @abstractmethod
    def predict_distribution(self, X: Covariates | None = None) -> Distribution:
        """Predict the distribution of the event time.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.

        Returns
        -------
        Distribution
            One distribution per subject of X, or one for all subjects where covariates play no part.
        """

    def _per_subject(self, values: np.ndarray) -> np.ndarray:
        """Sums over the rows of each subject of ``fit``, (m, ...), of values per row."""
        return values if self._start_stop is None else self._start_stop.summed(values)

    def _clusters(self, groups: Any) -> Any:
        """The groups of the subjects of ``fit``, from those of its rows."""
        return groups if self._start_stop is None else self._start_stop.each_once(groups, "groups")

    def __sklearn_is_fitted__(self) -> bool:
        return any(name.endswith("_") and not name.startswith("_") for name in vars(self))

    def check_fitted(self) -> None:
        """Raise a NotFittedError unless ``fit`` was completed; for use in ``predict_distribution``."""
        if not self.__sklearn_is_fitted__():
            raise NotFitted(self._not_fitted_words())

    def _not_fitted_words(self) -> str:
        return f"This {type(self).__name__} is not fitted yet. Call fit(X, y) first."


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A fit that leaves the estimator as it was where it fails: never half fitted."""

    @wraps(fit)
    def fitted(self: Any, *args: Any, **options: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **options)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return fitted


def _in_order(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A ``fit`` that checks that all parts with labels of subjects have them in one order."""
    names = list(signature(fit).parameters)[1:]

    @wraps(fit)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | kwargs
        labels = check_same_order(**{"y": given.get("y"), "X": given.get("X")} | given)
        y = given.get("y")
        rows = y if isinstance(y, StartStop) else None
        if rows is not None:
            _check_intervals(self, rows, given)
        fitted = fit(self, *args, **kwargs)
        if rows is not self._start_stop:
            self._start_stop = rows
        if hasattr(self, "_row_labels"):
            self._row_labels = labels
        return fitted

    return checked


def _check_intervals(estimator: SurvivalEstimator, y: Any, given: dict[str, Any]) -> None:
    """Check that an estimator learns from intervals, and that a subject has one weight and one group."""
    if not estimator.takes_intervals:
        try:
            as_outcome(y)
        except UnsupportedOutcomeError as error:
            raise UnsupportedOutcomeError(f"{type(estimator).__name__}: {error}") from error
    for name in ("sample_weight", "groups"):
        y.each_once(given.get(name), name)


def one_event_time(
    y: OutcomeLike | SemiCompetingRisks, estimator: str, *, entry: bool = False
) -> RightCensored:
    """Convert an outcome and check that it has one event time per subject.

    Delayed entry is an error unless the estimator says that its risk sets respect it. Of intervals
    (:class:`~censcore.StartStop`) each row is then one with an entry.

    Parameters
    ----------
    y : RightCensored, structured array or frame
        The outcome.
    estimator : str
        Name of the estimator, for the message.
    entry : bool
        Whether the estimator takes ``y.entry`` into account.

    Returns
    -------
    RightCensored

    Examples
    --------
    >>> import censcore as cs
    >>> cs.estimators.one_event_time(cs.RightCensored([1.0, 2.0], [1, 0]), "MyEstimator")
    RightCensored(n=2, events=1 (50.0 %), time 1 to 2)
    """
    check_flag(entry, "entry")
    y = y.intervals if entry and isinstance(y, StartStop) else as_outcome(y)
    if y.time.ndim > 1:
        raise InvalidInputError(
            f"{estimator} estimates the distribution of one event time per subject; got {y.k}. Fit it to "
            "y.marginal(j) for each j, or to y.first()."
        )
    return y if entry else y.require_no_entry(estimator)
