"""A mixture density network as an estimator."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from censcore._arrays import ArrayLike, Covariates, to_numpy
from censcore._validation import as_count, is_auto
from censcore.distributions import Distribution, Independent, JointMixture, LogNormal, Mixture
from censcore.estimators.libraries.sample_predictions import MOST_SAMPLES, SamplePredictions
from censcore.estimators.regression.cause_times import of_draws
from censcore.learning.data.checks import single_holds
from censcore.learning.data.standardised import Data, Fold, OnDemand, Standardised, blocks
from censcore.learning.file_checks import check_numbers
from censcore.learning.likelihood import LikelihoodEstimator, LikelihoodTask
from censcore.learning.settings import Training
from censcore.learning.structures import Branching, structure_of
from censcore.learning.subject_windows import SubjectWindows
from censcore.learning.training.devices import pick_device
from censcore.learning.training.side_by_side import stacked, with_penalty
from censcore.learning.training.task import MOST_UNITS, Recipe, Rows
from censcore.outcomes import OutcomeLike, RightCensored, SemiCompetingRisks

# Chosen on simulated data of 300 to 10,000 subjects, and flat there.
_STEPS = 12.0  # of training, times the root of the number of subjects
_BATCH = 128
_SPARSITY = 0.5  # of the penalty on covariates, in units of the noise

_LATEST = 80.0  # log-times beyond have no float32
_MOST = 1000  # components, or networks
_LOG_SCALES = (-4.0, 1.0)  # of a component, relative to the spread of all log-times


@dataclass(kw_only=True, eq=False, repr=False)
class MixtureDensityNetwork(LikelihoodEstimator):
    r"""Mixture density network [1]_ of one or several event times, by the censored likelihood.

    .. math:: \log T\mid x\sim\sum_c w_c(x)\prod_j N\{\mu_{cj}(x),\sigma_{cj}(x)^2\}

    Within a component the times are independent; sharing it makes them dependent. A few small
    networks, which differ in their first weights, are trained side by side and pooled. Assumes that C is
    independent of T given x. An event at time zero has no log-normal density and is an error.

    Parameters
    ----------
    components : int
        Log-normal components of each network.
    width : int
        Units of its two hidden layers.
    n_networks : int
        Networks that are pooled.
    epochs : int or "auto"
        ``"auto"`` is :math:`12\sqrt n` steps for n subjects.
    learning_rate : float
        Of AdamW.
    n_samples : int
        Draws per subject, where these are the forecast (see Notes) and in :meth:`sample`.
    random_state, device, progress, checkpoint
        As for :class:`~censcore.CensoredEngression`.

    Attributes
    ----------
    history_ : History
        Losses by epoch.
    k_ : int
        Number of event times, or of causes.

    Notes
    -----
    A penalty on the weights by which covariates enter, a group lasso of the order of the noise, keeps
    covariates without effect out.

    Competing and semi-competing risks: the components describe times :math:`T_j` of which an event that
    comes first, or a terminal one, prevents the others. What is seen has the likelihood of such times,
    censored by the event that prevents them, and only what can be observed is forecast: an ensemble of
    ``n_samples`` draws, with infinity for what never happens. Otherwise the forecast has a density, so that
    the log score exists: a :class:`~censcore.Mixture` for one time, a :class:`~censcore.JointMixture` for
    several.

    See Also
    --------
    censcore.CensoredEngression : Trained by the energy score, without a parametric form.
    censcore.CopulaWeibull, censcore.JointGridModel : Other models that are trained by the likelihood.

    References
    ----------
    .. [1] C. M. Bishop (1994). Mixture density networks. Technical report NCRG/94/004, Aston University.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.simulation import LogNormalScenario
    >>> data = LogNormalScenario(k=2, censoring="uniform").sample(300, seed=0)
    >>> model = cs.MixtureDensityNetwork(epochs=3, random_state=0).fit(data.X, data.y)
    >>> F = model.predict_distribution(data.X)
    >>> F, cs.log_score(data.y, F).shape
    (JointMixture(shape=(300, 2)), (300,))
    """

    _kind: ClassVar[str] = "MixtureDensityNetwork"
    _takes_causes: ClassVar[bool] = True
    _precision: ClassVar[torch.dtype] = torch.float64  # see _finish
    # the number of steps follows from that of the subjects
    default_training: ClassVar[Training] = Training(validation_fraction=0.0)

    components: int = 5
    width: int = 64
    n_networks: int = 4
    epochs: int | str = "auto"  # type: ignore[assignment]
    learning_rate: float = 1e-2
    n_samples: int = 1024
    random_state: int | np.random.RandomState | None = None
    device: str = "auto"
    progress: bool | None = None
    checkpoint: str | os.PathLike[str] | None = None

    # ---- outcomes ------------------------------------------------------------------------------

    def _plain_outcome(self, y: Any, training: bool = False) -> Any:
        """Times that are censored by an event that prevents them."""
        y = super()._plain_outcome(y, training)
        return RightCensored(y.time, y.event) if isinstance(y, SemiCompetingRisks) else y

    def _fit_units(self, y: RightCensored) -> None:
        """Mean and spread of the log-times."""
        as_count(self.n_samples, "n_samples", most=MOST_SAMPLES)
        time = to_numpy(y.time).reshape(len(y), -1).astype(np.float64, copy=False)
        with np.errstate(divide="ignore"):
            self._log_center, self._log_spread = moments_of(np.where(time > 0, np.log(time), np.nan))

    def _tensors(self, X: np.ndarray, y: RightCensored, weight: Any) -> dict[str, Tensor | OnDemand]:
        rows = super()._tensors(X, y, weight)  # an event at time zero is an error there
        time = to_numpy(y.time).reshape(len(y), -1).astype(np.float64, copy=False)
        counts = time > 0  # every time exceeds zero
        u = (np.log(np.where(counts, time, 1.0)) - self._log_center) / self._log_spread
        del rows["time"]
        return rows | {
            "u": torch.from_numpy(np.where(counts, u, 0.0).astype(np.float32)),
            "counts": torch.from_numpy(counts),
        }

    # ---- training ------------------------------------------------------------------------------

    def _new_network(self) -> LogNormalComponents:
        return LogNormalComponents(
            self._n_inputs,
            self.k_,
            as_count(self.components, "components", most=_MOST),
            as_count(self.width, "width", most=MOST_UNITS),
            as_count(self.n_networks, "n_networks", most=_MOST),
        )

    def _recipe(self, n: int) -> Recipe:
        batch = min(n, _BATCH, max(32, n // 8))
        epochs: Any = self.epochs
        if is_auto(epochs):
            epochs = max(1, round(_STEPS * math.sqrt(n) * batch / n))
        return Recipe(epochs, batch, self.learning_rate, weight_decay=0.01, compile=False)

    def _task(self, n: int) -> DensityTask:
        return DensityTask(self._network, self._sparsity(n))

    def _finish(self, rows: Data) -> None:
        # sums of floats depend on how many subjects there are, those of doubles do not, once rounded
        self._network.double().eval()

    def _sparsity(self, n: int) -> float:
        """Weight of the penalty on covariates, of the order of the noise."""
        return _SPARSITY * math.sqrt(math.log(1 + self._n_inputs) / n)

    def cross_fit(
        self,
        X: Covariates | None,
        y: OutcomeLike | SemiCompetingRisks,
        folds: Sequence[tuple[np.ndarray, np.ndarray]],
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> list[tuple[Self]]:
        """Fit to all subjects, and side by side to all but each fold; for use by :class:`~censcore.Stacking`.

        Covariates and times are in units of all subjects; ``groups`` are as in :meth:`fit`. No checkpoint is
        written.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        folds : sequence of (array of int, array of int)
            Training and held-out subjects.

        Returns
        -------
        list of tuples of estimators
            For every fold the model of it alone, which has not seen the held-out subjects, and those that it
            is pooled or averaged with, if any.
        """
        matrix, outcome, labels = self._in_memory(X, y, groups)
        everything = self._learn_units(matrix, outcome, sample_weight, slice(None))
        parts: list[Any] = [slice(None), *(rows for rows, _ in folds)]
        own = [Fold.of(everything, rows, None, labels) for rows in parts]
        networks = self._new_networks(self._seeds(len(own)))
        sparsity = torch.tensor([self._sparsity(fold.training.n) for fold in own])
        task = DensityTask(stacked(networks), sparsity.to(pick_device(self.device)))
        self.history_ = self._train(task, networks, own, self._recipe(len(outcome)), checkpoint=None)[0]
        if self.history_.interrupted:
            raise KeyboardInterrupt
        self._networks = [networks[0].double()]
        return [(self._with(network.double()),) for network in networks[1:]]

    # ---- predictions ---------------------------------------------------------------------------

    @torch.no_grad()
    def _parameters(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Weights (n, c), and locations and scales (n, c, k) of the log-times of all networks together."""
        network: Any = self._network
        log_weight, location, log_scale = (
            part.movedim(0, 1).flatten(1, 2) for part in network(x.double().to(network.start.device))
        )
        center, spread = (location.new_tensor(value) for value in (self._log_center, self._log_spread))
        return log_weight.exp() / network.count, center + spread * location, spread * log_scale.exp()

    def predict_distribution(self, X: Covariates | None = None) -> Distribution:
        """Predict the distribution of the event times.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.

        Returns
        -------
        Mixture, JointMixture, Ensemble or CauseEnsemble
            One distribution per subject: in closed form, or an ensemble where one event prevents another.
        """
        self.check_fitted()
        if isinstance(self._structure, Branching):
            return of_draws(self.sample(X), self._causes)
        self._network.to(pick_device(self.device))
        x = self._standardised(self._check_X(X, None, reset=False))
        parts = [self._parameters(x[rows]) for rows in blocks(*x.shape)]
        return self._distribution([torch.cat(part) for part in zip(*parts, strict=True)])

    def _distribution(self, raw: Any, unit: float = 1.0) -> Distribution:
        """The mixture with these weights, locations and scales."""
        weight, mu, sigma = (part.cpu().numpy() for part in raw)
        components = [
            [LogNormal(mu[:, c, j], sigma[:, c, j]) for j in range(self.k_)] for c in range(weight.shape[1])
        ]
        if self._joint:
            return JointMixture([Independent(margins) for margins in components], weight)
        return Mixture([margins[0] for margins in components], weight)

    sample: ClassVar[Any] = SamplePredictions.sample

    def _draws(self, x: Standardised, m: int, seed: int, device: torch.device) -> Iterator[Tensor]:
        windows, source = SubjectWindows(m, device), torch.Generator().manual_seed(seed)
        uniform = torch.rand(windows.size, generator=source, dtype=torch.float64).to(device)
        normal = torch.randn(windows.size, self.k_, generator=source).to(device)
        single = all(map(single_holds, np.exp(self._log_center)))
        latest = _LATEST if single else np.log(np.finfo(float).max)
        for rows in blocks(len(x), m * self.k_):
            weight, location, scale = self._parameters(x[rows])
            window = windows.window(x[rows])
            component = torch.searchsorted(weight.cumsum(dim=1), uniform[window])
            index = component.clamp(max=weight.shape[1] - 1)[..., None].expand(-1, -1, self.k_)
            log_time = location.gather(1, index) + scale.gather(1, index) * normal[window]
            time = log_time.clamp(-latest, latest).exp()
            yield self._structure.from_latent(time.float() if single else time)

    # ---- model files ---------------------------------------------------------------------------

    def _fitted_settings(self) -> dict[str, Any]:
        return super()._fitted_settings() | {
            "log_center": self._log_center.tolist(),
            "log_spread": self._log_spread.tolist(),
            "structure": self._structure.settings,
        }

    def _restore_settings(self, settings: dict[str, Any]) -> None:
        super()._restore_settings(settings)
        self._log_center = check_numbers("log_center", settings["log_center"], self.k_)
        self._log_spread = check_numbers("log_spread", settings["log_spread"], self.k_, least=1e-300)
        self._structure = structure_of(self.k_, **settings["structure"])


