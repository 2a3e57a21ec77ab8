from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest
import yaml
from support.specs import load, refusal, underlined
from support.unit_swaps import Row, accuracy, pvalue

import trackperm
import trackperm.statistic
from trackperm.errors import InputError, InputTypeError
from trackperm.statistic import ColumnType, builtin_names, json_schema, load_statistic
from trackperm.statistic.count_expressions import missing_count_expressions
from trackperm.statistic.written_spec import written_spec

SHARE = "counts: {correct: prediction == label, n: 1}\nscore: correct / n\n"
OF_CLASS = "counts: {hits: (prediction == class) & (label == class), n: label == class}\nscore: hits / n\n"
LONG = "counts: {a: a}\ng: {x: u.a, y: v.a}\nh: x - y\n"
PACKAGE = Path(trackperm.statistic.__file__).parent
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


class TestVersion:
    def test_1_is_the_language(self, tmp_path: Path) -> None:
        assert written_spec(load(tmp_path, "version: 1\n" + SHARE)) == written_spec(load(tmp_path, SHARE))

    @pytest.mark.parametrize("version", ["2", "0", "1.0", "'1'", "true", "[1]", ""])
    def test_others_are_refused(self, tmp_path: Path, version: str) -> None:
        message = refusal(tmp_path, f"{SHARE}version: {version}\n")
        assert message.startswith("spec.yaml:3:")
        assert "expected version 1 of the language, found" in message


class TestJsonSchema:
    def test_the_file_is_in_step(self) -> None:
        path = PACKAGE / "schema.json"
        text = json.dumps(json_schema(), indent=2) + "\n"
        assert path.read_text(encoding="utf-8") == text, "write it with `json_schema()`, as here"

    def test_it_is_a_schema(self) -> None:
        jsonschema.Draft202012Validator.check_schema(json_schema())

    @pytest.mark.parametrize("name", builtin_names())
    def test_it_accepts_built_ins(self, name: str) -> None:
        text = (PACKAGE / "builtin" / f"{name}.yaml").read_text(encoding="utf-8")
        VALIDATOR.validate(yaml.safe_load(text))

    @pytest.mark.parametrize(
        "text",
        [
            LONG + "alternative: less\nresolution: {a: 0.01}\n",
            OF_CLASS + "classes: kind\nweights: {a: 1, b: 1/3}\ncluster: c\nrepeats: sum\n",
            OF_CLASS + "classes: [a, b]\n",
            OF_CLASS + "classes: [true, false]\n",
            SHARE + "version: 1\nrepeats: sum\ncluster: c\nstrata: s\nweights: {a: 1, b: 1/3}\nundefined: 0\n"
            "contrast: log ratio\nmissing: {correct: 0, n: 1}\nparameters: {a: true, b: x, c: 0.5}\n"
            "resolution: 1\n",
        ],
    )
    def test_the_schema_accepts_what_the_compiler_accepts(self, tmp_path: Path, text: str) -> None:
        load(tmp_path, text)
        VALIDATOR.validate(yaml.safe_load(text))

    @pytest.mark.parametrize(
        "text",
        [
            "score: a\n",
            "counts: {a: [1]}\nscore: a\n",
            SHARE + "colour: red\n",
            SHARE + "version: 2\n",
            SHARE + "alternative: both\n",
            SHARE + "contrast: ratio\n",
            SHARE + "repeats: median\n",
            SHARE + "weights: {a: [1]}\n",
            OF_CLASS + "classes: 1\n",
            OF_CLASS + "classes: []\n",
            OF_CLASS + "classes: [a, b, a]\n",
            OF_CLASS + "classes: [0.5]\n",
            OF_CLASS + "classes: [[a]]\n",
            LONG + "score: a\n",
        ],
    )
    def test_the_schema_refuses_what_the_compiler_refuses(self, tmp_path: Path, text: str) -> None:
        refusal(tmp_path, text)
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate(yaml.safe_load(text))

    def test_every_key_is_described(self) -> None:
        for form in json_schema()["$defs"].values():
            assert all(entry.get("description") for entry in form["properties"].values())


