"""Inverse weights under a censoring distribution whose survival function is a line, up to near its end."""

import numpy as np
import pytest

import censcore as cs

END = 4.0
HORIZONS = [2.0, 3.0, 3.6, 3.9, 3.99]
C = {
    "one": cs.Uniform(0.0, END),
    "per subject": cs.Uniform(np.zeros(2), END),
    "curve": cs.PiecewiseLinear([END], sf=[0.0]),
    "mixture": cs.Mixture([cs.Uniform(0.0, END), cs.Uniform(0.0, END)], [0.3, 0.7]),
}
Y = cs.RightCensored([3.995, 1.2], [0, 1])


@pytest.mark.parametrize("h", HORIZONS)
@pytest.mark.parametrize("name", C)
def test_integrated_brier_score_of_a_line_has_a_closed_form(name, h):
    loss = cs.integrated_brier_score(Y, cs.Uniform(np.zeros(2), 6.0), C[name], scale="ipcw", horizon=h)
    x = np.minimum([h, 1.2], END) / END
    below = END**3 / 36 * (-x - x**2 / 2 - np.log1p(-x))
    left = ((1 - 1.2 / 6) ** 3 - (1 - h / 6) ** 3) * 2 / (1 - 1.2 / END)
    np.testing.assert_allclose(loss, below + np.array([0.0, left]), rtol=1e-9)


@pytest.mark.parametrize("h", HORIZONS)
@pytest.mark.parametrize("name", C)
def test_integrated_brier_score_of_a_step_has_a_closed_form(name, h):
    F = cs.Ensemble([[1.0, 9.0], [1.0, 9.0]])
    loss = cs.integrated_brier_score(Y, F, C[name], scale="ipcw", horizon=h)
    below = END / 4 * np.log((1 - 1 / END) / (1 - np.array([h, 1.2]) / END))
    left = (h - 1.2) / 4 / (1 - 1.2 / END)
    np.testing.assert_allclose(loss, below + np.array([0.0, left]), rtol=1e-9)


@pytest.mark.parametrize("h", HORIZONS)
@pytest.mark.parametrize("model", [cs.Weibull(1.3, 2.5), cs.Uniform(0.0, 4.2)], ids=["smooth", "line"])
@pytest.mark.parametrize("F", [cs.Weibull(1.5, 2.0), cs.Uniform(0.0, 6.0)], ids=["smooth", "line"])
def test_knots_on_a_line_change_nothing(F, model, h):
    """Also where the event model is a line."""
    knots = END * (1 - 0.75 ** np.arange(1.0, 30.0))
    same = cs.PiecewiseLinear(np.append(knots, END), cdf=np.append(knots, END) / END)
    for score in (
        lambda G: cs.augmented_integrated_brier_score(Y, F, G, event_model=model, horizon=h),
        lambda G: cs.augmented_brier_score(Y, F, G, [h / 2, h * 0.999], event_model=model),
        lambda G: cs.integrated_brier_score(Y, F, G, scale="ipcw", horizon=h),
    ):
        np.testing.assert_allclose(score(C["one"]), score(same), rtol=1e-7, atol=1e-9)
