"""Sums of Brier losses in cells of time, compiled for NumPy: no loss of a subject is kept."""

from __future__ import annotations

import numpy as np

from censcore._kernels import compiled

__all__ = ["cell_sums"]

_compile = compiled(fastmath={"contract"})


@_compile
def cell_sums(times, sf, lines, y, reach, middle, G, first, weight):  # type: ignore[no-untyped-def]
    """Weighted sums (m, K + 2, K) of the losses at K times, over subjects with the same ``first``.

    Parameters
    ----------
    times, sf : array, (1 or n, J)
        Ascending times of each forecast, and its survival there.
    lines : bool
        Whether it is linear in between, from (0, 1) on; else it is constant.
    y, reach : array, (n,)
        Observed times, and 1/G(y-) for events, 0 for censored subjects.
    middle, G : array, (K,)
        Ascending times of the losses, and P(C > t) there.
    first : array of int, (n,)
        Where the losses of a subject are added.
    weight : array, (n, m)
        Its weights.
    """
    n, K, m, J = y.size, middle.size, weight.shape[1], times.shape[1]
    sums, loss, S = np.zeros((m, K + 2, K)), np.empty(K), np.empty(J + 2)
    place, share = np.empty(K, np.int64), np.zeros(K)
    _find(times[0], middle, lines, place, share)
    for i in range(n):
        if i > 0 and times.shape[0] > 1:
            _find(times[i], middle, lines, place, share)
        S[0], S[1 : J + 1] = 1.0, sf[i if sf.shape[0] > 1 else 0]
        S[J + 1] = S[J]
        alive = np.searchsorted(middle, y[i])  # times before y
        for k in range(alive):
            s = S[place[k]] * (1 - share[k]) + S[place[k] + 1] * share[k]
            loss[k] = (1 - s) * (1 - s)
        until = K if reach[i] > 0 else alive
        for k in range(alive, until):
            s = S[place[k]] * (1 - share[k]) + S[place[k] + 1] * share[k]
            loss[k] = reach[i] * G[k] * s * s
        for c in range(m):
            w = weight[i, c]
            if w != 0:
                to = sums[c, first[i]]
                for k in range(until):
                    to[k] += w * loss[k]
    return sums


@_compile
def _find(t, middle, lines, place, share):  # type: ignore[no-untyped-def]
    """How many of the times t each of the ``middle`` times has passed, and which share of the way on."""
    j = 0
    for k in range(middle.size):
        while j < t.size and t[j] <= middle[k]:
            j += 1
        place[k] = j
        if lines:
            begin = t[j - 1] if j > 0 else 0.0
            share[k] = (middle[k] - begin) / (t[j] - begin) if j < t.size else 0.0
