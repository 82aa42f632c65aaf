"""Inversion, threads, hashes, neighbours of floats and safe elementary functions."""

from __future__ import annotations

import hashlib
import math
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from censcore._arrays import Array, detach, is_torch, namespace, requires_grad

# One chunk of rows works on at most this many numbers, so that memory stays a small multiple of the input.
CHUNK_NUMBERS = 2_000_000


def scramble(x: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: a bijection of 64 bits that spreads every bit over all."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def bits_of(column: np.ndarray) -> np.ndarray:
    """64 bits per entry, equal for equal entries: numbers by their value, everything else by its text."""
    if column.dtype.kind in "biuf":
        return (column.astype(np.float64) + 0.0).view(np.uint64)  # + 0.0: -0 is 0
    try:
        texts = column.astype(str)
    except (TypeError, ValueError):  # entries of several fields, or lists
        texts = np.array([str(entry) for entry in column.tolist()])
    text, number = np.unique(texts, return_inverse=True)
    digests = [hashlib.blake2b(entry.encode(), digest_size=8).digest() for entry in text.tolist()]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)[number.reshape(-1)]


# Calls of f on few numbers cost the same for one point as for several.
_SECTIONS, _FEW_NUMBERS = 16, 512


def invert_decreasing(f: Callable[[Array], Array], p: Array) -> Array:
    r"""The smallest :math:`t\ge 0` with :math:`f(t)\le p`, to the last bit; infinity if there is none.

    Searches the bit patterns of the non-negative floats, which are ordered like the floats, so that jumps,
    flat parts and tails of any scale need no bracket and no tolerance. Each step cuts the interval into
    halves, or into more parts where the numbers are few: f gets columns of times, (n, any).
    """
    xp = namespace(p)
    single = p.dtype == xp.float32
    integer = xp.int32 if single else xp.int64
    low = xp.zeros_like(p, dtype=integer) - 1
    high = xp.zeros_like(p, dtype=integer) + int(
        np.array(np.inf, np.float32 if single else np.float64).view(np.int32 if single else np.int64)
    )
    sections = 2
    while bool(xp.any(high - low > 1)):
        cuts = xp.arange(1, sections, dtype=integer, device=low.device)
        at = _cut(low[..., None], high[..., None], cuts, sections)
        t = xp.where(at < 0, xp.zeros_like(at), at).view(p.dtype)
        with np.errstate(over="ignore", under="ignore"):  # the search visits the largest float there is
            value = f(xp.reshape(t, (t.shape[0], -1)))
        below = (xp.reshape(value, (value.shape[0], *t.shape[1:])) <= p[..., None]) & (at >= 0)
        first = xp.min(xp.where(below, cuts, xp.full_like(cuts, sections)), axis=-1)
        low, high = _cut(low, high, first - 1, sections), _cut(low, high, first, sections)
        sections = _SECTIONS if math.prod(first.shape) <= _FEW_NUMBERS else 2
    return high.view(p.dtype)


def _cut(low: Array, high: Array, part: Array, sections: int) -> Array:
    """The number low + (high - low) * part / sections, without the overflow of the product."""
    width = high - low
    return low + width // sections * part + width % sections * part // sections


def xlogy(x: Array, y: Array) -> Array:
    """``x * log(y)`` with 0 log 0 = 0, in value and in gradient."""
    xp = namespace(x)
    zero = (x == 0) & (y == 0)
    product = x * safe_log(xp.where(zero, 1.0, y))
    return xp.where(zero, 0.0, product)


def safe_log(x: Array) -> Array:
    """``log(x)`` that gives -inf at zero, without a warning and with gradient zero."""
    if requires_grad(x):
        xp, positive = namespace(x), x > 0
        return xp.where(positive, xp.log(xp.where(positive, x, 1.0)), xp.log(detach(x)))
    if is_torch(x):
        return namespace(x).log(x)
    with np.errstate(divide="ignore"):
        return np.log(x)


