"""What is known of a comparison whose subjects stayed in their table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.measures.joint_scores import View
from censcore.evaluation.parts.batches.counts import Counted
from censcore.evaluation.sensitivity.diagnostic import CensoringDiagnostic
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison


@dataclass(frozen=True, eq=False)
class Summed:
    """What sums over batches tell of the subjects of a table.

    There are tables, tests, verdict, page and exports. What needs all subjects at once is missing: see
    :mod:`censcore.evaluation.measures.availability`.
    """

    rows: int  #: that were read at a time
    counted: Counted
    #: Effective numbers of events, (subsets, columns), by outcome and axis of the scores.
    effective: dict[tuple[str, str], np.ndarray]
    #: Events up to the horizon, and their effective number under inverse-probability weights, by outcome.
    weighted: dict[str, tuple[int, float]]
    #: How many losses are infinite, (subsets, columns), by model and score.
    infinite: dict[tuple[str, str], np.ndarray]
    n_groups: int | None
    diagnostic: CensoringDiagnostic  #: of the censoring distribution
    again: Callable[..., tuple[dict[Any, Estimate], float]] | None  #: reads the table for functions of means
    view: View | None = None  #: of the outcome, where it alone is asked for

    def __getstate__(self) -> dict[str, Any]:
        """Without the table: its forecasts may be functions of any kind."""
        return vars(self) | {"again": None}

    def of_means(self, score: CaseScore, function: Any) -> tuple[dict[Any, Estimate], float]:
        """Estimate functions of the means of a score, and the effective number of events behind them."""
        if self.again is None:
            raise InvalidInputError("got a comparison that was pickled, without its table: compare it again.")
        return self.again(score, function, self.view)

    @property
    def y(self) -> RightCensored:
        """The distinct outcomes."""
        return self.counted.followed

    def settings(self, of: Comparison, settings: dict[str, Any]) -> dict[str, Any]:
        """Count all subjects, events and groups, and say how the table was read."""
        counts = self.counted
        settings |= {"subjects": counts.n, "events": counts.n_events, "groups": self.n_groups}
        settings |= {"read in batches of": self.rows, "censcore": settings.pop("censcore")}
        return settings | ({} if of.kind.y is None else of.kind.settings(counts.rows))

    def of(self, view: View, names: dict[str, CaseScore]) -> Summed:
        """Return what is of one view, by the new names of its scores."""
        effective = {("", axis): n for (outcome, axis), n in self.effective.items() if outcome == view.name}
        weighted = {"": self.weighted[view.name]} if effective else {}
        infinite = {(m, names[s].name): n for (m, s), n in self.infinite.items() if s in names}
        return replace(self, effective=effective, weighted=weighted, infinite=infinite, view=view)
