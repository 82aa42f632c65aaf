"""Sums that are compiled, for the CPU and for the GPU."""
