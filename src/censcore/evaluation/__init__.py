"""Comparing forecasts: means with honest errors, paired tests, diagnostics, pictures and pages."""

from censcore.evaluation.auc import dynamic_auc, dynamic_auc_estimate
from censcore.evaluation.compare import compare
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.concordance import concordance, concordance_estimate
from censcore.evaluation.diagnostic import CensoringDiagnostic, censoring_diagnostic
from censcore.evaluation.scorers import scorer, scorers
from censcore.evaluation.with_censoring import WithCensoring

__all__ = [
    "CensoringDiagnostic",
    "Comparison",
    "WithCensoring",
    "censoring_diagnostic",
    "compare",
    "concordance",
    "concordance_estimate",
    "dynamic_auc",
    "dynamic_auc_estimate",
    "scorer",
    "scorers",
]
