"""A comparison made ready for a tracker: metrics, tables, files, tags and a description."""

from __future__ import annotations

import io
import math
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.comparison import Comparison
from trackperm.comparison.second_opinions import STUDENTIZED
from trackperm.errors import CapacityError
from trackperm.report import charts, description, discordant_examples, html, text
from trackperm.trackers.publication import TEST_SET_TAG, Chart, Publication, Table

MAX_COUNT_ROWS = 1_000_000
"""Largest count table that is logged; a larger one is about as big as the predictions themselves."""

LOG10_P_TAG = "trackperm.log10_p"
"""Decimal logarithm of the p-value, in all of its digits."""

OPINIONS_TAG = "trackperm.second_opinions"
"""How many second opinions were logged, and on which side of alpha; absent where nobody has asked."""

STUDENTIZED_TAG = "trackperm.studentized"
"""p-value of the studentised permutation test, and on which side of alpha; absent where nobody has asked."""


def publication(comparison: Comparison, look: int | None = None, in_leaderboards: int = 0) -> Publication:
    """Turn `comparison` into what a tracker adapter writes.

    Parameters
    ----------
    comparison : Comparison
        What :func:`trackperm.compare` returned.
    look : int, optional
        Which of the comparisons on its test set that are logged there it is, from 1.
    in_leaderboards : int
        How many of those before it are pairs of leaderboards.

    Returns
    -------
    Publication
        Equal comparisons give equal publications, byte for byte, on the same versions of the libraries.

    Raises
    ------
    MissingDependencyError
        If the libraries of ``trackperm[plots]`` are not installed.
    """
    statistic = comparison.statistic.name
    files, remarks = _files(comparison)
    viewable = discordant_examples.viewable(comparison)
    if len(viewable.rows) < comparison.n_discordant:
        n_shown = comparison.pairing.n_shown
        more = "all" if n_shown is None else f"the first {n_shown}"
        remarks.insert(
            0,
            f"table of discordant examples: the first {len(viewable.rows)} of {comparison.n_discordant};"
            f" {more} are in trackperm/discordant.parquet",
        )
    if look is not None:
        remarks.insert(0, look_sentence(look, in_leaderboards))
    baseline_name, candidate_name = map(text.shorten, (comparison.baseline_name, comparison.candidate_name))
    # Tags of the runs are by statistic, of all examples.
    candidate_tags = {f"sig.{statistic}": _short_verdict(comparison), f"sig.{statistic}.vs": baseline_name}
    baseline_tags = {f"sig.{statistic}.baseline_of": f"{candidate_name} {comparison.marker}"}
    return Publication(
        key=comparison.key,
        name=f"{comparison.title}: {candidate_name} vs {baseline_name}",
        metrics=metrics(comparison),
        tables={
            "results": _results(comparison),
            "discordant": Table(viewable.columns, viewable.rows),
            **({"second_opinions": _opinions(comparison)} if comparison.second_opinions else {}),
        },
        files=files,
        tags={
            "trackperm.statistic": statistic,
            "trackperm.verdict": f"{comparison.marker} {comparison.verdict}",
            "trackperm.baseline": comparison.baseline,
            "trackperm.candidate": comparison.candidate,
            "trackperm.signature": comparison.signature,
            TEST_SET_TAG: comparison.pairing.test_set,
            LOG10_P_TAG: repr(comparison.log10_pvalue),
            **({} if comparison.part is None else {"trackperm.slice": str(comparison.part)}),
            **_opinions_tags(comparison),
        },
        description=description.markdown(comparison, remarks),
        baseline=comparison.baseline_run,
        candidate=comparison.candidate_run,
        candidate_tags={} if comparison.part else candidate_tags,
        baseline_tags={} if comparison.part else baseline_tags,
        charts=_charts(comparison),
    )


def _short_verdict(comparison: Comparison) -> str:
    """Marker and p-value, the adjusted one where there is one, in two digits."""
    return f"{comparison.marker} {text.short_pvalue(comparison)}"


def look_sentence(look: int, in_leaderboards: int = 0) -> str:
    """Say how often a test set was looked at, up to a comparison, and how much of it leaderboards did."""
    suffix = "th" if look % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(look % 10, "th")
    return f"{look}{suffix} logged comparison on this test set{_counting(in_leaderboards)}"


def looks_sentence(first: int, n_pairs: int, in_leaderboards: int = 0) -> str:
    """Say which of the logged comparisons on a test set the pairs of a leaderboard are."""
    if n_pairs == 1:
        return look_sentence(first, in_leaderboards)
    places = f"logged comparisons {first} to {first + n_pairs - 1} on this test set"
    return f"{places}, one for each pair{_counting(in_leaderboards)}"


