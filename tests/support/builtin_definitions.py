"""What the built-in scalar statistics are, in plain Python on lists of rows, and what libraries say they are.

A definition gives None for 0/0, which every built-in statistic that can have it takes as 0.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from typing import Any

import jiwer
import numpy as np
from sklearn import metrics

Row = Mapping[str, Any]
Rows = Sequence[Row]
Score = Fraction | Decimal | None


@dataclass(frozen=True)
class Definition:
    """A statistic as its inventors wrote it.

    Attributes
    ----------
    score : callable
        One run's value from its rows.
    oracle : callable
        The same by a library, or by another formula.
    own, shared : mapping
        Values that the columns of a run take, and those that are the same in both runs.
    missing : callable or None
        The columns of an answer that is as bad as none, given the row of the example.
    parameters : mapping
        Of the statistic, where they are not the defaults.
    repeats : int
        Rows of every example.
    """

    score: Callable[[Rows], Score]
    oracle: Callable[[Rows], float]
    own: Mapping[str, Sequence[Any]]
    shared: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    missing: Callable[[Row], Row] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    repeats: int = 1


def ratio(a: int | Fraction, b: int | Fraction) -> Fraction | None:
    return None if b == 0 else Fraction(a) / b


def confusion(rows: Rows) -> tuple[int, int, int, int]:
    """True and false positives, false and true negatives, where 1 is positive."""
    pairs = [(row["prediction"] == 1, row["label"] == 1) for row in rows]
    return tuple(pairs.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False)))


def share(holds: Callable[[Row], Any]) -> Callable[[Rows], Fraction]:
    return lambda rows: Fraction(sum(Fraction(holds(row)) for row in rows), len(rows))


def balanced_accuracy(rows: Rows) -> Fraction:
    classes = {row["label"] for row in rows}
    return Fraction(
        sum(share(is_right)([row for row in rows if row["label"] == label]) for label in classes),
        len(classes),
    )


def over_labels(score: Callable[[Rows], Score], *, weighted: bool = False) -> Callable[[Rows], Score]:
    """The mean over the classes of the labels: None if all are 0/0, or weighted by the number of labels."""

    def mean(rows: Rows) -> Score:
        total, weights, is_known = Fraction(0), 0, weighted
        for label in {row["label"] for row in rows}:
            weight = sum(row["label"] == label for row in rows) if weighted else 1
            renamed = [{name: int(row[name] == label) for name in ("prediction", "label")} for row in rows]
            found = score(renamed)
            is_known = is_known or found is not None
            total, weights = total + weight * Fraction(found or 0), weights + weight
        return total / weights if is_known else None

    return mean


def macro_f1(rows: Rows) -> Score:
    return over_labels(f_beta(Fraction(1)))(rows)


def of_labels(metric: Callable[..., float], average: str) -> Callable[[Rows], float]:
    """Ask for the mean over the classes of the labels."""

    def oracle(rows: Rows) -> float:
        labels = sorted({row["label"] for row in rows})
        return of_classes(metric, average=average, labels=labels, zero_division=0)(rows)

    return oracle


def is_right(row: Row) -> bool:
    return bool(row["prediction"] == row["label"])


def precision(rows: Rows) -> Score:
    tp, fp, _, _ = confusion(rows)
    return ratio(tp, tp + fp)


def recall(rows: Rows) -> Score:
    tp, _, fn, _ = confusion(rows)
    return ratio(tp, tp + fn)


def specificity(rows: Rows) -> Score:
    _, fp, _, tn = confusion(rows)
    return ratio(tn, tn + fp)


def f_beta(beta: Fraction) -> Callable[[Rows], Score]:
    def score(rows: Rows) -> Score:
        tp, fp, fn, _ = confusion(rows)
        return ratio((1 + beta**2) * tp, (1 + beta**2) * tp + beta**2 * fn + fp)

    return score


def jaccard(rows: Rows) -> Score:
    tp, fp, fn, _ = confusion(rows)
    return ratio(tp, tp + fp + fn)


def mcc(rows: Rows) -> Score:
    tp, fp, fn, tn = confusion(rows)
    with localcontext() as context:
        context.prec = 60
        root = Decimal((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)).sqrt()
        return None if root == 0 else (tp * tn - fp * fn) / root


def kappa(weight: Callable[[int, int], int]) -> Callable[[Rows], Fraction | None]:
    """1 - observed / expected, as Cohen (1968) writes it; a missing prediction is a class of its own."""

    def score(rows: Rows) -> Fraction | None:
        pairs = [(row["prediction"], row["label"]) for row in rows]
        observed = Fraction(sum(weight(*pair) for pair in pairs), len(rows))
        expected = Fraction(sum(weight(p, other) for p, _ in pairs for _, other in pairs), len(rows) ** 2)
        return None if expected == 0 else 1 - observed / expected

    return score


def class_correlation(rows: Rows) -> Decimal | None:
    """The covariance of one-hot predictions and labels over the root of the product of their variances."""
    classes = {row[name] for row in rows for name in ("prediction", "label")}

    def covariance(first: str, second: str) -> int:
        n = len(rows)
        return sum(
            n * sum(row[first] == c == row[second] for row in rows)
            - sum(row[first] == c for row in rows) * sum(row[second] == c for row in rows)
            for c in classes
        )

    with localcontext() as context:
        context.prec = 60
        root = Decimal(covariance("prediction", "prediction") * covariance("label", "label")).sqrt()
        return None if root == 0 else covariance("prediction", "label") / root


def pooled_f1(rows: Rows) -> Score:
    tp, incorrect = (sum(row[name] for row in rows) for name in ("tp", "incorrect"))
    return ratio(2 * tp, 2 * tp + incorrect)


def win_points(row: Row) -> Fraction:
    return {"win": Fraction(1), "tie": Fraction(1, 2)}.get(row["outcome"], Fraction(0))


def quiet(metric: Callable[..., float], *data: Any, **options: Any) -> float:
    """Ask scikit-learn, which warns of the degenerate cases that are wanted here."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return float(metric(*data, **options))


