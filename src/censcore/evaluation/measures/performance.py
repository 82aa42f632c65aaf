"""All measures of a validation: what each is called, tested against, and the scale of its interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from censcore.evaluation.inference.estimates import Estimate, skill_interval
from censcore.evaluation.lines import MINIMUM_EVENTS, Line, cannot_tell
from censcore.evaluation.measures.case_mix import auc_if_right, mean_and_spread
from censcore.evaluation.measures.cox_recalibration import cox_slope, royston_d
from censcore.evaluation.measures.net_benefit import TREAT_ALL, decision_curves, least_events
from censcore.evaluation.measures.observed_expected import observed_and_expected
from censcore.evaluation.measures.recalibration import calibration_intercept, intercept_and_slope, joint_test
from censcore.evaluation.measures.risk_of_model import RiskOfModel
from censcore.exceptions import CenscoreError, InvalidInputError

BRIER = "brier_score:ipcw"
JOINT = "calibration, joint test"
#: Pair measures of a comparison, by their names here.
PAIRS = {
    "concordance, Harrell": "concordance:harrell",
    "concordance, Uno": "concordance:uno",
    "AUC": "auc",
}
#: Measures that do not depend on what happened, so that few events do not matter.
OF_RISKS = ("expected", "linear predictor, mean", "linear predictor, sd", "AUC if right")


class Scale(NamedTuple):
    """Where an interval is symmetric: a function, its derivative and its inverse."""

    to: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    back: Callable[[np.ndarray], np.ndarray]


SCALES = {
    "": Scale(lambda x: x, np.ones_like, lambda x: x),
    "log": Scale(np.log, lambda x: 1 / x, np.exp),
    "logit": Scale(
        lambda x: np.log(x / (1 - x)), lambda x: 1 / (x * (1 - x)), lambda x: 1 / (1 + np.exp(-x))
    ),
}


@dataclass(frozen=True, eq=False)
class Measured:
    """One measure of a model: an estimate of one column, the scale of its interval, and what it is tested by.

    ``known`` are numbers of the line that do not follow from the estimate.
    """

    name: str
    estimate: Estimate | None = None
    scale: str = ""
    null: float = np.nan  #: the value under the hypothesis that ``p`` is of
    paired: bool = False  #: whether differences between models are of interest
    known: Line = field(default_factory=dict)
    note: str = ""

    def transformed(self) -> Estimate:
        """The estimate on the scale of its interval."""
        assert self.estimate is not None
        scale = SCALES[self.scale]
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = scale.slope(self.estimate.value)
            return Estimate(scale.to(self.estimate.value), self.estimate.influence * slope)

    def line(self, confidence: float) -> Line:
        """Value, error, interval and p-value."""
        found: Line = dict.fromkeys(("value", "standard_error", "low", "high", "by_chance", "p"), np.nan)
        if self.estimate is not None:
            found["value"] = float(self.estimate.value[0])
        if self.estimate is not None and self.estimate.varies[0] and not self.note:
            scale, on_scale = SCALES[self.scale], self.transformed()
            ends = (float(scale.back(end)[0]) for end in on_scale.interval(confidence))
            with np.errstate(divide="ignore"):
                away = on_scale.value - scale.to(np.array([self.null]))
            p = Estimate(away, on_scale.influence).p_value[0]
            found |= {"standard_error": float(self.estimate.standard_error[0]), "p": float(p)}
            found |= dict(zip(("low", "high"), ends, strict=True))
        return {"measure": self.name} | found | self.known | {"note": self.note}


Group = Callable[[RiskOfModel], list[Measured]]


def performance(of: RiskOfModel, thresholds: Sequence[float], method: str) -> list[Measured]:
    """Measure a model by everything; what cannot be measured has a note that says why."""
    groups = _groups(thresholds, method)
    try:
        events = least_events(of.case, of.time, of.weight, of.comparison.groups)
    except CenscoreError as error:
        return [Measured(name, note=str(error)) for names in groups for name in names]
    few = "" if events >= MINIMUM_EVENTS else cannot_tell(events)
    measured = list[Measured]()
    for names, group in groups.items():
        try:
            if few and not {"observed", *OF_RISKS}.intersection(names):
                raise InvalidInputError(few)
            measured += group(of)
        except CenscoreError as error:
            measured += [Measured(name, note=str(error)) for name in names]
    if not few:
        return measured
    return [_without_errors(each, few, events) for each in measured]


def _without_errors(each: Measured, few: str, events: float) -> Measured:
    if each.name in OF_RISKS or each.note:
        return each
    no_event = each.name == "O/E" and each.estimate is not None and each.estimate.value[0] == 0
    return Measured(each.name, each.estimate, note="no event by the time was observed" if no_event else few)


def _groups(thresholds: Sequence[float], method: str) -> dict[tuple[str, ...], Group]:
    """Measures by the names of those that are taken together."""
    return {
        ("observed", "expected", "O/E"): _observed_expected,
        ("calibration intercept",): partial(_intercept, method=method),
        ("calibration slope", JOINT): partial(_slope, method=method),
        ("calibration slope, Cox",): lambda of: [Measured("calibration slope, Cox", cox_slope(of), null=1.0)],
        ("ICI", "E50", "E90"): _calibration,
        tuple(PAIRS): _discrimination,
        ("Royston D",): lambda of: [Measured("Royston D", royston_d(of), null=0.0)],
        ("Brier", "IPA"): _brier,
        **{tuple(names_of_benefit(theta)): partial(_benefit, theta=theta) for theta in thresholds},
        ("linear predictor, mean", "linear predictor, sd"): _case_mix,
        ("AUC if right",): lambda of: [Measured("AUC if right", auc_if_right(of), "logit")],
    }


def _observed_expected(of: RiskOfModel) -> list[Measured]:
    observed, expected = observed_and_expected(of)
    ratio = Measured("O/E", observed / expected, "log", null=1.0)
    return [Measured("observed", observed, "logit"), Measured("expected", expected, "logit"), ratio]


def _intercept(of: RiskOfModel, method: str) -> list[Measured]:
    return [Measured("calibration intercept", calibration_intercept(of, method), null=0.0)]


def _slope(of: RiskOfModel, method: str) -> list[Measured]:
    both = intercept_and_slope(of, method)
    statistic, p = joint_test(both)
    slope = Measured("calibration slope", both.column(1), null=1.0)
    return [slope, Measured(JOINT, known={"value": statistic, "p": p})]


def _calibration(of: RiskOfModel) -> list[Measured]:
    """Distances of the calibration curve: an upper bound each, and one p-value, of the ICI."""
    curve = of.comparison.calibration(of.model, of.time)
    if not curve.smoothed:
        raise InvalidInputError("the model gives all subjects one risk: there is no curve.")
    values = {"ICI": curve.ici, "E50": curve.e50, "E90": curve.e90}
    lines: dict[str, Line] = {
        name: {"value": v, "high": curve.bounds[name.lower()], "by_chance": curve.by_chance[name.lower()]}
        for name, v in values.items()
    }
    lines["ICI"]["p"] = curve.p_value
    return [Measured(name, known=line) for name, line in lines.items()]


def _discrimination(of: RiskOfModel) -> list[Measured]:
    ranked = of.comparison.pair_measures
    number = {measure.name: k for k, measure in enumerate(ranked.measures)}
    measured = []
    for name, here in PAIRS.items():
        key = (0, of.model, number[here])
        estimate, why = ranked.values.get(key), ranked.unavailable.get(key, "")
        measured.append(Measured(name, estimate, "logit", 0.5, paired="Harrell" not in name, note=why))
    return measured


def _brier(of: RiskOfModel) -> list[Measured]:
    reference, mean = of.comparison.reference, _mean_brier(of)
    brier = Measured("Brier", mean, paired=True)
    if reference is None:
        return [brier, Measured("IPA", note="the null model of these subjects is not available.")]
    null = _mean_brier(RiskOfModel(of.comparison, reference, of.time))
    low, high = skill_interval(mean, null, of.comparison.confidence)
    known = {"low": low, "high": high, "p": float((mean - null).p_value[0])}
    return [brier, Measured("IPA", mean.skill(null), null=0.0, paired=True, known=known)]


def _mean_brier(of: RiskOfModel) -> Estimate:
    return of.mean(lambda known: (known.event * (1 - known.p) ** 2 + known.free * known.p**2)[:, None])


def names_of_benefit(theta: float) -> list[str]:
    """Names of the measures of a decision at a threshold."""
    name = f"net benefit at {theta:.4g}"
    return [name, f"standardised {name}", f"{name}, less treating all", f"{name}, less treating none"]


def _benefit(of: RiskOfModel, theta: float) -> list[Measured]:
    r"""Net benefit, over its largest value (the observed risk), and less what needs no model.

    That of treating none is zero, so that the last line tests the first against it.
    """
    at = np.array([theta])
    curves = of.comparison.once(
        f"net benefit at {of.time} {theta}", lambda: decision_curves(of.comparison, of.time, at)
    )
    benefit, (observed, _) = curves[of.model], observed_and_expected(of)
    name, standardised, less_all, less_none = names_of_benefit(theta)
    return [
        Measured(name, benefit, paired=True),
        Measured(standardised, benefit / observed),
        Measured(less_all, benefit - curves[TREAT_ALL], null=0.0),
        Measured(less_none, benefit, null=0.0),
    ]


def _case_mix(of: RiskOfModel) -> list[Measured]:
    names = "linear predictor, mean", "linear predictor, sd"
    return [Measured(name, each) for name, each in zip(names, mean_and_spread(of), strict=True)]
