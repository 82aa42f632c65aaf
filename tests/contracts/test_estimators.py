"""Every estimator keeps the contract of estimators, and what of scikit-learn's own contract applies to it."""

from __future__ import annotations

import pytest
from lifelines import CoxPHFitter, KaplanMeierFitter, WeibullAFTFitter
from tests.learning.small_trainings import engression, likelihood

import censcore as cs
from censcore.testing import check_estimator
from censcore.testing.estimators import Candidate, atoms_of_c

ensemble, linear_model = (pytest.importorskip(f"sksurv.{name}") for name in ("ensemble", "linear_model"))


NETWORK = {"epochs": 10, "learning_rate": 0.02, "batch_size": 64, "device": "cpu"}
ENGRESSION = NETWORK | {"width": 16, "depth": 2, "noise_dim": 4, "n_samples": 100, "n_networks": 1}

SMOOTH = [("weibull", cs.WeibullRegression()), ("normal", cs.LogNormalRegression())]
MEMBERS = [*SMOOTH, ("km", cs.KaplanMeier())]
CASES = {
    "KaplanMeier": (cs.KaplanMeier(), 1),
    "WeibullRegression": (cs.WeibullRegression(), 1),
    "LogNormalRegression": (cs.LogNormalRegression(), 1),
    "LogLogisticRegression": (cs.LogLogisticRegression(), 1),
    "PiecewiseExponentialRegression": (cs.PiecewiseExponentialRegression(), 1),
    "BoostedHazards": (cs.BoostedHazards(max_iter=25), 1),
    "Turnbull": (cs.Turnbull(), 1),
    "CoxRegression": (cs.CoxRegression(), 1),
    "CoxRegression, Efron": (cs.CoxRegression(ties="efron"), 1),
    "Adapted": (cs.Adapted(linear_model.CoxPHSurvivalAnalysis(alpha=1e-3)), 1),
    "WithCensoring": (cs.WithCensoring(cs.WeibullRegression()), 1),
    "Censoring": (cs.Censoring(cs.KaplanMeier()), 1),
    "Censoring, shared": (cs.Censoring(cs.CoxRegression()), 2),
    "Stacking": (cs.Stacking(MEMBERS), 1),
    "Stacking, log score": (cs.Stacking(SMOOTH, "log_score"), 1),
    "Stacking, two times": (
        cs.Stacking([(name, cs.JointFromMargins(model)) for name, model in MEMBERS[1:]], baselines=["km"]),
        2,
    ),
    "JointFromMargins": (cs.JointFromMargins(cs.WeibullRegression(), "gumbel"), 2),
    "JointFromMargins, one time": (cs.JointFromMargins(cs.CoxRegression()), 1),
    "CensoredEngression, one time": (engression(**ENGRESSION), 1),
    "CensoredEngression": (engression(**ENGRESSION), 2),
    "MixtureDensityNetwork, one time": (cs.MixtureDensityNetwork(epochs=10, n_networks=1, device="cpu"), 1),
    "MixtureDensityNetwork": (
        cs.MixtureDensityNetwork(epochs=5, components=3, n_networks=2, device="cpu"),
        2,
    ),
    "CopulaWeibull, one time": (likelihood(cs.CopulaWeibull, **NETWORK), 1),
    "CopulaWeibull, three times": (likelihood(cs.CopulaWeibull, "clayton", **NETWORK), 3),
    "JointGridModel": (likelihood(cs.JointGridModel, bins=6, hidden=(8,), **NETWORK), 2),
}


#: Others of the same class run every time.
SLOW = ("CopulaWeibull, three times", "MixtureDensityNetwork", "Stacking, log score", "Stacking, two times")


@pytest.mark.filterwarnings("ignore::censcore.exceptions.CensoringWarning")
@pytest.mark.usefixtures("brief_members")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CASES]
)
def test_contract(name):
    estimator, k = CASES[name]
    check_estimator(estimator, k=k)


@pytest.mark.parametrize(
    "model",
    [
        CoxPHFitter(),
        WeibullAFTFitter(),
        KaplanMeierFitter(),
        ensemble.RandomSurvivalForest(20, min_samples_leaf=20, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_of_other_libraries_as_censoring_distributions_with_atoms(model):
    atoms_of_c(Candidate(cs.Adapted(model), 1, 0))


class Smooth(cs.WeibullRegression):
    represents_atoms = True  # which is not so


def test_a_smooth_estimator_that_declares_atoms_is_caught():
    with pytest.raises(AssertionError, match=r"P\(C > end\) is up to 0\.[1-9]"):
        atoms_of_c(Candidate(Smooth(), 1, 0))
