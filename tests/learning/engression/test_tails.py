"""Beyond follow-up: what the data do not say comes back flagged, or with a tail that was asked for."""

import numpy as np
import pytest
from tests.learning.small_trainings import engression

import censcore as cs
from censcore.estimators.tails import end_of_follow_up, with_tail
from censcore.exceptions import ExtrapolationWarning, InvalidInputError

SMALL = {"width": 16, "depth": 2, "noise_dim": 8, "epochs": 2, "n_samples": 200, "random_state": 0}
RNG = np.random.default_rng(0)
T = RNG.exponential(2.0, size=(300, 2))
Y = cs.RightCensored(T, np.ones((300, 2))).censor_at(1.0)


@pytest.fixture(scope="module")
def model():
    return engression(**SMALL, n_networks=2, device="cpu").fit(None, Y, censoring=cs.PointMass(1.0))


def test_quantiles_and_means_beyond_follow_up_are_later(model):
    np.testing.assert_array_equal(model.follow_up_, [1.0, 1.0])
    z = model.sample(None)
    median = model.predict(None)
    drawn = model.predict(None, beyond="extrapolate")
    np.testing.assert_array_equal(np.isinf(median), drawn > 1.0)
    assert np.isinf(model.predict(None, "mean")).all()
    np.testing.assert_allclose(
        model.predict(None, "restricted mean"), np.minimum(z, 1).mean(axis=1), rtol=1e-6
    )
    early, late = np.moveaxis(model.predict_quantile(None, [0.02, 0.98]), 1, 0)
    assert (early <= 1.0).all()
    assert np.isinf(late).all()
    named = model.predict_quantile(None, 0.98, beyond="exponential")
    assert np.isfinite(named).all()
    assert (named > 1.0).all()


def test_survival_probabilities_beyond_follow_up_warn(model):
    assert model.predict_survival_function(None, [0.5, 1.0]).shape == (1, 2, 2)
    with pytest.warns(ExtrapolationWarning, match="follow-up ends at 1"):
        model.predict_survival_function(None, [0.5, 1.5])


def test_the_end_of_follow_up_is_kept_in_files(model, tmp_path):
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(cs.CensoredEngression.load(tmp_path / "m").follow_up_, model.follow_up_)


def test_generators_can_be_asked_one_by_one(model):
    shares = model.by_network(None, lambda z: (z <= 0.5).mean(axis=1))
    assert shares.shape == (2, 1, 2)
    np.testing.assert_allclose(shares.mean(axis=0), 1 - model.predict_survival_function(None, [0.5])[:, 0])
    model_of_one = engression(**SMALL | {"epochs": 1, "n_networks": 1})
    model_of_one.fit(None, Y, censoring=cs.PointMass(1.0))
    with pytest.raises(InvalidInputError, match="n_networks"):
        model_of_one.by_network(None, np.mean)
    with pytest.raises(InvalidInputError, match="beyond"):
        model.predict(None, beyond="guess")


@pytest.mark.parametrize(
    ("y", "C", "end"),
    [
        (cs.RightCensored([1.0, 3.0], [1, 0]), cs.Exponential(1.0), [3.0]),
        (cs.RightCensored([1.0, 3.0], [1, 1]), cs.PointMass(np.inf), [np.inf]),
        (cs.RightCensored([1.0, 3.0], [1, 1], censoring_time=[4.0, 6.0]), cs.PointMass([4.0, 6.0]), [6.0]),
        (
            cs.RightCensored([[1.0, 2.0], [3.0, 5.0]], [[1, 0], [0, 1]]),
            cs.Independent([cs.Uniform(0.0, 4.0), cs.Uniform(0.0, 8.0)]),
            [3.0, 5.0],
        ),
        (cs.RightCensored([[1.0, 2.0], [3.0, 5.0]], [[1, 0], [1, 1]]), cs.Uniform(0.0, 9.0), [5.0, 5.0]),
    ],
)
def test_the_end_of_follow_up(y, C, end):
    np.testing.assert_array_equal(end_of_follow_up(y, C), end)


def test_the_exponential_tail_continues_an_exponential_distribution():
    z = np.random.default_rng(1).exponential(2.0, size=(3, 40_000, 1))
    tail = with_tail(z, np.array([3.0]), "exponential")
    np.testing.assert_array_equal(tail[z <= 3], z[z <= 3])
    np.testing.assert_allclose(np.quantile(tail, 0.95, axis=1), -2 * np.log(0.05), rtol=0.03)
    np.testing.assert_allclose(tail.mean(axis=1), 2.0, rtol=0.03)
    never = z.copy()
    never[:, :100] = np.inf
    assert np.isinf(with_tail(never, np.array([3.0]), "exponential")[:, :100]).all()


def test_without_a_hazard_before_the_end_the_tail_is_later():
    z = np.array([[[0.1], [5.0], [6.0]]])
    assert np.isinf(with_tail(z, np.array([1.0]), "exponential")[0, 1:]).all()