class TestParameterTypes:
    TEXT = (
        "counts: {a: (x == class) * scale, b: y > limit}\nscore: a + b * weight\n"
        "parameters: {class: 1, scale: 2, limit: 0.5, weight: 1.5}\n"
    )

    @pytest.mark.parametrize("given", [{"scale": 3}, {"limit": 2}, {"limit": 0.25}, {"weight": -1}])
    def test_of_the_default(self, tmp_path: Path, given: dict[str, object]) -> None:
        assert given.items() <= load(tmp_path, self.TEXT, parameters=given).parameters.items()

    @pytest.mark.parametrize("value", ["yes", True, 2, 0.5])
    def test_labels_are_of_any(self, tmp_path: Path, value: object) -> None:
        assert load(tmp_path, self.TEXT, parameters={"class": value}).parameters["class"] == value

    @pytest.mark.parametrize(
        ("name", "value", "found", "expected"),
        [
            ("scale", "two", "text", "integer, like its default 2"),
            ("scale", 2.5, "decimal", "integer, like its default 2"),
            ("limit", "x", "text", "decimal, like its default 0.5"),
            ("weight", True, "boolean", "decimal, like its default 1.5"),
        ],
    )
    def test_of_another(self, tmp_path: Path, name: str, value: object, found: str, expected: str) -> None:
        with pytest.raises(InputTypeError) as caught:
            load(tmp_path, self.TEXT, parameters={name: value})
        assert f"`{name}` of `spec` is {value!r}, of type {found}; expected {expected}" in str(caught.value)
        assert caught.value.hint == f"`--set {name}={expected.split()[-1]}`, for example."


class TestMissing:
    def test_counts(self, tmp_path: Path) -> None:
        text = "counts: {tp: (x == p) & (label == p), all: label == p}\nscore: tp / all\nparameters: {p: 1}\n"
        statistic = load(
            tmp_path,
            text + "missing: {tp: 0, all: label == p}\n",
            parameters={"p": 2},
            columns={"label": "gold"},
        )
        expressions = missing_count_expressions(statistic, {"gold": ColumnType.INTEGER})
        frame = trackperm.tables.table.ExampleTable.from_native(pl.DataFrame({"gold": [1, 2]}), "x").frame
        found = frame.select(**expressions)
        assert found.rows() == [(0, 0), (0, 1)]
        assert statistic.missing_reads_label
        assert written_spec(load(tmp_path, written_spec(statistic))) == written_spec(statistic)

    @pytest.mark.parametrize(
        ("missing", "at", "message"),
        [
            ("{correct: 0}", "{correct: 0}", "`missing` does not define `n`"),
            ("{correct: 0, n: 1, m: 1}", "m", "`m` is not a count"),
            ("{correct: prediction == 1, n: 1}", "prediction", "`prediction` cannot be used in `missing`"),
            ("{correct: 0.5, n: 1}", "0.5", "the missing count `correct` is a decimal, not an integer"),
            ("{correct: x y, n: 1}", "y", ""),
            ("{}", "{}", "`missing` is empty"),
        ],
    )
    def test_refused(self, tmp_path: Path, missing: str, at: str, message: str) -> None:
        found = refusal(tmp_path, f"{SHARE}missing: {missing}\n")
        assert message in found
        assert underlined(found) == at

    def test_a_count_of_both_runs_that_a_missing_prediction_changes(self, tmp_path: Path) -> None:
        text = "counts: {a: prediction, n: 1}\ng: {x: u.a, y: v.a, n: u.n}\nh: x / n - y / n\n"
        load(tmp_path, text + "missing: {a: 0, n: 1}\n")
        assert "changes sign when the runs are exchanged" in refusal(
            tmp_path, text + "missing: {a: 0, n: 0}\n"
        )


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("weights: {a: 1}\n", "weights", "`weights` needs strata or classes"),
        ("strata: s\nweights: {a: 0}\n", "0", "the weight 0 is not positive"),
        ("strata: s\nweights: {a: -1/2}\n", "-1/2", "the weight -1/2 is not positive"),
        ("strata: s\nweights: {a: many}\n", "many", "`many` is not an exact number"),
        ("strata: 1\n", "1", "expected text, found an integer"),
        ("cluster: [a]\n", "[a]", "expected text, found a list"),
        ("repeats: median\n", "median", "expected one of `sum`, `mean`, `any`, `all`, `bundle`"),
        ("contrast: ratio\n", "ratio", "expected one of `difference`, `log ratio`, found `ratio`"),
    ],
)
def test_refused(tmp_path: Path, text: str, at: str, message: str) -> None:
    found = refusal(tmp_path, SHARE + text)
    assert message in found
    assert underlined(found) == at


