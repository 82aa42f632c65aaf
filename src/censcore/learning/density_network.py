"""A mixture density network, trained by the censored likelihood, that stands beside the generators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from censcore.exceptions import InvalidInputError, ModelFileError
from censcore.learning.data.standardised import OnDemand
from censcore.learning.structures import Structure
from censcore.learning.subject_windows import SubjectWindows
from censcore.learning.training.loop import train
from censcore.learning.training.recipe import Recipe
from censcore.learning.training.task import Rows

__all__ = [
    "DensityNetwork",
    "DensityPool",
    "DensityTask",
    "LogNormalComponents",
    "fit_density_network",
    "moments_of",
]

# Chosen on simulated data of 300 to 10,000 subjects, and flat there.
_COMPONENTS, _WIDTH, _NETWORKS = 5, 64, 4
_STEPS = 12.0  # of training, times the root of the number of subjects
_BATCH, _RATE = 128, 1e-2
_SPARSITY = 0.5  # of the penalty on covariates, in units of the noise

_LOG_SCALES = (-4.0, 1.0)  # of a component, relative to the spread of all log-times
_LATEST = 80.0  # log-times beyond have no float32


class LogNormalComponents(nn.Module):
    """Networks beside each other, from covariates to mixtures of log-normal distributions.

    Each is a perceptron and a linear map; they differ in their first weights.

    Parameters
    ----------
    d, k : int
        Covariates and event times.
    components, width, networks : int
        Log-normal components and hidden units of each network, and how many there are.

    Examples
    --------
    >>> log_weight, location, log_scale = LogNormalComponents(3, 2)(torch.zeros(6, 3))
    >>> log_weight.shape, location.shape, log_scale.shape
    (torch.Size([4, 6, 5]), torch.Size([4, 6, 5, 2]), torch.Size([4, 6, 5, 2]))
    """

    def __init__(
        self,
        d: int,
        k: int,
        components: int = _COMPONENTS,
        width: int = _WIDTH,
        networks: int = _NETWORKS,
    ) -> None:
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
        x = x.expand(self.count, -1, -1)
        hidden = nn.functional.silu(torch.baddbmm(self.first_bias, x, self.first))
        hidden = nn.functional.silu(torch.baddbmm(self.second_bias, hidden, self.second))
        out = torch.baddbmm(torch.baddbmm(self.start, x, self.linear), hidden, self.last)
        out = out.unflatten(2, (self.components, 1 + 2 * self.k))
        log_weight, location, log_scale = out.split([1, self.k, self.k], dim=3)
        return log_weight[..., 0].log_softmax(dim=2), location, log_scale.clamp(*_LOG_SCALES)

    def input_norms(self) -> Tensor:
        """The sum over covariates of the norm of all weights by which one enters a network, their mean."""
        entering = torch.cat([self.first, self.linear], dim=2)
        return (entering.square().sum(dim=2) + 1e-8).sqrt().sum(dim=1).mean()

    def undecayed(self) -> list[nn.Parameter]:
        """Weight decay concerns the matrices only."""
        return [self.start, self.first_bias, self.second_bias]


def _layer(networks: int, inputs: int, width: int) -> tuple[nn.Parameter, nn.Parameter]:
    """Weights and biases of a layer in every network, as torch draws them."""
    bound = 1 / math.sqrt(inputs)
    weight = torch.empty(networks, inputs, width).uniform_(-bound, bound)
    return nn.Parameter(weight), nn.Parameter(torch.empty(networks, 1, width).uniform_(-bound, bound))


class DensityTask:
    r"""The censored log score of a mixture of log-normal distributions, with a penalty on covariates.

    .. math:: -\log\sum_c w_c(x)\prod_j f_{cj}(u_j)^{\Delta_j}\{1-F_{cj}(u_j)\}^{1-\Delta_j}

    Parameters
    ----------
    network : LogNormalComponents
        What is trained.
    sparsity : float
        Weight of the penalty.
    """

    def __init__(self, network: LogNormalComponents, sparsity: float) -> None:
        self.network, self.sparsity = network, sparsity

    def draw(
        self, n: int, generator: torch.Generator, device: torch.device, validating: bool = False
    ) -> dict[str, Tensor]:
        """A likelihood needs no random numbers."""
        return {}

    def loss(self, network: nn.Module, rows: Rows, random: Rows) -> Tensor:
        """One loss per subject."""
        assert isinstance(network, LogNormalComponents)
        log_weight, location, log_scale = network(rows["x"])
        z = (rows["u"][:, None] - location) * torch.exp(-log_scale)  # networks, subjects, components, times
        density = -0.5 * z.square() - log_scale - 0.5 * math.log(2 * math.pi)
        terms = torch.where(rows["event"][:, None], density, torch.special.log_ndtr(-z))
        terms = torch.where(rows["counts"][:, None], terms, 0.0).sum(dim=3)
        losses = -torch.logsumexp(log_weight + terms, dim=2).mean(dim=0)
        return losses + self.sparsity * network.input_norms()


class DensityNetwork(nn.Module):
    r"""A mixture density network [1]_ of event times given covariates.

    .. math:: \log T\mid x\sim\sum_c w_c(x)\prod_j N\{\mu_{cj}(x),\sigma_{cj}(x)^2\}

    Within a component the times are independent; that they share it makes them dependent. The networks of
    :class:`LogNormalComponents` are pooled. All is in double precision: sums of floats depend on how many
    subjects there are, those of doubles do not, once they are rounded.

    Parameters
    ----------
    networks : LogNormalComponents
        For standardised log-times.
    center, spread : arrays, (k,)
        Of the log-times.

    References
    ----------
    .. [1] C. M. Bishop (1994). Mixture density networks. Technical report NCRG/94/004, Aston University.

    Examples
    --------
    >>> from censcore.learning.structures import Free
    >>> network = DensityNetwork(LogNormalComponents(3, 2), np.zeros(2), np.ones(2))
    >>> network.pool(Free(2), m=5, seed=0).draw(torch.zeros(4, 3)).shape
    torch.Size([4, 5, 2])
    """

    name = "mixture density network"
    center: Tensor
    spread: Tensor

    def __init__(self, networks: LogNormalComponents, center: Any, spread: Any) -> None:
        super().__init__()
        self.networks, self.k = networks, networks.k
        for key, value in {"center": center, "spread": spread}.items():
            self.register_buffer(key, torch.as_tensor(np.array(value, dtype=np.float32)))
        self.double()

    @property
    def words(self) -> str:
        """What it is."""
        return self.name

    def _load_from_state_dict(self, state: Any, prefix: str, *args: Any) -> None:
        super()._load_from_state_dict(state, prefix, *args)
        if not bool((self.spread > 0).all()):
            raise ModelFileError(f"{self.name}: got a spread of times that is not positive.")

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Weights (n, c), and locations and scales (n, c, k) of the log-times of all networks together."""
        log_weight, location, log_scale = (
            part.movedim(0, 1).flatten(1, 2) for part in self.networks(x.double())
        )
        weight = log_weight.exp() / _NETWORKS
        return weight, self.center + self.spread * location, self.spread * log_scale.exp()

    def pool(self, structure: Structure, m: int, seed: int, subjects: int | None = None) -> DensityPool:
        """Draws that belong to a subject."""
        return DensityPool(self, structure, m, seed, subjects)


