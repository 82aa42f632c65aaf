"""The base class of neural estimators: covariates, the validation split, training, model files."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from censcore._arrays import Array, Covariates, as_float, is_torch, to_numpy
from censcore._validation import as_count, as_labels, as_number, as_seed, check_kind, is_auto
from censcore.estimators.covariates import check_numbers, count_rows, validated
from censcore.estimators.folds import seed_of
from censcore.estimators.libraries.sample_predictions import MOST_SAMPLES
from censcore.estimators.regression.cause_times import cause_times
from censcore.estimators.saved_models import SavedEstimator
from censcore.exceptions import InvalidInputError
from censcore.learning.data.checks import check_mask, check_single_precision
from censcore.learning.data.standardised import Data, Fold, Standardised, as_arrays, as_tensors
from censcore.learning.data.units import means_and_spreads
from censcore.learning.file_checks import check_contents
from censcore.learning.settings import Network, Training
from censcore.learning.structures import Structure, structure_for
from censcore.learning.training.devices import pick_device
from censcore.learning.training.loop import Run
from censcore.learning.training.task import Callback, History, Recipe, Task
from censcore.model_files import part_of
from censcore.outcomes import CompetingRisks, SemiCompetingRisks, as_outcome

_MOST_SEED = 2**62  # torch takes seeds below 2**63, and every network has one of its own


class NeuralEstimator(SavedEstimator):
    """Base class of estimators that are networks; a subclass defines the network and its loss.

    Parameters with the same names mean the same in every subclass: ``epochs``, ``patience``,
    ``random_state``, ``device``, ``progress``, ``checkpoint``, ``training``.

    See Also
    --------
    censcore.CensoredEngression : Trained by the censored energy score.
    LikelihoodEstimator : Base class of estimators that are trained by the censored log score.
    """

    _takes_causes: ClassVar[bool] = False  # competing and semi-competing risks
    _eval_parts: ClassVar[tuple[str, ...]] = ("X", "y", "mask")

    epochs: int
    patience: int | None
    random_state: int | np.random.RandomState | None
    device: str
    progress: bool | None
    checkpoint: str | os.PathLike[str] | None
    training: Training | None = None
    ordered = False
    default_training: ClassVar[Training] = Training()
    _structure: Structure
    _networks: list[Any]
    _precision: ClassVar[torch.dtype] = torch.float32  # of trained weights

    # ---- data ----------------------------------------------------------------------------------

    def _check_X(self, X: Any, n: int | None, *, reset: bool) -> np.ndarray:
        """Covariates as a float32 matrix; X = None is none at all, for one subject if n is unknown."""
        if X is None:
            X = np.empty((1 if n is None else n, 0))
        elif isinstance(X, list | tuple):
            X = as_float(X, "X")
        count_rows(X)
        if len(X.shape) == 2 and X.shape[1] == 0:
            X = np.empty((len(X), 0))
        if X.shape[1:] == (0,):
            if reset:
                self.n_features_in_ = 0
            elif self.n_features_in_ != 0:
                raise InvalidInputError(f"X: got no covariates, expected {self.n_features_in_}, as in fit.")
            return X.astype(np.float32)
        check_numbers(X)
        check_single_precision(X, fitting=reset)
        X = validated(self, X, np.float32, reset=reset)
        if n is not None and len(X) != n:
            raise InvalidInputError(f"X: got {len(X)} rows, expected {n}, one per subject of y.")
        return X

    def _fit_scaling(self, X: np.ndarray, rows: np.ndarray | slice = slice(None)) -> None:
        """Learn how to standardise covariates, from all subjects or some."""
        self._center, spread = (part.astype(np.float32) for part in means_and_spreads(X, rows))
        self._spread = np.where(spread > 0, spread, np.float32(1))

    @property
    def _n_inputs(self) -> int:
        """Inputs of the network: a column of zeros where there are no covariates."""
        return max(1, self.n_features_in_)

    def _standardised(self, X: np.ndarray) -> Standardised:
        return Standardised(X, self._center, self._spread)

    def _check_outcome(self, y: Any, mask: Any = None) -> Any:
        """Check the outcome, as far as it counts; note its structure, and whether it is (n,) or (n, k)."""
        outcome = self._plain_outcome(y, training=True)
        original = y if isinstance(y, CompetingRisks | SemiCompetingRisks) else outcome
        counts = check_mask(mask, original, needed=True)
        self._structure = structure_for(original, self.ordered)
        self.k_, self._joint = outcome.k, outcome.time.ndim == 2
        events = to_numpy(outcome.event).reshape(len(outcome), -1)
        occurs = (events if counts is None else events & counts).any(axis=0)
        if not occurs.any():
            raise InvalidInputError(
                "No subject has an event; event times cannot be learned from censored times alone."
            )
        if not occurs.all():
            warnings.warn(
                f"No subject has an event in coordinates {np.flatnonzero(~occurs).tolist()}: all that can be "
                "learned of these times is that they exceed follow-up.",
                stacklevel=4,
            )
        return outcome

    def _plain_outcome(self, y: Any, training: bool = False) -> Any:
        """The outcome in NumPy; of competing risks the times of the causes."""
        name = type(self).__name__
        if self._takes_causes and isinstance(y, CompetingRisks):
            return cause_times(y, name, training)
        if not (self._takes_causes and isinstance(y, SemiCompetingRisks)):
            y = as_outcome(y).require_no_entry(name)
        return y.like(to_numpy(y.time)) if is_torch(y.time) else y

    def _in_memory(self, X: Any, y: Any, groups: Any, mask: Any = None) -> tuple[np.ndarray, Any, Any]:
        """Training data in memory: covariates as numbers, outcome and groups."""
        self._forget()
        outcome = self._check_outcome(y, mask)
        matrix = self._check_X(X, len(outcome), reset=True)
        return matrix, outcome, None if groups is None else as_labels(groups, len(outcome))

    @abstractmethod
    def _rows(self, X: Any, y: Any, mask: Any = None) -> Data:
        """Return the data of other subjects, some of whose times must count, when units are known."""

    def _eval_rows(self, eval_set: Any) -> Data:
        """The data of validation subjects, a tuple that begins with X and y."""
        parts = self._eval_parts
        if not isinstance(eval_set, tuple | list) or not 2 <= len(eval_set) <= len(parts):
            listed = isinstance(eval_set, tuple | list)
            got = f"{len(eval_set)} entries" if listed else type(eval_set).__name__
            raise InvalidInputError(f"eval_set must be a tuple, ({', '.join(parts)}); got {got}.")
        return self._rows(**dict(zip(parts, eval_set, strict=False)))

    def _split(
        self, n: int, groups: np.ndarray | None, others_validate: bool, part: int = 0
    ) -> tuple[np.ndarray | slice, np.ndarray | None]:
        """Subjects for training and, without an eval_set, for validation; a group stays on one side.

        Different parts hold out different subjects, as long as there are any that were not held out before.
        """
        share = self._held_out_share
        if others_validate or share == 0 or n < 10:
            return slice(None), None
        rng = np.random.default_rng(self._seed)
        units = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
        order = rng.permutation(units.max() + 1)
        size = max(1, round(share * len(order)))
        held_out = np.isin(units, np.roll(order, -part * size)[:size])
        return np.flatnonzero(~held_out), np.flatnonzero(held_out)

    @property
    def _held_out_share(self) -> float:
        return as_number(self._training.validation_fraction, "validation_fraction", least=0, below=1)

    @property
    def _seed(self) -> int:
        """An integer seed, drawn once per fit where the random state is none or a generator."""
        state = self.random_state
        if isinstance(state, int | np.integer):
            return as_count(state, "random_state", least=0, most=_MOST_SEED)
        if not hasattr(self, "_drawn_seed"):
            self._drawn_seed = seed_of(state)
        return self._drawn_seed

    def _forget(self) -> None:
        """Drop what an earlier fit has learned, so that a failed one leaves no half-fitted model."""
        for name in ("_drawn_seed", "history_", "feature_names_in_"):
            self.__dict__.pop(name, None)

    def __sklearn_is_fitted__(self) -> bool:
        return "history_" in vars(self)

    # ---- training ------------------------------------------------------------------------------

    @property
    def _training(self) -> Training:
        """The settings of training other than epochs and patience."""
        settings = self.default_training if self.training is None else self.training
        check_kind(settings, "training", Training, "Training(learning_rate=..., ...)")
        return settings

    def _recipe(self, n: int) -> Recipe:
        settings = self._training
        size = settings.batch_size
        automatic = is_auto(size)
        if isinstance(size, str) and not automatic:
            raise InvalidInputError(f"batch_size must be a number or 'auto'; got {size!r}.")
        shared = {f.name: getattr(settings, f.name) for f in fields(Recipe) if hasattr(settings, f.name)}
        batch_size = min(256, max(32, n // 8)) if automatic else size
        return Recipe(**shared | {"epochs": self.epochs, "patience": self.patience, "batch_size": batch_size})

    def _train(
        self,
        task: Task,
        networks: Sequence[nn.Module],
        folds: Sequence[Fold],
        recipe: Recipe,
        callbacks: Sequence[Callback] = (),
        **options: Any,
    ) -> list[History]:
        """Train a network on its fold, or several side by side, whose task is that of their stack."""
        settings = {"seeds": self._seeds(len(folds)), "checkpoint": self.checkpoint} | options
        run = Run(task, networks, folds, recipe, settings["seeds"], pick_device(self.device))
        return run.train(callbacks, settings["checkpoint"], self.progress)

    def _seeds(self, count: int) -> list[int]:
        """Seeds of several networks."""
        return [self._seed + 7919 * i for i in range(count)]

    @abstractmethod
    def _new_network(self) -> nn.Module:
        """An untrained network for the fitted shape."""

    def _new_networks(self, seeds: Sequence[int]) -> list[Any]:
        """Untrained networks, each from a seed of its own."""
        networks = []
        with torch.random.fork_rng(devices=[]):
            for seed in seeds:
                torch.manual_seed(seed)
                networks.append(self._new_network())
        return networks

    def _with(self, network: nn.Module) -> Self:
        """The model with one network alone."""
        model = copy(self)
        model._networks = [network]
        return model

    # ---- draws ---------------------------------------------------------------------------------

    @torch.no_grad()
    def sample_chunks(
        self, X: Covariates | None, m: int | None = None, seed: int | None = None
    ) -> Iterator[Tensor]:
        """Draw from the distribution of T given x, chunk by chunk of subjects, on the device of the model.

        For work that should stay on a GPU, such as scores of very many subjects.

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates, as in ``fit``.
        m : int, optional
            Draws per subject; ``n_samples`` of the estimator, or 1024, if omitted.
        seed : int, optional
            The same seed and subjects give the same draws; that of the fit if omitted.

        Yields
        ------
        tensor, (subjects, m, k)
            The draws of the next subjects.
        """
        self.check_fitted()
        x = self._standardised(self._check_X(X, None, reset=False))
        m = getattr(self, "n_samples", 1024) if m is None else m
        m = as_count(m, "m, the number of samples,", most=MOST_SAMPLES)
        device = pick_device(self.device)
        for network in self._networks:
            network.to(device).eval()
        yield from self._draws(x, m, self._seed if seed is None else as_seed(seed), device)

    @abstractmethod
    def _draws(self, x: Standardised, m: int, seed: int, device: torch.device) -> Iterator[Tensor]:
        """Draws (subjects, m, k) of consecutive subjects."""

    @property
    def _causes(self) -> Any:
        """The names of competing causes."""
        return getattr(self._structure, "names", None)

    def _chunks(self, X: Array | None, m: int | None, seed: int | None) -> Iterator[np.ndarray]:
        for z in self.sample_chunks(X, m, seed):
            yield z.cpu().numpy()

    # ---- model files ---------------------------------------------------------------------------

    def _fitted_settings(self) -> dict[str, Any]:
        """What a subclass must keep besides weights and parameters, as JSON values."""
        return {}

    def _restore_settings(self, settings: dict[str, Any]) -> None:
        """Take back what ``_fitted_settings`` gave."""

    def _contents(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors = {
            f"{i}.{name}": value
            for i, net in enumerate(self._networks)
            for name, value in net.state_dict().items()
        }
        names = getattr(self, "feature_names_in_", None)
        settings = {
            "parameters": self.get_params(deep=False) | {"random_state": self._seed, "checkpoint": None},
            "n_features": self.n_features_in_,
            "feature_names": None if names is None else [str(name) for name in names],
            "k": self.k_,
            "joint": self._joint,
            "seed": self._seed,
            "history": self.history_,
            "fitted": self._fitted_settings(),
        }
        return as_arrays(tensors) | {"center": self._center, "spread": self._spread}, settings

    @classmethod
    def _check_device(cls, device: str) -> None:
        pick_device(device)

    @classmethod
    def _restored(cls, arrays: dict[str, np.ndarray], settings: dict[str, Any], device: str) -> Self:
        check_contents(arrays, settings)
        parameters, kinds = settings["parameters"], {"network": Network, "training": Training}
        objects = {name: make(**parameters[name]) for name, make in kinds.items() if parameters.get(name)}
        model = cls(**parameters | objects | {"device": device})
        model.n_features_in_, model.k_, model._joint = (
            settings["n_features"],
            settings["k"],
            settings["joint"],
        )
        if settings["feature_names"] is not None:
            model.feature_names_in_ = np.array(settings["feature_names"], dtype=object)
        model._center, model._spread = arrays["center"], arrays["spread"]
        model._restore_settings(settings["fitted"])
        model._networks = model._new_networks([0] * settings["fitted"].get("generators", 1))
        for i, network in enumerate(model._networks):
            network.to(cls._precision).load_state_dict(as_tensors(part_of(arrays, str(i))))
            network.to(pick_device(device)).eval()
        model.history_ = History.from_dict(settings["history"])
        return model
