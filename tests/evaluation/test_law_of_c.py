"""The term that the estimation of the law of C adds to every standard error."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.catalogue import SCORES, Case, Own
from censcore.evaluation.law_of_c import Rows, law_of_c


def sample(n: int, seed: int, tied: bool = False) -> tuple[np.ndarray, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    T, C = rng.weibull(1.5, n) * np.exp(0.5 * x[:, 0]), rng.uniform(0, 2.5, n)
    y = np.minimum(T, C)
    return x, cs.RightCensored(np.ceil(8 * y) / 8 if tied else y, T <= C)


def curve(jumps: np.ndarray, hazard: np.ndarray) -> cs.Step:
    return cs.Step(jumps, sf=np.cumprod(1 - hazard)[None, :])


FORECASTS = {
    "step": cs.Step(np.linspace(0.1, 2, 20), sf=np.linspace(0.95, 0.05, 20)[None, :]),
    "smooth": cs.Weibull(1.4, 1.1),
}


@pytest.mark.parametrize("forecast", FORECASTS)
@pytest.mark.parametrize("name", [*SCORES, "own"])
def test_derivative_is_that_of_the_mean(name, forecast):
    """A(u) against the change of the mean loss when the hazard of C at u is changed a little."""
    if name == "log_score" and forecast == "step":
        pytest.skip("a step law has no log score")
    _, y = sample(400, 1)
    F, score = FORECASTS[forecast], SCORES.get(name) or Own("own", cs.crps)
    jumps, hazard = np.linspace(0.05, 1.9, 25), np.full(25, 0.04)
    law = curve(jumps, hazard)

    def mean(C: cs.Step) -> np.ndarray:
        case = Case(y, F, C, 1.8, np.array([0.5, 1.0]), np.array([0.25, 0.6]))
        return score.losses(case).mean(axis=0)

    case = Case(y, F, law, 1.8, np.array([0.5, 1.0]), np.array([0.25, 0.6]))
    losses = score.losses(case)
    inside = jumps < 1.8
    A = score.derivative(case, losses, np.full(400, 1 / 400), law, jumps[inside])
    for j in np.nonzero(inside)[0][::4]:
        step = 1e-5
        more, less = hazard.copy(), hazard.copy()
        more[j], less[j] = 1 - (1 - 0.04) * np.exp(step), 1 - (1 - 0.04) * np.exp(-step)
        numerical = (mean(curve(jumps, more)) - mean(curve(jumps, less))) / (2 * step)
        size = max(np.abs(A).max(), 1e-12)
        np.testing.assert_allclose(A[j], numerical, atol=0.04 * size)  # interpolated between cells


def test_rows_and_greenwood_give_the_same_variance():
    x, y = sample(300, 2, tied=True)
    law = law_of_c(cs.Censoring(cs.KaplanMeier()), y[:100], x[:100], Rows(x[100:], y[100:]))
    (part,) = law.parts
    A = np.random.default_rng(0).normal(size=(len(part.jumps), 3))
    by_row = part.per_training_row(A)
    assert by_row.shape == (200, 3)
    np.testing.assert_allclose(by_row.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose((by_row**2).sum(axis=0), (part.influence(A) ** 2).sum(axis=0), rtol=1e-10)


def test_row_terms_are_the_jackknife_of_the_mean():
    """Leaving out training row r moves the mean by minus its term, up to the second order."""
    x, y = sample(600, 3)
    test, train = slice(0, 200), slice(200, 600)
    law = law_of_c(cs.Censoring(cs.KaplanMeier()), y[test], x[test], Rows(x[train], y[train]))
    F, score = cs.Weibull(1.4, 1.1), SCORES["crps"]
    case = Case(y[test], F, law.law, 1.8, np.array([1.0]), np.array([0.5]))
    losses = score.losses(case)
    (part,) = law.parts
    inside = part.jumps < 1.8
    A = np.zeros((len(part.jumps), 1))
    A[inside] = score.derivative(case, losses, np.full(200, 1 / 200), part.law, part.jumps[inside])
    terms = part.per_training_row(A)[:, 0]
    for r in (3, 50, 200, 311):
        kept = np.delete(np.arange(200, 600), r)
        C = cs.Censoring(cs.KaplanMeier()).fit(None, y[kept]).predict_distribution()
        moved = cs.crps(y[test], F, C, horizon=1.8).mean() - losses.mean()
        assert moved == pytest.approx(-terms[r], abs=0.03 * np.abs(terms).max())


def test_strata_have_a_part_each():
    x, y = sample(300, 4)
    x = np.column_stack([x[:, 0], x[:, 1] > 0])
    law = law_of_c(cs.Censoring(cs.KaplanMeier(stratify=1)), y[:100], x[:100], Rows(x[100:], y[100:]))
    assert len(law.parts) == 2
    rows = np.sort(np.concatenate([part.rows for part in law.parts]))
    np.testing.assert_array_equal(rows, np.arange(100))
    for value, part in enumerate(law.parts):
        assert (x[:100][part.rows, 1] == value).all()
        assert (x[100:][part.train_rows, 1] == value).all()


def test_out_of_fold_laws_have_a_part_per_fold():
    x, y = sample(300, 5)
    law = law_of_c(cs.Censoring(cs.KaplanMeier(), cv=4), y, x, None)
    assert law.in_sample
    assert len(law.parts) == 4
    for part in law.parts:
        assert not np.intersect1d(part.rows, part.train_rows).size
        assert len(part.rows) + len(part.train_rows) == 300


def test_a_given_kaplan_meier_curve_of_the_training_rows_is_recognised():
    x, y = sample(300, 6)
    train = Rows(x[100:], y[100:])
    C = cs.Censoring(cs.KaplanMeier()).fit(None, train.y).predict_distribution()
    recognised, other = (
        law_of_c(C, y[:100], None, train),
        law_of_c(cs.Uniform(0.0, 2.5), y[:100], None, train),
    )
    assert recognised.estimated
    assert len(recognised.parts) == 1
    assert not other.estimated
    assert "taken as known" in other.description


def test_training_rows_that_are_the_scored_rows_are_noticed():
    x, y = sample(100, 7)
    copy = cs.RightCensored(y.time.copy(), y.event.copy())
    assert law_of_c(cs.Censoring(cs.KaplanMeier()), y, x, Rows(x, copy)).in_sample
    assert not law_of_c(cs.Censoring(cs.KaplanMeier()), y, x, Rows(x[:50], y[:50])).in_sample


def test_support_ends_where_training_rows_end():
    x, y = sample(200, 8)
    train = Rows(x[:100], y[:100])
    kaplan_meier = law_of_c(cs.Censoring(cs.KaplanMeier()), y[100:], x[100:], train)
    weibull = law_of_c(cs.Censoring(cs.WeibullRegression()), y[100:], x[100:], train)
    last = y[:100].time.max()
    assert kaplan_meier.support() == pytest.approx(last)
    assert weibull.support() == last
    assert law_of_c(cs.Uniform(0.0, 1.5), y[100:], None, train).support() == 1.5
