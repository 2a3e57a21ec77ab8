from __future__ import annotations

import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score
from support.budget import cases
from support.comparisons import compared, compared_as_they_are
from support.engines import ENGINES, native
from support.specs import load
from support.unit_swaps import Row, pvalue

import trackperm
from trackperm.errors import InputError, PairingError, SpecError
from trackperm.exact import CountTable, structured_test
from trackperm.ledger.comparison_publication import publication
from trackperm.pairing.counts import classes
from trackperm.pairing.pair import pair_in_memory as pair
from trackperm.statistic import load_statistic
from trackperm.statistic.written_spec import written_spec
from trackperm.tables.table import ExampleTable

F1 = """
counts:
  tp: (prediction == class) & (label == class)
  predicted: prediction == class
  actual: label == class
missing: {tp: 0, predicted: 0, actual: label == class}
score: 2 * tp / (predicted + actual)
undefined: 0
"""
BY_LABEL = F1 + "classes: label\n"
# Counts that no label decides, some of them negative, of decimals, and with classes of every row.
COST = """
counts: {cost: 'where(prediction == class, price, -0.5)', n: label == class}
score: cost / n
classes: label
"""


def runs(
    seed: int, n: int, values: list[Any], n_groups: int = 0, rates: tuple[float, float] = (0.4, 0.7)
) -> tuple[list[Row], list[Row]]:
    """Rows in which every value is the label of some example."""
    rng = np.random.default_rng(seed)
    labels = [values[i] if i < len(values) else values[rng.integers(len(values))] for i in range(n)]
    groups = [int(rng.integers(n_groups)) if n_groups else i for i in range(n)]
    first, second = (
        [
            {
                "id": i,
                "group": groups[i],
                "label": labels[i],
                "prediction": labels[i] if rng.random() < rate else values[rng.integers(len(values))],
            }
            for i in range(n)
        ]
        for rate in rates
    )
    return first, second


def f1_of_class(rows: list[Row], value: Any) -> Fraction:
    tp = sum(row["prediction"] == row["label"] == value for row in rows)
    both = sum((row["prediction"] == value) + (row["label"] == value) for row in rows)
    return Fraction(2 * tp, both) if both else Fraction(0)


def macro_f1(
    rows: list[Row], weights: dict[Any, int] | None = None, values: list[Any] | None = None
) -> Fraction:
    names = sorted({row["label"] for row in rows} if values is None else values)
    given = weights or dict.fromkeys(names, 1)
    total = sum((given[name] * f1_of_class(rows, name) for name in names), Fraction(0))
    return total / sum(given.values())


@pytest.mark.sample(6)
@pytest.mark.parametrize("values", [["a", "b", "c"], [2, 1, 10], [False, True]], ids=["text", "int", "bool"])
@pytest.mark.parametrize("group", [None, "cluster", "repeats"])
@pytest.mark.parametrize("weighted", [False, True])
def test_against_enumeration(tmp_path: Path, values: list[Any], group: str | None, weighted: bool) -> None:
    baseline, candidate = runs(
        len(str(group)) + weighted, 9 if group is None else 21, values, 0 if group is None else 7
    )
    names = {value: str(value).lower() if isinstance(value, bool) else str(value) for value in values}
    weights = {value: i + 1 for i, value in enumerate(values)} if weighted else None
    text = BY_LABEL
    if weights:
        text += f"weights: {{{', '.join(f'{names[value]!r}: {w}' for value, w in weights.items())}}}\n"
    if group == "repeats":
        text += "repeats: sum\ncolumns: {id: group}\n"
    elif group == "cluster":
        text += "cluster: group\n"
    found = compared((baseline, candidate), load(tmp_path, text))
    wanted = pvalue(baseline, candidate, "group", lambda u, v: macro_f1(u, weights) - macro_f1(v, weights))
    assert found.method != "monte-carlo"
    assert found.pvalue == pytest.approx(float(wanted), rel=found.error_bound + 1e-12)
    assert found.candidate_score == pytest.approx(float(macro_f1(candidate, weights)), abs=1e-14)
    assert found.difference == pytest.approx(
        float(macro_f1(candidate, weights) - macro_f1(baseline, weights)), abs=1e-14
    )
    assert found.n_examples == len({row["group"] for row in baseline})
    assert found.count_table.names == tuple(
        f"{count}[{names[value]}]" for value in sorted(values) for count in ("tp", "predicted", "actual")
    )
    assert len(found.discordant) == found.n_discordant