def _counting(in_leaderboards: int) -> str:
    if not in_leaderboards:
        return ""
    return f" ({in_leaderboards} before in leaderboards, each pair counted)"


def metrics(comparison: Comparison) -> dict[str, float]:
    """Return what is logged as metrics.

    Finite numbers only: trackers turn infinity into a number, and an underflowed p-value is no 0.
    """
    is_exact = comparison.error_bound <= text.EXACT_WITHIN
    interval = (None, None) if is_exact else comparison.test.interval
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
        "p_low": interval[0],
        "p_high": interval[1],
    }
    return {
        f"{comparison.statistic.name}/{name}": float(value)
        for name, value in found.items()
        if value is not None and math.isfinite(value)
    }


def _results(comparison: Comparison) -> Table:
    """One row, so that the tables of several comparisons line up; p as text, which no viewer rounds to 0."""
    test = comparison.test
    row: dict[str, str | int | float | None] = {
        "statistic": comparison.title,
        "baseline": comparison.baseline_name,
        "candidate": comparison.candidate_name,
        "baseline_score": comparison.baseline_score,
        "candidate_score": comparison.candidate_score,
        "difference": comparison.difference,
        "p_value": comparison.format_pvalue(),
        "adjusted_p": None if comparison.corrected is None else comparison.corrected.format_pvalue(),
        "interval": None if comparison.interval is None else text.ends(comparison.interval),
        "verdict": f"{comparison.marker} {comparison.verdict}",
        "certainty": text.how_certain(comparison),
        "alternative": test.alternative,
        "n_examples": test.n_examples,
        "n_discordant": test.n_discordant,
    }
    return Table(tuple(row), [tuple(row.values())])


def _opinions(comparison: Comparison) -> Table:
    """One row for each other test; p as text, as in the results."""
    rows = [
        (each.name, each.shown, each.differs, each.overturns, each.sentence)
        for each in comparison.second_opinions
    ]
    return Table(("test", "p_value", "differs", "overturns", "sentence"), rows)


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


def _files(comparison: Comparison) -> tuple[dict[str, bytes], list[str]]:
    """Contents by artifact path, and what a reader must be told about what is not among them."""
    files = {"trackperm_report.html": html(comparison).encode(), **evidence(comparison)}
    remarks = []
    try:
        files["pmf.png"] = charts.png(charts.pmf_chart(comparison))
    except CapacityError as error:
        remarks.append(f"chart: not drawn; {error.message}")
    if "trackperm/count_table.parquet" not in files:
        n_rows = len(comparison.count_table.multiplicities)
        remarks.append(f"count table: not logged, for its {n_rows} distinct rows exceed {MAX_COUNT_ROWS}")
    return files, remarks


def _charts(comparison: Comparison) -> dict[str, Chart]:
    """Draw the null distribution, unless it is too large, which a remark on the picture says."""
    try:
        points = charts.pmf_curves(comparison)
    except CapacityError:
        return {}
    table = Table(tuple(points[0]), [tuple(point.values()) for point in points])
    statistic = text.shorten(comparison.statistic.name, 40)
    title = f"null distribution of {statistic}, {text.pvalue(comparison)}"
    return {"null_distribution": Chart(title, table, x="value", y="probability", curve="curve")}


def evidence(comparison: Comparison) -> dict[str, bytes]:
    """Return the files that a comparison is verified from, by artifact path.

    The count table is not among them where it has more than :data:`MAX_COUNT_ROWS` rows.
    """
    files = {
        "trackperm/statistic.yaml": comparison.statistic.document().encode(),
        "trackperm/comparison.json": comparison.to_json().encode(),
        "trackperm/discordant.parquet": parquet(comparison.discordant.to_polars()),
    }
    if len(comparison.count_table.multiplicities) <= MAX_COUNT_ROWS:
        files["trackperm/count_table.parquet"] = parquet(_count_table(comparison).to_polars())
    return files


def _count_table(comparison: Comparison) -> nw.DataFrame[Any]:
    """Distinct counts of both runs with multiplicities, as int64, under the names that pairing uses."""
    table = comparison.count_table
    columns = {f"candidate.{name}": table.candidate[:, i] for i, name in enumerate(table.names)}
    columns |= {f"baseline.{name}": table.baseline[:, i] for i, name in enumerate(table.names)}
    return nw.from_dict(columns | {"multiplicity": table.multiplicities}, backend="polars")


def parquet(frame: pl.DataFrame) -> bytes:
    """Write a frame as Parquet."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
