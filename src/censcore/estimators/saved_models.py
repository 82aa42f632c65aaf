"""Values as JSON and arrays, and back: what files keep of stacks and of forecasts, without pickle.

A file names classes of this library, and two of scikit-learn; nothing of it is executed. Networks keep what
their own files would. What belongs to single training subjects is left out.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from importlib import import_module
from pathlib import PurePath
from typing import Any, ClassVar, Self

import numpy as np

from censcore._validation import as_count, as_number, check_flag, check_option
from censcore.estimators.survival_estimator import SurvivalEstimator
from censcore.exceptions import InvalidInputError
from censcore.model_files import part_of, read_model_file, restoring, write_model_file

_PACKAGES = ("censcore.distributions.", "censcore.estimators.", "censcore.learning.", "censcore.outcomes.")
_SCIKIT_LEARN = {"Pipeline": "sklearn.pipeline", "StandardScaler": "sklearn.preprocessing"}

#: What a distribution derives again, or where it came from.
DERIVED = {"xp", "_remembered", "estimated_from", "row_labels", "_row_labels", "_start_stop"}


#: What settings may be: whole numbers and their least, numbers of at least zero, flags, and words.
_MOST = 2**62
_COUNTS = {
    "n_samples": 1, "random_state": 0, "max_iter": 1, "max_leaf_nodes": 2, "min_samples_leaf": 1,
    "n_iter_": 0, "n_intervals": 1, "n_features_in_": -1, "n_trees_": 0, "_n": 0, "_seed": 0,
}  # fmt: skip
_NUMBERS = ("learning_rate", "l2_regularization")
_FLAGS = (
    "leave_out", "with_mean", "with_std", "copy", "_joint", "_exact", "by_likelihood_", "_determined",
    "_falls", "is_estimate", "ordered",
)  # fmt: skip
_OPTIONS = {
    "score": ("energy_score", "log_score"),
    "interpolation": ("auto", "step", "linear"),
    "ties": ("product-limit", "efron", "breslow"),
}


class SavedEstimator(SurvivalEstimator):
    """Estimators that files keep: a subclass says its kind, what a file keeps, and how it is restored."""

    _kind: ClassVar[str]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a safetensors file with a JSON header; :meth:`load` reads it.

        A stack keeps what its networks, trees and other models of this library need to forecast, also in a
        ``Pipeline`` with a ``StandardScaler``; an estimator of another library is an error. ``censoring_``
        and what belongs to single training subjects are left out.

        Parameters
        ----------
        path : path
            Where to write; an existing file is replaced by a complete new one.
        """
        self.check_fitted()
        write_model_file(path, self._kind, *self._contents())

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str = "auto") -> Self:
        """Read a model of this class that :meth:`save` wrote; :func:`~censcore.load` reads any.

        Parameters
        ----------
        path : path
            Where to read; a damaged or foreign file raises a ModelFileError.
        device : str
            Where networks compute.

        Returns
        -------
        estimator
            The fitted model.
        """
        cls._check_device(device)
        arrays, settings = read_model_file(path, cls._kind)
        with restoring(path, cls._kind):
            return cls._restored(arrays, settings, device)

    @classmethod
    def _check_device(cls, device: str) -> None:
        """An error where networks cannot compute there."""

    @abstractmethod
    def _contents(self) -> tuple[dict[str, Any], dict[str, Any]]: ...  # arrays and JSON values

    @classmethod
    @abstractmethod
    def _restored(cls, arrays: dict[str, Any], settings: dict[str, Any], device: str) -> Self: ...


