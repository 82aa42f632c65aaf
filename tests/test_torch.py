"""Scores, outcomes and distributions inside torch programs: autocast, func, compile, devices, loaders."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import DerivativeError, InvalidInputError, InvalidTypeError
from tests.contracts.distributions import DISTRIBUTIONS

torch = pytest.importorskip("torch")
N = 40


@pytest.fixture
def y(rng):
    T, c = rng.weibull(1.5, N), rng.uniform(0, 2, N)
    return cs.RightCensored(np.minimum(T, c), c >= T).to(torch.float32)


@pytest.fixture
def C(rng):
    T, c = rng.weibull(1.5, 300), rng.uniform(0, 2, 300)
    seen = cs.RightCensored(np.minimum(T, c), c >= T)
    return cs.Censoring(cs.KaplanMeier()).fit(None, seen).predict_distribution(None).to(torch.float32)


def forecasts(a, z):
    """Forecasts of N subjects from tensors (N,) and (N, 6)."""
    levels = torch.linspace(0.1, 0.9, 6, dtype=z.dtype)
    return {
        "weibull": cs.Weibull(a, 1 + 0 * a),
        "mixture": cs.Mixture([cs.Weibull(a, 1 + 0 * a), cs.Exponential(a)], [0.5, 0.5]),
        "quantiles": cs.Quantiles(levels, torch.sort(z, dim=1)[0]),
        "ensemble": cs.Ensemble(z),
        "gamma": cs.Gamma(a, 1 + 0 * a),
    }


SCORES = {
    "crps": cs.crps,
    "brier": lambda y, F, C, **more: cs.brier_score(y, F, C, [0.5, 1.0], **more).mean(axis=1),
    "integrated brier": cs.integrated_brier_score,
    "binomial log": lambda y, F, C, **more: cs.binomial_log_score(y, F, C, [0.5, 1.0], **more).mean(axis=1),
    "pinball": lambda y, F, C, **more: cs.pinball_score(y, F, C, [0.2, 0.7], **more).mean(axis=1),
    "energy": lambda y, F, C, **more: cs.energy_score(y, F, C, beta=0.8, draws=4, members=16, **more),
}


@pytest.mark.parametrize("name", SCORES)
def test_autocast_leaves_scores_in_float32(y, C, name):
    a, z = 0.5 + torch.rand(N), 2 * torch.rand(N, 6)
    for kind, F in forecasts(a, z).items():
        expected = SCORES[name](y, F, C, horizon=1.5)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = SCORES[name](y, F, C, horizon=1.5)
        assert loss.dtype == torch.float32
        torch.testing.assert_close(loss, expected, rtol=0, atol=0, msg=f"{name} of {kind}")


def test_a_network_trains_under_autocast(y, C):
    net = torch.nn.Linear(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(torch.rand(N, 2))
        assert out.dtype == torch.bfloat16
        loss = cs.crps(y, cs.Weibull(*torch.exp(out).T), C).mean()
        mean = cs.Mixture([cs.Weibull(*torch.exp(out).T)], [1.0]).mean()
    assert loss.dtype == mean.dtype == torch.float32
    loss.backward()
    assert torch.isfinite(net.weight.grad).all()


@pytest.mark.parametrize("name", [name for name in SCORES if name != "energy"])
def test_func_grad_is_the_gradient(y, C, name):
    a, z = 0.5 + torch.rand(N), 2 * torch.rand(N, 6)
    for kind in forecasts(a, z):

        def loss(a, z, kind=kind):
            return SCORES[name](y, forecasts(a, z)[kind], C, horizon=1.5).mean()

        leaves = [a.clone().requires_grad_(), z.clone().requires_grad_()]
        value = loss(*leaves)
        if not value.requires_grad:
            continue
        expected = torch.autograd.grad(value, leaves, allow_unused=True)
        for i, wanted in enumerate(expected):
            if wanted is not None:
                torch.testing.assert_close(torch.func.grad(loss, argnums=i)(a, z), wanted)


def test_func_hessians_agree_with_each_other_and_with_differences(y, C):
    y, C = y.to(torch.float64)[:3], C.to(torch.float64)

    def loss(a):
        return cs.crps(y, cs.Gamma(a, 1 + 0 * a), C).sum()

    a = torch.tensor([0.7, 1.5, 3.0], dtype=torch.float64)
    forward, backward = (
        torch.func.jacfwd(torch.func.grad(loss))(a),
        torch.func.jacrev(torch.func.grad(loss))(a),
    )
    torch.testing.assert_close(forward, backward)
    h = 1e-5
    moved = [
        torch.func.grad(loss)(a + h * unit) - torch.func.grad(loss)(a - h * unit) for unit in torch.eye(3)
    ]
    torch.testing.assert_close(backward, torch.stack(moved) / (2 * h), rtol=1e-5, atol=1e-7)


def test_vmap_says_why_not(y, C):
    with pytest.raises(
        InvalidTypeError, match=r"shape: got a tensor whose batch axis torch.vmap hides.*one value for each"
    ):
        torch.vmap(lambda a: cs.crps(y, cs.Weibull(a, 1 + 0 * a), C))(0.5 + torch.rand(3, N))


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # torch reads it while it traces
def test_compiled_code_calls_scores_as_they_are(y, C):
    """A step has one graph before the forecast, one after the score and nothing of the library in between."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    def loss(x):
        a, b = torch.exp(x).T
        return cs.crps(y, cs.Weibull(a, b), C, horizon=1.5).mean()

    x = torch.rand(N, 2, requires_grad=True)
    compiled = torch.compile(loss, backend=backend)
    (found,) = torch.autograd.grad(compiled(x), x)
    torch.testing.assert_close(found, torch.autograd.grad(loss(x), x)[0])
    assert len(graphs) <= 3


