"""Losses by score, as two ways of computing them give them; None where a score has none."""

from __future__ import annotations

import numpy as np


def same_losses(found, expected, message, rtol, atol):
    """Both have the same scores, and losses that agree."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert (found[name] is None) == (value is None), f"{message}, {name}"
        if value is not None:
            np.testing.assert_allclose(found[name], value, rtol, atol, err_msg=f"{message}, {name}")


def rows_of(found, rows):
    """The losses of some subjects."""
    return {name: None if value is None else value[rows] for name, value in found.items()}
