"""The cases by riskRegression, recorded in R."""

from conformance.libraries.recorded_r import adapter

__all__ = ["ADAPTER"]

ADAPTER = adapter("riskRegression")
