"""Values that nobody meant to pass, and valid ones written in another way."""

from __future__ import annotations

import datetime
import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
import torch
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

import censcore as cs

INF, NAN = float("inf"), float("nan")
NUMBERS = (NAN, INF, -INF, -1.0, 0.0, -0.0, 0.5, 1.0, 2.5, 1e299, 1e300, -1e300, 1e-300, 5e-324, 1e16)


@dataclass(frozen=True)
class Value:
    """What is passed in place of a valid value.

    ``same`` if it means the same and so has the same answer, ``refused`` if nobody can know what it means, so
    that an answer is wrong.
    """

    label: str
    make: Callable[[], Any]
    same: bool = False
    refused: bool = False


def _const(label: str, value: Any) -> Value:
    return Value(label, lambda: value)


def _recursive() -> list[Any]:
    itself: list[Any] = [1.0]
    itself.append(itself)
    return itself


def _named(table: np.ndarray, names: list[Any]) -> pd.DataFrame:
    """A frame whose columns have these names; tuples are names of several levels."""
    frame = pd.DataFrame(table)
    frame.columns = pd.MultiIndex.from_tuples(names) if isinstance(names[0], tuple) else names
    return frame


ANYTHING = [
    _const("None", None),
    *(_const(repr(number), number) for number in NUMBERS),
    _const("huge integer", 10**400),
    _const("integer beyond int64", 2**70),
    _const("10**7", 10**7),
    _const("0", 0),
    _const("3", 3),
    _const("-7", -7),
    _const("True", True),
    _const("empty text", ""),
    _const("text", "x"),
    _const("bytes", b"x"),
    _const("complex", 1j),
    _const("Decimal", Decimal("1.5")),
    _const("Fraction", Fraction(3, 2)),
    _const("np.float32", np.float32(1.5)),
    _const("np.int64", np.int64(2)),
    _const("np.longdouble", np.longdouble(1.5)),
    _const("np.bool", np.bool_(True)),
    _const("np.datetime64", np.datetime64("2024-01-01")),
    _const("timedelta", datetime.timedelta(days=1)),
    _const("date", datetime.date(2024, 1, 1)),
    _const("datetime", datetime.datetime(2024, 1, 1)),
    _const("np.timedelta64", np.timedelta64(3, "D")),
    _const("pd.Timestamp", pd.Timestamp("2024-01-01")),
    _const("pd.NA", pd.NA),
    _const("pd.NaT", pd.NaT),
    _const("np.float64", np.float64(1.5)),
    _const("np.float64 NaN", np.float64("nan")),
    _const("np.float16", np.float16(1.5)),
    _const("np.uint8", np.uint8(2)),
    _const("np.str", np.str_("x")),
    _const("1e20", 1e20),
    _const("-1e20", -1e20),
    _const("huge negative integer", -(10**400)),
    _const("long text", "x" * 5000),
    _const("text of control characters", "a\x1b[31m\x00\u202e\ud800"),
    _const("bytearray", bytearray(b"x")),
    _const("range", range(3)),
    _const("slice", slice(None)),
    _const("Ellipsis", ...),
    _const("False", False),
    _const("NotImplemented", NotImplemented),
    Value("0-d array", lambda: np.array(1.5)),
    Value("0-d array of integers", lambda: np.array(2)),
    Value("0-d array of text", lambda: np.array("x")),
    Value("0-d array of objects", lambda: np.array(object())),
    Value("0-d tensor", lambda: torch.tensor(1.5)),
    Value("0-d tensor of integers", lambda: torch.tensor(2)),
    Value("array of dates", lambda: np.full(6, np.datetime64("2024-01-01"))),
    Value("array of timedeltas", lambda: np.full(6, np.timedelta64(1, "D"))),
    Value("array of bytes", lambda: np.full(6, b"x")),
    Value("array of 1e300", lambda: np.full(6, 1e300)),
    Value("array of 1e-300", lambda: np.full(6, 1e-300)),
    Value("list of dates", lambda: [datetime.date(2024, 1, 1)] * 6),
    Value("list of None", lambda: [None] * 6),
    Value("list of bytes", lambda: [b"x"] * 6),
    Value("list of long texts", lambda: ["x" * 5000] * 6),
    Value("ragged labels", lambda: ["a", ["b", "c"], "a", "b", "a", "b"]),
    Value("labels of two kinds", lambda: ["a", 1, "a", None, "b", 2.5]),
    Value("dict of ragged lists", lambda: {"a": [1.0, 2.0], "b": [3.0]}),
    Value("dict of labels", lambda: {"a": ["x"] * 6}),
    Value("dict of None", lambda: {"a": None, "b": None}),
    Value("dict by numbers", lambda: {1: 2.0, 3: 4.0}),
    Value("dict of functions", lambda: {"a": len}),
    Value("generator of text", lambda: (x for x in ("a", "b"))),
    Value("iterator", lambda: iter([1.0, 2.0])),
    Value("bfloat16 tensor", lambda: torch.ones(6, dtype=torch.bfloat16)),
    Value("half tensor", lambda: torch.ones(6, dtype=torch.float16)),
    Value("tensor of booleans", lambda: torch.ones(6, dtype=torch.bool)),
    Value("series", lambda: pd.Series(np.linspace(0.5, 1.0, 6))),
    Value("series of text", lambda: pd.Series(["a", "b"] * 3)),
    Value("series with gaps", lambda: pd.Series([1, None, 3, 4, None, 6], dtype="Int64")),
    Value("series of categories", lambda: pd.Series(["a", "b"] * 3, dtype="category")),
    Value("series of dates", lambda: pd.Series(pd.date_range("2024", periods=6, tz="UTC"))),
    Value("index", lambda: pd.Index([0.5, 1.0])),
    Value("polars series", lambda: pl.Series([0.5, 1.0] * 3)),
    Value("polars series of text", lambda: pl.Series(["a", "b"] * 3)),
    Value("polars series with gaps", lambda: pl.Series([1.0, None] * 3)),
    Value("polars frame", lambda: pl.DataFrame({"time": [1.0, 2.0], "event": [1, 0]})),
    Value("polars lazy frame", lambda: pl.LazyFrame({"time": [1.0, 2.0], "event": [1, 0]})),
    Value("pyarrow table", lambda: pa.table({"time": [1.0, 2.0], "event": [1, 0]})),
    Value("pyarrow array", lambda: pa.array([0.5, 1.0, None])),
    Value("pyarrow chunked array", lambda: pa.chunked_array([[0.5, 1.0], [2.0]])),
    Value("pyarrow number", lambda: pa.scalar(1.5)),
    _const("a path", pathlib.Path("no such folder/nothing")),
    _const("an exception", ValueError("x")),
    _const("a module", datetime),
    Value("a random generator", lambda: np.random.default_rng(0)),
    Value("object", object),
    Value("empty list", list),
    Value("empty dict", dict),
    Value("empty set", set),
    Value("dict", lambda: {"a": 1.0}),
    Value("ragged list", lambda: [[1.0, 2.0], [3.0]]),
    Value("list of lists of text", lambda: [["a"], ["b"]]),
    Value("list that holds itself", _recursive),
    Value("generator", lambda: (x for x in (1.0, 2.0))),
    Value("empty array", lambda: np.zeros(0)),
    Value("array (0, 3)", lambda: np.zeros((0, 3))),
    Value("array (2, 2, 2)", lambda: np.ones((2, 2, 2))),
    Value("array (3,)", lambda: np.array([0.5, 1.0, 2.0])),
    Value("array of NaN", lambda: np.full(6, NAN)),
    Value("complex array", lambda: np.ones(6, dtype=complex)),
    Value("array of objects", lambda: np.array([object()] * 6)),
    Value("structured array", lambda: np.zeros(6, dtype=[("a", float), ("b", bool)])),
    Value("masked array", lambda: np.ma.masked_array(np.ones(6), mask=[1, 0, 0, 0, 0, 0])),
    _const("masked", np.ma.masked),
    _const("number as text", "5"),
    Value("numbers as text", lambda: ["1", "0", "1", "2.5", "0", "1"]),
    Value("huge codes", lambda: np.array([1, 0, 10**7, 1, 0, 2])),
    Value("frame", lambda: pd.DataFrame({"a": [1.0, 2.0]})),
    Value("empty frame", pd.DataFrame),
    Value("columns called alike", lambda: pd.DataFrame(np.ones((6, 2)), columns=["time", "time"])),
    Value("columns of two levels", lambda: _named(np.ones((6, 2)), [("time", 1), ("event", 2)])),
    Value("columns called by numbers", lambda: pd.DataFrame(np.ones((6, 2)))),
    Value("tensor with gradient", lambda: torch.ones(6, requires_grad=True)),
    Value("complex tensor", lambda: torch.ones(6, dtype=torch.complex64)),
    Value("sparse tensor", lambda: torch.ones(6).to_sparse()),
    Value("sparse matrix as a tensor", lambda: torch.ones(6, 2).to_sparse()),
    Value("tensor without data", lambda: torch.ones(6, device="meta")),
    Value("sparse matrix", lambda: scipy.sparse.csr_matrix(np.ones((6, 2)))),
    _const("a class", cs.Weibull),
    _const("a function", len),
    Value("distribution", lambda: cs.Exponential(0.5)),
    Value("joint distribution", lambda: cs.Independent([cs.Exponential(0.5), cs.Weibull(1.0, 2.0)])),
    Value("forecast of causes", lambda: cs.CumulativeIncidence([1.0, 2.0], [[[0.1, 0.2], [0.2, 0.3]]])),
    Value("outcome", lambda: cs.RightCensored([1.0, 2.0], [1, 0])),
    Value("estimator", lambda: cs.KaplanMeier()),
    Value("another library's estimator", LinearRegression),
]

