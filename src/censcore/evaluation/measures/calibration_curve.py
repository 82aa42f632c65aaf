r"""Calibration at a time: the observed risk of subjects with a forecast risk of p.

A forecast is calibrated at t if :math:`P(T\le t\mid p)=p` for the forecast risk :math:`p=F(t)`. The left side
is estimated from censored data by the weights :math:`W_i` of what is known at t on the ipcw scale
(:mod:`censcore.scores.inputs.known_at`): :math:`1/G(y_i-)` for an event by t, :math:`1/G(t)` for a subject
followed beyond t and 0 for others. Where C is known for every subject, W is one for those followed beyond t,
and zero for all others. With :math:`D_i=\mathbb 1\{y_i\le t,\delta_i=1\}`, the observed risk at p is the
level at p of the weighted least-squares fit

.. math:: \min_{a,b}\sum_i w_iW_iK_i(p)\{D_i-a-b(p_i-p)\}^2,

with the sampling weights :math:`w_i`. *Binned*: K is one inside a bin of forecast risks, and b is zero.
*Smoothed*: K is Cleveland's tricube kernel over the nearest share of the subjects. Since a calibrated
forecast has a linear curve, the smoothed curve has no bias under calibration, however wide the kernel is.

The fit solves :math:`\sum_iw_i\ell_i=0` for :math:`\ell_i=W_ic_i(p)\{D_i-a-b(p_i-p)\}` with loads :math:`c_i`
that scale it to the level a. So the influence of each subject on the curve is that of a mean of losses
:math:`\ell_i` on the ipcw scale, and everything a comparison knows of such means holds: clusters, weights and
the estimated censoring distribution.

References
----------
.. [1] Cleveland, W. S. (1979). Robust locally weighted regression and smoothing scatterplots. JASA 74,
   829-836.
.. [2] Austin, P. C., Harrell, F. E. and van Klaveren, D. (2020). Graphical calibration curves and the
   integrated calibration index (ICI) for survival models. Statistics in Medicine 39, 2714-2742.
.. [3] Agresti, A. and Coull, B. A. (1998). Approximate is better than "exact" for interval estimation of
   binomial proportions. The American Statistician 52, 119-126.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from censcore._validation import as_count, as_number, check_option
from censcore.evaluation.inference.adjustment import square_root
from censcore.evaluation.inference.estimates import Estimate, effective_number, separate_stream
from censcore.evaluation.inference.mean_losses import shares_of
from censcore.evaluation.lines import MINIMUM_EVENTS, Line, cannot_tell, data_frame, lines_of
from censcore.evaluation.measures.case import RiskAt
from censcore.evaluation.measures.case_scores import OfRisk
from censcore.evaluation.measures.classification import quantiles_of
from censcore.evaluation.measures.net_benefit import least_events
from censcore.plain_text import one_line

if TYPE_CHECKING:
    import pandas as pd

    from censcore.evaluation.comparison import Comparison

POINTS = 50  # of the smoothed curve, each for an equal share of the subjects
MOST_BINS = 10
EVENTS_PER_BIN = 10  # of the default number of bins
DRAWS = 2000  # of the curve under calibration
CONSTANT = 1e-9  # spread of forecast risks below which they are one


@dataclass(frozen=True, repr=False)
class CalibrationCurve:
    r"""How the observed risk of the event by t goes with the forecast risk; see the module for the formulas.

    Attributes
    ----------
    model : str
        Name of the forecast.
    time : float
        t.
    predicted, observed : float
        Mean forecast risk and observed risk of all subjects, with ``observed_low`` and ``observed_high``.
    binned : list of dict
        Per bin of forecast risks: mean ``predicted`` risk, ``observed`` risk with ``standard_error``, ``low``
        and ``high`` (Wilson's interval at the effective number of subjects), and ``n`` subjects.
    smoothed : list of dict
        The same at points that stand for equal shares of the subjects, from a local linear fit. Empty where
        all subjects have one forecast risk.
    ici, e50, e90 : float
        Mean, median and 90 % quantile over subjects of the distance between the smoothed curve and the
        diagonal.
    ici_by_chance : float
        What the mean distance would be, on average, if the forecast were calibrated: noise alone bends a
        curve.
    p_value : float
        Of "the forecast is calibrated at t": how often chance gives a larger mean distance.
    by_chance, bounds : dict of float
        For "ici", "e50" and "e90": what each would be on average if the forecast were calibrated, and its
        upper confidence bound, the quantile of curves drawn around the smoothed one. There is no lower bound:
        a distance cannot be less than zero, which is what it is under the truth.
    note : str
        Why intervals and the p-value are missing, or how the p-value is to be read; else empty.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> T, C = rng.exponential(np.exp(x)), rng.uniform(0, 3, 500)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> forecasts = {"true": cs.Exponential(np.exp(-x)), "too high": cs.Exponential(2 * np.exp(-x))}
    >>> comparison = cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier()), horizon=2.0, scores="crps")
    >>> comparison.calibration("true", time=1.0)
    calibration of true at 1: predicted risk 0.625, observed 0.620 (0.572 to 0.666)
    ICI 0.027 (0.024 by chance), E50 0.032, E90 0.041, p = 0.23
    >>> comparison.calibration("too high", time=1.0).p_value < 0.001
    True
    """

    model: str
    time: float
    predicted: float
    observed: float
    observed_low: float
    observed_high: float
    binned: list[Line]
    smoothed: list[Line]
    ici: float = np.nan
    e50: float = np.nan
    e90: float = np.nan
    ici_by_chance: float = np.nan
    p_value: float = np.nan
    note: str = ""
    by_chance: dict[str, float] = field(default_factory=dict)
    bounds: dict[str, float] = field(default_factory=dict)

    def frame(self) -> pd.DataFrame:
        """All points as a data frame; ``kind`` is "binned" or "smoothed"."""
        of_kind = {"binned": self.binned, "smoothed": self.smoothed}
        return data_frame({"kind": kind} | line for kind, lines in of_kind.items() for line in lines)

    def __repr__(self) -> str:
        text = (
            f"calibration of {one_line(self.model)} at {self.time:.4g}: predicted risk {self.predicted:.3f}, "
            f"observed {self.observed:.3f} ({self.observed_low:.3f} to {self.observed_high:.3f})"
        )
        if self.smoothed:
            text += f"\nICI {self.ici:.3f} ({self.ici_by_chance:.3f} by chance)"
            text += f", E50 {self.e50:.3f}, E90 {self.e90:.3f}"
            text += "" if np.isnan(self.p_value) else f", p = {self.p_value:.2g}"
            text += f", {self.note}" if self.note else ""
        return text


def calibration_curve(
    comparison: Comparison, model: str, time: float | None = None, bins: int | None = None, span: float = 0.75
) -> CalibrationCurve:
    """See :meth:`Comparison.calibration`."""
    check_option(model, "model", comparison.models)
    span = as_number(span, "span, a share of the subjects,", above=0, most=1)
    bins = None if bins is None else as_count(bins, "bins", most=10**6)
    case, w = comparison.cases[model], comparison.subsets[0].weight
    t = comparison.one_time(time)
    known = case.risk_at(t)
    data = _Data(known, shares_of(w[:, None], known.counted)[:, 0])
    events = least_events(case, t, data.w, comparison.groups)
    most = min(MOST_BINS, int(events // EVENTS_PER_BIN)) if bins is None else bins
    enough = events >= MINIMUM_EVENTS
    fits = [data.in_bins(1), data.in_bins(max(most, 1))]
    everywhere = quantiles_of(data.p, data.w, (np.arange(POINTS) + 0.5) / POINTS)
    at, counts = np.unique(everywhere, return_counts=True)
    if np.ptp(data.p[data.w > 0]) >= CONSTANT:
        fits.append(data.local_linear(at, span))
    whole, binned, *smoothed = _estimates(comparison, model, t, fits)
    (all_of,) = _points_of_bins(comparison, fits[0], whole, enough)
    curve = CalibrationCurve(
        model, t, all_of["predicted"], all_of["observed"], all_of["low"], all_of["high"],
        _points_of_bins(comparison, fits[1], binned, enough), [],
        note=comparison.calibration_note if enough else cannot_tell(events),
    )  # fmt: skip
    return _with_curve(comparison, curve, fits[2], smoothed[0], counts, enough) if smoothed else curve


class _Fit(NamedTuple):
    """Observed risks (q,) at predicted ones, with the loads (n, q) of the equations that they solve."""

    predicted: np.ndarray
    observed: np.ndarray
    loads: np.ndarray
    weight: np.ndarray  #: by which subjects count in it, (n, q or 1)
    subjects: np.ndarray  #: how many there are


class _Data:
    """Forecast risks p, events D by t, inverse-probability weights W and sampling weights w, (n,) each."""

    def __init__(self, known: RiskAt, w: np.ndarray) -> None:
        self.p, self.D, self.W, self.w = known.p, (known.event > 0) * 1.0, known.event + known.free, w

    def in_bins(self, bins: int) -> _Fit:
        """Means within bins."""
        number = _bin_numbers(self.p, self.w, bins)
        inside = (number[:, None] == np.arange(number.max() + 1)) & (self.w > 0)[:, None]
        k = inside * (self.w * self.W)[:, None]
        total = k.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            observed = self.D @ k / total
            loads = np.where(inside, (self.D[:, None] - observed) / total, 0.0)
            predicted = (self.w * self.p) @ inside / (self.w @ inside)
        return _Fit(predicted, observed, np.nan_to_num(loads), k, inside.sum(axis=0))

    def local_linear(self, at: np.ndarray, span: float) -> _Fit:
        """Levels a of the local fits at some risks.

        A fit reaches the share ``span`` of the subjects, and at least two whose status at the time is known.
        """
        used, order = self.w > 0, np.argsort(self.p)
        count = int(np.ceil(span * used.sum()))
        reach = np.maximum(
            _nearest(self.p[order[used[order]]], at, count),
            _nearest(self.p[order[(used & (self.W > 0))[order]]], at, 2),
        )
        farthest = np.maximum(at - self.p[order[0]], self.p[order[-1]] - at)
        reach = np.where(reach < CONSTANT, farthest, reach) * (1 + 1e-9)
        x, weight = self.p[:, None] - at, self.w * self.W
        K = _tricube(np.abs(x) / reach)
        Kx = K * x
        S0, S1, S2 = weight @ K, weight @ Kx, np.einsum("n,nq,nq->q", weight, Kx, x)
        determinant = S0 * S2 - S1**2
        flat = determinant <= 1e-10 * S0 * S2  # one forecast risk within reach: the level alone
        S1, S2 = np.where(flat, 0.0, S1), np.where(flat, 1.0, S2)
        determinant = np.where(flat, S0, determinant)
        of_level = (K * S2 - Kx * S1) / determinant
        D = weight * self.D
        a, b = D @ of_level, np.where(flat, 0.0, (S0 * (D @ Kx) - S1 * (D @ K)) / determinant)
        loads = of_level * (self.D[:, None] - a - b * x)
        return _Fit(at, a, loads, weight[:, None], np.full(len(at), len(self.p)))


def _bin_numbers(p: np.ndarray, w: np.ndarray, bins: int) -> np.ndarray:
    """Bins of equal weight, fewer where forecast risks are tied."""
    edges = np.unique(quantiles_of(p, w, np.arange(1, bins) / bins))
    number = np.searchsorted(edges, p, side="left")
    return np.unique(number, return_inverse=True)[1].reshape(-1)


def _nearest(p: np.ndarray, at: np.ndarray, count: int) -> np.ndarray:
    """The distance (q,) within which ``count`` of the ascending p are, or all of fewer."""
    count = min(max(count, 2), len(p))
    first, last = p[: len(p) - count + 1], p[count - 1 :]  # of so many in a row
    middle = np.searchsorted(first + last, 2 * at)
    rows = np.clip([middle - 1, middle], 0, len(first) - 1)
    return np.maximum(at - first[rows], last[rows] - at).min(axis=0)


def _tricube(u: np.ndarray) -> np.ndarray:
    """Cleveland's kernel, of distances over the reach."""
    np.minimum(u, 1.0, out=u)
    left = 1 - u * u * u
    return left * left * left


