from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli_comparison import compared
from support.eval_logs import PROMPTFOO, promptfoo, promptfoo_result, write_json
from support.example_tables import columns, columns_of_file

from trackperm.errors import PairingError, SourceError
from trackperm.tables import read_examples


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(results: list[dict[str, Any]], name: str = "results") -> Path:
        path = tmp_path / f"{name}.json"
        write_json(path, promptfoo(results))
        return path

    return write


RESULTS: list[dict[str, Any]] = PROMPTFOO["results"]["results"]


def test_columns(write: Any) -> None:
    path = write(RESULTS)
    found = columns_of_file(path)
    assert len(set(found.pop("input_hash"))) == 3
    assert found == {
        "id": [0, 1, 2],
        "passed": [False, True, False],
        "score": [0, 1, 0],
        "prediction": ["Say hi"] * 3,
        "equal": [0, 1, 0],
        "word": ["hi 0", "hi 1", "hi 2"],
    }
    assert read_examples(path).identity == ("input_hash",)


def test_passes_are_compared(write: Any) -> None:
    path = write(RESULTS)
    assert compared(path, path, "-s", "pass_at_1")["baseline_score"] == pytest.approx(1 / 3)


def test_metrics_that_say_more_than_what_passes(write: Any) -> None:
    assert read_examples(write(RESULTS)).metrics == {"passed": "passed"}
    graded = [{**result, "score": 0.5} for result in RESULTS]
    assert list(read_examples(write(graded)).metrics) == ["passed", "score"]


def test_repeats_of_a_test_are_one_unit(write: Any) -> None:
    """`--repeat 3` numbers the tests on, as if there were three times as many."""
    repeated = [{**RESULTS[i % 3], "testIdx": i} for i in range(9)]
    found = columns_of_file(write(repeated))
    assert (found["id"], found["repeat"]) == ([0, 1, 2] * 3, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    path = write(repeated)
    assert compared(path, path)["n_examples"] == 3
    other = [{**result, "testCase": {"assert": [i]}} for i, result in enumerate(repeated)]
    assert columns_of_file(write(other))["id"] == list(range(9))


def test_results_are_in_the_order_in_which_calls_returned(write: Any) -> None:
    paths = write(RESULTS), write(RESULTS[::-1], "reversed")
    assert compared(*paths, "-s", "mean")["n_discordant"] == 0


@pytest.mark.parametrize(
    ("systems", "parts"),
    [
        ([("a", "Say"), ("b", "Say")], ["a", "b"]),
        ([("a", "Say"), ("a", "Repeat")], ["Say {{word}}", "Repeat {{word}}"]),
        ([("a", "Say"), ("b", "Repeat")], ["a | Say {{word}}", "b | Repeat {{word}}"]),
    ],
)
def test_several_systems_are_refused_until_one_is_chosen(write: Any, systems: Any, parts: list[str]) -> None:
    path = write(
        [
            promptfoo_result(i, *system, score=float(system == systems[1]))
            for i in (0, 1)
            for system in systems
        ]
    )
    with pytest.raises(SourceError) as caught:
        read_examples(path)
    assert f"has 2 providers, which must not be mixed: `{parts[0]}`, `{parts[1]}`" in caught.value.message
    assert [columns_of_file(path, part)["score"] for part in parts] == [[0.0, 0.0], [1.0, 1.0]]
    found = compared(f"{path}::{parts[0]}", f"{path}::{parts[1]}", "-s", "mean")
    assert (found["n_examples"], found["difference"]) == (2, 1.0)


def test_labels_of_providers_win_over_their_ids(write: Any) -> None:
    results = [
        {**promptfoo_result(0, "echo", "Say", 1.0), "provider": {"id": "echo", "label": label}}
        for label in ("first", "second")
    ]
    assert columns_of_file(write(results), "second")["id"] == [0]


def test_json_lines_are_the_same_results(write: Any, tmp_path: Path) -> None:
    """`-o results.jsonl` writes the members of the JSON's results, one on each line."""
    results = [
        {**result, "promptIdx": i, "provider": {"id": system}}
        for i, system in enumerate("ab")
        for result in [*RESULTS, promptfoo_result(3, "echo", "Say", 0, failureReason=2)]
    ]
    path = write(results)
    (lines := tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in results))
    for system in "ab":
        found, expected = (read_examples(each, part=system) for each in (lines, path))
        assert columns(found) == columns(expected)
        for name in ("identity", "notes", "metrics"):
            assert getattr(found, name) == getattr(expected, name)
    with pytest.raises(SourceError, match="has 2 providers, which must not be mixed: `a`, `b`"):
        read_examples(lines)


def test_its_csv_of_two_providers_has_a_way_on(tmp_path: Path) -> None:
    own = ["[a] Say", "Status", "Score", "Named Scores", "Grader Reason", "Comment"]
    (path := tmp_path / "x.csv").write_text(f"{','.join(['word', *own, *own])}\n{',' * 2 * len(own)}\n")
    with pytest.raises(SourceError, match="more than one column") as caught:
        read_examples(path)
    assert "`promptfoo eval -o results.json`" in str(caught.value.hint)


def test_without_indices_variables_are_the_id(write: Any) -> None:
    results = [{k: v for k, v in result.items() if k != "testIdx"} for result in RESULTS]
    assert columns_of_file(write(results))["id"][0] == '{"word": "hi 0"}'


def test_errors_of_the_provider_are_said(write: Any) -> None:
    path = write([*RESULTS, promptfoo_result(3, "echo", "Say", 0, failureReason=2, response=None)])
    table = read_examples(path)
    assert table.notes == ("1 of 4 results are errors of the provider and count as failed",)
    assert table.frame["prediction"].to_list()[-1] is None


def test_other_variables_are_refused_when_paired(write: Any) -> None:
    other = [{**RESULTS[0], "vars": {"word": "bye"}}, *RESULTS[1:]]
    with pytest.raises(PairingError, match="`input_hash` differs between the runs on 1 of 3"):
        compared(write(RESULTS), write(other, "other"), "-s", "mean")


@pytest.mark.parametrize("result", [7, {"vars": ["hi"], "success": True}])
def test_other_results_are_refused(write: Any, result: Any) -> None:
    with pytest.raises(SourceError, match="result 3 is not an object with `vars` and `success`"):
        read_examples(write([*RESULTS, result]))


@pytest.mark.parametrize("scores", [["a"], "a", 7])
def test_named_scores_are_an_object(write: Any, scores: object) -> None:
    with pytest.raises(SourceError, match="result 3: its `namedScores` are not an object"):
        read_examples(write([*RESULTS, {**RESULTS[0], "namedScores": scores}]))
