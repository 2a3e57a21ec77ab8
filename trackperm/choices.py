"""Names of the choices that options take, shared by Python, command line, policies and pages.

Without NumPy, so that the command line can name them before anything is loaded.
"""

from __future__ import annotations

from typing import Literal

Alternative = Literal["two-sided", "less", "greater"]
"""Which values of the statistic are extreme; ``greater``: the candidate's score is greater."""

Method = Literal["auto", "binomial", "enumerate", "dp", "lattice", "bracket", "monte-carlo"]
"""Numerical engines."""

Missing = Literal["error", "drop", "wrong", "worst", "best"]
"""What to do with examples that lack a partner or a value. ``error`` refuses them, ``drop`` leaves them out,
and ``wrong`` counts what the statistic's spec says of a missing prediction. ``worst`` computes the worst case
of the candidate: its missing predictions count as the worst possible, those of the baseline as the best;
``best`` is the opposite."""

MissingRule = Literal["error", "drop", "wrong", "worst", "best", "bounds"]
"""As `Missing`, or the worst and the best case beside each other."""

MissingOfMany = Literal["error", "drop", "wrong"]
"""What to do with examples that only some of many runs have: list the run as incomplete, leave the examples
out of all runs, or count a missing prediction."""

CorrectionName = Literal[
    "holm", "tarone-holm", "hommel", "bonferroni", "bh", "by", "hsd", "hsu", "ahsd", "ahsu", "none"
]
"""Corrections of several tests of the same two runs for each other."""

CorrectionInPolicy = Literal["holm", "tarone-holm", "hommel", "bonferroni", "bh", "by", "none"]
"""As `CorrectionName`, without those that need independent tests: statistics and slices share examples."""

CorrectionOfLogged = Literal["holm", "by", "bh", "hommel", "bonferroni"]
"""Corrections that need p-values alone, as they were logged."""

CorrectionOfPairs = Literal["holm", "by", "bonferroni"]
"""Corrections that are valid under any dependence, as of pairs that share runs."""

Compat = Literal["bikel", "sacrebleu"]
"""Older programs whose p-values are reproduced."""
