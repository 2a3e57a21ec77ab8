from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
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
from trackperm.exact import difference_test
from trackperm.statistic.written_spec import written_spec

SHARE = "counts: {correct: prediction == label, n: 1}\nscore: correct / n\n"
LONG_SHARE = """
counts: {correct: prediction == label, n: 1}
g: {a: u.correct, b: v.correct, n: u.n}
h: (a - b) / n
"""


def runs(seed: int, n: int, strata: list[Any], n_groups: int = 0) -> tuple[list[Row], list[Row]]:
    rng = np.random.default_rng(seed)
    examples = [
        {
            "id": i,
            "language": strata[i % len(strata)] if i < len(strata) else strata[rng.integers(len(strata))],
            "group": int(rng.integers(n_groups)) if n_groups else i,
            "label": int(rng.integers(2)),
        }
        for i in range(n)
    ]
    sides = [
        [{**row, "prediction": row["label"] if rng.random() < rate else 1 - row["label"]} for row in examples]
        for rate in (0.5, 0.8)
    ]
    return sides[0], sides[1]


def mean_of_strata(
    score: Callable[[list[Row]], Fraction], weights: dict[Any, int] | None = None
) -> Callable[[list[Row]], Fraction]:
    def mean(rows: list[Row]) -> Fraction:
        names = sorted({row["language"] for row in rows})
        given = weights or dict.fromkeys(names, 1)
        total = sum(
            (given[name] * score([r for r in rows if r["language"] == name]) for name in names), Fraction(0)
        )
        return total / sum(given.values())

    return mean


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("text", "score"), [(SHARE, accuracy), (F1, f1), (LONG_SHARE, accuracy)], ids=["share", "f1", "long"]
)
@pytest.mark.parametrize("weights", [None, {"de": 1, "en": 3, "fr": 2}])
@pytest.mark.parametrize("clustered", [False, True])
def test_against_enumeration(
    tmp_path: Path, text: str, score: Any, weights: dict[Any, int] | None, clustered: bool
) -> None:
    baseline, candidate = runs(
        len(text) + clustered, 25 if clustered else 10, ["en", "de", "fr"], 8 if clustered else 0
    )
    text += "strata: language\n" + ("cluster: group\n" if clustered else "")
    text += "" if weights is None else f"weights: {weights}\n".replace("'", "")
    found = compared((baseline, candidate), load(tmp_path, text))
    mean = mean_of_strata(score, weights)
    wanted = pvalue(baseline, candidate, "group", lambda u, v: mean(u) - mean(v))
    assert found.method != "monte-carlo"
    assert found.pvalue == pytest.approx(float(wanted), rel=found.error_bound + 1e-12)
    assert found.difference == pytest.approx(float(mean(candidate) - mean(baseline)))
    assert found.n_examples == len({row["group"] for row in baseline})
    if "score" in text:
        assert found.candidate_score == pytest.approx(float(mean(candidate)))
    else:
        assert found.candidate_score is None


def test_many_strata_of_a_linear_score_are_one_sum(tmp_path: Path) -> None:
    baseline, candidate = runs(0, 400, [f"task {i}" for i in range(60)])
    found = compared((baseline, candidate), load(tmp_path, SHARE + "strata: language\n"))
    sizes = Counter(row["language"] for row in baseline)
    weighted = [
        [Fraction(row["prediction"] == row["label"], sizes[row["language"]]) for row in side]
        for side in (candidate, baseline)
    ]
    wanted = difference_test(*weighted)
    assert found.method != "monte-carlo"
    assert found.pvalue == pytest.approx(wanted.pvalue, rel=wanted.error_bound + found.error_bound + 1e-9)
    assert found.test.n_better == wanted.n_better


def test_many_strata_of_another_score_are_drawn(tmp_path: Path) -> None:
    baseline, candidate = runs(0, 150, [f"task {i}" for i in range(10)])
    found = compared((baseline, candidate), load(tmp_path, F1 + "strata: language\n"), n_samples=500)
    assert found.method == "tilted"
    mean = mean_of_strata(f1)
    assert found.difference == pytest.approx(float(mean(candidate) - mean(baseline)))


@pytest.mark.parametrize("strata", [[2, 1, 10], [True, False], ["1", "b c"]])
def test_strata_of_every_type(tmp_path: Path, strata: list[Any]) -> None:
    baseline, candidate = runs(3, 10, strata)
    found = compared((baseline, candidate), load(tmp_path, SHARE + "strata: language\n"))
    mean = mean_of_strata(accuracy)
    assert found.difference == pytest.approx(float(mean(candidate) - mean(baseline)))
    names = sorted(str(name).lower() if isinstance(name, bool) else str(name) for name in strata)
    assert list(found.statistic.weights) == names
    assert found.count_table.names == tuple(
        f"{count}[{name}]" for name in names for count in ("correct", "n")
    )


def test_by_label_is_the_mean_over_classes(tmp_path: Path) -> None:
    baseline, candidate = runs(4, 12, ["en"])
    found = compared((baseline, candidate), load(tmp_path, SHARE + "strata: label\n"))
    classes = [[row for row in candidate if row["label"] == label] for label in (0, 1)]
    assert found.candidate_score == pytest.approx(float(sum(map(accuracy, classes)) / 2))


