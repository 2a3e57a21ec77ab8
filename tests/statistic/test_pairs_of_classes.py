"""Areas under the ROC curves of several classes, against scikit-learn and over all swaps."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score
from support import pair_scores
from support.budget import cases
from support.certificates import check_pvalue

import trackperm
from trackperm.errors import InputError, SpecError
from trackperm.statistic import load_statistic, read_statistic
from trackperm.statistic.load import BUILTIN
from trackperm.statistic.written_spec import written_spec

CLASSES = ("cat", "dog", "owl")
NAMES = {"macro_roc_auc": "macro", "weighted_roc_auc": "weighted"}

Vectors = Sequence[Sequence[Any]]


def random_runs(rng: np.random.Generator, n: int) -> tuple[list[str], list[np.ndarray]]:
    """Return labels of all classes, and probabilities of two runs, tenths with many ties."""
    label = [*CLASSES, *rng.choice(CLASSES, n - 3, p=[0.5, 0.3, 0.2]).tolist()]
    return label, [rng.multinomial(10, [0.4, 0.3, 0.3], n) / 10 for _ in range(2)]


def in_columns(values: np.ndarray) -> dict[str, Any]:
    return {f"probability_{name}": values[:, i] for i, name in enumerate(CLASSES)}


def in_objects(values: np.ndarray) -> dict[str, Any]:
    return {"probabilities": [json.dumps(dict(zip(CLASSES, row, strict=True))) for row in values.tolist()]}


def in_lists(values: np.ndarray) -> dict[str, Any]:
    return {"probabilities": values.tolist()}


FORMS: dict[str, tuple[Callable[[np.ndarray], dict[str, Any]], dict[str, Any]]] = {
    "columns": (in_columns, {}),
    "objects": (in_objects, {}),
    "lists": (in_lists, {"labels": ",".join(CLASSES)}),
}


def frames(
    label: Sequence[Any], runs: Sequence[np.ndarray], form: str = "columns", **more: Sequence[Any]
) -> list[pl.DataFrame]:
    written, _ = FORMS[form]
    return [pl.DataFrame({"id": range(len(label)), "label": label, **more, **written(run)}) for run in runs]


def area(average: str) -> pair_scores.Score:
    """Return the mean area of vectors of scores, one for each class."""

    def score(vectors: Vectors, rows: pair_scores.Rows) -> Fraction:
        found, total = Fraction(0), 0
        for place, name in enumerate(CLASSES):
            own = {"label": [int(label == name) for label in rows["label"]]}
            weight = sum(own["label"]) if average == "weighted" else 1
            found += weight * pair_scores.roc_auc([vector[place] for vector in vectors], own)
            total += weight
        return found / total

    return score


def exchanged(run: np.ndarray) -> list[tuple[int, ...]]:
    """Return the mid-ranks within each class, which are exchanged."""
    return list(zip(*(pair_scores.midranks(column) for column in run.T.tolist()), strict=True))


@pytest.mark.sample(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_against_scikit_learn(name: str, form: str) -> None:
    label, runs = random_runs(np.random.default_rng(1), 80)
    found = trackperm.compare(*frames(label, runs, form), name, parameters=FORMS[form][1])
    assert [found.baseline_score, found.candidate_score] == pytest.approx(
        [roc_auc_score(label, run, multi_class="ovr", average=NAMES[name], labels=CLASSES) for run in runs]
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("clustered", [False, True], ids=["examples", "clusters"])
def test_against_all_swaps(name: str, clustered: bool) -> None:
    rng = np.random.default_rng(2)
    for _ in range(cases(6)):
        n = int(rng.integers(5, 9))
        label, runs = random_runs(rng, n)
        units = rng.integers(0, 5, n).tolist() if clustered else list(range(n))
        both = frames(label, runs, user=units)
        found = trackperm.compare(*both, name, cluster="user" if clustered else None)
        baseline, candidate = map(exchanged, runs)
        truth = pair_scores.exact_pvalue(area(NAMES[name]), candidate, baseline, {"label": label}, units)
        check_pvalue(found.test, truth)
        assert found.pairing.influences.difference == pytest.approx(found.difference, abs=1e-12)


def test_shares_of_examples_add_up_to_the_score() -> None:
    found = trackperm.compare(*frames(*random_runs(np.random.default_rng(3), 40)), "weighted_roc_auc")
    change = found.discordant["candidate.share"] - found.discordant["baseline.share"]
    assert change.sum() == pytest.approx(found.difference)


def test_two_classes_are_one_area() -> None:
    """The area of one of two classes is that of the other, and so are its interval and DeLong's test."""
    rng = np.random.default_rng(4)
    label, n = np.arange(300) % 2, 300
    runs = [np.round(1 / (1 + np.exp(-rng.normal(size=n) - label)), 2) for _ in range(2)]
    both = [pl.DataFrame({"id": range(n), "label": label, "score": run}) for run in runs]
    lists = [each.with_columns(probabilities=pl.concat_list(1 - pl.col("score"), "score")) for each in both]
    one = trackperm.compare(*both, "roc_auc").with_second_opinions()
    several = trackperm.compare(*lists, "macro_roc_auc").with_second_opinions()
    assert several.pvalue == pytest.approx(one.pvalue, rel=1e-9)
    assert several.interval.low == pytest.approx(one.interval.low, rel=1e-3)
    assert several.interval.high == pytest.approx(one.interval.high, rel=1e-3)
    assert several.second_opinions[0].pvalue == pytest.approx(one.second_opinions[0].pvalue)


