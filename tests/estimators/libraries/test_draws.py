"""Posterior predictive draws of ArviZ, xarray and NumPyro, and what is wrong with draws of censored times."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.estimators import as_forecast, from_draws
from censcore.exceptions import InvalidInputError, InvalidTypeError

RNG = np.random.default_rng(0)
DRAWS = RNG.weibull(1.5, (4, 100, 5)) * np.array([1.0, 2.0, 3.0, 4.0, 5.0])
EXPECTED = np.moveaxis(DRAWS, -1, 0).reshape(5, 400)


def same(ensemble):
    assert ensemble.shape == (5,)
    np.testing.assert_array_equal(np.sort(ensemble.samples, axis=1), np.sort(EXPECTED, axis=1))


def test_arrays_and_dictionaries_with_subjects_last():
    same(from_draws(DRAWS))
    same(from_draws(DRAWS.reshape(400, 5)))
    same(as_forecast({"T": DRAWS}, n=5))
    same(from_draws({"T": DRAWS, "mu": DRAWS[..., 0]}, variable="T"))
    torch = pytest.importorskip("torch")
    same(from_draws({"T": torch.as_tensor(DRAWS)}))


def test_mistakes():
    with pytest.raises(InvalidInputError, match=r"\['T', 'mu'\], expected one.*variable="):
        as_forecast({"T": DRAWS, "mu": DRAWS})
    with pytest.raises(InvalidInputError, match="expected one of"):
        from_draws({"T": DRAWS}, variable="t")
    with pytest.raises(InvalidInputError, match=r"\(draws, n\)"):
        from_draws(DRAWS[0, 0])
    with pytest.raises(InvalidTypeError, match="got str"):
        from_draws("draws.nc")
    with pytest.raises(InvalidInputError, match="got 5 subjects, expected 7"):
        as_forecast({"T": DRAWS}, n=7)


def test_draws_of_censored_times_are_an_error():
    bound = np.array([1.0, 2.0, 3.0, 9.0, 50.0])
    with pytest.raises(InvalidInputError, match=r"pile up at the largest time in .*pm\.Censored"):
        from_draws(np.minimum(DRAWS, bound))
    with pytest.raises(InvalidInputError, match="pile up"):
        as_forecast({"T": np.minimum(DRAWS, 1.0)})
    assert from_draws(np.minimum(DRAWS, bound), check_bound=False).m == 400


def test_honest_ties_are_no_piles():
    from_draws(np.ceil(DRAWS * 3))  # times in months
    cured = np.where(RNG.random(DRAWS.shape) < 0.3, np.inf, DRAWS)
    assert from_draws(cured).mass_at_infinity().mean() == pytest.approx(0.3, abs=0.05)
    from_draws(DRAWS.astype(np.float32))


def test_inference_data_and_xarray():
    arviz = pytest.importorskip("arviz")
    data = arviz.from_dict(posterior={"mu": DRAWS[..., 0]}, posterior_predictive={"T": DRAWS})
    same(as_forecast(data, n=5))
    same(as_forecast(data.posterior_predictive))
    same(as_forecast(data.posterior_predictive["T"]))
    new = arviz.from_dict(posterior_predictive={"T": DRAWS[..., :2]}, predictions={"T": DRAWS})
    same(from_draws(new))  # predictions are for new subjects
    with pytest.raises(InvalidInputError, match="posterior_predictive"):
        as_forecast(arviz.from_dict(posterior={"mu": DRAWS[..., 0]}))
    joint = arviz.from_dict(posterior_predictive={"T": np.stack([DRAWS, DRAWS + 1], axis=-1)})
    assert as_forecast(joint).shape == (5, 2)


def test_data_trees():
    xarray = pytest.importorskip("xarray")
    dataset = xarray.Dataset({"T": (("chain", "draw", "subject"), DRAWS)})
    tree = xarray.DataTree.from_dict({"posterior_predictive": dataset})
    same(as_forecast(tree))
    same(as_forecast(dataset.transpose("subject", "draw", "chain")))


def test_predictive_draws_of_numpyro():
    numpyro = pytest.importorskip("numpyro")
    jax = pytest.importorskip("jax")
    import numpyro.distributions as dist

    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    T, C = rng.weibull(1.5, 60) * np.exp(0.5 * x), rng.uniform(0.2, 4.0, 60)
    y = cs.RightCensored(np.minimum(T, C), T <= C)

    def model(x):
        b = numpyro.sample("b", dist.Normal(0, 1))
        shape = numpyro.sample("shape", dist.LogNormal(0, 0.5))
        numpyro.sample("T", dist.Weibull(jax.numpy.exp(b * x), shape))

    posterior = {"b": rng.normal(0.5, 0.1, 200), "shape": rng.normal(1.5, 0.1, 200)}
    predictive = numpyro.infer.Predictive(model, posterior, return_sites=["T"])
    F = as_forecast(predictive(jax.random.PRNGKey(1), x), n=60)
    assert (F.shape, F.m) == ((60,), 200)
    reference = cs.KaplanMeier().fit(None, y).predict_distribution()
    G = cs.Uniform(0.2, 4.0)
    assert cs.crps(y, F, G).mean() < cs.crps(y, reference, G).mean()
