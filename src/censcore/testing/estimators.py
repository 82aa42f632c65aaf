"""The contract of estimators."""

from __future__ import annotations

import copy
import inspect
import pickle
import tempfile
from collections.abc import Callable
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Ensemble, PointMass
from censcore.estimators import Censoring
from censcore.exceptions import InvalidInputError, UnsupportedOutcomeError
from censcore.outcomes import IntervalCensored, RightCensored
from censcore.scores import energy_score
from censcore.simulation import LogNormalScenario, WeibullScenario
from censcore.testing.contract import expect_error, expect_kept
from censcore.testing.distributions import check_distribution


def check_estimator(estimator: BaseEstimator, *, k: int = 1, seed: int = 0) -> None:
    """Check that an estimator keeps the contract that comparisons and censoring distributions rely on.

    - Parameters are stored as given and survive ``clone``; nothing is predicted before ``fit``.
    - ``fit(X, y, sample_weight)`` takes its arguments in this order, returns the estimator, changes no data
      and forgets an earlier fit. The same seed gives the same distribution; unit weights change nothing.
    - Predictions are distributions (see :func:`check_distribution`), one per subject or one for all, that
      depend on the subject's covariates alone.
    - Frames and structured outcomes are accepted; inconsistent data raise an error.
    - Copies, pickles and model files predict the same.
    - It learns: predictions score better than the same with half or twice the times.
    - Delayed entry and intervals are taken into account, or raise an UnsupportedOutcomeError.
    - It can estimate a censoring distribution, also where C has atoms: a common end of follow-up is the end
      of C, and other atoms are represented or raise an error.

    Parameters
    ----------
    estimator : estimator
        Unfitted, with ``fit(X, y)`` and ``predict_distribution(X)``. A network should be small and train long
        enough to learn something from 240 subjects.
    k : int
        Number of event times of the outcome.
    seed : int
        Seed of the data, and of the estimator if it takes a ``random_state``.

    Raises
    ------
    AssertionError
        Every broken rule, with what was found.

    See Also
    --------
    check_distribution, check_score : The other contracts.
    censcore.estimators.SurvivalEstimator : The base class.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.testing import check_estimator
    >>> check_estimator(cs.WeibullRegression())
    """
    for method in ("fit", "predict_distribution", "get_params", "set_params"):
        if not callable(getattr(estimator, method, None)):
            raise AssertionError(
                f"{type(estimator).__name__} has no {method}; inherit from censcore.estimators."
                "SurvivalEstimator or sklearn.base.BaseEstimator."
            )
    candidate = Candidate(estimator, k, seed)
    expect_kept(RULES, candidate, repr(estimator), "estimators")


_SUBJECTS = 240
_LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


class Candidate:
    """An estimator, and data to fit it to: k event times under uniform censoring, with covariates."""

    def __init__(self, estimator: Any, k: int, seed: int) -> None:
        self.estimator, self.k, self.seed = estimator, k, seed
        scenario: Any = WeibullScenario("uniform") if k == 1 else LogNormalScenario(k, mixture=False)
        data = scenario.sample(_SUBJECTS, seed=seed)
        self.X, self.y = data.X, data.y
        self.times = np.quantile(self.y.time, _LEVELS)
        self.of_censoring = isinstance(estimator, Censoring)
        forecast = data.C if self.of_censoring else data.T
        self.latent = RightCensored(forecast, np.ones(forecast.shape))
        self.last_time = 0.8 * float(data.C.max())

    def new(self) -> Any:
        """An unfitted copy, seeded where that is possible."""
        copy = clone(self.estimator)
        return copy.set_params(random_state=self.seed) if self.is_seeded else copy

    @property
    def is_seeded(self) -> bool:
        """Whether the estimator takes a seed."""
        return "random_state" in self.estimator.get_params(deep=False)

    @property
    def is_random(self) -> bool:
        """Whether fitting is random: the seed of :class:`Censoring` is for folds only."""
        return self.is_seeded and not self.of_censoring

    @cached_property
    def fitted(self) -> Any:
        """The estimator fitted to all subjects; not to be changed."""
        return self.new().fit(self.X, self.y)

    @cached_property
    def distribution(self) -> Distribution:
        """What the fitted estimator predicts for its training subjects."""
        return self.fitted.predict_distribution(self.X)

    def survival(self, distribution: Distribution) -> np.ndarray:
        """P(T_j > t) of all subjects, (n, q, k), whether they share a distribution or not."""
        parts = [distribution.marginal(j) for j in range(distribution.k)]
        values = [to_numpy(part.sf(self.times[None, :])).astype(np.float64) for part in parts]
        return np.stack([np.broadcast_to(v, (_SUBJECTS, len(self.times))) for v in values], axis=2)

    def expect_same(
        self,
        distribution: Distribution,
        expected: np.ndarray,
        what: str,
        redrawn: bool = False,
        rtol: float = 1e-6,
    ) -> None:
        """Check survival probabilities, up to sampling error where samples are redrawn."""
        assert isinstance(distribution, Distribution), (
            f"{what}: predict_distribution gives {type(distribution).__name__}."
        )
        got = self.survival(distribution)
        tolerance = rtol * np.ones_like(got)
        if redrawn and isinstance(distribution, Ensemble):
            p = (got + expected) / 2
            tolerance = 6 * np.sqrt(2 * p * (1 - p) / distribution.m) + 2 / distribution.m
        off = np.abs(got - expected) > tolerance
        assert not off.any(), (
            f"{what}: P(T > t) differs; got {got[off][0]:.6g}, expected {expected[off][0]:.6g}."
        )


