"""Censored engression looked into: what it recovers of the truth, and what each of its choices is worth."""