@settings(deadline=None, max_examples=cases(25))
@given(
    st.lists(st.tuples(*[st.sampled_from("abcd")] * 3, st.integers(0, 3)), min_size=2, max_size=7).filter(
        lambda rows: any(label in (first, second) for label, first, second, _ in rows)
    ),
    st.booleans(),
)
def test_of_any_runs(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str, int]], clustered: bool
) -> None:
    """The score is scikit-learn's, and the p-value the share of all swaps."""
    baseline, candidate = (
        [
            {"id": i, "group": row[3] if clustered else i, "label": row[0], "prediction": row[side]}
            for i, row in enumerate(rows)
        ]
        for side in (1, 2)
    )
    text = BY_LABEL + ("cluster: group\n" if clustered else "")
    frames = pl.DataFrame(baseline), pl.DataFrame(candidate)
    found = compared_as_they_are(*frames, load(tmp_path_factory.mktemp("spec"), text))
    labels, predictions = ([row[name] for row in candidate] for name in ("label", "prediction"))
    oracle = f1_score(labels, predictions, average="macro", labels=np.unique(labels), zero_division=0)
    assert found.candidate_score == pytest.approx(oracle, abs=1e-14)
    wanted = pvalue(baseline, candidate, "group", lambda u, v: macro_f1(u) - macro_f1(v))
    assert found.pvalue == pytest.approx(float(wanted), rel=1e-12)


def test_the_built_in_is_this_one(tmp_path: Path) -> None:
    sides = runs(0, 12, ["a", "b"])
    ours, built_in = compared(sides, load(tmp_path, BY_LABEL)), compared(sides, "macro_f1")
    assert (built_in.pvalue, built_in.candidate_score) == (ours.pvalue, ours.candidate_score)
    assert written_spec(built_in.statistic) == written_spec(ours.statistic).replace(
        "name: spec", "name: macro_f1"
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "duckdb"])
def test_every_engine(engine: str) -> None:
    sides = runs(1, 30, ["a", "b", "c"], rates=(0.8, 0.9))
    expected = compared(sides, "macro_f1")
    columns = [{name: [row[name] for row in side] for name in side[0]} for side in sides]
    found = trackperm.compare(*(native(engine, data) for data in columns), "macro_f1")
    assert (found.pvalue, found.difference, found.key) == (expected.pvalue, expected.difference, expected.key)


def test_a_class_that_only_predictions_have_is_left_out() -> None:
    rows = {"id": range(6), "label": ["a", "a", "a", "b", "b", "b"]}
    baseline = pl.DataFrame({**rows, "prediction": ["a", "x", "b", "b", "y", "z"]})
    candidate = pl.DataFrame({**rows, "prediction": ["a", "a", "b", "b", "b", "x"]})
    found = trackperm.compare(baseline, candidate, "macro_f1")
    assert found.statistic.classes == ("a", "b")
    wanted = f1_score(rows["label"], candidate["prediction"], average="macro", labels=["a", "b"])
    assert found.candidate_score == pytest.approx(wanted, abs=1e-14)
    assert found.pairing.notes == (
        "classes: 3 that occur in predictions only are not in the mean ('x', 'y', 'z')",
        "classes: the mean of the scores of 2 classes (`label`), weighted equally",
    )


def test_the_score_of_one_class_is_no_mean() -> None:
    run = pl.DataFrame({"id": [0, 1], "label": ["a", "a"], "prediction": ["a", "a"]})
    notes = trackperm.compare(run, run, "macro_f1").pairing.notes
    assert "classes: the score of the only class (`label`)" in notes


