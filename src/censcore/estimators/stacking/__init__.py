"""Stacks: the best of several estimators by a held-out proper score."""
