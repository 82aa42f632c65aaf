"""How many subjects and events a validation needs: for intervals of a given width, and for power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from censcore._validation import (
    as_count,
    as_number,
    as_numbers,
    as_seed,
    check_kind,
    check_option,
)
from censcore.distributions import Exponential, PiecewiseExponential, Univariate
from censcore.evaluation import planned_measures as measures
from censcore.evaluation.planned_measures import Measure, Validated
from censcore.exceptions import CenscoreError, InvalidInputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Measures with an interval whose width may be asked for.
WIDTHS = (
    "O/E", "calibration slope", "calibration slope, pseudo-values", "AUC", "net benefit",
    "standardised net benefit",
)  # fmt: skip
SCORES = ("brier_score", "binomial_log_score")
MOST = 20_000  # subjects of a simulated study; beyond, its widths are those of this size, scaled
ROUNDS = 4  # of the search for a size
_NODES = 200  # of the distribution of the linear predictor, in closed forms
_GRID = 400  # times in closed forms


@dataclass(frozen=True)
class Population:
    """Subjects of a validation study: linear predictor L, hazard h0(t) exp(L), accrual and drop-out."""

    linear_predictor: np.ndarray | tuple[float, float]
    baseline: Univariate
    time: float
    accrual: float
    follow_up: float
    lost: float
    versus: np.ndarray | float | None = None

    def risk(self, lp: np.ndarray) -> np.ndarray:
        """The risk by the time."""
        log_S0 = float(self.baseline.logsf(self.time)[0])
        return -np.expm1(np.exp(lp) * log_S0)

    def other_risk(self, lp: np.ndarray) -> np.ndarray:
        """The risk by the time given a linear predictor that is correlated with L: its mean over L."""
        assert isinstance(self.linear_predictor, tuple)
        assert isinstance(self.versus, float)
        rest = self.linear_predictor[1] * np.sqrt(1 - self.versus**2)
        nodes, weights = np.polynomial.hermite_e.hermegauss(30)
        grid = np.linspace(lp.min(), lp.max(), 200)  # the mean is smooth in lp
        mean = self.risk(grid[:, None] + rest * nodes) @ weights / weights.sum()
        return np.interp(lp, grid, mean)

    def draw(self, n: int, rng: np.random.Generator) -> Validated:
        """A study of n subjects."""
        versus = None
        if isinstance(self.linear_predictor, tuple):
            mean, sd = self.linear_predictor
            z = rng.normal(size=n)
            lp = mean + sd * z
            if self.versus is not None:
                other = self.versus * z + np.sqrt(1 - self.versus**2) * rng.normal(size=n)
                versus = self.other_risk(mean + self.versus * sd * other)
        else:
            row = rng.integers(0, len(self.linear_predictor), n)
            lp = self.linear_predictor[row]
            if self.versus is not None:
                versus = self.risk(np.asarray(self.versus)[row])
        T = self.baseline.isf(np.exp(-rng.exponential(size=n) * np.exp(-lp)))
        T = np.asarray(T, dtype=np.float64).reshape(-1)
        C = self.follow_up + self.accrual * rng.uniform(size=n)
        C = np.minimum(C, rng.exponential(size=n) / self.lost) if self.lost else C
        return Validated(np.minimum(T, C), T <= C, self.risk(lp), self.time, versus)

    @cached_property
    def nodes(self) -> np.ndarray:
        """The linear predictor at equally likely points."""
        if isinstance(self.linear_predictor, tuple):
            mean, sd = self.linear_predictor
            return mean + sd * norm.ppf((np.arange(_NODES) + 0.5) / _NODES)
        return self.linear_predictor

    def followed(self, t: np.ndarray) -> np.ndarray:
        """P(C >= t)."""
        since = (t - self.follow_up) / self.accrual if self.accrual else (t > self.follow_up).astype(float)
        return np.exp(-self.lost * t) * (1 - np.clip(since, 0.0, 1.0))

    @cached_property
    def curves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Survival of the nodes (m, q + 1) and of all, and P(C >= t) between these times (q,)."""
        t = np.linspace(0.0, self.time, _GRID + 1)
        log_S0 = np.asarray(self.baseline.logsf(t)).reshape(-1)
        S = np.exp(np.exp(self.nodes)[:, None] * log_S0)
        return S, S.mean(axis=0), self.followed((t[1:] + t[:-1]) / 2)

    @property
    def mean_risk(self) -> float:
        """The risk by the time."""
        return float(1 - self.curves[1][-1])

    @property
    def event_share(self) -> float:
        """The share of subjects whose event by the time is observed."""
        _, S, G = self.curves
        return float(-np.diff(S) @ G)

    def error_of_log_ratio(self) -> float:
        r"""The standard error of log O/E of one subject, by Greenwood's formula, with E random too.

        The variance of O is :math:`S^2\int d\Lambda/(SG)`, that of E the variance of the risk R, and their
        covariance :math:`S\,E[R\int S(u\mid x)\{d\Lambda(u\mid x)-d\Lambda(u)\}/S(u)]`.
        """
        each, S, G = self.curves
        middle = (S[1:] + S[:-1]) / 2
        hazard = -np.diff(S) / middle
        of_O = S[-1] ** 2 * float(np.sum(hazard / (middle * G)))
        R = 1 - each[:, -1]
        drift = (-np.diff(each, axis=1) - (each[:, 1:] + each[:, :-1]) / 2 * hazard) / middle
        together = S[-1] * float(np.mean((R - R.mean()) * drift.sum(axis=1)))
        return float(np.sqrt(of_O + R.var() - 2 * together) / (1 - S[-1]))