EstimatorRule = Callable[[Candidate], None]


def parameters(c: Candidate) -> None:
    """Parameters are stored as given; clone, set_params and fit do not change them."""
    before = c.estimator.get_params(deep=False)
    model = clone(c.estimator)
    assert model is not c.estimator, "clone gives the same object."
    fitted = c.new()
    stored = fitted.get_params(deep=False)
    fitted.fit(c.X, c.y)
    after = fitted.get_params(deep=False)
    changed = [name for name in stored if stored[name] is not after[name]]
    assert not changed, (
        f"fit changes the parameters {changed}; store what is learned under names that end in an underscore."
    )
    assert list(before) == list(model.get_params(deep=False)), "clone loses parameters."
    call = partial(model.set_params, no_such_parameter=1)
    expect_error(call, "set_params with a name that is no parameter", ValueError)


def unfitted(c: Candidate) -> None:
    """Before fit, predict_distribution raises NotFittedError."""
    try:
        c.new().predict_distribution(c.X)
    except NotFittedError:
        return
    except (ValueError, AttributeError) as error:
        raise AssertionError(
            f"got {type(error).__name__}, expected sklearn.exceptions.NotFittedError."
        ) from error
    raise AssertionError("It predicts without having been fitted.")


def fitting(c: Candidate) -> None:
    """The method fit returns the estimator and changes neither X nor y."""
    X, time, event = c.X.copy(), c.y.time.copy(), c.y.event.copy()
    model = c.new()
    assert model.fit(X, RightCensored(time, event)) is model, "fit does not return self."
    model.predict_distribution(X)
    assert np.array_equal(X, c.X), "X is changed."
    assert np.array_equal(time, c.y.time), "The times of y are changed."
    assert np.array_equal(event, c.y.event), "The events of y are changed."


def order_of_arguments(c: Candidate) -> None:
    """The arguments of fit are X, y and, where it takes weights, sample_weight, in this order."""
    parameters = inspect.signature(c.estimator.fit).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [parameter.name for parameter in parameters if parameter.kind in positional]
    assert names[2:3] in ([], ["sample_weight"]), (
        f"fit: got {', '.join(names)}, expected X, y, sample_weight; make other arguments keyword-only."
    )


def forecasts(c: Candidate) -> None:
    """predict_distribution gives a distribution that keeps the contract, one per subject or one for all."""
    assert isinstance(c.distribution, Distribution), (
        f"got {type(c.distribution).__name__}, expected a Distribution."
    )
    assert len(c.distribution) in (1, len(c.y)), (
        f"got {len(c.distribution)} distributions, expected 1 or {len(c.y)}."
    )
    times = 1 if c.of_censoring else c.k
    assert c.distribution.k == times, f"got distributions of {c.distribution.k} times, expected {times}."
    few = c.distribution.take(slice(0, 3)) if len(c.distribution) > 1 else c.distribution
    check_distribution(few)


