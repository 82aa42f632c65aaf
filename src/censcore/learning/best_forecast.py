"""The default stack."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from censcore._validation import as_count
from censcore.estimators.base import SurvivalEstimator
from censcore.estimators.boosted_hazards import BoostedHazards
from censcore.estimators.cox import CoxRegression
from censcore.estimators.encoding import CompletedCovariates
from censcore.estimators.joint_from_margins import JointFromMargins
from censcore.estimators.kaplan_meier import KaplanMeier
from censcore.estimators.parametric_regressions import WeibullRegression
from censcore.estimators.stacking import Stacking
from censcore.learning.engression import CensoredEngression, Network, Training
from censcore.learning.mixture_density_network import MixtureDensityNetwork

__all__ = ["BestForecast"]

# A smaller generator than the paper's, in fewer and larger steps: as accurate on simulated data of 300 to
# 5,000 subjects, for a fifth of the time.
_NETWORK, _TRAINING = Network(width=64, noise_dim=32), Training(learning_rate=0.01)


class BestForecast(Stacking):
    """The default stack: networks where there are many events, simple models where there are few.

    A :class:`Stacking` of :class:`CensoredEngression`, :class:`MixtureDensityNetwork`, and boosted trees
    (:class:`BoostedHazards`), Kaplan-Meier, Cox and Weibull models, whose times are joined by a Clayton
    copula (:class:`JointFromMargins`), weighed by the energy score of held-out subjects. A
    model that the data do not allow, such as one without covariates or with events at time zero, is left out.

    Covariates go in as they are. Text and categories of a frame become indicators of their levels, where a
    level that the fit did not have counts as the first one; a missing number becomes the median, with an
    indicator of the columns that had missing ones in the fit. Covariates more than a standard deviation
    outside the range of the fit are held at that border, since nothing was learned beyond. An
    :class:`~censcore.exceptions.ExtrapolationWarning` says so of new levels and of subjects outside.

    Parameters
    ----------
    epochs : int
        Of the generators of :class:`CensoredEngression`, which take most of the time.
    n_samples : int
        Draws per subject in forecasts.
    random_state : int, RandomState or None
        Everything random follows from it.
    device : str
        Of the networks: ``"auto"``, ``"cpu"``, ``"cuda"``, ...
    progress : bool
        Show progress bars of training.

    Attributes
    ----------
    weights_, scores_, estimators_, left_out_, censoring_
        As of :class:`Stacking`. The estimators take covariates as numbers, see above.

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
        epochs: int = 40,
        n_samples: int = 1024,
        random_state: Any = None,
        device: str = "auto",
        progress: bool = False,
    ) -> None:
        self.epochs = epochs
        self.n_samples = n_samples
        self.random_state = random_state
        self.device = device
        self.progress = progress

    score, cv, leave_out = "energy_score", "auto", True
    get_params = SurvivalEstimator.get_params
    set_params = SurvivalEstimator.set_params

    def _inputs(self, X: Any, *, reset: bool) -> Any:
        """Complete covariates within the range of the fit."""
        if X is None or np.shape(X)[1:] == (0,):
            return super()._inputs(None, reset=reset)
        if reset:
            self._completed = CompletedCovariates().fit(X)
            self.n_features_in_ = self._completed.n_features_in_
            self.__dict__.pop("feature_names_in_", None)
            if hasattr(self._completed, "feature_names_in_"):
                self.feature_names_in_ = self._completed.feature_names_in_
        elif not self.n_features_in_:
            return super()._inputs(X, reset=False)
        return self._completed.transform(X)

    def _pairs(self, X: Any) -> list[tuple[str, Any]]:
        as_count(self.epochs, "epochs", least=1, most=10**7)
        shared: dict[str, Any] = {
            "random_state": self._seed,
            "device": self.device,
            "progress": self.progress,
        }
        ridge = {"Cox": CoxRegression(alpha=1.0), "Weibull": WeibullRegression(alpha=1.0)}
        if X is None:
            models: dict[str, Any] = {"Weibull": ridge["Weibull"]}
        else:  # a penalty needs covariates of one unit
            models = {name: make_pipeline(StandardScaler(), model) for name, model in ridge.items()}
        trees = [] if X is None else [("trees", JointFromMargins(BoostedHazards(random_state=self._seed)))]
        return [
            (
                "engression",
                CensoredEngression(epochs=self.epochs, network=_NETWORK, training=_TRAINING, **shared),
            ),
            ("density network", MixtureDensityNetwork(**shared)),
            *trees,
            *(
                (name, JointFromMargins(model))
                for name, model in {"Kaplan-Meier": KaplanMeier(), **models}.items()
            ),
        ]

    def _simple(self) -> list[str]:
        return ["Kaplan-Meier", "Cox", "Weibull"]
