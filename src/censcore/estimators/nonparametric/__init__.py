"""Nonparametric estimators."""
