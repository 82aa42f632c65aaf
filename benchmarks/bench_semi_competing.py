"""Which comes first, recurrence or death? Censored engression under three codings of the same data.

An illness-death process with gamma frailty and four covariates, of which two matter; C is uniform on
[0.5, 8]; 2,000 subjects. Root mean square error and bias, over 500 new subjects, of the chance of a
recurrence before death, ever and within 7 years (later ones are hardly observed), and the share of draws with
a recurrence after death.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch

import censcore as cs

SUBJECTS, NEW, SEEDS, END = 2000, 500, (0, 1), 7.0


def simulate(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Covariates, observed times and events (n, 2), and both true chances."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    frailty = rng.gamma(2.0, 0.5, n)
    recurrence, death = 0.3 * np.exp(0.8 * X[:, 0]), 0.2 * np.exp(0.6 * X[:, 1])
    first = rng.exponential(size=n) / (recurrence * frailty)
    alone = rng.exponential(size=n) / (death * frailty)
    recurs = first < alone
    dies = np.where(recurs, first + rng.exponential(size=n) / (3 * death * frailty), alone)
    C = rng.uniform(0.5, 8.0, n)
    end = np.minimum(dies, C)
    first = np.where(recurs, first, np.inf)
    time = np.column_stack([np.minimum(first, end), end])
    event = np.column_stack([first <= end, dies <= C])
    ever = recurrence / (recurrence + death)
    within = ever * (1 - (1 + END * (recurrence + death) * 0.5) ** -2.0)
    return X, time, event, ever, within


def codings(time: np.ndarray, event: np.ndarray) -> dict[str, cs.SemiCompetingRisks | cs.RightCensored]:
    dead = (time[:, 0] == time[:, 1]) & event[:, 1]
    either = np.column_stack([event[:, 0] | dead, event[:, 1]])
    return {
        "SemiCompetingRisks": cs.SemiCompetingRisks(time, event),
        '"recurrence or death"': cs.RightCensored(time, either),
        "death as censoring": cs.RightCensored(time, event),
    }


def censoring(y: cs.SemiCompetingRisks | cs.RightCensored) -> cs.Distribution:
    """The distribution of C as each coding has it: where all events were seen, C is not."""
    if isinstance(y, cs.RightCensored):  # an estimate from both times is refused where death censors
        y = cs.RightCensored(y.time.max(axis=1), y.event.all(axis=1))
    return cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # two of the codings warn
    columns = f"{'ever: RMSE':>12}{'bias':>8}{'by 7: RMSE':>12}{'bias':>8}{'after death':>13}"
    print(f"{'coding':<24}{'seed':>5}{columns}")
    for seed in SEEDS:
        X, time, event, _, _ = simulate(SUBJECTS, seed)
        new, _, _, ever, within = simulate(NEW, seed + 1000)
        for name, y in codings(time, event).items():
            model = cs.CensoredEngression(random_state=seed, device="cpu")
            z = model.fit(X, y, censoring=censoring(y)).sample(new)
            first = z[..., 0] < z[..., 1]
            errors = [first.mean(axis=1) - ever, (first & (z[..., 0] <= END)).mean(axis=1) - within]
            cells = "".join(f"{np.sqrt((e**2).mean()):>12.3f}{e.mean():>+8.3f}" for e in errors)
            after = (~first & np.isfinite(z[..., 0])).mean()
            print(f"{name:<24}{seed:>5}{cells}{after:>13.1%}".replace("%", " %"), flush=True)


if __name__ == "__main__":
    main()
