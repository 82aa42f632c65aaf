"""What only a GPU can show: kernels, captured and compiled training, scores; skipped where there is none."""

import numpy as np
import pytest
import torch
from tests.learning.small_trainings import engression

import censcore as cs
from censcore.learning.training import loop
from censcore.scores.kernels import energy_pairs
from censcore.simulation import LogNormalScenario

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore::DeprecationWarning:torch"),
]

SCENARIO = LogNormalScenario(k=3, censoring="uniform")
DATA = SCENARIO.sample(1500, seed=0)
DISTRIBUTION = SCENARIO.censoring_distribution(DATA.X)
# 20 units are no multiple of 8, so that layers are padded
SETTINGS = {
    "width": 20,
    "noise_dim": 12,
    "epochs": 4,
    "random_state": 0,
    "device": "cuda",
    "n_samples": 64,
    "n_networks": 1,
}


def fitted(**changes):
    return engression(**SETTINGS | changes).fit(DATA.X, DATA.y, censoring=DISTRIBUTION)


def losses(model):
    return [epoch.train_loss for epoch in model.history_.epochs]


def draws(model):
    return model.sample(DATA.X[:20], 16)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("pairs", ["all", "lagged"])
@pytest.mark.parametrize("distribution", [None, cs.Uniform(0.0, 5.0)])
def test_scores_equal_those_of_the_cpu(dtype, pairs, distribution):
    F = cs.Ensemble(SCENARIO.event_distribution(DATA.X[:50]).sample(70, 0))
    y = (DATA.y if distribution is not None else DATA.latent).take(slice(50))
    like = torch.zeros(1, dtype=dtype, device="cuda")
    loss = cs.energy_score(y.like(like), F.like(like), distribution, fair=True, pairs=pairs)
    assert loss.dtype == dtype
    tolerance = 1e-12 if dtype == torch.float64 else 2e-5
    expected = cs.energy_score(y, F, distribution, fair=True, pairs=pairs)
    np.testing.assert_allclose(loss.cpu().numpy(), expected, rtol=tolerance, atol=tolerance)


def test_the_kernel_equals_the_formula_it_stands_for():
    sizes = ((9, 70, 3), (9, 3), (9, 5, 1))
    z, y, c = (torch.rand(size, device="cuda", dtype=torch.float64) for size in sizes)
    kernel = energy_pairs.energy_terms(z, None, y, c, 1.0, None)
    plain = energy_pairs.energy_terms(z.cpu(), None, y.cpu(), c.cpu(), 1.0, None)
    for ours, expected in zip(kernel, plain, strict=True):
        torch.testing.assert_close(ours.cpu(), expected, rtol=1e-12, atol=1e-12)


def test_captured_training_is_that_of_the_loop(monkeypatch):
    captured = fitted(precision="float32")
    monkeypatch.setattr(loop, "fits_on_device", lambda *_: False)
    plain = fitted(precision="float32")
    # noise comes in another order out of a captured generator: the same training up to chance
    np.testing.assert_allclose(losses(captured)[-1], losses(plain)[-1], rtol=0.05)


def test_compilation_changes_rounding_alone():
    plain, compiled = fitted(precision="float32"), fitted(precision="float32", compile=True)
    np.testing.assert_allclose(losses(compiled), losses(plain), rtol=2e-3)
    np.testing.assert_allclose(draws(compiled), draws(plain), rtol=0.05, atol=0.02)


def test_half_precision_learns_the_same():
    half, full = fitted(), fitted(precision="float32")
    np.testing.assert_allclose(losses(half), losses(full), rtol=0.02)


def test_a_model_moves_to_the_cpu(tmp_path):
    model = fitted(precision="float32")
    model.save(tmp_path / "model.safetensors")
    moved = cs.CensoredEngression.load(tmp_path / "model.safetensors").set_params(device="cpu")
    medians = [np.median(m.sample(DATA.X[:100], 512), axis=1) for m in (model, moved)]
    assert abs(medians[0] - medians[1]).mean() < 0.1 * medians[0].mean()


