"""What is trained and how: a network with its loss, the recipe, the course of a run, held-out losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor, nn

from censcore._validation import as_count, as_number, check_flag, check_option
from censcore.learning.data.standardised import Data, gather


@dataclass(frozen=True)
class Epoch:
    """The state of training after an epoch; callbacks receive it.

    Attributes
    ----------
    epoch : int
        Its number, from zero.
    train_loss : float
        Mean loss of its steps, while the weights were moving.
    validation_loss : float or None
        Loss of the averaged weights on the validation subjects; None where none was due.
    learning_rate : float
        That of the last step.
    best : bool
        Whether the validation loss is the smallest so far.

    Examples
    --------
    >>> Epoch(epoch=0, train_loss=1.5, validation_loss=None, learning_rate=0.01, best=True).train_loss
    1.5
    """

    epoch: int
    train_loss: float
    validation_loss: float | None
    learning_rate: float
    best: bool


@dataclass
class History:
    """The course of a training run.

    Attributes
    ----------
    epochs : list of Epoch
        One entry per epoch.
    best_epoch : int
        The epoch with the smallest validation loss.
    kept_epoch : int
        The epoch whose weights were kept.
    interrupted : bool
        Whether Ctrl-C ended the run; the best weights so far were kept.
    gradient_norm : float or None
        Largest component of the gradient at the end, where the loss of all subjects was minimised at once.
    converged : bool or None
        Whether that gradient is small enough for an optimum.

    Examples
    --------
    >>> history = History([Epoch(0, 1.5, 1.25, 0.01, True)], best_epoch=0, kept_epoch=0)
    >>> history.frame()["train_loss"].tolist()
    [1.5]
    """

    epochs: list[Epoch] = field(default_factory=list)
    best_epoch: int = -1
    kept_epoch: int = -1
    interrupted: bool = False
    gradient_norm: float | None = None
    converged: bool | None = None

    def frame(self) -> Any:
        """A pandas frame with one row per epoch."""
        import pandas as pd

        columns = [column.name for column in fields(Epoch)]
        return pd.DataFrame([asdict(epoch) for epoch in self.epochs], columns=columns).set_index("epoch")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """From what :func:`dataclasses.asdict` gave, as model files and checkpoints hold it."""
        return cls(**values | {"epochs": [Epoch(**epoch) for epoch in values["epochs"]]})

    def plot(self, ax: Any = None) -> Any:
        """Plot training and validation loss over the epochs, with the epoch that was kept.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure if omitted.

        Returns
        -------
        matplotlib axes
        """
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(6, 3.5), layout="constrained")[1] if ax is None else ax
        number = [e.epoch for e in self.epochs]
        ax.plot(number, [e.train_loss for e in self.epochs], color="#9aa5b1", label="training")
        validated = [e for e in self.epochs if e.validation_loss is not None]
        if validated:
            losses = [e.validation_loss for e in validated]
            ax.plot([e.epoch for e in validated], losses, color="#1f4e79", label="validation")
            ax.axvline(self.kept_epoch, color="#c0504d", lw=1, ls=":", label=f"kept: epoch {self.kept_epoch}")
        ax.set(xlabel="epoch", ylabel="loss")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        return ax


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
        Subjects per step.
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

    def memory(self, step: int) -> float:
        """Return the decay of the moving average after so many steps: it grows, to forget the start."""
        return 0.0 if self.averaging is None else min(self.averaging, (1 + step) / (10 + step))

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


Rows = Mapping[str, Tensor]


class Task(Protocol):
    """What is trained: a network, the random numbers that a batch needs, and a loss per subject.

    A task may have an ``identity``, JSON values that must be equal for a checkpoint to be continued.
    """

    @property
    def network(self) -> nn.Module:
        """What is trained."""

    def draw(
        self, n: int, generator: torch.Generator, device: torch.device, validating: bool = False
    ) -> dict[str, Tensor]:
        """The random numbers of a batch of n subjects, which are the first axis of each array."""

    def loss(self, network: nn.Module, rows: Rows, random: Rows) -> Tensor:
        """One loss per subject of the batch."""


Callback = Callable[[Epoch, nn.Module], Any]


def mix_seed(seed: int, part: int) -> int:
    """A seed for the noise of one part of a run, from the seed of the whole and the number of the part.

    >>> mix_seed(1, 0) == mix_seed(1, 0), mix_seed(1, 0) == mix_seed(1, 1)
    (True, False)
    """
    return int(np.random.SeedSequence([seed, part + 1]).generate_state(1, np.uint64)[0] >> 1)


@contextmanager
def seeded(network: nn.Module, seed: int, device: torch.device) -> Iterator[None]:
    """Seed the generators of torch that dropout draws from, and leave them as they were found."""
    if not any(isinstance(module, nn.Dropout) and module.p for module in network.modules()):
        yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@torch.no_grad()
def held_out_losses(
    task: Task, network: nn.Module, data: Data, index: np.ndarray, *, seed: int, at_once: int
) -> tuple[Tensor, Tensor]:
    """Compute losses of subjects; return them and weights, (networks, n), on the CPU in double precision.

    ``index`` (networks, n) are the places of the subjects of each network of a stack, or of the only one.
    Networks that are judged with the same seed of the noise, data and batches meet the same. Only a batch is
    on the device of the network.

    Examples
    --------
    >>> class Squares:
    ...     def draw(self, n, generator, device, validating=False):
    ...         return {}
    ...
    ...     def loss(self, network, rows, random):
    ...         return (network(rows["x"])[:, 0] - rows["y"]) ** 2
    >>> data = {"x": torch.ones(3, 2), "y": torch.tensor([0.0, 1.0, 2.0])}
    >>> first_and_last = np.array([[0, 2]])
    >>> losses, weight = held_out_losses(Squares(), nn.Linear(2, 1), data, first_and_last, seed=0, at_once=2)
    >>> losses.shape, weight
    (torch.Size([1, 2]), tensor([[1., 1.]], dtype=torch.float64))
    """
    device = next(network.parameters()).device
    generator = torch.Generator(device).manual_seed(seed)
    network.eval()
    batches = []
    for start in range(0, index.shape[1], at_once):
        part = index[:, start : start + at_once]
        batch = gather(data, part.ravel(), device)
        losses = task.loss(network, batch, task.draw(part.size, generator, device, validating=True))
        weight = batch.get("weight", torch.ones_like(losses)).to(losses.dtype)
        batches.append(torch.stack([losses, weight]).unflatten(1, part.shape))
    # made last: a result that outlives the batches, placed below them, would keep the heap from shrinking
    losses, weight = torch.cat(batches, dim=2).double().cpu()
    return losses, weight
