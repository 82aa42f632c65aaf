"""What is available: for every measure, producer of parts, kind of outcome and source of C, and why not.

A measure *joins* where it is one number over the subjects of all parts, *averages* where it is taken within
parts and averaged, and needs *one part* where all subjects must be in memory together. Comparisons, pictures,
the page of what works and the tests of all combinations read this table.
"""

from __future__ import annotations

from typing import NamedTuple

from censcore.exceptions import InvalidInputError

JOINS, AVERAGES, ONE_PART, REFUSED = "joins", "averages", "one part", "refused"
FIXED, FOLDS, BOOTSTRAP, LANDMARKS, BATCHES = PRODUCERS = (
    "fixed forecasts", "folds", "bootstrap samples", "landmarks", "batches",
)  # fmt: skip


class Rule(NamedTuple):
    """How a measure is made of parts, or why it is not."""

    how: str
    why: str = ""


IN_MEMORY = Rule(
    REFUSED, "needs the subjects in memory, which stayed in their table. Compare a sample in memory."
)
#: By measure: how it is made of the parts of each of the producers.
TABLE: dict[str, tuple[Rule, ...]] = {
    "mean loss": (Rule(JOINS),) * 5,
    "mean loss at other times": (*(Rule(JOINS),) * 4, IN_MEMORY),
    "risk at thresholds": (Rule(JOINS),) * 5,  # net benefit, Murphy, sensitivity, predictive values
    "observed risk": (*(Rule(JOINS),) * 4, IN_MEMORY),  # the same over all risks, ROC curves
    "concordance": (Rule(ONE_PART), Rule(AVERAGES), Rule(AVERAGES), Rule(ONE_PART), IN_MEMORY),
    "AUC": (Rule(ONE_PART), Rule(AVERAGES), Rule(AVERAGES), Rule(ONE_PART), IN_MEMORY),
    "calibration": (*(Rule(ONE_PART),) * 4, IN_MEMORY),
    "D-calibration": (*(Rule(ONE_PART),) * 4, IN_MEMORY),
    ".632+": (
        *(Rule(REFUSED, "needs bootstrap samples: cross_validate(..., cv=Bootstrap(plus=True))."),) * 2,
        Rule(AVERAGES),
        *(Rule(REFUSED, "needs bootstrap samples of subjects in memory."),) * 2,
    ),
    "mean over landmarks": (
        *(Rule(REFUSED, "needs landmarks: compare_landmarks(...)."),) * 3,
        Rule(AVERAGES),
        Rule(REFUSED, "needs landmarks of subjects in memory."),
    ),
}
AT_RISK = Rule(REFUSED, "needs an outcome that says who is at risk of every event at a landmark.")
BY_VISIT = Rule(REFUSED, "needs the subjects in memory: drop-out is estimated by the number of the visit.")
UNORDERED = Rule(REFUSED, "needs observed times: intervals do not say which event came first.")
#: What a kind of outcome does not have, by measure and producer; None stands for all of them.
BY_KIND: dict[tuple[str, str | None, str | None], Rule] = {
    ("semi-competing", None, LANDMARKS): AT_RISK,
    ("intervals", None, LANDMARKS): AT_RISK,
    ("intervals", None, BATCHES): BY_VISIT,
    ("intervals", "concordance", None): UNORDERED,
    ("intervals", "AUC", None): UNORDERED,
}
#: What an estimate of C without an influence function, whose error comes from refits, does not have.
BY_REFITS: dict[tuple[str, str], Rule] = {
    ("mean over landmarks", LANDMARKS): Rule(
        REFUSED,
        "needs a censoring distribution whose estimator has an influence function: got one whose error comes "
        "from refits. Pass Censoring(KaplanMeier()) or Censoring(CoxRegression()).",
    ),
}
#: The measures that pictures are of.
PICTURES = {
    "overview": "calibration", "brier": "mean loss at other times", "differences": "mean loss",
    "calibration": "calibration", "d-calibration": "D-calibration", "decision": "observed risk",
    "murphy": "risk at thresholds", "pinball": "mean loss at other times", "censoring": "observed risk",
    "roc": "observed risk", "auc": "AUC", "risks": "observed risk", "scatter": "observed risk",
    "folds": "observed risk",
}  # fmt: skip


def rule(measure: str, producer: str, kind: str = "", refits: bool = False) -> Rule:
    """Look up how a measure is made of the parts of a producer, for a kind of outcome and source of C.

    Examples
    --------
    >>> from censcore.evaluation.measures.availability import rule
    >>> rule("AUC", "folds").how
    'averages'
    >>> rule("AUC", "fixed forecasts", kind="intervals").why
    'needs observed times: intervals do not say which event came first.'
    """
    if refits and (measure, producer) in BY_REFITS:
        return BY_REFITS[measure, producer]
    for key in ((kind, measure, producer), (kind, measure, None), (kind, None, producer)):
        if key in BY_KIND:
            return BY_KIND[key]
    return TABLE[measure][PRODUCERS.index(producer)]


def check_available(what: str, measure: str, producer: str, kind: str = "", refits: bool = False) -> None:
    """Check that there is a measure, which messages call ``what``."""
    found = rule(measure, producer, kind, refits)
    if found.how == REFUSED:
        raise InvalidInputError(f"{what} {found.why}")
    return None