def test_a_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path):
    class Stop(Exception):
        pass

    def stop(epoch, network):
        if epoch.epoch == 1:
            raise Stop

    whole = fitted()
    model = engression(**SETTINGS, checkpoint=tmp_path / "state")
    with pytest.raises(Stop):
        model.fit(DATA.X, DATA.y, censoring=DISTRIBUTION, callbacks=[stop])
    resumed = fitted(checkpoint=tmp_path / "state")
    np.testing.assert_allclose(losses(resumed), losses(whole), rtol=1e-3)


@pytest.mark.parametrize("kind", ["generators", "density networks"])
def test_networks_side_by_side_resume(kind, tmp_path):
    class Stop(Exception):
        pass

    def stop(epoch, network):
        if epoch.epoch == 1:
            raise Stop

    def model(**options):
        if kind == "generators":
            return engression(**SETTINGS | {"n_networks": 2} | options)
        return cs.MixtureDensityNetwork(n_networks=2, epochs=4, random_state=0, device="cuda", **options)

    whole = model().fit(DATA.X, DATA.y)
    with pytest.raises(Stop):
        model(checkpoint=tmp_path / "state").fit(DATA.X, DATA.y, callbacks=[stop])
    resumed = model(checkpoint=tmp_path / "state").fit(DATA.X, DATA.y)
    np.testing.assert_allclose(resumed.sample(DATA.X[:20], 16), whole.sample(DATA.X[:20], 16), rtol=0.05)


