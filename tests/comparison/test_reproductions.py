"""Reproductions of older programs, against plain Python, the program itself, and all shuffles."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from support.command_line import call_trackperm

from trackperm.comparison import Comparison
from trackperm.comparison.compare import compare
from trackperm.comparison.reproductions import reproduce
from trackperm.errors import CapacityError, InputError

BRACKETS = {
    "id": list(range(12)),
    "gold": [5, 7, 3, 9, 6, 4, 8, 7, 5, 6, 9, 3],
}
BASELINE = {
    **BRACKETS,
    "matched": [4, 6, 3, 7, 5, 3, 6, 6, 4, 3, 8, 2],
    "test": [5, 7, 4, 8, 6, 4, 8, 7, 5, 5, 9, 3],
}
CANDIDATE = {
    **BRACKETS,
    "matched": [5, 7, 3, 6, 6, 4, 7, 5, 5, 5, 8, 3],
    "test": [5, 8, 3, 8, 7, 4, 8, 7, 6, 6, 9, 3],
}


def compared(statistic: str = "bracket_recall", swap: bool = False) -> Comparison:
    runs = pl.DataFrame(BASELINE), pl.DataFrame(CANDIDATE)
    return compare(*(runs[::-1] if swap else runs), statistic)


def all_one_tailed(swap: bool) -> float:
    """The share of all shuffles whose recall, from two decimals, differs at least as observed."""
    a, b = (CANDIDATE, BASELINE) if not swap else (BASELINE, CANDIDATE)
    matched = [
        [float(f"{100 * m / g:.2f}") / 100 * g for m, g in zip(run["matched"], run["gold"], strict=True)]
        for run in (a, b)
    ]
    gold = sum(BRACKETS["gold"])
    moves = [x - y for x, y in zip(*matched, strict=True)]
    observed = sum(moves) / gold
    extreme = 0
    for signs in itertools.product((1, -1), repeat=len(moves)):
        drawn = sum(s * m for s, m in zip(signs, moves, strict=True)) / gold
        extreme += drawn >= observed - 1e-12 if observed >= 0 else drawn <= observed + 1e-12
    return extreme / 2 ** len(moves)


@pytest.mark.parametrize("swap", [False, True])
def test_bikel_estimates_one_tail_from_two_decimals(swap: bool) -> None:
    found = reproduce("bikel", compared(swap=swap), n_shuffles=200_000, seed=3)
    assert found is not None
    expected = all_one_tailed(swap)
    assert 0.01 < expected < 0.2
    assert found.pvalue == (found.n_extreme + 1) / 200_001
    # ties with the observed difference may be lost in floating point, as in the program itself
    assert found.pvalue < expected + 5 * (expected / 200_000) ** 0.5
    assert found.pvalue > 0.3 * expected


def test_bikel_names_the_exact_tail_and_both_differences() -> None:
    comparison = compared()
    found = reproduce("bikel", comparison)
    assert (found.n_shuffles, found.seed) == (10_000, 0)
    one_tailed = compare(
        pl.DataFrame(BASELINE), pl.DataFrame(CANDIDATE), "bracket_recall", alternative="greater"
    )
    assert f"of that tail is {one_tailed.pvalue:.4g}" in found.gaps[0]
    assert f"and {comparison.difference:+.6f} by the counts" in found.gaps[1]
    assert found.lines()[0].startswith("as Bikel's comparator: p = ")
    assert found == reproduce("bikel", comparison)
    assert found != reproduce("bikel", comparison, seed=1)


def test_bikel_knows_recall_and_precision_alone() -> None:
    assert reproduce("bikel", compared("bracket_precision")) is not None
    assert reproduce("bikel", compared("bracket_f1")) is None


def test_sacrebleu_leaves_out_ties() -> None:
    run = {"id": [1, 2, 3, 4], "label": [1, 1, 1, 1]}
    baseline, candidate = {**run, "prediction": [0, 0, 0, 0]}, {**run, "prediction": [1, 1, 1, 1]}
    found = reproduce("sacrebleu", compare(pl.DataFrame(baseline), pl.DataFrame(candidate)), n_shuffles=999)
    assert (found.n_extreme, found.pvalue) == (0, 0.001)  # exactly p = 2/16
    ties = int(found.gaps[0].partition("here ")[2].partition(",")[0])
    assert 80 < ties < 170  # a binomial of 999 and 1/8


@pytest.mark.parametrize(
    ("options", "said"),
    [({"n_shuffles": 0}, "expected at least 1"), ({"n_shuffles": 2**30}, "more than 2048 MiB")],
)
def test_unusable_numbers_of_shuffles(options: dict[str, int], said: str) -> None:
    with pytest.raises((InputError, CapacityError), match=said):
        reproduce("sacrebleu", compared(), **options)


def test_other_contrasts_are_refused(tmp_path: Path) -> None:
    spec = tmp_path / "ratio.yaml"
    spec.write_text("counts: {m: matched, g: gold}\nscore: m / g\ncontrast: log ratio\n")
    comparison = compare(pl.DataFrame(BASELINE), pl.DataFrame(CANDIDATE), spec)
    with pytest.raises(InputError, match="needs a difference of two scores"):
        reproduce("sacrebleu", comparison)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "a.csv", tmp_path / "b.csv"
    for path, columns in zip(paths, (BASELINE, CANDIDATE), strict=True):
        pl.DataFrame(columns).write_csv(path)
    return paths


def test_command_line(files: tuple[Path, Path], tmp_path: Path) -> None:
    command = ["compare", *map(str, files), "--compat", "bikel"]
    printed = call_trackperm(tmp_path, *command).stdout
    blocks = printed.split("\n\n")
    assert [block.split()[0] for block in blocks] == ["bracket_recall", "bracket_precision", "bracket_f1"]
    assert ["as Bikel's comparator" in block for block in blocks] == [True, True, False]
    results = json.loads(call_trackperm(tmp_path, *command, "--format", "json", "--seed", "5").stdout)
    assert [result.get("compat", {}).get("seed") for result in results] == [5, 5, None]
    (tmp_path / "b.csv").write_text("id,prediction,label\n1,a,a\n2,b,a\n")
    said = call_trackperm(tmp_path, "compare", "b.csv", "b.csv", "--compat", "bikel").stderr
    assert "`--compat bikel` reads evalb's output; `b.csv` is CSV or TSV" in said


@pytest.mark.extended
def test_sacrebleu_itself_gives_the_same_p(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    words = [f"w{i}" for i in range(40)]
    reference = [" ".join(rng.choice(words, size=rng.integers(8, 16))) for _ in range(60)]

    def system(rate: float) -> list[str]:
        return [
            " ".join(word if rng.random() < rate else str(rng.choice(words)) for word in line.split())
            for line in reference
        ]

    baseline, candidate = system(0.8), system(0.82)
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    test = PairedTest(
        [("baseline", baseline), ("candidate", candidate)],
        {"BLEU": metric},
        references=[reference],
        test_type="ar",
        n_samples=2_000,
    )
    theirs = test()[1]["BLEU"][1]
    runs = [pl.DataFrame({"prediction": lines, "label": reference}) for lines in (baseline, candidate)]
    found = reproduce("sacrebleu", compare(*runs, "bleu", by_position=True), n_shuffles=2_000)
    assert 0.001 < found.pvalue < 0.99
    assert found.pvalue == pytest.approx(theirs.p_value, abs=1e-12)
