"""Distributions, estimators, outcomes and comparisons survive copies, other threads and other processes.

Every exported class has an example here; a class that is exported tomorrow and has none fails.
"""

from __future__ import annotations

import copy
import inspect
import io
import os
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from tests.contracts.distributions import DISTRIBUTIONS
from tests.learning.small_trainings import engression, likelihood

import censcore as cs
from censcore import distributions, estimators, evaluation, outcomes

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("brief_members")

N = 40
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 2))
T, C = RNG.exponential(np.exp(X[:, :1]), (N, 2)), RNG.uniform(0.1, 3.0, N)
Y = cs.RightCensored(np.minimum(T[:, 0], C), T[:, 0] <= C, C)
JOINT = cs.RightCensored(np.minimum(T, C[:, None]), C[:, None] >= T, C)
RISKS = cs.CompetingRisks(np.minimum(T.min(axis=1), C), np.where(T.min(axis=1) <= C, 1 + T.argmin(axis=1), 0))
VISITS = np.tile([0.5, 1.0, 2.0], (N, 1))
INTERVALS = cs.IntervalCensored(
    np.where(T[:, 0] > 2, 2.0, np.where(T[:, 0] > 1, 1.0, np.where(T[:, 0] > 0.5, 0.5, 0.0))),
    np.where(T[:, 0] > 2, np.inf, np.where(T[:, 0] > 1, 2.0, np.where(T[:, 0] > 0.5, 1.0, 0.5))),
    visits=VISITS,
)
NETWORK = {"epochs": 1, "batch_size": 20, "device": "cpu", "random_state": 0}
TIMES = np.array([0.3, 0.9, 1.7])


# ---- examples of everything that is exported -------------------------------------------------------

OUTCOMES: dict[str, Callable[[], Any]] = {
    "RightCensored": lambda: Y,
    "CompetingRisks": lambda: RISKS,
    "IntervalCensored": lambda: INTERVALS,
    "SemiCompetingRisks": lambda: cs.SemiCompetingRisks(np.cumsum(T, axis=1), np.ones((N, 2), dtype=bool)),
}

PUBLISHED = cs.PublishedCox({0: 0.5}, cs.Exponential(0.7))
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "AalenJohansen": lambda: cs.AalenJohansen().fit(None, RISKS),
    "FineGray": lambda: cs.FineGray(cause=1).fit(X, RISKS),
    "Adapted": lambda: cs.Adapted(cs.WeibullRegression()).fit(X, Y),
    "CauseSpecific": lambda: cs.CauseSpecific(cs.CoxRegression()).fit(X, RISKS),
    "Censoring": lambda: cs.Censoring(cs.KaplanMeier()).fit(X, Y),
    "CoxRegression": lambda: cs.CoxRegression().fit(X, Y),
    "KaplanMeier": lambda: cs.KaplanMeier().fit(None, Y),
    "LogLogisticRegression": lambda: cs.LogLogisticRegression().fit(X, Y),
    "LogNormalRegression": lambda: cs.LogNormalRegression().fit(X, Y),
    "PiecewiseExponentialRegression": lambda: cs.PiecewiseExponentialRegression(breaks=2).fit(X, Y),
    "Turnbull": lambda: cs.Turnbull().fit(None, INTERVALS),
    "WeibullRegression": lambda: cs.WeibullRegression().fit(X, Y),
    "CensoredEngression": lambda: engression(
        width=8, depth=1, noise_dim=2, n_samples=8, n_networks=2, **NETWORK
    ).fit(X, JOINT),
    "MixtureDensityNetwork": lambda: cs.MixtureDensityNetwork(
        width=4, n_samples=8, epochs=1, random_state=0
    ).fit(X, JOINT),
    "Stacking": lambda: cs.Stacking(
        [("km", cs.KaplanMeier()), ("weibull", cs.WeibullRegression())], random_state=0
    ).fit(X, Y),
    "BoostedHazards": lambda: cs.BoostedHazards(max_iter=10, random_state=0).fit(X, Y),
    "JointFromMargins": lambda: cs.JointFromMargins(cs.WeibullRegression()).fit(X, JOINT),
    "BestForecast": lambda: cs.BestForecast(n_samples=8, epochs=1, random_state=0).fit(X, JOINT),
    "CopulaWeibull": lambda: likelihood(cs.CopulaWeibull, **NETWORK).fit(X, JOINT),
    "JointGridModel": lambda: likelihood(cs.JointGridModel, bins=3, hidden=(4,), **NETWORK).fit(X, JOINT),
    "WithCensoring": lambda: cs.WithCensoring(cs.WeibullRegression()).fit(X, Y),
    "PublishedCox": lambda: PUBLISHED,
    "PublishedAFT": lambda: cs.PublishedAFT({0: -0.3}, intercept=1.0, scale=0.8),
    "PublishedCauses": lambda: cs.PublishedCauses(
        {name: cs.PublishedCox({0: 0.5}, cs.Exponential(0.3)) for name in ("relapse", "death")}
    ),
}

