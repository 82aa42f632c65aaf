"""Finished folds and batches on disk, so that a long comparison goes on where it was stopped.

A file holds a result as arrays (``npz``, read without pickle, so that a file from elsewhere can run no code),
such as the forecasts of one model in one fold. It is named by a hash of everything that they depend on: data,
folds, weights, the model with all its parameters, and the versions of the libraries. Whatever changes gives
another name, so that results of different runs are never mixed; a damaged file counts as not there.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import sys
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache, partial
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import columns_of
from censcore.distributions import Distribution
from censcore.estimators.saved_models import DERIVED, decoded, encoded
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError
from censcore.files import write_atomically
from censcore.outcomes.outcome import Outcome


def path_of(folder: Path, *parts: Any) -> Path:
    """Where what depends on these parts is kept, or would be."""
    return folder / f"{_hash(*parts)}.npz"


def load_forecast(path: Path) -> tuple[Distribution, dict[str, Any]] | None:
    """A forecast and what was said about it; None where the file is missing or damaged."""
    match load_value(path):
        case (Distribution() as forecast, dict() as about):
            return forecast, about
    return None


# ---- values as arrays ------------------------------------------------------------------------------


def save_value(path: Path, value: Any) -> bool:
    """Write numbers, texts, arrays, distributions, and lists of them, in one piece; False for others."""
    arrays: dict[str, np.ndarray] = {}
    try:
        text = json.dumps(encoded(value, arrays, path.name))
    except InvalidInputError:
        return False
    content = io.BytesIO()
    arrays["_tree"] = np.frombuffer(text.encode(), dtype=np.uint8)
    np.savez(content, **arrays)  # type: ignore[arg-type]  # its stub takes them for allow_pickle
    write_atomically(path, content.getvalue())
    return True


def load_value(path: Path, read: Callable[[Any], Any] = lambda value: value) -> Any:
    """What ``read`` makes of what was written; None where the file is missing or damaged."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return read(decoded(json.loads(arrays.pop("_tree").tobytes()), arrays))
    except Exception:  # a foreign or damaged file may fail in any way
        return None


# ---- what results depend on ------------------------------------------------------------------------


def _hash(*parts: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def data_key(subjects: Sample) -> str:
    """A hash of covariates (with their names and order), outcomes, weights and groups."""
    weight = b"" if subjects.weight is None else subjects.weight.tobytes()
    groups = b"" if subjects.groups is None else _described(to_numpy(subjects.groups), set(), ())
    return _hash(_key_of_table(subjects.X, subjects.y), weight, groups)


def _key_of_table(X: Any, y: Any) -> str:
    return _hash(
        _described(_parts_of(y), set(), ()), _described(X, set(), ()), list(getattr(X, "columns", []))
    )


def _parts_of(y: Any) -> Any:
    """All observations of an outcome of any kind: times, events, causes, intervals, visits, entries."""
    return {name: _parts_of(getattr(y, name)) for name in y.part_names} if isinstance(y, Outcome) else y


def model_key(name: str, model: Any, y: Any) -> str:
    """A hash of a model with all its parameters, and of the libraries that it comes from."""
    libraries = {"censcore", "sklearn", "numpy"}
    parts: list[Any] = []
    if isinstance(model, tuple):
        model, X = model
        parts.append(_key_of_table(X, y))
    try:
        parts.append(_described(model, libraries, ()))
    except _Indescribable as error:
        raise InvalidInputError(
            f"store: model {name!r} holds {error}, which cannot be recognised as the same after a restart. "
            "Use an estimator with plain parameters (numbers, texts, arrays, estimators, functions), "
            "or leave out store=."
        ) from error
    return _hash(*parts, sorted((library, _version(library)) for library in libraries))


class _Indescribable(Exception):
    """A value without a reproducible description; the message names it."""


def _described(value: Any, libraries: set[str], above: tuple[int, ...]) -> str:
    """A description of a value by its content, the same in every run."""
    plain = bool | int | float | complex | str | bytes | np.generic | np.dtype | types.EllipsisType
    if value is None or isinstance(value, plain):
        return repr(value)
    if isinstance(value, PurePath):
        return f"path[{value}]"
    if isinstance(value, type):
        return _qualified(value, libraries)
    if id(value) in above:
        return "itself"
    inside = (*above, id(value))
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}[{','.join(_described(item, libraries, inside) for item in value)}]"
    if isinstance(value, set | frozenset):
        return f"set[{','.join(sorted(_described(item, libraries, inside) for item in value))}]"
    if isinstance(value, dict):
        items = (
            f"{_described(k, libraries, inside)}:{_described(v, libraries, inside)}" for k, v in value.items()
        )
        return f"dict[{','.join(sorted(items))}]"
    if isinstance(value, np.ndarray) or (hasattr(value, "__array__") and hasattr(value, "dtype")):
        array = to_numpy(value)
        if array.dtype.kind == "O":
            return f"array{array.shape}{_described(array.ravel().tolist(), libraries, inside)}"
        return f"array{array.shape}{array.dtype}{_hash(np.ascontiguousarray(array).tobytes())}"
    if isinstance(value, types.ModuleType):
        libraries.add(value.__name__.split(".")[0])
        return value.__name__
    if isinstance(value, types.CodeType):
        return (
            f"code[{value.co_code.hex()},{_described(value.co_consts, libraries, inside)},{value.co_names}]"
        )
    if isinstance(value, types.FunctionType):
        return _described_function(value, libraries, inside)
    return _described_object(value, libraries, inside)


