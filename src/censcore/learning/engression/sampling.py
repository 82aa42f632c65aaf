"""Trained generators: draws, whose noise follows from the covariates of a subject, and forecasts."""

from __future__ import annotations

import copy
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from censcore._arrays import ArrayLike, Covariates, to_numpy
from censcore._validation import as_number
from censcore.distributions import CauseEnsemble, Distribution, Ensemble
from censcore.estimators.covariates import check_weights
from censcore.estimators.libraries.sample_predictions import SamplePredictions
from censcore.estimators.regression.cause_times import of_draws
from censcore.estimators.stacking.stacking_weights import shares
from censcore.exceptions import InvalidInputError
from censcore.files import write_atomically
from censcore.learning.data.checks import as_past, check_mask, check_order
from censcore.learning.data.standardised import OnDemand, Standardised, Subjects, blocks
from censcore.learning.engression.generator import Generator
from censcore.learning.engression.loss import EngressionTask, TimeScale, censoring_quantiles, scale_of_loss
from censcore.learning.engression.training_censoring import TrainingCensoring
from censcore.learning.file_checks import check_numbers
from censcore.learning.neural_estimator import NeuralEstimator
from censcore.learning.settings import Network
from censcore.learning.structures import Competing, Semicompeting, Structure, structure_of
from censcore.learning.subject_windows import SubjectWindows
from censcore.learning.training.task import mix_seed
from censcore.outcomes import (
    CompetingRisks,
    OutcomeLike,
    RightCensored,
    SemiCompetingRisks,
    as_followed,
    as_outcome,
)
from censcore.scores.inputs.scoring_inputs import scoring_inputs

_UNITS = {"cpu": 2**18}  # hidden units at once: what a cache holds
_BYTES_PER_UNIT = 64  # on a GPU: a few copies of the hidden units in memory that is free

# of the penalty on covariates: in units of the noise, and for more covariates than these
_SPARSITY, _FEW_COVARIATES = 0.6, 5


class NoisePool(SubjectWindows):
    r"""Noise :math:`\varepsilon_1,\dots,\varepsilon_P` that all subjects share, behind the first layer.

    Subject i uses the m vectors from place :math:`h(x_i)` on, counted round, where h is a hash of its
    covariates. So a forecast belongs to a subject: it is the same in any order and company. Windows of two
    subjects overlap rarely, and the product of noise and weights is computed P times instead of n m times.

    Examples
    --------
    >>> network = Generator(n_features=3, k=2, width=8, depth=2, noise_dim=4).eval()
    >>> pool = NoisePool(network, m=5, seed=0)
    >>> x = torch.arange(6.0).reshape(2, 3)
    >>> one, two = pool.draw(x), pool.draw(x.flip(0))
    >>> one.shape, torch.allclose(one[0], two[1])
    (torch.Size([2, 5, 2]), True)
    """

    def __init__(self, network: Generator, m: int, seed: int, mixed: bool = False) -> None:
        super().__init__(m, network.last.weight.device)
        self.network, self.mixed = network, mixed
        # the same numbers on every device, so that a model answers alike wherever it runs
        source = torch.Generator().manual_seed(seed)
        noise = torch.randn(self.size, network.noise_size, generator=source)
        self._uniform = torch.rand(self.size, generator=source).to(self.device) if network.logits else None
        with torch.no_grad(), self._precision():
            self._parts = network.behind_first_layers(noise.to(self.device))

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed)

    def uniform(self, x: Tensor) -> Tensor | None:
        """Uniform numbers (n, m) that belong to the draws, for generators that make choices."""
        return None if self._uniform is None else self._uniform[self.window(x)]

    @torch.no_grad()
    def draw(self, x: Tensor) -> Tensor:
        """Outputs (n, m, outputs) for covariates (n, d), in float32."""
        window = self.window(x)
        with self._precision():
            parts = [part.index_select(0, window.ravel()).unflatten(0, window.shape) for part in self._parts]
            return self.network.from_parts(x.to(self.device), parts).float()


