"""The registry of scores tells the truth about each of them."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError, NoDensityError
from censcore.scores import SCORES, score_info

Y = cs.RightCensored([1.0, 2.0, 0.5], [1, 0, 1])
F = cs.Weibull(np.array([1.0, 1.5, 2.0]), 1.0)
C = cs.Uniform(0.0, 4.0)
GIVEN = {"times": [0.5, 1.0], "levels": [0.1, 0.5, 0.7], "horizon": 3.0}


@pytest.mark.parametrize("name", SCORES)
def test_an_entry_calls_its_score_and_the_axis_says_its_columns(name):
    info = score_info(name)
    losses = info(Y, F, C, **GIVEN)
    assert losses.shape == {"time": (3, 2), "level": (3, 3), "": (3,)}[info.axis]
    assert np.isfinite(losses).all()
    variant = "ipcw" if info.scale == "ipcw" else "fair" if ("fair", True) in info.options else ""
    assert info.name == name == info.function.__name__ + (variant and f":{variant}")


def test_the_ipcw_scale_is_the_localized_one_divided_by_the_weight_of_the_time():
    local, ipcw = (SCORES[name](Y, F, C, **GIVEN) for name in ("brier_score", "brier_score:ipcw"))
    np.testing.assert_allclose(local, ipcw * C.sf(np.array([0.5, 1.0])))
    expected = cs.integrated_brier_score(Y, F, C, scale="ipcw", normalize=True, horizon=3.0)
    np.testing.assert_array_equal(SCORES["integrated_brier_score:ipcw"](Y, F, C, **GIVEN), expected)


@pytest.mark.parametrize("name", SCORES)
def test_a_density_is_needed_where_the_entry_says_so(name):
    ensemble = cs.Ensemble(np.array([[0.5, 1.0, 2.0]]))
    if SCORES[name].needs_density:
        with pytest.raises(NoDensityError):
            SCORES[name](Y, ensemble, C, **GIVEN)
    else:
        assert len(SCORES[name](Y, ensemble, C, **GIVEN)) == 3


@pytest.mark.parametrize("name", SCORES)
def test_several_event_times_are_taken_where_the_entry_says_so(name):
    y = cs.RightCensored([[1.0, 2.0]], [[1, 1]])
    joint = cs.Independent([cs.Weibull(1.0, 1.0), cs.Weibull(2.0, 1.0)])
    if SCORES[name].joint:
        assert SCORES[name](y, joint, C, **GIVEN).shape == ((1, 2) if SCORES[name].needs_times else (1,))
    else:
        with pytest.raises(InvalidInputError, match="one event time"):
            SCORES[name](y, joint, C, **GIVEN)


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(InvalidInputError, match=r"no score called 'brier'.*crps.*energy_score"):
        score_info("brier")
