"""Simple joint models that censored engression falls back on where its network has not learned more."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from censcore.estimators.cox import CoxRegression
from censcore.estimators.weibull import WeibullRegression
from censcore.exceptions import InvalidInputError, ModelFileError
from censcore.learning.structures import Branching, Structure
from censcore.learning.subject_windows import SubjectWindows
from censcore.outcomes import RightCensored

__all__ = ["BASELINES", "Baseline", "BaselinePool", "fit_baselines"]

#: Margins of the baselines, in the order in which they are tried.
BASELINES = ("Kaplan-Meier", "Cox", "Weibull")

_CERTAIN = 1e9  # the cumulative hazard after a time at which everybody at risk has the event
_LARGEST_HAZARD = 12.0  # in the likelihood of the dependence
_DEPENDENCE = (np.log(1e-3), np.log(20.0))  # what is searched, log theta


class Baseline(nn.Module):
    r"""Event times with proportional hazards, joined by Clayton's survival copula.

    .. math:: P(T_j>t\mid x)=\exp\{-H_j(t)\,e^{x^\top\gamma_j}\}

    with the steps of a product-limit estimate or a Weibull distribution for :math:`H_j`. Beyond follow-up
    a product-limit estimate continues with the mean hazard of the follow-up. Draws solve
    :math:`H_j(T_j)=E_j e^{-x^\top\gamma_j}` for exponential :math:`E_j`, which share a gamma frailty.

    Parameters
    ----------
    name : str
        One of ``BASELINES``.
    coef : array, (k, d)
        gamma, for standardised covariates.
    knots : sequence of k pairs of arrays
        Times and cumulative hazards after each; none for a Weibull distribution.
    end : array, (k, 3)
        A time, the cumulative hazard there, and the power p of the time
        :math:`t_e(h/h_e)^p` at which hazards h beyond the knots are reached.
    dependence : float
        theta of Clayton's copula; zero for independent times.

    Examples
    --------
    >>> nothing = (np.empty(0), np.empty(0))
    >>> exponential = Baseline("Weibull", np.zeros((1, 2)), [nothing], [[3.0, 1.0, 1.0]], 0.0)
    >>> exponential.times(torch.zeros(1, 2), torch.tensor([[[0.5], [2.0]]]))
    tensor([[[1.5000],
             [6.0000]]])
    """

    coef: Tensor
    end: Tensor
    dependence: Tensor

    def __init__(self, name: str, coef: Any, knots: Any, end: Any, dependence: float) -> None:
        super().__init__()
        if name not in BASELINES:
            raise InvalidInputError(f"baseline must be one of {BASELINES}; got {name!r}.")
        self.name = name
        for key, value in {"coef": coef, "end": end, "dependence": dependence}.items():
            self.register_buffer(key, torch.as_tensor(np.array(value, dtype=np.float64)))
        for j, (time, hazard) in enumerate(knots):
            self.register_buffer(f"time{j}", torch.as_tensor(np.array(time, dtype=np.float64)))
            self.register_buffer(f"hazard{j}", torch.as_tensor(np.array(hazard, dtype=np.float64)))

    @classmethod
    def empty(cls, name: str, k: int, d: int) -> Baseline:
        """One to be filled from a file."""
        return cls(name, np.zeros((k, d)), [(np.empty(0), np.empty(0))] * k, np.ones((k, 3)), 0.0)

    @property
    def k(self) -> int:
        """Number of event times."""
        return len(self.coef)

    @property
    def words(self) -> str:
        """Margins and dependence."""
        theta = float(self.dependence)
        joined = f" with Clayton's copula (theta {theta:.2g})" if theta > 0 else " with independence"
        return f"{self.name} margins" + (joined if self.k > 1 else "")

    def pool(self, structure: Structure, m: int, seed: int, subjects: int | None = None) -> BaselinePool:
        """Draws that belong to a subject."""
        return BaselinePool(self, structure, m, seed, subjects)

    def _load_from_state_dict(self, state: Any, prefix: str, *args: Any) -> None:
        """Take knots of any number, and check that they make a distribution."""
        for j in range(self.k):
            time, hazard = (state.get(f"{prefix}{part}{j}") for part in ("time", "hazard"))
            if time is None or hazard is None or time.ndim != 1 or time.shape != hazard.shape:
                raise ModelFileError(f"{self.name} baseline: the curve of event time {j} is incomplete.")
            if (
                (time < 0).any()
                or (hazard < 0).any()
                or (time.diff() <= 0).any()
                or (hazard.diff() < 0).any()
            ):
                raise ModelFileError(f"{self.name} baseline: the curve of event time {j} does not increase.")
            setattr(self, f"time{j}", torch.empty_like(time))
            setattr(self, f"hazard{j}", torch.empty_like(hazard))
        super()._load_from_state_dict(state, prefix, *args)
        if not bool((self.end > 0).all()) or not bool(self.dependence >= 0):
            raise ModelFileError(f"{self.name} baseline: got a hazard or dependence that is not positive.")

    def times(self, x: Tensor, hazard: Tensor) -> Tensor:
        """Times (n, m, k) at which cumulative hazards (n, m, k) of subjects x (n, d) are reached."""
        hazard = hazard.double() * torch.exp(-x.double() @ self.coef.T)[:, None]
        columns = []
        for j in range(self.k):
            h, (time, level, power) = hazard[..., j].contiguous(), self.end[j]
            late = time * (h / level) ** power
            knots, levels = getattr(self, f"time{j}"), getattr(self, f"hazard{j}")
            if len(knots):
                place = torch.searchsorted(levels, h)
                inside = place < len(levels)
                late = torch.where(inside, knots[place.clamp(max=len(levels) - 1)], late)
            columns.append(late)
        return torch.stack(columns, dim=-1).float()

    def hazards(self, x: Tensor, time: Tensor) -> Tensor:
        """Cumulative hazards (n, k) at times (n, k), the mean of both limits at a step."""
        found = []
        for j in range(self.k):
            t, (end, level, power) = time[:, j].double().contiguous(), self.end[j]
            knots, levels = getattr(self, f"time{j}"), getattr(self, f"hazard{j}")
            h = level * (t / end) ** (1 / power)
            if len(knots):
                padded = torch.cat([levels.new_zeros(1), levels])
                before, after = (torch.searchsorted(knots, t, right=right) for right in (False, True))
                h = (padded[before] + padded[after]) / 2
            found.append(h)
        return torch.stack(found, dim=-1) * torch.exp(x.double() @ self.coef.T)


class BaselinePool(SubjectWindows):
    """Draws of a baseline that belong to a subject, as :class:`NoisePool` does for a generator.

    Parameters
    ----------
    baseline : Baseline
        On its device.
    structure : Structure
        The constraints that every draw fulfils.
    m : int
        Draws per subject.
    seed : int
        Of the exponential variables that subjects share.
    subjects : int, optional
        As of :class:`~censcore.learning.subject_windows.SubjectWindows`.
    """

    def __init__(
        self, baseline: Baseline, structure: Structure, m: int, seed: int, subjects: int | None = None
    ) -> None:
        super().__init__(m, baseline.coef.device, subjects)
        self.baseline, self.structure = baseline, structure
        rng = np.random.default_rng(seed)
        hazard, theta = rng.exponential(size=(self.size, baseline.k)), float(baseline.dependence)
        if theta > 0:  # Marshall and Olkin: exponentials that share a gamma frailty
            hazard = np.log1p(hazard / rng.gamma(1 / theta, size=(self.size, 1))) / theta
        self._hazard = torch.from_numpy(hazard).to(self.device)

    @torch.no_grad()
    def draw(self, x: Tensor) -> Tensor:
        """Event times (n, m, k) for standardised covariates (n, d)."""
        times = self.baseline.times(x.to(self.device), self._hazard[self.window(x)])
        return self.structure.from_latent(times)


def fit_baselines(
    x: np.ndarray,
    time: np.ndarray,
    event: np.ndarray,
    counts: np.ndarray,
    weight: np.ndarray | None,
    structure: Structure,
) -> list[Baseline]:
    """Fit what the network is compared with.

    Parameters
    ----------
    x : array, (n, d)
        Standardised covariates.
    time, event, counts : arrays, (n, k)
        Observed times, whether they are events, and whether they count.
    weight : array, (n,), optional
        Weights of the subjects.
    structure : Structure
        Where it lets one event prevent another, hazards are cause-specific and no copula joins the times.

    Returns
    -------
    list of Baseline
        Those of ``BASELINES`` that the data allow.
    """
    found = []
    names = BASELINES if x.any() else ("Kaplan-Meier", "Weibull")
    for name in names:
        try:
            margins = [
                _margin(name, x[rows], RightCensored(time[rows, j], event[rows, j]), _some(weight, rows))
                for j, rows in enumerate(counts.T)
            ]
        except InvalidInputError:  # an event at time zero has no Weibull density
            continue
        coef, knots, end = zip(*margins, strict=True)
        baseline = Baseline(name, np.stack(coef), knots, np.stack(end), 0.0)
        if time.shape[1] > 1 and not isinstance(structure, Branching):
            baseline.dependence.fill_(_dependence(baseline, x, time, event, counts, weight))
        found.append(baseline)
    return found


def _some(weight: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if weight is None else weight[rows]


def _margin(name: str, x: np.ndarray, y: RightCensored, weight: np.ndarray | None) -> tuple[Any, Any, Any]:
    """Coefficients, knots and end of one event time."""
    d, last = x.shape[1], float(y.time.max()) if len(y) else 1.0
    if not y.event.any():
        nothing = np.array([max(last, 1e-9), 0.5 / (len(y) + 1), 1.0])
        return np.zeros(d), (np.empty(0), np.empty(0)), nothing
    if name == "Weibull":
        covariates = x.any()
        fitted = WeibullRegression(alpha=1.0).fit(x if covariates else None, y, weight)
        scale, shape = np.exp(fitted.intercept_), fitted.shape_
        coef = -shape * fitted.coef_ if covariates else np.zeros(d)
        return coef, (np.empty(0), np.empty(0)), np.array([scale, 1.0, 1 / shape])
    cox = CoxRegression(alpha=1.0).fit(x if name == "Cox" else None, y, weight)
    coef, hazard = np.zeros(d), np.minimum(cox.baseline_hazard_, _CERTAIN)
    if name == "Cox":
        coef = cox.coef_
        hazard = np.minimum(hazard * np.exp(-cox.center_ @ coef), _CERTAIN)
    return coef, (cox.baseline_times_, hazard), np.array([last, hazard[-1], 1.0])


def _dependence(
    baseline: Baseline,
    x: np.ndarray,
    time: np.ndarray,
    event: np.ndarray,
    counts: np.ndarray,
    weight: np.ndarray | None,
) -> float:
    r"""Dependence theta of Clayton's copula given the margins, by the censored likelihood.

    With cumulative hazards :math:`H_j` at the observed times, d events of a subject and
    :math:`s=1+\sum_j(e^{\theta H_j}-1)` its logarithm is, up to what theta does not change,
    :math:`\sum_{i<d}\log(1+i\theta)+\theta\sum_{j:\Delta_j=1}H_j-(1/\theta+d)\log s`.
    """
    H = baseline.hazards(torch.from_numpy(x), torch.from_numpy(time)).numpy()
    H = np.where(counts, np.minimum(H, _LARGEST_HAZARD), 0.0)
    events = event & counts
    d, at_events = events.sum(axis=1), (H * events).sum(axis=1)

    def loss(log_theta: float) -> float:
        theta = np.exp(log_theta)
        s = 1 + np.expm1(theta * H).sum(axis=1)
        orders = np.concatenate([[0.0], np.cumsum(np.log1p(theta * np.arange(time.shape[1])))])
        losses = (1 / theta + d) * np.log(s) - theta * at_events - orders[d]
        return float(np.average(losses, weights=weight))

    best = minimize_scalar(loss, bounds=_DEPENDENCE, method="bounded").x
    return 0.0 if best < _DEPENDENCE[0] + 0.1 else float(np.exp(best))