def _estimates(comparison: Comparison, model: str, t: float, fits: list[_Fit]) -> list[Estimate]:
    """Observed risks with the influences of their equations, the means of W ``loads`` that are zero."""
    loads = np.concatenate([fit.loads for fit in fits], axis=1)
    equations = OfRisk(t, lambda known: (known.event + known.free)[:, None] * loads)
    influence = comparison.mean_of(equations, model).influence
    ends = np.cumsum([len(fit.observed) for fit in fits])[:-1]
    return [
        Estimate(fit.observed, of) for fit, of in zip(fits, np.split(influence, ends, axis=1), strict=True)
    ]


def _points_of_bins(comparison: Comparison, bins: _Fit, observed: Estimate, enough: bool) -> list[Line]:
    kish = np.array([effective_number(weight, comparison.groups) for weight in bins.weight.T])
    kish, error = np.where(enough & (kish > 0), kish, np.nan), observed.standard_error
    ends = _wilson(bins.observed, error, kish, comparison.confidence)
    errors = np.where(enough & (error > 0), error, np.nan)
    return _points(bins.predicted, bins.observed, errors, *ends, bins.subjects)


def _points(*columns: np.ndarray) -> list[Line]:
    """Points of a curve: forecast and observed risk, error and interval, and how many subjects each has."""
    names = ("predicted", "observed", "standard_error", "low", "high", "n")
    return lines_of({}, dict(zip(names, columns, strict=True)))


