"""The scores of a comparison: those asked for, of the outcomes that a kind has them for."""

from __future__ import annotations

from typing import Any

from censcore.evaluation.kinds.kind import Kind
from censcore.evaluation.measures.case_scores import CASE_SCORES, CaseScore, Custom, by_name
from censcore.exceptions import InvalidInputError
from censcore.scores import SCORES


def choose_scores(kind: Kind, asked: Any) -> list[CaseScore]:
    """Choose scores by name; a mapping may bring custom scores.

    None stands for the default ones. Of these, and of "all", the kind has those that are possible; any other
    name that it does not know is an error.
    """
    if_possible = asked is None or (isinstance(asked, str) and asked == "all")
    asked = kind.default_scores if asked is None else asked
    chosen: list[CaseScore] = []
    for name, function in by_name(asked, kind.default_scores, CASE_SCORES).items():
        if callable(function):  # a score that the caller brings, of the whole outcome
            chosen.append(Custom.of(name, function, kind.whole))
            continue
        found = _named(kind, name := _on_its_scale(name))
        if not (found or (if_possible and name in SCORES)):
            kind.raise_no_score(name)
        chosen += found
    return list({score.name: score for score in chosen}.values())


def one_score(kind: Kind, name: str, function: Any) -> CaseScore:
    """Choose the score of the whole outcome, or the only one."""
    chosen = choose_scores(kind, {name: function})
    of_whole = [score for score in chosen if score.outcome == kind.whole] or chosen
    if len(of_whole) != 1:
        raise InvalidInputError(
            f"{name}: got an outcome with {len(chosen)} parts that have this score. Use "
            f"scorer('energy_score'), one of {', '.join(score.name for score in chosen)}, or fit and "
            "score one of the parts, such as y.marginal(j)."
        )
    return of_whole[0]


def _named(kind: Kind, name: str) -> list[CaseScore]:
    """Return the scores that a name stands for, such as ``crps`` or, of one outcome, ``crps[death]``."""
    base, _, outcome = name.partition("[")
    possible = kind.possible_scores(base, bool(outcome))
    return [score for score in possible if not outcome or f"{score.outcome}]" == outcome]


def _on_its_scale(name: str) -> str:
    """Return the whole name of a score; one on a single scale may be asked for without it."""
    base, bracket, outcome = name.partition("[")
    scaled = f"{base}:ipcw"
    return f"{scaled}{bracket}{outcome}" if base not in SCORES and scaled in SCORES else name
