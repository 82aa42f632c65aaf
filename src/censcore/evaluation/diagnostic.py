"""Can the law of C carry the weight that is put on it? To be read before the scores."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, PointMass
from censcore.estimators._covariates import take_rows
from censcore.estimators._design import Standardised
from censcore.estimators._risk_sets import ProductLimitScore, RiskSets
from censcore.exceptions import InvalidInputError, MissingCensoringError
from censcore.outcomes import RightCensored, as_outcome
from censcore.scores._problem import known_law

__all__ = ["CensoringDiagnostic", "CensoringTest", "censoring_diagnostic"]

SAFE_SHARE = 0.1  # of follow-up, at least, that an event should have had


@dataclass(frozen=True)
class CensoringTest:
    """Score test of "covariates do not predict censoring", in a Cox model of C.

    ``statistics`` are the largest squared standardised scores of single columns, largest first.
    """

    statistic: float
    degrees: int
    p_value: float
    statistics: dict[str, float]


@dataclass(frozen=True)
class CensoringDiagnostic:
    """What the law of C asks of the data.

    Attributes
    ----------
    rows, events, censored : int
        Counts of all rows.
    horizon : float
        Up to which the rest is said.
    support : float
        Largest time that the law of every row supports.
    safe_horizon : float
        Up to here P(C >= t) is at least 0.1 in every row, so that no event weighs more than ten.
    beyond : int
        Rows with an event where P(C >= y) = 0: without a horizon they could not be scored.
    cut : int
        Rows followed beyond the horizon, which the comparison cuts there.
    weights : dict
        1 / P(C >= y) of the events up to the horizon: median, 90 % quantile and largest.
    effective : float
        Effective number of events, the squared sum of the weights over the sum of their squares.
    conditional : bool
        Whether the law differs between rows.
    covariates : CensoringTest or None
        Whether covariates predict censoring; None without covariates or without censored rows.
    """

    rows: int
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

    @property
    def warnings(self) -> list[str]:
        """What should make a reader hesitate; empty if nothing does."""
        found = []
        test = self.covariates
        if test is not None and test.p_value < 0.01 and not self.conditional:
            worst = ", ".join(list(test.statistics)[:3])
            found.append(
                f"Covariates predict censoring (p = {test.p_value:.2g}; most of all {worst}), and the law of "
                "C ignores them: scores under a pooled law are biased. Use a law given the covariates, such "
                "as Censoring(CoxRegression()) or Censoring(KaplanMeier(stratify=...))."
            )
        if self.events_in and self.weights["largest"] > 1 / SAFE_SHARE:
            found.append(
                f"One event stands for {self.weights['largest']:.3g} rows. Late times rest on few events; a "
                f"horizon of {self.safe_horizon:.4g} keeps every weight at or below {1 / SAFE_SHARE:g}."
            )
        if self.events_in and self.effective < 0.5 * self.events_in:
            found.append(f"The {self.events_in} events are worth {self.effective:.0f} equally weighted ones.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """All of it for machines."""
        return asdict(self) | {"warnings": self.warnings}

    def lines(self) -> list[tuple[str, str]]:
        """What and how much, for tables."""
        w = self.weights
        lines = [
            ("rows", f"{self.rows} ({self.events} events, {self.censored} censored)"),
            ("horizon", f"{self.horizon:.6g} ({self.cut} rows are followed longer and cut there)"),
            ("support of the law of C", f"{self.support:.6g} ({self.beyond} events lie beyond it)"),
            ("every weight at most 10 up to", f"{self.safe_horizon:.6g}"),
        ]
        if self.events_in:
            lines += [
                (
                    "weights 1/P(C >= y) of events",
                    f"median {w['median']:.3g}, 90 % {w['90 %']:.3g}, largest {w['largest']:.3g}",
                ),
                ("effective number of events", f"{self.effective:.1f} of {self.events_in}"),
            ]
        lines.append(("law of C", "given the covariates" if self.conditional else "one for all rows"))
        test = self.covariates
        if test is not None:
            told = f"chi² = {test.statistic:.1f} on {test.degrees} df, p = {test.p_value:.2g}"
            lines.append(("do covariates predict censoring?", told))
        return lines

    def __repr__(self) -> str:
        width = max(len(name) for name, _ in self.lines())
        text = [f"{name:{width}}  {value}" for name, value in self.lines()]
        text += [f"! {warning}" for warning in self.warnings]
        return "\n".join(["Censoring diagnostic", *text])


def censoring_diagnostic(
    y: Any, censoring: Distribution | None = None, X: Any = None, *, horizon: float | None = None
) -> CensoringDiagnostic:
    """How much weight the law of C puts where, how far it reaches, and whether covariates predict C.

    Parameters
    ----------
    y : outcome
        n rows.
    censoring : Distribution, optional
        Law of C; may be left out where it is known.
    X : array or frame, optional
        Covariates, for a score test of "they do not predict censoring" in a Cox model of C. Columns that are
        not numbers enter as categories.
    horizon : float, optional
        End of the comparison, by default the largest time that the law of every row supports.

    Returns
    -------
    CensoringDiagnostic
        Its ``warnings`` say what should make one hesitate.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 1))
    >>> T, C = rng.exponential(1.0, 500), rng.exponential(np.exp(0.5 * x[:, 0]))
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> pooled = cs.Censoring(cs.KaplanMeier()).fit(x, y).predict_distribution()
    >>> found = cs.censoring_diagnostic(y, pooled, x)
    >>> found.covariates.p_value < 1e-6, len(found.warnings) > 0
    (True, True)
    """
    y = as_outcome(y)
    if y.time.ndim > 1:
        raise InvalidInputError("The diagnostic is for one event time per row; use y.marginal(j) for each j.")
    C = known_law(y) if censoring is None else censoring
    if C is None:
        raise MissingCensoringError(
            "Pass the law of C: for instance Censoring(KaplanMeier()).fit(...).predict_distribution(X)."
        )
    time, event = to_numpy(y.time), to_numpy(y.event)
    law = C.marginal(0)
    support = float(
        to_numpy(law.isf(0.0)).max() if isinstance(law, PointMass) else to_numpy(law.isf(0.0)).min()
    )
    end = min(support, float(time.max())) if horizon is None else float(horizon)
    reach = np.broadcast_to(to_numpy(law.sf_left(y.time)), time.shape)
    counted = event & (time <= end) & (reach > 0)
    weight = 1 / reach[counted]
    return CensoringDiagnostic(
        rows=len(y),
        events=int(event.sum()),
        censored=int((~event).sum()),
        horizon=end,
        support=support,
        safe_horizon=float(min(end, to_numpy(law.isf(SAFE_SHARE)).min())),
        beyond=int((event & (reach <= 0)).sum()),
        cut=int((time > end).sum()),
        weights=_quantiles(weight),
        effective=float(weight.sum() ** 2 / (weight**2).sum()) if len(weight) else 0.0,
        events_in=int(counted.sum()),
        conditional=len(law) > 1,
        covariates=None if X is None or event.all() else covariates_predict(X, y),
    )


def _quantiles(weight: np.ndarray) -> dict[str, float]:
    if not len(weight):
        return {"median": np.nan, "90 %": np.nan, "largest": np.nan}
    middle, high = np.quantile(weight, [0.5, 0.9])
    return {"median": float(middle), "90 %": float(high), "largest": float(weight.max())}


def covariates_predict(X: Any, y: RightCensored) -> CensoringTest | None:
    """Score test in a Cox model of C: no fit is needed, so that separated columns do no harm."""
    from scipy.special import chdtrc

    rows = np.nonzero(to_numpy(y.informs_censoring))[0]
    flipped = y.flip()
    matrix, names = _numbers(take_rows(X, rows))
    if not matrix.shape[1]:
        return None
    weight = np.ones(len(rows))
    columns = Standardised.of(matrix, weight, None)
    sets = RiskSets(to_numpy(flipped.time), to_numpy(flipped.event), weight)
    p = columns.Z.shape[1]
    score = ProductLimitScore(sets, columns.Z[sets.order], np.zeros(p))
    gradient, information = score.gradient, score.variance()
    values, vectors = np.linalg.eigh(information)
    kept = values > 1e-8 * max(values.max(), 1e-300)
    along = (vectors[:, kept].T @ gradient) ** 2 / values[kept]
    spread = np.diag(information)
    single = np.divide(gradient**2, spread, out=np.zeros(p), where=spread > 0)
    order = np.argsort(-single)
    found = {names[j]: float(single[j]) for j in order}
    statistic, degrees = float(along.sum()), int(kept.sum())
    if not degrees:
        return None
    return CensoringTest(statistic, degrees, float(chdtrc(degrees, statistic)), found)


def _numbers(X: Any) -> tuple[np.ndarray, list[str]]:
    """Numeric columns as they are, others as categories without their first."""
    if not hasattr(X, "columns"):
        array = np.asarray(to_numpy(X), dtype=np.float64)
        array = array[:, None] if array.ndim == 1 else array
        return _complete(array), [f"column {j}" for j in range(array.shape[1])]
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    parts, names = [], []
    for name, kind in frame.schema.items():
        column = frame[name].to_numpy()
        if kind.is_numeric() or kind == nw.Boolean:
            parts.append(column.astype(np.float64))
            names.append(str(name))
            continue
        text = column.astype(str)
        for value in np.unique(text)[1:]:
            parts.append((text == value).astype(np.float64))
            names.append(f"{name} = {value}")
    stacked = np.column_stack(parts) if parts else np.zeros((len(frame), 0))
    return _complete(stacked), names


def _complete(matrix: np.ndarray) -> np.ndarray:
    if np.isnan(matrix).any():
        raise InvalidInputError("X must be free of missing values for the test of covariates on censoring.")
    return matrix
