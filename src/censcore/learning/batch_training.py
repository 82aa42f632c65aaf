"""What neural estimators share that are trained on data read in batches."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from torch import Tensor

from censcore._arrays import is_torch, to_numpy
from censcore.exceptions import InvalidInputError
from censcore.learning.data.first_pass import FirstPass, first_pass
from censcore.learning.data.sources import Block, Source, as_source
from censcore.learning.data.standardised import Data
from censcore.learning.data.streamed import StreamedRows
from censcore.learning.neural_estimator import NeuralEstimator
from censcore.learning.training.exchange import rank_and_processes
from censcore.outcomes import RightCensored, SemiCompetingRisks, as_outcome

__all__ = ["BatchTraining", "followed_outcome", "in_numpy"]

_HELD_OUT, _SAMPLE = 50_000, 20_000  # subjects, at most, for validation, and in the sample of the others


class BatchTraining(NeuralEstimator):
    """Base class of neural estimators with a method ``fit_batches``."""

    @abstractmethod
    def _block_tensors(self, block: Block) -> dict[str, Tensor]:
        """The training data of some subjects, when units are known."""

    def _plain_outcome(self, y: Any) -> Any:
        """The outcome of a batch with an array of times and one of events."""
        return in_numpy(as_outcome(y).require_no_entry(type(self).__name__))

    def _share_of(self, batches: Any, buffer: Any) -> Source:
        """What this process reads."""
        if not isinstance(buffer, int | np.integer) or buffer < 1:
            raise InvalidInputError(f"buffer: got {buffer!r}, expected a positive number of subjects.")
        return as_source(batches).share(*rank_and_processes())

    def _first_pass(self, source: Source, stratify: Any = None) -> FirstPass:
        """Read the data once, and learn how to standardise covariates."""
        blocks_seen = 0

        def matrix(block: Block) -> np.ndarray:
            nonlocal blocks_seen
            blocks_seen += 1
            return self._check_X(block.X, len(block), reset=blocks_seen == 1)

        found = first_pass(
            source,
            matrix,
            self._plain_outcome,
            followed_outcome,
            size=_HELD_OUT + _SAMPLE,
            seed=self._seed,
            stratify=stratify,
            hashed=self.checkpoint is not None,
        )
        self._center = found.moments.mean.astype(np.float32)
        spread = found.moments.spread.astype(np.float32)
        self._spread = np.where(spread > 0, spread, np.float32(1))
        return found

    def _held_out(self, found: FirstPass, others_validate: bool) -> int:
        """How many subjects of the sample are held out: the first ones."""
        share = self._held_out_share
        if others_validate or share == 0 or found.n < 10:
            return 0
        size = min(_HELD_OUT, max(1, round(share * found.n)), len(found.key) - 1)
        return int(np.searchsorted(found.key, found.key[size - 1], side="right"))  # whole groups

    def _sample(self, found: FirstPass, held_out: int) -> Block:
        """A random sample of the training subjects."""
        if held_out >= len(found.key):
            raise InvalidInputError(
                "All subjects have one group, so that none can be held out for validation. Pass eval_set=, "
                "or validation_fraction=0."
            )
        return found.sample.take(np.arange(held_out, min(len(found.key), held_out + _SAMPLE)))

    def _streamed(
        self, source: Source, found: FirstPass, sample: Block, held_out: int, buffer: int
    ) -> StreamedRows:
        last = int(found.key[held_out - 1]) if held_out else -1
        here = int((found.key_here <= np.uint64(last)).sum()) if held_out else 0
        return StreamedRows(
            source,
            self._block_tensors,
            found.n - held_out,
            found.n_here - here,
            self._seed,
            last,
            self._block_tensors(sample),
            int(buffer),
            found.digest,
        )

    def _validation_rows(self, found: FirstPass, held_out: int) -> Data | None:
        return self._block_tensors(found.sample.take(np.arange(held_out))) if held_out else None


def in_numpy(y: Any) -> Any:
    """An outcome of torch in NumPy."""
    return y.like(to_numpy(y.time)) if is_torch(y.time) else y


def followed_outcome(y: Any) -> RightCensored:
    """The outcome that tells how long subjects were followed."""
    return y.terminal_event() if isinstance(y, SemiCompetingRisks) else y
