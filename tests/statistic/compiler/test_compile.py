from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from support.specs import F1, LONG, load, rational, refusal, underlined

from trackperm.errors import InputError, InputTypeError, SpecError
from trackperm.exact import RationalStatistic
from trackperm.statistic import OUT_OF_RANGE, ColumnType, load_statistic
from trackperm.statistic.count_expressions import count_expressions
from trackperm.statistic.library_names import LIBRARY_NAMES
from trackperm.statistic.load import builtin_names
from trackperm.statistic.problems import problems
from trackperm.statistic.written_spec import written_spec


def test_short_form(tmp_path: Path) -> None:
    statistic = load(tmp_path, F1)
    assert statistic.name == "f1"
    assert statistic.count_names == ("tp", "incorrect")
    assert statistic.g_names == ("u.tp", "u.incorrect", "v.tp", "v.incorrect")
    assert statistic.columns == {"id": "id", "label": "label", "prediction": "prediction"}
    assert statistic.used_columns == ("prediction", "label")
    assert statistic.parameters == {"positive": 1}
    assert rational(statistic.score)([3, 2]) == Fraction(3, 4)
    assert rational(statistic.score)([0, 0]) == 0
    assert rational(statistic.h)([3, 2, 0, 0]) == Fraction(3, 4)


def test_long_form_takes_integer_columns(tmp_path: Path) -> None:
    statistic = load(tmp_path, LONG)
    assert statistic.name == "spec"
    assert statistic.count_names == ("tp", "incorrect")
    assert statistic.used_columns == ("tp", "incorrect")
    assert statistic.g_names == ("x1", "x2", "x3", "x4")
    assert statistic.score is None
    assert rational(statistic.h)([3, 2, 1, 2]) == Fraction(1, 4)
    with pytest.raises(SpecError) as caught:
        count_expressions(statistic, {"tp": ColumnType.INTEGER, "incorrect": ColumnType.TEXT})
    assert "spec.yaml:3:7: the count `incorrect` is text, not a number at `$.g.x2`" in str(caught.value)
    assert underlined(str(caught.value)) == "u.incorrect"


def test_long_form_with_counts_of_its_own(tmp_path: Path) -> None:
    text = "counts: {c: prediction == label, n: 1}\ng: {d: u.c - v.c, n: u.n}\nh: d / n\n"
    statistic = load(tmp_path, text)
    assert statistic.count_names == ("c", "n")
    observed, swapped = statistic.pairs(np.array([[1, 1], [0, 1]]), np.array([[0, 1], [0, 1]]))
    assert observed.tolist() == [[1, 1], [0, 1]]
    assert swapped.tolist() == [[-1, 1], [0, 1]]
    assert observed.dtype == swapped.dtype == np.int64


def test_h_of_other_functions_is_a_function_of_arrays(tmp_path: Path) -> None:
    text = "counts: {a: a, b: b}\nscore: sqrt(a / b)\nundefined: 1/4\n"
    statistic = load(tmp_path, text)
    assert callable(statistic.h)
    assert not isinstance(statistic.h, RationalStatistic)
    points = np.array([[4, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]])
    np.testing.assert_array_equal(statistic.h(points), [1.0, 0.0, np.nan])
    assert callable(statistic.score)
    np.testing.assert_array_equal(statistic.score(points[:, :2]), [2.0, 0.5, np.nan])


def test_decimals_are_exact(tmp_path: Path) -> None:
    statistic = load(
        tmp_path, "counts: {a: a}\nscore: a * 0.1 + rate / a\nparameters: {rate: 0.3}\nundefined: 0.1\n"
    )
    assert rational(statistic.score)([3]) == Fraction(3, 10) + Fraction(1, 10)
    assert statistic.undefined == Fraction(1, 10)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-1", -1),
        ("0.5", Fraction(1, 2)),
        (".25", Fraction(1, 4)),
        ("1/3", Fraction(1, 3)),
        ("'2/4'", Fraction(1, 2)),
    ],
)
def test_undefined(tmp_path: Path, text: str, value: Fraction) -> None:
    assert load(tmp_path, f"counts: {{a: a}}\nscore: a / a\nundefined: {text}\n").undefined == value


@pytest.mark.parametrize("text", ["1e5", "1/0", "a", "1_0", ".inf", "0x10", "1/2/3", "9" * 60, "' 1'"])
def test_undefined_must_be_an_exact_number(tmp_path: Path, text: str) -> None:
    message = refusal(tmp_path, f"counts: {{a: a}}\nscore: a / a\nundefined: {text}\n")
    assert message.startswith("spec.yaml:3:12: ")
    assert "is not an exact number at `$.undefined`" in message


