"""The contract of scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from inspect import Parameter, signature
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Grouped, Mixture, PointMass, Uniform, Weibull
from censcore.exceptions import CenscoreError
from censcore.outcomes import CompetingRisks, RightCensored
from censcore.scores import mean_loss
from censcore.testing.contract import close, expect_error, expect_kept

Score = Callable[..., Any]
END = 2.0  # C is uniform on (0, END)
COLUMNS = {"times": (0.5, 1.0), "levels": (0.2, 0.5)}
MANY = 2000  # subjects in experiments
WRONG = {"early": (1.5, 0.85), "late": (1.5, 1.2), "sharp": (2.0, 1.0), "wide": (1.1, 1.0)}  # shape, scale
SHARE = 0.6  # of events of the cause that is scored


def check_score(
    score: Score,
    *,
    forecast: Callable[[Distribution], Distribution] | None = None,
    rtol: float = 1e-9,
    seed: int = 0,
) -> None:
    """Check that a custom score keeps the contract of the scores of this library.

    - It gives one finite loss per subject (or an array of them), whatever the order and number of subjects.
    - One distribution may serve all subjects; a horizon acts as administrative censoring.
    - A censoring distribution that contradicts the data raises an error; inputs are not changed.
    - One cause of competing risks is scored properly, too, or raises an error.
    - Torch gives the same numbers and finite gradients, where it is installed.
    - The score is proper, by experiment: the true distribution is not beaten in mean by forecasts that are
      too early, too late, too sharp or too wide, without censoring and under administrative and uniform
      censoring.

    Parameters
    ----------
    score : callable
        ``score(y, forecast, censoring, horizon=...)``. Where it has the argument ``times`` or ``levels``, it
        is examined at a few of them; bind further arguments with :func:`functools.partial`.
    forecast : callable, optional
        Turns the Weibull distributions that are scored into forecasts that the score accepts, for instance
        ``lambda F: Ensemble(F.sample(200, seed=0))``.
    rtol : float
        Tolerance for two ways to compute one loss.
    seed : int
        Seed of the simulated outcomes; the truth counts as beaten from four standard errors on.

    Raises
    ------
    AssertionError
        Every broken rule, with what was found.

    See Also
    --------
    check_distribution, check_estimator : The other contracts.

    References
    ----------
    .. [1] T. Gneiting and A. E. Raftery (2007). Strictly proper scoring rules, prediction, and estimation.
       Journal of the American Statistical Association 102, 359-378.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.testing import check_score
    >>> check_score(cs.brier_score)

    With G(s)/G(y-) replaced by one, a score is no longer proper:

    >>> def improper(y, F, C, horizon=None):
    ...     endless = cs.PointMass([float("inf") if d else t for t, d in zip(y.time, y.event)])
    ...     return cs.crps(y, F, endless, horizon=horizon)
    >>> check_score(improper)
    Traceback (most recent call last):
    ...
    AssertionError: improper breaks the contract of scores:
    ...
    """
    examined = _Examined(_at_columns(score), forecast or (lambda F: F), rtol, seed)
    expect_kept(RULES, examined, getattr(score, "__name__", repr(score)), "scores")


def _at_columns(score: Score) -> Score:
    """The score at a few times or levels, where these arguments are there and not bound."""
    try:
        parameters = signature(score).parameters
    except ValueError:  # of a function that is not written in Python
        return score
    free = {name for name, part in parameters.items() if part.default in (None, Parameter.empty)}
    return partial(score, **{name: COLUMNS[name] for name in COLUMNS if name in free})


@dataclass
class _Examined:
    """A score with small inputs to examine it on."""

    score: Score
    forecast: Callable[[Distribution], Distribution]
    rtol: float
    seed: int
    n: int = 40

    @cached_property
    def scale(self) -> np.ndarray:
        return np.exp(np.random.default_rng(self.seed).normal(0, 0.4, self.n))

    @cached_property
    def F(self) -> Distribution:
        return self.forecast(Weibull(np.full(self.n, 1.5), self.scale))

    @cached_property
    def C(self) -> Distribution:
        return Uniform(np.zeros(self.n), np.full(self.n, END))

    @cached_property
    def y(self) -> RightCensored:
        return outcome(self.scale, np.random.default_rng(self.seed + 1).uniform(0, END, self.n), self.seed)

    def losses(self, y: Any = None, F: Any = None, C: Any = None, **more: Any) -> np.ndarray:
        losses = self.score(y or self.y, F or self.F, C or self.C, **more)
        return np.asarray(to_numpy(losses), dtype=np.float64)


def outcome(scale: np.ndarray, c: np.ndarray, seed: int) -> RightCensored:
    """Weibull times of this scale, censored at c."""
    T = scale * np.random.default_rng(seed + 2).weibull(1.5, len(scale))
    return RightCensored(np.minimum(T, c), c >= T)


def one_loss_per_subject(s: _Examined) -> None:
    """A score gives one loss per subject, finite for a forecast with a positive density."""
    losses = s.losses()
    assert losses.ndim in (1, 2), f"Got shape {losses.shape} for {s.n} subjects."
    assert losses.shape[0] == s.n, f"Got shape {losses.shape} for {s.n} subjects."
    assert np.isfinite(losses).all(), f"{int((~np.isfinite(losses)).sum())} losses are not finite."
    close(s.losses(), losses, 0.0, "The second call")


def subjects_apart(s: _Examined) -> None:
    """The loss of a subject does not depend on other subjects or on their order."""
    losses = s.losses()
    order = np.random.default_rng(s.seed).permutation(s.n)
    close(s.losses(s.y[order], s.F[order], s.C[order]), losses[order], s.rtol, "In another order", 1e-9)
    parts = [slice(0, 1), slice(1, 17), slice(17, s.n)]
    joined = np.concatenate([s.losses(s.y[part], s.F[part], s.C[part]) for part in parts])
    close(joined, losses, s.rtol, "In slices", 1e-9)


def shared_distributions(s: _Examined) -> None:
    """One censoring distribution, or one forecast, may serve all subjects or a group of them."""
    close(s.losses(C=Uniform(0.0, END)), s.losses(), s.rtol, "With one censoring distribution", 1e-9)
    one = s.F[[0]]
    each = s.F[np.zeros(s.n, dtype=int)]
    close(s.losses(F=one), s.losses(F=each), s.rtol, "With one forecast", 1e-9)
    group = np.arange(s.n) % 2
    C = Grouped([Uniform(0.0, END), Uniform(np.zeros(s.n // 2), END)], group)
    close(s.losses(C=C), s.losses(), s.rtol, "With censoring distributions by group", 1e-9)
    order = np.random.default_rng(s.seed).permutation(s.n)
    moved = s.losses(s.y[order], s.F[order], C[order])
    close(moved, s.losses()[order], s.rtol, "By group, in another order", 1e-9)


def horizon_censors(s: _Examined) -> None:
    """A horizon is administrative censoring of outcome and C at that time."""
    end = 1.25
    by_hand = s.losses(s.y.censor_at(end), s.F, s.C.censor_at(end))
    close(s.losses(horizon=end), by_hand, s.rtol, "horizon=1.25", 1e-9)
    for bad in (-1.0, float("nan")):
        expect_error(partial(s.losses, horizon=bad), f"horizon={bad}", ValueError)


def known_censoring(s: _Examined) -> None:
    """Known censoring times are PointMass(c); a distribution that contradicts the data raises an error."""
    c = np.where(s.y.event, 1.5 * s.y.time, s.y.time)
    assert np.isfinite(s.losses(C=PointMass(c))).all(), "Losses under PointMass(c) are not finite."
    for impossible in (PointMass(np.inf), PointMass(0.5 * s.y.time)):
        what = "A censoring distribution that contradicts the data"
        expect_error(partial(s.losses, C=impossible), what, ValueError)


def inputs_untouched(s: _Examined) -> None:
    """A score changes none of its inputs."""
    before = s.y.time.copy(), s.y.event.copy(), np.asarray(to_numpy(s.F.sample(3, seed=0))).copy()
    s.losses()
    after = s.y.time, s.y.event, np.asarray(to_numpy(s.F.sample(3, seed=0)))
    for old, new in zip(before, after, strict=True):
        assert np.array_equal(old, new), "The outcome or the forecast differs after scoring."


def truth_wins(s: _Examined) -> None:
    """The true distribution is not beaten in mean (propriety, by experiment)."""
    rng = np.random.default_rng(s.seed + 5)
    scale = np.exp(rng.normal(0, 0.4, MANY))
    settings = {
        "no": (np.full(MANY, np.inf), PointMass(np.inf)),
        "administrative": (np.full(MANY, 1.25), PointMass(1.25)),
        "uniform": (rng.uniform(0, END, MANY), Uniform(0.0, END)),
    }
    forecasts = {name: Weibull(shape, factor * scale) for name, (shape, factor) in WRONG.items()}
    for kind, (times, C) in settings.items():
        y = outcome(scale, times, s.seed)
        _expect_least(s, y, C, Weibull(1.5, scale), forecasts, f"Under {kind} censoring")


def truth_wins_for_a_cause(s: _Examined) -> None:
    """One cause of competing risks is scored properly, by experiment, or raises an error."""
    rng = np.random.default_rng(s.seed + 6)
    scale = np.exp(rng.normal(0, 0.4, MANY))
    any_cause = outcome(scale, rng.uniform(0, END, MANY), s.seed)
    cause = np.where(any_cause.event, 1 + (rng.uniform(size=MANY) > SHARE), 0)
    y = CompetingRisks(any_cause.time, cause).cause(1)

    def of_cause(share: float, shape: float, factor: float) -> Distribution:
        return Mixture([Weibull(shape, factor * scale), PointMass(np.inf)], [share, 1 - share])

    forecasts = {name: of_cause(SHARE, *parameters) for name, parameters in WRONG.items()}
    forecasts |= {"rare": of_cause(SHARE - 0.2, 1.5, 1.0), "frequent": of_cause(SHARE + 0.2, 1.5, 1.0)}
    truth, C = of_cause(SHARE, 1.5, 1.0), Uniform(0.0, END)
    try:
        s.losses(y, s.forecast(truth), C)
    except CenscoreError:
        return
    _expect_least(s, y, C, truth, forecasts, "After events of another cause")


def _expect_least(
    s: _Examined,
    y: Any,
    C: Distribution,
    truth: Distribution,
    forecasts: Mapping[str, Distribution],
    when: str,
) -> None:
    """The truth counts as beaten from four standard errors on."""
    least = s.losses(y, s.forecast(truth), C)
    for name, F in forecasts.items():
        mean, error = mean_loss((s.losses(y, s.forecast(F), C) - least).reshape(len(y), -1).mean(axis=1))
        won = f"a forecast that is too {name} wins by {-mean / error:.1f} standard errors"
        assert mean > -4 * error, f"{when} {won}."


def torch_agrees(s: _Examined) -> None:
    """In torch the numbers are the same and gradients finite."""
    if find_spec("torch") is None:
        return
    import torch

    tensor = torch.zeros(1, dtype=torch.float64)
    y, F, C = s.y.like(tensor), s.F.like(tensor), s.C.like(tensor)
    close(s.losses(y, F, C), s.losses(), max(s.rtol, 1e-9), "In torch", 1e-9)
    scale = torch.tensor(s.scale, requires_grad=True)
    loss = s.score(y, s.forecast(Weibull(torch.full_like(scale, 1.5), scale)), C)
    if loss.requires_grad:
        (gradient,) = torch.autograd.grad(loss.sum(), scale)
        assert bool(torch.isfinite(gradient).all()), "Gradients are not finite."


RULES = (
    one_loss_per_subject, subjects_apart, shared_distributions, horizon_censors, known_censoring,
    inputs_untouched, truth_wins, truth_wins_for_a_cause, torch_agrees,
)  # fmt: skip
