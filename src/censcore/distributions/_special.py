"""Special functions that the array libraries lack, with gradients that are right at the ends too."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from censcore._arrays import Array, convert, detach, is_torch, namespace, requires_grad, surely
from censcore._numerics import expm1, special

__all__ = [
    "decaying_area",
    "exp",
    "expint_scaled",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "interior",
    "log_gammaincc",
    "ndtr",
    "power",
    "relative_expm1",
]


def interior(
    formula: Callable[[Array], Array], x: Array, at_zero: float, at_end: float, end: float = np.inf
) -> Array:
    """``formula(x)`` for 0 < x < end, and its limits at both ends.

    The formula never sees an end: torch multiplies a zero gradient by an infinite slope and gets NaN, even
    where the value is thrown away afterwards, so the input is guarded and not only the output.
    """
    xp = namespace(x)
    inside = (x > 0) & (x < end)
    if surely(xp.all(inside)):
        return formula(x)
    values = formula(xp.where(inside, x, xp.full_like(x, 1.0 if np.isinf(end) else end / 2)))
    limits = xp.where(x > 0, xp.full_like(x, at_end), xp.full_like(x, at_zero))
    return xp.where(inside, values, limits)


def exp(x: Array) -> Array:
    """``exp(x)``; infinite, with gradient zero and no warning, where it overflows."""
    xp = namespace(x)
    fits = x < float(np.log(xp.finfo(x.dtype).max))
    return xp.where(fits, xp.exp(xp.where(fits, x, xp.zeros_like(x))), xp.full_like(x, np.inf))


def power(x: Array, a: Array) -> Array:
    """``x ** a``, infinite without a warning where it overflows."""
    if is_torch(x):
        return x**a
    with np.errstate(over="ignore"):
        return x**a


def ndtr(x: Array) -> Array:
    """Standard normal distribution function by erfc: torch's own loses every digit in the lower tail."""
    return 0.5 * special(x).erfc(-x / float(np.sqrt(2.0)))


def relative_expm1(x: Array) -> Array:
    """``(1 - exp(-x)) / x``, one at x = 0 and zero at infinity."""
    xp = namespace(x)
    small, endless = xp.abs(x) < 1e-5, xp.isinf(x)
    near = xp.where(small, x, xp.zeros_like(x))
    far = xp.where(small | endless, xp.ones_like(x), x)
    quotient = xp.where(small, 1 - near / 2 + near**2 / 6, -expm1(-far) / far)
    return xp.where(endless, xp.zeros_like(x), quotient)


def decaying_area(height: Array, rate: Array, width: Array) -> Array:
    r""":math:`\int_0^w ge^{-rs}\,ds=g(1-e^{-rw})/r` for g, r >= 0 and 0 <= w <= inf; gw where r = 0."""
    xp = namespace(width)
    endless = xp.isinf(width)
    w = xp.where(endless, xp.zeros_like(width), width)
    decays = rate > 0
    forever = xp.where(decays, 1 / xp.where(decays, rate, xp.ones_like(rate)), xp.full_like(rate, np.inf))
    with np.errstate(over="ignore"):  # an infinite rate w has decayed
        area = xp.where(endless, forever, w * relative_expm1(rate * w))
    return xp.where(height > 0, height, xp.ones_like(height)) * xp.where(
        height > 0, area, xp.zeros_like(area)
    )


# ---- functions of SciPy, for tensors too ---------------------------------------------------------------
#
# torch has no inverse of the incomplete gamma functions, no exponential integral, no derivative in the
# shape, and its own incomplete gamma functions are right to nine digits only. So tensors take SciPy's
# numbers in double precision, on the CPU, and the derivatives written below.


def gammainc(k: Array, x: Array) -> Array:
    """Regularized lower incomplete gamma function P(k, x), for 0 <= x <= inf."""
    from scipy.special import gammainc as f

    return _by_scipy(f, (_shape_derivative, _gamma_density), k, x)


def gammaincc(k: Array, x: Array) -> Array:
    """Regularized upper incomplete gamma function Q(k, x), for 0 <= x <= inf."""
    from scipy.special import gammaincc as f

    partials = (lambda k, x: -_shape_derivative(k, x), lambda k, x: -_gamma_density(k, x))
    return _by_scipy(f, partials, k, x)


def log_gammaincc(k: Array, x: Array) -> Array:
    """Logarithm of Q(k, x), also where Q itself is zero to machine precision."""
    return _by_scipy(_log_gammaincc, (_log_shape_derivative, _log_slope_of_gammaincc), k, x)


def gammaincinv(k: Array, p: Array) -> Array:
    """The x with P(k, x) = p, without gradient."""
    from scipy.special import gammaincinv as f

    return _by_scipy(f, (), detach(k), detach(p))


def gammainccinv(k: Array, p: Array) -> Array:
    """The x with Q(k, x) = p, without gradient."""
    from scipy.special import gammainccinv as f

    return _by_scipy(f, (), detach(k), detach(p))


def expint_scaled(x: Array) -> Array:
    r"""Scaled exponential integral :math:`e^x\int_x^\infty e^{-s}s^{-1}\,ds`, for 0 < x <= inf."""
    return _by_scipy(_expint_scaled, (lambda x: _expint_scaled(x) - 1 / x,), x)


def _expint_scaled(x: np.ndarray) -> np.ndarray:
    from scipy.special import exp1

    moderate = np.minimum(x, 50.0)
    fraction = np.zeros_like(x)
    for k in range(15, 0, -1):  # the continued fraction has converged to the last digit from x = 50 on
        fraction = k**2 / (x + 2 * k + 1 - fraction)
    return np.where(x < 50, np.exp(moderate) * exp1(moderate), 1 / (x + 1 - fraction))


