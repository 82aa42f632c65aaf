"""Mixtures: cure fractions, atoms, weights, draws and gradients."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import censcore as cs
from censcore.distributions import (
    Ensemble,
    Exponential,
    LogNormal,
    Mixture,
    PointMass,
    Step,
    Uniform,
    Weibull,
)
from censcore.exceptions import InvalidInputError, InvalidTypeError, NoDensityError

INF = float("inf")


def test_cure_model_has_a_density_and_a_likelihood():
    distribution = Mixture([Exponential(2.0), PointMass(INF)], [0.7, 0.3])
    assert distribution.has_density
    assert_allclose(
        distribution.log_likelihood([1.0, 1.0], [1, 0]), [np.log(1.4) - 2, np.log(0.3 + 0.7 * np.exp(-2))]
    )
    assert distribution.mean()[0] == INF
    assert distribution.icdf([0.69, 0.71]).tolist() == pytest.approx([-np.log(1 - 0.69 / 0.7) / 2, INF])
    assert distribution.isf(0.0)[0] == INF


def test_an_atom_takes_the_density_away():
    distribution = Mixture([Exponential(2.0), PointMass([3.0, INF])], [0.5, 0.5])
    assert not distribution.has_density
    with pytest.raises(NoDensityError, match="Mixture has no density"):
        distribution.logpdf(1.0)
    assert not PointMass([1.0, INF]).has_density
    assert PointMass(INF).logpdf(1.0)[0] == -np.inf


def test_degree_and_breaks_are_those_of_the_components():
    steps = Mixture([Step([1.0, 2.0], sf=[0.5, 0.0]), PointMass(3.0)], [0.5, 0.5])
    assert steps.form == "steps"
    assert steps.breaks().tolist() == [[1.0, 2.0, 3.0]]
    assert Mixture([PointMass(3.0), Uniform(0.0, 1.0)], [0.5, 0.5]).form == "lines"
    assert Mixture([PointMass(3.0), Weibull(1.0, 1.0)], [0.5, 0.5]).form == "smooth"
    assert Mixture([Weibull(1.0, 1.0), Weibull(2.0, 1.0)], [0.5, 0.5]).breaks() is None


def test_log_survival_far_beyond_underflow_is_that_of_the_heaviest_component():
    distribution = Mixture([Weibull(2.0, 1.0), Exponential(1.0)], [0.75, 0.25])
    assert_allclose(distribution.logsf(1e4), [np.log(0.25) - 1e4], rtol=1e-14)


def test_weights_of_zero_silence_infinite_means():
    distribution = Mixture([Exponential(2.0), PointMass(INF)], [[1.0, 0.0], [0.5, 0.5]])
    assert distribution.mean().tolist() == [0.5, INF]
    assert distribution.isf(0.0).tolist() == [INF, INF]
    assert distribution.mass_at_infinity().tolist() == [0.0, 0.5]
    bounded = Mixture([Uniform(0.0, 2.0), Exponential(1.0)], [1.0, 0.0])
    assert bounded.isf(0.0)[0] == bounded.icdf(1.0)[0] == 2.0


def test_draws_come_from_the_components_by_their_weights():
    distribution = Mixture(
        [PointMass(1.0), PointMass(2.0), PointMass(INF)], [[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]]
    )
    draws = distribution.sample(20_000, seed=1)
    shares = [[(row == t).mean() for t in (1.0, 2.0, INF)] for row in draws]
    assert_allclose(shares, [[0.2, 0.3, 0.5], [0, 1, 0]], atol=0.02)


def test_draws_carry_the_gradient_of_the_mean_to_weights_and_components():
    torch = pytest.importorskip("torch")
    logits = torch.tensor([0.2, -0.4], dtype=torch.float64, requires_grad=True)
    mu = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)

    def distribution():
        return Mixture([LogNormal(mu[:1], 0.3), LogNormal(mu[1:], 0.5)], torch.softmax(logits, 0))

    draws = distribution().sample(200_000, seed=0)
    estimated = torch.autograd.grad(draws.mean(), (logits, mu))
    exact = torch.autograd.grad(distribution().mean().sum(), (logits, mu))
    for ours, true in zip(estimated, exact, strict=True):
        assert_allclose(ours, true, rtol=0.03, atol=0.01)
    plain = distribution().detach().sample(50, seed=4)
    np.testing.assert_array_equal(distribution().sample(50, seed=4).detach(), plain)


def test_quantiles_on_an_atom_stay_there_and_beside_it_move():
    torch = pytest.importorskip("torch")
    scale = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    distribution = Mixture([Exponential(scale), PointMass(0.5)], [0.5, 0.5])
    level = 0.5 * float(torch.exp(-0.5 * scale.detach()))
    on, beside = distribution.isf(torch.tensor([[level + 0.2, level / 2]], dtype=torch.float64))[0]
    assert on == 0.5
    (still,) = torch.autograd.grad(on, scale, retain_graph=True)
    (moving,) = torch.autograd.grad(beside, scale)
    assert still[0] == 0
    assert_allclose(moving[0], -float(beside.detach()), rtol=1e-10)  # t = -log(2p) / rate at rate one


TWO = [Exponential(1.0), Exponential(2.0)]


@pytest.mark.parametrize(
    ("components", "weights", "message"),
    [
        ([], [], "at least one distribution"),
        (TWO, [0.5, 0.6], "must sum to 1; they sum to 1.1"),
        (TWO, [1.5, -0.5], "weights must be non-negative"),
        (TWO, [np.nan, 1.0], "weights must be non-negative"),
        (TWO, [1.0], r"weights must be \(2,\) or \(n, 2\)"),
        ([Exponential([1.0, 2.0]), Exponential([1.0, 2.0, 3.0])], [0.5, 0.5], "subjects differ"),
        ([Exponential([1.0, 2.0])], np.ones((3, 1)), "subjects differ"),
        ([Ensemble(np.ones((1, 2, 2)))], [1.0], r"marginal\(j\)"),
    ],
)
def test_bad_mixtures_are_refused(components, weights, message):
    with pytest.raises(InvalidInputError, match=message):
        Mixture(components, weights)


def test_only_distributions_are_mixed():
    with pytest.raises(InvalidTypeError, match="got str"):
        Mixture([Exponential(1.0), "Weibull"], [0.5, 0.5])


def test_mixtures_of_plain_numbers_join_any_library():
    torch = pytest.importorskip("torch")
    distribution = Mixture([Exponential(1.0), PointMass(2.0)], [0.5, 0.5])
    assert distribution.sf(torch.tensor([1.0])).dtype == torch.float32
    assert Mixture([Exponential(1.0)], torch.ones(1)).sf(1.0).dtype == torch.float32
    with pytest.raises(InvalidTypeError, match="different libraries"):
        Mixture([Exponential(np.ones(2))], torch.ones(1))


@pytest.mark.parametrize("m", [5, 10, 100])
def test_quantiles_at_the_levels_of_jumps_do_not_depend_on_how_steps_are_mixed(m):
    levels = np.arange(1, m)[None, :] / m
    F = cs.Ensemble(np.random.default_rng(0).random((1, m)))
    alike = cs.Mixture([F, F], [0.3, 0.7])
    np.testing.assert_array_equal(alike.icdf(levels), F.icdf(levels))
    levels = levels[levels >= 0.1][None, :]  # the digits of smaller ones are those of 1 - F
    np.testing.assert_array_equal(cs.Mixture([alike, F], [0.1, 0.9]).isf(levels), F.isf(levels))
