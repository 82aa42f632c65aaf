"""Networks of pycox and torchsurv: the numbers of their own survival functions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests.estimators.libraries.data import GRID, TEST, TRAIN

import censcore as cs
from censcore.distributions import PiecewiseExponential, ProportionalHazards, Step
from censcore.estimators import as_forecast
from censcore.exceptions import InvalidInputError

torch = pytest.importorskip("torch")
CUTS = np.array([0.5, 1.0, 2.0, 3.0, 5.0, 7.0])

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def models():
    pytest.importorskip("pycox")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pycox import models
    return models


def net(outputs):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs))


@pytest.mark.parametrize("name", ["LogisticHazard", "PMF", "MTLR", "DeepHitSingle"])
def test_discrete_time_models_are_read_at_their_cuts(models, data, name):
    X, _ = data
    model = getattr(models, name)(net(len(CUTS)), duration_index=CUTS)
    frame = model.predict_surv_df(X[TEST].astype("float32"))
    F = as_forecast(model, X[TEST])  # double precision is converted
    np.testing.assert_allclose(F.sf(CUTS[None, :]), frame.to_numpy().T, atol=1e-6)


def test_classifiers_of_each_cut_are_made_monotone(models, data):
    X, _ = data
    model = models.BCESurv(net(len(CUTS)), duration_index=CUTS)
    with pytest.warns(UserWarning, match="BCESurv: curves of 100 subjects .* made monotone"):
        F = as_forecast(model, X[TEST])
    assert (np.diff(F.sf(CUTS[None, :]), axis=1) <= 0).all()


def test_interpolated_models(models, data):
    X, _ = data
    model = models.LogisticHazard(net(len(CUTS)), duration_index=CUTS).interpolate(5)
    frame = model.predict_surv_df(X[TEST].astype("float32"))
    F = as_forecast(model, X[TEST])
    np.testing.assert_allclose(F.sf(np.asarray(frame.index)[None, :]), frame.to_numpy().T, atol=1e-6)


@pytest.mark.parametrize("start", [0.0, 0.5])
def test_piecewise_constant_hazards_have_a_density(models, data, start):
    X, y = data
    cuts = np.r_[start, CUTS[1:]]
    model = models.PCHazard(net(len(cuts) - 1), duration_index=cuts, sub=10)
    F = as_forecast(model, X[TEST])
    assert isinstance(F, PiecewiseExponential)
    frame = model.predict_surv_df(X[TEST].astype("float32"))
    np.testing.assert_allclose(F.sf(np.asarray(frame.index)[None, :]), frame.to_numpy().T, atol=1e-5)
    if start == 0:
        assert np.isfinite(cs.log_score(y[TEST], F, cs.Uniform(0.0, 8.0))).all()


@pytest.mark.parametrize("name", ["CoxPH", "CoxCC"])
def test_cox_networks_keep_baseline_and_risk(models, data, name):
    X, y = data
    x = X.astype("float32")
    model = getattr(models, name)(net(1))
    target = (y[TRAIN].time.astype("float32"), y[TRAIN].event.astype("float32"))
    with pytest.raises(InvalidInputError, match="baseline hazard is estimated"):
        as_forecast(model, X[TEST])
    completed = as_forecast(model, X[TEST], train=(X[TRAIN], y[TRAIN]))
    model.compute_baseline_hazards(x[TRAIN], target)
    F = as_forecast(model, X[TEST])
    assert isinstance(F, ProportionalHazards)
    frame = model.predict_surv_df(x[TEST])
    np.testing.assert_allclose(
        F.sf(np.asarray(frame.index, dtype=float)[None, :]), frame.to_numpy().T, rtol=1e-4
    )
    np.testing.assert_allclose(completed.sf(GRID), F.sf(GRID), rtol=1e-4)


def test_cox_time_is_read_as_steps(models, data):
    from pycox.models.cox_time import MLPVanillaCoxTime

    X, y = data
    x = X.astype("float32")
    torch.manual_seed(0)
    model = models.CoxTime(MLPVanillaCoxTime(3, [4], batch_norm=False))
    with pytest.raises(InvalidInputError, match="compute_baseline_hazards"):
        as_forecast(model, X[TEST])
    order = np.argsort(y[TRAIN].time)
    target = tuple(part[order].astype("float32") for part in (y[TRAIN].time, y[TRAIN].event))
    model.compute_baseline_hazards(x[TRAIN][order], target)
    F = as_forecast(model, X[TEST])
    assert isinstance(F, Step)
    frame = model.predict_surv_df(x[TEST])
    np.testing.assert_allclose(
        F.sf(np.asarray(frame.index, dtype=float)[None, :]), frame.to_numpy().T, rtol=1e-6
    )


def test_torchsurv_cox(data):
    cox = pytest.importorskip("torchsurv.loss.cox")
    X, y = data
    eta = net(1)(torch.as_tensor(X).float()).detach()[:, 0]
    event, time = torch.as_tensor(y[TRAIN].event), torch.as_tensor(y[TRAIN].time).float()
    baseline = cox.baseline_survival_function(eta[TRAIN], event, time)
    at = torch.as_tensor(np.sort(y[TRAIN].time)[::9]).float()
    expected = cox.survival_function_cox(baseline, eta[TEST], at)
    F = cs.from_risk(eta[TRAIN], cs.RightCensored(time, event), eta[TEST])
    assert isinstance(F.sf(1.0), torch.Tensor)
    np.testing.assert_allclose(F.sf(at[None, :]), expected, rtol=1e-4)


def test_torchsurv_weibull(data):
    weibull = pytest.importorskip("torchsurv.loss.weibull")
    X, y = data
    log_params = net(2)(torch.as_tensor(X).float())
    log_scale, log_shape = log_params.unbind(1)
    F = as_forecast(torch.distributions.Weibull(log_scale.exp(), log_shape.exp()))
    t = torch.as_tensor(GRID[0]).float()
    expected = weibull.survival_function_weibull(log_params, t).detach()
    np.testing.assert_allclose(F.sf(t[None, :]).detach(), expected, atol=1e-6)
    event, time = torch.as_tensor(y.event), torch.as_tensor(y.time).float()
    loss = weibull.neg_log_likelihood_weibull(log_params, event, time)
    assert -float(F.log_likelihood(time, event).mean()) == pytest.approx(float(loss), rel=1e-5)