class DensityPool(SubjectWindows):
    """Draws of a mixture density network that belong to a subject.

    Parameters
    ----------
    network : DensityNetwork
        On its device.
    structure : Structure
        The constraints that every draw fulfils.
    m : int
        Draws per subject.
    seed : int
        Of the random numbers that subjects share.
    subjects : int, optional
        As of :class:`~censcore.learning.subject_windows.SubjectWindows`.
    """

    def __init__(
        self, network: DensityNetwork, structure: Structure, m: int, seed: int, subjects: int | None = None
    ) -> None:
        super().__init__(m, network.center.device, subjects)
        self.network, self.structure = network, structure
        source = torch.Generator().manual_seed(seed)
        self._uniform = torch.rand(self.size, generator=source).to(self.device)
        self._normal = torch.randn(self.size, network.k, generator=source).to(self.device)

    @torch.no_grad()
    def draw(self, x: Tensor) -> Tensor:
        """Event times (n, m, k) for standardised covariates (n, d)."""
        window = self.window(x)
        weight, location, scale = self.network(x.to(self.device))
        component = torch.searchsorted(weight.cumsum(dim=1), self._uniform[window].double())
        index = component.clamp(max=weight.shape[1] - 1)[..., None].expand(-1, -1, self.network.k)
        log_time = location.gather(1, index) + scale.gather(1, index) * self._normal[window]
        return self.structure.from_latent(log_time.clamp(-_LATEST, _LATEST).exp().float())


def fit_density_network(
    x: Tensor | OnDemand,
    time: np.ndarray,
    event: np.ndarray,
    counts: np.ndarray,
    weight: np.ndarray | None,
    seed: int,
    device: torch.device,
) -> DensityNetwork | None:
    """Train a mixture density network.

    Parameters
    ----------
    x : tensor or OnDemand, (n, d)
        Standardised covariates in float32, in memory or read for each batch.
    time, event, counts : arrays, (n, k)
        Observed times, whether they are events, and whether they count.
    weight : array, (n,), optional
        Weights of the subjects.
    seed : int
        Of initial weights and batches.
    device : torch.device
        Where to compute.

    Returns
    -------
    DensityNetwork or None
        None if training was interrupted.
    """
    if ((time <= 0) & event & counts).any():
        raise InvalidInputError("An event at time zero has no log-normal density.")
    n, d = x.shape
    u = np.log(np.maximum(time, 1e-6 * time[time > 0].min(initial=1.0)))
    used = np.where(counts, u, np.nan)
    center, spread = moments_of(used)
    rows: dict[str, Tensor | OnDemand] = {
        "x": x,
        "u": torch.from_numpy(np.where(counts, (u - center) / spread, 0.0).astype(np.float32)),
        "event": torch.from_numpy(event),
        "counts": torch.from_numpy(counts),
    }
    if weight is not None:
        rows["weight"] = torch.from_numpy(weight.astype(np.float32))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        networks = LogNormalComponents(d, time.shape[1])
    batch = min(n, _BATCH, max(32, n // 8))
    epochs = max(1, round(_STEPS * math.sqrt(n) * batch / n))
    recipe = Recipe(epochs, batch, _RATE, weight_decay=0.01, compile=False)
    sparsity = _SPARSITY * math.sqrt(math.log(1 + d) / n)
    task = DensityTask(networks, sparsity)
    history = train(task, rows, None, recipe, seed=seed, device=device, alone=True)
    return None if history.interrupted else DensityNetwork(networks, center, spread).to(device).eval()


def moments_of(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every column, of values that are not NaN."""
    count = np.maximum(1, (~np.isnan(u)).sum(axis=0))
    center = np.nansum(u, axis=0) / count
    spread = np.sqrt(np.nansum((u - center) ** 2, axis=0) / count)
    return center, np.where(spread > 1e-6, spread, 1.0)
