"""What is computed of one case: losses and how their means move with C, pairs, risks, calibration."""
