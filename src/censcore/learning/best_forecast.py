"""The default stack."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import expit

from censcore._validation import as_count, check_flag
from censcore.distributions import Distribution
from censcore.estimators.covariates import count_rows
from censcore.estimators.encoding import CompletedCovariates
from censcore.estimators.nonparametric.kaplan_meier import KaplanMeier
from censcore.estimators.nonparametric.turnbull import Turnbull
from censcore.estimators.regression.cox import CoxRegression
from censcore.estimators.regression.parametric_regressions import (
    LogLogisticRegression,
    LogNormalRegression,
    WeibullRegression,
)
from censcore.estimators.regression.piecewise_exponential import PiecewiseExponentialRegression
from censcore.estimators.stacking.joint_from_margins import JointFromMargins
from censcore.estimators.stacking.stacking import Stacking
from censcore.estimators.stacking.stacking_members import in_turn, mixed
from censcore.estimators.stacking.stacking_subjects import HeldOut, StackSubjects
from censcore.estimators.stacking.stacking_weights import LogLosses, QuadraticLosses, joined, shares
from censcore.estimators.survival_estimator import SurvivalEstimator
from censcore.estimators.trees.boosted_hazards import BoostedHazards
from censcore.exceptions import InvalidInputError
from censcore.learning.data.checks import check_order, check_single_precision
from censcore.learning.engression import CensoredEngression, Network, Training
from censcore.learning.mixture_density_network import MixtureDensityNetwork
from censcore.learning.training.devices import pick_device
from censcore.outcomes import RightCensored

# A smaller generator than the paper's, in fewer and larger steps. Up to 2,000 subjects fewer draws, and two
# density networks instead of four, are as accurate on simulated data; beyond, they are not.
_NETWORK = Network(width=64, noise_dim=32)
_TRAINING = Training(learning_rate=0.01, samples=4, validate_every=8)
_MANY = 2_000

# Weights beforehand, relative to that of engression: what held-out subjects say of two networks is little.
# Chosen on simulated data, of one to ten times; 1.5 to 3 for the density network are nearly as good. The
# regressions equal Kaplan-Meier where covariates do not help, since their penalties are then large.
_EXPECTED = {"density network": 2.0, "trees": 1.5, "Kaplan-Meier": 0.25}


class BestForecast(Stacking):
    r"""The default stack: networks where there are many events, simple models where there are few.

    A :class:`Stacking` of :class:`CensoredEngression`, :class:`MixtureDensityNetwork`, and boosted trees
    (:class:`BoostedHazards`), Kaplan-Meier, and ridge regressions (Cox, Weibull, log-normal and log-logistic,
    with penalties that the data choose), whose times are joined by a Clayton copula
    (:class:`JointFromMargins`), weighed by the energy score of held-out subjects. Beforehand
    engression, density network and trees share as 2 : 4 : 3, and Kaplan-Meier and each regression as 1 : 4,
    which is best on simulated data. A model that the data do not allow, such as one without covariates or
    with events at time zero, is left out. With delayed entry, trees and simple models remain; for
    interval-censored times Turnbull's estimate and parametric regressions are mixed, by the log score.

    For several times, unless they are ``ordered``, the mixture is combined with the same one with its times
    in all orders, by the score of held-out subjects: which of nearly exchangeable times comes first is then
    learned with less noise. After the last event the tail is exponential, with a hazard of at most half an
    event in the follow-up there: long follow-up without events suggests subjects who never have one.

    Covariates go in as they are. Text and categories of a frame become indicators of their levels, where a
    level that the fit did not have counts as the first one; a missing number becomes the median, with an
    indicator of the columns that had missing ones in the fit. Covariates more than a standard deviation
    outside the range of the fit are held at that border, since nothing was learned beyond. An
    :class:`~censcore.exceptions.ExtrapolationWarning` says so of new levels and of subjects outside.

    Parameters
    ----------
    ordered : bool
        The event times of a subject come in the order of the coordinates, :math:`T_1\le\dots\le T_k`; every
        draw fulfils it.
    epochs : int
        Of the generators of :class:`CensoredEngression`, which take most of the time.
    cv : int or "auto"
        As of :class:`Stacking`. :meth:`risk_interval` needs several folds.
    n_samples : int
        Draws per subject in forecasts.
    random_state : int, RandomState or None
        Everything random follows from it.
    device : str
        Of the networks: ``"auto"``, ``"cpu"``, ``"cuda"``, ...
    progress : bool, optional
        Show progress bars of training; by default as :class:`CensoredEngression` does.

    Attributes
    ----------
    weights_, scores_, estimators_, left_out_, censoring_
        As of :class:`Stacking`. The estimators take covariates as numbers, see above.
    exchangeable_ : float
        The share of draws with times in all orders.

    See Also
    --------
    Stacking : Other estimators, other scores.
    CensoredEngression : The generator alone.

    References
    ----------
    .. [1] D. H. Wolpert (1992). Stacked generalization. Neural Networks 5, 241-259.

    Examples
    --------
    >>> import censcore as cs
    >>> cs.BestForecast(random_state=0)
    BestForecast(random_state=0)
    """

    def __init__(
        self,
        *,
        ordered: bool = False,
        epochs: int = 40,
        cv: int | str = "auto",
        n_samples: int = 1024,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        progress: bool | None = None,
    ) -> None:
        self.ordered = ordered
        self.epochs = epochs
        self.cv = cv
        self.n_samples = n_samples
        self.random_state = random_state
        self.device = device
        self.progress = progress

    _kind = "BestForecast"
    _expected = MappingProxyType(_EXPECTED)
    score, leave_out = "energy_score", True
    get_params = SurvivalEstimator.get_params
    set_params = SurvivalEstimator.set_params

    def _inputs(self, X: Any, *, reset: bool) -> Any:
        """Complete covariates within the range of the fit."""
        if X is not None:
            count_rows(X)  # an error where these are no covariates
        if X is None or np.shape(X)[1:] == (0,):
            return super()._inputs(None, reset=reset)
        if reset:
            check_single_precision(X, fitting=False)
            self._completed = CompletedCovariates().fit(X)
            self.n_features_in_ = self._completed.n_features_in_
            self.__dict__.pop("feature_names_in_", None)
            if hasattr(self._completed, "feature_names_in_"):
                self.feature_names_in_ = self._completed.feature_names_in_
        elif not self.n_features_in_:
            return super()._inputs(X, reset=False)
        return self._completed.transform(X)

    @classmethod
    def _check_device(cls, device: str) -> None:
        pick_device(device)

    def _checked(self, y: Any) -> Any:
        check_flag(self.ordered, "ordered")
        y = super()._checked(y)
        if self.ordered:
            if not isinstance(y, RightCensored):
                raise InvalidInputError(f"ordered=True: not available for {type(y).__name__}; leave it out.")
            check_order(y)
        return y

    def _pairs(self, X: Any) -> list[tuple[str, Any]]:
        as_count(self.epochs, "epochs", least=1, most=10**7)
        shared: dict[str, Any] = {
            "random_state": self._seed,
            "device": self.device,
            "progress": self.progress,
        }
        ridge: dict[str, Any] = {
            "Weibull": WeibullRegression(alpha="auto"),
            "log-normal": LogNormalRegression(alpha="auto"),
            "log-logistic": LogLogisticRegression(alpha="auto"),
        }
        if self.by_likelihood_:
            pooled: dict[str, Any] = {"Turnbull": Turnbull("uniform")}
            ridge["piecewise exponential"] = PiecewiseExponentialRegression(alpha="auto")
            flexible: dict[str, Any] = {}
        else:
            pooled = {"Kaplan-Meier": KaplanMeier()}
            many = X is not None and len(X) > _MANY
            training = Training(learning_rate=0.01) if many else _TRAINING
            flexible = {
                "engression": CensoredEngression(
                    ordered=self.ordered, epochs=self.epochs, network=_NETWORK, training=training, **shared
                ),
                "density network": MixtureDensityNetwork(n_networks=4 if many else 2, **shared),
            }
            if X is not None:
                ridge = {"Cox": CoxRegression(alpha="auto")} | ridge
                flexible["trees"] = JointFromMargins(BoostedHazards(random_state=self._seed))
        simple = {name: JointFromMargins(model) for name, model in (pooled | ridge).items()}
        self._baselines = list(simple)
        return [*flexible.items(), *simple.items()]

    def _simple(self) -> list[str]:
        return self._baselines

    # ---- order, and times after the last event ---------------------------------------------------

    def _is_exact(self, forecasts: list[Distribution]) -> bool:
        return self.by_likelihood_ and super()._is_exact(forecasts)

    def _finish(self, subjects: StackSubjects, held: HeldOut) -> None:
        self.exchangeable_, self._last = 0.0, np.full(len(self._follow_up), np.inf)
        y = subjects.y
        if not isinstance(y, RightCensored):
            return
        if self._joint and not self.ordered:
            self.exchangeable_ = self._exchangeable(subjects, held)
        if np.isfinite(self._follow_up).all():
            time, event = (np.asarray(part).reshape(len(y), -1) for part in (y.time, y.event))
            self._last = np.where(event, time, 0.0).max(axis=0)
            with np.errstate(divide="ignore"):
                self._late_hazard = 0.5 / np.maximum(time - self._last, 0.0).sum(axis=0)

    def _exchangeable(self, subjects: StackSubjects, held: HeldOut) -> float:
        """The share of draws whose times take turns, by the held-out score of draws that all do."""
        losses, parts = [], list(subjects.held_out())
        m = 2 * self.member_draws_.count(sum(len(y) for _, y, _, _ in parts))
        sizes = shares(m, [self.weights_[name] for name in self.estimators_])
        chosen = [(held[name], size) for name, size in zip(self.estimators_, sizes, strict=True) if size]
        for i, (X, y, C, weight) in enumerate(parts):
            drawn = [
                self.member_draws_.apart(models[i][0], X, y, self._seed + 7919 * j, size)
                for j, (models, size) in enumerate(chosen)
            ]
            z = mixed(drawn)[:, np.random.default_rng(self._seed).permutation(m)]
            one, other = z[:, ::2], in_turn(z[:, 1::2], 1.0)
            losses.append((*self.member_draws_.losses_of_draws([one, other], y, C, self._seed), weight))
        return _probability_of_second(joined(losses)) if losses else 0.0

    def _completed_draws(self, z: np.ndarray, seed: int) -> np.ndarray:
        if np.isfinite(self._last).all():
            z = _after_last_event(z, self._last, self._late_hazard, seed)
        if self.ordered:
            return np.sort(z, axis=2)
        return in_turn(z, self.exchangeable_) if self.exchangeable_ else z


def _probability_of_second(losses: QuadraticLosses | LogLosses) -> float:
    r"""The probability that the best share q of the first of two forecasts is 0, where it is else 1.

    With the estimate :math:`\hat q\sim N(q,e^2)` and even odds: :math:`1/[1+\exp\{(\hat q-\frac12)/e^2\}]`.
    Other shares are not considered: times are exchangeable, or they are not.
    """
    q, variance = losses.along(*np.eye(2))
    return float(expit((0.5 - q) / max(variance, 1e-12)))


def _after_last_event(z: np.ndarray, last: np.ndarray, most: np.ndarray, seed: int) -> np.ndarray:
    r"""Draws (n, m, k) with an exponential tail after the last events :math:`\tau` (k,).

    Its hazard is the subject's mean hazard over the second half of the time before,
    :math:`\log\{S(\tau/2)/S(\tau)\}/(\tau/2)`, and ``most`` (k,) at most.
    """
    late = z > last
    after, before = late.mean(axis=1), (z > last / 2).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        hazard = np.minimum(np.log(before / after) / (last / 2), most)
        waiting = np.random.default_rng(seed).exponential(size=z.shape[1:]) / hazard[:, None]
    return np.where(late, last + waiting, z)
