"""Routes to integrated scores, each a file named after its mathematics."""
