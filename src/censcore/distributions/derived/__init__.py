"""Distributions made of others: censored, truncated, mixed, grouped."""
