"""Reference answers in a file of their own, joined to predictions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.cli_comparison import compared

import trackperm
from trackperm.errors import InputError, InputTypeError, PairingError, SourceError
from trackperm.tables import References, read_examples
from trackperm.tables.labels import with_labels
from trackperm.tables.table import ExampleTable


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def text(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def columns(table: ExampleTable) -> dict[str, Any]:
    return table.frame.to_dict(as_series=False)


GOLD = "id,label\n1,0\n2,1\n3,1\n"


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return text(tmp_path / "gold.csv", GOLD)


def run(path: Path, *predictions: Any, **others: Any) -> Path:
    return lines(path, *({"id": i, "prediction": p, **others} for i, p in enumerate(predictions, start=1)))


class TestRows:
    def test_examples_without_predictions_follow_the_others(self, tmp_path: Path, gold: Path) -> None:
        file = text(tmp_path / "p.csv", "id,prediction\n3,1\n1,0\n")
        assert columns(read_examples(file, references=References(gold))) == {
            "id": ["3", "1", "2"],
            "prediction": ["1", "0", None],
            "label": ["1", "0", "1"],
        }

    def test_without_an_id(self, tmp_path: Path) -> None:
        rows = [{"id": i, "prediction": "a"} for i in (1, 2, None, 3)]
        file = lines(tmp_path / "p.jsonl", *rows)
        answers = lines(tmp_path / "gold.jsonl", *({"id": i, "label": "a"} for i in (1, 2, 3)))
        with pytest.raises(
            PairingError, match=r"1 of 4 examples of .* has no `id` \(rows counted from 0: 2\)"
        ):
            compared(file, file, "--labels", answers)
        found = compared(file, file, "--labels", answers, "--missing", "drop")
        assert (found["n_examples"], found["pairing"]["n_dropped"]) == (3, 2)

    def test_strangers_and_repeated_ids(self, tmp_path: Path, gold: Path) -> None:
        file = run(tmp_path / "p.jsonl", 0, 1, 1, 0)
        with pytest.raises(SourceError, match=r"has no label for 1 of 4 examples of .*\(first: '4'\)"):
            read_examples(file, references=References(gold))
        gold.write_text(GOLD + "3,0\n,1\n")
        with pytest.raises(SourceError, match=r"are missing or repeated \(first: '3', '3', None\)"):
            read_examples(file, references=References(gold))


class TestFilesOfBenchmarks:
    def test_ids_of_hotpot(self, tmp_path: Path) -> None:
        file = run(tmp_path / "p.jsonl", "a", "b")
        answers = lines(tmp_path / "gold.jsonl", {"_id": 1, "answer": "a"}, {"_id": 2, "answer": "a"})
        assert compared(file, file, "--labels", answers, "--label", "answer")["baseline_score"] == 0.5
        with pytest.raises(SourceError, match="lacks the column `_id`") as caught:
            compared(file, file, "--labels", answers, "--label", "answer", "--id", "_id")
        assert caught.value.hint == "leave `--id` out: `_id` of the labels is matched with `id`."

    def test_lists_of_answers_by_id(self, tmp_path: Path) -> None:
        file = text(tmp_path / "p.json", '{"u1": "a", "u2": "b", "u3": "c"}')
        answers = text(tmp_path / "gold.json", '{"u1": ["a", "A"], "u2": ["a", "b"], "u3": ["d"]}')
        found = compared(file, file, "--labels", answers, "-s", "squad_em")
        assert found["baseline_score"] == pytest.approx(2 / 3)

    @pytest.mark.parametrize("ending", ["jsonl", "parquet"])
    def test_answers_of_squad_from_hugging_face(self, tmp_path: Path, ending: str) -> None:
        file = run(tmp_path / "p.jsonl", "a", "B")
        answers = pl.DataFrame(
            {"id": [1, 2], "answers": [{"text": [t, "c"], "answer_start": [0, 1]} for t in ("b", "b")]}
        )
        path = tmp_path / f"gold.{ending}"
        answers.write_parquet(path) if ending == "parquet" else answers.write_ndjson(path)
        found = compared(file, file, "--labels", path, "--label", "answers", "-s", "squad_em")
        assert found["baseline_score"] == 0.5

    def test_annotations_in_a_list(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        file = run(Path("p.jsonl"), "a", "b")
        rows = [{"id": i, "label": "a", "kind": "x"} for i in (1, 2)]
        text(Path("gold.json"), json.dumps({"info": {}, "license": "", "annotations": rows}))
        with pytest.raises(SourceError, match=r"`gold.json` has no column `label`") as caught:
            compared(file, file, "--labels", "gold.json")
        hint = str(caught.value.hint)
        assert hint.endswith(" does in Python, and name this file by `--labels`.")
        exec(hint.split("`")[3], {"json": json, "Path": Path})
        assert compared(file, file, "--labels", "gold_rows.json")["baseline_score"] == 0.5


class TestOwnLabels:
    def test_predictions_that_are_called_labels(self, tmp_path: Path, gold: Path) -> None:
        file = text(tmp_path / "p.csv", "id,label\n1,1\n2,1\n3,1\n")
        with pytest.raises(SourceError, match="differs from its labels") as caught:
            compared(file, file, "--labels", gold)
        assert "`--label gold_label` with `--prediction label`" in str(caught.value.hint)
        options = ("--label", "gold_label", "--prediction", "label")
        assert compared(file, file, "--labels", gold, *options)["baseline_score"] == pytest.approx(2 / 3)

    @pytest.mark.parametrize("options", [(), ("--by-position",)])
    def test_that_contradict(self, tmp_path: Path, options: tuple[str, ...]) -> None:
        file = text(tmp_path / "p.csv", "id,prediction,label\n1,a,a\n2,b,b\n3,c,c\n")
        answers = text(tmp_path / "gold.csv", "id,label\n1,c\n2,b\n3,a\n")
        with pytest.raises(SourceError, match=r"`label` of .* in 2 of 3 examples:\n.*'a', and 'c'") as caught:
            compared(file, file, "--labels", answers, *options)
        assert "--label gold_label" in str(caught.value.hint)
        found = compared(file, file, "--labels", answers, "--label", "gold_label", *options)
        assert found["baseline_score"] == pytest.approx(1 / 3)

    def test_that_have_the_name_of_the_labels_beside_predictions(self, tmp_path: Path) -> None:
        """Another name works only after the column in the file of labels is renamed."""
        file = text(tmp_path / "p.csv", "id,prediction,truth\n1,a,a\n2,b,b\n")
        answers = text(tmp_path / "gold.csv", "id,truth\n1,c\n2,b\n")
        with pytest.raises(SourceError, match=r"`truth` of .* differs") as caught:
            compared(file, file, "--labels", answers, "--label", "truth")
        assert "rename the column to `label` in `" in str(caught.value.hint)
        text(answers, "id,label\n1,c\n2,b\n")
        assert compared(file, file, "--labels", answers)["baseline_score"] == 0.5

    @pytest.mark.parametrize("own", [[0, 1, 1], [0.0, 1.0, 1.0], [False, True, True], ["0", "1", None]])
    def test_that_agree(self, tmp_path: Path, gold: Path, own: list[Any]) -> None:
        rows = ({"id": i, "prediction": 1, "label": label} for i, label in enumerate(own, start=1))
        table = read_examples(lines(tmp_path / "p.jsonl", *rows), references=References(gold))
        assert columns(table)["label"] == ["0", "1", "1"]

    def test_of_another_type(self, tmp_path: Path) -> None:
        file = run(tmp_path / "p.jsonl", 1, label=1)
        answers = lines(tmp_path / "gold.jsonl", {"id": 1, "label": "yes"})
        with pytest.raises(SourceError, match="'1', and 'yes' in the labels"):
            read_examples(file, references=References(answers))

    def test_of_no_type_give_way(self, tmp_path: Path, gold: Path) -> None:
        rows = ({"id": i, "prediction": 1, "label": label} for i, label in ((1, 0), (2, "x"), (3, [1])))
        file = lines(tmp_path / "p.jsonl", *rows)
        table = read_examples(file, references=References(gold))
        assert table.unusable == {}
        (note,) = table.notes
        assert note.startswith(
            "its own `label` was replaced by the labels without a comparison: column `label`"
        )
        assert compared(file, file, "--labels", gold)["baseline_score"] == pytest.approx(2 / 3)


class TestOneName:
    """Predictions and labels in columns of one name, as in Kaggle's submissions and solutions."""

    NAME = "Number survived"

    @pytest.fixture
    def files(self, tmp_path: Path) -> list[Path]:
        values = {"a": "0110", "b": "0101", "solution": "0101"}
        return [
            text(
                tmp_path / f"{name}.csv",
                "".join([f"PassengerId,{self.NAME}\n", *(f"{i},{n}\n" for i, n in enumerate(own))]),
            )
            for name, own in values.items()
        ]

    def test_are_compared_by_the_name_of_the_predictions(self, files: list[Path]) -> None:
        options = ("--id", "PassengerId", "--prediction", self.NAME)
        for more in ((), ("--label", "gold")):
            found = compared(*files[:2], "--labels", files[2], *options, *more)
            assert (found["baseline_score"], found["candidate_score"]) == (0.5, 1.0)

    def test_of_python_and_leaderboards(self, files: list[Path]) -> None:
        columns = {"id": "PassengerId", "prediction": self.NAME}
        frames = list(map(pl.read_csv, files))
        assert trackperm.compare(*frames[:2], labels=frames[2], columns=columns).candidate_score == 1.0
        runs = dict(zip("ab", files[:2], strict=True))
        board = trackperm.leaderboard(runs, labels=files[2], columns=columns)
        assert [row.score for row in board.rows] == [1.0, 0.5]

    @pytest.mark.parametrize("options", [(), ("--label", NAME)])
    def test_without_it_the_hint_leads_there(self, files: list[Path], options: tuple[str, ...]) -> None:
        with pytest.raises(SourceError) as caught:
            compared(*files[:2], "--labels", files[2], "--id", "PassengerId", *options)
        option = f"--prediction '{self.NAME}'"
        assert f"`{self.NAME}` of both files by `{option}`, without `--label`" in str(caught.value.hint)


