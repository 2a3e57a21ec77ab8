"""Tables with a column for every system, as published: two columns of one file against each other."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from support import reference_data
from support.cli_comparison import check_reference, compared

FOLDER = reference_data.DATA / "reference_pvalues"
TER = FOLDER / "sacrebleu_wmt17/ter_edits_derived.csv"
pytestmark = reference_data.needs_data


def named(source: str) -> list[str]:
    return [name for name in reference_data.ids() if name.startswith(f"{source}/")]


def columns(file: Path, candidate: str, baseline: str) -> tuple[str, str]:
    return f"{file}::{baseline}", f"{file}::{candidate}"


@pytest.mark.parametrize("identifier", reference_data.spread(named("urbano"), 2))
def test_topics_of_trec(identifier: str) -> None:
    candidate, _, baseline = identifier.partition("/")[2].partition("__vs__")
    collection, _, candidate = candidate.rpartition("_")
    files = columns(FOLDER / f"urbano_trec/{collection}.csv", candidate, baseline)
    check_reference(identifier, *files, "-s", "mean", "--by-position")


@pytest.mark.sample(2)
@pytest.mark.parametrize("identifier", reference_data.spread(named("wmt17_ter"), 2))
def test_edits_of_translations(identifier: str) -> None:
    """Corpus TER is edits over words of the references, the same for all: the p-value is that of the sum."""
    with TER.open(encoding="utf-8") as file:
        header = next(csv.reader(file))
    systems = [
        next(name for name in header if name.startswith(f"newstest2017.{system}."))
        for system in identifier.partition("/")[2].split("__vs__")
    ]
    files = columns(TER, *systems)
    summed = check_reference(identifier, *files, "-s", "mean", "--by-position")
    pooled = compared(
        *files, "-s", "pooled_error_rate", "--column", "errors=score", "--column", "words=ref_words",
        "--by-position",
    )  # fmt: skip
    assert pooled["pvalue"] == pytest.approx(summed["pvalue"], rel=1e-9)
    expected = reference_data.reference(identifier).observed
    assert pooled["difference"] == pytest.approx(float(expected / 52_833))


@pytest.mark.parametrize(
    ("identifier", "file", "candidate", "baseline", "pairing"),
    [
        ("darwin_zea_mays", "classics/ZeaMays.csv", "cross", "self", ("--id", "rownames")),
        ("lakes_mlxtend", "classics/lakes_mlxtend.csv", "1980", "1990", ("--id", "lake")),
        ("ipat_pesarin_salmaso", "pesarin_salmaso/ipat.csv", "YB", "YA", ("--by-position",)),
    ],
)
def test_classics(
    identifier: str, file: str, candidate: str, baseline: str, pairing: tuple[str, ...]
) -> None:
    files = columns(FOLDER / file, candidate, baseline)
    check_reference(f"classic/{identifier}", *files, "-s", "mean", *pairing)


def test_sleep_with_one_group_below_the_other(tmp_path: Path) -> None:
    lines = (FOLDER / "classics/sleep.csv").read_text(encoding="utf-8").splitlines()
    for group in "12":
        rows = [line for line in lines[1:] if line.split(",")[2] == group]
        (tmp_path / f"{group}.csv").write_text("\n".join([lines[0], *rows]) + "\n", encoding="utf-8")
    files = (tmp_path / "1.csv", tmp_path / "2.csv")
    check_reference("classic/student_sleep", *files, "-s", "mean", "--id", "ID", "--column", "score=extra")


def test_a_pair_without_a_value_is_dropped(tmp_path: Path) -> None:
    """As R's documentation of exactRankTests has it."""
    path = tmp_path / "pairs.csv"
    path.write_text("id,x,y\n1,1,1\n2,2,2\n3,3,1\n4,4,2\n5,,3\n")
    files = columns(path, "x", "y")
    check_reference("exactRankTests/na_dropped", *files, "-s", "mean", "--missing", "drop")
