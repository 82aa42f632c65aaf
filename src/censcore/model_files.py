"""Model files: arrays in the safetensors format, everything else in its JSON header; nothing can run code.

The format is the length of the header in eight bytes, the header, and the arrays one after the other.
"""

from __future__ import annotations

import hashlib
import json
import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from censcore.exceptions import InvalidTypeError, MissingDependencyError, ModelFileError
from censcore.files import as_path, write_atomically
from censcore.plain_text import one_line

#: Kind of a model file -> module of its class.
_MODULES = {
    "BestForecast": "censcore.learning.best_forecast",
    "CensoredEngression": "censcore.learning.engression",
    "CopulaWeibull": "censcore.learning.copula_weibull",
    "JointGridModel": "censcore.learning.joint_grid_model",
    "MixtureDensityNetwork": "censcore.learning.mixture_density_network",
    "Stacking": "censcore.estimators.stacking.stacking",
}

#: Types of numbers in NumPy, by their names in the format.
_TYPES = {
    "F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1",
    "U64": "u8", "U32": "u4", "U16": "u2", "U8": "u1", "BOOL": "b1",
}  # fmt: skip
_NAMES = {code: name for name, code in _TYPES.items()}

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
    plain = {name: _little_endian(np.asarray(array)) for name, array in arrays.items()}
    header = {
        "checksum": "",
        "format": FORMAT,
        "kind": kind,
        "settings": json.dumps(settings, default=_plain),
        "version": VERSION,
    }
    header["checksum"] = _checksum(header, plain)
    write_atomically(path, _packed(header, plain))


def _plain(value: Any) -> Any:
    """Settings in an object, and what NumPy holds, as JSON values."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return asdict(value)


def _little_endian(array: np.ndarray) -> np.ndarray:
    return array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)


def _packed(header: dict[str, str], arrays: dict[str, np.ndarray]) -> bytes:
    """The bytes of a file; wide numbers come first, so that every array begins at a multiple of its width."""
    contents: dict[str, Any] = {"__metadata__": header}
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    end = 0
    for name in names:
        array, begin = arrays[name], end
        if array.dtype.str[1:] not in _NAMES:
            raise InvalidTypeError(f"A model file cannot hold {name!r}, an array of {array.dtype}.")
        end += array.nbytes
        contents[name] = {
            "dtype": _NAMES[array.dtype.str[1:]],
            "shape": array.shape,
            "data_offsets": [begin, end],
        }
    text = json.dumps(contents, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *(arrays[name].tobytes() for name in names)])


def _unpacked(data: bytes) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The header of a file and its arrays, which follow each other without a gap and share no bytes."""
    begin = 8 + int.from_bytes(data[:8], "little")
    if not 8 < begin <= len(data):
        raise ValueError("the header is cut off")
    contents = json.loads(data[8:begin])
    header = {str(name): str(value) for name, value in contents.pop("__metadata__", {}).items()}
    arrays, end = {}, 0
    for name, told in sorted(contents.items(), key=lambda item: item[1]["data_offsets"]):
        (first, end), before = told["data_offsets"], end
        if first != before or not before <= end <= len(data) - begin:
            raise ValueError(f"{name} is not where it should be")
        flat = np.frombuffer(data[begin + first : begin + end], f"<{_TYPES[told['dtype']]}")
        arrays[name] = flat.reshape(tuple(map(operator.index, told["shape"]))).copy()
    if begin + end != len(data):
        raise ValueError("the arrays do not end with the file")
    return header, arrays


def read_model_file(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a file that :func:`write_model_file` wrote.

    It may be missing, truncated, corrupted, of another version or kind, or no model of censcore: then a
    ModelFileError is raised.
    """
    path = as_path(path)
    header, arrays = _read(path)
    if header["kind"] != kind:
        raise _told(f"{path}: got a {header['kind']:.60}, expected a {kind}.")
    try:
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
    return _read(as_path(path))[0]["kind"]


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


def _read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The header of a model file, with format, version, kind and settings, and its arrays."""
    if not path.is_file():
        raise _told(f"There is no model file at {path}.")
    try:
        header, arrays = _unpacked(path.read_bytes())
    except Exception as error:  # a foreign or damaged file may fail in any way
        raise _told(
            f"{path} is not a model file, or it is corrupted or truncated ({error}). Save the model again."
        ) from error
    if header.get("format") != FORMAT:
        raise _told(f"{path} is a safetensors file, but not a model of censcore.")
    version = header.get("version", "")
    if version.isdecimal() and version != VERSION:
        raise _told(
            f"{path}: got format version {version:.20}, expected {VERSION}. Update censcore, or save again."
        )
    if version != VERSION or {"kind", "settings", "checksum"} - set(header):
        raise _told(f"{path} was altered or damaged: its header is incomplete. Save the model again.")
    return header, arrays


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
