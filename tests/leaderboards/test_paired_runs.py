"""Runs and examples of a leaderboard, and the reasons why others are excluded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.comparisons import numbered

import trackperm
from trackperm.errors import InputError, InputTypeError, PairingError, SourceError, SpecError
from trackperm.leaderboards import Leaderboard, run_counts
from trackperm.report.leaderboard import cells

N = 20


def frame(right: str, n: int = N, label: str = "y") -> pl.DataFrame:
    """A run that is right where `right`, repeated, has a 1."""
    marks = (right * n)[:n]
    return pl.DataFrame(
        {
            "id": [f"q{i:02}" for i in range(n)],
            "prediction": [label if mark == "1" else "wrong" for mark in marks],
            "label": [label] * n,
        }
    )


def reasons(board: Leaderboard) -> dict[str, str]:
    return {run.name: run.reason for run in board.incomplete}


GOOD = {"a": frame("1"), "b": frame("10"), "c": frame("110")}


def test_an_incomplete_run_is_listed_and_not_compared():
    board = trackperm.leaderboard({**GOOD, "short": frame("1", N - 5)})
    assert [row.name for row in board.rows] == ["a", "c", "b"]
    assert len(board.pairs) == 3
    assert reasons(board) == {
        "short": "5 of 20 examples of `a` and 0 of 15 examples of `short` have no partner (first: 'q15',"
        " 'q16', 'q17', 'q18', 'q19')"
    }
    assert board.incomplete[0].hint == (
        "`--missing drop` compares all runs on the examples that all of them have; `--missing wrong`"
        " counts the others as wrong."
    )
    alone = trackperm.leaderboard(GOOD)
    assert [pair.adjusted for pair in alone.pairs] == [pair.adjusted for pair in board.pairs]


def test_reasons_call_runs_as_the_table_does(tmp_path: Path):
    """Regression: they had the paths of files, or the ids of MLflow's runs."""
    paths = [tmp_path / f"{name}.csv" for name in (*GOOD, "short")]
    for path, run in zip(paths, (*GOOD.values(), frame("1", N - 5)), strict=True):
        run.write_csv(path)
    board = trackperm.leaderboard(paths)
    assert "examples of `a.csv` and 0 of 15 examples of `short.csv` have" in reasons(board)["short.csv"]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (frame("1").with_columns(label=pl.lit("z")), "`label` differs between the runs on 20 of 20"),
        (frame("1").drop("prediction"), "lacks `prediction`"),
        (frame("1").with_columns(id=pl.lit("q")), "share their `id` with another"),
        (frame("1").with_columns(prediction=pl.Series([None, *["y"] * 19])), "no value in `prediction`"),
        (frame("1").with_columns(prediction=pl.Series(range(N))), "text"),
        (frame("1").head(0), "has no examples"),
    ],
    ids=["labels", "column", "ids", "null", "types", "empty"],
)
@pytest.mark.parametrize("first", [True, False])
def test_runs_that_cannot_be_paired_are_incomplete_in_any_order(other: Any, reason: str, first: bool):
    runs = {"odd": other, **GOOD} if first else {**GOOD, "odd": other}
    board = trackperm.leaderboard(runs)
    assert {row.name for row in board.rows} == set(GOOD)
    assert list(reasons(board)) == ["odd"]
    assert reason in reasons(board)["odd"]
    assert ("gold_label" in str(board.incomplete[0].hint)) == ("`label` differs" in reason)
    assert len(board.pairs) == 3


def test_runs_with_renamed_columns_get_a_hint_that_works():
    """Regression: it was `--candidate-column`, which leaderboards lack, and the reason had no columns."""
    renamed = frame("1").rename({"prediction": "pred"})
    board = trackperm.leaderboard({**GOOD, "odd": renamed})
    assert cells.incomplete(board) == [
        (
            "odd",
            "the statistic `accuracy` needs columns `id`, `prediction`, `label`: `a` has `id`, `prediction`,"
            " `label`; `odd` lacks `prediction` and has `id`, `pred`, `label`",
        )
    ]
    assert str(board.incomplete[0].hint).endswith(
        "In `trackperm compare`, `--candidate-column prediction=pred` names the column."
    )
    others = renamed.rename({"id": "example", "label": "target"})
    with pytest.raises(
        InputError, match=r"share no column: `\w+` has `id`, .*; `\w+` has `example`, "
    ) as caught:
        trackperm.leaderboard({"a": GOOD["a"], "b": GOOD["b"], "x": others, "y": others})
    assert str(caught.value.hint).startswith("leaderboards read columns of the same names from all runs")


