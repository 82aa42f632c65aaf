"""Every distribution inside every other: each subject keeps its distribution, whoever is chosen with it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contracts.distributions import UNIVARIATE
from tests.contracts.rules import check_distribution
from tests.distributions.compositions import CURVE, SMOOTH, N, Tree, compositions

from censcore.distributions import (
    Censored,
    Ensemble,
    Exponential,
    GivenSurvival,
    Grouped,
    Mixture,
    PointMass,
    Weibull,
)
from censcore.exceptions import InvalidInputError

LEVELS = np.array([0.1, 0.4, 0.8])
TIMES = np.array([[0.4, 1.0, 2.0], [0.9, 0.95, 3.0], [0.1, 1.7, 2.6], [0.5, 2.0, 7.0]])
ROWS = np.array([2, 0, -1, 1, 0])  # permuted, repeated, negative
OTHER_CHOICES = {
    "slice": slice(1, 3),
    "backwards": slice(None, None, -1),
    "mask": np.array([True, False, True, True]),
    "one": -1,
}


def answers(distribution, t):
    """What tells one subject's distribution from another's: one row per subject, asked at times (n, 3)."""
    if distribution.k == 1:
        found = [distribution.sf(t), distribution.sf_left(t), distribution.cdf(t), distribution.excludes(t)]
        found += [
            distribution.integrated_sf(t[:, 0], t[:, 1])[:, None],
            distribution.icdf_beyond(t[:, 0], LEVELS[None, :]),
        ]
        found += [np.broadcast_to(distribution.mass_at_infinity()[:, None], (len(t), 1))]
        return np.concatenate([np.asarray(part, dtype=float) for part in found], axis=1)
    parts = [distribution.marginal(j) for j in range(distribution.k)] + [distribution.first()]
    found = [distribution.sf(t[:, :2])[:, None], distribution.logsf(t[:, 1:])[:, None]]
    found += [answer for part in parts for answer in (part.sf(t), part.sf_left(t), part.excludes(t))]
    return np.concatenate([np.asarray(part, dtype=float) for part in found], axis=1)


def expect_each_subject(tree: Tree):
    whole = tree.whole()
    expected = np.concatenate([answers(tree.alone(i), TIMES[i : i + 1]) for i in range(N)])
    np.testing.assert_allclose(answers(whole, TIMES), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(answers(whole.take(ROWS), TIMES[ROWS]), expected[ROWS], rtol=1e-9, atol=1e-12)
    for name, rows in OTHER_CHOICES.items():
        chosen = np.arange(N)[[rows] if isinstance(rows, int) else rows]
        t = TIMES[chosen, :1] if whole.k == 1 else TIMES[chosen, :2]
        got = np.reshape(whole.take(rows).sf(t), -1)
        np.testing.assert_allclose(got, expected[chosen, 0], rtol=1e-9, atol=1e-12, err_msg=name)


def expect_each_subject_in(name: str, chosen: slice) -> None:
    distribution = UNIVARIATE[name]()
    if "float32" in name:
        pytest.skip("parts of one precision only: see test_base")
    for tree in list(compositions(distribution).values())[chosen]:
        expect_each_subject(tree)


@pytest.mark.parametrize(("i", "name"), list(enumerate(UNIVARIATE)))
def test_every_subject_keeps_its_distribution(i, name):
    """Each distribution in every fourth composition, from the first, second, third or fourth one on."""
    expect_each_subject_in(name, slice(i % 4, None, 4))


@pytest.mark.slow
@pytest.mark.parametrize("name", UNIVARIATE)
def test_every_subject_keeps_its_distribution_in_every_composition(name):
    expect_each_subject_in(name, slice(None))


@pytest.mark.parametrize("name", compositions(Weibull(1.0, 1.0)))
def test_compositions_keep_the_contract(name):
    distribution = Weibull([0.8, 1.2, 2.0, 3.0], [2.0, 1.0, 1.5, 3.0])
    check_distribution(compositions(distribution)[name].whole())


def test_torch():
    torch = pytest.importorskip("torch")
    like = torch.zeros(1, dtype=torch.float64)
    for name, tree in compositions(Weibull([0.8, 1.2, 2.0, 3.0], 2.0)).items():
        whole = tree.whole()
        twin, part = whole.like(like), (whole if whole.k == 1 else whole.first())
        for rows in (
            np.array([2, 0, 3, 1]),
            torch.tensor([3, 0, 0]),
            torch.tensor([True, False, True, True]),
        ):
            some = twin.take(rows)
            got = (some if some.k == 1 else some.first()).sf(torch.tensor([[0.5, 1.5]], dtype=torch.float64))
            expected = part.sf([[0.5, 1.5]])[np.asarray(rows)]
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12, err_msg=name)


def test_gradients_follow_the_chosen_subjects():
    torch = pytest.importorskip("torch")
    scale = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    distribution = Mixture(
        [Grouped([Weibull(1.0, scale[:2]), Weibull(1.0, scale[2:])], [0, 1, 0]), Exponential(1.0)], [0.5, 0.5]
    )
    distribution.take([2, 2]).mean().sum().backward()
    torch.testing.assert_close(scale.grad, torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64))


def test_a_distribution_of_one_subject_serves_all():
    """Also where that subject was chosen from groups."""
    one = Grouped([Exponential(1.0), PointMass([2.0, 3.0])], [1, 0, 1]).take([2])
    assert one.sf(np.array([[1.0], [2.5], [4.0]])).tolist() == [[1.0], [1.0], [0.0]]
    assert one.take([0, 0, 0]).shape == (1,)
    assert len(list(one)) == 1
    both = Mixture([one, SMOOTH.whole()], [0.5, 0.5])
    np.testing.assert_allclose(both.sf(2.5), 0.5 + 0.5 * SMOOTH.whole().sf(2.5))
    np.testing.assert_allclose(both.take([3, 1]).sf(2.5), both.sf(2.5)[[3, 1]])


def test_wrong_choices_are_refused():
    distribution = Mixture(
        [Grouped([CURVE.whole(), Exponential(1.0)], [0, 1, 0]), Exponential([1.0, 2.0, 3.0])], [0.5, 0.5]
    )
    with pytest.raises(IndexError):
        distribution.take([3])
    with pytest.raises(IndexError):
        distribution.take(np.array([True, False]))
    with pytest.raises(InvalidInputError, match="one event time"):
        Grouped([Ensemble(np.ones((1, 4, 2)))], [0, 0])


def test_a_joint_ensemble_is_no_distribution_of_one_time():
    joint = Ensemble(np.ones((3, 5, 2)))
    for make in (lambda: Censored(joint, 2.0), lambda: GivenSurvival(joint, 0.5)):
        with pytest.raises(InvalidInputError, match="one event time; got one of 2"):
            make()
