"""Estimating equations of Cox regression: rules for ties, and the residuals of each subject."""

from __future__ import annotations

import numpy as np

from censcore.estimators.risk_sets import RiskSets


class PartialScore:
    r"""Cox's score with Breslow's rule at ties, at gamma (p,) for Z (n, p), sorted as the risk sets.

    .. math:: U=\sum_u d_u(m^\varphi_u-m_u),\quad
        m^\varphi_u=\frac{\sum_{D_u}w_j\varphi_jZ_j}{\sum_{D_u}w_j\varphi_j},\quad
        m_u=\frac{\sum_{R_u}w_kr_kZ_k}{\sum_{R_u}w_kr_k},\quad
        h_u=\frac{\sum_{D_u}w_j\varphi_j}{\sum_{R_u}w_kr_k}

    with failures :math:`D_u` of total weight :math:`d_u` and the risk set :math:`R_u` at each jump u, and
    with :math:`\varphi_j=1`: the baseline jumps are Breslow's.

    Risks are relative to the largest, so that they do not overflow; ``valid`` is False where they underflow.
    """

    certain_failure_says_nothing = False

    def __init__(self, sets: RiskSets, Z: np.ndarray, gamma: np.ndarray) -> None:
        self.sets, self.Z, self.gamma = sets, Z, gamma
        eta = Z @ gamma
        self.top = eta.max(initial=-np.inf) if len(eta) else 0.0
        self.r = np.exp(eta - self.top)
        wr = sets.weight * self.r
        self.S, self.B = sets.at_risk(wr)
        self.open = sets.survived if self.certain_failure_says_nothing else np.ones(len(self.S), dtype=bool)
        self.valid = bool((self.S > 0).all() and (self.B[self.open & sets.survived] > 0).all())
        self.valid &= bool((self.r[sets.failed] > 1e-250).all())
        if not self.valid:
            return
        self.m = sets.at_risk(wr[:, None] * Z)[0] / self.S[:, None]
        self.Z_failed, self.w_failed = Z[sets.failed], sets.weight[sets.failed]
        self.h = np.full(len(sets.d), np.inf)
        self._solve()

    def _solve(self) -> None:
        """Set the jumps h, phi and phi (1 - kappa) of each failure, kappa = d log phi / d log(h r)."""
        self.h = self.sets.d / self.S
        self._set_failures(np.ones(len(self.w_failed)), np.ones(len(self.w_failed)))

    def _set_failures(self, phi: np.ndarray, rest: np.ndarray) -> None:
        sets, w = self.sets, self.w_failed
        self.phi, self.rest = phi, rest
        P, R = sets.over_failures(w * phi), sets.over_failures(w * rest)
        # where failure was certain up to rounding, a jump carries as little information as a last one
        self.open = self.open & (R > 1e-10 * P)
        self.d = np.where(self.open, sets.d, 0.0)
        self.P = np.where(self.open, P, 1.0)
        self.R = np.where(self.open, R, 1.0)  # - d(P - h S) / d log h
        m_phi = sets.over_failures((w * phi)[:, None] * self.Z_failed) / self.P[:, None]
        alone = (sets.count == 1)[sets.jump]
        self.centred = np.where(alone[:, None], 0.0, self.Z_failed - m_phi[sets.jump])  # Z_j - m_phi
        self.m_phi = m_phi

    @property
    def gradient(self) -> np.ndarray:
        """U."""
        return self.d @ (self.m_phi - self.m)

    @property
    def log_jump_slope(self) -> np.ndarray:
        """Derivative of log h_u by gamma, (J, p)."""
        rest_Z = self.sets.over_failures((self.w_failed * self.rest)[:, None] * self.Z_failed)
        return (self.P[:, None] * (self.m_phi - self.m) - rest_Z) / self.R[:, None]

    def information(self, share: np.ndarray | None = None) -> np.ndarray:
        """- dU / d gamma, where each jump counts by ``share``."""
        d = self.d if share is None else self.d * share
        sets, Z = self.sets, self.Z
        A = sets.weight * self.r * sets.while_at_risk(d / self.S)
        at_risk, mean = Z * np.sqrt(A)[:, None], self.m * np.sqrt(d)[:, None]
        risk = at_risk.T @ at_risk - mean.T @ mean
        moving = self.w_failed * (self.phi - self.rest) * (d / self.P)[sets.jump]
        if not moving.any():
            return risk
        slope = self.log_jump_slope
        return risk - (self.centred * moving[:, None]).T @ (self.Z_failed + slope[sets.jump])

    def variance(self) -> np.ndarray:
        """The variance of U under the model, weights being counts."""
        return self.information()

    def score_residuals(self) -> np.ndarray:
        """Derivative of U by the weight of each subject, jumps following, in the order of the times."""
        sets, j = self.sets, self.sets.jump
        # d m_phi / d log h, and what a unit of h phi - h r of a subject moves by it
        pull = -sets.over_failures((self.w_failed * self.rest)[:, None] * self.centred) / self.P[:, None]
        pull *= (self.d / self.R)[:, None]
        level = (self.d / self.S)[:, None]
        staying = sets.while_at_risk(level) * self.Z - sets.while_at_risk(level * self.m)
        h = np.where(self.open, self.h, 0.0)[:, None]
        residuals = -self.r[:, None] * (staying + sets.while_at_risk(h * pull))
        own = (self.phi * (self.d / self.P)[j])[:, None] * self.centred + self.phi[:, None] * pull[j]
        residuals[sets.failed] += self.open[j, None] * (self.m_phi - self.m)[j] + own
        return residuals

    def jump_residuals(self, derivative: np.ndarray) -> np.ndarray:
        """Sum over u of derivative_u d(log h_u) / dw_i at fixed gamma, (n, q) in the order of the times."""
        D = np.where(self.open[:, None], derivative, 0.0) / self.R[:, None]
        h = np.where(self.open, self.h, 0.0)[:, None]
        values = -self.r[:, None] * self.sets.while_at_risk(h * D)
        values[self.sets.failed] += self.phi[:, None] * D[self.sets.jump]
        return values

    def jumps(self) -> np.ndarray:
        """The jumps of the cumulative hazard of a subject with Z = 0."""
        return self.h * np.exp(-self.top)


