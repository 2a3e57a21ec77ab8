"""Comparison of two runs by one statistic: pairing, counting and testing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction

import numpy as np

from trackperm.choices import EngineName, Missing, MissingRule
from trackperm.comparison.assumptions.dependence import Dependence, dependence_of
from trackperm.comparison.context import MissingDataCase
from trackperm.comparison.inference.verdict import checked_margin
from trackperm.comparison.result import Comparison
from trackperm.comparison.runs import RunData, named_test_sets
from trackperm.comparison.scores import ranked_examples, score_of, scores_of
from trackperm.errors import (
    InputError,
    TrackpermError,
    UndefinedError,
    UndefinedStatisticError,
    UntestableError,
)
from trackperm.exact import CountTable, PermutationTest, RationalStatistic, RealStatistic, TestOptions
from trackperm.exact.attempts import attempts_test_of
from trackperm.exact.functions.rational import Polynomial
from trackperm.exact.options import MEMORY_BUDGET, N_SAMPLES
from trackperm.exact.outcome import n_requested
from trackperm.exact.permutation import structured_test_of
from trackperm.exact.rank_statistics import draws_by_default, rank_test_of
from trackperm.pairing import PairingResult
from trackperm.pairing.notes import without_case
from trackperm.pairing.pair import pair
from trackperm.statistic import Statistic, load_statistic
from trackperm.statistic.definition import ATTEMPTS
from trackperm.statistic.rank_score import CLUSTER
from trackperm.statistic.score_ranges import require_margin_within
from trackperm.tables.table import ExampleTable

SWAPS_BY_CLUSTER = 20_000
"""Most random swaps for the p-value by cluster, which is reported beside the main one.

