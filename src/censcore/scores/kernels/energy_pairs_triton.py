"""All pairs of an ensemble on a GPU: one program per row and censoring time, nothing of size m² in memory."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from censcore.scores.kernels.energy_pairs import energy_terms as array_terms

_BLOCK = 128


@triton.jit
def _power(squared, beta, ONE: tl.constexpr):  # type: ignore[no-untyped-def]
    """||.||^beta from squared norms."""
    if ONE:
        return tl.sqrt(squared)
    return tl.where(squared > 0, tl.exp2(0.5 * beta * tl.log2(tl.where(squared > 0, squared, 1.0))), 0.0)


@triton.jit
def _kernel(  # type: ignore[no-untyped-def]
    z, w, y, c, accuracy, spread, m, shared, weighted_rows, beta,
    D: tl.constexpr, K: tl.constexpr, CK: tl.constexpr,
    ONE: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1)
    row_z = tl.where(shared != 0, 0, row) * m * K
    row_w = tl.where(weighted_rows != 0, row, 0) * m
    limits = c + (row * D + d) * CK
    to_outcome = tl.zeros([1], dtype=z.dtype.element_ty)
    between = tl.zeros([1], dtype=z.dtype.element_ty)
    for i0 in range(0, m, BLOCK):
        i = i0 + tl.arange(0, BLOCK)[:, None]
        w_i = tl.load(w + row_w + i, mask=i < m, other=0.0) if W else tl.where(i < m, 1.0 / m, 0.0)
        squared = tl.zeros([BLOCK, 1], dtype=z.dtype.element_ty)
        for k in tl.static_range(K):
            limit = tl.load(limits + (k if CK > 1 else 0))
            member = tl.minimum(tl.load(z + row_z + i * K + k, mask=i < m, other=0.0), limit)
            gap = member - tl.load(y + row * K + k)
            squared += gap * gap
        to_outcome += tl.sum(tl.sum(w_i * _power(squared, beta, ONE), axis=1), axis=0).to(z.dtype.element_ty)
        for j0 in range(i0, m, BLOCK):
            j = j0 + tl.arange(0, BLOCK)[None, :]
            w_j = tl.load(w + row_w + j, mask=j < m, other=0.0) if W else tl.where(j < m, 1.0 / m, 0.0)
            apart = tl.zeros([BLOCK, BLOCK], dtype=z.dtype.element_ty)
            for k in tl.static_range(K):
                cut = tl.load(limits + (k if CK > 1 else 0))
                z_i = tl.minimum(tl.load(z + row_z + i * K + k, mask=i < m, other=0.0), cut)
                z_j = tl.minimum(tl.load(z + row_z + j * K + k, mask=j < m, other=0.0), cut)
                apart += (z_i - z_j) * (z_i - z_j)
            tile = _power(apart, beta, ONE)
            # tiles right of the diagonal stand for their mirror images too
            part = tl.sum(tl.sum(w_i * w_j * tile, axis=1), axis=0)
            between += (part * tl.where(j0 > i0, 2.0, 1.0)).to(z.dtype.element_ty)
    one = tl.arange(0, 1)
    tl.store(accuracy + row * D + d + one, to_outcome)
    tl.store(spread + row * D + d + one, between)


def energy_terms(
    z: Tensor, w: Tensor | None, y: Tensor, c: Tensor, beta: float, lags: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The two sums of the energy score; lags, and members with times of their own, take the array formula."""
    double = z.dtype == torch.float64
    if lags is not None or c.ndim == 4 or (double and beta != 1):
        return array_terms(z, w, y, c, beta, lags)
    if double and w is None:  # scalars of a kernel are single: 1/m and beta would cost half of the digits
        w = z.new_full((1, z.shape[1]), 1 / z.shape[1])
    n, k = y.shape
    m, draws = z.shape[1], c.shape[1]
    z, y = z.contiguous(), y.to(z.dtype).contiguous()
    c = c.to(z.dtype).expand(n, draws, c.shape[2]).contiguous()
    weights = z if w is None else w.to(z.dtype).contiguous()
    accuracy, spread = (torch.empty(n, draws, dtype=z.dtype, device=z.device) for _ in range(2))
    _kernel[(n, draws)](
        z,
        weights,
        y,
        c,
        accuracy,
        spread,
        m,
        int(z.shape[0] == 1 and n > 1),
        int(w is not None and w.shape[0] > 1),
        float(beta),
        D=draws,
        K=k,
        CK=c.shape[2],
        ONE=beta == 1,
        W=w is not None,
        BLOCK=min(_BLOCK, triton.next_power_of_2(max(m, 16))),
    )
    return accuracy.mean(dim=1), spread.mean(dim=1)
