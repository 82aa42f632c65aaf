"""The default stack, and the networks of folds that it is made of."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.learning.small_trainings import SMALL, engression, sample

import censcore as cs
from censcore.estimators.stacking.stacking_members import in_turn
from censcore.estimators.stacking.stacking_weights import QuadraticLosses
from censcore.exceptions import ExtrapolationWarning, InvalidInputError
from censcore.learning.best_forecast import _probability_of_second

pytestmark = pytest.mark.usefixtures("brief_members")

QUICK = {"epochs": 1, "random_state": 0, "device": "cpu", "n_samples": 64}
REGRESSIONS = ["Weibull", "log-normal", "log-logistic"]
MEMBERS = ["engression", "density network", "trees", "Kaplan-Meier", "Cox", *REGRESSIONS]


@pytest.fixture(scope="module")
def fitted(brief_members):
    data = sample(200)
    return data, cs.BestForecast(**QUICK).fit(data.X, data.y)


def test_the_default_stack(fitted):
    data, stack = fitted
    assert list(stack.weights_) == MEMBERS
    assert sum(stack.weights_.values()) == pytest.approx(1.0)
    assert stack.left_out_ == {}
    assert stack.predict_distribution(data.X[:3]).shape == (3, 2)
    assert clone(stack).get_params() == {"ordered": False, "progress": None, "cv": "auto"} | QUICK


def test_tables_go_in_as_they_are():
    data = sample(150)
    X = pd.DataFrame(data.X, columns=list("abcd")[: data.X.shape[1]])
    X["kind"] = np.where(X["a"] > 0, "high", "low")
    X.loc[::7, "a"] = np.nan
    X.loc[::9, "kind"] = None
    stack = cs.BestForecast(**QUICK).fit(X, data.y)
    assert stack.left_out_ == {}
    assert list(stack.feature_names_in_) == list(X.columns)
    z = stack.sample(X[:20], 30)
    assert not np.isnan(z).any()
    with pytest.warns(ExtrapolationWarning, match="'new' of 'kind'"):
        new = stack.sample(X[:1].assign(kind="new"), 30)
    np.testing.assert_array_equal(new, stack.sample(X[:1].assign(kind="high"), 30))  # the reference
    with pytest.raises(InvalidInputError, match="feature names"):
        stack.sample(X[["a"]], 3)


def test_covariates_far_away_are_held_at_the_border(fitted):
    data, stack = fitted
    border = data.X.max(axis=0) + data.X.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near = stack.sample(border[None], 50)
    with pytest.warns(ExtrapolationWarning, match="1 subjects"):
        far = stack.sample(10 * border[None], 50)
    np.testing.assert_array_equal(near, far)


def test_it_answers_the_questions_of_the_generator(fitted):
    data, stack = fitted
    assert stack.predict(data.X[:3]).shape == (3, 2)
    assert stack.predict_quantile(data.X[:3], [0.1, 0.2]).shape == (3, 2, 2)
    assert stack.predict_survival_function(data.X[:3], [0.5]).shape == (3, 1, 2)
    assert stack.probability(data.X[:3], lambda z: z[..., 0] < z[..., 1]).shape == (3,)
    assert (stack.follow_up_ <= 5.0).all()


def test_a_generator_that_has_learned_nothing_has_a_small_share():
    data = sample(900)
    stack = cs.Stacking(
        [
            ("engression", engression(**SMALL | {"epochs": 1, "learning_rate": 1e-6})),
            ("cox", cs.JointFromMargins(cs.CoxRegression(alpha=1.0))),
        ],
        random_state=0,
    ).fit(data.X, data.y)
    assert stack.weights_["engression"] < 0.1


@pytest.fixture(scope="module")
def exchangeable():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    T = rng.exponential(np.exp(0.5 * X[:, :1]), (400, 2)) / rng.gamma(1.0, 1.0, (400, 1))
    C = rng.uniform(0.0, 5.0, (400, 1))
    return X, cs.RightCensored(np.minimum(T, C), T <= C)


def test_exchangeable_times_take_turns(exchangeable):
    X, y = exchangeable
    alike = cs.BestForecast(**QUICK).fit(X, y)
    assert alike.exchangeable_ > 0.3
    later = cs.RightCensored(y.time * [1.0, 3.0], y.event)
    apart = cs.BestForecast(**QUICK).fit(
        X, later, censoring=cs.Independent([cs.Uniform(0.0, 5.0), cs.Uniform(0.0, 15.0)])
    )
    assert apart.exchangeable_ < 0.1
    first = lambda z: z[..., 0] < z[..., 1]  # noqa: E731
    alike.n_samples = 2048
    error = np.abs(alike.probability(X, first) - 0.5).mean()
    alike.exchangeable_ = 0.0
    assert error < np.abs(alike.probability(X, first) - 0.5).mean()


@pytest.mark.parametrize(
    ("better", "least", "most"), [(0.03, 0.0, 0.01), (-0.03, 0.99, 1.0), (0.0, 0.4, 0.6)]
)
def test_order_is_kept_or_given_up_where_held_out_subjects_can_tell(better, least, most):
    own = np.random.default_rng(0).normal(size=800)
    own = 0.3 * (own - own.mean()) / own.std() - better  # with this standard error a share was given to both
    D = np.broadcast_to(0.06 * (1 - np.eye(2)), (800, 2, 2))
    losses = QuadraticLosses(np.stack([own, np.zeros(800)], axis=1), D, np.ones(800))
    assert least <= _probability_of_second(losses) <= most


def test_times_in_all_orders():
    z = np.random.default_rng(0).random((3, 600, 3))
    np.testing.assert_array_equal(in_turn(z, 0.0), z)
    turned = in_turn(z, 0.4)
    assert (turned != z).any(axis=2).mean() == pytest.approx(0.4 * 5 / 6, abs=0.01)
    np.testing.assert_array_equal(np.sort(turned, axis=2), np.sort(z, axis=2))
    first = (in_turn(np.sort(z, axis=2), 1.0).argmin(axis=2)[0][:, None] == np.arange(3)).mean(axis=0)
    np.testing.assert_allclose(first, 1 / 3)


def test_follow_up_without_events_speaks_for_never():
    rng = np.random.default_rng(1)
    T = np.where(rng.random(500) < 0.5, rng.exponential(0.5, 500), np.inf)
    C = rng.uniform(0.0, 20.0, 500)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    stack = cs.BestForecast(**QUICK | {"n_samples": 1024}).fit(None, y)
    z = stack.sample(None)
    assert np.isfinite(z).all()  # no member says never of times that nobody was followed to
    assert (z > 40.0).mean() == pytest.approx(0.5, abs=0.1)
    seen = cs.RightCensored(np.where(np.isinf(T), 1.0, T), np.ones(500))
    assert np.isinf(cs.BestForecast(**QUICK).fit(None, seen).follow_up_)  # nothing is censored: no tail


def test_delayed_entry_and_intervals():
    data = sample(150)
    y, X = data.y.marginal(0), data.X
    late = cs.RightCensored(y.time, y.event, entry=0.3 * y.time)
    stack = cs.BestForecast(**QUICK).fit(X, late)
    assert set(stack.left_out_) == {"engression", "density network"}
    assert "entry" in stack.summary().loc["engression", "note"]
    lower = np.floor(4 * y.time) / 4
    intervals = cs.IntervalCensored(lower, np.where(y.event, lower + 0.25, np.inf))
    found = cs.BestForecast(**QUICK).fit(X, intervals)
    assert list(found.weights_) == ["Turnbull", *REGRESSIONS, "piecewise exponential"]
    assert isinstance(found.predict_distribution(X[:3]), cs.Mixture)
    assert found.predict(X[:3]).shape == (3,)


@pytest.mark.parametrize("n", [100, 1200])
def test_networks_of_folds_train_on_the_others(n, monkeypatch):
    data, rows = sample(n), np.arange(n)
    folds = [(rows[rows % 5 != i], rows[rows % 5 == i]) for i in range(5 if n == 100 else 1)]
    seen = []
    train = cs.CensoredEngression._fit_generators

    def looking(self, parts, callbacks):
        for part in parts:
            training, validation = part.training.taken, part.validation
            held_out = None if validation is None else validation.taken["y"][:3]
            seen.append((len(training["x"]), training["y"][:3], held_out))
        return train(self, parts, callbacks)

    monkeypatch.setattr(cs.CensoredEngression, "_fit_generators", looking)
    model = engression(**SMALL)
    held = model.cross_fit(data.X, data.y, folds, censoring=cs.Uniform(0.0, 5.0))
    for (train_rows, test_rows), (size, first, held_out) in zip(folds, seen, strict=False):
        assert size == len(train_rows)
        for found, subjects in ((first, train_rows), (held_out, test_rows)):
            np.testing.assert_allclose(found, model._times.forward(data.y.time[subjects[:3]]), rtol=1e-5)
    assert len(seen) == (5 if n == 100 else 2)  # of one fold, again on all subjects
    assert [len(models) for models in held] == ([2] * 5 if n == 100 else [1])


def test_pooled_networks_are_those_of_the_folds():
    data = sample(100)
    rows = np.arange(100)
    folds = [(rows[rows % 3 != i], rows[rows % 3 == i]) for i in range(3)]
    model = engression(**SMALL)
    held = model.cross_fit(data.X, data.y, folds)
    assert [models[0]._networks[0] for models in held] == model._networks
    assert [models[1]._networks[0] for models in held] == [*model._networks[1:], model._networks[0]]
    assert len(model.histories_) == 3


@pytest.mark.parametrize(
    "kind", ["competing", "semi-competing", "one time", "no covariates", "events at zero"]
)
def test_every_kind_of_outcome(kind):
    data = sample(80)
    X, y = data.X, data.y
    if kind == "competing":
        cause = np.where(y.event.any(axis=1), 1 + y.time.argmin(axis=1), 0)
        y = cs.CompetingRisks(y.time.min(axis=1), cause)
    elif kind == "semi-competing":
        end = y.time.max(axis=1)
        first = y.event[:, 0] & (y.time[:, 0] < end)
        y = cs.SemiCompetingRisks(
            np.stack([np.where(first, y.time[:, 0], end), end], axis=1),
            np.stack([first, y.event[:, 1]], axis=1),
        )
    elif kind == "one time":
        y = y.marginal(0)
    elif kind == "no covariates":
        X = None
    else:
        time = y.time.copy()
        time[:3, 0], event = 0.0, y.event.copy()
        event[:3, 0] = True
        y = cs.RightCensored(time, event)
    stack = cs.BestForecast(**QUICK).fit(X, y)
    z = stack.sample(None if X is None else X[:4], 20)
    assert not np.isnan(z).any()
    left = {"events at zero": {"density network", "trees"}}.get(kind, set())
    assert set(stack.left_out_) == left
    assert set(stack.weights_) == set(MEMBERS) - left - (
        {"Cox", "trees"} if kind == "no covariates" else set()
    )


def test_times_in_order_stay_in_order():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 2))
    T = np.cumsum(rng.exponential(np.exp(0.5 * x[:, :1]), size=(150, 2)), axis=1)
    C = rng.uniform(0.5, 6, size=(150, 1))
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    model = cs.BestForecast(ordered=True, epochs=2, n_samples=64, random_state=0, device="cpu").fit(x, y)
    assert sum(weight > 0 for weight in model.weights_.values()) > 1
    draws = model.sample(x[:30])
    assert (np.diff(draws, axis=2) >= 0).all()
    assert model.exchangeable_ == 0
    with pytest.raises(InvalidInputError, match="ordered=True needs"):
        cs.BestForecast(ordered=True, epochs=2).fit(x, cs.RightCensored(y.time[:, ::-1], y.event[:, ::-1]))
    with pytest.raises(InvalidInputError, match="ordered=True: not available for CompetingRisks"):
        cs.BestForecast(ordered=True).fit(x, cs.CompetingRisks(y.time[:, 0], y.event[:, 0].astype(int)))


def test_one_ordered_member_puts_all_in_order():
    rng = np.random.default_rng(1)
    T = np.cumsum(rng.exponential(size=(80, 2)), axis=1)
    y = cs.RightCensored(T, np.ones((80, 2), dtype=bool))
    members = [
        ("engression", cs.CensoredEngression(ordered=True, n_networks=2, epochs=1, random_state=0)),
        ("pooled", cs.JointFromMargins(cs.KaplanMeier())),
    ]
    stack = cs.Stacking(members, random_state=0, n_samples=32).fit(None, y)
    assert set(stack.estimators_) == {"engression", "pooled"}
    assert (np.diff(stack.sample(None), axis=2) >= 0).all()


def test_a_mask_is_an_error_that_says_who_takes_one():
    y = cs.RightCensored([[1.0, 2.0]] * 20, [[1, 1]] * 20)
    with pytest.raises(InvalidInputError, match=r"mask: not available for BestForecast.*CopulaWeibull"):
        cs.BestForecast().fit(None, y, mask=np.ones((20, 2), dtype=bool))


@pytest.mark.parametrize("size", [1e39, 1e300, 1.7e308])
def test_a_covariate_that_no_network_can_hold_is_named_without_a_warning(size):
    data = sample(60)
    X = np.where(np.arange(60)[:, None] == 3, size, data.X)
    with pytest.raises(InvalidInputError, match=r"column 0 of 1 subject \(3\).*single precision"):
        cs.BestForecast(**QUICK).fit(X, data.y)


def test_a_device_that_is_not_there_is_no_fault_of_the_file(fitted, tmp_path):
    fitted[1].save(tmp_path / "stack")
    with pytest.raises(InvalidInputError, match="device"):
        cs.BestForecast.load(tmp_path / "stack", device="abacus")
