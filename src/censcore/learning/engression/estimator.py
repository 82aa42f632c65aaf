"""Censored engression as an estimator."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np
from torch import nn

from censcore.distributions import Distribution
from censcore.exceptions import InvalidInputError, ModelFileError
from censcore.learning.engression.draws import MixtureDraws
from censcore.learning.engression.exported import export_sampler
from censcore.learning.engression.from_batches import FitFromBatches
from censcore.learning.engression.from_memory import FitFromMemory
from censcore.learning.engression.mixture import MixtureChoice
from censcore.learning.engression.time_scale import TimeScale
from censcore.learning.engression.training_censoring import TrainingCensoring
from censcore.learning.model_contents import check_number
from censcore.learning.structures import structure_of

__all__ = ["CensoredEngression"]


class CensoredEngression(MixtureDraws, FitFromMemory, FitFromBatches):
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
        The generator, see :class:`~censcore.learning.engression.Generator`.
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
        Let other models, a mixture density network and simple ones, take a share of the draws where that
        improves the forecast of held-out subjects, see Notes.
    n_generators : int or "auto"
        Generators trained from different seeds, whose samples are pooled; :meth:`by_generator` shows how far
        they disagree. Each is validated on another part of the subjects. ``"auto"`` is 5 up to 1,000
        subjects. Otherwise it is 1; up to 4,000 subjects that one is trained again on all of them, by as many
        steps as before (with ``patience``, as were kept by validation); if it then forecasts those who were
        held out worse than before, the first is kept.
    batch_size : int or "auto"
        Subjects per step; ``"auto"`` is 256, and an eighth of the subjects (at least 32) where they are few.
    epochs, learning_rate, weight_decay, schedule, warmup, clip, averaging, patience,
    validate_every, tolerance
        How to train, see :class:`~censcore.learning.Recipe`.
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
        Share of the draws that come from other models than the generators.
    baseline_ : str
        Which models these are, and why, in words.
    histories_ : list of History
        Losses of every generator.
    follow_up_ : float or array, (k,)
        The end of follow-up: quantiles and means beyond it are returned as infinite, unless a tail is named.
    k_ : int
        Number of event times.

    Notes
    -----
    Baselines: after training, the forecasts of the generators for the subjects that they did not see are
    compared with those of other models, fitted to the same subjects. A mixture density network [4]_ makes
    five log-normal components of all event times, by the censored likelihood; there is none where one event
    prevents another, nor with events at time zero. Simple models have Kaplan-Meier, Cox and Weibull
    margins, joined by a Clayton copula (independent where one event prevents another).

    The energy score of a mixture is a convex quadratic function of its weights. So the share of one
    component beside another that is best for the held-out subjects is known exactly, with a standard error.
    A normal prior stands beside that estimate. Between generators and density network it has the mean 1/2
    (less for the density network where it learns from fewer subjects, at most 50,000) and the standard
    deviation 0.2; between these two and the best mixture of the simple models the mean :math:`E/(E+200)`
    for E events per event time and the standard deviation 0.35: where held-out subjects cannot tell, few
    events speak for simple models and many for networks. The model forecasts the mixture, with the
    baselines fitted again to all subjects. Nothing is compared without validation, and then the generators
    are alone.

    Sparsity: with p covariates and n subjects ``"auto"`` is :math:`0.6\,s\sqrt{\log(p/5)/n}` with the scale s
    of the loss (half the mean distance of two subjects up to the earlier of their censoring times), and zero
    for up to five covariates.

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
    .. [4] C. M. Bishop (1994). Mixture density networks. Technical report NCRG/94/004, Aston University.

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

    # ---- what was found ------------------------------------------------------------------------

    @property
    def censoring_(self) -> Distribution | None:
        """The censoring distribution that training used; None in a model read from a file."""
        return self._training_censoring.distribution

    @property
    def baseline_weight_(self) -> float:
        """Share of the draws that come from other models than the generators."""
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
