"""Names of the choices that options take, shared by Python, command line, policies and pages.

Without NumPy, so that the command line can name them before anything is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from trackperm.errors import InputError
from trackperm.messages import did_you_mean, listed

Alternative = Literal["two-sided", "less", "greater"]
"""Which values of the statistic are extreme; ``greater``: the candidate's score is greater."""

Method = Literal["auto", "binomial", "enumerate", "dp", "lattice", "bracket", "monte-carlo"]
"""Numerical engines."""

EngineName = Literal["auto", "polars", "duckdb", "spark"]
"""Where rows are joined and counted; ``auto`` goes by what holds them and by their number."""

MethodOfResult = Literal[Method, "attempts"]
"""As `Method`; ``attempts`` is not for choice, for it tests another null hypothesis: that the attempts of an
example are exchangeable, and not its outputs as a whole."""

Missing = Literal["error", "drop", "wrong", "worst", "best"]
"""What to do with examples that lack a partner or a value. ``error`` refuses them, ``drop`` leaves them out,
and ``wrong`` counts what the statistic's spec says of a missing prediction. ``worst`` computes the worst case
of the candidate: its missing predictions count as the worst possible, those of the baseline as the best;
``best`` is the opposite."""

MissingRule = Literal["error", "drop", "wrong", "worst", "best", "bounds"]
"""As `Missing`, or the worst and the best case beside each other."""

Repeats = Literal["sum", "mean", "any", "all", "bundle"]
"""What becomes of the rows (epochs, samples, seeds) of one example. ``sum`` adds up their counts, ``mean``
averages them; ``any`` and ``all`` are 1 where any or all of them pass. ``bundle`` adds up, where one rule of
both runs, such as retries until success, made the number of rows, so that this number is exchanged too."""

RepeatsInSpec = Literal["sum", "mean", "any", "all", "bundle", "pass_at_k", "pass_hat_k", "attempts", "rows"]
"""As `Repeats`; ``pass_at_k`` estimates the chance that any of `k` attempts passes, ``pass_hat_k`` that all
do; ``attempts`` are exchanged within their example, whatever their number in each run; ``rows`` are units of
their own."""

Unit = Literal["example", "row", "attempt"]
"""What is exchanged between the runs: all rows of an example together, each row as if it were an example, or
the attempts at an example among themselves."""

MissingOfMany = Literal["error", "drop", "wrong"]
"""What to do with examples that only some of many runs have: list the run as incomplete, leave the examples
out of all runs, or count a missing prediction."""

CorrectionName = Literal["holm", "tarone-holm", "hommel", "bonferroni", "bh", "by", "none"]
"""Corrections of several tests of the same two runs for each other."""

CorrectionOfLogged = Literal["holm", "by", "bh", "hommel", "bonferroni"]
"""Corrections that need p-values alone, as they were logged."""

CorrectionOfPairs = Literal["holm", "by", "bonferroni"]
"""Corrections that are valid under any dependence, as of pairs that share runs."""

Compat = Literal["bikel", "sacrebleu"]
"""Older programs whose p-values are reproduced."""

_LEAST_LEVEL = 1e-300  # of which a part is a number as well


def require_level(alpha: float) -> None:
    """Refuse what is no level of a test.

    Raises
    ------
    InputError
        If `alpha` is not between 0 and 1, or so small that a part of it is no number any more.
    """
    if not _LEAST_LEVEL <= alpha < 1.0:
        raise InputError(f"`alpha` is {alpha}; expected a number between 0 and 1, such as 0.05")


def require_choice(option: str, value: object, choices: Iterable[str], *, hint: str = "") -> None:
    """Refuse a value that is not one of `choices`.

    Parameters
    ----------
    option : str
        The argument that has it.
    value : object
        What was given, of any type.
    choices : iterable of str
        What the argument takes; of a `Literal`, its ``get_args``.
    hint : str
        What else there is to say.

    Raises
    ------
    InputError
        If it is none of them; says which one may be meant.
    """
    known = list(choices)
    if not (isinstance(value, str) and value in known):
        suggestion = did_you_mean(value, known) if isinstance(value, str) else ""
        raise InputError(
            f"`{option}` is {value!r}; expected one of {listed(known)}",
            hint=f"{hint}{suggestion}".strip() or None,
        )
