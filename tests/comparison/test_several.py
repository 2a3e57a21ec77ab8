"""Several statistics and slices of the same two runs as one corrected family."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import bdtr
from support.comparisons import accuracy, answers, run_data

import trackperm
from trackperm.choices import EngineName
from trackperm.comparison import CORRECTIONS, Comparison, RunData, compare_statistics, corrected
from trackperm.errors import InputError, InputTypeError, PairingError
from trackperm.exact.multiplicity import ADJUSTMENTS, adjust
from trackperm.ledger.comparison_publication import evidence, publication
from trackperm.ledger.verification.recomputation import verify_files, verify_from_runs
from trackperm.report import description, text, view
from trackperm.report.headline import headline
from trackperm.statistic import Statistic, load_statistic

ERRORS = "name: errors\ngreater_is_better: false\ncounts: {n: prediction != label}\nscore: n\n"


def by_language(right: dict[str, tuple[list[bool], list[bool]]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both runs' tables, from what is right in each language."""
    frames = []
    for side in (0, 1):
        outcomes = [outcome for both in right.values() for outcome in both[side]]
        languages = [language for language, both in right.items() for _ in both[side]]
        frames.append(answers(outcomes).with_columns(language=pl.Series(languages)))
    return frames[0], frames[1]


TABLES = by_language(
    {
        "de": ([False] * 12 + [True] * 8, [True] * 20),
        "en": ([True] * 9 + [False] * 3, [True] * 3 + [False] * 9),
        "fr": ([True, False, True], [True, True, True]),
    }
)


def runs(baseline: pl.DataFrame = TABLES[0], candidate: pl.DataFrame = TABLES[1]) -> list[RunData]:
    return run_data(baseline, candidate)


@pytest.fixture
def sliced(tmp_path: Path) -> Statistic:
    path = tmp_path / "sliced.yaml"
    path.write_text("counts: {correct: prediction == label, n: 1}\nscore: correct / n\nslices: [language]\n")
    return load_statistic(path)


def titles(comparisons: list[Comparison]) -> list[str]:
    return [comparison.title for comparison in comparisons]


@pytest.mark.parametrize(
    ("n_logged", "place", "named"), [(1, 0, None), (2, 1, "m0"), (3, 2, "m0"), (3, 0, "m1")]
)
def test_one_of_several_logged_metrics_that_is_refused_can_be_left_out(
    n_logged: int, place: int, named: str | None
) -> None:
    """The first other metric that was logged is named."""
    logged = [
        replace(load_statistic("mean", columns={"score": f"m{i}"}), name=f"m{i}", chosen="as logged")
        for i in range(3)
    ]
    frames = [frame.with_columns(m0=pl.lit(0.5), m1=pl.lit(0.5)) for frame in TABLES]
    broken = [frame.with_columns(pl.lit("x").alias(f"m{place}")) for frame in frames]
    with pytest.raises((InputError, InputTypeError)) as caught:
        compare_statistics(*runs(*broken), logged[:n_logged])
    found = re.findall("`--metric ([^`]*)` compares one metric only", caught.value.hint or "")
    assert found == ([named] if named else [])


def test_one_comparison_needs_no_correction() -> None:
    (alone,) = compare_statistics(*runs(), [load_statistic("accuracy")])
    assert alone.corrected is None
    assert "adjusted" not in "\n".join(text.lines(alone))


def test_uncorrected_results_are_labelled_everywhere(sliced: Statistic) -> None:
    found = compare_statistics(*runs(), [sliced], correction="none")
    english = found[2]
    assert (english.verdict, english.corrected, english.n_uncorrected) == ("worse", None, 4)
    assert "(uncorrected: one of 4 tests)" in text.lines(english)[1]
    assert "uncorrected: one of 4 tests" in headline(english)
    assert "uncorrected: one of 4 tests" in description.markdown(english)
    assert "without correction, although it is one of 4 tests" in description.markdown(english)
    assert ("correction", "none", "uncorrected: one of 4 tests") in view.facts(english)
    assert english.to_dict()["n_uncorrected"] == 4
    assert str(publication(found[0]).candidate_tags["sig.sliced"]).endswith(" uncorrected")
    assert "|corrected:none/4|" in english.signature
    assert english.key != compare_statistics(*runs(), [sliced])[2].key
    (alone,) = compare_statistics(*runs(), [load_statistic("accuracy")], correction="none")
    assert alone.n_uncorrected is None
    assert "uncorrected" not in "\n".join(text.lines(alone))


