"""Distributions of time and cause: closed forms, matrices, samples, repairs and errors."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError, UnsupportedOutcomeError

GRID = [1.0, 2.0, 4.0]
CIF = np.array([[[0.1, 0.3, 0.4], [0.2, 0.2, 0.5]], [[0.0, 0.1, 0.1], [0.3, 0.3, 0.35]]])


def test_weibull_hazards_of_one_shape_have_a_closed_form():
    F = cs.CauseSpecificHazards([cs.Weibull(1.7, [1.0, 3.0]), cs.Weibull(1.7, 2.0)])
    t = np.array([1e-6, 0.01, 0.5, 2.0, 9.0])
    H1, H2 = (t / np.array([[1.0], [3.0]])) ** 1.7, (t / 2.0) ** 1.7
    share = H1 / (H1 + H2)
    np.testing.assert_allclose(F.cif(t)[:, 0], share * -np.expm1(-H1 - H2), rtol=1e-8)
    np.testing.assert_allclose(F.cause(1).mass_at_infinity(), 1 - share[:, 0], rtol=1e-9)
    p = np.array([[0.05, 0.1]])
    np.testing.assert_allclose(F.cause(1).cdf(F.cause(1).icdf(p)), np.broadcast_to(p, (2, 2)), rtol=1e-9)


def test_steps_between_and_lines():
    step, line = cs.CumulativeIncidence(GRID, CIF), cs.CumulativeIncidence(GRID, CIF, interpolation="linear")
    np.testing.assert_allclose(step.cif(3.0), CIF[:, :, 1])
    np.testing.assert_allclose(line.cif(3.0), (CIF[:, :, 1] + CIF[:, :, 2]) / 2)
    np.testing.assert_allclose(line.cif(0.5), CIF[:, :, 0] / 2)
    np.testing.assert_allclose(step.cif(99.0), CIF[:, :, 2])
    np.testing.assert_allclose(line.sf([3.0])[:, 0], 1 - line.cif(3.0).sum(axis=1))
    np.testing.assert_allclose(step.cif([[1.0, 3.0], [2.0, 5.0]])[1], CIF[1][:, 1:])


def test_columns_are_sorted_with_their_times():
    shuffled = cs.CumulativeIncidence([4.0, 1.0, 2.0], CIF[:, :, [2, 0, 1]])
    np.testing.assert_array_equal(shuffled.cif(GRID), CIF)
    np.testing.assert_array_equal(shuffled.times, GRID)


def test_one_matrix_serves_all_subjects():
    F = cs.CumulativeIncidence(GRID, CIF[0])
    assert F.shape == (1, 2)
    np.testing.assert_array_equal(F.cif([[1.0], [2.0], [4.0]])[:, :, 0], CIF[0].T)


def test_coordinates_and_the_first_event():
    F = cs.CumulativeIncidence(GRID, CIF, names=["relapse", "death"])
    np.testing.assert_array_equal(F.marginal(1).cdf(2.0), F.cause("death").cdf(2.0))
    np.testing.assert_array_equal(F.marginal(-1).cdf(2.0), F.cause("death").cdf(2.0))
    np.testing.assert_array_equal(F.first().sf(2.0), F.sf(2.0))
    assert repr(F) == "CumulativeIncidence(shape=(2, 2), times=3, step, causes: relapse, death)"
    with pytest.raises(UnsupportedOutcomeError, match="horizon=tau"):
        F.censor_at(2.0)


def test_samples_of_time_and_cause():
    time, cause = np.array([[1.0, 2.0, np.inf, 3.0]]), np.array([[1, 2, 0, 1]])
    F = cs.CauseEnsemble(time, cause, names=["a", "b"])
    np.testing.assert_array_equal(F.cif([2.5, 3.0]), [[[0.25, 0.5], [0.25, 0.25]]])
    assert F.cause(2).mass_at_infinity() == 0.75
    with pytest.raises(InvalidInputError, match="0 exactly where the time is infinite"):
        cs.CauseEnsemble(time, [[1, 2, 1, 1]])
    with pytest.raises(InvalidInputError, match="whole numbers"):
        cs.CauseEnsemble(time, [[1, 2, 0, 1.5]])
    with pytest.raises(InvalidInputError, match="a cause 2; expected causes 1 to 1"):
        cs.CauseEnsemble(time, cause, n_causes=1)
    with pytest.raises(InvalidInputError, match="must both have shape"):
        cs.CauseEnsemble(time, cause[:, :2])


def test_impossible_matrices_name_subjects_and_times():
    falling = CIF.copy()
    falling[1, 1, 2] = 0.1
    with pytest.raises(InvalidInputError, match=r"decrease.*0.3 at time \d.*0.1 at time 4 in subject 1"):
        cs.CumulativeIncidence(GRID, falling)
    high = CIF.copy()
    high[0, 0, 2] = 0.7
    with pytest.raises(InvalidInputError, match=r"sum to 1.2 at time 4 .*in subject 0.*1 subject \(0\)"):
        cs.CumulativeIncidence(GRID, high)
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        cs.CumulativeIncidence(GRID, -CIF)
    with pytest.raises(InvalidInputError, match="NaN"):
        cs.CumulativeIncidence(GRID, np.where(CIF == 0.4, np.nan, CIF))
    with pytest.raises(InvalidInputError, match=r"cif \(n or 1, m, q\)"):
        cs.CumulativeIncidence([1.0, 2.0], CIF)
    with pytest.raises(InvalidInputError, match="Move the axis of times to the end"):
        cs.CumulativeIncidence(GRID, np.moveaxis(CIF, 2, 0))
    with pytest.raises(InvalidInputError, match="more than once"):
        cs.CumulativeIncidence([1.0, 1.0, 2.0], CIF)
    with pytest.raises(InvalidInputError, match="zero at time 0"):
        cs.CumulativeIncidence([0.0, 1.0, 2.0], CIF, interpolation="linear")
    with pytest.raises(InvalidInputError, match="'step', 'linear', 'none'"):
        cs.CumulativeIncidence(GRID, CIF, interpolation="spline")
    with pytest.raises(InvalidInputError, match="2 different names"):
        cs.CumulativeIncidence(GRID, CIF, names=["a"])


def test_repair_reports_how_much_it_moved():
    wrong = CIF.copy()
    wrong[0, 0] = [0.3, 0.2, 0.8]
    F = cs.CumulativeIncidence(GRID, wrong, repair=True)
    moved = np.abs(F.cif(GRID) - wrong)
    assert F.repaired.subjects == (0,)
    np.testing.assert_allclose(F.repaired.largest, moved.max())
    assert (np.diff(F.cif(GRID), axis=2) >= 0).all()
    assert F.cif(GRID).sum(axis=1).max() <= 1 + 1e-15
    np.testing.assert_array_equal(F.cif(GRID)[1], CIF[1])
    assert cs.CumulativeIncidence(GRID, CIF, repair=True).repaired is None


def test_rounding_is_mended_without_a_word():
    almost = CIF.copy()
    almost[0, 0, 2] = 0.5 + 4e-8
    F = cs.CumulativeIncidence(GRID, almost)
    assert F.repaired is None
    assert F.sf([4.0])[0, 0] >= 0


def test_hazards_of_different_kinds_are_an_error():
    with pytest.raises(InvalidInputError, match="all of them step functions; got Weibull, Step"):
        cs.CauseSpecificHazards([cs.Weibull(1.0, 2.0), cs.Step([1.0], sf=[0.5])])
    with pytest.raises(InvalidTypeError, match="one event time"):
        cs.CauseSpecificHazards([CIF])


def test_tied_jumps_that_sum_to_more_than_one_share_what_is_left():
    F = cs.CauseSpecificHazards([cs.Step([1.0], sf=[0.2]), cs.Step([1.0], sf=[0.4])])
    np.testing.assert_allclose(F.cif(1.0), [[0.8 / 1.4, 0.6 / 1.4]])
    np.testing.assert_allclose(F.sf(1.0), [0.0], atol=1e-15)
