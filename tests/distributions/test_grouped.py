"""Distributions of groups: each row by itself, rows in order, nothing stored per row."""

from __future__ import annotations

import numpy as np
import pytest

from censcore.distributions import Censored, Exponential, Grouped, PointMass, Step
from censcore.distributions.univariate.at_one_time import AtOneTime
from censcore.exceptions import InvalidInputError, InvalidTypeError

SHORT = Step([1.0, 3.0], sf=[0.7, 0.1])
LONG = Step([0.5, 1.0, 2.0, 4.0], sf=[0.9, 0.6, 0.3, 0.0])
GROUP = np.array([1, 0, 1, 1, 0])


@pytest.fixture
def distribution():
    return Grouped([SHORT, LONG], GROUP)


def each_row(word, *args):
    """The word asked of every row's own distribution."""
    return np.concatenate(
        [
            getattr((SHORT, LONG)[g], word)(*(np.asarray(arg)[i : i + 1] for arg in args))
            for i, g in enumerate(GROUP)
        ]
    )


T = np.array([0.2, 1.0, 2.0, 5.0, 3.0])
P = np.array([0.1, 0.3, 0.5, 0.95, 1.0])


@pytest.mark.parametrize("word", ["sf", "sf_left", "cdf", "logsf"])
@pytest.mark.parametrize("wide", [False, True])
def test_every_row_answers_by_its_own_distribution(distribution, word, wide):
    t = np.stack([T, T + 0.5], axis=1) if wide else T
    np.testing.assert_array_equal(getattr(distribution, word)(t), each_row(word, t))


def test_quantiles_integrals_and_mass(distribution):
    np.testing.assert_array_equal(distribution.icdf(P), each_row("icdf", P))
    np.testing.assert_array_equal(distribution.isf(P), each_row("isf", P))
    np.testing.assert_array_equal(distribution.icdf_beyond(T, P), each_row("icdf_beyond", T, P))
    np.testing.assert_allclose(distribution.integrated_sf(T / 2, T), each_row("integrated_sf", T / 2, T))
    np.testing.assert_array_equal(distribution.mass_at_infinity(), np.where(GROUP == 0, 0.1, 0.0))
    np.testing.assert_array_equal(np.isinf(distribution.mean()), GROUP == 0)


def test_one_grid_for_all_rows(distribution):
    rows = np.array([[0.7, 0.7], [0.6, 0.3]])
    np.testing.assert_array_equal(distribution.sf(np.array([[1.0, 2.0]])), rows[GROUP])


def test_steps_and_breaks_serve_every_row(distribution):
    times, sf = distribution.steps()
    assert times.shape == sf.shape == (5, 4)
    assert (np.diff(times, axis=1) >= 0).all()
    np.testing.assert_array_equal(distribution.sf(times), sf)
    assert distribution.form == "steps"
    breaks = distribution.breaks()
    assert breaks.shape[0] == 1
    assert set(breaks[0]) >= set(SHORT._times[0]) | set(LONG._times[0])


@pytest.mark.parametrize("rows", [[3, 1], slice(1, 4), np.array([True, False, False, True, True]), 2])
def test_take(distribution, rows):
    picked = np.arange(5)[rows if not isinstance(rows, int) else [rows]]
    np.testing.assert_array_equal(distribution[rows].sf(2.0), distribution.sf(2.0)[picked])


def test_distributions_with_one_row_each_keep_their_order():
    distribution = Grouped([Exponential(rate=[0.5, 0.25]), Exponential(rate=[1.0, 2.0, 4.0])], GROUP)
    rates = np.array([1.0, 0.5, 2.0, 4.0, 0.25])
    np.testing.assert_allclose(distribution.mean(), 1 / rates)
    np.testing.assert_allclose(distribution.take([4, 0]).mean(), 1 / rates[[4, 0]])
    np.testing.assert_allclose(distribution.take([4, 0]).take([1]).mean(), 1 / rates[:1])
    np.testing.assert_allclose(distribution.logpdf(1.0), np.log(rates) - rates)
    assert distribution.has_density
    assert distribution.form == "smooth"


def test_mixed_kinds(distribution):
    mixed = Grouped([SHORT, PointMass(2.0), Exponential(1.0)], [2, 1, 0])
    np.testing.assert_allclose(mixed.sf_left(2.0), [np.exp(-2), 1.0, 0.7])
    assert not mixed.has_density
    assert mixed.breaks().shape == (1, 3)
    assert Grouped([Exponential(1.0), Exponential(2.0)], [0, 1]).breaks() is None


def test_censored(distribution):
    cut = distribution.censor_at([1.5, 1.5, 0.5, 9.0, 9.0])
    assert isinstance(cut, Censored)
    np.testing.assert_array_equal(cut.sf(T), np.where(T < [1.5, 1.5, 0.5, 9.0, 9.0], distribution.sf(T), 0))
    times, sf = cut.steps()
    np.testing.assert_array_equal(cut.sf(times), sf)


def test_censored_at_one_time_stays_grouped(distribution):
    cut, reference = distribution.censor_at(1.5), Censored(distribution, 1.5)
    assert isinstance(cut, Grouped)
    np.testing.assert_array_equal(cut.sf(T), reference.sf(T))
    np.testing.assert_allclose(cut.mean(), reference.mean())
    np.testing.assert_allclose(cut.take([3, 1]).mean(), reference.mean()[[3, 1]])


def test_samples(distribution):
    draws = distribution.sample(20_000, seed=0)
    np.testing.assert_allclose((draws > 1.0).mean(axis=1), distribution.sf(1.0), atol=0.015)


def test_what_is_known_at_one_time_in_some_groups_is_known_there():
    known = AtOneTime(2.0, sf=[0.8, 0.6])
    assert Grouped([known, SHORT], [0, 1, 0]).only_time == 2.0
    assert Grouped([SHORT, known], [0, 1, 1]).sf(2.0).tolist() == [0.7, 0.8, 0.6]
    assert Grouped([SHORT, LONG], [0, 1]).only_time is None


@pytest.mark.parametrize(
    ("distributions", "group", "message"),
    [
        ([SHORT, LONG], [0, 2], "number the 2 distributions from 0; got 0 to 2"),
        ([SHORT], [-1, 0], "got -1 to 0"),
        ([SHORT], [], "n >= 1"),
        ([Exponential([1.0, 2.0])], [0, 0, 0], "Group 0 has 3 subjects, but its distribution has 2"),
    ],
)
def test_bad_groups(distributions, group, message):
    with pytest.raises(InvalidInputError, match=message):
        Grouped(distributions, np.array(group, dtype=int))


def test_torch(distribution):
    torch = pytest.importorskip("torch")
    twin = distribution.like(torch.zeros(1, dtype=torch.float64))
    np.testing.assert_array_equal(twin.sf(torch.tensor(T)).numpy(), distribution.sf(T))
    np.testing.assert_array_equal(
        twin.take(torch.tensor([3, 1])).sf(2.0).numpy(), distribution.sf(2.0)[[3, 1]]
    )
    rate = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    both = Grouped([Exponential(rate[:1]), Exponential(rate[1:])], [1, 0, 1])
    both.mean().sum().backward()
    torch.testing.assert_close(rate.grad, torch.tensor([-1.0, -0.5], dtype=torch.float64))
    with pytest.raises(InvalidTypeError, match="different libraries"):
        Grouped([Exponential(rate.detach()[:1]), Step(np.ones(1), sf=np.zeros(1))], [0, 1])
