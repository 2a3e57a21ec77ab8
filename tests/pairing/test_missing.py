from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.specs import load

import trackperm
from trackperm.errors import InputError, PairingError, SpecError
from trackperm.pairing.pair import pair_in_memory as pair
from trackperm.statistic import load_statistic
from trackperm.statistic.written_spec import written_spec
from trackperm.tables.table import ExampleTable

SHARE = "counts: {correct: prediction == label, n: 1}\nscore: correct / n\n"
RECALL = """
counts: {tp: (prediction == 1) & (label == 1), actual: label == 1}
score: tp / actual
undefined: 0
"""


def full(seed: int, n: int = 14) -> tuple[pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=n)
    baseline, candidate = (np.where(rng.random(n) < rate, label, 1 - label) for rate in (0.5, 0.8))
    return (
        pl.DataFrame({"id": range(n), "prediction": baseline, "label": label}),
        pl.DataFrame({"id": range(n), "prediction": candidate, "label": label}),
    )


def without(frame: pl.DataFrame, absent: list[int], null: list[int]) -> pl.DataFrame:
    prediction = pl.when(pl.col("id").is_in(null)).then(None).otherwise(pl.col("prediction"))
    return frame.filter(~pl.col("id").is_in(absent)).with_columns(prediction=prediction)


def failed(frame: pl.DataFrame, ids: list[int]) -> pl.DataFrame:
    """Write a prediction that is not a label where the prediction is missing."""
    return frame.with_columns(
        prediction=pl.when(pl.col("id").is_in(ids)).then(7).otherwise(pl.col("prediction"))
    )


class TestCountedAsWrong:
    @pytest.mark.parametrize("missing", ["missing: {tp: 0, actual: label == 1}\n"])
    @pytest.mark.parametrize("seed", range(3))
    def test_as_a_prediction_that_is_not_a_label(self, tmp_path: Path, missing: str, seed: int) -> None:
        baseline, candidate = full(seed)
        holed = without(baseline, [0, 3], [5]), without(candidate, [3 + seed, 1], [2, 5, 6])
        # Examples that neither run has are unknown.
        wanted = failed(baseline, [0, 3, 5]), failed(candidate, [3 + seed, 1, 2, 5, 6])
        wanted = tuple(side.filter(pl.col("id") != 3) if seed == 0 else side for side in wanted)
        for text, declared in ((RECALL, missing), (SHARE, "missing: {correct: 0, n: 1}\n")):
            spec = load(tmp_path, text + declared)
            found = trackperm.compare(*holed, spec, missing="wrong")
            other = trackperm.compare(*wanted, spec)
            assert found.pvalue == other.pvalue
            assert found.difference == other.difference
            assert found.n_examples == other.n_examples == len(wanted[0])
            assert (found.baseline_score, found.candidate_score) == (
                other.baseline_score,
                other.candidate_score,
            )

    def test_exchanging_the_runs_changes_the_sign(self, tmp_path: Path) -> None:
        baseline, candidate = full(4)
        holed = without(baseline, [0, 3], [5]), without(candidate, [1], [2])
        spec = load(tmp_path, SHARE + "missing: {correct: 0, n: 1}\n")
        there, back = (trackperm.compare(*sides, spec, missing="wrong") for sides in (holed, holed[::-1]))
        assert (there.pvalue, there.difference) == (back.pvalue, -back.difference)

    def test_note_signature_and_document(self, tmp_path: Path) -> None:
        baseline, candidate = full(0)
        spec = load(tmp_path, SHARE + "missing: {correct: 0, n: 1}\n")
        found = trackperm.compare(
            without(baseline, [0], []), without(candidate, [], [2, 4]), spec, missing="wrong"
        )
        note = "missing predictions counted as wrong: 1 of the baseline, 2 of the candidate"
        assert note in found.pairing.notes
        assert (found.pairing.n_paired, found.pairing.n_dropped, found.pairing.missing) == (14, 0, "wrong")
        assert "|missing:wrong|" in found.signature
        assert "\nmissing:\n  correct: 0\n  n: 1\n" in written_spec(found.statistic)
        nothing = trackperm.compare(baseline, candidate, spec, missing="wrong")
        assert nothing.pairing.notes == ()
        assert nothing.pvalue == trackperm.compare(baseline, candidate, spec).pvalue

    def test_decimal_counts(self, tmp_path: Path) -> None:
        text = "counts: {total: score, n: 1}\nmissing: {total: -2, n: 1}\nscore: total / n\n"
        sides = [
            pl.DataFrame({"id": [1, 2, 3], "score": scores})
            for scores in ([0.5, 0.25, 1.0], [1.5, None, 2.0])
        ]
        counts = trackperm.compare(*sides, load(tmp_path, text), missing="wrong")
        assert counts.candidate_score == 0.5
        assert counts.pairing.notes[-1].endswith("0 of the baseline, 1 of the candidate")

    def test_by_position(self, tmp_path: Path) -> None:
        sides = [pl.DataFrame({"score": scores}) for scores in ([1, 0, 1], [1, None, 0])]
        text = "counts: {total: score, n: 1}\nmissing: {total: 0, n: 1}\nscore: total / n\n"
        found = trackperm.compare(*sides, load(tmp_path, text), missing="wrong", by_position=True)
        assert (found.n_examples, found.candidate_score) == (3, 1 / 3)

    def test_clusters_and_repeats(self, tmp_path: Path) -> None:
        rows = {"id": [1, 1, 2, 3], "group": ["a", "a", "a", "b"], "label": [1, 1, 1, 1]}
        baseline = pl.DataFrame({**rows, "prediction": [1, 0, 1, 1]})
        candidate = pl.DataFrame({**rows, "prediction": [1, 1, 0, 0]}).filter(pl.col("id") != 1)
        spec = load(
            tmp_path, SHARE + "missing: {correct: 0, n: 1}\ncluster: group\nrepeats: sum\nstrata: group\n"
        )
        found = trackperm.compare(baseline, candidate, spec, missing="wrong")
        assert (found.n_examples, found.candidate_score) == (2, 0.0)
        assert found.baseline_score == pytest.approx((2 / 3 + 1) / 2)


