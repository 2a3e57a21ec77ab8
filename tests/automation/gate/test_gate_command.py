"""`trackperm gate` on files: exit codes, and all that it writes, held against golden files."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from click.testing import Result
from support.comparisons import check_golden, without_digests
from support.hooked_runs import HookedStore
from typer.testing import CliRunner

import trackperm
from trackperm.automation.gate import gate as gate_module
from trackperm.automation.gate.markdown import markdown
from trackperm.automation.gate.report import GateReport
from trackperm.automation.judging import compare_candidate
from trackperm.automation.policy.load import load_policies
from trackperm.cli import commands
from trackperm.errors import InputError, StorageError, TrackerError, TrackpermError
from trackperm.trackers.references import RunReference, TrackedRun

GOLDEN = Path(__file__).parents[2] / "golden"
FILES = ("-o", "out.md", "-o", "out.xml", "-o", "out.json")


def gate(*arguments: str) -> Result:
    return CliRunner().invoke(commands.app, ["gate", *arguments])


def code_of(result: Result) -> int:
    """What the command would exit with."""
    return result.exception.exit_code if isinstance(result.exception, TrackpermError) else result.exit_code


CASES = {
    "pass": ("pull-request", "same", 0),
    "regression": ("pull-request", "worse", 1),
    "undecided": ("tiny", "tiny", 4),
    "missing_baseline": ("strict", "same", 2),
    "no_baseline_yet": ("first", "same", 0),
}


@pytest.fixture
def outputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a step's outputs that GitHub names."""
    monkeypatch.setenv("GITHUB_OUTPUT", str(folder / "outputs"))
    return folder / "outputs"


@pytest.mark.parametrize("case", CASES)
def test_golden_outputs(folder: Path, outputs: Path, monkeypatch: pytest.MonkeyPatch, case: str):
    name, candidate, code = CASES[case]
    summary = folder / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    result = gate("--name", name, "--candidate", f"{candidate}.parquet", "--github", *FILES)
    assert code_of(result) == code
    report = json.loads(Path("out.json").read_text())
    assert report["exit_code"] == code
    assert outputs.read_text() == f"outcome={report['outcome']}\nexit-code={code}\n"
    assert summary.read_text() == f"before\n{Path('out.md').read_text()}"
    comparisons = report.pop("comparisons")
    assert [each["title"] for each in report["findings"]] == [each["statistic"] for each in comparisons]
    parts = {
        "printed": result.stdout,
        "Markdown": Path("out.md").read_text(),
        "JUnit": Path("out.xml").read_text(),
        "JSON, without the comparisons": json.dumps(report, indent=2, ensure_ascii=False) + "\n",
    }
    text = "".join(f"===== {part} =====\n{content}" for part, content in parts.items())
    check_golden(clean(text, folder), GOLDEN / f"gate_{case}.txt")


def clean(text: str, folder: Path) -> str:
    text = re.sub(r'(policy_digest"(?: value=|: )")[0-9a-f]{64}', r"\1…", text)
    return without_digests(text.replace(str(folder), "FOLDER"))


def test_without_options_for_files_it_prints_alone(folder: Path):
    result = gate("--name", "pull-request", "--candidate", "worse.parquet")
    assert result.exit_code == 1
    assert sorted(path.suffix for path in folder.iterdir()) == [".parquet"] * 5 + [".yaml"]
    assert result.stdout.startswith("pull-request: fail, 2 of 2 comparisons\ncandidate: worse.parquet\n")
    assert "::" not in result.stdout


def test_another_baseline_is_seen_from_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    policy = ("--policy", "../trackperm.yaml", "--name", "pull-request")
    assert gate(*policy, "--candidate", "../worse.parquet").exit_code == 1
    Path("own.parquet").write_bytes(Path("../worse.parquet").read_bytes())
    result = gate(*policy, "--candidate", "../worse.parquet", "--baseline", "own.parquet")
    assert (result.exit_code, "both runs count the same" in result.stdout) == (0, True)


