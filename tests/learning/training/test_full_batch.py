"""Linear likelihood models are fitted to convergence; masked event times leave the likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.learning.small_trainings import likelihood

import censcore as cs
from censcore.exceptions import InvalidInputError, ModelFileError
from censcore.simulation import LogNormalScenario

PAIR = LogNormalScenario(k=2).sample(800, seed=0)
TEST = LogNormalScenario(k=2).sample(800, seed=1)


def mean_log_score(model, data):
    return float(-np.mean(model.predict_distribution(data.X).log_likelihood(data.y.time, data.y.event)))


@pytest.mark.parametrize("copula", ["independent", "clayton", "gumbel"])
def test_the_gradient_vanishes_at_the_end(copula):
    model = cs.CopulaWeibull(copula).fit(PAIR.X, PAIR.y)
    assert model.history_.converged
    assert model.history_.gradient_norm < 1e-5
    steps = [epoch.train_loss for epoch in model.history_.epochs]
    assert steps == sorted(steps, reverse=True)


def test_one_weibull_time_is_the_maximum_likelihood_of_the_regression():
    y, X = PAIR.y.marginal(0), PAIR.X
    network = likelihood(cs.CopulaWeibull, weight_decay=0.0).fit(X, y).predict_distribution(X)
    newton = cs.WeibullRegression().fit(X, y).predict_distribution(X)
    for name in ("shape", "scale"):
        expected = np.broadcast_to(newton.parameters[name], (len(X),))
        np.testing.assert_allclose(network.parameters[name], expected, rtol=2e-4)


def test_minibatches_end_no_better():
    """Strong dependence is far from the start, where short training in minibatches stops."""
    exact = cs.CopulaWeibull("clayton").fit(PAIR.X, PAIR.y)
    batches = cs.CopulaWeibull("clayton", solver="adam", epochs=40, random_state=0).fit(PAIR.X, PAIR.y)
    assert mean_log_score(exact, PAIR) < mean_log_score(batches, PAIR)
    assert mean_log_score(exact, TEST) < mean_log_score(batches, TEST)


def test_weights_are_copies():
    weight = np.random.default_rng(0).integers(0, 3, 800)
    weighted = likelihood(cs.CopulaWeibull, "clayton", weight_decay=0.0).fit(PAIR.X, PAIR.y, weight)
    copies = np.repeat(np.arange(800), weight)
    copied = likelihood(cs.CopulaWeibull, "clayton", weight_decay=0.0).fit(PAIR.X[copies], PAIR.y[copies])
    np.testing.assert_allclose(
        weighted.predict_distribution(TEST.X).theta, copied.predict_distribution(TEST.X).theta, rtol=1e-3
    )


def test_too_few_iterations_warn():
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        model = cs.CopulaWeibull("clayton", max_iter=2).fit(PAIR.X, PAIR.y)
    assert not model.history_.converged


def test_an_interrupted_search_goes_on(tmp_path):
    class Stop(Exception):
        pass

    def stop(epoch, network):
        if epoch.epoch == 5:
            raise Stop

    whole = cs.CopulaWeibull("clayton").fit(PAIR.X, PAIR.y)
    model = cs.CopulaWeibull("clayton", checkpoint=tmp_path / "state")
    with pytest.raises(Stop):
        model.fit(PAIR.X, PAIR.y, callbacks=[stop])
    resumed = model.fit(PAIR.X, PAIR.y)
    assert resumed.history_.epochs[0].train_loss < whole.history_.epochs[0].train_loss
    assert resumed.history_.epochs[-1].train_loss == pytest.approx(
        whole.history_.epochs[-1].train_loss, abs=1e-8
    )
    with pytest.raises(ModelFileError, match="other data"):
        model.fit(PAIR.X[:700], PAIR.y[:700])


def test_the_loss_of_validation_data_is_reported_and_decides_nothing():
    alone = cs.CopulaWeibull("clayton").fit(PAIR.X, PAIR.y)
    validated = cs.CopulaWeibull("clayton").fit(PAIR.X, PAIR.y, eval_set=(TEST.X, TEST.y))
    unit = np.mean(PAIR.y.time[PAIR.y.time > 0])
    expected = mean_log_score(alone, TEST) - np.mean(TEST.y.event.sum(axis=1)) * np.log(unit)
    assert validated.history_.epochs[-1].validation_loss == pytest.approx(expected, rel=1e-4)
    assert mean_log_score(alone, TEST) == mean_log_score(validated, TEST)


@pytest.mark.parametrize(
    "model",
    [
        cs.CopulaWeibull("clayton"),
        cs.CopulaWeibull("clayton", hidden=(4,), epochs=2, random_state=0),
        likelihood(cs.JointGridModel, bins=4, hidden=(), weight_decay=1.0),
        cs.JointGridModel(bins=4, hidden=(4,), epochs=2, random_state=0),
    ],
    ids=["lbfgs", "adam", "grid, lbfgs", "grid, adam"],
)
def test_what_is_masked_has_no_influence(model):
    X, y, mask = PAIR.X[:80], PAIR.y[:80], np.random.default_rng(0).random((80, 2)) < 0.7
    other = cs.RightCensored(np.where(mask, y.time, 7.7), np.where(mask, y.event, False))
    first, second = (
        model.fit(X, outcome, mask=mask).predict_distribution(TEST.X).marginal(1).sf(1.0)
        for outcome in (y, other)
    )
    np.testing.assert_array_equal(first, second)


def test_masked_margins_are_those_of_the_subjects_that_count():
    mask = np.stack([np.ones(800, dtype=bool), np.arange(800) < 500], axis=1)
    model = likelihood(cs.CopulaWeibull, weight_decay=0.0).fit(PAIR.X, PAIR.y, mask=mask)
    alone = likelihood(cs.CopulaWeibull, weight_decay=0.0).fit(PAIR.X[:500], PAIR.y.marginal(1)[:500])
    found, expected = (m.predict_distribution(TEST.X) for m in (model, alone))
    np.testing.assert_allclose(found.marginal(1).sf(1.0), expected.sf(1.0), rtol=1e-3)


def test_a_mask_of_validation_data_is_taken():
    mask = np.ones((800, 2), dtype=bool)
    mask[:, 1] = False
    model = cs.CopulaWeibull()
    both = model.fit(PAIR.X, PAIR.y, eval_set=(TEST.X, TEST.y)).history_.epochs[-1].validation_loss
    one = model.fit(PAIR.X, PAIR.y, eval_set=(TEST.X, TEST.y, mask)).history_.epochs[-1].validation_loss
    assert one != both


@pytest.mark.parametrize(
    ("model", "mask", "words"),
    [
        (cs.CopulaWeibull(solver="newton"), None, "solver must be"),
        (cs.CopulaWeibull(max_iter=0), None, "max_iter must be"),
        (cs.CopulaWeibull(), np.ones((800, 1), dtype=bool), "expected booleans of shape"),
        (cs.CopulaWeibull(), np.ones((800, 2)), "expected booleans"),
        (cs.CopulaWeibull(), np.zeros((800, 2), dtype=bool), "False everywhere"),
    ],
)
def test_bad_input_has_words(model, mask, words):
    with pytest.raises(InvalidInputError, match=words):
        model.fit(PAIR.X, PAIR.y, mask=mask)
