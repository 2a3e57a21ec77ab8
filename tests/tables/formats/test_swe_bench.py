from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.cli_comparison import compared
from support.eval_logs import SWE_BENCH, write_json

from trackperm.errors import PairingError, SourceError
from trackperm.tables import read_examples


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(document: Any, name: str = "report") -> Path:
        path = tmp_path / f"{name}.json"
        write_json(path, document)
        return path

    return write


def passed(path: Path) -> dict[str, int | None]:
    frame = read_examples(path).frame
    return dict(zip(frame["id"].to_list(), frame["passed"].to_list(), strict=True))


class TestReport:
    def test_submitted_instances_pass_or_do_not(self, write: Any) -> None:
        path = write(SWE_BENCH)
        assert passed(path) == {"a__a-5": None, "a__a-1": 1, "a__a-2": 0, "a__a-3": 0, "a__a-4": 0}
        assert read_examples(path).notes == ("counted as not resolved: empty patches (1), errors (1)",)

    def test_without_submitted_ids_the_other_lists_say(self, write: Any) -> None:
        names = ("resolved_ids", "unresolved_ids", "error_ids")
        path = write({name: SWE_BENCH[name] for name in names})
        assert passed(path) == {"a__a-1": 1, "a__a-2": 0, "a__a-4": 0}

    def test_instances_without_prediction_are_missing(self, write: Any) -> None:
        lists = {"resolved_ids": ["a__a-1", "a__a-2", "a__a-3"], "unresolved_ids": []}
        better = {**SWE_BENCH, **lists}
        paths = write(SWE_BENCH), write(better, "better")
        with pytest.raises(PairingError, match=r"1 of 5 examples .* has no value in `passed`"):
            compared(*paths, "-s", "pass_at_1")
        found = compared(*paths, "-s", "pass_at_1", "--missing", "wrong")
        assert (found["n_examples"], found["n_discordant"], found["pvalue"]) == (5, 2, 0.5)
        assert found["candidate_score"] == 0.6

    def test_resolved_without_being_submitted(self, write: Any) -> None:
        with pytest.raises(SourceError, match=r"1 resolved instances were not submitted .*'a__a-9'"):
            read_examples(write({**SWE_BENCH, "resolved_ids": ["a__a-1", "a__a-9"]}))

    @pytest.mark.parametrize("ids", [[1], {"a__a-1": True}, "a__a-1"])
    def test_invalid_ids(self, write: Any, ids: Any) -> None:
        with pytest.raises(SourceError, match="`error_ids` is not a list of instance ids"):
            read_examples(write({**SWE_BENCH, "error_ids": ids}))

    def test_without_instances(self, write: Any) -> None:
        with pytest.raises(SourceError, match="names no instances") as error:
            read_examples(write({"resolved_ids": [], "submitted_ids": []}))
        assert "was the run evaluated?" in str(error.value.hint)

    @pytest.mark.parametrize(
        "lists",
        [
            {"resolved_ids": ["a__a-1"], "unresolved_ids": ["a__a-1", "a__a-2"]},
            {"resolved_ids": ["a__a-1", "a__a-1"], "unresolved_ids": ["a__a-2"]},
            {"resolved_ids": ["a__a-1"], "unresolved_ids": ["a__a-2", "a__a-2"]},
            {"resolved": ["a__a-1", "a__a-1"], "no_logs": []},
        ],
    )
    def test_attempts_are_not_merged(self, write: Any, lists: dict[str, list[str]]) -> None:
        with pytest.raises(SourceError, match=r"1 instances are (both in|more than once)") as error:
            read_examples(write(lists))
        assert "a table with a row for each" in str(error.value.hint)


RESULTS = {"no_generation": ["a__a-3"], "no_logs": [], "resolved": ["a__a-1"]}


class TestList:
    def test_what_is_listed_passes_or_does_not(self, write: Any) -> None:
        path = write(RESULTS)
        assert passed(path) == {"a__a-1": 1, "a__a-3": 0}
        (note,) = read_examples(path).notes
        assert "the size of the benchmark is unknown; use `--missing wrong`" in note

    def test_what_is_not_listed_is_not_resolved(self, write: Any) -> None:
        other = {"no_generation": [], "no_logs": [], "resolved": ["a__a-1", "a__a-2", "a__a-3", "a__a-4"]}
        found = compared(write(RESULTS), write(other, "other"), "-s", "pass_at_1", "--missing", "wrong")
        assert (found["n_examples"], found["n_discordant"], found["pvalue"]) == (4, 3, 0.25)

    def test_with_all_that_was_generated(self, write: Any) -> None:
        path = write({**RESULTS, "generated": ["a__a-1", "a__a-2"]})
        assert passed(path) == {"a__a-1": 1, "a__a-2": 0, "a__a-3": 0}
        assert read_examples(path).notes == ()


