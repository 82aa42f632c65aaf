"""Settings of censored engression that few users change: of its networks, and of their training."""

from __future__ import annotations

from dataclasses import dataclass

from censcore._validation import as_number, check_flag, check_option, is_auto
from censcore.exceptions import InvalidInputError
from censcore.learning.structures import Branching, Structure

OBJECTIVES = ("censored", "naive", "latent")
TRANSFORMS = ("auto", "scale", "log1p", "bounded")


@dataclass(frozen=True)
class Network:
    """The generator, see :class:`~censcore.learning.engression.Generator`.

    Attributes
    ----------
    width, depth : int
        Units per hidden layer and number of hidden layers.
    noise_dim : int
        Dimension of the noise that is an input beside x.
    noise_everywhere : bool
        New noise of the same dimension is also added to every later hidden layer.
    activation : {"relu", "silu", "gelu", "elu", "tanh", "softplus"}
        Of the hidden units.
    residual : bool
        Hidden layers after the first add to their input instead of replacing it.
    layer_norm : bool
        Normalise what every hidden layer after the first computes.
    skip : bool
        A linear map of x, zero at first, is added to the output before it is made positive.
    dropout : float
        Share of hidden units left out at random in training.
    output : {"softplus", "exp", "relu", "square"}
        The map that makes the times positive.

    Examples
    --------
    >>> import censcore as cs
    >>> model = cs.CensoredEngression(network=cs.learning.Network(width=64, depth=2))
    """

    width: int = 128
    depth: int = 3
    noise_dim: int = 64
    noise_everywhere: bool = False
    activation: str = "silu"
    residual: bool = True
    layer_norm: bool = True
    skip: bool = True
    dropout: float = 0.0
    output: str = "exp"

    def check(self) -> None:
        """Check what the network itself does not."""
        for name in ("noise_everywhere", "residual", "layer_norm", "skip"):
            check_flag(getattr(self, name), name)


@dataclass(frozen=True)
class Training:
    r"""How networks are trained; the first five fields and ``precision`` concern CensoredEngression alone.

    Attributes
    ----------
    objective : {"censored", "naive", "latent"}
        ``"naive"`` treats censored times as event times, which is biased and meant for comparison only;
        ``"latent"`` expects uncensored data.
    time_transform : {"auto", "scale", "log1p", "bounded"}
        Unit of the loss: times relative to their mean; :math:`\log(1+t)/\log(1+q_{0.95})`, which weights
        early times more; or :math:`t/(t+u)` with the mean time u, where an event that never happens is the
        point 1. Each keeps the score proper, since censoring commutes with increasing maps. ``"auto"`` is
        ``"bounded"`` for competing and semi-competing risks and ``"scale"`` otherwise.
    beta : float
        Exponent of the energy score.
    samples : int
        Samples per subject in every training step.
    sparsity : float or "auto"
        Penalty on covariates: so much times the sum over covariates of the norm of all weights by which one
        enters the network, a group lasso. With p covariates and n subjects ``"auto"`` is
        :math:`0.6\,s\sqrt{\log(p/5)/n}` with the scale s of the loss (half the mean distance of two subjects
        up to the earlier of their censoring times), and zero for up to five covariates.
    batch_size : int or "auto"
        Subjects per step; ``"auto"`` is 256, and an eighth of the subjects (at least 32) where they are few.
    learning_rate, weight_decay, schedule, warmup, clip, averaging, validate_every, tolerance
        As of :class:`~censcore.learning.Recipe`.
    validation_fraction : float
        Share of the subjects held out for validation when ``fit`` gets no ``eval_set``; 0 for none.
    precision : {"auto", "float32", "bfloat16"}
        Precision of the network; the loss is always float32. ``"auto"`` is bfloat16 on a GPU.
    compile : bool
        Compile the loss on a GPU: half a minute at the start, then faster steps; worth it for large data.

    Examples
    --------
    >>> import censcore as cs
    >>> model = cs.CensoredEngression(training=cs.learning.Training(learning_rate=1e-3))
    """

    objective: str = "censored"
    time_transform: str = "auto"
    beta: float = 1.0
    samples: int = 8
    sparsity: float | str = "auto"
    batch_size: int | str = "auto"
    learning_rate: float = 4e-3
    weight_decay: float = 0.01
    schedule: str = "cosine"
    warmup: float = 0.05
    clip: float | None = 1.0
    averaging: float | None = 0.99
    validate_every: int = 4
    tolerance: float = 1.0
    validation_fraction: float = 0.2
    precision: str = "auto"
    compile: bool = False

    def transform(self, structure: Structure) -> str:
        """The unit of the loss for times of a structure."""
        if self.time_transform != "auto":
            return self.time_transform
        return "bounded" if isinstance(structure, Branching) else "scale"

    def check_for(self, name: str) -> None:
        """Check that nothing is set which the estimator ``name``, unlike engression, does not know."""
        others = ("objective", "time_transform", "beta", "samples", "sparsity", "precision")
        changed = [field for field in others if getattr(self, field) != getattr(Training, field)]
        if changed:
            raise InvalidInputError(
                f"training: got {', '.join(changed)}, which CensoredEngression alone has; {name} expected "
                "settings of batches, optimiser and validation. Leave them out."
            )

    def check(self) -> None:
        """Check what a :class:`~censcore.learning.Recipe` does not."""
        check_option(self.objective, "objective", OBJECTIVES)
        check_option(self.time_transform, "time_transform", TRANSFORMS)
        check_option(self.precision, "precision", ("auto", "float32", "bfloat16"))
        if not is_auto(self.sparsity):
            as_number(self.sparsity, "sparsity", least=0)
        as_number(self.beta, "beta", above=0, below=2)
