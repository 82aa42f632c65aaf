"""Calibration of joint probabilities: forecasts of several events together, against the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["JOINT_EVENTS", "joint_calibration"]

_BINS = np.linspace(0.0, 1.0, 11)

#: Events that involve several coordinates, for times (..., k); all lie within follow-up.
JOINT_EVENTS: dict[str, Callable[[np.ndarray], Any]] = {
    "all by 1.5": lambda t: (t <= 1.5).all(axis=-1),
    "all by 3": lambda t: (t <= 3.0).all(axis=-1),
    "one but not all by 1.5": lambda t: (t <= 1.5).any(axis=-1) & ~(t <= 1.5).all(axis=-1),
    "first before second, by 3": lambda t: (t[..., 0] <= 3.0) & (t[..., 0] < t[..., 1]),
}


def joint_calibration(forecast: np.ndarray, truth: np.ndarray, happened: np.ndarray) -> dict[str, Any]:
    """Predicted probabilities of joint events, beside the true ones and the outcomes.

    Parameters
    ----------
    forecast, truth : array, (n, m, k)
        Samples of the forecast distribution and of the true one for each subject.
    happened : array, (n, k)
        The event times.

    Returns
    -------
    dict
        Per event ``bias`` and ``rmse`` of the predicted against the true probability (the Monte Carlo noise
        of both is taken out of the second), and a reliability curve: number of subjects, mean predicted
        probability and share of subjects with the event in each tenth of the predicted probability.

    Examples
    --------
    >>> import numpy as np
    >>> from censcore_studies.multivariate import joint_calibration
    >>> rng = np.random.default_rng(0)
    >>> early, right = rng.exponential(0.7, (500, 200, 2)), rng.exponential(1.0, (500, 200, 2))
    >>> happened = rng.exponential(1.0, (500, 2))
    >>> round(joint_calibration(early, right, happened)["all by 1.5"]["bias"], 2)
    0.18
    """
    return {name: _event(occurs, forecast, truth, happened) for name, occurs in JOINT_EVENTS.items()}


def _event(
    occurs: Callable[[np.ndarray], Any], forecast: np.ndarray, truth: np.ndarray, happened: np.ndarray
) -> dict[str, Any]:
    p, q = occurs(forecast).mean(axis=1), occurs(truth).mean(axis=1)
    seen = occurs(happened)
    noise = p * (1 - p) / (forecast.shape[1] - 1) + q * (1 - q) / (truth.shape[1] - 1)
    tenth = np.clip(np.digitize(p, _BINS) - 1, 0, 9)
    rows = np.bincount(tenth, minlength=10)
    return {
        "bias": float((p - q).mean()),
        "rmse": float(np.sqrt(max(0.0, ((p - q) ** 2 - noise).mean()))),
        "rows": rows.tolist(),
        "predicted": _means(tenth, p, rows),
        "happened": _means(tenth, seen, rows),
    }


def _means(tenth: np.ndarray, values: np.ndarray, rows: np.ndarray) -> list[float | None]:
    sums = np.bincount(tenth, weights=values, minlength=10)
    return [float(s / r) if r else None for s, r in zip(sums, rows, strict=True)]