def log1p(x: Array) -> Array:
    """``log(1 + x)``, -inf at -1 without a warning."""
    if is_torch(x):
        return namespace(x).log1p(x)
    with np.errstate(divide="ignore"):
        return np.log1p(x)


def expm1(x: Array) -> Array:
    """``exp(x) - 1``; infinite without a warning where it overflows."""
    if is_torch(x):
        return namespace(x).expm1(x)
    with np.errstate(over="ignore"):
        return np.expm1(x)


def special(x: Array) -> Any:
    """The module of special functions for the library of ``x``: scipy.special or torch.special."""
    if is_torch(x):
        return sys.modules["torch"].special
    import scipy.special

    return scipy.special


def chunked_rows(
    function: Callable[[slice], Array],
    rows: int,
    numbers_per_row: int,
    like: Array,
    budget: int = CHUNK_NUMBERS,
) -> Array:
    """Apply ``function`` to slices of rows and join the parts; the result does not depend on the slices.

    One slice works on about ``budget`` numbers. NumPy slices run in threads (the kernels release the GIL);
    torch runs them in order, on a GPU in slices as large as its memory allows.
    """
    if rows * numbers_per_row <= budget:
        return function(slice(0, rows))
    in_order = is_torch(like)
    if in_order and like.is_cuda:
        budget = max(budget, _free_numbers(like))
    parts = _row_slices(rows, numbers_per_row, budget)
    if len(parts) == 1:
        return function(parts[0])
    if in_order:
        return namespace(like).concat([function(part) for part in parts], axis=0)
    first = function(parts[0])
    joined = np.empty((rows, *first.shape[1:]), dtype=first.dtype)
    joined[parts[0]] = first

    def fill(part: slice) -> None:
        joined[part] = function(part)

    run_threads(fill, parts[1:])
    return joined


def fill_rows(fill: Callable[[slice], None], rows: int, numbers_per_row: int, budget: int) -> None:
    """Call ``fill`` for slices of rows, in threads: what writes its part of an array where it belongs."""
    run_threads(fill, _row_slices(rows, numbers_per_row, budget))


def _row_slices(rows: int, numbers_per_row: int, budget: int) -> list[slice]:
    step = max(1, budget // max(1, numbers_per_row))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


# On a GPU: several intermediate results in double precision for every number of a slice.
_BYTES_PER_NUMBER = 128


def _free_numbers(like: Array) -> int:
    """How many numbers a GPU can work on at once; small slices leave it waiting for the next one."""
    torch = sys.modules["torch"]
    return int(torch.cuda.mem_get_info(like.device)[0] // _BYTES_PER_NUMBER)


_POOL_NAME = "censcore"
_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    """A forked child inherits no threads, so it must make its own pool."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def run_threads(function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """Map over ``items`` in the shared thread pool, in order.

    ``CENSCORE_THREADS`` sets the number of threads; the default is the number of usable cores. A thread of
    the pool does its own work alone: waiting for others of a full pool would never end.
    """
    global _pool
    threads = _thread_count()
    inside = threading.current_thread().name.startswith(_POOL_NAME)
    if threads == 1 or len(items) == 1 or inside:
        return [function(item) for item in items]
    if _pool is None or _pool._max_workers != threads:
        _pool = ThreadPoolExecutor(threads, thread_name_prefix=_POOL_NAME)
    return list(_pool.map(function, items))


def _thread_count() -> int:
    asked = os.environ.get("CENSCORE_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def next_float(x: Array) -> Array:
    """The next larger float: T > x is T >= next_float(x)."""
    return _towards(x, np.inf)


def previous_float(x: Array) -> Array:
    """The next smaller float: T < x is T <= previous_float(x)."""
    return _towards(x, -np.inf)


def _towards(x: Array, end: float) -> Array:
    if is_torch(x):
        import torch

        return torch.nextafter(x, torch.full_like(x, end))
    with np.errstate(over="ignore"):  # after the largest float comes infinity
        return np.nextafter(x, end)