def _wilson(
    share: np.ndarray, error: np.ndarray, kish: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval at the number of subjects that would give this error; Kish's where there is none."""
    from scipy.special import stdtrit

    spread = share * (1 - share)
    with np.errstate(divide="ignore", invalid="ignore"):
        n = np.where((error > 0) & (spread > 0), spread / error**2, kish)
    z = stdtrit(np.maximum(kish - 1, 1.0), 0.5 + confidence / 2)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(spread / n + z**2 / (4 * n**2))
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def _with_curve(
    comparison: Comparison, binned: CalibrationCurve, fit: _Fit, curve: Estimate, counts: Any, enough: bool
) -> CalibrationCurve:
    """With the smoothed curve, each of whose points stands for ``counts`` equal shares of the subjects."""
    at, level = fit.predicted, fit.observed
    low, high = curve.interval(comparison.confidence) if enough else (np.full(len(at), np.nan),) * 2
    # a risk is within [0, 1], so are the ends of its interval
    inside, low, high = (np.clip(values, 0.0, 1.0) for values in (level, low, high))
    errors = np.where(enough & curve.varies, curve.standard_error, np.nan)
    facts: dict[str, Any] = {"smoothed": _points(at, inside, errors, low, high, fit.subjects)}
    facts |= {name: float(value) for name, value in _distances(inside - at, counts).items()}
    if enough:
        drawn = _drawn(curve, comparison.seed)
        facts["by_chance"] = {name: float(d.mean()) for name, d in _distances(drawn, counts).items()}
        around = _distances(np.clip(level + drawn, 0.0, 1.0) - at, counts).items()
        facts["bounds"] = {name: float(np.quantile(d, comparison.confidence)) for name, d in around}
        by_chance = np.abs(drawn) @ (counts / counts.sum())
        facts["ici_by_chance"] = float(by_chance.mean())
        distance_as_drawn = float(np.repeat(np.abs(level - at), counts).mean())
        facts["p_value"] = float((1 + (by_chance >= distance_as_drawn).sum()) / (1 + len(by_chance)))
    return replace(binned, **facts)


def _distances(away: np.ndarray, counts: np.ndarray) -> dict[str, np.ndarray]:
    """Mean, median and 90 % quantile of the distance of curves (..., q) from the diagonal."""
    distance = np.repeat(np.abs(away), counts, axis=-1)
    middle, most = np.quantile(distance, [0.5, 0.9], axis=-1)
    return {"ici": distance.mean(axis=-1), "e50": middle, "e90": most}


def _drawn(curve: Estimate, seed: int) -> np.ndarray:
    """How far curves (draws, q) are from the true one by chance: Student's, with the same covariance."""
    root = square_root(curve.influence.T @ curve.influence)
    rng, nu = separate_stream(seed), max(float(np.nanmedian(curve.degrees_of_freedom)), 3.0)
    scale = np.sqrt(rng.chisquare(nu, DRAWS) / nu)
    return rng.standard_normal((DRAWS, len(root))) @ root / scale[:, None]
