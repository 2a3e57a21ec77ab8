"""Classes that look like numbers, in files that know no types: versions are text, and numbers are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import trackperm
from trackperm.comparison import Comparison
from trackperm.errors import InputError, PairingError

VERSIONS = ["1.10", "1.1", "1.2", "2.0"] * 10


class Runs:
    """CSV files of runs on the same examples."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._n = 0

    def write(
        self, predictions: Sequence[object], labels: Sequence[object], **columns: Sequence[object]
    ) -> Path:
        frame = {"id": range(len(labels)), "prediction": predictions, "label": labels, **columns}
        path = self._folder / f"{self._n}.csv"
        self._n += 1
        rows = [",".join(map(str, row)) for row in zip(*frame.values(), strict=True)]
        path.write_text("\n".join([",".join(frame), *rows, ""]))
        return path


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def texts(comparison: Comparison) -> list[str]:
    return [note for note in comparison.pairing.notes if "compared as text" in note]


@pytest.mark.parametrize("statistic", ["accuracy", "macro_f1"])
def test_versions_are_not_merged(runs: Runs, statistic: str) -> None:
    rounded = [version.replace("1.10", "1.1") for version in VERSIONS]
    found = trackperm.compare(runs.write(VERSIONS, VERSIONS), runs.write(rounded, VERSIONS), statistic)
    assert (found.n_discordant, found.verdict) == (10, "worse")
    of_label, of_prediction = texts(found)
    assert "`label` of" in of_label
    assert "`1.1` and `1.10`, the same number written in two ways: `label`, `prediction` are" in of_label
    assert "`prediction` of" in of_prediction


def test_one_column_of_one_run_suffices_to_read_text(runs: Runs) -> None:
    labels = ["1.1", "1.2"] * 10
    tells, other = runs.write(["1.10", "1.1"] * 10, labels), runs.write(["1.1", "1.2"] * 10, labels)
    for files, verdict in (((tells, other), "better"), ((other, tells), "worse")):
        found = trackperm.compare(*files, "accuracy")
        assert (found.n_discordant, found.verdict) == (20, verdict)


@pytest.mark.parametrize(
    ("one", "two"), [("1", "1.0"), ("1.0", "1.00"), ("100", "1e2"), (".5", "0.5"), ("0.5", "5e-1")]
)
def test_every_pair_of_ways(runs: Runs, one: str, two: str) -> None:
    labels = [one, two] * 10
    found = trackperm.compare(runs.write(labels, labels), runs.write([one] * 20, labels), "accuracy")
    assert (found.n_discordant, len(texts(found))) == (10, 2)


def test_floats_of_pandas_equal_integers(tmp_path: Path) -> None:
    labels = [1, 2, 3, 4] * 10
    frame = pd.DataFrame({"id": range(40), "prediction": [1.0] * 40, "label": labels})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.assign(prediction=pd.Series(labels, dtype=float)).to_csv(tmp_path / "b.csv", index=False)
    frame.assign(prediction=labels).to_csv(tmp_path / "c.csv", index=False)
    for name in "bc":
        found = trackperm.compare(tmp_path / "a.csv", tmp_path / f"{name}.csv", "accuracy")
        assert (found.baseline_score, found.candidate_score, texts(found)) == (0.25, 1.0, [])


def test_scores_are_numbers_however_they_are_written(runs: Runs) -> None:
    labels = ["a", "b"] * 10
    files = [runs.write(labels, labels, score=scores) for scores in (["0.50", "0.5"] * 10, ["1", "1.0"] * 10)]
    found = trackperm.compare(*files, "mean")
    assert (found.baseline_score, found.candidate_score, texts(found)) == (0.5, 1.0, [])


def test_weights_are_numbers_where_labels_are_text(runs: Runs, tmp_path: Path) -> None:
    spec = tmp_path / "weighted.yaml"
    spec.write_text(
        "name: weighted\ncounts:\n  won: where(prediction == label, weight, 0)\n  all: weight\n"
        "score: won / all\n"
    )
    weights = ["2", "2.0", "2.00", "2"] * 10
    rounded = [version.replace("1.10", "1.1") for version in VERSIONS]
    files = [runs.write(predictions, VERSIONS, weight=weights) for predictions in (VERSIONS, rounded)]
    found = trackperm.compare(*files, spec)
    assert (found.baseline_score, found.candidate_score) == (1.0, 0.75)
    assert all("`weight`" not in note for note in texts(found))


def test_a_difference_of_numbers_is_one(runs: Runs, tmp_path: Path) -> None:
    spec = tmp_path / "near.yaml"
    spec.write_text("name: near\ncounts:\n  near: abs(prediction - label) < 1\n  n: 1\nscore: near / n\n")
    labels = ["1.10", "1.1"] * 10
    found = trackperm.compare(runs.write(labels, labels), runs.write(["9"] * 20, labels), spec)
    assert (found.baseline_score, found.candidate_score, texts(found)) == (1.0, 0.0, [])