LIKELIHOOD = {"epochs": 3, "random_state": 0, "device": "cuda", "solver": "adam"}
LIKELIHOOD_MODELS = {
    "independent Weibull": lambda **k: cs.CopulaWeibull(**k),
    "Clayton": lambda **k: cs.CopulaWeibull("clayton", **k),
    "Clayton, dependence given x": lambda **k: cs.CopulaWeibull("clayton", dependence="conditional", **k),
    "Gumbel": lambda **k: cs.CopulaWeibull("gumbel", **k),
    "margins first": lambda **k: cs.CopulaWeibull("clayton", margins_first=True, **k),
    "network of margins": lambda **k: cs.CopulaWeibull(hidden=(16,), **k),
    "network, Clayton": lambda **k: cs.CopulaWeibull("clayton", hidden=(16,), **k),
    "grid": lambda **k: cs.JointGridModel(bins=8, hidden=(16,), **k),
}
PAIR = LogNormalScenario(k=2, censoring="uniform").sample(1500, seed=0)
MASK = np.random.default_rng(0).random((1500, 2)) < 0.8


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("name", LIKELIHOOD_MODELS)
def test_likelihood_models_train_in_captured_steps(name, held_out):
    """The same losses as on the CPU, with groups, weights, masks and validation data."""
    data = {"groups": np.arange(1200) // 3, "sample_weight": np.linspace(0.5, 2.0, 1200), "mask": MASK[:1200]}
    data["eval_set"] = (PAIR.X[1200:], PAIR.y[1200:], MASK[1200:]) if held_out else None
    losses = {}
    for device in ("cuda", "cpu"):
        model = LIKELIHOOD_MODELS[name](**LIKELIHOOD | {"device": device})
        model.fit(PAIR.X[:1200], PAIR.y[:1200], **data)
        epochs = model.history_.epochs
        losses[device] = [
            loss for e in epochs for loss in (e.train_loss, e.validation_loss) if loss is not None
        ]
        found = model.predict_distribution(PAIR.X[:5])
        assert np.isfinite(found.log_likelihood(PAIR.y.time[:5], PAIR.y.event[:5])).all()
    np.testing.assert_allclose(losses["cuda"], losses["cpu"], rtol=2e-3)


@pytest.mark.parametrize("copula", ["independent", "clayton", "gumbel"])
def test_linear_models_converge_to_the_same_point(copula):
    found = {}
    for device in ("cuda", "cpu"):
        model = cs.CopulaWeibull(copula, device=device)
        model.fit(PAIR.X[:1200], PAIR.y[:1200], mask=MASK[:1200], eval_set=(PAIR.X[1200:], PAIR.y[1200:]))
        assert model.history_.converged
        found[device] = model.history_.epochs[-1]
    assert found["cuda"].train_loss == pytest.approx(found["cpu"].train_loss, rel=1e-6)
    assert found["cuda"].validation_loss == pytest.approx(found["cpu"].validation_loss, rel=1e-4)


def test_likelihood_models_train_on_data_that_do_not_fit(monkeypatch):
    resident = cs.CopulaWeibull("clayton", **LIKELIHOOD).fit(PAIR.X, PAIR.y)
    monkeypatch.setattr(loop, "fits_on_device", lambda *_: False)
    batches = cs.CopulaWeibull("clayton", **LIKELIHOOD).fit(PAIR.X, PAIR.y)
    np.testing.assert_allclose(losses(resident), losses(batches), rtol=1e-4)


def test_networks_side_by_side_train_in_captured_steps():
    """Each as on the CPU; the networks of the folds have different numbers of subjects."""
    folds = [(np.arange(300, 1200), np.arange(300)), (np.arange(800), np.arange(800, 1200))]
    scores = {}
    for device in ("cuda", "cpu"):
        model = cs.MixtureDensityNetwork(n_networks=2, epochs=4, random_state=0, device=device)
        fitted = model.cross_fit(PAIR.X[:1200], PAIR.y[:1200], folds)
        scores[device] = [
            cs.log_score(PAIR.y[1200:], member.predict_distribution(PAIR.X[1200:])).mean()
            for (member,) in fitted
        ]
    np.testing.assert_allclose(scores["cuda"], scores["cpu"], rtol=2e-2)


@pytest.mark.parametrize("name", LIKELIHOOD_MODELS)
def test_likelihood_models_resume(name, tmp_path):
    class Stop(Exception):
        pass

    def stop(epoch, network):
        raise Stop

    whole = LIKELIHOOD_MODELS[name](**LIKELIHOOD).fit(PAIR.X, PAIR.y)
    model = LIKELIHOOD_MODELS[name](**LIKELIHOOD, checkpoint=tmp_path / "state")
    with pytest.raises(Stop):
        model.fit(PAIR.X, PAIR.y, callbacks=[stop])
    resumed = model.fit(PAIR.X, PAIR.y)
    np.testing.assert_allclose(losses(resumed), losses(whole), rtol=1e-4)


def test_semi_competing_risks_on_a_gpu():
    rng = np.random.default_rng(0)
    death = rng.exponential(size=500)
    recurs = rng.random(500) < 0.5
    time = np.column_stack([np.where(recurs, 0.5 * death, death), death])
    y = cs.SemiCompetingRisks(time, np.column_stack([recurs, np.ones(500)])).censor_at(2.0)
    model = engression(**SETTINGS).fit(None, y, censoring=cs.PointMass(2.0))
    z = model.sample(None, 500)[0]
    assert np.isfinite(losses(model)).all()
    assert (np.isinf(z[:, 0]) | (z[:, 0] <= z[:, 1])).all()


def test_default_settings_on_a_gpu():
    """Several generators, weighed against simple models: the forecast is as good as that of the CPU."""
    y_new = SCENARIO.sample(800, seed=1)
    score = {}
    for device in ("cuda", "cpu"):
        model = engression(random_state=0, device=device, epochs=30)
        model.fit(DATA.X[:600], DATA.y.take(slice(600)), censoring=cs.Uniform(0.0, 5.0))
        F = model.predict_distribution(y_new.X)
        score[device] = cs.energy_score(y_new.y, F, cs.Uniform(0.0, 5.0), fair=True).mean()
    assert score["cuda"] == pytest.approx(score["cpu"], rel=0.02)


@pytest.mark.parametrize("score", ["crps", "integrated_brier_score", "log_score", "brier_score"])
def test_outcomes_and_distributions_move_to_a_gpu(score):
    y, F = PAIR.y.marginal(0), cs.Weibull(np.linspace(0.8, 2.0, 1500), np.linspace(1.0, 3.0, 1500))
    G = cs.KaplanMeier().fit(None, y.flip()).predict_distribution()
    given = {
        "crps": {"horizon": 3.0},
        "integrated_brier_score": {"horizon": 3.0},
        "log_score": {},
        "brier_score": {"times": [1.0]},
    }
    moved = getattr(cs, score)(y.to("cuda"), F.to("cuda"), G.to("cuda"), **given[score])
    assert moved.device.type == "cuda"
    plain = getattr(cs, score)(y, F, G, **given[score])
    np.testing.assert_allclose(moved.cpu().numpy(), plain, rtol=1e-10, atol=1e-12)