@pytest.mark.extended
def test_uncorrected_results_are_verified(sliced: Statistic) -> None:
    both = runs()
    logged = compare_statistics(*both, [sliced], correction="none")[1]
    files = evidence(logged)
    assert verify_files(files).matches
    assert verify_from_runs(files, *both).matches


def test_declared_slices_join_the_family(sliced: Statistic) -> None:
    found = compare_statistics(*runs(), [sliced])
    assert titles(found) == [
        "sliced",
        "sliced [language = de]",
        "sliced [language = en]",
        "sliced [language = fr]",
    ]
    assert [comparison.n_examples for comparison in found] == [35, 20, 12, 3]
    wanted = adjust([comparison.pvalue for comparison in found], "holm").tolist()
    assert [comparison.corrected.pvalue for comparison in found if comparison.corrected] == wanted
    assert [comparison.verdict for comparison in found] == ["undecided", "better", "undecided", "undecided"]
    english = found[2]
    assert english.pvalue < english.alpha < wanted[2], "significant alone, and not among four"
    assert "exploratory" not in "\n".join(text.lines(english))
    assert len({comparison.key for comparison in found}) == 4


def test_other_slices_are_exploratory() -> None:
    found = compare_statistics(*runs(), [load_statistic("accuracy")], slices=["language"])
    assert "exploratory" not in "\n".join(text.lines(found[0]))
    assert all("exploratory" in "\n".join(text.lines(part)) for part in found[1:])


def test_slices_get_no_warnings_about_the_logs() -> None:
    """A class may be predicted without errors, without changes, or by chance."""
    n = 400
    languages, rng = ["de", "en", "fr", "it"], np.random.default_rng(3)
    baseline, candidate = (rng.choice(languages, 4 * n, p=[0.4, 0.3, 0.2, 0.1]) for _ in range(2))
    labels = np.repeat(languages, n)
    for side in (baseline, candidate):
        side[:n] = "de"
        side[n : 2 * n] = labels[n : 2 * n]
    baseline[:9] = "fr"
    tables = [
        pl.DataFrame({"id": range(4 * n), "prediction": side, "label": labels})
        for side in (baseline, candidate)
    ]
    found = trackperm.compare(*tables, "accuracy", slices="label")
    assert [note for each in found for note in each.pairing.notes if "look:" in note] == []
    spoilt = [table.with_columns(prediction="label") for table in tables]
    alike = trackperm.compare(*spoilt, "accuracy", slices="label")
    assert ["look:" in str(each.pairing.notes) for each in alike] == [True, False, False, False, False]


def test_a_slice_equals_a_comparison_of_its_examples(sliced: Statistic) -> None:
    german = compare_statistics(*runs(), [sliced], correction="none")[1]
    (alone,) = compare_statistics(
        *runs(*(table.filter(pl.col("language") == "de") for table in TABLES)), [load_statistic("accuracy")]
    )
    assert german.corrected is None
    assert (german.pvalue, german.difference) == (alone.pvalue, alone.difference)


def test_the_order_of_rows_and_the_type_of_a_slice_do_not_matter(sliced: Statistic) -> None:
    baseline, candidate = (
        table.with_columns(language=pl.col("language").replace_strict({"de": 1, "en": 2, "fr": 3}))
        for table in TABLES
    )
    first = compare_statistics(*runs(baseline, candidate), [sliced])
    second = compare_statistics(
        *runs(baseline.reverse(), candidate.sample(fraction=1, shuffle=True, seed=1)), [sliced]
    )
    assert titles(first) == titles(second) == ["sliced", *(f"sliced [language = {i}]" for i in (1, 2, 3))]
    assert [c.pvalue for c in first] == [c.pvalue for c in second]