class TestClasses:
    @pytest.mark.parametrize(
        ("text", "at", "message"),
        [
            ("classes: []\n", "[]", "the list of classes is empty"),
            ("classes: 1\n", "1", "expected a column's name, or a list of classes, found an integer"),
            ("classes: [a, b, a]\n", "a", "the class 'a' is in the list twice"),
            ("classes: [a, 1]\n", "1", "a class that is integer after one that is text"),
            ("classes: [1, true]\n", "true", "a class that is boolean after one that is integer"),
            ("classes: [0.5]\n", "0.5", "expected text, an integer or a boolean, found a decimal"),
            ("classes: [[a]]\n", "[a]", "expected text, an integer or a boolean, found a list"),
            ("classes: label\nstrata: s\n", "classes", "`classes` cannot be used with `strata`"),
            ("classes: label\nparameters: {class: 1}\n", "class", "`class` cannot be a name here"),
            ("classes: label\ncolumns: {class: kind}\n", "class", "`class` cannot be a name here"),
            ("classes: label\nweights: {a: 0}\n", "0", "the weight 0 is not positive"),
            ("missing: {hits: 0, n: class}\n", "class", "`class` cannot be used in `missing`"),
        ],
    )
    def test_refused(self, tmp_path: Path, text: str, at: str, message: str) -> None:
        found = refusal(tmp_path, OF_CLASS + text)
        assert message in found
        assert underlined(found) == at

    def test_counts_without_the_class(self, tmp_path: Path) -> None:
        found = refusal(tmp_path, SHARE + "classes: label\n")
        assert "no count reads `class`" in found
        assert underlined(found) == "classes"
        assert "Write `label == class`" in found

    def test_a_count_called_class(self, tmp_path: Path) -> None:
        text = "counts: {class: label == class}\nscore: class\nclasses: label\n"
        assert "`class` cannot be a name here" in refusal(tmp_path, text)

    def test_a_score_does_not_read_it(self, tmp_path: Path) -> None:
        text = OF_CLASS.replace("hits / n", "hits / n + class") + "classes: label\n"
        assert "unknown name `class`" in refusal(tmp_path, text)

    def test_of_a_column_that_is_called_so(self, tmp_path: Path) -> None:
        """Without `classes`, it is a column as any other; with it, `classes` alone may name that column."""
        assert load(tmp_path, OF_CLASS).used_columns == ("prediction", "class", "label")
        for text in ("classes: class\n", "classes: class\ncolumns: {class: kind}\n"):
            statistic = load(tmp_path, OF_CLASS + text)
            assert statistic.used_columns == ("prediction", "label")
            assert statistic.class_column == "class"
            assert statistic.columns["class"] == ("kind" if "kind" in text else "class")
            rows = {"id": [1, 2], "kind": ["a", "b"], "class": ["a", "b"], "label": ["a", "b"]}
            sides = [pl.DataFrame({**rows, "prediction": p}) for p in (["a", "a"], ["a", "b"])]
            assert trackperm.compare(*sides, statistic).difference == 0.5

    def test_are_sorted_and_named(self, tmp_path: Path) -> None:
        assert load(tmp_path, OF_CLASS + "classes: [10, 9, -1]\n").total_names == (
            "hits[-1]", "n[-1]", "hits[9]", "n[9]", "hits[10]", "n[10]"
        )  # fmt: skip
        assert load(tmp_path, OF_CLASS + "classes: [true, false]\n").total_names == (
            "hits[false]", "n[false]", "hits[true]", "n[true]"
        )  # fmt: skip

    def test_are_loaded_again(self, tmp_path: Path) -> None:
        once = load(tmp_path, OF_CLASS + "classes: kind\ncluster: c\n")
        assert (once.classes, once.total_names) == ((), ("hits", "n"))
        again = load_statistic(once, columns={"kind": "type"}, classes=["y", "x"])
        assert (again.classes, again.columns["kind"], again.class_column) == (("x", "y"), "type", "kind")
        assert again.total_names == ("hits[x]", "n[x]", "hits[y]", "n[y]")
        with pytest.raises(InputError, match="`spec` has 501 classes; the limit is 500"):
            load_statistic(once, classes=range(501))


