"""Comparisons over kinds of outcome, producers of losses, sources of C, weights, clusters and subgroups.

Every case is a function without arguments. What it gives is frozen: a comparison, comparisons at landmarks,
estimates, or the messages of wrong calls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import censcore as cs
from benchmarks.freeze.subjects import GRID, Subjects, matrices, matrix, models, subjects
from censcore.exceptions import CenscoreError

KM, COX = cs.Censoring(cs.KaplanMeier()), cs.Censoring(cs.CoxRegression())
STRATA = cs.Censoring(cs.KaplanMeier(stratify="site"))
REFITS = cs.Censoring(cs.WeibullRegression(), refits=8)  # of an estimator without an influence function
COLUMNS = ["x", "z"]
QUICK: dict[str, Any] = {"scores": ["crps", "brier_score"], "discrimination": False}
FEW: dict[str, Any] = {"discrimination": False, "reference": None}
EACH = cs.Censoring(cs.KaplanMeier(), shared=False)
TWICE = cs.Folds(3, repeats=2)

Case = Callable[[], Any]


def numeric(w: Subjects) -> Any:
    """The covariates that are numbers, as regressions take them."""
    return w.X[COLUMNS]


def options_of(
    w: Subjects, weights: bool, groups: bool, sites: bool, others: dict[str, Any]
) -> dict[str, Any]:
    """Weights, clusters and subgroups of subjects as arguments, with others."""
    asked: dict[str, Any] = {}
    asked |= {"sample_weight": w.weight} if weights else {}
    asked |= {"groups": w.groups} if groups else {}
    return asked | ({"by": w.X["site"]} if sites else {}) | others


def judged(
    w: Subjects,
    censoring: Any = KM,
    *,
    outcome: str = "seen",
    weights: bool = False,
    groups: bool = False,
    sites: bool = False,
    **others: Any,
) -> Any:
    """Fixed forecasts of subjects; C is by site where the estimator has strata."""
    C = w.C if isinstance(censoring, str) and censoring == "known" else censoring
    X = w.X if censoring is STRATA else numeric(w)
    options = options_of(w, weights, groups, sites, others)
    return cs.compare(w.forecasts, getattr(w, outcome), C, **{"X": X, **options})


def fixed(kind: str, censoring: Any = KM, n: int = 240, entry: bool = False, **options: Any) -> Case:
    """Fixed forecasts of a sample."""
    return lambda: judged(subjects(kind, n, entry=entry), censoring, **options)


def halves(kind: str) -> tuple[Subjects, Subjects]:
    """Training subjects, and others to score."""
    w = subjects(kind, 400)
    return w.take(np.arange(200)), w.take(np.arange(200, 400))


def apart(kind: str, censoring: Any, **options: Any) -> Case:
    """Forecasts of other subjects than those that C is estimated from."""

    def case() -> Any:
        train, test = halves(kind)
        return judged(test, censoring, train=(numeric(train), train.seen), **options)

    return case


def folds(
    kind: str,
    *names: str,
    n: int = 240,
    weights: bool = False,
    groups: bool = False,
    sites: bool = False,
    **others: Any,
) -> Case:
    """Models in folds."""

    def case() -> Any:
        w = subjects(kind, n)
        X = w.X if "by site" in names else numeric(w)
        options = {"cv": 3} | options_of(w, weights, groups, sites, others)
        return cs.cross_validate(models(*names), X, w.seen, **options)

    return case


def bootstrap(**options: Any) -> Case:
    """Models in bootstrap samples."""
    plus = options.pop("plus", False)
    return folds("one time", "cox", "weibull", n=120, cv=cs.Bootstrap(8, plus=plus), **options)


def batches(kind: str, censoring: Any = KM, n: int = 240, **options: Any) -> Case:
    """Fixed forecasts of a table that is read in batches."""

    def case() -> Any:
        w = subjects(kind, n)
        frame = w.X.assign(row=np.arange(len(w)), weight=w.weight, group=w.groups)
        outcome = lambda part: w.seen.take(part["row"].to_numpy())  # noqa: E731
        forecasts = {
            name: lambda part, F=F: F.take(part["row"].to_numpy()) for name, F in w.forecasts.items()
        }
        return cs.compare(forecasts, cs.OutcomeTable(frame, outcome=outcome, rows=70), censoring, **options)

    return case


def trained_batches(censoring: Any) -> Case:
    """The same with a C of training subjects in memory."""

    def case() -> Any:
        train, _ = halves("one time")
        return batches("one time", censoring, train=(numeric(train), train.seen), **QUICK)()

    return case


def landmarks(
    kind: str,
    censoring: Any = KM,
    *,
    weights: bool = False,
    groups: bool = False,
    trained: bool = False,
    **others: Any,
) -> Case:
    """Fixed forecasts at three landmarks."""

    def case() -> Any:
        w, (train, _) = subjects(kind), halves(kind)
        options = {"landmarks": [0.4, 0.8, 1.2]} | options_of(w, weights, groups, False, others)
        options |= {"train": (numeric(train), train.seen)} if trained else {}
        return cs.compare_landmarks(w.forecasts, w.seen, censoring, X=numeric(w), **options)

    return case


# ---- one time -----------------------------------------------------------------------------------------


def fitted_models() -> Any:
    train, test = halves("one time")
    fitted = {name: m.fit(numeric(train), train.seen) for name, m in models("cox", "weibull").items()}
    return cs.compare(fitted, test.seen, KM, X=numeric(test), train=(numeric(train), train.seen))


def overlapping() -> Any:
    """Half of the scored subjects are among those that C is fitted to."""
    w = subjects("one time", 300)
    train = w.take(np.arange(200))
    return judged(w.take(np.arange(100, 300)), train=(numeric(train), train.seen))


def trained_without_weight() -> Any:
    """C is fitted to all subjects, of whom some have no weight where forecasts are judged."""
    w = subjects("one time")
    train = cs.Sample(numeric(w), w.seen, weight=np.ones(len(w)))
    return judged(w, train=train, sample_weight=1.0 * (w.weight > 1.0), **QUICK)


def two_samples_of_groups() -> Any:
    """Scored and training subjects with clusters in common."""
    w = subjects("one time", 300)
    train, test = w.take(np.arange(0, 300, 2)), w.take(np.arange(1, 300, 2))
    sample = cs.Sample(numeric(train), train.seen, weight=train.weight, groups=train.groups)
    return judged(test, COX, train=sample, groups=True, weights=True)


def fitted_before() -> Any:
    w = subjects("one time")
    C = cs.Censoring(cs.KaplanMeier()).fit(numeric(w), w.seen).predict_distribution(numeric(w))
    return judged(w, C, **QUICK)


def of_matrices() -> Any:
    w = subjects("one time")
    return cs.compare(matrices(w) | {"curve": w.forecasts["x alone"]}, w.seen, KM, X=numeric(w))


def of_members() -> Any:
    w = subjects("one time", 160)
    rng = np.random.default_rng(5)
    drawn = {
        name: cs.Ensemble(F.icdf(rng.uniform(size=(len(w), 40))).reshape(len(w), 40))
        for name, F in w.forecasts.items()
    }
    return cs.compare(drawn, w.seen, KM, X=numeric(w))


def custom_score() -> Any:
    """Numerical derivatives by C."""

    def squared(y: Any, forecast: Any, censoring: Any, horizon: float | None = None) -> Any:
        return cs.crps(y, forecast, censoring, horizon=horizon) ** 2

    return judged(subjects("one time", 160), scores={"squared": squared}, discrimination=False)


def impossible() -> Any:
    """Infinite losses of a forecast that excludes what happened."""
    w = subjects("one time")
    late = cs.Weibull(1.4, np.full(len(w), 2.0)).given_survival(0.3)
    return cs.compare(w.forecasts | {"late": late}, w.seen, KM, X=numeric(w), scores=["log_score", "crps"])


# ---- several times ------------------------------------------------------------------------------------


def masked() -> Any:
    w = subjects("several times", 160)
    mask = np.random.default_rng(2).uniform(size=(len(w), 2)) > 0.15
    sample = cs.Sample(numeric(w), w.seen, weight=w.weight, mask=mask)
    return cs.compare(w.forecasts, sample, KM, names=["first", "second"], reference=None)


def chosen_events() -> Any:
    from censcore.distributions.joint_events import in_order

    w, events = subjects("several times", 120), {"in order": in_order(0, 1), "either": "either"}
    return judged(w, events=events, scores=["brier_score", "crps"], groups=True, reference=None)


# ---- folds and bootstrap ------------------------------------------------------------------------------


def some_tested() -> Any:
    """Some subjects serve for training only."""
    cv = [(np.arange(80, 240), np.arange(40)), (np.r_[0:40, 80:240], np.arange(40, 80))]
    return folds("one time", "cox", "weibull", cv=cv, **QUICK)()


def failing_model() -> Any:
    def fails(X: Any, y: Any, X_test: Any) -> Any:
        raise ValueError("no such model")

    w = subjects("one time", 120)
    every = models("cox") | {"none": fails}
    return cs.cross_validate(every, numeric(w), w.seen, cv=cs.Folds(3, on_error="skip"), **QUICK)


def matrices_in_folds() -> Any:
    """Functions that give survival matrices, whose times the default times are moved to."""

    def of(model: Any) -> Callable[..., Any]:
        return lambda X, y, X_test: matrix(model.fit(X, y).predict_distribution(X_test))

    w, every = subjects("one time"), {name: of(m) for name, m in models("cox", "weibull").items()}
    return cs.cross_validate(every, numeric(w), w.seen, cv=cs.Folds(3, repeats=2), discrimination=False)


# ---- batches ------------------------------------------------------------------------------------------


def table_of_matrices() -> Any:
    """Survival at a few times in columns of a table."""
    w = subjects("one time")
    frame = w.X.assign(t=w.seen.time, d=w.seen.event)
    for name in ("both", "bold"):
        columns = np.asarray(w.forecasts[name].sf(GRID[None, :])).T
        frame = frame.assign(**{f"{name}__sf@{t:g}": column for t, column in zip(GRID, columns, strict=True)})
    return cs.compare("columns", cs.OutcomeTable(frame, "t", "d", rows=90), KM)


# ---- estimates and messages ---------------------------------------------------------------------------


def pair_estimates() -> Any:
    """Concordance and AUC of any risk score."""
    from censcore.evaluation import concordance_estimate, dynamic_auc_estimate

    w = subjects("one time")
    risk, C = w.X["x"].to_numpy(), cs.Exponential(0.22)
    of = {
        "uno": concordance_estimate(w.seen, -risk, C, horizon=2.0, groups=w.groups),
        "auc": dynamic_auc_estimate(w.seen, -risk, C, [0.5, 1.5], sample_weight=w.weight),
    }
    return {
        name: {"value": e.value, "standard_error": e.standard_error, "low": e.interval()[0]}
        for name, e in of.items()
    }


def messages() -> Any:
    """What wrong calls say."""
    w, late = subjects("one time"), subjects("causes")
    with_units = (None, cs.RightCensored(365 * w.seen.time, w.seen.event))
    everyone = np.arange(9)
    calls: dict[str, Case] = {
        "no C": partial(judged, w, None),
        "score": partial(judged, w, scores="crp"),
        "times": partial(judged, w, times=[100.0]),
        "reference": partial(judged, w, reference="cox"),
        "weights": partial(judged, w, sample_weight=w.weight[:-1]),
        "groups": lambda: cs.compare(w.forecasts, w.seen, KM, groups=np.zeros(len(w))),
        "names": partial(judged, w, names=["a", "b"]),
        "causes": partial(judged, late, names=["a"]),
        "units": partial(judged, w, train=with_units),
        "horizon": partial(judged, w, horizon=-1.0),
        "by": partial(judged, w, by="sex"),
        "folds": folds("one time", "cox", cv=1),
        "overlap": folds("one time", "cox", cv=[(everyone, everyone)]),
        "landmark": landmarks("one time", landmarks=[50.0]),
        "average": lambda: landmarks("one time", REFITS, window=0.5, **QUICK)().average(),
        "batches": batches("drop-out"),
        "folds of none": lambda: judged(w, **QUICK).folds(),
        "one subgroup": lambda: judged(w, **QUICK).of("death"),
    }
    said = {}
    for name, call in calls.items():
        try:
            call()
            said[name] = "no error"
        except CenscoreError as error:
            said[name] = f"{type(error).__name__}: {error}"
    return said


CASES: dict[str, Case] = {
    "one time: known C": fixed("one time", "known"),
    "one time: Kaplan-Meier": fixed("one time"),
    "one time: ties, Kaplan-Meier by site": fixed("rounded", STRATA, sites=True),
    "one time: Cox, weights, clusters": fixed("one time", COX, weights=True, groups=True),
    "one time: refits, clusters": fixed(
        "one time", REFITS, 160, groups=True, scores=["crps", "brier_score:ipcw"]
    ),
    "one time: times known": fixed("one time", None, outcome="known"),
    "one time: uncensored": fixed("one time", None, outcome="full", time_unit="years"),
    "one time: weights": fixed("one time", weights=True, scores="all"),
    "one time: subgroups of clusters": fixed("one time", sites=True, groups=True, confidence=0.9),
    "one time: out of fold": fixed("one time", cs.Censoring(cs.KaplanMeier(), cv=4), **QUICK),
    "one time: C chosen by a test": fixed("one time", "auto", **QUICK),
    "one time: fitted models": fitted_models,
    "one time: train apart, Cox": apart("one time", COX),
    "one time: train apart, refits": apart("one time", REFITS, scores="crps"),
    "one time: train overlaps": overlapping,
    "one time: train without weight": trained_without_weight,
    "one time: clusters in two samples": two_samples_of_groups,
    "one time: fitted before": fitted_before,
    "one time: survival matrices": of_matrices,
    "one time: ensembles": of_members,
    "one time: custom score": custom_score,
    "one time: few events": fixed("one time", n=40, horizon=0.2, scores=["crps", "brier_score"]),
    "one time: infinite losses": impossible,
    "one time: fitted reference": apart("one time", KM, reference=cs.WeibullRegression(), **QUICK),
    "entry: Kaplan-Meier": fixed("one time", entry=True),
    "entry: Cox, weights": fixed("one time", COX, entry=True, weights=True, **QUICK),
    "entry: known C, subgroups": fixed("one time", "known", entry=True, sites=True),
    "entry: causes": fixed("causes", n=160, entry=True, scores=["crps", "brier_score"]),
    "causes: Kaplan-Meier": fixed("causes", n=160, discrimination=False),
    "causes: Cox, subgroups": fixed("causes", COX, 160, sites=True, **QUICK),
    "causes: times known, clusters": fixed("causes", None, 160, outcome="known", groups=True, **QUICK),
    "causes: folds": folds("causes", "hazards", "weibull hazards", n=160, scores=["crps"]),
    "one cause: Kaplan-Meier": fixed("one cause"),
    "one cause: weights, subgroups": fixed("one cause", STRATA, weights=True, sites=True, **QUICK),
    "several times: Kaplan-Meier": fixed("several times", n=120),
    "several times: a C for each": fixed(
        "several times apart", EACH, 120, scores=["energy_score", "crps", "brier_score"], discrimination=False
    ),
    "several times: Cox, clusters": fixed(
        "several times", COX, 120, groups=True, scores=["energy_score", "brier_score"], **FEW
    ),
    "several times: mask, weights": masked,
    "several times: events": chosen_events,
    "several times: folds": folds("several times", "margins", n=120, discrimination=False),
    "semi-competing: Kaplan-Meier": fixed("semi-competing", n=120),
    "semi-competing: weights, subgroups": fixed(
        "semi-competing", n=120, weights=True, sites=True, scores=["crps"], **FEW
    ),
    "intervals: all visits": fixed("intervals", None),
    "intervals: without visits": fixed("intervals", None, outcome="known"),
    "intervals: drop-out, clusters": fixed("drop-out", groups=True),
    "intervals: drop-out in folds": folds("drop-out", "weibull", scores=["crps", "log_score"]),
    "folds: defaults": folds("one time", "cox", "weibull"),
    "folds: clusters, weights, subgroups": folds(
        "one time", "cox", "weibull", groups=True, weights=True, sites=True
    ),
    "folds: repeats": folds(
        "one time", "cox", "weibull", cv=cs.Folds(3, repeats=3), scores=["crps", "brier_score:ipcw"]
    ),
    "folds: repeats of clusters, Cox": folds(
        "one time", "cox", "weibull", censoring=COX, cv=TWICE, groups=True, weights=True, **QUICK
    ),
    "folds: some tested": some_tested,
    "folds: refits of C": folds("one time", "cox", n=120, censoring=REFITS, scores="crps"),
    "folds: repeats, refits of C": folds(
        "one time", "cox", n=120, censoring=REFITS, cv=TWICE, scores="crps", discrimination=False
    ),
    "folds: known C": folds("one time", "cox", censoring=cs.Exponential(0.22), **QUICK),
    "folds: C chosen by a test": folds("one time", "cox", "weibull", censoring="auto", **QUICK),
    "folds: strata": folds("one time", "by site", censoring=STRATA, **QUICK),
    "folds: a failing model": failing_model,
    "folds: survival matrices": matrices_in_folds,
    "bootstrap: out of bag": bootstrap(scores=["crps", "brier_score:ipcw"]),
    "bootstrap: .632+, clusters": bootstrap(plus=True, groups=True, **QUICK),
    "bootstrap: Cox, subgroups": bootstrap(censoring=COX, sites=True, **QUICK),
    "bootstrap: refits of C": bootstrap(censoring=REFITS, scores="crps", discrimination=False),
    "landmarks: Kaplan-Meier": landmarks("one time", window=0.6, scores=["brier_score", "crps"]),
    "landmarks: Cox, weights, clusters": landmarks(
        "one time", COX, groups=True, weights=True, window=0.6, **QUICK
    ),
    "landmarks: causes": landmarks("causes", window=0.6, landmarks=[0.3, 0.6], **QUICK),
    "landmarks: train apart": landmarks("one time", trained=True, window=0.5, **QUICK),
    "batches: Kaplan-Meier": batches("one time", scores="all"),
    "batches: strata, subgroups, weights": batches(
        "rounded", STRATA, by="site", sample_weight="weight", **QUICK
    ),
    "batches: clusters": batches("one time", groups="group", by="site", **QUICK),
    "batches: train apart": trained_batches(KM),
    "batches: train apart, Cox": trained_batches(COX),
    "batches: causes": batches("causes", n=160, **QUICK),
    "batches: several times": batches(
        "several times", n=120, scores=["energy_score", "crps"], reference=None
    ),
    "batches: survival matrices": table_of_matrices,
    "estimates of pairs": pair_estimates,
    "messages": messages,
}
#: Cases whose curves are frozen too: calibration, decisions, classification, ROC, AUC and risks.
WITH_CURVES = (
    "one time: Kaplan-Meier",
    "one time: Cox, weights, clusters",
    "one time: refits, clusters",
    "one time: times known",
    "entry: Kaplan-Meier",
    "one cause: Kaplan-Meier",
    "causes: Kaplan-Meier",
    "folds: defaults",
    "folds: repeats",
)
