"""Texts, drawings and table of a comparison, the same on all pages and in notebooks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from trackperm.comparison import Comparison
from trackperm.comparison.inference.verdict import MARKERS
from trackperm.comparison.second_opinions import SecondOpinion
from trackperm.errors import CapacityError
from trackperm.exact.power.equivalence import percent
from trackperm.report import description, phrases
from trackperm.report.changed_examples import BETTER, CHANGED, WORSE, changed_examples, n_changed, row_noun
from trackperm.report.discordant_examples import Cell
from trackperm.report.drawings.effect_bar import effect_bar
from trackperm.report.drawings.null_distribution import null_drawing, why_not_drawn
from trackperm.report.formatting import shorten
from trackperm.report.headline import headline
from trackperm.report.notes import notes_of, with_names
from trackperm.report.numbers import format_difference
from trackperm.report.plain_words import plain_words

_MARKERS = {BETTER: MARKERS["better"], WORSE: MARKERS["worse"], CHANGED: "·"}
MOST_ROWS = 1_000
"""Rows of the table of changed examples, if its bytes allow."""

_MARKUP = 30  # bytes of markup around a cell
_CELL = 500
"""Characters of a text in the table of changed examples."""

_BEFORE_DIFFERENCE = 60
"""Characters that are shown before the first difference of two long texts with the same beginning."""


@dataclass(frozen=True)
class ChangedRows:
    """First rows of the changed examples.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    rows : list of tuple
        Rows; a cell with another value in each run is a pair.
    total : int
        Number of all changed examples.
    unit : str
        Noun of the rows: example, cluster or row.
    directed : bool
        Whether the first column is the direction of the change.
    case : str
        The case of missing predictions in which they changed, after a space; empty if there is one case.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Cell | tuple[Cell, Cell], ...]]
    total: int
    unit: str
    directed: bool
    case: str

    @property
    def numeric(self) -> list[bool]:
        """Whether each column has numbers alone, and no pairs."""
        return [
            all(isinstance(cell, int | float) for cell in column) for column in zip(*self.rows, strict=True)
        ]

    @property
    def markers(self) -> Mapping[str, str]:
        """Symbol of each direction."""
        return _MARKERS


@dataclass(frozen=True)
class ComparisonView:
    """Everything that a page shows of a comparison.

    Attributes
    ----------
    marker, verdict, headline, words, scope : str
        The verdict as a symbol, a word, a headline and plain words; the scope of the test.
    bar, narrow_bar : str
        Effect bars as SVG, for a screen and for a phone.
    facts : list of (str, str, str)
        Name, value and small print of every number.
    notes, explanation, pairing : list of str
        Caveats; sentences on what was tested; further sentences on how rows were paired.
    null, narrow_null, caption : str
        Null distributions as SVG and their caption; empty if it is too large to draw.
    refusal : str
        Reason why the null distribution is not drawn; empty if it is.
    second_opinions : tuple of SecondOpinion
        Results of other tests.
    signature : str
        Settings that reproduce the p-value.
    """

    marker: str
    verdict: str
    headline: str
    words: str
    scope: str
    bar: str
    narrow_bar: str
    facts: list[tuple[str, str, str]]
    notes: list[str]
    explanation: list[str]
    pairing: list[str]
    null: str
    narrow_null: str
    caption: str
    refusal: str
    second_opinions: tuple[SecondOpinion, ...]
    signature: str

    @classmethod
    def of(cls, comparison: Comparison) -> ComparisonView:
        """Collect all parts."""
        null = narrow_null = refusal = ""
        try:
            null, narrow_null = null_drawing(comparison), null_drawing(comparison, narrow=True)
        except CapacityError as error:
            refusal = why_not_drawn(comparison.test, error)
        power = str(comparison.equivalence_power)  # without the caution that it may have, it is a fact alone
        notes = [note for note in notes_of(comparison) if note != power]
        return cls(
            marker=comparison.marker,
            verdict=comparison.verdict,
            headline=headline(comparison),
            words=plain_words(comparison),
            scope=phrases.scope(comparison),
            bar=effect_bar(comparison),
            narrow_bar=effect_bar(comparison, narrow=True),
            facts=facts(comparison),
            notes=notes,
            explanation=description.explanation(comparison),
            pairing=[
                line for line in with_names(comparison, comparison.pairing.lines()) if line not in notes
            ],
            null=null,
            narrow_null=narrow_null,
            caption=caption(comparison) if null else "",
            refusal=refusal,
            second_opinions=comparison.second_opinions,
            signature=comparison.signature,
        )


def changed_rows(comparison: Comparison, n_bytes: int) -> ChangedRows:
    """Return as many of the first changed examples as fit `n_bytes` of HTML.

    Long texts are cut, and numbers that changed are rounded to six digits if they still differ then.
    """
    found = changed_examples(comparison, MOST_ROWS)
    rows: list[tuple[Cell | tuple[Cell, Cell], ...]] = []
    for row in found.rows:
        cut = tuple(_cut(cell) for cell in row)
        n_bytes -= sum(_MARKUP + len(escape(str(cell)).encode(errors="replace")) for cell in cut)
        if n_bytes < 0:
            break
        rows.append(cut)
    return ChangedRows(
        found.columns,
        rows,
        n_changed(comparison),
        row_noun(comparison),
        found.directed,
        phrases.in_one_case(comparison),
    )