DISTRIBUTIONS = [
    Value("one for all", lambda: cs.Weibull(1.5, 2.0)),
    Value("of another number of subjects", lambda: cs.Weibull(1.5, [1.0, 2.0, 3.0, 4.0])),
    Value("small Weibull", lambda: cs.Weibull(0.001, 1e-100)),
    Value("narrow Weibull", lambda: cs.Weibull(1e8, 1.0)),
    Value("wide Weibull", lambda: cs.Weibull(0.001, 1e100)),
    Value("small Gompertz", lambda: cs.Gompertz(1e-100, 1e-100)),
    Value("steep Gompertz", lambda: cs.Gompertz(1e100, 1e-100)),
    Value("rare", lambda: cs.Exponential(1e-100)),
    Value("frequent", lambda: cs.Exponential(1e100)),
    Value("skewed gamma", lambda: cs.Gamma(0.001, 1e-100)),
    Value("narrow gamma", lambda: cs.Gamma(1e8, 1e-100)),
    Value("wide log-normal", lambda: cs.LogNormal(0.0, 100.0)),
    Value("narrow log-normal", lambda: cs.LogNormal(-230.0, 1e-8)),
    Value("log-logistic without mean", lambda: cs.LogLogistic(0.001, 1e100)),
    Value("uniform, no width to speak of", lambda: cs.Uniform(1.0, np.nextafter(1.0, 2.0))),
    Value("uniform, wide", lambda: cs.Uniform(0.0, 1e100)),
    Value("never", lambda: cs.PointMass(INF)),
    Value("at once", lambda: cs.PointMass(0.0)),
    Value("late", lambda: cs.PointMass(1e300)),
    Value("steps", lambda: cs.Step([0.5, 1.0, 3.0], sf=[0.9, 0.5, 0.0])),
    Value("one jump at 0", lambda: cs.Step([0.0], sf=[0.0])),
    Value("steps with a rest", lambda: cs.Step([0.5, 1.0, 3.0], sf=[0.9, 0.5, 0.2])),
    Value("lines", lambda: cs.PiecewiseLinear([0.5, 1.0, 3.0], sf=[0.9, 0.5, 0.0])),
    Value("quantiles", lambda: cs.Quantiles([0.1, 0.5, 0.9], [0.5, 1.0, 3.0])),
    Value("ensemble", lambda: cs.Ensemble(np.linspace(0.1, 4.0, 60).reshape(6, 10))),
    Value("ensemble of one", lambda: cs.Ensemble(np.ones((6, 1)))),
    Value("piecewise exponential", lambda: cs.PiecewiseExponential([1.0], [0.0, 1e-300])),
    Value(
        "mixture with mass at infinity",
        lambda: cs.Mixture([cs.PointMass(INF), cs.Weibull(1.0, 1.0)], [0.5, 0.5]),
    ),
    Value("joint ensemble", lambda: cs.Ensemble(np.linspace(0.1, 4.0, 120).reshape(6, 10, 2))),
    Value("torch", lambda: cs.Weibull(torch.ones(6, dtype=torch.float64, requires_grad=True), 2.0)),
    Value("float32", lambda: cs.Weibull(np.ones(6, dtype=np.float32), np.float32(2.0))),
]

