from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support import reference_data
from support.cli_comparison import check_reference, compared
from support.eval_logs import LM_EVAL, lm_eval_sample, write_json, write_lines
from support.example_tables import columns_of_file

import trackperm
from trackperm.errors import PairingError, SourceError
from trackperm.tables import read_examples

PYFADE = reference_data.DATA / "per_example" / "lm_eval_pyfade"
TUNED, BASE = "2025-09-09T13-31-53.431753", "2025-09-09T13-42-42.857006"
POOLED = {"base": "2025-10-14T15-11-56.507865", "tuned": "2025-10-14T14-44-39.372006"}
RUN = "2026-01-21T03-44-18.458309"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "samples.jsonl"
    write_lines(path, LM_EVAL)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    for task in ("sums", "products"):
        write_lines(folder / f"samples_{task}_{RUN}.jsonl", LM_EVAL[:2])
    write_json(folder / f"results_{RUN}.json", {"results": {}, "configs": {}})
    return folder


class TestOneTask:
    def test_columns(self, log: Path) -> None:
        table = read_examples(log)
        assert columns_of_file(log) == {
            "id": [0, 1, 2, 3],
            "prediction": ["4"] * 4,
            "label": ["0", "2", "4", "6"],
            "exact_match": [0.0, 0.0, 1.0, 0.0],
            "doc_hash": ["doc0", "doc1", "doc2", "doc3"],
            "target_hash": ["target0", "target1", "target2", "target3"],
            "score": [0.0, 0.0, 1.0, 0.0],
        }
        assert (table.identity, table.facts) == (("doc_hash", "target_hash"), {"filter": "none"})

    def test_several_metrics_give_no_score(self, log: Path) -> None:
        write_lines(log, [lm_eval_sample(0, 1.0, acc=0, acc_norm=1)])
        found = columns_of_file(log)
        assert (found["acc"], found["acc_norm"], "score" in found) == ([0], [1], False)

    def test_likelihoods_of_choices_are_not_a_prediction(self, log: Path) -> None:
        choices = [["-1.5", "False"], ["-0.5", "True"]]
        write_lines(log, [lm_eval_sample(0, 1.0, filtered_resps=choices)])
        assert "prediction" not in columns_of_file(log)

    def test_two_filters_are_refused_until_one_is_chosen(self, log: Path) -> None:
        write_lines(
            log,
            [
                lm_eval_sample(i, float(filter_ == "strict-match"), filter_)
                for filter_ in ("strict-match", "flexible-extract")
                for i in range(2)
            ],
        )
        with pytest.raises(
            SourceError,
            match=r"has 2 filters, .*: `strict-match`, `flexible-extract`\n(.|\n)*::strict-match`",
        ):
            read_examples(log)
        assert columns_of_file(log, "flexible-extract")["score"] == [0.0, 0.0]
        assert columns_of_file(log, "strict-match")["score"] == [1.0, 1.0]
        assert read_examples(log, part="strict-match").facts["filter"] == "strict-match"

    def test_a_filter_that_is_not_there(self, log: Path) -> None:
        with pytest.raises(SourceError, match=r"has no filter `non`(.|\n)*Did you mean `none`"):
            read_examples(log, part="non")

    def test_the_array_that_older_versions_wrote(self, log: Path) -> None:
        rows = [{k: v for k, v in row.items() if "hash" not in k and k != "filter"} for row in LM_EVAL]
        log.write_text(json.dumps(rows, indent=2), encoding="utf-8")
        table = read_examples(log)
        assert (table.identity, table.frame["score"].to_list()) == ((), [0.0, 0.0, 1.0, 0.0])

    def test_an_invalid_sample(self, log: Path) -> None:
        write_lines(log, [LM_EVAL[0], {"doc_id": 1}])
        with pytest.raises(SourceError, match=r", line 2: a sample without `arguments`, `doc`, "):
            read_examples(log)

    def test_a_line_that_breaks_off(self, log: Path) -> None:
        log.write_text(log.read_text(encoding="utf-8")[:-40], encoding="utf-8")
        with pytest.raises(SourceError, match=r", line 4: not JSON"):
            read_examples(log)

    def test_other_documents_are_refused_when_paired(self, log: Path) -> None:
        other = log.with_name("other.jsonl")
        write_lines(other, [*LM_EVAL[:3], lm_eval_sample(3, 1.0, doc_hash="another", prompt_hash="chat")])
        with pytest.raises(PairingError, match="`doc_hash` differs between the runs on 1 of 4"):
            compared(log, other, "-s", "mean")

    def test_prompts_may_differ(self, log: Path) -> None:
        other = log.with_name("other.jsonl")
        write_lines(other, [{**row, "prompt_hash": "chat"} for row in LM_EVAL])
        assert compared(log, other, "-s", "mean")["pvalue"] == 1