def test_parameters(tmp_path: Path) -> None:
    assert load(tmp_path, F1, parameters={"positive": "spam"}).parameters == {"positive": "spam"}
    assert load(tmp_path, F1, parameters={"positive": np.int8(3)}).parameters == {"positive": 3}
    assert load(tmp_path, F1, parameters={"positive": np.float32(0.5)}).parameters == {"positive": 0.5}
    once = load(tmp_path, F1, parameters={"positive": 2}, columns={"label": "gold"})
    again = load_statistic(once, columns={"prediction": "yhat"})
    assert again.parameters == {"positive": 2}
    assert again.columns == {"id": "id", "label": "gold", "prediction": "yhat"}
    assert load_statistic(once) is once


@pytest.mark.parametrize(
    ("parameters", "error", "message", "hint"),
    [
        (
            {"positve": 1},
            InputError,
            "has no parameter `positve`",
            "its parameters are `positive`. Did you mean `positive`?",
        ),
        ({"positive": None}, InputTypeError, "must be a number, text or a boolean, not nothing", None),
        ({"positive": [1]}, InputTypeError, "not a list", None),
        ({"positive": 1j}, InputTypeError, "not `complex`", None),
        ({"positive": float("nan")}, InputError, "is nan, not a finite number", None),
        ({"positive": 2**63}, InputError, "more than 64 bits", None),
    ],
)
def test_parameters_refused(
    tmp_path: Path, parameters: dict[str, object], error: type[InputError], message: str, hint: str | None
) -> None:
    with pytest.raises(error, match=message) as caught:
        load(tmp_path, F1, parameters=parameters)
    assert caught.value.hint == hint
    with pytest.raises(InputError, match="`accuracy` takes no parameters; leave out `parameters`"):
        load_statistic("accuracy", parameters=parameters)


def test_columns(tmp_path: Path) -> None:
    text = F1 + "columns: {prediction: yhat, id: question id}\n"
    statistic = load(tmp_path, text, columns={"label": "gold", "prediction": "y hat"})
    assert statistic.columns == {"id": "question id", "label": "gold", "prediction": "y hat"}
    assert statistic.used_columns == ("y hat", "gold")
    types = dict.fromkeys(statistic.used_columns, ColumnType.INTEGER)
    table = nw.from_native(pl.DataFrame({"y hat": [1, 1, 0], "gold": [1, 0, 2]}))
    counts = table.select(**count_expressions(statistic, types))
    assert counts.to_dict(as_series=False) == {"tp": [1, 0, 0], "incorrect": [0, 1, 1]}
    # Roles that every comparison has may be named though the counts do not use them.
    assert "prediction" not in load_statistic("mean", columns={"prediction": "x"}).columns


