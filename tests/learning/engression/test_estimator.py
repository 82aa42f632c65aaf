"""Censored engression: the estimator's contract, and that it learns the distribution behind the censoring."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.learning.small_trainings import engression

import censcore as cs
from censcore.distributions.joint_events import all_before, either_before, first_is, in_order
from censcore.estimators.censoring.censoring_choice import choose_censoring
from censcore.exceptions import CensoringWarning, InvalidInputError, ModelFileError, NotFittedError
from censcore.learning import subject_windows
from censcore.learning.engression import Generator, sampling
from censcore.learning.engression.loss import EngressionTask, censoring_quantiles
from censcore.simulation import LogNormalScenario

SCENARIO = LogNormalScenario(k=2, mixture=False, censoring="uniform")
DATA = SCENARIO.sample(600, seed=0)
DISTRIBUTION = SCENARIO.censoring_distribution(DATA.X)
SMALL = {
    "width": 16,
    "depth": 2,
    "noise_dim": 8,
    "epochs": 3,
    "random_state": 0,
    "n_samples": 64,
    "n_networks": 1,
    "device": "cpu",
}


@pytest.fixture(scope="module")
def model():
    return engression(**SMALL).fit(DATA.X, DATA.y, censoring=DISTRIBUTION)


def test_shapes_of_predictions(model):
    X = DATA.X[:7]
    assert model.predict_distribution(X).shape == (7, 2)
    assert model.sample(X, 5).shape == (7, 5, 2)
    assert model.predict(X).shape == model.predict(X, "mean").shape == (7, 2)
    assert model.predict_quantile(X, 0.5).shape == (7, 2)
    assert model.predict_quantile(X, [0.1, 0.5, 0.9]).shape == (7, 3, 2)
    assert model.predict_survival_function(X, [1.0, 2.0]).shape == (7, 2, 2)
    assert model.probability(X, either_before(1.0)).shape == (7,)
    assert np.isfinite(model.score(X, DATA.y[:7], censoring=DISTRIBUTION))
    assert (model.sample(X, 50) > 0).all()


def test_joint_probabilities_agree_with_the_samples(model):
    X = DATA.X[:4]
    z = model.sample(X)
    either, both = model.probability(X, either_before(1.0)), model.probability(X, all_before(1.0))
    np.testing.assert_allclose(either, (z <= 1).any(axis=2).mean(axis=1))
    marginal = 1 - model.predict_survival_function(X, [1.0])[:, 0]
    np.testing.assert_allclose(either + both, marginal.sum(axis=1))
    np.testing.assert_allclose(model.probability(X, first_is(0)), model.probability(X, in_order(0, 1)))
    with pytest.raises(InvalidInputError, match="booleans"):
        model.probability(X, lambda times: times <= 1)


def test_the_same_seed_gives_the_same_model_and_draws(model):
    again = engression(**SMALL).fit(DATA.X, DATA.y, censoring=DISTRIBUTION)
    assert (model.sample(DATA.X[:9]) == again.sample(DATA.X[:9])).all()
    other = engression(**SMALL | {"random_state": 1}).fit(DATA.X, DATA.y, censoring=DISTRIBUTION)
    assert (model.sample(DATA.X[:9]) != other.sample(DATA.X[:9])).any()


def test_univariate_outcomes_get_univariate_forecasts():
    y = DATA.y.marginal(0)
    model = engression(**SMALL).fit(DATA.X, y, censoring=DISTRIBUTION)
    assert model.predict_distribution(DATA.X).shape == (600,)
    assert model.predict_survival_function(DATA.X, [1.0, 2.0]).shape == (600, 2)


def test_no_covariates():
    model = engression(**SMALL).fit(None, DATA.y, censoring=DISTRIBUTION)
    assert model.predict_distribution(np.empty((3, 0))).shape == (3, 2)
    assert model.predict_distribution().shape == (1, 2)
    with pytest.raises(InvalidInputError, match="covariates"):
        engression(**SMALL).fit(DATA.X, DATA.y, censoring=DISTRIBUTION).predict_distribution()


def test_without_covariates_nothing_is_ignored_by_a_pooled_curve():
    model = engression(**SMALL | {"epochs": 1}).fit(None, DATA.y)
    assert "KaplanMeier" in model.censoring_choice_


def test_scikit_learn_conventions(model):
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(epochs=8).epochs == 8
    with pytest.raises(NotFittedError, match="fit"):
        copy.predict(DATA.X)
    pipe = make_pipeline(StandardScaler(), engression(**SMALL))
    pipe.fit(DATA.X, DATA.y, censoredengression__censoring=DISTRIBUTION)
    assert pipe.predict(DATA.X[:3]).shape == (3, 2)
    with pytest.raises(ValueError, match="features"):
        model.predict(DATA.X[:, :2])


def test_the_choice_of_the_censoring_distribution_is_reported():
    def fit(y, censoring=None, **settings):
        model = engression(**SMALL | {"epochs": 1} | settings)
        return model.fit(DATA.X, y, censoring=censoring)

    assert "KaplanMeier" in fit(DATA.y).censoring_choice_
    assert "covariates do not predict censoring" in fit(DATA.y, "auto").censoring_choice_
    assert "known" in fit(DATA.y_known, "auto").censoring_choice_
    assert "CoxRegression" in fit(DATA.y, cs.CoxRegression()).censoring_choice_
    assert "passed" in fit(DATA.y, DISTRIBUTION).censoring_choice_
    assert "known" in fit(DATA.y_known).censoring_choice_
    assert "naive" in fit(DATA.y, objective="naive").censoring_choice_
    assert "latent" in fit(DATA.latent, objective="latent").censoring_choice_
    with pytest.raises(InvalidInputError, match="without censoring"):
        fit(DATA.y, objective="latent")
    with pytest.raises(InvalidInputError, match="'auto'"):
        fit(DATA.y, "cox")


def test_covariates_that_predict_censoring_warn_and_name_the_remedy():
    scenario = LogNormalScenario(k=2, censoring="conditional")
    data = scenario.sample(2000, seed=0)
    model = engression(**SMALL | {"epochs": 1})
    for pooled in (None, cs.KaplanMeier()):
        with pytest.warns(CensoringWarning, match=r"predict censoring: p < 0.001.*censoring='auto'"):
            model.fit(data.X, data.y, censoring=pooled)
    assert "CoxRegression" in model.fit(data.X, data.y, censoring="auto").censoring_choice_


def test_the_censoring_distribution_is_chosen_by_a_test():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    T = rng.exponential(size=(400, 2))
    for effect, pooled in ((1.0, False), (0.0, True)):
        C = rng.exponential(np.exp(effect * x[:, :1]))
        for c in (C, np.column_stack([C, rng.permutation(C)])):  # shared, and one for each time
            choice = choose_censoring(x, cs.RightCensored(np.minimum(T, c), c >= T))
            assert choice.pooled == pooled, choice.words
    groups = np.arange(400) // 2
    assert choose_censoring(x, cs.RightCensored(np.minimum(T, C), T <= C), groups=groups).pooled


def test_save_and_load(model, tmp_path):
    path = tmp_path / "model.safetensors"
    model.save(path)
    loaded = cs.CensoredEngression.load(path, device="cpu")
    assert (loaded.sample(DATA.X[:9]) == model.sample(DATA.X[:9])).all()
    assert loaded.get_params() == model.get_params()
    assert loaded.history_ == model.history_
    assert loaded.history_.frame().equals(model.history_.frame())
    with pytest.raises(ModelFileError, match="CensoredEngression"):
        cs.CopulaWeibull.load(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match="truncated"):
        cs.CensoredEngression.load(path)


def test_resuming_a_fit(tmp_path, model):
    class Stop(Exception):
        pass

    def stop(epoch, network):
        if epoch.epoch == 1:
            raise Stop

    settings = SMALL | {"checkpoint": tmp_path / "state"}
    with pytest.raises(Stop):
        engression(**settings).fit(DATA.X, DATA.y, censoring=DISTRIBUTION, callbacks=[stop])
    resumed = engression(**settings).fit(DATA.X, DATA.y, censoring=DISTRIBUTION)
    assert (resumed.sample(DATA.X[:5]) == model.sample(DATA.X[:5])).all()


def test_several_generators_pool_their_samples_and_resume(tmp_path):
    class Stop(Exception):
        pass

    epochs = []

    def stop(epoch, network):
        epochs.append(epoch.epoch)
        if len(epochs) == 5:  # in the midst of the last epoch
            raise Stop

    settings = SMALL | {"n_networks": 2}
    pooled = engression(**settings).fit(DATA.X, DATA.y, censoring=DISTRIBUTION)
    assert pooled.sample(DATA.X[:3], 11).shape == (3, 11, 2)
    assert len(pooled.histories_) == 2
    resumed = engression(**settings, checkpoint=tmp_path / "state")
    with pytest.raises(Stop):
        resumed.fit(DATA.X, DATA.y, censoring=DISTRIBUTION, callbacks=[stop])
    with pytest.raises(NotFittedError):
        resumed.predict(DATA.X)
    resumed.fit(
        DATA.X, DATA.y, censoring=DISTRIBUTION, callbacks=[lambda epoch, network: epochs.append(epoch.epoch)]
    )
    assert epochs == [0, 0, 1, 1, 2]  # the last epoch of all was stored before it was told
    assert (resumed.sample(DATA.X[:5]) == pooled.sample(DATA.X[:5])).all()


def test_validation_rows_of_ones_own():
    X, y, mask = DATA.X[400:], DATA.y[400:], np.ones((200, 2), dtype=bool)

    def fit(*rows):
        model = engression(**SMALL)
        return model.fit(DATA.X[:400], DATA.y[:400], censoring=DISTRIBUTION, eval_set=rows)

    losses = [
        fit(*rows).history_.epochs[-1].validation_loss
        for rows in ((X, y), (X, y, DISTRIBUTION), (X, y, DISTRIBUTION, mask))
    ]
    assert losses[0] == losses[1] == losses[2]
    mask[:, 1] = False
    assert fit(X, y, DISTRIBUTION, mask).history_.epochs[-1].validation_loss < losses[0]
    naive = engression(**SMALL | {"objective": "naive"})
    assert np.isfinite(naive.fit(DATA.X, DATA.y, eval_set=(X, y)).history_.epochs[-1].validation_loss)


def test_ctrl_c_leaves_a_fitted_model():
    def interrupt(epoch, network):
        if epoch.epoch == 1:
            raise KeyboardInterrupt

    model = engression(**SMALL | {"n_networks": 3}).fit(
        DATA.X, DATA.y, censoring=DISTRIBUTION, callbacks=[interrupt]
    )
    assert model.history_.interrupted
    assert len(model.histories_) == 3  # trained side by side
    assert model.sample(DATA.X[:4], 9).shape == (4, 9, 2)


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    settings = SMALL | {"checkpoint": tmp_path / "state"}
    engression(**settings).fit(DATA.X, DATA.y, censoring=DISTRIBUTION)
    for change in ({"beta": 0.5}, {"samples": 4}, {"activation": "relu"}, {"residual": False}):
        with pytest.raises(ModelFileError, match="other data, settings or seed"):
            engression(**settings | change).fit(DATA.X, DATA.y, censoring=DISTRIBUTION)


def test_predictions_do_not_depend_on_the_chunks_being_held_together(model, monkeypatch):
    X = DATA.X[:50]
    monkeypatch.setitem(sampling._UNITS, "cpu", 7 * 64 * 16)  # seven subjects at a time
    z = model.sample(X)
    assert z.shape == (50, 64, 2)
    as_drawn = {"beyond": "extrapolate"}
    np.testing.assert_allclose(model.predict(X, **as_drawn), np.median(z, axis=1))
    np.testing.assert_allclose(model.predict(X, "mean", **as_drawn), z.mean(axis=1), rtol=1e-6)
    quantiles = np.quantile(z, [0.2, 0.6], axis=1, method="inverted_cdf")
    several = model.predict_quantile(X, [0.2, 0.6], **as_drawn)
    np.testing.assert_allclose(several, np.moveaxis(quantiles, 0, 1))
    np.testing.assert_allclose(model.predict_quantile(X, 0.6, **as_drawn), quantiles[1])
    survival = model.predict_survival_function(X, [0.5, 1.0])
    np.testing.assert_allclose(survival[:, 1], (z > 1).mean(axis=1))


def test_draws_belong_to_a_subject_and_not_to_its_place(model):
    X, order = DATA.X[:60], np.random.default_rng(0).permutation(60)
    z = model.sample(X)
    np.testing.assert_allclose(model.sample(X[10:20]), z[10:20], rtol=1e-5)
    np.testing.assert_allclose(model.sample(X[order]), z[order], rtol=1e-5)
    np.testing.assert_allclose(model.sample(X[:1]), z[:1], rtol=1e-5)
    assert len({float(value) for value in z[:, 0, 0]}) == 60  # and differ between subjects


def test_draws_of_different_subjects_are_nearly_independent():
    """Ranks of the noise: the windows of two subjects in the pool rarely overlap."""
    start = subject_windows.places(DATA.X.astype(np.float32), 2**14)
    assert len(np.unique(start)) > 560
    assert stats.kstest(start / 2**14, "uniform").pvalue > 0.01


def test_chunks_on_the_device_are_the_draws(model):
    z = torch.cat(list(model.sample_chunks(DATA.X[:50], 32, seed=3)))
    np.testing.assert_array_equal(z.numpy(), model.sample(DATA.X[:50], 32, seed=3))


def test_componentwise_censoring():
    """One C for each event time, found out from the data and estimated."""
    scenario = LogNormalScenario(k=2, mixture=False, censoring="componentwise", severity=1.5)
    train, test = scenario.sample(1500, seed=1), scenario.sample(1500, seed=2)
    assert not train.y.shares_censoring
    settings = SMALL | {"width": 32, "epochs": 15, "n_samples": 128}
    models = {
        "censored": engression(**settings).fit(train.X, train.y, censoring=cs.Censoring(cs.KaplanMeier())),
        "naive": engression(objective="naive", **settings).fit(train.X, train.y),
    }
    assert type(models["censored"].censoring_).__name__ == "Independent"
    C = scenario.censoring_distribution(test.X)
    loss = {
        name: cs.energy_score(test.y, model.predict_distribution(test.X), C, fair=True)
        for name, model in models.items()
    }
    truth = cs.energy_score(
        test.y, cs.Ensemble(scenario.event_distribution(test.X).sample(128, 0)), C, fair=True
    )
    gain = loss["naive"] - loss["censored"]
    assert gain.mean() > 5 * gain.std() / np.sqrt(len(gain))
    assert loss["censored"].mean() < 1.06 * truth.mean()


def test_groups_stay_on_one_side_and_apart_in_batches(monkeypatch):
    groups = np.arange(600) // 4
    seen = {}

    def look(task, networks, folds, *others):
        (fold,) = folds
        seen.update(rows=fold.training.taken, validation=fold.validation.taken, groups=fold.groups)
        raise KeyboardInterrupt

    monkeypatch.setattr("censcore.learning.neural_estimator.Run", look)
    covariates = np.column_stack([groups, DATA.X])
    with pytest.raises(KeyboardInterrupt):
        engression(**SMALL).fit(covariates, DATA.y, censoring=DISTRIBUTION, groups=groups)
    inside, outside = (set(seen[part]["x"][:][:, 0].tolist()) for part in ("rows", "validation"))
    assert not inside & outside
    assert len(outside) == 30
    assert len(np.unique(seen["groups"])) == len(inside) == 120
    with pytest.raises(InvalidInputError, match="groups"):
        engression(**SMALL).fit(DATA.X, DATA.y, censoring=DISTRIBUTION, groups=groups[:-1])


def test_bfloat16_networks_keep_a_float32_loss():
    half = engression(**SMALL | {"precision": "bfloat16"}).fit(DATA.X, DATA.y, censoring=DISTRIBUTION)
    full = engression(**SMALL | {"precision": "float32"}).fit(DATA.X, DATA.y, censoring=DISTRIBUTION)
    losses = [[e.train_loss for e in m.history_.epochs] for m in (half, full)]
    assert losses[0] != losses[1]
    np.testing.assert_allclose(*losses, rtol=0.02)
    assert half.sample(DATA.X[:2]).dtype == np.float32


@pytest.mark.parametrize("layer_norm", [True, False])
@pytest.mark.parametrize("activation", ["relu", "softplus"])
def test_layers_padded_for_half_precision_compute_the_same(layer_norm, activation):
    torch.manual_seed(0)
    network = Generator(
        3, 2, width=13, noise_dim=5, noise_everywhere=True, layer_norm=layer_norm, activation=activation
    )
    x, noise = torch.randn(40, 3), torch.randn(40, 6, network.noise_size)
    plain = network(x, noise)
    with torch.autocast("cpu", torch.bfloat16):
        padded = network(x, noise)
    torch.testing.assert_close(padded, plain, rtol=0.05, atol=0.02)
    padded.sum().backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in network.parameters() if p.numel())


def test_the_distribution_of_c_may_use_the_names_of_columns():
    import pandas as pd

    frame = pd.DataFrame(DATA.X, columns=list("abcd")).assign(arm=(DATA.X[:, 0] > 0).astype(float))
    model = engression(**SMALL).fit(frame, DATA.y, censoring=cs.KaplanMeier(stratify="arm"))
    assert len(model.censoring_) == 600
    assert np.isfinite(model.score(frame[:90], DATA.y[:90]))
    assert list(model.feature_names_in_) == list(frame.columns)


def test_the_distribution_of_c_of_other_rows(model, tmp_path):
    one_per_row = cs.Uniform(np.zeros(600), np.full(600, 5.0))
    fitted = engression(**SMALL | {"epochs": 1}).fit(DATA.X, DATA.y, censoring=one_per_row)
    with pytest.raises(InvalidInputError, match="censoring distribution of these subjects"):
        fitted.score(DATA.X[:9], DATA.y[:9])
    assert np.isfinite(fitted.score(DATA.X[:9], DATA.y[:9], censoring=one_per_row[:9]))
    assert np.isfinite(fitted.score(DATA.X[:9], DATA.y_known[:9]))
    weight, C = np.arange(1.0, 10.0), one_per_row[:9]
    losses = cs.energy_score(DATA.y[:9], fitted.predict_distribution(DATA.X[:9]), C, fair=True)
    weighted = fitted.score(DATA.X[:9], DATA.y[:9], weight, censoring=C)
    assert weighted == pytest.approx(-np.average(losses, weights=weight))
    model.save(tmp_path / "model")
    loaded = cs.CensoredEngression.load(tmp_path / "model")
    assert loaded.censoring_ is None
    assert loaded.score(DATA.X[:9], DATA.y[:9], censoring=DISTRIBUTION) == model.score(DATA.X[:9], DATA.y[:9])


@pytest.mark.parametrize("censoring", ["uniform", "administrative", "componentwise"])
def test_the_loss_is_the_energy_score(censoring):
    """Averaged over noise and draws, the training loss is the fair censored energy score of the generator."""
    scenario = LogNormalScenario(k=2, mixture=False, censoring=censoring)
    data = scenario.sample(40, seed=0)
    y, C = data.y, scenario.censoring_distribution(data.X)
    task = EngressionTask(_Fixed(), torch.ones(2), samples=6, beta=1.0)
    rows = {
        "x": torch.zeros(40, 0),
        "y": torch.from_numpy(y.time).float(),
        "c": censoring_quantiles(y, C, lambda c: c),
    }
    g = torch.Generator().manual_seed(0)
    losses = torch.stack(
        [task.loss(task.network, rows, task.draw(40, g, torch.device("cpu"))) for _ in range(400)]
    )
    mean, error = losses.mean(0).numpy(), losses.std(0).numpy() / 20
    samples = np.exp(np.random.default_rng(1).standard_normal((40, 4000, 2)))
    exact = cs.energy_score(y, cs.Ensemble(samples), C, fair=True)
    z = (mean - exact) / np.hypot(error, 0.01)
    assert abs(z).max() < 4.5


class _Fixed(torch.nn.Module):
    noise_size = 2

    def forward(self, x, noise):
        return torch.exp(noise)


def test_masked_coordinates_do_not_matter():
    mask = np.ones((600, 2), dtype=bool)
    mask[:300, 1] = False
    time, event = DATA.y.time.copy(), DATA.y.event.copy()
    time[:300, 1], event[:300, 1] = 50.0, False
    fits = []
    for outcome in (DATA.y, cs.RightCensored(time, event)):
        model = engression(**SMALL | {"epochs": 1, "validation_fraction": 0.0})
        fits.append(model.fit(DATA.X, outcome, mask=mask))
    assert (fits[0].sample(DATA.X[:5]) == fits[1].sample(DATA.X[:5])).all()
    assert (fits[0].follow_up_ == fits[1].follow_up_).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": "other"}, "objective"),
        ({"samples": 1}, "samples"),
        ({"beta": 2.0}, "beta"),
        ({"activation": "none"}, "activation"),
        ({"output": "none"}, "output"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"batch_size": "big"}, "batch_size must be a number or 'auto'; got 'big'"),
        ({"dropout": 2.0}, "dropout"),
        ({"device": "tpu"}, "device must be .* got 'tpu'"),
        ({"device": "cuda:99"}, "CUDA devices; use 'auto'"),
    ],
)
def test_wrong_settings_are_refused(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        engression(**SMALL | changes).fit(DATA.X, DATA.y, censoring=DISTRIBUTION)


def test_wrong_data_are_refused():
    model = engression(**SMALL)
    with pytest.raises(InvalidInputError, match="rows"):
        model.fit(DATA.X[:10], DATA.y, censoring=DISTRIBUTION)
    with pytest.raises(InvalidInputError, match="sample_weight"):
        model.fit(DATA.X, DATA.y, censoring=DISTRIBUTION, sample_weight=np.zeros(600))
    with pytest.raises(InvalidInputError, match="mask"):
        model.fit(DATA.X, DATA.y, censoring=DISTRIBUTION, mask=np.ones((600, 3), dtype=bool))
    with pytest.raises(InvalidInputError, match="False everywhere"):
        model.fit(DATA.X, DATA.y, censoring=DISTRIBUTION, mask=np.zeros((600, 2), dtype=bool))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((600, 4), np.nan), DATA.y, censoring=DISTRIBUTION)
    with pytest.raises(InvalidInputError, match=r"got 'km', expected 'auto', a distribution or an est"):
        model.fit(DATA.X, DATA.y, censoring="km")
    for eval_set, got in ((DATA.X, "ndarray"), ((DATA.X,), "1 entries")):
        with pytest.raises(InvalidInputError, match=f"eval_set must be a tuple.*; got {got}"):
            model.fit(DATA.X, DATA.y, censoring=DISTRIBUTION, eval_set=eval_set)


def test_event_times_that_nobody_saw(model):
    nothing = cs.RightCensored(DATA.y.time, np.zeros((600, 2)))
    with pytest.raises(InvalidInputError, match="No subject has an event"):
        engression(**SMALL).fit(DATA.X, nothing)
    time = np.column_stack([DATA.y.time[:, 0], DATA.y.time.max(axis=1)])
    one = cs.RightCensored(time, DATA.y.event & np.array([True, False]))
    with pytest.warns(UserWarning, match=r"coordinates \[1\]"):
        engression(**SMALL).fit(DATA.X, one, censoring=DISTRIBUTION)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.sample(DATA.X, 0), "whole number from 1 .* got 0"),
        (lambda m: m.sample(DATA.X, 2.5), "whole number.* got 2.5"),
        (lambda m: m.predict_quantile(DATA.X, 1.5), "between 0 and 1"),
        (lambda m: m.predict_survival_function(DATA.X, [np.nan]), "got NaN"),
        (lambda m: m.predict(DATA.X, "mode"), "got 'mode'"),
        (lambda m: m.probability(DATA.X, 24.0), "callable such as"),
        (lambda m: m.probability(DATA.X, lambda z: z > 1), "booleans"),
    ],
)
def test_wrong_questions_are_refused(model, ask, message):
    with pytest.raises(InvalidInputError, match=message):
        ask(model)


def test_it_learns_what_censoring_hides():
    """Trained on censored rows it beats naive training, on outcomes that neither has seen."""
    scenario = LogNormalScenario(k=2, mixture=False, censoring="uniform", severity=1.5)
    train, test = scenario.sample(1500, seed=1), scenario.sample(1500, seed=2)
    C_train, C_test = (scenario.censoring_distribution(d.X) for d in (train, test))
    settings = SMALL | {"width": 32, "epochs": 15, "n_samples": 128}
    losses = {}
    for objective in ("censored", "naive"):
        model = engression(objective=objective, **settings).fit(train.X, train.y, censoring=C_train)
        losses[objective] = cs.energy_score(test.y, model.predict_distribution(test.X), C_test, fair=True)
    truth = cs.energy_score(
        test.y, cs.Ensemble(scenario.event_distribution(test.X).sample(128, 0)), C_test, fair=True
    )
    gain = losses["naive"] - losses["censored"]
    assert gain.mean() > 5 * gain.std() / np.sqrt(len(gain))
    assert losses["censored"].mean() < 1.06 * truth.mean()


def test_scores_of_subjects_followed_longer_than_those_in_training():
    """An estimate ends with the training data; other subjects are scored up to that end, as cut by hand."""
    early = DATA.y.time.max(axis=1) < np.quantile(DATA.y.time.max(axis=1), 0.8)
    early &= ~DATA.y.event.all(axis=1)  # the last time is censored: the estimate ends there
    censoring = cs.Censoring(cs.KaplanMeier())
    model = engression(**SMALL).fit(DATA.X[early], DATA.y[early], censoring=censoring)
    end = float(model.censoring_.isf(0.0)[0])
    assert (DATA.y.time > end).any()
    cut = -model.score(DATA.X, DATA.y.censor_at(end))
    np.testing.assert_allclose(-model.score(DATA.X, DATA.y), cut, rtol=1e-12)
    assert np.isfinite(cut)


@pytest.mark.parametrize("unit", [1e-300, 1e-60, 1e60, 1e299])
def test_draws_in_any_unit_of_time(unit):
    """Times beyond single precision, in which networks compute, are drawn in double; none is lost or cut."""
    rng = np.random.default_rng(0)
    X, T, C = rng.normal(size=(60, 1)), rng.exponential(size=60), rng.uniform(0.2, 3.0, 60)
    time, event = np.minimum(T, C), T <= C
    causes = np.where(event, 1 + (T < 0.5), 0)
    outcomes = {
        "time": lambda u: cs.RightCensored(time * u, event),
        "causes": lambda u: cs.CompetingRisks(time * u, causes),
    }
    for kind in (cs.CensoredEngression, cs.MixtureDensityNetwork):
        for name, outcome in outcomes.items():
            model = kind(epochs=1, random_state=0, device="cpu")
            here, plain = (model.fit(X, outcome(u)).sample(X[:5], 20, seed=1) for u in (unit, 1.0))
            z = [np.asarray(one[0] if isinstance(one, tuple) else one, dtype=float) for one in (here, plain)]
            np.testing.assert_allclose(z[0] / unit, z[1], rtol=2e-5, err_msg=f"{kind.__name__} {name}")
