"""The Brier score compiled for NumPy arrays: one pass over the survival probabilities, no temporaries."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["weighted_squares"]

_compile: Any = numba.njit(nogil=True, cache=True, error_model="numpy")


@_compile
def weighted_squares(S, y, never, t, among_living, among_dead, reach):  # type: ignore[no-untyped-def]
    """Squared errors times their weight, (n, q), from S, t and weights (1 or n, q), y, never, reach (n,)."""
    n, q = y.size, t.shape[1]
    loss = np.empty((n, q), S.dtype)
    for i in range(n):
        s, at = S[i if S.shape[0] > 1 else 0], t[i if t.shape[0] > 1 else 0]
        living = among_living[i if among_living.shape[0] > 1 else 0]
        dead = among_dead[i if among_dead.shape[0] > 1 else 0]
        for j in range(q):
            alive = y[i] > at[j]
            error = s[j] - 1 if alive or never[i] else s[j]
            loss[i, j] = error * error * (living[j] if alive else reach[i] * dead[j])
    return loss
