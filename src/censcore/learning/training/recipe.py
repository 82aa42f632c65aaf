"""How a network is trained: epochs, batches, the optimiser and its schedule, what is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from censcore._validation import as_count, as_number, check_flag, check_option

__all__ = ["MOST_EPOCHS", "MOST_LAYERS", "MOST_RATE", "MOST_UNITS", "Recipe"]

#: Bounds of what a computer can hold or finish: epochs or iterations, hidden layers, and units of a layer.
MOST_EPOCHS, MOST_LAYERS, MOST_UNITS = 10**7, 10**3, 10**5
#: Learning rate beyond which no step of AdamW can be of use.
MOST_RATE = 1e6


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
        check_option(self.schedule, "schedule", ("cosine", "constant"))
        check_flag(self.compile, "compile")
        self._check("epochs", as_count, most=MOST_EPOCHS)
        for name in ("batch_size", "validate_every", "validation_batch"):
            self._check(name, as_count)
        self._check("learning_rate", as_number, above=0, most=MOST_RATE)
        self._check("weight_decay", as_number, least=0)
        self._check("warmup", as_number, least=0, most=1)
        self._check("tolerance", as_number, least=0)
        if self.clip is not None:
            self._check("clip", as_number, above=0, infinite=True)
        if self.averaging is not None:
            self._check("averaging", as_number, least=0, below=1)
        if self.patience is not None:
            self._check("patience", as_count, least=0)

    def _check(self, name: str, check: Callable[..., float], **limits: Any) -> None:
        object.__setattr__(self, name, check(getattr(self, name), name, **limits))

    def rate(self, step: int, steps: int) -> float:
        """The learning rate of one step."""
        warm = max(1, round(self.warmup * steps))
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))

    def validates(self, epoch: int) -> bool:
        """Whether a validation is due after an epoch."""
        return epoch + 1 == self.epochs or (epoch + 1) % self.validate_every == 0

    def parameter_groups(self, network: Any) -> list[dict[str, Any]]:
        """Parameters that weight decay concerns, and those that a network names as spared."""
        spared = {id(p) for p in getattr(network, "undecayed", list)()}
        decayed = [p for p in network.parameters() if id(p) not in spared]
        others = [p for p in network.parameters() if id(p) in spared]
        return [
            {"params": decayed, "weight_decay": self.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
