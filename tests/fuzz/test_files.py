from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from fuzz import fuzz_files
from support.processes import run

from trackperm.tables import References, SourceFile, read_examples
from trackperm.tables.registry import detect_format, sources

FUZZER = Path(__file__).with_name("fuzz_files.py")


@pytest.mark.slow
def test_changed_files_are_read_or_refused_by_one_error(tmp_path: Path) -> None:
    """Ten seconds of `make fuzz`; the seed is the day, so that each has inputs of its own."""
    seed = int(time.time()) // 86400
    found = run([sys.executable, FUZZER, "10", str(seed), str(tmp_path)])
    assert found.returncode == 0, found.stdout + found.stderr
    assert " inputs" in found.stdout


def test_each_format_is_fuzzed(tmp_path: Path) -> None:
    """A seed of each format comes to a table, or is one that needs answers and has a check with them."""
    found = set()
    for _, name, check, content in fuzz_files.seeds():
        path = tmp_path / name
        path.write_bytes(content)
        if check is fuzz_files.table:
            source = detect_format(SourceFile.opened(path))
            found.add(source.name)
            assert source.needs_references or len(read_examples(path)) > 0
        else:
            check(path)
    folders = {"lm-eval-output", "parquet-parts", "saved-dataset", "saved-splits", "wandb-run"}
    assert found | folders == {source.name for source in sources()}
    ranking = tmp_path / "ranking"
    ranking.write_text(fuzz_files.RANKING)
    (tmp_path / "qrels").write_text(fuzz_files.QRELS)
    assert len(read_examples(ranking, part="AP", references=References(tmp_path / "qrels"))) == 2
