"""The CRPS of step forecasts, compiled for NumPy: equal to the formulas of ``_squares`` up to rounding.

All take ``forecast``, ascending times and the survival after each, both (1 or n, J), and observed times y,
(n,); ``reach`` is 1/G(y-) for events, 0 for censored subjects. They return one loss per subject.
"""

from __future__ import annotations

import numpy as np

from censcore._kernels import compiled

# Sums may be reordered (so that they vectorize); NaN, infinities and signed zeros keep their meaning.
_compile = compiled(fastmath={"reassoc", "contract"})


@_compile
def step_crps_on_panels(forecast, y, reach, edges, areas):  # type: ignore[no-untyped-def]
    """Under smooth censoring distributions that end with the last of P panels, with edges (P + 1,).

    ``areas`` under G are those before each panel, (1 or n, P), and inside it as a polynomial in x from -1 to
    1, (1 or n, P, D).
    """
    (times, sf), (before, powers) = forecast, areas
    n, last = y.size, edges.size - 2
    loss = np.empty(n)
    for i in range(n):
        t, S = times[i if times.shape[0] > 1 else 0], sf[i if sf.shape[0] > 1 else 0]
        first = np.searchsorted(t, y[i])
        loss[i] = _below(t, S, y[i], first)
        if reach[i] == 0:
            continue
        row = i if before.shape[0] > 1 else 0
        p = min(max(np.searchsorted(edges, y[i]) - 1, 0), last)
        base = before[row, p] + _power_sum(powers[row, p], edges[p], edges[p + 1], y[i])
        stop = np.searchsorted(t, edges[last + 1])
        total, level, j = 0.0, (S[first - 1] if first > 0 else 1.0), first
        while j < stop:
            while edges[p + 1] < t[j]:
                p += 1
            offset = before[row, p] - base
            while j < stop and t[j] <= edges[p + 1]:
                area = offset + _power_sum(powers[row, p], edges[p], edges[p + 1], t[j])
                total += (level - S[j]) * (level + S[j]) * area
                level = S[j]
                j += 1
        if level > 0:
            a, b = edges[last], edges[last + 1]
            total += level**2 * (before[row, last] + _power_sum(powers[row, last], a, b, b) - base)
        loss[i] += reach[i] * total
    return loss


@_compile
def _power_sum(powers, a, b, t):  # type: ignore[no-untyped-def]
    """Horner's scheme at the place of t in the panel from a to b."""
    x = 2 * (t - a) / (b - a) - 1
    total = powers[powers.size - 1]
    for d in range(powers.size - 2, -1, -1):
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
                first, finite = np.searchsorted(t, y[i]), np.searchsorted(t, np.inf)
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
    loss, falls, t = np.empty(y.size), np.empty(table.shape[1]), times[0]
    for i in range(y.size):
        S, first = sf[rows[i] if sf.shape[0] > 1 else 0], np.searchsorted(t, y[i], side="right")
        loss[i] = _below(t, S, y[i], first)
        if reach[i] > 0:
            before = S[first - 1] if first > 0 else 1.0
            total = -before * before * mixed_y[i]
            for j in range(first, S.size):
                falls[j] = (before - S[j]) * (before + S[j])
                before = S[j]
            falls[S.size] = before * before  # what is left falls at the end
            for k in range(table.shape[0]):
                total += mix[i, k] * _product(falls[first:], table[k, first:])
            loss[i] += reach[i] * total
    return loss