@dataclass(frozen=True)
class Target:
    """A measure with the width or the power that is asked for."""

    name: str
    measure: Measure
    width: float | None
    closed_form: bool = False


@dataclass(frozen=True, repr=False, eq=False)
class ValidationPlan:
    """What :func:`plan_validation` found.

    Attributes
    ----------
    n, events : int
        Subjects that meet every target, and the events by the time that are then expected.
    population : Population
        What was assumed.
    table : DataFrame
        What ``frame()`` copies.
    curves : dict
        Name of a measure -> sizes and mean widths that were simulated.

    Examples
    --------
    >>> import censcore as cs
    >>> plan = cs.plan_validation(
    ...     time=5.0, linear_predictor=(0.0, 0.7), risk=0.2, width={"O/E": 0.3}, assurance=None,
    ... )
    >>> plan.n, plan.events
    (623, 125)
    """

    n: int
    events: int
    population: Population
    table: pd.DataFrame
    curves: dict[str, list[tuple[int, float]]] = field(default_factory=dict)

    def frame(self) -> pd.DataFrame:
        """One line per target.

        Columns: ``measure``, ``target`` (the width, or the power), ``n`` and ``events`` that reach it,
        ``mean`` (the mean width there, or the power) with its ``monte_carlo_error``, ``assurance`` (the share
        of studies that reach the width) with ``assurance_error``, ``failed`` (the share without an estimate)
        and ``method``.
        """
        return self.table.copy()

    def plot(self) -> Figure:
        """Draw the mean width of the intervals against the number of subjects, with the targets."""
        from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

        from censcore.evaluation.report.style import PALETTE, new_figure, styled

        with styled():
            figure = new_figure(6.5, 3.6)
            axis = figure.subplots()
            shown = self.table[self.table.measure.isin(self.curves)]
            for i, line in enumerate(shown.itertuples()):
                sizes, widths = np.array(sorted(self.curves[line.measure])).T
                n = np.geomspace(min(sizes.min(), line.n) / 2, max(sizes.max(), line.n) * 2, 100)
                scaled = np.interp(np.log(n), np.log(sizes), widths * np.sqrt(sizes))
                colour = PALETTE[f"m{i % 8}"][0]
                axis.plot(n, scaled / np.sqrt(n), label=line.measure, color=colour)
                axis.plot(line.n, line.target, "o", color=colour)
            axis.set(xscale="log", yscale="log", xlabel="subjects", ylabel="mean width of the interval")
            for of, form in ((axis.xaxis, "{x:,.0f}"), (axis.yaxis, "{x:g}")):
                of.set_major_locator(LogLocator(subs=(1, 2, 5)))
                of.set_major_formatter(StrMethodFormatter(form))
                of.set_minor_formatter(NullFormatter())
            axis.legend()
        return figure

    def __repr__(self) -> str:
        """Print the numbers, what they are for, and what they assume."""
        at = self.population
        head = (
            f"{self.n:,} subjects, about {self.events:,} events by time {at.time:g} "
            f"(risk {at.mean_risk:.3g}, {100 * at.event_share:.3g} % observed)"
        )
        return f"{head}\n\n{self.table.round(3).to_string(index=False)}"