class ProductLimitScore(PartialScore):
    r"""The estimating equations of P(T > t | x) = prod (1 - dLambda_0)^r, at one value of the coefficients.

    With :math:`h_u=-\log(1-d\Lambda_0(u))` a subject at risk fails at u with probability
    :math:`1-e^{-h_ur}`, and :math:`\varphi_j=h_ur_j/(1-e^{-h_ur_j})` makes both equations of
    :class:`PartialScore` unbiased for jumps of any size; the one for h is Kalbfleisch and
    Prentice's. Where one subject fails U is Cox's term; where all at risk fail it is zero.
    """

    certain_failure_says_nothing = True

    def _solve(self) -> None:
        """Newton's method in log h, within bounds that hold the solution."""
        sets, w, r, j = self.sets, self.w_failed, self.r[self.sets.failed], self.sets.jump
        A = sets.over_failures(w * r)
        with np.errstate(divide="ignore", over="ignore"):
            level = np.log1p(A / self.B)
            self.h = np.where(self.open, level * sets.d / A, np.inf)
        tied = self.open & (sets.count > 1)
        if tied.any():
            rows = tied[j]
            number = np.cumsum(tied) - 1
            self.h[tied] = _tied_jumps(w[rows], r[rows], number[j[rows]], self.B[tied], level[tied])
        x = np.where(self.open, self.h, 0.0)[j] * r
        self.valid = bool((x < 1e100).all())  # the rest would overflow
        x = np.minimum(x, 1e100)
        phi = np.where(x > 0, x / -np.expm1(-np.where(x > 0, x, 1.0)), 1.0)
        phi = np.where(self.open[j], phi, 0.0)
        self._set_failures(phi, phi**2 * np.exp(-x))

    def variance(self) -> np.ndarray:
        r"""The variance of U under the model, weights being counts.

        The equation of a jump is the score of its binary outcomes times c = d / sum(w phi), so its variance
        is c times its information; with a single failure it is Cox's, and its variance the information.
        """
        c = self.d / self.P
        return self.information(c + (1 - c) / np.maximum(self.sets.d, 1.0))