At p = 0.05 its standard error is 0.0015, which is enough for a warning.
"""

ROUNDED_AWAY = (
    "divides by a number of which the rounding of its counts leaves fewer than three digits, as where all"
    " labels are nearly equal"
)
ROUNDED_AWAY_HINT = "subtract a constant from labels and predictions, or round them to a few digits."

_FINE = 2**30
"""Denominator of a power of two from which on a unit comes from floats, and not from halves or quarters."""

_WHOLE_FLOAT = 2**50
"""Average number of units from which on numbers are floats with all digits, which are rounded."""

_LEAST_SHARE = 10**3
"""Ratio of a divisor to its error by rounded counts from which on a score is computed."""

_RATIO_HINT = (
    "test the difference of the scores by `contrast: difference`, or add a constant that keeps them above 0:"
    " `score: (wrong + 0.5) / (n + 1)`."
)


def compare_runs(
    baseline: RunData,
    candidate: RunData,
    statistic: Statistic,
    options: TestOptions | None = None,
    *,
    margin: float | None = None,
    missing: MissingRule = "error",
    by_position: bool = False,
    engine: EngineName = "auto",
    check_logs: bool = True,
    is_slice: bool = False,
) -> Comparison:
    """Compare two loaded runs by one statistic; options as in :func:`~trackperm.comparison.compare.compare`.

    `check_logs` looks for dependent groups of examples, see :mod:`.dependence`, and for predictions that look
    wrongly logged. Of slices (`is_slice`), the comparison of all examples does so, and compares the names of
    test sets; a run may have no examples of a slice.

    Raises
    ------
    InputError
        If any part of the input cannot be used; subclasses name the problem.
    """
    baseline, candidate = baseline.for_statistic(statistic), candidate.for_statistic(statistic)
    options = TestOptions() if options is None else options
    if margin is not None:
        margin = checked_margin(margin, options.alpha)
        require_margin_within(statistic, margin)
    options = options.with_default(statistic.alternative)
    has_clusters = statistic.cluster is not None or statistic.repeats == "attempts"
    check_logs = check_logs and not is_slice
    may_depend = check_logs and not has_clusters
    rules: tuple[Missing, ...] = ("worst", "best") if missing == "bounds" else (missing,)
    compared = []
    for rule in rules:
        named = named_test_sets(baseline, candidate, statistic.columns["id"])
        with nullcontext() if is_slice else named:
            tables = baseline.table, candidate.table
            pairing = pair(
                *tables,
                statistic,
                missing=rule,
                by_position=by_position,
                engine=engine,
                check_logs=check_logs,
                may_be_empty=is_slice,
            )
        _require_scores(pairing, baseline, candidate)
        test = _tested(pairing, options, baseline)
        found = _comparison(baseline, candidate, pairing, test, options, margin)
        if may_depend and _has_others(tables, statistic, by_position):
            seen = dependence_of(baseline, candidate, pairing)
            clusters = tuple(_by_cluster(each, found, statistic, options) for each in seen)
            found = replace(found, dependence=clusters)
        compared.append(found)
    if missing != "bounds":
        return compared[0]
    cases = tuple(
        MissingDataCase(
            case.pairing.missing,
            case.difference,
            case.pvalue,
            case.log10_pvalue,
            case.test.relation,
            case.decision.sign,
        )
        for case in compared
    )
    weaker = max(compared, key=lambda comparison: comparison.log10_pvalue)
    report = weaker.pairing
    return replace(
        weaker,
        pairing=replace(report, notes=without_case(report.notes, report.missing)),
        options={**weaker.options, "missing": "bounds"},
        cases=cases,
        bounds=tuple(compared),
    )


def _has_others(tables: tuple[ExampleTable, ExampleTable], statistic: Statistic, by_position: bool) -> bool:
    """Whether there are columns that may hold clusters: unread ones, or those of an id of several columns."""
    read = {column for role, column in statistic.columns.items() if role != "id" or not by_position}
    columns = {name for table in tables for name in table.columns}
    return statistic.columns["id"] not in columns or not columns <= read


def _comparison(
    baseline: RunData,
    candidate: RunData,
    pairing: PairingResult,
    test: PermutationTest,
    options: TestOptions,
    margin: float | None,
) -> Comparison:
    return Comparison(
        statistic=pairing.statistic,
        baseline_data=baseline,
        candidate_data=candidate,
        test=test,
        alpha=options.alpha,
        count_table=pairing.count_table,
        pairing=pairing.report,
        discordant=pairing.discordant,
        options=_logged_options(options, test, pairing, margin),
        margin=margin,
    )


def _by_cluster(
    seen: Dependence, comparison: Comparison, statistic: Statistic, options: TestOptions
) -> Dependence:
    """Add the p-value of the test that exchanges whole clusters, if that test is possible."""
    baseline, candidate = comparison.baseline_data, comparison.candidate_data
    n_drawn = min(options.draws(SWAPS_BY_CLUSTER), SWAPS_BY_CLUSTER)
    options = replace(options, method="auto", n_samples=n_drawn)
    try:
        clustered = load_statistic(statistic, cluster=seen.column)
        paired = comparison.pairing
        pairing = pair(
            baseline.table,
            candidate.table,
            clustered,
            missing=paired.missing,
            by_position=paired.by == "position",
        )
        _require_scores(pairing, baseline, candidate)
        test = _tested(pairing, options, baseline)
        found = _comparison(baseline, candidate, pairing, test, options, None)
    except TrackpermError:
        return seen
    return replace(
        seen,
        pvalue=found.pvalue or None,
        log10_pvalue=found.log10_pvalue,
        method=found.method,
        verdict=found.decision.sign,
        is_bound=found.test.relation == "≤",
    )


def _logged_options(
    options: TestOptions, test: PermutationTest, pairing: PairingResult, margin: float | None
) -> dict[str, str]:
    """Return the options that identify the comparison, as text."""
    logged = {
        "alternative": options.tested,
        "alpha": repr(options.alpha),
        "missing": pairing.report.missing,
        "method": options.method,
    }
    if options.mid_p:
        logged["mid_p"] = "true"
    if margin is not None:
        logged["margin"] = repr(margin)
    if options.interval != "auto":
        logged["interval"] = options.interval
    is_rank = pairing.statistic.rank_score is not None
    by_default = draws_by_default(pairing.count_table.n_examples) if is_rank else N_SAMPLES
    if (n_drawn := n_requested(test, options, by_default)) is not None:
        logged |= {"n_samples": str(n_drawn), "seed": str(options.seed)}
    if options.memory_budget != MEMORY_BUDGET:
        logged["memory_budget"] = str(options.memory_budget)
    if test.method == "monte-carlo":
        logged["exceedances"] = str(options.exceedances)
    return logged


def _tested(pairing: PairingResult, options: TestOptions, baseline: RunData) -> PermutationTest:
    """Test as :func:`count_table_test` does; an error of a division by 0 says if all labels are equal."""
    try:
        return count_table_test(pairing.statistic, pairing.count_table, options)
    except InputError:
        _require_labels_that_differ(pairing.statistic, pairing.count_table, baseline)
        raise


def count_table_test(statistic: Statistic, table: CountTable, options: TestOptions) -> PermutationTest:
    """Test a statistic on a table of counts.

    Raises
    ------
    InputError
        If sums of counts exceed 64 bits, or a division by zero has no declared value.
    UndefinedStatisticError
        If the statistic is undefined after some swaps of outputs.
    CapacityError
        If the problem is too large for the named engine.
    """
    if statistic.repeats == "attempts":
        return _attempts_test(statistic, table, options)
    if statistic.rank_score is not None:
        ranked, scores = ranked_examples(statistic, table)
        n_units = table.n_examples
        if CLUSTER in table.names:
            n_units = np.unique(table.candidate[:, table.names.index(CLUSTER)]).size
        return rank_test_of(scores, ranked, options, n_units=n_units)
    observed, swapped = statistic.pairs(table.candidate, table.baseline)
    try:
        return structured_test_of(
            observed,
            swapped,
            statistic.tested(observed, swapped, table.multiplicities),
            options,
            multiplicities=table.multiplicities,
        )
    except UndefinedStatisticError as error:
        if statistic.contrast != "log ratio":
            raise
        raise UndefinedStatisticError(
            f"`contrast: log ratio` needs scores above 0; some swaps of outputs make `{statistic.name}` 0",
            hint=_RATIO_HINT,
        ) from error


def _attempts_test(statistic: Statistic, table: CountTable, options: TestOptions) -> PermutationTest:
    """Test pass rates by permuting attempts within examples; refuse other statistics."""
    place = table.names.index(ATTEMPTS)
    attempts = table.candidate[:, place], table.baseline[:, place]
    rates = [
        [score_of(statistic, tuple(int(count) for count in row)) or 0.0 for row in side]
        for side in (table.candidate, table.baseline)
    ]
    passed = [np.rint(np.array(rate) * n).astype(np.int64) for rate, n in zip(rates, attempts, strict=True)]
    test = attempts_test_of(
        passed[0], attempts[0], passed[1], attempts[1], options, multiplicities=table.multiplicities
    )
    candidate, baseline = scores_of(statistic, table)
    difference = math.nan if candidate is None or baseline is None else candidate - baseline
    if not math.isclose(difference, test.observed, abs_tol=1e-9):
        raise InputError(
            f"`{statistic.name}` is not a mean of pass rates of examples; `--unit attempt` needs one",
            hint="exchange the means of examples by `--repeats mean`.",
        )
    return test


def _require_scores(pairing: PairingResult, baseline: RunData, candidate: RunData) -> None:
    """Refuse scores that are 0/0 in both runs, and a log ratio of scores that are not positive."""
    _require_defined_scores(pairing.statistic, pairing.count_table)
    if pairing.statistic.contrast == "log ratio":
        _require_ratio(pairing.statistic, pairing.count_table, baseline, candidate)


def _require_defined_scores(statistic: Statistic, table: CountTable) -> None:
    """Refuse scores that are 0/0 in both runs, or that rounding decides."""
    if all(is_empty(statistic, totals) for totals in table.totals()):
        given = ", ".join(f"`{name}` is {value!r}" for name, value in statistic.parameters.items())
        is_always = _shares_divisors(statistic, table)
        raise (UntestableError if is_always else UndefinedStatisticError)(
            f"`{statistic.name}` is 0/0 in both runs, so there is nothing to compare",
            hint=f"check that the data contain it: {given}." if given else None,
        )
    n_examples = table.n_examples
    if any(is_rounded_away(statistic, totals, n_examples) for totals in table.totals()):
        raise InputError(f"`{statistic.name}` {ROUNDED_AWAY}", hint=ROUNDED_AWAY_HINT)


def _require_labels_that_differ(statistic: Statistic, table: CountTable, run: RunData) -> None:
    """Refuse scores that divide by 0 because all labels are equal, such as R^2."""
    label = statistic.columns.get("label")
    if label not in run.table.columns or statistic.score is None:
        return
    if any(score_of(statistic, totals) is not None for totals in table.totals()):
        return
    if statistic.divides_by_labels and run.table.polars_column(label).drop_nulls().n_unique() == 1:
        raise UntestableError(
            f"`{statistic.name}` is undefined: all labels of the examples are equal, so that it divides by 0",
            hint="use labels that differ, or a statistic that their spread does not divide, such as `mse`.",
        )


def is_empty(statistic: Statistic, totals: tuple[int, ...]) -> bool:
    """Whether every division in the score of a run is 0/0, in every stratum or class.

    Correlations, which divide by roots, have the value 0 by convention where all predictions are equal.
    """
    divisors, parts = _divisors(statistic), _parts(statistic, totals)
    is_ratio = isinstance(statistic.part_score, RationalStatistic) and bool(divisors)
    return is_ratio and all(_value(each, part) == 0 for each in divisors for part in parts)


def _shares_divisors(statistic: Statistic, table: CountTable) -> bool:
    """Whether both runs have the same counts in all divisors of the score, on every example.

    Then no exchange of outputs changes a divisor. Exchanges of attempts are others.
    """
    used = {
        i
        for divisor in _divisors(statistic)
        if isinstance(divisor, Polynomial)
        for term in divisor.terms
        for i, power in enumerate(term)
        if power
    }
    p = len(statistic.count_names)
    read = [i for i in range(len(table.names)) if i % p in used]
    is_same = bool((table.candidate[:, read] == table.baseline[:, read]).all())
    return is_same and statistic.repeats != "attempts"


def is_rounded_away(statistic: Statistic, totals: tuple[int, ...], n_examples: int) -> bool:
    """Whether the rounding of counts leaves fewer than three digits of a divisor of a run's score.

    `totals` are the sums of rounded counts over `n_examples` examples.
    """
    factors = [
        factor
        for divisor in _divisors(statistic)
        for factor in (divisor.factors if isinstance(divisor, RealStatistic) else (divisor,))
    ]
    units = {} if isinstance(statistic.resolution, Fraction) else statistic.resolution
    for part in _parts(statistic, totals):
        errors = [
            _error(x, n_examples, units.get(name))
            for x, name in zip(part, statistic.count_names, strict=True)
        ]
        if not any(errors):
            continue
        moved = [[x + errors[i] * (i == j) for j, x in enumerate(part)] for i in range(len(part))]
        for factor in factors:
            value = _value(factor, part)
            change = sum(abs(_value(factor, each) - value) for each in moved)
            if abs(value) < _LEAST_SHARE * change:
                return True
    return False


def _divisors(statistic: Statistic) -> Sequence[Polynomial | RealStatistic]:
    """Return the divisors of a score of counts that are not constant."""
    score = statistic.part_score
    return score.divisors if isinstance(score, RationalStatistic | RealStatistic) else ()


def _parts(statistic: Statistic, totals: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the totals of each stratum or class."""
    p = len(statistic.count_names)
    return [totals[first : first + p] for first in range(0, len(totals), p)]


