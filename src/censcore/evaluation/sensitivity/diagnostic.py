"""How far the censoring distribution can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from censcore._arrays import Array, common_rows, to_numpy
from censcore._validation import (
    as_labels,
    as_number,
    as_seed,
    as_weights,
    check_kind,
    check_same_order,
)
from censcore.distributions import Distribution, PointMass
from censcore.estimators.censoring.censoring_choice import ALARM
from censcore.estimators.censoring.covariate_test import CensoringTest, covariates_predict
from censcore.estimators.covariates import check_rows, take_rows
from censcore.evaluation.inference.estimates import group_codes
from censcore.evaluation.measures.case import in_time
from censcore.exceptions import MissingCensoringError
from censcore.outcomes import OutcomeLike, as_followed
from censcore.plain_text import html_table, one_line
from censcore.scores.inputs.known_at import weights_of_events
from censcore.scores.inputs.scoring_inputs import known_censoring

SAFE_SHARE = 0.1  # of follow-up, at least, that an event should have had


@dataclass(frozen=True)
class CensoringDiagnostic:
    """How the censoring distribution weights the data.

    Attributes
    ----------
    subjects, events, censored : int
        Counts of all subjects.
    horizon : float
        Time up to which the rest is computed.
    support : float
        Largest time that the censoring distribution of every subject supports.
    safe_horizon : float
        Up to here P(C >= t) is at least 0.1 for every subject, so that no event weighs more than ten.
    beyond : int
        Subjects with an event where P(C >= y) = 0: without a horizon they could not be scored.
    cut : int
        Subjects followed beyond the horizon, which the comparison cuts there.
    weights : dict
        1 / P(C >= y) of the events up to the horizon: median, 90 % quantile and largest.
    effective : float
        Effective number of events, the squared sum of the weights over the sum of their squares.
    events_in : int
        Events up to the horizon.
    conditional : bool
        Whether the censoring distribution differs between subjects by their covariates. Folds alone do not
        count: a pooled curve that is fitted out of fold is the same for all.
    covariates : CensoringTest or None
        Whether covariates predict censoring up to the horizon; None where that was not tested.
    not_tested : str
        Why it was not tested; empty where it was.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0])
    >>> cs.censoring_diagnostic(y, cs.Uniform(0.0, 8.0)).events
    2
    """

    subjects: int
    events: int
    censored: int
    horizon: float
    support: float
    safe_horizon: float
    beyond: int
    cut: int
    weights: dict[str, float]
    effective: float
    events_in: int
    conditional: bool
    covariates: CensoringTest | None
    not_tested: str = ""

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the scores; empty if there are none."""
        warnings, test = [], self.covariates
        if test is not None and test.p_value < ALARM and not self.conditional:
            warnings.append(
                f"The data show signs that censoring depends on covariates: {test.told}. The censoring "
                "distribution is the same for all subjects, so that scores may be biased, in either "
                f"direction. Compare with one given the covariates, such as {_remedy(test)}."
            )
        if self.events_in and self.weights["largest"] > 1 / SAFE_SHARE:
            warnings.append(
                f"One event has the weight of {self.weights['largest']:.3g} subjects. Late times are based "
                f"on few events; a horizon of {self.safe_horizon:.4g} keeps every weight at or below "
                f"{1 / SAFE_SHARE:g}."
            )
        if self.events_in and self.effective < 0.5 * self.events_in:
            worth = f"{self.effective:.0f} equally weighted ones"
            warnings.append(f"The {self.events_in} events are worth {worth}.")
        return warnings

    def to_dict(self) -> dict[str, Any]:
        """All numbers and warnings as a dictionary."""
        return asdict(self) | {"warnings": self.warnings}

    def lines(self) -> list[tuple[str, str]]:
        """What and how much, for tables."""
        w = self.weights
        lines = [
            ("subjects", f"{self.subjects} ({self.events} events, {self.censored} censored)"),
            ("horizon", f"{self.horizon:.6g} ({self.cut} subjects are followed longer and cut there)"),
            ("support of C", f"{self.support:.6g} ({self.beyond} events lie beyond it)"),
            ("every weight at most 10 up to", f"{self.safe_horizon:.6g}"),
        ]
        if self.events_in:
            quantiles = f"median {w['median']:.3g}, 90 % {w['90 %']:.3g}, largest {w['largest']:.3g}"
            lines.append(("weights 1/P(C >= y) of events", quantiles))
            lines.append(("effective number of events", f"{self.effective:.1f} of {self.events_in}"))
        kind = "one per subject" if self.conditional else "the same for all subjects"
        lines.append(("censoring distribution", kind))
        if self.covariates is not None:
            lines.append(("do covariates predict censoring?", self.covariates.told))
            lines += [("", note) for note in self.covariates.notes]
        elif self.not_tested:
            lines.append(("do covariates predict censoring?", f"not tested: {self.not_tested}"))
        return lines

    def _repr_html_(self) -> str:
        rows = [*self.lines(), *(("warning", warning) for warning in self.warnings)]
        return html_table("Censoring diagnostic", ["what", "value"], rows)

    def __repr__(self) -> str:
        lines = [(one_line(name), one_line(value)) for name, value in self.lines()]
        width = max(len(name) for name, _ in lines)
        text = [f"{name:{width}}  {value}" for name, value in lines]
        text += [f"! {one_line(warning)}" for warning in self.warnings]
        return "\n".join(["Censoring diagnostic", *text])


