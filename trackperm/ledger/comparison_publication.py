"""Publication of a comparison: metrics, tables, files, tags and a description for a tracker."""

from __future__ import annotations

import io
import math

import polars as pl

from trackperm.comparison import Comparison
from trackperm.comparison.second_opinions import STUDENTIZED
from trackperm.exact.result import EXACT_WITHIN
from trackperm.ledger.run_texts import comparison_cell, comparison_name
from trackperm.report.rendered import render_comparison
from trackperm.statistic.written_spec import written_spec
from trackperm.trackers.publication import TEST_SET_TAG, Publication, RunTags, score_tag

MAX_COUNT_ROWS = 1_000_000
"""Rows of the largest logged count table; a larger one is about as big as the predictions themselves."""

LOG10_P_TAG = "trackperm.log10_p"
"""Decimal logarithm of the p-value, with all digits."""

SIGNATURE_TAG = "trackperm.signature"
SLICE_TAG = "trackperm.slice"
"""Column and value of the slice; absent for all examples."""

OPINIONS_TAG = "trackperm.second_opinions"
"""Number of second opinions, and how many are on the other side of alpha; absent if none was requested."""

STUDENTIZED_TAG = "trackperm.studentized"
"""p-value of the studentised permutation test, and its side of alpha; absent if it was not requested."""


def publication(comparison: Comparison, look: int | None = None, in_leaderboards: int = 0) -> Publication:
    """Build the publication of a comparison, with its number among the logged ones on its test set, from 1.

    Of these, `in_leaderboards` earlier ones are pairs of leaderboards. Equal comparisons give byte-identical
    publications, with the same versions of the libraries.
    """
    rendered, files = render_comparison(comparison), evidence(comparison)
    remarks = [] if look is None else [look_sentence(look, in_leaderboards)]
    remarks += rendered.remarks
    if "trackperm/count_table.parquet" not in files:
        n_rows = len(comparison.count_table.multiplicities)
        why = f"its {n_rows:,} distinct rows exceed {MAX_COUNT_ROWS:,}"
        remarks.append(f"count table: not logged, because {why}")
    statistic = comparison.statistic.name
    baseline_score, candidate_score = comparison.guaranteed_scores
    candidate_tags: RunTags = {
        f"sig.{statistic}": comparison_cell(comparison),
        f"sig.{statistic}.vs": rendered.baseline_name,
        **score_tag(statistic, candidate_score),
    }
    baseline_tags: RunTags = {
        f"sig.{statistic}.baseline_of": f"{rendered.candidate_name} {comparison.marker}",
        **score_tag(statistic, baseline_score),
    }
    return Publication(
        key=comparison.key,
        name=comparison_name(comparison),
        metrics=metrics(comparison),
        tables=rendered.tables,
        files={**rendered.files, **files},
        tags=comparison_tags(comparison),
        description=rendered.description(remarks),
        baseline=comparison.baseline_run,
        candidate=comparison.candidate_run,
        # tags of the runs are named by the statistic alone, so a slice gets none
        candidate_tags={} if comparison.slice else candidate_tags,
        baseline_tags={} if comparison.slice else baseline_tags,
        charts=rendered.charts,
    )


def look_sentence(look: int, in_leaderboards: int = 0) -> str:
    """Return the place of a comparison among those on its test set, as a sentence."""
    suffix = "th" if look % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(look % 10, "th")
    return f"{look}{suffix} logged comparison on this test set{_counting(in_leaderboards)}"


def looks_sentence(first: int, n_pairs: int, in_leaderboards: int = 0) -> str:
    """Return the places of a leaderboard's pairs among the comparisons on its test set, as a sentence."""
    if n_pairs == 1:
        return look_sentence(first, in_leaderboards)
    places = f"logged comparisons {first} to {first + n_pairs - 1} on this test set"
    return f"{places}, one for each pair{_counting(in_leaderboards)}"


def _counting(in_leaderboards: int) -> str:
    if not in_leaderboards:
        return ""
    return f" ({in_leaderboards} before in leaderboards, each pair counted)"


