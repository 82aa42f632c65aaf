"""Special functions that the array libraries lack, with gradients that are right at the ends too."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from censcore._arrays import Array, convert, detach, is_torch, namespace, requires_grad, surely, to_numpy
from censcore._numerics import expm1, special
from censcore.exceptions import DerivativeError


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
    values = formula(xp.where(inside, x, 1.0 if np.isinf(end) else end / 2))
    limits = xp.where(x > 0, xp.full_like(x, at_end), xp.full_like(x, at_zero))
    return xp.where(inside, values, limits)


def exp(x: Array) -> Array:
    """``exp(x)``; infinite, with gradient zero and no warning, where it overflows."""
    xp = namespace(x)
    fits = x < float(np.log(xp.finfo(x.dtype).max))
    return xp.where(fits, xp.exp(xp.where(fits, x, 0.0)), xp.full_like(x, np.inf))


def log_of_positive(t: Array) -> Array:
    """``log(t)`` of positive finite times; zero for the others, whose values are not used."""
    xp, limits = namespace(t), namespace(t).finfo(t.dtype)
    positive = (t > float(limits.tiny) / float(limits.eps)) & (t < np.inf)
    return xp.log(xp.where(positive, t, 1.0))


def ndtr(x: Array) -> Array:
    """Standard normal distribution function by erfc: torch's own loses every digit in the lower tail."""
    return 0.5 * special(x).erfc(-x / float(np.sqrt(2.0)))


def relative_expm1(x: Array) -> Array:
    """``(1 - exp(-x)) / x``, one at x = 0 and zero at infinity."""
    xp = namespace(x)
    small, endless = xp.abs(x) < 1e-5, xp.isinf(x)
    near = xp.where(small, x, 0.0)
    far = xp.where(small | endless, 1.0, x)
    quotient = xp.where(small, 1 - near / 2 + near**2 / 6, -expm1(-far) / far)
    return xp.where(endless, xp.zeros_like(x), quotient)


def decaying_area(height: Array, rate: Array, width: Array) -> Array:
    r""":math:`\int_0^w ge^{-rs}\,ds=g(1-e^{-rw})/r` for g, r >= 0 and 0 <= w <= inf; gw where r = 0."""
    xp = namespace(width)
    endless = xp.isinf(width)
    w = xp.where(endless, 0.0, width)
    decays = rate > 0
    with np.errstate(over="ignore"):  # rate * w may overflow, and 1 / rate of a subnormal rate
        forever = xp.where(decays, 1 / xp.where(decays, rate, 1.0), xp.full_like(rate, np.inf))
        area = xp.where(endless, forever, w * relative_expm1(rate * w))
    return xp.where(height > 0, height, 1.0) * xp.where(height > 0, area, 0.0)


# ---- functions of SciPy, for tensors too ---------------------------------------------------------------
#
# torch has no inverse of the incomplete gamma functions, no exponential integral, no derivative in the
# shape, and its own incomplete gamma functions are right to nine digits only. So tensors take SciPy's
# numbers in double precision, on the CPU, and the derivatives written below. The derivatives are such
# functions themselves, so that second ones exist.


def _scipy() -> Any:
    """SciPy's functions, loaded when the first of them is needed."""
    import scipy.special

    return scipy.special


def gammainc(k: Array, x: Array) -> Array:
    """Regularized lower incomplete gamma function P(k, x), for 0 <= x <= inf."""
    partials = (lambda k, x: -_in_shape(k, x), lambda k, x: -gammaincc(k, x) * _slope_of_log(k, x))
    return _by_scipy(_scipy().gammainc, partials, k, x)


def gammaincc(k: Array, x: Array) -> Array:
    """Regularized upper incomplete gamma function Q(k, x), for 0 <= x <= inf."""
    partials = (_in_shape, lambda k, x: gammaincc(k, x) * _slope_of_log(k, x))
    return _by_scipy(_scipy().gammaincc, partials, k, x)


def log_gammaincc(k: Array, x: Array) -> Array:
    """Logarithm of Q(k, x), also where Q itself is zero to machine precision."""
    return _by_scipy(_log_gammaincc, (_d_shape_of_log, _slope_of_log), k, x)


def _in_shape(k: Array, x: Array) -> Array:
    r""":math:`\partial_kQ=Q\,\partial_k\log Q`."""
    return gammaincc(k, x) * _d_shape_of_log(k, x)


def _log_over_scale(k: Array, x: Array) -> Array:
    r""":math:`\partial_k\log p=\log x-\psi(k)`; zero at the ends, where nothing depends on k."""
    xp, inside = namespace(x), _inside(x)
    log = xp.log(xp.where(inside, x, 1.0))
    return xp.where(inside, log - special(x).digamma(k), xp.zeros_like(log))


def _inside(x: Array) -> Array:
    return (x > 0) & (x < np.inf)