@pytest.mark.parametrize("group", ["cluster: c", "strata: c", "repeats: sum"])
class TestGOfGroups:
    @pytest.mark.parametrize(
        ("g", "at"),
        [
            ("u.a > v.a", "u.a > v.a"),
            ("u.a - v.a + 1", "1"),
            ("u.a * v.a", "u.a * v.a"),
            ("-abs(u.a - v.a)", "abs(u.a - v.a)"),
            ("2 * (u.a + max(u.a, v.a))", "max(u.a, v.a)"),
        ],
    )
    def test_that_do_not_add_up(self, tmp_path: Path, group: str, g: str, at: str) -> None:
        text = f"counts: {{a: a}}\ng: {{x: '{g}'}}\nh: x\nalternative: greater\n"
        load(tmp_path, text)
        message = refusal(tmp_path, text + group + "\n")
        assert "`x` is not additive over examples, which `" in message
        assert underlined(message) == at

    @pytest.mark.parametrize("g", ["u.a", "-u.a + 3 * v.a", "(u.a - v.a) * 2", "u.a * p - +v.a"])
    def test_that_do(self, tmp_path: Path, group: str, g: str) -> None:
        text = f"counts: {{a: a}}\ng: {{x: {g}}}\nh: x\nalternative: greater\nparameters: {{p: 2}}\n"
        load(tmp_path, text + group + "\n")


def test_a_contrast_of_the_long_form(tmp_path: Path) -> None:
    assert "`g` cannot be used with `contrast`" in refusal(tmp_path, LONG + "contrast: difference\n")


@pytest.mark.parametrize(
    "text",
    [
        "repeats: sum\n",
        "repeats: mean\n",
        "repeats: attempts\n",
        "repeats: rows\n",
        "cluster: who\ncolumns: {who: speaker}\n",
        "strata: s\n",
        "strata: s\nweights: {b: 1/3, a: 2}\n",
        "contrast: log ratio\n",
        "missing: {correct: 0, n: 1}\n",
    ],
)
def test_documents_carry_it(tmp_path: Path, text: str) -> None:
    statistic = load(tmp_path, SHARE + text)
    document = written_spec(statistic)
    assert document != written_spec(load(tmp_path, SHARE))
    again = load(tmp_path, document)
    assert written_spec(again) == document
    assert (again.g_names, again.h, again.columns) == (statistic.g_names, statistic.h, statistic.columns)
    assert (again.repeats, again.cluster, again.strata, again.weights, again.contrast) == (
        statistic.repeats, statistic.cluster, statistic.strata, statistic.weights, statistic.contrast
    )  # fmt: skip


