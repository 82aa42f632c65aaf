"""Censored engression and its baselines: draws, the weight by held-out subjects, files, sparsity."""

import numpy as np
import pytest
import torch
from scipy import stats

import censcore as cs
from censcore.exceptions import InvalidInputError, ModelFileError
from censcore.learning.engression.baseline import Baseline, BaselinePool, fit_baselines
from censcore.learning.engression.sampling import shares
from censcore.learning.engression.stacking import best_mixture, mixture_terms, weighed_mixture
from censcore.learning.model_files import read_model_file, write_model_file
from censcore.learning.structures import Competing, Free, Ordered, Semicompeting

torch.set_num_threads(1)

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


def baselines(X, y, structure=None, counts=None):
    counts = np.ones(y.time.shape, dtype=bool) if counts is None else counts
    found = fit_baselines(X, y.time, y.event, counts, None, structure or Free(y.k))
    return {baseline.name: baseline for baseline in found}


def test_margins_are_those_of_the_estimators():
    found = baselines(X, Y)
    assert list(found) == ["Kaplan-Meier", "Cox", "Weibull"]
    some = torch.from_numpy(X[:2])
    h = torch.tensor([0.1, 0.5, 1.0, 1.3], dtype=torch.float64)
    for j in range(2):
        fitted = {
            "Kaplan-Meier": cs.KaplanMeier().fit(None, Y.marginal(j)),
            "Cox": cs.CoxRegression(alpha=1.0).fit(X, Y.marginal(j)),
            "Weibull": cs.WeibullRegression(alpha=1.0).fit(X, Y.marginal(j)),
        }
        for name, estimator in fitted.items():
            drawn = found[name].times(some, h[None, :, None].expand(2, 4, 2))[..., j].numpy()
            F = estimator.predict_distribution(None if name == "Kaplan-Meier" else X[:2])
            expected = F.icdf(-np.expm1(-h.numpy())[None, :]) if len(F) == 1 else None
            for i in range(2):
                levels = -np.expm1(-h.numpy())
                one = expected[0] if len(F) == 1 else np.array([F.icdf(level)[i] for level in levels])
                inside = np.isfinite(one) & (one <= Y.time[:, j].max())
                np.testing.assert_allclose(drawn[i][inside], one[inside], rtol=1e-5)


def test_times_and_hazards_are_inverse():
    weibull = baselines(X, Y)["Weibull"]
    x, h = torch.from_numpy(X[:5]), torch.rand(5, 1, 2, generator=torch.Generator().manual_seed(0)).double()
    np.testing.assert_allclose(weibull.hazards(x, weibull.times(x, h)[:, 0]), h[:, 0], rtol=1e-5)


def test_the_dependence_is_estimated():
    X, y = clayton_weibull(4000, 1)
    for baseline in baselines(X, y).values():
        # without covariates in the model their effect on both times is dependence too
        low, high = (1.5, 4.0) if baseline.name == "Kaplan-Meier" else (1.7, 2.4)
        assert low < float(baseline.dependence) < high
    apart = cs.RightCensored(np.stack([y.time[:, 0], np.roll(y.time[:, 1], 7)], axis=1), np.ones((4000, 2)))
    assert float(baselines(X, apart)["Weibull"].dependence) < 0.1


def test_draws_have_the_margins_and_kendalls_tau_of_the_model():
    end = [[2.0, 1.0, 1.0], [1.0, 1.0, 0.5]]
    model = Baseline("Weibull", np.zeros((2, 1)), [(np.empty(0), np.empty(0))] * 2, end, 2.0)
    z = BaselinePool(model, Free(2), 4000, seed=0).draw(torch.zeros(1, 1))[0].numpy()
    assert stats.kstest(z[:, 0], stats.expon(scale=2.0).cdf).pvalue > 0.01
    assert stats.kstest(z[:, 1], stats.weibull_min(2.0).cdf).pvalue > 0.01
    assert stats.kendalltau(*z.T).statistic == pytest.approx(0.5, abs=0.03)  # theta / (theta + 2)


