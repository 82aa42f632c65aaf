"""What a user meets: exports, joint scorers, and errors that say what to do."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.model_selection import cross_val_score
from tests.learning.small_trainings import engression

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.learning.engression.sampling import Sampler

SMALL = {
    "width": 8,
    "depth": 2,
    "noise_dim": 4,
    "epochs": 1,
    "n_samples": 40,
    "n_networks": 1,
    "random_state": 0,
    "device": "cpu",
}
RNG = np.random.default_rng(0)
X = RNG.normal(1.0, 3.0, size=(120, 2))
T, C = RNG.exponential(size=(120, 2)), RNG.uniform(0, 3, (120, 1))
Y = cs.RightCensored(np.minimum(T, C), T <= C)
END = np.minimum(T.sum(axis=1, keepdims=True), C)
DEATH = T.sum(axis=1, keepdims=True)
SEMI = cs.SemiCompetingRisks(
    np.hstack([np.minimum(T[:, :1], END), END]), np.hstack([T[:, :1] <= END, DEATH <= C])
)
OUTCOMES = {
    "free": (Y, {}),
    "log1p": (Y, {"time_transform": "log1p"}),
    "bounded": (Y, {"time_transform": "bounded"}),
    "semi-competing": (SEMI, {}),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_sampler_as_one_module_draws_what_the_model_draws(name):
    y, settings = OUTCOMES[name]
    model = engression(**SMALL, **settings)
    model.fit(X, y, censoring=cs.Uniform(0.0, 3.0))
    sampler = Sampler(model._networks[0], model._structure, model._times, model._center, model._spread)
    x = torch.from_numpy(X[:50].astype(np.float32))
    generator = torch.Generator().manual_seed(0)
    noise, uniform = torch.randn(50, 400, 4, generator=generator), torch.rand(50, 400, generator=generator)
    with torch.no_grad():
        z = np.minimum(sampler(x, noise, uniform).numpy(), 3.0)
    drawn = np.minimum(model.sample(X[:50], 400), 3.0)
    np.testing.assert_allclose(z.mean(axis=(0, 1)), drawn.mean(axis=(0, 1)), rtol=0.05)
    np.testing.assert_allclose(z.std(axis=(0, 1)), drawn.std(axis=(0, 1)), rtol=0.05)


@pytest.mark.parametrize("name", ["semi-competing", pytest.param("free", marks=pytest.mark.slow)])
def test_an_exported_sampler_runs_by_itself(name, tmp_path):
    y, _ = OUTCOMES[name]
    model = engression(**SMALL).fit(X, y, censoring=cs.Uniform(0.0, 3.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about its tools
        model.export(tmp_path / "sampler.pt2")
        program = torch.export.load(tmp_path / "sampler.pt2").module()
    x, noise, uniform = torch.ones(7, 2), torch.randn(7, 9, model.noise_size), torch.rand(7, 9)
    sampler = Sampler(model._networks[0], model._structure, model._times, model._center, model._spread)
    torch.testing.assert_close(program(x, noise, uniform), sampler(x, noise, uniform))
    with pytest.raises(InvalidInputError, match="generator must be"):
        model.export(tmp_path / "other.pt2", generator=1)


@pytest.mark.parametrize("y", [Y, SEMI], ids=["free", "semi-competing"])
def test_joint_models_are_cross_validated_by_the_energy_score(y):
    model = cs.WithCensoring(engression(**SMALL))
    losses = cross_val_score(model, X, y, cv=2, scoring=cs.scorer("energy_score"), error_score="raise")
    assert (losses < 0).all()
    fitted = model.fit(X, y)
    C = fitted.predict_censoring(X)
    by_hand = cs.energy_score(y, fitted.predict_distribution(X), C, horizon=fitted.horizon_)
    assert fitted.score(X, y) == pytest.approx(-by_hand.mean())
    with pytest.raises(InvalidInputError, match=r"scorer\('energy_score'\)"):
        cs.scorer("crps")(fitted, X, y)


def test_each_event_time_may_have_its_censoring_time():
    c = RNG.uniform(0, 3, (120, 2))
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    model = cs.WithCensoring(engression(**SMALL)).fit(X, y)
    assert model.censoring_.predict_distribution(X).k == 2
    assert set(cs.scorers(["energy_score", "energy_score:fair"])) == {
        "energy_score",
        "energy_score:fair",
        "horizon",
    }
    assert model.score(X, y) < 0


def test_categories_are_named():
    frame = pd.DataFrame({"age": X[:, 0], "sex": ["f", "m"] * 60})
    model = engression(**SMALL)
    for table in (frame, frame.astype({"sex": "category"})):
        with pytest.raises(InvalidTypeError, match=r"must hold numbers; got 'sex'.*OneHotEncoder"):
            model.fit(table, Y, censoring=cs.Uniform(0.0, 3.0))
    with pytest.raises(InvalidTypeError, match="column 1"):
        model.fit(frame.to_numpy(), Y, censoring=cs.Uniform(0.0, 3.0))


def test_outcomes_in_torch_are_taken():
    y = cs.RightCensored(torch.from_numpy(Y.time), torch.from_numpy(Y.event))
    model = engression(**SMALL).fit(X, y, censoring=cs.Uniform(0.0, 3.0))
    same = engression(**SMALL).fit(X, Y, censoring=cs.Uniform(0.0, 3.0))
    np.testing.assert_array_equal(model.sample(X[:3]), same.sample(X[:3]))
    expected = same.score(X, Y, censoring=cs.Uniform(0.0, 3.0))  # single precision
    assert model.score(X, y, censoring=cs.Uniform(0.0, 3.0)) == pytest.approx(expected, rel=1e-6)


def test_nan_times_lead_to_the_mask():
    time = Y.time.copy()
    time[3, 1] = np.nan
    with pytest.raises(InvalidInputError, match=r"NaN in 1 subject.*mask"):
        cs.RightCensored(time, Y.event)


def test_lists_of_covariates_are_taken():
    model = engression(**SMALL).fit(X.tolist(), Y, censoring=cs.Uniform(0.0, 3.0))
    np.testing.assert_array_equal(model.sample(X[:3].tolist()), model.sample(X[:3]))