def test_a_list_of_classes(tmp_path: Path) -> None:
    """The classes of a list are those of the mean, whether they are labels or only predicted."""
    sides = runs(2, 10, ["a", "b", "c"])
    sides[1][3]["prediction"] = "x"
    found = compared(sides, load(tmp_path, F1 + "classes: [x, c, a]\n"))
    assert found.statistic.classes == ("a", "c", "x")
    values = ["a", "c", "x"]
    wanted = pvalue(*sides, "id", lambda u, v: macro_f1(u, values=values) - macro_f1(v, values=values))
    assert found.pvalue == pytest.approx(float(wanted), rel=1e-12)
    labels, predictions = ([row[name] for row in sides[1]] for name in ("label", "prediction"))
    oracle = f1_score(labels, predictions, average="macro", labels=values, zero_division=0)
    assert found.candidate_score == pytest.approx(oracle, abs=1e-14)
    assert found.pairing.notes == ("classes: the mean of the scores of 3 classes, weighted equally",)


def test_g_and_h(tmp_path: Path) -> None:
    """The long form: its g need not be additive where each example is a unit."""
    text = """
counts: {tp: (prediction == class) & (label == class), wrong: (prediction == class) != (label == class)}
g: {a: u.tp, b: u.wrong, c: v.tp, d: v.wrong}
h: 2 * a / (2 * a + b) - 2 * c / (2 * c + d)
undefined: 0
classes: label
"""
    sides = runs(4, 9, ["a", "b", "c"])
    found, short = compared(sides, load(tmp_path, text)), compared(sides, "macro_f1")
    assert (found.pvalue, found.difference) == pytest.approx((short.pvalue, short.difference), rel=1e-12)
    wins = """
counts: {right: (prediction == class) & (label == class), n: label == class}
g: {x: u.right > v.right, y: u.right < v.right, n: u.n}
h: (x - y) / n
classes: label
"""
    found = compared(sides, load(tmp_path, wins))

    def recall(rows: list[Row]) -> Fraction:
        shares = []
        for value in sorted({row["label"] for row in rows}):
            own = [row for row in rows if row["label"] == value]
            shares.append(Fraction(sum(row["prediction"] == value for row in own), len(own)))
        return sum(shares, Fraction(0)) / len(shares)

    wanted = pvalue(*sides, "id", lambda u, v: recall(u) - recall(v))
    assert found.pvalue == pytest.approx(float(wanted), rel=1e-12)


def test_a_log_ratio(tmp_path: Path) -> None:
    sides = runs(5, 12, ["a", "b"], rates=(0.5, 0.8))
    for side in sides:  # no swap leads to a score of 0
        side[0]["prediction"], side[1]["prediction"] = side[0]["label"], side[1]["label"]
    found = compared(sides, load(tmp_path, BY_LABEL + "contrast: log ratio\n"))
    wanted = pvalue(
        *sides,
        "id",
        lambda u, v: macro_f1(u) / macro_f1(v),
        lambda t, observed: max(t, 1 / t) >= max(observed, 1 / observed),
    )
    assert found.pvalue == pytest.approx(float(wanted), rel=found.error_bound + 1e-12)


def test_decimal_counts(tmp_path: Path) -> None:
    sides = runs(6, 9, ["a", "b", "c"])
    rng = np.random.default_rng(6)
    for row in (*sides[0], *sides[1]):
        row["price"] = int(rng.integers(1, 9)) / 4

    def mean_cost(rows: list[Row]) -> Fraction:
        names = sorted({row["label"] for row in rows})
        costs = [
            Fraction(sum(row["price"] if row["prediction"] == name else -0.5 for row in rows))
            / sum(row["label"] == name for row in rows)
            for name in names
        ]
        return sum(costs, Fraction(0)) / len(names)

    found = compared(sides, load(tmp_path, COST))
    wanted = pvalue(*sides, "id", lambda u, v: mean_cost(u) - mean_cost(v))
    assert found.pvalue == pytest.approx(float(wanted), rel=1e-12)
    assert found.difference == pytest.approx(float(mean_cost(sides[1]) - mean_cost(sides[0])))
    again = compared(sides, load(tmp_path, written_spec(found.statistic)))
    assert (again.pvalue, written_spec(again.statistic)) == (found.pvalue, written_spec(found.statistic))


