from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.comparisons import compared
from support.specs import F1, load
from support.unit_swaps import Row, accuracy, f1, pvalue

import trackperm
from trackperm.errors import InputError, PairingError
from trackperm.statistic.written_spec import written_spec

SHARE = """
counts: {correct: prediction == label, n: 1}
missing: {correct: 0, n: 1}
score: correct / n
"""


def runs(seed: int, n: int, n_groups: int) -> tuple[list[Row], list[Row]]:
    rng = np.random.default_rng(seed)
    examples = [
        {"id": f"e{i}", "speaker": f"s{rng.integers(n_groups)}", "label": int(rng.integers(2))}
        for i in range(n)
    ]
    sides = [
        [
            {**row, "prediction": int(rng.integers(2)) if rng.random() < rate else row["label"]}
            for row in examples
        ]
        for rate in (0.9, 0.3)
    ]
    return sides[0], sides[1]


class TestClusters:
    @pytest.mark.parametrize(("text", "score"), [(SHARE, accuracy), (F1, f1)])
    @pytest.mark.parametrize("seed", range(3))
    def test_against_enumeration(self, tmp_path: Path, text: str, score: Any, seed: int) -> None:
        baseline, candidate = runs(seed, 30, 8)
        found = compared((baseline, candidate), load(tmp_path, text + "cluster: speaker\n"))
        wanted = pvalue(baseline, candidate, "speaker", lambda u, v: score(u) - score(v))
        assert found.pvalue == pytest.approx(float(wanted), rel=found.error_bound + 1e-12)
        assert found.difference == pytest.approx(float(score(candidate) - score(baseline)))
        assert found.baseline_score == pytest.approx(float(score(baseline)))
        assert found.n_examples == len({row["speaker"] for row in baseline})
        assert found.pvalue != compared((baseline, candidate), load(tmp_path, text)).pvalue

    def test_notes_columns_and_document(self, tmp_path: Path) -> None:
        baseline, candidate = runs(0, 30, 8)
        found = compared((baseline, candidate), load(tmp_path, SHARE + "cluster: speaker\n"))
        assert found.pairing.n_paired == 30
        note = "clusters: the examples of one `speaker` are exchanged together, so the test has 8 units"
        assert [line.startswith(note) for line in found.pairing.notes] == [True]
        assert found.discordant.columns == [
            "id", "baseline.correct", "candidate.correct", "baseline.n", "candidate.n"
        ]  # fmt: skip
        assert set(found.discordant["id"]) <= {row["speaker"] for row in baseline}
        assert len(found.discordant) == found.n_discordant
        assert "\ncluster: speaker\n" in written_spec(found.statistic)

    def test_a_column_by_another_name(self, tmp_path: Path) -> None:
        wanted = compared(runs(1, 20, 5), load(tmp_path, SHARE + "cluster: speaker\n")).pvalue
        spec = load(tmp_path, SHARE + "cluster: who\ncolumns: {who: speaker}\n")
        assert compared(runs(1, 20, 5), spec).pvalue == wanted

    def test_clusters_that_differ(self, tmp_path: Path) -> None:
        baseline, candidate = (pl.DataFrame(run) for run in runs(1, 20, 5))
        other = candidate.with_columns(speaker=pl.lit("x"))
        with pytest.raises(PairingError, match="`speaker` differs between the runs on 20 of 20 examples"):
            trackperm.compare(baseline, other, load(tmp_path, SHARE + "cluster: speaker\n"))

    def test_an_example_without_a_cluster(self, tmp_path: Path) -> None:
        sides = [
            pl.DataFrame(run).with_columns(speaker=pl.col("speaker").replace("s0", None))
            for run in runs(1, 20, 5)
        ]
        spec = load(tmp_path, SHARE + "cluster: speaker\n")
        with pytest.raises(PairingError, match="have no value in `speaker`"):
            trackperm.compare(*sides, spec)
        assert trackperm.compare(*sides, spec, missing="drop").n_examples == 4

    def test_decimals_are_not_clusters(self, tmp_path: Path) -> None:
        sides = [pl.DataFrame(run).with_columns(speaker=pl.lit(0.5)) for run in runs(1, 20, 5)]
        with pytest.raises(PairingError, match="`speaker` is decimal; clusters, strata and classes must be"):
            trackperm.compare(*sides, load(tmp_path, SHARE + "cluster: speaker\n"))

    def test_an_absent_column(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="needs columns") as caught:
            compared(runs(1, 20, 5), load(tmp_path, SHARE + "cluster: speakr\n"))
        assert '`columns={"speakr": "speaker"}`' in str(caught.value)

    def test_sums_beyond_62_bits(self, tmp_path: Path) -> None:
        table = pl.DataFrame({"id": [1, 2], "speaker": [1, 1], "score": [2**61, 2**61]})
        spec = load(tmp_path, "counts: {total: score, n: 1}\nscore: total / n\ncluster: speaker\n")
        with pytest.raises(InputError, match=r"may add up to 2\^62"):
            trackperm.compare(table, table, spec)


