"""Estimators of the censoring distribution."""
