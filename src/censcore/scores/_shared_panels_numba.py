"""Running sums of moments on panels, compiled for NumPy: nothing is kept of the pieces between."""

from __future__ import annotations

import numpy as np

from censcore._kernels import compiled

_compile = compiled()


@_compile
def sum_pieces(weight, start, stop, first, kept, beyond):  # type: ignore[no-untyped-def]
    """Moments of each panel, (K, P, D), and on the far side of the kept pieces in their panel, (m, K, D).

    Pieces have weights (n, K) and integrals of polynomials where they start and stop, (n, D); ``first`` is
    the first piece of each panel, (P + 1,), ``kept`` are the places of pieces, ascending, (m,).
    """
    K, P, D = weight.shape[1], first.size - 1, start.shape[1]
    whole, aside = np.zeros((K, P, D)), np.empty((kept.size, K, D))
    slot = 0 if not beyond else kept.size - 1
    for i in range(P):
        p = P - 1 - i if beyond else i
        total = np.zeros((K, D))
        for j in range(first[p + 1] - first[p]):
            piece = first[p + 1] - 1 - j if beyond else first[p] + j
            if 0 <= slot < kept.size and kept[slot] == piece:
                aside[slot] = total
                slot += -1 if beyond else 1
            for k in range(K):
                for d in range(D):
                    total[k, d] += weight[piece, k] * (stop[piece, d] - start[piece, d])
        whole[:, p] = total
    return whole, aside
