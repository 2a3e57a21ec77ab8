"""Result of a leaderboard: a frozen value with everything that is printed and logged."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import polars as pl

from trackperm.choices import Alternative, MissingOfMany
from trackperm.comparison import RunData
from trackperm.comparison.identity import key_of, signature_of
from trackperm.comparison.inference.verdict import MARKERS, Sign
from trackperm.exact import PermutationTest
from trackperm.exact.intervals import Interval
from trackperm.exact.multiplicity import Correction
from trackperm.exact.result import Relation, adjusted_relations
from trackperm.leaderboards.paired_runs import ExcludedRun
from trackperm.messages import amount
from trackperm.presentation import Presented
from trackperm.statistic import Statistic


@dataclass(frozen=True)
class Pair:
    """Comparison of two runs of a leaderboard.

    Attributes
    ----------
    candidate, baseline : int
        Indices of the two runs in `rows`. If all pairs are compared, the baseline is the higher-ranked run.
    test : PermutationTest
        Result of the test, equal to that of :func:`trackperm.compare` for these two runs.
    log10_upper : float
        Decimal logarithm of the upper end of the p-value's interval, which enters the correction. The
        interval is certified, or for Monte Carlo has 99 % confidence.
    adjusted, log10_adjusted : float
        The p-value corrected for all comparisons of the leaderboard, and its decimal logarithm. The
        difference is significant if it is below alpha. `adjusted` is 0.0 only below the range of floats.
    verdict : {'better', 'worse', 'undecided'}
        Verdict on the candidate, at level alpha, after the correction.
    """

    candidate: int
    baseline: int
    test: PermutationTest
    log10_upper: float
    adjusted: float
    log10_adjusted: float
    verdict: Sign

    @property
    def difference(self) -> float:
        """Score of the candidate minus score of the baseline."""
        return self.test.observed

    @property
    def marker(self) -> str:
        """Symbol of the verdict: ▲ better, ▼ worse, ≈ undecided."""
        return MARKERS[self.verdict]


@dataclass(frozen=True)
class Row:
    """Row of a leaderboard: one run.

    Attributes
    ----------
    data : RunData
        The run.
    name : str
        Name of the run, which is unique in the leaderboard.
    score : float
        Score of the run.
    rank : int
        1 + the number of runs with a better score.
    ranks : (int, int) or None
        The best and the worst rank that the verdicts on all pairs allow; None unless all pairs were compared
        and the correction controls all verdicts at once.
    letters : str or None
        Letters of the run: two runs share a letter exactly if they do not differ significantly. None unless
        all pairs were compared.
    clones : tuple of str
        Names of runs with the same counts on every example.
    pair : Pair or None
        Comparison with the baseline, or else with the best run; None for that run itself.
    interval : Interval or None
        Interval for the difference of the scores of `pair`, at `Leaderboard.interval_level`; it contains 0 if
        the pair is undecided.
    """

    data: RunData
    name: str
    score: float
    rank: int
    ranks: tuple[int, int] | None
    letters: str | None
    clones: tuple[str, ...]
    pair: Pair | None
    interval: Interval | None

    @property
    def holds_zero(self) -> bool:
        """Whether the interval contains 0 although the pair is decided, as after Holm's later steps."""
        decided = self.pair is not None and self.pair.verdict != "undecided"
        return decided and self.interval is not None and 0.0 in self.interval

    @property
    def origin(self) -> str:
        """The run in messages: a run reference, a path or its name."""
        return self.data.table.origin

    def under(self, reference: str) -> Row:
        """Return the row with its run under another reference, such as one that it had before."""
        return replace(self, data=self.data.under(reference))


