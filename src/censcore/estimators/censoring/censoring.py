"""The censoring distribution, estimated by any estimator of event times."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from censcore._arrays import ArrayLike, Covariates, to_numpy
from censcore._validation import as_count, as_labels, check_flag, check_method, name_subjects
from censcore.distributions import Distribution, Grouped, Independent
from censcore.distributions.derived.dropout import LastVisit
from censcore.estimators.covariates import check_rows, check_weights, count_rows, take_rows
from censcore.estimators.libraries.adapted import Adapted, as_estimator
from censcore.estimators.libraries.pipelines import fit_weighted, last_estimator
from censcore.estimators.nonparametric.kaplan_meier import DropOut, KaplanMeier
from censcore.estimators.regression.cox import CoxRegression
from censcore.estimators.risk_sets import RiskSets, entries_of
from censcore.estimators.subjects import SubjectKeys
from censcore.estimators.survival_estimator import SurvivalEstimator
from censcore.exceptions import CenscoreError, InvalidInputError
from censcore.outcomes import OutcomeLike, RightCensored, SemiCompetingRisks, StartStop, as_followed
from censcore.outcomes.detection_times import DetectionTimes
from censcore.outcomes.ended_follow_up import check_no_event_ends_follow_up


class Origin(NamedTuple):
    """Where an estimated censoring distribution came from: its attribute ``estimated_from``.

    A comparison needs it to account for the estimation: the fitted estimator ``censoring``, the covariates
    ``X`` of the subjects that it predicted for and, of out-of-fold distributions, the training ``subjects``
    that they belong to. The attribute is part of the distribution, so that copies, pickles and other
    processes keep it.
    """

    censoring: Censoring
    X: Any
    subjects: np.ndarray | None = None

    @property
    def out_of_fold(self) -> bool:
        """Whether each subject's distribution was fitted without the subject's fold."""
        return self.subjects is not None

    def take(self, rows: Any) -> Origin:
        """The origin of the distributions of some subjects."""
        X, subjects = self.X, self.subjects
        if X is not None:
            X = take_rows(X, _numbers(rows, count_rows(X)))
        return Origin(
            self.censoring, X, None if subjects is None else subjects[_numbers(rows, len(subjects))]
        )


@dataclass(eq=False, repr=False)
class Censoring(SurvivalEstimator):
    r"""Estimator of the censoring distribution, by any estimator of event times on the flipped outcome.

    Censoring becomes the event, and the event censors it. Since :math:`\Delta=\mathbb 1\{T\le C\}`, events
    come first at ties: a subject with an event at y is at risk of censoring only before y (see
    :meth:`RightCensored.flip`). The estimate is as good as the estimator: a pooled Kaplan-Meier curve is
    consistent only where C does not depend on the covariates.

    Censoring times often have atoms: an administrative end of follow-up, closing dates, a grid of visits.
    :class:`KaplanMeier` and :class:`CoxRegression` represent them. For any other estimator (see
    :attr:`SurvivalEstimator.represents_atoms`) a common end is treated here: where two or more subjects are
    censored at the last time, they enter as not yet censored, and the prediction is censored at that time.
    Any other atom (five or more subjects, and 5 % of those at risk, censored at one time) raises an error,
    since a smooth estimate would be wrong on both sides of it. ``CoxRegression(ties="efron")`` is close
    enough there: without covariates its jumps differ from those of Kaplan-Meier by 1/n.

    For :class:`~censcore.IntervalCensored` data with visits, C is how long a subject attends its visits,
    which others do not share. So drop-out is estimated by the number of the visit: which share of the
    subjects that were free of the event at visit k, and had another visit planned, did not come to it. The
    prediction is a ``LastVisit``, which scores and comparisons place on the
    visits of each subject.

    Parameters
    ----------
    estimator : estimator
        Anything with ``fit(X, y)`` and ``predict_distribution(X)``, a scikit-learn ``Pipeline`` that ends in
        one, or what :class:`Adapted` takes; it is cloned, not changed.
    cv : int, splitter or iterable of (train, test), optional
        Folds of :meth:`fit_predict_distribution`, so that no subject's distribution is fitted to that
        subject.
    shared : bool, optional
        For outcomes of several event times: one C per subject for all of them (a distribution of one time),
        or one C per event time (``Independent`` distributions). If omitted, shared where the data allow it.
    random_state : int
        Seed of the folds where ``cv`` is a number.
    refits : int
        Bootstrap samples that a comparison fits it to for its standard errors, where the estimator has no
        influence function.

    Attributes
    ----------
    estimators_ : list of estimators
        The fitted one, or one for each event time.
    shared_ : bool
        Whether one C per subject was estimated.
    subjects_ : list of arrays of int
        The subjects that each estimator was fitted to: all but those with an event at time zero, who carry
        no information on C.
    ends_ : list of float or None
        The common end of follow-up that was treated here, for each estimator; None where there is none, or
        where the estimator represents it.
    fold_ : array of int, (n,)
        After :meth:`fit_predict_distribution` with ``cv``, or :meth:`fit_folds`: the fold of each subject.
    fold_estimators_, fold_training_ : list of Censoring, list of arrays of int
        The estimator of each fold, and the subjects that it was fitted to.
    trained_on_ : SubjectKeys
        Hashes of the training subjects, by which a comparison recognises them.
    by_visit_ : bool
        Whether drop-out was estimated by the number of the visit.

    See Also
    --------
    KaplanMeier, CoxRegression : Estimators that represent atoms.
    censcore.censoring_diagnostic : Whether covariates predict censoring.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 2.0, 2.0, 3.0, 4.0], event=[1, 1, 0, 1, 0])
    >>> C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    >>> C.sf_left([[2.0, 4.0]]).round(3), C.sf([[2.0, 4.0]]).round(3)
    (array([[1.   , 0.667]]), array([[0.667, 0.   ]]))
    """

    estimator: BaseEstimator
    cv: Any = None
    shared: bool | None = None
    random_state: int | None = 0
    refits: int = 60

    _of_subjects = ("subjects_", "trained_on_")
    takes_intervals = True

    def fit(
        self,
        X: Covariates | None,
        y: OutcomeLike | SemiCompetingRisks,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the censoring distribution.

        The outcome, of any kind, is (n,) or (n, k); censored times are the events of C. For intervals with
        all planned visits, it is drop-out. Of :class:`~censcore.StartStop` C is the end of each subject's
        follow-up, once, given covariates that may change. Several times of which one event ends the follow-up
        of another, as death does that of a relapse, are :class:`~censcore.SemiCompetingRisks`.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`SurvivalEstimator.fit`.
        groups : array, (n,), optional
            For an estimator that takes labels of subjects that stay together.

        Returns
        -------
        self
        """
        return self._fit_parts(X, self._know(X, y), sample_weight, groups)

    def _know(self, X: Any, y: Any) -> Any:
        """Settle what holds for all fits to the subjects, and give how long they were followed."""
        check_method(self.estimator, "estimator", "fit", "one such as KaplanMeier() or CoxRegression()")
        y = _followed(y)
        check_rows(X, len(y))
        if self.shared is not None:
            check_flag(self.shared, "shared")
        self.shared_ = bool(y.shares_censoring if self.shared is None else self.shared or y.k == 1)
        self.by_visit_ = isinstance(y, DetectionTimes)
        once = (None, y.of_subjects()) if isinstance(y, StartStop) else (X, y)  # whose covariates change
        self.trained_on_ = SubjectKeys.of(*once)  # so that a comparison knows whose estimate this is
        return y

    def _fit_parts(self, X: Any, y: RightCensored, sample_weight: Any, groups: Any) -> Self:
        """Fit the distribution of each C."""
        sample_weight = None if sample_weight is None else check_weights(sample_weight, len(y))
        groups = None if groups is None else as_labels(groups, len(y))
        if self.shared_:
            check_no_event_ends_follow_up(y)
        parts = [y] if self.shared_ else [y.marginal(j) for j in range(y.k)]
        self._reference = y.time[:0]
        fits = [self._fit_flipped(X, part, sample_weight, groups) for part in parts]
        self.estimators_, self.subjects_, self.ends_ = (list(part) for part in zip(*fits, strict=True))
        return self

    def _fit_flipped(
        self, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[Any, np.ndarray, float | None]:
        """The estimator fitted to the outcome of C, the subjects it saw, and the end treated here."""
        subjects = np.nonzero(to_numpy(y.informs_censoring))[0]
        if not subjects.size:
            raise InvalidInputError(
                "Every subject has its event at time zero, so that nothing is known of the censoring time."
            )
        X, flipped = take_rows(X, subjects), y.flip()
        weight = np.ones(len(subjects)) if sample_weight is None else sample_weight[subjects]
        estimator, end = as_estimator(self.estimator), None
        if self.by_visit_ and type(estimator) is KaplanMeier:
            estimator = DropOut(estimator.stratify)
        last = last_estimator(estimator.model) if isinstance(estimator, Adapted) else estimator
        smooth = not getattr(estimator, "represents_atoms", False)
        foreign = isinstance(estimator, Adapted) and not isinstance(last, SurvivalEstimator)
        if smooth or foreign:  # a leaf of a forest may hold nobody seen at the end
            if not to_numpy(flipped.event)[weight > 0].any():  # P(C > t) = 1 as far as anybody was followed
                return KaplanMeier().fit(None, flipped, weight), subjects, None
            end = _common_end(flipped, weight)
        if smooth:
            earlier = flipped if end is None else _before(end, flipped)
            if end is not None and not to_numpy(earlier.event)[weight > 0].any():  # the end is all there is
                return KaplanMeier().fit(None, flipped, weight), subjects, end
            if not (isinstance(last, CoxRegression) and last.ties == "efron"):  # -log(1 - d / n), up to 1 / n
                _check_no_atoms(earlier, weight, estimator)
            flipped = earlier
        used = None if sample_weight is None else weight
        together = None if groups is None else groups[subjects]
        fitted = fit_weighted(estimator, X, flipped, used, together)
        return fitted, np.arange(len(y.subjects)) if isinstance(y, StartStop) else subjects, end

    def predict_distribution(
        self, X: Covariates | None = None, *, path: StartStop | None = None
    ) -> Distribution:
        """Predict the censoring distribution.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.
        path : StartStop, optional
            The intervals of the rows of X, without events, for covariates that change: one distribution for
            each of its ``subjects``. Those that were observed up to the end of follow-up are right for the
            ipcw scale, which asks for C no later; a comparison takes the result as known, and its errors do
            not include the estimation of C.

        Returns
        -------
        Distribution
            The distribution of C for each subject of X, or one for all subjects where X plays no part; of the
            number of the last visit attended where drop-out was estimated. Its attribute ``estimated_from``
            says that it is an estimate (see :class:`Origin`); not with ``path``.
        """
        self.check_fitted()
        if path is None:
            return self._with_origin(self._parts(X), X)
        for estimator in self.estimators_:
            if "path" not in signature(estimator.predict_distribution).parameters:
                raise InvalidInputError(
                    f"path: got one for {type(estimator).__name__}, expected an estimator that forecasts "
                    "along paths: CoxRegression, WeibullRegression, PiecewiseExponentialRegression or "
                    "BoostedHazards."
                )
        (part,) = self._parts(X, path=path)
        return part

    def _parts(self, X: Any, **options: Any) -> list[Any]:
        """The distribution of each C; of min(C, end) in the precision of the outcome that the end is from."""
        parts = []
        for estimator, end in zip(self.estimators_, self.ends_, strict=True):
            # an estimator may keep what it predicts
            part = copy.copy(estimator.predict_distribution(X, **options))
            part.is_estimate = True  # it claims no certainty
            parts.append(part if end is None else part.like(self._reference).censor_at(end))
        return parts

    def _with_origin(self, parts: list[Any], X: Any, subjects: np.ndarray | None = None) -> Distribution:
        """The distribution of all C, or of the number of the last visit."""
        predicted: Any = parts[0] if self.shared_ else Independent(parts)
        predicted = LastVisit(predicted) if self.by_visit_ else predicted
        predicted.estimated_from = Origin(self, X, subjects)
        return predicted

    def fit_predict_distribution(
        self,
        X: Covariates | None,
        y: OutcomeLike | SemiCompetingRisks,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Distribution:
        """Predict the censoring distribution of the training subjects, out of fold where ``cv`` is given.

        The estimator is also fitted to all subjects, ready for new ones.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        groups : array, (n,), optional
            Subjects of one group stay in one fold.

        Returns
        -------
        Distribution
            The distribution of C for each subject, fitted without the subject's fold.
        """
        self.fit(X, y, sample_weight, groups=groups)
        if self.cv is None:
            return self.predict_distribution(X)
        outcome = _followed(y)
        groups = outcome.id if groups is None and isinstance(y, StartStop) else groups
        groups = None if groups is None else as_labels(groups, len(outcome))
        return self._fit_folds(X, outcome, self._folds(outcome, groups), sample_weight, groups)

    def fit_folds(
        self,
        X: Covariates | None,
        y: OutcomeLike | SemiCompetingRisks,
        folds: Sequence[tuple[np.ndarray, np.ndarray]],
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Distribution:
        """Predict the censoring distribution of each fold's subjects by a fit to its training subjects.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in :meth:`fit`.
        folds : list of (train, test)
            Numbers of subjects, ascending. Nobody is in two test sets; some may be in none.

        Returns
        -------
        Distribution
            The distribution of C for each subject in a test set, in the order of the subjects.
        """
        return self._fit_folds(X, self._know(X, y), folds, sample_weight, groups)

    def _fit_folds(self, X: Any, y: Any, folds: Any, sample_weight: Any, groups: Any) -> Distribution:
        """The same of subjects that are known."""
        weight = None if sample_weight is None else check_weights(sample_weight, len(y))
        labels = None if groups is None else as_labels(groups, len(y))
        keys = self.trained_on_
        self.fold_, self.fold_training_ = np.full(len(y), -1), [train for train, _ in folds]
        self.fold_estimators_, by_fold = [], []
        for number, (train, test) in enumerate(folds):
            fit = clone(self).set_params(cv=None, shared=self.shared_)  # the same in every fold
            fit.shared_, fit.by_visit_ = self.shared_, self.by_visit_
            of = np.unique(y.subject[train]) if isinstance(y, StartStop) else train
            own = {"outcome": keys.outcome[of], "covariates": take_rows(keys.covariates, of)}
            fit.trained_on_ = replace(keys, **own)
            try:
                own_weight, own_labels = (None if part is None else part[train] for part in (weight, labels))
                fit._fit_parts(take_rows(X, train), y.take(train), own_weight, own_labels)
            except CenscoreError as error:
                raise type(error)(f"The censoring distribution, fold {number + 1}: {error}") from error
            self.fold_[test] = number
            self.fold_estimators_.append(fit)
            by_fold.append(fit._parts(take_rows(X, test)))
        tested = np.flatnonzero(self.fold_ >= 0)
        parts = [Grouped(list(of_folds), self.fold_[tested]) for of_folds in zip(*by_fold, strict=True)]
        return self._with_origin(parts, take_rows(X, tested) if len(tested) < len(y) else X, tested)

    def _folds(self, y: RightCensored, groups: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Subjects to train on and to predict, both ascending; every subject is predicted once."""
        n, cv = len(y), self.cv
        if isinstance(cv, int | float):
            cv = as_count(cv, "cv, the number of folds,", least=2)
            units, what = (n, "subjects") if groups is None else (len(np.unique(groups)), "groups")
            if units < cv:
                raise InvalidInputError(
                    f"{what}: got {units} of them, expected at least cv={cv}, one per fold. Pass a smaller "
                    "cv."
                )
            if groups is None:
                return _random_folds(n, cv, self.random_state)
            from sklearn.model_selection import GroupKFold

            cv = GroupKFold(cv, shuffle=True, random_state=self.random_state)
        events = to_numpy(y.event).reshape(n, -1).all(axis=1)
        splits = cv if isinstance(cv, Iterable) else cv.split(np.zeros((n, 1)), events, groups)
        rows = np.arange(n)
        folds = [(rows[train], np.sort(rows[test])) for train, test in splits]
        times = np.bincount(np.concatenate([test for _, test in folds]), minlength=n)
        if (times != 1).any():
            raise InvalidInputError(
                "The test sets of cv must hold every subject exactly once; that is not so for "
                f"{name_subjects(np.nonzero(times != 1)[0])}."
            )
        if any(np.isin(test, train).any() for train, test in folds):
            raise InvalidInputError("The training and test sets of cv overlap; expected disjoint sets.")
        return folds


def _random_folds(n: int, count: int, random_state: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """The folds of scikit-learn's ``KFold``, which takes twice as long."""
    folds = []
    for part in np.array_split(check_random_state(random_state).permutation(n), count):
        held_out = np.zeros(n, dtype=bool)
        held_out[part] = True
        folds.append((np.flatnonzero(~held_out), np.flatnonzero(held_out)))
    return folds


def _followed(y: Any) -> Any:
    """How long subjects were followed: an outcome of one row each, or their intervals."""
    return y if isinstance(y, StartStop) else as_followed(y)


def _numbers(rows: Any, n: int) -> np.ndarray:
    """Subjects that were chosen by indices, a slice or a mask, as indices."""
    return np.atleast_1d(np.arange(n)[rows if isinstance(rows, slice) else to_numpy(rows)])


# ---- atoms of the censoring time -------------------------------------------------------------

#: An atom: at least this many censored at one time, and this share of those at risk. An estimate that is
#: smooth across it misses P(C > t) by up to half the share.
_FEWEST, _SHARE = 5, 0.05


def _common_end(flipped: RightCensored, weight: np.ndarray) -> float | None:
    """The last time, if two or more subjects are censored there and nobody has an event; otherwise None.

    Everybody at risk at the last time is censored there, so that C never exceeds it.
    """
    time, event = to_numpy(flipped.time)[weight > 0], to_numpy(flipped.event)[weight > 0]
    at_end = time == time.max()
    return float(time.max()) if event[at_end].all() and at_end.sum() > 1 else None


def _before(end: float, flipped: RightCensored) -> RightCensored:
    """The outcome of C' where C = min(C', end): subjects censored at the end are not yet censored."""
    return flipped.with_event(flipped.event & (flipped.time < end))


def _check_no_atoms(flipped: RightCensored, weight: np.ndarray, estimator: Any) -> None:
    """Check that censoring times have no atoms, which ``estimator`` would smooth over."""
    used, entry = weight > 0, entries_of(flipped)
    time, event = to_numpy(flipped.time)[used], to_numpy(flipped.event)[used]
    sets = RiskSets(time, event, weight[used], None if entry is None else entry[used])
    (at_risk, _), censored, count, distinct = sets.at_risk(sets.weight), sets.d, sets.count, sets.times
    atoms = np.nonzero((count >= _FEWEST) & (censored >= _SHARE * at_risk))[0]
    if not atoms.size:
        return
    largest = atoms[np.argmax(censored[atoms] / at_risk[atoms])]
    others = f" and {atoms.size - 1} more" if atoms.size > 1 else ""
    raise InvalidInputError(
        f"Censoring times have atoms: got {int(count[largest])} subjects censored at {distinct[largest]:g}, "
        f"{censored[largest] / at_risk[largest]:.0%} of those at risk{others}; {type(estimator).__name__} "
        f"does not represent atoms, and expected less than {_SHARE:.0%} at any time but a common end. Use "
        "Censoring(KaplanMeier()), Censoring(KaplanMeier(stratify=...)) or Censoring(CoxRegression()), or, "
        "if the times are rounded, record them to a finer unit. An estimator that represents atoms says so "
        "by the attribute represents_atoms = True."
    )