def _slope_of_log(k: Array, x: Array) -> Array:
    r""":math:`-h=\partial_x\log Q=-p/Q`, where :math:`\partial_xh=h\{(k-1)/x-1+h\}`."""

    def in_x(k: Array, x: Array) -> Array:
        h = -_slope_of_log(k, x)
        return -h * ((k - 1) / namespace(x).where(_inside(x), x, 1.0) - 1 + h)

    return _by_scipy(_log_slope_of_gammaincc, (_mixed_of_log, in_x), k, x)


def _mixed_of_log(k: Array, x: Array) -> Array:
    r""":math:`\partial_k\partial_x\log Q=-h\{\log x-\psi(k)-\partial_k\log Q\}`."""
    return _slope_of_log(k, x) * (_log_over_scale(k, x) - _d_shape_of_log(k, x))


def _d_shape_of_log(k: Array, x: Array) -> Array:
    r""":math:`\partial_k\log Q(k,x)`."""
    return _by_scipy(_log_shape_derivative, (_d2_shape_of_log, _mixed_of_log), k, x)


def _d2_shape_of_log(k: Array, x: Array) -> Array:
    r""":math:`\partial_k^2\log Q(k,x)`, without a derivative of its own."""
    return _by_scipy(_second_log_shape_derivative, None, k, x)


def gammaincinv(k: Array, p: Array) -> Array:
    """The x with P(k, x) = p, without gradient."""
    return _by_scipy(_scipy().gammaincinv, (), detach(k), detach(p))


def gammainccinv(k: Array, p: Array) -> Array:
    """The x with Q(k, x) = p, without gradient."""
    return _by_scipy(_scipy().gammainccinv, (), detach(k), detach(p))


def expint_scaled(x: Array) -> Array:
    r"""Scaled exponential integral :math:`e^x\int_x^\infty e^{-s}s^{-1}\,ds`, for 0 < x <= inf."""
    return _by_scipy(_expint_scaled, (lambda x: expint_scaled(x) - 1 / x,), x)


def _expint_scaled(x: np.ndarray) -> np.ndarray:
    moderate = np.minimum(x, 50.0)
    fraction = np.zeros_like(x)
    for k in range(15, 0, -1):  # the continued fraction has converged to the last digit from x = 50 on
        fraction = k**2 / (x + 2 * k + 1 - fraction)
    return np.where(x < 50, np.exp(moderate) * _scipy().exp1(moderate), 1 / (x + 1 - fraction))


def _log_gammaincc(k: np.ndarray, x: np.ndarray) -> np.ndarray:
    """From P where Q is near one, from Q, and from the continued fraction of Q where Q underflows."""
    q = gammaincc(k, x)
    gone = (q < 1e18 * np.finfo(q.dtype).tiny) & np.isfinite(x)
    logq = np.where(q > 0.9, np.log1p(-np.minimum(gammainc(k, x), 0.5)), np.log(np.where(q > 0, q, 1.0)))
    if not gone.any():
        return np.where(np.isinf(x), -np.inf, logq)
    far = np.where(gone, x, k + 1.0)
    fraction = np.zeros_like(q)
    for j in range(100, 0, -1):
        fraction = j * (j - k) / (far + 2 * j + 1 - k - fraction)
    tail = k * np.log(far) - far - _scipy().gammaln(k) - np.log(far + 1 - k - fraction)
    return np.where(np.isinf(x), -np.inf, np.where(gone, tail, logq))


# Central differences of order eight: f'(k) h ~ sum_j w_j (f(k + jh) - f(k - jh)), and for the second
# derivative f''(k) h^2 ~ sum_j w_j (f(k + jh) - 2 f(k) + f(k - jh)).
_STENCIL = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
_STENCIL_OF_SECOND = (8 / 5, -1 / 5, 8 / 315, -1 / 560)


def _slopes_of_smaller(k: np.ndarray, x: np.ndarray, second: bool = False) -> list[np.ndarray]:
    """Derivatives in k of log P(k, x) where x < k, of log Q(k, x) elsewhere: the first, and the second.

    Either varies on the scale min(k, sqrt(k)) of k whatever x is, so differences with steps of a fiftieth of
    that leave an error near 1e-12 in the first; steps of a twentieth one near 1e-10 in the second.
    """
    k, x = np.broadcast_arrays(k, x)
    lower = x < k
    matters = (~lower | (gammainc(k, x) > 1e-290)) & np.isfinite(x)
    inner = np.where(matters, x, k)

    def log_smaller(k: np.ndarray) -> np.ndarray:
        small = np.where(lower & matters, inner, k)
        return np.where(lower, np.log(gammainc(k, small)), _log_gammaincc(k, np.where(lower, k, inner)))

    scale = np.minimum(k, np.sqrt(k))
    h = 0.02 * scale
    steps = enumerate(_STENCIL, start=1)
    slopes = [sum(w * (log_smaller(k + j * h) - log_smaller(k - j * h)) for j, w in steps) / h]
    if second:
        h, here = 0.05 * scale, 2 * log_smaller(k)
        steps = enumerate(_STENCIL_OF_SECOND, start=1)
        bends = sum(w * (log_smaller(k + j * h) - here + log_smaller(k - j * h)) for j, w in steps)
        slopes.append(bends / h**2)
    return [np.where(matters, slope, 0.0) for slope in slopes]