class TestOfferedWrong:
    """Regression: `--missing wrong` was offered where it is refused for the same reason."""

    @pytest.mark.parametrize("missing", ["error", "wrong"])
    def test_not_without_a_label(self, missing: Any) -> None:
        baseline, candidate = full(0)
        lacks = candidate.with_columns(label=pl.when(pl.col("id") == 3).then(None).otherwise("label"))
        with pytest.raises(PairingError, match="has no value in `label`") as caught:
            trackperm.compare(baseline, lacks, "accuracy", missing=missing)
        assert "--missing drop" in caught.value.hint
        assert "--missing wrong" not in caught.value.hint

    def test_not_without_an_id(self) -> None:
        baseline, candidate = full(0)
        lacks = candidate.with_columns(id=pl.when(pl.col("id") == 3).then(None).otherwise("id"))
        with pytest.raises(PairingError, match="has no `id`") as caught:
            trackperm.compare(baseline, lacks, "accuracy")
        assert "--missing wrong" not in caught.value.hint

    def test_without_a_prediction(self) -> None:
        baseline, candidate = full(0)
        with pytest.raises(PairingError, match="have no value in `prediction`") as caught:
            trackperm.compare(baseline, without(candidate, [], [3, 4]), "accuracy")
        assert "`--missing wrong` counts the others as wrong" in caught.value.hint
        assert trackperm.compare(baseline, without(candidate, [], [3, 4]), "accuracy", missing="wrong")


class TestRefused:
    def test_a_statistic_without_counts_of_missing_predictions(self, tmp_path: Path) -> None:
        with pytest.raises(
            InputError, match="`spec` does not define the counts of a missing prediction"
        ) as caught:
            trackperm.compare(*full(0), load(tmp_path, SHARE), missing="wrong")
        assert "`missing: {correct: 0, n: 1}`" in str(caught.value.hint)

    @pytest.mark.parametrize("side", [0, 1])
    def test_an_example_without_a_label(self, tmp_path: Path, side: int) -> None:
        sides: list[Any] = list(full(0))
        sides[side] = sides[side].with_columns(label=pl.when(pl.col("id") == 3).then(None).otherwise("label"))
        with pytest.raises(PairingError, match=r"1 of 14 examples of .* has no value in `label`"):
            trackperm.compare(
                *sides, load(tmp_path, SHARE + "missing: {correct: 0, n: 1}\n"), missing="wrong"
            )

    def test_an_example_without_an_id(self) -> None:
        baseline, candidate = full(0)
        unknown = candidate.with_columns(id=pl.when(pl.col("id") == 3).then(None).otherwise("id"))
        with pytest.raises(PairingError, match=r"1 of 14 examples of `candidate` has no `id`"):
            trackperm.compare(baseline, unknown, "accuracy", missing="wrong")

    def test_labels_that_differ(self, tmp_path: Path) -> None:
        baseline, candidate = full(0)
        candidate = candidate.with_columns(label=1 - pl.col("label"))
        with pytest.raises(PairingError, match="`label` differs"):
            trackperm.compare(baseline, candidate, "accuracy", missing="wrong")

    def test_a_label_that_only_a_missing_prediction_needs(self, tmp_path: Path) -> None:
        text = "counts: {a: score}\nscore: a\nmissing: {a: label}\n"
        sides = [ExampleTable.from_native(pl.DataFrame({"id": [1], "score": [1]}), "x") for _ in range(2)]
        assert len(pair(*sides, load(tmp_path, text)).counts.frame) == 1
        with pytest.raises(InputError, match="needs columns `id`, `score`, `label`"):
            pair(*sides, load(tmp_path, text), missing="wrong")

    def test_types_of_the_label(self, tmp_path: Path) -> None:
        sides = [pl.DataFrame({"id": [1], "score": [1], "label": ["x"]}) for _ in range(2)]
        spec = load(tmp_path, "counts: {a: score}\nscore: a\nmissing: {a: label == 1}\n")
        with pytest.raises(SpecError, match=r"spec.yaml:3:14: text column `label` is compared with"):
            trackperm.compare(*sides, spec, missing="wrong")

    def test_refused_by_default(self) -> None:
        baseline, candidate = full(0)
        with pytest.raises(PairingError, match="have no partner"):
            trackperm.compare(baseline, without(candidate, [1], []), load_statistic("accuracy"))