def subjects(c: Candidate) -> None:
    """The prediction for a subject depends on its covariates alone, not on other subjects or the order."""
    back = c.fitted.predict_distribution(c.X[::-1])
    c.expect_same(
        back, c.survival(c.distribution)[::-1], "subjects in reverse order", redrawn=True, rtol=1e-4
    )
    one = c.fitted.predict_distribution(c.X[:1])
    assert len(one) == 1, f"One subject: got {len(one)} distributions, expected 1."


def repetition(c: Candidate) -> None:
    """The same seed gives the same distribution again, also after a fit to other data."""
    expected = c.survival(c.distribution)
    c.expect_same(c.new().fit(c.X, c.y).predict_distribution(c.X), expected, "a second fit")
    used = c.new().fit(c.X[:150, :-1], c.y[:150])
    c.expect_same(used.fit(c.X, c.y).predict_distribution(c.X), expected, "a fit after one to other data")


def copies(c: Candidate) -> None:
    """A fitted estimator can be copied, pickled, and saved where it has save and load."""
    expected = c.survival(c.distribution)
    twins = {"deepcopy": copy.deepcopy(c.fitted), "pickle": pickle.loads(pickle.dumps(c.fitted))}
    if hasattr(c.fitted, "save"):
        with tempfile.TemporaryDirectory() as folder:
            c.fitted.save(Path(folder) / "model")
            twins["save and load"] = type(c.fitted).load(Path(folder) / "model")
    for what, twin in twins.items():
        c.expect_same(twin.predict_distribution(c.X), expected, what)


def frames(c: Candidate) -> None:
    """A data frame with the same numbers, and a structured outcome, give the same distribution."""
    if find_spec("pandas") is None:
        return
    import pandas as pd

    expected = c.survival(c.distribution)
    frame = pd.DataFrame(c.X, columns=[f"x{j}" for j in range(c.X.shape[1])])
    c.expect_same(c.new().fit(frame, c.y).predict_distribution(frame), expected, "a frame")
    if c.k == 1:
        y = np.empty(len(c.y), dtype=[("event", bool), ("time", np.float64)])
        y["event"], y["time"] = c.y.event, c.y.time
        c.expect_same(c.new().fit(c.X, y).predict_distribution(c.X), expected, "a structured outcome")


def weights(c: Candidate) -> None:
    """Weights of one change nothing; without randomness, a subject of weight zero plays no part."""
    if "sample_weight" not in inspect.signature(c.estimator.fit).parameters:
        return
    try:
        equal = c.new().fit(c.X, c.y, sample_weight=np.ones(len(c.y)))
    except (TypeError, InvalidInputError):  # a wrapper whose model takes no weights says so
        return
    c.expect_same(equal.predict_distribution(c.X), c.survival(c.distribution), "weights of one", rtol=1e-5)
    if c.is_random:
        return
    first = np.arange(len(c.y)) < 150
    weighted = c.new().fit(c.X, c.y, sample_weight=first.astype(float))
    fewer = c.new().fit(c.X[first], c.y[first]).predict_distribution(c.X)
    c.expect_same(weighted.predict_distribution(c.X), c.survival(fewer), "weights of zero", rtol=1e-5)


def bad_input(c: Candidate) -> None:
    """Inconsistent data raise an error."""
    time = c.y.time
    wrong: dict[str, Any] = {
        "X with fewer rows than y": lambda: c.new().fit(c.X[:-1], c.y),
        "a bare tuple for y": lambda: c.new().fit(c.X, (time, c.y.event)),
        "plain numbers for y": lambda: c.new().fit(c.X, time),
    }
    if hasattr(c.fitted, "n_features_in_"):
        wrong["X with a column less than in fit"] = lambda: c.fitted.predict_distribution(c.X[:, :-1])
    for what, call in wrong.items():
        expect_error(call, f"It accepts {what}, and", ValueError, TypeError)


def learning(c: Candidate) -> None:
    """Predictions score better than the same predictions with half or twice the times."""
    samples = np.asarray(c.distribution.sample(200, 1), dtype=np.float64)

    def score(factor: float) -> float:
        distribution = Ensemble(factor * samples)
        return float(energy_score(c.latent, distribution, PointMass(np.inf), horizon=c.last_time).mean())

    for factor in (0.5, 2.0):
        assert score(1.0) < score(factor), (
            f"The loss is {score(1.0):.4f}, and {score(factor):.4f} with times multiplied by {factor:g}."
        )