def plan_validation(
    *,
    time: float,
    linear_predictor: Any,
    baseline: Any = None,
    risk: float | None = None,
    width: Mapping[str, float] | None = None,
    thresholds: float = 0.2,
    assurance: float | None = 0.8,
    accrual: float = 0.0,
    follow_up: float | None = None,
    dropout: float = 0.0,
    versus: Any = None,
    power: float | None = None,
    score: str = "brier_score",
    confidence: float = 0.95,
    simulations: int = 400,
    seed: int = 0,
) -> ValidationPlan:
    r"""Plan the size of an external validation of a risk by a time.

    The model is assumed right, :math:`P(T>t\mid L)=S_0(t)^{e^L}` with its linear predictor L, and C
    independent of T. The size for O/E has a closed form; for all other measures studies are simulated, and
    the size is corrected by :math:`n(\bar w/w)^2` until the mean width :math:`\bar w` (or its quantile, for
    an assurance) is the target w.

    Parameters
    ----------
    time : number
        The time whose risk is validated.
    linear_predictor : pair (mean, sd) or array, (m,)
        Its distribution in the validation: normal, or values of development data.
    baseline : dict or distribution, optional
        Survival of a subject with L = 0: {time: survival}, with a constant hazard between, or a distribution.
    risk : number, optional
        In place of ``baseline``: the mean risk by the time, with a constant hazard.
    width : dict, optional
        Measure -> width of its interval: "O/E", "calibration slope", "calibration slope, pseudo-values",
        "AUC", "net benefit" and "standardised net benefit". By default 0.2 for the first two and 0.1 for AUC.
    thresholds : number
        The risk above which subjects are treated, for net benefit.
    assurance : number or None
        The share of studies that must reach each width; None asks for the mean width.
    accrual, follow_up, dropout : number
        Subjects enter uniformly over ``accrual``, are followed for at least ``follow_up`` (by default
        ``time``) from their entry, and a share ``dropout`` is lost by the time, at a constant rate.
    versus : number or array, optional
        A second model: the correlation of its linear predictor with L, of a model that is calibrated; or
        its linear predictor, (m,), beside the array of L, with the same baseline.
    power : number, optional
        The power of the test that both models have the same mean score.
    score : {"brier_score", "binomial_log_score"}
        On the ipcw scale.
    confidence : float
        Of the intervals, and one less the level of the test.
    simulations : int
        Studies per size; their Monte Carlo error is reported.
    seed : int
        Of the simulation.

    Returns
    -------
    ValidationPlan
        ``n``, ``events``, ``frame()`` and ``plot()``.

    References
    ----------
    .. [1] R. D. Riley, G. S. Collins, J. Ensor, L. Archer, S. Booth, S. I. Mozumder, M. J. Rutherford, M. van
       Smeden, P. C. Lambert and K. I. E. Snell (2022). Minimum sample size calculations for external
       validation of a clinical prediction model with a time-to-event outcome. Statistics in Medicine 41,
       1280-1295.
    .. [2] R. D. Riley, T. P. A. Debray, G. S. Collins, L. Archer, J. Ensor, M. van Smeden and K. I. E. Snell
       (2021). Minimum sample size for external validation of a clinical prediction model with a binary
       outcome. Statistics in Medicine 40, 4230-4251.

    See Also
    --------
    update : What to do if the model is not right.
    compare : The comparison that a power is for.

    Examples
    --------
    >>> import censcore as cs
    >>> plan = cs.plan_validation(
    ...     time=3.0, linear_predictor=(0.0, 0.7), risk=0.17, dropout=0.5, width={"AUC": 0.1}, assurance=None,
    ...     simulations=50,
    ... )
    >>> 800 < plan.n < 1200
    True
    """
    confidence = as_number(confidence, "confidence", least=0.5, below=1.0)
    time = as_number(time, "time", least=1e-100, most=1e100)
    simulations, seed = as_count(simulations, "simulations", least=20, most=100_000), as_seed(seed)
    assurance = None if assurance is None else as_number(assurance, "assurance", above=0.0, below=1.0)
    check_option(score, "score", SCORES)
    at = _population(time, linear_predictor, baseline, risk, accrual, follow_up, dropout, versus)
    targets = _targets(width, as_number(thresholds, "thresholds", above=0.0, below=1.0))
    if power is not None:
        power = as_number(power, "power", above=0.0, below=1.0)
        if at.versus is None:
            raise InvalidInputError(
                "power: got no versus, expected another model: power is of the difference to it."
            )
        targets.append(Target(score, partial(measures.score_difference, score=score), None))
    if not targets:
        raise InvalidInputError("width: got no width and no power, expected one: there is nothing to plan.")
    study = _Search(at, norm.ppf((1 + confidence) / 2), assurance, power, simulations, seed)
    import pandas as pd

    lines = [study.line(target) for target in targets]
    table = pd.DataFrame(lines)
    n = int(table.n.max())
    return ValidationPlan(n, round(n * at.event_share), at, table, study.curves)


