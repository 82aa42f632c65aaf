"""Frozen distributions of SciPy as distributions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

from censcore.distributions import ScipyDistribution, Weibull
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.testing import check_distribution

INF = float("inf")


@pytest.mark.parametrize(
    "frozen",
    [
        scipy.stats.expon(),
        scipy.stats.halfnorm(scale=[1.0, 2.0]),
        scipy.stats.beta(2.0, 3.0, loc=1.0),
        scipy.stats.gengamma(2.0, [0.8, 1.5], scale=2.0),
        scipy.stats.truncnorm(-1.0, 2.0, loc=3.0, scale=[1.0, 2.0]),
    ],
    ids=lambda frozen: frozen.dist.name,
)
def test_contract(frozen):
    check_distribution(ScipyDistribution(frozen))


def test_quantiles_reach_the_end_of_the_support_and_stay_inside():
    distribution = ScipyDistribution(scipy.stats.truncnorm(-1.0, 2.0, loc=3.0, scale=[1.0, 2.0]))
    p, end = np.array([[0.0, 1e-30, 1e-20, 1e-16]]), np.array([[5.0], [7.0]])
    t = distribution.isf(p)
    assert (t <= end).all()
    assert_allclose(t[:, :3], np.broadcast_to(end, (2, 3)), rtol=0)
    assert (distribution.sf(t) <= p + 1e-16).all()
    assert (distribution.icdf(1 - p) <= end).all()
    assert distribution.isf(np.float32([[1e-30]])).dtype == np.float32


def test_numbers_are_those_of_our_own_distribution():
    theirs = ScipyDistribution(scipy.stats.weibull_min([0.7, 1.5], scale=2.0))
    ours = Weibull([0.7, 1.5], 2.0)
    t = np.array([[0.0, 0.5, 3.0, INF]])
    for word in ("sf", "cdf", "logsf", "logpdf"):
        assert_allclose(getattr(theirs, word)(t), getattr(ours, word)(t), rtol=1e-12)
    assert_allclose(theirs.mean(), ours.mean(), rtol=1e-10)
    assert_allclose(theirs.sample(5, 1), ours.sample(5, 1), rtol=1e-12)


@pytest.mark.parametrize(
    ("frozen", "error", "message"),
    [
        (scipy.stats.norm(5.0, 1.0), InvalidInputError, r"norm starts at -inf.*\[0, inf\)"),
        (scipy.stats.expon(loc=-1.0), InvalidInputError, "expon starts at -1"),
        (scipy.stats.gamma(-1.0), InvalidInputError, "outside their range"),
        (scipy.stats.expon(scale=np.ones((2, 2))), InvalidInputError, r"takes scale as a number"),
        (scipy.stats.poisson(3.0), InvalidTypeError, r"atoms matter.*Step\(times, cdf=frozen.cdf\(times\)\)"),
        (scipy.stats.expon, InvalidTypeError, "frozen continuous distribution"),
        (scipy.stats.multivariate_normal(np.zeros(2)), InvalidTypeError, "frozen continuous distribution"),
        (3.0, InvalidTypeError, "got float"),
    ],
)
def test_what_is_refused(frozen, error, message):
    with pytest.raises(error, match=message):
        ScipyDistribution(frozen)


def test_torch_is_refused_by_name():
    torch = pytest.importorskip("torch")
    distribution = ScipyDistribution(scipy.stats.expon())
    with pytest.raises(InvalidTypeError, match="NumPy only; got a torch tensor"):
        distribution.sf(torch.ones(2))
    with pytest.raises(InvalidTypeError, match="NumPy only"):
        distribution.like(torch.ones(2))


def test_single_precision_is_kept():
    distribution = ScipyDistribution(scipy.stats.expon(scale=np.float32([1.0, 2.0])))
    assert distribution.sf(np.float32([[0.5, 1.0]])).dtype == np.float32