def test_counters_are_read(tmp_path: Path) -> None:
    """Lists cannot be grouped, so every example is counted by itself."""
    text = """
counts:
  hits: (kind == class) * set_overlap(prediction, label)
  n: (kind == class) * set_size(label)
score: hits / n
classes: kind
"""
    kinds, labels = ["x", "y", "x", "y"], [["a", "b"], ["a"], ["c"], ["b", "c", "d"]]
    predictions = [["a"], ["a"], ["b"], ["b"]], [["b", "a"], ["c"], ["c"], ["b", "d"]]
    sides = [
        pl.DataFrame({"id": range(4), "kind": kinds, "label": labels, "prediction": p}) for p in predictions
    ]
    found = trackperm.compare(*sides, load(tmp_path, text))
    assert found.candidate_score == pytest.approx((3 / 3 + 2 / 4) / 2)
    assert found.baseline_score == pytest.approx((1 / 3 + 2 / 4) / 2)


@pytest.mark.parametrize("group", ["", "cluster: group\n", "repeats: sum\ncolumns: {id: group}\n"])
def test_missing_predictions_count_as_wrong(tmp_path: Path, group: str) -> None:
    baseline, candidate = runs(7, 10, ["a", "b", "c"], 6 if group else 0)
    worst = [{**row, "prediction": None if row["id"] < 3 else row["prediction"]} for row in candidate]
    wrong = [{**row, "prediction": "?" if row["id"] < 3 else row["prediction"]} for row in candidate]
    spec = load(tmp_path, BY_LABEL + group)
    found, expected = compared((baseline, worst), spec, missing="wrong"), compared((baseline, wrong), spec)
    assert (found.pvalue, found.difference) == (expected.pvalue, expected.difference)
    assert (
        "missing predictions counted as wrong: 0 of the baseline, 3 of the candidate" in found.pairing.notes
    )
    dropped = compared((baseline, worst), load(tmp_path, BY_LABEL), missing="drop")
    assert dropped.n_examples == 7


def test_absent_examples_count_as_wrong(tmp_path: Path) -> None:
    baseline, candidate = runs(7, 10, ["a", "b", "c"])
    wrong = [{**row, "prediction": "?" if row["id"] > 7 else row["prediction"]} for row in candidate]
    found = compared((baseline, candidate[:8]), "macro_f1", missing="wrong")
    expected = compared((baseline, wrong), "macro_f1")
    assert (found.pvalue, found.difference) == (expected.pvalue, expected.difference)


