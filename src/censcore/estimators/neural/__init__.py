"""What all networks share: training, batches, model files, and the base classes of neural estimators."""

from censcore.estimators.neural.estimator import NeuralEstimator
from censcore.estimators.neural.history import Epoch, History
from censcore.estimators.neural.likelihood import LikelihoodEstimator, ParameterNetwork
from censcore.estimators.neural.recipe import Recipe
from censcore.estimators.neural.sources import TrainingTable
from censcore.estimators.neural.task import Callback, Task
from censcore.estimators.neural.training import train

__all__ = [
    "Callback",
    "Epoch",
    "History",
    "LikelihoodEstimator",
    "NeuralEstimator",
    "ParameterNetwork",
    "Recipe",
    "Task",
    "TrainingTable",
    "train",
]
