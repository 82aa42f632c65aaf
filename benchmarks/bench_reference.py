"""What the Kaplan-Meier reference adds to a comparison: one curve, with a jump for each training subject.

Survival matrices of 100 times, all default scores, as many training subjects as scored ones. The costs are
CPU seconds of one process, so that other work on the machine does not count.
"""

from __future__ import annotations

import numpy as np

import censcore as cs
from benchmarks.timing import alternate

TIMES, REPEATS = 100, 3
SIZES = ((20_000, 1), (60_000, 1))


def main() -> None:
    print(f"{'subjects':>9s}{'models':>8s}{'with reference':>16s}{'without':>9s}{'reference / model':>19s}")
    for n, models in SIZES:
        compare(5000, 1, 1)  # compiles
        with_it, without = compare(n, models, REPEATS)
        share = (with_it - without) * models / without
        print(f"{n:9,d}{models:8d}{with_it:14.1f} s{without:7.1f} s{share:19.2f}")


def compare(n: int, models: int, repeats: int) -> tuple[float, float]:
    """CPU seconds of a comparison with and without the reference."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=2 * n)
    T, C = rng.weibull(1.5, 2 * n) * np.exp(0.5 * x), rng.uniform(0, 4, 2 * n)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    grid = np.linspace(0.04, 4, TIMES)
    forecasts = {
        f"model {k}": cs.Step(grid, sf=np.exp(-((grid / np.exp((0.5 - 0.1 * k) * x[n:, None])) ** 1.5)))
        for k in range(models)
    }

    def of(reference: str | None) -> object:
        censoring = cs.Censoring(cs.KaplanMeier())
        return cs.compare(forecasts, y[n:], censoring, train=(None, y[:n]), reference=reference)

    taken = alternate(repeats, with_it=lambda: of("kaplan-meier"), without=lambda: of(None))
    return taken["with_it"].cpu, taken["without"].cpu


if __name__ == "__main__":
    main()
