"""The worst and the best case of predictions that are missing."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.specs import load

import trackperm
from trackperm.errors import InputError, SpecError
from trackperm.report import description, text
from trackperm.statistic import builtin_names, load_statistic
from trackperm.statistic.written_spec import written_spec

LABELS = [0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0]
BASELINE = [0, 1, 0, 0, None, 0, 1, 1, None, 0, 1, 0]
CANDIDATE = [0, 1, 1, None, 1, 1, 0, None, 0, 1, None, 0]


def run(prediction: list[int | None]) -> pl.DataFrame:
    return pl.DataFrame({"id": range(len(prediction)), "prediction": prediction, "label": LABELS})


def filled(prediction: list[int | None], *, right: bool) -> pl.DataFrame:
    values = [
        (label if right else 1 - label) if value is None else value
        for value, label in zip(prediction, LABELS, strict=True)
    ]
    return run(values)


@pytest.mark.parametrize("name", ["accuracy", "recall", "f1", "balanced_accuracy", "error_rate"])
def test_one_run_is_all_wrong_and_the_other_all_right(name: str) -> None:
    found = trackperm.compare(run(BASELINE), run(CANDIDATE), name, missing="bounds")
    worst = trackperm.compare(filled(BASELINE, right=True), filled(CANDIDATE, right=False), name)
    best = trackperm.compare(filled(BASELINE, right=False), filled(CANDIDATE, right=True), name)
    cases = {case.missing: case for case in found.cases}
    for case, wanted in (("worst", worst), ("best", best)):
        assert cases[case].pvalue == pytest.approx(wanted.pvalue, rel=1e-12)
        assert cases[case].difference == pytest.approx(wanted.difference, abs=1e-15)
        one = trackperm.compare(run(BASELINE), run(CANDIDATE), name, missing=case)
        assert one.pvalue == cases[case].pvalue
        assert one.cases == ()
    assert found.pvalue == max(worst.pvalue, best.pvalue)


BINARY = ["f1", "mcc"]
MORE = ["accuracy", "recall", "specificity", "precision", "f_beta", "jaccard"]


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *((name, 0) for name in BINARY),
        *(pytest.param(name, 0, marks=pytest.mark.extended) for name in MORE),
        *(pytest.param(name, seed, marks=pytest.mark.extended) for seed in (1, 2) for name in BINARY + MORE),
    ],
)
def test_bounds_contain_every_completion(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 24
    label = rng.integers(2, size=n)
    rates = (0.35, 0.95) if seed < 2 else (0.6, 0.7)
    sides = [np.where(rng.random(n) < rate, label, 1 - label).tolist() for rate in rates]
    holes = [(side, int(i)) for side in (0, 1) for i in rng.choice(n, 2, replace=False)]
    for side, i in holes:
        sides[side][i] = None
    frames = [pl.DataFrame({"id": range(n), "prediction": side, "label": label}) for side in sides]
    found = trackperm.compare(*frames, name, missing="bounds")
    low, high = (case.difference for case in found.cases)
    for values in itertools.product([0, 1], repeat=len(holes)):
        for value, (side, i) in zip(values, holes, strict=True):
            sides[side][i] = value
        filled_in = [pl.DataFrame({"id": range(n), "prediction": side, "label": label}) for side in sides]
        comparison = trackperm.compare(*filled_in, name)
        assert low - 1e-12 <= comparison.difference <= high + 1e-12
        assert found.depends_on_missing or comparison.verdict == found.verdict


def runs(n_missing: int, n: int = 40) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A baseline that is right on half of the examples; a candidate on 12 more, where it is known."""
    label = np.ones(n, dtype=int)
    right = np.arange(n) < n // 2
    better = right | (np.arange(n) >= n - 12)
    frames = [
        pl.DataFrame({"id": range(n), "prediction": side.astype(int), "label": label})
        for side in (right, better)
    ]
    return frames[0], frames[1].filter(pl.col("id") >= n_missing)