class TestTypes:
    def test_untyped_labels_of_typed_predictions(self, tmp_path: Path, gold: Path) -> None:
        first, second = run(tmp_path / "a.jsonl", 0, 1, 0), run(tmp_path / "b.jsonl", 0, 1, 1)
        found = compared(first, second, "--labels", gold)
        assert (found["baseline_score"], found["candidate_score"]) == (pytest.approx(2 / 3), 1)

    def test_untyped_labels_of_text(self, tmp_path: Path, gold: Path) -> None:
        file = run(tmp_path / "a.jsonl", "0", "1", "0")
        other = text(tmp_path / "b.csv", "id,prediction\n1,0\n2,1\n3,1\n")
        found = compared(file, other, "--labels", gold)
        assert (found["baseline_score"], found["candidate_score"]) == (pytest.approx(2 / 3), 1)

    @pytest.mark.parametrize("labels", [["0", "1", "1"], [0, 1, 1]])
    def test_typed_labels_of_untyped_predictions(self, tmp_path: Path, labels: list[Any]) -> None:
        file = text(tmp_path / "p.csv", "id,prediction\n1,0\n2,1\n3,0\n")
        rows = ({"id": i, "label": label} for i, label in enumerate(labels, start=1))
        answers = lines(tmp_path / "gold.jsonl", *rows)
        assert compared(file, file, "--labels", answers)["baseline_score"] == pytest.approx(2 / 3)

    def test_mixed_labels_are_refused_with_the_reason(self, tmp_path: Path) -> None:
        file = run(tmp_path / "p.jsonl", 0, 1)
        answers = lines(tmp_path / "gold.jsonl", {"id": 1, "label": 0}, {"id": 2, "label": "x"})
        assert "label" in read_examples(file, references=References(answers)).unusable
        with pytest.raises(
            InputTypeError, match=r"`label` of .*p.jsonl` is that of .*gold.jsonl`, which mixes"
        ):
            compared(file, file, "--labels", answers)

    def test_notes_and_facts_of_the_labels_are_kept(self) -> None:
        run, gold = (
            ExampleTable.from_native(pl.DataFrame({"id": [1], name: [1]}), name)
            for name in ("prediction", "label")
        )
        run = replace(run, notes=("one skipped",), facts={"task": "a"})
        gold = replace(gold, notes=("two skipped",), facts={"task": "b", "dataset": "c"})
        table = with_labels(run, gold)
        assert table.notes == ("one skipped", "its labels `label`: two skipped")
        assert table.facts == {"task": "a", "dataset": "c"}


