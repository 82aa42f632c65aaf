"""Distributions given by a few numbers: SciPy's values, accurate tails, right gradients, bad parameters."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from scipy.integrate import quad

from censcore.distributions import (
    Exponential,
    Gamma,
    Gompertz,
    LogLogistic,
    LogNormal,
    PiecewiseExponential,
    PointMass,
    Uniform,
    Weibull,
)
from censcore.exceptions import InvalidInputError, InvalidTypeError

INF = float("inf")
A, B = np.array([0.6, 1.0, 3.0]), np.array([2.0, 0.5, 1.5])

#: Each distribution beside the same distribution of SciPy.
PAIRS = {
    "Weibull": (Weibull(A, B), scipy.stats.weibull_min(A, scale=B)),
    "Exponential": (Exponential(A), scipy.stats.expon(scale=1 / A)),
    "LogNormal": (LogNormal(np.log(B), A), scipy.stats.lognorm(A, scale=B)),
    "LogLogistic": (LogLogistic(A, B), scipy.stats.fisk(A, scale=B)),
    "Gamma": (Gamma(A, B), scipy.stats.gamma(A, scale=1 / B)),
    "Gompertz": (Gompertz(A, B), scipy.stats.gompertz(B / A, scale=1 / A)),
    "Uniform": (Uniform(A, A + B), scipy.stats.uniform(A, B)),
}
TIMES = np.array([1e-8, 0.01, 0.3, 1.0, 1.7, 4.0, 25.0])


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("word", ["sf", "cdf", "logsf", "logpdf"])
def test_values_are_scipys(name, word):
    distribution, frozen = PAIRS[name]
    with np.errstate(all="ignore"):
        expected = np.array([getattr(frozen, word)(t) for t in TIMES]).T
        if word == "logsf":  # of some versions it loses its digits at small times
            F = np.array([frozen.cdf(t) for t in TIMES]).T
            expected = np.where(F < 0.5, np.log1p(-F), expected)
    finite = np.isfinite(expected)  # SciPy's logarithms give up where survival underflows
    assert_allclose(
        getattr(distribution, word)(TIMES[None, :])[finite], expected[finite], rtol=1e-9, atol=1e-300
    )


@pytest.mark.parametrize("name", PAIRS)
def test_quantiles_and_mean_are_scipys(name):
    distribution, frozen = PAIRS[name]
    p = np.array([1e-9, 0.1, 0.5, 0.9, 0.9999])
    assert_allclose(distribution.icdf(p[None, :]), np.array([frozen.ppf(x) for x in p]).T, rtol=1e-7)
    assert_allclose(distribution.isf(p[None, :]), np.array([frozen.isf(x) for x in p]).T, rtol=1e-7)
    mean = np.where(A <= 1, INF, frozen.mean()) if name == "LogLogistic" else frozen.mean()
    assert_allclose(distribution.mean(), mean, rtol=1e-10)


@pytest.mark.parametrize("name", PAIRS)
def test_far_tails_keep_their_digits(name):
    """Survival at isf(p) is p down to 1e-290, and the lower quantiles of tiny levels come back too."""
    distribution, _ = PAIRS[name]
    if name == "Uniform":
        return  # times next to the ends of a bounded support are not that finely spaced
    p = np.broadcast_to([1e-290, 1e-100, 1e-30, 1e-12], (3, 4))
    t = distribution.isf(p)
    finite = np.isfinite(t)
    inside = np.where(finite, t, 1.0)
    assert_allclose(distribution.sf(inside)[finite], p[finite], rtol=1e-11)
    assert_allclose(distribution.logsf(inside)[finite], np.log(p)[finite], rtol=1e-13)
    low = np.broadcast_to([1e-30, 1e-12], (3, 2))
    assert_allclose(distribution.cdf(distribution.icdf(low)), low, rtol=1e-11)


def test_log_survival_goes_on_where_survival_underflows():
    t = 1e4
    assert_allclose(Weibull(2.0, 1.0).logsf(t), [-1e8])
    assert_allclose(Gamma(1.0, 1.0).logsf(t), [-1e4], rtol=1e-14)
    # k = 3: Q = e^-x (1 + x + x^2 / 2)
    assert_allclose(Gamma(3.0, 1.0).logsf(t), [-t + np.log1p(t + t * t / 2)], rtol=1e-14)
    assert_allclose(LogNormal(0.0, 0.1).logsf(1e6), [scipy.stats.norm.logsf(np.log(1e6) / 0.1)], rtol=1e-12)
    assert_allclose(Gompertz(1.0, 1.0).logsf(100.0), [-np.expm1(100.0)])
    assert LogLogistic(2.0, 1.0).sf(1e200)[0] == 0
    assert_allclose(LogLogistic(2.0, 1.0).logsf(1e200), [-400 * np.log(10)])


@pytest.mark.parametrize("shape", [1.0001, 1.01, 1.3, 2.0, 7.0])
def test_mean_of_heavy_tails(shape):
    b = np.pi / shape
    assert_allclose(LogLogistic(shape, 3.0).mean(), [3.0 * b / np.sin(b)], rtol=1e-9)


@pytest.mark.parametrize("shape", [0.3, 0.7, 1.0])
def test_infinite_mean_of_heavier_tails(shape):
    distribution = LogLogistic(shape, 3.0)
    assert distribution.mean()[0] == INF
    assert distribution.integrated_sf(5.0, INF)[0] == INF
    t = 1e6
    assert np.isfinite(distribution.integrated_sf(0.0, t)[0])


def test_integral_of_log_logistic_survival_is_a_logarithm_for_shape_one():
    t = np.array([[1e-6, 1.0, 1e3, 1e12, 1e100]])
    assert_allclose(LogLogistic(1.0, 2.0).integrated_sf(0.0, t), 2 * np.log1p(t / 2), rtol=1e-10)


@pytest.mark.parametrize("name", PAIRS)
def test_small_integrals_far_out_keep_their_digits(name):
    """Far in the tail the integral from t on is the mean excess times P(T > t); quadrature knows it."""
    distribution, _ = PAIRS[name]
    if name in ("Uniform", "LogLogistic"):
        return
    start = distribution.isf(1e-25)
    for i, a in enumerate(start):
        one = distribution[i]
        width = float(one.isf(1e-30)[0] - a)
        cuts = a + width * np.array([0.0, 0.1, 0.3, 1.0])
        expected = sum(
            quad(lambda s, one=one: float(one.sf(s)[0]), *piece, epsabs=0, epsrel=1e-11)[0]
            for piece in pairwise(cuts)
        )
        assert_allclose(one.integrated_sf(a, a + width), [expected], rtol=1e-8)


def test_integral_where_the_mean_overflows():
    distribution = LogNormal(0.0, 40.0)
    assert distribution.mean()[0] == INF
    assert distribution.integrated_sf(0.0, 1.0)[0] < 1
    average = distribution.sf(np.linspace(1, 2, 10001)[None, :]).mean()
    assert_allclose(distribution.integrated_sf(1.0, 2.0), [average], rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Weibull(0.0, 1.0), "shape must be positive and finite, between .*; got 0.0"),
        (
            lambda: Weibull([1.0, -1.0], 1.0),
            r"shape must be positive and finite, between .*; got -1.0, in 1 subject \(1\)",
        ),
        (lambda: Weibull(1.0, np.nan), "scale must be positive and finite, between .*; got nan"),
        (lambda: Weibull(1.0, INF), "scale must be positive and finite, between .*; got inf"),
        (lambda: Weibull(np.ones((2, 2)), 1.0), r"one value per subject \(n,\)"),
        (lambda: Weibull([1.0, 2.0], [1.0, 2.0, 3.0]), "shape has 2, scale has 3"),
        (lambda: LogNormal(INF, 1.0), "mu must be finite"),
        (lambda: LogNormal(0.0, 0.0), "sigma must be positive"),
        (lambda: Gompertz(0.0, 1.0), "shape must be positive"),
        (lambda: Gompertz(-0.1, 1.0), "shape must be positive"),
        (lambda: Exponential(0), "rate must be positive"),
        (lambda: Gamma(1.0, 0.0), "rate must be positive"),
        (lambda: Uniform(-1.0, 1.0), "low must be non-negative"),
        (lambda: Uniform([1.0, 2.0], 2.0), r"low < high; it is not so in 1 subject \(1\)"),
        (lambda: PointMass(-1.0), "location must be non-negative"),
        (lambda: PointMass(np.ones((2, 2))), r"Independent\(\[PointMass"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_parameters_come_back_by_name():
    distribution = Uniform(0, [2, 3])
    assert list(distribution.parameters) == ["low", "high"]
    assert distribution.parameters["high"].tolist() == [2.0, 3.0]


@pytest.mark.parametrize("name", PAIRS)
def test_single_precision_is_kept_and_right(name):
    distribution, _ = PAIRS[name]
    single = distribution.like(np.zeros(1, np.float32))
    t = np.array([[0.0, 0.3, 1.0, 4.0, INF]], dtype=np.float32)
    p = np.array([[0.0, 1e-6, 0.5, 0.999, 1.0]], dtype=np.float32)
    for word, x in [("sf", t), ("cdf", t), ("logsf", t), ("logpdf", t), ("icdf", p), ("isf", p)]:
        value = getattr(single, word)(x)
        assert value.dtype == np.float32, word
        assert_allclose(
            value, getattr(distribution, word)(x.astype(float)), rtol=2e-4, atol=1e-6, err_msg=word
        )
    value = single.integrated_sf(0.5, 3.0)
    assert value.dtype == np.float32
    assert_allclose(value, distribution.integrated_sf(0.5, 3.0), rtol=1e-4)


def test_a_distribution_of_plain_numbers_joins_any_library():
    torch = pytest.importorskip("torch")
    distribution = Weibull(1.5, 2.0)
    assert distribution.sf(torch.tensor([1.0])).dtype == torch.float32
    assert distribution.sf(torch.tensor([1.0], dtype=torch.float64)).dtype == torch.float64
    assert distribution.sf(np.array([1.0], dtype=np.float32)).dtype == np.float32
    assert distribution.censor_at(3.0).sf(torch.tensor([1.0])).dtype == torch.float32
    assert distribution.censor_at(3.0).censor_at(2.0).sf(torch.tensor([1.0])).dtype == torch.float32
    with pytest.raises(InvalidTypeError, match="different libraries"):
        Weibull(np.array([1.5]), 2.0).sf(torch.tensor([1.0]))


# ---- gradients --------------------------------------------------------------------------------------

FAMILIES = {
    "Weibull": (Weibull, [[0.7, 1.6], [1.0, 2.0]]),
    "Exponential": (Exponential, [[0.7, 1.6]]),
    "LogNormal": (LogNormal, [[-0.3, 0.5], [0.4, 1.3]]),
    "LogLogistic": (LogLogistic, [[1.4, 3.0], [1.0, 2.0]]),
    "Gamma": (Gamma, [[0.7, 25.0], [1.0, 9.0]]),
    "Gompertz": (Gompertz, [[0.7, 1.6], [1.0, 0.2]]),
    "Uniform": (Uniform, [[0.1, 0.25], [3.0, 5.0]]),
    "PiecewiseExponential": (
        lambda rates: PiecewiseExponential([0.8, 2.0], rates),
        [[[0.5, 0.2, 1.0], [1.0, 0.3, 0.4]]],
    ),
}
WORDS = {
    "sf": lambda distribution, t, p: distribution.sf(t),
    "cdf": lambda distribution, t, p: distribution.cdf(t),
    "logsf": lambda distribution, t, p: distribution.logsf(t),
    "logpdf": lambda distribution, t, p: distribution.logpdf(t),
    "icdf": lambda distribution, t, p: distribution.icdf(p),
    "isf": lambda distribution, t, p: distribution.isf(p),
    "integrated_sf": lambda distribution, t, p: distribution.integrated_sf(t[:, :1], t),
    "mean": lambda distribution, t, p: distribution.mean(),
    "icdf_beyond": lambda distribution, t, p: distribution.icdf_beyond(t[0, 1], p),
    "sample": lambda distribution, t, p: distribution.sample(4, seed=3),
    "censored": lambda distribution, t, p: distribution.censor_at(1.1).integrated_sf(0.0, t),
}


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_are_those_of_the_formula(name, word):
    """Against differences, in the parameters, the times and the levels."""
    torch = pytest.importorskip("torch")
    family, values = FAMILIES[name]
    parameters = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in values]
    t = torch.tensor([[0.3, 0.6, 1.5, 2.7]], dtype=torch.float64, requires_grad=True)
    p = torch.tensor([[0.02, 0.4, 0.9]], dtype=torch.float64, requires_grad=True)

    def asked(t, p, *parameters):
        return WORDS[word](family(*parameters), t, p)

    torch.autograd.gradcheck(asked, (t, p, *parameters), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_are_finite_where_formulas_overflow(name):
    torch = pytest.importorskip("torch")
    family, values = FAMILIES[name]
    parameters = [torch.tensor(value, dtype=torch.float32, requires_grad=True) for value in values]
    distribution = family(*parameters)
    t = torch.tensor([[0.0, 1e-30, 1e3, 1e20, 1e37, INF]])
    for value in (
        distribution.sf(t),
        distribution.cdf(t),
        distribution.sf_left(t),
        distribution.integrated_sf(0 * t[:, :5], t[:, :5]),
    ):
        assert not torch.isnan(value).any()
        for gradient in torch.autograd.grad(value.sum(), parameters, retain_graph=True, allow_unused=True):
            assert torch.isfinite(gradient).all()


def test_cutting_an_infinite_quantile_gives_no_nan_gradient():
    torch = pytest.importorskip("torch")
    scale = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    p = torch.tensor([[0.0, 0.3, 0.4, 1.0]], dtype=torch.float64)
    for distribution in (
        Weibull(1.5, scale),
        LogNormal(0.0, scale),
        LogLogistic(1.5, scale),
        Gamma(1.5, scale),
    ):
        cut = distribution.censor_at(1e3)
        for quantiles in (cut.icdf(p), cut.isf(p)):
            (gradient,) = torch.autograd.grad(quantiles.sum(), scale)
            assert torch.isfinite(gradient).all()
            assert (gradient != 0).all()
