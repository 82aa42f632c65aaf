"""Event times of which one is terminal: it ends the follow-up of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions.derived.semi_competing import before_terminal
from censcore.distributions.joint_events import JointEvent
from censcore.estimators import Censoring, KaplanMeier
from censcore.estimators.nonparametric.event_histories import event_histories
from censcore.evaluation.decisions.forecasts import AALEN_JOHANSEN
from censcore.evaluation.decisions.horizon import default_levels
from censcore.evaluation.inference.estimates import shares
from censcore.evaluation.kinds.kind import Named
from censcore.evaluation.kinds.several_times import SeveralTimes
from censcore.evaluation.sample import Sample, in_numpy
from censcore.exceptions import InvalidInputError, UnsupportedOutcomeError
from censcore.outcomes import SemiCompetingRisks


class SemiCompeting(SeveralTimes):
    """Event times of which one is terminal: an event after it is read as one that never happens."""

    called: ClassVar[str] = "semi-competing"
    reference: ClassVar[str] = AALEN_JOHANSEN

    @classmethod
    def read_outcome(cls, y: Any) -> Any:
        """The outcome as it is."""
        return in_numpy(y)

    @staticmethod
    def _check(y: Any, names: tuple[str, ...], of: str, mask: np.ndarray | None) -> None:
        """That a terminal event ends the follow-up is no error here."""

    @staticmethod
    def _followed_for(y: Any, mask: Any, name: str) -> tuple[Any, np.ndarray | None]:
        if mask is not None:
            raise UnsupportedOutcomeError(
                f"{name}: got one with SemiCompetingRisks, whose subjects are followed for all events up to "
                "the terminal one. Leave it out, and subjects who are not followed for an event too."
            )
        return y, None

    def read_training(self, train: Sample, notes: list[str]) -> Sample:
        """Subjects with the same terminal event."""
        y, outcome = self.y, train.y
        if not isinstance(outcome, SemiCompetingRisks) or (outcome.k, outcome.terminal) != (y.k, y.terminal):
            got = repr(outcome) if isinstance(outcome, SemiCompetingRisks) else type(outcome).__name__
            raise InvalidInputError(
                f"train: got {got} for the outcome of the training subjects, expected SemiCompetingRisks of "
                f"{y.k} event times, of which number {y.terminal} is terminal."
            )
        self._followed_for(outcome, train.mask, "train: mask")
        return train.checked(self.read_outcome)

    def of_parts(self, parts: Sequence[tuple[np.ndarray, np.ndarray]], entry: Any) -> Any:
        """Subjects with all event times, of which one is terminal."""
        time, event = (np.column_stack(columns) for columns in zip(*parts, strict=True))
        return SemiCompetingRisks(time, event, self.y.terminal).with_entry(entry)

    @property
    def terminal(self) -> str:
        """Name of the terminal event."""
        return self.names[self.y.terminal]

    @staticmethod
    def _joint_events(events: Any, names: tuple[str, ...], y: Any) -> dict[str, str | JointEvent]:
        chosen = SeveralTimes._joint_events(events, names, y)
        if events is None and y.k == 2:  # the other one is first wherever it happens
            del chosen[f"{names[1 - y.terminal]} first"]
        return chosen

    def settled(self, forecasts: Named, train: Sample | None, horizon: float, notes: list[str]) -> Named:
        """An event after the terminal one never happens."""
        checked = super().settled(forecasts, train, horizon, notes)
        read = {name: before_terminal(F, self.y.terminal) for name, F in checked.items()}
        changed = [name for name, F in read.items() if F is not checked[name]]
        if changed:
            notes.append(
                f"{', '.join(map(repr, changed))}: events that a forecast puts after {self.terminal!r} are "
                "read as events that never happen."
            )
        return read

    def reference_model(self, train: Any) -> Any:
        """The Aalen-Johansen estimate of which events have happened."""
        return event_histories

    def levels(self, sample: Sample, horizon: float) -> np.ndarray | None:
        r"""Default levels below P(T_j < horizon) of every event, :math:`\sum_i1\{T_{ij}<h\}/G(T_{ij}-)/n`."""
        y, w = sample.y, shares(sample.weight, len(sample))
        C = Censoring(KaplanMeier()).fit(None, y, sample.weight).predict_distribution().marginal(0)
        time, event = to_numpy(y.time), to_numpy(y.event)
        reached = to_numpy(C.sf_left(time.T.reshape(1, -1))).reshape(y.k, -1).T
        before = event & (time < horizon)
        return default_levels(float((w @ (before / np.where(before, reached, 1.0))).min()))

    def settings(self, count: np.ndarray | None = None) -> dict[str, Any]:
        """And the terminal event."""
        return super().settings(count) | {"terminal event": self.terminal}

    def pictured(self, picture: str, scored: set[str]) -> list[str]:
        """Follow-up, and D-calibration, of the terminal event: the times of the others may be never."""
        of_end = picture in ("d-calibration", "censoring")
        return [self.terminal] if of_end else super().pictured(picture, scored)

    def not_pictured(self, picture: str, outcome: str) -> str:
        """D-calibration needs an event that is certain to happen."""
        if picture != "d-calibration" or outcome == self.terminal:
            return ""
        return (
            f"plot('d-calibration'): got outcome={outcome!r}, expected {self.terminal!r}: an event that "
            "another one prevents may never happen, so that S(T) is not uniform. plot('calibration') "
            "shows it."
        )
