"""Designs: where losses come from. Fixed forecasts, folds of a cross-validation, batches of a table."""