def of_classes(metric: Callable[..., float], **options: Any) -> Callable[[Rows], float]:
    return lambda rows: quiet(
        metric, [row["label"] for row in rows], [row["prediction"] for row in rows], **options
    )


def of_positive(metric: Callable[..., float], positive: int = 1, **options: Any) -> Callable[[Rows], float]:
    """Ask of the class 1 against all others; `positive` 0 turns it around. No value is 0."""

    def oracle(rows: Rows) -> float:
        label, prediction = ([int(row[name] == 1) for row in rows] for name in ("label", "prediction"))
        if positive == 0:
            label, prediction = ([1 - x for x in column] for column in (label, prediction))
        value = quiet(metric, label, prediction, **options)
        return 0.0 if math.isnan(value) else value

    return oracle


def pooled_f1_of_classes(rows: Rows) -> float:
    """The rows as sets of labels of which so many are right, spurious or lacking."""
    label, prediction = np.zeros((2, len(rows), 12), dtype=int)
    for i, row in enumerate(rows):
        label[i, : row["tp"]] = prediction[i, : row["tp"]] = 1
        prediction[i, row["tp"] : row["tp"] + row["incorrect"]] = 1
    return quiet(metrics.f1_score, label, prediction, average="micro", zero_division=0)


def of_brackets(metric: Callable[..., float]) -> Callable[[Rows], float]:
    """The brackets of a sentence as a set of labels of which so many are in both trees."""

    def oracle(rows: Rows) -> float:
        gold, test = np.zeros((2, len(rows), 12), dtype=int)
        for i, row in enumerate(rows):
            gold[i, : row["gold"]] = test[i, : row["matched"]] = 1
            test[i, row["gold"] : row["gold"] + row["test"] - row["matched"]] = 1
        return quiet(metric, gold, test, average="micro", zero_division=0)

    return oracle


def of_words(rows: Rows) -> float:
    """Texts of so many words, of which so many are wrong; more errors than words are insertions."""
    references = [["right"] * row["words"] for row in rows]
    hypotheses = [
        ["wrong"] * row["errors"] + reference[row["errors"] :]
        for row, reference in zip(rows, references, strict=True)
    ]
    return float(jiwer.wer([" ".join(text) for text in references], [" ".join(text) for text in hypotheses]))


def top_k(rows: Rows) -> float:
    """Class 0 is right; as many of the seven others are scored above it as its rank says."""
    scores = [[0.0, *(1.0 if other < row["rank"] else -1.0 for other in range(1, 8))] for row in rows]
    return quiet(metrics.top_k_accuracy_score, [0] * len(rows), np.array(scores), k=2, labels=range(8))