def test_constraints_hold_in_every_draw():
    latent = torch.rand(3, 50, 2, generator=torch.Generator().manual_seed(0))
    assert (Ordered(2).from_latent(latent).diff(dim=-1) >= 0).all()
    semi = Semicompeting(2, 1).from_latent(latent)
    assert ((semi[..., 0] <= semi[..., 1]) | semi[..., 0].isinf()).all()
    assert semi[..., 1].isfinite().all()
    assert (Competing(2, ["a", "b"]).from_latent(latent).isfinite().sum(dim=-1) == 1).all()


def test_without_events_a_time_lies_beyond_follow_up():
    y = cs.RightCensored(Y.time, np.stack([Y.event[:, 0], np.zeros(300, dtype=bool)], axis=1))
    for baseline in baselines(X, y).values():
        z = BaselinePool(baseline, Free(2), 100, seed=0).draw(torch.from_numpy(X[:4].astype(np.float32)))
        assert (z[..., 1] > Y.time.max()).double().mean() > 0.99
        assert z.isfinite().all()


def test_masked_times_do_not_count():
    counts = np.ones((300, 2), dtype=bool)
    counts[:200, 1] = False
    found, alone = baselines(X, Y, counts=counts)["Cox"], baselines(X[200:], Y[200:])["Cox"]
    np.testing.assert_allclose(found.coef[1], alone.coef[1], rtol=1e-6)
    np.testing.assert_allclose(found.coef[0], baselines(X, Y)["Cox"].coef[0], rtol=1e-6)


# ---- weights --------------------------------------------------------------------------------------


def test_the_terms_give_the_energy_score_of_every_mixture():
    rng = np.random.default_rng(0)
    z, c = rng.exponential(size=(200, 2, 64, 2)), rng.uniform(1, 2, 200)
    z[:, 1] *= 2
    y = np.minimum(rng.exponential(size=(200, 2)), c[:, None])
    a, D = mixture_terms(*(torch.from_numpy(v) for v in (z, y, c[:, None, None])))
    outcome = cs.RightCensored(y, y < c[:, None], censoring_time=c)
    for w in (np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([0.0, 1.0])):
        by_terms = float((a.numpy() @ w).mean() - 0.5 * (w @ D.numpy() @ w).mean())
        pooled = np.concatenate([z[:, j] for j in range(2) if w[j]], axis=1)
        score = cs.energy_score(outcome, cs.Ensemble(pooled), cs.PointMass(c), fair=True).mean()
        assert by_terms == pytest.approx(score, rel=0.01)


def test_the_weights_are_the_minimum_over_the_simplex():
    rng = np.random.default_rng(1)
    for _ in range(20):
        points = rng.normal(size=(4, 3))
        D = 1 + np.linalg.norm(points[:, None] - points[None], axis=2)
        np.fill_diagonal(D, 1.0)
        a = 1 + 0.3 * rng.random(4)
        w = best_mixture(a, D)
        assert w.min() >= 0
        assert w.sum() == pytest.approx(1)
        others = rng.dirichlet(np.full(4, 0.4), size=4000)
        losses = others @ a - 0.5 * np.einsum("ij,jk,ik->i", others, D, others)
        assert a @ w - 0.5 * w @ D @ w <= losses.min() + 1e-9


def test_the_weight_of_the_network_is_a_posterior_mean():
    rng = np.random.default_rng(0)
    D = np.broadcast_to(np.array([[1.0, 1.1], [1.1, 1.0]]), (400, 2, 2))

    def weight(gain, noise, events):
        a = 1 + np.stack([np.zeros(400), -gain + noise * rng.normal(size=400)], axis=1)
        return weighed_mixture(a, D, np.ones(400), events)[0]

    # subjects that agree decide, however many events there are
    for events in (50, 5000):
        assert weight(0.1, 0.01, events) == pytest.approx(0.0, abs=0.01)  # better than any mixture
        assert weight(0.0, 0.01, events) == pytest.approx(0.5, abs=0.02)  # as good, and different
        assert weight(-0.1, 0.01, events) == pytest.approx(1.0, abs=0.01)
    # the number of events decides where they do not
    assert np.mean([weight(0.0, 30.0, 50) for _ in range(20)]) == pytest.approx(0.2, abs=0.05)
    assert np.mean([weight(0.0, 30.0, 5000) for _ in range(20)]) == pytest.approx(0.96, abs=0.05)


