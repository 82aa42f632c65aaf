"""The CRPS of step forecasts, compiled for NumPy: equal to the formulas of ``_squares`` up to rounding.

All take ``forecast``, ascending times and the survival after each, both (1 or n, J), and observed times y,
(n,); ``reach`` is 1/G(y-) for events, 0 for censored subjects. They return one loss per subject.
"""

from __future__ import annotations

import numpy as np

from censcore._kernels import compiled
from censcore._risk_tables import RISKS

# Sums may be reordered (so that they vectorize); NaN, infinities and signed zeros keep their meaning.
_compile = compiled(fastmath={"reassoc", "contract"})

TERMS = 15  # of the polynomials of antiderivatives on shared panels


@_compile
def step_crps_on_panels(forecast, y, reach, edges, areas):  # type: ignore[no-untyped-def]
    """Under smooth censoring distributions that end with the last of P panels, with edges (P + 1,).

    ``areas`` under G are those before each panel, (1 or n, P), and inside it as a polynomial in x from -1 to
    1, (1 or n, P, TERMS).
    """
    (times, sf), (before, powers) = forecast, areas
    n, last = y.size, edges.size - 2
    loss = np.empty(n)
    for i in range(n):
        t, S = times[i if times.shape[0] > 1 else 0], sf[i if sf.shape[0] > 1 else 0]
        j = _before(t, y[i])
        loss[i] = _below(t, S, y[i], j)
        if reach[i] == 0:
            continue
        row = i if before.shape[0] > 1 else 0
        p = min(max(_before(edges, y[i]) - 1, 0), last)
        x = 2 * (y[i] - edges[p]) / (edges[p + 1] - edges[p]) - 1
        base = before[row, p] + _power_sum(powers[row, p], x)
        total, stop = 0.0, _before(t, edges[last + 1])
        while j < stop:
            later = stop if p == last else j + _before(t[j:stop], edges[p + 1])
            if later > j:
                level = S[j - 1] if j > 0 else 1.0
                jumps = t[j:later], S[j:later]
                total += _on_panel(jumps, level, before[row, p] - base, powers[row, p], edges[p : p + 2])
            j, p = later, p + 1
        level = S[stop - 1] if stop > 0 else 1.0
        if level > 0:
            total += level**2 * (before[row, last] + _power_sum(powers[row, last], 1.0) - base)
        loss[i] += reach[i] * total
    return loss


@_compile
def _on_panel(jumps, level, offset, powers, edges):  # type: ignore[no-untyped-def]
    """The sum of (S_{j-1}² - S_j²) times the area from y to t_j over the jumps in a panel."""
    t, S = jumps
    start, per_unit = edges[0], 2 / (edges[1] - edges[0])
    area = offset + _power_sum(powers, (t[0] - start) * per_unit - 1)
    total = (level - S[0]) * (level + S[0]) * area
    for j in range(t.size - 1):
        area = offset + _power_sum(powers, (t[j + 1] - start) * per_unit - 1)
        total += (S[j] - S[j + 1]) * (S[j] + S[j + 1]) * area
    return total


@_compile
def _power_sum(powers, x):  # type: ignore[no-untyped-def]
    """Horner's scheme; a number of terms that is known to the compiler lets it work on many x at once."""
    total = powers[TERMS - 1]
    for d in range(TERMS - 2, -1, -1):
        total = total * x + powers[d]
    return total


@_compile
def step_in_weighted_time(forecast, y, below, beyond, reach, never):  # type: ignore[no-untyped-def]
    """Integrals of F² up to y and of S² from y on, each in its weighted time.

    ``below`` are the integrals of the weight of F² up to each of the times, (1 or n, J), and up to each y;
    ``beyond`` those of the weight of S², and up to the end, (1 or n,), finite. ``never`` (n,) says whether
    the event is of another cause.
    """
    (times, sf), (below, below_y), (beyond, beyond_y, end) = forecast, below, beyond
    loss = np.empty_like(y)
    for i in range(y.size):
        S, w = sf[i if sf.shape[0] > 1 else 0], below[i if below.shape[0] > 1 else 0]
        total = _square_below(w, S, below_y[i])
        if reach[i] > 0:
            v, h = beyond[i if beyond.shape[0] > 1 else 0], end[i if end.size > 1 else 0]
            if never[i]:
                t = times[i if times.shape[0] > 1 else 0]
                first, finite = _before(t, y[i]), _before(t, np.inf)
                total += reach[i] * _never_until(v[:finite], S, beyond_y[i], first, h)
            else:
                total += reach[i] * _square_beyond(v, S, beyond_y[i], h)
        loss[i] = total
    return loss


