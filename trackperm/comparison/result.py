"""Result of a comparison: a frozen value with everything that is printed, logged and verified."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, cast

import polars as pl

from trackperm.choices import IntervalChoice
from trackperm.comparison.assumptions.dependence import Dependence
from trackperm.comparison.assumptions.null_hypothesis import null_hypothesis, remarks
from trackperm.comparison.context import AdjustedPValue, MissingDataCase, Slice
from trackperm.comparison.frame import TYPES, one_row
from trackperm.comparison.identity import key_of, signature_of
from trackperm.comparison.inference.effect import (
    detectable_effect_of,
    effect_sizes_of,
    hull_of,
    interval_beside,
)
from trackperm.comparison.inference.equivalence_power import law_by_interval
from trackperm.comparison.inference.evidence import (
    EquivalencePValue,
    SizeBounds,
    equivalence_pvalue,
    size_bounds,
)
from trackperm.comparison.inference.verdict import Conclusion, Verdict, decide
from trackperm.comparison.json_values import (
    effect_sizes_as_json,
    equivalence_as_json,
    finite,
    interval_as_json,
    pvalue_as_json,
)
from trackperm.comparison.runs import RunData, TwoRuns
from trackperm.comparison.scores import scores_of
from trackperm.comparison.second_opinions import (
    STUDENTIZED,
    SecondOpinion,
    second_opinions,
    studentized_opinion,
)
from trackperm.exact import CountTable, NullDistribution, PermutationTest
from trackperm.exact.intervals import EffectSizes, Interval
from trackperm.exact.power import EquivalencePower, MinimumDetectableEffect, equivalence_power
from trackperm.pairing import PairingReport
from trackperm.presentation import Presented
from trackperm.statistic import Statistic


@dataclass(frozen=True, eq=False)
class Comparison(TwoRuns, Presented):
    """Result of pairing and testing two runs.

    :func:`trackperm.compare` returns it. The result for more than two runs is a
    :class:`~trackperm.leaderboards.Leaderboard`.

    Attributes
    ----------
    statistic : Statistic
        The statistic that was tested.
    baseline_data, candidate_data : RunData
        The two runs; the statistic is that of the candidate minus that of the baseline.
    test : PermutationTest
        Result of the exact test.
    alpha : float
        Significance level of the verdict.
    count_table : CountTable
        Distinct counts of both runs with multiplicities, from which the test can be repeated.
    pairing : PairingReport
        Report of the pairing: how examples were matched, and which ones were left out.
    discordant : polars.DataFrame
        The examples whose counts differ, ordered by id.
    options : mapping of str to str
        The options that identify this comparison, as they enter `key`.
    cases : tuple of MissingDataCase
        Results in the worst and the best case of missing predictions, with ``missing="bounds"``.
    bounds : tuple of Comparison
        The comparisons in these cases; empty if the result was read from a log.
    margin : float or None
        The smallest difference that matters.
    slice : Slice or None
        The slice of the examples that was compared; None for all examples.
    corrected : AdjustedPValue or None
        The p-value corrected for the family of tests; None if there was one test or no correction.
    second_opinions : tuple of SecondOpinion
        Results of other tests, if requested; they do not enter `key`.
    dependence : tuple of Dependence
        Columns whose groups of examples are dependent, although the test assumes independence; they do not
        enter `key`.

    Examples
    --------
    >>> comparison = trackperm.compare("baseline.parquet", "candidate.parquet", "accuracy")
    >>> comparison
    <Comparison of `candidate.parquet` with `baseline.parquet` by accuracy: p = 0.00335, better>
    >>> comparison.n_examples, comparison.n_discordant, comparison.n_better, comparison.n_worse
    (1319, 178, 109, 69)
    >>> round(comparison.difference, 4)
    0.0303
    """

    statistic: Statistic
    baseline_data: RunData = field(repr=False)
    candidate_data: RunData = field(repr=False)
    test: PermutationTest
    alpha: float
    count_table: CountTable = field(repr=False)
    pairing: PairingReport
    discordant: pl.DataFrame = field(repr=False)
    options: Mapping[str, str]
    cases: tuple[MissingDataCase, ...] = ()
    bounds: tuple[Comparison, ...] = field(default=(), repr=False, compare=False)
    margin: float | None = None
    slice: Slice | None = None
    corrected: AdjustedPValue | None = None
    second_opinions: tuple[SecondOpinion, ...] = ()
    dependence: tuple[Dependence, ...] = ()

    @property
    def title(self) -> str:
        """Name of the statistic, with the slice if there is one."""
        return self.statistic.title if self.slice is None else f"{self.statistic.title} [{self.slice}]"

    @property
    def pvalue(self) -> float:
        """The p-value; 0.0 only if it is below the range of floats."""
        return self.test.pvalue

    def format_pvalue(self, digits: int = 3) -> str:
        """Format the p-value, with more digits if it is close to `alpha`, so that they show the verdict."""
        return self.test.format_pvalue(digits, self.alpha)

    @property
    def log10_pvalue(self) -> float:
        """Decimal logarithm of the p-value, always finite."""
        return self.test.log10_pvalue

    @property
    def error_bound(self) -> float:
        """Certified bound on the relative error of the p-value; 1 if the p-value is only an upper bound.

        It is infinite for Monte Carlo, which has no certified bound.
        """
        return self.test.error_bound

    @property
    def method(self) -> str:
        """Numerical engine that computed the p-value."""
        return self.test.method

    @property
    def n_examples(self) -> int:
        """Number of examples tested."""
        return self.test.n_examples

    @property
    def n_discordant(self) -> int:
        """Number of examples whose counts differ between the two runs.

        If attempts are exchanged within examples, number of examples whose attempts have different outcomes.
        """
        of_test = self.statistic.repeats == "attempts" or self.statistic.rank_score is not None
        return self.test.n_discordant if of_test else self.count_table.n_discordant

    @property
    def n_better(self) -> int | None:
        """Number of discordant examples on which the candidate is better; None if examples have no sign."""
        return self.test.n_better if self.statistic.greater_is_better else self.test.n_worse

    @property
    def n_worse(self) -> int | None:
        """Number of discordant examples on which the candidate is worse; None if examples have no sign."""
        return self.test.n_worse if self.statistic.greater_is_better else self.test.n_better

    @property
    def null_distribution(self) -> NullDistribution:
        """Distribution of the statistic under the null hypothesis."""
        return self.test.null_distribution

    @property
    def baseline_score(self) -> float | None:
        """Score of the baseline; None if the statistic has no score of one run, or it is undefined."""
        return self._scores[1]

    @property
    def candidate_score(self) -> float | None:
        """Score of the candidate; None if the statistic has no score of one run, or it is undefined."""
        return self._scores[0]

    @property
    def guaranteed_scores(self) -> tuple[float | None, float | None]:
        """Scores of baseline and candidate, each in its own worst case if missing predictions are bounded."""
        if not self.bounds:
            return self.baseline_score, self.candidate_score
        worst, best = self.bounds
        return best.baseline_score, worst.candidate_score

    @cached_property
    def _scores(self) -> tuple[float | None, float | None]:
        """Scores of candidate and baseline."""
        return scores_of(self.statistic, self.count_table)

    @property
    def difference(self) -> float:
        """Score of the candidate minus score of the baseline: the observed statistic."""
        return self.test.observed

    @property
    def n_uncorrected(self) -> int | None:
        """Number of tests in an uncorrected family; None if the p-value is corrected or there is one test."""
        return int(self.options["n_tests"]) if self.options.get("correction") == "none" else None

    @property
    def depends_on_missing(self) -> bool:
        """Whether the sign depends on what the missing predictions would have been."""
        return len({case.verdict for case in self.cases}) > 1

    @cached_property
    def decision(self) -> Verdict:
        """Verdict on the sign, and on equivalence if there is a margin; see :mod:`.verdict`.

        A p-value counts as below alpha only if its whole interval is: the certified one, or for Monte Carlo
        that of 99 % confidence. The p-value of tilted sampling is valid, and decides alone. In a family of
        tests, the adjusted p-value decides. If the worst and the best case of missing predictions disagree,
        the verdict is undecided.
        """
        pvalue = max(self.pvalue, self.test.interval[1])
        if self.corrected is not None:
            pvalue = self.corrected.pvalue if self.corrected.rejected else 1.0
        size = self.size if self.margin is not None else None
        lack = None if size is None or self.margin is None else size.lack(self.margin)
        return decide(
            pvalue,
            self.difference,
            alternative=self.test.alternative,
            greater_is_better=self.statistic.greater_is_better,
            alpha=self.alpha,
            depends_on_missing=self.depends_on_missing,
            margin=self.margin,
            interval=None if size is None or lack is not None else (size.low, size.high),
            lack=lack,
        )

    @property
    def verdict(self) -> Conclusion:
        """The verdict on the candidate in one word: better, worse, equivalent or undecided."""
        return self.decision.word

    @property
    def marker(self) -> str:
        """Symbol of the verdict: ▲ better, ▼ worse, ≡ equivalent, ≈ undecided."""
        return self.decision.marker

    @cached_property
    def interval(self) -> Interval | None:
        """Interval of confidence 1 - alpha for the statistic; None if it is unavailable.

        It has the alternative of the test. It belongs to this comparison alone; no correction widens it.
        """
        return None if isinstance(self._interval, str) else self._interval

    @property
    def interval_unavailable(self) -> str | None:
        """Reason why the interval is unavailable; None if there is one."""
        return self._interval if isinstance(self._interval, str) else None

    @property
    def _interval_choice(self) -> IntervalChoice:
        return cast("IntervalChoice", self.options.get("interval", "auto"))

    @cached_property
    def _interval(self) -> Interval | str:
        """The interval, or the reason why it is unavailable."""
        if self.bounds:
            return hull_of([case._interval for case in self.bounds])
        influences, choice = self.pairing.influences, self._interval_choice
        return interval_beside(self.test, self.statistic, self.count_table, choice, self.alpha, influences)

    @cached_property
    def size(self) -> SizeBounds:
        """Bounds of the difference, each at level alpha; see :mod:`.evidence`.

        If missing predictions are bounded, the bounds cover both cases.
        """
        if self.bounds:
            return reduce(SizeBounds.joined, [outcome.size for outcome in self.bounds])
        return size_bounds(
            self.statistic, self.count_table, self.alpha, self._interval_choice, self.pairing.influences
        )

    @cached_property
    def equivalence(self) -> EquivalencePValue | None:
        """p-value of the equivalence within the margin; None if equivalence is not shown.

        If missing predictions are bounded, it is the larger one of both cases.
        """
        if self.margin is None or not self.decision.equivalent:
            return None
        tables = [outcome.count_table for outcome in self.bounds] or [self.count_table]
        choice, influences = self._interval_choice, self.pairing.influences
        found = [
            equivalence_pvalue(self.statistic, each, self.margin, self.alpha, choice, influences)
            for each in tables
        ]
        return max(found, key=lambda each: each.pvalue)

    @cached_property
    def equivalence_power(self) -> EquivalencePower | None:
        """Power of equivalence within the margin, if the true difference is 0 or half the margin.

        It uses the number of examples and the discordance of this comparison, never its difference. None
        without a margin, or without an interval that can show equivalence, and if missing predictions are
        bounded.
        """
        if self.margin is None or self.bounds or isinstance(self.size.basis, str):
            return None
        law = law_by_interval(self.statistic, self.count_table, self.size.basis, self.pairing.influences)
        return None if law is None else equivalence_power(law, self.margin, self.alpha)

    @cached_property
    def effect_sizes(self) -> EffectSizes:
        """Effect sizes: relative change, Cohen's d_z and odds, where the statistic has them."""
        return effect_sizes_of(
            self.statistic,
            self.count_table,
            difference=self.difference,
            baseline_score=self.baseline_score,
            alpha=self.alpha,
            alternative=self.test.alternative,
        )

    @cached_property
    def detectable(self) -> MinimumDetectableEffect | None:
        """Smallest true difference that such a comparison detects at 80 % power; None if unknown.

        In a family of tests, the level is that of the correction's first step, which suffices for a verdict
        whatever the other tests show.
        """
        rule, alpha = self.corrected, self.alpha
        found = detectable_effect_of(
            self.statistic,
            self.count_table,
            alpha=alpha if rule is None else rule.level_of_one(alpha),
            alternative=self.test.alternative,
        )
        return found if found is None or rule is None else replace(found, n_tests=rule.n_tests)

    @property
    def null_hypothesis(self) -> str:
        """The null hypothesis in words."""
        return null_hypothesis(self.statistic)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Reasons why p could be small although the scores are equal; empty if the sign is undecided."""
        if self.decision.sign == "undecided":
            return ()
        return remarks(
            self.statistic,
            self.count_table,
            observed=self.difference,
            alternative=self.test.alternative,
            alpha=self.alpha,
        )

    def with_second_opinions(self) -> Comparison:
        """Return the comparison with the results of other tests; its `key` stays the same."""
        found = second_opinions(
            self.statistic, self.count_table, self.test, self.alpha, influences=self.pairing.influences
        )
        kept = (each for each in self.second_opinions if each.name == STUDENTIZED)
        return replace(self, second_opinions=(*found, *kept))

    def with_studentized(self) -> Comparison:
        """Return the comparison with the result of the studentised test; its `key` stays the same.

        The studentised permutation test tests equal scores, whereas the main test tests whether outputs are
        exchangeable. The two differ for ratios such as precision whose divisors differ much. The studentised
        test does not affect the verdict.
        """
        others = (each for each in self.second_opinions if each.name != STUDENTIZED)
        found = studentized_opinion(self.statistic, self.count_table, self.test, self.alpha)
        return replace(self, second_opinions=(*others, found))

    @property
    def key(self) -> str:
        """Digest of both runs, their data, the spec and the options; it identifies the comparison."""
        # Run references are part of the key, paths are not: the digests identify the data of files.
        parts = (
            None if self.baseline_run is None else self.baseline,
            None if self.candidate_run is None else self.candidate,
            self.pairing.baseline_digest,
            self.pairing.candidate_digest,
        )
        return key_of(parts, self.statistic, self.options)

    @property
    def signature(self) -> str:
        """Settings that reproduce the p-value, in one line."""
        corrected = None if self.n_uncorrected is None else f"none/{self.n_uncorrected}"
        if self.corrected is not None:
            corrected = f"{self.corrected.method}/{self.corrected.n_tests}"
        settings = {
            "alt": self.test.alternative,
            "n": self.n_examples,
            "discordant": self.n_discordant,
            "paired": self.pairing.by,
            "missing": self.options["missing"],
            "method": self.method,
            "ties": self.test.ties,
            "p": "mid" if self.test.mid_p else None,
            "slice": self.slice,
            "margin": self.margin,
            "corrected": corrected,
            "drawn": self.test.n_samples,
            "data": f"{self.pairing.baseline_digest[:8]}/{self.pairing.candidate_digest[:8]}",
        }
        return signature_of(self.statistic, settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values; numbers that are not finite become None."""
        labels = self.baseline_data.labels
        return {
            "statistic": self.statistic.name,
            "chosen": self.statistic.chosen or None,
            "score": self.statistic.score_text,
            "baseline": self.baseline,
            "candidate": self.candidate,
            "baseline_name": self.baseline_name,
            "candidate_name": self.candidate_name,
            "artifacts": [self.baseline_data.artifact, self.candidate_data.artifact],
            "run_columns": [dict(self.baseline_data.columns), dict(self.candidate_data.columns)],
            "labels": None if labels is None else labels.to_dict(),
            "baseline_score": finite(self.baseline_score),
            "candidate_score": finite(self.candidate_score),
            "difference": self.difference,
            **pvalue_as_json(self.test),
            "null_hypothesis": self.null_hypothesis,
            "alternative": self.test.alternative,
            "alpha": self.alpha,
            "corrected": None if self.corrected is None else asdict(self.corrected),
            "n_uncorrected": self.n_uncorrected,
            "margin": self.margin,
            "verdict": self.verdict,
            "sign": self.decision.sign,
            "equivalent": self.decision.equivalent,
            "no_equivalence": self.decision.lack,
            **equivalence_as_json(self.equivalence, self.equivalence_power),
            "slice": None if self.slice is None else asdict(self.slice),
            "interval": interval_as_json(self.interval),
            "no_interval": self.interval_unavailable,
            "effect_sizes": effect_sizes_as_json(self.effect_sizes),
            "minimum_detectable_effect": None if self.detectable is None else asdict(self.detectable),
            "method": self.method,
            "why": self.test.why,
            "ties": self.test.ties,
            "n_examples": self.n_examples,
            "n_discordant": self.n_discordant,
            "n_better": self.n_better,
            "n_worse": self.n_worse,
            "cases": [asdict(case) for case in self.cases],
            "remarks": list(self.remarks),
            "second_opinions": [asdict(each) for each in self.second_opinions],
            "dependence": [asdict(each) for each in self.dependence],
            "pairing": self.pairing.to_dict(),
            "options": dict(self.options),
            "signature": self.signature,
            "key": self.key,
        }

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_frame(self) -> pl.DataFrame:
        """Return the result as a frame of one row, so that frames of several comparisons can be concatenated.

        Returns
        -------
        polars.DataFrame
            Columns ``statistic``, ``baseline``, ``candidate`` (names of the runs), ``baseline_score``,
            ``candidate_score``, ``difference``, ``ci_low``, ``ci_high`` (ends of `interval`), ``p_value``,
            ``adjusted_p``, ``equivalence_p``, ``equivalence_power`` (if the true difference is 0),
            ``verdict``, ``n_examples``, ``n_discordant``, ``n_better``, ``n_worse``, ``signature``. What the
            comparison lacks is null; a p-value below the range of floats is 0.
        """
        named = {
            "statistic": self.title,
            "baseline": self.baseline_name,
            "candidate": self.candidate_name,
            "ci_low": None if self.interval is None else self.interval.low,
            "ci_high": None if self.interval is None else self.interval.high,
            "p_value": self.pvalue,
            "adjusted_p": None if self.corrected is None else self.corrected.pvalue,
            "equivalence_p": None if self.equivalence is None else self.equivalence.pvalue,
            "equivalence_power": None if self.equivalence_power is None else self.equivalence_power.at_zero,
        }
        return one_row({name: named[name] if name in named else getattr(self, name) for name in TYPES})

    def __repr__(self) -> str:
        return (
            f"<Comparison of `{self.candidate_name}` with `{self.baseline_name}` by {self.statistic.title}:"
            f" {'mid-p' if self.test.mid_p else 'p'} {self.test.relation}"
            f" {self.format_pvalue()}, {self.verdict}>"
        )
