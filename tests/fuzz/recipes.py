"""How every public name is called: valid arguments, from which the fuzzer departs.

A name that is exported has a recipe here, or a reason why there is nothing to call. Arguments that a recipe
does not give have their defaults, and are fuzzed all the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats
from tests.fuzz.hostile import EVENT, TIME, N

import censcore as cs
from censcore import distributions as d
from censcore import evaluation, outcomes, published, scores, simulation


@dataclass(frozen=True)
class Target:
    """A function or method with valid arguments; ``infinite``: an answer may be infinite, ``nan``: or NaN.

    ``unread`` are arguments that it leaves alone, whatever they are.
    """

    label: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    infinite: bool = True
    nan: bool = False
    unread: tuple[str, ...] = ()

    def all_arguments(self) -> dict[str, Any]:
        """The valid arguments, with the defaults of the others."""
        found = dict(self.arguments)
        for name, parameter in inspect.signature(self.function).parameters.items():
            if parameter.default is not parameter.empty:
                found.setdefault(name, parameter.default)
        return found


@dataclass(frozen=True)
class Recipe:
    """The targets of one public name; ``share`` of the usual number of calls, less for what takes long."""

    targets: Callable[[], list[Target]]
    share: float = 1.0


# ---- valid arguments -------------------------------------------------------------------------------

Y = cs.RightCensored(TIME, EVENT)
F = cs.Weibull(np.linspace(0.8, 2.0, N), np.linspace(1.0, 3.0, N))
C = cs.Uniform(0.0, 5.0)
C2 = cs.Independent([C, C])
Y2 = cs.RightCensored(np.column_stack([TIME, TIME[::-1]]), np.column_stack([EVENT, EVENT]))
F2 = cs.Ensemble(np.random.default_rng(0).weibull(1.3, (N, 20, 2)))
CAUSES = cs.CompetingRisks(TIME, np.array([1, 0, 2, 1, 0, 2]))
CIF = np.array([[[0.1, 0.3, 0.4], [0.2, 0.2, 0.5]], [[0.0, 0.1, 0.1], [0.3, 0.3, 0.35]]])
INTERVALS = cs.IntervalCensored(TIME, TIME + np.array([1.0, np.inf, 0.5, 1.0, np.inf, 0.25]))
X = np.column_stack([np.linspace(-1, 1, 12), np.tile([0.0, 1.0, 3.0], 4)])
Y12 = cs.RightCensored(np.tile(TIME, 2) + np.linspace(0, 0.5, 12), np.tile(EVENT, 2))
NETWORK = cs.learning.Network(width=4, depth=1, noise_dim=2) if cs._has_torch() else None
TRAINING = cs.learning.Training(samples=2) if cs._has_torch() else None
Y12_2 = cs.RightCensored(np.tile(Y2.time, (2, 1)), np.tile(Y2.event, (2, 1)))
INTERVALS12 = cs.IntervalCensored(np.tile(INTERVALS.lower, 2), np.tile(INTERVALS.upper, 2))
CAUSES12 = cs.CompetingRisks(Y12.time, np.tile([1, 0, 2, 1, 0, 2], 2))

#: What an argument looks like that is None by default, by its name.
TYPICAL: dict[str, Any] = {
    "censoring_time": np.where(EVENT, 5.0, TIME),
    "entry": TIME / 2,
    "visits": [[0.5, 1.0]] * N,
    "horizon": 2.5,
    "times": np.array([0.4, 1.2]),
    "levels": np.array([0.2, 0.7]),
    "sample_weight": np.linspace(0.5, 2.0, N),
    "groups": np.array([0, 0, 1, 1, 2, 2]),
    "weight": np.linspace(0.5, 2.0, N),
    "weights": np.full(N, 1 / N),
    "censoring": C,
    "names": ["a", "b"],
    "X": X[:N],
    "mask": np.ones(N, dtype=bool),
    "upper": np.full(N, 6.0),
    "seed": 0,
    "strata": np.array([0, 0, 0, 1, 1, 1]),
    "by": np.array([0, 0, 0, 1, 1, 1]),
    "thresholds": np.array([0.2, 0.5]),
    "added": np.zeros(N),
    "window": 1.0,
    "sf": np.array([0.9, 0.6, 0.3]),
    "cdf": np.array([0.1, 0.4, 0.7]),
    "n_causes": 2,
    "floor": 0.05,
    "train": (None, Y),
    "reference": "kaplan-meier",
}

# ---- distributions ---------------------------------------------------------------------------------

T_Q, P_Q = np.array([[0.3, 1.0, 2.5]]), np.array([[0.1, 0.5, 0.9]])
UNIVARIATE_METHODS: dict[str, dict[str, Any]] = {
    "sf": {"t": T_Q},
    "cdf": {"t": T_Q},
    "sf_left": {"t": T_Q},
    "logsf": {"t": T_Q},
    "icdf": {"p": P_Q},
    "isf": {"p": P_Q},
    "integrated_sf": {"a": 0.2, "b": 1.5},
    "icdf_beyond": {"y": 0.5, "p": 0.5},
    "excludes": {"t": T_Q},
    "sample": {"m": 3, "seed": 0},
    "take": {"rows": [0]},
    "like": {"array": np.ones(1)},
    "censor_at": {"tau": 2.0},
    "given_survival": {"a": 0.2},
    "marginal": {"j": 0},
    "log_likelihood": {"time": 0.7, "event": False},
}
JOINT_METHODS: dict[str, dict[str, Any]] = {
    "sf": {"t": np.array([[0.5, 1.0]])},
    "logsf": {"t": np.array([[0.5, 1.0]])},
    "sample": {"m": 3, "seed": 0},
    "take": {"rows": [0]},
    "like": {"array": np.ones(1)},
    "censor_at": {"tau": 2.0},
    "given_survival": {"a": 0.1},
    "marginal": {"j": 0},
}
CAUSE_METHODS: dict[str, dict[str, Any]] = {
    "cif": {"t": T_Q},
    "cause": {"j": 1},
    "sf": {"t": T_Q},
    "sample": {"m": 3, "seed": 0},
    "take": {"rows": [0]},
    "like": {"array": np.ones(1)},
    "given_survival": {"a": 0.1},
}


#: Arguments of methods of which only library, device and dtype matter.
UNREAD = {"like": ("array",)}


def distribution(name: str, make: type, methods: dict[str, dict[str, Any]], **arguments: Any) -> Recipe:
    def targets() -> list[Target]:
        made = make(**arguments)
        found = [Target(name, make, arguments)] * 8
        found += [
            Target(f"{name}.{m}", getattr(made, m), a, unread=UNREAD.get(m, ()))
            for m, a in methods.items()
            if (name, m) != ("Ensemble", "log_likelihood")
        ]
        if hasattr(made, "logpdf") and made.has_density:
            found.append(Target(f"{name}.logpdf", made.logpdf, {"t": T_Q}))
        return found

    return Recipe(targets)


def univariate(name: str, make: type, **arguments: Any) -> Recipe:
    return distribution(name, make, UNIVARIATE_METHODS, **arguments)


def joint(name: str, make: type, **arguments: Any) -> Recipe:
    return distribution(name, make, JOINT_METHODS, **arguments)


def of_causes(name: str, make: type, **arguments: Any) -> Recipe:
    return distribution(name, make, CAUSE_METHODS, **arguments)


SHAPES, SCALES = np.array([0.8, 1.2, 2.0]), np.array([1.0, 2.0, 1.5])
PARTS = [cs.Weibull(SHAPES, SCALES), cs.Exponential(0.5)]
KNOTS, CURVES = np.array([0.5, 1.0, 3.0]), np.array([[0.9, 0.6, 0.3], [0.8, 0.5, 0.0]])
CELLS = np.random.default_rng(1).dirichlet(np.ones(16), 2).reshape(2, 4, 4)
STEPS = [cs.CumulativeIncidence([1.0, 2.0, 4.0], CIF[:1]), cs.CumulativeIncidence([3.0], CIF[:1, :, :1])]

DISTRIBUTIONS = {
    "Weibull": univariate("Weibull", cs.Weibull, shape=SHAPES, scale=SCALES),
    "Exponential": univariate("Exponential", cs.Exponential, rate=SHAPES),
    "LogNormal": univariate("LogNormal", cs.LogNormal, mu=SHAPES, sigma=SCALES),
    "LogLogistic": univariate("LogLogistic", cs.LogLogistic, shape=SHAPES, scale=SCALES),
    "Gamma": univariate("Gamma", cs.Gamma, shape=SHAPES, rate=SCALES),
    "Gompertz": univariate("Gompertz", cs.Gompertz, shape=SHAPES, rate=SCALES),
    "Uniform": univariate("Uniform", cs.Uniform, low=SHAPES, high=SHAPES + 3.0),
    "PointMass": univariate("PointMass", cs.PointMass, location=SHAPES),
    "PiecewiseExponential": univariate(
        "PiecewiseExponential", cs.PiecewiseExponential, times=KNOTS, rates=np.array([0.2, 0.5, 0.3, 0.4])
    ),
    "PiecewiseWeibull": univariate(
        "PiecewiseWeibull",
        d.PiecewiseWeibull,
        times=KNOTS,
        rates=np.array([0.2, 0.5, 0.3, 0.4]),
        shape=SHAPES,
    ),
    "Mixture": univariate("Mixture", cs.Mixture, components=PARTS, weights=np.array([0.3, 0.7])),
    "Step": univariate("Step", cs.Step, times=KNOTS, sf=CURVES),
    "PiecewiseLinear": univariate("PiecewiseLinear", cs.PiecewiseLinear, times=KNOTS, sf=CURVES),
    "Quantiles": univariate("Quantiles", cs.Quantiles, levels=np.array([0.1, 0.5, 0.9]), values=KNOTS),
    "Ensemble": univariate("Ensemble", cs.Ensemble, samples=np.linspace(0.2, 4.0, 12).reshape(2, 6)),
    "Independent": joint("Independent", cs.Independent, distributions=PARTS),
    "Copula": joint("Copula", cs.Copula, family="clayton", marginals=PARTS, theta=SHAPES),
    "JointMixture": joint(
        "JointMixture", cs.JointMixture, components=[cs.Independent(PARTS)] * 2, weights=np.array([0.4, 0.6])
    ),
    "JointGrid": joint(
        "JointGrid", cs.JointGrid, edges=np.array([0.0, 1.0, 2.0, 4.0]), probabilities=CELLS, tail=0.5
    ),
    "CumulativeIncidence": of_causes(
        "CumulativeIncidence", cs.CumulativeIncidence, times=np.array([1.0, 2.0, 4.0]), cif=CIF
    ),
    "CauseSpecificHazards": of_causes("CauseSpecificHazards", cs.CauseSpecificHazards, hazards=PARTS),
    "CauseEnsemble": of_causes(
        "CauseEnsemble",
        cs.CauseEnsemble,
        times=np.linspace(0.2, 4.0, 12).reshape(2, 6),
        causes=np.array([[1, 2, 1, 2, 1, 2]] * 2),
    ),
    "Censored": univariate("Censored", d.Censored, distribution=F, tau=np.full(N, 2.0)),
    "CensoredJoint": joint("CensoredJoint", d.CensoredJoint, joint=cs.Independent(PARTS), tau=SHAPES),
    "CompactStep": univariate("CompactStep", d.CompactStep, times=KNOTS, sf=CURVES),
    "GivenJointSurvival": joint(
        "GivenJointSurvival", d.GivenJointSurvival, joint=cs.Independent(PARTS), a=SHAPES / 8
    ),
    "GivenSurvival": univariate("GivenSurvival", d.GivenSurvival, distribution=PARTS[0], a=SHAPES / 8),
    "Grouped": univariate(
        "Grouped",
        d.Grouped,
        distributions=[cs.Exponential(1.0), cs.Weibull(2.0, [3.0, 6.0])],
        group=np.array([1, 0, 1]),
    ),
    "GroupedCauses": of_causes(
        "GroupedCauses", d.GroupedCauses, distributions=STEPS, group=np.array([0, 1, 0])
    ),
    "ProportionalHazards": univariate(
        "ProportionalHazards", d.ProportionalHazards, times=KNOTS, cumulative_hazard=KNOTS / 3, risk=SHAPES
    ),
    "ScipyDistribution": univariate(
        "ScipyDistribution", d.ScipyDistribution, frozen=scipy.stats.weibull_min(1.5, scale=SCALES)
    ),
    "OneFactorLogNormal": joint(
        "OneFactorLogNormal",
        simulation.OneFactorLogNormal,
        mu=np.zeros((1, 1, 2)),
        sigma=np.ones((1, 1, 2)),
        rho=[0.5],
        probabilities=np.ones((1, 1)),
    ),
}

# ---- outcomes --------------------------------------------------------------------------------------


def outcome(name: str, make: type, methods: dict[str, dict[str, Any]], **arguments: Any) -> Recipe:
    def targets() -> list[Target]:
        made = make(**arguments)
        found = [Target(name, make, arguments)] * 6
        found.append(Target(f"{name}.concat", make.concat, {"outcomes": [made, made]}))
        return found + [
            Target(f"{name}.{m}", getattr(made, m), a, unread=UNREAD.get(m, ())) for m, a in methods.items()
        ]

    return Recipe(targets)


FRAME = pd.DataFrame(
    {"time": TIME, "event": EVENT, "cause": [1, 0, 2, 1, 0, 2], "lower": TIME, "upper": TIME + 1}
)
COUNTING = pd.DataFrame(
    [[1, 0, 2, 0, 7], [1, 2, 5, 1, 9], [2, 0, 1, 0, 3], [3, 1, 4, 0, 4]],
    columns=["id", "start", "stop", "event", "x"],
)
STRUCTURED = np.array(list(zip(EVENT, TIME, strict=True)), dtype=[("event", bool), ("time", float)])
DATED = pd.DataFrame({"id": [1, 1, 2], "time": [0.0, 1.0, 0.5], "marker": [7.0, 9.0, 3.0]})
FOLLOWED = pd.DataFrame({"id": [1, 2, 3], "time": [5.0, 1.0, 4.0], "event": [1, 0, 1], "age": [60, 70, 50]})


def intervals() -> list[Target]:
    arguments = {name: COUNTING[name].to_numpy() for name in ("id", "start", "stop", "event")}
    made = cs.StartStop(**arguments)
    other = cs.StartStop(made.id + 10, made.start, made.stop, made.event)
    methods = {
        "at": {"s": 0.3},
        "in_force": {"times": np.array([0.5, 2.0])},
        "each_once": {"values": np.array([1.0, 1.0, 2.0, 3.0]), "name": "weights"},
        "from_frame": {"frame": COUNTING},
        "merge": {"baseline": FOLLOWED, "measurements": DATED},
        "concat": {"outcomes": [made, other]},
        "take": {"rows": [0, 1]},
    }
    found = [Target(f"StartStop.{m}", getattr(made, m), a) for m, a in methods.items()]
    return [Target("StartStop", cs.StartStop, arguments)] * 4 + found


CHOOSING: dict[str, dict[str, Any]] = {
    "take": {"rows": [0]},
    "like": {"array": np.ones(1)},
    "censor_at": {"tau": 1.5},
}
OUTCOMES = {
    "RightCensored": outcome(
        "RightCensored",
        cs.RightCensored,
        CHOOSING
        | {
            "marginal": {"j": 0},
            "after": {"s": 0.3},
            "at_risk": {"s": 0.3},
            "from_frame": {"frame": FRAME},
            "from_structured": {"y": STRUCTURED},
            "from_start_stop": {"frame": COUNTING},
            "with_names": {"names": ["death"]},
        },
        time=TIME,
        event=EVENT,
    ),
    "CompetingRisks": outcome(
        "CompetingRisks",
        cs.CompetingRisks,
        CHOOSING
        | {
            "after": {"s": 0.3},
            "cause": {"j": 1},
            "number_of": {"cause": 1},
            "with_names": {"names": ["a", "b"]},
            "from_frame": {"frame": FRAME},
        },
        time=TIME,
        cause=np.array([1, 0, 2, 1, 0, 2]),
    ),
    "SemiCompetingRisks": outcome(
        "SemiCompetingRisks",
        cs.SemiCompetingRisks,
        CHOOSING,
        time=np.column_stack([np.minimum(TIME, 2.0), np.full(N, 2.0)]),
        event=np.column_stack([TIME <= 2.0, np.ones(N, bool)]),
    ),
    "StartStop": Recipe(intervals),
    "IntervalCensored": outcome(
        "IntervalCensored",
        cs.IntervalCensored,
        CHOOSING
        | {
            "detection": {},
            "current_status": {"time": TIME, "found": EVENT},
            "from_frame": {"frame": FRAME},
            "from_right_censored": {"y": Y},
            "continue_visits": {"gaps": cs.Exponential(1.0), "until": 5.0},
        },
        lower=TIME,
        upper=TIME + 1.0,
        visits=np.column_stack([TIME, TIME + 1.0, TIME + 2.0]),
    ),
    "EventOfCause": outcome(
        "EventOfCause", outcomes.EventOfCause, CHOOSING, time=TIME, event=EVENT, never=np.zeros(N, bool)
    ),
}


def function(call: Callable[..., Any], share: float = 1.0, **arguments: Any) -> Recipe:
    how = {word: arguments.pop(word) for word in ("infinite", "nan", "unread") if word in arguments}
    return Recipe(lambda: [Target(call.__name__, call, arguments, **how)], share)


OUTCOMES |= {
    "as_competing_risks": function(outcomes.as_competing_risks, y=CAUSES),
    "as_followed": function(outcomes.as_followed, y=Y),
    "as_outcome": function(outcomes.as_outcome, y=Y),
    "is_competing": function(outcomes.is_competing, y=Y),
}

# ---- scores ----------------------------------------------------------------------------------------

SCORED = {"y": Y, "forecast": F, "censoring": C}
TIMES, LEVELS = np.array([0.4, 1.2]), np.array([0.2, 0.7])


def several(call: Callable[..., Any], *cases: dict[str, Any], infinite: bool = False) -> Recipe:
    return Recipe(lambda: [Target(call.__name__, call, case, infinite=infinite) for case in cases])


SCORES = {
    "log_score": several(cs.log_score, SCORED, infinite=True),
    "crps": several(cs.crps, SCORED, {**SCORED, "y": CAUSES.cause(1)}),
    "brier_score": several(cs.brier_score, {**SCORED, "times": TIMES}),
    "integrated_brier_score": several(cs.integrated_brier_score, SCORED),
    "binomial_log_score": several(cs.binomial_log_score, {**SCORED, "times": TIMES}, infinite=True),
    "pinball_score": several(cs.pinball_score, {**SCORED, "levels": LEVELS}),
    "energy_score": several(cs.energy_score, {"y": Y2, "forecast": F2, "censoring": C2}),
    "joint_brier_score": several(
        cs.joint_brier_score, {"y": Y2, "forecast": F2, "censoring": C2, "times": TIMES}
    ),
    "augmented_brier_score": several(cs.augmented_brier_score, {**SCORED, "times": TIMES, "event_model": F}),
    "augmented_integrated_brier_score": several(
        cs.augmented_integrated_brier_score, {**SCORED, "horizon": 2.5, "event_model": F}
    ),
    "augmented_binomial_log_score": several(
        cs.augmented_binomial_log_score, {**SCORED, "times": TIMES, "event_model": F}, infinite=True
    ),
    "mean_loss": function(cs.mean_loss, losses=TIME),
    # the influence on a mean that is infinite is NaN, and says so
    "clustered_mean": function(scores.clustered_mean, losses=TIME, weight=np.full(N, 1 / N), nan=True),
    "score_info": function(scores.score_info, name="crps"),
    "routes": several(scores.routes, SCORED, {**SCORED, "scale": "ipcw", "horizon": 1.0}),
    "administrative_brier": several(
        published.administrative_brier,
        {
            **SCORED,
            "censoring": None,
            "y": cs.RightCensored(TIME, EVENT, np.where(EVENT, 5.0, TIME)),
            "times": TIMES,
        },
    ),
    "d_calibration": function(published.d_calibration, y=Y, forecast=F),
    "ipcw_binomial_log": several(published.ipcw_binomial_log, {**SCORED, "times": TIMES}, infinite=True),
    "ipcw_brier": several(published.ipcw_brier, {**SCORED, "times": TIMES}),
    "survival_crps": several(published.survival_crps, SCORED),
    "Convention": function(published.Convention),
}

# ---- estimators ------------------------------------------------------------------------------------


def estimator(
    make: type, y: Any = Y12, X: Any = X, share: float = 0.5, unread: tuple[str, ...] = (), **settings: Any
) -> Recipe:
    """Settings are judged where scikit-learn judges them: in ``fit``; predictions may leave X ``unread``."""

    def fit(X: Any, y: Any, sample_weight: Any = None, **settings: Any) -> Any:
        model = make(**settings)
        model.fit(X, y) if sample_weight is None else model.fit(X, y, sample_weight=sample_weight)
        return model.predict_distribution(X)

    fit.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p for p in inspect.signature(fit).parameters.values() if p.name != "settings"]
        + [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(make).parameters.values()]
    )

    def targets() -> list[Target]:
        arguments = {"X": X, "y": y, **settings}
        model = make(**settings).fit(X, y)
        found = [Target(f"{make.__name__}.fit", fit, arguments)] * 2
        predict = Target(
            f"{make.__name__}.predict_distribution", model.predict_distribution, {"X": X}, unread=unread
        )
        return [*found, predict]

    return Recipe(targets, share)


def neural(name: str, y: Any, **settings: Any) -> Recipe:
    def targets() -> list[Target]:
        return estimator(getattr(cs, name), y, share=0.1, **settings).targets()

    return Recipe(targets, 0.1)


def landmark_cox() -> list[Target]:
    """Forecasts need the landmark that they are given."""
    model = cs.LandmarkCox([0.0, 0.2], 1.0, degree=1, alpha=0.1).fit(X, Y12)

    def fit(X: Any, y: Any, sample_weight: Any = None, alpha: Any = 0.1, window: Any = 1.0) -> Any:
        made = cs.LandmarkCox([0.0, 0.2], window, degree=1, alpha=alpha)
        return made.fit(X, y, sample_weight).predict_distribution(X, given=0.1)

    return [
        Target("LandmarkCox.fit", fit, {"X": X, "y": Y12, "alpha": 0.1, "window": 1.0}),
        Target("LandmarkCox.predict_distribution", model.predict_distribution, {"X": X, "given": 0.1}),
    ]


RISK = np.linspace(-1.0, 1.0, 12)
ESTIMATORS = {
    "KaplanMeier": estimator(cs.KaplanMeier, unread=("X",)),
    "WeibullRegression": estimator(cs.WeibullRegression),
    "LogNormalRegression": estimator(cs.LogNormalRegression),
    "LogLogisticRegression": estimator(cs.LogLogisticRegression),
    "CoxRegression": estimator(cs.CoxRegression, alpha=0.1),
    "LandmarkCox": Recipe(landmark_cox, 0.5),
    "PiecewiseExponentialRegression": estimator(cs.PiecewiseExponentialRegression, breaks=2, alpha=0.1),
    "Turnbull": estimator(cs.Turnbull, INTERVALS12, None, unread=("X",)),
    "Adapted": estimator(cs.Adapted, model=cs.WeibullRegression()),
    "Censoring": estimator(cs.Censoring, unread=("X",), estimator=cs.KaplanMeier()),
    "AalenJohansen": estimator(cs.AalenJohansen, CAUSES12, unread=("X",)),
    "FineGray": estimator(cs.FineGray, CAUSES12, alpha=0.1),
    "CauseSpecific": estimator(cs.CauseSpecific, CAUSES12, estimator=cs.WeibullRegression(alpha=0.1)),
    "as_forecast": function(
        cs.as_forecast, forecast=CURVES, times=KNOTS, interpolation="step", unread=("X",)
    ),
    "from_draws": function(cs.from_draws, draws=np.linspace(0.1, 3.0, 60).reshape(2, 10, 3)),
    "from_risk": function(cs.from_risk, train_risk=RISK, y_train=Y12, test_risk=RISK[:3]),
    "as_competing_forecast": function(
        cs.as_competing_forecast, forecast=CIF, times=np.array([1.0, 2.0, 4.0]), unread=("X",)
    ),
    "one_event_time": function(cs.estimators.one_event_time, y=Y, estimator="KaplanMeier"),
    "load": function(cs.load, path="nothing.censcore"),
    "OutcomeTable": function(cs.OutcomeTable, data="nothing.parquet", time="t", event="d", rows=10),
    "Stacking": estimator(
        cs.Stacking,
        estimators=[("km", cs.KaplanMeier()), ("exponential", cs.WeibullRegression(alpha=0.1))],
        random_state=0,
    ),
    "BoostedHazards": estimator(cs.BoostedHazards, random_state=0, max_iter=10),
    "JointFromMargins": estimator(cs.JointFromMargins, estimator=cs.WeibullRegression(alpha=0.1)),
    "CensoredEngression": neural(
        "CensoredEngression",
        Y12,
        random_state=0,
        epochs=1,
        n_samples=8,
        device="cpu",
        network=NETWORK,
        training=TRAINING,
    ),
    "BestForecast": neural("BestForecast", Y12, random_state=0, epochs=1, n_samples=8, device="cpu"),
    "MixtureDensityNetwork": neural(
        "MixtureDensityNetwork",
        Y12_2,
        random_state=0,
        epochs=1,
        width=4,
        components=2,
        n_samples=8,
        device="cpu",
    ),
    "CopulaWeibull": neural("CopulaWeibull", Y12_2, random_state=0, epochs=1, hidden=(4,)),
    "JointGridModel": neural(
        "JointGridModel", Y12_2, random_state=0, bins=3, epochs=1, max_iter=2, hidden=(4,)
    ),
    "PublishedCox": estimator(
        cs.PublishedCox,
        coefficients={0: 0.3, 1: 0.1},
        baseline={1.0: 0.9, 2.0: 0.7},
        ranges={0: (-2, 2)},
        unread=("y", "sample_weight"),
    ),
    "PublishedAFT": estimator(
        cs.PublishedAFT, coefficients={0: 0.3}, intercept=1.0, scale=0.8, unread=("y", "sample_weight")
    ),
    "PublishedCauses": estimator(
        cs.PublishedCauses,
        models={"a": cs.PublishedCox({0: 0.3}, cs.Exponential(0.2))},
        unread=("y", "sample_weight"),
    ),
    "column": function(cs.column, name="age"),
    "WithCensoring": estimator(evaluation.WithCensoring, model=cs.WeibullRegression(alpha=0.1), share=0.3),
}

# ---- evaluation ------------------------------------------------------------------------------------

_RNG = np.random.default_rng(2)
MANY = 40
_T, _C = _RNG.weibull(1.3, MANY), _RNG.uniform(0.2, 3.0, MANY)
Y40 = cs.RightCensored(np.minimum(_T, _C), _T <= _C)
MODELS = {"a": cs.Weibull(1.3, np.linspace(0.8, 1.4, MANY)), "b": cs.Exponential(1.0)}
MODELS_2 = {
    "a": cs.Ensemble(_RNG.weibull(1.3, (MANY, 8, 2))),
    "b": cs.Ensemble(_RNG.weibull(1.0, (MANY, 8, 2))),
}
Y40_2 = cs.RightCensored(np.column_stack([Y40.time, Y40.time]), np.column_stack([Y40.event, Y40.event]))
CAUSES40 = cs.CompetingRisks(Y40.time, np.where(Y40.event, 1 + np.arange(MANY) % 2, 0))
MODELS_CAUSES = {
    "a": cs.CauseSpecificHazards([cs.Exponential(0.5), cs.Exponential(0.5)]),
    "b": cs.CauseSpecificHazards([cs.Exponential(0.7), cs.Exponential(0.2)]),
}
X40 = _RNG.normal(size=(MANY, 2))


def comparing() -> list[Target]:
    quick = {"censoring": cs.Uniform(0.2, 3.0), "reference": None, "horizon": 2.0}
    return [
        Target("compare", cs.compare, {"forecasts": MODELS, "y": Y40, **quick}),
        Target(
            "compare",
            cs.compare,
            {"forecasts": MODELS, "y": Y40, **quick, "censoring": cs.Censoring(cs.KaplanMeier())},
        ),
        Target(
            "compare, joint",
            cs.compare,
            {"forecasts": MODELS_2, "y": Y40_2, **quick, "scores": "energy_score"},
        ),
        Target(
            "compare, causes",
            cs.compare,
            {"forecasts": MODELS_CAUSES, "y": CAUSES40, **quick, "scores": "crps"},
        ),
    ]


INTERVALS40 = cs.IntervalCensored(
    Y40.time, Y40.time + 0.5, visits=np.column_stack([Y40.time, Y40.time + 0.5, Y40.time + 1.0])
)
TRAIN = {"reference": cs.KaplanMeier(), "train": (None, Y40), "horizon": 1.0}


def comparing_more() -> list[Target]:
    """With training subjects, intervals, groups and subgroups."""
    groups, by = np.arange(MANY) // 2, {"half": np.arange(MANY) % 2}
    return [
        Target("compare, trained", cs.compare, {"forecasts": MODELS, "y": Y40, **TRAIN}),
        Target(
            "compare, groups",
            cs.compare,
            {"forecasts": MODELS, "y": Y40, **TRAIN, "groups": groups, "by": by},
        ),
        Target("compare, intervals", cs.compare, {"forecasts": MODELS, "y": INTERVALS40, "horizon": 1.0}),
    ]


@cache
def comparison(kind: str = "one") -> Any:
    of = {"one": 0, "joint": 2, "causes": 3}[kind]
    target = comparing()[of]
    return target.function(**target.arguments)


COMPARISON_METHODS: dict[str, dict[str, Any]] = {
    "auc": {},
    "calibration": {"model": "a"},
    "classification": {},
    "risks": {},
    "roc": {},
    "differences": {},
    "estimate": {"model": "a", "score": "crps"},
    "frame": {},
    "net_benefit": {},
    "plot": {},
    "to_html": {},
    "to_json": {},
    "to_latex": {},
    "to_markdown": {},
}


def received(get: Callable[[], Any], methods: dict[str, dict[str, Any]], share: float = 0.4) -> Recipe:
    """What a function returns, by its methods; NaN stands for what a table does not have."""

    def targets() -> list[Target]:
        made = get()
        return [
            Target(f"{type(made).__name__}.{m}", getattr(made, m), a, nan=True) for m, a in methods.items()
        ]

    return Recipe(targets, share)


def together(*recipes: Recipe) -> Recipe:
    """What a name has in several cases, of which the first says how often it is called."""
    return Recipe(lambda: [target for recipe in recipes for target in recipe.targets()], recipes[0].share)


def landmarks() -> Any:
    return cs.compare_landmarks(
        MODELS, Y40, cs.Uniform(0.2, 3.0), landmarks=[0.2, 0.5], window=0.5, scores="brier_score"
    )


def cross_validated() -> Any:
    models = {"a": cs.WeibullRegression(), "b": cs.KaplanMeier()}
    return cs.cross_validate(models, X40, Y40, cv=2, scores="crps", reference=None, horizon=1.0)


def evaluated() -> Any:
    return cs.evaluate(MODELS["a"], Y40, cs.Uniform(0.2, 3.0), scores="crps", horizon=1.0)


def sensitivity() -> Any:
    return cs.dependent_censoring_sensitivity(MODELS, Y40, times=1.0, tau=[0.0, 0.3], replicates=5)


UPDATING: dict[str, Any] = {
    "model": cs.PublishedCox({0: 0.5}, {1.0: 0.5}), "X": X40, "y": Y40, "time": 1.0, "cv": 2, "nested": False,
}  # fmt: skip
PLANNING: dict[str, Any] = {
    "time": 5.0, "linear_predictor": (0.0, 0.8), "risk": 0.4, "width": {"O/E": 0.5}, "assurance": None,
    "simulations": 20,
}  # fmt: skip
IMPORTANCE: dict[str, Any] = {
    "model": cs.WeibullRegression().fit(X40, Y40), "X": X40, "y": Y40, "censoring": cs.Uniform(0.2, 3.0),
    "permutations": 2, "horizon": 2.0,
}  # fmt: skip


@cache
def validated() -> Any:
    return cs.validate(MODELS, Y40, cs.Uniform(0.2, 3.0), time=1.0, sites=np.arange(MANY) % 3)


PAIRS = {"y": Y, "risk": np.linspace(1.0, 0.0, N), "censoring": C}
EVALUATION = {
    "compare": Recipe(lambda: comparing() + comparing_more(), 0.6),
    "Comparison": together(
        received(comparison, COMPARISON_METHODS),
        received(
            lambda: comparison("causes"),
            {"of": {"outcome": "cause 1"}, "frame": {}, "estimate": {"model": "a", "score": "crps"}},
        ),
        received(lambda: comparison("joint"), {"of": {"outcome": "event 1"}, "frame": {}}),
        received(cross_validated, {"differences": {}, "frame": {}, "folds": {}}),
    ),
    "evaluate": function(
        cs.evaluate,
        0.3,
        forecast=MODELS["a"],
        y=Y40,
        censoring=cs.Uniform(0.2, 3.0),
        scores="crps",
        horizon=1.0,
    ),
    "Evaluation": received(evaluated, {"frame": {}, "estimate": {"score": "crps"}, "to_json": {}}, 0.2),
    "update": function(cs.update, 0.2, **UPDATING),
    "Update": received(lambda: cs.update(**UPDATING), {"frame": {}}, 0.1),
    "plan_validation": function(cs.plan_validation, 0.3, nan=True, **PLANNING),
    "ValidationPlan": received(lambda: cs.plan_validation(**PLANNING), {"frame": {}, "plot": {}}, 0.1),
    "importance": function(cs.importance, 0.2, nan=True, **IMPORTANCE),
    "Importance": received(
        lambda: cs.importance(**IMPORTANCE),
        {
            "frame": {},
            "plot": {},
            "dependence": {"column": 0, "time": 1.0},
            "plot_dependence": {"column": 0, "time": 1.0},
        },
        0.1,
    ),
    "Bootstrap": function(cs.Bootstrap, 0.2, n_splits=5, size=20, random_state=1),
    "Folds": function(cs.Folds, 0.2, cv=3, repeats=2),
    "Sample": function(cs.Sample, 0.2, X=X[:N], y=Y),
    "cross_validate": function(
        cs.cross_validate,
        0.3,
        models={"a": cs.WeibullRegression(), "b": cs.KaplanMeier()},
        X=X40,
        y=Y40,
        cv=2,
        scores="crps",
        reference=None,
        horizon=1.0,
    ),
    "validate": function(
        cs.validate,
        0.3,
        forecast=MODELS["a"],
        y=Y40,
        censoring=cs.Uniform(0.2, 3.0),
        time=1.0,
        thresholds=[0.3],
    ),
    "Validation": received(
        validated, {"frame": {}, "differences": {}, "line": {"measure": "O/E"}, "summary": {}}, 0.2
    ),
    "pool_sites": Recipe(
        lambda: [
            Target("pool_sites", cs.pool_sites, {"sites": {name: validated() for name in "abc"}}, nan=True)
        ],
        0.2,
    ),
    "SitePool": received(lambda: validated().sites, {"frame": {}}, 0.1),
    "LandmarkComparison": received(landmarks, {"differences": {}, "frame": {}}, 0.2),
    "DependentCensoringSensitivity": received(sensitivity, {"frame": {}, "order_changes": {}}, 0.1),
    "at_landmark": function(cs.at_landmark, frame=COUNTING, s=3.0),
    "conformal_lower_bound": function(
        cs.conformal_lower_bound,
        y=Y40,
        forecast=cs.Weibull(1.5, 1.0),
        new=cs.Weibull(1.5, [1.0, 2.0]),
        censoring=cs.Uniform(0.2, 3.0),
        level=0.8,
    ),
    "censoring_diagnostic": function(cs.censoring_diagnostic, y=Y40, censoring=cs.Uniform(0.2, 3.0)),
    "compare_landmarks": function(
        cs.compare_landmarks,
        0.3,
        forecasts=MODELS,
        y=Y40,
        censoring=cs.Uniform(0.2, 3.0),
        landmarks=[0.2, 0.5],
        window=0.5,
        scores="brier_score",
    ),
    "dependent_censoring_sensitivity": function(
        cs.dependent_censoring_sensitivity,
        0.3,
        forecasts=MODELS,
        y=Y40,
        times=1.0,
        tau=[0.0, 0.3],
        replicates=5,
    ),
    "copula_graphic": function(cs.copula_graphic, y=Y),
    "scorer": function(cs.scorer),
    "scorers": function(cs.scorers),
    "concordance": function(evaluation.concordance, **PAIRS),
    "concordance_estimate": function(evaluation.concordance_estimate, **PAIRS),
    "dynamic_auc": function(evaluation.dynamic_auc, **PAIRS, times=np.array([0.7, 1.5])),
    "dynamic_auc_estimate": function(evaluation.dynamic_auc_estimate, **PAIRS, times=np.array([0.7, 1.5])),
    "net_benefit": function(
        evaluation.net_benefit, y=Y, forecast=F, censoring=C, time=1.0, thresholds=LEVELS
    ),
}


def scenario(name: str, make: type, **arguments: Any) -> Recipe:
    def sampled(n: Any = 20, seed: Any = 0, **settings: Any) -> Any:
        data = make(**settings).sample(n, seed)
        return data.T, data.C

    sampled.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY, default=v)
            for k, v in {"n": 20, "seed": 0}.items()
        ]
        + [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(make).parameters.values()]
    )
    return Recipe(lambda: [Target(name, sampled, arguments)], 0.5)


SCENARIOS = {
    "WeibullScenario": scenario("WeibullScenario", simulation.WeibullScenario),
    "LogNormalScenario": scenario("LogNormalScenario", simulation.LogNormalScenario),
    "TargetedScenario": scenario("TargetedScenario", simulation.TargetedScenario),
    "DataScenario": scenario(
        "DataScenario",
        simulation.DataScenario,
        X=X,
        event_model=cs.WeibullRegression().fit(X, Y12),
        censoring_model=cs.Censoring(cs.KaplanMeier()).fit(X, Y12),
    ),
}

RECIPES: dict[str, Recipe] = DISTRIBUTIONS | OUTCOMES | SCORES | ESTIMATORS | EVALUATION | SCENARIOS

#: Names with nothing to call, and why.
NOT_CALLED = {
    "CalibrationCurve": "received from Comparison.calibration, which is fuzzed",
    "CensoringDiagnostic": "received from censoring_diagnostic, which is fuzzed",
    "DCalibration": "received from d_calibration, which is fuzzed",
    "SimulatedData": "received from Scenario.draw, which is fuzzed",
    "MeanLoss": "received from mean_loss, which is fuzzed",
    "Verdict": "received from a comparison, which is fuzzed",
    "ScoreInfo": "an entry of the registry of scores, written by authors of scores",
    "register": "takes an entry of the registry of scores, written by authors of scores",
    "score": "decorates a formula, written by authors of scores",
    "check_distribution": "tests the classes of others; its errors are failed assertions",
    "check_estimator": "tests the classes of others; its errors are failed assertions",
    "check_score": "tests the classes of others; its errors are failed assertions",
}


def public_names() -> dict[str, Any]:
    """Every class and function that the library or one of its public packages exports, by its name."""
    modules = [cs, *(import_module(f"censcore.{name}") for name in cs._SUBMODULES)]
    found: dict[str, Any] = {}
    for module in modules:
        for name in module.__all__:
            thing = getattr(module, name)
            error = inspect.isclass(thing) and issubclass(thing, Exception)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and not error:
                found.setdefault(name, thing)
    return found
