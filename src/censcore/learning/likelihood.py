"""Networks whose outputs are the parameters of a distribution, trained by the censored log score."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from censcore._arrays import ArrayLike, Covariates, to_numpy
from censcore._validation import as_count, as_number, check_option, shown
from censcore.distributions import Distribution
from censcore.estimators.covariates import check_weights
from censcore.exceptions import InvalidInputError
from censcore.learning.data.checks import check_mask, leave_out_times
from censcore.learning.data.standardised import Data, Fold, OnDemand, Standardised, Subjects, blocks
from censcore.learning.data.units import mean_time
from censcore.learning.neural_estimator import NeuralEstimator
from censcore.learning.settings import Training
from censcore.learning.training.devices import pick_device
from censcore.learning.training.full_batch import FullBatch
from censcore.learning.training.task import (
    MOST_EPOCHS,
    MOST_LAYERS,
    MOST_UNITS,
    Callback,
    History,
    Recipe,
    Rows,
    Task,
    mix_seed,
)
from censcore.outcomes import OutcomeLike, RightCensored

_SAMPLED_AT_ONCE = 4096  # subjects


def _widths(hidden: Any) -> list[int]:
    """Units of the hidden layers, where they are whole numbers that fit into memory."""
    listed = isinstance(hidden, Sequence) and not isinstance(hidden, str | bytes)
    if not listed or len(hidden) > MOST_LAYERS:
        got = f"{len(hidden)} layers" if listed else shown(hidden)
        raise InvalidInputError(
            f"hidden: got {got}, expected the widths of at most {MOST_LAYERS} hidden layers, a tuple such as "
            "(128, 128)."
        )
    return [as_count(units, "hidden, the width of a layer,", most=MOST_UNITS) for units in hidden]


class ParameterNetwork(nn.Module):
    """A linear map or a perceptron from covariates to parameters; some parameters are shared by all subjects.

    Parameters
    ----------
    n_features : int
        Covariates.
    conditional, constant : int
        Number of outputs that depend on x, and of those that do not.
    hidden : sequence of int
        Widths of hidden layers; none for a linear map.

    Examples
    --------
    >>> ParameterNetwork(3, conditional=2, constant=1, hidden=(8,))(torch.zeros(5, 3)).shape
    torch.Size([5, 3])
    """

    def __init__(self, n_features: int, conditional: int, constant: int, hidden: Sequence[int]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width = n_features
        for units in _widths(hidden):
            layers += [nn.Linear(width, units), nn.SiLU()]
            width = units
        last = nn.Linear(width, conditional)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.body = nn.Sequential(*layers, last)
        self.constant = nn.Parameter(torch.zeros(1, constant))

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, conditional + constant)."""
        return torch.cat([self.body(x), self.constant.expand(len(x), -1)], dim=1)

    def undecayed(self) -> list[nn.Parameter]:
        """Weight decay concerns the matrices only."""
        return [p for name, p in self.named_parameters() if p.ndim != 2 or name == "constant"]


class LikelihoodTask:
    """The censored log score of the distribution that a network's outputs describe."""

    def __init__(self, network: nn.Module, distribution: Any) -> None:
        self.network, self.distribution = network, distribution

    def draw(
        self, n: int, generator: torch.Generator, device: torch.device, validating: bool = False
    ) -> dict[str, Tensor]:
        """A likelihood needs no random numbers."""
        return {}

    def loss(self, network: nn.Module, rows: Rows, random: Rows) -> Tensor:
        """Minus the log-likelihood: density in the coordinates with an event, survival in the others."""
        return -self.distribution(network(rows["x"])).log_likelihood(rows["time"], rows["event"])


