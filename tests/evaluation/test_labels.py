"""Subjects are matched by position; labels of pandas that contradict it are an error."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.evaluation import concordance_estimate, dynamic_auc_estimate
from censcore.exceptions import InvalidInputError

N = 60
OPTIONS = {"scores": "crps", "horizon": 2.0, "discrimination": False, "reference": None}
ORDER = np.arange(N)[::-1]


def data():
    """Covariates, outcome and survival curves (times x subjects), all with one index."""
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=N), [f"patient {i}" for i in range(N)]
    T, c = rng.weibull(1.5, N) * np.exp(0.8 * x), rng.uniform(0.5, 4.0, N)
    y = pd.DataFrame({"time": np.minimum(T, c), "event": c >= T}, index=labels)
    t = np.arange(0.25, 4.0, 0.25)
    curves = pd.DataFrame(cs.Weibull(1.5, np.exp(0.8 * x)).sf(t[None, :]).T, index=t, columns=labels)
    return pd.DataFrame({"x": x}, index=labels), y, curves


def mean(curves, y, **more):
    found = cs.compare({"curves": curves}, y, cs.Censoring(cs.KaplanMeier()), **OPTIONS, **more)
    return found.frame()["mean"].iloc[0]


def test_labels_in_another_order_are_an_error():
    X, y, curves = data()
    weight, site = pd.Series(np.ones(N), X.index), pd.Series(np.arange(N) % 2, X.index, name="site")
    assert mean(curves, y, X=X, sample_weight=weight, groups=site.index.to_series(), by=site) > 0
    for wrong in (
        {"curves": curves.iloc[:, ORDER]}, {"y": y.iloc[ORDER]}, {"X": X.iloc[ORDER]},
        {"by": site.iloc[ORDER]}, {"sample_weight": weight.iloc[ORDER]},
        {"groups": site.index.to_series().iloc[ORDER]},
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match="in another order, expected the same order"):
            mean(**{"curves": curves, "y": y, "X": X} | wrong)
    with pytest.raises(InvalidInputError, match="X: got the labels"):
        cs.cross_validate({"km": cs.KaplanMeier()}, X.iloc[ORDER], y, cv=3, **OPTIONS)
    with pytest.raises(InvalidInputError, match=r"event\.loc\[time\.index\]"):
        cs.RightCensored(y.time, y.event.iloc[ORDER])
    with pytest.raises(InvalidInputError, match=r"cause\.loc\[time\.index\]"):
        cs.CompetingRisks(y.time, y.event.astype(int).iloc[ORDER])


def test_other_labels_and_none_are_matched_by_position():
    X, y, curves = data()
    expected = mean(curves, y, X=X)
    assert mean(curves, y.reset_index(drop=True), X=X) == expected
    assert mean(curves.set_axis([f"forecast {i}" for i in range(N)], axis=1), y, X=X.to_numpy()) == expected
    shuffled = y.set_axis(ORDER)  # numbers that are no default index, beside one that is
    assert mean(curves.set_axis(range(N), axis=1), shuffled, X=X.reset_index(drop=True)) == expected


def test_every_fit_refuses_labels_in_another_order():
    X, y, _ = data()
    weight, site = pd.Series(np.ones(N), X.index), X.index.to_series()
    outcome = cs.RightCensored(y.time, y.event)  # keeps the labels
    models = [
        cs.CoxRegression(), cs.WeibullRegression(), cs.KaplanMeier(), cs.BoostedHazards(max_iter=2),
        cs.Censoring(cs.CoxRegression()), cs.Stacking([("cox", cs.CoxRegression())]),
        cs.MixtureDensityNetwork(), cs.WithCensoring(cs.CoxRegression()),
    ]  # fmt: skip
    for model in models:
        for wrong in (
            {"X": X.iloc[ORDER]}, {"y": y.iloc[ORDER]}, {"y": outcome.take(ORDER)},
            {"sample_weight": weight.iloc[ORDER]},
        ):  # fmt: skip
            given = {"X": X, "y": y, "sample_weight": weight} | wrong
            with pytest.raises(InvalidInputError, match="in another order, expected the same order"):
                model.fit(given["X"], given["y"], given["sample_weight"])
            with pytest.raises(InvalidInputError, match="in another order, expected the same order"):
                model.fit(**given)
    with pytest.raises(InvalidInputError, match="groups: got the labels"):
        models[5].fit(X, y, groups=site.iloc[ORDER])
    cox = cs.CoxRegression().fit(X, y)
    assert cox.coef_[0] == cs.CoxRegression().fit(X.to_numpy(), outcome).coef_[0]
    assert cox.robust_covariance(site).shape == (1, 1)
    for groups in (site.iloc[ORDER], site.iloc[ORDER].rename("anything")):
        with pytest.raises(InvalidInputError, match=r"groups.loc\[X.index\]"):
            cox.robust_covariance(groups)
        with pytest.raises(InvalidInputError, match="groups: got the labels"):
            cox.summary(groups=groups)
    assert "_row_labels" not in cox.__getstate__()


def test_labels_stay_with_outcomes_and_distributions():
    X, y, curves = data()
    table = curves.T  # subjects x times
    F, C = cs.Step(curves.index.to_numpy(), sf=table), cs.Uniform(0.0, 9.0)
    outcome = cs.RightCensored(y.time, y.event)
    assert list(outcome[5:8].row_labels) == list(F.take(slice(5, 8)).row_labels) == list(X.index[5:8])
    assert outcome.concat([outcome, outcome[:3]]).row_labels is None
    losses, plain = cs.crps(outcome, F, C), cs.Step(curves.index, sf=table.to_numpy())
    np.testing.assert_allclose(losses, cs.crps(outcome, plain, C), rtol=1e-12)
    np.testing.assert_allclose(cs.crps(outcome[ORDER], F.take(ORDER), C), losses[ORDER], rtol=1e-12)
    scale = pd.Series(np.exp(X.x), X.index)
    causes = cs.CompetingRisks(y.time, y.event.astype(int))
    for wrong in (
        lambda: cs.crps(y.iloc[ORDER], F, C),
        lambda: cs.crps(outcome[ORDER], F, C),
        lambda: cs.crps(causes.cause(1), F.take(ORDER), C),
        lambda: cs.brier_score(outcome, cs.Weibull(1.5, scale.iloc[ORDER]), C, 1.0),
        lambda: cs.Weibull(pd.Series(np.ones(N), X.index), scale.iloc[ORDER]),
        lambda: mean(curves, y, by={"site": X.x.iloc[ORDER] > 0}),
        lambda: cs.compare({"step": F.take(ORDER)}, y, C, **OPTIONS),
        lambda: cs.compare({"cox": (cs.CoxRegression().fit(X, y), X.iloc[ORDER])}, y, C, **OPTIONS),
        lambda: cs.cross_validate({"cox": (cs.CoxRegression(), X.iloc[ORDER])}, X, y, cv=3, **OPTIONS),
        lambda: concordance_estimate(y, X.x, groups=X.x.iloc[ORDER]),
        lambda: dynamic_auc_estimate(y, X.x.iloc[ORDER], C, [1.0]),
        lambda: cs.censoring_diagnostic(y, C, X.iloc[ORDER]),
        lambda: cs.mean_loss(pd.Series(np.ones(N), X.index), groups=X.x.iloc[ORDER]),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match="in another order, expected the same order"):
            wrong()
