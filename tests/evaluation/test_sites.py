"""Several sites: random effects against published numbers, and what is said of sites that do not count."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import norm
from tests.evaluation.validations import T0, drawn

import censcore as cs
from censcore.evaluation.inference.meta_analysis import random_effects
from censcore.exceptions import InvalidInputError, InvalidTypeError

#: Trials of the BCG vaccine (Colditz et al. 1994): tuberculosis, none; the same of controls.
BCG = np.array([
    [4, 119, 11, 128], [6, 300, 29, 274], [3, 228, 11, 209], [62, 13536, 248, 12619], [33, 5036, 47, 5761],
    [180, 1361, 372, 1079], [8, 2537, 10, 619], [505, 87886, 499, 87892], [29, 7470, 45, 7232],
    [17, 1699, 65, 1600], [186, 50448, 141, 27197], [5, 2493, 3, 2338], [27, 16886, 29, 17825],
])  # fmt: skip


def test_random_effects_are_those_of_metafor():
    """REML of dat.bcg, as Viechtbauer's documentation prints it: tau² 0.3132, -0.7145 with error 0.1798."""
    a, b, c, d = BCG.T
    theta = np.log(a / (a + b)) - np.log(c / (c + d))
    v = 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)
    found = random_effects(theta, np.sqrt(v))
    assert found.tau**2 == pytest.approx(0.3132, abs=5e-5)
    assert found.value == pytest.approx(-0.7145, abs=5e-5)
    wald = 1 / np.sqrt((1 / (v + found.tau**2)).sum())
    assert wald == pytest.approx(0.1798, abs=5e-5)
    assert found.standard_error >= wald
    assert found.prediction_df == 11
    assert found.prediction_low < found.low < found.value < found.high < found.prediction_high


def test_equal_sites_are_never_pooled_to_less_than_wald():
    theta, error = np.full(4, 0.3), np.full(4, 0.1)
    found = random_effects(theta, error)
    assert found.tau == 0
    assert found.standard_error == pytest.approx(0.05)
    assert found.high - found.value > norm.ppf(0.975) * 0.05


def test_the_restricted_likelihood_is_at_its_top():
    rng = np.random.default_rng(0)
    theta, v = rng.normal(0, 0.4, 8), rng.uniform(0.01, 0.05, 8)

    def minus(tau2: float) -> float:
        w = 1 / (v + tau2)
        mu = w @ theta / w.sum()
        return float(np.log(v + tau2).sum() + np.log(w.sum()) + w @ (theta - mu) ** 2)

    best = random_effects(theta, np.sqrt(v)).tau ** 2
    assert all(minus(best) <= minus(other) + 1e-9 for other in np.linspace(0, 2, 4001))


@pytest.fixture(scope="module")
def found() -> cs.Validation:
    x, y = drawn(400, 40)
    site = np.array(["Basel", "Lyon", "Oslo", "Rome"])[np.arange(400) % 4]
    return cs.validate(cs.Exponential(np.exp(x)), y, time=T0, sites=site, thresholds=[0.5])


def test_each_site_is_validated_by_itself(found):
    lines = found.sites.frame()
    x, y = drawn(400, 40)
    rows = np.nonzero(np.arange(400) % 4 == 1)[0]
    alone = cs.validate(cs.Exponential(np.exp(x[rows])), y[rows], time=T0, thresholds=[0.5])
    for name in ("O/E", "AUC", "Brier", "net benefit at 0.5"):
        value = lines[(lines.site == "Lyon") & (lines.measure == name)].iloc[0]
        for number in ("value", "standard_error", "low", "high"):
            assert value[number] == pytest.approx(alone.line(name)[number], rel=1e-9, nan_ok=True)
    pooled = set(lines[lines.site == "pooled"].measure)
    assert {"O/E", "AUC", "calibration slope"} <= pooled
    assert not any("net benefit" in name for name in pooled)
    assert "4 sites" in found.sites.notes[0]


def test_summaries_hold_no_subject_and_pool_to_the_same(found):
    x, y = drawn(400, 40)
    documents = []
    for j, name in enumerate(["Basel", "Lyon", "Oslo", "Rome"]):
        rows = np.nonzero(np.arange(400) % 4 == j)[0]
        alone = cs.validate(cs.Exponential(np.exp(x[rows])), y[rows], time=T0, thresholds=[0.5])
        documents.append(alone.summary(name))
    document = json.loads(documents[0])
    assert set(document["measures"][0]) >= {"measure", "value", "standard_error"}
    assert "influence" not in documents[0]
    pool = cs.pool_sites(documents)
    assert pool.frame().equals(found.sites.frame().assign(model=pool.frame().model))


def test_a_site_that_is_followed_too_briefly_is_named():
    x, y = drawn(400, 41)
    site = np.array(["Basel", "Lyon", "Oslo", "short"])[np.arange(400) % 4]
    cut = cs.RightCensored(
        np.where(site == "short", np.minimum(y.time, 0.6), y.time),
        np.where(site == "short", y.event & (y.time <= 0.6), y.event),
    )
    pool = cs.validate(cs.Exponential(np.exp(x)), cut, time=T0, sites=site).sites
    assert any("Follow-up ends before 1 at short" in note for note in pool.notes)
    lines = pool.frame()
    assert lines[(lines.site == "pooled") & (lines.measure == "O/E")]["sites"].item() == 3
    assert "short" in repr(pool)


def test_two_sites_are_not_pooled():
    x, y = drawn(200, 42)
    pool = cs.validate(cs.Exponential(np.exp(x)), y, time=T0, sites=np.arange(200) % 2).sites
    assert "pooled" not in set(pool.frame().site)
    assert "nothing is pooled below 3" in pool.notes[-1]


def test_other_documents_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="another document"):
        cs.pool_sites(['{"format": "something"}'])
    with pytest.raises(InvalidInputError, match="there is no file"):
        cs.pool_sites([tmp_path / "missing.json"])
    with pytest.raises(InvalidTypeError, match="expected validations or paths"):
        cs.pool_sites(3)


def test_sites_of_different_times_are_refused():
    x, y = drawn(200, 43)
    found = [cs.validate(cs.Exponential(np.exp(x)), y, time=t) for t in (0.5, 1.0)]
    with pytest.raises(InvalidInputError, match="expected one time for all sites"):
        cs.pool_sites({"a": found[0], "b": found[1]})
