"""From covariates and outcomes to what censored engression is trained on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Ensemble
from censcore.estimators.cause_times import cause_times
from censcore.estimators.covariates import check_weights
from censcore.exceptions import InvalidInputError
from censcore.learning.batch_training import BatchTraining, followed_outcome, in_numpy
from censcore.learning.data.masks import as_past, check_mask
from censcore.learning.data.standardised import Data, OnDemand, blocks
from censcore.learning.engression.censoring_quantiles import censoring_quantiles
from censcore.learning.engression.codings import check_order
from censcore.learning.engression.settings import Training
from censcore.learning.engression.time_scale import TimeScale
from censcore.learning.engression.training_censoring import TrainingCensoring
from censcore.learning.structures import (
    Branching,
    Competing,
    Free,
    Ordered,
    Semicompeting,
    Structure,
)
from censcore.outcomes import CompetingRisks, RightCensored, SemiCompetingRisks, as_outcome
from censcore.scores.inputs import scoring_inputs

__all__ = ["OutcomeData"]


class OutcomeData(BatchTraining):
    """Outcomes of every kind, checked, within follow-up, and in the units of the loss."""

    training: Training | None
    ordered: bool
    _structure: Structure
    _times: TimeScale
    _training_censoring: TrainingCensoring
    _follow_up: np.ndarray

    def _check_outcome(self, y: Any, mask: Any = None) -> Any:
        """Check the outcome, and which constraints its event times fulfil."""
        if not isinstance(y, SemiCompetingRisks | CompetingRisks):
            outcome = super()._check_outcome(y, mask)
            self._structure = Ordered(self.k_) if self.ordered else Free(self.k_)
            if self.ordered:
                check_order(outcome, check_mask(mask, outcome))
            return outcome
        check_mask(mask, y)
        if (
            self._training.objective == "naive"
            or self.ordered
            or self._training.time_transform not in ("auto", "bounded")
        ):
            raise InvalidInputError(
                f"{type(y).__name__} needs objective 'censored' or 'latent', ordered=False and "
                "time_transform 'auto' or 'bounded', where an event that never happens is an ordinary point; "
                f"got {self._training.objective!r}, {self.ordered} and {self._training.time_transform!r}."
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
        if self._training.time_transform != "auto":
            return self._training.time_transform
        return "bounded" if isinstance(self._structure, Branching) else "scale"

    def _as_seen(self, y: Any) -> Any:
        """The outcome as the objective treats it."""
        return (
            RightCensored(y.time, np.ones(y.shape, dtype=bool)) if self._training.objective == "naive" else y
        )

    def _tensors(
        self, X: np.ndarray, y: Any, C: Distribution, mask: np.ndarray | None = None, weight: Any = None
    ) -> dict[str, Tensor | OnDemand]:
        """Covariates, times and quantiles of C; times that do not count are events at time zero."""
        n, k = len(y), y.k
        time = y.known_time if isinstance(y, SemiCompetingRisks) else y.time
        y = followed_outcome(y)
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
        counts = check_mask(mask, outcome, some=True)
        outcome = as_past(outcome, counts)
        matrix = self._check_X(X, len(outcome), reset=False)
        return self._tensors(matrix, *self._within_follow_up(X, outcome, censoring), counts)

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


def _anything(y: RightCensored) -> Distribution:
    """A forecast of the right shape, to check outcome and censoring distribution against each other."""
    return Ensemble(np.zeros((1, 1, *y.shape[1:])))


def _tensor(scale: Callable[[np.ndarray], np.ndarray], times: np.ndarray) -> Tensor:
    scaled = np.empty(times.shape, dtype=np.float32)
    for rows in blocks(*times.shape):
        scaled[rows] = scale(times[rows])
    return torch.from_numpy(scaled)
