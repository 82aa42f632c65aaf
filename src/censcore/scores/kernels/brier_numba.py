"""Scores at given times compiled for NumPy arrays: one pass over the survival probabilities."""

from __future__ import annotations

from censcore._kernels import compiled

_compile = compiled()


@_compile
def weighted_squares(S, column, y, never, t, living, dead, of_event, loss):  # type: ignore[no-untyped-def]
    """Squared errors times their weight, written into ``loss`` (n, q).

    From S (1 or n, J) and the column of each time in it, -1 for S = 1; y and never (n,); the factors of the
    weights of ``KnownAt``, t, living and dead (1 or n, q) and of_event (n,).
    """
    for i in range(y.size):
        s, at = S[i if S.shape[0] > 1 else 0], t[i if t.shape[0] > 1 else 0]
        while_alive = living[i if living.shape[0] > 1 else 0]
        after = dead[i if dead.shape[0] > 1 else 0]
        for j in range(t.shape[1]):
            alive, chance = y[i] > at[j], s[column[j]] if column[j] >= 0 else 1
            error = chance - 1 if alive or never[i] else chance
            loss[i, j] = error * error * (while_alive[j] if alive else of_event[i] * after[j])


@_compile
def chances(S, column, y, t, living, dead, of_event, chance, weight):  # type: ignore[no-untyped-def]
    """Write P(T > t) of the living and P(T <= t) of the others, one where nothing counts, and their weights.

    Arguments as above.
    """
    for i in range(y.size):
        s, at = S[i if S.shape[0] > 1 else 0], t[i if t.shape[0] > 1 else 0]
        while_alive = living[i if living.shape[0] > 1 else 0]
        after = dead[i if dead.shape[0] > 1 else 0]
        for j in range(t.shape[1]):
            alive, survival = y[i] > at[j], s[column[j]] if column[j] >= 0 else 1
            weight[i, j] = while_alive[j] if alive else of_event[i] * after[j]
            chance[i, j] = 1 if weight[i, j] == 0 else survival if alive else 1 - survival
