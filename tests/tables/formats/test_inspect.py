from __future__ import annotations

import copy
import hashlib
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support import reference_data
from support.cli_comparison import check_reference, compared
from support.eval_logs import INSPECT, inspect_log, inspect_sample, write_eval, write_json
from support.processes import run, script

import trackperm
from trackperm.errors import InputTypeError, PairingError, SourceError
from trackperm.report.notes import cautions_of
from trackperm.tables import read_examples

DATA = reference_data.DATA / "per_example"
AGAIN = "`inspect eval-retry LOG` runs what failed again"


@pytest.fixture(params=["json", "eval"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Write a log in both forms."""

    def write(log: dict[str, Any], name: str = "log") -> Path:
        path = tmp_path / f"{name}.{request.param}"
        (write_json if request.param == "json" else write_eval)(path, log)
        return path

    return write


def scores(path: Path, part: str | None = None) -> list[Any]:
    return read_examples(path, part=part).frame["score"].to_list()


class TestSamples:
    def test_columns(self, write: Any) -> None:
        table = read_examples(write(INSPECT))
        assert {name: table.frame[name].to_list() for name in table.columns} == {
            "id": [1, 2],
            "epoch": [1, 1],
            "prediction": ["4", "4"],
            "label": ["2", "4"],
            "score": [0.0, 1.0],
            "input_hash": [hashlib.sha256(text).hexdigest() for text in (b"1+1?", b"2+2?")],
        }
        assert table.identity == ("input_hash",)
        assert table.facts == {"task": "sums", "dataset": "small", "scorer": "match"}
        assert table.notes == ()

    @pytest.mark.parametrize(
        ("value", "score"),
        [
            *(("C", 1), ("I", 0), ("P", 0.5), ("N", 0), (True, 1), (False, 0), (3, 3), (0.25, 0.25)),
            *(("yes", 1), ("No", 0), ("TRUE", 1), ("false", 0), ("0.5", 0.5), (None, None)),
        ],
    )
    def test_values_are_scores_as_inspect_has_them(self, write: Any, value: Any, score: Any) -> None:
        assert scores(write(inspect_log([inspect_sample(1, 1, match=value)]))) == [score]

    @pytest.mark.parametrize("value", ["good", "c", [1, 0]])
    def test_other_values_are_refused(self, write: Any, value: Any) -> None:
        with pytest.raises(SourceError, match=r"sample 1: the value .* of scorer `match` is not a score"):
            read_examples(write(inspect_log([inspect_sample(1, 1, match=value)])))

    def test_a_value_beyond_decimals_is_refused(self, write: Any) -> None:
        with pytest.raises(SourceError, match="sample 1: the value of scorer `match` exceeds the range of"):
            read_examples(write(inspect_log([inspect_sample(1, 1, match=10**400)])))

    def test_several_targets_are_lists_everywhere(self, write: Any) -> None:
        log = copy.deepcopy(INSPECT)
        log["samples"][1]["target"] = ["4", "four"]
        assert read_examples(write(log)).frame["label"].to_list() == [["2"], ["4", "four"]]

    def test_several_scorers_are_metrics(self, write: Any) -> None:
        log = write(inspect_log([inspect_sample(1, 1, match="C", judge={"tone": 0.5, "facts": 1})]))
        table = read_examples(log)
        names = ["match", "judge/tone", "judge/facts"]
        assert table.metrics == {name: name for name in names}
        assert table.frame.select(names).rows() == [(1, 0.5, 1)]
        assert "prediction" in table.columns
        assert [scores(log, part) for part in ("match", "judge/tone", "judge/facts")] == [[1], [0.5], [1]]
        with pytest.raises(SourceError, match=r"has no scorer `mach`(.|\n)*Did you mean `match`"):
            read_examples(log, part="mach")

    def test_ids_of_messages_do_not_change_the_input(self, write: Any) -> None:
        def log(message_id: str, content: str) -> Path:
            sample = inspect_sample(1, 1, match="C")
            sample["input"] = [{"id": message_id, "role": "user", "content": content}]
            return write(inspect_log([sample]), message_id)

        first, second, other = (
            read_examples(log(*message)).frame["input_hash"][0]
            for message in (("a", "1+1?"), ("b", "1+1?"), ("c", "1+2?"))
        )
        assert first == second != other

    def test_an_input_that_is_attached(self, write: Any) -> None:
        log = copy.deepcopy(INSPECT)
        log["samples"][0] |= {"input": "attachment://ab12", "attachments": {"ab12": "1+1?"}}
        hashes = [read_examples(write(document)).frame["input_hash"][0] for document in (log, INSPECT)]
        assert hashes[0] == hashes[1]


IDS = {
    "lists": (lambda i: [i], "column `id` is list of integers; ids must be integers or text"),
    "objects": (lambda i: {"i": str(i)}, "column `id` of `.*` holds lists or objects"),
    "long integers": (lambda i: 10**4199 + i, r"column `id` of `.*` has an integer outside .* \(sample 1\)"),
    "half surrogate pairs": (
        lambda i: f"q{i}\ud800",
        r"column `id` of `.*` is not valid Unicode: .* pair \(sample 0\)",
    ),
}


@pytest.mark.parametrize("case", IDS.values(), ids=IDS)
def test_invalid_ids(case: tuple[Any, str], tmp_path: Path) -> None:
    make, message = case
    path = tmp_path / "log.json"
    write_json(path, inspect_log([inspect_sample(i, 1, match="C") | {"id": make(i)} for i in range(2)]))
    with pytest.raises((InputTypeError, PairingError), match=message):
        compared(path, path, "-s", "mean")


class TestEpochs:
    LOG = inspect_log(
        [inspect_sample(i, epoch, match="C" if i == epoch else "I") for epoch in (1, 2) for i in (1, 2)]
    )

    def test_are_said(self, write: Any) -> None:
        table = read_examples(write(self.LOG))
        assert table.frame.select("id", "epoch", "score").rows() == [
            (1, 1, 1),
            (2, 1, 0),
            (1, 2, 0),
            (2, 2, 1),
        ]

    def test_are_one_unit(self, write: Any) -> None:
        log = write(self.LOG)
        assert compared(log, log)["n_examples"] == 2
        assert compared(log, log, "-s", "mean", "--id", "id,epoch")["n_examples"] == 2
        assert compared(log, log, "-s", "mean", "--unit", "row")["n_examples"] == 4

    def test_are_added_up_as_attempts(self, write: Any) -> None:
        log = write(self.LOG)
        found = compared(log, log, "-s", "pass_at_1", "--column", "passed=score")
        assert (found["n_examples"], found["baseline_score"]) == (2, 0.5)


class TestHeaders:
    def test_that_claim_more_than_is_there(self, write: Any) -> None:
        log = inspect_log(INSPECT["samples"], results={"total_samples": 790})
        assert read_examples(write(log)).notes == ("the header claims 790 samples, but the log has 2",)

    def test_of_runs_that_failed(self, write: Any) -> None:
        log = inspect_log(INSPECT["samples"], status="error", error={"message": f"{'API down ' * 50}\nmore"})
        (note,) = read_examples(write(log)).notes
        said = f"{'API down ' * 13}AP…"
        assert note == f"look: the run did not succeed: its status is `error` ({said}); {AGAIN}"

    def test_without_samples(self, write: Any) -> None:
        with pytest.raises(
            SourceError, match="is an Inspect log without samples, although its header claims 1000"
        ):
            read_examples(write(inspect_log([], results={"total_samples": 1000})))

    @pytest.mark.parametrize(
        ("status", "failure", "said", "hint"),
        [
            ("success", None, "the status of its run is `success`", "`inspect score` adds them"),
            ("cancelled", None, "its status is `cancelled`", AGAIN),
            ("success", {"message": "API down"}, r"1 of 1 sample ended .* \(first: 1, API down\)", AGAIN),
            ("error", {"message": ""}, r"`error`; 1 of 1 sample .*, without a message\)", AGAIN),
        ],
    )
    def test_without_scores(self, write: Any, status: str, failure: Any, said: str, hint: str) -> None:
        """Scoring what failed would count errors as wrong answers."""
        samples = [inspect_sample(1, 1, **({"match": "I"} if failure else {})) | {"error": failure}]
        with pytest.raises(SourceError, match=f"has no scores: .*{said}") as caught:
            read_examples(write(inspect_log(samples, status=status)))
        assert hint in str(caught.value.hint)

    def test_errors_are_not_wrong_answers(self, write: Any) -> None:
        """Inspect scores samples that ended in an error if `score_on_error` is set."""
        right = [inspect_sample(i, 1, match="C") for i in range(8)]
        failed = [
            inspect_sample(i, 1, match="I") | {"error": {"message": "API down"}} if i % 2 else right[i]
            for i in range(8)
        ]
        old, new = write(inspect_log(failed), "old"), write(inspect_log(right), "new")
        assert read_examples(old).frame["prediction"].null_count() == 4
        said = "4 of 8 samples ended in an error and have no score (first: 1, API down)"
        with pytest.raises(PairingError, match=r"^4 of 8 examples of .* no value") as caught:
            trackperm.compare(old, new)
        assert said in str(caught.value)
        assert "tests `score` on the 4 paired examples only" in str(caught.value)
        found = trackperm.compare(old, new, missing="drop")
        assert (found.n_examples, found.n_discordant) == (4, 0)
        (note,) = read_examples(write(inspect_log([*right[:7], failed[7]]))).notes
        assert note.startswith("look: 1 of 8 samples ended in an error and has no score (first: 7, API down)")
        assert any(f"look: {said}; {AGAIN}" in caution for caution in cautions_of(found))

    def test_a_sample_that_failed_has_no_score(self, write: Any) -> None:
        assert scores(write(inspect_log([inspect_sample(1, 1), inspect_sample(2, 1, match="C")]))) == [
            None,
            1,
        ]

    def test_an_invalid_sample(self, write: Any) -> None:
        log = inspect_log([{"id": 1, "epoch": 1, "scores": {}}])
        with pytest.raises(SourceError, match="sample 0 is not an object with `id` and `input`"):
            read_examples(write(log))


class TestArchives:
    def test_without_a_header_did_not_end(self, tmp_path: Path) -> None:
        path = tmp_path / "log.eval"
        write_eval(path, INSPECT)
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist() if name != "header.json"}
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        assert read_examples(path).notes == (
            f"look: the run did not succeed: its status is `started`; {AGAIN}",
        )

    def test_of_zstandard(self, tmp_path: Path) -> None:
        if sys.version_info < (3, 14):
            pytest.importorskip("zipfile_zstd")
        path = tmp_path / "log.eval"
        write_eval(path, INSPECT, compression=93)
        found = run([script("trackperm"), "compare", path, path, "-s", "mean"])  # where nothing is imported
        assert found.stdout.startswith("mean   baseline 0.5000 ")

    @pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python reads Zstandard")
    def test_without_a_library_for_zstandard(self, tmp_path: Path) -> None:
        pytest.importorskip("zipfile_zstd")
        path = tmp_path / "log.eval"
        write_eval(path, INSPECT, compression=93)
        code = "import sys; sys.modules['zipfile_zstd'] = None\nfrom trackperm.cli import main\nmain()"
        found = run([sys.executable, "-c", code, "inspect", path])
        assert found.returncode == 2
        assert "is compressed with Zstandard" in found.stderr
        assert "pip install 'trackperm[inspect]'" in found.stderr

    def test_damaged(self, tmp_path: Path) -> None:
        path = tmp_path / "log.eval"
        write_eval(path, INSPECT, compression=zipfile.ZIP_STORED)
        path.write_bytes(path.read_bytes().replace(b"1+1?", b"1+2?"))
        with pytest.raises(SourceError, match="is a damaged archive: Bad CRC-32"):
            read_examples(path)

    def test_encrypted(self, tmp_path: Path) -> None:
        path = tmp_path / "log.eval"
        write_eval(path, INSPECT)
        data = bytearray(path.read_bytes())
        for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            for found in re.finditer(re.escape(mark), bytes(data)):
                data[found.start() + flags] |= 1
        path.write_bytes(data)
        with pytest.raises(SourceError, match=rf"^`{path}` is an encrypted archive"):
            read_examples(path)

    @pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_damaged_within_a_member(self, tmp_path: Path, compression: int) -> None:
        path = tmp_path / "log.eval"
        write_eval(path, INSPECT, compression)
        with zipfile.ZipFile(path) as archive:
            places = [info.header_offset + 30 + len(info.filename) for info in archive.infolist()]
        data = bytearray(path.read_bytes())
        for place in places:
            data[place + 20 : place + 30] = bytes(byte ^ 0x55 for byte in data[place + 20 : place + 30])
        path.write_bytes(data)
        with pytest.raises(SourceError, match=rf"^`{path}` is a damaged archive: "):
            read_examples(path)

    def test_bytes_that_are_not_text(self, tmp_path: Path) -> None:
        path = tmp_path / "log.eval"
        write_eval(path, INSPECT, zipfile.ZIP_STORED)
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data.replace(b"2+2?", b"\xff+2?"))
        with pytest.raises(
            SourceError, match=rf"^`{path}, samples/2_epoch_1.json`, line 1: byte 0xff is not"
        ):
            read_examples(path)

    def test_cut_short(self, tmp_path: Path) -> None:
        path = tmp_path / "log.eval"
        write_eval(path, INSPECT)
        path.write_bytes(path.read_bytes()[:-30])
        with pytest.raises(SourceError, match="not in a known format"):
            read_examples(path)


@reference_data.needs_data
class TestPublished:
    def test_arc_easy(self) -> None:
        files = [
            DATA / "every_eval_ever" / "inspect" / f"data_arc_{name}.json" for name in ("qwen", "sonnet")
        ]
        found = check_reference(
            "inspect/arc_easy_sonnet__vs__qwen", *files, "-s", "mean", "--missing", "drop", "--id", "id,epoch"
        )
        assert found["pairing"]["n_dropped"] == 2
        assert found["pairing"]["labels_checked"]
        with pytest.raises(PairingError, match=r"2 of 5 examples of .*sonnet.json` have no partner"):
            compared(*files, "-s", "mean")

    def test_an_archive_that_claims_790_samples(self) -> None:
        table = read_examples(DATA / "inspect_eval_docent" / "log.eval")
        assert len(table) == 15
        assert table.notes == ("the header claims 790 samples, but the log has 15",)
        assert table.facts == {
            "task": "inspect_evals/luce_intercode_ctf",
            "dataset": "ic_ctf",
            "scorer": "includes",
        }

    def test_a_log_without_samples(self) -> None:
        with pytest.raises(SourceError, match="without samples, although its header claims 1000"):
            read_examples(DATA / "every_eval_ever" / "inspect" / "data_with_llm_scoring.json")

    def test_numeric_values(self) -> None:
        path = DATA / "every_eval_ever" / "inspect" / "data_cyse2_vuln_exploit_challenges.json"
        assert scores(path) == [0.65]