class LogNormalComponents(nn.Module):
    """Networks beside each other, from covariates to mixtures of log-normal distributions.

    Each is a perceptron and a linear map; they differ in their first weights.

    Examples
    --------
    >>> log_weight, location, log_scale = LogNormalComponents(3, 2)(torch.zeros(6, 3))
    >>> log_weight.shape, location.shape, log_scale.shape
    (torch.Size([4, 6, 5]), torch.Size([4, 6, 5, 2]), torch.Size([4, 6, 5, 2]))
    """

    def __init__(self, d: int, k: int, components: int = 5, width: int = 64, networks: int = 4) -> None:
        super().__init__()
        self.k, self.components, self.count = k, components, networks
        start = torch.zeros(networks, 1, components, 1 + 2 * k)
        location, log_scale = start[..., 1 : 1 + k], start[..., 1 + k :]
        location += torch.linspace(-1.5, 1.5, components)[:, None] + 0.1 * torch.randn(location.shape)
        log_scale -= 0.7
        outputs = components * (1 + 2 * k)
        self.linear = nn.Parameter(torch.zeros(networks, d, outputs))
        self.start = nn.Parameter(start.flatten(2))
        self.first, self.first_bias = _layer(networks, d, width)
        self.second, self.second_bias = _layer(networks, width, width)
        self.last = nn.Parameter(torch.zeros(networks, width, outputs))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logarithms of weights, locations and logarithms of scales of standardised log-times.

        Networks are the first axis, subjects the second, components the third.
        """
        folds = len(self.first) if self.first.ndim == 4 else 1  # stacks, with subjects of their own
        x = x.reshape(folds, 1, -1, x.shape[1]).expand(-1, self.count, -1, -1).flatten(0, 1)
        hidden = nn.functional.silu(_product(self.first_bias, x, self.first))
        hidden = nn.functional.silu(_product(self.second_bias, hidden, self.second))
        out = torch.baddbmm(_product(self.start, x, self.linear), hidden, self.last.flatten(0, -3))
        out = out.unflatten(2, (self.components, 1 + 2 * self.k))
        out = out.unflatten(0, (folds, self.count)).transpose(0, 1).flatten(1, 2)
        log_weight, location, log_scale = out.split([1, self.k, self.k], dim=3)
        return log_weight[..., 0].log_softmax(dim=2), location, log_scale.clamp(*_LOG_SCALES)

    def input_norms(self) -> Tensor:
        """The sum over covariates of the norm of all weights by which one enters a network, their mean."""
        entering = torch.cat([self.first, self.linear], dim=-1)
        return (entering.square().sum(dim=-1) + 1e-8).sqrt().sum(dim=-1).mean(dim=-1)

    def undecayed(self) -> list[nn.Parameter]:
        """Weight decay concerns the matrices only."""
        return [self.start, self.first_bias, self.second_bias]


def _product(bias: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """The product x W + b of every network, with the subjects of each."""
    return torch.baddbmm(bias.flatten(0, -3), x, weight.flatten(0, -3))


def _layer(networks: int, inputs: int, width: int) -> tuple[nn.Parameter, nn.Parameter]:
    """Weights and biases of a layer in every network, as torch draws them."""
    bound = 1 / math.sqrt(inputs)
    weight = torch.empty(networks, inputs, width).uniform_(-bound, bound)
    return nn.Parameter(weight), nn.Parameter(torch.empty(networks, 1, width).uniform_(-bound, bound))


class DensityTask(LikelihoodTask):
    r"""The censored log score of a mixture of log-normal distributions, with a penalty on covariates.

    .. math:: -\log\sum_c w_c(x)\prod_j f_{cj}(u_j)^{\Delta_j}\{1-F_{cj}(u_j)\}^{1-\Delta_j}

    ``sparsity``, the weight of the penalty, is a number, or a tensor of one for each of several networks.
    """

    def __init__(self, network: nn.Module, sparsity: float | Tensor) -> None:
        self.network, self.sparsity = network, sparsity

    def loss(self, network: nn.Module, rows: Rows, random: Rows) -> Tensor:
        """One loss per subject."""
        assert isinstance(network, LogNormalComponents)
        log_weight, location, log_scale = network(rows["x"])
        z = (rows["u"][:, None] - location) * torch.exp(-log_scale)  # networks, subjects, components, times
        density = -0.5 * z.square() - log_scale - 0.5 * math.log(2 * math.pi)
        terms = torch.where(rows["event"][:, None], density, torch.special.log_ndtr(-z))
        terms = torch.where(rows["counts"][:, None], terms, 0.0).sum(dim=3)
        losses = -torch.logsumexp(log_weight + terms, dim=2).mean(dim=0)
        return with_penalty(losses, self.sparsity, network)


def moments_of(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every column, of values that are not NaN."""
    count = np.maximum(1, (~np.isnan(u)).sum(axis=0))
    center = np.nansum(u, axis=0) / count
    spread = np.sqrt(np.nansum((u - center) ** 2, axis=0) / count)
    return center, np.where(spread > 1e-6, spread, 1.0)
