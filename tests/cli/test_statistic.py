"""`trackperm statistic`: list, show, check and new."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from support.command_line import call_trackperm
from support.comparisons import check_golden

import trackperm
from trackperm.statistic import builtin_names, load_statistic
from trackperm.statistic.forecast import EngineForecast, forecast_engine
from trackperm.statistic.written_spec import written_spec

GOLDEN = Path(__file__).parents[1] / "golden"

BAD = """\
counts:
  tp: (prediction == positive) & (label == positve
  u: v.x + 1
  n: sqrt(2)
  9x: 1
missing: {tp: 0, nn: prediction}
parameters: {positive: 1, beta: .inf}
score: tp / (tp + incorect / 2 + beta)
undefined: "zero"
resolution: {q: 1}
"""
GOOD = "counts: {right: prediction == label, n: 1}\nscore: right / n\n"

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run `trackperm statistic ...` in an empty folder; return exit code and output."""
    monkeypatch.chdir(tmp_path)

    def called(*arguments: str) -> tuple[int, str, str]:
        result = call_trackperm(tmp_path, "statistic", *arguments)
        assert "Traceback" not in result.stderr
        return result.returncode, result.stdout, result.stderr

    return called


def test_list_names_statistics_with_counts_and_columns(call: Call):
    code, printed, errors = call("list")
    assert (code, errors) == (0, "")
    lines = printed.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == list(builtin_names())
    assert max(map(len, lines)) <= 80
    assert "    Share of examples whose prediction equals the label\n" in printed
    assert "    counts: hits, n; columns: rank; parameters: k=5\n" in printed
    assert "columns: prediction, label; groups: strata label\n" in printed
    assert "columns: prediction, label; groups: classes\n    label\n" in printed


@pytest.mark.parametrize("name", ["f_beta", "mcc", "balanced_accuracy", "macro_f1", "bleu"])
def test_show_against_golden(call: Call, name: str):
    code, printed, errors = call("show", name)
    assert (code, errors) == (0, "")
    assert all(len(line) <= 80 for line in printed.splitlines() if line.startswith("#"))
    check_golden(printed, GOLDEN / f"cli_statistic_show_{name}.txt")


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", builtin_names())
def test_show_prints_an_equivalent_spec(call: Call, tmp_path: Path, name: str):
    (tmp_path / f"{name}.yaml").write_text(call("show", name)[1], encoding="utf-8")
    assert written_spec(load_statistic(f"{name}.yaml")) == written_spec(load_statistic(name))
    assert call("check", f"{name}.yaml") == (0, f"{name}.yaml: ok\n", "")


def test_show_classes_of_a_list(call: Call, tmp_path: Path):
    macro = "counts: {right: (prediction == class) & (label == class), n: label == class}\nscore: right / n\n"
    (tmp_path / "mine.yaml").write_text(macro + "classes: [true, false]\n", encoding="utf-8")
    code, printed, _ = call("show", "mine.yaml")
    assert code == 0
    assert "\nclasses:\n- false\n- true\nweights:\n  'false': 1\n  'true': 1\n" in printed
    assert "columns: prediction, label; classes: false, true\n" in printed
    assert "# engine: linear, rank 1: " in printed


@pytest.mark.extended
def test_forecast_of_many_classes():
    """The mean of the scores of listed classes has too many terms to be multiplied out."""
    statistic = load_statistic("macro_f1", classes=range(30))
    assert (forecast_engine(statistic).kind, forecast_engine(statistic).each) == ("rational", None)
    assert forecast_engine(statistic).rank == 60
    assert (
        "where few examples differ, else certified ends or tilted sampling"
        in forecast_engine(statistic).engine
    )


def test_check_reports_all_at_once(call: Call, tmp_path: Path):
    (tmp_path / "faulty.yaml").write_text(BAD, encoding="utf-8")
    (tmp_path / "good.yaml").write_text(GOOD, encoding="utf-8")
    code, printed, errors = call("check", "faulty.yaml", "good.yaml")
    assert (code, printed) == (2, "good.yaml: ok\n")
    assert errors.endswith("faulty.yaml: 10 problems\n")
    check_golden(errors, GOLDEN / "cli_statistic_check.txt")


def test_check_as_json(call: Call, tmp_path: Path):
    (tmp_path / "faulty.yaml").write_text("count: {x: 1}\nscore: [1]\n", encoding="utf-8")
    (tmp_path / "good.yaml").write_text(GOOD, encoding="utf-8")
    code, printed, errors = call("check", "good.yaml", "faulty.yaml", "gone.yaml", "--format", "json")
    assert (code, errors) == (2, "")
    good, bad, gone = json.loads(printed)
    assert good == {"file": "good.yaml", "ok": True, "problems": []}
    assert [(p["line"], p["column"]) for p in bad["problems"]] == [(1, 1), (1, 1), (2, 8)]
    assert "Did you mean `counts`?" in bad["problems"][0]["hint"]
    (problem,) = gone["problems"]
    assert problem == {"line": None, "column": None, "message": "there is no file `gone.yaml`", "hint": None}
    files = [tmp_path / "checked.json", tmp_path / "checked.txt"]
    shown = call("check", "good.yaml", "faulty.yaml", "gone.yaml", *(f"-o{file}" for file in files))
    assert shown[0] == 2
    assert files[0].read_text() == printed
    assert files[1].read_text().startswith("good.yaml: ok\nfaulty.yaml:1:1: ")


PROBLEMS = {
    "YAML": ("counts: [\n", ["2:1"]),
    "version": ("version: 2\ncount: {}\n", ["1:10"]),
    "both forms": ("counts: {a: x}\nscore: a\nh: a\n", ["3:1"]),
    "missing says nothing of a count": (GOOD + "missing: {n: 1}\n", ["3:10"]),
    "long form": ("counts: {a: x}\ng: {p: u.b, q: v.a +}\nh: p - r\n", ["2:8", "2:21", "3:8"]),
    "not antisymmetric": ("g: {p: u.a, q: v.a}\nh: p / q\n", ["2:4"]),
    "a name twice": (GOOD + "parameters: {n: 1}\n", ["3:14"]),
    "missing and score": (GOOD.replace("right / n", "rigth / n") + "missing: {n: 1}\n", ["2:8", "3:10"]),
    "a parameter, not what reads it": (
        "counts: {a: x}\nparameters: {beta: .inf}\nscore: a * beta\n",
        ["2:20"],
    ),
    "weights without strata": (GOOD + "weights: {a: 1}\n", ["3:1"]),
    "classes that no count reads": (GOOD + "classes: label\nmissing: {right: 0, n: class}\n", ["3:1"]),
    "an error without a direction": ("name: val_loss\ncounts: {a: x}\nscore: a +\n", ["1:7", "3:11"]),
    "a class twice": (GOOD.replace("label,", "class,") + "classes: [a, b, a]\n", ["3:17"]),
}


@pytest.mark.parametrize(("text", "places"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_check_finds_the_errors_of_loading(call: Call, tmp_path: Path, text: str, places: list[str]):
    (tmp_path / "faulty.yaml").write_text(text, encoding="utf-8")
    code, printed, _ = call("check", "faulty.yaml", "--format", "json")
    assert code == 2
    (found,) = json.loads(printed)
    assert [f"{p['line']}:{p['column']}" for p in found["problems"]] == places
    with pytest.raises(trackperm.TrackpermError) as caught:
        load_statistic("faulty.yaml")
    assert any(problem["message"] in str(caught.value) for problem in found["problems"])


def test_new_writes_a_valid_spec_and_never_overwrites(call: Call, tmp_path: Path):
    code, printed, errors = call("new", "mine")
    assert (code, errors) == (0, "")
    assert printed == "mine.yaml written; `trackperm statistic check mine.yaml` checks it\n"
    assert call("check", "mine.yaml") == (0, "mine.yaml: ok\n", "")
    ids, label = ["a", "b", "c", "d"], [1, 1, 1, 0]
    runs = [pl.DataFrame({"id": ids, "prediction": p, "label": label}) for p in ([0, 0, 1, 1], [1, 1, 1, 1])]
    ours, recall = (trackperm.compare(*runs, name) for name in ("mine.yaml", "recall"))
    assert (ours.candidate_score, ours.pvalue) == (recall.candidate_score, recall.pvalue) == (1.0, 0.5)
    (tmp_path / "mine.yaml").write_text("mine", encoding="utf-8")
    code, printed, errors = call("new", "mine")
    assert (code, printed) == (2, "")
    assert "`mine.yaml` already exists" in errors
    assert (tmp_path / "mine.yaml").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(("name", "greater"), [("val_loss", False), ("cost_savings", True)])
def test_new_declares_the_direction_of_an_error(call: Call, tmp_path: Path, name: str, greater: bool):
    call("new", name)
    assert call("check", f"{name}.yaml") == (0, f"{name}.yaml: ok\n", "")
    assert load_statistic(tmp_path / f"{name}.yaml").greater_is_better is greater


def test_every_key_of_the_template_is_valid(call: Call, tmp_path: Path):
    """Each commented key is valid when it is uncommented."""
    call("new", "mine")
    text = (tmp_path / "mine.yaml").read_text(encoding="utf-8")
    keys = "contrast", "columns", "resolution", "cluster", "repeats", "alternative", "greater_is_better"
    for key in keys:
        assert f"\n# {key}: " in text
        (tmp_path / "mine.yaml").write_text(text.replace(f"\n# {key}: ", f"\n{key}: "), encoding="utf-8")
        assert call("check", "mine.yaml") == (0, "mine.yaml: ok\n", "")
    both = text.replace("\n# strata: ", "\nstrata: ").replace("\n# weights: ", "\nweights: ")
    long = text.replace("\nscore: ", "\n# score: ").replace("\n# g: ", "\ng: ").replace("\n# h: ", "\nh: ")
    macro = text.replace("\n# classes: ", "\nclasses: ").replace("== positive", "== class")
    for changed in (both, long, macro):
        (tmp_path / "mine.yaml").write_text(changed, encoding="utf-8")
        assert call("check", "mine.yaml") == (0, "mine.yaml: ok\n", "")


REFUSED = {
    "no such statistic": (["show", "accurcy"], "Did you mean `accuracy`?"),
    "no such file": (["show", "mine.yaml"], "there is no file `mine.yaml`"),
    "nothing to check": (["check"], "FILE"),
    "a directory to check": (["check", "."], "`.` cannot be read"),
    "a path for a name": (["new", "../mine"], "`../mine` is not a name of a statistic"),
    "an empty name": (["new", ""], "is not a name of a statistic"),
    "no such command": (["shwo"], "shwo"),
}


@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_refuses(call: Call, tmp_path: Path, arguments: list[str], said: str):
    code, printed, errors = call(*arguments)
    assert (code, printed) == (2, "")
    assert said in errors
    assert list(tmp_path.iterdir()) == []


FORECASTS = {
    "accuracy": EngineForecast("linear", 1),
    "balanced_accuracy": EngineForecast("linear", 1),
    "macro_f1": EngineForecast("rational", 2, "class"),
    "recall": EngineForecast("linear", 1),
    "precision": EngineForecast("rational", 2),
    "f1": EngineForecast("rational", 2),
    "cohen_kappa": EngineForecast("rational", 2),
    "mcc": EngineForecast("irrational", 2),
}


@pytest.mark.parametrize("name", FORECASTS)
def test_forecast(name: str):
    assert forecast_engine(load_statistic(name)) == FORECASTS[name]


def test_forecast_of_data_is_no_higher():
    """The forecast of rank and engine agrees with the test."""
    ids, label = [f"q{i}" for i in range(40)], [int(i % 3 == 1) for i in range(40)]
    runs = [
        pl.DataFrame({"id": ids, "prediction": [int(i % k < 2) for i in range(40)], "label": label})
        for k in (3, 5)
    ]
    for name, expected in FORECASTS.items():
        if name in ("balanced_accuracy", "macro_f1"):
            continue
        assert trackperm.compare(*runs, name).test.rank == expected.rank


def test_forecast_mentions_tilted_sampling():
    assert "whichever is cheaper" in EngineForecast("rational", 2).engine
    assert (
        "within two seconds, else certified ends or tilted sampling" in EngineForecast("rational", 3).engine
    )
    assert (
        "where few examples differ, else certified ends or tilted sampling"
        in EngineForecast("irrational", 9).engine
    )
    assert "rank 2 for each `language`: exact (enumerate" in EngineForecast("rational", 2, "language").engine


def test_check_names_columns_that_the_data_lacks(call: Call, tmp_path: Path):
    spec = "counts: {right: predicton == label, n: 1}\nmissing: {right: 0, n: 1}\nscore: right / n\n"
    (tmp_path / "own.yaml").write_text(f"{spec}cluster: docment\n")
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "run.csv").write_text("id,prediction,label,document\n1,a,a,d\n2,b,a,d\n")
    assert call("check", "own.yaml")[0] == 0
    assert call("check", "good.yaml", "--data", "run.csv")[0] == 0
    code, _, said = call("check", "own.yaml", "--data", "run.csv")
    assert code == 2
    assert "own.yaml:1:17: the data has no column `predicton`" in said
    assert "Did you mean `prediction`?" in said
    assert "own.yaml:4:10: the data has no column `docment`" in said
    assert "Did you mean `document`?" in said
    assert "own.yaml: 2 problems" in said
    code, _, said = call("check", "own.yaml", "--data", "nowhere.csv")
    assert code == 2
    assert said.startswith("error: `nowhere.csv` does not exist")