@_compile
def _product(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
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
    """Under step censoring distributions: times, survival after each and the area up to each, (1 or n, K).

    ``kind`` says whether there is an event, and whether one of another cause, (n,).
    """
    (times, sf), (event, never), (c, G, area) = forecast, kind, censoring
    n = y.size
    loss = np.empty_like(y)
    for i in range(n):
        t, S = times[i if times.shape[0] > 1 else 0], sf[i if sf.shape[0] > 1 else 0]
        first = np.searchsorted(t, y[i])
        total = _below(t, S, y[i], first)
        loss[i] = total
        if not (event[i] or never[i]):
            continue
        t = t[: np.searchsorted(t, np.inf)]  # members at infinity are mass left after the last finite one
        c_i, G_i = c[i if c.shape[0] > 1 else 0], G[i if G.shape[0] > 1 else 0]
        if never[i]:
            area_i = area[i if area.shape[0] > 1 else 0]
            loss[i] = total + _never_beyond(t, S, y[i], first, c_i, G_i, area_i)
        elif c_i.size == 1 and G_i[0] == 0:
            loss[i] = total + _until(t, S, y[i], first, c_i[0])
        else:
            loss[i] = total + _beyond(t, S, y[i], first, c_i, G_i, area[i if area.shape[0] > 1 else 0])
    return loss


@_compile
def _below(t, S, y, first):  # type: ignore[no-untyped-def]
    """The sum of (F_j² - F_{j-1}²)(y - t_j) over the jumps before y."""
    if first == 0:
        return 0.0
    total = (1 - S[0]) ** 2 * (y - t[0])
    for j in range(1, first):
        total += (S[j - 1] - S[j]) * (2 - S[j] - S[j - 1]) * (y - t[j])
    return total


@_compile
def _until(t, S, y, first, c):  # type: ignore[no-untyped-def]
    """The sum of (S_{j-1}² - S_j²)(min(t_j, c) - y) over the later jumps: C is known to be c."""
    left = S[t.size - 1] if t.size > 0 else 1.0
    total = left**2 * (c - y) if left > 0 else 0.0
    if first < t.size:
        before = S[first - 1] if first > 0 else 1.0
        total += (before - S[first]) * (before + S[first]) * (min(t[first], c) - y)
    for j in range(first + 1, t.size):
        total += (S[j - 1] - S[j]) * (S[j - 1] + S[j]) * (min(t[j], c) - y)
    return total


@_compile
def _beyond(t, S, y, first, c, G, area):  # type: ignore[no-untyped-def]
    """The sum of (S_{j-1}² - S_j²) times the area under G from y to t_j over the later jumps, over G(y-)."""
    k = np.searchsorted(c, y)
    g, offset = _piece(c, G, area, k)
    reached, base = g, offset + g * y
    total, before = 0.0, (S[first - 1] if first > 0 else 1.0)
    sparse = c.size > 16 * t.size
    for j in range(first, t.size):
        if k < c.size and c[k] < t[j]:
            k = _gallop(c, t[j], k + 1) if sparse else _walk(c, t[j], k + 1)
            g, offset = _piece(c, G, area, k)
        total += (before - S[j]) * (before + S[j]) * ((offset - base) + g * t[j])
        before = S[j]
    if before > 0:
        g, offset = _piece(c, G, area, np.searchsorted(c, np.inf))
        total += before**2 * (offset - base) if g == 0 else np.inf
    return total / reached


@_compile
def _never_until(t, S, y, first, c):  # type: ignore[no-untyped-def]
    """The integral of F² from y to c: after an event of another cause the event never comes."""
    before = 1 - S[first - 1] if first > 0 else 0.0
    total = before**2 * (c - y)
    for j in range(first, np.searchsorted(t, c)):
        F = 1 - S[j]
        total += (F - before) * (F + before) * (c - t[j])
        before = F
    return total


@_compile
def _never_beyond(t, S, y, first, c, G, area):  # type: ignore[no-untyped-def]
    """The integral of F² G from y on, over G(y-)."""
    k = np.searchsorted(c, y)
    reached, offset = _piece(c, G, area, k)
    left, end = _piece(c, G, area, np.searchsorted(c, np.inf))
    before = 1 - S[first - 1] if first > 0 else 0.0
    total = before**2 * (end - (offset + reached * y)) if before > 0 else 0.0
    for j in range(first, t.size):
        F = 1 - S[j]
        if before < F:
            k = _gallop(c, t[j], k)
            g, offset = _piece(c, G, area, k)
            total += (F - before) * (F + before) * (end - (offset + g * t[j]))
            before = F
    if left > 0:
        return np.inf if before > 0 else 0.0
    return total / reached


@_compile
def _piece(c, G, area, k):  # type: ignore[no-untyped-def]
    """The area under G up to a time t that has k jumps before it is ``offset + g t``."""
    if k == 0:
        return 1.0, 0.0
    return G[k - 1], area[k - 1] - G[k - 1] * c[k - 1]


@_compile
def _walk(c, t, k):  # type: ignore[no-untyped-def]
    """How many jumps lie before t, step by step from k of them."""
    while k < c.size and c[k] < t:
        k += 1
    return k


@_compile
def _gallop(c, t, k):  # type: ignore[no-untyped-def]
    """The same in growing strides, for many jumps between two times."""
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