class TestRepeats:
    def repeated(self, seed: int) -> tuple[list[Row], list[Row]]:
        rng = np.random.default_rng(seed)
        sides = []
        for rate in (0.5, 0.8):
            rows = [
                {"id": i, "label": i % 2, "prediction": i % 2 if rng.random() < rate else 5}
                for i in range(7)
                for _ in range(1 + i % 3)
            ]
            rng.shuffle(rows)
            sides.append(rows)
        return sides[0], sides[1]

    @pytest.mark.parametrize("seed", range(3))
    def test_against_enumeration(self, tmp_path: Path, seed: int) -> None:
        baseline, candidate = self.repeated(seed)
        spec = load(tmp_path, SHARE + "repeats: sum\n")
        found = compared((baseline, candidate), spec)
        wanted = pvalue(baseline, candidate, "id", lambda u, v: accuracy(u) - accuracy(v))
        assert found.pvalue == pytest.approx(float(wanted), rel=1e-12)
        assert found.n_examples == 7
        assert found.difference == pytest.approx(float(accuracy(candidate) - accuracy(baseline)))
        assert found.pairing.notes == (
            "unit: the example, by `id`; 1 to 3 rows of each; their counts are added up",
        )
        assert "\nrepeats: sum\n" in written_spec(found.statistic)

    def test_the_order_of_rows_changes_nothing(self, tmp_path: Path) -> None:
        baseline, candidate = map(pl.DataFrame, self.repeated(0))
        spec = load(tmp_path, SHARE + "repeats: sum\n")
        found = trackperm.compare(baseline, candidate, spec)
        again = trackperm.compare(baseline.reverse(), candidate.reverse(), spec)
        assert again.to_json() == found.to_json()

    @pytest.mark.parametrize("missing", ["error", "drop", "wrong"])
    def test_other_numbers_of_rows(self, tmp_path: Path, missing: Any) -> None:
        baseline, candidate = map(pl.DataFrame, self.repeated(0))
        more = pl.concat([candidate, candidate.filter(pl.col("id") == 3)])
        with pytest.raises(PairingError, match="1 of 7 examples have more rows in one run") as caught:
            trackperm.compare(baseline, more, load(tmp_path, SHARE + "repeats: sum\n"), missing=missing)
        assert "    3         1            2" in str(caught.value)

    def test_an_example_is_dropped_with_all_its_rows(self, tmp_path: Path) -> None:
        baseline, candidate = map(pl.DataFrame, self.repeated(0))
        rows = candidate.with_row_index("row")
        first = rows.filter(pl.col("id") == 2)["row"][0]
        holed = rows.with_columns(
            prediction=pl.when(pl.col("row") == first).then(None).otherwise(pl.col("prediction"))
        ).drop("row")
        spec = load(tmp_path, SHARE + "repeats: sum\n")
        found = trackperm.compare(baseline, holed, spec, missing="drop")
        without = [side.filter(pl.col("id") != 2) for side in (baseline, candidate)]
        assert found.pvalue == trackperm.compare(*without, spec).pvalue
        assert (found.n_examples, found.pairing.n_dropped) == (6, 1)

    def test_labels_of_one_example(self, tmp_path: Path) -> None:
        baseline = pl.DataFrame({"id": [1, 1], "prediction": [1, 2], "label": [1, 2]})
        spec = load(tmp_path, SHARE + "repeats: sum\n")
        assert trackperm.compare(baseline, baseline.reverse(), spec).pairing.labels_checked
        with pytest.raises(PairingError, match="`label` differs between the runs on 1 of 1"):
            trackperm.compare(baseline, baseline.with_columns(label=pl.Series([1, 1])), spec)

    def test_labels_beside_examples_that_are_dropped(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        rows = [
            {"id": i, "prediction": 0, "label": int(rng.integers(9))} for i in range(200) for _ in range(20)
        ]
        baseline = pl.DataFrame(rows[:-20]).sample(fraction=1, shuffle=True, seed=1)
        candidate = pl.DataFrame(rows[20:]).sample(fraction=1, shuffle=True, seed=2)
        found = trackperm.compare(
            baseline, candidate, load(tmp_path, SHARE + "repeats: sum\n"), missing="drop"
        )
        assert (found.n_examples, found.pairing.labels_checked, found.n_discordant) == (198, True, 0)

    def test_not_by_position(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="pairing by position cannot find them"):
            compared(self.repeated(0), load(tmp_path, SHARE + "repeats: sum\n"), by_position=True)

    def test_within_clusters(self, tmp_path: Path) -> None:
        baseline, candidate = (
            [{**row, "group": row["id"] // 2} for row in side] for side in self.repeated(1)
        )
        spec = load(tmp_path, SHARE + "repeats: sum\ncluster: group\n")
        found = compared((baseline, candidate), spec)
        wanted = pvalue(baseline, candidate, "group", lambda u, v: accuracy(u) - accuracy(v))
        assert found.pvalue == pytest.approx(float(wanted), rel=1e-12)
        assert found.n_examples == 4
