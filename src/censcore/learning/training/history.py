"""The course of a training run, as a table and as a plot."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

__all__ = ["Epoch", "History"]


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

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, for model files and checkpoints."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """What :meth:`to_dict` gave."""
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