class TestLogRatio:
    TEXT = """
counts: {wrong: prediction != label, n: 1}
score: wrong / n
contrast: log ratio
greater_is_better: false
"""

    def runs(self, seed: int, n: int = 10, sure: int = 2) -> tuple[list[Row], list[Row]]:
        rng = np.random.default_rng(seed)
        sides = []
        for rate in (0.8, 0.3):
            sides.append(
                [
                    {"id": i, "label": 1, "prediction": 0 if i < sure else int(rng.random() > rate)}
                    for i in range(n)
                ]
            )
        return sides[0], sides[1]

    @staticmethod
    def ratio(u: list[Row], v: list[Row]) -> Fraction:
        return (1 - accuracy(u)) / (1 - accuracy(v))

    def test_one_sided(self, tmp_path: Path) -> None:
        baseline, candidate = self.runs(1)
        spec = load(tmp_path, self.TEXT + "alternative: less\n")
        found = trackperm.compare(pl.DataFrame(baseline), pl.DataFrame(candidate), spec)
        wanted = pvalue(baseline, candidate, "id", self.ratio, lambda t, observed: t <= observed)
        assert found.pvalue == pytest.approx(float(wanted), rel=found.error_bound + 1e-12)

    def test_of_strata_is_that_of_their_mean(self, tmp_path: Path) -> None:
        baseline, candidate = ([{**row, "s": row["id"] % 2} for row in side] for side in self.runs(2))

        def mean(rows: list[Row]) -> Fraction:
            return (
                sum((1 - accuracy([row for row in rows if row["s"] == s]) for s in (0, 1)), Fraction(0)) / 2
            )

        spec = load(tmp_path, self.TEXT + "strata: s\n")
        found = trackperm.compare(pl.DataFrame(baseline), pl.DataFrame(candidate), spec)
        wanted = pvalue(
            baseline,
            candidate,
            "id",
            lambda u, v: mean(u) / mean(v),
            lambda t, observed: max(t, 1 / t) >= max(observed, 1 / observed),
        )
        assert found.pvalue == pytest.approx(float(wanted), rel=found.error_bound + 1e-12)
        assert found.difference == pytest.approx(np.log(float(mean(candidate) / mean(baseline))))

    def test_of_an_observed_0(self, tmp_path: Path) -> None:
        baseline, candidate = self.runs(0, sure=0)
        candidate = [{**row, "prediction": 1} for row in candidate]
        message = "the score `spec` of the candidate `candidate` is 0; `contrast: log ratio` needs"
        with pytest.raises(InputError, match=message) as caught:
            trackperm.compare(pl.DataFrame(baseline), pl.DataFrame(candidate), load(tmp_path, self.TEXT))
        assert "by `contrast: difference`" in str(caught.value.hint)
        with pytest.raises(InputError, match="the score `spec` of the baseline `baseline` is 0"):
            trackperm.compare(pl.DataFrame(candidate), pl.DataFrame(baseline), load(tmp_path, self.TEXT))

    def test_of_a_0_that_an_exchange_reaches(self, tmp_path: Path) -> None:
        sides = [pl.DataFrame({"id": [1, 2, 3], "label": 1, "prediction": p}) for p in ([0, 1, 1], [1, 0, 0])]
        with pytest.raises(InputError, match="some swaps of outputs make `spec` 0") as caught:
            trackperm.compare(*sides, load(tmp_path, self.TEXT))
        assert "`score: (wrong + 0.5) / (n + 1)`" in str(caught.value.hint)
        kept = self.TEXT.replace("wrong / n", "(wrong + 0.5) / (n + 1)")
        assert trackperm.compare(*sides, load(tmp_path, kept)).pvalue == 1.0


def test_a_used_statistic_keeps_its_declarations(tmp_path: Path) -> None:
    once = load(tmp_path, SHARE + "cluster: c\nrepeats: sum\nstrata: s\n")
    again = load_statistic(once, columns={"c": "speaker"}, strata=["x", "y"])
    assert (again.repeats, again.cluster, again.columns["c"], again.strata) == ("sum", "c", "speaker", "s")
    assert again.total_names == ("correct[x]", "n[x]", "correct[y]", "n[y]")