def test_columns_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the statistic `f1` uses no column `predicton`") as caught:
        load(tmp_path, F1, columns={"predicton": "x"})
    assert caught.value.hint == "the names are `id`, `label`, `prediction`. Did you mean `prediction`?"
    with pytest.raises(InputTypeError, match="must be text, not int"):
        load(tmp_path, F1, columns={"label": 3})
    statistic = load(tmp_path, F1)
    with pytest.raises(SpecError, match="the data has no column `prediction`") as missing:
        count_expressions(statistic, {"predictions": ColumnType.INTEGER, "label": ColumnType.INTEGER})
    assert missing.value.hint == "the columns are `predictions`, `label`. Did you mean `predictions`?"


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("score: a\n", "1:1", "the key `counts` is missing at `$`", None),
        ("counts: {a: a}\n", "1:1", "the key `score` is missing at `$`", None),
        ("counts: {a: a}\nscor: a\n", "2:1", "unknown key `scor` at `$.scor`", "Did you mean `score`?"),
        ("counts: {a: a}\nscore: a\nh: a\n", "3:1", "`h` cannot be used with `score`", "the short form"),
        ("g: {a: u.a}\nscore: a\n", "1:1", "`g` cannot be used with `score`", "the short form"),
        ("g: {a: u.a}\n", "1:1", "the key `h` is missing", None),
        ("counts:\nscore: a\n", "1:8", "expected keys and values, found nothing", None),
        ("counts: {}\nscore: a\n", "1:9", "`counts` is empty", None),
        ("counts: {a: }\nscore: a\n", "1:12", "expected an expression, found nothing at `$.counts.a`", None),
        ("counts: {a: [b]}\nscore: a\n", "1:13", "expected an expression, found a list", None),
        ("counts: {a: true}\nscore: a\n", "1:13", "expected an expression, found a boolean", None),
        ("counts: {a: a}\nscore: >\n  a\n", "2:8", "a folded block at `$.score`", "write `|`"),
        ("counts: {a b: a}\nscore: a\n", "1:10", "`a b` cannot be a name", "letters, digits and `_`"),
        ("counts: {and: a}\nscore: a\n", "1:10", "`and` cannot be a name", None),
        ("counts: {u.a: a}\nscore: a\n", "1:10", "`u.a` cannot be a name", None),
        ("counts: {a: u.a}\nscore: a\n", "1:13", "`u.a` cannot be used in a count", "write `a`"),
        ("counts: {a: a / 2}\nscore: a\n", "1:13", "`/` does not give integers", "`//`"),
        ("counts: {a: 0.5}\nscore: a\n", "1:13", "the count `a` is a decimal", None),
        ("counts: {a: '''x'''}\nscore: a\n", "1:14", "the count `a` is text", None),
        ("counts: {a: a}\nscore: b\n", "2:8", "unknown name `b`", "the counts of this statistic are a."),
        ("counts: {a: a}\nscore: u.a\n", "2:8", "unknown name `u.a`", "Did you mean `a`?"),
        ("counts: {a: a}\nscore: 1 / (a - a)\n", "2:12", "this divisor is always 0", None),
        ("counts: {a: a}\nscore: a\nname: a/b\n", "3:7", "the name `a/b` cannot be used", "64 letters"),
        (
            "counts: {a: a}\nscore: a\nname: 7\n",
            "3:7",
            "expected text, found an integer",
            "put it in quotes.",
        ),
        (
            "counts: {a: a}\nscore: a\nparameters: {p: [1]}\n",
            "3:17",
            "expected one value, found a list",
            None,
        ),
        ("counts: {a: a}\nscore: a\nparameters: {p: .inf}\n", "3:17", "the parameter `p` is inf", None),
        (
            "counts: {a: a}\nscore: a\nparameters: {a: 1}\n",
            "3:14",
            "`a` is both a parameter and an entry of `counts`",
            None,
        ),
        ("counts: {a: a}\nscore: a\nparameters: {not: 1}\n", "3:14", "`not` cannot be a name", None),
        (
            "counts: {a: a}\nscore: a\ncolumns: {aa: x}\n",
            "3:11",
            "the counts use no name `aa`",
            "Did you mean `a`?",
        ),
        ("counts: {a: a}\nscore: a\ncolumns: {a: 1}\n", "3:14", "expected text, found an integer", None),
        ("counts: {a: a}\nscore: a\ncolumns: {a: ''}\n", "3:14", "an empty column name", None),
        ("counts: {a: a}\nscore: a\ncluster: ''\n", "3:10", "an empty column name at `$.cluster`", None),
        ("counts: {a: a}\nscore: a\nstrata: ''\n", "3:9", "an empty column name at `$.strata`", None),
        ("counts: {a: class}\nscore: a\nclasses: ''\n", "3:10", "an empty column name", None),
        (
            "counts: {a: a}\nscore: a\ngreater_is_better: yes\n",
            "3:20",
            "expected `true` or `false`, found text",
            None,
        ),
        ("counts: {a: a}\nscore: a\nalternative: larger\n", "3:14", "expected one of `two-sided`", None),
        ("counts: {a: a}\ng: {x: u.b}\nh: x\n", "2:8", "unknown name `u.b`", "a, each behind `u.` or `v.`"),
        ("g: {x: tp}\nh: x\n", "1:8", "unknown name `tp`", "behind `u.` (candidate) or `v.` (baseline)"),
        ("g: {x: u.a / 2}\nh: x\n", "1:8", "`/` does not give integers", None),
        ("g: {x: u.a}\nh: x1\n", "2:4", "unknown name `x1`", "h takes x. Did you mean `x`?"),
        ("g: {x.y: u.a}\nh: x\n", "1:5", "`x.y` cannot be a name", None),
        (
            "g: {x: u.a, p: v.a}\nh: x\nparameters: {p: 1}\n",
            "3:14",
            "`p` is both a parameter and an entry of `g`",
            None,
        ),
        (
            "counts:\n" + "".join(f"  c{i}: 1\n" for i in range(201)) + "score: c0\n",
            "2:3",
            "more than 200 entries",
            None,
        ),
    ],
)
def test_refused(tmp_path: Path, text: str, place: str, message: str, hint: str | None) -> None:
    found = refusal(tmp_path, text)
    assert found.startswith(f"spec.yaml:{place}: {message}")
    if hint is not None:
        assert hint in found.partition("Hint: ")[2]