def test_reports_of_instances(write: Any) -> None:
    path = write({"a__a-1": {"patch_exists": True, "resolved": True}, "a__a-2": {"resolved": False}})
    assert passed(path) == {"a__a-1": 1, "a__a-2": 0}


# As `FinalReport` of multi_swe_bench/harness/report.py writes it: what failed is incomplete and an error.
FINAL_REPORT = {
    "total_instances": 4,
    "submitted_instances": 4,
    "completed_instances": 3,
    "incomplete_instances": 1,
    "resolved_instances": 1,
    "unresolved_instances": 2,
    "empty_patch_instances": 0,
    "error_instances": 1,
    "submitted_ids": [
        "fmtlib/fmt:pr-493",
        "fmtlib/fmt:pr-967",
        "fmtlib/fmt:pr-1171",
        "nlohmann/json:pr-8",
    ],
    "completed_ids": ["fmtlib/fmt:pr-493", "fmtlib/fmt:pr-967", "fmtlib/fmt:pr-1171"],
    "incomplete_ids": ["nlohmann/json:pr-8"],
    "resolved_ids": ["fmtlib/fmt:pr-493"],
    "unresolved_ids": ["fmtlib/fmt:pr-967", "fmtlib/fmt:pr-1171"],
    "empty_patch_ids": [],
    "error_ids": ["nlohmann/json:pr-8"],
}

# As evaluation/<language>/verified/<system>/results/results.json of multi-swe-bench/experiments.
LEADERBOARD = {
    "total_instances": 4,
    "submitted_instances": 3,
    "completed_instances": 3,
    "resolved_instances": 2,
    "unresolved_instances": 1,
    "empty_error_patch_instances": 1,
    "unstopped_instances": 0,
    "completed_ids": ["fmtlib__fmt-493", "fmtlib__fmt-967", "fmtlib__fmt-1171"],
    "incomplete_ids": [],
    "submitted_ids": ["fmtlib__fmt-493", "fmtlib__fmt-967", "fmtlib__fmt-1171"],
    "resolved": ["fmtlib__fmt-967", "fmtlib__fmt-1171"],
    "unresolved_ids": ["fmtlib__fmt-493"],
    "empty_error_patch_ids": ["nlohmann__json-8"],
    "unstopped_containers": [],
    "unremoved_images": [],
}


class TestMultiSweBench:
    def test_final_report(self, write: Any) -> None:
        path = write(FINAL_REPORT)
        expected = {
            "fmtlib__fmt-493": 1,
            "fmtlib__fmt-967": 0,
            "fmtlib__fmt-1171": 0,
            "nlohmann__json-8": 0,
        }
        assert passed(path) == expected
        assert read_examples(path).notes == ("counted as not resolved: errors (1)",)

    def test_results_of_the_leaderboard(self, write: Any) -> None:
        path = write(LEADERBOARD)
        expected = {
            "fmtlib__fmt-493": 0,
            "fmtlib__fmt-967": 1,
            "fmtlib__fmt-1171": 1,
            "nlohmann__json-8": 0,
        }
        assert passed(path) == expected
        assert read_examples(path).notes == ("counted as not resolved: empty or faulty patches (1)",)

    def test_one_with_the_other(self, write: Any) -> None:
        found = compared(write(FINAL_REPORT), write(LEADERBOARD, "results"), "-s", "pass_at_1")
        assert (found["n_examples"], found["n_better"], found["n_worse"]) == (4, 2, 1)

    def test_instances_that_it_does_not_name(self, write: Any) -> None:
        (_, note) = read_examples(write({**LEADERBOARD, "total_instances": 6})).notes
        assert "it names 4 of all 6 instances; use `--missing wrong`" in note

    def test_without_a_prediction(self, write: Any) -> None:
        path = write({**LEADERBOARD, "empty_error_patch_ids": [], "incomplete_ids": ["nlohmann__json-8"]})
        assert passed(path)["nlohmann__json-8"] is None
