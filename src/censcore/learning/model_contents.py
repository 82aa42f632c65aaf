"""What a model file may hold: finite weights, and sizes that its tensors have."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from torch import Tensor

from censcore.exceptions import ModelFileError

__all__ = ["MOST_SAMPLES", "check_contents", "check_number", "check_numbers"]

_SIZES = ("width", "noise_dim", "components", "n_features", "k")
MOST_SAMPLES = 10**6  # for every subject


def check_contents(tensors: dict[str, Tensor], settings: dict[str, Any]) -> None:
    """Check weights and sizes before a network is built, so that no file asks for one that it does not hold.

    Parameters
    ----------
    tensors : dict of tensors
        Weights, ``center`` and ``spread``.
    settings : dict
        ``parameters``, ``n_features``, ``k`` and ``fitted``.

    Examples
    --------
    >>> import torch
    >>> good = {"parameters": {"depth": 1}, "n_features": 2, "k": 1, "fitted": {}}
    >>> check_contents({"0.w": torch.ones(1, 2), "spread": torch.ones(2)}, good)
    >>> check_contents({"0.w": torch.full((1, 2), torch.nan), "spread": torch.ones(2)}, good)
    Traceback (most recent call last):
        ...
    censcore.exceptions.ModelFileError: 0.w: got NaN or infinite weights.
    """
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise ModelFileError(f"{name}: got NaN or infinite weights.")
    if not bool((tensors["spread"] > 0).all()):
        raise ModelFileError("spread: got values that are not positive.")
    largest = max((size for tensor in tensors.values() for size in tensor.shape), default=0)
    parameters = settings["parameters"]
    sizes = (
        parameters
        | (parameters.get("network") or {})
        | {name: settings[name] for name in ("n_features", "k")}
    )
    for name in _SIZES:
        if name in sizes:
            _check_size(name, sizes[name], largest, least=0 if name == "n_features" else 1)
    for name in ("center", "spread"):
        if name in tensors and tuple(tensors[name].shape) != (settings["n_features"],):
            raise ModelFileError(
                f"{name}: got shape {tuple(tensors[name].shape)}, expected ({settings['n_features']},)."
            )
    names = settings.get("feature_names")
    if names is not None and not (
        isinstance(names, list) and len(names) == settings["n_features"] and all(map(_is_text, names))
    ):
        raise ModelFileError(f"feature_names: got {names!r:.60}, expected {settings['n_features']} names.")
    if sizes.get("n_samples") is not None:
        _check_size("n_samples", sizes["n_samples"], MOST_SAMPLES)
    if sizes.get("random_state") is not None:
        _check_size("random_state", sizes["random_state"], 2**64, least=0)
    if sizes.get("n_networks", "auto") != "auto":  # along an axis, or each with tensors of its own
        _check_size("n_networks", sizes["n_networks"], max(largest, len(tensors)))
    if "depth" in sizes:  # every layer has a tensor
        _check_size("depth", sizes["depth"], len(tensors))
    if "generators" in settings["fitted"]:
        _check_size("generators", settings["fitted"]["generators"], len(tensors))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _check_size(name: str, value: Any, most: int, least: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ModelFileError(f"{name}: got {value!r}, expected a whole number from {least} to {most}.")


def check_number(name: str, value: Any, positive: bool = False) -> None:
    """Check a number of a model file.

    >>> check_number("unit", -1, positive=True)
    Traceback (most recent call last):
        ...
    censcore.exceptions.ModelFileError: unit: got -1, expected a positive number.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or (positive and not 1e-300 < value < 1e300):  # its multiples are numbers too
        raise ModelFileError(f"{name}: got {value!r}, expected a {'positive ' if positive else ''}number.")


def check_numbers(name: str, values: Any, count: int | None = None, increasing: bool = False) -> None:
    """Check numbers of at least 0 of a model file, so many of them, in order where they must be.

    >>> check_numbers("edges", [1.0, 0.5], increasing=True)
    Traceback (most recent call last):
        ...
    censcore.exceptions.ModelFileError: edges: got numbers that do not increase.
    """
    if not isinstance(values, list) or not values or (count is not None and len(values) != count):
        raise ModelFileError(f"{name}: got {values!r:.60}, expected {count or 'some'} numbers.")
    for value in values:
        check_number(name, value)
        if value < 0:
            raise ModelFileError(f"{name}: got {value!r}, expected a number of at least 0.")
    if increasing and any(b <= a for a, b in pairwise(values)):
        raise ModelFileError(f"{name}: got numbers that do not increase.")
