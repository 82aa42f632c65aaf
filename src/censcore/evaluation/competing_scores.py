r"""Scores of competing risks in a comparison: of all causes together, of each, and of any.

A comparison of m causes holds one list of scores, each of one *outcome*: all causes (time and cause), one of
them (:math:`T_j`, infinite if the cause is another), or any cause (T). Names say which: ``crps[all causes]``,
``crps[death]``, ``crps[any cause]``.

How their means move with the censoring distribution follows the formulas of
:mod:`censcore.evaluation.case_scores`. A subject with an event at y, of whatever cause, has the weight
:math:`G(s)/G(y-)` at times s beyond y; so the derivatives hold for every outcome, with the loss of that
outcome. Only the log score of one cause depends on C where that of one event time does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import CauseEnsemble, Distribution
from censcore.distributions.random_draws import SubjectDraws
from censcore.evaluation.case import Case
from censcore.evaluation.case_scores import CASE_SCORES, DEFAULT_SCORES, CaseScore, Custom, by_name
from censcore.evaluation.joint_scores import MEMBERS, Energy, lost_beyond
from censcore.exceptions import InvalidInputError
from censcore.outcomes import CompetingRisks
from censcore.scores import energy_score, registry
from censcore.scores.compatible_times import subject_keys

__all__ = ["ALL_CAUSES", "ANY_CAUSE", "CompetingCase", "OfCause", "competing_scores"]

ALL_CAUSES, ANY_CAUSE = "all causes", "any cause"
ENERGY = tuple(name for name, info in registry.SCORES.items() if info.function is energy_score)


@dataclass(frozen=True, eq=False)
class CompetingCase(Case):
    """A forecast F of time and cause; ``y`` is the outcome of any cause, ``risks`` that of all of them."""

    risks: CompetingRisks = field(kw_only=True)

    @property
    def scored(self) -> CompetingRisks:
        """The outcome as scores take it."""
        return self.risks

    def take(self, rows: np.ndarray) -> CompetingCase:
        """The case of some subjects."""
        return replace(super().take(rows), risks=self.risks.take(rows))

    def cause(self, number: int) -> Case:
        """The case of one cause, from 1, or of any of them, 0; made once."""
        if number not in self._causes:
            y = self.risks.cause(number) if number else self.risks.any_cause()
            part = self.of_forecasts(lambda F: F.cause(number) if number else F.any_cause())
            at = (self.horizon, self.times, self.levels)
            self._causes[number] = Case(y, part.F, self.C, *at, seed=self.seed, prognosis=part.prognosis)
        return self._causes[number]

    @cached_property
    def _causes(self) -> dict[int, Case]:
        return {}


@dataclass(frozen=True)
class OfCause(CaseScore):
    """A score of one cause (from 1), of any cause (0), or of all causes together (None)."""

    base: CaseScore
    number: int | None
    about: str

    @classmethod
    def of(cls, base: CaseScore, number: int | None, name: str) -> OfCause:
        """A score of the outcome with this number and name."""
        title = base.info.title if number is not None else base.info.title.replace("binomial", "multinomial")
        info = replace(base.info, name=f"{base.info.name}[{name}]", title=f"{title}, {name}")
        return cls(info, base, number, name)

    @property
    def outcome(self) -> str:
        """Name of the cause, "any cause" or "all causes"."""
        return self.about

    def case_of(self, case: Case) -> Case:
        """The case of the outcome."""
        return (
            case.cause(self.number) if isinstance(case, CompetingCase) and self.number is not None else case
        )

    def losses(self, case: Case) -> np.ndarray:
        """One loss per subject and column, (n, q)."""
        return self.base.losses(self.case_of(case))

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """That of the score."""
        return self.base.derivative(self.case_of(case), losses, weight, u)


class LogOfCause(CaseScore):
    r"""The log score of one cause: after an event of another one, the mean of :math:`-\log P(T_j>C)`.

    At a known C = c it is :math:`e(c)=-\log P(T_j>c)`, and as for every average over C given C >= y

    .. math:: \ell-\ell^{(u)}=\frac1{G(y-)}\int_u^hG(c)\,de(c),\qquad y\le u.
    """

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A(u) of the subjects with an event of another cause."""
        rows = np.nonzero(case.never & (to_numpy(case.y.time) <= case.horizon))[0]
        if not len(rows):
            return np.zeros((weight.shape[1], len(u), 1))
        knots, some = case.cells, case.take(rows)
        log_survival = to_numpy(some.F.marginal(0).logsf(knots[None, :]))
        e = -np.broadcast_to(log_survival, (len(rows), len(knots)))
        A = weight[rows].T @ lost_beyond(some, some.time, e, knots)
        return np.stack([np.interp(u, knots, column, right=0.0) for column in A])[:, :, None]