def _tied_jumps(
    w: np.ndarray, r: np.ndarray, jump: np.ndarray, B: np.ndarray, level: np.ndarray
) -> np.ndarray:
    """The h of each jump with sum over failures of w r / (exp(h r) - 1) = B, the risk of the survivors."""

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(jump, values, minlength=len(B))

    largest, smallest = np.zeros(len(B)), np.full(len(B), np.inf)
    np.maximum.at(largest, jump, r)
    np.minimum.at(smallest, jump, r)
    low, high = np.log(level / largest), np.log(level / smallest)
    log_h = np.clip(np.log(level * total(w) / total(w * r)), low, high)
    for _ in range(200):
        x = np.exp(log_h)[jump] * r
        phi = x / -np.expm1(-x)
        falling = w * phi * np.exp(-x)
        a = total(falling)
        with np.errstate(divide="ignore"):
            gap = np.log(a) - log_h - np.log(B)
        low, high = np.where(gap >= 0, log_h, low), np.where(gap <= 0, log_h, high)
        with np.errstate(invalid="ignore", divide="ignore"):
            newton = log_h + gap / (1 + total(falling * (phi - 1)) / a)
        inside = (newton >= low) & (newton <= high)  # False where it is not a number
        new = np.where(inside, newton, (low + high) / 2)
        moved = np.abs(new - log_h).max()
        log_h = new
        if moved < 1e-14:
            break
    return np.exp(log_h)


class EfronScore(PartialScore):
    r"""Efron's rule at ties, for coefficients and baseline.

    For the l-th of d tied events, l = 0, ..., d - 1, the share l/d of all of them is taken out of the risk
    set, whose total risk is then :math:`S_l`. Weights of tied events are averaged, and the baseline jumps by
    :math:`h=\sum_l\bar w/S_l`.
    """

    def _solve(self) -> None:
        super()._solve()
        sets, j = self.sets, self.sets.jump
        started = np.cumsum(sets.count) - sets.count
        self.share = (np.arange(len(j)) - started[j]) / sets.count[j]
        self.w_mean = (sets.d / sets.count)[j]
        died = self.w_failed * self.r[sets.failed]
        self.totals = self.S[j] - self.share * sets.over_failures(died)[j]
        self.valid = bool((self.totals > 0).all())
        sums = (self.S[:, None] * self.m)[j]
        sums = sums - self.share[:, None] * sets.over_failures(died[:, None] * self.Z_failed)[j]
        totals = np.where(self.totals > 0, self.totals, 1.0)
        self.means = sums / totals[:, None]
        self.level = self.w_mean / totals
        self.h = sets.over_failures(self.level)

    @property
    def gradient(self) -> np.ndarray:
        """U."""
        return self.w_failed @ self.Z_failed - self.w_mean @ self.means

    @property
    def log_jump_slope(self) -> np.ndarray:
        """Derivative of log h_u by gamma, (J, p)."""
        return -self.sets.over_failures(self.level[:, None] * self.means) / self.h[:, None]

    def information(self, share: np.ndarray | None = None) -> np.ndarray:
        """- dU / d gamma."""
        sets, Z = self.sets, self.Z
        A = sets.weight * self.r * sets.while_at_risk(self.h)
        taken_out = sets.over_failures(self.share * self.level)[sets.jump]
        A[sets.failed] -= self.w_failed * self.r[sets.failed] * taken_out
        return (Z * A[:, None]).T @ Z - (self.means * self.w_mean[:, None]).T @ self.means

    def score_residuals(self) -> np.ndarray:
        """Derivative of U by the weight of each subject, in the order of the times."""
        sets, j = self.sets, self.sets.jump
        level = self.level[:, None]
        sums = [sets.over_failures(v) for v in (level, level * self.means)]
        staying = sets.while_at_risk(sums[0]) * self.Z - sets.while_at_risk(sums[1])
        residuals = -self.r[:, None] * staying
        out = [sets.over_failures(self.share[:, None] * v)[j] for v in (level, level * self.means)]
        mean = sets.over_failures(self.means)[j] / sets.count[j, None]
        r = self.r[sets.failed][:, None]
        residuals[sets.failed] += self.Z_failed - mean + r * (out[0] * self.Z_failed - out[1])
        return residuals

    def jump_residuals(self, derivative: np.ndarray) -> np.ndarray:
        """Sum over u of derivative_u d(log h_u) / dw_i at fixed gamma, (n, q) in the order of the times."""
        sets, j = self.sets, self.sets.jump
        D = derivative / self.h[:, None]
        squares = self.level / self.totals
        values = -self.r[:, None] * sets.while_at_risk(D * sets.over_failures(squares)[:, None])
        own = (self.h / sets.d)[j] + self.r[sets.failed] * sets.over_failures(self.share * squares)[j]
        values[sets.failed] += own[:, None] * D[j]
        return values


#: The estimating equations of each rule for ties.
SCORES = {"product-limit": ProductLimitScore, "efron": EfronScore, "breslow": PartialScore}
