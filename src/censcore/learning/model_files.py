"""Model files: tensors in safetensors, everything else in its JSON header; nothing in them can run code."""

from __future__ import annotations

import hashlib
import json
import math
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from censcore._validation import check_kind
from censcore.exceptions import MissingPackageError, ModelFileError
from censcore.files import write_atomically
from censcore.plain_text import one_line

__all__ = [
    "MOST_SAMPLES",
    "check_contents",
    "check_number",
    "check_numbers",
    "kind_of_file",
    "load",
    "part_of",
    "read_model_file",
    "write_model_file",
]

#: Kind of a model file -> module of its class.
_MODULES = {
    "CensoredEngression": "censcore.learning.engression",
    "CopulaWeibull": "censcore.learning.copula",
    "JointGridModel": "censcore.learning.grid",
    "MixtureDensityNetwork": "censcore.learning.mixture_density_network",
}

MOST_SAMPLES = 10**6  # for every subject
_ALSO = {"n_samples": None, "random_state": None, "n_networks": "auto"}  # values that are no sizes

FORMAT = "censcore-model"
VERSION = "2"


def write_model_file(
    path: str | os.PathLike[str], kind: str, tensors: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Write tensors and plain JSON settings in one piece: the file is complete or not there.

    :func:`read_model_file` checks the kind. An existing file is replaced only by a complete new one.

    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model_file(f"{folder}/a", "example", {"w": torch.ones(2)}, {"seed": 1})
    ...     read_model_file(f"{folder}/a", "example")
    ({'w': tensor([1., 1.])}, {'seed': 1})
    """
    save = _safetensors("save")
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {"format": FORMAT, "version": VERSION, "kind": kind, "settings": json.dumps(settings)}
    header["checksum"] = _checksum(header, plain)
    write_atomically(path, _in_order(save(plain, metadata=header)))


def _in_order(data: bytes) -> bytes:
    """The file with its metadata in order, which safetensors leaves to chance: one model, the same bytes."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at multiples of eight bytes
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def read_model_file(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a file that :func:`write_model_file` wrote.

    It may be missing, truncated, corrupted, of another version or kind, or no model of censcore: then a
    ModelFileError is raised.
    """
    path = _as_path(path)
    data, header = _checked_header(path)
    if header["kind"] != kind:
        raise _told(f"{path}: got a {header['kind']:.60}, expected a {kind}.")
    try:
        tensors, settings = _safetensors("load")(data), json.loads(header["settings"])
        checksum = _checksum(header, tensors)
    except Exception as error:
        raise _told(f"{path} is corrupted or truncated ({error}). Save the model again.") from error
    if header["checksum"] != checksum or not isinstance(settings, dict):
        raise _told(
            f"{path} was altered or damaged: its contents do not fit its checksum. Save the model again."
        )
    return tensors, settings


def kind_of_file(path: str | os.PathLike[str]) -> str:
    """What a model file holds, by its header."""
    return _checked_header(_as_path(path))[1]["kind"]


def part_of(tensors: dict[str, Any], name: str) -> dict[str, Any]:
    """The tensors of one module, which are named ``name.parameter``."""
    return {n.removeprefix(f"{name}."): v for n, v in tensors.items() if n.startswith(f"{name}.")}


def load(path: str | os.PathLike[str], device: str = "auto") -> Any:
    """Read a fitted model, whatever its class.

    Parameters
    ----------
    path : path
        A file that the method ``save`` of a model wrote. Nothing in it is executed; an altered, damaged or
        foreign file raises a ModelFileError.
    device : str
        Where the model computes.

    Returns
    -------
    estimator
        The fitted model.

    See Also
    --------
    censcore.CensoredEngression.save : Writes such a file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, censcore as cs
    >>> y = cs.RightCensored(np.random.default_rng(0).exponential(size=(50, 2)), np.ones((50, 2)))
    >>> model = cs.CensoredEngression(epochs=1, n_networks=1, random_state=0).fit(None, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     again = cs.load(f"{folder}/model")
    >>> type(again).__name__
    'CensoredEngression'
    """
    kind = kind_of_file(path)
    if kind not in _MODULES:
        raise ModelFileError(
            f"{path}: got a {kind}, expected a model ({', '.join(_MODULES)}). A checkpoint is continued by "
            "fit, with the settings of its run."
        )
    return getattr(import_module(_MODULES[kind]), kind).load(path, device)


def _as_path(path: Any) -> Path:
    check_kind(path, "path", (str, os.PathLike), "a path, as a text or a pathlib.Path")
    return Path(path)


def _checked_header(path: Path) -> tuple[bytes, dict[str, str]]:
    """The bytes of a model file, and its header with format, version, kind and settings."""
    if not path.is_file():
        raise _told(f"There is no model file at {path}.")
    data = path.read_bytes()
    header = _header(data, path)
    if header.get("format") != FORMAT:
        raise _told(f"{path} is a safetensors file, but not a model of censcore.")
    version = header.get("version", "")
    if version.isdecimal() and version != VERSION:
        raise _told(
            f"{path}: got format version {version:.20}, expected {VERSION}. Update censcore, or save again."
        )
    if version != VERSION or {"kind", "settings", "checksum"} - set(header):
        raise _told(f"{path} was altered or damaged: its header is incomplete. Save the model again.")
    return data, header


def _told(words: str) -> ModelFileError:
    """An error in which neither the name of a file nor what it holds is obeyed by a terminal."""
    return ModelFileError(one_line(words))


def _checksum(header: dict[str, str], tensors: dict[str, Any]) -> str:
    """SHA-256 of the header and of names, types, shapes and contents of the tensors."""
    digest = hashlib.sha256()
    for name in ("format", "version", "kind", "settings"):
        digest.update(f"{name}={header[name]}\0".encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def _header(data: bytes, path: Path) -> dict[str, str]:
    """The JSON header that a safetensors file begins with, preceded by its length in eight bytes."""
    try:
        length = int.from_bytes(data[:8], "little")
        if not 0 < length <= len(data) - 8:
            raise ValueError("the header is cut off")
        header = json.loads(data[8 : 8 + length])
        return {str(name): str(value) for name, value in header.get("__metadata__", {}).items()}
    except (ValueError, AttributeError, RecursionError) as error:
        raise _told(
            f"{path} is not a model file, or it is corrupted or truncated ({error}). Save the model again."
        ) from error


def _safetensors(name: str) -> Any:
    try:
        import safetensors.torch as module
    except ImportError as error:
        raise MissingPackageError("Model files need safetensors: pip install 'censcore[torch]'.") from error
    return getattr(module, name)


def check_contents(tensors: dict[str, Any], settings: dict[str, Any]) -> None:
    """Check weights and sizes before a network is built, so that no file asks for one that it does not hold.

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
    largest = max(size for tensor in tensors.values() for size in tensor.shape)
    parameters, n_features = settings["parameters"], settings["n_features"]
    sizes = parameters | (parameters.get("network") or {}) | settings["fitted"]
    sizes |= {"n_features": n_features, "k": settings["k"]}
    bounds = dict.fromkeys(("width", "noise_dim", "components", "k"), (1, largest)) | {
        "n_features": (0, largest),
        "n_samples": (1, MOST_SAMPLES),
        "random_state": (0, 2**64),
        "n_networks": (1, max(largest, len(tensors))),  # along an axis, or each with tensors of its own
        "depth": (1, len(tensors)),  # every layer has a tensor
        "generators": (1, len(tensors)),
    }
    for name, (least, most) in bounds.items():
        if name not in sizes or (name in _ALSO and sizes[name] == _ALSO[name]):
            continue
        whole = isinstance(sizes[name], int) and not isinstance(sizes[name], bool)
        if not whole or not least <= sizes[name] <= most:
            raise ModelFileError(
                f"{name}: got {sizes[name]!r}, expected a whole number from {least} to {most}."
            )
    for name in ("center", "spread"):
        if name in tensors and tuple(tensors[name].shape) != (n_features,):
            raise ModelFileError(f"{name}: got shape {tuple(tensors[name].shape)}, expected ({n_features},).")
    names = settings.get("feature_names")
    listed = isinstance(names, list) and len(names) == n_features
    if names is not None and not (listed and all(isinstance(name, str) for name in names)):
        raise ModelFileError(f"feature_names: got {names!r:.60}, expected {n_features} names.")


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


def check_numbers(
    name: str, values: Any, count: int | None = None, *, least: float = -math.inf, increasing: bool = False
) -> np.ndarray:
    """Numbers of a model file, so many of them, of at least a value, in order where they must be.

    >>> check_numbers("edges", [1.0, 0.5], increasing=True)
    Traceback (most recent call last):
        ...
    censcore.exceptions.ModelFileError: edges: got numbers that do not increase.
    """
    if not isinstance(values, list) or not values or (count is not None and len(values) != count):
        got = f"{len(values)} values" if isinstance(values, list) else f"{values!r:.60}"
        raise ModelFileError(f"{name}: got {got}, expected {count or 'some'} numbers.")
    for value in values:
        check_number(name, value, positive=least > 0)
        if value < least:
            raise ModelFileError(f"{name}: got {value!r}, expected a number of at least {least:g}.")
    found = np.array(values, dtype=np.float64)
    if increasing and (np.diff(found) <= 0).any():
        raise ModelFileError(f"{name}: got numbers that do not increase.")
    return found
