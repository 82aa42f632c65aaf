"""Whatever the parameters and the times: no NaN, no warning, probabilities, monotone integrals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censcore.distributions import (
    Exponential,
    Gamma,
    Gompertz,
    LogLogistic,
    LogNormal,
    Mixture,
    PiecewiseExponential,
    PointMass,
    Uniform,
    Weibull,
)

positive = st.floats(1e-3, 1e3)
shape = st.floats(0.02, 50.0)
times = st.lists(
    st.one_of(st.floats(0, 1e6), st.sampled_from([0.0, 5e-324, 1e-300, 1e-20, 1e100, 1e300])),
    min_size=2,
    max_size=6,
)
levels = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1e-300, 0.5, 1.0])), min_size=1, max_size=4
)

FAMILIES = {
    "Weibull": st.builds(Weibull, shape, positive),
    "Exponential": st.builds(Exponential, positive),
    "LogNormal": st.builds(LogNormal, st.floats(-50, 50), st.floats(1e-3, 30)),
    "LogLogistic": st.builds(LogLogistic, shape, positive),
    "Gamma": st.builds(Gamma, shape, positive),
    "Gompertz": st.builds(Gompertz, positive, positive),
    "Uniform": st.builds(lambda low, width: Uniform(low, low + width), st.floats(0, 1e3), positive),
    "PointMass": st.builds(PointMass, st.one_of(st.floats(0, 1e6), st.just(float("inf")))),
    "PiecewiseExponential": st.builds(
        lambda first, gap, rates: PiecewiseExponential([first, first + gap], rates),
        positive,
        positive,
        st.lists(st.one_of(st.just(0.0), positive), min_size=3, max_size=3),
    ),
    "Mixture": st.builds(
        lambda w, a, b, c: Mixture(
            [Weibull(a, b), PointMass(float("inf")), Exponential(c)], [w, 0.9 * (1 - w), 0.1 * (1 - w)]
        ),
        st.floats(0, 1),
        shape,
        positive,
        positive,
    ),
}


def _answers(distribution, t, p):
    """Everything a score asks of a distribution."""
    finite = np.sort(t)
    return {
        "sf": distribution.sf(t),
        "cdf": distribution.cdf(t),
        "sf_left": distribution.sf_left(t),
        "sf at infinity": distribution.sf(np.inf),
        "sf_left at infinity": distribution.sf_left(np.inf),
        "icdf": distribution.icdf(p),
        "isf": distribution.isf(p),
        "icdf_beyond": distribution.icdf_beyond(t[:, :1], p),
        "logsf": distribution.logsf(t),
        "integrated_sf": distribution.integrated_sf(0.0, finite),
        "integral from the first on": distribution.integrated_sf(finite[:, :1], np.inf),
        "mean": distribution.mean(),
        "sample": distribution.sample(3, 0),
    } | ({"logpdf": distribution.logpdf(t)} if distribution.has_density else {})


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=30)
@given(data=st.data())
def test_answers_make_sense_for_all_parameters(family, data):
    distribution = data.draw(FAMILIES[family])
    t = np.array([data.draw(times)])
    p = np.array([data.draw(levels)])
    answers = _answers(distribution, t, p)
    for word, value in answers.items():
        assert not np.isnan(value).any(), word
    for word in ("sf", "cdf", "sf_left"):
        assert ((answers[word] >= 0) & (answers[word] <= 1 + 1e-15)).all(), word
    assert (answers["sf_left"] >= answers["sf"]).all()
    assert (answers["icdf_beyond"] >= t[:, :1]).all()
    area = answers["integrated_sf"]
    assert (area <= np.sort(t) * (1 + 1e-12)).all()
    assert (np.diff(area, axis=1) >= -1e-12 * area[:, 1:]).all()
    assert (area[:, -1] <= answers["mean"] * (1 + 1e-9)).all()


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "PointMass"])
@settings(max_examples=15)
@given(data=st.data())
def test_gradients_are_never_nan(family, data):
    torch = pytest.importorskip("torch")
    distribution = data.draw(FAMILIES[family])
    leaves = []

    def leaf(array):
        leaves.append(torch.as_tensor(np.array(array)))
        return leaves[-1].requires_grad_(bool(np.isfinite(array).all()))

    distribution = distribution.mapped(leaf)
    t = torch.tensor([data.draw(times)], dtype=torch.float64)
    p = torch.tensor([data.draw(levels)], dtype=torch.float64)
    cut = distribution.censor_at(1e5)
    answers = {
        "sf": distribution.sf(t),
        "cdf": distribution.cdf(t),
        "isf": cut.isf(p),
        "icdf": cut.icdf(p),
        "logsf": distribution.logsf(t),
    }
    answers["integrated_sf"] = cut.integrated_sf(0 * t, t)
    asked = [x for x in leaves if x.requires_grad]
    for word, value in answers.items():
        total = torch.where(torch.isfinite(value), value, 0.0).sum()
        if total.requires_grad:
            found = torch.autograd.grad(total, asked, allow_unused=True, retain_graph=True)
            assert not any(torch.isnan(g).any() for g in found if g is not None), word
