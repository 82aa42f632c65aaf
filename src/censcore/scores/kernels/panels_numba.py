"""Sums over panels, compiled for NumPy: those of ``_lines`` and ``_shared_panels`` up to rounding."""

from __future__ import annotations

import numpy as np

from censcore._kernels import compiled

_compile = compiled(fastmath={"reassoc", "contract"})


@_compile
def line_losses(sf, y, reach, below, beyond):  # type: ignore[no-untyped-def]
    """The integral of F² up to y, and ``reach`` times that of S² beyond, one loss per subject.

    From survival at the times of the grid, (1 or n, J), observed times and 1/G(y-) for events, (n,), and the
    panels of the grid under the weights of F² and of S².
    """
    n = y.size
    loss = np.empty_like(y)
    for i in range(n):
        S = sf[i if sf.shape[0] > 1 else 0]
        k = np.searchsorted(below[0], y[i], side="right") - 1
        total = _below(S, y[i], k, *below)
        if reach[i] > 0:
            total += reach[i] * _beyond(S, y[i], k, *beyond)
        loss[i] = total
    return loss


@_compile
def _below(S, y, k, a, h, whole, piece, weight, begin, passed):  # type: ignore[no-untyped-def]
    total, v = 0.0, 0.0
    for j in range(k):
        d = 1 - S[j] - v
        total += h[j] * (v * v * whole[0, j] + 2 * v * d * whole[1, j] + d * d * whole[2, j])
        v = 1 - S[j]
    d = 1 - S[k] - v if k < a.size - 1 else 0.0
    U0, U1, U2 = _moments(y, k, a, h, piece, weight, begin, passed)
    return total + h[k] * (v * v * U0 + 2 * v * d * U1 + d * d * U2)


@_compile
def _beyond(S, y, k, a, h, whole, piece, weight, begin, passed):  # type: ignore[no-untyped-def]
    last, total = a.size - 1, 0.0
    if k < last:
        v = S[k - 1] if k > 0 else 1.0
        d = S[k] - v
        U0, U1, U2 = _moments(y, k, a, h, piece, weight, begin, passed)
        U0, U1, U2 = whole[0, k] - U0, whole[1, k] - U1, whole[2, k] - U2
        total = h[k] * (v * v * U0 + 2 * v * d * U1 + d * d * U2)
        for j in range(k + 1, last):
            v = S[j - 1]
            d = S[j] - v
            total += h[j] * (v * v * whole[0, j] + 2 * v * d * whole[1, j] + d * d * whole[2, j])
    left = S[last - 1] if last > 0 else 1.0
    if left > 0:
        if weight[weight.size - 1] > 0:
            return np.inf
        U0, _, _ = _moments(max(y, a[last]), last, a, h, piece, weight, begin, passed)
        total += left * left * (whole[0, last] - U0)
    return total


@_compile
def _moments(t, k, a, h, piece, weight, begin, passed):  # type: ignore[no-untyped-def]
    """U_0, U_1, U_2 from the start of panel k to the time t in it."""
    i = np.searchsorted(piece, t, side="right") - 1
    u, b, w = (t - a[k]) / h[k], begin[i], weight[i]
    U0 = passed[0, i] + w * (u - b)
    U1 = passed[1, i] + w * (u * u - b * b) / 2
    U2 = passed[2, i] + w * (u * u * u - b * b * b) / 3
    return U0, U1, U2


@compiled()
def sum_pieces(weight, start, stop, first, read, beyond):  # type: ignore[no-untyped-def]
    """Moments of each panel, (K, P, D), and on the far side of the pieces that are read, (m, K, D).

    Pieces have weights (n, K) and integrals of polynomials where they start and stop, (n, D); ``first`` is
    the first piece of each panel, (P + 1,), ``read`` are the places of these pieces, ascending, (m,).
    """
    K, P, D = weight.shape[1], first.size - 1, start.shape[1]
    whole, aside = np.zeros((K, P, D)), np.empty((read.size, K, D))
    slot = 0 if not beyond else read.size - 1
    for i in range(P):
        p = P - 1 - i if beyond else i
        total = np.zeros((K, D))
        for j in range(first[p + 1] - first[p]):
            piece = first[p + 1] - 1 - j if beyond else first[p] + j
            if 0 <= slot < read.size and read[slot] == piece:
                aside[slot] = total
                slot += -1 if beyond else 1
            for k in range(K):
                for d in range(D):
                    total[k, d] += weight[piece, k] * (stop[piece, d] - start[piece, d])
        whole[:, p] = total
    return whole, aside
