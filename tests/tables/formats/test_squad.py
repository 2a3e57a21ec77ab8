from __future__ import annotations

import csv
import json
from math import comb
from pathlib import Path
from typing import Any

import pytest
from support import reference_data
from support.broken_files import check_refused
from support.cli_comparison import check_reference, compared

from trackperm.errors import InputError, SourceError
from trackperm.tables import References, read_examples

SQUAD = reference_data.DATA / "structured_counts/squad2_cs224n"
GOLD = SQUAD / "dev-v2.0.json"

QUESTIONS: dict[str, Any] = {
    "version": "v2.0",
    "data": [
        {
            "title": "Normans",
            "paragraphs": [
                {
                    "context": "In France.",
                    "qas": [
                        {
                            "id": "q1",
                            "question": "Where?",
                            "answers": [
                                {"text": "France", "answer_start": 3},
                                {"text": "in France", "answer_start": 0},
                            ],
                            "is_impossible": False,
                        },
                        {"id": "q2", "question": "When?", "answers": [], "is_impossible": True},
                        {"id": "q3", "question": "Who?", "answers": [], "is_impossible": True},
                    ],
                }
            ],
        }
    ],
}


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.dat"
    path.write_text(json.dumps(QUESTIONS))
    return path


def of(path: Path, gold: Path) -> list[Any]:
    frame = read_examples(path, references=References(gold)).frame
    assert frame["id"].to_list() == ["q1", "q2", "q3"]
    return frame["prediction"].to_list()


def test_questions(gold: Path) -> None:
    table = read_examples(gold)
    assert table.frame.to_dict(as_series=False) == {
        "id": ["q1", "q2", "q3"],
        "question": ["Where?", "When?", "Who?"],
        "title": ["Normans"] * 3,
        "label": [["France", "in France"], [], []],
    }
    assert table.identity == ("question", "title")


class TestPredictions:
    def test_of_the_script(self, gold: Path, tmp_path: Path) -> None:
        path = tmp_path / "x.dat"
        path.write_text(json.dumps({"q1": "France", "q2": ""}))
        assert read_examples(path).columns == ["id", "prediction"]
        assert of(path, gold) == ["France", "", None]

    def test_an_empty_field_is_the_empty_answer_and_an_absent_row_is_missing(
        self, gold: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "x.csv"
        path.write_text("id,prediction,model\nq1,France,\nq2,,\n")
        assert of(path, gold) == ["France", "", None]
        table = read_examples(path, references=References(gold))
        (note,) = table.notes
        assert note.startswith("1 empty fields of `prediction` are empty answers")
        assert table.frame["model"].to_list() == [None, None, None]

    def test_an_empty_field_is_missing_where_every_question_has_an_answer(
        self, gold: Path, tmp_path: Path
    ) -> None:
        """As in version 1.1."""
        gold.write_text(json.dumps(QUESTIONS).replace('"answers": []', '"answers": [{"text": "x"}]'))
        path = tmp_path / "x.csv"
        path.write_text("id,prediction\nq1,France\nq2,\n")
        assert of(path, gold) == ["France", None, None]

    def test_a_null_of_a_typed_table_is_missing(self, gold: Path, tmp_path: Path) -> None:
        path = tmp_path / "x.jsonl"
        path.write_text('{"id": "q1", "prediction": ""}\n{"id": "q2", "prediction": null}\n')
        assert of(path, gold) == ["", None, None]

    def test_one_row_of_json_lines_is_not_a_mapping_of_ids(self, tmp_path: Path) -> None:
        path = tmp_path / "x.dat"
        path.write_text('{"id": "q1", "prediction": "yes"}\n')
        assert read_examples(path).frame["prediction"].to_list() == ["yes"]

    @pytest.mark.parametrize(("missing", "n", "score"), [("drop", 2, 1.0), ("wrong", 3, 2 / 3)])
    def test_missing_ones_on_the_command_line(
        self, gold: Path, tmp_path: Path, missing: str, n: int, score: float
    ) -> None:
        path = tmp_path / "x.csv"
        path.write_text("Id,Predicted\nq1,the France!\nq2,\n")
        arguments = (
            path,
            path,
            "--labels",
            gold,
            "--id",
            "Id",
            "--prediction",
            "Predicted",
            "-s",
            "squad_em",
        )
        with pytest.raises(InputError, match=r"1 of 3 examples of .* has no value in `Predicted`"):
            compared(*arguments)
        found = compared(*arguments, "--missing", missing)
        assert (found["n_examples"], found["candidate_score"]) == (n, pytest.approx(score))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"paragraphs": [{"context"',
            '"paragraphs": [3, {"context"',
            r"article 0: `paragraphs` contains values that are not objects",
        ),
        ('"qas":', '"questions":', r"article 0, paragraph 0: `qas` is missing or not a list"),
        ('"id": "q2"', '"id": 2', r"article 0, paragraph 0, question 1: its `id`, `question` or the `text`"),
        ('{"text": "France", ', '{"txt": "France", ', r"question 0: its `id`, `question` or the `text`"),
        (
            '"answers": [], "is_impossible": true}, ',
            '"is_impossible": true}, ',
            r"question 1: `answers` is missing or not a list",
        ),
    ],
)
def test_other_shapes_are_refused(gold: Path, old: str, new: str, message: str) -> None:
    check_refused(gold, json.dumps(QUESTIONS), old, new, message)