def _targets(width: Any, threshold: float) -> list[Target]:
    """The measures whose widths are asked for."""
    asked = {"O/E": 0.2, "calibration slope": 0.2, "AUC": 0.1} if width is None else width
    check_kind(asked, "width", Mapping, "a dict, {'O/E': 0.2, 'AUC': 0.1}")
    formulas: dict[str, Measure] = {
        "O/E": measures.log_observed_over_expected,
        "calibration slope": measures.calibration_slope,
        "calibration slope, pseudo-values": measures.pseudo_slope,
        "AUC": measures.auc,
        "net benefit": partial(measures.net_benefit, threshold=threshold),
        "standardised net benefit": partial(measures.standardised_net_benefit, threshold=threshold),
    }
    for name, value in asked.items():
        check_option(name, "width", WIDTHS)
        as_number(value, f"width of {name}", above=0.0)
    return [Target(name, formulas[name], float(value), name == "O/E") for name, value in asked.items()]


def _population(
    time: float, L: Any, baseline: Any, risk: Any, accrual: Any, follow_up: Any, dropout: Any, versus: Any
) -> Population:
    """What was assumed, checked."""
    if isinstance(L, tuple) and len(L) == 2:
        mean = as_number(L[0], "mean of linear_predictor")
        lp: Any = (mean, as_number(L[1], "sd of linear_predictor", least=0.0, most=20.0))
    else:
        lp = as_numbers(L, "linear_predictor")
        if len(lp) < 20 or not np.isfinite(lp).all():
            raise InvalidInputError(
                f"linear_predictor: got {len(lp)} values, expected a pair (mean, sd), or at least 20 "
                "finite ones."
            )
    if (baseline is None) == (risk is None):
        raise InvalidInputError("Pass either baseline, the survival at L = 0, or risk, the mean risk.")
    other = _other(versus, lp)
    length = as_number(time if follow_up is None else follow_up, "follow_up", least=0.0)
    share = as_number(dropout, "dropout", least=0.0, below=1.0)
    given = _baseline(baseline) if risk is None else Exponential(1.0)
    at = Population(
        lp, given, time, as_number(accrual, "accrual", least=0.0), length, -np.log1p(-share) / time, other
    )
    if at.followed(np.array([time * (1 - 1e-9)]))[0] <= 0:
        raise InvalidInputError(
            f"follow_up: got {length:g} with an accrual of {at.accrual:g}, expected that some are "
            f"followed to the time {time:g}."
        )
    if risk is None:
        as_number(at.mean_risk, "The mean risk by the time", least=1e-6, most=1 - 1e-6)
        return at
    wanted = as_number(risk, "risk", least=1e-6, most=1 - 1e-6)

    def with_rate(log_rate: float) -> Population:
        return replace(at, baseline=Exponential(float(np.exp(log_rate))))

    middle, spread = -float(np.mean(at.nodes)), float(np.ptp(at.nodes)) + 50.0
    return with_rate(
        brentq(lambda a: with_rate(a).mean_risk - wanted, middle - spread, middle + spread, xtol=1e-12)
    )


def _other(versus: Any, lp: Any) -> Any:
    if versus is None:
        return None
    if isinstance(lp, tuple):
        return as_number(versus, "versus, the correlation of its linear predictor,", above=0.0, below=1.0)
    values = as_numbers(versus, "versus")
    if len(values) != len(lp):
        raise InvalidInputError(
            f"versus: got {len(values)} values, expected {len(lp)}, as of linear_predictor."
        )
    return values


def _baseline(baseline: Any) -> Univariate:
    """The distribution of T at L = 0."""
    if isinstance(baseline, Univariate) and len(baseline) == 1:
        return baseline
    check_kind(baseline, "baseline", Mapping, "{time: survival}, or a distribution of one subject")
    times, S = as_numbers(list(baseline), "baseline"), as_numbers(list(baseline.values()), "baseline")
    order = np.argsort(times)
    times, S = np.append(0.0, times[order]), np.append(1.0, S[order])
    if not ((np.diff(times) > 0).all() and (np.diff(S) < 0).all() and (S > 0).all()):
        raise InvalidInputError(
            f"baseline: got {baseline}, expected positive times with survival between 0 and 1 that falls."
        )
    rates = -np.diff(np.log(S)) / np.diff(times)
    return Exponential(rates[0]) if len(rates) == 1 else PiecewiseExponential(times[1:-1], rates)


