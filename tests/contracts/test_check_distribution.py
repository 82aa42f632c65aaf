"""The contract of distributions can fail: each of these is wrong in one respect and is caught for it."""

from __future__ import annotations

import numpy as np
import pytest

from censcore.distributions import (
    Copula,
    Exponential,
    Gamma,
    Independent,
    LogNormal,
    Mixture,
    PointMass,
    Step,
    Uniform,
    Univariate,
    Weibull,
)
from censcore.testing import check_distribution

INF = float("inf")


class AtomWithoutLeftLimit(PointMass):
    def sf_left_at(self, t):
        return self.sf_at(t)


class LeftContinuousSurvival(PointMass):
    def sf_at(self, t):
        return self.sf_left_at(t)

    def cdf_at(self, t):
        return 1 - self.sf_left_at(t)


class LateQuantiles(Weibull):
    def icdf_at(self, p):
        return 1.001 * super().icdf_at(p)


class EarlyTailQuantiles(Weibull):
    def isf_at(self, p):
        return 0.999 * super().isf_at(p)


class QuantilesAfterTheFlatPart(Step):
    def icdf_at(self, p):
        return np.where(np.isclose(p, 0.5), 3.0, super().icdf_at(p))


class QuantileZeroAtTheLowEnd(Uniform):
    def icdf_at(self, p):
        return self._low + p * (self._high - self._low)


class WrongIntegral(Exponential):
    def integrated_sf_at(self, a, b):
        return 1.0001 * super().integrated_sf_at(a, b)


class FiniteMeanDespiteCure(Mixture):
    def integrated_sf_at(self, a, b):
        return super().integrated_sf_at(a, np.minimum(b, 1e6))


class ForgottenMassAtInfinity(Mixture):
    def prob_never(self):
        return 0 * super().prob_never()


class WrongDensity(LogNormal):
    def logpdf_at(self, t):
        return super().logpdf_at(t) + 1e-4


class UndeclaredDensity(Gamma):
    has_density = False


class WrongLogSurvival(Gamma):
    def logsf_at(self, t):
        return super().logsf_at(t) * (1 + 1e-9)


class ProbabilitiesThatDoNotAddUp(Weibull):
    def cdf_at(self, t):
        return super().cdf_at(t) * (1 - 1e-10)


class SurvivalAtInfinity(Exponential):
    def sf_at(self, t):
        return np.maximum(super().sf_at(t), 1e-12)


class UndeclaredJump(Univariate):
    """Survival jumps at 1, where it says that nothing happens."""

    def __init__(self):
        self.store(rate=np.ones(1))
        self._rate = self._rate[:, None]

    def sf_at(self, t):
        return np.exp(-self._rate * t) * np.where(t < 1, 1.0, 0.5)

    def logpdf_at(self, t):
        return np.log(self._rate) - self._rate * t + np.where(t < 1, 0.0, np.log(0.5))


class UnconditionalQuantiles(Weibull):
    def icdf_beyond_at(self, y, p):
        return np.maximum(y, self.icdf_at(p))


class DrawsOfAnotherLaw(Weibull):
    def draw(self, m, rng):
        return 1.2 * super().draw(m, rng)


class DrawsWithoutSeed(Weibull):
    def draw(self, m, rng):
        return super().draw(m, np.random.default_rng())


class OneRowOfDraws(Weibull):
    def draw(self, m, rng):
        return super().draw(m, rng)[:1]


class DeafToRows(Weibull):
    def take(self, rows):
        return self


class RepeatedWhenShared(Weibull):
    def take(self, rows):
        return self.mapped(lambda array: array[np.zeros_like(rows)])


class TakesAnything(Weibull):
    def sf(self, t):
        return self.sf_at(np.atleast_2d(t))


class DropsAxes(Weibull):
    def sf(self, t):
        return np.squeeze(super().sf(t))


class Unpicklable(Weibull):
    def __init__(self, shape, scale):
        super().__init__(shape, scale)
        self._secret = lambda: None


class Nameless(Weibull):
    def __repr__(self):
        return "<distribution>"


class CensoredTooLate(Weibull):
    def censor_at(self, tau):
        return super().censor_at(tau * 1.5)


class NaNGradient(Univariate):
    """Right in value; the textbook formula has a NaN gradient at time zero for shapes below one."""

    def __init__(self, shape, scale):
        self.store(shape=shape, scale=scale)
        self._shape, self._scale = self._shape[:, None], self._scale[:, None]

    def sf_at(self, t):
        return self.xp.exp(-((t / self._scale) ** self._shape))

    def logpdf_at(self, t):
        return Weibull(self._shape[:, 0], self._scale[:, 0]).logpdf_at(t)


class OtherNumbersInTorch(Weibull):
    def like(self, array):
        other = super().like(array)
        if not isinstance(array, np.ndarray):
            other._scale = other._scale * 1.01
        return other


ROWS = {"shape": [0.7, 1.5, 2.0], "scale": [1.0, 2.0, 3.0]}
CURED = {"components": [Exponential(1.0), PointMass(INF)], "weights": [0.7, 0.3]}