# ---- second derivatives, and what has none ------------------------------------------------------------


def test_second_derivatives_of_gamma_in_both_parameters():
    t = torch.tensor([0.01, 0.5, 2.0, 9.0, 60.0], dtype=torch.float64)
    for method in ("sf", "cdf", "logsf"):

        def f(k, r, method=method):
            return getattr(cs.Gamma(k, r), method)(t)

        k = torch.tensor([0.4, 1.0, 2.5, 7.0, 1.3], dtype=torch.float64, requires_grad=True)
        r = torch.tensor([1.0, 0.5, 2.0, 1.0, 1.0], dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(f, [k, r], eps=1e-6, atol=1e-7)
        assert torch.autograd.gradgradcheck(f, [k, r], eps=1e-6, atol=1e-6)


def test_third_derivatives_in_the_shape_are_an_error():
    k = torch.tensor([1.5], dtype=torch.float64, requires_grad=True)
    value = cs.Gamma(k, 1.0).sf(torch.tensor([2.0], dtype=torch.float64))
    for _ in range(2):
        (value,) = torch.autograd.grad(value.sum(), k, create_graph=True)
    with pytest.raises(DerivativeError, match="Third derivatives in the shape"):
        torch.autograd.grad(value.sum(), k)


def test_second_derivatives_of_searched_quantiles_are_an_error():
    k = torch.tensor([1.5, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad(cs.Gamma(k, 1.0).icdf(0.3).sum(), k, create_graph=True)
    with pytest.raises(DerivativeError, match="Second derivatives of quantiles"):
        torch.autograd.grad(first.sum(), k)


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0, 3.0, 12.0])
def test_second_derivatives_of_weibull_are_finite_in_single_precision(y, C, shape):
    a, b = torch.full((N,), shape, requires_grad=True), torch.full((N,), 0.05, requires_grad=True)
    for censoring in (C, cs.Uniform(0.0, 3.0)):
        loss = cs.crps(y, cs.Weibull(a, b), censoring, horizon=1.5).sum()
        first = torch.autograd.grad(loss, [a, b], create_graph=True)
        for second in torch.autograd.grad(sum(g.sum() for g in first), [a, b]):
            assert torch.isfinite(second).all()


# ---- draws of copulas ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "theta"), [("clayton", 0.0), ("clayton", 2.0), ("gumbel", 1.7)])
def test_the_energy_score_of_a_copula_has_a_gradient_in_theta(rng, family, theta):
    y = cs.RightCensored(rng.weibull(1.5, (4, 2)), np.ones((4, 2))).to()
    marginals = [cs.Weibull(1.5, 1.0).to(torch.float64), cs.LogNormal(0.0, 0.8).to(torch.float64)]

    def loss(theta):
        return cs.energy_score(y, cs.Copula(family, marginals, theta), members=50).mean()

    at = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(loss(at), at)
    h = 1e-6
    low = loss(at - h) if theta else loss(at)
    slope = ((loss(at + h) - low) / (2 * h if theta else h)).detach()
    assert abs(found) > 1e-4
    assert float(found) == pytest.approx(float(slope), rel=1e-3)


def test_theta_is_trained_by_the_energy_score():
    truth = cs.Copula("clayton", [cs.Exponential(1.0)] * 2, 3.0)
    y = cs.RightCensored(truth.sample(300, seed=1)[0], np.ones((300, 2))).to()
    log_theta = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([log_theta], lr=0.2)
    for step in range(40):
        optimiser.zero_grad()
        F = cs.Copula("clayton", [cs.Exponential(1.0).to(torch.float64)] * 2, torch.exp(log_theta))
        cs.energy_score(y, F, members=32, seed=step).mean().backward()
        optimiser.step()
    assert 1.5 < float(torch.exp(log_theta.detach())) < 6


def test_marginals_with_jumps_give_theta_an_error_and_not_a_zero():
    y = cs.RightCensored(torch.rand(3, 2), torch.ones(3, 2))
    theta = torch.tensor(2.0, requires_grad=True)
    F = cs.Copula("clayton", [cs.Step([0.5, 1.0], sf=[0.5, 0.0])] * 2, theta)
    with pytest.raises(DerivativeError, match=r"marginals that have jumps \(Step, Step\).*theta.detach"):
        cs.energy_score(y, F)
    with torch.no_grad():
        assert torch.isfinite(cs.energy_score(y, F)).all()


@pytest.mark.parametrize("theta", [0.0, 0.3, 4.0])
def test_differentiable_clayton_draws_follow_the_copula(theta):
    """P(T_1 > t_1, T_2 > t_2, T_3 > t_3) of the draws is that of the formula, to four standard errors."""
    parameter = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
    F = cs.Copula("clayton", [cs.Exponential(1.0), cs.Weibull(2.0, 1.0), cs.LogNormal(0.0, 1.0)], parameter)
    z = F.sample(20_000, seed=2)[0].detach().numpy()
    for t in ([0.2, 0.3, 0.5], [1.0, 1.0, 1.0], [0.5, 1.5, 2.0]):
        expected = float(F.detach().sf(torch.tensor([t], dtype=torch.float64))[0])
        error = np.sqrt(expected * (1 - expected) / len(z))
        assert abs(np.all(z > t, axis=1).mean() - expected) < 4 * error


def test_gumbel_at_independence_has_no_gradient():
    theta = torch.tensor([1.0, 2.0], requires_grad=True)
    F = cs.Copula("gumbel", [cs.Exponential(1.0)] * 2, theta)
    with pytest.raises(DerivativeError, match="at independence"):
        F.sample(3, seed=0)
    with torch.no_grad():
        assert F.sample(3, seed=0).shape == (2, 3, 2)


# ---- devices, types, batches --------------------------------------------------------------------------


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_every_distribution_moves(name):
    F = DISTRIBUTIONS[name]()
    if "cipy" in name:
        with pytest.raises(InvalidTypeError, match="NumPy only"):
            F.to(torch.float32)
        return
    for dtype in (torch.float32, torch.float64):
        moved = F.to(dtype)
        assert type(moved) is type(F)
        assert moved._is_like(torch.empty(0, dtype=dtype))
        assert moved.to(dtype) is moved
        assert moved.to("cpu").shape == F.shape
        with pytest.raises(InvalidTypeError, match="tensor without data"):
            moved.to("meta")
    with pytest.raises(InvalidTypeError, match=r"float32 or float64; got torch.bfloat16"):
        F.to(torch.bfloat16)


def test_gradients_flow_through_a_move():
    scale = torch.ones(2, requires_grad=True)
    F = cs.Mixture([cs.Weibull(1.5, scale)], [1.0]).to(torch.float64)
    F.sf(1.0).sum().backward()
    assert (scale.grad > 0).all()


OUTCOMES = {
    "right-censored": lambda: cs.RightCensored([1.0, 2.0, 3.0], [1, 0, 1]),
    "censoring times and entries": lambda: cs.RightCensored(
        [1.0, 2.0, 3.0], [1, 0, 1], [4.0, 2.0, 5.0], entry=[0.0, 1.0, 2.0]
    ),
    "several times": lambda: cs.RightCensored(np.ones((3, 2)), [[1, 0], [0, 0], [1, 1]]),
    "competing risks": lambda: cs.CompetingRisks([1.0, 2.0, 3.0], [1, 0, 2], names=["a", "b"]),
    "one cause": lambda: cs.CompetingRisks([1.0, 2.0, 3.0], [1, 0, 2]).cause(1),
    "semi-competing": lambda: cs.SemiCompetingRisks(
        [[2.0, 5.0], [4.0, 4.0], [6.0, 6.0]], [[1, 1], [0, 1], [0, 0]]
    ),
    "intervals": lambda: cs.IntervalCensored([2.0, 4.0, 0.0], [4.0, 6.0, 2.0], visits=[2.0, 4.0, 6.0]),
}


def arrays_of(y):
    """All arrays of an outcome by name, those of nested outcomes too."""
    found = {}
    for name, value in vars(y).items():
        if hasattr(value, "concat") and not hasattr(value, "dtype"):
            found |= {f"{name}.{inner}": array for inner, array in arrays_of(value).items()}
        elif hasattr(value, "dtype"):
            found[name] = np.asarray(value)
    return found


@pytest.mark.parametrize("name", OUTCOMES)
def test_outcomes_move_and_collate(name):
    y = OUTCOMES[name]()
    single = y.to(torch.float32)
    assert all(array.dtype != np.float64 for array in arrays_of(single).values())
    assert torch.is_tensor(single.reference)
    assert single.reference.dtype == torch.float32
    pairs = [(torch.zeros(2), y[i]) for i in (2, 0, 1)]
    _, batch = next(iter(torch.utils.data.DataLoader(pairs, batch_size=3)))
    assert type(batch) is type(y)
    assert torch.is_tensor(batch.reference)
    expected = arrays_of(y.take([2, 0, 1]))
    for key, array in arrays_of(batch).items():
        assert len(array) == 3
        np.testing.assert_array_equal(array, np.broadcast_to(expected[key], array.shape))


@pytest.mark.parametrize("name", OUTCOMES)
def test_one_index_takes_one_subject_in_either_library(name):
    for y in (OUTCOMES[name](), OUTCOMES[name]().to()):
        for one in (y[1], y[np.int64(1)], y.take(1), y.take([1]), y[1:2]):
            assert len(one) == 1
            assert repr(one) == repr(y.take([1]))
        with pytest.raises(IndexError):
            y[3]


def test_a_dataset_of_outcomes_is_one(y):
    loader = torch.utils.data.DataLoader(y, batch_size=16)
    assert [len(batch) for batch in loader] == [16, 16, 8]
    np.testing.assert_array_equal(cs.RightCensored.concat(list(loader)).time, y.time)


def test_what_does_not_join_is_an_error():
    y = OUTCOMES["right-censored"]()
    with pytest.raises(InvalidTypeError, match="got CompetingRisks, expected a RightCensored"):
        cs.RightCensored.concat([y, OUTCOMES["competing risks"]()])
    with pytest.raises(InvalidInputError, match=r"entry|censoring_time"):
        cs.RightCensored.concat([y, OUTCOMES["censoring times and entries"]()])
    with pytest.raises(InvalidInputError, match="at least one"):
        cs.RightCensored.concat([])