@dataclass(frozen=True, eq=False)
class Leaderboard(Presented):
    """Ranking of runs by score, with corrected tests of their pairs.

    :func:`trackperm.leaderboard` returns it. The result for two runs is a
    :class:`~trackperm.comparison.Comparison`.

    Attributes
    ----------
    statistic : Statistic
        The statistic that was tested.
    rows : tuple of Row
        The complete runs, best first.
    pairs : tuple of Pair
        All comparisons, which form the family that p-values are corrected for.
    incomplete : tuple of ExcludedRun
        Excluded runs, with the reasons.
    baseline : int or None
        Index of the row of the baseline; None if all pairs are compared.
    correction : Correction
        Correction of the p-values, with the error rate that it controls.
    alpha : float
        Level of the verdicts.
    alternative : {'two-sided', 'less', 'greater'}
        Alternative of every test; two-sided if all pairs are compared.
    interval_level : float
        One minus the confidence of the interval of each row; see :mod:`trackperm.leaderboards.intervals`.
    n_examples : int
        Number of examples, or of clusters, on which all runs are tested.
    n_largest : int
        Number of rows of the largest complete run.
    missing : {'error', 'drop', 'wrong'}
        Treatment of examples that only some runs have.
    paired_by : str
        ``id`` or ``position``.
    test_set : str
        Digest of the examples of the reference run, with which all runs were paired. If all runs have the
        same examples, every comparison of two of them has this digest.
    notes : tuple of str
        Notes for the reader of the result.
    options : mapping of str to str
        The options that identify this leaderboard, as they enter `key`.
    digests : tuple of str
        Digests of the data of the runs, in the order of `rows`.

    Examples
    --------
    >>> runs = {"old": "baseline.parquet", "new": "candidate.parquet"}
    >>> board = trackperm.leaderboard(runs, "accuracy")
    >>> board
    <Leaderboard of 2 runs by accuracy: 1 comparison, 1 significant>
    >>> [(row.name, round(row.score, 4)) for row in board.rows]
    [('new', 0.7915), ('old', 0.7612)]
    >>> board.rows[1].pair.verdict
    'worse'
    """

    statistic: Statistic
    rows: tuple[Row, ...]
    pairs: tuple[Pair, ...]
    incomplete: tuple[ExcludedRun, ...]
    baseline: int | None
    correction: Correction
    alpha: float
    alternative: Alternative
    interval_level: float
    n_examples: int
    n_largest: int
    missing: MissingOfMany
    paired_by: str
    test_set: str
    notes: tuple[str, ...]
    options: Mapping[str, str]
    digests: tuple[str, ...] = field(repr=False)

    @property
    def interval_promise(self) -> str:
        """Joint coverage of the intervals: ``simultaneous``, ``FCR``, or empty for a single comparison."""
        if len(self.pairs) == 1:
            return ""
        return "simultaneous" if self.correction.controls == "FWER" else "FCR"

    def relation(self, pair: Pair) -> Relation:
        """Return the sign between an adjusted p-value and its number: its own, or that of another pair.

        It is ``≈`` for Monte Carlo, ``≤`` for certified upper ends and tilted sampling.
        """
        return self._relations[pair.candidate, pair.baseline]

    @cached_property
    def _relations(self) -> dict[tuple[int, int], Relation]:
        own = [pair.test.relation for pair in self.pairs]
        found = adjusted_relations(own, [(pair.adjusted, pair.log10_adjusted) for pair in self.pairs])
        places = [(pair.candidate, pair.baseline) for pair in self.pairs]
        return dict(zip(places, found, strict=True))

    @property
    def reference(self) -> int:
        """Index of the row that `Row.pair` compares with: the baseline, or the best run."""
        return 0 if self.baseline is None else self.baseline

    @cached_property
    def _places(self) -> dict[frozenset[int], Pair]:
        return {frozenset((pair.candidate, pair.baseline)): pair for pair in self.pairs}

    def pair(self, first: str, second: str) -> Pair:
        """Find the comparison of two runs, named in any order.

        Raises
        ------
        KeyError
            If no run has one of the names, or if the two were not compared.
        """
        place = {row.name: i for i, row in enumerate(self.rows)}
        return self._places[frozenset((place[first], place[second]))]

    @property
    def key(self) -> str:
        """Digest of the runs, their data, the spec and the options, independent of the input order."""
        own = [
            (row.origin if row.data.run is not None else None, digest)
            for row, digest in zip(self.rows, self.digests, strict=True)
        ]
        parts = sorted(own, key=str), None if self.baseline is None else own[self.baseline]
        return key_of(parts, self.statistic, self.options)

    @property
    def signature(self) -> str:
        """Settings that reproduce the numbers, in one line."""
        settings = {
            "alt": self.alternative,
            "n": self.n_examples,
            "runs": len(self.rows),
            "incomplete": len(self.incomplete),
            "pairs": len(self.pairs),
            "correction": self.correction.name,
            "alpha": f"{self.alpha:g}",
            "paired": self.paired_by,
            "missing": self.missing,
            "methods": "+".join(sorted({pair.test.method for pair in self.pairs})),
            "data": hashlib.sha256("".join(sorted(self.digests)).encode()).hexdigest()[:8],
        }
        return signature_of(self.statistic, settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values; numbers that are not finite become None."""
        return {
            "statistic": self.statistic.name,
            "greater_is_better": self.statistic.greater_is_better,
            "baseline": None if self.baseline is None else self.rows[self.baseline].name,
            "alternative": self.alternative,
            "alpha": self.alpha,
            "correction": {
                "name": self.correction.name,
                "controls": self.correction.controls,
                "valid_under": self.correction.valid_under,
                "n_comparisons": len(self.pairs),
            },
            "intervals": {
                "promise": self.interval_promise or None,
                "confidence": 1.0 - self.alpha,
                "level_of_each": self.interval_level,
            },
            "n_examples": self.n_examples,
            "rows": [self._row(row) for row in self.rows],
            "pairs": [self._pair(pair) for pair in self.pairs],
            "incomplete": [
                {"name": run.name, "run": run.origin, "reason": run.reason} for run in self.incomplete
            ],
            "missing": self.missing,
            "paired_by": self.paired_by,
            "test_set": self.test_set,
            "notes": list(self.notes),
            "options": dict(self.options),
            "signature": self.signature,
            "key": self.key,
        }

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per complete run, best first.

        Returns
        -------
        polars.DataFrame
            Columns ``rank``, ``run``, ``score``; ``difference``, ``ci_low``, ``ci_high``, ``adjusted_p`` and
            ``verdict`` of the comparison with the baseline or else the best run, null for that run;
            ``letters``, and ``best_rank`` and ``worst_rank`` that the verdicts allow, null unless all pairs
            were compared. A p-value below the range of floats is 0.
        """
        types = {
            "rank": pl.Int64,
            "run": pl.String,
            "score": pl.Float64,
            "difference": pl.Float64,
            "ci_low": pl.Float64,
            "ci_high": pl.Float64,
            "adjusted_p": pl.Float64,
            "verdict": pl.String,
            "letters": pl.String,
            "best_rank": pl.Int64,
            "worst_rank": pl.Int64,
        }
        rows = [
            (
                row.rank,
                row.name,
                row.score,
                None if row.pair is None else row.pair.difference,
                None if row.interval is None else row.interval.low,
                None if row.interval is None else row.interval.high,
                None if row.pair is None else row.pair.adjusted,
                None if row.pair is None else row.pair.verdict,
                row.letters,
                *(row.ranks or (None, None)),
            )
            for row in self.rows
        ]
        return pl.DataFrame(rows, schema=types, orient="row")

    def _row(self, row: Row) -> dict[str, Any]:
        interval = row.interval
        return {
            "name": row.name,
            "run": row.origin,
            "rank": row.rank,
            "ranks": None if row.ranks is None else list(row.ranks),
            "score": row.score,
            "letters": row.letters,
            "clones": list(row.clones),
            "difference": None if row.pair is None else row.pair.difference,
            "interval": None
            if interval is None
            else {
                "low": _finite(interval.low),
                "high": _finite(interval.high),
                "confidence": interval.confidence,
                "method": interval.method,
                "relation": interval.relation,
                "holds_zero_though_decided": row.holds_zero,
            },
            "adjusted_pvalue": None if row.pair is None else _positive(row.pair.adjusted),
            "log10_adjusted_pvalue": None if row.pair is None else row.pair.log10_adjusted,
            "relation": None if row.pair is None else self.relation(row.pair),
            "verdict": None if row.pair is None else row.pair.verdict,
        }

    def _pair(self, pair: Pair) -> dict[str, Any]:
        test = pair.test
        return {
            "candidate": self.rows[pair.candidate].name,
            "baseline": self.rows[pair.baseline].name,
            "difference": pair.difference,
            "pvalue": _positive(test.pvalue),
            "log10_pvalue": test.log10_pvalue,
            "adjusted_pvalue": _positive(pair.adjusted),
            "log10_adjusted_pvalue": pair.log10_adjusted,
            "verdict": pair.verdict,
            "method": test.method,
            "error_bound": _finite(test.error_bound),
            "estimate": None if test.estimate is None else asdict(test.estimate),
            "n_discordant": test.n_discordant,
        }

    def __repr__(self) -> str:
        tests = amount(len(self.pairs), "comparison")
        return (
            f"<Leaderboard of {len(self.rows)} runs by {self.statistic.title}: {tests},"
            f" {sum(pair.verdict != 'undecided' for pair in self.pairs)} significant>"
        )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _positive(pvalue: float) -> float | None:
    return pvalue if pvalue > 0.0 else None
