"""Hazards by boosted trees."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize_scalar
from threadpoolctl import threadpool_limits

from censcore._arrays import ArrayLike, Covariates, to_numpy
from censcore._validation import as_count, as_labels, as_number
from censcore.distributions import Univariate
from censcore.estimators.covariates import check_rows, check_weights
from censcore.estimators.encoding import Encoding, read_numbers
from censcore.estimators.folds import Fold, completed_folds, seed_of
from censcore.estimators.regression.along_time import given_survival, piecewise_forecast
from censcore.estimators.regression.piecewise_exponential import exposure
from censcore.estimators.survival_estimator import SurvivalEstimator, one_event_time
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike, StartStop

_CODES = 40  # values of a covariate that trees tell apart
_STEP, _PATIENCE = 10, 4  # trees between looks at held-out subjects, at first; looks without a gain
_SLOPE = 0.3  # standard deviation, beforehand, of the slope of f
_NUMBERS_PER_THREAD = 500_000  # of a matrix; more threads wait for each other
_EVENTS, _PIECES = 10, 60  # events of a piece of the pooled hazard, and pieces at most


class BoostedHazards(SurvivalEstimator):
    r"""Hazards by gradient-boosted trees, which find steps, curves and interactions of covariates.

    .. math:: h(t\mid x)=h_0(t)\exp\{f(x,k(t))\}

    with the pooled hazard :math:`h_0`, piecewise constant between quantiles of the event times, and a sum of
    small trees f of the covariates and of the interval k of time, so that hazards need not be proportional.
    The trees maximise the likelihood: with the pooled hazard :math:`e_{ik}` that a subject spends in an
    interval and its events :math:`d_{ik}`, the loss is that of Poisson counts,
    :math:`\sum_{ik}e_{ik}\exp f-d_{ik}f`. Five models are fitted, each without a fifth of the subjects.
    The likelihood of these decides how many trees there are, the slope of f and :math:`h_0`; the hazards of
    the models are averaged.

    Takes right censoring and delayed entry, missing numbers, and the categories of a frame. Assumes that C is
    independent of T given x.

    Parameters
    ----------
    n_intervals : int
        Intervals of time between which the effects of covariates may differ.
    learning_rate : float
        Factor of every tree.
    max_leaf_nodes : int
        Leaves of a tree; 2 is a model without interactions.
    max_iter : int
        Most trees of a model.
    min_samples_leaf : int
        Intervals of subjects that a leaf needs.
    l2_regularization : float
        Penalty on the values of leaves.
    random_state : int, RandomState or None
        Of the fifths.

    Attributes
    ----------
    n_trees_ : int
        Trees of each model; zero where covariates did not help.
    held_out_hazard_ : array, (n,)
        Cumulative hazard of every subject at its time, from its entry on, by a model that has not seen it.

    Notes
    -----
    Beyond the last event the pooled hazard is that of half an event in the follow-up there, or that of the
    piece before, if this is lower: long follow-up without events shows in the forecasts. An event at time
    zero has no hazard and is an error. Competing risks: ``CauseSpecific(BoostedHazards())``; several times:
    ``JointFromMargins(BoostedHazards())``.

    See Also
    --------
    PiecewiseExponentialRegression : A linear f.
    JointFromMargins : For several event times.
    censcore.BestForecast : Has it as a member.

    References
    ----------
    .. [1] J. H. Friedman (2001). Greedy function approximation: a gradient boosting machine. Annals of
       Statistics 29, 1189-1232.
    .. [2] M. Friedman (1982). Piecewise exponential models for survival data with covariates. Annals of
       Statistics 10, 101-113.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> T = rng.exponential(np.where(np.abs(X[:, 0]) > 0.7, 1.0, 4.0))
    >>> y = cs.RightCensored(np.minimum(T, 5.0), T <= 5.0)
    >>> model = cs.BoostedHazards(random_state=0).fit(X, y)
    >>> model.predict_distribution([[1.5, 0.0, 0.0], [0.0, 0.0, 0.0]]).sf(1.0).round(1)
    array([0.4, 0.7])
    """

    n_features_in_: int
    _encoding: Encoding
    _of_subjects = ("held_out_hazard_",)
    takes_intervals = True

    def __init__(
        self,
        n_intervals: int = 4,
        *,
        learning_rate: float = 0.1,
        max_leaf_nodes: int = 6,
        max_iter: int = 300,
        min_samples_leaf: int = 20,
        l2_regularization: float = 10.0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_intervals = n_intervals
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.max_iter = max_iter
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.random_state = random_state

    def fit(
        self,
        X: Covariates | None,
        y: OutcomeLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the trees; without covariates the pooled hazard is the forecast.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`SurvivalEstimator.fit`.
        groups : array, (n,), optional
            Subjects of one group (visits of a patient) are held out together.

        Returns
        -------
        self
        """
        self.cross_fit(X, y, (), sample_weight, groups=groups)
        return self

    def cross_fit(
        self,
        X: Covariates | None,
        y: OutcomeLike,
        folds: Sequence[Fold],
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> list[tuple[Self, ...]]:
        """Fit to all subjects, with models that have not seen given ones; for use by :class:`Stacking`.

        Subjects that nobody holds out are held out in further folds, up to five in all; ``groups`` are as in
        :meth:`fit`.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        folds : sequence of (array of int, array of int)
            Training and held-out subjects.

        Returns
        -------
        list of tuples of estimators
            For every fold the model of it alone, which has not seen the held-out subjects, and those that it
            is pooled or averaged with, if any.
        """
        self._check_settings()
        rows = y if isinstance(y, StartStop) else None
        groups = rows.id if rows is not None and groups is None else groups
        outcome = one_event_time(y, type(self).__name__, entry=True).like(np.empty(0))
        check_rows(X, len(outcome))
        weight = check_weights(sample_weight, len(outcome))
        time, event = to_numpy(outcome.time), to_numpy(outcome.event) & (weight > 0)
        entry = np.zeros(len(time)) if outcome.entry is None else to_numpy(outcome.entry)
        self._pool(time, event, entry, weight)
        codes = self._codes(X, reset=True)
        units = np.arange(len(time)) if groups is None else as_labels(groups, len(time))
        everyone = completed_folds(units, folds, seed_of(self.random_state))
        self._slope, self._models = 1.0, self._boosted(codes, time, event, entry, weight, everyone)
        self.n_trees_ = max(0 if model is None else model.n_iter_ for model in self._models)
        alone = [copy(self) for _ in self._models]
        for model, trees in zip(alone, self._models, strict=True):
            model._models = [trees]
        factors = np.ones((len(time), int(self._interval[-1]) + 1))
        if codes is not None:
            for model, (_, held) in zip(alone, everyone, strict=True):
                factors[held] = model._factors(codes[held])
        spent = exposure(time, self._times) - exposure(entry, self._times)
        self._calibrate(factors[:, self._interval], spent, time, event, weight)
        hazard = (factors[:, self._interval] ** self._slope * self._rates * spent).sum(axis=1)
        self.held_out_hazard_ = hazard if rows is None else rows.summed(hazard)
        for model in alone:
            model._slope, model._rates = self._slope, self._rates
        return [(alone[i], *alone[:i], *alone[i + 1 :]) for i in range(len(folds))]

    def _check_settings(self) -> None:
        as_count(self.n_intervals, "n_intervals", most=1000)
        as_number(self.learning_rate, "learning_rate", above=0, most=1)
        as_count(self.max_leaf_nodes, "max_leaf_nodes", least=2, most=10**6)
        as_count(self.max_iter, "max_iter", most=10**6)
        as_count(self.min_samples_leaf, "min_samples_leaf", most=10**9)
        as_number(self.l2_regularization, "l2_regularization", least=0)

    # ---- the pooled hazard ---------------------------------------------------------------------

    def _pool(self, time: np.ndarray, event: np.ndarray, entry: np.ndarray, weight: np.ndarray) -> None:
        """The pooled hazard: pieces between quantiles of the event times, and the follow-up after them."""
        events = time[event]
        if not len(events):
            raise InvalidInputError(
                "BoostedHazards: no subject has an event, so that there is no hazard to learn. If this is "
                "the censoring distribution and nothing is censored, pass PointMass(inf)."
            )
        if (events == 0).any():
            raise InvalidInputError(
                f"BoostedHazards: got {int((events == 0).sum())} events at time zero, expected positive "
                "times, since no hazard accumulates at zero. Leave these subjects out, or use KaplanMeier."
            )
        pieces = min(_PIECES, max(1, len(events) // _EVENTS))
        self._times = np.unique(np.quantile(events, np.arange(1, pieces + 1) / pieces, method="higher"))
        spent = exposure(time, self._times) - exposure(entry, self._times)
        self._rates = self._events_by_time(weight @ spent, time, event, weight)
        count = min(int(self.n_intervals), len(self._times))
        self._interval = np.arange(len(self._rates)) * count // len(self._rates)  # of each piece

    def _events_by_time(
        self, at_risk: np.ndarray, time: np.ndarray, event: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """Hazards of the pieces: events by time at risk; half an event after the last."""
        happened = np.bincount(np.searchsorted(self._times, time[event]), weight[event], len(at_risk))
        happened[-1] = weight[event].mean() / 2
        with np.errstate(divide="ignore"):
            rates = happened / at_risk
        rates[-1] = min(rates[-1], rates[-2])
        return rates

    def _calibrate(
        self, factors: np.ndarray, spent: np.ndarray, time: np.ndarray, event: np.ndarray, weight: np.ndarray
    ) -> None:
        r"""Pooled hazard and slope b of :math:`h_0e^{bf}`, most likely given the f of held-out subjects.

        Trees that stop early have learned part of what there is, and the pooled hazard is that of a mixture.
        b has a normal prior with mean one.
        """
        own = factors[event, np.searchsorted(self._times, time[event])]

        def pooled(b: float) -> np.ndarray:
            at_risk = weight @ (factors**b * spent)
            return self._events_by_time(at_risk, time, event, weight)

        def loss(b: float) -> float:
            rates = pooled(b)
            hazard = rates[np.searchsorted(self._times, time[event])] * own**b
            gain = weight[event] @ np.log(hazard) - weight @ (factors**b * spent) @ rates
            return -float(gain) + (b - 1) ** 2 / (2 * _SLOPE**2)

        if self.n_trees_:
            self._slope = float(minimize_scalar(loss, bounds=(0.0, 3.0), method="bounded").x)
            self._rates = pooled(self._slope)

    def _spent(self, time: np.ndarray) -> np.ndarray:
        """The pooled hazard that passes in every interval up to a time, (n, intervals)."""
        by_piece = exposure(time, self._times) * self._rates
        starts = np.searchsorted(self._interval, np.arange(self._interval[-1] + 1))
        return np.add.reduceat(by_piece, starts, axis=1)

    # ---- trees ---------------------------------------------------------------------------------

    def _codes(self, X: Any, *, reset: bool) -> np.ndarray | None:
        """Covariates as numbers of their quantiles, which are all that trees look at."""
        if X is None:
            if not reset and self.n_features_in_:
                raise InvalidInputError(f"X: got None, expected {self.n_features_in_} covariates, as in fit.")
            self.n_features_in_ = 0
            return None
        values = read_numbers(self, X, reset=reset)
        if not self.n_features_in_:
            return None
        if reset:
            levels = np.arange(1, _CODES) / _CODES
            known = [x[~np.isnan(x)] for x in values.T]
            self._cuts = [np.unique(np.quantile(x, levels)) if len(x) else levels for x in known]
        codes = [np.searchsorted(cuts, x) for cuts, x in zip(self._cuts, values.T, strict=True)]
        return np.where(np.isnan(values), np.nan, np.column_stack(codes))

    def _boosted(
        self,
        codes: np.ndarray | None,
        time: np.ndarray,
        event: np.ndarray,
        entry: np.ndarray,
        weight: np.ndarray,
        folds: list[Fold],
    ) -> list[Any]:
        """Boost until held-out subjects become less likely; None where the pooled hazard alone is better."""
        if codes is None:
            return [None] * len(folds)
        e = self._spent(time) - self._spent(entry)
        d = np.zeros_like(e)
        d[event, self._interval[np.searchsorted(self._times, time[event])]] = 1
        subject, interval = np.nonzero((e > 0) & (weight[:, None] > 0))
        e, d, w = e[subject, interval], d[subject, interval], weight[subject]
        Z = np.column_stack([codes[subject], interval])
        inside = [np.isin(subject, held) for _, held in folds]
        with _threads_for(Z):
            return self._grown(Z, e, d, w, inside)

    def _grown(
        self, Z: np.ndarray, e: np.ndarray, d: np.ndarray, w: np.ndarray, inside: list[np.ndarray]
    ) -> list[Any]:
        """Models of the rows outside each fold, with the trees that are best for the rows inside."""
        models = [self._untrained() if d[~held].any() else None for held in inside]
        rates = [np.ones(int(held.sum())) for held in inside]
        best, least, looks, trees = 0, float(w @ e), 0, 0
        while trees < self.max_iter:
            before, trees, loss = trees, min(int(self.max_iter), trees + max(_STEP, trees // 4)), 0.0
            for model, held, rate in zip(models, inside, rates, strict=True):
                if model is not None:
                    train = ~held
                    model.set_params(max_iter=trees)
                    known = ~np.isnan(Z[train]).all(axis=0)  # scikit-learn fails on columns without a value
                    seen = np.where(known, Z[train], 0.0)
                    model.fit(seen, d[train] / e[train], sample_weight=w[train] * e[train])
                    rate *= _later_trees(model, before).predict(Z[held])
                loss += float(w[held] @ (e[held] * rate - d[held] * np.log(rate)))
            if loss < least:
                best, least, looks = trees, loss, 0
            elif (looks := looks + 1) == _PATIENCE:
                break
        for model in models:
            if model is not None:
                del model._predictors[best:]
        return models if best else [None] * len(inside)

    def _untrained(self) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor

        return HistGradientBoostingRegressor(
            loss="poisson",
            learning_rate=self.learning_rate,
            max_leaf_nodes=int(self.max_leaf_nodes),
            min_samples_leaf=int(self.min_samples_leaf),
            l2_regularization=self.l2_regularization,
            early_stopping=False,
            warm_start=True,
            random_state=0,
        )

    def predict_distribution(
        self, X: Covariates | None = None, *, given: ArrayLike | None = None, path: StartStop | None = None
    ) -> Univariate:
        """Predict the distribution of the event time.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.
        given, path
            As in :meth:`WeibullRegression.predict_distribution`.

        Returns
        -------
        Distribution
            One distribution per subject of X (of ``path``), or one for all subjects without covariates.
        """
        self.check_fitted()
        codes = self._codes(X, reset=False)
        rates = self._rates[None]
        if codes is not None:
            rates = rates * (self._factors(codes) ** self._slope)[:, self._interval]
        return given_survival(piecewise_forecast(self._times, rates, path, X), given)

    def _factors(self, codes: np.ndarray) -> np.ndarray:
        """Exp f of every interval, (n, intervals): the mean of the models."""
        K = int(self._interval[-1]) + 1
        Z = np.column_stack([np.repeat(codes, K, axis=0), np.tile(np.arange(K), len(codes))])
        with _threads_for(Z):
            factors = [np.ones(len(Z)) if model is None else model.predict(Z) for model in self._models]
        return np.mean(factors, axis=0).reshape(-1, K)


def _threads_for(Z: np.ndarray) -> threadpool_limits:
    """A context with as many threads as a matrix is worth."""
    return threadpool_limits(max(1, Z.size // _NUMBERS_PER_THREAD), "openmp")


def _later_trees(model: Any, first: int) -> Any:
    """The factor by which the trees from number ``first`` on change the forecast, as a model."""
    if not first:
        return model
    later = copy(model)
    later._predictors = model._predictors[first:]
    later._baseline_prediction = np.zeros_like(model._baseline_prediction)
    return later