def test_numbers_if_the_other_run_has_types(runs: Runs, tmp_path: Path) -> None:
    labels = ["1.10", "1.1"] * 10
    typed = pl.DataFrame({"id": map(str, range(20)), "prediction": [1.1] * 20, "label": [1.1] * 20})
    found = trackperm.compare(runs.write(labels, labels), typed, "accuracy")
    assert (found.n_discordant, texts(found)) == (0, [])


def test_labels_that_differ_only_as_text_are_refused(runs: Runs) -> None:
    """Also where the statistic does not read them."""
    changed = [version.replace("1.10", "1.1") for version in VERSIONS]
    scores: dict[str, Any] = {"score": [1, 0] * 20}
    with pytest.raises(PairingError, match=r"'1\.10'[\s\S]*'1\.1'"):
        trackperm.compare(
            runs.write(VERSIONS, VERSIONS, **scores), runs.write(VERSIONS, changed, **scores), "mean"
        )


def test_strata_are_not_merged(runs: Runs, tmp_path: Path) -> None:
    spec = tmp_path / "by_version.yaml"
    spec.write_text(
        "name: by_version\nstrata: version\ncounts:\n  correct: prediction == label\n  n: 1\n"
        "score: correct / n\n"
    )
    labels = ["a", "b"] * 20
    files = [runs.write(p, labels, version=VERSIONS) for p in (labels, ["a"] * 40)]
    found = trackperm.compare(*files, spec)
    assert list(found.statistic.weights) == ["1.1", "1.10", "1.2", "2.0"]


def test_ids_are_text(tmp_path: Path) -> None:
    for name, answer in (("a", "x"), ("b", "y")):
        rows = [f"{id_},{answer},y" for id_ in ("1.10", "1.1", "1", "1.0", "01")]
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,prediction,label", *rows, ""]))
    found = trackperm.compare(tmp_path / "a.csv", tmp_path / "b.csv")
    assert (found.n_examples, found.n_discordant) == (5, 5)


def test_text_on_a_leaderboard(runs: Runs) -> None:
    rounded = [version.replace("1.10", "1.1") for version in VERSIONS]
    files = {"whole": runs.write(VERSIONS, VERSIONS), "rounded": runs.write(rounded, VERSIONS)}
    board = trackperm.leaderboard({name: str(path) for name, path in files.items()}, "accuracy")
    assert {row.name: row.score for row in board.rows} == {"whole": 1.0, "rounded": 0.75}


def test_integers_beside_words_are_text(runs: Runs) -> None:
    """An answer `N/A` makes the predictions text; the labels are still integers of the same classes."""
    labels = [1, 2, 3, 10] * 5
    old, new = runs.write([*labels[:-1], "N/A"], labels), runs.write(labels[1:] + labels[:1], labels)
    for statistic in ("accuracy", "exact_match", "macro_recall"):
        found = trackperm.compare(old, new, statistic)
        assert (found.n_discordant, found.candidate_score) == (19, 0.0)
        assert texts(found) == ["`label` is compared as text, as is `prediction`"]


@pytest.mark.parametrize("number", ["1.0", "01", "1e0", " 1", "+1"])
def test_integers_beside_words_and_other_numbers_are_refused(runs: Runs, number: str) -> None:
    """As text, `1.0` would not equal the label `1`."""
    labels = [1, 2, 3, 10] * 5
    old, new = runs.write([number, *labels[1:-1], "N/A"], labels), runs.write(labels, labels)
    with pytest.raises(InputError, match="text column `prediction` is compared with integer column `label`"):
        trackperm.compare(old, new, "accuracy")


def test_integers_beside_words_alone_are_refused(runs: Runs) -> None:
    """Predictions such as `class_1` would all be wrong."""
    labels = [1, 2, 3, 10] * 5
    old, new = runs.write([f"class_{label}" for label in labels], labels), runs.write(labels, labels)
    with pytest.raises(InputError, match="text column `prediction` is compared with integer column `label`"):
        trackperm.compare(old, new, "accuracy")


@pytest.mark.parametrize("positive", [None, 1, 0])
def test_a_positive_class_beside_words(runs: Runs, positive: int | None) -> None:
    """Regression: `positive=1` was no text, and `positive='1'` no label."""
    labels = [0, 1, 1, 0, 1] * 4
    old, new = runs.write([*labels[:-2], 1, "N/A"], labels), runs.write([*labels[1:], 0], labels)
    options: dict[str, Any] = {} if positive is None else {"parameters": {"positive": positive}}
    found = trackperm.compare(old, new, "f1", **options)
    wanted = 1 if positive is None else positive
    for score, predictions in (
        (found.baseline_score, [*labels[:-2], 1, "N/A"]),
        (found.candidate_score, [*labels[1:], 0]),
    ):
        hits = sum(x == y == wanted for x, y in zip(predictions, labels, strict=True))
        assert score == 2 * hits / (predictions.count(wanted) + labels.count(wanted))