def _cut(value: Cell | tuple[Cell, Cell]) -> Cell | tuple[Cell, Cell]:
    if isinstance(value, tuple):
        short = [_rounded(each) for each in value]
        if short[0] == short[1]:
            short = list(value)
        if isinstance(short[0], str) and isinstance(short[1], str):
            return _cut_pair(short[0], short[1])
        first, second = (shorten(each, _CELL) if isinstance(each, str) else each for each in short)
        return first, second
    return shorten(value, _CELL) if isinstance(value, str) else value


def _cut_pair(first: str, second: str) -> tuple[str, str]:
    """Cut two texts so that they still differ, before their first difference if it would be cut off."""
    pairs = enumerate(zip(first, second, strict=False))
    n_same = next((i for i, (one, other) in pairs if one != other), min(len(first), len(second)))
    start = 0 if n_same < _CELL - 1 else n_same - _BEFORE_DIFFERENCE
    before = "…" * (start > 0)
    return shorten(before + first[start:], _CELL), shorten(before + second[start:], _CELL)


def _rounded(value: Cell) -> Cell:
    return float(f"{value:.6g}") if isinstance(value, float) and abs(value) < 1e6 else value


def facts(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return name, value and small print of every number at the top of the page."""
    details = {
        "baseline": _source(comparison.baseline_name, comparison.baseline),
        "candidate": _source(comparison.candidate_name, comparison.candidate),
        "difference": f"candidate minus baseline{phrases.direction(comparison.statistic)}",
        "observed": phrases.direction(comparison.statistic).strip(),
    }
    test = comparison.test
    certainty = phrases.how_certain(comparison)
    if 0 < test.error_bound < 1:
        certainty += f", relative error at most {test.error_bound:.1g}"
    return [
        *((name, value, details.get(name, "")) for name, value in phrases.scores(comparison)),
        *_equivalence(comparison),
        (
            f"{phrases.pvalue_name(test)}-value{' of a difference' * (comparison.equivalence is not None)}",
            phrases.bare_pvalue(comparison),
            f"{certainty}, {phrases.sides(test.alternative)}",
        ),
        *_correction(comparison),
        *_intervals(comparison),
        *_power(comparison),
        (f"{phrases.unit(comparison)}s", f"{test.n_examples:,}", phrases.discordance(comparison)),
    ]


def _equivalence(comparison: Comparison) -> list[tuple[str, str, str]]:
    if comparison.equivalence is None:
        return []
    value = phrases.equivalence(comparison).removeprefix("p ").removeprefix("= ").split(",")[0]
    return [("p-value of equivalence", value, f"both one-sided tests, margin {comparison.margin:g}")]


def _power(comparison: Comparison) -> list[tuple[str, str, str]]:
    found = comparison.equivalence_power
    if found is None:
        return []
    within = f"within {found.margin:g}, if the true difference is 0"
    details = f"{within}; {percent(found.at_half)} if it is half the margin"
    return [("power of equivalence", percent(found.at_zero), details)]


def _correction(comparison: Comparison) -> list[tuple[str, str, str]]:
    found = comparison.corrected
    if comparison.n_uncorrected is not None:
        return [("correction", "none", phrases.correction(comparison))]
    if found is None:
        return []
    detail = f"{found.title} over {found.n_tests} tests; {found.controls} under {found.valid_under}"
    return [("adjusted p-value", phrases.adjusted_pvalue(comparison), detail)]


def _intervals(comparison: Comparison) -> list[tuple[str, str, str]]:
    usual, deciding = comparison.interval, phrases.deciding_interval(comparison)
    found = []
    if usual is not None:
        of_several = phrases.is_one_of_several(comparison)
        with_ = "the uncorrected p-value, not with the correction" if of_several else "the test"
        found.append((usual, f"{usual.relation} with {with_}"))
    if deciding is not None:
        found.append((deciding, "decides equivalence; the thick line above"))
    return [(phrases.confidence(each), phrases.ends(each), f"{each.method}, {role}") for each, role in found]


def caption(comparison: Comparison) -> str:
    """Return the caption of the null distribution: what it shows, and where the p-value is in it."""
    found = (
        "The bars show the distribution of the statistic under random exchanges of the two runs' outputs; "
        f"{_sum(comparison)}."
    )
    if not phrases.is_range(comparison):
        return found
    weaker = format_difference(comparison.difference)
    return f"{found} Of the two cases of missing predictions it is the one with the larger p-value, {weaker}."


def _sum(comparison: Comparison) -> str:
    pvalue, error = comparison.pvalue, comparison.null_distribution.mass_error_bound
    if comparison.test.mid_p:
        return "of the orange region, values equal to the observed one count half in the mid-p-value"
    if comparison.test.relation == "≤" and not comparison.test.is_drawn:
        return "the p-value is an upper bound of the probability of the orange region"
    if pvalue <= error or comparison.error_bound >= 1:
        return "the p-value is the probability of the orange region"
    error += comparison.error_bound * pvalue
    within = f", within 1e{math.ceil(math.log10(error))}" if error else ""
    return f"the orange parts add up to the p-value{within}"


def _source(name: str, origin: str) -> str:
    return shorten(name if name == origin else f"{name} ({origin})")
