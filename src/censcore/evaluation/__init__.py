"""Comparing forecasts: means with honest errors, paired tests, diagnostics, pictures and pages."""

from censcore.evaluation.auc import dynamic_auc, dynamic_auc_estimate
from censcore.evaluation.calibration import CalibrationCurve
from censcore.evaluation.compare import compare
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.concordance import concordance, concordance_estimate
from censcore.evaluation.copula_graphic import copula_graphic
from censcore.evaluation.cross_validate import Folds, cross_validate
from censcore.evaluation.dependent_censoring import dependent_censoring_sensitivity
from censcore.evaluation.dependent_censoring_result import DependentCensoringSensitivity
from censcore.evaluation.diagnostic import CensoringDiagnostic, censoring_diagnostic
from censcore.evaluation.landmark_tables import at_landmark
from censcore.evaluation.landmarks import LandmarkComparison, compare_landmarks
from censcore.evaluation.net_benefit import net_benefit
from censcore.evaluation.scorers import scorer, scorers
from censcore.evaluation.subjects import Sample
from censcore.evaluation.verdict import Verdict
from censcore.evaluation.with_censoring import WithCensoring

__all__ = [
    "CalibrationCurve",
    "CensoringDiagnostic",
    "Comparison",
    "DependentCensoringSensitivity",
    "Folds",
    "LandmarkComparison",
    "Sample",
    "Verdict",
    "WithCensoring",
    "at_landmark",
    "censoring_diagnostic",
    "compare",
    "compare_landmarks",
    "concordance",
    "copula_graphic",
    "cross_validate",
    "dependent_censoring_sensitivity",
    "concordance_estimate",
    "dynamic_auc",
    "dynamic_auc_estimate",
    "net_benefit",
    "scorer",
    "scorers",
]
