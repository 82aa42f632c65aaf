"""Comparisons of tables that are too large for memory, as reductions over batches.

A comparison is three passes. The first counts: how many subjects had which time and event (in which stratum),
which is all that Kaplan-Meier curves, the horizon and default times need. The second sums losses, and the
derivatives of mean losses with respect to the censoring distribution. The third sums powers of each subject's
influence, from which standard errors, intervals, p-values and paired differences follow. Every sum of two
batches is the sum of their sums, so that batches may be anywhere, and in any number.
"""
