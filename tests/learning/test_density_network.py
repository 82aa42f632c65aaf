"""The mixture density network beside censored engression: likelihood, draws, data it can take, its share."""

import numpy as np
import pytest
import torch
from scipy import stats

import censcore as cs
from censcore.exceptions import ModelFileError
from censcore.learning.density_network import (
    DensityNetwork,
    DensityTask,
    LogNormalComponents,
    fit_density_network,
)
from censcore.learning.engression.mixture import _held_out_terms
from censcore.learning.engression.sampling import NoisePool
from censcore.learning.engression.stacking import weighed_mixture
from censcore.learning.model_files import read_model_file, write_model_file
from censcore.learning.structures import Free, Ordered
from censcore.simulation import LogNormalScenario

torch.set_num_threads(1)

CPU = torch.device("cpu")
SMALL = {"width": 16, "depth": 2, "noise_dim": 8, "epochs": 2, "random_state": 0, "device": "cpu"}
NAME = DensityNetwork.name


def regression(n, seed, end=4.0):
    """Two log-normal times, of which a covariate moves the first, and C uniform."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    T = np.exp(np.stack([0.6 * x[:, 0], np.zeros(n)], axis=1) + 0.5 * rng.normal(size=(n, 2)))
    C = rng.uniform(0.2, end, (n, 1))
    return x, np.minimum(T, C), C >= T


def as_tensor(x):
    return torch.as_tensor(x, dtype=torch.float32)


def random_network(d=3, k=2, seed=0):
    torch.manual_seed(seed)
    network = DensityNetwork(LogNormalComponents(d, k), np.array([0.3, -1.0])[:k], np.array([1.2, 0.5])[:k])
    for parameter in network.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape)
    return network.eval()


def mixture_cdf(network, x, j):
    """The distribution function of time j of one subject, by SciPy."""
    with torch.no_grad():
        weight, location, scale = (part[0].double().numpy() for part in network(x))
    return lambda t: sum(
        w * stats.lognorm.cdf(t, s[j], scale=np.exp(m[j]))
        for w, m, s in zip(weight, location, scale, strict=True)
    )


def test_the_loss_is_the_censored_likelihood_of_the_mixture():
    torch.manual_seed(1)
    network = LogNormalComponents(3, 2)
    for parameter in network.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape)
    x, u = torch.randn(5, 3), torch.randn(5, 2)
    event = torch.tensor([[True, True], [True, False], [False, True], [False, False], [True, True]])
    counts = torch.ones(5, 2, dtype=torch.bool)
    counts[4, 1] = False
    rows = {"x": x, "u": u, "event": event, "counts": counts}
    found = DensityTask(network, 0.0).loss(network, rows, {}).detach().numpy()
    log_weight, location, log_scale = (part.detach().double().numpy() for part in network(x))
    for i in range(5):
        likelihoods = []
        for net in range(len(log_weight)):
            parts = np.exp(log_weight[net, i])
            for j in np.flatnonzero(counts[i].numpy()):
                normal = stats.norm(location[net, i, :, j], np.exp(log_scale[net, i, :, j]))
                parts = parts * (normal.pdf(float(u[i, j])) if event[i, j] else normal.sf(float(u[i, j])))
            likelihoods.append(parts.sum())
        assert found[i] == pytest.approx(-np.log(likelihoods).mean(), rel=1e-4)


def test_draws_are_those_of_the_mixture_and_belong_to_a_subject():
    network, x = random_network(), torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    pool = network.pool(Free(2), 4000, seed=0)
    z = pool.draw(x)
    torch.testing.assert_close(pool.draw(x[2:4]), z[2:4], rtol=0, atol=0)
    for j in range(2):
        assert stats.kstest(z[0, :, j].numpy(), mixture_cdf(network, x[:1], j)).pvalue > 0.01
    assert (network.pool(Ordered(2), 50, seed=0).draw(x).diff(dim=-1) >= 0).all()


def test_training_finds_a_censored_regression():
    x, time, event = regression(3000, 0)
    network = fit_density_network(as_tensor(x), time, event, np.ones_like(event), None, 0, CPU)
    t = np.exp(np.linspace(-1.2, 1.0, 9))
    for value in (-1.0, 0.0, 1.0):
        subject = torch.tensor([[value, 0.4]])
        for j, location in enumerate((0.6 * value, 0.0)):
            truth = stats.lognorm.cdf(t, 0.5, scale=np.exp(location))
            np.testing.assert_allclose(mixture_cdf(network, subject, j)(t), truth, atol=0.05)


def test_what_does_not_count_plays_no_part_and_seeds_decide():
    x, time, event = regression(200, 0)
    counts = np.ones_like(event)
    counts[:80, 1] = False
    other = time.copy()
    other[:80, 1] = 7.0
    weight = np.random.default_rng(0).random(200)
    first, second, third = (
        fit_density_network(as_tensor(x), t, event, counts, weight, seed, CPU)
        for t, seed in ((time, 0), (other, 0), (time, 1))
    )
    z = [n.pool(Free(2), 50, seed=0).draw(torch.zeros(1, 2)) for n in (first, second, third)]
    torch.testing.assert_close(z[0], z[1], rtol=0, atol=0)
    assert (z[0] - z[2]).abs().max() > 0


def test_weights_move_the_forecast():
    rng = np.random.default_rng(0)
    early = rng.random(400) < 0.5
    time = np.where(early, 1.0, 10.0)[:, None] * np.exp(0.1 * rng.normal(size=(400, 1)))
    always = np.ones_like(time, dtype=bool)
    network = fit_density_network(
        torch.zeros(400, 1), time, always, always, np.where(early, 9.0, 1.0), 0, CPU
    )
    z = network.pool(Free(1), 4000, seed=0).draw(torch.zeros(1, 1))
    assert float((z < 3).double().mean()) == pytest.approx(0.9, abs=0.04)


@pytest.mark.parametrize("n", [1, 3, 20])
def test_few_subjects_and_constant_times(n):
    time, event = np.full((n, 1), 2.0), np.ones((n, 1), dtype=bool)
    network = fit_density_network(torch.zeros(n, 1), time, event, event, None, 0, CPU)
    assert network.pool(Free(1), 10, seed=0).draw(torch.zeros(1, 1)).isfinite().all()


def test_censoring_at_zero_is_allowed_and_events_at_zero_leave_the_network_out():
    x, time, event = regression(300, 1)
    time[:5], event[:5] = 0.0, False
    model = cs.CensoredEngression(**SMALL, n_generators=1).fit(x, cs.RightCensored(time, event))
    assert NAME in model.baseline_
    assert np.isfinite(model.sample(x[:3], 20)).all()
    event[0, 0] = True
    model = cs.CensoredEngression(**SMALL, n_generators=1).fit(x, cs.RightCensored(time, event))
    assert NAME not in model.baseline_


def test_extreme_covariates_and_times_stay_finite():
    x, time, event = regression(300, 2)
    network = fit_density_network(as_tensor(x), 1e30 * time**8, event, np.ones_like(event), None, 0, CPU)
    z = network.pool(Free(2), 200, seed=0).draw(torch.tensor([[1e6, -1e6], [0.0, 0.0]]))
    assert z.isfinite().all()
    assert (z > 0).all()


# ---- its share -------------------------------------------------------------------------------------


def test_networks_share_by_a_prior_of_their_own():
    D = np.array([[1.0, 1.1, 1.3], [1.1, 1.0, 1.3], [1.3, 1.3, 1.0]])
    rng = np.random.default_rng(0)
    a = 1 + 0.4 * rng.normal(size=(300, 3))
    found = weighed_mixture(a, np.stack([D] * 300), np.ones(300), 1e9, 0.25)
    # the second against the first, by the formula of the posterior mean
    slope = a[:, 0] - a[:, 1] - (D[1, 0] - D[1, 1])
    curvature, error = 0.2, slope.std(ddof=1) / np.sqrt(300) / 0.2
    best = -slope.mean() / curvature
    q = (best / error**2 + 0.75 / 0.2**2) / (1 / error**2 + 1 / 0.2**2)
    assert found[0] / found[:2].sum() == pytest.approx(q, abs=1e-6)
    assert found.sum() == pytest.approx(1.0)
    alike = np.broadcast_to(np.ones((2, 2)), (5, 2, 2))
    np.testing.assert_allclose(weighed_mixture(np.ones((5, 2)), alike, np.ones(5), 9.0, 0.25), [0.75, 0.25])


def test_a_network_that_has_learned_nothing_gives_way_and_files_keep_the_density_network(tmp_path):
    data = LogNormalScenario(k=2, censoring="uniform").sample(400, seed=0)
    settings = SMALL | {"epochs": 1, "learning_rate": 1e-6, "n_generators": 1}
    model = cs.CensoredEngression(**settings).fit(data.X, data.y)
    assert NAME in model.baseline_
    assert model.baseline_weight_ > 0.8
    model.save(tmp_path / "model")
    again = cs.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(again.sample(data.X[:5], 40), model.sample(data.X[:5], 40))
    assert again.baseline_ == model.baseline_
    tensors, settings = read_model_file(tmp_path / "model", "CensoredEngression")
    name = next(name for name in tensors if name.endswith(".networks.first")).replace("networks.first", "")
    tensors[f"{name}spread"] = -tensors[f"{name}spread"]
    write_model_file(tmp_path / "other", "CensoredEngression", tensors, settings)
    with pytest.raises(ModelFileError, match="spread"):
        cs.load(tmp_path / "other")


def test_it_learns_from_fewer_subjects_than_the_network_and_has_a_smaller_share_beforehand(monkeypatch):
    from censcore.learning.engression import mixture

    seen = []
    weigh = mixture.weighed_mixture
    monkeypatch.setattr(mixture, "weighed_mixture", lambda *args: seen.append(args[-1]) or weigh(*args))
    monkeypatch.setattr(mixture, "_DENSITY_SUBJECTS", 60)
    x, time, event = regression(300, 0)
    cs.CensoredEngression(**SMALL, n_generators=1).fit(x, cs.RightCensored(time, event))
    assert seen == [60 / (60 + 240)]


def test_subjects_that_are_weighed_share_no_random_numbers():
    """Subjects with equal covariates once did: an error of sampling that was in no standard error."""
    from censcore.learning.engression.generator import Generator

    network, x = Generator(n_features=1, k=1, width=8, depth=2, noise_dim=4).eval(), torch.zeros(8, 1)
    shared, apart = NoisePool(network, 20, 0).draw(x), NoisePool(network, 20, 0, subjects=8).draw(x)
    assert (shared[0] == shared[1]).all()
    assert len(apart.flatten().unique()) == 160


def test_equal_subjects_have_terms_with_errors_of_their_own(monkeypatch):
    from censcore.learning.engression import mixture

    kept = []

    def keeping(*args):
        kept.append(_held_out_terms(*args))
        return kept[0]

    monkeypatch.setattr(mixture, "_held_out_terms", keeping)
    time = np.where(np.arange(400) % 2, 1.0, 2.0)[:, None]
    cs.CensoredEngression(**SMALL, n_generators=1).fit(None, cs.RightCensored(time, np.ones((400, 1))))
    a, D, _ = kept[0]
    names = ["network", NAME, "Kaplan-Meier", "Weibull"]
    assert a.shape == (80, len(names))
    for j in range(len(names)):
        # values of a product-limit estimate are the two times, so that its distances are few
        least = 10 if names[j] == "Kaplan-Meier" else 80
        assert len(np.unique(a[:, j])) >= least
        assert len(np.unique(D[:, j, 1])) >= 80