def test_the_written_spec_has_the_weights_of_the_data() -> None:
    label, runs = random_runs(np.random.default_rng(5), 40)
    found = trackperm.compare(*frames(label, runs), "weighted_roc_auc")
    again = read_statistic(written_spec(found.statistic), "x")
    assert again.weights == {name: label.count(name) for name in CLASSES}
    assert again.resolution == found.statistic.resolution
    assert trackperm.compare(*frames(label, runs), again).pvalue == found.pvalue
    unused = read_statistic(written_spec(load_statistic("weighted_roc_auc", classes=CLASSES)), "x")
    assert trackperm.compare(*frames(label, runs), unused).pvalue == found.pvalue
    few = trackperm.compare(*(each[:20] for each in frames(label, runs)), found.statistic)
    assert few.statistic.weights == {name: label[:20].count(name) for name in CLASSES}


def test_leaderboard_tests_every_pair_of_runs() -> None:
    rng = np.random.default_rng(6)
    label, runs = random_runs(rng, 60)
    runs.append(random_runs(rng, 60)[1][0])
    both = dict(zip("abc", frames(label, runs), strict=True))
    board = trackperm.leaderboard(both, "macro_roc_auc")
    for pair in board.pairs:
        candidate, baseline = (board.rows[place].name for place in (pair.candidate, pair.baseline))
        one = trackperm.compare(both[baseline], both[candidate], "macro_roc_auc")
        assert pair.test.pvalue == one.pvalue
        assert board.rows[pair.candidate].score == pytest.approx(one.candidate_score)


@pytest.mark.parametrize(
    ("change", "form", "said"),
    [
        ({"cat": "dog", "owl": "dog"}, "columns", "`macro_roc_auc` is undefined in the class 'dog': all 9"),
        ({"cat": "fox"}, "columns", "on example 0 of `baseline`: `class` is 'fox', and the classes of"),
        ({}, "lists", "is text, so that the order of the classes is unknown"),
    ],
    ids=["one class", "a class without probabilities", "lists of unknown classes"],
)
def test_refusals(change: dict[str, str], form: str, said: str) -> None:
    label, runs = random_runs(np.random.default_rng(7), 9)
    label = [change.get(name, name) for name in label]
    with pytest.raises(InputError) as caught:
        trackperm.compare(*frames(label, runs, form), "macro_roc_auc")
    assert said in caught.value.message


SPEC = (BUILTIN / "macro_roc_auc.yaml").read_text(encoding="utf-8").partition("parameters")[2]
SPEC = f"parameters{SPEC}"
AUC = (BUILTIN / "roc_auc.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("classes: label", "classes: label,prediction", "predictions cannot be classes of pairs"),
        ("classes: label", "classes: label\nstrata: site", "`classes` cannot be used with `strata`"),
        ("label != class", "label != left.class", "the class is the same for both examples"),
        ("(left.score ", "(left.class ", "the class is the same for both examples"),
        ("class_probability(probabilities", "class_probability(u.x", "`u.x` cannot be used in `score`"),
        ("class_probability(probabilities, class, labels)", "score + 1", "`score` cannot be used in `score`"),
        ("class_probability(probabilities, class, labels)", "label_count(x, label)", "look up all labels"),
        ("labels)", "labels)\n  average: median", "expected one of"),
        ("labels)", "labels)\n  average: weighted\nweights: {cat: 2}", "it needs `classes` and no `weights`"),
    ],
)
def test_specs_that_are_refused(old: str, new: str, said: str) -> None:
    assert old in SPEC
    with pytest.raises(SpecError) as caught:
        read_statistic(SPEC.replace(old, new, 1), "x.yaml")
    assert said in caught.value.message


@pytest.mark.parametrize("score", ["a // b", "a * 4611686018427387904"])
def test_a_score_that_cannot_be_computed(score: str) -> None:
    frame = pl.DataFrame({"id": [7, 8, 9], "label": [1, 0, 1], "a": [1, 0, 2], "b": [1, 3, 0]})
    spec = read_statistic(f"{AUC}  score: {score}\n", "x.yaml")
    with pytest.raises(InputError, match=r"on example [79] of `baseline`"):
        trackperm.compare(frame, frame, spec)


def test_a_score_is_computed_from_columns_of_the_run() -> None:
    rng = np.random.default_rng(9)
    rows = {"id": range(40), "label": rng.integers(0, 2, 40)}
    runs = [pl.DataFrame({**rows, "a": rng.normal(size=40), "b": rng.integers(0, 3, 40)}) for _ in range(2)]
    found = trackperm.compare(*runs, read_statistic(f"{AUC}  score: a - b\n", "x.yaml"))
    logged = [each.with_columns(score=pl.col("a") - pl.col("b")) for each in runs]
    assert found.pvalue == trackperm.compare(*logged, "roc_auc").pvalue


def test_listed_classes_have_the_weights_of_the_spec() -> None:
    label, runs = random_runs(np.random.default_rng(8), 40)
    spec = SPEC.replace("classes: label", "classes: [cat, owl]\nweights: {cat: 3, owl: 1}")
    found = trackperm.compare(*frames(label, runs), read_statistic(spec, "x.yaml", "two"))
    areas = [roc_auc_score([name == each for each in label], runs[1][:, i]) for i, name in enumerate(CLASSES)]
    assert found.candidate_score == pytest.approx((3 * areas[0] + areas[2]) / 4)
    assert "the mean of the scores of 2 classes" in str(found)
    lacking = read_statistic(spec.replace("owl", "fox"), "x.yaml", "two")
    with pytest.raises(InputError):
        trackperm.compare(*frames(label, runs), lacking)
