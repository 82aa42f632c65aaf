"""The cases by survival, recorded in R."""

from conformance.libraries.recorded_r import adapter

__all__ = ["ADAPTER"]

ADAPTER = adapter("survival")
