"""Means of parts: a toy producer, one hospital after the other by a model of the others, and a jackknife."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.inference.censoring_influence import Part, parts_of
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.pooling import ScoredPart, average, join
from censcore.evaluation.inference.units import Units
from censcore.evaluation.measures.case import Case, cells_of
from censcore.evaluation.measures.case_scores import CASE_SCORES

HOSPITALS = 20
SCORES = {name: CASE_SCORES[name] for name in ("brier_score:ipcw", "crps")}


def case_of(y: cs.RightCensored, F: cs.Distribution, C: cs.Distribution) -> Case:
    return Case(y, F, C, 3.0, np.array([1.0, 2.0]), np.array([0.5]))


class Hospitals:
    """Subjects of hospitals with random effects, and a forecast of each by the model of the others."""

    def __init__(self, sizes: np.ndarray) -> None:
        rng = np.random.default_rng(3)
        self.label = np.repeat(np.arange(HOSPITALS), sizes)
        n, effect = len(self.label), rng.normal(0, 0.3, HOSPITALS)[self.label]
        x = rng.normal(size=(n, 2))
        T = 2 * np.exp(0.5 * x[:, 0] + effect) * rng.weibull(1.3, n)
        c = rng.exponential(1 / 0.3, n)
        self.y = cs.RightCensored(np.minimum(T, c), c >= T)
        self.rows = [np.nonzero(self.label == h)[0] for h in range(HOSPITALS)]
        outside = [np.nonzero(self.label != h)[0] for h in range(HOSPITALS)]
        models = [cs.CoxRegression().fit(x[train], self.y[train]) for train in outside]
        self.forecasts = [
            model.predict_distribution(x[test]) for model, test in zip(models, self.rows, strict=True)
        ]

    def curve(self, without: int | None = None) -> cs.Censoring:
        """The Kaplan-Meier curve of C, of all hospitals but one."""
        keep = np.nonzero(self.label != without)[0] if without is not None else np.arange(len(self.y))
        return cs.Censoring(cs.KaplanMeier()).fit(None, self.y[keep])

    def parts(self, C: cs.Distribution) -> Iterator[ScoredPart]:
        """One part for each hospital; cells of derivatives are those of all subjects."""
        edges = (cells_of(np.asarray(self.y.time), 3.0),)
        for rows, F in zip(self.rows, self.forecasts, strict=True):
            case = replace(case_of(self.y[rows], F, C), edges=edges)
            yield ScoredPart(case, {name: score.losses(case) for name, score in SCORES.items()}, rows)

    def estimates(self, known: bool) -> dict[tuple[int, str], Estimate]:
        """Means by pooling of all parts."""
        n, fitted = len(self.y), self.curve()
        C = cs.Exponential(0.3) if known else fitted.predict_distribution()
        of_C: list[Part] = [] if known else parts_of(fitted, None, np.arange(n), np.arange(n))
        units = Units(self.label, self.label[: 0 if known else n], HOSPITALS)
        return join(list(self.parts(C)), SCORES, np.full((n, 1), 1 / n), of_C, units)

    def jackknife(self, known: bool) -> dict[str, np.ndarray]:
        """Standard errors from means without one hospital after the other, C fitted again."""
        means: dict[str, list[np.ndarray]] = {name: [] for name in SCORES}
        for left in range(HOSPITALS):
            C = cs.Exponential(0.3) if known else self.curve(left).predict_distribution()
            kept = [part for h, part in enumerate(self.parts(C)) if h != left]
            for name, each in means.items():
                each.append(np.concatenate([part.losses[name] for part in kept]).mean(axis=0))
        g = HOSPITALS
        return {name: np.sqrt((g - 1) * np.var(each, axis=0)) for name, each in means.items()}


@pytest.mark.parametrize(
    ("sizes", "known", "tolerance"),
    [
        (np.full(HOSPITALS, 40), True, 1e-10),
        (np.full(HOSPITALS, 40), False, 0.03),
        (np.random.default_rng(8).integers(20, 60, HOSPITALS), True, 0.03),
        (np.random.default_rng(8).integers(20, 60, HOSPITALS), False, 0.03),
    ],
    ids=["equal, known C", "equal, fitted C", "unequal, known C", "unequal, fitted C"],
)
def test_errors_of_pooled_hospitals_are_those_of_the_jackknife(sizes, known, tolerance):
    """Exact for hospitals of one size and a known C: the factor g / (g - 1) is then the jackknife's."""
    hospitals = Hospitals(sizes)
    expected = hospitals.jackknife(known)
    for (_, name), found in hospitals.estimates(known).items():
        np.testing.assert_allclose(found.standard_error, expected[name], rtol=tolerance)