def test_an_example_in_two_slices_is_refused(sliced: Statistic) -> None:
    moved = TABLES[1].with_columns(
        language=pl.when(pl.col("id") == "dev-0003").then(pl.lit("en")).otherwise(pl.col("language"))
    )
    with pytest.raises(
        PairingError, match=r"differs between the runs on 1 examples: first of example 'dev-0003'"
    ):
        compare_statistics(*runs(TABLES[0], moved), [sliced])


@pytest.mark.parametrize("lacking", [pytest.param(0, marks=pytest.mark.extended), 1])
def test_a_slice_that_one_run_lacks(sliced: Statistic, lacking: int) -> None:
    """Its predictions are missing: they are left out, counted as wrong, or bounded."""
    tables = list(TABLES)
    tables[lacking] = tables[lacking].filter(pl.col("language") != "fr")
    both = runs(*tables)
    with pytest.raises(PairingError, match="3 of 35 examples"):
        compare_statistics(*both, [sliced])
    dropped = compare_statistics(*both, [sliced], missing="drop")
    assert [each.title for each in dropped] == ["sliced", "sliced [language = de]", "sliced [language = en]"]
    note = "slice language = fr is not tested: no example of it is complete in both runs"
    assert dropped[0].pairing.notes[-1] == note
    with pytest.raises(InputError, match=r"^slice language = fr: no example of it is complete"):
        compare_statistics(*both, [sliced], missing="drop", require_slices=True)
    spec = load_statistic("accuracy")
    compared = partial(compare_statistics, *both, [spec], slices=["language"], require_slices=True)
    french = compared(missing="wrong")[3]
    right = TABLES[1 - lacking].filter(pl.col("language") == "fr", pl.col("prediction") == pl.col("label"))
    scores = [len(right) / 3, 0.0] if lacking else [0.0, len(right) / 3]
    assert [french.baseline_score, french.candidate_score] == scores
    assert not [note for note in french.pairing.notes if note.startswith("folds")]
    files = evidence(french)
    assert verify_files(files).matches
    assert verify_from_runs(files, *both).matches
    assert [case.difference for case in compared(missing="bounds")[3].cases] == [
        pytest.approx(scores[1] - 1.0 if not lacking else -scores[0]),
        pytest.approx(scores[1] if not lacking else 1.0 - scores[0]),
    ]


def test_a_slice_without_a_prediction_of_one_run_is_left_out(sliced: Statistic) -> None:
    """Regression: the error of `--missing drop` was that no example is left, and named `--id`."""
    tables = list(TABLES)
    french = pl.col("language") == "fr"
    tables[1] = tables[1].with_columns(prediction=pl.when(~french).then("prediction"))
    found = compare_statistics(*runs(*tables), [sliced], missing="drop")
    assert len(found) == 3
    assert "slice language = fr is not tested" in found[0].pairing.notes[-1]


def test_rows_without_a_slice_and_whole_numbers_of_pandas(tmp_path: Path) -> None:
    """pandas writes integers beside a missing value as `1.0`."""
    tables = [
        table.with_columns(year=pl.int_range(pl.len()) % 3).with_columns(
            year=pl.when(pl.col("year") > 0).then("year")
        )
        for table in TABLES
    ]
    tables[1] = tables[1].with_columns(pl.col("year").cast(pl.Float64))
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for table, path in zip(tables, paths, strict=True):
        table.write_csv(path)
    found = trackperm.compare(*paths, "accuracy", slices="year")
    assert titles(found) == ["accuracy", "accuracy [year = 1]", "accuracy [year = 2]"]
    assert (
        f"12 of 35 rows of `{paths[0]}` have no value in `year` and are in no slice" in found[0].pairing.notes
    )
    verified = verify_from_runs(
        evidence(found[1]), *(each for each in (found[1].baseline_data, found[1].candidate_data))
    )
    assert verified.matches


