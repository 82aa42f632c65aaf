"""What networks are trained on: standardised covariates, batches from files and memory, masks."""