@pytest.mark.parametrize("batches", [2, 7])
def test_parts_of_any_size_give_the_means_of_all_subjects_at_once(batches):
    """Also with clusters that several parts share, subsets with other denominators, and a fitted C."""
    rng = np.random.default_rng(6)
    T, c = rng.weibull(1.3, 90), rng.exponential(2.0, 90)
    y, F = cs.RightCensored(np.minimum(T, c), c >= T), cs.Weibull(1.2, rng.uniform(0.7, 1.3, 90))
    fitted, everyone = cs.Censoring(cs.KaplanMeier()).fit(None, y), np.arange(90)
    weight = np.column_stack([np.full(90, 1 / 90), np.where(rng.random(90) < 0.4, rng.random(90), 0.0)])
    label = rng.integers(0, 12, 90)
    edges = (cells_of(np.asarray(y.time), 3.0),)
    whole = replace(case_of(y, F, fitted.predict_distribution()), edges=edges)

    def part(rows):
        case = whole.take(rows)
        return ScoredPart(case, {name: score.losses(case) for name, score in SCORES.items()}, rows)

    given = SCORES, weight, parts_of(fitted, None, everyone, everyone), Units(label, label, 12)
    at_once = join([part(everyone)], *given)
    found = join([part(rows) for rows in np.array_split(rng.permutation(90), batches)], *given)
    assert found.keys() == at_once.keys()
    for key, expected in at_once.items():
        np.testing.assert_allclose(found[key].value, expected.value, rtol=1e-12)
        np.testing.assert_allclose(found[key].influence, expected.influence, rtol=0, atol=1e-12)
        assert found[key].size == expected.size


def test_averages_add_contributions_by_unit_within_blocks():
    """Against the sum over a dense axis of units, also of units that became one and of a share by column."""
    rng = np.random.default_rng(4)
    draws, values = rng.normal(size=(3, 2)), rng.normal(size=(2, 2))
    numbers, psi = [np.array([0, 2, 5]), np.array([1, 2])], [rng.normal(size=(3, 2)), rng.normal(size=(2, 2))]
    one, other = (Estimate(v, p, rows={"units": u}) for v, p, u in zip(values, psi, numbers, strict=True))
    shares = [np.array([0.2, 0.7]), np.array([0.8, 0.3])]
    found = average([one.with_contributions(draws, "draws"), other], shares)
    dense = np.zeros((6, 2))
    dense[numbers[0]] += shares[0] * psi[0]
    dense[numbers[1]] += shares[1] * psi[1]
    np.testing.assert_allclose(found.value, shares[0] * values[0] + shares[1] * values[1])
    np.testing.assert_array_equal(found.rows["units"], [0, 1, 2, 5])
    np.testing.assert_allclose(found.blocks["units"], dense[[0, 1, 2, 5]])
    np.testing.assert_allclose(found.blocks["draws"], shares[0] * draws)
    together = average([one.renumbered(np.array([3, 3, 3, 3, 3, 3])), other], [1.0, 0.0])
    np.testing.assert_allclose(together.influence[together.rows["units"] == 3][0], psi[0].sum(axis=0))
    with pytest.raises(ValueError, match="zip"):  # of which nobody knows whom its contributions are of
        average([Estimate(values[0], psi[0]), other], shares)


def test_scored_subjects_of_weight_zero_who_train_move_the_censoring_distribution():
    """Errors are those of a comparison from which these subjects are left out, trained on the same sample."""
    rng, n = np.random.default_rng(3), 200
    x = rng.normal(size=(n, 1))
    T, c = 2 * rng.weibull(1.4, n) * np.exp(0.5 * x[:, 0]), rng.uniform(0, 5, n)
    y, F = cs.RightCensored(np.minimum(T, c), c >= T), cs.Weibull(1.4, 2 * np.exp(0.4 * x[:, 0]))
    weight = (rng.random(n) < 0.5).astype(float)
    some, train = np.nonzero(weight)[0], cs.Sample(x, y, weight=np.ones(n))
    asked = {"scores": "brier_score:ipcw", "times": [1.0, 2.0], "horizon": 3.0, "reference": None}
    every, left = (
        cs.compare({"m": F.take(who)}, y[who], cs.Censoring(cs.KaplanMeier()), X=x[who], train=train,
                   sample_weight=w, discrimination=False, **asked)
        for who, w in ((np.arange(n), weight), (some, None))
    )  # fmt: skip
    for column in ("mean", "standard_error", "low", "high"):
        np.testing.assert_allclose(every.frame()[column], left.frame()[column], rtol=1e-10)