@pytest.mark.parametrize("engine", ["polars", pytest.param("duckdb", marks=pytest.mark.extended)])
def test_examples_that_only_labels_supply_are_in_the_slice_of_the_other_run(engine: EngineName) -> None:
    """Regression: they had no slice, which differed from that of the other run."""
    gold = TABLES[0].select("id", "label")
    tables = [TABLES[0].drop("label")[2:], TABLES[1].drop("label")[:-2]]
    compared = partial(trackperm.compare, *tables, "accuracy", labels=gold, slices="language", engine=engine)
    assert [each.n_examples for each in compared(missing="drop")] == [31, 18, 12, 1]
    assert [each.n_examples for each in compared(missing="wrong")] == [35, 20, 12, 3]


def test_a_column_that_tells_the_rows_of_one_example_apart_makes_no_slices() -> None:
    tables = [pl.concat([table.with_columns(attempt=pl.lit(i)) for i in (0, 1)]) for table in TABLES]
    for engine in ("polars", "duckdb"):
        with pytest.raises(PairingError, match="`attempt` has several values on the rows of 35 examples of"):
            trackperm.compare(*tables, "accuracy", repeats="sum", slices="attempt", engine=engine)


def without_positives(*languages: str) -> list[pl.DataFrame]:
    """Return the two tables with labels `no` but in these languages, whose labels are `x`."""
    label = pl.when(pl.col("language").is_in(languages)).then(pl.lit("x")).otherwise(pl.lit("no"))
    return [table.with_columns(label=label) for table in TABLES]


def test_a_slice_without_a_score_is_not_tested() -> None:
    """Regression: one such slice refused the whole comparison."""
    spec = load_statistic("recall", parameters={"positive": "no"})
    tables = without_positives("fr")
    found = compare_statistics(*runs(*tables), [spec], slices=["language"])
    assert titles(found) == ["recall", "recall [language = de]", "recall [language = en]"]
    note = "slice language = fr is not tested: `recall` is 0/0 in both runs, so there is nothing to compare"
    assert [note in text.lines(each) for each in found] == [True, False, False]
    assert note in found[0].to_dict()["pairing"]["notes"]
    assert "lice language = fr is not tested" in description.markdown(found[0])
    assert [each.corrected.n_tests for each in found if each.corrected] == [3, 3, 3]
    both = [table.filter(pl.col("language") != "fr") for table in tables]
    assert [each.corrected for each in compare_statistics(*runs(*both), [spec], slices=["language"])] == [
        each.corrected for each in found
    ]
    files = evidence(found[0])
    assert verify_files(files).matches
    assert verify_from_runs(files, *runs(*tables)).matches


def test_a_slice_of_one_class_is_not_tested() -> None:
    labels = pl.when(pl.col("language") == "fr").then(0).otherwise(pl.int_range(pl.len()) % 2)
    tables = [
        table.with_columns(label=labels, score=pl.int_range(pl.len()) * 7 % n)
        for n, table in zip((5, 11), TABLES, strict=True)
    ]
    for name, said in {
        "roc_auc": "is undefined: all 3 examples have the `label` 0",
        "average_precision": "has no positive examples",
    }.items():
        spec = load_statistic(name)
        found = compare_statistics(*runs(*tables), [spec], slices=["language"])
        assert len(found) == 3
        assert f"slice language = fr is not tested: `{name}` {said}" in found[0].pairing.notes[-1]
    tables = [table.with_columns(prediction=pl.col("score")) for table in tables]
    found = compare_statistics(*runs(*tables), [load_statistic("r2")], slices=["language"])
    assert (
        "fr is not tested: `r2` is undefined: all labels of the examples are equal"
        in found[0].pairing.notes[-1]
    )


def test_a_slice_is_refused_where_it_must_not_vanish(tmp_path: Path) -> None:
    """Policies require all slices, and a column needs one that can be tested."""
    spec = load_statistic("recall", parameters={"positive": "no"})
    tables = without_positives("fr")
    without = "leave these examples out in both runs, or compare without"
    with pytest.raises(InputError, match=r"^slice language = fr: `recall` is 0/0 in both runs") as caught:
        compare_statistics(*runs(*tables), [spec], slices=["language"], require_slices=True)
    assert caught.value.hint == f"{without} `--slice language`."
    tables = [
        table.with_columns(part=pl.when(pl.col("language") == "fr").then(pl.lit("b"))) for table in tables
    ]
    path = tmp_path / "declared.yaml"
    path.write_text(
        "counts: {n: label == 'no', tp: label == 'no' and prediction == 'no'}\nscore: tp / n\n"
        "slices: [part]\n"
    )
    with pytest.raises(InputError, match=r"^slice part = b: `declared` is 0/0 in both runs") as caught:
        compare_statistics(*runs(*tables), [load_statistic(path)], slices=["language"])
    assert caught.value.hint == f"{without} `part` among the `slices` of the statistic's file."


