"""Survival at a grid of times, for libraries that know no more, and risk scores without a baseline."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from censcore.distributions import ProportionalHazards
from censcore.distributions.univariate.monotone import monotone as nearest
from censcore.estimators.risk import from_risk, proportional_hazards
from censcore.exceptions import InvalidInputError, RepairWarning

# Log hazard ratios whose exponentials, and sums of them, are safe in double precision.
_SAFE_LOG = 600.0


class Curves(NamedTuple):
    """Survival probabilities (n, q) of n subjects at q times, of a curve that is continuous between them."""

    times: np.ndarray
    sf: np.ndarray


def needs_covariates(model: Any, X: Any) -> None:
    """Check that covariates are there."""
    if X is None:
        raise InvalidInputError(f"{type(model).__name__} needs the covariates X to forecast; got None.")


def monotone(sf: np.ndarray, model: Any) -> np.ndarray:
    """Make curves (n, q) monotone, with a warning that says how far they were from it.

    For models that fit each time on its own and promise no monotone curve; see
    :func:`censcore.distributions.univariate.monotone.monotone`.
    """
    levels, repair = nearest(sf, falls=True, repair=True)
    if repair is not None:
        warnings.warn(f"{type(model).__name__}: {repair}.", RepairWarning, stacklevel=2)
    return levels


def completed(
    model: Any,
    X: Any,
    train: tuple[Any, Any] | None,
    log_risk: Callable[[Any], np.ndarray],
    without: str = "with Cox's loss gives risk scores and no survival probabilities. Pass",
) -> ProportionalHazards:
    """A model of log hazard ratios, completed by Breslow's baseline of the training subjects.

    ``without`` is what the model lacks, for an error where there are no training subjects.
    """
    needs_covariates(model, X)
    if train is None or train[0] is None:
        raise InvalidInputError(
            f"{type(model).__name__} {without} train=(X_train, y_train), from which the baseline hazard is "
            "estimated; or use from_risk(train_risk, y_train, test_risk)."
        )
    X_train, y_train = train
    return from_risk(log_risk(X_train), y_train, log_risk(X))


def from_baseline(times: np.ndarray, hazard: np.ndarray, eta: np.ndarray) -> ProportionalHazards:
    """A Cox model by its cumulative baseline hazard (J,), a step function, and log hazard ratios."""
    jumps = np.diff(hazard, prepend=0.0) > 0
    return proportional_hazards(times[jumps], np.log(hazard[jumps]), eta)


def with_baseline(
    model: Any,
    X: Any,
    train: tuple[Any, Any] | None,
    log_risk: Callable[[Any], np.ndarray],
    times: np.ndarray,
    hazard: np.ndarray,
) -> ProportionalHazards:
    """A Cox model by the cumulative baseline hazard (J,) that the library has, and log hazard ratios.

    Libraries sum exponentials of linear predictors, which overflow or vanish where covariates are far from
    zero. The baseline is then estimated again from the training subjects.
    """
    times, hazard = np.asarray(times, dtype=np.float64), np.asarray(hazard, dtype=np.float64)
    eta = np.asarray(log_risk(X), dtype=np.float64).reshape(-1)
    if np.isfinite(hazard).all() and (hazard > 0).any() and np.abs(eta).max() < _SAFE_LOG:
        return from_baseline(times, hazard, eta)
    without = (
        "has a baseline hazard beyond the range of floating-point numbers: got log hazard ratios up to "
        f"{np.abs(eta).max():.0f}. Center the covariates, or pass"
    )
    return completed(model, X, train, log_risk, without)