def test_unknown_name_in_full(tmp_path: Path) -> None:
    text = "counts: {tp: tp, fp: fp, fn: fn}\nscore: 2 * tp / (2 * tp + fpp + fn)\n"
    assert refusal(tmp_path, text) == (
        "spec.yaml:2:27: unknown name `fpp` at `$.score`\n"
        "\n"
        "    score: 2 * tp / (2 * tp + fpp + fn)\n"
        "                              ^^^\n"
        "\n"
        "Hint: the counts of this statistic are tp, fp, fn. Did you mean `fp`?"
    )


def test_places_in_blocks(tmp_path: Path) -> None:
    text = "counts:\n  tp: |\n    (prediction == 1)\n      & (label = 1)\nscore: tp\n"
    message = refusal(tmp_path, text)
    assert message.startswith("spec.yaml:4:16: expected `)`, found `=`")
    assert underlined(message) == "="


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        ("acuracy", "no statistic is called `acuracy`; built in are `accuracy`", "Did you mean `accuracy`?"),
        ("mean_absolute_error", "no statistic is called", "Did you mean `mae`?"),
        ("F1_score", "no statistic is called", "Did you mean `f1` or `weighted_f1` or `macro_f1`?"),
        ("none.yaml", "there is no file `none.yaml`", None),
        (Path("f1"), "there is no file `f1`", None),
        ("a\0.yaml", "cannot be read", None),
    ],
)
def test_sources_refused(source: str | Path, message: str, hint: str | None) -> None:
    with pytest.raises(SpecError) as caught:
        load_statistic(source)
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


def test_names_of_libraries_lead_to_built_in_statistics() -> None:
    assert not LIBRARY_NAMES.keys() & set(builtin_names())
    assert {name for names in LIBRARY_NAMES.values() for name in names} <= set(builtin_names())


def test_source_of_the_wrong_type() -> None:
    with pytest.raises(InputTypeError, match="of type `NoneType`"):
        load_statistic(None)


def test_file_names_become_names(tmp_path: Path) -> None:
    path = tmp_path / "my f1 (new).YML"
    path.write_text(F1.replace("name: f1\n", ""))
    assert load_statistic(str(path)).name == "my_f1__new_"


def test_pairs_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    statistic = load(tmp_path, "g: {x: u.a ** 3 - v.a ** 3}\nh: x\n")
    observed, swapped = statistic.pairs(np.array([[2**20]]), np.array([[1]]))
    assert observed.tolist() == [[2**60 - 1]]
    assert swapped.tolist() == [[1 - 2**60]]
    with pytest.raises(SpecError, match="`x` reaches"):
        statistic.pairs(np.array([[2**21]]), np.array([[1]]))


def test_pairs_that_divide_by_zero_are_refused(tmp_path: Path) -> None:
    statistic = load(tmp_path, "g: {x: u.a // v.b - v.a // u.b}\nh: x\n")
    with pytest.raises(SpecError, match="a division by zero") as caught:
        statistic.pairs(np.array([[1, 1]]), np.array([[1, 0]]))
    assert underlined(str(caught.value)) == "v.b"


def test_counts_out_of_range(tmp_path: Path) -> None:
    statistic = load(tmp_path, "counts: {a: x // y}\nscore: a\n")
    table = nw.from_native(pl.DataFrame({"x": [7, 1], "y": [-2, 0]}))
    counts = table.select(**count_expressions(statistic, dict.fromkeys("xy", ColumnType.INTEGER)))
    assert counts["a"].to_list() == [-4, OUT_OF_RANGE]


@pytest.mark.parametrize("score", ["a / n", "sqrt(a / n)"])
def test_documents_of_scores_without_a_value_read_back(tmp_path: Path, score: str) -> None:
    statistic = load(tmp_path, f"counts: {{a: x, n: 0}}\nscore: {score}\n")
    assert written_spec(load(tmp_path, written_spec(statistic))) == written_spec(statistic)


def test_more_counts_than_there_may_be_are_one_problem_at_once(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text("counts:\n" + "".join(f"  c{i}: zz{i} +\n" for i in range(4_000)) + "score: c0\n")
    assert [problem.message.partition("\n")[0] for problem in problems(path)] == [
        "more than 200 entries at `$.counts`"
    ]