def test_a_slice_to_which_an_exchange_gives_a_score_is_refused(tmp_path: Path) -> None:
    """Both runs divide by 0 in it, and not after the exchange of one output."""
    path = tmp_path / "product.yaml"
    path.write_text("counts: {a: prediction == 'a', b: prediction == 'b'}\nscore: a / (a * b)\n")
    sides = [
        pl.DataFrame({"id": range(5), "prediction": ["a", "b", "a", *own], "part": [*"xxx", *"yy"]})
        for own in (["a"] * 2, ["b"] * 2)
    ]
    with pytest.raises(InputError, match=r"^slice part = y: `product` is 0/0 in both runs") as caught:
        compare_statistics(*runs(*sides), [load_statistic(path)], slices=["part"])
    assert caught.value.hint == "leave these examples out in both runs, or compare without `--slice part`."


def test_a_slice_without_a_score_in_one_case_of_missing_predictions_is_refused() -> None:
    """If the only predictions that could be positive are missing, the score is defined in the worst case."""
    spec = load_statistic("f1", parameters={"positive": "x"})
    baseline = pl.DataFrame(
        {"id": range(6), "label": [*"xyxy", *"yy"], "prediction": [*"xxyy", *"yy"], "part": [*"aaaa", *"bb"]}
    )
    compared = partial(compare_statistics, statistics=[spec], slices=["part"], missing="bounds")
    found = compared(*runs(baseline, baseline.filter(pl.col("id") != 0)))
    assert titles(found) == ["f1", "f1 [part = a]"]
    assert found[0].pairing.notes[-1].startswith("slice part = b is not tested: `f1` is 0/0")
    with pytest.raises(InputError, match=r"^slice part = b: `f1` is 0/0 in both runs"):
        compared(*runs(baseline, baseline.filter(pl.col("id") != 5)))


def test_columns_that_cannot_make_slices_are_refused(sliced: Statistic) -> None:
    with pytest.raises(InputError, match="`candidate` has no column `language`"):
        compare_statistics(*runs(TABLES[0], TABLES[1].drop("language")), [sliced])
    many = [table.with_columns(language=pl.col("id")) for table in by_language({"x": ([True] * 120,) * 2})]
    with pytest.raises(InputError, match="has 120 values; expected 1 to 100 slices"):
        compare_statistics(*runs(*many), [sliced])


@pytest.mark.parametrize("method", sorted(CORRECTIONS))
def test_every_correction_is_conservative(method: str, sliced: Statistic) -> None:
    disjoint = compare_statistics(*runs(), [sliced], correction="none")[1:]
    for comparison, alone in zip(corrected(disjoint, method), disjoint, strict=True):
        assert comparison.corrected.n_tests == 3
        assert comparison.verdict in (alone.verdict, "undecided")
        # A false discovery rate may be below a p-value, where other tests cannot give as small ones.
        if comparison.corrected.controls == "FWER":
            assert comparison.corrected.pvalue >= alone.pvalue * (1 - 1e-12)
        assert comparison.corrected.rejected == (comparison.corrected.pvalue < 0.05)


def test_tiny_p_values_do_not_become_0() -> None:
    found = corrected([accuracy(4000, 0), accuracy(3000, 0)])
    assert [c.corrected.pvalue for c in found if c.corrected] == [0.0, 0.0]
    logs = [c.corrected.log10_pvalue for c in found if c.corrected and c.corrected.log10_pvalue]
    assert logs == pytest.approx([np.log10(4) - 4000 * np.log10(2), np.log10(2) - 3000 * np.log10(2)])
    assert "adjusted 3.03e-1204: Holm over 2 tests" in text.lines(found[0])[1]
    assert found[0].verdict == "better"