class TestSeveralIds:
    ROWS = tuple({"id": i, "epoch": e, "prediction": i % 2} for i in (1, 2, 3) for e in (1, 2))

    def test_labels_by_one_of_them(self, tmp_path: Path, gold: Path) -> None:
        file = lines(tmp_path / "p.jsonl", *self.ROWS)
        found = compared(file, file, "--labels", gold, "--id", "id,epoch")
        assert (found["n_examples"], found["baseline_score"]) == (3, pytest.approx(1 / 3))
        assert any("were matched by `id` alone" in note for note in found["pairing"]["notes"])

    def test_labels_by_all_of_them(self, tmp_path: Path) -> None:
        file = lines(tmp_path / "p.jsonl", *self.ROWS)
        answers = lines(
            tmp_path / "gold.jsonl", *({"id": r["id"], "epoch": r["epoch"], "label": 1} for r in self.ROWS)
        )
        found = compared(file, file, "--labels", answers, "--id", "id,epoch", "--unit", "row")
        assert (found["n_examples"], found["baseline_score"]) == (6, pytest.approx(2 / 3))

    def test_an_example_left_out_is_refused(self, tmp_path: Path, gold: Path) -> None:
        file = lines(tmp_path / "p.jsonl", *self.ROWS[:4])
        with pytest.raises(PairingError, match=r"1 of 5 examples of .* has no `id,epoch`"):
            compared(file, file, "-s", "accuracy", "--labels", gold, "--id", "id,epoch", "--unit", "row")

    def test_labels_by_none_of_them(self, tmp_path: Path, gold: Path) -> None:
        file = lines(tmp_path / "p.jsonl", {"doc": 1, "epoch": 1, "prediction": 1})
        with pytest.raises(SourceError, match="lacks the columns `doc`, `epoch`"):
            compared(file, file, "--labels", gold, "--id", "doc,epoch")
        with pytest.raises(SourceError, match="lacks the column `id`"):
            compared(file, file, "--labels", gold, "--id", "id,epoch")