def test_a_missing_baseline_on_the_command_line_does_not_pass(folder: Path):
    assert gate("--name", "first", "--candidate", "same.parquet").exit_code == 0
    result = gate("--name", "first", "--candidate", "same.parquet", "--baseline", "tpyo.parquet")
    assert isinstance(result.exception, TrackpermError)
    assert "does not exist" in str(result.exception)


@pytest.mark.parametrize("query", ["?token=correct-horse", "?sslmode=off&password=correct-horse"])
def test_no_report_has_a_secret(folder: Path, monkeypatch: pytest.MonkeyPatch, query: str):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder}/none.db{query}")
    result = gate("--name", "strict", "--candidate", "mlflow:e/x", *FILES)
    assert isinstance(result.exception, TrackpermError)
    written = [Path(file).read_text() for file in FILES[1::2]]
    assert all("is not an MLflow store" in each for each in written)
    assert "correct-horse" not in "".join([result.output, str(result.exception), *written])


@pytest.mark.tracker
@pytest.mark.parametrize("password", ["hunter/2", "hunter#2", "hunter?2"])
def test_a_password_that_is_not_encoded_is_not_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, password: str
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://ann:{password}@127.0.0.1:9")
    result = gate("--name", "strict", "--candidate", "mlflow:e/x")
    assert "MLflow at `http://127.0.0.1:9` failed" in result.stdout
    assert "hunter" not in result.stdout + str(result.exception)


def test_the_suffix_of_a_report_is_checked_before_anything_is_compared(folder: Path):
    result = gate("--name", "pull-request", "--candidate", "same.parquet", "-o", "out.png")
    assert "the suffix of `out.png` is not a format" in str(result.exception)
    assert result.stdout == ""


def test_what_is_printed_can_be_json_or_markdown(folder: Path):
    policy = ("--name", "pull-request", "--candidate", "worse.parquet")
    printed = gate(*policy, "--format", "json", *FILES)
    assert (printed.exit_code, printed.stdout) == (1, Path("out.json").read_text())
    assert gate(*policy, "--format", "markdown").stdout == Path("out.md").read_text()
    both = gate(*policy, "--format", "json", "--github")
    assert both.exit_code == 2
    assert both.stdout.startswith("::error title=trackperm gate::`--github` and `--format json` contradict")


def test_a_report_that_cannot_be_written_keeps_no_other_from_being_written(
    folder: Path, outputs: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "nowhere" / "summary"))
    policy = ("--name", "pull-request", "--candidate", "worse.parquet", "--github")
    result = gate(*policy, "-o", "nowhere/out.md", "-o", "out.xml", "-o", "out.json")
    assert isinstance(result.exception, StorageError)
    assert "`nowhere/out.md` cannot be written" in str(result.exception), "the first of two"
    assert json.loads(Path("out.json").read_text())["exit_code"] == 1
    assert ET.parse("out.xml").find("testsuite/testcase/failure") is not None
    assert outputs.read_text() == "outcome=fail\nexit-code=1\n"
    assert "\n::error title=trackperm pull-request::" in result.stdout
    result = gate(*policy)
    assert "Hint: set `GITHUB_STEP_SUMMARY` to a file in an existing folder" in str(result.exception)
    if Path("/dev/full").exists():
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/dev/full")
        assert "Hint: the disk is full, or a quota is exhausted" in str(gate(*policy).exception)
    monkeypatch.setenv("GITHUB_OUTPUT", str(folder))
    result = gate("--name", "none", "--candidate", "worse.parquet", "--github")
    assert "Hint: set `GITHUB_OUTPUT` to a file" in str(result.exception)
    assert result.stdout.startswith("::error title=trackperm gate::`trackperm.yaml` has no policy `none`")


