"""Weibull event times joined by a copula, with parameters linear in the covariates or from a network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from censcore._validation import check_flag, check_option
from censcore.distributions import Copula, Distribution, Independent, Weibull
from censcore.exceptions import InvalidInputError
from censcore.learning.data.standardised import Data, blocks
from censcore.learning.likelihood import ParameterEstimator, ParameterNetwork
from censcore.learning.settings import Training


@dataclass(kw_only=True, eq=False, repr=False)
class CopulaWeibull(ParameterEstimator):
    r"""Joint distribution of k event times: Weibull margins joined by a survival copula.

    The margins are :math:`T_j\mid x\sim\text{Weibull}(a_j,\lambda_j(x))`. Without ``hidden`` layers
    :math:`\log\lambda_j` is linear in x and the shapes and the dependence are the same for all subjects; with
    them a network gives :math:`a_j(x)` and :math:`\lambda_j(x)`. Trained by the censored log score, whose
    value does not depend on the censoring distribution. Assumes that C is independent of T given x.

    Parameters
    ----------
    copula : {"independent", "clayton", "gumbel"}
        Dependence between the event times: none, Clayton's [1]_ or Gumbel's [2]_; Gumbel joins two.
    hidden : sequence of int
        Widths of hidden layers; empty for log-linear scales.
    dependence : {"auto", "constant", "conditional"}
        Whether the copula's parameter depends on x; ``"auto"``: where there are hidden layers.
    margins_first : bool
        Fit the margins as if the event times were independent, then the copula's parameter alone, the same
        for all subjects (inference functions for margins [3]_). Less efficient than a joint fit where the
        copula is right; where it is wrong, a joint fit distorts the margins, and this does not.
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

    See Also
    --------
    JointGridModel, CensoredEngression : Joint distributions without a parametric form.
    censcore.Copula : What it predicts.

    References
    ----------
    .. [1] D. G. Clayton (1978). A model for association in bivariate life tables and its application in
       epidemiological studies of familial tendency in chronic disease incidence. Biometrika 65, 141-151.
    .. [2] E. J. Gumbel (1960). Distributions des valeurs extrêmes en plusieurs dimensions. Publications de
       l'Institut de Statistique de l'Université de Paris 9, 171-173.
    .. [3] H. Joe (1997). Multivariate Models and Dependence Concepts. Chapman and Hall, London.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.simulation import LogNormalScenario
    >>> data = LogNormalScenario(k=2, mixture=False).sample(500, seed=0)
    >>> model = cs.CopulaWeibull("clayton", epochs=20, random_state=0).fit(data.X, data.y)
    >>> model.predict_distribution(data.X)
    Copula(shape=(500, 2))
    """

    _kind: ClassVar[str] = "CopulaWeibull"
    default_training: ClassVar[Training] = Training(
        batch_size=512, learning_rate=1e-2, weight_decay=1e-4, validate_every=1, tolerance=0.0
    )

    copula: str = field(default="independent", kw_only=False)
    dependence: str = "auto"
    margins_first: bool = False

    def _new_network(self) -> ParameterNetwork:
        self._check_options()
        k, joined = self.k_, int(self.copula != "independent")
        shapes_vary = bool(self.hidden)
        varies_unless_told = shapes_vary and not self.margins_first
        theta_varies = self.dependence == "conditional" or (self.dependence == "auto" and varies_unless_told)
        conditional = k + k * shapes_vary + joined * theta_varies
        constant = k * (not shapes_vary) + joined * (not theta_varies)
        return ParameterNetwork(self._n_inputs, conditional, constant, self.hidden)

    def _check_options(self) -> None:
        check_option(self.copula, "copula", ("independent", "clayton", "gumbel"))
        if self.copula == "gumbel" and self.k_ != 2:
            raise InvalidInputError(f"The Gumbel copula joins two event times; got {self.k_}.")
        check_flag(self.margins_first, "margins_first")
        check_option(self.dependence, "dependence", ("auto", "constant", "conditional"))
        if self.margins_first and self.dependence == "conditional":
            raise InvalidInputError(
                "margins_first fits one dependence parameter for all subjects; got dependence='conditional', "
                "expected 'auto' or 'constant'."
            )

    def _distribution(self, raw: Tensor, unit: float) -> Distribution:
        """From outputs in the order log scales, shapes, copula's parameter; what varies with x first."""
        k = self.k_
        if not self.hidden and self.dependence == "conditional" and self.copula != "independent":
            raw = torch.cat([raw[:, :k], raw[:, k + 1 : 2 * k + 1], raw[:, k : k + 1]], dim=1)
        scale = raw[:, :k].clamp(*_LOG_SCALES).exp() * unit
        shape = nn.functional.softplus(raw[:, k : 2 * k] + _ONE).clamp(*_SHAPES)
        margins = [Weibull(shape[:, j], scale[:, j]) for j in range(k)]
        if self.copula == "independent":
            return Independent(margins)
        strength = nn.functional.softplus(raw[:, -1]).clamp(max=_STRONGEST)
        return Copula(self.copula, margins, strength if self.copula == "clayton" else 1 + strength)

    def _training_distribution(self, raw: Tensor) -> Distribution:
        distribution = self._distribution(raw, 1.0)
        return (
            Independent([distribution.marginal(j) for j in range(self.k_)])
            if self.margins_first
            else distribution
        )

    def _bounds(self, network: nn.Module) -> np.ndarray | None:
        """The dependence of all subjects ends at independence, which the search would never reach."""
        constant = network.get_parameter("constant").shape[1]
        if self.copula == "independent" or constant == (0 if self.hidden else self.k_):
            return None
        bounds = []
        for name, parameter in network.named_parameters():
            ends = np.tile([-np.inf, np.inf], (parameter.numel(), 1))
            if name == "constant":
                ends[-1] = _STRENGTHS
            bounds.append(ends)
        return np.concatenate(bounds)

    @torch.no_grad()
    def _finish(self, rows: Data) -> None:
        """Fit the parameter of the copula given the margins, by a one-dimensional search."""
        if not self.margins_first or self.copula == "independent":
            return
        network, x = self._network, rows["x"]
        device = network.constant.device
        raw = torch.cat([network(x[part].to(device)).cpu().double() for part in blocks(*x.shape)])
        time, event, weight = rows["time"][:], rows["event"][:], rows.get("weight")

        def loss(value: float) -> float:
            raw[:, -1] = value
            losses = -self._distribution(raw, 1.0).log_likelihood(time, event)
            return float(losses.mean() if weight is None else (losses * weight[:]).sum() / weight[:].sum())

        network.constant[0, -1] = minimize_scalar(loss, bounds=_STRENGTHS, method="bounded").x


# What is searched for the copula's parameter, before it is made positive.
_STRENGTHS = (-8.0, 40.0)

# Single subjects may leave all bounds while a network is trained; a distribution has digits within these.
_LOG_SCALES, _SHAPES, _STRONGEST = (-60.0, 60.0), (0.002, 1e6), 1e6

# softplus(_ONE) = 1: an untrained network gives exponential margins
_ONE = float(np.log(np.expm1(1.0)))
