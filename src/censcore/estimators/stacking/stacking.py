"""Stacks: mixtures of the forecasts of several estimators, weighed by a held-out proper score."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import _BaseComposition

from censcore._arrays import Array, ArrayLike, Covariates, to_numpy
from censcore._validation import (
    as_confidence,
    as_count,
    as_labels,
    as_list,
    as_seed,
    check_flag,
    check_option,
)
from censcore.distributions import Distribution, Ensemble, JointMixture, Mixture, Univariate
from censcore.distributions.joint.joint import Joint
from censcore.estimators.covariates import check_rows, check_weights, count_rows, take_rows
from censcore.estimators.encoding import text_columns
from censcore.estimators.folds import seed_of
from censcore.estimators.libraries.adapted import as_estimator
from censcore.estimators.libraries.sample_predictions import MOST_SAMPLES, SamplePredictions
from censcore.estimators.nonparametric.curve_inference import jackknife_interval
from censcore.estimators.regression.cause_times import of_draws
from censcore.estimators.saved_models import SavedEstimator, decoded, encoded
from censcore.estimators.stacking.stacking_members import MemberDraws, mixed
from censcore.estimators.stacking.stacking_subjects import HeldOut, StackSubjects, censoring_of, stack_folds
from censcore.estimators.stacking.stacking_weights import joined, named_weights, shares
from censcore.exceptions import CenscoreError, ExtrapolationWarning, InvalidInputError
from censcore.outcomes import CompetingRisks, IntervalCensored, OutcomeLike, SemiCompetingRisks, as_outcome

_AT_ONCE = 4096  # subjects whose draws are mixed


class Stacking(SamplePredictions, SavedEstimator, _BaseComposition):
    r"""Mixture of the forecasts of several estimators, with weights by a held-out proper score.

    The forecast is :math:`\sum_jw_jF_j(\cdot\mid x)`. Every estimator is fitted to parts of the subjects and
    forecasts the others. The weights that are best for these have standard errors and are combined with a
    prior (see Notes), so that few held-out subjects do not decide alone. Then the estimators are fitted again
    to all subjects.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Named estimators with ``predict_distribution``, or what :class:`Adapted` takes.
    score : {"energy_score", "log_score"}
        What the weights are chosen by. The energy score, which for one event time is the CRPS, takes every
        forecast; the log score needs densities. The energy score counts up to the time that 5 % of the
        subjects are followed longer than, so that few late subjects do not decide.
    baselines : sequence of str
        Names of simple models among the estimators, which share as a group with the others.
    cv : int or "auto"
        Number of folds, of which each is held out once. ``"auto"`` is 5 up to 1,000 subjects; up to 4,000
        two fifths are held out, of more one.
    leave_out : bool
        Leave an estimator out that cannot be fitted to the data (no covariates, an event at time zero), and
        say so in :meth:`summary`, instead of raising its error.
    n_samples : int
        Draws per subject, where the forecast is an ensemble.
    random_state : int, RandomState or None
        Of the folds and draws; the estimators have their own.

    Attributes
    ----------
    weights_ : dict of float
        By name, with sum one.
    scores_ : dict of float
        Mean held-out loss of every estimator; empty if nobody was held out.
    estimators_ : dict of estimators
        Those with a positive weight, fitted to all subjects.
    left_out_ : dict of str
        Those that could not be fitted, and why.
    censoring_ : Distribution
        The censoring distribution that held-out subjects were scored with.

    Notes
    -----
    Between two mixtures the best share has an estimate and a standard error, and a normal prior. Estimators
    share one after the other, with equal shares and a standard deviation of 0.2 beforehand, and so do the
    baselines, with 0.35. The mixture of these has the share :math:`200/(E+200)` beforehand, for E events per
    event time, with a standard deviation of 0.35. With fewer than ten subjects nobody is held out and the
    prior decides. Interval-censored times are always weighed by the log score. Delayed entry of one event
    time, and intervals, need estimators that take them.

    The forecast is a :class:`~censcore.Mixture` or :class:`~censcore.JointMixture` where every forecast is in
    closed form, and else an ensemble whose draws the estimators share. If an estimator has ``ordered=True``
    (:class:`~censcore.CensoredEngression`), the times of every draw of the others are sorted.

    An estimator may have a method ``cross_fit(X, y, folds, sample_weight, ...)`` that fits it to all
    subjects and returns for every fold a tuple: a fitted model that has not seen the held-out subjects, and,
    where several models are pooled in the end, others of these. :class:`~censcore.CensoredEngression` and
    :class:`BoostedHazards` have one, so that networks and trees are trained once.

    See Also
    --------
    JointFromMargins : Several times from estimators of one, as a member.
    censcore.BestForecast : The default stack.

    References
    ----------
    .. [1] D. H. Wolpert (1992). Stacked generalization. Neural Networks 5, 241-259.
    .. [2] Y. Yao, A. Vehtari, D. Simpson and A. Gelman (2018). Using stacking to average Bayesian predictive
       distributions. Bayesian Analysis 13, 917-1007.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.simulation import WeibullScenario
    >>> data = WeibullScenario("uniform").sample(200, seed=0)
    >>> members = [("cox", cs.CoxRegression()), ("km", cs.KaplanMeier())]
    >>> stack = cs.Stacking(members, random_state=0).fit(data.X, data.y)
    >>> {name: round(weight, 1) for name, weight in stack.weights_.items()}
    {'cox': 0.9, 'km': 0.1}
    """

    _kind = "Stacking"

    #: Weights beforehand by name, relative to those of other members or baselines, which are one.
    _expected: ClassVar[Mapping[str, float]] = MappingProxyType({})

    def __init__(
        self,
        estimators: Any,
        score: str = "energy_score",
        *,
        baselines: Sequence[str] = (),
        cv: int | str = "auto",
        leave_out: bool = False,
        n_samples: int = 1024,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimators = estimators
        self.score = score
        self.baselines = baselines
        self.cv = cv
        self.leave_out = leave_out
        self.n_samples = n_samples
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, and with ``deep`` those of the estimators, ``name__parameter``.

        Parameters
        ----------
        deep : bool
            Whether to include those of the estimators.

        Returns
        -------
        dict
        """
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, of the estimators as ``name__parameter``; ``name=...`` replaces one.

        Parameters
        ----------
        **params
            Names and values.

        Returns
        -------
        self
        """
        self._set_params("estimators", **params)
        return self

    # ---- fitting -------------------------------------------------------------------------------

    def fit(
        self,
        X: Covariates | None,
        y: OutcomeLike | SemiCompetingRisks,
        sample_weight: ArrayLike | None = None,
        *,
        censoring: Any = None,
        groups: ArrayLike | None = None,
        mask: None = None,
    ) -> Self:
        """Weigh the estimators on held-out subjects, and fit them to all.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates.
        y : RightCensored, IntervalCensored, CompetingRisks, SemiCompetingRisks, structured array or frame
            The outcome, (n,) or (n, k).
        sample_weight : array, (n,), optional
            Weights of the subjects.
        censoring : Distribution or estimator, optional
            The censoring distribution for the scores, and for the estimators whose ``fit`` takes it. Without
            it: what is known (no censoring, or ``y.censoring_time``), else a pooled Kaplan-Meier estimate.
        groups : array, (n,), optional
            Subjects of one group (visits of a patient) are held out together.
        mask : None
            An error if given: not all estimators of a stack can leave single event times out, as
            :class:`~censcore.CensoredEngression` and the likelihood models can on their own.

        Returns
        -------
        self
        """
        if mask is not None:
            raise InvalidInputError(
                f"mask: not available for {type(self).__name__}, whose estimators need all event times. Fit "
                "CensoredEngression, MixtureDensityNetwork or CopulaWeibull alone, which take a mask."
            )
        check_option(self.score, "score", ("energy_score", "log_score"))
        check_flag(self.leave_out, "leave_out")
        as_count(self.n_samples, "n_samples", most=MOST_SAMPLES)
        outcome = self._checked(y)
        n = len(outcome)
        check_rows(X, n)
        self._text = text_columns(X)
        X = self._inputs(X, reset=True)
        weight = None if sample_weight is None else check_weights(sample_weight, n)
        groups = None if groups is None else as_labels(groups, n)
        self._seed = seed_of(self.random_state)
        self.by_likelihood_ = self.score == "log_score" or isinstance(outcome, IntervalCensored)
        self.censoring_ = censoring_of(X, outcome, censoring, weight, groups)
        folds = stack_folds(np.arange(n) if groups is None else groups, self.cv, self._seed)
        subjects = StackSubjects(X, outcome, weight, self.censoring_, groups, folds, self._seed)
        pairs = [(name, as_estimator(model)) for name, model in self._pairs(X)]
        ordered = self._joint and any(getattr(model, "ordered", False) for _, model in pairs)
        self.member_draws_ = MemberDraws(self._causes, ordered, subjects.horizon)
        held, self.left_out_ = subjects.cross_fit_all(pairs, self.leave_out)
        pairs = [pair for pair in pairs if pair[0] in held]
        self._mix(dict(pairs), held, subjects)
        self._follow_up = subjects.follow_up
        first = take_rows(X, np.arange(1))
        self._exact = self._is_exact([m.predict_distribution(first) for m in self.estimators_.values()])
        self._finish(subjects, held)
        return self

    def _mix(self, models: dict[str, Any], held: HeldOut, subjects: StackSubjects) -> None:
        """Weigh the models, and fit those with a weight to all subjects."""
        names, simple, G = list(models), self._simple(), len(subjects.folds)
        losses = self.member_draws_.held_out_losses(list(held.values()), subjects, self.by_likelihood_)
        self.weights_ = named_weights(names, simple, losses, subjects.events, self._expected)
        self.scores_ = dict(zip(names, joined(losses).means.tolist(), strict=True)) if G else {}
        self.estimators_ = {
            name: model if hasattr(model, "cross_fit") and G else subjects.fit(model)
            for name, model in models.items()
            if self.weights_[name] > 0
        }
        self._without_fold = []
        everybody = sum(len(test) for _, test in subjects.folds) == len(subjects.y)
        for i in range(G if everybody else 0):
            others = losses[:i] + losses[i + 1 :]
            weights = named_weights(names, simple, others, subjects.events, self._expected)
            of_fold = {name: held[name][i][0] for name in names if weights[name] > 0}
            self._without_fold.append((weights, of_fold))

    def _finish(self, subjects: StackSubjects, held: HeldOut) -> None:
        """What a subclass learns of the mixture on held-out subjects."""

    def _inputs(self, X: Any, *, reset: bool) -> Any:
        """Covariates as the estimators get them: as they are, with as many columns as in ``fit``."""
        if X is not None:
            count_rows(X)  # an error where these are no covariates
        shape = (0, 0) if X is None else np.shape(X if hasattr(X, "shape") else to_numpy(X, "X"))
        got = int(shape[1]) if len(shape) == 2 else -1
        if reset:
            self.n_features_in_ = got
        elif got != self.n_features_in_:
            raise InvalidInputError(
                f"X: got {'no' if got < 0 else got} covariates, expected {self.n_features_in_}, as in fit."
            )
        return X

    def _pairs(self, X: Any) -> list[tuple[str, Any]]:
        """Named estimators."""
        pairs = self.estimators
        good = isinstance(pairs, list | tuple) and all(
            isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
        )
        if not good or not pairs:
            raise InvalidInputError(
                f"estimators: got {pairs!r:.80}, expected named pairs such as "
                "[('cox', CoxRegression()), ('km', KaplanMeier())]."
            )
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            raise InvalidInputError(f"estimators: got the names {', '.join(names)}, expected different ones.")
        self._validate_names(names)
        return [(name, model) for name, model in pairs]

    def _simple(self) -> list[str]:
        """Names of the baselines."""
        names = [name for name, _ in self.estimators]
        text = isinstance(self.baselines, str)
        baselines = [] if text else as_list(self.baselines, "baselines", "names of the estimators")
        strange = [name for name in baselines if not isinstance(name, str) or name not in names]
        if text or strange:
            raise InvalidInputError(
                f"baselines: got {self.baselines!r}, expected some of the names {', '.join(names)}."
            )
        return baselines

    def _checked(self, y: Any) -> Any:
        """The outcome in NumPy, and what its forecasts look like."""
        self._causes: Any = None
        self._joint = True
        if isinstance(y, CompetingRisks):
            y.any_cause().require_no_entry(type(self).__name__)
            self._causes = y.names
        elif isinstance(y, IntervalCensored):
            self._joint = False
        elif not isinstance(y, SemiCompetingRisks):
            y = as_outcome(y)
            self._joint = y.time.ndim == 2
            if self._joint:
                y.require_no_entry(type(self).__name__)
        return y.like(np.empty(0))

    # ---- predictions ---------------------------------------------------------------------------

    def _is_exact(self, forecasts: list[Distribution]) -> bool:
        """Whether there is a mixture in closed form."""
        kind = Joint if self._joint else Univariate
        return not (self._causes or self.member_draws_.ordered) and all(
            isinstance(F, kind) and not isinstance(F, Ensemble) for F in forecasts
        )

    def _chunks(self, X: Array | None, m: int | None, seed: int | None) -> Iterator[np.ndarray]:
        """Draws (subjects, m, k); the estimators share them by their weights."""
        self.check_fitted()
        X = self._inputs(X, reset=False)
        n = 1 if X is None else count_rows(X)
        m = as_count(self.n_samples if m is None else m, "m, the number of samples,", most=MOST_SAMPLES)
        seed = self._seed if seed is None else as_seed(seed)
        offset = float(np.random.default_rng(seed).random())
        sizes = shares(m, [self.weights_[name] for name in self.estimators_], offset)
        for start in range(0, n, _AT_ONCE):
            part = take_rows(X, np.arange(start, min(n, start + _AT_ONCE)))
            z = mixed(
                [
                    self.member_draws_.of(model, part, size, seed + 7919 * j)
                    for j, (model, size) in enumerate(zip(self.estimators_.values(), sizes, strict=True))
                    if size
                ]
            )
            yield self._completed_draws(z if z.ndim == 3 else z[:, :, None], seed)

    def _completed_draws(self, z: np.ndarray, seed: int) -> np.ndarray:
        """Draws (n, m, k) of the mixture, as a subclass completes them."""
        return z

    def predict_distribution(self, X: Covariates | None = None) -> Distribution:
        """Predict the mixture.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates.

        Returns
        -------
        Mixture, JointMixture, Ensemble or CauseEnsemble
            In closed form where every forecast is, else an ensemble of ``n_samples`` draws.
        """
        self.check_fitted()
        if not self._exact:
            return of_draws(self.sample(X), self._causes)
        X = self._inputs(X, reset=False)
        forecasts: list[Any] = [model.predict_distribution(X) for model in self.estimators_.values()]
        weights = np.array([self.weights_[name] for name in self.estimators_])
        return JointMixture(forecasts, weights) if self._joint else Mixture(forecasts, weights)

    def risk_interval(self, X: Covariates | None, times: ArrayLike, level: float = 0.95) -> np.ndarray:
        r"""Compute intervals for the forecast risks :math:`F_j(t\mid x)`, by how they vary with the subjects.

        Delete-a-group jackknife: estimators and weights without one fold each, and Student's t of as many
        degrees of freedom as there are folds, less one. The interval is for the mean forecast of stacks that
        are fitted to other subjects, as many as here. Where the estimators together miss how the risk depends
        on covariates, they do so on every sample, and the interval says nothing of it;
        :meth:`~censcore.Comparison.calibration` compares forecast and observed risks.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates.
        times : array, (q,)
            Times t, the same for all subjects.
        level : float
            Between 0 and 1.

        Returns
        -------
        array, (n, q, 2), or (n, q, k, 2) for several event times or causes
            Lower and upper ends. The forecast itself is one less :meth:`predict_survival_function`.
        """
        level = as_confidence(level, "level")
        p = 1 - self.predict_survival_function(X, times)
        if not self._without_fold:
            raise InvalidInputError(
                "risk_interval: got a stack that has not held out every subject once, by which forecasts "
                "vary. Fit it with cv=5, to ten or more subjects."
            )
        without = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)  # the stack itself has warned
            for weights, models in self._without_fold:
                stack = copy(self)
                stack.weights_, stack.estimators_ = weights, models
                without.append(1 - stack.predict_survival_function(X, times))
        return jackknife_interval(p, np.stack(without), level)

    def _contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays: dict[str, Any] = {}
        state = {name: value for name, value in vars(self).items() if name != "censoring_"}
        if "estimators" in state:
            state["estimators"] = dict(self.estimators)
        return arrays, {"state": encoded(state, arrays, type(self).__name__), "trial": self._trial()}

    @classmethod
    def _restored(cls, arrays: dict[str, Any], settings: dict[str, Any], device: str) -> Self:
        model = object.__new__(cls)
        model.__dict__.update(decoded(settings["state"], arrays, device), censoring_=None)
        if "estimators" in vars(model):
            model.estimators = list(model.estimators.items())
        if hasattr(model, "device"):
            model.device = device
        if model._trial() != settings["trial"]:
            raise ValueError("forecasts end otherwise than when the model was saved")
        return model

    def _trial(self) -> str:
        """How forecasts for two subjects that do not exist end: in none, or which of them in which error.

        What a file cannot hold shows when it is read.
        """
        X: Any = None if self.n_features_in_ < 0 else np.zeros((2, self.n_features_in_))
        if self._text:
            import pandas as pd

            X = pd.DataFrame({name: ["", ""] if text else [0.0, 1.0] for name, text in self._text.items()})
        self.summary()
        step = "draws"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                forecast: Any = self.predict_distribution(X)
                if np.isnan(to_numpy(forecast.sample(3, seed=0))).any():
                    raise ValueError("forecasts that are NaN")
                step = "survival"
                self.predict_survival_function(X, [1.0])
                step = "interval"
                self.risk_interval(X, [1.0])
            except CenscoreError as error:
                return f"{step}: {type(error).__name__}"
        return ""

    def summary(self) -> Any:
        """Weights and held-out losses of the estimators, and who was left out.

        Returns
        -------
        pandas.DataFrame
            A line per estimator: ``weight``, ``loss`` (mean held-out score, lower is better), ``note``.
        """
        import pandas as pd

        self.check_fitted()
        names = [*self.weights_, *self.left_out_]
        return pd.DataFrame(
            {
                "weight": [self.weights_.get(name, 0.0) for name in names],
                "loss": [self.scores_.get(name, np.nan) for name in names],
                "note": [self.left_out_.get(name, "") for name in names],
            },
            index=pd.Index(names, name="estimator"),
        )