@pytest.mark.parametrize(
    ("n_missing", "verdicts", "verdict", "said"),
    [
        (0, ["better", "better"], "better", None),
        (2, ["better", "better"], "better", "the same verdict"),
        (9, ["undecided", "better"], "undecided", "the verdicts differ"),
    ],
)
def test_the_verdict_is_given_if_both_cases_agree(
    n_missing: int, verdicts: list[str], verdict: str, said: str | None
) -> None:
    comparison = trackperm.compare(*runs(n_missing), missing="bounds")
    assert [case.verdict for case in comparison.cases] == verdicts
    assert comparison.verdict == verdict
    noted = [line for line in text.lines(comparison) if line.startswith("missing predictions: worst case ")]
    assert [note.rpartition(": ")[2] for note in noted] == ([] if said is None else [said])
    assert ("do not decide the verdict" in description.markdown(comparison)) == comparison.depends_on_missing
    assert comparison.to_dict()["cases"][0]["verdict"] == verdicts[0]
    assert comparison.to_dict()["options"]["missing"] == "bounds"
    other = trackperm.compare(*runs(n_missing), missing="worst")
    assert comparison.key != other.key


def test_cases_that_contradict_each_other() -> None:
    """Both p-values are below the level, in opposite directions: the verdict stays open."""
    n = 24
    label = pl.Series("label", [1] * n)
    known = pl.DataFrame({"id": range(n), "prediction": [1, 0] * (n // 2), "label": label})
    baseline, candidate = known.filter(pl.col("id") < 12), known.filter(pl.col("id") >= 12)
    comparison = trackperm.compare(baseline, candidate, missing="bounds")
    assert [case.verdict for case in comparison.cases] == ["worse", "better"]
    assert max(case.pvalue for case in comparison.cases) < 0.05
    assert (comparison.verdict, comparison.marker) == ("undecided", "≈")


def test_worst_and_best_counts_must_be_declared(tmp_path: Path) -> None:
    counts = "counts: {hits: rank <= 3, n: 1}\nscore: hits / n\nmissing: {hits: 0, n: 1}\n"
    frame = pl.DataFrame({"id": range(4), "rank": [1, 5, None, 2]})
    for known, lacking in (("worst: {hits: 0, n: 1}\n", "best"), ("best: {hits: 1, n: 1}\n", "worst")):
        said = rf"does not define the counts of the {lacking} prediction[\s\S]*`{lacking}:`"
        with pytest.raises(InputError, match=said):
            trackperm.compare(frame, frame, load(tmp_path, counts + known), missing="bounds")
    spec = load(tmp_path, counts + "worst: {hits: 0, n: 1}\nbest: {hits: 1, n: 1}\n")
    assert trackperm.compare(frame, frame, spec, missing="bounds").cases[1].difference == pytest.approx(0.25)
    assert written_spec(load_statistic(spec)) == written_spec(spec)
    assert "worst" in written_spec(spec)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("best: {hits: 1}", "`best` does not define `n`"),
        ("worst: {hits: rank, n: 1}", "`rank` cannot be used in `worst`"),
        ("best: {hits: 1, n: 1, m: 1}", "`m` is not a count"),
    ],
)
def test_wrong_declarations(tmp_path: Path, declared: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        load(tmp_path, f"counts: {{hits: rank <= 3, n: 1}}\nscore: hits / n\n{declared}\n")


UNBOUNDED = {
    "bleu", "character_error_rate", "chrf", "cohen_kappa", "jaccard_multilabel", "macro_f1",
    "macro_precision", "multiclass_mcc", "multilabel_f1", "span_f1", "span_precision", "ter",
    "weighted_f1", "weighted_precision", "word_error_rate",
}  # fmt: skip


def test_statistics_that_one_output_can_make_arbitrarily_bad_have_no_bounds() -> None:
    known = [statistic for statistic in map(load_statistic, builtin_names()) if statistic.counts_missing]
    assert {each.name for each in known if not (each._worst and each.substitute("best"))} == UNBOUNDED


@pytest.mark.parametrize("name", ["token_accuracy", "squad_em", "uas"])
def test_counters_of_the_label_alone(name: str) -> None:
    texts = ["1:a 2:b", "2:a 2:b", None, "1:a 1:a"]
    frame = pl.DataFrame({"id": range(4), "prediction": texts, "label": ["1:a 2:b"] * 4})
    worst, best = trackperm.compare(frame, frame, name, missing="bounds").cases
    assert worst.difference < 0 < best.difference