def test_the_majority_chooses_the_examples():
    """Three runs on 15 examples outvote a first one on 20; the baseline outvotes all."""
    runs = {"full": frame("1"), **{name: run.head(15) for name, run in GOOD.items()}}
    assert list(reasons(trackperm.leaderboard(runs))) == ["full"]
    with pytest.raises(InputError, match=r"got 1 run with all examples \(`full`\)[\s\S]*`a`: [\s\S]*`b`: "):
        trackperm.leaderboard(runs, baseline="full")
    board = trackperm.leaderboard({**runs, "other": frame("01")}, baseline="full")
    assert sorted(reasons(board)) == ["a", "b", "c"]
    assert len(board.pairs) == 1


def test_a_baseline_that_is_broken_stops_everything():
    broken = frame("1").with_columns(prediction=pl.Series([None, *["y"] * 19]))
    with pytest.raises(PairingError, match="no value in `prediction`"):
        trackperm.leaderboard({**GOOD, "broken": broken}, baseline="broken")


def test_drop_tests_the_common_examples():
    runs = {"a": frame("1"), "b": frame("10").tail(17), "c": frame("110").head(16)}
    board = trackperm.leaderboard(runs, missing="drop")
    common = {
        name: run.filter(pl.col("id").is_between(pl.lit("q03"), pl.lit("q15"))) for name, run in runs.items()
    }
    assert (board.n_examples, board.n_largest, board.incomplete) == (13, 20, ())
    expected = trackperm.leaderboard(common)
    assert [row.score for row in board.rows] == [row.score for row in expected.rows]
    assert [pair.test.pvalue for pair in board.pairs] == [pair.test.pvalue for pair in expected.pairs]
    with pytest.raises(PairingError, match="the runs have no example in common"):
        trackperm.leaderboard({**runs, "d": frame("1").tail(2), "e": frame("1").head(2)}, missing="drop")


def test_wrong_counts_examples_that_any_run_has():
    """Examples that only some runs have are missing in the others, for any reference run."""
    runs = {"a": frame("1").head(12), "b": frame("10").tail(14), "c": frame("110").head(10)}
    board = trackperm.leaderboard(runs, missing="wrong")
    assert (board.n_examples, board.incomplete) == (N, ())
    full = pl.DataFrame({"id": [f"q{i:02}" for i in range(N)], "label": "y"})
    completed = {
        name: full.join(run.drop("label"), on="id", how="left").with_columns(
            pl.col("prediction").fill_null("-")
        )
        for name, run in runs.items()
    }
    expected = trackperm.leaderboard(completed)
    assert {row.name: row.score for row in board.rows} == {row.name: row.score for row in expected.rows}
    for pair in expected.pairs:
        names = expected.rows[pair.candidate].name, expected.rows[pair.baseline].name
        assert board.pair(*names).test.pvalue == pair.test.pvalue
    assert trackperm.leaderboard(dict(reversed(runs.items())), missing="wrong").key == board.key


def test_wrong_finds_labels_that_disagree_outside_the_reference_run():
    odd = pl.concat([frame("1").head(10), frame("1", label="z").tail(10)])
    runs = {"a": frame("1").head(10), "b": frame("10").head(10), "c": frame("1"), "odd": odd}
    found = [
        reasons(trackperm.leaderboard(each, missing="wrong")) for each in (runs, dict(reversed(runs.items())))
    ]
    assert found[0].keys() == found[1].keys()
    ((name, reason),) = found[0].items()
    assert name in ("c", "odd")
    assert "`label` differs between the runs on 10 of 20" in reason


@pytest.mark.parametrize("missing", ["worst", "best", "bounds", "some"])
def test_cases_of_one_candidate_are_refused(missing: str):
    with pytest.raises(InputError, match="expected one of `error`, `drop`, `wrong`"):
        trackperm.leaderboard(GOOD, missing=missing)


def test_missing_examples_of_classes_and_clusters_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match="`macro_f1`, which has classes"):
        trackperm.leaderboard(GOOD, "macro_f1", missing="drop")
    spec = tmp_path / "clustered.yaml"
    spec.write_text("counts: {right: prediction == label, n: 1}\nscore: right / n\ncluster: document\n")
    with pytest.raises(InputError, match="`clustered`, which has clusters"):
        trackperm.leaderboard(GOOD, spec, missing="drop")


def test_rows_are_paired_by_position_on_request():
    runs = {name: run.drop("id") for name, run in GOOD.items()}
    board = trackperm.leaderboard({**runs, "short": runs["a"].head(5)}, by_position=True)
    assert board.paired_by == "position"
    assert "cannot be paired by position" in reasons(board)["short"]
    assert [row.score for row in board.rows] == [row.score for row in trackperm.leaderboard(GOOD).rows]