def pass_at_1(rows: Rows) -> float:
    """The unbiased estimator of Chen et al. (2021), with k = 1."""
    problems: dict[str, list[int]] = {}
    for row in rows:
        problems.setdefault(row["id"], []).append(int(row["passed"]))
    return float(
        np.mean([1 - math.comb(len(x) - sum(x), 1) / math.comb(len(x), 1) for x in problems.values()])
    )


def solved_by(k: int, rule: Callable[[Sequence[int]], Any]) -> Callable[[Rows], Fraction]:
    """The share of the choices of k attempts at a problem to which `rule` holds, averaged over problems."""

    def score(rows: Rows) -> Fraction:
        problems: dict[str, list[int]] = {}
        for row in rows:
            problems.setdefault(row["id"], []).append(int(row["passed"]))
        shares = []
        for attempts in problems.values():
            chosen = list(combinations(attempts, k))
            shares.append(Fraction(sum(bool(rule(each)) for each in chosen), len(chosen)))
        return sum(shares, Fraction()) / len(shares)

    return score


def estimated(k: int, *, of_any: bool) -> Callable[[Rows], float]:
    """By binomial coefficients, as Chen et al. (2021) and Yao et al. (2024) write it."""

    def score(rows: Rows) -> float:
        problems: dict[str, list[int]] = {}
        for row in rows:
            problems.setdefault(row["id"], []).append(int(row["passed"]))
        counts = [(len(x), sum(x)) for x in problems.values()]
        if of_any:
            return float(np.mean([1.0 - math.comb(n - c, k) / math.comb(n, k) for n, c in counts]))
        return float(np.mean([math.comb(c, k) / math.comb(n, k) for n, c in counts]))

    return score


BRACKETS = {"matched": range(3), "gold": range(2, 5), "test": range(2, 5)}
CLASSES: dict[str, Any] = {"own": {"prediction": [0, 1, 2]}, "shared": {"label": [0, 1, 2]}}


def wrong(row: Row) -> Row:
    return {"prediction": 0 if row["label"] == 1 else 1}


def no_class(row: Row) -> Row:
    return {"prediction": 9}