class EnergyOfCauses(Energy):
    """The energy score of (min(T_1, C), ..., min(T_m, C)); an event of any cause decides what is known."""

    @property
    def outcome(self) -> str:
        """Of all causes."""
        return ALL_CAUSES

    def _score(self, case: Case, C: Distribution, **options: Any) -> Any:
        given = {"horizon": case.horizon, **dict(self.info.options), **options}
        return energy_score(case.scored, case.F, C, **given)

    def _decided(self, case: Case) -> tuple[np.ndarray, np.ndarray]:
        return to_numpy(case.y.time), to_numpy(case.y.event)

    def _few(self, case: Case) -> Distribution:
        F, n = case.F, len(case.y)
        if isinstance(F, CauseEnsemble):
            return F
        m = MEMBERS * (n if len(F) == 1 else 1)
        draws = SubjectDraws(subject_keys(case.y, seed=case.seed), flat=len(F) == 1)
        time, cause = (to_numpy(part).reshape(n, MEMBERS) for part in F.sample(m, draws))
        return CauseEnsemble(time, cause)


class CompetingCustom(Custom):
    """A custom score of all causes: its function receives the outcome and the forecast of all of them."""

    @property
    def outcome(self) -> str:
        """Of all causes."""
        return ALL_CAUSES


def competing_scores(scores: Any, names: Sequence[str]) -> list[CaseScore]:
    """Scores by name; a name without an outcome stands for every outcome that has the score.

    ``"crps"`` is of all causes, of each and of any; ``"crps[death]"`` of one. The log score of one cause,
    which depends on the censoring distribution, is taken only where it is asked for.
    """
    if scores is None:
        scores = DEFAULT_SCORES
    if isinstance(scores, str):
        scores = list(dict.fromkeys((*DEFAULT_SCORES, *CASE_SCORES))) if scores == "all" else [scores]
    given = by_name(scores)
    found: list[CaseScore] = []
    for name, function in given.items():
        if callable(function):
            found.append(CompetingCustom.of(name, function))
        else:
            found += _named(str(name), names)
    if not found:
        raise InvalidInputError("scores: got none, expected at least one name, such as 'crps'.")
    return list({score.name: score for score in found}.values())


def _named(name: str, names: Sequence[str]) -> list[CaseScore]:
    base, _, outcome = name.partition("[")
    outcome = outcome.removesuffix("]")
    if base in ENERGY and outcome in ("", ALL_CAUSES):
        return [EnergyOfCauses(registry.SCORES[base])]
    numbers: dict[str, int | None] = {
        ALL_CAUSES: None,
        **{n: j for j, n in enumerate(names, 1)},
        ANY_CAUSE: 0,
    }
    score = CASE_SCORES.get(base)
    if score is None or outcome not in ("", *numbers):
        raise InvalidInputError(_no_such_score(name, names))
    if not score.info.over_causes:
        del numbers[ALL_CAUSES]
    if outcome:
        numbers = {which: number for which, number in numbers.items() if which == outcome}
    elif score.info.needs_density:
        numbers = {which: number for which, number in numbers.items() if not number}
    if not numbers:
        raise InvalidInputError(_no_such_score(name, names))
    return [_of(score, number, which) for which, number in numbers.items()]


def _of(score: CaseScore, number: int | None, which: str) -> OfCause:
    averaged = score.info.needs_density and number
    return OfCause.of(LogOfCause(score.info) if averaged else score, number, which)


def _no_such_score(name: str, names: Sequence[str]) -> str:
    outcomes = ", ".join((ALL_CAUSES, *names, ANY_CAUSE))
    return (
        f"There is no score called {name!r} for these causes. There are {', '.join(CASE_SCORES)}, each also "
        f"of one outcome, such as 'crps[{names[0]}]', with one of {outcomes} (pinball_score: not of "
        f"{ALL_CAUSES}); and {', '.join(ENERGY)} of {ALL_CAUSES}. A custom score is given as {{name: "
        "function}, with function(y, forecast, censoring, horizon=h) giving one loss per subject."
    )