class TestRun:
    def test_tasks_are_one_table(self, run: Path) -> None:
        found = columns_of_file(run)
        assert found["id"] == ["products/0", "products/1", "sums/0", "sums/1"]
        assert found["task"] == ["products", "products", "sums", "sums"]
        assert read_examples(run).facts == {"filter": "none", "task": "products, sums"}

    def test_a_task_with_one_filter_keeps_it_beside_one_with_two(self, run: Path) -> None:
        rows = [lm_eval_sample(0, score, f) for f, score in (("strict", 1.0), ("flexible", 0.0))]
        write_lines(run / f"samples_sums_{RUN}.jsonl", rows)
        with pytest.raises(SourceError, match=r"^task `sums`: .* has 2 filters, .*: `strict`, `flexible`"):
            read_examples(run)
        with pytest.raises(SourceError, match=r"^task `sums`: .* has no filter `none`"):
            read_examples(run, part="none")
        assert columns_of_file(run, "strict")["score"] == [0.0, 0.0, 1.0]

    def test_several_runs_are_refused(self, run: Path) -> None:
        write_lines(run / "samples_sums_2026-01-22T03-44-18.458309.jsonl", LM_EVAL)
        with pytest.raises(SourceError, match=r"contains 2 runs: `2026-01-21T03-44-18.458309`, `2026-01-22"):
            read_examples(run)

    @pytest.mark.parametrize("name", ["notes.txt", "predictions.csv", "more/x.csv"])
    def test_other_files_are_refused(self, run: Path, name: str) -> None:
        path = run / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("id,prediction\n1,2\n", encoding="utf-8")
        with pytest.raises(SourceError, match=f"and other files: `{name.split('/')[0]}`"):
            read_examples(run)

    def test_hidden_files_are_not_looked_at(self, run: Path) -> None:
        (run / ".DS_Store").write_bytes(b"\0")
        assert len(read_examples(run)) == 4

    def test_a_name_that_tells_no_task_is_refused(self, run: Path) -> None:
        (run / f"samples_sums_{RUN}.jsonl").rename(run / "sums.jsonl")
        with pytest.raises(SourceError, match=r"the names of `sums.jsonl` in .* do not contain task"):
            read_examples(run)


