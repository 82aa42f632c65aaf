"""Drop-out by the number of the visit: hazards, their pooled tail, influences, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.properness.drop_out import drop_outs

import censcore as cs
from censcore.estimators.nonparametric.kaplan_meier import AT_RISK, DropOut
from censcore.exceptions import InvalidInputError, MissingVisitsError
from censcore.outcomes.detection_times import DetectionTimes

INF = np.inf


@pytest.fixture(scope="module")
def y():
    return drop_outs(300, seed=5)


def by_hand(y, weight):
    """Subjects at risk of leaving after each visit, and those who left."""
    number = np.sum(y.visits <= np.where(y.found, y.upper, y.lower)[:, None], axis=1)
    planned = np.isfinite(y.visits).sum(axis=1)
    k = np.arange(planned.max() + 1)[:, None]
    at_risk = (number > k) | ((number == k) & ~y.found & (planned > k))
    left = (number == k) & ~y.found & (planned > k)
    return at_risk @ weight, left @ weight, at_risk.sum(axis=1)


@pytest.mark.parametrize("weighted", [False, True])
def test_hazards_are_shares_of_those_at_risk_and_pooled_where_these_are_few(y, weighted):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    n, d, count = by_hand(y, weight)
    start = np.nonzero(count >= AT_RISK)[0].max()
    hazard = d[:start] / n[:start]
    tail = d[start:].sum() / n[start:].sum()
    largest = np.nonzero(count)[0].max()
    expected = np.cumprod(np.append(1 - hazard, np.full(largest + 1 - start, 1 - tail)))
    assert 0 < start < largest  # so that both kinds are there
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y, weight).predict_distribution()
    np.testing.assert_allclose(C.numbers.sf(np.arange(largest + 1.0)[None, :])[0], expected)


def test_on_one_schedule_it_is_the_curve_of_the_last_visit():
    visits, rng = np.arange(1.0, 6.0), np.random.default_rng(1)
    D, last = rng.integers(1, 8, 400).astype(float), rng.integers(1, 6, 400).astype(float)
    found = (D <= 5) & (last >= D)
    lower = np.where(found, D - 1, np.minimum(D - 1, last))
    y = cs.IntervalCensored(lower, np.where(found, D, INF), visits)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution().numbers
    times = cs.RightCensored(y.detection().time, y.detection().event)
    curve = cs.Censoring(cs.KaplanMeier()).fit(None, times).predict_distribution()
    np.testing.assert_allclose(C.sf(visits[None, :4]), curve.sf(visits[None, :4]))


@pytest.mark.parametrize("stratify", [None, 0])
def test_the_influence_is_the_derivative_by_the_weights(y, stratify):
    rng = np.random.default_rng(2)
    X, weight = rng.integers(0, 2, (len(y), 1)).astype(float), rng.uniform(0.5, 2.0, len(y))
    flipped, used = y.detection().flip(), np.nonzero(y.detection().informs_censoring)[0]
    X, weight = X[used], weight[used]
    model = DropOut(stratify).fit(X, flipped, weight)
    theta = lambda w: np.log(DropOut(stratify).fit(X, flipped, w).predict_distribution(X[:2]).sf(4.0))  # noqa: E731
    base, table = theta(weight), model.event_table_
    stratum = 0 if stratify is None else int(np.searchsorted(model.strata_, X[0, 0]))
    D = ((table["time"] <= 4.0) & (table["stratum"] == stratum)).astype(float)[:, None]
    found = model.influence(D)[:, 0]
    for i in (0, 7, 50, 123):
        moved = weight.copy()
        moved[i] *= 1 + 1e-5
        assert found[i] == pytest.approx((theta(moved) - base)[0] / 1e-5, rel=1e-3, abs=1e-9)
    assert found.sum() == pytest.approx(0.0, abs=1e-9)


def test_visits_after_the_entry_count():
    y = cs.IntervalCensored([2.0, 0.0, 3.0], [3.0, INF, INF], [1.0, 2.0, 3.0, 4.0], entry=[1.5, 2.5, 0.0])
    attendance = y.detection().attendance
    np.testing.assert_array_equal(attendance.time, [2.0, 0.0, 3.0])
    np.testing.assert_array_equal(attendance.event, [True, False, False])
    assert y.dropped_out().tolist() == [False, True, True]
    assert y.dropped_out(until=3.5).tolist() == [False, True, False]


def test_a_horizon_leaves_later_visits_out():
    y = DetectionTimes([2.0, 3.5, 5.0], [1, 0, 0], [[1.0, 2.0, 4.0], [1.0, 3.0, 6.0], [2.0, 5.0, 7.0]])
    cut = y.censor_at(4.0)
    np.testing.assert_array_equal(cut.attendance.time, [2.0, 2.0, 1.0])
    assert cut.attendance.event.all()  # nobody missed a visit up to 4
    assert "DetectionTimes(n=3" in repr(y.take([0, 1, 2]))


def test_followed_up_to_the_first_visit_missed():
    y = cs.IntervalCensored([0.0, 1.1, 1.3, 0.0], [0.9, INF, INF, INF],
                            [[0.9, 2.0, INF], [1.1, 2.3, 3.0], [1.3, INF, INF], [1.0, 2.0, 3.0]])  # fmt: skip
    seen = y.detection(until=5.0, dropout=True)
    np.testing.assert_allclose(seen.time, [0.9, 2.3, 5.0, 1.0])
    assert (seen.time[[1, 3]] < [2.3, 1.0]).all()
    np.testing.assert_array_equal(seen.recorded().time, y.detection().time)
    np.testing.assert_array_equal(seen.attendance.time, y.detection().attendance.time)


def test_visits_drawn_for_those_who_dropped_out():
    y = cs.IntervalCensored([0.0, 1.1], [0.9, INF], [[0.9], [1.1]])
    drawn = y.continue_visits(cs.PointMass(1.0), until=3.0, dropped_out=[False, True])
    np.testing.assert_allclose(drawn.visits, [[0.9, 1.9, 2.9], [1.1, 2.1, INF]])
    assert drawn.dropped_out().tolist() == [False, True]
    assert y.continue_visits(cs.PointMass(1.0), until=3.0).dropped_out().tolist() == [False, False]


def test_what_cannot_be_estimated_says_so(y):
    with pytest.raises(MissingVisitsError, match="visits=None"):
        cs.Censoring(cs.KaplanMeier()).fit(None, cs.IntervalCensored(y.lower, y.upper))
    with pytest.raises(MissingVisitsError, match="visits=None"):
        cs.IntervalCensored(y.lower, y.upper).dropped_out()
    with pytest.raises(InvalidInputError, match="does not represent atoms"):
        cs.Censoring(cs.WeibullRegression()).fit(None, y)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    with pytest.raises(InvalidInputError, match=r"outcome.*300.*censoring.*200"):
        cs.crps(y, cs.Exponential(0.5), C.on(y.visits[:200]))
