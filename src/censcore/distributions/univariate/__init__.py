"""Distributions of one event time."""
