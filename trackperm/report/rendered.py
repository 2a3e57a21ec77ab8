"""Comparison rendered for a tracker: one value with everything that the tracker's pages show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trackperm.comparison import Comparison
from trackperm.errors import CapacityError
from trackperm.report import description, discordant_examples, page, phrases
from trackperm.report.drawings import picture
from trackperm.report.drawings.null_distribution import pmf_curves
from trackperm.report.formatting import shorten
from trackperm.trackers.publication import Chart, Table


@dataclass(frozen=True)
class RenderedComparison:
    """Texts, tables, charts and files of a comparison.

    Attributes
    ----------
    comparison : Comparison
        The comparison.
    baseline_name, candidate_name : str
        Names of the runs, short enough for tags.
    verdict : str
        Marker and verdict, ``▲ better``.
    tables : mapping of str to Table
        Tables by name: results, discordant examples, and second opinions if there are any.
    charts : mapping of str to Chart
        The null distribution as curves, unless it is too large.
    files : mapping of str to bytes
        Page and pictures by artifact path.
    remarks : tuple of str
        Sentences about what is cut or not drawn.
    """

    comparison: Comparison
    baseline_name: str
    candidate_name: str
    verdict: str
    tables: Mapping[str, Table]
    charts: Mapping[str, Chart]
    files: Mapping[str, bytes]
    remarks: tuple[str, ...]

    def description(self, remarks: Sequence[str]) -> str:
        """Return the description in Markdown, with further remarks."""
        return description.markdown(self.comparison, remarks)


def render_comparison(comparison: Comparison) -> RenderedComparison:
    """Render a comparison for a tracker.

    Raises
    ------
    MissingDependencyError
        If the libraries of ``trackperm[plots]`` are not installed.
    """
    baseline_name, candidate_name = map(shorten, (comparison.baseline_name, comparison.candidate_name))
    tables = shown_tables(comparison)
    n_viewable = len(tables["discordant"].rows)
    files = {
        "trackperm_report.html": page.html(comparison).encode(),
        "verdict.svg": picture.picture(comparison).encode(),
        "verdict.png": picture.png(comparison),
    }
    curves: dict[str, Chart] = {}
    remarks = []
    if n_viewable < comparison.n_discordant:
        n_shown = comparison.pairing.n_shown
        whole = "all" if n_shown is None else f"the first {n_shown:,}"
        remarks.append(
            f"table of discordant examples: the first {n_viewable:,} of {comparison.n_discordant:,};"
            f" {whole} are in trackperm/discordant.parquet"
        )
    try:
        curves["null_distribution"] = _null_distribution(comparison)
    except CapacityError as error:
        remarks.append(f"chart: not drawn; {error.message}")
    return RenderedComparison(
        comparison,
        baseline_name=baseline_name,
        candidate_name=candidate_name,
        verdict=f"{comparison.marker} {comparison.verdict}",
        tables=tables,
        charts=curves,
        files=files,
        remarks=tuple(remarks),
    )


def shown_tables(comparison: Comparison) -> dict[str, Table]:
    """Return the tables that the pages of trackers show, by name."""
    tables = {"results": _results(comparison), "discordant": discordant_examples.viewable(comparison)}
    if comparison.second_opinions:
        tables["second_opinions"] = _second_opinions(comparison)
    return tables


def _results(comparison: Comparison) -> Table:
    """Return one row, so that tables of several comparisons align; p is text, which no viewer rounds to 0."""
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
        "equivalence_p": phrases.equivalence(comparison) or None,
        "equivalence_power": None
        if comparison.equivalence_power is None
        else comparison.equivalence_power.at_zero,
        "interval": None if comparison.interval is None else phrases.ends(comparison.interval),
        "verdict": f"{comparison.marker} {comparison.verdict}",
        "certainty": phrases.how_certain(comparison),
        "alternative": test.alternative,
        "n_examples": test.n_examples,
        "n_discordant": test.n_discordant,
    }
    return Table(tuple(row), [tuple(row.values())])


def _second_opinions(comparison: Comparison) -> Table:
    rows = [
        (each.name, each.shown, each.differs, each.overturns, each.sentence)
        for each in comparison.second_opinions
    ]
    return Table(("test", "p_value", "differs", "overturns", "sentence"), rows)


def _null_distribution(comparison: Comparison) -> Chart:
    points = pmf_curves(comparison)
    table = Table(tuple(points[0]), [tuple(point.values()) for point in points])
    statistic = shorten(comparison.statistic.title, 40)
    title = f"null distribution of {statistic}, {phrases.pvalue_with_side(comparison)}"
    return Chart(title, table, x="value", y="probability", curve="curve")
