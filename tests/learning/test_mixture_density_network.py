"""The mixture density network as an estimator: its density, draws, data it can take, model files."""

import numpy as np
import pytest
from scipy import stats

import censcore as cs
from censcore.exceptions import InvalidInputError, ModelFileError

torch = pytest.importorskip("torch", reason="networks need the extra 'torch'")

from tests.learning.small_trainings import sample  # noqa: E402

from censcore.learning.mixture_density_network import DensityTask, LogNormalComponents  # noqa: E402
from censcore.model_files import read_model_file, write_model_file  # noqa: E402

SMALL = {"epochs": 2, "random_state": 0, "device": "cpu", "n_samples": 4000}


@pytest.fixture(scope="module")
def joint():
    data = sample(300)
    return data, cs.MixtureDensityNetwork(**SMALL).fit(data.X, data.y)


def test_density_is_the_one_that_was_trained(joint):
    data, model = joint
    F = model.predict_distribution(data.X[:3])
    x = model._standardised(data.X[:3].astype(np.float32))
    weight, mu, sigma = (part.numpy() for part in model._parameters(x[:]))
    time, event = np.array([[0.5, 1.5]] * 3), np.array([[1, 0]] * 3)
    parts = stats.norm.pdf(np.log(0.5), mu[..., 0], sigma[..., 0]) / 0.5
    parts = parts * stats.norm.sf(np.log(1.5), mu[..., 1], sigma[..., 1])
    np.testing.assert_allclose(F.log_likelihood(time, event), np.log((weight * parts).sum(axis=1)))


def test_draws_have_the_predicted_distribution(joint):
    data, model = joint
    draws, F = model.sample(data.X[:2]), model.predict_distribution(data.X[:2])
    at = np.array([[0.7, 1.1], [1.0, 0.9]])
    for i in range(2):
        seen = (draws[i] > at[i]).all(axis=1).mean()
        assert abs(seen - F.sf(at)[i]) < 4 * np.sqrt(0.25 / 4000)


def test_draws_belong_to_a_subject(joint):
    data, model = joint
    both = model.sample(data.X[:2], 50)
    np.testing.assert_array_equal(both[1], model.sample(data.X[1:2], 50)[0])


@pytest.mark.slow
def test_longer_training_gives_a_better_log_score():
    train, test = sample(500), sample(500, seed=1)
    scores = [
        cs.log_score(
            test.y,
            cs.MixtureDensityNetwork(**SMALL | {"epochs": epochs})
            .fit(train.X, train.y)
            .predict_distribution(test.X),
        ).mean()
        for epochs in (1, 40)
    ]
    assert scores[1] < scores[0] - 0.05


def test_one_time_is_a_mixture_with_a_density():
    data = sample(200, k=1)
    y = cs.RightCensored(data.y.time.reshape(-1), data.y.event.reshape(-1))
    F = (
        cs.MixtureDensityNetwork(**SMALL, components=2, n_networks=3)
        .fit(data.X, y)
        .predict_distribution(data.X)
    )
    assert isinstance(F, cs.Mixture)
    assert len(F.components) == 6
    assert np.isfinite(cs.log_score(y, F)).all()


def competing(n, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 1))
    F = cs.CauseSpecificHazards([cs.Exponential(np.exp(X[:, 0])), cs.Exponential(0.5)], names=["a", "b"])
    time, cause = F.sample(1, seed=seed + 1)
    return X, cs.CompetingRisks(time[:, 0], cause[:, 0], names=["a", "b"]).censor_at(2.0), F


def test_competing_risks_have_the_right_incidences():
    X, y, F = competing(800)
    model = cs.MixtureDensityNetwork(**SMALL | {"epochs": 40}).fit(X, y)
    found = model.predict_distribution(X)
    assert found.names == ("a", "b")
    assert np.abs(found.cif([0.5, 1.5]) - F.cif([0.5, 1.5])).mean() < 0.05


def test_semi_competing_risks_are_prevented_by_the_terminal_event():
    rng = np.random.default_rng(0)
    first, end = rng.exponential(size=400), 1.5 * rng.exponential(size=400)
    happens = first < end
    y = cs.SemiCompetingRisks(
        np.stack([np.where(happens, first, end), end], axis=1), np.stack([happens, end > 0], axis=1)
    )
    z = cs.MixtureDensityNetwork(**SMALL | {"epochs": 30}).fit(None, y).predict_distribution().samples[0]
    never = np.isinf(z[:, 0])
    assert (z[~never, 0] <= z[~never, 1]).all()
    assert abs(never.mean() - 0.4) < 0.08  # P(first > end) = (1/1.5)/(1 + 1/1.5)