def _value(divisor: Polynomial | RealStatistic, totals: Sequence[int]) -> float:
    """Return the value of a divisor; NaN where it is undefined or beyond the range of floats."""
    try:
        return float(divisor.number(totals) if isinstance(divisor, RealStatistic) else divisor(totals))
    except (UndefinedError, OverflowError):
        return math.nan


def _error(total: int, n_examples: int, unit: Fraction | None) -> int:
    """Bound the error of a sum of numbers that may have been rounded, in units; 0 where it is exact.

    Each number errs by half a unit and by the rounding of a float. Sums of large floats end with zero bits.
    """
    size = abs(total) // n_examples
    if unit is None:
        is_rounded = size >= 2**53 and total % 2 ** (size.bit_length() - 54) == 0
    else:
        is_fine = unit.denominator > _FINE and unit.denominator & (unit.denominator - 1) == 0
        is_rounded = is_fine or size >= _WHOLE_FLOAT
    return n_examples + abs(total) // 2**52 if is_rounded and total else 0


def _require_ratio(statistic: Statistic, table: CountTable, baseline: RunData, candidate: RunData) -> None:
    """Refuse a log ratio of scores that are not positive."""
    sides = ("candidate", candidate), ("baseline", baseline)
    for (role, run), totals in zip(sides, table.totals(), strict=True):
        score = score_of(statistic, totals)
        if score is not None and score <= 0:
            raise InputError(
                f"the score `{statistic.name}` of the {role} `{run.table.origin}` is {score:.4g};"
                " `contrast: log ratio` needs a score above 0",
                hint=_RATIO_HINT,
            )
