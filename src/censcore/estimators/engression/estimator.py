"""Censored engression as an estimator."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from censcore._arrays import Array, to_numpy
from censcore._validation import as_seed
from censcore.distributions import Distribution, Ensemble
from censcore.estimators.covariates import check_weights
from censcore.estimators.engression.baseline import BaselinePool
from censcore.estimators.engression.causes import cause_times
from censcore.estimators.engression.censoring_quantiles import censoring_quantiles
from censcore.estimators.engression.codings import check_mask, check_order, warn_of_ties
from censcore.estimators.engression.exported import export_sampler
from censcore.estimators.engression.from_batches import FitFromBatches
from censcore.estimators.engression.generator import Generator
from censcore.estimators.engression.loss import EngressionTask, bounded
from censcore.estimators.engression.mixture import BaselineData, Fold, MixtureChoice, choose_mixture
from censcore.estimators.engression.predictions import SamplePredictions
from censcore.estimators.engression.sampling import NoisePool, chunks_of, shares
from censcore.estimators.engression.structures import (
    Branching,
    Competing,
    Free,
    Ordered,
    Semicompeting,
    Structure,
    structure_of,
)
from censcore.estimators.engression.tails import end_of_follow_up
from censcore.estimators.engression.time_scale import TRANSFORMS, TimeScale
from censcore.estimators.engression.training_censoring import OBJECTIVES, TrainingCensoring
from censcore.estimators.neural.estimator import pick_device
from censcore.estimators.neural.from_batches import followed_outcome, in_numpy
from censcore.estimators.neural.history import History
from censcore.estimators.neural.model_contents import check_number
from censcore.estimators.neural.standardised import Data, OnDemand, blocks, rows_of
from censcore.estimators.neural.streamed import StreamedRows, sample_of, subjects_in
from censcore.estimators.neural.training import Callback, mix_seed
from censcore.exceptions import InvalidInputError, ModelFileError
from censcore.outcomes import CompetingRisks, OutcomeLike, RightCensored, SemiCompetingRisks, as_outcome
from censcore.scores.energy import leave_out
from censcore.scores.inputs import scoring_inputs

__all__ = ["CensoredEngression"]

# Up to so many subjects "auto" is five generators, each validated on another fifth; up to so many one, which
# is trained again on all subjects.
_FEW, _SOME, _FOLDS = 1_000, 4_000, 5

# of the penalty on covariates: in units of the noise, and for more covariates than these
_SPARSITY, _FEW_COVARIATES = 0.4, 5
_SCALE_SUBJECTS = 10_000  # at most, whose times tell the scale of the loss

_log = logging.getLogger("censcore")


class CensoredEngression(SamplePredictions, FitFromBatches):
    r"""Joint distribution of several event times given covariates, learned from right-censored data.

    A generator :math:`g_\theta(x,\varepsilon)` with random input :math:`\varepsilon` (engression [1]_) is
    trained by the censored energy score: its samples are censored the way the data were, at draws of C that
    each observation allows, and compared with the censored outcome. The expected loss is minimised by the
    true distribution of T given x as far as follow-up reaches. Beyond it, where P(C >= t | x) = 0, the data
    carry no information and the generator extrapolates. Assumes that C is independent of T given x.

    Parameters
    ----------
    objective : {"censored", "naive", "latent"}
        ``"naive"`` treats censored times as event times, which is biased and meant for comparison only;
        ``"latent"`` expects uncensored data.
    width, depth, noise_dim, noise_everywhere, activation, residual, layer_norm, skip, dropout, output
        The generator, see :class:`~censcore.estimators.engression.Generator`.
    ordered : bool
        The event times of a subject come in the order of the coordinates, :math:`T_1\le\dots\le T_k` (first
        and second infection); every draw fulfils it. Events that a terminal one prevents (recurrence and
        death) need no setting: pass the outcome as :class:`~censcore.SemiCompetingRisks`. Neither do the
        causes of a :class:`~censcore.CompetingRisks` outcome, see Notes.
    time_transform : {"auto", "scale", "log1p", "bounded"}
        Unit of the loss: times relative to their mean; :math:`\log(1+t)/\log(1+q_{0.95})`, which weights
        early times more; or :math:`t/(t+u)` with the mean time u, where an event that never happens is the
        point 1. Each keeps the score proper, since censoring commutes with increasing maps. ``"auto"`` is
        ``"bounded"`` for competing and semi-competing risks and ``"scale"`` otherwise.
    beta : float
        Exponent of the energy score [2]_.
    samples : int
        Samples per subject in every training step.
    sparsity : float or "auto"
        Penalty on covariates in training: so much times the sum over covariates of the norm of all weights by
        which one enters the network, a group lasso [3]_. ``"auto"`` grows with the number of covariates and
        falls with that of subjects, see Notes.
    baseline : bool
        Let baselines take a share of the draws where that improves the forecast of held-out subjects, see
        Notes.
    n_generators : int or "auto"
        Generators trained from different seeds, whose samples are pooled; :meth:`by_generator` shows how far
        they disagree. Each is validated on another part of the subjects. ``"auto"`` is 5 up to 1,000
        subjects. Otherwise it is 1; up to 4,000 subjects that one is trained again on all of them, for as
        many epochs as were kept by validation.
    batch_size : int or "auto"
        Subjects per step; ``"auto"`` is 256, and an eighth of the subjects (at least 32) where they are few.
    epochs, learning_rate, weight_decay, schedule, warmup, clip, averaging, patience,
    validate_every, tolerance
        How to train, see :class:`~censcore.estimators.neural.Recipe`.
    validation_fraction : float
        Share of the subjects held out for validation when ``fit`` gets no ``eval_set``; 0 for none.
    n_samples : int
        Samples per subject in predictions, unless a method is given another number.
    random_state : int, RandomState or None
        Everything random follows from it; on a CPU the same seed gives the same model to the last bit, with
        the same version of torch and the same number of threads.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...
    precision : {"auto", "float32", "bfloat16"}
        Precision of the network; the loss is always float32. ``"auto"`` is bfloat16 on a GPU.
    compile : bool
        Compile the loss on a GPU: half a minute at the start, then faster steps; worth it for large data.
    progress : bool
        Show a progress bar.
    checkpoint : path, optional
        File for the state of training after every epoch; training continues from it if it exists.

    Attributes
    ----------
    history_ : History
        Losses by epoch, as a frame and a plot (of the first generator).
    censoring_ : Distribution
        The censoring distribution that training used.
    censoring_choice_ : str
        Where that distribution came from, in words.
    baseline_weight_ : float
        Share of the draws that come from a baseline.
    baseline_ : str
        Which baselines these are, and why, in words.
    histories_ : list of History
        Losses of every generator.
    follow_up_ : float or array, (k,)
        The end of follow-up: quantiles and means beyond it are returned as infinite, unless a tail is named.
    k_ : int
        Number of event times.

    Notes
    -----
    Baselines: where subjects are few a network may learn less than a simple model. After training, the
    forecasts of the generators for the subjects that they did not see are compared with three models fitted
    to the others: Kaplan-Meier, Cox and Weibull margins, joined by a Clayton copula (independent where one
    event prevents another). The energy score of a mixture is a convex quadratic function of its weights, so
    the best ones are known exactly; with them the model forecasts the mixture of its generators and of the
    baselines, fitted again to all subjects. A network that has learned nothing gets weight zero. Nothing is
    compared without validation, and then the network is alone.

    Sparsity: with p covariates and n subjects ``"auto"`` is :math:`0.4\,s\sqrt{\log(p/5)/n}` with the scale s
    of the loss, and zero for up to five covariates.

    Competing risks: fitted to a :class:`~censcore.CompetingRisks` outcome, the generator draws a time and a
    cause. Its loss is the energy score of :math:`(\min(T_1,C),\dots,\min(T_m,C))` with :math:`T_j=T` for the
    cause of the event and infinity for the others, at draws of C given the observation: :math:`C\ge y`
    after an event, of whatever cause. The energy score is strictly proper, and given :math:`C=c` these
    times tell all of time and cause up to c; so the expected loss is minimised by the cumulative incidences
    as far as follow-up reaches. ``predict_distribution`` gives a :class:`~censcore.CauseEnsemble`.

    See Also
    --------
    censcore.energy_score : The loss, as a score.
    CopulaWeibull, JointGridModel : Joint models that are trained by the censored log score.

    References
    ----------
    .. [1] X. Shen and N. Meinshausen (2024). Engression: extrapolation through the lens of distributional
       regression. Journal of the Royal Statistical Society, Series B.
    .. [2] T. Gneiting and A. E. Raftery (2007). Strictly proper scoring rules, prediction, and estimation.
       Journal of the American Statistical Association 102, 359-378.
    .. [3] M. Yuan and Y. Lin (2006). Model selection and estimation in regression with grouped variables.
       Journal of the Royal Statistical Society, Series B 68, 49-67.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.simulation import LogNormalScenario
    >>> scenario = LogNormalScenario(k=2, censoring="uniform")
    >>> data = scenario.sample(400, seed=0)
    >>> model = cs.CensoredEngression(epochs=3, random_state=0)
    >>> model = model.fit(data.X, data.y, censoring=scenario.censoring_distribution(data.X))
    >>> model.predict_distribution(data.X[:5], n_samples=100)
    Ensemble(shape=(5, 2), m=100)
    """

    _kind: ClassVar[str] = "CensoredEngression"

    def __init__(
        self,
        *,
        objective: str = "censored",
        width: int = 128,
        depth: int = 3,
        noise_dim: int = 64,
        noise_everywhere: bool = False,
        activation: str = "silu",
        residual: bool = True,
        layer_norm: bool = True,
        skip: bool = True,
        dropout: float = 0.0,
        output: str = "exp",
        ordered: bool = False,
        time_transform: str = "auto",
        beta: float = 1.0,
        samples: int = 8,
        sparsity: float | str = "auto",
        baseline: bool = True,
        n_generators: int | str = "auto",
        epochs: int = 80,
        batch_size: int | str = "auto",
        learning_rate: float = 4e-3,
        weight_decay: float = 0.01,
        schedule: str = "cosine",
        warmup: float = 0.05,
        clip: float | None = 1.0,
        averaging: float | None = 0.99,
        patience: int | None = None,
        validate_every: int = 4,
        tolerance: float = 1.0,
        validation_fraction: float = 0.2,
        n_samples: int = 1024,
        random_state: Any = None,
        device: str = "auto",
        precision: str = "auto",
        compile: bool = False,
        progress: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.objective = objective
        self.width = width
        self.depth = depth
        self.noise_dim = noise_dim
        self.noise_everywhere = noise_everywhere
        self.activation = activation
        self.residual = residual
        self.layer_norm = layer_norm
        self.skip = skip
        self.dropout = dropout
        self.output = output
        self.ordered = ordered
        self.time_transform = time_transform
        self.beta = beta
        self.samples = samples
        self.sparsity = sparsity
        self.baseline = baseline
        self.n_generators = n_generators
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.warmup = warmup
        self.clip = clip
        self.averaging = averaging
        self.patience = patience
        self.validate_every = validate_every
        self.tolerance = tolerance
        self.validation_fraction = validation_fraction
        self.n_samples = n_samples
        self.random_state = random_state
        self.device = device
        self.precision = precision
        self.compile = compile
        self.progress = progress
        self.checkpoint = checkpoint

    # ---- fitting -------------------------------------------------------------------------------

    def fit(
        self,
        X: Array | None,
        y: OutcomeLike | SemiCompetingRisks,
        sample_weight: Array | None = None,
        *,
        censoring: Any = None,
        eval_set: tuple[Any, ...] | None = None,
        groups: Array | None = None,
        mask: Array | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Train the generator.

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        y : RightCensored, CompetingRisks, SemiCompetingRisks, structured array or frame
            The outcome, (n,) or (n, k).
        sample_weight : array, (n,), optional
            Weights of the subjects.
        censoring : Distribution, estimator or "auto", optional
            The censoring distribution: given, or an estimator that is fitted to the flipped outcome, apart
            from the generator. Without it, it is what is known (no censoring, or ``y.censoring_time``), and
            otherwise a pooled Kaplan-Meier estimate. ``"auto"`` chooses between that and Cox regression by
            the cross-validated log score of C. A pooled estimate warns where the covariates predict
            censoring, by the test of :func:`~censcore.censoring_diagnostic`; ``censoring_choice_`` says what
            was used.
        eval_set : (X, y), (X, y, censoring) or (X, y, censoring, mask), optional
            Validation data; otherwise ``validation_fraction`` of the subjects is held out.
        groups : array, (n,), optional
            Subjects of one group (visits of a patient) never share a minibatch, and the validation split
            does not separate them.
        mask : array of bool, (n, k), optional
            False where an event time does not count (it is already past).
        callbacks : sequence of callables
            Called after every epoch with ``(epoch, network)``; True stops the training.

        Returns
        -------
        self
        """
        self._check_settings()
        self._forget()
        outcome = self._check_outcome(y)
        matrix = self._check_X(X, len(outcome), reset=True)
        groups = self._check_groups(groups, len(outcome))
        if isinstance(outcome, RightCensored) and not self.ordered:
            warn_of_ties(outcome, check_mask(mask, outcome))
        self._training_censoring = TrainingCensoring.choose(
            self.objective, X, followed_outcome(outcome), censoring, groups
        )
        assert self._training_censoring.distribution is not None
        self._follow_up = end_of_follow_up(outcome, self._training_censoring.distribution)
        outcome = self._as_seen(outcome)
        self._fit_scaling(matrix, slice(None))
        self._times = TimeScale.of(outcome, self._transform)
        everything = self._tensors(
            matrix, outcome, self._training_censoring.distribution, mask, sample_weight
        )
        validation = None
        if eval_set is not None:
            parts = self._check_eval_set(eval_set, "X", "y", "censoring", "mask")
            validation = self._evaluation_rows(*parts)
        folds = self._folds(everything, validation, groups)
        self._baseline_sample = None
        self._fit_folds(
            folds, callbacks, lambda: self._baseline_data(everything["x"], outcome, mask, sample_weight)
        )
        return self

    def _fit_folds(
        self, folds: list[Fold], callbacks: Sequence[Callback], data: Callable[[], BaselineData]
    ) -> None:
        """Train the generators, and choose what they are mixed with."""
        tasks, histories = self._fit_generators(folds, callbacks)
        self._mixture = MixtureChoice()
        if self.baseline:
            self._mixture = choose_mixture(
                data(), folds, tasks, self._times, self._seed, len(self._generators)
            )
            _log.info("baseline of censored engression: %s", self._mixture.words)
        self.history_, self.histories_ = histories[0], histories

    def _folds(self, everything: Data, validation: Data | None, groups: np.ndarray | None) -> list[Fold]:
        """The subjects of every generator, and those that validate it."""
        n = len(everything["x"])
        if validation is not None or self.validation_fraction == 0:
            count = 1 if self.n_generators == "auto" else int(self.n_generators)
            return [Fold(slice(None), everything, validation, groups)] * count
        if self.n_generators == "auto" and _FEW < n <= _SOME:
            return [self._fold(everything, groups, 0), Fold(slice(None), everything, None, groups)]
        count = (_FOLDS if n <= _FEW else 1) if self.n_generators == "auto" else int(self.n_generators)
        return [self._fold(everything, groups, i) for i in range(count)]

    def _fold(self, everything: Data, groups: np.ndarray | None, part: int) -> Fold:
        """All subjects but one part, which is held out."""
        rows, held_out = self._split(len(everything["x"]), groups, False, part)
        return Fold(
            rows,
            rows_of(everything, rows),
            None if held_out is None else rows_of(everything, held_out),
            None if groups is None else groups[rows],
        )

    @staticmethod
    def _baseline_data(x: Any, y: Any, mask: Any, weight: Any) -> BaselineData:
        n = len(y)
        return BaselineData(
            x,
            to_numpy(y.time).reshape(n, -1),
            to_numpy(y.event).reshape(n, -1).astype(bool),
            None if mask is None else np.asarray(mask, dtype=bool).reshape(n, -1),
            None if weight is None else check_weights(weight, n),
        )

    def _check_settings(self) -> None:
        for name, allowed in (
            ("objective", OBJECTIVES),
            ("time_transform", TRANSFORMS),
            ("precision", ("auto", "float32", "bfloat16")),
        ):
            if getattr(self, name) not in allowed:
                raise InvalidInputError(f"{name} must be one of {allowed}; got {getattr(self, name)!r}.")
        automatic = self.n_generators == "auto"
        if self.samples < 2 or not (automatic or _whole(self.n_generators)):
            raise InvalidInputError(
                "samples must be at least 2, and n_generators at least 1 or 'auto'; "
                f"got {(self.samples, self.n_generators)}."
            )
        if self.sparsity != "auto" and not _not_negative(self.sparsity):
            raise InvalidInputError(f"sparsity must be 'auto' or at least 0; got {self.sparsity!r}.")
        if not 0 < self.beta < 2:
            raise InvalidInputError(f"beta must lie between 0 and 2, both excluded; got {self.beta}.")

    @property
    def censoring_(self) -> Distribution | None:
        """The censoring distribution that training used; None in a model read from a file."""
        return self._training_censoring.distribution

    @property
    def baseline_weight_(self) -> float:
        """Share of the draws that come from a baseline instead of the network."""
        self.check_fitted()
        return self._mixture.total

    @property
    def baseline_(self) -> str:
        """Which baselines these are, and why, in words."""
        self.check_fitted()
        sampled = (
            "" if self._baseline_sample is None else f" (fitted to a sample of {self._baseline_sample:,})"
        )
        return self._mixture.words + (sampled if self._mixture.compared else "")

    @property
    def censoring_choice_(self) -> str:
        """Where that distribution came from, in words."""
        return self._training_censoring.words

    def _check_outcome(self, y: Any) -> Any:
        """Check the outcome, and which constraints its event times fulfil."""
        if not isinstance(y, SemiCompetingRisks | CompetingRisks):
            outcome = super()._check_outcome(y)
            self._structure: Structure = Ordered(self.k_) if self.ordered else Free(self.k_)
            if self.ordered:
                check_order(outcome)
            return outcome
        if self.objective == "naive" or self.ordered or self.time_transform not in ("auto", "bounded"):
            raise InvalidInputError(
                f"{type(y).__name__} needs objective 'censored' or 'latent', ordered=False and "
                "time_transform 'auto' or 'bounded', where an event that never happens is an ordinary point; "
                f"got {self.objective!r}, {self.ordered} and {self.time_transform!r}."
            )
        if isinstance(y, CompetingRisks):
            self._structure = Competing(y.n_causes, y.names)
            y = cause_times(y, type(self).__name__, training=True)
        else:
            y = in_numpy(y)
            self._structure = Semicompeting(y.k, y.terminal)
        super()._check_outcome(RightCensored(y.time, y.event))
        return y

    @property
    def _transform(self) -> str:
        """The unit of the loss."""
        if self.time_transform != "auto":
            return self.time_transform
        return "bounded" if isinstance(self._structure, Branching) else "scale"

    def _as_seen(self, y: Any) -> Any:
        """The outcome as the objective treats it."""
        return RightCensored(y.time, np.ones(y.shape, dtype=bool)) if self.objective == "naive" else y

    def _tensors(
        self, X: np.ndarray, y: Any, C: Distribution, mask: Any = None, weight: Any = None
    ) -> dict[str, Tensor | OnDemand]:
        n, k = len(y), y.k
        time = y.known_time if isinstance(y, SemiCompetingRisks) else y.time
        y = followed_outcome(y)
        if mask is not None:
            if y.k != k:
                raise InvalidInputError("mask: not available for SemiCompetingRisks; leave it out.")
            y, C, mask = leave_out(y, C, mask)
            time = y.time
            if not mask.any():
                raise InvalidInputError("mask: got False everywhere, expected an event time that counts.")
        inputs = scoring_inputs(y, _anything(y), C, joint=True)
        rows: dict[str, Tensor | OnDemand] = {
            "x": self._standardised(X),
            "y": _tensor(self._times.forward, to_numpy(time).reshape(n, k)),
            "c": censoring_quantiles(inputs.y, inputs.C, self._times.forward),
        }
        if mask is not None:
            rows["mask"] = torch.from_numpy(mask)
        if weight is not None:
            rows["weight"] = torch.from_numpy(check_weights(weight, n).astype(np.float32))
        return rows

    def _evaluation_rows(self, X: Any, y: Any, censoring: Any = None, mask: Any = None) -> Data:
        outcome = self._as_seen(self._other_outcome(y))
        matrix = self._check_X(X, len(outcome), reset=False)
        return self._tensors(matrix, *self._within_follow_up(X, outcome, censoring), mask)

    def _other_outcome(self, y: Any) -> Any:
        """An outcome of other subjects, of the kind that the model was fitted to."""
        if isinstance(self._structure, Competing):
            names = self._structure.names
            if not isinstance(y, CompetingRisks) or y.n_causes != len(names):
                raise InvalidInputError(
                    f"y: got {type(y).__name__}, expected CompetingRisks with the causes {', '.join(names)}, "
                    "as in fit."
                )
            return cause_times(y, type(self).__name__)
        semicompeting = isinstance(self._structure, Semicompeting)
        given = isinstance(y, SemiCompetingRisks)
        outcome = in_numpy(y if given else as_outcome(y).require_no_entry(type(self).__name__))
        if given != semicompeting or outcome.k != self.k_:
            expected = "SemiCompetingRisks" if semicompeting else "RightCensored"
            raise InvalidInputError(
                f"y: got {type(y).__name__} with {outcome.k} event times, expected {expected} with "
                f"{self.k_}, as in fit."
            )
        return outcome

    def _within_follow_up(self, X: Any, y: Any, censoring: Any) -> tuple[Any, Distribution]:
        """Other subjects up to the end of follow-up of the censoring distribution, and that distribution."""
        followed, C = self._training_censoring.followed(X, followed_outcome(y), censoring)
        if not isinstance(y, SemiCompetingRisks):
            return followed, C
        return y.censor_at(np.where(followed.event, np.inf, followed.time)), C

    def _fit_generators(
        self, folds: Sequence[Fold], callbacks: Sequence[Callback]
    ) -> tuple[list[EngressionTask], list[History]]:
        device = pick_device(self.device)
        self._generators: list[Generator] = []
        tasks: list[EngressionTask] = []
        histories: list[History] = []
        for i, fold in enumerate(folds):
            seed = self._seed + 7919 * i
            task = self._task(self._new_generator(seed), device, self._penalty(fold.training))
            checkpoint = (
                self.checkpoint if self.checkpoint is None or i == 0 else Path(f"{self.checkpoint}.{i}")
            )
            # without held-out subjects: as many epochs as the first generator kept
            again = fold.validation is None and histories and folds[0].validation is not None
            epochs = histories[0].kept_epoch + 1 if again else None
            history = self._train(
                task, fold.training, fold.validation, fold.groups, callbacks, seed, checkpoint, epochs
            )
            histories.append(history)
            tasks.append(task)
            self._generators.append(task.network)
            if history.interrupted:
                break
        if len(tasks) > 1 and folds[0].validation is not None and folds[-1].validation is None:
            self._generators = self._generators[1:]  # the first has told for how long to train
        return tasks, histories

    def _penalty(self, rows: Data | StreamedRows) -> float:
        r"""Weight of the penalty on covariates, of the order of the noise in the gradient of the loss.

        That of a covariate without effect is :math:`s/\sqrt n` with the scale s of the loss, and the largest
        of many grows with the root of the logarithm of their number.
        """
        if self.sparsity != "auto":
            return float(self.sparsity)
        y = sample_of(rows)["y"][:_SCALE_SUBJECTS]
        y = bounded(y) if self._times.bounded else y
        spread = 0.5 * float((y - y.roll(len(y) // 2, 0)).square().sum(dim=1).sqrt().mean())
        excess = np.log(max(1.0, self._n_inputs / _FEW_COVARIATES))
        return _SPARSITY * spread * float(np.sqrt(excess / subjects_in(rows)))

    def _new_generator(self, seed: int) -> Generator:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return Generator(
                self._n_inputs,
                self._structure.outputs,
                width=self.width,
                depth=self.depth,
                noise_dim=self.noise_dim,
                noise_everywhere=self.noise_everywhere,
                activation=self.activation,
                residual=self.residual,
                layer_norm=self.layer_norm,
                skip=self.skip,
                dropout=self.dropout,
                output=self.output,
                logits=self._structure.logits,
            )

    def _task(self, network: Generator, device: torch.device, sparsity: float = 0.0) -> EngressionTask:
        mixed = self.precision == "bfloat16" or (self.precision == "auto" and device.type == "cuda")
        scale = torch.tensor(self._structure.scale(self._times.centre), device=device)
        return EngressionTask(
            network, scale, self.samples, self.beta, mixed, self._structure, self._times.bounded, sparsity
        )

    # ---- predicting ----------------------------------------------------------------------------

    def _tensor_chunks(
        self, X: Any, m: int | None, seed: int | None, baselines: bool = True
    ) -> Iterator[Tensor]:
        """Draws (subjects, m, k) in chunks that fit into memory; the components share the draws."""
        self.check_fitted()
        x = self._standardised(self._check_X(X, None, reset=False))
        m = self.n_samples if m is None else m
        if not isinstance(m, int | np.integer) or m < 1:
            raise InvalidInputError(f"m, the number of samples: got {m}, expected a positive integer.")
        draws = self._components(int(m), self._seed if seed is None else as_seed(seed), baselines)
        for rows in chunks_of(len(x), int(m), self._generators[0]):
            some = x[rows]
            yield torch.cat([draw(some) for draw in draws], dim=1)

    def _components(self, m: int, seed: int, baselines: bool) -> list[Callable[[Tensor], Tensor]]:
        """What draws event times for covariates: the generators, and baselines if these are wanted."""
        device, choice = pick_device(self.device), self._mixture if baselines else MixtureChoice()
        tasks = [self._task(network.to(device).eval(), device) for network in self._generators]
        weights = [(1 - choice.total) / len(tasks)] * len(tasks) + list(choice.weights)
        offset = float(np.random.default_rng(seed).random()) if choice.baselines else 0.5
        sizes = shares(m, weights, offset)
        drawn = [
            self._draws_of(task, NoisePool(task.network, size, mix_seed(seed, i), task.mixed))
            for i, (task, size) in enumerate(zip(tasks, sizes, strict=False))
            if size
        ]
        for i, (baseline, size) in enumerate(zip(choice.baselines, sizes[len(tasks) :], strict=True)):
            if size:
                part = mix_seed(seed, len(tasks) + i)
                drawn.append(BaselinePool(baseline.to(device), self._structure, size, part).draw)
        return drawn

    def _draws_of(self, task: EngressionTask, pool: NoisePool) -> Callable[[Tensor], Tensor]:
        def draw(x: Tensor) -> Tensor:
            z = self._structure.draw(task.scaled(pool.draw(x)), pool.uniform(x))
            times: Tensor = self._times.inverse(z)
            return times

        return draw

    def score(
        self,
        X: Array | None,
        y: OutcomeLike | SemiCompetingRisks,
        sample_weight: Array | None = None,
        *,
        censoring: Distribution | None = None,
    ) -> float:
        """Compute minus the mean censored energy score (higher is better, as in scikit-learn).

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        y : RightCensored, SemiCompetingRisks, structured array or frame
            The outcome, of the kind that the model was fitted to.
        sample_weight : array, (n,), optional
            Weights of the subjects in the mean.
        censoring : Distribution, optional
            The censoring distribution of these subjects. If omitted: known censoring times, or else the
            distribution that was used in training, up to the end of its follow-up. Semi-competing risks
            that nothing censors are scored up to their last time.

        Returns
        -------
        float
            Minus the mean loss.
        """
        from censcore.scores import energy_score

        self.check_fitted()
        outcome, distribution = self._within_follow_up(X, self._other_outcome(y), censoring)
        horizon = None
        if isinstance(outcome, SemiCompetingRisks) and bool(
            (distribution.marginal(0).mass_at_infinity() > 0).any()
        ):
            horizon = float(outcome.time.max())  # without an end, events that never happen are infinitely far
        losses = energy_score(outcome, Ensemble(self.sample(X)), distribution, fair=True, horizon=horizon)
        weight = None if sample_weight is None else check_weights(sample_weight, len(outcome))
        return -float(np.average(losses, weights=weight))

    def export(self, path: str | os.PathLike[str], generator: int = 0) -> None:
        """Write the sampler as a program that torch runs without this library (``torch.export``).

        ``torch.export.load(path).module()(x, noise, uniform)`` gives event times (n, m, k) for covariates x
        (n, d) as they were given to ``fit``, in float32; standard normal noise (n, m, ``noise_size``); and
        uniform numbers (n, m), which decide which events happen in semi-competing risks and are ignored
        otherwise. n and m are free.

        Parameters
        ----------
        path : path
            Where to write, usually with the ending ``.pt2``.
        generator : int
            Which of the ``n_generators``.
        """
        self.check_fitted()
        if not 0 <= generator < len(self._generators):
            raise InvalidInputError(
                f"generator must be a number from 0 to {len(self._generators) - 1}; got {generator}."
            )
        if self._mixture.baselines:
            raise InvalidInputError(
                f"export: {100 * self.baseline_weight_:.0f} % of the draws come from a baseline "
                f"({self.baseline_}), which the program would leave out. Fit with baseline=False to export "
                "a network alone."
            )
        export_sampler(
            path, self._generators[generator], self._structure, self._times, self._center, self._spread
        )

    @property
    def noise_size(self) -> int:
        """Standard normal numbers that one draw of an exported sampler needs."""
        self.check_fitted()
        return self._generators[0].noise_size

    # ---- model files ---------------------------------------------------------------------------

    def _networks(self) -> list[nn.Module]:
        return [*self._generators, *self._mixture.baselines]

    def _build_networks(self) -> list[nn.Module]:
        self._generators = [self._new_generator(0) for _ in range(self._count)]
        return self._networks()

    def _fitted_settings(self) -> dict[str, Any]:
        return {
            "generators": len(self._generators),
            "unit": self._times.unit,
            "scale": list(self._times.centre),
            "structure": self._structure.settings,
            "follow_up": [None if np.isinf(end) else float(end) for end in self._follow_up],
            "censoring_choice": self.censoring_choice_,
            "mixture": self._mixture.settings,
            "baseline_sample": self._baseline_sample,
        }

    def _restore_settings(self, settings: dict[str, Any]) -> None:
        self._count = settings["generators"]
        check_number("unit", settings["unit"], positive=True)
        if len(settings["scale"]) != self.k_:
            raise ModelFileError(f"scale: got {len(settings['scale'])} values, expected {self.k_}.")
        for value in settings["scale"]:
            check_number("scale", value, positive=True)
        self._structure = structure_of(self.k_, **settings.get("structure", {}))
        self._times = TimeScale(self._transform, settings["unit"], tuple(settings["scale"]))
        self._training_censoring = TrainingCensoring(settings["censoring_choice"])
        # files written before there were baselines have none
        self._mixture = MixtureChoice.restored(settings.get("mixture"), self.k_, self._n_inputs)
        self._baseline_sample = settings.get("baseline_sample")
        # files written before the end of follow-up was kept have none
        ends = settings.get("follow_up", [None] * self.k_)
        self._follow_up = np.array([np.inf if end is None else end for end in ends])


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)


def _not_negative(value: Any) -> bool:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return number and bool(0 <= value < np.inf)


def _anything(y: RightCensored) -> Distribution:
    """A forecast of the right shape, to check outcome and censoring distribution against each other."""
    return Ensemble(np.zeros((1, 1, *y.shape[1:])))


def _tensor(scale: Callable[[np.ndarray], np.ndarray], times: np.ndarray) -> Tensor:
    scaled = np.empty(times.shape, dtype=np.float32)
    for rows in blocks(*times.shape):
        scaled[rows] = scale(times[rows])
    return torch.from_numpy(scaled)