def test_masked_times_play_no_part():
    data = sample(200)
    mask = np.ones((200, 2), dtype=bool)
    mask[:50, 1] = False
    other = data.y.time.copy()
    other[:50, 1] = 77.0
    models = [
        cs.MixtureDensityNetwork(**SMALL).fit(data.X, cs.RightCensored(time, data.y.event), mask=mask)
        for time in (data.y.time, other)
    ]
    np.testing.assert_array_equal(*(model.sample(data.X[:5], 10) for model in models))


def test_an_event_at_time_zero_is_an_error():
    with pytest.raises(InvalidInputError, match="event at time zero"):
        cs.MixtureDensityNetwork(**SMALL).fit(None, cs.RightCensored([0.0, 1.0, 2.0], [1, 1, 0]))


@pytest.mark.parametrize(
    "change", [{"components": 0}, {"width": 0}, {"n_networks": 0.5}, {"n_samples": 0}, {"epochs": 0}]
)
def test_settings_are_checked(change):
    data = sample(50)
    with pytest.raises(InvalidInputError, match=next(iter(change))):
        cs.MixtureDensityNetwork(**SMALL | change).fit(data.X, data.y)


def test_model_files(joint, tmp_path):
    data, model = joint
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        cs.load(tmp_path / "model").sample(data.X[:4], 9), model.sample(data.X[:4], 9)
    )
    tensors, settings = read_model_file(tmp_path / "model", "MixtureDensityNetwork")
    for wrong in ({"log_spread": [0.0, 1.0]}, {"log_center": [1.0]}):
        changed = settings | {"fitted": settings["fitted"] | wrong}
        write_model_file(tmp_path / "wrong", "MixtureDensityNetwork", tensors, changed)
        with pytest.raises(ModelFileError, match=next(iter(wrong))):
            cs.load(tmp_path / "wrong")
    huge = settings | {"parameters": settings["parameters"] | {"components": 10**9}}
    write_model_file(tmp_path / "wrong", "MixtureDensityNetwork", tensors, huge)
    with pytest.raises(ModelFileError, match="components"):
        cs.load(tmp_path / "wrong")


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


def regression(n, seed, end=4.0):
    """Two log-normal times, of which a covariate moves the first, and C uniform."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    T = np.exp(np.stack([0.6 * x[:, 0], np.zeros(n)], axis=1) + 0.5 * rng.normal(size=(n, 2)))
    C = rng.uniform(0.2, end, (n, 1))
    return x, np.minimum(T, C), C >= T


def test_training_finds_a_censored_regression():
    x, time, event = regression(3000, 0)
    model = cs.MixtureDensityNetwork(random_state=0, device="cpu").fit(x, cs.RightCensored(time, event))
    t = np.exp(np.linspace(-1.2, 1.0, 9))
    for value in (-1.0, 0.0, 1.0):
        F = model.predict_distribution(np.array([[value, 0.4]]))
        for j, location in enumerate((0.6 * value, 0.0)):
            truth = stats.lognorm.cdf(t, 0.5, scale=np.exp(location))
            np.testing.assert_allclose(F.marginal(j).cdf(t[None])[0], truth, atol=0.05)


def test_weights_move_the_forecast():
    rng = np.random.default_rng(0)
    early = rng.random(400) < 0.5
    time = np.where(early, 1.0, 10.0) * np.exp(0.1 * rng.normal(size=400))
    y = cs.RightCensored(time, np.ones(400))
    model = cs.MixtureDensityNetwork(random_state=0, device="cpu").fit(None, y, np.where(early, 9.0, 1.0))
    assert float(model.predict_distribution().cdf(3.0)[0]) == pytest.approx(0.9, abs=0.04)


@pytest.mark.parametrize("n", [1, 3, 20])
def test_few_subjects_and_constant_times(n):
    model = cs.MixtureDensityNetwork(**SMALL).fit(None, cs.RightCensored(np.full(n, 2.0), np.ones(n)))
    assert np.isfinite(model.sample(None, 10)).all()


def test_extreme_covariates_and_times_stay_finite():
    x, time, event = regression(300, 2)
    model = cs.MixtureDensityNetwork(**SMALL).fit(x, cs.RightCensored(1e30 * time**8, event))
    z = model.sample(np.array([[1e6, -1e6], [0.0, 0.0]]), 200)
    assert np.isfinite(z).all()
    assert (z > 0).all()