TWO = {"a": cs.Exponential(np.exp(-X[:, 0])), "b": cs.Exponential(1.0)}
OPTIONS: dict[str, Any] = {"discrimination": False, "reference": None, "horizon": 2.0}


def compared(**options: Any) -> Any:
    return cs.compare(TWO, Y, scores=["crps", "brier_score"], times=TIMES, **OPTIONS | options)


EVALUATIONS: dict[str, Callable[[], Any]] = {
    "Comparison": lambda: compared(discrimination=True, by={"group": np.arange(N) % 2}),
    "Comparison, several times": lambda: cs.compare(
        {name: cs.Independent([F, F]) for name, F in TWO.items()},
        JOINT,
        scores=["energy_score"],
        **OPTIONS,
    ),
    "Comparison, causes": lambda: cs.compare(
        {name: cs.CauseSpecificHazards([F, F]) for name, F in TWO.items()},
        RISKS,
        cs.Uniform(0.1, 3.0),
        scores=["brier_score"],
        times=TIMES,
        **OPTIONS,
    ),
    "Comparison, folds": lambda: cs.cross_validate(
        {"km": cs.KaplanMeier(), "weibull": cs.WeibullRegression()}, X, Y, cv=2, scores=["crps"], **OPTIONS
    ),
    "LandmarkComparison": lambda: cs.compare_landmarks(
        TWO, Y, landmarks=[0.05, 0.1], scores=["crps"], **OPTIONS
    ),
    "DependentCensoringSensitivity": lambda: cs.dependent_censoring_sensitivity(
        TWO, Y, times=TIMES[:1], tau=[0.0, 0.3], replicates=2
    ),
    "CensoringDiagnostic": lambda: cs.censoring_diagnostic(Y, cs.Uniform(0.1, 3.0)),
    "CalibrationCurve": lambda: compared().calibration("a", 0.9),
    "Bootstrap": lambda: cs.Bootstrap(10),
    "Folds": lambda: cs.Folds(3, repeats=2),
    "Sample": lambda: cs.Sample(X, Y, weight=np.arange(N), groups=np.arange(N) // 2),
    "OutcomeTable": lambda: cs.OutcomeTable("predictions.parquet", "t", "d"),
    "Verdict": lambda: compared().verdict,
    "Evaluation": lambda: cs.evaluate(TWO["a"], Y, scores=["crps"], horizon=2.0),
    "Validation": lambda: cs.validate(TWO["a"], Y, time=0.9),
    "SitePool": lambda: cs.validate(TWO["a"], Y, time=0.9, sites=np.arange(N) % 3).sites,
    "Update": lambda: cs.update(PUBLISHED, X, Y, time=1.0, cv=2, nested=False),
    "ValidationPlan": lambda: cs.plan_validation(
        time=5.0, linear_predictor=(0.0, 0.8), risk=0.4, width={"O/E": 0.5}, assurance=None, simulations=20
    ),
    "Importance": lambda: cs.importance(
        cs.WeibullRegression().fit(X, Y), X, Y, cs.Uniform(0.1, 3.0), permutations=2, horizon=2.0
    ),
}

EXAMPLES: dict[str, Callable[[], Any]] = {**DISTRIBUTIONS, **OUTCOMES, **ESTIMATORS, **EVALUATIONS}


def classes_of(module: Any) -> set[str]:
    found = {name: getattr(module, name) for name in module.__all__}
    return {name for name, kind in found.items() if inspect.isclass(kind) and not inspect.isabstract(kind)}


def test_every_exported_class_has_an_example():
    shown = {type(make()).__name__ for make in {**DISTRIBUTIONS, **OUTCOMES}.values()}
    assert classes_of(distributions) <= shown
    # what is neither built nor kept by callers: exceptions, protocols, kinds of data that are read once
    named = {*EXAMPLES, *shown}
    exported = {
        name
        for name in cs._HOME
        if inspect.isclass(getattr(cs, name)) and not inspect.isabstract(getattr(cs, name))
    }
    others = classes_of(estimators) | classes_of(evaluation) | classes_of(outcomes) | exported
    assert others - named <= {"EventOfCause", "LandmarkCox", "NotFitted", "StartStop"}


# ---- what an object answers ------------------------------------------------------------------------


def answers(thing: Any) -> list[Any]:
    """Numbers and texts that use what the object keeps from one call to the next."""
    if isinstance(thing, cs.Distribution) and not hasattr(thing, "cif"):
        return _of_distribution(thing)
    if hasattr(thing, "cif"):
        return [_numbers(thing.cif(TIMES[None, :])), *answers(thing.cause(1)), repr(thing)]
    if hasattr(thing, "predict_distribution"):
        return [repr(clone(thing)), *answers(thing.predict_distribution(X[:3]))]
    if hasattr(thing, "to_json"):
        return [thing.to_json(), repr(thing)]
    return [repr(thing)]


@cache
def answers_of(name: str) -> list[Any]:
    """The answers of a fresh example."""
    return answers(EXAMPLES[name]())


def _of_distribution(F: Any) -> list[Any]:
    if F.k > 1:
        parts = (F.marginal(0).sf(0.5), F.first().sf(0.5))
        return [_numbers(F.sample(3, seed=1)), *map(_numbers, parts), repr(F)]
    found = [F.sf(TIMES[None, :]), F.icdf(0.4), F.integrated_sf(0.1, 0.7), F.sample(3, seed=1)]
    return [*map(_numbers, found), repr(F)]


def _numbers(values: Any) -> list[Any]:
    return [np.asarray(part).tolist() for part in (values if isinstance(values, tuple) else [values])]


# ---- copies ----------------------------------------------------------------------------------------


def by_joblib(thing: Any) -> Any:
    stream = io.BytesIO()
    joblib.dump(thing, stream)
    stream.seek(0)
    return joblib.load(stream)


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "joblib": by_joblib,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_copies_answer_alike_before_and_after_use(name):
    thing = EXAMPLES[name]()
    assert name in DISTRIBUTIONS or type(thing).__name__ == name.partition(",")[0]
    fresh = {how: COPIES[how](thing) for how in ("pickle", "deepcopy")}
    expected = answers_of(name)
    assert answers(thing) == expected
    used = {how: COPIES[how](thing) for how in ("copy", "deepcopy", "joblib")}
    for how, copied in [*fresh.items(), *used.items()]:
        assert answers(copied) == expected, how


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_clone_is_an_unfitted_twin(name):
    fitted = ESTIMATORS[name]()
    twin = clone(fitted)
    assert repr(twin) == repr(clone(twin))
    assert not [attribute for attribute in vars(twin) if attribute.endswith("_")]


# ---- threads ---------------------------------------------------------------------------------------

THREADS = 4


@contextmanager
def frequent_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def in_threads(works: list[Callable[[], Any]]) -> list[Any]:
    """All at once; what each returns or raises."""
    barrier, found = threading.Barrier(len(works)), [None] * len(works)

    def run(i: int) -> None:
        barrier.wait()
        try:
            found[i] = works[i]()
        except BaseException as error:
            found[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(works))]
    with frequent_switches():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_threads_that_share_an_object_get_the_answers_of_one(name):
    expected, shared = answers_of(name), EXAMPLES[name]()
    copied = partial(COPIES["pickle"], shared), partial(COPIES["deepcopy"], shared)
    *found, first, second = in_threads([partial(answers, shared)] * THREADS + list(copied))
    assert found == [expected] * THREADS
    assert answers(first) == answers(second) == expected