_CIF = np.array([[0.1, 0.2, 0.3], [0.2, 0.3, 0.5]])
CAUSES = [
    Value("causes of 7 subjects", lambda: cs.CumulativeIncidence([1.0, 2.0, 4.0], np.tile(_CIF, (7, 1, 1)))),
    Value("causes of one subject", lambda: cs.CumulativeIncidence([1.0, 2.0, 4.0], _CIF[None])),
    Value("one cause", lambda: cs.CumulativeIncidence([1.0, 2.0, 4.0], _CIF[None, :1])),
    Value("three causes", lambda: cs.CumulativeIncidence([1.0], np.full((1, 3, 1), 0.2))),
    Value("no cause at all", lambda: cs.CumulativeIncidence([1.0], np.zeros((1, 2, 1)))),
    Value("hazards of 7 subjects", lambda: cs.CauseSpecificHazards([cs.Weibull(np.ones(7), 1.0)] * 2)),
    Value("draws of 7 subjects", lambda: cs.CauseEnsemble(np.ones((7, 4)), np.ones((7, 4), dtype=int))),
    Value("draws of one subject", lambda: cs.CauseEnsemble(np.ones((1, 4)), [[1, 2, 1, 2]])),
    Value("matrix of causes", lambda: np.tile(_CIF, (7, 1, 1))),
]
ESTIMATORS = [
    Value("Kaplan-Meier", lambda: cs.KaplanMeier()),
    Value("Weibull", lambda: cs.WeibullRegression()),
    Value("Cox", lambda: cs.CoxRegression()),
    Value("Turnbull", lambda: cs.Turnbull()),
    Value("Aalen-Johansen", lambda: cs.AalenJohansen()),
    Value("Fine-Gray", lambda: cs.FineGray()),
    Value("censoring", lambda: cs.Censoring(cs.KaplanMeier())),
    Value("censoring of censoring", lambda: cs.Censoring(cs.Censoring(cs.KaplanMeier()))),
    Value("adapted linear model", lambda: cs.Adapted(LinearRegression())),
]

