"""What all networks share: training, model files, and the base classes of neural estimators."""

import torch  # noqa: F401  (without it no part of this is imported)

from censcore.learning.likelihood import LikelihoodEstimator, ParameterNetwork
from censcore.learning.neural_estimator import NeuralEstimator
from censcore.learning.settings import Network, Training
from censcore.learning.training.loop import train
from censcore.learning.training.task import Callback, Epoch, History, Recipe, Task

__all__ = [
    "Callback",
    "Epoch",
    "History",
    "LikelihoodEstimator",
    "Network",
    "NeuralEstimator",
    "ParameterNetwork",
    "Recipe",
    "Task",
    "Training",
    "train",
]