class TestByPosition:
    def test_ids_in_another_order(self, tmp_path: Path, gold: Path) -> None:
        file = text(tmp_path / "p.csv", "id,prediction\n3,1\n2,1\n1,0\n")
        with pytest.raises(SourceError, match=r"differ in 2 of 3 rows, first in row 0: '3' and '1'"):
            compared(file, file, "--labels", gold, "--by-position")

    def test_other_ids(self, tmp_path: Path, gold: Path) -> None:
        file = text(tmp_path / "p.csv", "id,prediction\na,1\nb,1\nc,0\n")
        (note,) = read_examples(file, references=References(gold, by_position=True)).notes
        assert note.startswith("look: `id` of ")
        assert note.endswith("check that the rows belong together")

    def test_no_ids(self, tmp_path: Path, gold: Path) -> None:
        file = text(tmp_path / "p.csv", "prediction,n\n1,1\n1,1\n0,1\n")
        assert read_examples(file, references=References(gold, by_position=True)).notes == ()


def test_inputs_of_another_type(tmp_path: Path) -> None:
    paragraph = {"context": "", "qas": [{"id": "q1", "question": "Who?", "answers": [{"text": "I"}]}]}
    answers = tmp_path / "gold.json"
    answers.write_text(json.dumps({"data": [{"title": "t", "paragraphs": [paragraph]}]}))
    file = lines(tmp_path / "p.jsonl", {"id": "q1", "prediction": "I", "question": 7})
    with pytest.raises(SourceError, match=r"column `question` is integer in .* but text in"):
        read_examples(file, references=References(answers))


@pytest.mark.parametrize("id_", ["", " ", "id,", ","])
@pytest.mark.parametrize("options", [[], ["--labels", "gold.csv"]])
def test_an_id_without_a_name(
    tmp_path: Path, gold: Path, monkeypatch: pytest.MonkeyPatch, id_: str, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"`columns=..id.: .*` has an empty column name"):
        compared(gold, gold, "--id", id_, *options, "--prediction", "label")


@pytest.mark.parametrize("labels", ["", "  "])
def test_labels_without_a_name(gold: Path, labels: str) -> None:
    with pytest.raises(SourceError, match=f"'{labels}' is not the name of a file"):
        compared(gold, gold, "--labels", labels, "--prediction", "label")