class TestWhatIsShownAndLogged:
    def test_the_discordant_examples(self) -> None:
        """Every example with a class that differs, with the counts of all classes added up."""
        rows = {"id": range(4), "label": ["a", "a", "b", "c"]}
        baseline = pl.DataFrame({**rows, "prediction": ["a", "b", "a", "c"]})
        candidate = pl.DataFrame({**rows, "prediction": ["a", "c", "b", "c"]})
        found = trackperm.compare(baseline, candidate, "macro_f1")
        assert found.discordant.select("id", "label", "^.*prediction$", "^.*tp$").rows() == [
            (1, "a", "b", "c", 0, 0),
            (2, "b", "a", "b", 0, 1),
        ]
        assert found.n_discordant == 2
        assert "baseline.predicted" in found.discordant.columns

    def test_the_document_repeats_it(self, tmp_path: Path) -> None:
        sides = runs(8, 12, [3, 10, 2])
        for text in (
            BY_LABEL,
            BY_LABEL + "weights: {'10': 1, '2': 2, '3': 1/2}\n",
            F1 + "classes: [10, 3]\n",
        ):
            found = compared(sides, load(tmp_path, text))
            document = written_spec(found.statistic)
            assert yaml.safe_load(document)["classes"] == list(found.statistic.classes)
            again = compared(sides, load(tmp_path, document.replace("name: spec\n", "")))
            assert (again.pvalue, written_spec(again.statistic), again.key) == (
                found.pvalue,
                document,
                found.key,
            )

    def test_classes_from_a_column_that_no_count_reads(self, tmp_path: Path) -> None:
        sides = runs(8, 12, ["a", "b"])
        for row in (*sides[0], *sides[1]):
            row["category"] = row["label"]
        spec = load(tmp_path, BY_LABEL.replace("classes: label", "classes: kind\ncolumns: {kind: category}"))
        found, expected = compared(sides, spec), compared(sides, "macro_f1")
        assert (found.pvalue, found.difference) == (expected.pvalue, expected.difference)
        again = compared(sides, load(tmp_path, written_spec(found.statistic)))
        assert (again.pvalue, again.difference) == (found.pvalue, found.difference)

    def test_the_p_value_from_the_logged_table(self, tmp_path: Path) -> None:
        comparison = compared(runs(9, 40, ["a", "b"]), "macro_f1")
        files = publication(comparison).files
        frame = pl.read_parquet(io.BytesIO(files["trackperm/count_table.parquet"]))
        table = CountTable.from_counts(
            comparison.count_table.names,
            *(
                frame.select(f"{run}.{name}" for name in comparison.count_table.names).to_numpy()
                for run in ("candidate", "baseline")
            ),
            frame["multiplicity"].to_numpy(),
        )
        statistic = load(tmp_path, written_spec(comparison.statistic))
        observed, swapped = statistic.pairs(table.candidate, table.baseline)
        test = structured_test(observed, swapped, statistic.h, multiplicities=table.multiplicities)
        assert test.pvalue == pytest.approx(comparison.pvalue, rel=1e-12)