def test_notes_and_columns(tmp_path: Path) -> None:
    baseline, candidate = map(pl.DataFrame, runs(0, 10, ["en", "de"]))
    spec = load(tmp_path, SHARE + "strata: language\n")
    found = trackperm.compare(baseline, candidate, spec)
    note = "strata: the mean of the scores of 2 strata (`language`), weighted"
    assert found.pairing.notes == (f"{note} equally",)
    assert found.discordant.columns[:3] == ["id", "label", "stratum"]
    assert len(found.discordant) == found.n_discordant
    weighted = load(tmp_path, SHARE + "strata: language\nweights: {en: 2, de: 1}\n")
    assert trackperm.compare(baseline, candidate, weighted).pairing.notes == (
        f"{note} as the statistic says",
    )


def test_the_document_repeats_it(tmp_path: Path) -> None:
    baseline, candidate = map(pl.DataFrame, runs(0, 12, ["en", "de"]))
    for text in (SHARE, F1, LONG_SHARE):
        found = trackperm.compare(baseline, candidate, load(tmp_path, text + "strata: language\n"))
        document = written_spec(found.statistic)
        assert "strata: language\nweights:\n  de: 1\n  en: 1\n" in document
        again = trackperm.compare(baseline, candidate, load(tmp_path, document.replace("name: spec\n", "")))
        assert (again.pvalue, written_spec(again.statistic), again.key) == (found.pvalue, document, found.key)


def test_a_statistic_that_was_used_before(tmp_path: Path) -> None:
    spec = load(tmp_path, SHARE + "strata: language\n")
    used = trackperm.compare(*map(pl.DataFrame, runs(0, 12, ["en", "de"])), spec).statistic
    others = [pl.DataFrame(side) for side in runs(1, 12, ["it", "fr", "es"])]
    assert trackperm.compare(*others, used).pvalue == trackperm.compare(*others, spec).pvalue


def test_decimal_counts(tmp_path: Path) -> None:
    baseline, candidate = runs(5, 9, ["en", "de"])
    rng = np.random.default_rng(5)
    for row in (*baseline, *candidate):
        row["score"] = int(rng.integers(9)) / 4
    text = "counts: {total: score, n: 1}\nscore: total / n\nstrata: language\n"
    found = compared((baseline, candidate), load(tmp_path, text))
    mean = mean_of_strata(lambda rows: Fraction(sum(row["score"] for row in rows)) / len(rows))
    wanted = pvalue(baseline, candidate, "id", lambda u, v: mean(u) - mean(v))
    assert found.pvalue == pytest.approx(float(wanted), rel=1e-12)
    assert found.difference == pytest.approx(float(mean(candidate) - mean(baseline)))


class TestStrataWithNothingToScore:
    def runs(self) -> list[pl.DataFrame]:
        rows = {"id": [1, 2, 3], "language": ["en", "en", "de"], "label": [1, 1, 0]}
        return [pl.DataFrame({**rows, "prediction": prediction}) for prediction in ([0, 1, 0], [1, 1, 0])]

    def test_have_the_declared_value(self, tmp_path: Path) -> None:
        found = trackperm.compare(*self.runs(), load(tmp_path, F1 + "strata: language\n"))
        assert (found.baseline_score, found.candidate_score) == (pytest.approx(1 / 3), 0.5)

    def test_or_none(self, tmp_path: Path) -> None:
        text = F1.partition("undefined")[0] + "strata: language\n"
        with pytest.raises(InputError, match="undefined"):
            trackperm.compare(*self.runs(), load(tmp_path, text))

    def test_and_are_refused_if_they_are_all_there_are(self, tmp_path: Path) -> None:
        sides = [side.with_columns(label=pl.lit(0), prediction=pl.lit(0)) for side in self.runs()]
        with pytest.raises(InputError, match="is 0/0 in both runs"):
            trackperm.compare(*sides, load(tmp_path, F1 + "strata: language\n"))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("{en: 1}", r"1 strata of `spec` have no weight \(first: 'de'\)"),
        ("{en: 1, de: 1, it: 1}", r"1 strata of `spec` have a weight but no example \(first: 'it'\)"),
    ],
)
def test_weights_of_other_strata(tmp_path: Path, weights: str, message: str) -> None:
    sides = map(pl.DataFrame, runs(0, 10, ["en", "de"]))
    with pytest.raises(InputError, match=message):
        trackperm.compare(*sides, load(tmp_path, SHARE + f"strata: language\nweights: {weights}\n"))


def test_too_many_strata(tmp_path: Path) -> None:
    sides = map(pl.DataFrame, runs(0, 502, list(range(501))))
    with pytest.raises(InputError, match="`spec` has 501 strata; the limit is 500"):
        trackperm.compare(*sides, load(tmp_path, SHARE + "strata: language\n"))


def test_strata_that_differ(tmp_path: Path) -> None:
    baseline, candidate = runs(0, 10, ["en", "de"])
    other = [{**row, "language": "en"} for row in candidate]
    with pytest.raises(PairingError, match="`language` differs between the runs on"):
        compared((baseline, other), load(tmp_path, SHARE + "strata: language\n"))
