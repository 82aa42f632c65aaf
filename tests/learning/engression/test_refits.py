"""Training of censored engression: again on all subjects, resumed, with a penalty on covariates."""

import numpy as np
import pytest
import torch
from tests.learning.small_trainings import engression

import censcore as cs
from censcore.exceptions import InvalidInputError
from censcore.learning.engression.loss import scale_of_loss

SMALL = {
    "width": 16,
    "depth": 2,
    "noise_dim": 8,
    "epochs": 2,
    "n_samples": 200,
    "random_state": 0,
    "device": "cpu",
}


def clayton_weibull(n, seed, effect=0.6, theta=2.0):
    """Two Weibull times with proportional hazards that share a gamma frailty, and C uniform on [0, 3]."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    hazard = np.log1p(rng.exponential(size=(n, 2)) / rng.gamma(1 / theta, size=(n, 1))) / theta
    T = (hazard * np.exp(-effect * X[:, :1])) ** (1 / 1.5)
    C = rng.uniform(0, 3, n)
    return X, cs.RightCensored(np.minimum(T, C[:, None]), C[:, None] >= T)


X, Y = clayton_weibull(300, 0)


def test_some_subjects_train_the_network_again_on_all_of_them():
    x, y = clayton_weibull(1200, 0)
    model = engression(**SMALL | {"epochs": 5}).fit(x, y)
    first, second = model.histories_
    assert first.epochs[-1].validation_loss is not None
    assert second.epochs[-1].validation_loss is None
    assert len(first.epochs) == 5
    assert len(second.epochs) == 4  # as many steps
    stopping = {"epochs": 8, "learning_rate": 1.0, "patience": 1, "validate_every": 1}
    first, second = engression(**SMALL | stopping).fit(x, y).histories_
    assert len(second.epochs) == max(1, round(0.8 * (first.kept_epoch + 1))) < 8
    with pytest.raises(InvalidInputError, match="two or more networks"):
        model.by_network(x, np.mean)


def test_networks_that_are_resumed_end_with_the_same_draws(tmp_path):
    settings = SMALL | {"n_networks": 2, "checkpoint": tmp_path / "state"}
    whole = engression(**settings | {"checkpoint": None}).fit(X, Y)

    def stop(epoch, network):
        return epoch.epoch == 0

    engression(**settings).fit(X, Y, callbacks=[stop])
    resumed = engression(**settings).fit(X, Y)
    np.testing.assert_array_equal(resumed.sample(X[:5]), whole.sample(X[:5]))


def test_a_generator_that_fails_when_it_is_trained_again_is_not_kept(monkeypatch):
    """With few events one in some trainings ends with late draws alone."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1100, 1))
    y = cs.RightCensored(np.exp(x) * rng.exponential(size=(1100, 1)), np.ones((1100, 1)))
    train = cs.CensoredEngression._train

    def failing(self, task, networks, folds, *others, **options):
        histories = train(self, task, networks, folds, *others, **options)
        if folds[0].validation is None:
            for weights in task.network.parameters():
                weights.data.mul_(5.0)
        return histories

    settings = SMALL | {"epochs": 5, "n_networks": "auto"}
    kept = engression(**settings).fit(x, y)
    assert len(kept.histories_) == 2
    monkeypatch.setattr(cs.CensoredEngression, "_train", failing)
    saved = engression(**settings).fit(x, y)
    assert np.median(saved.sample(x[:200], 64)) == pytest.approx(np.median(kept.sample(x[:200], 64)), rel=0.3)


def test_different_ends_of_follow_up_are_no_reason_for_a_larger_penalty():
    """They once were: with C known between 1 and 30 years and few events it was five times too large."""
    rng = np.random.default_rng(0)
    T, C = rng.exponential(20.0, size=(400, 1)), rng.uniform(1.0, 30.0, 400)
    ends = torch.as_tensor(C[:, None], dtype=torch.float32)
    assert scale_of_loss(ends, ends[:, None], False) == 0.0
    seen = torch.as_tensor(T, dtype=torch.float32)
    known = scale_of_loss(torch.minimum(seen, ends), ends[:, None], False)
    assert 0 < known < 0.5 * scale_of_loss(seen, torch.full_like(seen, torch.inf)[:, None], False)


def test_covariates_without_effect_are_left_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 20))
    T = np.exp(x[:, :1]) * rng.exponential(size=(400, 1))
    y = cs.RightCensored(T, np.ones((400, 1)))
    settings = SMALL | {"epochs": 30, "n_networks": 1}

    def norms(**changes):
        network = engression(**settings | changes).fit(x, y)._networks[0]
        return network.from_x.weight.square().sum(dim=0).sqrt().detach().numpy()

    sparse, dense = norms(), norms(sparsity=0.0)
    assert sparse[1:].mean() < 0.6 * dense[1:].mean()
    assert sparse[0] > 2 * sparse[1:].max()
    with pytest.raises(InvalidInputError, match="sparsity"):
        norms(sparsity=-1.0)
    with pytest.raises(InvalidInputError, match="n_networks"):
        norms(n_networks=0)
