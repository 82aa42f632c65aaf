"""The seven methods of the study and the sizes at which they are run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore_studies.aki.data import AkiRows
from censcore_studies.aki.preprocessing import Preprocessing
from censcore_studies.kit.networks import ONE_NETWORK, engression, likelihood_model

if TYPE_CHECKING:
    from torch import Tensor

    from censcore.learning import Callback, NeuralEstimator

__all__ = ["METHODS", "PRESETS", "Method", "Preset", "preset_named"]


@dataclass(frozen=True)
class Preset:
    """A size of the study.

    Parameters
    ----------
    name : str
        What it is called.
    training_rows, validation_rows, test_rows : int or None
        Most rows of each side, drawn at random; None takes all.
    rows_per_stay : int or None
        Most rows of one stay in training, drawn at random. Rows of a stay never share a minibatch, so a few
        long stays would otherwise force many small ones on a small training set.
    engression, likelihood : mapping
        Parameters of :class:`~censcore.CensoredEngression`, and of the likelihood models alike.
    hidden : tuple of int
        Hidden layers of the conditional likelihood models.
    bins : int
        Bins of the joint grid per endpoint.
    members : int
        Samples per test row.
    seed : int
        Seed of subsampling, training and sampling.
    """

    name: str
    training_rows: int | None
    validation_rows: int | None
    test_rows: int | None
    rows_per_stay: int | None = None
    engression: Mapping[str, Any] = field(default_factory=dict)
    likelihood: Mapping[str, Any] = field(default_factory=dict)
    hidden: tuple[int, ...] = (128, 128)
    bins: int = 32
    members: int = 256
    seed: int = 0


# "quick" is for a look, tests and documentation: minutes on two cores. "paper" has the paper's sizes; what it
# leaves open (activation, epochs, patience, the likelihood models' learning rate) is chosen here.
PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "quick",
            training_rows=30_000,
            validation_rows=8_000,
            test_rows=20_000,
            rows_per_stay=40,
            engression={
                "width": 64, "depth": 2, "noise_dim": 16, "samples": 8, "epochs": 25, "batch_size": 256,
                "learning_rate": 3e-3, "patience": 6, "validate_every": 1,
            },
            likelihood={"epochs": 25, "batch_size": 512, "patience": 6},
            hidden=(64, 64),
            bins=12,
            members=128,
        ),
        Preset(
            "paper",
            training_rows=None,
            validation_rows=None,
            test_rows=None,
            engression={
                "width": 500, "depth": 2, "noise_dim": 500, "output": "softplus", "activation": "relu",
                "residual": False, "layer_norm": False, "skip": False, "samples": 16, "epochs": 100,
                "batch_size": 1024, "learning_rate": 2e-4, "weight_decay": 1e-5, "clip": 1.0,
                "schedule": "constant", "warmup": 0.0, "averaging": None, "patience": 10, "validate_every": 1,
                "tolerance": 0.0, "compile": True,
            },
            likelihood={
                "epochs": 100, "batch_size": 1024, "learning_rate": 1e-3, "weight_decay": 1e-5,
                "patience": 10,
            },
            members=1024,
        ),
    )
}  # fmt: skip


def preset_named(preset: str | Preset) -> Preset:
    """A preset by its name, or itself."""
    if isinstance(preset, Preset):
        return preset
    if preset not in PRESETS:
        raise InvalidInputError(f"preset must be one of {sorted(PRESETS)}, or a Preset; got {preset!r}.")
    return PRESETS[preset]


@dataclass(frozen=True)
class Method:
    """One way to forecast the two remaining times jointly.

    Parameters
    ----------
    name, label : str
        In files, and in tables.
    kind : {"engression", "copula", "grid"}
        Which estimator.
    options : mapping
        What distinguishes it from others of its kind.
    conditional : bool
        For likelihood models: a network instead of log-linear scales.
    """

    name: str
    label: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    conditional: bool = True

    def estimator(self, preset: Preset, device: str, checkpoint: Path | None = None) -> NeuralEstimator:
        """The untrained estimator."""
        shared: dict[str, Any] = {"random_state": preset.seed, "device": device, "checkpoint": checkpoint}
        if self.kind == "engression":
            return engression(
                time_transform="log1p",
                n_samples=preset.members,
                **ONE_NETWORK,
                **preset.engression,
                **self.options,
                **shared,
            )
        hidden = preset.hidden if self.conditional else ()
        if self.kind == "grid":
            from censcore.learning.joint_grid_model import JointGridModel

            return likelihood_model(JointGridModel, preset.bins, hidden=hidden, **preset.likelihood, **shared)
        from censcore.learning.copula_weibull import CopulaWeibull

        return likelihood_model(CopulaWeibull, hidden=hidden, **self.options, **preset.likelihood, **shared)

    def load(self, path: Path, device: str) -> NeuralEstimator:
        """A trained estimator from its file."""
        return type(self.estimator(PRESETS["quick"], device)).load(path, device=device)

    def fit(
        self,
        model: NeuralEstimator,
        training: AkiRows,
        validation: AkiRows,
        steps: Preprocessing,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        """Train on rows of :meth:`Build.rows`; endpoints already present do not enter the loss.

        Rows of one stay never share a minibatch. Likelihood models are trained on the transformed times, as
        everything else.
        """
        shared: dict[str, Any] = {
            "groups": training.stay_id,
            "callbacks": callbacks,
            "mask": training.at_risk,
        }
        if self.kind == "engression":
            held_out = (validation.X, validation.outcome(), None, validation.at_risk)
            model.fit(training.X, training.outcome(), eval_set=held_out, **shared)  # type: ignore[call-arg]
        else:
            scaled = (validation.X, _scaled(validation, steps), validation.at_risk)
            model.fit(training.X, _scaled(training, steps), eval_set=scaled, **shared)  # type: ignore[call-arg]

    def sample(
        self, model: NeuralEstimator, X: NDArray[Any], members: int, seed: int, steps: Preprocessing
    ) -> Iterator[Tensor]:
        """Draws of both remaining times in hours, (rows, members, 2), of consecutive rows on the device."""
        for draws in model.sample_chunks(X, members, seed):
            # likelihood models are in double precision, where only their parameters need it
            yield draws if self.kind == "engression" else (draws * steps.time_scale).expm1_().float()


def _scaled(rows: AkiRows, steps: Preprocessing) -> RightCensored:
    return RightCensored(steps.scaled(rows.time), rows.event)


METHODS = {
    method.name: method
    for method in (
        Method("naive", "Naive", "engression", {"objective": "naive"}),
        Method("censored", "Censored", "engression", {"objective": "censored"}),
        Method("joint_grid", "Joint grid", "grid"),
        Method("weibull", "Indep. Weibull", "copula", {"copula": "independent"}, conditional=False),
        Method("clayton", "Clayton Weibull", "copula", {"copula": "clayton"}, conditional=False),
        Method("conditional_weibull", "Cond. indep. Weibull", "copula", {"copula": "independent"}),
        Method("conditional_clayton", "Cond. Clayton Weibull", "copula", {"copula": "clayton"}),
    )
}