def _remedy(test: CensoringTest) -> str:
    if test.kind.startswith(("trend", "difference")) and "over time" not in test.kind:
        return "Censoring(CoxRegression()) or Censoring(KaplanMeier(stratify=...))"
    return "Censoring(KaplanMeier(stratify=...)), or a regression of C with such terms"


@dataclass(frozen=True)
class JointCensoringDiagnostic:
    """One :class:`CensoringDiagnostic` for every event time, where each has its censoring time."""

    parts: dict[str, CensoringDiagnostic]

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the scores, with the event time that they concern."""
        return [f"{name}: {warning}" for name, part in self.parts.items() for warning in part.warnings]

    @property
    def weights(self) -> dict[str, float]:
        """The largest median, 90 % quantile and maximum of the weights over the event times."""
        each = [part.weights for part in self.parts.values()]
        return {key: float(np.max([weights[key] for weights in each])) for key in each[0]}

    def to_dict(self) -> dict[str, Any]:
        """All numbers and warnings by event time."""
        return {name: part.to_dict() for name, part in self.parts.items()}

    def lines(self) -> list[tuple[str, str]]:
        """What and how much, for tables."""
        lines = ((name, *line) for name, part in self.parts.items() for line in part.lines())
        return [(f"{name}: {what}" if what else "", value) for name, what, value in lines]

    def __repr__(self) -> str:
        return "\n\n".join(f"{one_line(name)}\n{part!r}" for name, part in self.parts.items())


def censoring_diagnostic(
    y: OutcomeLike,
    censoring: Distribution | None = None,
    X: Array | None = None,
    *,
    horizon: float | None = None,
    sample_weight: Array | None = None,
    groups: Array | None = None,
    by: Mapping[str, Array] | None = None,
    seed: int = 0,
) -> CensoringDiagnostic:
    """How much weight the censoring distribution puts where, how far it reaches, and whether X predicts C.

    Parameters
    ----------
    y : outcome
        n subjects. Of competing risks the first event of any cause counts, since it ends the follow-up of C.
    censoring : Distribution, optional
        Distribution of C; may be left out where it is known.
    X : array or frame, optional
        Covariates, for a test of "they do not predict censoring" up to the horizon. It looks for trends,
        curves, interactions of two columns, and effects that change over time. Numbers enter by their ranks;
        other columns as categories; missing values are allowed.
    horizon : float, optional
        End of the comparison, by default the largest time that the distribution of every subject supports.
    sample_weight : array, (n,), optional
        Weights of the subjects, for the test.
    groups : array, (n,), optional
        Labels of subjects that belong together, for the test; different groups are independent.
    by : mapping of str to arrays, (n,), optional
        Labels of subgroups, which are tested like columns of X.
    seed : int
        Of the test, whose p-value comes from random signs.

    Returns
    -------
    CensoringDiagnostic
        Its ``warnings`` are reasons to doubt the scores.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 1))
    >>> T, C = rng.exponential(1.0, 500), rng.exponential(np.exp(0.5 * x[:, 0]))
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> pooled = cs.Censoring(cs.KaplanMeier()).fit(x, y).predict_distribution()
    >>> diagnostic = cs.censoring_diagnostic(y, pooled, x)
    >>> diagnostic.covariates.p_value < 0.001, diagnostic.covariates.kind, len(diagnostic.warnings) > 0
    (True, 'trend in column 0', True)
    """
    check_same_order(y=y, X=X, censoring=censoring, sample_weight=sample_weight, groups=groups)
    y = as_followed(y).require_one_time("The diagnostic")
    C = known_censoring(y) if censoring is None else censoring
    if C is None:
        raise MissingCensoringError(
            "got no censoring distribution. Pass one, for instance "
            "Censoring(KaplanMeier()).fit(X, y).predict_distribution(X)."
        )
    check_kind(C, "censoring", Distribution, "the distribution of C. Predict it by a fitted Censoring(...)")
    common_rows(outcome=len(y), censoring=len(C))
    C = in_time(C, y)
    horizon = None if horizon is None else as_number(horizon, "horizon", above=0)
    seed = as_seed(seed)
    sample_weight = None if sample_weight is None else as_weights(sample_weight, len(y))
    groups = None if groups is None else as_labels(groups, len(y))
    check_rows(X, len(y))
    labels = {}
    if by is not None:
        check_kind(by, "by", Mapping, "a dictionary {name: labels}")
        labels = {str(name): np.asarray(as_labels(values, len(y))) for name, values in by.items()}
    time, event = to_numpy(y.time), to_numpy(y.event)
    G = C.marginal(0)
    ends = to_numpy(G.isf(0.0))
    support = float(ends.max() if isinstance(G, PointMass) else ends.min())
    end = min(support, float(time.max())) if horizon is None else float(horizon)
    of_events = weights_of_events(y, G)
    weight = of_events[(of_events > 0) & np.isfinite(of_events) & (time <= end)]
    test: CensoringTest | str
    nothing = X is None and not labels
    test = "no covariates were given" if nothing else "nobody is censored"
    if not nothing and not event.all():
        codes = group_codes(groups, len(y))
        test = covariates_predict(
            X, y.censor_at(end), sample_weight=sample_weight, groups=codes, labels=labels, seed=seed
        )
    return CensoringDiagnostic(
        subjects=len(y),
        events=int(event.sum()),
        censored=int((~event).sum()),
        horizon=end,
        support=support,
        safe_horizon=float(min(end, to_numpy(G.isf(SAFE_SHARE)).min())),
        beyond=int(np.isinf(of_events).sum()),
        cut=int((time > end).sum()),
        weights=_quantiles(weight),
        effective=float(weight.sum() ** 2 / (weight**2).sum()) if len(weight) else 0.0,
        events_in=len(weight),
        conditional=given_covariates(C),
        covariates=None if isinstance(test, str) else test,
        not_tested=test if isinstance(test, str) else "",
    )


def given_covariates(C: Distribution) -> bool:
    """Whether subjects differ in C by their covariates, and not only by their fold or their visits."""
    origin = C.estimated_from
    if origin is None or len(C) < 2:
        return len(C) > 1
    fits = origin.censoring.fold_estimators_ if origin.out_of_fold else [origin.censoring]
    X = take_rows(origin.X, np.arange(2))
    return any(len(fit.predict_distribution(X)) > 1 for fit in fits)


def _quantiles(weight: np.ndarray) -> dict[str, float]:
    if not len(weight):
        return {"median": np.nan, "90 %": np.nan, "largest": np.nan}
    middle, high = np.quantile(weight, [0.5, 0.9])
    return {"median": float(middle), "90 %": float(high), "largest": float(weight.max())}