def _gamma_density(k: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Derivative of P(k, x) in x; none at the ends, where x comes from an end or an underflow and stays."""
    from scipy.special import gammaln

    inside = (x > 0) & np.isfinite(x)
    x = np.where(inside, x, 1.0)
    return np.where(inside, _capped_exp((k - 1) * np.log(x) - x - gammaln(k)), 0.0)


def _capped_exp(x: np.ndarray) -> np.ndarray:
    """``exp(x)``, finite: the slopes that overflow belong to times that are zero for all purposes."""
    return np.exp(np.minimum(x, 709.0))


def _log_gammaincc(k: np.ndarray, x: np.ndarray) -> np.ndarray:
    """From P where Q is near one, from Q, and from the continued fraction of Q where Q underflows."""
    from scipy.special import gammainc, gammaincc, gammaln

    q = gammaincc(k, x)
    gone = (q < 1e18 * np.finfo(q.dtype).tiny) & np.isfinite(x)
    logq = np.where(q > 0.9, np.log1p(-np.minimum(gammainc(k, x), 0.5)), np.log(np.where(q > 0, q, 1.0)))
    if not gone.any():
        return np.where(np.isinf(x), -np.inf, logq)
    far = np.where(gone, x, k + 1.0)
    fraction = np.zeros_like(q)
    for j in range(100, 0, -1):
        fraction = j * (j - k) / (far + 2 * j + 1 - k - fraction)
    tail = k * np.log(far) - far - gammaln(k) - np.log(far + 1 - k - fraction)
    return np.where(np.isinf(x), -np.inf, np.where(gone, tail, logq))


# Central differences of order eight, f'(k) h ~ sum_j w_j (f(k + jh) - f(k - jh)).
_STENCIL = (4 / 5, -1 / 5, 4 / 105, -1 / 280)


def _log_slope_of_smaller(k: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Derivative in k of log P(k, x) where x < k, of log Q(k, x) elsewhere, to eleven digits or so.

    Either varies on the scale min(k, sqrt(k)) of k whatever x is, so differences with steps of a fiftieth of
    that leave an error near 1e-12.
    """
    from scipy.special import gammainc

    k, x = np.broadcast_arrays(k, x)
    lower = x < k
    matters = (~lower | (gammainc(k, x) > 1e-290)) & np.isfinite(x)
    inner = np.where(matters, x, k)

    def log_smaller(k: np.ndarray) -> np.ndarray:
        small = np.where(lower & matters, inner, k)
        return np.where(lower, np.log(gammainc(k, small)), _log_gammaincc(k, np.where(lower, k, inner)))

    h = 0.02 * np.minimum(k, np.sqrt(k))
    steps = enumerate(_STENCIL, start=1)
    slope = sum(w * (log_smaller(k + j * h) - log_smaller(k - j * h)) for j, w in steps) / h
    return np.where(matters, slope, 0.0)


def _shape_derivative(k: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Derivative of P(k, x) in k."""
    from scipy.special import gammainc, gammaincc

    return np.where(x < k, gammainc(k, x), -gammaincc(k, x)) * _log_slope_of_smaller(k, x)


def _log_shape_derivative(k: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Derivative of log Q(k, x) in k."""
    early = x < k
    odds = np.expm1(-_log_gammaincc(k, np.where(early, x, k)))  # P / Q
    return np.where(early, -odds, 1.0) * _log_slope_of_smaller(k, x)


def _log_slope_of_gammaincc(k: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Derivative of log Q(k, x) in x."""
    from scipy.special import gammaln, xlogy

    finite = np.where(np.isfinite(x), x, 1.0)
    slope = -_capped_exp(xlogy(k - 1, finite) - finite - gammaln(k) - _log_gammaincc(k, finite))
    return np.where(np.isfinite(x), slope, -1.0)


def _by_scipy(
    f: Callable[..., np.ndarray], partials: tuple[Callable[..., np.ndarray], ...], *values: Array
) -> Array:
    """``f`` of NumPy arrays applied to arrays of either library; ``partials`` are its derivatives."""
    if not any(is_torch(value) for value in values):
        return f(*values)
    import torch

    tensors = torch.broadcast_tensors(*values)
    if torch.is_grad_enabled() and any(requires_grad(tensor) for tensor in tensors):
        return _bridge().apply(f, partials, *tensors)
    return convert(f(*_as_doubles(tensors)), tensors[0])


def _as_doubles(tensors: Any) -> list[np.ndarray]:
    return [tensor.detach().cpu().double().numpy() for tensor in tensors]


@cache
def _bridge() -> Any:
    """The autograd function behind :func:`_by_scipy`, made when torch is there."""
    import torch
    from torch.autograd.function import once_differentiable

    class Bridge(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, f: Any, partials: Any, *tensors: Any) -> Any:
            ctx.partials = partials
            ctx.save_for_backward(*tensors)
            return convert(f(*_as_doubles(tensors)), tensors[0])

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, gradient: Any) -> Any:
            arrays = _as_doubles(ctx.saved_tensors)
            wanted = ctx.needs_input_grad[2:]
            slopes = (
                partial(*arrays) if need else None for partial, need in zip(ctx.partials, wanted, strict=True)
            )
            return None, None, *(None if d is None else gradient * convert(d, gradient) for d in slopes)

    return Bridge