def test_runs_by_position_with_other_ids(tmp_path: Path) -> None:
    first = text(tmp_path / "a.csv", "id,score\n1,1\n2,0\n3,0\n")
    second = text(tmp_path / "b.csv", "id,score\n1,1\n3,1\n2,0\n")
    notes = compared(first, second, "-s", "mean", "--by-position")["pairing"]["notes"]
    look = "look: `id` differs between the runs in 2 of 3 rows, first in row 1: '2' and '3'"
    assert [note for note in notes if note.startswith(look)]
    notes = compared(first, first, "-s", "mean", "--by-position")["pairing"]["notes"]
    assert not [note for note in notes if "look" in note]


class TestInferredIds:
    """Without `--id`, where one side has no column `id`."""

    RUN = pl.DataFrame({"task_id": ["t", "t"], "question_id": ["a", "b"], "prediction": [0, 1]})

    def test_the_shared_column(self) -> None:
        gold = pl.DataFrame({"question_id": ["b", "a"], "task_id": ["t", "t"], "label": [1, 0]})
        runs = self.RUN, self.RUN.with_columns(prediction=pl.lit(1))
        found = trackperm.compare(*runs, labels=gold)
        assert (found.baseline_score, found.candidate_score) == (1.0, 0.5)
        assert "its labels `labels` were matched by `question_id`" in str(found)

    @pytest.mark.parametrize(("own", "given"), [("ID", "id"), ("Id", "ID"), ("id", " Id")])
    def test_ids_in_other_letters(self, own: str, given: str) -> None:
        gold = pl.DataFrame({given: ["b", "a"], "label": [1, 0]})
        run = pl.DataFrame({own: ["a", "b"], "prediction": [0, 1]})
        found = trackperm.compare(run, run, "accuracy", labels=gold)
        assert (found.baseline_score, found.statistic.columns["id"]) == (1.0, own)

    @pytest.mark.parametrize("rows", ["index", "row_id"])
    def test_numbers_of_rows_are_the_last(self, rows: str) -> None:
        """Regression: rows in another order than the labels were judged by those of other examples."""
        gold = pl.DataFrame({rows: [0, 1], "problem_id": ["b", "a"], "label": [1, 0]})
        run = pl.DataFrame({rows: [0, 1], "problem_id": ["a", "b"], "prediction": [0, 1]})
        found = trackperm.compare(run, run, "accuracy", labels=gold)
        assert (found.baseline_score, found.statistic.columns["id"]) == (1.0, "problem_id")

    @pytest.mark.parametrize(
        ("gold", "problem"),
        [
            ({"question_id": ["b", "a", "a"], "label": [1, 0, 0]}, "`labels` has no column `id`"),
            ({"key": ["b", "a"], "label": [1, 0]}, "`labels` has no column `id`"),
            ({"question_id": ["b", "c"], "label": [1, 0]}, "`labels` has no label for 1 of 2 examples"),
        ],
    )
    def test_no_such_column(self, gold: dict[str, list[Any]], problem: str) -> None:
        with pytest.raises(SourceError, match=problem) as caught:
            trackperm.compare(self.RUN, self.RUN, labels=pl.DataFrame(gold))
        if "column" in problem:
            assert '`columns={"id": "NAME", "label": "NAME"}`' in str(caught.value)

    @pytest.mark.parametrize("rows", ["id", "index"])
    def test_numbers_of_rows(self, rows: str) -> None:
        """Rows that are numbered in another order than the answers got the labels of other examples."""
        gold = pl.DataFrame({rows: range(4), "question_id": list("abcd"), "label": [0, 0, 1, 1]})
        runs = [
            pl.DataFrame({rows: range(4), "question_id": list("cbda"), "prediction": predictions})
            for predictions in ([0, 0, 1, 0], [1, 0, 1, 0])
        ]
        named = {"id": "question_id"}
        with pytest.raises(SourceError, match="`question_id` differs between") as raised:
            trackperm.compare(*runs, labels=gold, columns={"id": rows})
        assert raised.value.hint == "`--id question_id` matches the labels by these ids."
        assert trackperm.compare(*runs, labels=gold, columns=named).candidate_score == 1.0
        in_order = [run.with_columns(question_id=gold["question_id"]) for run in runs]
        assert trackperm.compare(*in_order, labels=gold, columns={"id": rows}).n_examples == 4

    @pytest.mark.parametrize("name", ["question", "text", "image_path", "case_id", "url"])
    @pytest.mark.parametrize("rows", ["id", "idx"])
    def test_labels_of_other_inputs(self, rows: str, name: str) -> None:
        """Regression: labels in another order were joined by numbers of rows, beside equal questions."""
        inputs = [f"What is {i}?" for i in range(20)]
        gold = pl.DataFrame({rows: range(20), name: inputs[::-1], "label": [i % 2 for i in range(20)][::-1]})
        runs = [
            pl.DataFrame({rows: range(20), name: inputs, "prediction": [int(i > n) for i in range(20)]})
            for n in (9, 14)
        ]
        message = (
            f"`{name}` differs between `baseline` and its labels `labels` in 20 of 20 examples, of which"
        )
        with pytest.raises(SourceError, match=message) as raised:
            trackperm.compare(*runs, labels=gold, columns={"id": rows})
        is_id = name in ("case_id", "url")
        way_out = f"; if `{rows}` is right, remove `{name}` from the labels" if is_id else ""
        assert raised.value.hint == f"`--id {name}` matches the labels by `{name}`{way_out}."
        found = trackperm.compare(*runs, labels=gold, columns={"id": name})
        expected = trackperm.compare(
            *runs, labels=gold.reverse().with_columns(gold[rows]), columns={"id": rows}
        )
        assert (found.pvalue, found.difference) == (expected.pvalue, expected.difference)
        with pytest.raises(SourceError, match="of 20 rows, of which the labels have 20 in other") as raised:
            trackperm.compare(*(run.drop(rows) for run in runs), labels=gold.drop(rows), by_position=True)
        assert raised.value.hint == f"`--id {name}` matches the labels by `{name}`, without `--by-position`."
        twice = gold.with_columns(pl.col(name).gather([0, 0, *range(1, 19)]))
        with pytest.raises(SourceError, match="differs") as raised:
            trackperm.compare(*runs, labels=twice, columns={"id": rows})
        assert (
            raised.value.hint == "the labels need the ids of the data set, by which `--id NAME` matches them."
        )

    @pytest.mark.parametrize(
        "given",
        [
            [f"Question: what is {i}?" for i in range(20)],  # in other words
            [f"What is {i % 3 + 1}?" for i in range(20)],  # of few values
            [f"What is {i}?" for i in (1, *range(1, 20))],  # corrected
        ],
    )
    def test_inputs_that_contradict_no_labels(self, given: list[str]) -> None:
        gold = pl.DataFrame({"id": range(20), "question": given, "label": [0, 1] * 10})
        run = gold.select("id", question=pl.Series([f"What is {i}?" for i in range(20)]), prediction="label")
        assert trackperm.compare(run, run, labels=gold).baseline_score == 1

    def test_numbers_that_contradict_no_ids(self) -> None:
        """Regression: labels with ids of text were refused beside other numbers of rows."""
        ids = [f"hash{i}" for i in range(20)]
        gold = pl.DataFrame({"id": ids, "case_id": range(1, 21), "label": [0, 1] * 10})
        run = gold.select("id", pl.col("case_id") - 1, prediction="label")
        assert trackperm.compare(run, run, labels=gold).baseline_score == 1

    def test_inputs_that_labels_may_lack(self) -> None:
        """The option that pairs the runs by their questions also matches the labels by them."""
        orders = list(range(20)), [*range(10, 20), *range(10)]
        questions = [f"What is {i}?" for i in range(20)]
        gold = pl.DataFrame({"id": range(20), "label": [0] * 20})
        runs = [
            pl.DataFrame({"id": range(20), "question": [questions[i] for i in order], "prediction": order})
            for order in orders
        ]
        with pytest.raises(PairingError, match="`question` differs between the runs") as raised:
            trackperm.compare(*runs, labels=gold)
        assert raised.value.hint is not None
        assert "`--id question` pairs the same inputs, if the labels have `question`." in raised.value.hint

    def test_joined_labels_prove_no_ids(self) -> None:
        """Labels that were joined by numbers of rows agree with these, whatever the examples are."""
        n = 40
        gold = pl.DataFrame({"id": range(n), "label": [i % 3 for i in range(n)]})
        runs = [
            pl.DataFrame(
                {
                    "id": range(n),
                    "problem_id": [f"p{i * step % n}" for i in range(n)],
                    "prediction": [i * step % 3 for i in range(n)],
                }
            )
            for step in (3, 7)
        ]
        with pytest.raises(PairingError, match="`label` differs between the runs"):
            trackperm.compare(*runs, labels=gold)
