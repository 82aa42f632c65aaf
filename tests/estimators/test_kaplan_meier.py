"""Kaplan-Meier: the product by hand, ties, weights as repetitions, strata, torch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import censcore as cs
from censcore.distributions import Step
from censcore.exceptions import InvalidInputError, InvalidTypeError, NotFittedError

Y = cs.RightCensored([1.0, 2.0, 2.0, 2.0, 3.0, 4.0], [1, 1, 1, 0, 0, 1])


def by_definition(time, event, t):
    """The product over event times up to t, each by counting."""
    curve = 1.0
    for s in sorted({x for x, d in zip(time, event, strict=True) if d and x <= t}):
        deaths = sum(1 for x, d in zip(time, event, strict=True) if d and x == s)
        curve *= 1 - deaths / sum(1 for x in time if x >= s)
    return curve


def fit(y, **given):
    return cs.KaplanMeier().fit(None, y, **given)


def test_by_hand():
    distribution = fit(Y).predict_distribution()
    np.testing.assert_allclose(distribution.sf([[0.5, 1.0, 2.0, 3.5, 4.0]])[0], [1, 5 / 6, 1 / 2, 1 / 2, 0])
    np.testing.assert_allclose(distribution.sf_left([[1.0, 2.0, 4.0]])[0], [1, 5 / 6, 1 / 2])


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=25))
def test_product_limit_by_definition(rows):
    time, event = (list(part) for part in zip(*rows, strict=True))
    distribution = fit(cs.RightCensored(np.array(time, float), event)).predict_distribution()
    for t in range(9):
        assert distribution.sf(float(t))[0] == pytest.approx(by_definition(time, event, t), abs=1e-14)


def test_without_censoring_it_is_the_empirical_distribution(rng):
    time = rng.integers(1, 9, 200).astype(float)
    distribution = fit(cs.RightCensored(time, np.ones(200))).predict_distribution()
    grid = np.arange(10.0)[None, :]
    np.testing.assert_allclose(distribution.sf(grid)[0], (time[:, None] > grid).mean(axis=0), atol=1e-14)
    assert distribution.sf(time.max()) == 0.0


def test_without_events_nothing_ever_happens():
    distribution = fit(cs.RightCensored([1.0, 2.0], [0, 0])).predict_distribution()
    assert isinstance(distribution, Step)
    assert distribution.sf(100.0) == 1.0
    assert distribution.mass_at_infinity() == 1.0


def test_weights_are_repetitions(rng):
    time, event = rng.integers(1, 6, 40).astype(float), rng.random(40) < 0.6
    times = rng.integers(0, 4, 40)
    weighted = fit(cs.RightCensored(time, event), sample_weight=times)
    repeated = fit(cs.RightCensored(np.repeat(time, times), np.repeat(event, times)))
    for name in weighted.event_table_.dtype.names:
        np.testing.assert_allclose(weighted.event_table_[name], repeated.event_table_[name], atol=1e-14)


def test_all_gone_is_exactly_zero_whatever_the_weights(rng):
    y = cs.RightCensored(rng.random(500), np.ones(500))
    assert fit(y, sample_weight=rng.random(500) + 0.1).predict_distribution().mass_at_infinity() == 0.0


def test_event_table_holds_greenwood(rng):
    table = fit(Y).event_table_
    np.testing.assert_array_equal(table["time"], [1, 2, 4])
    np.testing.assert_array_equal(table["at_risk"], [6, 5, 1])
    np.testing.assert_array_equal(table["events"], [1, 2, 1])
    expected = [(5 / 6) ** 2 / 30, 0.25 * (1 / 30 + 2 / 15), 0]
    np.testing.assert_allclose(table["variance"], expected)


def test_one_distribution_for_all_rows_of_x(rng):
    distribution = fit(Y).predict_distribution(rng.random((1000, 3)))
    assert distribution.shape == (1,)


# ---- strata --------------------------------------------------------------------------------------


@pytest.fixture(params=["array", "pandas", "polars"])
def table(request):
    data = {"age": [50.0, 60.0, 70.0, 55.0, 65.0, 75.0], "arm": ["b", "a", "b", "a", "b", "a"]}
    if request.param == "array":
        return np.stack([data["age"], [1.0, 0.0] * 3], axis=1), 1
    return pytest.importorskip(request.param).DataFrame(data), "arm"


def test_strata_have_curves_of_their_own(table):
    X, column = table
    model = cs.KaplanMeier(stratify=column).fit(X, Y)
    distribution = model.predict_distribution(X)
    for rows in ([1, 3, 5], [0, 2, 4]):
        alone = fit(Y.take(rows)).predict_distribution()
        np.testing.assert_array_equal(distribution.take(rows).sf(Y.time[rows]), alone.sf(Y.time[rows]))
    assert len(model.distributions_) == 2
    assert len(model.strata_) == 2
    assert set(model.event_table_["stratum"]) == {0, 1}


def test_unseen_stratum():
    pd = pytest.importorskip("pandas")
    model = cs.KaplanMeier("arm").fit(pd.DataFrame({"arm": list("aabbab")}), Y)
    assert model.predict_distribution(pd.DataFrame({"arm": ["b"]})).shape == (1,)
    with pytest.raises(InvalidInputError, match=r"not seen in fitting, \['c'\]"):
        model.predict_distribution(pd.DataFrame({"arm": ["a", "c"]}))


@pytest.mark.parametrize(
    ("X", "column", "error", "message"),
    [
        (None, "arm", InvalidInputError, "X is needed"),
        (np.ones((6, 2)), "arm", InvalidTypeError, "Pass a data frame"),
        (np.ones((6, 2)), 2, InvalidInputError, "no column number 2"),
        (np.ones((5, 2)), 0, InvalidInputError, "X: got 5 rows, expected 6"),
        (
            np.array([[1.0, np.nan, 1.0, 2.0, 2.0, 2.0]]).T,
            0,
            InvalidInputError,
            r"missing in 1 subject \(1\)",
        ),
    ],
)
def test_bad_strata(X, column, error, message):
    with pytest.raises(error, match=message):
        cs.KaplanMeier(column).fit(X, Y)


def test_missing_values_and_columns_of_frames():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"arm": ["a", None, "a", "b", "b", "a"]})
    with pytest.raises(InvalidInputError, match="missing in 1 subject"):
        cs.KaplanMeier("arm").fit(X, Y)
    with pytest.raises(InvalidInputError, match=r"no column 'sex'; got the columns \['arm'\]"):
        cs.KaplanMeier("sex").fit(X, Y)


# ---- estimator manners ---------------------------------------------------------------------------


def test_parameters_and_clones():
    model = cs.KaplanMeier(stratify="arm")
    assert clone(model).get_params() == {"stratify": "arm"}
    assert model.set_params(stratify=None).stratify is None


def test_not_fitted():
    with pytest.raises(NotFittedError, match="fit"):
        cs.KaplanMeier().predict_distribution()


def test_several_event_times_are_refused():
    with pytest.raises(InvalidInputError, match=r"y.marginal\(j\)"):
        fit(cs.RightCensored([[1.0, 2.0]], [[1, 1]]))


@pytest.mark.parametrize(
    ("weights", "message"),
    [(np.ones(5), "one weight per subject"), (-np.ones(6), "non-negative"), (np.zeros(6), "every subject")],
)
def test_bad_weights(weights, message):
    with pytest.raises(InvalidInputError, match=message):
        fit(Y, sample_weight=weights)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_and_precision_are_kept(dtype):
    torch = pytest.importorskip("torch")
    time = torch.tensor(Y.time, dtype=getattr(torch, dtype))
    distribution = fit(cs.RightCensored(time, torch.tensor(Y.event))).predict_distribution()
    assert distribution.sf(time).dtype == getattr(torch, dtype)
    expected = fit(Y).predict_distribution().sf(Y.time)
    np.testing.assert_allclose(distribution.sf(time).numpy(), expected, rtol=1e-6)


def test_influence_is_the_derivative_by_the_weight_and_gives_greenwood():
    rng = np.random.default_rng(0)
    time, event = rng.integers(1, 7, 60).astype(float), rng.random(60) < 0.6
    y, w, arm = cs.RightCensored(time, event), rng.uniform(0.2, 3.0, 60), rng.integers(0, 2, (60, 1))
    w[5] = 0.0

    def log_survival(weight):
        distributions = cs.KaplanMeier(stratify=0).fit(arm, y, sample_weight=weight).distributions_
        return np.array([distribution.logsf(4.0)[0] for distribution in distributions])

    model = cs.KaplanMeier(stratify=0).fit(arm, y, sample_weight=w)
    table = model.event_table_
    D = ((table["time"] <= 4)[:, None] & (table["stratum"][:, None] == [0, 1])).astype(float)
    found = model.influence(D)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-12)
    for i in range(0, 60, 7):
        step = 1e-5 * w[i] * (np.arange(60) == i)
        change = (log_survival(w + step) - log_survival(w - step)) / 2e-5
        np.testing.assert_allclose(found[i], change, rtol=1e-6, atol=1e-9)
    plain = cs.KaplanMeier().fit(None, y)
    row = plain.event_table_[3]
    parts = plain.influence((plain.event_table_["time"] <= row["time"]).astype(float)[:, None])
    assert (parts**2).sum() == pytest.approx(row["variance"] / row["sf"] ** 2, rel=1e-10)
    with pytest.raises(InvalidInputError, match="one row per entry"):
        plain.influence(np.ones((1, 1)))
