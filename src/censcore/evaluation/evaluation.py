"""All estimates of one forecast on one sample, from the parts that its losses were taken in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from censcore._arrays import to_numpy
from censcore._kept_values import KeepsValues
from censcore._validation import as_index, check_kind
from censcore.evaluation.decisions.decide import Cases, Decided
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.mean_losses import (
    Means,
    Scored,
    estimate_means,
    method_of,
    score_case,
    shares_of,
)
from censcore.evaluation.inference.pooling import average
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.measures.joint_scores import View
from censcore.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from censcore.evaluation.comparison import Comparison

REFITS = "refits of models"  # the block of their contributions
Refits = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Contributions (m, q) of the refits of models, from losses (B, n, q) of B repeats and weights (n,)."""


class Repeat(NamedTuple):
    """One pass over the scored subjects: a case of each forecast, and the C that all of them have."""

    cases: Cases
    censoring: ResolvedCensoring

    def at(self, **places: Any) -> Repeat:
        """Take the same subjects at other times or levels."""
        return self._replace(cases={model: replace(case, **places) for model, case in self.cases.items()})


class Taken(NamedTuple):
    """What was taken of one forecast in a repeat."""

    case: Case
    censoring: ResolvedCensoring
    losses: dict[str, np.ndarray]  #: (n, q), by name of the score


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(KeepsValues):
    """All estimates of one forecast on one sample: mean losses with their influences.

    Evaluations of the same subjects can be compared, ``compare({"cox": a, "forest": b})``, also where they
    were made in different processes and pickled. The JSON of an evaluation is final: values, errors and
    counts, but no subject.

    An influence holds a number for every subject, column and subset, so that an evaluation takes
    8 x subjects x columns x (1 + subgroups) bytes where C was fitted to all subjects, and 16 x subjects x
    columns without that: 10^6 subjects, 8 columns and no subgroup take 128 MB a forecast. Curves of pictures
    are made again when they are asked for.

    Attributes
    ----------
    name : str
        Of the forecast.
    decided : Decided
        The outcome, scores, censoring distribution, horizon, times and levels, and subsets.
    means : dict of Estimate
        Mean losses with their influences, by number of the subset and name of the score.
    unavailable : dict of str
        Scores that the forecast does not have, and why.
    repeats : list of Taken
        The case, the censoring distribution and all losses, for each time that the subjects were scored.
    method : str
        How errors account for what was estimated, in words.
    notes : list of str
        What a reader should know of the errors.

    See Also
    --------
    evaluate : Makes it.
    compare : Evaluations side by side.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0, 4.0], event=[1, 1, 0, 1])
    >>> found = cs.evaluate(cs.Exponential(0.3), y, cs.Uniform(0.0, 5.0), scores="crps")
    >>> mean = found.estimate("crps")
    >>> mean.value.round(3), mean.standard_error.round(3), mean.influence.shape
    (array([0.532]), array([0.144]), (4, 1))
    """

    name: str
    decided: Decided
    #: By number of the subset and name of the score.
    means: dict[tuple[int, str], Estimate] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)  #: why, by name of the score
    repeats: list[Taken] = field(default_factory=list)  #: none where the subjects are not in memory
    method: str = ""  #: how errors account for what was estimated
    notes: list[str] = field(default_factory=list)

    @cached_property
    def losses(self) -> dict[str, np.ndarray]:
        """Losses (n, q) by name of the score, averaged over repeats."""
        if len(self.repeats) < 2:
            return self.repeats[0].losses if self.repeats else {}
        known = [name for name in self.repeats[0].losses if name not in self.unavailable]
        return {name: np.mean([taken.losses[name] for taken in self.repeats], axis=0) for name in known}

    def of(self, view: View, names: dict[str, CaseScore], decided: Decided) -> Evaluation:
        """Return what is of one view of the outcome, by the new names of its scores."""

        def renamed(values: dict[str, Any]) -> dict[str, Any]:
            return {names[name].name: value for name, value in values.items() if name in names}

        means = {(s, names[name].name): mean for (s, name), mean in self.means.items() if name in names}
        repeats = [
            Taken(case.of(view), view.censoring(C), renamed(losses)) for case, C, losses in self.repeats
        ]
        missing = renamed(self.unavailable)
        return replace(self, decided=decided, means=means, unavailable=missing, repeats=repeats)

    def estimate(self, score: str, subset: int = 0) -> Estimate | None:
        """A mean with its influence; None where the score is not available."""
        check_kind(score, "score", str, "the name of a score")
        return self.means.get((as_index(subset, "subset"), score))

    @cached_property
    def _alone(self) -> Comparison:
        from censcore.evaluation.comparison import concluded

        return concluded({self.name: self})

    def frame(self) -> pd.DataFrame:
        """Return means with standard errors and intervals, as :meth:`Comparison.frame` has them."""
        return self._alone.frame(discrimination=False)

    def to_json(self, path: str | PathLike[str] | None = None) -> str | None:
        """Write values, errors and counts as JSON, which holds no subject.

        Parameters
        ----------
        path : path, optional
            Where to write it; ``"-"`` is standard output.

        Returns
        -------
        str or None
            The document; None where it is written.
        """
        return self._alone.to_json(path)

    def __repr__(self) -> str:
        return repr(self._alone)


