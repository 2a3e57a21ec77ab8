"""``family`` in Python and on the command line."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from support.command_line import invoke
from support.comparisons import answers
from support.mlflow_stores import MlflowStore
from typer.testing import CliRunner

import trackperm
from trackperm.cli import commands
from trackperm.comparison import Comparison
from trackperm.errors import InputError
from trackperm.ledger.comparison_publication import look_sentence
from trackperm.ledger.entries import families
from trackperm.ledger.family import family as listed
from trackperm.ledger.family_text import families_csv
from trackperm.trackers.publication import Published

pytestmark = pytest.mark.tracker


class Ledger:
    """A store with three comparisons on one test set and one on another."""

    def __init__(self, folder: Path) -> None:
        self.store = MlflowStore.local(folder)
        right = {"old": [True] * 6 + [False] * 8, "new": [True] * 14, "mid": [False] + [True] * 13}
        small = {f"small {name}": right[name][:9] for name in ("old", "new")}
        self.runs = {
            name: self.store.run_with_predictions("digits", name, answers(each).to_dict(as_series=False))
            for name, each in (right | small).items()
        }
        self.large = [
            self.logged("old", "new"),
            self.logged("old", "new", "error_rate"),
            self.logged("old", "mid"),
        ]
        self.small = self.logged("small old", "small new")

    def logged(
        self, baseline: str, candidate: str, statistic: str = "accuracy"
    ) -> tuple[Comparison, Published]:
        runs = [f"mlflow:{self.runs[name]}" for name in (baseline, candidate)]
        compared = trackperm.compare(*runs, statistic, tracking_uri=self.store.uri)
        return compared, trackperm.log(compared)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return Ledger(tmp_path_factory.mktemp("ledger"))


def test_looks_are_counted_and_shown(ledger: Ledger):
    published = [each for _, each in [*ledger.large, ledger.small]]
    assert [each.look for each in published] == [1, 2, 3, 1]
    for each in published:
        note = ledger.store.get(each.run.reference.locator).data.tags["mlflow.note.content"]
        assert look_sentence(each.look).capitalize() in note.replace("\\", "")


def test_the_same_again_keeps_its_number_and_changes_nothing(ledger: Ledger):
    comparison, first = ledger.large[0]
    before = ledger.store.get(first.run.reference.locator).to_dictionary()
    again = trackperm.log(comparison)
    assert (again.created, again.look, again.run) == (False, 1, first.run)
    assert ledger.store.get(first.run.reference.locator).to_dictionary() == before


def test_a_comparison_lists_its_family(ledger: Ledger):
    compared, published = ledger.large[1]
    text = invoke("family", str(published.run.reference), "--tracking-uri", ledger.store.uri, "--spend")
    lines = text.splitlines()
    assert lines[0] == f"test set {compared.pairing.test_set[:12]}: 3 logged comparisons"
    assert [line.split()[0] for line in lines[2:5]] == ["1", "2", "3"]
    assert "new beats old in accuracy, p " in lines[2]
    assert "new beats old in error_rate, p " in lines[3]
    assert all("▲ better" in line for line in lines[2:4])
    assert any("not for candidates that were built" in line for line in lines)
    assert any("deleted, never logged" in line for line in lines)


def test_a_logged_comparison_verifies_until_it_is_changed(ledger: Ledger):
    run = ledger.large[2][1].run
    arguments = ["verify", str(run.reference), "--from-runs", "--tracking-uri", ledger.store.uri]
    assert "from the runs" in invoke(*arguments)
    ledger.store.client.log_metric(run.reference.locator, "accuracy/p_value", 0.25)
    result = CliRunner().invoke(commands.app, arguments)
    assert result.exit_code == 4
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("MISMATCH"))
    assert "metric accuracy/p_value" in line
    with contextlib.closing(sqlite3.connect(ledger.store.uri.removeprefix("sqlite:///"))) as database:
        for table in ("latest_metrics", "metrics"):
            database.execute(f"DELETE FROM {table} WHERE run_uuid = ?", [run.reference.locator])
        database.commit()
    verification = trackperm.verify(str(run.reference), tracking_uri=ledger.store.uri)
    assert "metric accuracy/p_value" in {check.what for check in verification.checks if not check.matches}


def test_an_experiment_lists_all_families(ledger: Ledger):
    found = trackperm.family(experiment="mlflow:digits", tracking_uri=ledger.store.uri)
    assert found == families(ledger.store.tracker().comparisons("digits"))
    assert [each.n_comparisons for each in found] == [3, 1]
    alone = [compared.log10_pvalue for compared, _ in ledger.large]
    adjusted = list(found[0].adjusted("bonferroni").values())
    assert adjusted == pytest.approx([log10_p + math.log10(3) for log10_p in alone])
    digest = found[1].test_set
    chosen = trackperm.family(experiment="mlflow:digits", test_set=digest[:6], tracking_uri=ledger.store.uri)
    assert chosen == [found[1]]


def test_a_run_and_a_comparison_list_their_own(ledger: Ledger):
    """As text, and as a run that a tracker returns."""
    uri = ledger.store.uri
    first, second = trackperm.family(experiment="mlflow:digits", tracking_uri=uri)
    for (compared, published), wanted in ((ledger.large[0], first), (ledger.small, second)):
        for run in (published.run, compared.candidate_run, compared.baseline_run):
            assert run is not None
            assert trackperm.family(run, tracking_uri=uri) == [wanted]
            assert trackperm.family(str(run.reference), tracking_uri=uri) == [wanted]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "expected one run, or"),
        ({"run": "mlflow:x", "experiment": "mlflow:digits"}, "expected one run, or"),
        ({"run": Path("predictions.csv")}, "`predictions.csv` names no tracker"),
        ({"experiment": "digits"}, "`digits` names no tracker"),
        ({"experiment": "mlflow:digits", "test_set": "zz"}, "on the test set `zz` is logged for"),
    ],
)
def test_runs_without_a_family_are_refused(ledger: Ledger, arguments: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        trackperm.family(**arguments, tracking_uri=ledger.store.uri)


def test_the_command_writes_files(ledger: Ledger, tmp_path: Path):
    where = ("family", "--experiment", "mlflow:digits", "--tracking-uri", ledger.store.uri, "--spend")
    files = [tmp_path / f"family.{suffix}" for suffix in ("txt", "json", "csv")]
    result = CliRunner().invoke(
        commands.app, [*where, *(each for file in files for each in ("-o", str(file)))]
    )
    assert result.exit_code == 0, result.output
    text, data, table = (file.read_text(encoding="utf-8") for file in files)
    assert text == result.stdout
    found = listed(experiment="mlflow:digits", tracking_uri=ledger.store.uri)
    assert json.loads(data) == json.loads(json.dumps([each.to_dict(spend=True) for each in found]))
    assert table == families_csv(found, "holm", spend=True)
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["test_set"] for row in rows] == [each.test_set for each in found for _ in each.entries]
    assert float(rows[0]["log10_p_spent"]) == found[0].spent()[1]
    refused = CliRunner().invoke(commands.app, [*where, "-o", "family.html"])
    assert "the suffix of `family.html` is not a format" in str(refused.exception)
