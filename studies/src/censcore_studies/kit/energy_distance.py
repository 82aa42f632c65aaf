"""How far forecasts are from a known truth after censoring, without the noise of outcomes."""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["excess"]


def excess(F: np.ndarray, G: np.ndarray, C: np.ndarray) -> tuple[float, float]:
    """Energy distance of forecast and truth after censoring, in per cent of the score of the truth.

    That is what the censored energy score of the forecast exceeds that of the truth by. The draws of a model
    come from noise that its subjects share, so that all pairs of a subject's draws are compared: few of them
    would leave an error of 0.1 to 0.2 that the spread of subjects does not show.

    Parameters
    ----------
    F, G : arrays, (n, m, k)
        Draws of the forecast, in random order, and of the truth.
    C : array, (n, m)
        Draws of the censoring time.

    Returns
    -------
    excess, error
        With the standard error over subjects.
    """
    distance, spread = _distances(F, G, C)
    unit = 100 / float(spread.mean())
    return unit * float(distance.mean()), unit * float(distance.std()) / np.sqrt(len(F))


@numba.njit
def _distances(F: np.ndarray, G: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The energy distance of the draws of each subject, and the energy score of the truth.

    Draw a meets draw a + lag, counted round, at the censoring time of the first.
    """
    n, m, k = F.shape
    lags = m // 2 - 1
    distance, spread = np.zeros(n), np.zeros(n)
    for i in range(n):
        for a in range(m):
            c = C[i, a]
            for lag in range(1, lags + 1):
                b = (a + lag) % m
                fg, gf, ff, gg = 0.0, 0.0, 0.0, 0.0
                for j in range(k):
                    f, g = min(F[i, a, j], c), min(G[i, a, j], c)
                    f2, g2 = min(F[i, b, j], c), min(G[i, b, j], c)
                    fg, gf = fg + (f - g2) ** 2, gf + (g - f2) ** 2
                    ff, gg = ff + (f - f2) ** 2, gg + (g - g2) ** 2
                distance[i] += np.sqrt(fg) + np.sqrt(gf) - np.sqrt(ff) - np.sqrt(gg)
                spread[i] += np.sqrt(gg)
    return distance / (2 * m * lags), spread / (2 * m * lags)