def chunks_of(n: int, m: int, network: Generator) -> Iterator[slice]:
    """Consecutive subjects with m draws each, whose hidden layers fit where they are computed fastest."""
    device, units = network.last.weight.device, _UNITS["cpu"]
    if device.type == "cuda":
        units = int(torch.cuda.mem_get_info(device)[0] // _BYTES_PER_UNIT)
    return blocks(n, m * network.width, units)


class Sampler(nn.Module):
    """Covariates, noise and uniform numbers to event times, all steps in one module that torch can export."""

    center: Tensor
    spread: Tensor
    scale: Tensor

    def __init__(
        self,
        network: Generator,
        structure: Structure,
        times: TimeScale,
        center: np.ndarray,
        spread: np.ndarray,
    ) -> None:
        super().__init__()
        self.network = copy.deepcopy(network).cpu().eval()
        self.structure, self.times = structure, times
        self.register_buffer("center", torch.from_numpy(center.copy()))
        self.register_buffer("spread", torch.from_numpy(spread.copy()))
        self.register_buffer("scale", torch.tensor(structure.scale(times.centre)))

    def forward(self, x: Tensor, noise: Tensor, uniform: Tensor) -> Tensor:
        """Event times (n, m, k)."""
        x = (x - self.center) / self.spread if len(self.center) else x.new_zeros(x.shape[0], 1)
        out = self.network(x, noise)
        size = self.structure.outputs
        out = torch.cat([out[..., :size] * self.scale, out[..., size:]], dim=-1)
        return self.times.inverse(self.structure.draw(out, uniform))


class FittedGenerators(NeuralEstimator, SamplePredictions):
    """Trained generators of one shape, structure and unit of time: draws, forecasts, scores and files."""

    network: Network | None
    _times: TimeScale
    _training_censoring: TrainingCensoring

    @property
    def _shape(self) -> Network:
        return Network() if self.network is None else self.network

    def _new_network(self) -> Generator:
        structure = self._structure
        return Generator(self._n_inputs, structure.outputs, logits=structure.logits, **asdict(self._shape))

    def _task(
        self, network: Generator, device: torch.device, sparsity: float | Tensor = 0.0
    ) -> EngressionTask:
        """A generator and its loss."""
        precision = self._training.precision
        mixed = precision == "bfloat16" or (precision == "auto" and device.type == "cuda")
        scale = torch.tensor(self._structure.scale(self._times.centre), device=device)
        samples, beta = int(self._training.samples), self._training.beta
        return EngressionTask(
            network, scale, samples, beta, mixed, self._structure, self._times.bounded, sparsity
        )

    def _penalty(self, subjects: Subjects) -> float:
        r"""Weight of the penalty on covariates, of the order of the noise in the gradient of the loss.

        That of a covariate without effect is :math:`s/\sqrt n` with the scale s of the loss, and the largest
        of many grows with the root of the logarithm of their number.
        """
        if not isinstance(self._training.sparsity, str):
            return float(self._training.sparsity)
        excess = np.log(max(1.0, self._n_inputs / _FEW_COVARIATES))
        data = subjects.taken
        scale = scale_of_loss(data["y"], data["c"], self._times.bounded)
        return _SPARSITY * scale * float(np.sqrt(excess / subjects.n))

    def _tensors(
        self, x: Standardised, y: Any, C: Any, mask: np.ndarray | None = None, weight: Any = None
    ) -> dict[str, Tensor | OnDemand]:
        """Covariates, times and quantiles of C; times that do not count are events at time zero."""
        time = to_numpy(y.known_time if isinstance(y, SemiCompetingRisks) else y.time).reshape(len(y), y.k)
        followed = as_followed(y)
        anything = Ensemble(np.zeros((1, 1, *followed.shape[1:])))  # to check y and C against each other
        inputs = scoring_inputs(followed, anything, C, joint=True)
        scaled = np.empty(time.shape, dtype=np.float32)
        for rows in blocks(*time.shape):
            scaled[rows] = self._times.forward(time[rows])
        data: dict[str, Tensor | OnDemand] = {
            "x": x,
            "y": torch.from_numpy(scaled),
            "c": censoring_quantiles(inputs.y, inputs.C, self._times.forward),
        }
        if mask is not None:
            data["mask"] = torch.from_numpy(mask)
        if weight is not None:
            data["weight"] = torch.from_numpy(check_weights(weight, len(y)).astype(np.float32))
        return data

    @property
    def censoring_(self) -> Distribution | None:
        """The censoring distribution that training used; None in a model read from a file."""
        return self._training_censoring.distribution

    @property
    def censoring_choice_(self) -> str:
        """Where that distribution came from, in words."""
        return self._training_censoring.words

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
            Which of the ``n_networks``.
        """
        self.check_fitted()
        if not 0 <= generator < len(self._networks):
            raise InvalidInputError(
                f"generator must be a number from 0 to {len(self._networks) - 1}; got {generator}."
            )
        network = self._networks[generator]
        sampler = Sampler(network, self._structure, self._times, self._center, self._spread).eval()
        n, m = torch.export.Dim("subjects"), torch.export.Dim("draws")
        example = (
            torch.zeros(3, len(self._center)),
            torch.zeros(3, 5, network.noise_size),
            torch.zeros(3, 5),
        )
        shapes = ({0: n}, {0: n, 1: m}, {0: n, 1: m})
        with torch.no_grad():
            program = torch.export.export(sampler, example, dynamic_shapes=shapes)
        content = io.BytesIO()
        torch.export.save(program, content)
        write_atomically(path, content.getvalue())

    @property
    def noise_size(self) -> int:
        """Standard normal numbers that one draw of an exported sampler needs."""
        self.check_fitted()
        return self._networks[0].noise_size

    def _other_outcome(self, y: Any) -> Any:
        """An outcome of other subjects, of the kind that the model was fitted to."""
        if isinstance(self._structure, Competing):
            names = self._structure.names
            if not isinstance(y, CompetingRisks) or y.n_causes != len(names):
                raise InvalidInputError(
                    f"y: got {type(y).__name__}, expected CompetingRisks with the causes {', '.join(names)}, "
                    "as in fit."
                )
            return self._plain_outcome(y)
        semicompeting = isinstance(self._structure, Semicompeting)
        outcome = as_outcome(y) if isinstance(y, CompetingRisks) else self._plain_outcome(y)
        if isinstance(y, SemiCompetingRisks) != semicompeting or outcome.k != self.k_:
            expected = "SemiCompetingRisks" if semicompeting else "RightCensored"
            raise InvalidInputError(
                f"y: got {type(y).__name__} with {outcome.k} event times, expected {expected} with "
                f"{self.k_}, as in fit."
            )
        return outcome

    def _as_seen(self, y: Any) -> Any:
        """The outcome as the objective treats it."""
        naive = self._training.objective == "naive"
        return RightCensored(y.time, np.ones(y.shape, dtype=bool)) if naive else y

    def _rows(self, X: Any, y: Any, mask: Any = None, censoring: Any = None) -> dict[str, Tensor | OnDemand]:
        outcome = self._as_seen(self._other_outcome(y))
        counts = check_mask(mask, outcome, needed=True)
        outcome = as_past(outcome, counts)
        if self.ordered:
            check_order(outcome, counts)
        matrix = self._check_X(X, len(outcome), reset=False)
        followed = self._training_censoring.followed(X, outcome, censoring)
        return self._tensors(self._standardised(matrix), *followed, counts)

    # ---- draws ---------------------------------------------------------------------------------

    def _draws(self, x: Standardised, m: int, seed: int, device: torch.device) -> Iterator[Tensor]:
        tasks = [self._task(network, device) for network in self._networks]
        sizes = shares(m, [1 / len(tasks)] * len(tasks))
        pools = [  # the generators share the draws
            (task, NoisePool(task.network, size, mix_seed(seed, i), task.mixed))
            for i, (task, size) in enumerate(zip(tasks, sizes, strict=True))
            if size
        ]
        for rows in chunks_of(len(x), m, self._networks[0]):
            inputs = x[rows]
            draws = [task.event_times(pool.draw(inputs), pool.uniform(inputs)) for task, pool in pools]
            yield self._times.inverse(torch.cat(draws, dim=1))

    def predict_distribution(
        self, X: Covariates | None = None, n_samples: int | None = None, seed: int | None = None
    ) -> Ensemble | CauseEnsemble:
        """Predict the distribution of T given x, as an ensemble of draws.

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        n_samples : int, optional
            Draws per subject; ``n_samples`` of the estimator if omitted.
        seed : int, optional
            Seed of the draws; that of the fit if omitted.

        Returns
        -------
        Ensemble or CauseEnsemble
            One ensemble per subject; of times and causes for competing risks.
        """
        return of_draws(self.sample(X, n_samples, seed), self._causes)

    def by_network(self, X: Covariates | None, statistic: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Compute a statistic for the draws of each network, to see how far they disagree.

        Networks differ by their seeds alone. Where their answers differ the data do not settle the
        question, within follow-up because there are few of them, and beyond it because there are none.

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        statistic : callable
            Maps draws (subjects, m, k) to values with the subjects as first axis, for instance
            ``lambda z: (z <= 5.0).mean(axis=1)``.

        Returns
        -------
        array, (n_networks, n, ...)
            One statistic for each; their standard deviation, ``.std(axis=0, ddof=1)``, is the spread.
        """
        self.check_fitted()
        if len(self._networks) < 2:
            raise InvalidInputError(
                "by_network needs two or more networks to compare; got one. Fit with n_networks=4."
            )
        parts: list[list[np.ndarray]] = [[] for _ in self._networks]
        for z in self.sample_chunks(X):
            ends = np.cumsum(shares(z.shape[1], [1.0] * len(parts)))[:-1]
            for part, draws in zip(parts, np.split(z.cpu().numpy(), ends, axis=1), strict=True):
                part.append(np.asarray(statistic(draws)))
        return np.stack([np.concatenate(part) for part in parts])

    def score(
        self,
        X: Covariates | None,
        y: OutcomeLike | SemiCompetingRisks,
        sample_weight: ArrayLike | None = None,
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
        outcome, distribution = self._training_censoring.followed(X, self._other_outcome(y), censoring)
        horizon = None
        if isinstance(outcome, SemiCompetingRisks) and bool(
            (distribution.marginal(0).mass_at_infinity() > 0).any()
        ):
            horizon = float(outcome.time.max())  # without an end, events that never happen are infinitely far
        losses = energy_score(outcome, Ensemble(self.sample(X)), distribution, fair=True, horizon=horizon)
        weight = None if sample_weight is None else check_weights(sample_weight, len(outcome))
        return -float(np.average(losses, weights=weight))

    # ---- model files ---------------------------------------------------------------------------

    def _fitted_settings(self) -> dict[str, Any]:
        return {
            "generators": len(self._networks),
            "unit": self._times.unit,
            "scale": list(self._times.centre),
            "structure": self._structure.settings,
            "follow_up": [None if np.isinf(end) else float(end) for end in self._follow_up],
            "censoring_choice": self.censoring_choice_,
        }

    def _restore_settings(self, settings: dict[str, Any]) -> None:
        unit = as_number(settings["unit"], "unit", above=1e-300, below=1e300)
        centre = check_numbers("scale", settings["scale"], self.k_, least=1e-300)
        self._structure = structure_of(self.k_, **settings["structure"])
        self._times = TimeScale(self._training.transform(self._structure), unit, tuple(centre.tolist()))
        self._training_censoring = TrainingCensoring(settings["censoring_choice"])
        self._follow_up = np.array([np.inf if end is None else end for end in settings["follow_up"]])