N = 6
TIME = np.array([0.5, 1.0, 1.0, 2.0, 3.0, 0.25])
EVENT = np.array([1, 0, 1, 1, 0, 1], dtype=bool)

OUTCOMES = [
    Value("one subject", lambda: cs.RightCensored([1.0], [1])),
    Value("all censored", lambda: cs.RightCensored(TIME, np.zeros(N, bool))),
    Value("all events", lambda: cs.RightCensored(TIME, np.ones(N, bool))),
    Value("all tied", lambda: cs.RightCensored(np.ones(N), EVENT)),
    Value("all at 0", lambda: cs.RightCensored(np.zeros(N), EVENT)),
    Value("times of 1e300", lambda: cs.RightCensored(TIME * 1e300 / 3, EVENT)),
    Value("subnormal times", lambda: cs.RightCensored(np.full(N, 5e-324), EVENT)),
    Value("delayed entry", lambda: cs.RightCensored(TIME, EVENT, entry=TIME / 2)),
    Value("known censoring times", lambda: cs.RightCensored(TIME, EVENT, np.where(EVENT, 5.0, TIME))),
    Value(
        "two event times",
        lambda: cs.RightCensored(np.column_stack([TIME, TIME]), np.column_stack([EVENT, EVENT])),
    ),
    Value("competing risks", lambda: cs.CompetingRisks(TIME, [1, 0, 2, 1, 0, 2])),
    Value("intervals", lambda: cs.IntervalCensored(TIME, [1.0, INF, 2.0, 4.0, INF, 0.5])),
    Value("torch outcome", lambda: cs.RightCensored(torch.as_tensor(TIME), torch.as_tensor(EVENT))),
    Value("float32 outcome", lambda: cs.RightCensored(TIME.astype(np.float32), EVENT)),
    Value("intervals without an event", lambda: cs.IntervalCensored(TIME, np.full(N, INF))),
    Value("one cause of two", lambda: cs.CompetingRisks(TIME, [1, 0, 1, 1, 0, 1], n_causes=2)),
    Value("entry for all", lambda: cs.RightCensored(TIME, EVENT, entry=np.zeros(N))),
    Value("times of 1e-300", lambda: cs.RightCensored(TIME * 1e-300, EVENT)),
    Value("a pyarrow table as y", lambda: pa.table({"time": TIME, "event": EVENT})),
    Value("a polars frame as y", lambda: pl.DataFrame({"time": TIME, "event": EVENT})),
    Value(
        "a structured array as y",
        lambda: np.array(list(zip(EVENT, TIME, strict=True)), [("e", bool), ("t", float)]),
    ),
    Value("a list of pairs", lambda: list(zip(TIME.tolist(), EVENT.tolist(), strict=True))),
    Value("a pair", lambda: (TIME, EVENT)),
    Value("a frame of no meaning", lambda: pd.DataFrame({"a": TIME, "b": EVENT})),
]


