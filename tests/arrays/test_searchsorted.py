"""Every way to look up many values equals ``numpy.searchsorted``, row by row."""

import numpy as np
import pytest

from censcore._arrays import searchsorted

SIDES = ["left", "right"]
KNOTS = {
    "even": lambda rng, J: rng.random(J),
    "skewed": lambda rng, J: rng.exponential(1.0, J),
    "tied": lambda rng, J: rng.integers(0, 50, J).astype(float),
    "far apart": lambda rng, J: rng.weibull(0.2, J),
    "all equal": lambda rng, J: np.full(J, 0.3),
    "with infinity": lambda rng, J: np.append(rng.random(J - 1), np.inf),
    "tiny": lambda rng, J: rng.random(J) * 1e-30,
}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KNOTS)
def test_many_values_among_the_knots_of_one_row(rng, kind, dtype, side):
    for J in (1, 3, 255, 256, 3_000):
        knots = np.sort(KNOTS[kind](rng, J)).astype(dtype)
        near = [np.nextafter(knots, dtype(end)) for end in (-np.inf, np.inf)]
        edge = np.array([0.0, -1.0, 1e30, np.inf, -np.inf], dtype)
        values = np.concatenate([rng.random(3 * J).astype(dtype), knots, *near, edge])[:, None]
        expected = np.searchsorted(knots, values, side)
        np.testing.assert_array_equal(searchsorted(knots[None, :], values, side), expected)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("common", [False, True])
def test_values_in_rows_of_knots(rng, common, side):
    """Also in falling curves that are read backwards, and in any layout."""
    for n, J, q in ((50, 7, 3), (200, 100, 2), (3, 1, 1), (7, 255, 4), (5, 400, 2)):
        rising = np.sort(rng.integers(0, 20, (n, J)) / 20.0, axis=1)
        rising[0, -1] = np.inf
        values = rng.integers(-1, 22, (1 if common else n, q)) / 20.0
        expected = [
            np.searchsorted(a, b, side) for a, b in zip(rising, np.broadcast_to(values, (n, q)), strict=True)
        ]
        for knots in (rising, np.ascontiguousarray(rising[:, ::-1])[:, ::-1], np.asfortranarray(rising)):
            np.testing.assert_array_equal(searchsorted(knots, values, side), expected)
