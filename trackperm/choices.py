"""Values of options, shared by Python, command line, policies and pages.

The module does not import NumPy, so that the command line starts quickly.
"""

from __future__ import annotations

from typing import Literal

Alternative = Literal["two-sided", "less", "greater"]
"""Which values of the statistic are extreme; ``greater``: the candidate's score is greater."""

Method = Literal["auto", "binomial", "enumerate", "dp", "lattice", "bracket", "tilted", "monte-carlo"]
"""Numerical engines."""

IntervalChoice = Literal["auto", "none", "score", "bootstrap"]
"""Intervals of a difference: the one that agrees with the exact test if there is one, else by scores."""

EngineName = Literal["auto", "polars", "duckdb", "spark"]
"""Engines that join and count rows; ``auto`` chooses by the type and the number of rows."""

MethodOfResult = Literal[Method, "attempts"]
"""As `Method`, and ``attempts``, which cannot be chosen because it tests another null hypothesis: that the
attempts within each example are exchangeable."""

Missing = Literal["error", "drop", "wrong", "worst", "best"]
"""Treatment of examples that lack a partner or a value. ``error`` refuses them, ``drop`` leaves them out, and
``wrong`` counts a missing prediction as the spec defines. ``worst`` computes the worst case of the candidate:
its missing predictions count as the worst possible, those of the baseline as the best; ``best`` is the
opposite."""

MissingRule = Literal["error", "drop", "wrong", "worst", "best", "bounds"]
"""As `Missing`, and ``bounds``, which computes both the worst and the best case."""

Repeats = Literal["sum", "mean", "any", "all", "bundle"]
"""Rules that combine the rows (epochs, samples, seeds) of one example. ``sum`` adds up their counts, ``mean``
averages them; ``any`` and ``all`` are 1 if any or all of them pass. ``bundle`` adds them up and exchanges
their number as well; it needs one rule in both runs that determines it, such as retries until success."""

RepeatsInSpec = Literal["sum", "mean", "any", "all", "bundle", "pass_at_k", "pass_hat_k", "attempts", "rows"]
"""As `Repeats`; ``pass_at_k`` estimates the probability that any of `k` attempts passes, ``pass_hat_k`` that
all do; ``attempts`` exchanges attempts within each example, for any number in each run; ``rows`` exchanges
single rows."""

Unit = Literal["example", "row", "attempt"]
"""Unit that is exchanged between the runs: all rows of an example together, each row as if it were an
example, or the attempts within each example."""

MissingOfMany = Literal["error", "drop", "wrong"]
"""Treatment of examples that only some of many runs have: list the run as incomplete, leave the examples out
of all runs, or count a missing prediction."""

CorrectionName = Literal["holm", "tarone-holm", "hommel", "bonferroni", "bh", "by", "none"]
"""Corrections for several tests of the same two runs."""

CorrectionOfLogged = Literal["holm", "by", "bh", "hommel", "bonferroni"]
"""Corrections that need only p-values, as they were logged."""

CorrectionOfPairs = Literal["holm", "by", "bonferroni"]
"""Corrections that are valid under any dependence, such as that of pairs that share runs."""

Compat = Literal["bikel", "sacrebleu"]
"""Older programs whose p-values are reproduced."""
