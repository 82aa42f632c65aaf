"""An outcome, a forecast and a censoring distribution in one library, of the same dimension."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from censcore._arrays import Array, namespace, one_namespace, to_numpy
from censcore._validation import check_instance, name_subjects
from censcore.distributions import Distribution, TimeAndCause, Univariate
from censcore.exceptions import (
    ContradictionError,
    InvalidInputError,
    InvalidTypeError,
    UnsupportedOutcomeError,
)
from censcore.outcomes import EventOfCause, RightCensored
from censcore.scores.inputs.known_at import known_to_exceed


def check_given_entry(y: EventOfCause, F: Univariate) -> None:
    """One cause is scored given no event of any cause before the entry, which F_j does not determine."""
    passed = to_numpy(F.cdf(known_to_exceed(y.entry))) > 1e-6
    bad = np.nonzero(np.broadcast_to(passed, (len(y),)))[0]
    if bad.size:
        raise UnsupportedOutcomeError(
            "With delayed entry the forecast of one cause must be that given no event of any cause before "
            f"the entry; it is not in {name_subjects(bad)}. Pass forecast.given_survival(y.entry).cause(j)."
        )


def check_is_distribution(distribution: Any, name: str) -> None:
    """Check that a forecast or a censoring distribution is one, and not of competing risks."""
    if isinstance(distribution, Univariate):
        return
    if isinstance(distribution, TimeAndCause):
        raise InvalidTypeError(
            f"{name}: got {type(distribution).__name__}, a forecast of competing risks, expected the "
            "distribution of one event time. Pass forecast.cause(j) with y.cause(j), forecast.any_cause() "
            "with y.any_cause(), or the outcome of all causes, CompetingRisks(time, cause)."
        )
    if not isinstance(distribution, Distribution):
        check_instance(distribution, name)
        if hasattr(distribution, "predict_distribution"):
            kind = type(distribution).__name__
            raise InvalidTypeError(
                f"{name} must be a censcore Distribution; got the estimator {kind}. Fit it and predict: "
                f"{kind}(...).fit(X, y).predict_distribution(X)."
            )
        raise InvalidTypeError(
            f"{name} must be a censcore Distribution; got {type(distribution).__name__}. Wrap it: "
            "Step(times, sf=matrix) for survival curves, Ensemble(samples), Quantiles(levels, values), or a "
            "parametric distribution such as Weibull(shape, scale)."
        )


class Size(NamedTuple):
    """What is asked of a distribution first.

    How many subjects and event times it has, and an array of its library and precision; None for one that was
    made of plain numbers.
    """

    n: int
    k: int
    model: Array


def size_of(distribution: Distribution) -> Size:
    """Return the size of a distribution, which it remembers."""

    def make() -> Size:
        model = None if distribution.is_neutral else distribution.reference
        return Size(len(distribution), distribution.k, model)

    return distribution.remember("size", make)


def one_library(
    y: RightCensored, F: Distribution, of_F: Array, C: Distribution, of_C: Array
) -> tuple[RightCensored, Any, Any]:
    """All parts in one library; a mixture of them is an error, and plain numbers join the others.

    The forecast decides the precision, since it is the large part: y and C follow it.
    """
    if not type(y.time) is type(of_F) is np.ndarray or (of_C is not None and type(of_C) is not np.ndarray):
        one_namespace(outcome=y.time, forecast=of_F, censoring=of_C)
    model: Any = y.time if of_F is None else of_F
    y = y if y.time.dtype == model.dtype else y.like(model)
    F = F.like(model) if of_F is None else F
    return y, F, C if of_C is not None and of_C.dtype == model.dtype else C.like(model)


def in_dtype_of(distribution: Distribution, model: Array) -> Distribution:
    """A distribution in the library and precision of an array."""
    fits = not distribution.is_neutral and distribution.reference.dtype == model.dtype
    return distribution if fits else distribution.like(model)


def check_dimensions(y: RightCensored, F: Distribution, C: Distribution, joint: bool) -> None:
    """Check that outcome, forecast and censoring distribution are of as many times."""
    if y.time.ndim > 1 and not joint:
        raise InvalidInputError(
            f"This score is for one event time per subject, (n,); got an outcome of shape {y.shape}. Score "
            "each coordinate, score(y.marginal(j), forecast.marginal(j), ...), or the joint distribution by "
            "energy_score."
        )
    k, coordinates = y.k, C.k
    if F.k != k:
        raise InvalidInputError(
            f"The outcome has {k} event times per subject and the forecast {F.k}; they must agree."
        )
    if coordinates not in (1, k):
        raise InvalidInputError(
            f"The censoring distribution has {coordinates} coordinates; expected one (shared) or {k} (one "
            "for each event time)."
        )
    if k == 1:
        return
    if coordinates == 1 and not y.shares_censoring:
        raise ContradictionError(
            "The censoring distribution is of one time shared by the coordinates, but the outcome has one "
            f"censoring time per coordinate (in {name_subjects(y.censored_apart())}). Pass "
            "Independent([C_1, ..., C_k]), or leave it out where the outcome has censoring_time."
        )
    if coordinates > 1 and y.censoring_time is not None and y.censoring_time.ndim == 1 and not _knows_all(C):
        raise ContradictionError(
            f"The censoring distribution has {coordinates} independent times, but the outcome has one "
            "censoring_time shared by its coordinates. Pass the distribution of that one time, or leave it "
            "out."
        )


def _knows_all(C: Distribution) -> bool:
    return all(not np.isnan(to_numpy(C.marginal(j).known_time())).any() for j in range(C.k))


def by_censoring_time(y: RightCensored, C: Distribution) -> list[tuple[RightCensored, Univariate]]:
    """What was seen of every censoring time, as an outcome (n,), and its distribution.

    Of one C shared by several event times it is the largest time, an event only where all of them are.
    """
    if y.k == 1 or C.k > 1:
        return [(y.marginal(j), C.marginal(j)) for j in range(C.k)]
    xp = namespace(y.time)
    together = RightCensored(xp.max(y.time, axis=1), xp.all(y.event, axis=1), y.shared_censoring_time())
    return [(together, C.marginal(0))]