class TestMetricsOfSomeTasks:
    """GSM8K has `exact_match`, HellaSwag `acc` and `acc_norm`."""

    @staticmethod
    def folder(path: Path, right: int, lacking: int | None = None) -> Path:
        tasks: dict[str, tuple[str, ...]] = {"gsm8k": ("exact_match",), "arc": ("acc",)}
        tasks |= {"hellaswag": ("acc", "acc_norm")}
        path.mkdir()
        for task, metrics in tasks.items():
            samples = [lm_eval_sample(i, 0.0) | {"doc_hash": f"{task}{i}"} for i in range(8)]
            for i, sample in enumerate(samples):
                del sample["exact_match"]
                sample |= {"metrics": list(metrics), **dict.fromkeys(metrics, float(i < right))}
            if task == "hellaswag" and lacking is not None:
                del samples[lacking]["acc"]
            write_lines(path / f"samples_{task}_{RUN}.jsonl", samples)
        return path

    def test_are_compared_on_these_tasks(self, tmp_path: Path) -> None:
        old, new = self.folder(tmp_path / "old", 1), self.folder(tmp_path / "new", 7)
        found = trackperm.compare(old, new, slices=["task"])
        assert [(each.statistic.title, str(each.slice or ""), each.n_examples) for each in found] == [
            ("acc", "", 16),
            ("acc", "task = arc", 8),
            ("acc", "task = hellaswag", 8),
            ("mean_exact_match", "", 8),
            ("mean_exact_match", "task = gsm8k", 8),
            ("acc_norm", "", 8),
            ("acc_norm", "task = hellaswag", 8),
        ]
        said = "some metrics are logged by some tasks alone: `acc` by `arc`, `hellaswag`; "
        assert any(said in note for note in found[0].pairing.notes)
        ranked = trackperm.leaderboard([old, new], metric="exact_match")
        assert ranked.n_examples == 8

    def test_a_loss_within_a_task_is_refused(self, tmp_path: Path) -> None:
        old, new = self.folder(tmp_path / "old", 1), self.folder(tmp_path / "new", 7, lacking=3)
        with pytest.raises(
            PairingError, match=r"^1 of 16 examples of .* no value in `acc` .first: 'hellaswag/3'"
        ):
            trackperm.compare(old, new, metric="acc")


class TestOutputPath:
    """The harness makes a subfolder for the model in its output path."""

    def test_the_only_subfolder_with_samples_is_read(self, run: Path) -> None:
        (run.parent / "plots").mkdir()
        (run.parent / "run.log").write_text("done\n", encoding="utf-8")
        table = read_examples(run.parent)
        assert table.frame["id"].to_list() == read_examples(run).frame["id"].to_list()
        assert table.origin == str(run)

    def test_a_filter_is_chosen(self, run: Path) -> None:
        rows = [lm_eval_sample(0, score, f) for f, score in (("strict", 1.0), ("flexible", 0.0))]
        write_lines(run / f"samples_sums_{RUN}.jsonl", rows)
        with pytest.raises(SourceError, match=rf"choose one: `{run}::strict`"):
            read_examples(run.parent)
        assert columns_of_file(run.parent, "strict")["score"] == [0.0, 0.0, 1.0]

    def test_several_models_are_refused(self, run: Path) -> None:
        other = run.with_name("other")
        shutil.copytree(run, other)
        with pytest.raises(SourceError, match=rf"in 2 subfolders, `{other}`, `{run}`; expected one run"):
            read_examples(run.parent)


@reference_data.needs_data
class TestPublished:
    def test_gsm8k(self) -> None:
        files = [PYFADE / f"samples_gsm8k_{run}.jsonl" for run in (BASE, TUNED)]
        found = check_reference("lm_eval/gsm8k_tuned__vs__base", *files, "-s", "mean")
        assert found["pairing"]["inputs_checked"] == ["doc_hash", "target_hash"]

    def test_three_subtasks_as_one_run(self, tmp_path: Path) -> None:
        for name, run in POOLED.items():
            (tmp_path / name).mkdir()
            for path in sorted(PYFADE.glob(f"*_{run}.json*")):
                shutil.copy(path, tmp_path / name)
        folders = [tmp_path / name for name in POOLED]
        check_reference("lm_eval/mmlu_pro_plus_tuned__vs__base", *folders, "-s", "mean")

    def test_two_filters_of_a_real_log(self, tmp_path: Path) -> None:
        rows = [
            json.loads(line)
            for line in (PYFADE / f"samples_gsm8k_{BASE}.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        path = tmp_path / "samples.jsonl"
        write_lines(path, [*rows, *({**row, "filter": "flexible-extract"} for row in rows)])
        with pytest.raises(SourceError, match="has 2 filters"):
            read_examples(path)
        assert len(read_examples(path, part="strict-match")) == len(rows)

    def test_the_folder_of_both_runs_is_refused(self) -> None:
        with pytest.raises(SourceError, match="and other files: `LICENSE`"):
            read_examples(PYFADE)
