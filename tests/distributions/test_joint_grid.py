"""The grid distribution against direct sums over its cells, numerical derivatives and simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from censcore.distributions import JointGrid
from censcore.exceptions import InvalidInputError, NoDensityError

EDGES = np.array([0.0, 0.5, 1.0, 2.5])
OTHER = np.array([0.0, 1.0, 4.0])


def random_cells(shape, seed=0):
    p = np.random.default_rng(seed).gamma(0.5, size=shape)
    p /= p.reshape(shape[0], -1).sum(axis=1).reshape(-1, *(1,) * (len(shape) - 1))
    return p


P = random_cells((3, 4, 3))
RATE = np.array([0.4, 1.5])
DISTRIBUTION = JointGrid([EDGES, OTHER], P, tail=RATE)


def share_beyond(t, edges, rate):
    """P(T > t | cell) for every cell of one axis."""
    inside = np.clip((edges[1:] - t) / np.diff(edges), 0, 1)
    return np.append(inside, np.exp(-rate * max(0.0, t - edges[-1])))


def direct_sf(p, t):
    a, b = share_beyond(t[0], EDGES, RATE[0]), share_beyond(t[1], OTHER, RATE[1])
    return float(a @ p @ b)


TIMES = [(0.0, 0.0), (0.2, 3.0), (0.5, 1.0), (2.5, 4.0), (2.6, 0.1), (7.0, 9.0), (1.7, 4.5)]


@pytest.mark.parametrize("t", TIMES)
def test_survival_is_the_weighted_sum_of_cells(t):
    np.testing.assert_allclose(DISTRIBUTION.sf([t]), [direct_sf(p, t) for p in P], rtol=1e-13)


@pytest.mark.parametrize("t", [(0.2, 3.0), (1.7, 4.5), (2.6, 0.1), (3.0, 9.0)])
@pytest.mark.parametrize("event", list(itertools.product((0, 1), repeat=2)))
def test_likelihood_is_the_mixed_derivative_of_survival(t, event):
    step = 1e-4
    corners = itertools.product(*[((-step, 1.0), (step, -1.0)) if e else ((0.0, 1.0),) for e in event])
    slope = np.zeros(3)
    for moves in corners:
        at = [t[j] + moves[j][0] for j in range(2)]
        slope += np.prod([move[1] for move in moves]) * np.array([direct_sf(p, at) for p in P])
    slope /= (2 * step) ** sum(event)
    value = DISTRIBUTION.log_likelihood(np.array([t] * 3), np.array([event] * 3))
    np.testing.assert_allclose(np.exp(value), slope, rtol=1e-6, atol=1e-8)


def test_an_event_at_the_last_edge_lies_in_the_last_bin():
    distribution = JointGrid([EDGES, OTHER], P, tail="infinity")
    value = distribution.log_likelihood([[2.5, 4.0]] * 3, [[1, 1]] * 3)
    np.testing.assert_allclose(np.exp(value), P[:, 2, 1] / (1.5 * 3.0), rtol=1e-13)
    assert (distribution.log_likelihood([[2.6, 4.0]] * 3, [[1, 1]] * 3) == -np.inf).all()


@pytest.mark.parametrize("tail", [RATE, "infinity", [[0.3, 0.0], [1.0, 2.0], [0.0, 0.0]]])
def test_the_words_of_a_marginal_agree_with_each_other(tail):
    distribution = JointGrid([EDGES, OTHER], P, tail=tail)
    for j, top in enumerate((EDGES, OTHER)):
        marginal = distribution.marginal(j)
        t = np.concatenate([np.linspace(0.0, 1.5 * top[-1], 23), [30.0]])[None, :]
        other = np.zeros((1, t.size))
        pairs = np.stack([t, other] if j == 0 else [other, t], axis=-1)
        joint = np.stack([distribution.sf(pairs[:, q]) for q in range(t.size)], axis=1)
        np.testing.assert_allclose(marginal.sf(t), joint, rtol=1e-12)
        np.testing.assert_allclose(marginal.cdf(t), 1 - marginal.sf(t), atol=1e-14)
        np.testing.assert_allclose(marginal.logsf(t), np.log(marginal.sf(t)), rtol=1e-10, atol=1e-14)
        p = np.array([[1e-6, 0.05, 0.3, 0.5, 0.8, 0.999]])
        quantile = marginal.icdf(p)
        reached = np.isfinite(quantile)
        at = np.where(reached, quantile, 1e6)
        np.testing.assert_allclose(
            np.where(reached, marginal.cdf(at), p), np.broadcast_to(p, (3, 6)), rtol=1e-9
        )
        np.testing.assert_allclose(marginal.isf(1 - p), quantile, rtol=1e-7)
        inside = np.array([[0.2, 0.7, 1.9, 5.0]])
        slope = (marginal.sf(inside - 1e-6) - marginal.sf(inside + 1e-6)) / 2e-6
        np.testing.assert_allclose(np.exp(marginal.logpdf(inside)), slope, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(marginal.mass_at_infinity(), marginal.sf(1e9), atol=1e-15)


def test_integrals_of_a_marginal_agree_with_quadrature():
    from scipy.integrate import quad

    marginal = DISTRIBUTION.marginal(0)
    a = np.array([[0.0, 0.1, 0.2, 0.4, 2.0, 3.0, 0.0]])
    b = np.array([[0.0, 0.3, 1.7, 4.0, 2.5, 8.0, 60.0]])
    value = marginal.integrated_sf(a, b)
    for row in range(3):
        for q in range(a.shape[1]):
            expected, _ = quad(
                lambda t, row=row: float(marginal[[row]].sf(t)[0]),
                a[0, q],
                b[0, q],
                points=[0.5, 1, 2.5],
                limit=200,
            )
            assert value[row, q] == pytest.approx(expected, rel=1e-7, abs=1e-12)
    np.testing.assert_allclose(marginal.mean(), marginal.integrated_sf(0.0, 1e3), rtol=1e-12)
    never = JointGrid([EDGES, OTHER], P, tail="infinity").marginal(0)
    assert np.isinf(never.mean()).all()
    assert np.isfinite(never.integrated_sf(1.0, 100.0)).all()


def test_flat_bins_take_the_earliest_quantile():
    distribution = JointGrid([0.0, 1.0, 2.0, 3.0], [[0.5, 0.0, 0.5, 0.0]], tail="infinity").marginal(0)
    assert float(distribution.icdf(0.5)[0]) == 1.0
    assert float(distribution.isf(0.5)[0]) == 1.0
    assert float(distribution.icdf(1.0)[0]) == 3.0
    assert float(distribution.isf(0.0)[0]) == 3.0
    assert float(distribution.icdf(0.0)[0]) == 0.0


def test_first_event_has_the_diagonal_survival_and_its_density():
    first = DISTRIBUTION.first()
    t = np.array([[0.3, 0.8, 1.7, 3.0, 6.0]])
    expected = np.array([[direct_sf(p, (s, s)) for s in t[0]] for p in P])
    np.testing.assert_allclose(first.sf(t), expected, rtol=1e-12)
    slope = (first.sf(t - 1e-6) - first.sf(t + 1e-6)) / 2e-6
    np.testing.assert_allclose(np.exp(first.logpdf(t)), slope, rtol=1e-6)
    grid = np.linspace(0, 40, 400_001)
    sf = first.sf(grid[None, :])
    area = ((sf[:, 1:] + sf[:, :-1]) / 2).sum(axis=1) * (grid[1] - grid[0])
    np.testing.assert_allclose(first.mean(), area, rtol=1e-6)


def test_many_times_at_once_have_the_density_of_each(monkeypatch):
    first, t = DISTRIBUTION.first(), np.linspace(0.1, 6.0, 7)[None]
    whole = first.logpdf(t)
    np.testing.assert_array_equal(whole, np.concatenate([first.logpdf(t[:, [q]]) for q in range(7)], axis=1))
    monkeypatch.setattr(
        "censcore.distributions.joint.joint_grid.CHUNK_NUMBERS", 80
    )  # of 36 numbers each: two times
    np.testing.assert_array_equal(first.logpdf(t), whole)
    assert first.logpdf(t[:, :0]).shape == (3, 0)


def test_draws_have_the_joint_survival():
    draws = DISTRIBUTION.sample(60_000, seed=5)
    assert draws.shape == (3, 60_000, 2)
    for t in TIMES[1:]:
        np.testing.assert_allclose(
            (draws > np.array(t)).all(axis=2).mean(axis=1), DISTRIBUTION.sf([t]), atol=0.008
        )
    never = JointGrid([EDGES, OTHER], P, tail=[0.0, 1.0]).sample(20_000, seed=6)
    np.testing.assert_allclose(np.isinf(never[..., 0]).mean(axis=1), P.sum(axis=2)[:, -1], atol=0.012)
    assert np.isfinite(never[..., 1]).all()


def test_three_event_times_and_one():
    p = random_cells((2, 4, 3, 4), seed=9)
    distribution = JointGrid([EDGES, OTHER, EDGES], p, tail=1.0)
    t, event = np.array([[0.7, 2.0, 0.2]] * 2), np.array([[1, 0, 0], [1, 0, 0]])
    beyond = share_beyond(2.0, OTHER, 1.0), share_beyond(0.2, EDGES, 1.0)
    expected = np.log(np.einsum("nij,i,j->n", p[:, 1], *beyond) / 0.5)
    np.testing.assert_allclose(distribution.log_likelihood(t, event), expected, rtol=1e-13)
    np.testing.assert_allclose(
        distribution.sf(t), np.einsum("nhij,h,i,j->n", p, share_beyond(0.7, EDGES, 1.0), *beyond)
    )
    single = JointGrid(EDGES, p.sum(axis=(2, 3)), tail=1.0)
    assert single.shape == (2, 1)
    np.testing.assert_allclose(single.marginal(0).sf(0.7), distribution.marginal(0).sf(0.7), rtol=1e-13)


def test_censored_grid():
    tau = np.array([[1.0, 3.0], [np.inf, 0.5], [9.0, 9.0]])
    cut = DISTRIBUTION.censor_at(tau)
    np.testing.assert_array_equal(
        cut.sample(40, seed=1), np.minimum(DISTRIBUTION.sample(40, seed=1), tau[:, None, :])
    )
    np.testing.assert_allclose(cut.sf([[0.9, 0.4]]), DISTRIBUTION.sf([[0.9, 0.4]]))
    assert cut.sf([[1.0, 0.4]])[0] == 0.0
    np.testing.assert_allclose(
        cut.marginal(1).sf_left([3.0, 0.5, 9.0]), DISTRIBUTION.marginal(1).sf([3.0, 0.5, 9.0])
    )
    np.testing.assert_allclose(cut.first().sf_left(1.0)[0], DISTRIBUTION.first().sf(1.0)[0])
    assert cut[[1, 2]].shape == (2, 2)
    with pytest.raises(NoDensityError, match="atom"):
        cut.log_likelihood([[0.5, 0.3]] * 3, [[1, 0]] * 3)
    lower = cut.censor_at(0.7)
    np.testing.assert_allclose(lower.marginal(0).sf_left(0.7), DISTRIBUTION.marginal(0).sf(0.7))


def test_logits_train_and_torch_equals_numpy():
    torch = pytest.importorskip("torch")
    time = np.array([[0.2, 3.0], [2.6, 0.4], [0.7, 6.0]])
    event = np.array([[1, 0], [0, 1], [1, 1]])
    logits = torch.log(torch.as_tensor(P)).requires_grad_()
    rate = torch.tensor([0.4, 1.5], dtype=torch.float64, requires_grad=True)

    def likelihood(logits, rate):
        distribution = JointGrid.from_logits([EDGES, OTHER], logits, tail=rate)
        return distribution.log_likelihood(torch.as_tensor(time), torch.as_tensor(event))

    np.testing.assert_allclose(
        likelihood(logits, rate).detach(), DISTRIBUTION.log_likelihood(time, event), rtol=1e-12
    )
    assert torch.autograd.gradcheck(likelihood, (logits, rate))

    def words(logits, rate):
        distribution = JointGrid.from_logits([EDGES, OTHER], logits, tail=rate)
        t = torch.tensor([[0.3, 1.4, 5.0]], dtype=torch.float64)
        marginal = distribution.marginal(1)
        p = torch.tensor([[0.2, 0.7, 0.97]], dtype=torch.float64)
        first = distribution.first()
        return torch.cat([marginal.icdf(p), marginal.isf(p), marginal.sf(t), first.logpdf(t), first.sf(t)])

    assert torch.autograd.gradcheck(words, (logits, rate))


def test_impossible_cells_have_no_gradient_and_no_nan():
    torch = pytest.importorskip("torch")
    logits = torch.zeros(1, 3, 3, requires_grad=True)
    mask = torch.eye(3, dtype=torch.bool)[None]
    distribution = JointGrid.from_logits([0.0, 1.0, 2.0], logits.masked_fill(~mask, -torch.inf), tail=1.0)
    value = distribution.log_likelihood(torch.tensor([[0.5, 0.2]]), torch.tensor([[1, 0]]))
    (gradient,) = torch.autograd.grad(value.sum() + distribution.first().sf(1.5).sum(), logits)
    assert torch.isfinite(gradient).all()
    assert value.dtype == torch.float32
    impossible = distribution.log_likelihood(torch.tensor([[0.5, 1.2]]), torch.tensor([[1, 1]]))
    assert float(impossible.detach()) == -np.inf


def test_errors_name_the_mistake():
    with pytest.raises(InvalidInputError, match="start at 0"):
        JointGrid([1.0, 2.0], [[[0.5, 0.5], [0.0, 0.0]]], tail=1.0)
    with pytest.raises(InvalidInputError, match="increase strictly"):
        JointGrid([0.0, 2.0, 1.0], P[:, :3, :3], tail=1.0)
    with pytest.raises(InvalidInputError, match=r"\(n, 4, 3\)"):
        JointGrid([EDGES, OTHER], P[:, :, :2], tail=1.0)
    with pytest.raises(InvalidInputError, match="sum to 1"):
        JointGrid([EDGES, OTHER], P / 2, tail=1.0)
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        JointGrid([EDGES, OTHER], -P, tail=1.0)
    with pytest.raises(InvalidInputError, match="'infinity'"):
        JointGrid([EDGES, OTHER], P, tail="none")
    with pytest.raises(InvalidInputError, match="one per coordinate"):
        JointGrid([EDGES, OTHER], P, tail=[1.0, 2.0, 3.0])
    with pytest.raises(InvalidInputError, match="NaN"):
        JointGrid.from_logits([EDGES, OTHER], P * np.nan, tail=1.0)


def test_mass_at_infinity_is_reached_from_the_left_only():
    distribution = JointGrid([EDGES, OTHER], P, tail="infinity")
    first, marginal = distribution.first(), distribution.marginal(0)
    never = P[:, -1, -1]
    np.testing.assert_allclose(first.mass_at_infinity(), never)
    np.testing.assert_allclose(first.sf_left(np.inf), never)
    np.testing.assert_allclose(marginal.sf_left(np.inf), P[:, -1].sum(axis=1))
    for word in (first.sf, marginal.sf):
        np.testing.assert_array_equal(word(np.inf), np.zeros(3))
    np.testing.assert_allclose(marginal.cdf(np.inf), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(DISTRIBUTION.sf([[np.inf, 0.0]]), np.zeros(3))


def test_log_probabilities_without_digits_are_minus_infinity():
    grid = JointGrid([0.0, 1.0, 2.0], np.full((1, 3, 3), 1 / 9), tail=2e8)
    far = np.full((1, 2), 1e300)
    assert grid.logsf(far) == grid.log_likelihood(far, [[1, 1]]) == -np.inf
