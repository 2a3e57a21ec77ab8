"""`trackperm compare` on files; for runs of a tracker, see `tests/trackers`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import polars as pl
import pytest
import typer
from support.command_line import call_trackperm
from support.comparisons import answers, check_golden
from support.processes import run, script

from trackperm import cli
from trackperm.cli import commands

BASELINE = [False] * 109 + [True] * 69 + [True] * 935 + [False] * 206
CANDIDATE = [True] * 109 + [False] * 69 + [True] * 935 + [False] * 206

PRINTED = """\
accuracy, by default   baseline 0.7612   candidate 0.7915   difference +0.0303   95% CI [+0.0098, +0.0510]
p = 0.00335  exact, two-sided, 1,319 examples (178 discordant: 109 better, 69 worse)   ▲ better
scope: these two runs on these examples; not other seeds, prompts or test sets; null: outputs are \
exchangeable on every example
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with two runs in files, and with files that are not runs."""
    path = tmp_path_factory.mktemp("cli")
    answers(BASELINE).write_parquet(path / "base.parquet")
    answers(CANDIDATE).write_parquet(path / "cand.parquet")
    answers(CANDIDATE).write_csv(path / "cand.csv")
    short = answers(CANDIDATE)[:-1]
    short.write_csv(path / "short.csv")
    pl.concat([short, short[-1:]]).write_csv(path / "twice.csv")
    answers(CANDIDATE).with_columns(label=pl.lit("no")).write_csv(path / "labels.csv")
    answers(CANDIDATE).drop("id").write_csv(path / "noid.csv")
    answers(CANDIDATE).rename({"prediction": "answer"}).write_csv(path / "renamed.csv")
    answers([]).write_csv(path / "norows.csv")
    texts = {
        "empty.csv": "",
        "cut.jsonl": '{"id": 1,\n',
        "cut.parquet": "PAR1",
        "notes.docx": "x",
        "broken.yaml": "name: s\ncounts: [\n",
        "key.yaml": "name: s\nfoo: 1\ncounts: {ok: prediction == label}\nscore: ok\n",
        "name.yaml": "name: s\ncounts: {ok: prediction == label}\nscore: okay\n",
        "column.yaml": "name: s\ncounts: {ok: prediction == labl}\nscore: ok\n",
        "code.yaml": "name: s\ncounts: {ok: __import__('os').getcwd()}\nscore: ok\n",
        "errors.yaml": "name: errors\ngreater_is_better: false\ncounts: {n: prediction != label}\nscore: n\n",
    }
    for name, text in texts.items():
        (path / name).write_text(text, encoding="utf-8")
    (path / "directory").mkdir()
    return path


# --- what is printed -------------------------------------------------------------------------------


def test_prints_the_verdict(folder: Path):
    result = call_trackperm(folder, "compare", "base.parquet", "cand.parquet")
    assert (result.returncode, result.stdout, result.stderr) == (0, PRINTED, "")


def test_studentized_is_printed_below(folder: Path):
    arguments = ("compare", "base.parquet", "cand.parquet", "--no-log", "--studentized")
    result = call_trackperm(folder, *arguments)
    assert result.stdout == PRINTED + (
        "studentised permutation test: p = 0.00335 beside the exact p = 0.00335. It is the same test:"
        " `accuracy` is a sum of one difference for each of the examples, and no swap changes the squares of"
        " these differences.\n"
    )


def test_formats_and_order_of_rows_change_nothing(folder: Path):
    pl.read_csv(folder / "cand.csv").sample(fraction=1.0, shuffle=True, seed=1).write_ndjson(
        folder / "c.jsonl"
    )
    for candidate in ("cand.csv", "c.jsonl"):
        assert call_trackperm(folder, "compare", "base.parquet", candidate).stdout == PRINTED


def test_several_statistics(folder: Path):
    result = call_trackperm(
        folder,
        *("compare", "base.parquet", "cand.csv", "-s", "accuracy", "-s", "f1", "--set", "negative=yes"),
    )
    assert result.returncode == 2, "neither has a parameter called `negative`"
    result = call_trackperm(
        folder,
        *("compare", "base.parquet", "cand.csv", "-s", "accuracy", "-s", "f1", "--set", "positive=never"),
    )
    assert result.returncode == 2
    assert "`f1` is 0/0 in both runs" in result.stderr
    assert "check that the data contain it: `positive` is 'never'" in result.stderr
    result = call_trackperm(
        folder, "compare", "base.parquet", "cand.csv", "-s", "accuracy", "-s", "errors.yaml", "--no-log"
    )
    first, second = result.stdout.split("\n\n")
    named = PRINTED.replace("accuracy, by default", "accuracy").replace("95% CI", "uncorrected 95% CI")
    assert first.replace(" (adjusted 0.0067: Holm over 2 tests)", "", 1) + "\n" == named
    assert second.startswith(
        "errors (lower is better)   baseline 315.0000   candidate 275.0000   difference -40.0000"
        "   uncorrected 95% CI"
    )
    assert "\np = 0.00335 (adjusted 0.0067: Holm over 2 tests)  exact" in second
    assert "▲ better" in second


def test_real_scores_engines_and_their_labels(folder: Path):
    """Exact, drawn and mid-p-values of the same real scores are labelled."""
    scores = [0.1, 0.3, 0.7, 0.25, 0.9, 0.4, 0.35, 0.8, 0.15, 0.6]
    for name, shift in (("lower", 0.0), ("higher", 0.3)):
        column = [round(s + shift * (i % 4 != 0), 2) for i, s in enumerate(scores)]
        frame = pl.DataFrame({"id": [f"q{i}" for i in range(10)], "score": column})
        frame.write_csv(folder / f"{name}.csv")
    arguments = ("compare", "lower.csv", "higher.csv", "-s", "mean")
    exact = call_trackperm(folder, *arguments)
    assert (exact.returncode, exact.stderr) == (0, "")
    assert "p = 0.0156  exact, two-sided" in exact.stdout
    assert "`score`: 2 decimals, without rounding" in exact.stdout
    drawn = call_trackperm(folder, *arguments, "--method", "monte-carlo", "--samples", "2000", "--seed", "3")
    assert "Monte Carlo of 2,000 swaps, 99 % interval" in drawn.stdout
    assert drawn.stdout == call_trackperm(folder, *arguments, *drawn.args[6:]).stdout
    mid = call_trackperm(folder, *arguments, "--mid-p")
    assert "mid-p = 0.00781  mid-p computed exactly, level not guaranteed, two-sided" in mid.stdout
    rounded = call_trackperm(folder, *arguments, "--resolution", "0.5")
    assert "rounded to multiples of 0.5 (largest change 0.25)" in rounded.stdout
    refused = call_trackperm(folder, *arguments, "--method", "fft")
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


def test_options_reach_the_test(folder: Path):
    def verdict(*options: str) -> str:
        result = call_trackperm(folder, "compare", "base.parquet", "cand.csv", *options)
        assert result.returncode == 0, result.stderr
        return result.stdout.splitlines()[1]

    assert verdict("--alpha", "0.001").endswith("≈ undecided")
    assert verdict("--alternative", "greater").startswith("p = 0.00167  exact, one-sided (greater)")
    assert verdict("--alternative", "less").startswith("p = 0.999  exact, one-sided (less)")
    assert verdict("--method", "lattice") == PRINTED.splitlines()[1]
    assert verdict("--memory", "1MiB") == PRINTED.splitlines()[1]


def test_columns_by_other_names(folder: Path):
    arguments = "compare", "renamed.csv", "renamed.csv", "--prediction", "answer", "--label", "label"
    result = call_trackperm(folder, *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    assert "identical" in result.stdout


def test_dropped_pairs_and_pairing_by_position_are_reported(folder: Path):
    dropped = call_trackperm(folder, "compare", "base.parquet", "short.csv", "--missing", "drop")
    assert dropped.returncode == 0
    assert "(baseline 1,319, candidate 1,318, tested 1,318)" in dropped.stdout
    by_position = call_trackperm(folder, "compare", "noid.csv", "noid.csv", "--by-position")
    assert by_position.returncode == 0
    assert "paired by position" in by_position.stdout


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_no_engine_changes_the_result(folder: Path, engine: str):
    arguments = "compare", "base.parquet", "cand.parquet", "--format", "json", "--engine"
    found = [call_trackperm(folder, *arguments, name) for name in ("auto", engine)]
    assert found[1].returncode == 0, found[1].stderr
    assert json.loads(found[1].stdout) == json.loads(found[0].stdout)


# --- what is refused -------------------------------------------------------------------------------

REFUSED = {
    "no such file": (["nope.csv"], "`nope.csv`"),
    "directory": (["directory"], "directory"),
    "unknown format": (["notes.docx"], "Parquet"),
    "empty file": (["empty.csv"], "empty"),
    "no rows": (["norows.csv"], "no examples"),
    "truncated lines": (["cut.jsonl"], "begins like JSON, but is not valid"),
    "truncated Parquet": (["cut.parquet"], "Parquet"),
    "missing example": (["short.csv"], "--missing drop"),
    "example twice": (["twice.csv"], "'dev-1317'"),
    "other labels": (["labels.csv"], "`label` differs"),
    "no ids": (["noid.csv"], "--by-position"),
    "no predictions": (["renamed.csv"], "--candidate-column prediction="),
    "unknown statistic": (["cand.csv", "-s", "f2"], "built in are"),
    "no such spec": (["cand.csv", "-s", "f2.yaml"], "`f2.yaml`"),
    "broken spec": (["cand.csv", "-s", "broken.yaml"], "broken.yaml:3:1"),
    "unknown key in spec": (["cand.csv", "-s", "key.yaml"], "key.yaml:2:1"),
    "unknown name in spec": (["cand.csv", "-s", "name.yaml"], "`okay`"),
    "unknown column in spec": (["cand.csv", "-s", "column.yaml"], "`labl`"),
    "code in spec": (["cand.csv", "-s", "code.yaml"], "code.yaml:2:"),
    "text against number": (["cand.csv", "-s", "f1"], "--set positive=yes"),
    "unknown parameter": (["cand.csv", "-s", "f1", "--set", "pos=yes"], "`pos`"),
    "no assignment": (["cand.csv", "--set", "positive"], "--set positive=1"),
    "alpha of 2": (["cand.csv", "--alpha", "2"], "`alpha` is 2.0"),
    "alpha of nan": (["cand.csv", "--alpha", "nan"], "`alpha` is nan"),
    "alpha in words": (["cand.csv", "--alpha", "high"], "--alpha"),
    "unknown alternative": (["cand.csv", "--alternative", "up"], "two-sided"),
    "memory in words": (["cand.csv", "--memory", "much"], "`--memory much` is not a size"),
    "three artifacts": (["cand.csv", "--artifact", "a,b,c"], "--artifact BASE,CAND"),
    "tracker without run": (["mlflow:"], "names a tracker without a run"),
    "unknown tracker": (["tracker:1"], "expected one of"),
    "log and do not log": (["cand.csv", "--no-log", "--log-to", "mlflow:x"], "contradict"),
    "alert and do not log": (["cand.csv", "--no-log", "--alert"], "`--no-log` and `--alert` contradict"),
    "tags and do not log": (["cand.csv", "--no-log", "--tag-runs"], "`--no-log` and `--tag-runs` contradict"),
    "alert of nothing": (["cand.csv", "--alert"], "need a tracker, and the candidate is not in one"),
    "log to no tracker": (["cand.csv", "--log-to", "x"], "--log-to mlflow:EXPERIMENT"),
    "no candidate": ([], "CANDIDATE"),
    "unknown option": (["cand.csv", "--nope"], "--nope"),
}


@pytest.mark.sample(15)
@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_refuses(folder: Path, arguments: list[str], said: str):
    result = call_trackperm(folder, "compare", "base.parquet", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr


def test_refuses_without_traceback(folder: Path):
    arguments, said = REFUSED["unknown key in spec"]
    result = run([script("trackperm"), "compare", "base.parquet", *arguments], cwd=folder)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_never_makes_a_store(folder: Path):
    result = call_trackperm(folder, "compare", "mlflow:digits/svm", "cand.csv")
    assert (result.returncode, result.stdout) == (2, "")
    assert "MLFLOW_TRACKING_URI" in result.stderr
    assert not [*folder.glob("*.db"), *folder.glob("mlruns")]


def test_a_fault_is_called_a_fault(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fail(**_: str) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(commands, "app", fail)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 70
    assert capsys.readouterr().err.startswith(
        "error: a fault in trackperm itself: ZeroDivisionError: oh\n\nHint: "
    )
    monkeypatch.setenv("TRACKPERM_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_duckdb_reports_no_leaks_at_the_end():
    command = (
        "import duckdb, sys; from trackperm import cli; sys.argv[1:] = ['compare', '--help']; cli.main()"
    )
    result = run([sys.executable, "-c", command])
    assert (result.returncode, result.stderr) == (0, "")


def test_a_reader_may_leave(folder: Path):
    result = run(
        ["sh", "-c", f"'{script('trackperm')}' compare base.parquet cand.csv --format json | true"],
        cwd=folder,
    )
    assert result.stderr == ""


# --- formats ---------------------------------------------------------------------------------------


def test_files_are_written_in_the_format_of_their_names(folder: Path):
    files = {"c.json": "[\n", "c.md": "**", "c.txt": "accuracy", "c.html": "<!doctype html>", "c.svg": "<svg"}
    options = [part for name in (*files, "c.png") for part in ("-o", name)]
    result = call_trackperm(folder, "compare", "base.parquet", "cand.csv", *options, "--format", "markdown")
    assert result.returncode == 0, result.stderr
    for name, start in files.items():
        assert (folder / name).read_text(encoding="utf-8").lower().startswith(start)
    assert result.stdout == (folder / "c.md").read_text(encoding="utf-8")
    assert (folder / "c.png").read_bytes().startswith(b"\x89PNG")
    assert result.stderr.splitlines() == [f"written: {name}" for name in (*files, "c.png")]


def test_markdown_of_several_comparisons_begins_with_their_table(folder: Path):
    """Regression: thirty-one slices were 864 lines without a table."""
    options = ["-s", "accuracy", "-s", "error_rate", "--format", "markdown"]
    lines = call_trackperm(folder, "compare", "base.parquet", "cand.csv", *options).stdout.splitlines()
    assert lines[0] == "| statistic | baseline | candidate | difference | interval | p | verdict |"
    assert [line.partition(" | ")[0] for line in lines[2:4]] == [
        "| accuracy",
        "| error\\_rate (lower is better)",
    ]
    assert lines[4] == ""
    assert lines[5].startswith("**")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "c.pdf"], "the suffix of `c.pdf` is not a format"),
        (["--format", "html", "-s", "accuracy", "-s", "errors.yaml"], "an HTML page or a picture shows one"),
        (["-o", "c.html", "--slice", "label"], "an HTML page or a picture shows one comparison"),
        (["-o", "c.png", "--slice", "label"], "an HTML page or a picture shows one comparison"),
    ],
)
def test_files_that_cannot_be_written_are_refused(folder: Path, options: list[str], message: str):
    result = call_trackperm(folder, "compare", "base.parquet", "cand.csv", *options)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stdout == ""


# --- help ------------------------------------------------------------------------------------------


def declared(command: click.Command, name: str) -> Iterator[str]:
    """Help of a command and its parameters, without the layout of the libraries."""
    yield f"{name}: {command.help}"
    for parameter in command.get_params(click.Context(command)):
        *_, text = (getattr(parameter, "help", None) or "").split("\n")
        yield f"  {' '.join(parameter.opts)}: {text}"
    for sub in getattr(command, "commands", {}).values():
        yield ""
        yield from declared(sub, f"{name} {sub.name}")


def test_golden_help():
    text = "\n".join(declared(typer.main.get_command(commands.app), "trackperm")) + "\n"
    check_golden(text, Path(__file__).parents[1] / "golden" / "cli_help.txt")


@pytest.mark.parametrize("arguments", [["--help"], ["compare", "--help"]], ids=" ".join)
def test_help_shows_every_option(folder: Path, arguments: list[str]):
    result = call_trackperm(folder, *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    command = typer.main.get_command(commands.app)
    if arguments[0] == "compare":
        command = command.commands["compare"]
    for parameter in command.params:
        for option in parameter.opts:
            assert option in result.stdout
