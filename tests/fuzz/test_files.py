from __future__ import annotations

import io
import json
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from fuzz import fuzz_files
from fuzz.mutations import mutated
from support.eval_logs import PROMPTFOO, lighteval
from support.processes import run

from trackperm.errors import SourceError
from trackperm.tables import Gold, SourceFile, read_examples
from trackperm.tables.registry import detect_format, sources

FUZZER = Path(__file__).with_name("fuzz_files.py")


@pytest.mark.slow
def test_changed_files_are_read_or_refused_by_one_error(tmp_path: Path) -> None:
    """Half a minute of `make fuzz`; the seed is the day, so that each has inputs of its own."""
    seed = int(time.time()) // 86400
    found = run([sys.executable, FUZZER, "30", str(seed), str(tmp_path)])
    assert found.returncode == 0, found.stdout + found.stderr
    assert " inputs" in found.stdout


def test_an_input_that_is_too_slow_is_found_in_a_reader_that_refuses_whatever_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(_: Path) -> None:
        try:
            while True:
                pass
        except Exception as error:
            raise SourceError("broken") from error

    monkeypatch.setattr(fuzz_files, "SECONDS", 0.1)
    before = signal.signal(signal.SIGPROF, fuzz_files._interrupt)
    try:
        assert isinstance(fuzz_files.tried(check, tmp_path), fuzz_files.TooSlowError)
    finally:
        signal.signal(signal.SIGPROF, before)


def test_each_format_is_fuzzed(tmp_path: Path) -> None:
    """A seed of each format comes to a table, or is one that needs answers and has a check with them."""
    found = set()
    for _, name, check, content in fuzz_files.seeds():
        path = tmp_path / name
        path.write_bytes(content)
        if check is fuzz_files.table:
            source = detect_format(SourceFile.opened(path))
            found.add(source.name)
            assert source.needs_gold or len(read_examples(path)) > 0
        else:
            check(path)
    assert found | {"parquet-parts", "wandb-run"} == {source.name for source in sources()}
    ranking = tmp_path / "ranking"
    ranking.write_text(fuzz_files.RANKING)
    (tmp_path / "qrels").write_text(fuzz_files.QRELS)
    assert len(read_examples(ranking, part="AP", gold=Gold(tmp_path / "qrels"))) == 2


def test_each_reader_has_one_share() -> None:
    seeds = fuzz_files.seeds()
    groups = fuzz_files.by_reader(seeds)
    assert [len({seed.reader for seed in group}) for group in groups] == [1] * len(groups)
    assert sorted(map(len, groups)) == sorted(Counter(seed.reader for seed in seeds).values())
    assert {group[0].reader for group in groups} >= {source.name for source in sources()} - {"wandb-run"}


def test_values_deep_in_a_document_are_changed() -> None:
    """Changed level by level, it was one input of 170 that changed these scores, and now one of 20."""
    rng, content, changed = random.Random(0), json.dumps(PROMPTFOO).encode(), 0
    scores = [result["namedScores"] for result in PROMPTFOO["results"]["results"]]
    for _ in range(1000):
        try:
            document = json.loads(mutated(rng, content, [content]))
            changed += [result["namedScores"] for result in document["results"]["results"]] != scores
        except (ValueError, LookupError, TypeError, RecursionError):  # no such document any more
            pass
    assert changed > 20


def test_values_of_parquet_are_changed() -> None:
    rng, written = random.Random(0), io.BytesIO()
    frame = lighteval([{"em": 1.0}])
    frame.write_parquet(written)
    content, types = written.getvalue(), Counter[str]()
    for _ in range(300):
        try:
            found = pl.read_parquet(mutated(rng, content, [content]))
        except (pl.exceptions.PanicException, pl.exceptions.PolarsError):
            continue
        types[str(found.schema.get("metric"))] += 1
    assert len(types) > 5
