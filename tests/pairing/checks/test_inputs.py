"""Inputs of paired rows: the same, in other words, under other ids, or of other examples."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.engines import ENGINES, SPARK, SPARK_AT_NIGHT, native

import trackperm
from trackperm.errors import PairingError
from trackperm.pairing.checks import paired_texts, rival_ids
from trackperm.tables.table import ExampleTable

N = 60
RNG = np.random.default_rng(3)
WORDS = ["".join(word) for word in RNG.choice([*"abcdefghijklmnop"], (400, 7))]


def texts(n: int = N) -> list[str]:
    return ["What is the " + " ".join(RNG.choice(WORDS, 6)) + "?" for _ in range(n)]


QUESTIONS, OTHERS = texts(), texts()
SHUFFLED = [QUESTIONS[7 * i % N - 1] for i in range(N)]
ROWS = list(range(N))


def run(n: int = N, **columns: Any) -> pl.DataFrame:
    correct = np.random.default_rng(len(str(columns))).integers(0, 2, n)
    return pl.DataFrame({"id": range(n), "correct": correct, **columns})


def notes(baseline: Any, candidate: Any, **options: Any) -> list[str]:
    found = trackperm.compare(baseline, candidate, metric="correct", **options)
    return [note for note in found.pairing.notes if "differs between" in note]


def lines(baseline: Any, candidate: Any, **options: Any) -> list[str]:
    return [note.removeprefix("look: ") for note in notes(baseline, candidate, **options)]


def refusal(baseline: Any, candidate: Any, **options: Any) -> PairingError:
    with pytest.raises(PairingError) as raised:
        trackperm.compare(baseline, candidate, metric="correct", **options)
    return raised.value


def messages(system: str, questions: Sequence[str]) -> list[list[dict[str, str]]]:
    return [[{"role": "system", "content": system}, {"role": "user", "content": text}] for text in questions]


@pytest.mark.parametrize("name", ["question", "prompt", "inputs.question", "src", "Input"])
def test_other_inputs_under_the_same_ids_are_refused(name: str):
    found = refusal(run(**{name: QUESTIONS}), run(**{name: OTHERS}))
    assert found.message.startswith(
        f"`{name}` differs between the runs on 60 of 60 examples with the same `id`, and the texts have"
        " little in common\n\n    example   `baseline`"
    )
    assert found.hint == (
        "The inputs differ: evaluate both runs on the same data. If they are the same ones in another form,"
        " such as translations, `--id id` compares these pairs nevertheless."
    )


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        (
            "question",
            [f"what is {i} + {3 * i}?" for i in ROWS],
            [f"what is {i + 1000} + {3 * i}?" for i in ROWS],
        ),
        ("audio", [f"clips/{i}.wav" for i in ROWS], [f"clips/{i + 1000}.wav" for i in ROWS]),
        ("inputs", [{"question": text} for text in QUESTIONS], [{"question": text} for text in OTHERS]),
        ("input", messages("be brief", QUESTIONS), messages("be brief", OTHERS)),
        ("question", QUESTIONS, [*QUESTIONS[:20], *OTHERS[20:]]),
    ],
    ids=["numbers", "paths", "objects", "messages", "most"],
)
def test_other_inputs_of_all_kinds(name: str, first: list[Any], second: list[Any]):
    assert "have little in common" in refusal(run(**{name: first}), run(**{name: second})).message


def drawn(question: str) -> str:
    """Return a prompt with the question below examples that are drawn anew."""
    return "".join(f"Q: {text}\nA: yes\n\n" for text in RNG.choice(OTHERS, 8)) + f"Q: {question}\nA:"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([f"Question {i}: {QUESTIONS[i]}" for i in ROWS], [f"Question {i}: {OTHERS[i]}" for i in ROWS]),
        ([f"{QUESTIONS[i]} (row {i})" for i in ROWS], [f"{OTHERS[i]} (row {i})" for i in ROWS]),
        ([drawn(text) for text in QUESTIONS], [drawn(text) for text in SHUFFLED]),
        ([f"Be brief. {text}" for text in QUESTIONS], [f"Think first. {text}" for text in SHUFFLED]),
    ],
    ids=["numbered", "numbered at the end", "drawn", "template"],
)
def test_prompts_of_other_questions(first: list[str], second: list[str]):
    """Regression: rows that were numbered in the prompt were the same questions in other words."""
    assert "have little in common" in refusal(run(prompt=first), run(prompt=second)).message


def test_labels_of_few_classes_prove_nothing():
    label = ["yes", "no"] * 30
    runs = [run(prompt=each, label=label, prediction=label).drop("correct") for each in (QUESTIONS, OTHERS)]
    with pytest.raises(PairingError, match="`prompt` differs"):
        trackperm.compare(*runs)


@pytest.mark.parametrize("name", ["question", "prompt", "text", "audio_filepath"])
def test_ids_that_were_given_anew(name: str):
    found = refusal(run(**{name: QUESTIONS}), run(**{name: SHUFFLED}))
    assert found.message.startswith(
        f"`{name}` differs between the runs on 60 of 60 examples with the same `id`; 60 of these inputs have"
        " another `id` in `candidate`"
    )
    assert found.hint == (
        f"The ids were given anew: `--id {name}` pairs the same inputs. `--id id` compares these pairs"
        " nevertheless."
    )
    paired = trackperm.compare(
        run(**{name: QUESTIONS}), run(**{name: SHUFFLED}), metric="correct", columns={"id": name}
    )
    assert paired.pairing.n_paired == N


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (QUESTIONS, [*QUESTIONS[:40], *QUESTIONS[41:], "What is new?"]),  # a row was lost before numbering
        (QUESTIONS, [text for i in range(0, N, 4) for text in QUESTIONS[i : i + 4][::-1]]),  # of batches of 4
        (QUESTIONS[:4], QUESTIONS[:4][::-1]),
        (QUESTIONS, [f" {text.upper()}\n" for text in SHUFFLED]),
    ],
    ids=["lost row", "blocks", "few", "spaces"],
)
def test_inputs_that_moved(first: list[str], second: list[str]):
    found = refusal(run(len(first), question=first), run(len(second), question=second))
    assert "of these inputs have another `id`" in found.message


IDS = [f"case-{i}" for i in ROWS]
MOVED = IDS[7:] + IDS[:7]


@pytest.mark.parametrize("name", ["case_id", "exampleId", "prompt_hash", "name"])
def test_other_ids_that_moved(name: str):
    numbered = [f"row-{i}" for i in ROWS]
    first, second = (run(**{name: each}).with_columns(id=pl.Series(numbered)) for each in (IDS, MOVED))
    found = refusal(first, second)
    assert found.message.startswith(
        f"`{name}` differs between the runs on 60 of 60 examples with the same `id`; 60 of these ids have"
        " another `id` in `candidate`"
    )
    assert found.hint == (
        f"The ids were given anew: `--id {name}` pairs the same ids. `--id id` compares these pairs"
        " nevertheless."
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"question": QUESTIONS, "case_id": IDS}, {"question": QUESTIONS, "case_id": MOVED}),
        (
            {"prompt": QUESTIONS, "case_id": IDS},
            {"prompt": [f"Q: {text}" for text in QUESTIONS], "case_id": MOVED},
        ),
        ({"rationale": QUESTIONS, "case_id": IDS}, {"rationale": QUESTIONS, "case_id": MOVED}),
        ({"trace_id": [f"a{i}" for i in ROWS]}, {"trace_id": [f"b{i}" for i in ROWS]}),
        ({"document_id": [f"d{i // 2}" for i in ROWS]}, {"document_id": [f"d{i // 3}" for i in ROWS]}),
        ({"case_id": ROWS}, {"case_id": ROWS[::-1]}),
        ({"request_id": IDS}, {"request_id": MOVED}),
        ({"found_id": IDS}, {"found_id": [*IDS[30:40], *(f"other-{i}" for i in ROWS[10:])]}),
        ({"case_id": IDS}, {"case_id": [*IDS[2:0:-1], IDS[0], *IDS[3:]]}),
    ],
    ids=["question", "template", "text", "anew", "clusters", "numbers", "calls", "outputs", "few"],
)
def test_other_ids_that_prove_nothing(first: dict[str, Any], second: dict[str, Any]):
    texts_as_ids = pl.Series([f"q{i}" for i in ROWS])
    found = lines(*(run(**each).with_columns(id=texts_as_ids) for each in (first, second)))
    assert not any("_id`" in line for line in found)


def test_keys_that_the_longer_run_has_in_other_rows():
    """Each run has the values of the other that its message says."""
    files = [f"{word}.py" for word in WORDS[:N]]
    first, second = run(source=files), run(40, source=files[:19:-1])
    for pair, origin in (((first, second), "baseline"), ((second, first), "candidate")):
        found = refusal(*pair, missing="drop")
        assert f"40 of these values have another `id` in `{origin}`" in found.message
        assert "`--id source` pairs the same values" in str(found.hint)


def test_rows_that_were_lost_before_numbering():
    first, second = run(question=QUESTIONS), run(57, question=QUESTIONS[3:])
    assert "of these inputs have another `id`" in refusal(first, second, missing="drop").message


def test_the_same_inputs_by_position():
    found = refusal(run(question=QUESTIONS), run(question=SHUFFLED), by_position=True)
    assert "60 of these inputs are in another row in `candidate`" in found.message
    assert found.hint == (
        "The rows are in another order: `--id question` pairs the same inputs. Rows are compared nevertheless"
        " if one run has no `question`."
    )


def test_repeated_inputs_are_no_id():
    twice = [text for text in QUESTIONS[:30] for _ in range(2)]
    found = refusal(run(question=twice), run(question=[str(text) for text in RNG.permutation(twice)]))
    assert found.hint == (
        "The ids were given anew: log the id that each example has in the data set. `--id id` compares these"
        " pairs nevertheless."
    )


def test_attempts_at_examples_whose_ids_were_given_anew():
    def attempts(questions: list[str]) -> pl.DataFrame:
        return pl.concat([run(question=questions).with_columns(epoch=pl.lit(i)) for i in range(2)])

    assert lines(attempts(QUESTIONS), attempts(QUESTIONS)) == []
    assert "`--id question` pairs" in str(refusal(attempts(QUESTIONS), attempts(SHUFFLED)).hint)


def test_an_id_that_was_named_is_used():
    columns = {"id": "id"}
    assert lines(run(question=QUESTIONS), run(question=SHUFFLED), columns=columns) == [
        "`question` differs between the runs on 60 of 60 examples with the same `id`; 60 of these inputs have"
        " another `id` in `candidate`; the rows may be paired wrongly: `--id question` pairs the same inputs"
    ]
    assert lines(run(question=QUESTIONS), run(question=OTHERS), columns=columns) == [
        "`question` differs between the runs on 60 of 60 examples with the same `id`; the runs may have other"
        " examples"
    ]


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        (
            "prompt",
            QUESTIONS,
            [f"You are an expert. Think first.\nQuestion: {text}\nA:" for text in QUESTIONS],
        ),
        ("question", QUESTIONS, [f"Q: {text} Let's think step by step." for text in QUESTIONS]),
        ("input", messages("be brief", QUESTIONS), messages("be precise and long", QUESTIONS)),
        ("question", QUESTIONS, [f"{text[:30]}..." for text in QUESTIONS]),
        (
            "text",
            [text.replace("a", "uh") for text in QUESTIONS],
            [text.replace("b ", " ") for text in QUESTIONS],
        ),
        ("prompt", [drawn(text) for text in QUESTIONS], [drawn(text) for text in QUESTIONS]),
        ("question", QUESTIONS, [re.sub("([a-z])[a-z] ", r"\1 ", text) for text in QUESTIONS]),
        (
            "question",
            [text.replace(" ", "ing ") for text in QUESTIONS],
            [text.removeprefix("What is the ") for text in QUESTIONS],
        ),
        (
            "audio",
            [f"wav/{WORDS[i]}_{i}.wav" for i in ROWS],
            [f"mp3/{WORDS[i]}_{i}_16k_normalised.mp3" for i in ROWS],
        ),
    ],
    ids=["prompt", "question", "messages", "cut", "heard", "drawn", "typing errors", "stems", "audio"],
)
def test_the_same_inputs_in_other_words(name: str, first: list[Any], second: list[Any]):
    """The line does not begin with ``look:``, because the inputs are recognised as the same."""
    (line,) = notes(run(**{name: first}), run(**{name: second}))
    assert line.startswith(f"`{name}` differs between the runs on ")
    assert line.endswith("; most of them are alike")


def test_prompts_of_which_some_are_alike():
    half = [*QUESTIONS[:30], *OTHERS[30:]]
    (line,) = notes(run(prompt=QUESTIONS), run(prompt=[f"Be brief. {text}" for text in half]))
    assert re.fullmatch(
        r"look: `prompt` differs between .* with the same `id`; about 5\d % of them are alike", line
    )


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("input", RNG.random((N, 3)).tolist(), RNG.random((N, 3)).tolist()),
        ("input", [f"{i * 977:05x}f0f0f0f0" for i in ROWS], [f"{i * 787:05x}e1e1e1e1" for i in ROWS]),
    ],
    ids=["vectors", "ids of sessions"],
)
def test_inputs_that_tell_nothing(name: str, first: list[Any], second: list[Any]):
    (line,) = notes(run(**{name: first}), run(**{name: second}))
    assert line == f"look: `{name}` differs between the runs on 60 of 60 examples with the same `id`"
    assert "have another `id`" in refusal(run(**{name: first}), run(**{name: first[::-1]})).message


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"question": QUESTIONS}, {"question": [f" {text.upper()}\n" for text in QUESTIONS]}),
        (
            {"question": ["café " + text for text in QUESTIONS]},
            {"question": ["café " + text for text in QUESTIONS]},
        ),
        ({"question": QUESTIONS, "prompt": QUESTIONS}, {"question": QUESTIONS, "prompt": SHUFFLED}),
        ({"prompt": ["cot"] * N}, {"prompt": ["direct"] * N}),
        ({"input": RNG.random(N)}, {"input": RNG.random(N)}),
        ({"image": [f"/a/{i}.png" for i in ROWS]}, {"image": [f"/mnt/b/{i}.png" for i in ROWS]}),
        (
            {"image": [f"https://a/{i}.png?signature={i}" for i in ROWS]},
            {"image": [f"https://a/{i}.png?signature=b/{i + 99}" for i in ROWS]},
        ),
        (
            {"image": [{"sha256": f"{i:064x}", "path": f"{i}.png", "boxes": [i, 1]} for i in ROWS]},
            {"image": [{"sha256": f"{i:064x}", "path": f"{i}.png", "boxes": [i, 2]} for i in ROWS]},
        ),
        (
            {"image": [f"{i}.png" for i in ROWS], "text": QUESTIONS},
            {"image": [f"{i}.png" for i in ROWS], "text": OTHERS},
        ),
        ({"response": QUESTIONS}, {"response": OTHERS}),
        ({"context": QUESTIONS}, {"context": OTHERS}),
        ({"question": QUESTIONS}, {"prompt": OTHERS}),
    ],
    ids=[
        "case",
        "forms",
        "question",
        "template",
        "numbers",
        "folders",
        "signed",
        "boxes",
        "read",
        "outputs",
        "context",
        "columns",
    ],
)
def test_inputs_that_need_no_line(first: dict[str, Any], second: dict[str, Any]):
    assert lines(run(**first), run(**second)) == []


@pytest.mark.parametrize(
    ("second", "end"),
    [
        ([*OTHERS[:3], *QUESTIONS[3:]], "on 3 of 60 examples with the same `id`"),
        ([*OTHERS[:20], *QUESTIONS[20:]], "on 20 of 60 examples with the same `id`"),
        ([QUESTIONS[1], QUESTIONS[0], *QUESTIONS[2:]], "2 of these inputs have another `id` in `candidate`"),
    ],
    ids=["few", "a third", "two moved"],
)
def test_some_inputs_that_differ(second: list[str], end: str):
    (line,) = lines(run(question=QUESTIONS), run(question=second))
    assert line.endswith(end)


@pytest.mark.parametrize("name", ["goal", "label"])
def test_another_column_proves_the_examples(name: str):
    attacks = [run(prompt=each, **{name: QUESTIONS}) for each in (texts(), texts())]
    assert notes(*attacks) == [
        f"`prompt` differs between the runs on 60 of 60 examples with the same `id`; `{name}` agrees"
    ]


def test_files_that_are_named_anew_in_each_run():
    def paths() -> list[str]:
        names = ("".join(RNG.choice([*"0123456789abcdef"], 20)) for _ in ROWS)
        return [f"media/images/image_0_{name}.png" for name in names]

    assert lines(run(image=paths()), run(image=paths())) == [
        "`image` differs between the runs on 60 of 60 examples with the same `id`"
    ]


def test_a_text_may_be_an_output():
    written = [run(question=QUESTIONS, text=each).drop("id") for each in (QUESTIONS, OTHERS)]
    assert lines(*written, columns={"id": "question"}) == []
    assert lines(run(text=QUESTIONS), run(text=OTHERS)) == [
        "`text` differs between the runs on 60 of 60 examples with the same `id`; the runs may have other"
        " examples"
    ]


def test_few_other_inputs_have_a_line():
    assert lines(run(4, prompt=QUESTIONS[:4]), run(4, prompt=OTHERS[:4])) == [
        "`prompt` differs between the runs on 4 of 4 examples with the same `id`"
    ]


@pytest.mark.sample(4)
@pytest.mark.parametrize("engine", [*ENGINES, pytest.param(SPARK, marks=SPARK_AT_NIGHT)])
def test_each_data_frame_library(engine: str):
    first, second, third = (
        native(engine, run(question=each).to_dict(as_series=False)) for each in (QUESTIONS, SHUFFLED, OTHERS)
    )
    assert "60 of these inputs have another `id`" in refusal(first, second).message
    assert "have little in common" in refusal(first, third).message
    assert lines(first, native(engine, run(question=QUESTIONS).reverse().to_dict(as_series=False))) == []


def as_file(frame: pl.DataFrame, path: Path) -> Path:
    frame.write_parquet(path)
    return path


@pytest.mark.sample(3)
@pytest.mark.parametrize("is_query", [False, True])
@pytest.mark.parametrize(
    ("questions", "message"),
    [(QUESTIONS, None), (SHUFFLED, "of these inputs have another `id`"), (OTHERS, "have little in common")],
)
def test_rows_of_large_runs_are_sampled(
    questions: list[str], message: str | None, is_query: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    for name, value in (("MOST_ROWS", 16), ("MOST_OF_QUERY", 12), ("_SLICE", 7)):
        monkeypatch.setattr(paired_texts, name, value)
    opened: Callable[[Path], Any] = pl.scan_parquet if is_query else str
    first, second = (
        opened(as_file(run(question=each), tmp_path / f"{i}.parquet"))
        for i, each in enumerate((QUESTIONS, questions))
    )
    if message is None:
        assert lines(first, second) == []
    else:
        assert message in refusal(first, second).message


@pytest.mark.parametrize("is_query", [False, True])
def test_other_ids_of_large_runs_are_sampled(is_query: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for module in (paired_texts, rival_ids):
        monkeypatch.setattr(module, "MOST_ROWS", 16)
    monkeypatch.setattr(paired_texts, "MOST_OF_QUERY", 12)
    opened: Callable[[Path], Any] = pl.scan_parquet if is_query else str
    frames = (run(case_id=each).with_columns(id=pl.Series(IDS)) for each in (ROWS, ROWS[30:] + ROWS[:30]))
    frames = (frame.with_columns(pl.col("case_id") * 1000) for frame in frames)
    first, second = (opened(as_file(frame, tmp_path / f"{i}.parquet")) for i, frame in enumerate(frames))
    assert "of these ids have another `id`" in refusal(first, second).message


@pytest.mark.parametrize(
    ("first", "second"),
    [(pl.Int64, pl.String), (pl.Float64, pl.Int64), (pl.String, pl.Categorical)],
)
def test_ids_of_other_types(first: Any, second: Any):
    tables = [
        ExampleTable.from_native(
            run(question=each).with_columns(pl.col("id").cast(pl.String).cast(type_)), "run"
        )
        for each, type_ in ((QUESTIONS, first), (SHUFFLED, second))
    ]
    pairs = paired_texts.paired_texts((tables[0], tables[1]), "question", ["id"])
    assert pairs is not None
    assert len(pairs) == N


def test_leaderboards_exclude_runs_with_other_inputs():
    runs = {"a": QUESTIONS, "b": QUESTIONS, "anew": SHUFFLED, "other": OTHERS}
    reworded = run(question=[f"Q: {text}" for text in QUESTIONS])
    board = trackperm.leaderboard(
        {**{name: run(question=each) for name, each in runs.items()}, "reworded": reworded}, metric="correct"
    )
    assert {row.name for row in board.rows} == {"a", "b", "reworded"}
    reasons = {each.name: each.reason for each in board.incomplete}
    assert "60 of these inputs have another `id` in `anew`" in reasons["anew"]
    assert "have little in common" in reasons["other"]
    assert any("most of them are alike" in note for note in board.notes)


@pytest.mark.parametrize(
    "made", [str, lambda text: [{"role": "user", "content": text}]], ids=["text", "chat"]
)
def test_inputs_that_are_not_valid_unicode(made: Callable[[str], Any], tmp_path: Path):
    """Regression: half of a surrogate pair was a traceback."""
    paths = [tmp_path / f"{i}.jsonl" for i in range(2)]
    for i, path in enumerate(paths):
        rows = [{"id": j, "question": made(f"q{j}\ud800"), "correct": (i + j) % 2} for j in range(8)]
        path.write_text("\n".join(map(json.dumps, rows)))
    assert trackperm.compare(*paths).n_examples == 8
