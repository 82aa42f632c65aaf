"""Censoring that depends on a covariate: a pooled censoring distribution is biased, a conditional one is not.

T and C are exponential; a covariate x shortens T and lengthens follow-up, or the other way round. Two
forecasts are scored: the truth, and one that understates the effect of x. Means are over many data sets;
``warned`` is how often the diagnostic found (p < 0.01) that censoring depends on covariates, which in the
first scenario, where it does not, is its level.
"""

from __future__ import annotations

import numpy as np

import censcore as cs

DATA_SETS, SUBJECTS, HORIZON, TIME = 200, 1000, 1.2, 0.8
EFFECTS = {"C does not depend on x": 0.0, "C depends on x": 0.5, "C depends on x, the other way": -0.5}
ESTIMATES = ("true", "pooled Kaplan-Meier", "Cox given x")


def draw(effect: float, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = rng.normal(size=(n, 1))
    T = rng.exponential(np.exp(-0.7 * x[:, 0]))
    C = rng.exponential(1.5 * np.exp(effect * x[:, 0]))
    return x, T, C


def forecasts(x: np.ndarray) -> dict[str, cs.Distribution]:
    return {
        "truth": cs.Exponential(np.exp(0.7 * x[:, 0])),
        "understated": cs.Exponential(np.exp(0.2 * x[:, 0])),
    }


def scores(y: cs.RightCensored, F: cs.Distribution, C: cs.Distribution) -> np.ndarray:
    brier = cs.brier_score(y, F, C, TIME, scale="ipcw", horizon=HORIZON).mean()
    integrated = cs.integrated_brier_score(y, F, C, scale="ipcw", normalize=True, horizon=HORIZON).mean()
    return np.array([brier, integrated])


def main() -> None:
    print(
        f"{DATA_SETS} data sets of {SUBJECTS} subjects; "
        f"ipcw Brier score at {TIME:g}, integrated up to {HORIZON:g}"
    )
    for title, effect in EFFECTS.items():
        rng = np.random.default_rng(0)
        x, T, _ = draw(effect, 400_000, rng)
        seen = cs.RightCensored(T, np.ones(len(T)))
        latent = {name: scores(seen, F, cs.PointMass(np.inf)) for name, F in forecasts(x).items()}
        found: dict[tuple[str, str], list[np.ndarray]] = {(G, F): [] for G in ESTIMATES for F in latent}
        warned = 0
        for _ in range(DATA_SETS):
            x, T, C = draw(effect, SUBJECTS, rng)
            y = cs.RightCensored(np.minimum(T, C), T <= C)
            pooled = cs.Censoring(cs.KaplanMeier()).fit(x, y).predict_distribution(x)
            given = cs.Censoring(cs.CoxRegression()).fit(x, y).predict_distribution(x)
            exact = cs.Exponential(np.exp(-effect * x[:, 0]) / 1.5)
            warnings = cs.censoring_diagnostic(y, pooled, x, horizon=HORIZON).warnings
            warned += any("censoring depends on covariates" in warning for warning in warnings)
            for estimate, G in zip(ESTIMATES, (exact, pooled, given), strict=True):
                for name, F in forecasts(x).items():
                    found[estimate, name].append(scores(y, F, G))
        show(title, latent, found, warned)


def show(
    title: str,
    latent: dict[str, np.ndarray],
    found: dict[tuple[str, str], list[np.ndarray]],
    warned: int,
) -> None:
    print(f"\n{title}; warned in {100 * warned / DATA_SETS:.0f} % of the data sets")
    print(f"{'bias, %':22s}{'truth':^22s}{'understated':^22s}{'gain of the truth':^22s}")
    print(f"{'':22s}" + 3 * f"{'Brier':>11s}{'integrated':>11s}")
    gain = latent["understated"] - latent["truth"]
    for estimate in ESTIMATES:
        means = {name: np.mean(found[estimate, name], axis=0) for name in latent}
        cells = [100 * (means[name] / latent[name] - 1) for name in latent]
        cells.append(100 * ((means["understated"] - means["truth"]) / gain - 1))
        print(f"{estimate:22s}" + "".join(f"{v:+11.1f}" for pair in cells for v in pair), flush=True)
    spread = np.std(found["true", "truth"], axis=0) / np.sqrt(DATA_SETS) / latent["truth"]
    print(f"{'standard error':22s}" + "".join(f"{100 * value:11.1f}" for value in spread))


if __name__ == "__main__":
    main()