def test_the_posterior_is_that_of_quadrature():
    rng = np.random.default_rng(2)
    a = 1 + 0.3 * rng.normal(size=(300, 2))
    D = np.broadcast_to(np.array([[1.0, 1.1], [1.1, 1.0]]), (300, 2, 2))
    q = np.linspace(-2, 3, 5001)
    scores = a[:, :1] * q + a[:, 1:] * (1 - q) - 0.5 * (q**2 + (1 - q) ** 2 + 2.2 * q * (1 - q))
    lowest = q[scores.mean(axis=0).argmin()]
    slopes = (scores[:, 2001] - scores[:, 2000]) / (q[1] - q[0])  # at q = 0
    error = slopes.std(ddof=1) / np.sqrt(300) / 0.2
    density = np.exp(-(((q - lowest) / error) ** 2) / 2 - ((q - 300 / 500) / 0.35) ** 2 / 2)
    expected = float((q * density).sum() / density.sum())
    assert 0 < expected < 1
    assert weighed_mixture(a, D, np.ones(300), 300.0)[0] == pytest.approx(expected, abs=1e-3)


def test_without_baselines_the_network_is_alone_and_without_differences_the_prior_decides():
    np.testing.assert_array_equal(weighed_mixture(np.ones((5, 1)), np.ones((5, 1, 1)), np.ones(5), 9.0), [1])
    for distance in (1.0, 0.999):  # by the noise of draws the distance of two alike may be negative
        D = np.broadcast_to(np.array([[1.0, distance], [distance, 1.0]]), (5, 2, 2))
        np.testing.assert_allclose(weighed_mixture(np.ones((5, 2)), D, np.ones(5), 100.0), [1 / 3, 2 / 3])


def test_some_subjects_train_the_network_again_on_all_of_them():
    x, y = clayton_weibull(1200, 0)
    model = cs.CensoredEngression(**SMALL | {"epochs": 5}).fit(x, y)
    first, second = model.histories_
    assert first.epochs[-1].validation_loss is not None
    assert second.epochs[-1].validation_loss is None
    assert len(first.epochs) == 5
    assert len(second.epochs) == 4  # as many steps
    stopping = {"epochs": 8, "learning_rate": 1.0, "patience": 1, "validate_every": 1, "baseline": False}
    first, second = cs.CensoredEngression(**SMALL | stopping).fit(x, y).histories_
    assert len(second.epochs) == max(1, round(0.8 * (first.kept_epoch + 1))) < 8
    with pytest.raises(InvalidInputError, match="two or more generators"):
        model.by_generator(x, np.mean)


def test_shares_are_exact_in_expectation():
    found = np.mean([shares(3, [0.62, 0.3, 0.08], (i + 0.5) / 1000) for i in range(1000)], axis=0)
    np.testing.assert_allclose(found, [1.86, 0.9, 0.24], atol=0.003)
    assert all(sum(shares(m, [0.62, 0.3, 0.08], 0.99)) == m for m in range(1, 20))


# ---- the estimator --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def untrained():
    """A network that has learned nothing, so that the baselines are better."""
    return cs.CensoredEngression(**SMALL | {"epochs": 1, "learning_rate": 1e-6}).fit(X, Y)


