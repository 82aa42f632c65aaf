"""Proper scores for right-censored forecasts."""