class Trees:
    """The trees of a :class:`sklearn.ensemble.HistGradientBoostingRegressor` for counts, by their nodes.

    The nodes of all trees follow each other, and each tree begins at one of the ``roots``.
    """

    def __init__(self, model: Any) -> None:
        parts = [tree.nodes for (tree,) in model._predictors]
        if any(part["is_categorical"].any() for part in parts):
            raise InvalidInputError("save: got trees with categories, expected numbers alone.")
        self.baseline, self.n_iter_ = float(model._baseline_prediction.item()), int(model.n_iter_)
        self.roots = np.cumsum([0, *(len(part) for part in parts)])[:-1]
        nodes = np.concatenate(parts)
        first = np.repeat(self.roots, [len(part) for part in parts])
        self.value, self.threshold = nodes["value"].copy(), nodes["num_threshold"].copy()
        self.feature = nodes["feature_idx"].astype(np.int64)
        self.leaf, self.missing_left = nodes["is_leaf"].astype(bool), nodes["missing_go_to_left"].astype(bool)
        self.left, self.right = (nodes[side].astype(np.int64) + first for side in ("left", "right"))

    def check_nodes(self) -> None:
        """Check that children come after their parents, so that every subject arrives at a leaf."""
        count = len(self.leaf)
        of_nodes = (self.value, self.threshold, self.feature, self.missing_left, self.left, self.right)
        if any(part.shape != (count,) for part in of_nodes) or self.missing_left.dtype != np.bool_:
            raise ValueError("trees of another number of nodes")
        inner = ~self.leaf
        places = np.arange(count)[inner]
        for side in (self.left[inner], self.right[inner]):
            if not ((side > places) & (side < count)).all():
                raise ValueError("trees without an end")
        if not ((self.roots >= 0) & (self.roots < count)).all():
            raise ValueError("trees without a root")

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Means, as the regressor predicts them to the last bit."""
        total, rows = np.full(len(Z), self.baseline), np.arange(len(Z))
        for root in self.roots:
            node = np.full(len(Z), root)
            while not (done := self.leaf[node]).all():
                x = Z[rows, self.feature[node]]
                left = np.where(np.isnan(x), self.missing_left[node], x <= self.threshold[node])
                node = np.where(done, node, np.where(left, self.left[node], self.right[node]))
            total += self.value[node]
        return np.exp(total)


def encoded(value: Any, arrays: dict[str, Any], name: str) -> Any:
    """A value as JSON; arrays go into ``arrays`` and leave their name.

    ``name`` says whose value it is; the values of a dictionary are those of its keys.
    """

    def inner(part: Any) -> Any:
        return encoded(part, arrays, name)

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, PurePath | np.random.RandomState | np.random.Generator):
        return str(value) if isinstance(value, PurePath) else None
    if isinstance(value, np.ndarray):
        return _encoded_array(value, arrays, name)
    if isinstance(value, list | tuple):
        return {"tuple" if isinstance(value, tuple) else "list": [inner(part) for part in value]}
    if isinstance(value, dict):
        return {"dict": [[inner(key), encoded(part, arrays, str(key))] for key, part in value.items()]}
    if hasattr(value, "_contents") and value.__sklearn_is_fitted__():
        own, settings = value._contents()
        place = f"network{len(arrays)}"
        arrays.update({f"{place}.{part}": array for part, array in own.items()})
        return {"network": _path_of(value, name), "settings": settings, "arrays": place}
    if type(value).__name__ == "HistGradientBoostingRegressor":
        value = Trees(value)
    path = _path_of(value, name)
    left_out = DERIVED.union(getattr(value, "_of_subjects", ()))
    state = {key: inner(part) for key, part in vars(value).items() if key not in left_out}
    return {"class": path, "state": state}


def _encoded_array(value: np.ndarray, arrays: dict[str, Any], name: str) -> Any:
    if value.dtype.names is not None:
        columns = {column: _encoded_array(value[column], arrays, name) for column in value.dtype.names}
        return {"table": columns, "dtype": value.dtype.descr}
    if value.dtype.kind not in "biufU" or not value.dtype.itemsize:
        return {"items": encoded(value.tolist(), arrays, name), "dtype": str(value.dtype)}
    place, text = f"array{len(arrays)}", value.dtype.kind == "U"
    arrays[place] = np.asarray(value, order="C").reshape(-1).view(np.uint32) if text else value
    return {"texts": place, "dtype": str(value.dtype), "shape": value.shape} if text else {"array": place}


def decoded(value: Any, arrays: dict[str, np.ndarray], device: str = "cpu") -> Any:
    """What :func:`encoded` was given, with networks on a device."""

    def inner(part: Any) -> Any:
        return decoded(part, arrays, device)

    match value:
        case {"array": place}:
            return arrays[place]
        case {"table": columns, "dtype": dtype}:
            parts = {name: inner(column) for name, column in columns.items()}
            table = np.empty(len(next(iter(parts.values()))), dtype=[tuple(column) for column in dtype])
            for name, part in parts.items():
                table[name] = part
            return table
        case {"items": items, "dtype": dtype}:
            return np.array(inner(items), dtype=dtype)
        case {"texts": place, "dtype": dtype, "shape": shape}:
            return arrays[place].view(dtype).reshape(shape)
        case {"tuple": parts}:
            return tuple(inner(part) for part in parts)
        case {"list": parts}:
            return [inner(part) for part in parts]
        case {"dict": pairs}:
            return {inner(key): inner(part) for key, part in pairs}
        case {"network": path, "settings": settings, "arrays": place}:
            return _class_at(path)._restored(part_of(arrays, place), settings, device)
        case {"class": path, "state": state}:
            model = object.__new__(_class_at(path))
            model.__dict__.update({key: inner(part) for key, part in state.items()})
            _check_settings(model)
            return model
    return value


def _check_settings(model: Any) -> None:
    """Check what a file says of a model against the list of what it may be."""
    if isinstance(model, Trees):
        model.check_nodes()
    for name, value in vars(model).items():
        if name in _COUNTS and value not in (None, "auto"):
            as_count(value, name, least=_COUNTS[name], most=_MOST)
        elif name in _NUMBERS and value is not None:
            as_number(value, name, least=0.0)
        elif name in _FLAGS:
            check_flag(value, name)
        elif name in _OPTIONS:
            check_option(value, name, _OPTIONS[name])


def _path_of(value: Any, name: str) -> str:
    """Where the class of a value is found again."""
    kind = type(value)
    own = kind.__module__.startswith(_PACKAGES) and "<" not in kind.__qualname__
    if not (own or (kind.__name__ in _SCIKIT_LEARN and kind.__module__.startswith("sklearn."))):
        raise InvalidInputError(
            f"save: {name!r} holds a {kind.__module__}.{kind.__qualname__}, expected estimators of this "
            "library, or Pipeline and StandardScaler of scikit-learn with them: no others can be kept in a "
            "model file without code. Leave that estimator out of the stack, or keep the data and fit again."
        )
    return f"{kind.__module__ if own else _SCIKIT_LEARN[kind.__name__]}.{kind.__name__}"


def _class_at(path: str) -> Any:
    """A class that :func:`_path_of` allows; no other is ever made from a file."""
    module, _, name = path.rpartition(".")
    allowed = f"{module}.".startswith(_PACKAGES) or _SCIKIT_LEARN.get(name) == module
    kind = getattr(import_module(module), name) if allowed else None
    if not isinstance(kind, type) or kind.__name__ != name:
        raise ValueError(f"a class {path:.80}")
    return kind