def test_an_untrained_network_gives_way_to_the_baselines(untrained):
    assert untrained.baseline_weight_ > 0.9
    assert "margins with Clayton's copula" in untrained.baseline_
    assert len(untrained.histories_) == 5  # each with another fifth of the subjects for validation
    rival = cs.CopulaWeibull("clayton", random_state=0).fit(X, Y).predict_distribution(X)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, Y).predict_distribution()
    ours = cs.energy_score(Y, untrained.predict_distribution(X), C, fair=True, horizon=2.9)
    theirs = cs.energy_score(Y, cs.Ensemble(rival.sample(200, 0)), C, fair=True, horizon=2.9)
    gain, error = cs.mean_loss(theirs - ours)
    assert gain > -2 * error
    alone = cs.CensoredEngression(**SMALL, baseline=False, n_generators=1).fit(X, Y)
    assert alone.baseline_weight_ == 0
    assert "not compared" in alone.baseline_


def test_a_forecast_belongs_to_a_subject_with_baselines_too(untrained):
    whole = untrained.sample(X[:40], 50)
    np.testing.assert_array_equal(untrained.sample(X[10:20], 50), whole[10:20])
    one = np.array([untrained.sample(X[:1], 1, seed=s)[0, 0] for s in range(3)])
    assert len(np.unique(one[:, 0])) == 3


def test_baselines_are_part_of_a_model_file(untrained, tmp_path):
    untrained.save(tmp_path / "model")
    again = cs.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(again.sample(X[:5]), untrained.sample(X[:5]))
    assert again.baseline_ == untrained.baseline_
    tensors, settings = read_model_file(tmp_path / "model", "CensoredEngression")
    name = next(name for name in tensors if name.endswith(".end"))

    def altered(**changes):
        new = {key: value.clone() for key, value in tensors.items()} | changes
        write_model_file(tmp_path / "other", "CensoredEngression", new, settings)
        return cs.load(tmp_path / "other")

    with pytest.raises(ModelFileError, match="not positive"):
        altered(**{name: -tensors[name]})
    curve = next((name for name in tensors if ".hazard" in name and len(tensors[name])), None)
    if curve is not None:
        with pytest.raises(ModelFileError, match="does not increase"):
            altered(**{curve: tensors[curve].flip(0)})
        with pytest.raises(ModelFileError, match="incomplete"):
            altered(**{curve: tensors[curve][1:]})
    settings["fitted"]["mixture"]["weights"] = dict.fromkeys(settings["fitted"]["mixture"]["weights"], 3.0)
    with pytest.raises(ModelFileError, match="weights"):
        altered()


def test_an_export_without_the_baseline_is_an_error(untrained, tmp_path):
    with pytest.raises(InvalidInputError, match=r"come from a baseline.*baseline=False"):
        untrained.export(tmp_path / "sampler.pt2")


def test_generators_are_asked_without_the_baseline(untrained):
    everyone = untrained.by_generator(X[:3], lambda z: np.minimum(z, 3).mean(axis=1))
    assert everyone.shape == (5, 3, 2)


@pytest.mark.parametrize("kind", ["semi-competing", "competing", "ordered", "one time", "masked", "weights"])
def test_baselines_for_every_kind_of_outcome(kind):
    settings, options = SMALL | {"epochs": 1, "n_generators": 1}, {}
    y, C = Y, cs.Uniform(0.0, 3.0)
    if kind in ("semi-competing", "ordered"):
        c = np.random.default_rng(1).uniform(0.5, 3, 300)
        T = np.cumsum(np.random.default_rng(0).exponential(size=(300, 2)), axis=1)
        y = cs.RightCensored(np.minimum(T, c[:, None]), c[:, None] >= T)
        y = cs.SemiCompetingRisks(y.time, y.event) if kind == "semi-competing" else y
        settings |= {"ordered": kind == "ordered"}
    elif kind == "competing":
        first = Y.time.min(axis=1)
        cause = np.where(Y.event.any(axis=1), 1 + Y.time.argmin(axis=1), 0)
        y = cs.CompetingRisks(first, cause)
    elif kind == "one time":
        y = Y.marginal(0)
    elif kind == "masked":
        options = {"mask": np.random.default_rng(0).random((300, 2)) < 0.8}
    else:
        options = {"sample_weight": np.random.default_rng(0).random(300)}
    model = cs.CensoredEngression(**settings).fit(X, y, censoring=C, **options)
    assert model.baseline_weight_ > 0
    z = model.sample(X[:5], 40).reshape(5, 40, -1)
    assert not np.isnan(z).any()
    if kind == "ordered":
        assert (np.diff(z, axis=2) >= 0).all()