def _qualified(kind: type, libraries: set[str]) -> str:
    """The name of a class; one that belongs to no version of a library is known by its source."""
    library = kind.__module__.split(".")[0]
    libraries.add(library)
    source = ""
    if not _version(library):
        try:
            source = _hash(inspect.getsource(kind))
        except (OSError, TypeError):  # built in, or typed into an interpreter
            source = ""
    return f"{kind.__module__}.{kind.__qualname__}{source}"


def _described_function(function: types.FunctionType, libraries: set[str], inside: tuple[int, ...]) -> str:
    """Its name in a library, or its code, defaults and what it takes from around it."""
    library = function.__module__.split(".")[0]
    if _version(library) and "<" not in function.__qualname__:
        libraries.add(library)
        return f"{function.__module__}.{function.__qualname__}"
    around = inspect.getclosurevars(function)
    taken = {**around.globals, **around.nonlocals}
    parts = (function.__code__, function.__defaults__, function.__kwdefaults__, taken)
    return "function" + ",".join(_described(part, libraries, inside) for part in parts)


def _described_object(value: Any, libraries: set[str], inside: tuple[int, ...]) -> str:
    kind = _qualified(type(value), libraries)
    if isinstance(value, np.random.RandomState):
        return f"{kind}{_described(value.get_state(legacy=True), libraries, inside)}"
    if isinstance(value, np.random.Generator):
        return f"{kind}{_described(value.bit_generator.state, libraries, inside)}"
    if hasattr(value, "get_params"):
        return f"{kind}{_described(value.get_params(deep=False), libraries, inside)}"
    if is_dataclass(value):  # without what is derived
        state = {entry.name: getattr(value, entry.name) for entry in fields(value)}
        return f"{kind}{_described(state, libraries, inside)}"
    if isinstance(value, types.BuiltinFunctionType | np.ufunc):
        return f"{kind}.{value.__name__}"
    if hasattr(value, "columns") and not callable(value):  # a function of rows may name its columns
        columns = {name: column.to_numpy() for name, column in columns_of(value, "a frame")}
        return f"{kind}{_described(columns, libraries, inside)}"
    if isinstance(value, partial):
        return f"{kind}{_described([value.func, value.args, value.keywords], libraries, inside)}"
    if isinstance(value, types.MethodType):
        return f"{kind}{_described([value.__func__, value.__self__], libraries, inside)}"
    if not hasattr(value, "__dict__"):
        raise _Indescribable(f"{kind} ({value!r:.60})")
    derived = DERIVED if isinstance(value, Distribution) else set()
    state = {name: part for name, part in vars(value).items() if name not in derived}
    return f"{kind}{_described(state, libraries, inside)}"


@cache
def _version(library: str) -> str:
    return str(getattr(sys.modules.get(library), "__version__", ""))
