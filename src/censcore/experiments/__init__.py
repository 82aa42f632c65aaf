"""The studies of the paper, one module per table; each needs only what it runs."""