def check_same(evaluations: Mapping[str, Evaluation]) -> None:
    """Check that evaluations are of the same subjects, and by the same decisions."""
    (first, one), *others = evaluations.items()
    expected = _decisions(one.decided)
    for name, each in others:
        found = _decisions(each.decided)
        differs = [what for what, value in expected.items() if not np.array_equal(value, found[what])]
        if differs:
            raise InvalidInputError(
                f"evaluations: {name!r} differs from {first!r} in {', '.join(differs)}, expected the same "
                "for all. Evaluate them with the same y, censoring, scores, times, horizon and weights."
            )


def _decisions(decided: Decided) -> dict[str, np.ndarray]:
    """What evaluations that are compared have in common, by name."""
    y = decided.kind.followed(decided.kind.y)
    return {
        "outcomes": np.stack([to_numpy(y.time), to_numpy(y.event)]),
        "weights and subgroups": np.stack([subset.weight for subset in decided.subsets]),
        "scores": np.array([score.name for score in decided.scores]),
        "times": np.append(decided.times, decided.horizon),
        "levels": decided.levels,
        "the censoring distribution": np.array(decided.censoring.description),
    }


def evaluate_all(
    decided: Decided, repeats: Sequence[Repeat], refits: Refits | None = None
) -> dict[str, Evaluation]:
    """Estimate the mean losses of every forecast: side by side, since refits of C serve all of them.

    Every repeat scores the same subjects; means are averaged over repeats, and ``refits`` adds what models
    that are fitted to other subjects contribute.
    """
    models, made = repeats[0].cases, dict[str, Evaluation]()
    each = [{m: score_case(case, decided.scores) for m, case in repeat.cases.items()} for repeat in repeats]
    means, notes = _averaged(decided, repeats, each, refits)
    method = method_of(repeats[0].censoring, decided.scope.units.overlap)
    for model in models:
        scored = [of_repeat[model] for of_repeat in each]
        taken = [
            Taken(repeat.cases[model], repeat.censoring, of.losses)
            for repeat, of in zip(repeats, scored, strict=True)
        ]
        missing = {name: why for of in scored for name, why in of.unavailable.items()}
        own = {(s, name): mean for (s, m, name), mean in means.items() if m == model}
        made[model] = Evaluation(model, decided, own, missing, taken, method, notes)
    return made


def _averaged(
    decided: Decided, repeats: Sequence[Repeat], each: list[dict[str, Scored]], refits: Refits | None
) -> tuple[Means, list[str]]:
    """Average means over repeats, where all repeats have them; the notes are those of the first."""
    scope, B = decided.scope, len(repeats)
    means, notes = zip(
        *(
            estimate_means(scored, repeat.cases, decided.scores, replace(scope, censoring=repeat.censoring))
            for scored, repeat in zip(each, repeats, strict=True)
        ),
        strict=True,
    )
    if B == 1 and refits is None:
        return means[0], notes[0]
    values, scores = Means(), {score.name: score for score in decided.scores}
    for s, model, name in means[0]:
        of_model = [scored[model] for scored in each]
        if any(name in of.unavailable for of in of_model):
            continue
        mean = average([of[s, model, name] for of in means], [1 / B] * B)
        if refits is not None:
            counted = scores[name].counted(repeats[0].cases[model])
            weight = shares_of(decided.subsets[s].weight[:, None], counted)[:, 0]
            losses = np.stack([of.losses[name] for of in of_model])
            mean = mean.with_contributions(refits(losses, weight), REFITS)
        values[s, model, name] = mean
    return values, notes[0]
