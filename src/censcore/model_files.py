"""Model files: arrays in safetensors, everything else in its JSON header; nothing in them can run code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from censcore.exceptions import MissingDependencyError, MissingPackageError, ModelFileError
from censcore.files import as_path, write_atomically
from censcore.plain_text import one_line

#: Kind of a model file -> module of its class.
_MODULES = {
    "BestForecast": "censcore.learning.best_forecast",
    "CensoredEngression": "censcore.learning.engression",
    "CopulaWeibull": "censcore.learning.copula_weibull",
    "JointGridModel": "censcore.learning.joint_grid_model",
    "MixtureDensityNetwork": "censcore.learning.mixture_density_network",
    "Stacking": "censcore.estimators.stacking",
}

FORMAT = "censcore-model"
VERSION = "2"


def write_model_file(
    path: str | os.PathLike[str], kind: str, arrays: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Write arrays and plain JSON settings in one piece: the file is complete or not there.

    :func:`read_model_file` checks the kind. An existing file is replaced only by a complete new one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model_file(f"{folder}/a", "example", {"w": np.ones(2)}, {"seed": 1})
    ...     read_model_file(f"{folder}/a", "example")
    ({'w': array([1., 1.])}, {'seed': 1})
    """
    save = _safetensors("save")
    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "settings": json.dumps(settings, default=_plain),
    }
    header["checksum"] = _checksum(header, plain)
    write_atomically(path, _in_order(save(plain, metadata=header)))


def _plain(value: Any) -> Any:
    """Settings in an object, and what NumPy holds, as JSON values."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return asdict(value)


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
    path = as_path(path)
    data, header = _checked_header(path)
    if header["kind"] != kind:
        raise _told(f"{path}: got a {header['kind']:.60}, expected a {kind}.")
    try:
        arrays = {name: np.array(array) for name, array in _safetensors("load")(data).items()}
        settings, checksum = json.loads(header["settings"]), _checksum(header, arrays)
    except Exception as error:
        raise _told(f"{path} is corrupted or truncated ({error}). Save the model again.") from error
    if header["checksum"] != checksum or not isinstance(settings, dict):
        raise _told(
            f"{path} was altered or damaged: its contents do not fit its checksum. Save the model again."
        )
    return arrays, settings


@contextmanager
def restoring(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """What goes wrong in the use of a model file is an error of the file."""
    try:
        yield
    except (ModelFileError, MissingDependencyError):
        raise
    except Exception as error:
        raise _told(
            f"{path} holds no {kind} that can be restored ({error}). Save the model again."
        ) from error


def kind_of_file(path: str | os.PathLike[str]) -> str:
    """What a model file holds, by its header."""
    return _checked_header(as_path(path))[1]["kind"]


def part_of(arrays: dict[str, Any], name: str) -> dict[str, Any]:
    """The arrays of one part, which are named ``name.parameter``."""
    return {n.removeprefix(f"{name}."): v for n, v in arrays.items() if n.startswith(f"{name}.")}


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
        raise _told(
            f"{path}: got a {kind:.60}, expected a model ({', '.join(_MODULES)}). A checkpoint is continued "
            "by fit, with the settings of its run."
        )
    return getattr(import_module(_MODULES[kind]), kind).load(path, device)


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
    """An error with the name and contents of a file as text that no terminal interprets."""
    return ModelFileError(one_line(words))


def _checksum(header: dict[str, str], arrays: dict[str, np.ndarray]) -> str:
    """SHA-256 of the header and of names, types, shapes and contents of the arrays."""
    digest = hashlib.sha256()
    for name in ("format", "version", "kind", "settings"):
        digest.update(f"{name}={header[name]}\0".encode())
    for name in sorted(arrays):
        digest.update(f"{name}:torch.{arrays[name].dtype}:{arrays[name].shape}\0".encode())
        digest.update(arrays[name].tobytes())
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
        import safetensors.numpy as module
    except ImportError as error:
        raise MissingPackageError("Model files need safetensors: pip install 'censcore[torch]'.") from error
    return getattr(module, name)
