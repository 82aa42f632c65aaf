"""Published scores that the proper ones are compared with; each says what is known of it."""

from censcore.published.administrative import administrative_brier
from censcore.published.avati import survival_crps
from censcore.published.calibration import DCalibration, d_calibration
from censcore.published.ipcw import CONVENTIONS, Convention, ipcw_binomial_log, ipcw_brier

__all__ = [
    "CONVENTIONS",
    "Convention",
    "DCalibration",
    "administrative_brier",
    "d_calibration",
    "ipcw_binomial_log",
    "ipcw_brier",
    "survival_crps",
]