def atoms_of_c(c: Candidate) -> None:
    """A common end of follow-up is the end of C; on a grid of visits P(C > t) is right or raises an error.

    Otherwise inverse-probability weights and positivity are silently wrong.
    """
    if c.k > 1 or c.of_censoring:
        return
    rng = np.random.default_rng(c.seed)
    T = c.latent.time
    end = float(np.quantile(T, 0.7))
    u = rng.random(len(T))

    def survival(C: np.ndarray, times: list[float]) -> tuple[np.ndarray, np.ndarray]:
        """P(C >= t) and P(C > t) of all subjects."""
        y = RightCensored(np.minimum(T, C), T <= C)
        predicted: Any = Censoring(c.new()).fit(c.X, y).predict_distribution(c.X)
        t = np.array([times])
        return to_numpy(predicted.sf_left(t)), to_numpy(predicted.sf(t))

    before, after = survival(np.minimum(2 * end * u, end), [end])
    assert after.max() == 0, f"All are censored at the end, but P(C > end) is up to {after.max():.3g}."
    mean = before.mean()
    assert abs(mean - 0.5) < 0.2, f"Half are censored before the end, but P(C >= end) is {mean:.3g}."
    declared = bool(getattr(c.estimator, "represents_atoms", False))
    try:
        before, after = survival(end * np.ceil(4 * u) / 4, [end / 4, end / 2, 3 * end / 4])
    except InvalidInputError as error:
        if declared:
            raise AssertionError(f"It declares represents_atoms, but raises: {error}") from error
        return
    off = max(
        np.abs(before.mean(axis=0) - [1.0, 0.75, 0.5]).max(),
        np.abs(after.mean(axis=0) - [0.75, 0.5, 0.25]).max(),
    )
    assert off < 0.15, f"With censoring at visits P(C > t) is off by {off:.3g}."


def delayed_entry(c: Candidate) -> None:
    """Delayed entry is taken into account, or raises an UnsupportedOutcomeError; entries of zero are none."""
    rng = np.random.default_rng(c.seed)
    first = c.y.time.reshape(len(c.y), -1).min(axis=1)
    entry = rng.uniform(0.0, float(np.quantile(first, 0.7)), len(first)) * (rng.random(len(first)) < 0.7)
    entered = np.nonzero(first > entry)[0]
    X, time, event = c.X[entered], c.y.time[entered], c.y.event[entered]
    try:
        late = c.new().fit(X, RightCensored(time, event, entry=entry[entered])).predict_distribution(c.X)
    except UnsupportedOutcomeError:
        return
    ignored = c.survival(c.new().fit(X, RightCensored(time, event)).predict_distribution(c.X))
    changed = np.abs(c.survival(late) - ignored).max()
    assert changed > 0.01, "Entries change nothing: respect them, or raise an UnsupportedOutcomeError."
    none = c.new().fit(X, RightCensored(time, event, entry=0.0)).predict_distribution(c.X)
    c.expect_same(none, ignored, "entries of zero")


def intervals(c: Candidate) -> None:
    """Interval-censored data are taken into account, or raise an UnsupportedOutcomeError."""
    if c.k > 1 or c.of_censoring:
        return
    T = c.latent.time
    width = float(np.median(T))
    lower = width * np.floor(T / width)
    try:
        fitted = c.new().fit(c.X, IntervalCensored(lower, lower + width))
    except UnsupportedOutcomeError:
        return
    survival = to_numpy(fitted.predict_distribution(c.X).sf(np.array([[width, 2 * width]]))).mean(axis=0)
    off = np.abs(survival - [np.mean(width < T), np.mean(2 * width < T)]).max()
    assert off < 0.1, f"Of times between visits P(T > t) at the visits is off by {off:.3g}."


RULES: tuple[EstimatorRule, ...] = (
    parameters, unfitted, fitting, order_of_arguments, forecasts, subjects, repetition, copies, frames,
    weights, bad_input, learning, atoms_of_c, delayed_entry, intervals,
)  # fmt: skip
