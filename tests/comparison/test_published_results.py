"""Published results, from raw data to the output of the command line."""

from __future__ import annotations

import csv
import json
import re
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support import reference_data
from support.command_line import invoke

import trackperm

pytestmark = reference_data.needs_data

AEON = [name for name in reference_data.ids() if name.startswith("aeon_ucr/")]
FOLDS = [name for name in AEON if "/ACSF1_30_resamples/" in name]
FOLD_WARNING = "folds: the training sets of folds or resamples overlap"


def command_line(*arguments: str | Path) -> str:
    return invoke("compare", *arguments)


def accuracies(classifier: str) -> dict[str, dict[str, str]]:
    """Accuracy by data set and resample, as published."""
    path = reference_data.DATA / f"cv_folds/aeon_ucr/{classifier}_accuracy.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return {row.pop("Resamples:"): row for row in csv.DictReader(file)}


def score_file(path: Path, unit: str, scores: dict[str, str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([(unit, "score"), *scores.items()])
    return path


def runs_of(identifier: str, folder: Path, n_folds: int = 30) -> list[Path]:
    """Baseline and candidate as CSV files, a row for each resample of ACSF1 or for each data set."""
    _, kind, systems = identifier.split("/")
    candidate, _, baseline = systems.partition("__vs__")
    files = []
    for system in (baseline, candidate):
        table = accuracies(system)
        if kind == "ACSF1_30_resamples":
            scores = dict(list(table["ACSF1"].items())[:n_folds])
            files.append(score_file(folder / f"{system}.csv", "fold", scores))
        else:
            scores = {name: row["0"] for name, row in table.items()}
            files.append(score_file(folder / f"{system}.csv", "data set", scores))
    return files


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "alternative",
    ["two-sided", *(pytest.param(side, marks=pytest.mark.slow) for side in ("greater", "less"))],
)
@pytest.mark.parametrize("identifier", AEON)
def test_classifiers_over_folds_and_data_sets(tmp_path: Path, identifier: str, alternative: Any) -> None:
    reference = reference_data.reference(identifier)
    of_folds = identifier in FOLDS
    options = ["--id", "fold"] if of_folds else ["--id", "data set", "--resolution", "0.0001"]
    options += ["-s", "mean", "--alternative", alternative, "--format", "json"]
    (found,) = json.loads(command_line(*runs_of(identifier, tmp_path), *options))
    wanted = reference.pvalue(alternative)
    assert abs(Fraction(found["pvalue"]) - wanted) <= wanted * Fraction(found["error_bound"])
    assert found["error_bound"] < 1e-10
    assert found["n_discordant"] == reference.n_discordant
    scale = 100 if of_folds else 10_000
    assert found["difference"] == pytest.approx(float(reference.observed / scale / reference.n_examples))
    assert any(note.startswith(FOLD_WARNING) for note in found["pairing"]["notes"]) is of_folds


def test_folds_are_warned_of_in_print(tmp_path: Path) -> None:
    printed = command_line(*runs_of(FOLDS[0], tmp_path), "--id", "fold", "-s", "mean")
    assert "30 examples (28 discordant" in printed
    assert sum(line.startswith(FOLD_WARNING) for line in printed.splitlines()) == 1


@pytest.mark.sample(2)
@pytest.mark.parametrize("n_folds", [5, 10])
@pytest.mark.parametrize("identifier", FOLDS)
def test_fold_test_of_cs478_by_exhaustion(tmp_path: Path, identifier: str, n_folds: int) -> None:
    """n / 2^k, where n counts the signs with which the mean difference is at least the observed one."""
    files = runs_of(identifier, tmp_path, n_folds)
    tables = [dict(csv.reader(path.read_text(encoding="utf-8").splitlines()[1:])) for path in files]
    differences = [Fraction(tables[1][fold]) - Fraction(tables[0][fold]) for fold in tables[0]]
    observed = abs(sum(differences))
    n = sum(
        abs(sum(sign * d for sign, d in zip(signs, differences, strict=True))) >= observed
        for signs in product([1, -1], repeat=n_folds)
    )
    options = ["--id", "fold", "-s", "mean"]
    (found,) = json.loads(command_line(*files, *options, "--method", "enumerate", "--format", "json"))
    assert found["pvalue"] == n / 2**n_folds
    printed = command_line(*files, *options)
    assert FOLD_WARNING in printed
    assert ("no difference can be shown" in printed) is (n_folds == 5)


ALIGNED = re.compile(r'(?:^|:)([CSDI]),("(?:[^"\\]|\\.)*")?,("(?:[^"\\]|\\.)*")?')
WORD_ERRORS = """\
name: word_errors
greater_is_better: false
counts: {errors: errors, words: words}
score: errors / words
"""


def utterances(name: str) -> pl.DataFrame:
    """What sclite aligned: errors and words as numbers, words of the reference and of the system as lists.

    A word that it calls correct, such as an optional one, stands in both as the system has it.
    """
    path = reference_data.DATA / "structured_counts/sctk" / name
    rows = []
    found = re.findall(r'<PATH id="([^"]*)".*\n(.*)\n?</PATH>', path.read_text(encoding="latin-1"))
    for utterance, alignment in found:
        parts = ALIGNED.findall(alignment)
        rows.append(
            {
                "id": utterance,
                "errors": sum(kind != "C" for kind, _, _ in parts),
                "words": sum(kind != "I" for kind, _, _ in parts),
                "label": [system if kind == "C" else word for kind, word, system in parts if kind != "I"],
                "prediction": [system for kind, _, system in parts if kind != "D"],
            }
        )
    return pl.DataFrame(rows)


def test_word_errors_of_sclite(tmp_path: Path) -> None:
    """9 and 7 errors in `test1a.stats.mapsswe`; the reference has 11 words."""
    spec = tmp_path / "word_errors.yaml"
    spec.write_text(WORD_ERRORS, encoding="utf-8")
    files = []
    for name in ("file2.sgml", "file1.sgml"):
        files.append(tmp_path / f"{name}.jsonl")
        utterances(name).drop("label").write_ndjson(files[-1])
    printed = command_line(*files, "-s", spec)
    assert "baseline 0.6364   candidate 0.8182   difference +0.1818\np = 0.5  exact" in printed
    reference = reference_data.reference("sctk/itmono_8__vs__itword_20")
    assert reference.pvalue("two-sided") == Fraction(1, 2)


def test_identical_systems_of_sclite() -> None:
    """883 errors each; every test of `Ensemble.stats.unified` gives 1.000."""
    first, second = (utterances(f"{name}.ctm.filt.sgml") for name in ("lvc_hyp", "lvc_hyp2"))
    assert len(first) == 58
    found = trackperm.compare(first, second, "word_error_rate")
    n_words = first["label"].list.len().sum()
    assert found.baseline_score == found.candidate_score == 883 / n_words
    assert first["errors"].sum() == second["errors"].sum() == 883
    assert (found.pvalue, found.n_discordant, found.verdict) == (1.0, 0, "undecided")