def test_types_that_change_what_a_run_counts_are_refused(tmp_path: Path):
    """1.0 and 1 are equal numbers and different texts; with a run of texts, the reference is read as text."""
    spec = tmp_path / "same.yaml"
    spec.write_text("counts: {same: prediction == other, n: 1}\nscore: same / n\n")
    ids = [f"q{i}" for i in range(4)]
    numbers = pl.DataFrame({"id": ids, "prediction": ["1.0", "2.0", "3", "4"], "other": ["1", "2", "3", "4"]})
    texts = pl.DataFrame({"id": ids, "prediction": ["a", "2", "3", "4"], "other": ["a", "2", "3", "b"]})
    for name, run in (("numbers", numbers), ("others", numbers.reverse()), ("texts", texts)):
        run.write_csv(tmp_path / f"{name}.csv")
    with pytest.raises(InputTypeError, match="different types, which change how the count `same` is read"):
        trackperm.leaderboard([tmp_path / f"{name}.csv" for name in ("numbers", "others", "texts")], spec)


def test_errors_of_the_statistic_are_raised(tmp_path: Path):
    spec = tmp_path / "spec.yaml"
    spec.write_text("counts: {n: prediction > 3}\nscore: n\n")
    with pytest.raises(SpecError, match="prediction"):
        trackperm.leaderboard(GOOD, spec)


IDS = {"csv": "write_csv", "jsonl": "write_ndjson", "parquet": "write_parquet"}


@pytest.mark.sample(3)
@pytest.mark.parametrize("missing", ["error", "drop", "wrong"])
@pytest.mark.parametrize(
    "formats", [("parquet", "jsonl", "csv"), ("csv", "parquet", "jsonl"), ("csv", "csv", "parquet")]
)
def test_ids_that_are_text_in_some_runs_only(formats: tuple[str, ...], missing: Any, tmp_path: Path):
    """Regression: texts are in another order than integers, and the counts were put side by side by place.

    The first run is right everywhere, so that its counts are the same in both orders.
    """
    n, wrong = 300, [set(), {*range(200, 220)}, {2, 20, 21, 200, 201, 202, 209, 210, 211}]
    paths = []
    for i, (suffix, places) in enumerate(zip(formats, wrong, strict=True)):
        paths.append(tmp_path / f"{i}.{suffix}")
        predictions = ["?" if place in places else "y" for place in range(n)]
        run = pl.DataFrame({"id": range(n), "prediction": predictions, "label": ["y"] * n})
        getattr(run, IDS[suffix])(paths[-1])
    board = trackperm.leaderboard(paths, missing=missing)
    assert board.n_examples == n
    for pair in board.pairs:
        names = [board.rows[i].name for i in (pair.baseline, pair.candidate)]
        expected = trackperm.compare(*(tmp_path / Path(name).name for name in names))
        assert (pair.test.pvalue, pair.test.n_discordant) == (expected.pvalue, expected.n_discordant)


def test_a_missing_file_is_an_error(tmp_path: Path):
    with pytest.raises(SourceError, match="nowhere"):
        trackperm.leaderboard([GOOD["a"], str(tmp_path / "nowhere.csv")])