class Meanwhile:
    """Stands for another thread: while it is copied, the object that holds it keeps one value more."""

    def __init__(self, holder: Any) -> None:
        self.holder = holder

    def __reduce__(self) -> Any:
        for kept in (vars(self.holder), *(vars(self.holder).get(name) for name in KEPT)):
            if isinstance(kept, dict):
                kept.update({f"more {i}": i for i in range(len(kept), len(kept) + 3)})
        return int, (1,)


KEPT = ("_remembered", "made")
COMPARISONS = [name for name in EVALUATIONS if name.startswith("Comparison")]


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
@pytest.mark.parametrize("name", ["Weibull", "Ensemble", "Copula, Clayton", *COMPARISONS])
def test_an_object_is_copied_while_it_keeps_more_values(name, how):
    thing = EXAMPLES[name]()
    answers(thing)
    for kept in [vars(thing), *(vars(thing).get(name) for name in KEPT)]:
        if isinstance(kept, dict):
            kept["meanwhile"] = Meanwhile(thing)
            kept["after it"] = 0
    copied = COPIES[how](thing)
    assert type(copied) is type(thing)


# ---- other processes -------------------------------------------------------------------------------


def answers_by_name(things: dict[str, Any]) -> dict[str, list[Any]]:
    return {name: answers(thing) for name, thing in things.items()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_after_a_fork():
    """Objects that were used in the parent answer alike in a child, which has none of its threads."""
    torch.set_num_threads(1)
    things = {name: make() for name, make in EXAMPLES.items()}
    in_threads([partial(answers_by_name, {"Weibull": things["Weibull"]})] * 2)
    expected = {name: answers_of(name) for name in EXAMPLES}
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, which is the point
        child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as stream:
                pickle.dump(answers_by_name(things), stream)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    assert pickle.loads(data) == expected


@pytest.mark.slow
def test_in_workers_of_joblib():
    things = {name: make() for name, make in EXAMPLES.items()}
    expected = {name: answers_of(name) for name in EXAMPLES}
    names = list(things)
    with joblib.parallel_config(backend="loky"):
        found = joblib.Parallel(n_jobs=2, batch_size=len(names))(
            joblib.delayed(answers)(things[name]) for name in names
        )
    assert dict(zip(names, found, strict=True)) == expected
