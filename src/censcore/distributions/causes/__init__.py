"""Distributions of the time and the cause of an event."""
