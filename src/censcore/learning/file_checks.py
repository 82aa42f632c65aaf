"""Checks of what the model file of a network holds, before the network is built."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._validation import as_count, as_number
from censcore.estimators.libraries.sample_predictions import MOST_SAMPLES
from censcore.exceptions import ModelFileError

_ALSO = {"random_state": None, "n_networks": "auto"}  # values that are no sizes


def check_contents(arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
    """Check weights and sizes before a network is built, so that no file asks for one that it does not hold.

    >>> good = {"parameters": {"depth": 1}, "n_features": 2, "k": 1, "fitted": {}}
    >>> check_contents({"0.w": np.ones((1, 2)), "spread": np.ones(2)}, good)
    >>> check_contents({"0.w": np.full((1, 2), np.nan), "spread": np.ones(2)}, good)
    Traceback (most recent call last):
        ...
    censcore.exceptions.ModelFileError: 0.w: got NaN or infinite weights.
    """
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ModelFileError(f"{name}: got NaN or infinite weights.")
    if not (arrays["spread"] > 0).all():
        raise ModelFileError("spread: got values that are not positive.")
    largest = max(size for array in arrays.values() for size in array.shape)
    parameters, n_features = settings["parameters"], settings["n_features"]
    sizes = parameters | (parameters.get("network") or {}) | settings["fitted"]
    sizes |= {"n_features": n_features, "k": settings["k"]}
    bounds = dict.fromkeys(("width", "noise_dim", "components", "k"), (1, largest)) | {
        "n_features": (0, largest),
        "n_samples": (1, MOST_SAMPLES),
        "random_state": (0, 2**64),
        "n_networks": (1, max(largest, len(arrays))),  # along an axis, or each with arrays of its own
        "depth": (1, len(arrays)),  # every layer has a array
        "generators": (1, len(arrays)),
    }
    for name, (least, most) in bounds.items():
        if name in sizes and not (name in _ALSO and sizes[name] == _ALSO[name]):
            as_count(sizes[name], name, least=least, most=most)
    for name in ("center", "spread"):
        if name in arrays and arrays[name].shape != (n_features,):
            raise ModelFileError(f"{name}: got shape {arrays[name].shape}, expected ({n_features},).")
    names = settings.get("feature_names")
    listed = isinstance(names, list) and len(names) == n_features
    if names is not None and not (listed and all(isinstance(name, str) for name in names)):
        raise ModelFileError(f"feature_names: got {names!r:.60}, expected {n_features} names.")


def check_numbers(
    name: str, values: Any, count: int | None = None, *, least: float | None = None, increasing: bool = False
) -> np.ndarray:
    """Numbers of a model file, so many of them, of at least a value, in order where they must be.

    >>> check_numbers("edges", [1.0, 0.5], increasing=True)
    Traceback (most recent call last):
        ...
    censcore.exceptions.ModelFileError: edges: got numbers that do not increase.
    """
    numbers = np.array([as_number(value, name, least=least) for value in values], dtype=np.float64)
    if not len(numbers) or (count is not None and len(numbers) != count):
        raise ModelFileError(f"{name}: got {len(numbers)} numbers, expected {count or 'some'}.")
    if increasing and (np.diff(numbers) <= 0).any():
        raise ModelFileError(f"{name}: got numbers that do not increase.")
    return numbers
