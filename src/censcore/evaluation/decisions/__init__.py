"""What is decided before anything is scored: horizon, times, readings, reference, checks."""
