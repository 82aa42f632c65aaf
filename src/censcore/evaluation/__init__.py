"""Comparing forecasts: means with honest errors, paired tests, diagnostics, pictures and pages."""

from censcore.evaluation.compare import compare, evaluate
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.cross_validate import Folds, cross_validate
from censcore.evaluation.evaluation import Evaluation
from censcore.evaluation.landmark_rows import at_landmark
from censcore.evaluation.landmarks import LandmarkComparison, compare_landmarks
from censcore.evaluation.measures.auc import dynamic_auc, dynamic_auc_estimate
from censcore.evaluation.measures.calibration_curve import CalibrationCurve
from censcore.evaluation.measures.concordance import concordance, concordance_estimate
from censcore.evaluation.measures.net_benefit import net_benefit
from censcore.evaluation.parts.bootstrap import Bootstrap
from censcore.evaluation.report.verdict import Verdict
from censcore.evaluation.sample import Sample
from censcore.evaluation.sensitivity.copula_graphic import copula_graphic
from censcore.evaluation.sensitivity.dependent_censoring import dependent_censoring_sensitivity
from censcore.evaluation.sensitivity.dependent_censoring_result import DependentCensoringSensitivity
from censcore.evaluation.sensitivity.diagnostic import CensoringDiagnostic, censoring_diagnostic
from censcore.evaluation.sklearn_scorers import WithCensoring, scorer, scorers

__all__ = [
    "Bootstrap",
    "CalibrationCurve",
    "CensoringDiagnostic",
    "Comparison",
    "DependentCensoringSensitivity",
    "Evaluation",
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
    "concordance_estimate",
    "copula_graphic",
    "cross_validate",
    "dependent_censoring_sensitivity",
    "dynamic_auc",
    "dynamic_auc_estimate",
    "evaluate",
    "net_benefit",
    "scorer",
    "scorers",
]
