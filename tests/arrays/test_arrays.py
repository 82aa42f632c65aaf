"""NumPy and torch behind one namespace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from censcore._arrays import (
    as_float,
    as_rows,
    common_rows,
    convert,
    is_neutral,
    namespace,
    one_namespace,
    requires_grad,
    searchsorted,
    take_along,
    to_numpy,
)
from censcore.exceptions import InvalidInputError, InvalidTypeError

NEUTRAL = [1, 2.5, True, None, [1, [2.0, None]], (), np.float64(1.0)]
BOUND = [np.ones(2), np.float32(1.0), [np.ones(2)], "a"]


@pytest.mark.parametrize(("value", "neutral"), [(v, True) for v in NEUTRAL] + [(v, False) for v in BOUND])
def test_python_numbers_and_lists_belong_to_no_library(value, neutral):
    assert is_neutral(value) is neutral


def test_neutral_values_take_library_and_dtype_of_their_company():
    torch = pytest.importorskip("torch")
    for like in (torch.ones(1), torch.ones(1, dtype=torch.float64), np.ones(1), np.ones(1, np.float32)):
        value = as_float([1, 2.5], "x", like=like)
        assert type(value) is type(like)
        assert value.dtype == like.dtype
    array = np.ones(2)
    assert as_float(array, "x", like=np.ones(1, np.float32)).dtype == np.float64, (
        "arrays keep their own dtype"
    )


@pytest.mark.parametrize(
    ("dtype", "kept"), [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i8", "f8"), ("?", "f8"), ("O", "f8")]
)
def test_as_float(dtype, kept):
    assert as_float(np.array([0, 1], dtype), "x").dtype == np.dtype(kept)


@pytest.mark.parametrize(
    "value", [np.array(["a"]), np.array([1j]), np.array([object()]), np.array(["2020"], "M8[Y]")]
)
def test_as_float_refuses_what_is_not_a_number(value):
    with pytest.raises(InvalidTypeError, match="scale must hold numbers"):
        as_float(value, "scale")


def test_one_namespace_names_the_parts_that_differ():
    torch = pytest.importorskip("torch")
    assert one_namespace(a=1.0, b=[2.0], c=None) is namespace(np.ones(1))
    assert one_namespace(a=1.0, b=torch.ones(1)) is namespace(torch.ones(1))
    with pytest.raises(
        InvalidTypeError, match=r"forecast in NumPy, outcome in torch on cpu.*distribution.like"
    ):
        one_namespace(forecast=np.ones(1), outcome=torch.ones(1), horizon=3.0)


def test_conversions_keep_booleans():
    torch = pytest.importorskip("torch")
    tensor = convert(np.array([True, False]), torch.ones(1))
    assert tensor.dtype == torch.bool
    assert convert(tensor, np.ones(1)).dtype == bool
    assert convert(np.ones(2), torch.ones(1)).dtype == torch.float32
    leaf = torch.ones(2, requires_grad=True)
    assert requires_grad(leaf)
    assert isinstance(to_numpy(leaf), np.ndarray)


def test_rows_fit_either_library():
    torch = pytest.importorskip("torch")
    x = torch.arange(4.0)
    assert x[as_rows(np.arange(4)[::-1])].tolist() == [3.0, 2.0, 1.0, 0.0]
    assert x[as_rows(np.int64(2))].tolist() == [2.0]
    assert as_rows(slice(1, 2)) == slice(1, 2)


def test_common_rows():
    assert common_rows(a=1, b=1) == 1
    assert common_rows(a=1, b=7, c=7) == 7
    with pytest.raises(InvalidInputError, match="outcome has 5, forecast has 6"):
        common_rows(outcome=5, forecast=6, censoring=1)


small = st.integers(0, 6).map(float)


@given(
    hnp.arrays(float, st.tuples(st.integers(1, 3), st.integers(0, 5)), elements=small),
    hnp.arrays(float, (3, 4), elements=st.one_of(small, st.just(np.inf), st.just(-1.0))),
    st.sampled_from(["left", "right"]),
)
def test_searchsorted_row_by_row(knots, values, side):
    knots = np.sort(knots, axis=1)
    knots = knots if len(knots) in (1, 3) else knots[:1]
    expected = [np.searchsorted(knots[min(i, len(knots) - 1)], values[i], side=side) for i in range(3)]
    np.testing.assert_array_equal(searchsorted(knots, values, side), expected)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("columns", [1, 3, 300])
@pytest.mark.parametrize("knots", [1, 8, 1000])
def test_searchsorted_alike_in_both_libraries_and_for_every_size(rows, columns, knots, rng):
    torch = pytest.importorskip("torch")
    grid = np.sort(rng.integers(0, 50, (rows, knots)).astype(float), axis=1)
    values = rng.integers(-1, 52, (5, columns)).astype(float)
    for side in ("left", "right"):
        ours = searchsorted(grid, values, side)
        theirs = searchsorted(torch.as_tensor(grid), torch.as_tensor(values), side)
        np.testing.assert_array_equal(ours, theirs)
        counted = [(grid[i % rows] < values[i, 0]).sum() for i in range(5)]
        if side == "left":
            np.testing.assert_array_equal(ours[:, 0], counted)


def test_take_along_serves_all_rows_by_one(rng):
    torch = pytest.importorskip("torch")
    index = rng.integers(0, 4, (3, 2))
    for rows in (1, 3):
        array = rng.random((rows, 4))
        expected = np.take_along_axis(np.broadcast_to(array, (3, 4)), index, axis=1)
        np.testing.assert_array_equal(take_along(array, index), expected)
        np.testing.assert_array_equal(take_along(torch.as_tensor(array), torch.as_tensor(index)), expected)
    one = take_along(rng.random((3, 4)), np.array([[0, 3]]))
    assert one.shape == (3, 2)
