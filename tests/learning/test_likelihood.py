"""Likelihood models of several event times: what generated the data is recovered, and the contract holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from tests.learning.small_trainings import likelihood

import censcore as cs
from censcore.exceptions import InvalidInputError, ModelFileError, NotFittedError
from censcore.learning.training import loop
from censcore.simulation import LogNormalScenario

N = 3000
COEF = np.array([[0.5, -0.3], [0.0, 0.4], [-0.4, 0.2]])  # log scale of coordinate j: x @ COEF[j]
SHAPE = np.array([1.4, 0.9, 2.0])


def margins(X: np.ndarray, k: int) -> list[cs.Weibull]:
    return [cs.Weibull(SHAPE[j], np.exp(0.3 * j + X @ COEF[j])) for j in range(k)]


def generated(distribution, X: np.ndarray, end: float = 4.0, seed: int = 1) -> cs.RightCensored:
    """One draw per row under one uniform C."""
    rng = np.random.default_rng(seed)
    T, C = distribution.sample(1, rng)[:, 0], rng.uniform(0, end, len(X))[:, None]
    return cs.RightCensored(np.minimum(T, C), C >= T)


def covariates(n: int = N, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, 2))


CASES = {
    "independent": (3, lambda X: cs.Independent(margins(X, 3)), None),
    "clayton, weak": (3, lambda X: cs.Copula("clayton", margins(X, 3), 0.5), 0.5),
    "clayton, strong": (2, lambda X: cs.Copula("clayton", margins(X, 2), 3.0), 3.0),
    "gumbel": (2, lambda X: cs.Copula("gumbel", margins(X, 2), 2.0), 2.0),
}


@pytest.mark.parametrize("case", CASES)
def test_parameters_of_the_generating_model_are_recovered(case):
    k, distribution, theta = CASES[case]
    X = covariates()
    y = generated(distribution(X), X)
    assert 0.3 < y.event.mean() < 0.8
    training = {"epochs": 60, "learning_rate": 3e-2, "validation_fraction": 0.0, "random_state": 0}
    model = likelihood(cs.CopulaWeibull, case.split(",")[0], **training)
    found = model.fit(X, y).predict_distribution(X[:200])
    for j in range(k):
        true = margins(X[:200], k)[j].parameters
        got = found.marginal(j).parameters
        np.testing.assert_allclose(np.log(got["scale"]), np.log(true["scale"]), atol=0.2)
        assert np.mean(np.log(got["scale"] / true["scale"])) == pytest.approx(0, abs=0.08)
        np.testing.assert_allclose(got["shape"], SHAPE[j], rtol=0.1)
    if theta is not None:
        np.testing.assert_allclose(found.theta, theta, rtol=0.2)


@pytest.mark.parametrize(("copula", "theta", "hidden"), [("clayton", 3.0, ()), ("gumbel", 2.0, (8,))])
def test_margins_first_are_those_of_independence(copula, theta, hidden, tmp_path):
    X = covariates()
    y = generated(cs.Copula(copula, margins(X, 2), theta), X)
    training = {"hidden": hidden, "epochs": 30, "learning_rate": 2e-2, "random_state": 0}
    alone = likelihood(cs.CopulaWeibull, "independent", **training).fit(X, y).predict_distribution(X)
    model = likelihood(cs.CopulaWeibull, copula, margins_first=True, **training).fit(X, y)
    joined = model.predict_distribution(X)
    for j in range(2):
        for name, value in alone.marginal(j).parameters.items():
            np.testing.assert_allclose(joined.marginal(j).parameters[name], value, rtol=1e-4)
    np.testing.assert_allclose(joined.theta, theta, rtol=0.2)
    assert np.ptp(joined.theta) == 0
    model.save(tmp_path / "model")
    assert cs.CopulaWeibull.load(tmp_path / "model").predict_distribution(X).theta[0] == joined.theta[0]


def test_margins_first_weighs_rows():
    X = covariates(1000)
    weak, strong = (generated(cs.Copula("clayton", margins(X, 2), theta), X) for theta in (0.5, 5.0))
    y = cs.RightCensored(np.concatenate([weak.time, strong.time]), np.concatenate([weak.event, strong.event]))
    first = np.arange(2000) < 1000
    model = likelihood(
        cs.CopulaWeibull, "clayton", margins_first=True, epochs=20, learning_rate=3e-2, random_state=0
    )
    found = [
        float(model.fit(np.vstack([X, X]), y, w).predict_distribution(X).theta[0]) for w in (first, ~first)
    ]
    assert found[0] < 1 < 3 < found[1]


def test_dependence_that_varies_with_x_is_recovered():
    X = covariates()
    theta = np.exp(0.5 + 1.0 * X[:, 0])
    y = generated(cs.Copula("clayton", margins(X, 2), theta), X)
    model = cs.CopulaWeibull("clayton", dependence="conditional", epochs=80, random_state=0).fit(X, y)
    distribution = model.predict_distribution(X)
    assert np.corrcoef(np.log(distribution.theta), np.log(theta))[0, 1] > 0.9
    np.testing.assert_allclose(distribution.marginal(0).parameters["shape"], SHAPE[0], rtol=0.15)
    assert np.ptp(distribution.marginal(0).parameters["shape"]) == 0  # shapes stay the same for all rows


def test_a_network_learns_scales_that_are_not_linear():
    X = covariates(4000)
    scale = np.exp(np.abs(X[:, 0]))
    y = generated(cs.Independent([cs.Weibull(1.5, scale), cs.Weibull(1.0, 1 / scale)]), X, end=8.0)
    test = slice(0, 1000)
    losses = {}
    for hidden in ((), (32, 32)):
        model = cs.CopulaWeibull(hidden=hidden, epochs=40, random_state=0)
        distribution = model.fit(X[1000:], y[1000:]).predict_distribution(X[test])
        losses[hidden] = cs.log_score(y[test], distribution).mean()
    assert losses[(32, 32)] < losses[()] - 0.1


def test_cells_of_the_generating_grid_are_recovered():
    edges = [[0.0, 1.0, 2.0, 3.0]] * 2
    cells = np.array(
        [[0.15, 0.02, 0.05, 0.03], [0.02, 0.2, 0.1, 0.03], [0.05, 0.05, 0.1, 0.05], [0.02, 0.03, 0.05, 0.05]]
    )
    distribution = cs.JointGrid(edges, cells[None], tail=0.8)
    X = np.empty((6000, 0))
    rng = np.random.default_rng(0)
    T, C = distribution.sample(6000, rng)[0], rng.uniform(0, 6, 6000)[:, None]
    y = cs.RightCensored(np.minimum(T, C), C >= T)
    model = likelihood(
        cs.JointGridModel,
        edges=[0.0, 1.0, 2.0, 3.0],
        tail=0.8,
        hidden=(),
        learning_rate=5e-2,
        epochs=60,
        random_state=0,
    )
    found = model.fit(X, y).predict_distribution(X[:1])
    np.testing.assert_allclose(found.probabilities[0], cells, atol=0.02)


@pytest.mark.parametrize(
    "model",
    [
        cs.CopulaWeibull("independent", solver="adam", epochs=3, random_state=0),
        cs.CopulaWeibull("clayton", solver="adam", epochs=3, random_state=0),
        cs.CopulaWeibull("gumbel", hidden=(8,), epochs=3, random_state=0),
        cs.JointGridModel(bins=6, hidden=(8,), epochs=3, random_state=0),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'copula', '')}",
)
class TestContract:
    """What every likelihood model promises, on the unimodal scenario."""

    data = LogNormalScenario(k=2, mixture=False).sample(300, seed=0)
    valid = LogNormalScenario(k=2, mixture=False).sample(120, seed=1)

    def fitted(self, model):
        return clone(model).fit(self.data.X, self.data.y, eval_set=(self.valid.X, self.valid.y))

    def test_the_training_loss_is_the_log_score(self, model):
        """Times are measured in units of their mean, which shifts the density of every event by log unit."""
        model = self.fitted(model)
        distribution = model.predict_distribution(self.valid.X)
        score = cs.log_score(self.valid.y, distribution)
        events = self.valid.y.event.sum(axis=1)
        kept = model.history_.epochs[model.history_.kept_epoch]
        assert kept.validation_loss == pytest.approx((score - events * np.log(model._unit)).mean(), abs=1e-4)

    def test_more_training_helps(self, model):
        losses = [epoch.validation_loss for epoch in self.fitted(model).history_.epochs]
        assert losses[-1] < losses[0]

    def test_the_joint_distribution_can_be_sampled_and_scored(self, model):
        distribution = self.fitted(model).predict_distribution(self.valid.X)
        assert distribution.shape == (120, 2)
        draws = distribution.sample(50, 0)
        assert draws.shape == (120, 50, 2)
        C = LogNormalScenario(k=2, mixture=False).censoring_distribution(self.valid.X)
        assert np.isfinite(cs.energy_score(self.valid.y, cs.Ensemble(draws), C)).all()
        assert np.isfinite(cs.crps(self.valid.y.marginal(0), distribution.marginal(0), C)).all()

    def test_the_same_seed_gives_the_same_distribution(self, model):
        one, two = (self.fitted(model).predict_distribution(self.valid.X) for _ in range(2))
        np.testing.assert_array_equal(cs.log_score(self.valid.y, one), cs.log_score(self.valid.y, two))

    def test_a_saved_model_says_the_same(self, model, tmp_path):
        model = self.fitted(model)
        model.save(tmp_path / "model.safetensors")
        loaded = type(model).load(tmp_path / "model.safetensors")
        before, after = (m.predict_distribution(self.valid.X) for m in (model, loaded))
        np.testing.assert_allclose(
            cs.log_score(self.valid.y, before), cs.log_score(self.valid.y, after), rtol=1e-6
        )
        with pytest.raises(ModelFileError):
            cs.CensoredEngression.load(tmp_path / "model.safetensors")

    def test_tied_coordinates_are_tolerated(self, model):
        """Coordinates that share a time, with events and censored, train and score to finite numbers."""
        time = np.repeat(np.linspace(0.2, 3.0, 60)[:, None], 2, axis=1)
        event = np.stack([np.arange(60) % 2 == 0, np.arange(60) % 3 == 0], axis=1)
        y = cs.RightCensored(time, event)
        distribution = clone(model).fit(None, y).predict_distribution(np.empty((60, 0)))
        assert np.isfinite(cs.log_score(y, distribution)).all()

    def test_training_stops_when_validation_no_longer_improves(self, model):
        patient = clone(model).set_params(
            epochs=200,
            patience=2,
            training=replace(model.default_training, learning_rate=0.1, schedule="constant"),
        )
        history = self.fitted(patient).history_
        assert len(history.epochs) < 200
        losses = [epoch.validation_loss for epoch in history.epochs]
        assert history.kept_epoch == int(np.argmin(losses))

    def test_a_callback_ends_the_training(self, model):
        found = clone(model).fit(self.data.X, self.data.y, callbacks=[lambda epoch, network: True])
        assert len(found.history_.epochs) == 1

    def test_groups_stay_together(self, model):
        groups = np.repeat(np.arange(100), 3)
        distribution = (
            clone(model).fit(self.data.X, self.data.y, groups=groups).predict_distribution(self.data.X)
        )
        assert np.isfinite(cs.log_score(self.data.y, distribution)).all()

    def test_prediction_before_fitting_is_refused(self, model):
        with pytest.raises(NotFittedError):
            clone(model).predict_distribution(self.data.X)

    def test_an_event_at_zero_is_refused(self, model):
        time = self.data.y.time.copy()
        time[3, 0] = 0.0
        event = self.data.y.event.copy()
        event[3, 0] = True
        with pytest.raises(InvalidInputError, match="1 subjects have an event at time zero"):
            clone(model).fit(self.data.X, cs.RightCensored(time, event))

    def test_bad_weights_are_refused(self, model):
        for weight in (-np.ones(300), np.ones(299), np.full(300, np.nan)):
            with pytest.raises(InvalidInputError, match="sample_weight"):
                clone(model).fit(self.data.X, self.data.y, weight)


def test_one_event_time_gets_a_distribution_of_one_time():
    data = LogNormalScenario(k=2, mixture=False).sample(200, seed=0)
    distribution = (
        cs.CopulaWeibull(epochs=2, random_state=0)
        .fit(data.X, data.y.marginal(0))
        .predict_distribution(data.X)
    )
    assert distribution.shape == (200,)
    assert isinstance(distribution, cs.Weibull)


def test_rows_of_weight_zero_teach_nothing():
    X = covariates(2000)
    early, late = cs.Independent([cs.Weibull(1.5, 0.5)] * 2), cs.Independent([cs.Weibull(1.5, 3.0)] * 2)
    rng = np.random.default_rng(0)
    T = np.where(np.arange(2000)[:, None] < 1000, early.sample(2000, rng)[0], late.sample(2000, rng)[0])
    y = cs.RightCensored(T, np.ones((2000, 2)))
    weight = (np.arange(2000) < 1000).astype(float)
    model = likelihood(cs.CopulaWeibull, epochs=40, random_state=0, learning_rate=3e-2).fit(None, y, weight)
    np.testing.assert_allclose(
        model.predict_distribution(X[:1, :0]).marginal(0).parameters["scale"], 0.5, rtol=0.1
    )


@pytest.mark.parametrize("tail", ["hazard", "infinity", 0.5])
def test_the_tail_beyond_the_grid_follows_its_rule(tail):
    data = LogNormalScenario(k=2).sample(300, seed=0)
    model = cs.JointGridModel(bins=5, tail=tail, epochs=1, solver="adam", random_state=0).fit(data.X, data.y)
    distribution = model.predict_distribution(data.X[:3])
    end = float(distribution.edges[0][-1])
    beyond, later = (distribution.marginal(0).sf(end + extra) for extra in (0.0, 1.0))
    if tail == "infinity":
        np.testing.assert_allclose(later, beyond)
    elif tail == 0.5:
        np.testing.assert_allclose(later / beyond, np.exp(-0.5), rtol=1e-6)
    else:
        start = 0.75 * end
        time, event = data.y.time[:, 0], data.y.event[:, 0]
        # the validation rows are no part of the training times
        assert (
            0
            < -np.log(later / beyond)[0]
            < 5 * event[time > start].sum() / np.clip(time - start, 0, None).sum()
        )


@pytest.mark.parametrize("edges", ["quantile", "uniform", [0.0, 0.5, 1.0, 4.0]], ids=str)
def test_edges_of_the_grid(edges):
    data = LogNormalScenario(k=2).sample(300, seed=0)
    model = cs.JointGridModel(bins=5, edges=edges, epochs=1, solver="adam", random_state=0).fit(
        data.X, data.y
    )
    found = np.asarray(model.predict_distribution(data.X[:1]).edges[0])
    if isinstance(edges, list):
        np.testing.assert_allclose(found, edges)
    else:
        assert found[0] == 0.0
        assert len(found) == 6
        if edges == "uniform":
            np.testing.assert_allclose(np.diff(found), found[-1] / 5)


@pytest.mark.parametrize(
    ("model", "k", "message"),
    [
        (cs.CopulaWeibull("frank"), 2, "copula must be"),
        (cs.CopulaWeibull("gumbel"), 3, "joins two event times"),
        (cs.CopulaWeibull("clayton", dependence="some"), 2, "dependence must be"),
        (cs.CopulaWeibull("clayton", dependence="conditional", margins_first=True), 2, "for all subjects"),
        (cs.JointGridModel(), 3, "two event times"),
        (cs.JointGridModel(bins=1), 2, "bins must be"),
        (cs.JointGridModel(edges="log"), 2, "edges must be"),
        (cs.JointGridModel(edges=[1.0, 0.0]), 2, r"edges must start .* got \[1.0, 0.0\]"),
        (cs.JointGridModel(tail=-1.0), 2, "tail must be .* got -1.0"),
        (cs.JointGridModel(tail="long"), 2, "tail must be .* got 'long'"),
        (cs.CopulaWeibull(hidden=(0,)), 2, "the width of a layer"),
        (cs.CopulaWeibull(hidden=8), 2, "expected the widths"),
        (cs.CopulaWeibull(epochs=0), 2, "epochs"),
        (likelihood(cs.CopulaWeibull, validation_fraction=1.5), 2, "validation_fraction"),
        (likelihood(cs.CopulaWeibull, beta=0.5), 2, "beta, which CensoredEngression alone has"),
    ],
)
def test_wrong_settings_are_refused(model, k, message):
    data = LogNormalScenario(k=k).sample(50, seed=0)
    with pytest.raises(InvalidInputError, match=message):
        model.fit(data.X, data.y)


def test_a_grid_by_quantiles_needs_an_event():
    y = cs.RightCensored(np.ones((30, 2)), np.zeros((30, 2)))
    with pytest.raises(InvalidInputError, match="No subject has an event"):
        cs.JointGridModel(bins=4).fit(None, y)
    held_out = np.random.default_rng(0).permutation(30)[0]  # the only event lies in the validation rows
    y = cs.RightCensored(np.ones((30, 2)), np.arange(30)[:, None] == [held_out, held_out])
    with pytest.raises(InvalidInputError, match="edges cannot be quantiles"):
        cs.JointGridModel(bins=4, random_state=0).fit(None, y)


def test_times_that_are_all_zero_are_refused():
    y = cs.RightCensored(np.zeros((30, 2)), np.ones((30, 2)))
    with pytest.raises(InvalidInputError, match="got zeros only"):
        cs.CopulaWeibull().fit(None, y)


@pytest.mark.parametrize("copula", ["independent", "clayton", "gumbel"])
@pytest.mark.parametrize("value", [-200.0, -50.0, 50.0, 200.0])
def test_a_network_may_go_astray_for_some_subjects(copula, value):
    """Validation rows met shapes below what a Weibull distribution accepts, and ended the training."""
    data = LogNormalScenario(k=2, censoring="uniform").sample(60, seed=0)
    model = cs.CopulaWeibull(copula, hidden=(4,), epochs=1, random_state=0).fit(data.X, data.y)
    raw = torch.zeros(60, 4 + (copula != "independent"))
    raw[0] = value
    F = model._distribution(raw, 1.0)
    time, event = (torch.as_tensor(part) for part in (data.y.time, data.y.event))
    assert torch.isfinite(F.log_likelihood(time.float(), event)[1:]).all()


def test_moments_of_a_checkpoint_lie_in_memory_as_the_parameters_do(tmp_path, monkeypatch):
    """Fused steps demand it, also of a parameter without elements, as a network without constants has."""
    X = covariates(300)
    y = generated(cs.Independent(margins(X, 2)), X)
    settings = {"epochs": 3, "random_state": 0, "hidden": (4,), "checkpoint": tmp_path / "state"}

    def stop(epoch, network):
        raise KeyboardInterrupt

    cs.CopulaWeibull("clayton", **settings).fit(X, y, callbacks=[stop])
    runs, restore = [], loop.restore
    monkeypatch.setattr(loop, "restore", lambda run, *state: [restore(run, *state), runs.append(run)])
    resumed = cs.CopulaWeibull("clayton", **settings).fit(X, y)
    assert len(resumed.history_.epochs) == 3
    state = runs[0].optimizer.state
    assert any(p.numel() == 0 for p in state)
    assert all(state[p][name].stride() == p.stride() for p in state for name in ("exp_avg", "exp_avg_sq"))