def test_bounds_of_an_adjusted_p_value_at_the_level_are_not_below_it() -> None:
    """0.03125 over 2 tests is 0.0625, which is not below 0.0625."""
    found = corrected([accuracy(6, 0, alpha=0.0625), accuracy(1, 1, alpha=0.0625)])
    assert [c.pvalue for c in found] == [0.03125, 1.0]
    assert [c.verdict for c in found] == ["undecided", "undecided"]


def test_of_an_error_rate_the_examples_that_lower_it_are_better(tmp_path: Path) -> None:
    path = tmp_path / "errors.yaml"
    path.write_text(ERRORS)
    (found,) = compare_statistics(
        *runs(answers([False] * 12 + [True] * 20), answers([True] * 29 + [False] * 3)), [load_statistic(path)]
    )
    assert (found.n_better, found.n_worse) == (12, 3)
    assert found.effect_sizes.odds == 4.0
    assert found.effect_sizes.odds_interval.low > 1.0
    assert (found.to_dict()["n_better"], found.to_dict()["n_worse"]) == (12, 3)


def test_the_interval_of_recall_is_that_of_accuracy_on_positives() -> None:
    from trackperm import compare

    labels = ["yes", "no"] * 60
    sides = []
    for shift in (3, 7):
        prediction = [
            ("no" if label == "yes" else "yes") if i % shift == 0 else label for i, label in enumerate(labels)
        ]
        sides.append(pl.DataFrame({"id": range(120), "prediction": prediction, "label": labels}))
    recall = compare(*sides, "recall", parameters={"positive": "yes"})
    accuracy_of_positives = compare(*(side.filter(pl.col("label") == "yes") for side in sides))
    assert recall.interval == accuracy_of_positives.interval
    assert recall.interval.method == "paired proportions"


@pytest.mark.parametrize("method", ADJUSTMENTS)
def test_the_detectable_effect_of_a_family_is_that_of_its_corrected_test(method: str) -> None:
    """By simulated families, whose other tests have no difference.

    Regression: the effect ignored the correction, and was shown in 36 rather than 80 of 100 families of 31.
    """
    one, n, n_tests = accuracy(20, 15, 200, 65), 300, 31
    share, alone = 35 / n, one.detectable.effect
    found = corrected([one] * n_tests, method)[0].detectable
    assert found.n_tests == n_tests
    assert str(found).endswith(f"at 80 % power (level {found.alpha:.2g}, corrected for 31 tests)")
    rng = np.random.default_rng(4)

    def shown(effect: float, n_families: int = 1000) -> float:
        discordant = rng.binomial(n, share, n_families)
        better = rng.binomial(discordant, (1.0 + effect / share) / 2.0)
        tails = bdtr(np.minimum(better, discordant - better), discordant, 0.5)
        others = rng.random((n_families, n_tests - 1))
        families = np.column_stack([np.minimum(2.0 * tails, 1.0), others])
        return float(np.mean([adjust(family, method)[0] < 0.05 for family in families]))

    error = 4.0 * np.sqrt(0.8 * 0.2 / 1000)
    assert 0.8 - error < shown(found.effect) < 0.86
    assert shown(alone) < 0.5


def test_a_family_that_can_reach_no_corrected_verdict_detects_nothing() -> None:
    """16 discordant examples of different sizes have p = 2/2^16 at least, which is above 0.05/3000."""
    old = pl.DataFrame({"id": range(20), "score": [0] * 20})
    new = old.with_columns(score=pl.Series([1, 2, 4, 8, 16, -32] + [0] * 14))
    one = compare_statistics(*run_data(old, new), [load_statistic("mean")])[0]
    assert one.detectable.effect is None, "6 of 20 are too rarely at least 6"
    new = old.with_columns(score=pl.Series([2**i * (-1) ** i for i in range(8)] * 2 + [0] * 4))
    one = compare_statistics(*run_data(old, new), [load_statistic("mean")])[0]
    assert one.detectable.effect is not None
    assert corrected([one] * 3000)[0].detectable.effect is None
