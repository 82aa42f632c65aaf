"""Censored engression of competing risks: a generator of time and cause."""

from __future__ import annotations

import numpy as np
import pytest
from tests.learning.small_trainings import engression

import censcore as cs
from censcore.exceptions import InvalidInputError

torch = pytest.importorskip("torch")
NAMES = ["relapse", "death"]


def truth(x: np.ndarray) -> cs.CauseSpecificHazards:
    return cs.CauseSpecificHazards(
        [cs.Exponential(0.4 * np.exp(x)), cs.Weibull(1.5, 3.0 + 0 * x)], names=NAMES
    )


def observed(n: int, seed: int) -> tuple[np.ndarray, cs.CompetingRisks]:
    rng = np.random.default_rng(seed)
    x = rng.choice([-1.0, 1.0], size=n)
    latent = np.stack([rng.exponential(2.5 * np.exp(-x)), 3.0 * rng.weibull(1.5, n)])
    time, cause = latent.min(axis=0), 1 + latent.argmin(axis=0)
    c = rng.uniform(0.5, 5.0, n)
    y = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0), names=NAMES)
    return x[:, None], y


@pytest.fixture(scope="module")
def model() -> cs.CensoredEngression:
    settings = {
        "epochs": 25,
        "width": 48,
        "depth": 2,
        "n_samples": 2000,
        "learning_rate": 1e-2,
        "n_networks": 1,
    }
    return engression(random_state=0, **settings).fit(*observed(2000, 0))


def test_cumulative_incidences_are_learned(model):
    X, times = np.array([[-1.0], [1.0]]), np.array([0.5, 1.5, 3.0])
    found = model.predict_cumulative_incidence(X, times)
    assert found.shape == (2, 2, 3)
    np.testing.assert_allclose(found, truth(X[:, 0]).cif(times), atol=0.07)
    F = model.predict_distribution(X)
    assert F.names == tuple(NAMES)
    np.testing.assert_allclose(F.cif(times), found, atol=1e-6)
    assert (np.isfinite(model.sample(X)).sum(axis=2) == 1).all()  # one cause per draw


def test_it_beats_the_estimate_without_covariates(model):
    (X, y), (X_train, y_train) = observed(400, 1), observed(1000, 3)
    found = cs.compare(
        {"engression": model}, y, cs.Censoring(cs.KaplanMeier()), X=X, train=(X_train, y_train),
        scores="crps[all causes]", discrimination=False, horizon=4.0,
    )  # fmt: skip
    (worse,) = found.verdict.worse
    assert worse["model"] == "aalen-johansen"
    assert model.score(X, y) < 0


def test_model_files_keep_the_causes(model, tmp_path):
    model.save(tmp_path / "model.safetensors")
    again = cs.CensoredEngression.load(tmp_path / "model.safetensors")
    X = np.array([[0.5]])
    assert again.predict_distribution(X).names == tuple(NAMES)
    np.testing.assert_array_equal(again.sample(X), model.sample(X))


def test_bad_input(model):
    X, y = observed(60, 2)
    small = engression(epochs=1, random_state=0, width=8, depth=1, n_networks=1)
    with pytest.raises(InvalidInputError, match="got none of death among 60 subjects"):
        small.fit(X, cs.CompetingRisks(y.time, np.minimum(y.causes, 1), names=NAMES))
    with pytest.raises(InvalidInputError, match="expected CompetingRisks with the causes relapse, death"):
        model.score(X, y.any_cause())
    with pytest.raises(InvalidInputError, match="CompetingRisks needs objective"):
        engression(objective="naive").fit(X, y)
    with pytest.raises(InvalidInputError, match="expected one that was fitted to CompetingRisks"):
        small.fit(X, y.any_cause()).predict_cumulative_incidence(X, [1.0])