class _Search:
    """Sizes by simulation, under one population."""

    def __init__(
        self, at: Population, z: float, assurance: float | None, power: float | None, studies: int, seed: int
    ) -> None:
        self.at, self.z, self.assurance, self.power = at, z, assurance, power
        self.studies, self.seed = studies, seed
        self.curves: dict[str, list[tuple[int, float]]] = {}

    def line(self, target: Target) -> dict[str, Any]:
        """The size of one target, and what studies of this size give."""
        share = self.at.event_share
        if target.closed_form and self.assurance is None:
            sigma = np.arcsinh(float(target.width or 0) / 2) / self.z  # exp(z s) - exp(-z s) = width
            n = int(np.ceil((self.at.error_of_log_ratio() / sigma) ** 2))
        else:
            n = self._size(target)
        values, errors = self._studies(target, n)
        found: dict[str, Any] = {"measure": target.name, "n": n, "events": round(n * share)}
        known = np.isfinite(errors)
        if target.width is None:
            reached = np.abs(values[known]) > self.z * errors[known]
            found |= {"target": self.power, "mean": float(reached.sum() / len(known))}
            found["monte_carlo_error"] = _share_error(found["mean"], len(known))
        else:
            widths = self._widths(target, values, errors)
            reached = widths <= target.width
            found |= {"target": target.width, "mean": float(widths.mean())}
            found["monte_carlo_error"] = float(widths.std(ddof=1) / np.sqrt(len(widths)))
            found["assurance"] = float(reached.sum() / len(known))
            found["assurance_error"] = _share_error(found["assurance"], len(known))
        closed = target.closed_form and self.assurance is None
        found |= {"failed": float(1 - known.mean()), "method": "Greenwood" if closed else "simulation"}
        return found

    def _size(self, target: Target) -> int:
        """Corrected until the width, its quantile or the power is the target."""
        n = int(np.clip(200 / self.at.event_share, 100, MOST))
        rounds: list[tuple[int, np.ndarray]] = []  # of sizes that are near, all studies count
        for _ in range(ROUNDS):
            values, errors = self._studies(target, n)
            known = np.isfinite(errors)
            if not (errors[known] > 0).any() or (known.mean() < 0.5 and n == MOST):
                raise InvalidInputError(
                    f"{target.name}: got no estimate in most simulated studies of {n} subjects. The linear "
                    "predictor must vary, and risks lie strictly between 0 and 1."
                )
            if known.mean() < 0.5:
                n = min(4 * n, MOST)
                continue
            if target.width is None:
                assert self.power is not None
                effect = abs(float(values[known].mean())) / float(np.sqrt(np.mean(errors[known] ** 2)))
                factor = ((self.z + norm.ppf(self.power)) / max(effect, 1e-6)) ** 2
            else:
                here = self._widths(target, values, errors)
                rounds.append((n, here))
                near = [w * np.sqrt(m / n) for m, w in rounds if 2 / 3 < m / n < 3 / 2]
                widths = np.concatenate(near)
                typical = widths.mean() if self.assurance is None else np.quantile(widths, self.assurance)
                factor = (float(typical) / target.width) ** 2
            before, n = n, int(np.clip(np.ceil(n * factor), 20, 10**8))
            if abs(n - before) <= 0.005 * n:
                break
        return n

    def _widths(self, target: Target, values: np.ndarray, errors: np.ndarray) -> np.ndarray:
        known = np.isfinite(errors)
        if target.name == "O/E":
            return np.exp(values[known]) * 2 * np.sinh(self.z * errors[known])
        return 2 * self.z * errors[known]

    def _studies(self, target: Target, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Estimates and standard errors of the studies of one size; NaN where there is none."""
        size = min(n, MOST)
        found = np.full((self.studies, 2), np.nan)
        for i in range(self.studies):
            data = self.at.draw(size, np.random.default_rng([self.seed, size, i]))
            try:
                estimate = target.measure(data)
            except (CenscoreError, np.linalg.LinAlgError):
                continue
            found[i] = estimate.value[0], float(np.sqrt((estimate.influence**2).sum()))
        errors = found[:, 1] * np.sqrt(size / n)
        if target.width is not None and np.isfinite(errors).any():
            widths = self._widths(target, found[:, 0], errors)
            self.curves.setdefault(target.name, []).append((n, float(widths.mean())))
        return found[:, 0], errors


def _share_error(p: float, n: int) -> float:
    return float(np.sqrt(p * (1 - p) / n))
