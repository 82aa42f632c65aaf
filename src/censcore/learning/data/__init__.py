"""What networks are trained on: standardised covariates, units, masks."""
