"""Which subjects of the common data set train and test the models, and times to look at."""

from __future__ import annotations

import numpy as np

TRAIN, TEST = slice(0, 200), slice(200, 300)
GRID = np.array([[0.1, 0.7, 1.5, 3.0, 5.0]])