class TestRefused:
    def test_a_listed_class_that_does_not_occur(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="the class 'd' of `spec` counts 0 on every example") as caught:
            compared(runs(0, 9, ["a", "b"]), load(tmp_path, F1 + "classes: [a, d]\n"))
        assert caught.value.hint == "check how the class is written in the data."

    def test_an_absent_column_of_classes(self, tmp_path: Path) -> None:
        spec = load(tmp_path, F1 + "classes: kind\n")
        with pytest.raises(InputError, match="the statistic `spec` needs columns") as caught:
            compared(runs(0, 9, ["a", "b"]), spec)
        assert '`columns={"kind": "NAME"}`' in str(caught.value)

    def test_examples_without_a_class(self) -> None:
        sides = [[{**row, "label": None if row["id"] == 4 else row["label"]} for row in side]
                 for side in runs(0, 9, ["a", "b"])]  # fmt: skip
        with pytest.raises(PairingError, match=r"1 of 9 examples of `baseline` has no value in `label`"):
            compared(sides, "macro_f1")
        found = compared(sides, "macro_f1", missing="drop")
        assert (found.n_examples, found.statistic.classes) == (8, ("a", "b"))

    def test_classes_that_differ_between_the_runs(self, tmp_path: Path) -> None:
        sides = [
            [{**row, "kind": f"{side}{row['label']}"} for row in rows]
            for side, rows in enumerate(runs(0, 9, ["a", "b"]))
        ]
        with pytest.raises(PairingError, match="`kind` differs between the runs on 9 of 9") as caught:
            compared(sides, load(tmp_path, F1 + "classes: kind\n"))
        assert "classes belong to the examples" in str(caught.value.hint)

    def test_decimal_classes(self) -> None:
        sides = [
            [{**row, **{name: row[name] + 0.5 for name in ("label", "prediction")}} for row in side]
            for side in runs(0, 9, [1, 2])
        ]
        with pytest.raises(PairingError, match="`label` is decimal; clusters, strata and classes must be"):
            compared(sides, "macro_f1")

    def test_classes_of_another_type_than_the_column(self, tmp_path: Path) -> None:
        with pytest.raises(SpecError) as caught:
            compared(runs(0, 9, [1, 2]), load(tmp_path, F1 + "classes: ['1', '2']\n"))
        assert "integer column `prediction` is compared with text column `class`" in str(caught.value)

    def test_too_many(self) -> None:
        with pytest.raises(InputError, match="`macro_f1` has 501 classes; the limit is 500") as caught:
            compared(runs(0, 501, list(range(501))), "macro_f1")
        assert "the right one?" in str(caught.value.hint)

    def test_too_many_counts(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(classes, "MAX_CELLS", 200)
        sides = runs(0, 60, ["a", "b", "c"])
        with pytest.raises(
            InputError, match=r"\d+ different examples are too many for the counts of 3 classes"
        ):
            compared(sides, "macro_f1")
        monkeypatch.setattr(classes, "MAX_CELLS", 27 * 18)
        compared(sides, "macro_f1")
        with pytest.raises(InputError, match="60 units that are exchanged together are too many"):
            compared(sides, load(tmp_path, BY_LABEL + "cluster: group\n"))

    def test_weights_of_other_classes(self, tmp_path: Path) -> None:
        sides = runs(0, 9, ["a", "b"])
        for weights, message in {
            "{a: 1}": r"1 classes of `spec` have no weight \(first: 'b'\)",
            "{a: 1, b: 1, c: 1}": r"1 classes of `spec` have a weight but no example \(first: 'c'\)",
        }.items():
            with pytest.raises(InputError, match=message):
                compared(sides, load(tmp_path, BY_LABEL + f"weights: {weights}\n"))

    def test_sums_beyond_64_bits(self, tmp_path: Path) -> None:
        sides = [[{**row, "size": 2**60} for row in side] for side in runs(0, 9, ["a", "b", "c", "d"])]
        text = "counts: {a: size * (label == class) + size * (label != class)}\nscore: a\nclasses: label\n"
        for group in ("", "cluster: group\n"):
            with pytest.raises(InputError, match=r"may add up to 2\^62 and more"):
                compared(sides, load(tmp_path, text + group))

    def test_sums_of_one_class_beyond_64_bits(self, tmp_path: Path) -> None:
        sides = [[{**row, "size": 2**59, "group": 1} for row in side] for side in runs(0, 9, ["a", "b"])]
        text = "counts: {a: size * (label == class) - size * (label != class)}\nscore: a\nclasses: label\n"
        assert compared(sides, load(tmp_path, text)).difference == 0
        with pytest.raises(InputError, match=r"may add up to 2\^62 and more"):
            compared(sides, load(tmp_path, text + "cluster: group\n"))


def test_a_statistic_that_was_used_before_takes_the_classes_of_the_next_runs() -> None:
    first, second = runs(0, 9, ["a", "b"]), runs(1, 9, ["x", "y", "z"])
    used = compared(first, "macro_f1").statistic
    assert used.classes == ("a", "b")
    assert compared(second, used).pvalue == compared(second, "macro_f1").pvalue


def test_equal_examples_are_counted_once() -> None:
    """As often as there are triples of label and predictions, whatever the number of examples."""
    sides = [pl.DataFrame(side) for side in runs(2, 3000, ["a", "b"])]
    pairing = pair(*(ExampleTable.from_native(side, "run") for side in sides), load_statistic("macro_f1"))
    assert len(pairing.count_table.multiplicities) == 8
    assert pairing.count_table.n_examples == len(pairing.counts.frame) == 3000


def test_many_classes_are_drawn() -> None:
    sides = runs(3, 100, [f"class {i}" for i in range(12)])
    found = compared(sides, "macro_f1", n_samples=500)
    assert found.method == "tilted"
    assert "more than 8 counts vary independently" in found.test.why
    assert found.difference == pytest.approx(float(macro_f1(sides[1]) - macro_f1(sides[0])))


@pytest.mark.parametrize("n_classes", [4, 5, 7])
def test_few_examples_of_several_classes_are_exact(n_classes: int) -> None:
    """Multiplied out, the mean of so many ratios would have too many terms."""
    sides = runs(4, 9, list(range(n_classes)), rates=(0.2, 0.6))
    found = compared(sides, "macro_f1")
    wanted = pvalue(*sides, "id", lambda u, v: macro_f1(u) - macro_f1(v))
    assert (found.method, found.test.ties) == ("enumerate", "exact")
    assert found.pvalue == pytest.approx(float(wanted), rel=1e-12)
