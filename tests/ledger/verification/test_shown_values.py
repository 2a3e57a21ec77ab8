"""What a tracker shows of a comparison is computed again, and what cannot be is said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import polars as pl
import pytest
from support.changed_evidence import failures
from support.comparisons import accuracy, answers

import trackperm
from trackperm.comparison import Comparison, Slice, corrected
from trackperm.ledger.comparison_publication import comparison_tags, evidence, metrics
from trackperm.ledger.run_texts import comparison_name
from trackperm.ledger.verification import Verification, verify_files
from trackperm.report.rendered import shown_tables
from trackperm.trackers.publication import KEY_TAG, LoggedComparison
from trackperm.trackers.references import RunReference, TrackedRun

DISCORDANT = "trackperm/discordant.parquet"


def as_logged(comparison: Comparison, tags: Mapping[str, str] | None = None) -> LoggedComparison:
    """Return the run of a comparison as a tracker with labels gives it."""
    return LoggedComparison(
        TrackedRun(RunReference("wandb", "team/digits/1"), comparison_name(comparison), "team/digits"),
        created=None,
        is_finished=True,
        tags={KEY_TAG: comparison.key, **comparison_tags(comparison), **(tags or {})},
        metrics=metrics(comparison),
        labels=("trackperm", comparison.statistic.name, f"{comparison.marker} {comparison.verdict}"),
    )


def tables_of(comparison: Comparison) -> dict[str, bytes]:
    return {name: table.finite().json() for name, table in shown_tables(comparison).items()}


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return accuracy(9, 1, both=20).with_second_opinions().with_studentized()


def verified(comparison: Comparison, **changes: Any) -> Verification:
    """Verify a comparison whose run has other values than were logged."""
    tables = changes.pop("tables", tables_of(comparison))
    tags = {**as_logged(comparison).tags, **changes.pop("tags", {})}
    logged = replace(as_logged(comparison), tags=tags, **changes)
    return verify_files(evidence(comparison), logged, tables)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "name",
    [
        "alone",
        "with a margin",
        "worse within a margin",
        "examples left out",
        "corrected",
        "slice",
        "monte carlo",
        "f1 of texts",
    ],
)
def test_everything_that_is_logged_matches(name: str):
    found = {
        "alone": lambda: accuracy(9, 1, both=20),
        "with a margin": lambda: accuracy(9, 8, both=400, margin=0.05),
        "worse within a margin": lambda: accuracy(2, 20, both=400, margin=0.1),
        "examples left out": lambda: trackperm.compare(
            answers([True] * 4 + [False] * 26), answers([True] * 20), missing="drop"
        ),
        "corrected": lambda: corrected([accuracy(20, 4, both=10, neither=3), accuracy(9, 4)])[0],
        "slice": lambda: replace(accuracy(5, 1), slice=Slice("language", "de", declared=True)),
        "monte carlo": lambda: accuracy(12, 5, method="monte-carlo", n_samples=2000, seed=11),
        "f1 of texts": lambda: trackperm.compare(*_texts(), "macro_f1").with_second_opinions(),
    }[name]()
    result = verified(found)
    assert not failures(result)
    assert {"name of the run", "table results", "table discordant"} <= {check.what for check in result.checks}


def _texts() -> list[pl.DataFrame]:
    label = list("abbbcaabcabcbb")
    said = map(list, ("aabbccabcabcab", "abbbccaacabcbb"))
    return [pl.DataFrame({"id": range(14), "label": label, "prediction": each}) for each in said]


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("trackperm.studentized", "p=0.9, on the other side of 0.05"),
        ("trackperm.second_opinions", "7, 7 of them on the other side of 0.05"),
        ("trackperm.verdict", "▼ worse"),
        ("trackperm.slice", "language = de"),
    ],
)
def test_a_changed_tag_is_seen(comparison: Comparison, tag: str, value: str):
    assert failures(verified(comparison, tags={tag: value})) == {f"tag {tag}"}


@pytest.mark.parametrize("tag", ["trackperm.studentized", "trackperm.second_opinions"])
def test_a_second_opinion_of_the_tags_alone_is_seen(tag: str):
    """Regression: the opinion was deleted from the files, and its tag was not read."""
    asked = accuracy(9, 1, both=20).with_second_opinions().with_studentized()
    plain = accuracy(9, 1, both=20)
    tags = {tag: comparison_tags(asked)[tag]}
    found = verify_files(evidence(plain), as_logged(plain, tags), tables_of(plain))
    assert failures(found) == {f"tag {tag}"}
    found = verify_files(evidence(plain), as_logged(plain), tables_of(asked))
    assert failures(found) == {"table second_opinions"}


def test_a_metric_that_is_not_of_this_comparison_is_seen(comparison: Comparison):
    found = verified(comparison, metrics={**metrics(comparison), "f1/p_value": 1e-9})
    assert failures(found) == {"metric f1/p_value"}


def test_another_name_and_other_labels_are_seen(comparison: Comparison):
    name = "candidate beats baseline in accuracy, p 1e-99"
    run = replace(as_logged(comparison).run, name=name)
    assert failures(verified(comparison, run=run)) == {"name of the run"}
    for labels in (("trackperm", "accuracy", "▼ worse"), ("trackperm", "accuracy")):
        assert failures(verified(comparison, labels=labels)) == {"verdict among the labels"}
    own = verified(comparison, labels=("trackperm", "accuracy", "▲ better", "for the paper"))
    assert own.matches
    assert "not verified: the labels `for the paper`" in own.notes


@pytest.mark.parametrize(
    ("table", "column", "value", "seen_as"),
    [
        ("results", "p_value", "0.99", "table results, row 1, p_value"),
        ("results", "verdict", "▼ worse", "table results, row 1, verdict"),
        ("results", "difference", -0.5, "table results, row 1, difference"),
        ("discordant", "baseline.correct", 1, "table discordant, row 1, baseline.correct"),
        ("second_opinions", "overturns", True, "table second_opinions, row 1, overturns"),
    ],
)
def test_a_changed_cell_of_a_table_is_seen(
    comparison: Comparison, table: str, column: str, value: object, seen_as: str
):
    tables = tables_of(comparison)
    parsed = json.loads(tables[table])
    place = parsed["columns"].index(column)
    assert parsed["data"][0][place] != value
    parsed["data"][0][place] = value
    assert failures(verified(comparison, tables={**tables, table: json.dumps(parsed).encode()})) == {seen_as}


@pytest.mark.parametrize(
    ("content", "seen_as"),
    [
        (b"{", "table results"),
        (b'{"columns": ["p_value"], "data": [["0.99"]]}', "columns of table results"),
        (b'{"columns": [], "data": [[1]]}', "table results"),
        (None, "table results"),
    ],
)
def test_a_table_that_is_damaged_or_missing_is_seen(
    comparison: Comparison, content: bytes | None, seen_as: str
):
    tables = {**tables_of(comparison), "results": content}
    kept = {name: each for name, each in tables.items() if each is not None}
    assert failures(verified(comparison, tables=kept)) == {seen_as}


def test_rows_that_were_removed_are_seen(comparison: Comparison):
    tables = tables_of(comparison)
    parsed = json.loads(tables["discordant"])
    parsed["data"].pop()
    changed = {**tables, "discordant": json.dumps(parsed).encode()}
    assert failures(verified(comparison, tables=changed)) == {"rows of table discordant"}


def test_deleted_discordant_examples_are_seen(comparison: Comparison):
    files = {path: content for path, content in evidence(comparison).items() if path != DISCORDANT}
    found = verify_files(files, as_logged(comparison), tables_of(comparison))
    assert DISCORDANT in failures(found)
    in_a_folder = verify_files(files)
    assert in_a_folder.matches
    assert any(note.startswith("not verified: the discordant examples") for note in in_a_folder.notes)


def test_what_is_not_read_is_said(comparison: Comparison):
    found = verified(comparison, metrics=None, tables=None, labels=None, tags={"trackperm.created": "today"})
    assert found.matches
    for note in (
        "not verified: the metrics of the run, which this tracker does not give",
        "not verified: the tables of the run",
        "not verified: description, page, pictures, charts and all else that the run shows",
        "not verified: the run under which this one is nested",
        "not verified: what the compared runs themselves show, such as their tags and metrics `sig.…`",
        "taken as logged: the tags `trackperm.created`",
    ):
        assert note in found.notes
    more = verified(comparison, tables={**tables_of(comparison), "null_distribution_table": b"{}"})
    assert "not verified: the tables `null_distribution_table`" in more.notes


@pytest.mark.parametrize("options", [{}, {"margin": 0.2}])
def test_with_one_case_of_missing_predictions_the_interval_of_both_is_not_verified(options: dict[str, Any]):
    """Regression: the interval of both cases did not match that of the logged counts, which are of one."""
    runs = [answers([True] * 12 + [False] * 8), answers([True] * 17)]
    comparison = trackperm.compare(*runs, missing="bounds", **options)
    logged = as_logged(comparison)
    assert "accuracy/ci_low" in (logged.metrics or {})
    found = verify_files(evidence(comparison), logged, tables_of(comparison))
    assert not failures(found)
    assert "not verified: interval in its metrics, which covers both cases" in found.notes
    more = replace(logged, metrics={**metrics(comparison), "accuracy/p_low": 1e-9})
    assert failures(verify_files(evidence(comparison), more)) == {"metric accuracy/p_low"}


def of_another_version(comparison: Comparison, without: str = "") -> tuple[dict[str, bytes], str]:
    """Return the files of a comparison as another version would have written them, and its signature."""
    files = evidence(comparison)
    data = json.loads(files["trackperm/comparison.json"])
    data["signature"] = data["signature"].rpartition("|trackperm:")[0] + "|trackperm:0.0.1"
    data.pop(without, None)
    del data["minimum_detectable_effect"]["n_tests"]
    data["minimum_detectable_effect"]["effect"] /= 2.0
    files["trackperm/comparison.json"] = json.dumps(data).encode()
    return files, data["signature"]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("column", "value", "seen_as"),
    [
        ("verdict", "▼ worse", "table results, verdict"),
        ("verdict", "≈ undecided", "table results, verdict"),
        ("p_value", "0.99", "table results, p_value"),
        ("p_value", "tiny", "table results, p_value"),
        ("candidate_score", 0.9999, "table results, candidate_score"),
        ("difference", None, "table results, difference"),
        ("n_examples", 1_000_000, "table results, n_examples"),
    ],
)
def test_of_another_version_numbers_and_verdict_are_compared(
    comparison: Comparison, column: str, value: object, seen_as: str
):
    """Regression: an older version in the signature made the verification skip them."""
    files, signature = of_another_version(comparison)
    logged = as_logged(comparison, {"trackperm.signature": signature})
    tables = tables_of(comparison)
    table = json.loads(tables["results"])
    place = table["columns"].index(column)
    for written, expected in ((table["data"][0][place], set()), (value, {seen_as})):
        table["data"][0][place] = written
        table = {"columns": [*table["columns"], "later"], "data": [[*table["data"][0], "column"]]}
        tables["results"] = json.dumps(table).encode()
        assert failures(verify_files(files, logged, tables)) == expected
    damaged = {**tables, "results": b"{"}
    assert failures(verify_files(files, logged, damaged)) == {"table results"}


def test_of_another_version_the_verb_of_the_name_is_compared(comparison: Comparison):
    files, signature = of_another_version(comparison)
    logged = as_logged(comparison, {"trackperm.signature": signature})
    assert verify_files(files, logged).matches
    for verb in ("loses to", "cannot be told from", "is not shown to be"):
        name = f"candidate {verb} baseline in accuracy, p 1e-99"
        renamed = replace(logged, run=replace(logged.run, name=name))
        assert failures(verify_files(files, renamed)) == {"verdict in the name of the run"}
        beats = replace(logged, run=replace(logged.run, name=f"a {verb} b beats baseline in accuracy"))
        assert verify_files(files, beats).matches


def test_of_another_version_texts_are_not_compared(comparison: Comparison):
    files, signature = of_another_version(comparison, without="effect_sizes")
    logged = as_logged(comparison, {"trackperm.signature": signature, "trackperm.studentized": "p"})
    renamed = replace(logged, run=replace(logged.run, name="another"))
    found = verify_files(files, renamed, tables_of(comparison))
    assert found.matches
    for note in (
        "not verified: name of the run, except for its verb, as another version wrote it",
        "not verified: metrics of other names, as another version wrote them",
        "not verified: the tables `discordant`, `second_opinions`",
        "not verified: other columns of the table `results` than scores, p-value and verdict",
        "not verified: the sentences of the second opinions",
        "not verified: the minimum detectable effect",
        "not logged by that version: `effect_sizes`",
    ):
        assert note in found.notes


class TestOutcomeOfAPolicy:
    TAGS: ClassVar[Mapping[str, str]] = {
        "trackperm.policy": "gate",
        "trackperm.policy_fail_on": "regression",
        "trackperm.policy_parts": "1",
    }

    @pytest.mark.parametrize("parts", ["1", "2"])
    def test_a_worse_candidate_does_not_pass(self, parts: str):
        """Regression: the tag was changed from fail to pass, and everything matched."""
        worse = accuracy(1, 12, both=20)
        tags = {**self.TAGS, "trackperm.policy_parts": parts}
        assert verified(worse, tags={**tags, "trackperm.policy_outcome": "fail"}).matches
        for outcome in ("pass", "undecided"):
            found = verified(worse, tags={**tags, "trackperm.policy_outcome": outcome})
            assert failures(found) == {"tag trackperm.policy_outcome"}

    @pytest.mark.parametrize("name", ["policy_fail_on", "policy_outcome", "policy_parts"])
    def test_a_part_of_the_judgement_that_is_missing_is_seen(self, name: str):
        """Regression: without its rule, the outcome `pass` of a worse candidate matched."""
        worse = accuracy(1, 12, both=20)
        tags = {**self.TAGS, "trackperm.policy_outcome": "pass"}
        del tags[f"trackperm.{name}"]
        assert f"tag trackperm.{name}" in failures(verified(worse, tags=tags))
        if name != "policy_outcome":
            only = {"trackperm.policy_outcome": "pass"}
            assert f"tag trackperm.{name}" in failures(verified(worse, tags=only))

    @pytest.mark.parametrize("parts", ["0", "-1", "", "two", "1.5"])
    def test_a_number_of_parts_that_no_policy_writes_is_seen(self, comparison: Comparison, parts: str):
        tags = {**self.TAGS, "trackperm.policy_outcome": "fail", "trackperm.policy_parts": parts}
        assert failures(verified(comparison, tags=tags)) == {"tag trackperm.policy_parts"}

    def test_an_older_version_judged_without_writing_an_outcome(self):
        files, signature = of_another_version(accuracy(9, 1, both=20))
        tags = {"trackperm.signature": signature, "trackperm.policy": "gate"}
        logged = as_logged(accuracy(9, 1, both=20), {**tags, "trackperm.policy_parts": "1"})
        assert verify_files(files, logged).matches

    def test_an_outcome_that_others_decide_is_said_to_be_taken_as_logged(self, comparison: Comparison):
        tags = {**self.TAGS, "trackperm.policy_parts": "2", "trackperm.policy_outcome": "fail"}
        found = verified(comparison, tags=tags)
        assert found.matches
        note = "taken as logged: the outcome `fail` of the policy, which this comparison leaves open"
        assert note in found.notes
        alone = verified(comparison, tags={**tags, "trackperm.policy_parts": "1"})
        assert failures(alone) == {"tag trackperm.policy_outcome"}