def test_no_question_and_a_cut_file(gold: Path) -> None:
    gold.write_text(json.dumps({"data": [{"paragraphs": []}]}))
    with pytest.raises(SourceError, match="contains no question"):
        read_examples(gold)
    gold.write_text(json.dumps(QUESTIONS)[:-5])
    with pytest.raises(SourceError, match="begins like JSON, but is not valid"):
        read_examples(gold)


AVNA = """\
name: avna
counts:
  right: (prediction == '') == (set_size(label) == 0)
  n: 1
missing: {right: 0, n: 1}
score: right / n
"""


@reference_data.needs_data
class TestPublished:
    FILES = (SQUAD / "qanetdev.csv", SQUAD / "charembdev.csv")
    COLUMNS = ("--id", "Id", "--prediction", "Predicted", "--labels", str(GOLD))

    def test_answers(self) -> None:
        frame = read_examples(GOLD).frame
        found = {i: answers or [""] for i, answers in zip(frame["id"], frame["label"].to_list(), strict=True)}
        assert found == reference_data._squad_answers()
        assert len(frame) == 6_078

    @pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
    def test_5951_of_6078_are_predicted(self, file: Path) -> None:
        frame = read_examples(file, references=References(GOLD, id="Id", prediction="Predicted")).frame
        found = dict(zip(frame["Id"], frame["Predicted"], strict=True))
        predicted = {name: text for name, text in found.items() if text is not None}
        with file.open(encoding="utf-8", newline="") as rows:
            assert predicted == {row["Id"]: row["Predicted"] for row in csv.DictReader(rows)}
        assert (len(found), len(predicted)) == (6_078, 5_951)

    @pytest.mark.extended
    def test_answered_or_not(self, tmp_path: Path) -> None:
        (tmp_path / "avna.yaml").write_text(AVNA)
        arguments = (*self.FILES, *self.COLUMNS, "-s", str(tmp_path / "avna.yaml"))
        with pytest.raises(InputError, match=r"127 of 6,078 examples of .*qanetdev\.csv"):
            compared(*arguments)
        identifier = "squad2/AvNA/bidaf_char__vs__qanet"
        found = check_reference(identifier, *arguments, "--missing", "drop")
        assert found["difference"] == pytest.approx(-161 / 5_951)
        wrong = compared(*arguments, "--missing", "wrong")  # both runs lack the same ones
        assert wrong["n_examples"] == 6_078
        assert wrong["pvalue"] == pytest.approx(found["pvalue"], rel=1e-9)

    def test_exact_match(self) -> None:
        """By version 2.0 of the script, which takes no accepted answer that is punctuation alone.

        The reference counts such answers, `.` of two questions, as equal to the empty answer: one system has
        one question more, and the other two.
        """
        found = compared(*self.FILES, *self.COLUMNS, "-s", "squad_em", "--missing", "drop")
        answers = {
            name: [text for text in texts if reference_data._tokens(text)] or [""]
            for name, texts in reference_data._squad_answers().items()
        }
        scores = [
            {name: reference_data._exact_match(text, answers[name]) for name, text in predictions.items()}
            for predictions in map(reference_data._squad_predictions, ("qanet", "bidaf_char"))
        ]
        better, worse = (
            sum(scores[a][name] > scores[b][name] for name in scores[a]) for a, b in ((1, 0), (0, 1))
        )
        assert (found["n_better"], found["n_worse"], found["n_examples"]) == (better, worse, 5_951)
        reference = reference_data.reference("squad2/EM/bidaf_char__vs__qanet")
        assert reference.entry["discordant"] == {"a_only": better + 1, "b_only": worse}
        n = better + worse
        tail = sum(comb(n, k) for k in range(min(better, worse) + 1))
        assert found["pvalue"] == pytest.approx(2 * tail / 2**n, rel=1e-9)

    def test_token_f1_of_twelve(self, tmp_path: Path) -> None:
        identifier = "squad2/tokenF1_small/bidaf_char__vs__qanet"
        chosen = set(reference_data.reference(identifier).entry["ids"])
        for file in self.FILES:
            with file.open(encoding="utf-8", newline="") as rows:
                kept = [row for row in csv.DictReader(rows) if row["Id"] in chosen]
            with (tmp_path / file.name).open("w", encoding="utf-8", newline="") as rows:
                writer = csv.DictWriter(rows, ["Id", "Predicted"])
                writer.writeheader()
                writer.writerows(kept)
        files = [tmp_path / file.name for file in self.FILES]
        check_reference(identifier, *files, *self.COLUMNS, "-s", "token_f1", "--missing", "drop")


def test_predictions_alone_need_a_file_of_answers(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps({f"{i:024x}": "Rome" for i in range(30)}))
    with pytest.raises(InputError, match="lacks `label`") as caught:
        compared(path, path)
    hint = "`--labels FILE` reads the reference answers from a file of their own, such as SQuAD's"
    assert caught.value.hint == f"{hint} `dev-v2.0.json`."