class LikelihoodEstimator(NeuralEstimator):
    """Base class of estimators trained by the censored log score.

    A subclass builds the network (:meth:`_new_network`) and turns its outputs into a distribution
    (:meth:`_distribution`). Parameters have the names of those of :class:`NeuralEstimator`.

    See Also
    --------
    censcore.CopulaWeibull, censcore.JointGridModel : The estimators of this kind.
    """

    @abstractmethod
    def _distribution(self, raw: Tensor, unit: float) -> Distribution:
        """The joint distribution with parameters from ``raw``, in times of ``unit``."""

    def _fit_units(self, y: RightCensored) -> None:
        """Learn what the distribution needs of the training times besides their mean."""

    def _training_distribution(self, raw: Tensor) -> Distribution:
        """The distribution whose likelihood is maximised."""
        return self._distribution(raw, 1.0)

    def _fits_at_once(self) -> bool:
        """Whether the loss of all subjects is minimised, instead of that of minibatches."""
        return False

    def _finish(self, rows: Data) -> None:
        """What is left to fit after training."""

    def fit(
        self,
        X: Covariates | None,
        y: OutcomeLike,
        sample_weight: ArrayLike | None = None,
        *,
        eval_set: tuple[Any, ...] | None = None,
        groups: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Train by the censored log score, which does not depend on the censoring distribution.

        Parameters
        ----------
        X, y, sample_weight, groups, callbacks
            As in :meth:`CensoredEngression.fit`; y is no outcome of competing or semi-competing risks, but
            for :class:`~censcore.MixtureDensityNetwork`.
        eval_set : (X, y) or (X, y, mask), optional
            Validation data for early stopping; otherwise ``validation_fraction`` of the subjects is held out.
            L-BFGS needs neither: it uses all subjects, and reports the loss of ``eval_set`` at the end.
        mask : array of bool, (n, k), optional
            False where an event time is left out of a subject's likelihood, which is then that of the
            others: an event that is already there, or was not looked for.

        Returns
        -------
        self
        """
        matrix, outcome, labels = self._in_memory(X, y, groups, mask)
        rows, held_out = self._split(len(matrix), labels, self._fits_at_once() or eval_set is not None)
        everything = self._learn_units(matrix, leave_out_times(outcome, mask), sample_weight, rows)
        others = held_out if eval_set is None else Subjects(self._eval_rows(eval_set))
        self._fit_network(Fold.of(everything, rows, others, labels), callbacks)
        return self

    def _learn_units(
        self, X: np.ndarray, y: RightCensored, weight: Any, rows: np.ndarray | slice
    ) -> dict[str, Tensor | OnDemand]:
        """Learn units of covariates and times from some subjects, and give the data of all in them."""
        self._fit_scaling(X, rows)
        training = y.take(rows)
        positive = to_numpy(training.time)[to_numpy(training.time) > 0]
        self._unit = mean_time(np.array([[positive.size], [positive.sum()]]))
        self._fit_units(training)
        return self._tensors(X, y, weight)

    def _fit_network(self, fold: Fold, callbacks: Sequence[Callback]) -> None:
        """Train a new network, and fit what is left."""
        self._networks = self._new_networks([self._seed])
        task, recipe = self._task(fold.training.n), self._recipe(fold.training.n)
        self.history_ = self._train(task, self._networks, [fold], recipe, callbacks)[0]
        self._finish(fold.training.taken)

    def _task(self, n: int) -> LikelihoodTask:
        """The network and its loss, for n subjects."""
        return LikelihoodTask(self._network, self._training_distribution)

    @property
    def _network(self) -> Any:
        return self._networks[0]

    def _rows(self, X: Any, y: Any, mask: Any = None) -> Data:
        outcome = self._plain_outcome(y)
        outcome = leave_out_times(outcome, check_mask(mask, outcome, needed=True))
        return self._tensors(self._check_X(X, len(outcome), reset=False), outcome, None)

    def _tensors(self, X: np.ndarray, y: RightCensored, weight: Any) -> dict[str, Tensor | OnDemand]:
        time = to_numpy(y.time).reshape(len(y), -1)
        event = to_numpy(y.event).reshape(len(y), -1)
        if ((time == 0) & event).any():
            raise InvalidInputError(
                f"{int(((time == 0) & event).any(axis=1).sum())} subjects have an event at time zero, where "
                "the density of the model is zero or infinite. Shift these times or leave out these subjects."
            )
        rows: dict[str, Tensor | OnDemand] = {
            "x": self._standardised(X),
            "time": torch.from_numpy((time / self._unit).astype(np.float32)),
            "event": torch.from_numpy(np.ascontiguousarray(event)),
        }
        if weight is not None:
            rows["weight"] = torch.from_numpy(check_weights(weight, len(y)).astype(np.float32))
        return rows

    @torch.no_grad()
    def predict_distribution(self, X: Covariates | None = None) -> Distribution:
        """Predict the joint distribution of the event times.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.

        Returns
        -------
        Distribution
            One joint distribution per subject, in closed form; a distribution of one time if y was (n,).
        """
        self.check_fitted()
        X = self._check_X(X, None, reset=False)
        network = self._network.cpu().eval()
        distribution = self._distribution(network(self._standardised(X)[:]).double(), self._unit).like(
            np.empty(0, dtype=np.float64)
        )
        self._network.to(pick_device(self.device))
        return distribution if self._joint else distribution.marginal(0)

    def _draws(self, x: Standardised, m: int, seed: int, device: torch.device) -> Iterator[Tensor]:
        for rows in blocks(len(x), at_once=_SAMPLED_AT_ONCE):
            raw = self._network(x[rows].to(device))
            generator = torch.Generator(device).manual_seed(mix_seed(seed, rows.start))
            draws = self._distribution(raw.double(), self._unit).sample(m, generator)
            yield draws if draws.ndim == 3 else draws[:, :, None]

    def _fitted_settings(self) -> dict[str, Any]:
        return {"unit": self._unit}

    def _restore_settings(self, settings: dict[str, Any]) -> None:
        self._unit = as_number(settings["unit"], "unit", above=1e-300, below=1e300)


@dataclass(kw_only=True, eq=False, repr=False)
class ParameterEstimator(LikelihoodEstimator):
    """Base class of estimators that are a :class:`ParameterNetwork`.

    Parameters
    ----------
    solver : {"auto", "lbfgs", "adam"}
        ``"lbfgs"`` maximises the likelihood of all subjects to convergence, with the ``weight_decay`` of
        ``training`` as the penalty and no validation split; ``"adam"`` trains in minibatches and stops early.
        ``"auto"`` is the first without hidden layers and the second with them.
    max_iter : int
        Most iterations of L-BFGS.
    epochs, patience, random_state, device, progress, checkpoint
        As for :class:`~censcore.CensoredEngression`.
    training : Training, optional
        Its fields that concern any network; ``default_training`` of the class if omitted, of which
        :func:`dataclasses.replace` changes some.

    Attributes
    ----------
    history_ : History
        Losses by epoch or iteration; ``gradient_norm`` and ``converged`` after L-BFGS.
    k_ : int
        Number of event times.
    """

    hidden: Sequence[int] = ()
    solver: str = "auto"
    max_iter: int = 1000
    epochs: int = 200
    patience: int | None = 20
    random_state: int | np.random.RandomState | None = None
    device: str = "cpu"
    progress: bool | None = None
    checkpoint: str | os.PathLike[str] | None = None
    training: Training | None = None

    def _bounds(self, network: nn.Module) -> np.ndarray | None:
        """The smallest and largest value of every parameter of the network, where L-BFGS needs any."""
        return None

    def _fits_at_once(self) -> bool:
        """Whether L-BFGS is the solver, the default without hidden layers."""
        self._training.check_for(type(self).__name__)
        check_option(self.solver, "solver", ("auto", "lbfgs", "adam"))
        as_count(self.max_iter, "max_iter", most=MOST_EPOCHS)
        linear = not _widths(self.hidden)
        return self.solver == "lbfgs" or (self.solver == "auto" and linear)

    def _train(
        self, task: Task, networks: Any, folds: Any, recipe: Recipe, callbacks: Any = (), **options: Any
    ) -> list[History]:
        if not self._fits_at_once():
            return super()._train(task, networks, folds, recipe, callbacks, **options)
        (fold,), penalty, device = folds, recipe.weight_decay, pick_device(self.device)
        others = None if fold.validation is None else fold.validation.taken
        search = FullBatch(task, fold.training.taken, others, penalty, device, self._bounds(task.network))
        return [search.train(int(self.max_iter), callbacks, self.checkpoint, self.progress)]
