"""How networks are trained: the loop, its recipe and history, checkpoints, devices."""