def test_a_summary_takes_any_text(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Such as half of a surrogate pair, which a path may have."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    result = gate("--name", "first", "--candidate", os.fsdecode(b"nowhere-\xff"), "--github")
    assert result.exit_code == 2
    assert r"Candidate <code>nowhere-\udcff</code>" in (folder / "summary.md").read_text()


def test_no_text_is_a_command_to_github(folder: Path):
    result = gate("--name", "first", "--candidate", "x\n::stop-commands::y::z\n", "--github")
    assert result.exit_code == 2
    lines = (result.stdout + result.stderr).splitlines()
    commands = [line.strip() for line in lines if line.strip().startswith("::")]
    assert [command.partition(" ")[0] for command in commands] == ["::error"]


def test_a_policy_that_cannot_be_read_is_reported_to_github(outputs: Path):
    result = gate("--name", "x\n::stop-commands::y", "--candidate", "same.parquet", "--github")
    assert result.exit_code == 2
    [line] = (result.stdout + result.stderr).splitlines()
    assert line.startswith(
        "::error title=trackperm gate::`trackperm.yaml` has no policy `x%0A::stop-commands"
    )
    assert outputs.read_text() == "outcome=error\nexit-code=2\n"


def test_markdown_says_where_lower_is_better(folder: Path):
    policy = "policies: [{name: e, baseline: {run: base.parquet}, statistics: [accuracy, error_rate]}]"
    (folder / "trackperm.yaml").write_text(policy)
    gate("--candidate", "worse.parquet", *FILES)
    rows = [line.split(" | ") for line in Path("out.md").read_text().splitlines() if line.startswith("| ❌")]
    shown = sorted((row[1], row[-1]) for row in rows)
    assert shown == [
        ("<code>accuracy</code>", "▼ worse |"),
        ("<code>error\\_rate</code> (lower is better)", "▼ worse |"),
    ]


def test_markdown_shows_the_interval_that_decides_a_margin(folder: Path):
    """Regression: beside "at most 0.7 worse" stood the 95 % interval alone, with an end below -0.7."""
    rule = "margin: 0.7, fail_on: not-shown-non-inferior"
    policy = f"policies: [{{name: m, baseline: {{run: tiny-base.parquet}}, statistics: [accuracy], {rule}}}]"
    (folder / "trackperm.yaml").write_text(policy)
    report = trackperm.gate("tiny.parquet")
    assert report.findings[0].reason == "at most 0.7 worse (90% CI [-0.6551, +0.0968])"
    assert "| [-0.7007, +0.1637] (95% CI)<br>[-0.6551, +0.0968] (90% CI) |" in markdown(report)


@pytest.mark.parametrize(
    ("error", "code"),
    [(TrackerError("MLflow does not answer", hint="is it up?"), 3), (ZeroDivisionError("oops"), 70)],
)
def test_an_error_is_reported_and_is_not_a_regression(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
):
    monkeypatch.delenv("TRACKPERM_DEBUG", raising=False)
    monkeypatch.setattr(gate_module, "compare_and_log", Mock(side_effect=error))
    result = gate("--name", "tiny", "--candidate", "tiny.parquet", "-o", "out.xml", "-o", "out.json")
    assert isinstance(result.exception, TrackpermError)
    assert result.exception.exit_code == code
    report = json.loads(Path("out.json").read_text())
    assert (report["outcome"], report["exit_code"]) == ("error", code)
    assert ET.parse("out.xml").find("testsuite/testcase/error") is not None


EVIL = "x](http://evil) @team #1 <img src=x> | `a` \n::error title=boo::pwned \x1b[31m"


def evil_report(folder: Path) -> GateReport:
    policy = load_policies("trackperm.yaml").find("tiny")
    run = TrackedRun(RunReference("file", "tiny.parquet"), EVIL, "", url="https://host/a) b")
    base = TrackedRun(RunReference("file", "tiny-base.parquet"), EVIL, "")
    baseline = compare_candidate.Baseline(base, EVIL)
    return GateReport.of(compare_candidate.compare_and_log(policy, run, baseline))


def test_names_cannot_be_markup_mentions_or_commands(folder: Path):
    report = evil_report(folder)
    shown = markdown(report)
    assert re.search(r"(?<!\\)<img", shown) is None
    assert re.search(r"(?<!\\)\]\(http://evil", shown) is None
    outside = re.sub(r"<code>.*?</code>|<pre>.*?</pre>", "", shown, flags=re.DOTALL)
    assert "@team" in shown
    assert "@team" not in outside
    assert "#1" not in outside
    assert "](https://host/a%29%20b)" in shown
    for text in ("\n".join(report.lines()), "\n".join(report.annotations())):
        assert re.search(r"^::error title=boo", text, re.MULTILINE) is None
    assert "\x1b" not in "".join(report.lines())
    error = GateReport.of_error(report.policy, report.candidate, InputError("50%25\n::error::\x00\ufffe"))
    assert "50%2525%0A::error::" in next(error.annotations())
    said = ET.fromstring(error.to_junit()).find(".//error")
    assert (said.get("message"), said.text) == ("not compared", "50%25\n::error::\ufffd\ufffd")
    root = ET.fromstring(report.to_junit())
    values = [each.get("value") or "" for each in root.iter("property")]
    assert any(value.startswith("x](http://evil)") and "\x1b" not in value for value in values)
    json.loads(report.to_json())


def test_a_folded_title_mentions_nobody_and_no_line_is_an_old_command(folder: Path):
    slices = pl.lit("@team #1 ##[add-mask]x").alias("group")
    for name in ("base", "worse"):
        pl.read_parquet(f"{name}.parquet").with_columns(slices).write_parquet(f"{name}-sliced.parquet")
    Path("slices.yaml").write_text(
        "policies: [{name: s, baseline: {run: base-sliced.parquet}, slices: group}]"
    )
    result = gate("--policy", "slices.yaml", "--candidate", "worse-sliced.parquet", "-o", "out.md")
    assert result.exit_code == 1
    assert "##[" not in result.stdout
    titles = re.findall("<summary>.*</summary>", Path("out.md").read_text())
    assert any("team" in title for title in titles)
    assert not any(re.search("[@#](?=[a-z0-9])", title) for title in titles)


@pytest.mark.extended
def test_a_long_report_is_cut_to_what_a_comment_holds(folder: Path):
    rows = 1200
    frame: dict[str, Any] = {
        "id": [f"q{i}" for i in range(rows)],
        "label": ["a"] * rows,
        "group": [f"group {i % 60:02} {'long ' * 400}" for i in range(rows)],
    }
    for name, shift in (("left", 0), ("right", 1)):
        column = ["a" if (i // 60 + shift) % 3 else "b" for i in range(rows)]
        pl.DataFrame({**frame, "prediction": column}).write_parquet(f"{name}.parquet")
    Path("slices.yaml").write_text(
        "policies: [{name: slices, baseline: {run: left.parquet}, slices: group, margin: 0.01}]"
    )
    result = gate("--policy", "slices.yaml", "--candidate", "right.parquet", "-o", "out.md")
    assert result.exit_code == 4
    written = Path("out.md").read_text()
    assert len(written) <= 60_001
    assert "and 11 more with the same or a better outcome." in written
    assert written.count("<details>") == written.count("</details>")


@pytest.mark.extended
@pytest.mark.tracker
def test_a_run_that_failed_does_not_pass(runs: HookedStore):
    """Whatever it has logged, and if MLflow notes no end; one that is still going is judged."""
    policy = ("--policy", str(runs.policy_file(baseline={"run": f"mlflow:{runs.baseline()}"})), "--no-log")
    client = runs.store.client
    for fail in (client.set_terminated, client.update_run):
        going = runs.begun()
        runs.log(going, seed=1)
        assert gate(*policy, "--candidate", f"mlflow:{going}").exit_code == 0
        fail(going, "FAILED")
        failed = gate(*policy, "--candidate", f"mlflow:{going}")
        assert f"the candidate `mlflow:{going}` has failed" in str(failed.exception)
