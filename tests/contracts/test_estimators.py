"""Every estimator keeps the contract of estimators, and what of scikit-learn's own contract applies to it."""

from __future__ import annotations

import pytest
import torch
from sksurv.linear_model import CoxPHSurvivalAnalysis

import censcore as cs
from censcore.testing import check_estimator

torch.set_num_threads(1)

NETWORK = {"epochs": 10, "learning_rate": 0.02, "batch_size": 32, "device": "cpu"}
ENGRESSION = NETWORK | {"width": 16, "depth": 2, "noise_dim": 8, "n_samples": 200}

CASES = {
    "KaplanMeier": (cs.KaplanMeier(), 1),
    "WeibullRegression": (cs.WeibullRegression(), 1),
    "CoxRegression": (cs.CoxRegression(), 1),
    "Adapted": (cs.Adapted(CoxPHSurvivalAnalysis(alpha=1e-3)), 1),
    "Censoring": (cs.Censoring(cs.KaplanMeier()), 1),
    "Censoring, shared": (cs.Censoring(cs.CoxRegression()), 2),
    "CensoredEngression, one time": (cs.CensoredEngression(**ENGRESSION), 1),
    "CensoredEngression": (cs.CensoredEngression(**ENGRESSION), 2),
    "CopulaWeibull, one time": (cs.CopulaWeibull(**NETWORK), 1),
    "CopulaWeibull, three times": (cs.CopulaWeibull("clayton", **NETWORK), 3),
    "JointGridModel": (cs.JointGridModel(bins=6, hidden=(8,), **NETWORK), 2),
}


@pytest.mark.filterwarnings("ignore::censcore.exceptions.CensoringWarning")
@pytest.mark.parametrize("name", CASES)
def test_contract(name):
    estimator, k = CASES[name]
    check_estimator(estimator, k=k)