def _with(array: np.ndarray, number: float) -> np.ndarray:
    other = np.array(array, dtype=np.float64)
    other.reshape(-1)[other.size // 2] = number
    return other


def _objects(array: np.ndarray, item: Any) -> np.ndarray:
    other = np.array(array, dtype=object)
    other.reshape(-1)[other.size // 2] = item
    return other


def _read_only(array: np.ndarray) -> np.ndarray:
    other = array.copy()
    other.flags.writeable = False
    return other


def _strided(array: np.ndarray) -> np.ndarray:
    return np.repeat(array, 2, axis=-1)[..., ::2]


def of_array(value: Any) -> list[Value]:
    """The same numbers written in another way, and arrays that differ from ``value`` in one respect."""
    array = np.asarray(value)
    same = {
        "list": array.tolist,
        "tuple": lambda: tuple(array.tolist()),
        "read-only": lambda: _read_only(array),
        "strided": lambda: _strided(array),
        "Fortran order": lambda: np.asfortranarray(array),
    }
    if array.dtype.kind == "f":
        same |= {
            "longdouble": lambda: array.astype(np.longdouble),
            "objects": lambda: array.astype(object),
            "big-endian": lambda: array.astype(">f8"),
        }
    if array.ndim == 1:
        same["series"] = lambda: pd.Series(array)
    refused = {
        "masked": lambda: np.ma.masked_array(array, mask=np.arange(array.size).reshape(array.shape) == 0),
        "sparse": lambda: torch.as_tensor(array.copy()).to_sparse(),
    }
    other = {
        "emptied": lambda: array[:0],
        "one less": lambda: array[:-1],
        "repeated": lambda: np.concatenate([array, array]),
        "one more axis": lambda: array[..., None],
        "one more axis in front": lambda: array[None],
        "one number": lambda: array.reshape(-1)[0],
        "text": lambda: array.astype(str),
        "an entry of text": lambda: _objects(array, "a"),
        "an entry of None": lambda: _objects(array, None),
        "an entry that is a list": lambda: _objects(array, [1.0]),
        "ragged": lambda: [*array.tolist()[:-1], [1.0, 2.0]],
        "complex": lambda: array.astype(complex),
        "huge integers": lambda: [10**400] * len(array),
        "booleans": lambda: array.astype(bool),
        "dates": lambda: np.full(array.shape, np.datetime64("2024-01-01")),
        "reversed": lambda: array[::-1],
        "constant": lambda: np.full(array.shape, array.reshape(-1)[0]),
        "tensor": lambda: torch.as_tensor(array.copy()),
    }
    if array.ndim == 1:
        other |= {
            "polars": lambda: pl.Series(array),
            "pyarrow": lambda: pa.array(array),
            "categories": lambda: pd.Series(array, dtype="category"),
            "extension": lambda: pd.Series(array).convert_dtypes(),
            "bfloat16": lambda: torch.as_tensor(array.astype(float)).to(torch.bfloat16),
            "timedeltas": lambda: np.full(array.shape, np.timedelta64(1, "D")),
            "generator": lambda: (x for x in array.tolist()),
            "texts": lambda: [f"{x:.0f}" for x in array],
        }
    if array.dtype.kind in "iu":
        other["huge codes"] = lambda: np.where(array == array.max(), 10**7, array)
    if array.dtype.kind == "f":
        other |= {
            "float32": lambda: array.astype(np.float32),
            "half": lambda: array.astype(np.float16),
            "tensor with gradient": lambda: torch.tensor(array.copy(), requires_grad=True),
            "negated": lambda: -array,
            **{f"with {number!r}": (lambda number=number: _with(array, number)) for number in NUMBERS},
        }
    return [
        *(Value(f"{k} of it", f, same=True) for k, f in same.items()),
        *(Value(k, f, refused=True) for k, f in refused.items()),
        *(Value(k, f) for k, f in other.items()),
    ]


def of_covariates(array: np.ndarray, fitting: bool) -> list[Value]:
    """Covariates as frames: with a name for each column, with names that are no text, and with neither.

    A model that was fitted to an array warns of names.
    """
    names = [f"x{j}" for j in range(array.shape[1])]
    numbers, twice = list(range(3, 3 + len(names))), ["x"] * len(names)
    levels = [("x", name) for name in names]
    with_names = [
        Value("frame of it", lambda: _named(array, names), same=True),
        Value("frame of it in polars", lambda: pl.DataFrame(array, schema=names), same=True),
    ]
    return [
        *(with_names if fitting else []),
        Value("frame of it, columns called by numbers", lambda: _named(array, numbers), same=True),
        Value("frame, columns called alike", lambda: _named(array, twice), refused=True),
        Value("frame, columns of two levels", lambda: _named(array, levels), refused=True),
        Value("frame, names of two kinds", lambda: _named(array, [7, *names[1:]])),
        Value("frame of text", lambda: _named(array.astype(str), names)),
    ]


def of_frame(frame: pd.DataFrame) -> list[Value]:
    """The same table in another library, and tables that differ from it in one respect."""
    names = list(frame.columns)
    return [
        Value("in polars", lambda: pl.from_pandas(frame), same=True),
        Value("in pyarrow", lambda: pa.Table.from_pandas(frame)),
        Value("lazy in polars", lambda: pl.from_pandas(frame).lazy()),
        Value("dict", lambda: frame.to_dict("list")),
        Value("dates", lambda: frame.assign(**{str(names[0]): pd.Timestamp("2024-01-01")})),
        Value("extension", frame.convert_dtypes),
        Value("with another index", lambda: frame.set_axis(range(7, 7 + len(frame))), same=True),
        Value("columns called alike", lambda: frame.set_axis([names[0]] * len(names), axis=1), refused=True),
        Value("columns of two levels", lambda: pd.concat({"a": frame}, axis=1), refused=True),
        Value("columns called by numbers", lambda: frame.set_axis(range(len(names)), axis=1), refused=True),
        Value("one column twice", lambda: pd.concat([frame, frame[names[:1]]], axis=1), refused=True),
        Value("a column less", lambda: frame[names[1:]]),
        Value("no rows", lambda: frame[:0]),
        Value("rows twice", lambda: pd.concat([frame, frame])),
        Value("text", lambda: frame.astype(str)),
        Value("with missing values", lambda: frame.shift(1)),
    ]


def _is_plain(value: Any) -> bool:
    """Whether this is a number, or a list of numbers."""
    return all(map(_is_plain, value)) if isinstance(value, list | tuple) else isinstance(value, float | int)


def _numeric(value: Any) -> np.ndarray | None:
    """``value`` as an array, where it is one of numbers."""
    if not (isinstance(value, np.ndarray) or (isinstance(value, list | tuple) and _is_plain(value))):
        return None
    array = np.asarray(value)
    return array if array.ndim and array.size and array.dtype.kind in "fiub" else None


def of_named(value: dict[str, Any]) -> list[Value]:
    """Things by name, of which one is replaced, or has another name, or is alone."""
    first = next(iter(value))
    return [
        Value("no things", dict),
        Value("one thing", lambda: {first: value[first]}),
        Value("called by a number", lambda: {**value, 3: value[first]}),
        Value("called by nothing", lambda: {**value, "": value[first]}),
        Value("called by None", lambda: {**value, None: value[first]}),
        Value("called by signs", lambda: {**value, "a\x1b[31m\x00\u202e": value[first]}),
        Value("a list", lambda: list(value.values())),
        *(
            Value(f"with {v.label}", lambda v=v: {**value, first: v.make()})
            for v in [*DISTRIBUTIONS, *CAUSES, *ANYTHING]
        ),
        *(
            Value(f"pair with {v.label}", lambda v=v: {**value, first: (value[first], v.make())})
            for v in ANYTHING
        ),
    ]


def of_steps(value: list[tuple[str, Any]]) -> list[Value]:
    """Members of a stack, of which one is replaced, or has another name."""
    (name, first), *others = value
    return [
        Value("one member", lambda: [(name, first)]),
        Value("called alike", lambda: [(name, first), (name, first)]),
        *(Value(f"with {v.label}", lambda v=v: [(name, v.make()), *others]) for v in ANYTHING),
        *(Value(f"called {v.label}", lambda v=v: [(v.make(), first), *others]) for v in ANYTHING),
        *(Value(f"beside {v.label}", lambda v=v: [(name, first), v.make()]) for v in ANYTHING),
    ]


def replacements(value: Any) -> list[Value]:
    """What to pass in place of ``value``: the values near it, and anything at all."""
    if isinstance(value, dict) and value:
        return [*of_named(value), *ANYTHING]
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return [*of_steps(value), *ANYTHING]
    if (
        isinstance(value, tuple)
        and len(value) == 2
        and type(value[1]).__module__.startswith("censcore.outcomes")
    ):
        parts = [Value(f"X {v.label}", lambda v=v: (v.make(), value[1])) for v in ANYTHING]
        parts += [Value(f"y {v.label}", lambda v=v: (value[0], v.make())) for v in [*OUTCOMES, *ANYTHING]]
        return [*parts, *ANYTHING]
    if isinstance(value, cs.CauseSpecificHazards | cs.CumulativeIncidence | cs.CauseEnsemble):
        return [*CAUSES, *DISTRIBUTIONS, *ANYTHING]
    if type(value).__module__.startswith("censcore.estimators"):
        return [*ESTIMATORS, *ANYTHING]
    if isinstance(value, cs.Distribution):
        return [*DISTRIBUTIONS, *ANYTHING]
    if type(value).__module__.startswith("censcore.outcomes"):
        return [*OUTCOMES, *ANYTHING]
    if isinstance(value, list) and value and type(value[0]).__module__.startswith("censcore.outcomes"):
        parts = [Value(f"with {v.label}", lambda v=v: [value[0], v.make()]) for v in [*OUTCOMES, *ANYTHING]]
        return [Value("no part", list), *parts, *ANYTHING]
    if isinstance(value, list | tuple) and value and isinstance(value[0], cs.Distribution):
        parts = [Value("one part", lambda: [value[0]]), Value("no part", list)]
        parts += [
            Value(f"with {v.label}", lambda v=v: [value[0], v.make()]) for v in [*DISTRIBUTIONS, *ANYTHING]
        ]
        return [*parts, *ANYTHING]
    if isinstance(value, pd.DataFrame):
        return [*of_frame(value), *ANYTHING]
    if _numeric(value) is not None:
        return [*of_array(value), *ANYTHING]
    return ANYTHING


def numbers_like(value: Any) -> st.SearchStrategy[Value]:
    """Numbers of any size, alone or in one place of the array ``value``."""
    number = st.floats(width=64) | st.floats(0.0, 10.0) | st.integers(-(10**20), 10**20)
    array = _numeric(value)
    if array is None or array.dtype.kind == "b":
        return number.map(lambda x: _const(repr(x), x))
    return number.map(lambda x: Value(f"with {x!r}", lambda: _with(array, x)))
