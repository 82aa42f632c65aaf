"""How a network is trained: epochs, batches, the optimiser and its schedule, what is kept."""

from __future__ import annotations

import math
from dataclasses import dataclass

from censcore._validation import check_option
from censcore.exceptions import InvalidInputError

__all__ = ["Recipe"]


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    Attributes
    ----------
    epochs : int
        Most epochs.
    batch_size : int
        Subjects per step, over all processes together.
    learning_rate, weight_decay : float
        Parameters of AdamW [1]_.
    schedule : {"cosine", "constant"}
        Learning rate over the epochs, after a linear warm-up.
    warmup : float
        Share of all steps spent warming up.
    clip : float or None
        Largest norm of the gradient.
    averaging : float or None
        Decay of the exponential moving average of the weights that is validated and kept; None keeps the
        weights.
    patience : int or None
        Epochs without a better validation loss before training stops.
    validate_every : int
        Epochs between validations.
    tolerance : float
        The latest weights are kept whose validation loss exceeds the best one by no more than this many
        standard errors of the paired difference; 0 keeps the best.
    validation_batch : int
        Subjects per validation batch.
    compile : bool
        Compile the loss where epochs run as captured graphs, on a GPU.

    References
    ----------
    .. [1] I. Loshchilov and F. Hutter (2019). Decoupled weight decay regularization. International
       Conference on Learning Representations.

    Examples
    --------
    >>> Recipe(epochs=10, learning_rate=0.01, schedule="constant", warmup=0.1).rate(step=50, steps=100)
    0.01
    """

    epochs: int = 200
    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    schedule: str = "cosine"
    warmup: float = 0.05
    clip: float | None = 1.0
    averaging: float | None = 0.99
    patience: int | None = 30
    validate_every: int = 1
    tolerance: float = 0.0
    validation_batch: int = 4096
    compile: bool = True

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise InvalidInputError(f"epochs must be at least 1; got {self.epochs}.")
        check_option(self.schedule, "schedule", ("cosine", "constant"))
        if not self.learning_rate > 0:
            raise InvalidInputError(f"learning_rate must be positive; got {self.learning_rate}.")

    def rate(self, step: int, steps: int) -> float:
        """The learning rate of one step."""
        warm = max(1, round(self.warmup * steps))
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))
