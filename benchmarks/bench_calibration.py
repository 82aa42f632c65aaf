"""Level and power of the test of D-calibration: the true forecast, and a hazard too large by a quarter.

T and C are exponential, with none, a third or three quarters of the subjects censored; in the discrete
scenario both are rounded up to multiples of 0.4, and the forecast is the distribution of the rounded T.
"""

from __future__ import annotations

import numpy as np

import censcore as cs
from censcore.published import d_calibration

DATA_SETS = 1000


def main() -> None:
    print(f"D-calibration: rejected at 5 %, {DATA_SETS} data sets")
    print(f"{'':24s}{'true forecast':^27s}{'hazard 1/4 too large':^27s}")
    print(f"{'censored':24s}" + 2 * "".join(f"{f'n = {n}':>9s}" for n in (100, 500, 2000)))
    for discrete in (False, True):
        for censored in (0.0, 0.33, 0.75):
            rates = [rejected(n, censored, discrete) for n in (100, 500, 2000)]
            title = f"{100 * censored:2.0f} %, {'discrete' if discrete else 'continuous'}"
            cells = [rate[k] for k in (0, 1) for rate in rates]
            print(f"{title:24s}" + "".join(f"{100 * cell:8.1f}%" for cell in cells), flush=True)


def rejected(n: int, censored: float, discrete: bool) -> tuple[float, float]:
    rng, months = np.random.default_rng(3), np.arange(1.0, 61.0)
    count = np.zeros(2)
    forecasts = [
        cs.Step(months, sf=np.exp(-rate * months / 2.5)[None, :]) if discrete else cs.Exponential(rate)
        for rate in (1.0, 1.25)
    ]
    for _ in range(DATA_SETS):
        T = rng.exponential(1.0, n)
        C = rng.exponential((1 - censored) / censored, n) if censored else np.full(n, np.inf)
        T, C = (np.ceil(2.5 * T), np.ceil(2.5 * C)) if discrete else (T, C)
        y = cs.RightCensored(np.minimum(T, C), T <= C)
        count += [d_calibration(y, F).p_value < 0.05 for F in forecasts]
    return float(count[0] / DATA_SETS), float(count[1] / DATA_SETS)


if __name__ == "__main__":
    main()