def _second_log_shape_derivative(k: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Second derivative of log Q(k, x) in k."""
    slope, bend = _slopes_of_smaller(k, x, second=True)
    early = x < k
    odds = np.where(early, np.expm1(-_log_gammaincc(k, np.where(early, x, k))), 0.0)  # P / Q
    return np.where(early, -odds * (bend + slope**2) - (odds * slope) ** 2, bend)


def _log_shape_derivative(k: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Derivative of log Q(k, x) in k."""
    early = x < k
    odds = np.expm1(-_log_gammaincc(k, np.where(early, x, k)))  # P / Q
    return np.where(early, -odds, 1.0) * _slopes_of_smaller(k, x)[0]


def _log_slope_of_gammaincc(k: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Derivative of log Q(k, x) in x; zero at x = 0, an end of the support or an underflow."""
    inside = (x > 0) & np.isfinite(x)
    x_inside = np.where(inside, x, 1.0)
    # kept finite: slopes overflow only at times that are practically zero
    log_slope = (k - 1) * np.log(x_inside) - x_inside - _scipy().gammaln(k) - _log_gammaincc(k, x_inside)
    return np.where(inside, -np.exp(np.minimum(log_slope, 709.0)), np.where(x > 0, -1.0, 0.0))


Partials = tuple[Callable[..., Array], ...] | None


def _by_scipy(f: Callable[..., np.ndarray], partials: Partials, *values: Array) -> Array:
    """``f`` of NumPy arrays applied to arrays of either library.

    ``partials`` are its derivatives, functions of arrays of either library; None where they are not known.
    """
    if not any(is_torch(value) for value in values):
        return f(*values)
    import torch

    tensors = torch.broadcast_tensors(*values)
    if torch.is_grad_enabled() and any(requires_grad(tensor) for tensor in tensors):
        return _bridge().apply(f, partials, *tensors)
    return convert(f(*_as_doubles(tensors)), tensors[0])


def _as_doubles(tensors: Any) -> list[np.ndarray]:
    return [to_numpy(tensor).astype(np.float64, copy=False) for tensor in tensors]


def _known(partials: Partials) -> tuple[Callable[..., Array], ...]:
    if partials is None:
        raise DerivativeError(
            "Third derivatives in the shape of the gamma distribution are not available. First and second "
            "ones are; detach the shape where more are taken."
        )
    return partials


@cache
def _bridge() -> Any:
    """The autograd function behind :func:`_by_scipy`, made when torch is there."""
    import torch

    class Bridge(torch.autograd.Function):
        @staticmethod
        def forward(f: Any, partials: Any, *tensors: Any) -> Any:
            return convert(f(*_as_doubles(tensors)), tensors[0])

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.partials = inputs[1]
            ctx.save_for_backward(*inputs[2:])
            ctx.save_for_forward(*inputs[2:])

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            wanted = zip(_known(ctx.partials), ctx.needs_input_grad[2:], strict=True)
            slopes = [partial(*ctx.saved_tensors) if need else None for partial, need in wanted]
            return None, None, *(None if slope is None else gradient * slope for slope in slopes)

        @staticmethod
        def jvp(ctx: Any, _: Any, __: Any, *tangents: Any) -> Any:
            moved = [(d, v) for d, v in zip(_known(ctx.partials), tangents, strict=True) if v is not None]
            return sum(partial(*ctx.saved_tensors) * tangent for partial, tangent in moved)

        @staticmethod
        def vmap(info: Any, in_dims: Any, f: Any, partials: Any, *tensors: Any) -> Any:
            dims = zip(tensors, in_dims[2:], strict=True)
            aligned = [x[None] if d is None else x.movedim(d, 0) for x, d in dims]
            return _bridge().apply(f, partials, *torch.broadcast_tensors(*aligned)), 0

    return Bridge


# ---- where second derivatives end ----------------------------------------------------------------------


def once_differentiable(x: Array) -> Array:
    """``x``, whose first derivative is right; taking a second one is an error and not a wrong number."""
    return _guards()[0].apply(x) if requires_grad(x) else x


@cache
def _guards() -> tuple[Any, Any]:
    """Two identities: the derivative of the first is the second, which has none."""
    import torch

    class Once(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x.clone()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            # the input is passed on, so that all gradients of the parameters go through the guard
            if not torch.is_grad_enabled():
                return gradient
            return _guards()[1].apply(gradient, *ctx.saved_tensors)

    class End(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(gradient: Any, x: Any) -> Any:
            return gradient.clone()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            return None

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            raise DerivativeError(
                "Second derivatives of quantiles and draws of this distribution are not available, only "
                "first ones. Its sf, cdf, logpdf, crps and log_score have second derivatives."
            )

    return Once, End