def test_generators_that_are_resumed_end_with_the_same_mixture(tmp_path):
    settings = SMALL | {"n_generators": 2, "checkpoint": tmp_path / "state"}
    whole = cs.CensoredEngression(**settings | {"checkpoint": None}).fit(X, Y)

    def stop(epoch, network):
        return epoch.epoch == 0

    cs.CensoredEngression(**settings).fit(X, Y, callbacks=[stop])
    resumed = cs.CensoredEngression(**settings).fit(X, Y)
    assert resumed.baseline_weight_ == whole.baseline_weight_
    np.testing.assert_array_equal(resumed.sample(X[:5]), whole.sample(X[:5]))


def test_a_generator_that_fails_when_it_is_trained_again_is_not_kept(monkeypatch):
    """With few events one in some trainings ends with late draws alone."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1100, 1))
    y = cs.RightCensored(np.exp(x) * rng.exponential(size=(1100, 1)), np.ones((1100, 1)))
    train = cs.CensoredEngression._train

    def failing(self, task, training, validation, *others):
        history = train(self, task, training, validation, *others)
        if validation is None:
            for weights in task.network.parameters():
                weights.data.mul_(5.0)
        return history

    settings = SMALL | {"epochs": 5, "n_generators": "auto", "baseline": False}
    kept = cs.CensoredEngression(**settings).fit(x, y)
    assert len(kept.histories_) == 2
    monkeypatch.setattr(cs.CensoredEngression, "_train", failing)
    saved = cs.CensoredEngression(**settings).fit(x, y)
    assert np.median(saved.sample(x[:200], 64)) == pytest.approx(np.median(kept.sample(x[:200], 64)), rel=0.3)


def test_different_ends_of_follow_up_are_no_reason_for_a_larger_penalty():
    """They once were: with C known between 1 and 30 years and few events it was five times too large."""
    rng = np.random.default_rng(0)
    T, C = rng.exponential(20.0, size=(400, 1)), rng.uniform(1.0, 30.0, 400)
    model = cs.CensoredEngression(**SMALL | {"epochs": 1, "n_generators": 1, "baseline": False})
    model.fit(None, cs.RightCensored(np.minimum(T, C[:, None]), C[:, None] >= T, C))
    ends = torch.as_tensor(C[:, None], dtype=torch.float32)
    assert model._scale_of_loss({"y": ends, "c": ends[:, None]}) == 0.0
    seen = torch.as_tensor(T, dtype=torch.float32)
    known = model._scale_of_loss({"y": torch.minimum(seen, ends), "c": ends[:, None]})
    assert 0 < known < 0.5 * model._scale_of_loss({"y": seen, "c": torch.full_like(seen, torch.inf)[:, None]})


def test_covariates_without_effect_are_left_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 20))
    T = np.exp(x[:, :1]) * rng.exponential(size=(600, 1))
    y = cs.RightCensored(T, np.ones((600, 1)))
    settings = SMALL | {"epochs": 30, "n_generators": 1, "baseline": False}

    def norms(**changes):
        network = cs.CensoredEngression(**settings | changes).fit(x, y)._generators[0]
        return network.from_x.weight.square().sum(dim=0).sqrt().detach().numpy()

    sparse, dense = norms(), norms(sparsity=0.0)
    assert sparse[1:].mean() < 0.6 * dense[1:].mean()
    assert sparse[0] > 2 * sparse[1:].max()
    with pytest.raises(InvalidInputError, match="sparsity"):
        norms(sparsity=-1.0)
    with pytest.raises(InvalidInputError, match="n_generators"):
        norms(n_generators=0)