DEFINITIONS = {
    "accuracy": Definition(share(is_right), of_classes(metrics.accuracy_score), **CLASSES, missing=no_class),
    "error_rate": Definition(
        share(lambda row: not is_right(row)), of_classes(metrics.zero_one_loss), **CLASSES, missing=no_class
    ),
    "exact_match": Definition(
        share(is_right),
        of_classes(metrics.accuracy_score),
        own={"prediction": ["Paris", "paris", "Lyon"]},
        shared={"label": ["Paris", "Lyon"]},
        missing=lambda row: {"prediction": "-"},
    ),
    "balanced_accuracy": Definition(
        balanced_accuracy, of_classes(metrics.balanced_accuracy_score), **CLASSES, missing=no_class
    ),
    "macro_f1": Definition(macro_f1, of_labels(metrics.f1_score, "macro"), **CLASSES, missing=no_class),
    "macro_precision": Definition(
        over_labels(precision), of_labels(metrics.precision_score, "macro"), **CLASSES, missing=no_class
    ),
    "macro_recall": Definition(
        balanced_accuracy, of_labels(metrics.recall_score, "macro"), **CLASSES, missing=no_class
    ),
    "weighted_precision": Definition(
        over_labels(precision, weighted=True),
        of_labels(metrics.precision_score, "weighted"),
        **CLASSES,
        missing=no_class,
    ),
    "weighted_recall": Definition(
        share(is_right), of_labels(metrics.recall_score, "weighted"), **CLASSES, missing=no_class
    ),
    "weighted_f1": Definition(
        over_labels(f_beta(Fraction(1)), weighted=True),
        of_labels(metrics.f1_score, "weighted"),
        **CLASSES,
        missing=no_class,
    ),
    "precision": Definition(
        precision, of_positive(metrics.precision_score, zero_division=0), **CLASSES, missing=no_class
    ),
    "recall": Definition(
        recall, of_positive(metrics.recall_score, zero_division=0), **CLASSES, missing=no_class
    ),
    "specificity": Definition(
        specificity, of_positive(metrics.recall_score, 0, zero_division=0), **CLASSES, missing=wrong
    ),
    "f1": Definition(
        f_beta(Fraction(1)), of_positive(metrics.f1_score, zero_division=0), **CLASSES, missing=no_class
    ),
    "f_beta": Definition(
        f_beta(Fraction(3, 2)),
        of_positive(metrics.fbeta_score, beta=1.5, zero_division=0),
        **CLASSES,
        missing=no_class,
        parameters={"beta": 1.5},
    ),
    "jaccard": Definition(
        jaccard, of_positive(metrics.jaccard_score, zero_division=0), **CLASSES, missing=no_class
    ),
    "mcc": Definition(mcc, of_positive(metrics.matthews_corrcoef), **CLASSES, missing=wrong),
    "pooled_f1": Definition(pooled_f1, pooled_f1_of_classes, own={"tp": range(4), "incorrect": range(4)}),
    "bracket_precision": Definition(
        lambda rows: ratio(sum(r["matched"] for r in rows), sum(r["test"] for r in rows)),
        of_brackets(metrics.precision_score),
        own=BRACKETS,
    ),
    "bracket_recall": Definition(
        lambda rows: ratio(sum(r["matched"] for r in rows), sum(r["gold"] for r in rows)),
        of_brackets(metrics.recall_score),
        own=BRACKETS,
    ),
    "bracket_f1": Definition(
        lambda rows: ratio(2 * sum(r["matched"] for r in rows), sum(r["gold"] + r["test"] for r in rows)),
        of_brackets(metrics.f1_score),
        own=BRACKETS,
    ),
    "pooled_error_rate": Definition(
        lambda rows: ratio(sum(r["errors"] for r in rows), sum(r["words"] for r in rows)),
        of_words,
        own={"errors": range(5), "words": range(1, 4)},
    ),
    "mean": Definition(
        share(lambda row: row["score"]),
        lambda rows: float(np.mean([row["score"] for row in rows])),
        own={"score": range(-2, 4)},
    ),
    "top_k_accuracy": Definition(
        share(lambda row: row["rank"] <= 2),
        top_k,
        own={"rank": range(1, 9)},
        missing=lambda row: {"rank": 10**6},
        parameters={"k": 2},
    ),
    "win_rate": Definition(
        share(win_points),
        lambda rows: float(np.mean([float(win_points(row)) for row in rows])),
        own={"outcome": ["win", "tie", "loss"]},
        missing=lambda row: {"outcome": "loss"},
    ),
    "pass_at_1": Definition(
        share(lambda row: row["passed"]),
        pass_at_1,
        own={"passed": [False, True]},
        missing=lambda row: {"passed": False},
        repeats=3,
    ),
    "pass_at_k": Definition(
        solved_by(2, any),
        estimated(2, of_any=True),
        own={"passed": [False, True]},
        missing=lambda row: {"passed": False},
        parameters={"k": 2},
        repeats=3,
    ),
    "pass_hat_k": Definition(
        solved_by(2, all),
        estimated(2, of_any=False),
        own={"passed": [False, True]},
        missing=lambda row: {"passed": False},
        parameters={"k": 2},
        repeats=3,
    ),
}


def random_runs(
    definition: Definition, rng: np.random.Generator, n_examples: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of two runs, with ids."""
    return drawn_runs(definition.own, definition.shared, rng, n_examples, definition.repeats)


def drawn_runs(
    own: Mapping[str, Sequence[Any]],
    shared: Mapping[str, Sequence[Any]],
    rng: np.random.Generator,
    n_examples: int,
    repeats: int = 1,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of two runs, with ids; often some values do not occur, so that there is 0/0."""
    n_rows = n_examples * repeats

    def drawn(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        found = {}
        for name, values in columns.items():
            present = rng.choice(len(values), size=rng.integers(1, len(values) + 1), replace=False)
            found[name] = [values[i] for i in rng.choice(present, size=n_rows)]
        return found

    ids = {"id": [f"q{i // repeats}" for i in range(n_rows)]}
    first = {**ids, **drawn(shared)}
    runs = [{**first, **drawn(own)} for _ in range(2)]
    baseline, candidate = (
        [dict(zip(run, row, strict=True)) for row in zip(*run.values(), strict=True)] for run in runs
    )
    return baseline, candidate
