"""Censored engression as an estimator."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Ensemble, PointMass
from censcore.distributions.joint_events import JointEvent
from censcore.estimators.censoring import Censoring
from censcore.estimators.engression.generator import Generator
from censcore.estimators.engression.loss import EngressionTask, censoring_table
from censcore.estimators.kaplan_meier import KaplanMeier
from censcore.estimators.neural import NeuralEstimator, pick_device
from censcore.estimators.training import Callback, History, mix_seed
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored, as_outcome
from censcore.scores._problem import known_law, pose
from censcore.scores.energy import leave_out

__all__ = ["CensoredEngression"]

_log = logging.getLogger("censcore")

# Sampling works on at most this many hidden units at a time.
_SAMPLING_UNITS = 2**24


class CensoredEngression(NeuralEstimator):
    r"""Joint law of several event times given covariates, learned from right-censored data.

    A generator :math:`g_\theta(x,\varepsilon)` with random input :math:`\varepsilon` is trained by the
    censored energy score: its samples are censored the way the data were, at times that each observation
    allows, and compared with the censored outcome. Minimised in expectation by the true law of T given x
    wherever follow-up reaches; beyond it, where P(C >= t | x) = 0, nothing in the data speaks and the
    generator extrapolates. Assumes that C is independent of T given x.

    Parameters
    ----------
    objective : {"censored", "naive", "latent"}
        ``"naive"`` takes the censored times for event times, which is wrong and useful for comparison only;
        ``"latent"`` expects uncensored data.
    width, depth, noise_dim, noise_everywhere, activation, residual, layer_norm, skip, dropout, output
        The generator, see :class:`~censcore.estimators.engression.Generator`.
    transform : {"scale", "log1p"}
        Unit of the loss: times relative to their mean, or :math:`\log(1+t)/\log(1+q_{0.95})`, which weighs
        early times more. Either keeps the score proper, since censoring commutes with increasing maps.
    beta : float
        Exponent of the energy score.
    samples : int
        Samples per row in every training step.
    n_generators : int
        Generators trained from different seeds, whose samples are pooled.
    batch_size : int or "auto"
        Rows per step; ``"auto"`` is 256, and an eighth of the rows (at least 32) where they are few.
    epochs, learning_rate, weight_decay, schedule, warmup, clip, averaging, patience,
    validate_every, tolerance
        How to train, see :class:`~censcore.estimators.training.Recipe`.
    validation_fraction : float
        Share of the rows held out for validation when ``fit`` gets no ``eval_set``; 0 for none.
    n_samples : int
        Samples per row in predictions, unless a method is told otherwise.
    random_state : int, RandomState or None
        Everything random follows from it; the same seed gives the same model on a CPU.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...
    precision : {"auto", "float32", "bfloat16"}
        What the network computes in; the loss is always float32. ``"auto"`` is bfloat16 on a GPU.
    compile : bool
        Compile the loss on a GPU: half a minute at the start, then faster steps; worth it for large data.
    progress : bool
        Show a progress bar.
    checkpoint : path, optional
        Keep the state of training there after every epoch, and go on from it if it exists.

    Attributes
    ----------
    history_ : History
        Losses by epoch, as a frame and a plot (of the first generator).
    censoring_ : Distribution
        The law of C that training used.
    censoring_choice_ : str
        Where that law came from, in words.
    k_ : int
        Number of event times.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.simulation import LogNormalWorld
    >>> world = LogNormalWorld(k=2, censoring="uniform")
    >>> data = world.sample(400, seed=0)
    >>> model = cs.CensoredEngression(epochs=3, random_state=0)
    >>> model = model.fit(data.X, data.y, censoring=world.censoring_law(data.X))
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
        transform: str = "scale",
        beta: float = 1.0,
        samples: int = 8,
        n_generators: int = 1,
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
        self.transform = transform
        self.beta = beta
        self.samples = samples
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

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        censoring: Any = None,
        *,
        eval_set: tuple[Any, ...] | None = None,
        sample_weight: Any = None,
        groups: Any = None,
        mask: Any = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Train the generator.

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        y : RightCensored, structured array or frame
            The outcome, (n,) or (n, k).
        censoring : Distribution or estimator, optional
            Law of C: given, or an estimator that is fitted to the flipped outcome, apart from the generator.
            Without it the law is what is known (no censoring, or ``y.censoring_time``), and otherwise a
            Kaplan-Meier estimate; ``censoring_choice_`` says which.
        eval_set : (X, y), (X, y, censoring) or (X, y, censoring, mask), optional
            Validation rows; otherwise ``validation_fraction`` of the rows is held out.
        sample_weight : array, (n,), optional
            Weights of the rows.
        groups : array, (n,), optional
            Rows of one group (a patient) never share a minibatch, nor are they split by the validation set.
        mask : array of bool, (n, k), optional
            False where an event time does not count (it is already past).
        callbacks : sequence of callables
            Called after every epoch with ``(epoch, network)``; True stops the training.
        """
        self._check_settings()
        self.__dict__.pop("_drawn_seed", None)
        outcome = self._check_outcome(y)
        X = self._check_X(X, len(outcome), reset=True)
        law = self._censoring_law(X, outcome, censoring)
        outcome = _without_censoring(outcome) if self.objective == "naive" else outcome
        groups = None if groups is None else np.asarray(groups)
        rows, held_out = (
            (np.arange(len(outcome)), np.empty(0, dtype=int))
            if eval_set is not None
            else self._split(len(X), groups)
        )
        self._fit_scaling(X[rows])
        self._fit_times(outcome.take(rows))
        extra = {"mask": mask, "weight": sample_weight}
        everything = self._tensors(X, outcome, law, **extra)
        training = {name: value[rows] for name, value in everything.items()}
        validation = {name: value[held_out] for name, value in everything.items()} if held_out.size else None
        if eval_set is not None:
            validation = self._evaluation_rows(*eval_set)
        self._fit_generators(training, validation, None if groups is None else groups[rows], callbacks)
        return self

    def _check_settings(self) -> None:
        for name, allowed in (
            ("objective", ("censored", "naive", "latent")),
            ("transform", ("scale", "log1p")),
            ("precision", ("auto", "float32", "bfloat16")),
        ):
            if getattr(self, name) not in allowed:
                raise InvalidInputError(f"{name} must be one of {allowed}; {getattr(self, name)!r} came.")
        if self.samples < 2 or self.n_generators < 1:
            raise InvalidInputError(
                "samples must be at least 2 and n_generators at least 1; "
                f"{(self.samples, self.n_generators)} came."
            )
        if not 0 < self.beta < 2:
            raise InvalidInputError(f"beta must lie between 0 and 2, both excluded; {self.beta} came.")

    def _censoring_law(self, X: np.ndarray, y: RightCensored, censoring: Any) -> Distribution:
        """The law of C that training uses, and in words where it came from."""
        never = PointMass(np.array([np.inf]))
        if self.objective == "naive":
            self.censoring_choice_ = "ignored: objective='naive' takes censored times for event times"
            law: Distribution = never
        elif self.objective == "latent":
            if not y.event.all():
                raise InvalidInputError(
                    "objective='latent' needs event times without censoring; some rows are censored."
                )
            self.censoring_choice_, law = "none: objective='latent' takes the times as they are", never
        elif isinstance(censoring, Distribution):
            self.censoring_choice_, law = "the law passed to fit", censoring
        elif censoring is not None:
            law = self._estimated_law(censoring, X, y)
        else:
            known = known_law(y)
            law = self._estimated_law(KaplanMeier(), X, y) if known is None else known
            if known is not None:
                self.censoring_choice_ = "known: the outcome has all censoring times, or nothing is censored"
        self.censoring_ = law
        _log.info("law of C for censored engression: %s", self.censoring_choice_)
        return law

    def _estimated_law(self, estimator: Any, X: np.ndarray, y: RightCensored) -> Distribution:
        wrapped = estimator if isinstance(estimator, Censoring) else Censoring(estimator)
        self.censoring_estimator_ = wrapped.fit(X, y)
        self.censoring_choice_ = f"estimated from the training rows by {wrapped!r}"
        return wrapped.predict_distribution(X)

    def _fit_times(self, y: RightCensored) -> None:
        """Units: of the loss, and of the generator's output around which it starts."""
        time = to_numpy(y.time).reshape(len(y), -1).astype(np.float64)
        if not (time > 0).any():
            raise InvalidInputError("All times are zero; there is nothing to learn.")
        last = (
            time.max(axis=1)
            if y.censoring_time is None
            else to_numpy(y.censoring_time).reshape(len(y), -1)[:, 0]
        )
        last = last[np.isfinite(last)]
        reference = np.quantile(last if last.size else time.max(axis=1), 0.95)
        self._unit = float(np.log1p(reference)) if self.transform == "log1p" else float(time[time > 0].mean())
        scaled = self._to_loss_scale(time)
        centre = [
            np.exp(np.log(column[column > 0]).mean()) if (column > 0).any() else 1.0 for column in scaled.T
        ]
        self._scale = np.asarray(centre, dtype=np.float32)

    def _to_loss_scale(self, time: np.ndarray) -> np.ndarray:
        return (np.log1p(time) if self.transform == "log1p" else time) / self._unit

    def _from_loss_scale(self, z: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return (
                np.expm1(z * np.float32(self._unit))
                if self.transform == "log1p"
                else z * np.float32(self._unit)
            )

    def _tensors(
        self, X: np.ndarray, y: RightCensored, C: Distribution, mask: Any, weight: Any
    ) -> dict[str, Tensor]:
        n, k = len(y), y.k
        if mask is not None:
            y, C, mask = leave_out(y, C, mask)
        problem = pose(y, _anything(y), C, joint=True)
        rows = {
            "x": self._standardised(X),
            "y": _tensor(self._to_loss_scale(to_numpy(y.time).reshape(n, k))),
            "c": _tensor(self._to_loss_scale(censoring_table(problem.y, problem.C))),
        }
        if mask is not None:
            rows["mask"] = torch.from_numpy(mask)
        if weight is not None:
            weight = np.asarray(weight, dtype=np.float32)
            if (
                weight.shape != (n,)
                or not np.isfinite(weight).all()
                or (weight < 0).any()
                or weight.sum() == 0
            ):
                raise InvalidInputError(
                    f"sample_weight must be {n} non-negative numbers, not all zero; {weight.shape} came."
                )
            rows["weight"] = torch.from_numpy(weight)
        return rows

    def _evaluation_rows(self, X: Any, y: Any, censoring: Any = None, mask: Any = None) -> dict[str, Tensor]:
        outcome = as_outcome(y)
        X = self._check_X(X, len(outcome), reset=False)
        if self.objective == "naive":
            outcome, law = _without_censoring(outcome), self.censoring_
        elif isinstance(censoring, Distribution):
            law = censoring
        elif hasattr(self, "censoring_estimator_"):
            law = self.censoring_estimator_.predict_distribution(X)
        elif len(self.censoring_) == 1:
            law = self.censoring_
        else:
            known = known_law(outcome)
            if known is None:
                raise InvalidInputError(
                    "The validation rows need their own law of C: pass eval_set=(X, y, law), since fit got "
                    "one law per training row."
                )
            law = known
        return self._tensors(X, outcome, law, mask, None)

    def _fit_generators(
        self,
        rows: dict[str, Tensor],
        validation: dict[str, Tensor] | None,
        groups: np.ndarray | None,
        callbacks: Sequence[Callback],
    ) -> None:
        device = pick_device(self.device)
        self._generators: list[Generator] = []
        histories: list[History] = []
        for i in range(self.n_generators):
            seed = self._seed + 7919 * i
            scale = torch.from_numpy(self._scale).to(device)
            network = self._new_generator(seed)
            task = EngressionTask(network, scale, self.samples, self.beta, self._mixed(device))
            checkpoint = (
                self.checkpoint if self.checkpoint is None or i == 0 else Path(f"{self.checkpoint}.{i}")
            )
            histories.append(self._train(task, rows, validation, groups, callbacks, seed, checkpoint))
            self._generators.append(task.network)
            if histories[-1].interrupted:
                break
        self.history_, self.histories_ = histories[0], histories

    def _new_generator(self, seed: int) -> Generator:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return Generator(
                self._n_inputs,
                self.k_,
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
            )

    def _mixed(self, device: torch.device) -> bool:
        return self.precision == "bfloat16" or (self.precision == "auto" and device.type == "cuda")

    # ---- predicting ----------------------------------------------------------------------------

    @torch.no_grad()
    def sample(self, X: Any, m: int | None = None, seed: int | None = None) -> np.ndarray:
        """Draws from the law of T given each row of ``X``: (n, m, k), or (n, m) if y was (n,).

        The same seed and rows give the same draws; by default the seed is that of the fit.
        """
        self._check_fitted()
        X = self._check_X(X, None, reset=False)
        m = self.n_samples if m is None else int(m)
        if m < 1:
            raise InvalidInputError(f"m, the number of samples, must be at least 1; {m} came.")
        shares = np.diff(np.linspace(0, m, len(self._generators) + 1).round().astype(int))
        start = self._seed if seed is None else int(seed)
        parts = [
            self._sample_one(network, X, int(share), start + 104729 * i)
            for i, (network, share) in enumerate(zip(self._generators, shares, strict=True))
            if share
        ]
        times = self._from_loss_scale(np.concatenate(parts, axis=1))
        return times if self._joint else times[:, :, 0]

    def _sample_one(self, network: Generator, X: np.ndarray, m: int, seed: int) -> np.ndarray:
        device = pick_device(self.device)
        network.to(device).eval()
        scale = torch.from_numpy(self._scale).to(device)
        task = EngressionTask(network, scale, m, self.beta, self._mixed(device))
        generator = torch.Generator(device)
        x = self._standardised(X)
        step = max(1, _SAMPLING_UNITS // (m * max(self.width, network.noise_size)))
        out = np.empty((len(x), m, self.k_), dtype=np.float32)
        for first in range(0, len(x), step):
            part = x[first : first + step].to(device)
            generator.manual_seed(mix_seed(seed, first))
            noise = torch.randn(len(part), m, network.noise_size, generator=generator, device=device)
            out[first : first + step] = task.generate(network, part, noise).cpu().numpy()
        return out

    def predict_distribution(
        self, X: Any = None, n_samples: int | None = None, seed: int | None = None
    ) -> Ensemble:
        """The law of T given each row of ``X``, as an ensemble of draws."""
        return Ensemble(self.sample(X, n_samples, seed))

    def predict(self, X: Any, statistic: str = "median") -> np.ndarray:
        """Median (or mean) event times, (n,) or (n, k); a mean reaches into what follow-up never saw."""
        if statistic not in ("median", "mean"):
            raise InvalidInputError(f"statistic must be 'median' or 'mean'; {statistic!r} came.")
        samples = self.sample(X)
        return np.median(samples, axis=1) if statistic == "median" else samples.mean(axis=1)

    def predict_quantile(self, X: Any, levels: Any) -> np.ndarray:
        """Quantiles of each event time: (n, q), or (n, q, k) for joint outcomes; no q for a single level."""
        levels = np.asarray(levels, dtype=float)
        if levels.ndim > 1 or not ((levels > 0) & (levels < 1)).all():
            raise InvalidInputError(f"levels must be numbers strictly between 0 and 1; {levels} came.")
        q = np.quantile(self.sample(X), levels, axis=1, method="inverted_cdf")
        return q if levels.ndim == 0 else np.moveaxis(q, 0, 1)

    def predict_survival_function(self, X: Any, times: Any) -> np.ndarray:
        """P(T_j > t | x) at common times: (n, q), or (n, q, k) for joint outcomes."""
        times = np.asarray(times, dtype=float).reshape(-1)
        samples = self.sample(X)
        return np.stack([(samples > t).mean(axis=1) for t in times], axis=1)

    def probability(self, X: Any, event: JointEvent) -> np.ndarray:
        """Probability of an event of all times together, (n,).

        Parameters
        ----------
        X : array or frame
            Covariates.
        event : callable
            Maps times (..., k) to booleans (...): one of :mod:`censcore.distributions.joint_events`
            (``either_before(24.0)``, ``all_before``, ``first_is``, ``in_order``) or your own.
        """
        samples = self.sample(X)
        happened = np.asarray(event(samples if self._joint else samples[..., None]))
        if happened.shape != samples.shape[:2]:
            raise InvalidInputError(
                "event must map times (n, m, k) to booleans (n, m); for times of shape "
                f"{samples.shape} it gave {happened.shape}."
            )
        return happened.mean(axis=1)

    def score(self, X: Any, y: Any, censoring: Any = None) -> float:
        """Minus the mean censored energy score (higher is better, as scikit-learn wants it)."""
        from censcore.scores import energy_score

        outcome = as_outcome(y)
        if censoring is None and known_law(outcome) is None:
            if not hasattr(self, "censoring_estimator_"):
                raise InvalidInputError("score needs the law of C for these rows: pass censoring=...")
            censoring = self.censoring_estimator_.predict_distribution(
                self._check_X(X, len(outcome), reset=False)
            )
        return -float(np.mean(energy_score(outcome, self.predict_distribution(X), censoring, fair=True)))

    # ---- model files ---------------------------------------------------------------------------

    def _networks(self) -> list[nn.Module]:
        return list(self._generators)

    def _build_networks(self) -> list[nn.Module]:
        self._generators = [self._new_generator(0) for _ in range(self._count)]
        return list(self._generators)

    def _fitted_settings(self) -> dict[str, Any]:
        return {
            "generators": len(self._generators),
            "unit": self._unit,
            "scale": [float(value) for value in self._scale],
            "censoring_choice": self.censoring_choice_,
        }

    def _restore_settings(self, settings: dict[str, Any]) -> None:
        self._count, self._unit = settings["generators"], settings["unit"]
        self._scale = np.asarray(settings["scale"], dtype=np.float32)
        self.censoring_choice_ = settings["censoring_choice"]


def _without_censoring(y: RightCensored) -> RightCensored:
    return RightCensored(y.time, np.ones(y.shape, dtype=bool))


def _anything(y: RightCensored) -> Distribution:
    """A forecast of the right shape: outcome and law are checked against each other before one exists."""
    return Ensemble(np.zeros((1, 1, *y.shape[1:])))


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