@_compile
def step_under_risks(forecast, rows, y, mixed, reach):  # type: ignore[no-untyped-def]
    """F² up to y, and S² from y on in a weighted time that is mixed, for each subject, from K that all share.

    Forecasts have common times; ``rows`` (n,) says which belong to the subjects. ``mixed`` are the weights
    (n, K) of the weighted times, these up to each time and up to the end, (K, J + 1), and the mixture to y.
    """
    (times, sf), (mix, table, mixed_y) = forecast, mixed
    loss, t = np.empty(y.size), times[0]
    for i in range(y.size):
        S, first = sf[rows[i] if sf.shape[0] > 1 else 0], _before(t, y[i])
        loss[i] = _below(t, S, y[i], first)
        if reach[i] > 0:
            before = S[first - 1] if first > 0 else 1.0
            loss[i] += reach[i] * (_mixed_falls(S, before, mix[i], table) - before * before * mixed_y[i])
    return loss


@_compile
def _mixed_falls(S, before, mix, table):  # type: ignore[no-untyped-def]
    """The sum of the falls of S² since S was ``before``, each times its weighted time.

    A loop over all columns, and a number of risks that is known, let the compiler work on many at once.
    """
    a, left = _smaller(S[0], before), _smaller(S[S.size - 1], before)
    total, first, last = 0.0, (before - a) * (before + a), left * left  # what is left falls at the end
    for k in range(RISKS):
        total += mix[k] * (first * table[k, 0] + last * table[k, S.size])
    for j in range(S.size - 1):
        a, b, mixed = _smaller(S[j], before), _smaller(S[j + 1], before), 0.0
        for k in range(RISKS):
            mixed += mix[k] * table[k, j + 1]
        total += (a - b) * (a + b) * mixed
    return total


@_compile
def _square_below(w, S, y):  # type: ignore[no-untyped-def]
    """The sum of (F_j² - F_{j-1}²)(y - w_j)_+ over all jumps: no branch depends on y."""
    total = (1 - S[0]) ** 2 * max(y - w[0], 0.0)
    for j in range(1, S.size):
        total += (S[j - 1] - S[j]) * (2 - S[j - 1] - S[j]) * max(y - w[j], 0.0)
    return total


@_compile
def _square_beyond(v, S, y, end):  # type: ignore[no-untyped-def]
    """The sum of (S_{j-1}² - S_j²)(min(v_j, end) - y)_+, where what is left falls at the end."""
    total = (1 - S[0]) * (1 + S[0]) * max(min(v[0], end) - y, 0.0) + S[S.size - 1] ** 2 * (end - y)
    for j in range(1, S.size):
        total += (S[j - 1] - S[j]) * (S[j - 1] + S[j]) * max(min(v[j], end) - y, 0.0)
    return total


@_compile
def step_crps(forecast, y, kind, censoring):  # type: ignore[no-untyped-def]
    """Under step censoring distributions with K jumps c, and infinity after them, (1 or n, K + 1).

    ``kind`` says whether there is an event, and whether one of another cause, (n,). The area under G up to a
    time t with k jumps before it is ``area[k] + G[k] t``, (1 or n, K + 1) both. One distribution for all
    comes with ``cells``, how many of its jumps lie before the begin of each of many short intervals, and how
    many of these a unit of time has; for several there are none.
    """
    (times, sf), (event, never), (c, G, area, cells, per_unit) = forecast, kind, censoring
    n = y.size
    loss = np.empty_like(y)
    for i in range(n):
        t, S = times[i if times.shape[0] > 1 else 0], sf[i if sf.shape[0] > 1 else 0]
        first = _before(t, y[i])
        total = _below(t, S, y[i], first)
        loss[i] = total
        if not (event[i] or never[i]):
            continue
        t = t[: _before(t, np.inf)]  # members at infinity are mass left after the last finite one
        c_i, G_i = c[i if c.shape[0] > 1 else 0], G[i if G.shape[0] > 1 else 0]
        if never[i]:
            area_i = area[i if area.shape[0] > 1 else 0]
            loss[i] = total + _never_beyond(t, S, y[i], first, c_i, G_i, area_i)
        elif c_i.size == 2 and G_i[1] == 0:
            loss[i] = total + _until(t, S, y[i], first, c_i[0])
        else:
            area_i = area[i if area.shape[0] > 1 else 0]
            loss[i] = total + _beyond(t, S, y[i], first, c_i, G_i, area_i, cells, per_unit)
    return loss