def test_names_are_made_distinct(tmp_path: Path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        frame("1").write_csv(tmp_path / folder / "run.csv")
    paths = [str(tmp_path / folder / "run.csv") for folder in ("x", "y", "y")]
    board = trackperm.leaderboard([*paths, GOOD["b"]])
    assert [row.name for row in board.rows] == [paths[0], paths[1], f"{paths[1]} (2)", "run 4"]


def test_systems_of_one_file(tmp_path: Path):
    systems = frame("1").select("id", "label", one=pl.Series(["y"] * N), two=frame("10")["prediction"])
    systems.write_csv(tmp_path / "systems.csv")
    board = trackperm.leaderboard([f"{tmp_path}/systems.csv::one", f"{tmp_path}/systems.csv::two"])
    assert [(row.name, row.score) for row in board.rows] == [
        ("systems.csv::one", 1.0),
        ("systems.csv::two", 0.5),
    ]


def classes(*marks: str, labels: str = "ab") -> list[pl.DataFrame]:
    """Runs of two classes and more, right where there is a 1, else saying the next class."""
    label = list((labels * N)[:N])
    following = dict(zip(labels, labels[1:] + labels[:1], strict=True))
    return [
        numbered(
            prediction=[
                own if mark == "1" else following[own]
                for own, mark in zip(label, (mark * N)[:N], strict=True)
            ],
            label=label,
        )
        for mark in marks
    ]


def test_a_run_whose_predictions_are_not_labels_is_incomplete():
    good, better = classes("110", "1110")
    odd = good.with_columns(pl.col("prediction").str.to_uppercase())
    for runs in ({"odd": odd, "good": good, "better": better}, {"good": good, "better": better, "odd": odd}):
        board = trackperm.leaderboard(runs, "macro_f1")
        assert {row.name for row in board.rows} == {"good", "better"}
        assert "none of the 20 predictions of `odd` is a label" in reasons(board)["odd"]
    with pytest.raises(InputError, match="none of the 20 predictions of `odd`"):
        trackperm.leaderboard({"good": good, "better": better, "odd": odd}, baseline="odd")
    with pytest.raises(InputError, match="none of the 20 predictions of `odd`") as caught:
        trackperm.leaderboard({"odd": odd, "odder": odd})
    assert "`--allow-unseen`" in str(caught.value.hint)


def test_one_class_of_many_is_not_guessed():
    runs = dict(zip("xyz", classes("1", "110", "10", labels="abc"), strict=True))
    with pytest.raises(
        InputError, match="counts one class against all others, but `label` of `x` has 3 clas"
    ):
        trackperm.leaderboard(runs, "f1")
    board = trackperm.leaderboard(runs, "f1", parameters={"positive": "c"})
    assert [(row.name, row.score) for row in board.rows] == [("x", 1.0), ("z", 6 / 13), ("y", 0.0)]


@pytest.mark.parametrize("baseline", [None, "y"])
def test_text_0_and_1_are_0_and_1(baseline: str | None):
    texts = dict(zip("xyz", classes("1", "110", "10", labels="01"), strict=True))
    numbers = {
        name: run.with_columns(pl.col("prediction", "label").cast(pl.Int64)) for name, run in texts.items()
    }
    board, expected = (trackperm.leaderboard(runs, "f1", baseline=baseline) for runs in (texts, numbers))
    assert [(row.name, row.score) for row in board.rows] == [(row.name, row.score) for row in expected.rows]
    assert board.statistic.parameters == {"positive": "1"}


def numbers_of(*runs: list[float], label: float = 0.3) -> dict[str, pl.DataFrame]:
    """Return runs with these predictions of one label."""
    return {
        f"m{i}": pl.DataFrame({"id": range(len(run)), "label": [label] * len(run), "prediction": run})
        for i, run in enumerate(runs)
    }


TENTHS = [0.1, 0.5, 0.1, 0.4, 0.2, 0.1, 0.1, 0.1]
OTHERS = [0.1, 0.5, 0.5, 0.2, 0.4, 0.4, 0.1, 0.1]
ODD = [0.1234567890123, *OTHERS[1:]]


@pytest.mark.sample(2)
@pytest.mark.parametrize("statistic", ["mae", "mse", "above"])
@pytest.mark.parametrize("runs", [(TENTHS, OTHERS, ODD), (TENTHS, OTHERS), (ODD, ODD[::-1], TENTHS)])
@pytest.mark.parametrize("baseline", [None, "m0", "m1"])
def test_pairs_of_a_leaderboard_read_decimals_as_compare(
    tmp_path: Path, runs: Any, statistic: str, baseline: str | None
) -> None:
    """A run with other floats does not decide how two runs of decimals are counted."""
    tables = numbers_of(*runs)
    if statistic == "above":
        (tmp_path / "s.yaml").write_text(
            'name: s\ncounts: {k: "(prediction - 0.2 > label - 0.1) + 0", n: 1}\nscore: k / n\n'
        )
        statistic = str(tmp_path / "s.yaml")
    board = trackperm.leaderboard(tables, statistic, baseline=baseline)
    for pair in board.pairs:
        names = [board.rows[i].name for i in (pair.baseline, pair.candidate)]
        alone = trackperm.compare(*(tables[name] for name in names), statistic)
        assert pair.test.pvalue == alone.pvalue
        assert pair.test.n_discordant == alone.n_discordant


def test_runs_of_decimals_are_paired_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = numbers_of(TENTHS, OTHERS, [x + 0.01 for x in OTHERS])
    monkeypatch.setattr(run_counts, "pair_in_memory", None)
    assert trackperm.leaderboard(tables, "mae").pairs


def test_equal_predictions_tie_where_rows_are_left_out() -> None:
    tables = numbers_of(TENTHS, [ODD[0], *TENTHS[1:]], OTHERS)
    tables["m2"] = tables["m2"].head(7)
    board = trackperm.leaderboard(tables, "mae", missing="drop")
    places = {board.rows[i].name: i for i in range(3)}
    (pair,) = (p for p in board.pairs if {p.baseline, p.candidate} == {places["m0"], places["m1"]})
    assert pair.test.n_discordant == 1
