"""The law of C of a comparison: given, or fitted, and then with what its estimation adds to every error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, PointMass, Step, Univariate
from censcore.estimators import Censoring, KaplanMeier
from censcore.estimators._covariates import check_rows, column_of, take_rows
from censcore.exceptions import InvalidInputError, InvalidTypeError, MissingCensoringError
from censcore.outcomes import RightCensored, as_outcome
from censcore.scores._problem import known_law

__all__ = ["KaplanMeierPart", "LawOfC", "Rows", "law_of_c"]


@dataclass(frozen=True)
class Rows:
    """Covariates (or None) and outcomes of some rows."""

    X: Any
    y: RightCensored

    def take(self, rows: np.ndarray) -> Rows:
        """Some of them."""
        return Rows(take_rows(self.X, rows), self.y.take(rows))

    @classmethod
    def of(cls, train: Any) -> Rows:
        """From a pair (X, y)."""
        if not isinstance(train, tuple | list) or len(train) != 2:
            raise InvalidTypeError(
                "train must be a pair (X_train, y_train), with None for no covariates; "
                f"{type(train).__name__} came."
            )
        rows = cls(train[0], as_outcome(train[1]))
        check_rows(rows.X, len(rows.y))
        return rows

    def same_as(self, y: RightCensored) -> bool:
        """Whether these are the very rows of ``y``."""
        if self.y is y:
            return True
        return len(self.y) == len(y) and bool(
            np.array_equal(to_numpy(self.y.time), to_numpy(y.time))
            and np.array_equal(to_numpy(self.y.event), to_numpy(y.event))
        )


@dataclass(frozen=True)
class KaplanMeierPart:
    r"""Scored rows that share one Kaplan-Meier law of C, and the training rows that it came from.

    With Y(u) training rows at risk and d(u) censored at u, a mean loss with derivative A (see ``catalogue``)
    owes the variance :math:`\sum_u A(u)^2\,d/\{Y(Y-d)\}` to the estimation of the law: Greenwood's formula.
    """

    rows: np.ndarray
    law: Univariate
    jumps: np.ndarray
    at_risk: np.ndarray
    censored: np.ndarray
    train_rows: np.ndarray
    train_time: np.ndarray
    train_seen: np.ndarray

    def influence(self, A: np.ndarray) -> np.ndarray:
        """Entries (J, q) whose squares sum to the variance, for training rows that are not scored."""
        d, Y = self.censored[:, None], self.at_risk[:, None]
        return -A * np.sqrt(d / (Y * (Y - d)))  # a larger hazard of C lowers the mean where A > 0

    def per_training_row(self, A: np.ndarray) -> np.ndarray:
        r"""What each training row contributes, (n_train of this part, q).

        .. math:: \xi_r=-\sum_u\frac{A(u)}{1-d\Lambda(u)}\,\frac{dN_r(u)-Y_r(u)\,d\Lambda(u)}{Y(u)}
        """
        d, Y = self.censored[:, None], self.at_risk[:, None]
        c = A / (Y - d)
        passed = np.searchsorted(self.jumps, self.train_time, side="right")
        compensator = np.concatenate([np.zeros((1, A.shape[1])), np.cumsum(c * d / Y, axis=0)])[passed]
        if not len(self.jumps):
            return compensator
        own = np.maximum(passed - 1, 0)
        jumped = self.train_seen & (passed > 0) & (self.jumps[own] == self.train_time)
        return compensator - np.where(jumped[:, None], c[own], 0.0)


@dataclass(frozen=True)
class LawOfC:
    """A law of C for the scored rows, and how it came about.

    ``parts`` are set for Kaplan-Meier estimates, ``refit`` for others: it takes training rows (and rows to
    score) and gives the law that they would have led to.
    """

    law: Distribution
    description: str
    estimated: bool
    in_sample: bool = False
    parts: list[KaplanMeierPart] = field(default_factory=list)
    refit: Callable[[Rows, Any], Distribution] | None = None
    train: Rows | None = None
    scored_X: Any = None
    last_time: float = np.inf

    def support(self) -> float:
        """The largest time that the law of every row supports, as far as training rows were followed."""
        if isinstance(self.law, PointMass):
            return self.last_time
        ends = to_numpy(self.law.marginal(0).isf(0.0)).reshape(-1)
        return float(min(ends.min(), self.last_time))


def law_of_c(censoring: Any, y: RightCensored, X: Any, train: Rows | None) -> LawOfC:
    """Fit or take the law of C for the rows (X, y)."""
    last = float(to_numpy(y.time).max()) if train is None else float(to_numpy(train.y.time).max())
    if censoring is None:
        known = known_law(y)
        if known is None:
            raise MissingCensoringError(
                f"{int((~to_numpy(y.event)).sum())} of {len(y)} rows are censored and no law of C was given. "
                "Pass censoring=Censoring(KaplanMeier()), which is fitted on train, or a law."
            )
        return LawOfC(known, "known: the censoring times are given", estimated=False, last_time=last)
    if isinstance(censoring, Distribution):
        return _given(censoring, y, train, last)
    if not hasattr(censoring, "fit"):
        raise InvalidTypeError(
            "censoring must be a law of C or an estimator of it, such as Censoring(KaplanMeier()); "
            f"{type(censoring).__name__} came."
        )
    censoring = censoring if isinstance(censoring, Censoring) else Censoring(censoring)
    if train is None and hasattr(censoring, "estimators_"):
        return _already_fitted(censoring, y, X, last)
    rows = Rows(X, y)
    in_sample = train is None or train.same_as(y)
    if in_sample:
        train = rows if train is None else train
        return _in_sample(clone(censoring), train, last)
    assert train is not None
    fitted = clone(censoring).set_params(cv=None).fit(train.X, train.y)
    return _fitted(fitted, rows, train, np.arange(len(y)), np.arange(len(train.y)), last)


def _given(law: Distribution, y: RightCensored, train: Rows | None, last: float) -> LawOfC:
    """A law as it came; a Kaplan-Meier curve of the training rows is recognised as the estimate it is."""
    if train is not None and isinstance(law, Step) and len(law) == 1:
        fitted = Censoring(KaplanMeier()).fit(None, train.y)
        own = fitted.predict_distribution()
        same = [np.array_equal(a, b) for a, b in zip(own._steps(), law._steps(), strict=True)]  # type: ignore[attr-defined]
        if all(same) and train.same_as(y):
            return _in_sample(Censoring(KaplanMeier()), Rows(None, y), last)
        if all(same):
            every = np.arange(len(train.y))
            return _fitted(fitted, Rows(None, y), Rows(None, train.y), np.arange(len(y)), every, last)
    return LawOfC(law, f"given: {type(law).__name__}, taken as known", estimated=False, last_time=last)


def _already_fitted(censoring: Censoring, y: RightCensored, X: Any, last: float) -> LawOfC:
    law = censoring.predict_distribution(X)
    name = describe(censoring)
    if not _is_kaplan_meier(censoring):
        what = f"{name}, fitted before and taken as known; pass train= for errors that cover its estimation"
        return LawOfC(law, what, estimated=False, last_time=last)
    parts = _parts(censoring, X, np.arange(len(y)), None, np.arange(0))
    return LawOfC(law, f"{name}, fitted before", estimated=True, parts=parts, last_time=last)


def _in_sample(censoring: Censoring, rows: Rows, last: float) -> LawOfC:
    """The scored rows are the training rows: one law of all of them, or out-of-fold laws with cv."""
    every = np.arange(len(rows.y))
    if censoring.cv is None:
        fitted = censoring.fit(rows.X, rows.y)
        return _fitted(fitted, rows, rows, every, every, last, in_sample=True)
    law = censoring.fit_predict_distribution(rows.X, rows.y)
    name = f"{describe(censoring)}, out of fold"
    if not _is_kaplan_meier(censoring):
        plain = clone(censoring).set_params(cv=None)
        return LawOfC(
            law, name, True, True, refit=_refitter(plain), train=rows, scored_X=rows.X, last_time=last
        )
    parts: list[KaplanMeierPart] = []
    for fold in range(int(censoring.fold_.max()) + 1):
        inside, outside = every[censoring.fold_ == fold], every[censoring.fold_ != fold]
        part = clone(censoring).set_params(cv=None)
        train = rows.take(outside)
        part.fit(train.X, train.y)
        parts += _parts(part, take_rows(rows.X, inside), inside, train, outside)
    ends = [float(to_numpy(part.train_time).max()) for part in parts]
    return LawOfC(law, name, True, True, parts, train=rows, last_time=min([last, *ends]))


def _fitted(
    censoring: Censoring,
    scored: Rows,
    train: Rows,
    rows: np.ndarray,
    train_rows: np.ndarray,
    last: float,
    in_sample: bool = False,
) -> LawOfC:
    law = censoring.predict_distribution(scored.X)
    name = f"{describe(censoring)}, fitted to {'the scored rows' if in_sample else 'the training rows'}"
    if _is_kaplan_meier(censoring):
        parts = _parts(censoring, scored.X, rows, train, train_rows)
        return LawOfC(law, name, True, in_sample, parts, train=train, last_time=last)
    plain = clone(censoring).set_params(cv=None)
    return LawOfC(
        law, name, True, in_sample, refit=_refitter(plain), train=train, scored_X=scored.X, last_time=last
    )


def _refitter(censoring: Censoring) -> Callable[[Rows, Any], Distribution]:
    def refit(train: Rows, X: Any) -> Distribution:
        return clone(censoring).fit(train.X, train.y).predict_distribution(X)

    return refit


def _is_kaplan_meier(censoring: Censoring) -> bool:
    return type(censoring.estimator) is KaplanMeier and censoring.shared_


def _parts(
    censoring: Censoring, X: Any, rows: np.ndarray, train: Rows | None, train_rows: np.ndarray
) -> list[KaplanMeierPart]:
    """One part per stratum; ``rows`` and ``train_rows`` say which rows of the whole these are."""
    curve: KaplanMeier = censoring.estimators_[0]
    stratum = _stratum(curve, X, len(rows))
    if train is None:  # the curve is known, its training rows are not
        flipped, trained = RightCensored(np.zeros(1), np.zeros(1)), np.full(1, -1)
    else:
        informs = np.nonzero(to_numpy(train.y.informs_censoring))[0]
        flipped, train_rows = train.y.flip(), train_rows[informs]
        trained = _stratum(curve, take_rows(train.X, informs), len(informs))
    parts = []
    for i, law in enumerate(curve.laws_):
        table = curve.event_table_[curve.event_table_["stratum"] == i]
        inside = np.nonzero(trained == i)[0]
        time, seen = to_numpy(flipped.time)[inside], to_numpy(flipped.event)[inside]
        # a last jump to zero is beyond every horizon
        table = table[table["at_risk"] > table["events"]]
        of_train = train_rows[inside] if train is not None else inside
        parts.append(
            KaplanMeierPart(
                rows[stratum == i],
                law,
                table["time"],
                table["at_risk"],
                table["events"],
                of_train,
                time,
                seen,
            )
        )
    return parts


def _stratum(curve: KaplanMeier, X: Any, n: int) -> np.ndarray:
    """The number of each row's stratum."""
    if curve.stratify is None:
        return np.zeros(n, dtype=np.intp)
    return np.searchsorted(curve.strata_, column_of(X, curve.stratify))


def describe(censoring: Censoring) -> str:
    """The estimator of a law of C in words."""
    estimator = censoring.estimator
    name = type(estimator).__name__
    if isinstance(estimator, KaplanMeier):
        by = estimator.stratify
        return "Kaplan-Meier" if by is None else f"Kaplan-Meier within strata of {by!r}"
    inner = getattr(estimator, "model", None)
    return name if inner is None else f"{name}({type(inner).__name__})"


def refuse_joint(y: RightCensored) -> None:
    """A comparison is of one event time per row."""
    if y.time.ndim > 1:
        raise InvalidInputError(
            f"compare() works on one event time per row; the outcome has {y.k}. Compare y.marginal(j) with "
            "forecast.marginal(j) for each j, y.first() with forecast.first(), or joint forecasts by "
            "energy_score and mean_loss."
        )