@_compile
def _below(t, S, y, first):  # type: ignore[no-untyped-def]
    """The sum of (F_j² - F_{j-1}²)(y - t_j) over the jumps before y."""
    t, S = t[:first], S[:first]
    if first == 0:
        return 0.0
    total = (1 - S[0]) ** 2 * (y - t[0])
    for j in range(t.size - 1):
        total += (S[j] - S[j + 1]) * (2 - S[j + 1] - S[j]) * (y - t[j + 1])
    return total


@_compile
def _until(t, S, y, first, c):  # type: ignore[no-untyped-def]
    """The sum of (S_{j-1}² - S_j²)(min(t_j, c) - y) over the later jumps: C is known to be c."""
    before, left = (S[first - 1] if first > 0 else 1.0), (S[t.size - 1] if t.size > 0 else 1.0)
    total = left**2 * (c - y) if left > 0 else 0.0
    t, S = t[first:], S[first : t.size]
    if t.size > 0:
        total += (before - S[0]) * (before + S[0]) * (_smaller(t[0], c) - y)
    for j in range(t.size - 1):
        total += (S[j] - S[j + 1]) * (S[j] + S[j + 1]) * (_smaller(t[j + 1], c) - y)
    return total


@_compile
def _smaller(a, b):  # type: ignore[no-untyped-def]
    """That of two numbers which are not NaN: the built-in one asks, and many at once take longer."""
    return a if a < b else b


@_compile
def _beyond(t, S, y, first, c, G, area, cells, per_unit):  # type: ignore[no-untyped-def]
    """The sum of (S_{j-1}² - S_j²) times the area under G from y to t_j over the later jumps, over G(y-)."""
    k, last = _before(c, y), _before(c, np.inf)
    reached, base = G[k], area[k] + G[k] * y
    if G[last] == 0:
        t = t[: _before(t, c[last - 1])]  # the area is the same from the end of C on
    total, before = 0.0, (S[first - 1] if first > 0 else 1.0)
    t, S = t[first:], S[first : max(first, t.size)]
    for j in range(t.size):
        if cells.size > 0:
            at = _looked_up(c, t[j], cells, per_unit)
        else:
            k = _gallop(c, t[j], k)
            at = np.uintp(k)
        total += (before - S[j]) * (before + S[j]) * ((area[at] - base) + G[at] * t[j])
        before = S[j]
    if before > 0:
        total += before**2 * (area[last] - base) if G[last] == 0 else np.inf
    return total / reached


@_compile
def _never_until(t, S, y, first, c):  # type: ignore[no-untyped-def]
    """The integral of F² from y to c: after an event of another cause the event never comes."""
    before = 1 - S[first - 1] if first > 0 else 0.0
    total = before**2 * (c - y)
    for j in range(first, _before(t, c)):
        F = 1 - S[j]
        total += (F - before) * (F + before) * (c - t[j])
        before = F
    return total


@_compile
def _never_beyond(t, S, y, first, c, G, area):  # type: ignore[no-untyped-def]
    """The integral of F² G from y on, over G(y-)."""
    k, last = _before(c, y), _before(c, np.inf)
    reached, left, end = G[k], G[last], area[last]
    before = 1 - S[first - 1] if first > 0 else 0.0
    total = before**2 * (end - (area[k] + reached * y)) if before > 0 else 0.0
    for j in range(first, t.size):
        F = 1 - S[j]
        if before < F:
            k = _gallop(c, t[j], k)
            total += (F - before) * (F + before) * (end - (area[k] + G[k] * t[j]))
            before = F
    if left > 0:
        return np.inf if before > 0 else 0.0
    return total / reached


@_compile
def _before(t, at):  # type: ignore[no-untyped-def]
    """How many of the ascending times lie before a time: halves are chosen without a branch."""
    low, width = 0, t.size
    while width > 1:
        half = width // 2
        low += half if t[low + half - 1] < at else 0
        width -= half
    return low + 1 if width == 1 and t[low] < at else low


@_compile
def _looked_up(c, t, cells, per_unit):  # type: ignore[no-untyped-def]
    """The same for one of many times; without a sign, places need no test for counting from the end."""
    k = np.uintp(cells[np.uintp(np.int64(_smaller(t * per_unit, cells.size - 1.0)))])
    while c[k] < t:
        k += np.uintp(1)
    return k


@_compile
def _gallop(c, t, k):  # type: ignore[no-untyped-def]
    """How many jumps lie before t, in growing strides from k of them: there may be many between two times."""
    stride = 1
    while k + stride <= c.size and c[k + stride - 1] < t:
        k += stride
        stride *= 2
    low, high = k, min(k + stride, c.size + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if c[middle - 1] < t:
            low = middle
        else:
            high = middle
    return low