BROKEN = [
    (lambda: AtomWithoutLeftLimit([2.0, 3.0]), "sf just before t against sf_left"),
    (lambda: LeftContinuousSurvival([2.0, 3.0]), "sf just after t against sf"),
    (lambda: LateQuantiles(**ROWS), r"F\(icdf\(p\)-\) > p"),
    (lambda: EarlyTailQuantiles(**ROWS), r"sf\(isf\(p\)\) > p"),
    (
        lambda: QuantilesAfterTheFlatPart([1.0, 3.0], sf=[0.5, 0.25]),
        r"F\(icdf\(p\)-\) > p|icdf\(cdf\(t\)\) > t|icdf: level",
    ),
    (lambda: QuantileZeroAtTheLowEnd([1.0, 2.0], [3.0, 4.0]), r"icdf\(0\)"),
    (lambda: WrongIntegral([0.5, 2.0]), "integrated_sf"),
    (lambda: FiniteMeanDespiteCure(**CURED), r"mean\(\)"),
    (lambda: ForgottenMassAtInfinity(**CURED), "mass_at_infinity: simulation"),
    (lambda: WrongDensity([0.0, 1.0], 0.8), "integral of the density"),
    (lambda: UndeclaredDensity([0.5, 2.0], 1.0), "has_density is False"),
    (lambda: WrongLogSurvival([0.5, 2.0], 1.0), "logsf"),
    (lambda: ProbabilitiesThatDoNotAddUp(**ROWS), r"cdf \+ sf"),
    (lambda: SurvivalAtInfinity([0.5, 2.0]), "sf at infinity"),
    (lambda: UndeclaredJump(), "integral of the density"),
    (lambda: UnconditionalQuantiles(**ROWS), r"P\(T <= icdf_beyond\(y, p\) \| T >= y\) < p"),
    (lambda: DrawsOfAnotherLaw(**ROWS), "sf: simulation is"),
    (lambda: DrawsWithoutSeed(**ROWS), "The same seed gives different draws"),
    (lambda: OneRowOfDraws(**ROWS), "sample"),
    (lambda: DeafToRows(**ROWS), r"take\(permutation\): sf"),
    (lambda: RepeatedWhenShared(1.5, 2.0), "take repeats a distribution"),
    (lambda: TakesAnything(**ROWS), r"sf\(nan\) raises no InvalidInputError|has shape"),
    (lambda: DropsAxes(1.5, 2.0), r"sf of \(1, q\) has shape"),
    (lambda: Unpicklable(**ROWS), "can be copied, pickled and printed"),
    (lambda: Nameless(**ROWS), "repr does not name the class"),
    (lambda: CensoredTooLate(**ROWS), r"sf of censor_at\(tau\)"),
    (lambda: NaNGradient(np.array([0.7, 2.0]), np.array([1.0, 2.0])), "The gradient of .* is not finite"),
    (lambda: OtherNumbersInTorch(np.array([0.7, 1.5]), np.array([1.0, 2.0])), "sf in torch.float64"),
]


@pytest.mark.parametrize(("make", "complaint"), BROKEN)
def test_broken_distribution_is_caught(make, complaint):
    if "orch" in complaint or "gradient" in complaint:
        pytest.importorskip("torch")
    with pytest.raises(AssertionError, match=complaint):
        check_distribution(make())


MARGINALS = [Weibull([0.8, 1.5], 2.0), Exponential(1.0), LogNormal(0.0, 1.0)]


class SwappedCoordinates(Independent):
    def marginal(self, j):
        return super().marginal(1 - j if j in (0, 1) else j)


class FirstIsTheFirstCoordinate(Independent):
    def first(self):
        return self.marginal(0)


class IndependentDraws(Copula):
    def draw(self, m, rng):
        return Independent(self.marginals).draw(m, rng)


class WrongLikelihood(Copula):
    def log_likelihood_at(self, t, event):
        return super().log_likelihood_at(t, event) + 0.01 * event.sum(-1)


class Uncut(Independent):
    def censor_at(self, tau):
        return self


BROKEN_JOINT = [
    (lambda: SwappedCoordinates(MARGINALS), r"marginal\(0\).sf: simulation"),
    (lambda: FirstIsTheFirstCoordinate(MARGINALS), r"first\(\).sf: simulation"),
    (lambda: IndependentDraws("clayton", MARGINALS, theta=4.0), "survival of all coordinates: simulation"),
    (lambda: WrongLikelihood("clayton", MARGINALS, theta=2.0), r"log_likelihood with events in \(0,\)"),
    (lambda: Uncut(MARGINALS), "exceeds tau|beyond tau"),
]


@pytest.mark.parametrize(("make", "complaint"), BROKEN_JOINT)
def test_broken_joint_distribution_is_caught(make, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_distribution(make())


def test_only_distributions_are_checked():
    with pytest.raises(AssertionError, match="got ndarray"):
        check_distribution(np.ones(3))


def test_all_broken_rules_are_named_at_once():
    class Both(WrongIntegral):
        def icdf_at(self, p):
            return 1.001 * super().icdf_at(p)

    with pytest.raises(AssertionError) as caught:
        check_distribution(Both([0.5, 2.0]))
    assert "integrated_sf" in str(caught.value)
    assert "F(icdf(p)-) > p" in str(caught.value)


def test_a_distribution_of_tensors_is_checked_too():
    torch = pytest.importorskip("torch")
    check_distribution(Weibull(torch.tensor([0.7, 1.5]), 2.0))
    check_distribution(LogNormal(torch.zeros(2, dtype=torch.float64), 0.5))
    with pytest.raises(AssertionError, match="integrated_sf"):
        check_distribution(WrongIntegral(torch.tensor([0.5, 2.0], dtype=torch.float64)))