def metrics(comparison: Comparison) -> dict[str, float]:
    """Return the metrics of a comparison.

    All values are finite: trackers change infinity to a number, and an underflowed p-value is not 0.
    """
    is_exact = comparison.error_bound <= EXACT_WITHIN
    estimate = comparison.test.estimate
    interval = (None, None) if is_exact or comparison.method == "tilted" else comparison.test.interval
    ends = comparison.interval
    found: dict[str, float | None] = {
        "p_value": comparison.pvalue or None,
        "log10_p": comparison.log10_pvalue,
        "adjusted_p": None if comparison.corrected is None else comparison.corrected.pvalue or None,
        "difference": comparison.difference,
        "baseline_score": comparison.baseline_score,
        "candidate_score": comparison.candidate_score,
        "ci_low": None if ends is None else ends.low,
        "ci_high": None if ends is None else ends.high,
        "n_examples": comparison.n_examples,
        "n_discordant": comparison.n_discordant,
        "error_bound": comparison.error_bound,
        "log10_p_estimate": None if estimate is None else estimate.log10,
        "p_estimate_error": None if estimate is None else estimate.relative_error,
        "p_low": interval[0],
        "p_high": interval[1],
    }
    return {
        f"{comparison.statistic.name}/{name}": float(value)
        for name, value in found.items()
        if value is not None and math.isfinite(value)
    }


def comparison_tags(comparison: Comparison) -> dict[str, str]:
    """Return the tags of the run of a comparison."""
    return {
        "trackperm.statistic": comparison.statistic.name,
        "trackperm.verdict": f"{comparison.marker} {comparison.verdict}",
        "trackperm.baseline": comparison.baseline,
        "trackperm.candidate": comparison.candidate,
        SIGNATURE_TAG: comparison.signature,
        TEST_SET_TAG: comparison.pairing.test_set,
        LOG10_P_TAG: repr(comparison.log10_pvalue),
        **({} if comparison.slice is None else {SLICE_TAG: str(comparison.slice)}),
        **_opinions_tags(comparison),
    }


def _opinions_tags(comparison: Comparison) -> dict[str, str]:
    found = {}
    others = [each for each in comparison.second_opinions if each.name != STUDENTIZED]
    if others:
        applied = [each for each in others if each.pvalue is not None]
        overturning = sum(each.overturns for each in applied)
        found[OPINIONS_TAG] = (
            f"{len(applied)}, {overturning} of them on the other side of {comparison.alpha:g}"
        )
    for each in comparison.second_opinions:
        if each.name == STUDENTIZED:
            side = "other" if each.overturns else "same"
            shown = f"p={each.shown}, on the {side} side of {comparison.alpha:g}"
            found[STUDENTIZED_TAG] = "does not apply" if each.pvalue is None else shown
    return found


def evidence(comparison: Comparison) -> dict[str, bytes]:
    """Return the files from which a comparison is verified, by artifact path.

    A count table of more than :data:`MAX_COUNT_ROWS` rows is left out.
    """
    files = {
        "trackperm/statistic.yaml": written_spec(comparison.statistic).encode(),
        "trackperm/comparison.json": comparison.to_json().encode(),
        "trackperm/discordant.parquet": parquet(comparison.discordant),
    }
    if len(comparison.count_table.multiplicities) <= MAX_COUNT_ROWS:
        files["trackperm/count_table.parquet"] = parquet(_count_table(comparison))
    return files


def _count_table(comparison: Comparison) -> pl.DataFrame:
    """Return the distinct counts of both runs with multiplicities, as int64, under the names of pairing."""
    table = comparison.count_table
    columns = {f"candidate.{name}": table.candidate[:, i] for i, name in enumerate(table.names)}
    columns |= {f"baseline.{name}": table.baseline[:, i] for i, name in enumerate(table.names)}
    return pl.DataFrame(columns | {"multiplicity": table.multiplicities})


def parquet(frame: pl.DataFrame) -> bytes:
    """Write a frame as Parquet."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
