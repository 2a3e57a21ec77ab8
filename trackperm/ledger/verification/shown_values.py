"""Checks of what a tracker shows of a logged comparison: tags, metrics, name, labels and tables."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trackperm.comparison import Comparison
from trackperm.comparison.inference.verdict import MARKERS
from trackperm.errors import InputError
from trackperm.ledger.comparison_publication import (
    LOG10_P_TAG,
    OPINIONS_TAG,
    SIGNATURE_TAG,
    SLICE_TAG,
    STUDENTIZED_TAG,
    comparison_tags,
    metrics,
)
from trackperm.ledger.policy_outcome import OUTCOME_TAG, PARTS_TAG, POLICY_TAG, RULE_TAG, possible_outcomes
from trackperm.ledger.run_texts import comparison_name, tells_another_verdict
from trackperm.ledger.verification.checks import BOUND_CLOSE, CLOSE, Check
from trackperm.ledger.verification.files import UNREADABLE, is_same_version
from trackperm.messages import listed
from trackperm.report.rendered import shown_tables
from trackperm.trackers.publication import KEY_TAG, KIND_TAG, LoggedComparison, Table

_OPTIONAL_TAGS = (SLICE_TAG, OPINIONS_TAG, STUDENTIZED_TAG)
_READ_TAGS = (KIND_TAG, "trackperm.state", OUTCOME_TAG)
"""Tags that decide what is verified, whether the run is finished, and what the policy allows."""

_TEXT_TAGS = (OPINIONS_TAG, STUDENTIZED_TAG)
"""Tags with sentences, whose words may be others in another version."""

_OF_EVERY_VERSION = ("baseline_score", "candidate_score", "difference", "n_examples", "n_discordant")
"""Columns of the table `results` whose numbers do not depend on the version that wrote them."""

_ROUNDED = 0.006
"""Largest relative difference of two p-values that are equal before rounding to three digits."""

TABLES = ("results", "discordant", "second_opinions")
"""Tables that every tracker shows."""


@dataclass(frozen=True)
class Shown:
    """Run and tables of a comparison in a tracker, or in a folder of its files.

    Attributes
    ----------
    logged : LoggedComparison or None
        Run of the comparison; None for a folder.
    tables : mapping of str to bytes, or None
        Tables outside the folder ``trackperm/`` as JSON, by name; None where they cannot be read.
    """

    logged: LoggedComparison | None = None
    tables: Mapping[str, bytes] | None = None

    def checks(self, data: Mapping[str, Any], again: Comparison) -> Iterator[Check]:
        """Yield the checks of everything that can be computed again."""
        is_same = is_same_version(data, again)
        if self.logged is not None:
            yield Check.equal("the run is finished", True, self.logged.is_finished)
            yield from _of_tags(self.logged, data, again, is_same=is_same)
            yield from _of_outcome(self.logged, again, is_same=is_same)
            yield from _of_name(self.logged, again, is_same=is_same)
            yield from _of_metrics(self.logged, again, is_same=is_same)
        if self.tables is not None and _can_show(again) and is_same:
            yield from _of_tables(self.tables, again, are_required=self.logged is not None)
        elif self.tables is not None and _can_show(again) and "results" in self.tables:
            yield from _of_other_results(self.tables["results"], again)

    def notes(self, data: Mapping[str, Any], again: Comparison) -> Iterator[str]:
        """Yield what was not read, and what was taken as logged."""
        is_same = is_same_version(data, again)
        yield from self._unread_tables(again, is_same=is_same)
        if self.logged is None:
            return
        yield from _unread_tags(self.logged, again)
        if self.logged.metrics is None:
            yield "not verified: the metrics of the run, which this tracker does not give"
        unread = ["description, page, pictures, charts and all else that the run shows"]
        if not is_same:
            unread.append("name of the run, except for its verb, as another version wrote it")
            unread.append("metrics of other names, as another version wrote them")
        elif not _can_show(again):
            unread.append("name of the run, which depends on both cases of missing predictions")
            unread.append("interval in its metrics, which covers both cases")
        unread.append("the run under which this one is nested")
        unread.append("what the compared runs themselves show, such as their tags and metrics `sig.…`")
        yield from (f"not verified: {each}" for each in unread)
        if others := sorted({*(self.logged.labels or ())} - {"trackperm", *_labels(again)}):
            yield f"not verified: the labels {listed(others)}"

    def _unread_tables(self, again: Comparison, *, is_same: bool) -> Iterator[str]:
        can_compute = is_same and _can_show(again) and again.discordant.width > 0
        if not is_same and _can_show(again) and "results" in (self.tables or ()):
            yield "not verified: other columns of the table `results` than scores, p-value and verdict"
        if self.tables is None and self.logged is not None:
            yield "not verified: the tables of the run"
        read = TABLES if can_compute else ("results",) if not is_same and _can_show(again) else ()
        if unread := sorted({*(self.tables or ())} - {*read}):
            yield f"not verified: the tables {listed(unread)}"


def _can_show(again: Comparison) -> bool:
    """Whether name and tables can be computed; equivalence needs both cases of missing predictions."""
    return not again.cases or bool(again.bounds)


def _of_tags(
    logged: LoggedComparison, data: Mapping[str, Any], again: Comparison, *, is_same: bool
) -> Iterator[Check]:
    expected = {KEY_TAG: again.key, **comparison_tags(again)}
    expected[SIGNATURE_TAG] = str(data.get("signature"))
    expected[LOG10_P_TAG] = repr(data.get("log10_pvalue"))
    names = [*expected, *(name for name in _OPTIONAL_TAGS if name in logged.tags and name not in expected)]
    for name in names:
        if is_same or name not in _TEXT_TAGS:
            yield Check.equal(f"tag {name}", logged.tags.get(name), expected.get(name))


def _of_outcome(logged: LoggedComparison, again: Comparison, *, is_same: bool) -> Iterator[Check]:
    """Check the outcome of the policy as far as this comparison determines it.

    Outcome, rule and number of parts are written together; without one of them the others say nothing.
    """
    tags = logged.tags
    first = (OUTCOME_TAG, RULE_TAG, *((PARTS_TAG, POLICY_TAG) if is_same else ()))
    if any(name in tags for name in first):
        for name in (RULE_TAG, PARTS_TAG, OUTCOME_TAG):
            if name not in tags:
                yield Check(f"tag {name}", "missing", "every policy writes it", False)
    if not re.fullmatch("[1-9][0-9]*", parts := tags.get(PARTS_TAG, "1")):
        yield Check(f"tag {PARTS_TAG}", parts, "a number of comparisons, from 1", False)
    outcome = tags.get(OUTCOME_TAG)
    if outcome is not None and RULE_TAG in tags:
        possible = possible_outcomes(again, tags)
        shown = " or ".join(sorted(possible)) or "no outcome by this rule"
        yield Check(f"tag {OUTCOME_TAG}", outcome, shown, outcome in possible)


def _of_name(logged: LoggedComparison, again: Comparison, *, is_same: bool) -> Iterator[Check]:
    if is_same and _can_show(again):
        yield Check.equal("name of the run", logged.run.name, comparison_name(again))
    elif _can_show(again) and tells_another_verdict(logged.run.name, again):
        yield Check("verdict in the name of the run", logged.run.name, again.verdict, False)
    if logged.labels is not None:
        verdicts = [label for label in logged.labels if label.startswith(tuple(MARKERS.values()))]
        yield Check.equal("verdict among the labels", verdicts, [f"{again.marker} {again.verdict}"])


def _of_metrics(logged: LoggedComparison, again: Comparison, *, is_same: bool) -> Iterator[Check]:
    if logged.metrics is None:
        return
    computed, taken = metrics(again), _of_both_cases(again)
    for name in sorted({*computed} - taken):
        tolerance = CLOSE if again.error_bound >= 1 else CLOSE + 2 * again.error_bound
        if name.endswith("/error_bound"):
            tolerance = BOUND_CLOSE
        yield Check.close(f"metric {name}", logged.metrics.get(name), computed[name], tolerance)
    for name in sorted({*logged.metrics} - {*computed} - taken) if is_same else ():
        yield Check(f"metric {name}", repr(logged.metrics[name]), "no metric of this comparison", False)


def _of_both_cases(again: Comparison) -> set[str]:
    """Return the names of metrics that need the counts of both cases of missing predictions."""
    ends = ("ci_low", "ci_high")
    return set() if _can_show(again) else {f"{again.statistic.name}/{end}" for end in ends}


def _of_tables(tables: Mapping[str, bytes], again: Comparison, *, are_required: bool) -> Iterator[Check]:
    """Check tables cell by cell; without a file of discordant examples, theirs is not known."""
    expected = shown_tables(again) if again.discordant.width else {}
    for name in TABLES if expected else ():
        if name not in tables and (name not in expected or not are_required):
            continue
        if name not in expected:
            yield Check(f"table {name}", "logged", "no second opinion is logged", False)
        elif name not in tables:
            yield Check(f"table {name}", "missing", f"{len(expected[name].rows):,} rows", False)
        else:
            yield _of_table(name, tables[name], expected[name].finite())


def _of_other_results(content: bytes, again: Comparison) -> Iterator[Check]:
    """Check numbers and verdict of the table `results` of another version, which may have other columns."""
    what = "table results"
    expected = shown_tables(again)["results"].finite()
    wanted = dict(zip(expected.columns, expected.rows[0], strict=True))
    try:
        columns, rows = _parsed(content)
        (row,) = rows
    except UNREADABLE as error:
        yield Check.failed(what, error)
        return
    logged = dict(zip(columns, row, strict=True))
    for name in (each for each in _OF_EVERY_VERSION if each in logged):
        yield Check.close(f"{what}, {name}", logged[name], _number_or_value(wanted[name]), 1e-6)
    if "p_value" in logged:
        shown, found = str(logged["p_value"]), str(wanted["p_value"])
        yield Check(f"{what}, p_value", shown, found, shown == found or _is_rounded(shown, found))
    if "verdict" in logged:
        shown, found = str(logged["verdict"]), f"{again.marker} {again.verdict}"
        yield Check(f"{what}, verdict", shown, found, _verdicts(shown) == _verdicts(found))


def _verdicts(text: str) -> set[str]:
    return {word for word in MARKERS if word in text}


def _is_rounded(shown: str, found: str) -> bool:
    """Whether two rounded p-values may be the same number."""
    try:
        return math.isclose(float(shown), float(found), rel_tol=_ROUNDED)
    except ValueError:
        return False


def _of_table(name: str, content: bytes, expected: Table) -> Check:
    """Compare a table with the expected one; the check names the first cell that differs."""
    what = f"table {name}"
    try:
        columns, rows = _parsed(content)
    except UNREADABLE as error:
        return Check.failed(what, error)
    if columns != list(expected.columns):
        return Check.equal(f"columns of {what}", columns, list(expected.columns))
    if len(rows) != len(expected.rows):
        return Check.equal(f"rows of {what}", len(rows), len(expected.rows))
    for number, (row, wanted) in enumerate(zip(rows, expected.rows, strict=True), start=1):
        for column, cell, value in zip(columns, row, wanted, strict=True):
            check = Check.close(f"{what}, row {number:,}, {column}", cell, _number_or_value(value), 1e-6)
            if not check.matches:
                return check
    return Check(what, "", f"{len(rows):,} rows", True)


def _number_or_value(value: Any) -> Any:
    """Return integers as floats, as which some trackers store them."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _parsed(content: bytes) -> tuple[list[str], list[list[Any]]]:
    table = json.loads(content)
    columns, rows = table["columns"], table["data"]
    if not isinstance(rows, list) or any(len(row) != len(columns) for row in rows):
        raise InputError("the rows of the table have other lengths than its header")
    return [str(column) for column in columns], rows


def _unread_tags(logged: LoggedComparison, again: Comparison) -> Iterator[str]:
    read = {KEY_TAG, *comparison_tags(again), *_OPTIONAL_TAGS, *_READ_TAGS}
    if unread := sorted({*logged.tags} - read):
        yield f"taken as logged: the tags {listed(unread)}"
    outcome = logged.tags.get(OUTCOME_TAG)
    if outcome is None:
        return
    if len(possible_outcomes(again, logged.tags)) > 1:
        yield f"taken as logged: the outcome `{outcome}` of the policy, which this comparison leaves open"


def _labels(again: Comparison) -> tuple[str, str]:
    return again.statistic.name, f"{again.marker} {again.verdict}"
