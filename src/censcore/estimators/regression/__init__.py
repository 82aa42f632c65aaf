"""Regressions, and models as published."""
