"""Censored engression as an estimator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from censcore._arrays import Array
from censcore._validation import as_count, as_seed
from censcore.distributions import CauseEnsemble, Distribution, Ensemble
from censcore.estimators.cause_times import of_draws
from censcore.estimators.covariates import check_weights
from censcore.estimators.sample_predictions import SamplePredictions
from censcore.estimators.stacking_weights import shares
from censcore.exceptions import InvalidInputError, ModelFileError
from censcore.learning.engression.exported import export_sampler
from censcore.learning.engression.from_batches import FitFromBatches
from censcore.learning.engression.from_memory import FitFromMemory
from censcore.learning.engression.loss import EngressionTask
from censcore.learning.engression.sampling import NoisePool, chunks_of
from censcore.learning.engression.settings import Network, Training
from censcore.learning.engression.time_scale import TimeScale
from censcore.learning.engression.training_censoring import TrainingCensoring
from censcore.learning.model_contents import MOST_SAMPLES, check_number
from censcore.learning.structures import Competing, structure_of
from censcore.learning.training.devices import pick_device
from censcore.learning.training.loop import mix_seed
from censcore.outcomes import OutcomeLike, SemiCompetingRisks

__all__ = ["CensoredEngression"]


class CensoredEngression(SamplePredictions, FitFromMemory, FitFromBatches):
    r"""Joint distribution of several event times given covariates, learned from right-censored data.

    A generator :math:`g_\theta(x,\varepsilon)` with random input :math:`\varepsilon` (engression [1]_) is
    trained by the censored energy score: its samples are censored the way the data were, at draws of C that
    each observation allows, and compared with the censored outcome. The expected loss is minimised by the
    true distribution of T given x as far as follow-up reaches. Beyond it, where P(C >= t | x) = 0, the data
    carry no information and the generator extrapolates. Assumes that C is independent of T given x.

    Parameters
    ----------
    ordered : bool
        The event times of a subject come in the order of the coordinates, :math:`T_1\le\dots\le T_k` (first
        and second infection); every draw fulfils it. Events that a terminal one prevents (recurrence and
        death) need no setting: pass the outcome as :class:`~censcore.SemiCompetingRisks`. Neither do the
        causes of a :class:`~censcore.CompetingRisks` outcome, see Notes.
    n_networks : int or "auto"
        Generators trained from different seeds, whose samples are pooled; :meth:`by_network` shows how far
        they disagree. Each is validated on another part of the subjects. ``"auto"`` is 5 up to 1,000
        subjects. Otherwise it is 1; up to 4,000 subjects that one is trained again on all of them, by as many
        steps as before (with ``patience``, as were kept by validation); if it then forecasts those who were
        held out worse than before, the first is kept.
    epochs : int
        Most epochs.
    patience : int or None
        Epochs without a better validation loss before training stops.
    n_samples : int
        Samples per subject in predictions, unless a method is given another number.
    random_state : int, RandomState or None
        Everything random follows from it; on a CPU the same seed gives the same model to the last bit, with
        the same version of torch and the same number of threads.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...
    progress : bool
        Show a progress bar.
    checkpoint : path, optional
        File for the state of training after every epoch; training continues from it if it exists.
    network : Network, optional
        Size and shape of the generator, see :class:`~censcore.learning.Network`.
    training : Training, optional
        Loss, optimiser and precision, see :class:`~censcore.learning.Training`.

    Attributes
    ----------
    history_ : History
        Losses by epoch, as a frame and a plot (of the first generator).
    censoring_ : Distribution
        The censoring distribution that training used.
    censoring_choice_ : str
        Where that distribution came from, in words.
    histories_ : list of History
        Losses of every generator.
    follow_up_ : float or array, (k,)
        The end of follow-up: quantiles and means beyond it are returned as infinite, unless a tail is named.
    k_ : int
        Number of event times.

    Notes
    -----
    Competing risks: fitted to a :class:`~censcore.CompetingRisks` outcome, the generator draws a time and a
    cause. Its loss is the energy score of :math:`(\min(T_1,C),\dots,\min(T_m,C))` with :math:`T_j=T` for the
    cause of the event and infinity for the others, at draws of C given the observation: :math:`C\ge y`
    after an event, of whatever cause. The energy score is strictly proper, and given :math:`C=c` these
    times tell all of time and cause up to c; so the expected loss is minimised by the cumulative incidences
    as far as follow-up reaches. ``predict_distribution`` gives a :class:`~censcore.CauseEnsemble`.

    See Also
    --------
    censcore.BestForecast : The generator and other models in one stack, for the best forecast.
    censcore.energy_score : The loss, as a score.
    CopulaWeibull, JointGridModel : Joint models that are trained by the censored log score.

    References
    ----------
    .. [1] X. Shen and N. Meinshausen (2024). Engression: extrapolation through the lens of distributional
       regression. Journal of the Royal Statistical Society, Series B.

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
        ordered: bool = False,
        n_networks: int | str = "auto",
        epochs: int = 80,
        patience: int | None = None,
        n_samples: int = 1024,
        random_state: Any = None,
        device: str = "auto",
        progress: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        network: Network | None = None,
        training: Training | None = None,
    ) -> None:
        self.ordered = ordered
        self.n_networks = n_networks
        self.epochs = epochs
        self.patience = patience
        self.n_samples = n_samples
        self.random_state = random_state
        self.device = device
        self.progress = progress
        self.checkpoint = checkpoint
        self.network = network
        self.training = training

    # ---- what was found ------------------------------------------------------------------------

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
        if not 0 <= generator < len(self._generators):
            raise InvalidInputError(
                f"generator must be a number from 0 to {len(self._generators) - 1}; got {generator}."
            )
        export_sampler(
            path, self._generators[generator], self._structure, self._times, self._center, self._spread
        )

    @property
    def noise_size(self) -> int:
        """Standard normal numbers that one draw of an exported sampler needs."""
        self.check_fitted()
        return self._generators[0].noise_size

    # ---- draws ---------------------------------------------------------------------------------

    @property
    def _causes(self) -> Any:
        return self._structure.names if isinstance(self._structure, Competing) else None

    def _chunks(self, X: Array | None, m: int | None, seed: int | None) -> Iterator[np.ndarray]:
        for z in self.sample_chunks(X, m, seed):
            yield z.cpu().numpy()

    def sample_chunks(
        self, X: Array | None, m: int | None = None, seed: int | None = None
    ) -> Iterator[Tensor]:
        """Draw as :meth:`sample` does, chunk by chunk of subjects, as tensors on the device of the model.

        For work that should stay on a GPU, such as scores of very many subjects.

        Parameters
        ----------
        X, m, seed
            As in :meth:`sample`.

        Yields
        ------
        tensor, (subjects, m, k)
            The draws of the next subjects.
        """
        self.check_fitted()
        x = self._standardised(self._check_X(X, None, reset=False))
        m = as_count(self.n_samples if m is None else m, "m, the number of samples,", most=MOST_SAMPLES)
        draws = self._draws(m, self._seed if seed is None else as_seed(seed))
        for rows in chunks_of(len(x), m, self._generators[0]):
            some = x[rows]
            yield torch.cat([draw(some) for draw in draws], dim=1)

    def _draws(self, m: int, seed: int) -> list[Callable[[Tensor], Tensor]]:
        """What draws event times for covariates; the generators share the draws."""
        device = pick_device(self.device)
        tasks = [self._task(network.to(device).eval(), device) for network in self._generators]
        sizes = shares(m, [1 / len(tasks)] * len(tasks))
        return [
            self._draws_of(task, NoisePool(task.network, size, mix_seed(seed, i), task.mixed))
            for i, (task, size) in enumerate(zip(tasks, sizes, strict=True))
            if size
        ]

    def _draws_of(self, task: EngressionTask, pool: NoisePool) -> Callable[[Tensor], Tensor]:
        def draw(x: Tensor) -> Tensor:
            times: Tensor = self._times.inverse(task.event_times(pool.draw(x), pool.uniform(x)))
            return times

        return draw

    def predict_distribution(
        self, X: Array | None = None, n_samples: int | None = None, seed: int | None = None
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
        draws = self.sample(X, n_samples, seed)
        return Ensemble(draws) if self._causes is None else of_draws(draws, self._causes)

    def by_network(self, X: Array | None, statistic: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
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
        if len(self._generators) < 2:
            raise InvalidInputError(
                "by_network needs two or more networks to compare; got one. Fit with n_networks=4."
            )
        parts: list[list[np.ndarray]] = [[] for _ in self._generators]
        for z in self.sample_chunks(X):
            ends = np.cumsum(shares(z.shape[1], [1.0] * len(parts)))[:-1]
            for part, draws in zip(parts, np.split(z.cpu().numpy(), ends, axis=1), strict=True):
                part.append(np.asarray(statistic(draws)))
        return np.stack([np.concatenate(part) for part in parts])

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

    # ---- model files ---------------------------------------------------------------------------

    @classmethod
    def _of_parameters(cls, parameters: dict[str, Any]) -> Self:
        kinds = {"network": Network, "training": Training}
        given = {
            name: make(**parameters[name]) for name, make in kinds.items() if parameters[name] is not None
        }
        return cls(**parameters | given)

    def _networks(self) -> list[nn.Module]:
        return list(self._generators)

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
        # files written before the end of follow-up was kept have none
        ends = settings.get("follow_up", [None] * self.k_)
        self._follow_up = np.array([np.inf if end is None else end for end in ends])
