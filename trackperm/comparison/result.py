"""The result of a comparison: one frozen value that knows all that is printed, logged and verified."""

from __future__ import annotations

import hashlib
import html
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import narwhals as nw

from trackperm.choices import Alternative
from trackperm.comparison.context import AdjustedPValue, Case, Slice
from trackperm.comparison.dependence import Dependence
from trackperm.comparison.effect import detectable_effect_of, effect_sizes_of, interval_of
from trackperm.comparison.evidence import SizeBounds, size_bounds
from trackperm.comparison.null_hypothesis import null_hypothesis, remarks
from trackperm.comparison.runs import RunData
from trackperm.comparison.second_opinions import (
    STUDENTIZED,
    SecondOpinion,
    second_opinions,
    studentized_opinion,
)
from trackperm.comparison.verdict import Verdict, Word, decide
from trackperm.errors import InputError, TrackpermError, UndefinedError
from trackperm.exact import CountTable, NullDistribution, PermutationTest, RationalStatistic
from trackperm.exact.intervals import EffectSizes, Interval
from trackperm.exact.power import MinimumDetectableEffect
from trackperm.pairing import PairingReport
from trackperm.statistic import Statistic
from trackperm.trackers.references import TrackedRun
from trackperm.version import __version__


@dataclass(frozen=True)
class Comparison:
    """Everything about one comparison that is needed to print, publish and verify it.

    Attributes
    ----------
    statistic : Statistic
        What was tested.
    baseline, candidate : RunData
        The two runs; the statistic is that of the candidate minus that of the baseline.
    test : PermutationTest
        The exact test's result.
    alpha : float
        Significance level of the verdict.
    count_table : CountTable
        Distinct counts of both runs with multiplicities: the test can be repeated from it alone.
    pairing : PairingReport
        How examples were matched, and what was left out.
    discordant : narwhals.DataFrame
        The examples whose counts differ, ordered by id.
    options : mapping of str to str
        The choices that make this comparison what it is, as they enter `key`.
    cases : tuple of Case
        Where missing predictions were bounded: what the runs come to at their worst and at their best.
    outcomes : tuple of Comparison
        The comparisons in these cases; none where the result was read back from a log.
    margin : float or None
        The smallest difference that matters.
    part : Slice or None
        The slice of the examples that was compared; None for all.
    corrected : AdjustedPValue or None
        The p-value among all those of the tests that were made together.
    second_opinions : tuple of SecondOpinion
        What other tests say, where somebody asked; no part of `key`.
    dependence : tuple of Dependence
        Columns by which examples hang together, which the test takes for independent; no part of `key`.
    """

    statistic: Statistic
    baseline_data: RunData = field(repr=False)
    candidate_data: RunData = field(repr=False)
    test: PermutationTest
    alpha: float
    count_table: CountTable = field(repr=False)
    pairing: PairingReport
    discordant: nw.DataFrame[Any] = field(repr=False)
    options: Mapping[str, str]
    cases: tuple[Case, ...] = ()
    outcomes: tuple[Comparison, ...] = field(default=(), repr=False, compare=False)
    margin: float | None = None
    part: Slice | None = None
    corrected: AdjustedPValue | None = None
    second_opinions: tuple[SecondOpinion, ...] = ()
    dependence: tuple[Dependence, ...] = ()

    @property
    def title(self) -> str:
        """The statistic, and the slice if it is of one."""
        return self.statistic.name if self.part is None else f"{self.statistic.name} [{self.part}]"

    @property
    def baseline(self) -> str:
        """What messages call the baseline: a run reference, a path or ``baseline``."""
        return self.baseline_data.table.origin

    @property
    def candidate(self) -> str:
        """What messages call the candidate."""
        return self.candidate_data.table.origin

    @property
    def baseline_name(self) -> str:
        """The baseline's name for people."""
        return self.baseline_data.name

    @property
    def candidate_name(self) -> str:
        """The candidate's name for people."""
        return self.candidate_data.name

    @property
    def baseline_run(self) -> TrackedRun | None:
        """The baseline in its tracker, if it is in one."""
        return self.baseline_data.run

    @property
    def candidate_run(self) -> TrackedRun | None:
        """The candidate in its tracker, if it is in one."""
        return self.candidate_data.run

    @property
    def pvalue(self) -> float:
        """The p-value; 0.0 only where it is below the range of floats."""
        return self.test.pvalue

    def format_pvalue(self, digits: int = 3) -> str:
        """Write the p-value; with more digits where it is next to `alpha`, so that the verdict shows."""
        return self.test.format_pvalue(digits, self.alpha)

    @property
    def log10_pvalue(self) -> float:
        """Decimal logarithm of the p-value, always finite."""
        return self.test.log10_pvalue

    @property
    def error_bound(self) -> float:
        """Certified bound on the error of the p-value, relative to it; 1 where it is only an upper bound.

        Infinity for Monte Carlo, which certifies nothing.
        """
        return self.test.error_bound

    @property
    def method(self) -> str:
        """Numerical engine that computed the p-value."""
        return self.test.method

    @property
    def observed(self) -> float:
        """The statistic of the runs as they are."""
        return self.test.observed

    @property
    def n_examples(self) -> int:
        """Number of examples tested."""
        return self.test.n_examples

    @property
    def n_discordant(self) -> int:
        """Number of examples whose outputs count differently in the two runs.

        Where attempts are exchanged within examples, those on which not all attempts have the same outcome.
        """
        return (
            self.test.n_discordant if self.statistic.repeats == "attempts" else self.count_table.n_discordant
        )

    @property
    def n_better(self) -> int | None:
        """Discordant examples on which the candidate is better, where single examples have a sign."""
        return self.test.n_better if self.statistic.greater_is_better else self.test.n_worse

    @property
    def n_worse(self) -> int | None:
        """Discordant examples on which the candidate is worse, where single examples have a sign."""
        return self.test.n_worse if self.statistic.greater_is_better else self.test.n_better

    @property
    def null_distribution(self) -> NullDistribution:
        """The law of the statistic if swapping outputs made no difference."""
        return self.test.null_distribution

    @property
    def baseline_score(self) -> float | None:
        """The baseline's own score; None where the statistic is not a difference of scores."""
        return score_of(self.statistic, self.count_table.totals()[1])

    @property
    def candidate_score(self) -> float | None:
        """The candidate's own score; None where the statistic is not a difference of scores."""
        return score_of(self.statistic, self.count_table.totals()[0])

    @property
    def difference(self) -> float:
        """Candidate's score minus baseline's, which is the observed statistic."""
        return self.test.observed

    @property
    def n_uncorrected(self) -> int | None:
        """Number of tests made together and not corrected for each other; None where that is not so."""
        return int(self.options["n_tests"]) if self.options.get("correction") == "none" else None

    @property
    def is_open(self) -> bool:
        """Whether the sign depends on what the missing predictions would have been."""
        return len({case.verdict for case in self.cases}) > 1

    @cached_property
    def decision(self) -> Verdict:
        """What is shown of the sign, and of the size where there is a margin; see :mod:`.verdict`.

        A p-value counts as below alpha only if it is so with its whole interval, of what is certified, or
        with 99 % confidence for Monte Carlo; and only if it is so corrected, where several were computed
        together. What the worst and the best case of missing predictions do not agree on is undecided.
        """
        pvalue = max(self.pvalue, self.test.interval[1])
        if self.corrected is not None:
            pvalue = self.corrected.pvalue if self.corrected.rejected else 1.0
        size = self.size if self.margin is not None else None
        lack = None if size is None or self.margin is None else size.lack(self.margin)
        return decide(
            pvalue,
            self.observed,
            alternative=self.test.alternative,
            greater_is_better=self.statistic.greater_is_better,
            alpha=self.alpha,
            is_open=self.is_open,
            margin=self.margin,
            interval=None if size is None or lack is not None else (size.low, size.high),
            lack=lack,
        )

    @property
    def verdict(self) -> Word:
        """The verdict on the candidate in one word: better, worse, equivalent or undecided."""
        return self.decision.word

    @property
    def marker(self) -> str:
        """One sign for the verdict: ▲ better, ▼ worse, ≡ equivalent, ≈ undecided."""
        return self.decision.marker

    @cached_property
    def interval(self) -> Interval | None:
        """The interval of confidence 1 - alpha for the statistic; None where it may cover less than that.

        That of a two-sided test is two-sided. It is of this comparison alone: no correction widens it.
        """
        return None if isinstance(self._own_interval, str) else self._own_interval

    @property
    def no_interval(self) -> str | None:
        """Why no interval is shown for the statistic; None where one is."""
        return self._own_interval if isinstance(self._own_interval, str) else None

    @cached_property
    def _own_interval(self) -> Interval | str:
        return self._interval(self.alpha, self.test.alternative)

    def interval_at(self, alpha: float) -> Interval | None:
        """Return the two-sided interval of confidence 1 - alpha for the statistic, if there is one.

        Raises
        ------
        InputError
            If `alpha` is not between 0 and 1.
        """
        found = self._interval(alpha, "two-sided")
        return None if isinstance(found, str) else found

    def _interval(self, alpha: float, alternative: Alternative) -> Interval | str:
        """Return the interval, or why there is none."""
        if self.outcomes:
            each_case = [outcome._interval(alpha, alternative) for outcome in self.outcomes]
            hull = [each for each in each_case if not isinstance(each, str)]
            if len(hull) < len(each_case):
                return next(each for each in each_case if isinstance(each, str))
            low, high = min(each.low for each in hull), max(each.high for each in hull)
            return replace(max(hull, key=lambda each: each.approximate), low=low, high=high)
        found = interval_of(self.statistic, self.count_table, alpha=alpha, alternative=alternative)
        # It is the plain exact p-value that an interval can agree with.
        is_plain = not self.test.mid_p and self.method != "monte-carlo"
        return found if is_plain or isinstance(found, str) else replace(found, relation="may disagree")

    @cached_property
    def size(self) -> SizeBounds:
        """What is shown of the size of the difference, by bounds of level alpha; see :mod:`.evidence`.

        Over all cases where missing predictions leave some open.
        """
        if self.outcomes:
            return reduce(SizeBounds.joined, [outcome.size for outcome in self.outcomes])
        return size_bounds(self.statistic, self.count_table, self.alpha)

    @cached_property
    def effect_sizes(self) -> EffectSizes:
        """The difference in the ways that people report it, as far as they mean something here."""
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
        """The smallest true difference that such a comparison shows at 80 % power; None if not known."""
        try:
            return detectable_effect_of(
                self.statistic, self.count_table, alpha=self.alpha, alternative=self.test.alternative
            )
        except TrackpermError:
            return None

    @property
    def null_hypothesis(self) -> str:
        """What the p-value takes for granted, in words."""
        return null_hypothesis(self.statistic)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Where the verdict is on the sign: why p could be small with equal scores, mostly nothing."""
        if self.decision.sign == "undecided":
            return ()
        return remarks(
            self.statistic,
            self.count_table,
            observed=self.observed,
            alternative=self.test.alternative,
            alpha=self.alpha,
        )

    def with_second_opinions(self) -> Comparison:
        """Return the same comparison, of the same `key`, with what other tests say of its counts."""
        found = second_opinions(self.statistic, self.count_table, self.test, self.alpha)
        kept = (each for each in self.second_opinions if each.name == STUDENTIZED)
        return replace(self, second_opinions=(*found, *kept))

    def with_studentized(self) -> Comparison:
        """Return the same comparison, of the same `key`, with what the studentised permutation test says.

        It tests equal scores, where the test itself asks whether outputs are exchangeable: the two differ for
        ratios such as precision whose divisors lie far apart. The verdict does not go by it.
        """
        others = (each for each in self.second_opinions if each.name != STUDENTIZED)
        found = studentized_opinion(self.statistic, self.count_table, self.test, self.alpha)
        return replace(self, second_opinions=(*others, found))

    @property
    def key(self) -> str:
        """Digest of both runs, their data, the spec and the options: equal keys, same comparison."""
        # A path says nothing about the data, which the digests do; a run's reference says where it belongs.
        parts = [
            None if self.baseline_run is None else self.baseline,
            None if self.candidate_run is None else self.candidate,
            self.pairing.baseline_digest,
            self.pairing.candidate_digest,
            self.statistic.document(),
            dict(sorted(self.options.items())),
        ]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()

    @property
    def signature(self) -> str:
        """One line that says what it takes to reproduce the number."""
        spec = hashlib.sha256(self.statistic.document().encode()).hexdigest()
        parts = {
            "alt": self.test.alternative,
            "n": self.n_examples,
            "discordant": self.n_discordant,
            "paired": self.pairing.by,
            "missing": self.options["missing"],
            "method": self.method,
            "ties": self.test.ties,
            **({"p": "mid"} if self.test.mid_p else {}),
            **({"slice": str(self.part)} if self.part is not None else {}),
            **({"margin": repr(self.margin)} if self.margin is not None else {}),
            **(
                {"corrected": f"{self.corrected.method}/{self.corrected.n_tests}"}
                if self.corrected is not None
                else {}
            ),
            **({"corrected": f"none/{self.n_uncorrected}"} if self.n_uncorrected is not None else {}),
            **({"drawn": self.test.n_samples} if self.test.n_samples is not None else {}),
            "data": f"{self.pairing.baseline_digest[:8]}/{self.pairing.candidate_digest[:8]}",
            "spec": spec[:8],
            "trackperm": __version__,
        }
        return "|".join([self.statistic.name, *(f"{name}:{value}" for name, value in parts.items())])

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values that JSON can hold; numbers that are not finite become None."""
        return {
            "statistic": self.statistic.name,
            "chosen": self.statistic.chosen or None,
            "score": self.statistic.score_text,
            "baseline": self.baseline,
            "candidate": self.candidate,
            "baseline_name": self.baseline_name,
            "candidate_name": self.candidate_name,
            "baseline_score": _finite(self.baseline_score),
            "candidate_score": _finite(self.candidate_score),
            "difference": self.difference,
            "pvalue": self.pvalue if self.pvalue > 0.0 else None,
            "log10_pvalue": self.log10_pvalue,
            "error_bound": _finite(self.error_bound),
            "pvalue_interval": list(self.test.interval),
            "mid_p": self.test.mid_p,
            "n_samples": self.test.n_samples,
            "log10_smallest_pvalue": self.test.log10_smallest_pvalue,
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
            "slice": None if self.part is None else asdict(self.part),
            "interval": _plain_interval(self.interval),
            "no_interval": self.no_interval,
            "effect_sizes": _plain_effect_sizes(self.effect_sizes),
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

    def __repr__(self) -> str:
        return (
            f"<Comparison of `{self.candidate_name}` with `{self.baseline_name}` by {self.statistic.name}:"
            f" {'mid-p' if self.test.mid_p else 'p'} {'≈' if self.method == 'monte-carlo' else '='}"
            f" {self.format_pvalue()}, {self.verdict}>"
        )

    def _repr_html_(self) -> str:
        rows = {
            "baseline": f"{self.baseline_name} {_short(self.baseline_score)}",
            "candidate": f"{self.candidate_name} {_short(self.candidate_score)}",
            "difference": _short(self.difference),
            "mid-p-value" if self.test.mid_p else "p-value": (
                f"{self.format_pvalue()}{' (Monte Carlo)' * (self.method == 'monte-carlo')}"
            ),
            "examples": f"{self.n_examples} ({self.n_discordant} discordant)",
            "verdict": f"{self.marker} {self.verdict}",
        }
        cells = "".join(
            f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in rows.items()
        )
        return f"<table><caption>{html.escape(self.statistic.name)}</caption>{cells}</table>"


def score_of(statistic: Statistic, totals: tuple[int, ...]) -> float | None:
    """Return a run's score from the totals of its counts: None or NaN where it has none.

    Raises
    ------
    InputError
        If it is beyond the range of floats.
    """
    if statistic.score is None:
        return None
    if isinstance(statistic.score, RationalStatistic):
        try:
            return float(statistic.score(totals))
        except ZeroDivisionError:
            return None
    try:
        score = float(statistic.score.number(totals))
    except UndefinedError:
        return math.nan
    if math.isinf(score):
        raise InputError(
            f"a score by `{statistic.name}` is beyond the range of floats",
            hint="let `exp` and powers take smaller numbers.",
        )
    return score


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _plain_effect_sizes(found: EffectSizes) -> dict[str, Any]:
    return {
        "relative_change": _finite(found.relative_change),
        "cohens_dz": _finite(found.cohens_dz),
        "odds": _finite(found.odds),
        "odds_interval": _plain_interval(found.odds_interval),
    }


def _plain_interval(interval: Interval | None) -> dict[str, Any] | None:
    """Return an interval as plain values, with None for an end that nothing bounds."""
    if interval is None:
        return None
    ends = {"low": _finite(interval.low), "high": _finite(interval.high)}
    return {
        **ends,
        "confidence": interval.confidence,
        "alternative": interval.alternative,
        "method": interval.method,
        "relation": interval.relation,
        "note": interval.note,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
