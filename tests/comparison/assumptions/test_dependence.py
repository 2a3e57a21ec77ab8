"""Dependent examples are detected, independent ones are not, and clusters are tested."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom
from support.budget import Measured, cases
from support.comparisons import numbered, run_data
from support.document_effects import documents, sides
from support.engines import spark_session
from support.specs import load

import trackperm
from trackperm.choices import EngineName
from trackperm.comparison import Comparison, Dependence, RunData, compare_runs
from trackperm.comparison.assumptions.dependence import above_noise, shares_of
from trackperm.pairing.cluster_columns import ClusterColumn
from trackperm.pairing.pair import pair_in_memory as pair
from trackperm.report import html, text
from trackperm.report.description import markdown
from trackperm.report.notes import notes_of
from trackperm.statistic import Statistic, load_statistic
from trackperm.tables.table import ExampleTable

MACRO = """
counts: {correct: prediction == label, n: 1}
score: correct / n
strata: language
"""


def compared(
    frames: list[pl.DataFrame], statistic: str | Statistic = "accuracy", **options: Any
) -> Comparison:
    found: Comparison = trackperm.compare(frames[0], frames[1], statistic, **options)
    return found


def both(frames: list[pl.DataFrame], *columns: pl.Series) -> list[pl.DataFrame]:
    return [frame.with_columns(*columns) for frame in frames]


def looks(comparison: Comparison) -> list[str]:
    return [note for note in notes_of(comparison) if "design effect" in note]


class TestWhatIsSaid:
    def test_a_document_effect(self) -> None:
        frames = sides(np.random.default_rng(1), documents(), 1.0)
        found = compared(frames)
        (seen,) = found.dependence
        by_cluster = compared(frames, load_statistic("accuracy", cluster="document"))
        assert (seen.column, seen.n_clusters, seen.n_shared, seen.is_input) == ("document", 40, 400, False)
        assert seen.pvalue == by_cluster.pvalue
        assert seen.log10_pvalue == by_cluster.log10_pvalue
        assert seen.verdict == by_cluster.verdict
        assert seen.design_effect == pytest.approx(1 + 9 * seen.icc)
        assert looks(found) == [
            "look: the differences between the runs are correlated within each `document` (intra-class"
            f" correlation {seen.icc:.2f}, design effect {seen.design_effect:.1f}): by `document`,"
            f" p = {by_cluster.format_pvalue()}; `--cluster document` tests whole clusters"
        ]
        assert 0.1 < seen.icc < 0.5
        assert by_cluster.pvalue > 2 * found.pvalue

    def test_everywhere(self) -> None:
        found = compared(sides(np.random.default_rng(1), documents(), 1.0))
        (line,) = looks(found)
        assert line in text.lines(found)
        assert "design effect" in html(found)
        assert "design effect" in markdown(found)
        (logged,) = json.loads(found.to_json())["dependence"]
        assert Dependence(**logged) == found.dependence[0]

    def test_nothing_else_depends_on_it(self) -> None:
        """Verdict, key and signature are those of the runs without the column."""
        frames = sides(np.random.default_rng(1), documents(), 1.0)
        found, without = compared(frames), compared([frame.drop("document") for frame in frames])
        assert without.dependence == ()
        for name in ("pvalue", "verdict", "key", "signature", "interval"):
            assert getattr(found, name) == getattr(without, name)

    def test_declared_clusters_are_not_searched(self) -> None:
        frames = sides(np.random.default_rng(1), documents(), 1.0)
        assert compared(frames, cluster="document").dependence == ()

    def test_rows_that_are_paired_by_position(self) -> None:
        frames = sides(np.random.default_rng(1), documents(), 1.0)
        found = compared([frame.rename({"id": "row"}) for frame in frames], by_position=True)
        assert found.dependence == compared(frames).dependence != ()

    @pytest.mark.sample(4)
    @pytest.mark.parametrize("name", ["task_id", "sample_id", "question_id", "instance_id", "qid", "doc_id"])
    @pytest.mark.parametrize("as_text", [False, True])
    def test_attempts_with_an_id_of_each_row(self, name: str, as_text: bool) -> None:
        """Four attempts at 30 examples look like 120 examples, by which p would be 0.001."""
        task = np.tile(np.arange(30), 4)
        values = [f"t-{i}" for i in task] if as_text else task
        right = task < 10, (task < 8) | ((task >= 10) & (task < 17))
        frames = [numbered(**{name: values, "correct": each.astype(int)}) for each in right]
        found = compared(frames, None)
        (seen,) = found.dependence
        assert (seen.column, seen.n_clusters, found.verdict, seen.verdict) == (
            name,
            30,
            "better",
            "undecided",
        )
        assert seen.pvalue == pytest.approx(2 * binom.cdf(2, 9, 0.5))

    def test_attempts_at_few_tasks_without_an_id(self) -> None:
        task = np.tile(np.arange(15), 8)
        right = task < 6, (task < 5) | ((task >= 6) & (task < 11))
        frames = [pl.DataFrame({"task_id": task, "score": each.astype(int)}) for each in right]
        (seen,) = compared(frames, None, by_position=True).dependence
        assert (seen.column, seen.verdict) == ("task_id", "undecided")
        assert seen.pvalue == pytest.approx(2 * binom.cdf(1, 6, 0.5))

    def test_independent_examples_with_the_id_of_a_task(self) -> None:
        rng = np.random.default_rng(2)
        task, said = np.repeat(np.arange(40), 10), 0
        for _ in range(10):
            frames = [numbered(task_id=task, correct=rng.integers(0, 2, 400)) for _ in range(2)]
            said += len(compared(frames, None).dependence)
        assert said == 0

    def test_no_effect(self) -> None:
        found = [compared(sides(np.random.default_rng(seed), documents(), 0.0)) for seed in range(5)]
        assert [each.dependence for each in found] == [()] * 5

    def test_columns_share_the_level(self) -> None:
        """Eight columns, four of them with names of clusters, on independent examples."""
        rng = np.random.default_rng(0)
        n, said = 300, 0
        for _ in range(n):
            shares = rng.integers(-1, 2, 240).astype(np.float64)
            columns = [
                ClusterColumn(f"c{i}", rng.permutation(np.arange(240) % 30), is_called=i < 4, is_input=False)
                for i in range(8)
            ]
            said += bool(list(above_noise((column, shares) for column in columns)))
        assert said <= binom.ppf(1 - 1e-4, n, 0.01)

    def test_harder_documents_are_not_an_effect(self) -> None:
        """An F test mistakes documents with more differences, in favour of neither run, for correlation."""
        rng = np.random.default_rng(3)
        document = documents()
        chance = np.where(document % 4 == 0, 0.5, 0.02)
        label = np.ones(document.size, dtype=np.int64)
        frames = [
            numbered(document=document, label=label, prediction=rng.random(400) > chance).with_columns(
                pl.col("prediction").cast(pl.Int64)
            )
            for _ in range(2)
        ]
        assert compared(frames).n_discordant > 50
        assert compared(frames).dependence == ()

    def test_a_better_run_is_not_an_effect(self) -> None:
        found = compared(sides(np.random.default_rng(2), documents(), 0.0, better=1.0))
        assert found.verdict == "better"
        assert found.dependence == ()

    def test_equal_clusters_are_reported_once(self) -> None:
        frames = sides(np.random.default_rng(1), documents(), 1.0)
        titles = pl.Series("title", [f"title of {i}" for i in documents()])
        assert [each.column for each in compared(both(frames, titles)).dependence] == ["document"]

    def test_the_two_largest(self) -> None:
        """Among books, chapters and pages, by the design effect."""
        rng = np.random.default_rng(7)
        page = documents(100, 4)
        frames = [
            frame.rename({"document": "page"}).with_columns(
                pl.Series("chapter", page // 2), pl.Series("book", page // 5)
            )
            for frame in sides(rng, page // 5, 1.2)
        ]
        frames = both([frame.drop("page") for frame in frames], pl.Series("page", page))
        found = compared(frames).dependence
        assert [each.column for each in found] == ["book", "chapter"]
        assert found[0].design_effect > found[1].design_effect

    def test_many_examples(self) -> None:
        """The search has no largest number of examples."""
        document = documents(25_001, 8)
        found = compared(sides(np.random.default_rng(1), document, 1.0))
        assert [(each.column, each.n_examples) for each in found.dependence] == [("document", document.size)]

    def test_slices_are_not_checked(self) -> None:
        frames = both(
            sides(np.random.default_rng(1), documents(), 1.0),
            pl.Series("language", ["en", "de"] * 200),
        )
        whole, *parts = trackperm.compare(frames[0], frames[1], "accuracy", slices=["language"])
        assert [len(each.dependence) for each in (whole, *parts)] == [1, 0, 0]

    def test_missing_predictions(self) -> None:
        frames = sides(np.random.default_rng(1), documents(), 1.0)
        spec = load_statistic("accuracy")
        found = compared([frames[0].head(390), frames[1].tail(395)], spec, missing="wrong")
        assert found.n_examples == 400
        assert [each.n_shared for each in found.dependence] == [400]
        bounds = compared([frames[0].head(398), frames[1]], spec, missing="bounds")
        assert [each.column for each in bounds.dependence] == ["document"]


class TestInputs:
    def twins(self, seed: int, n: int, copies: int = 2) -> list[pl.DataFrame]:
        """Every input `copies` times under different ids, with equal answers."""
        rng = np.random.default_rng(seed)
        frames = sides(rng, np.arange(n), 0.0)
        question = pl.Series("question", [f"what is {i}?" for i in range(n)])
        return [
            pl.concat([frame.drop("document").with_columns(question)] * copies).with_columns(
                pl.Series("id", np.arange(copies * n))
            )
            for frame in frames
        ]

    def test_twins(self) -> None:
        frames = self.twins(1, 200)
        found = compared(frames)
        (seen,) = found.dependence
        alone = compared([frame.head(200) for frame in frames])
        assert (seen.column, seen.is_input, seen.n_shared) == ("question", True, 400)
        assert (seen.icc, seen.design_effect) == (1.0, 2.0)
        assert seen.pvalue == pytest.approx(alone.pvalue), "the test of each input once"
        assert looks(found) == [
            "look: 400 of 400 examples share their `question` with another, but count as independent"
            f" (intra-class correlation 1.00, design effect 2.0): by `question`, p = {alone.format_pvalue()};"
            " `--cluster question` tests whole clusters"
        ]

    def test_twins_with_few_differences_are_reported(self) -> None:
        """Duplicate examples need no proof by outcomes."""
        frames = self.twins(1, 200)
        few = pl.col("id") % 200 < 3
        frames[1] = frames[0].with_columns(
            pl.when(few).then(1 - pl.col("prediction")).otherwise(pl.col("prediction")).alias("prediction")
        )
        assert compared(frames).n_discordant == 6
        assert [each.column for each in compared(frames).dependence] == ["question"]

    def test_a_few_twins_matter_little(self) -> None:
        frames = [pl.concat([frame.head(200), frame.tail(5)]) for frame in self.twins(1, 200)]
        assert compared(frames).dependence == ()

    def test_a_question_about_many_texts(self) -> None:
        """Another part of the input distinguishes the examples, which are independent."""
        question = pl.Series("question", [f"what is {i % 200}?" for i in range(400)])
        passage = pl.Series("passage", [f"text {i}" for i in range(400)])
        frames = sides(np.random.default_rng(5), np.arange(400), 0.0)
        frames = both([frame.drop("document") for frame in frames], question)
        assert [each.column for each in compared(frames).dependence] == ["question"]
        assert compared(both(frames, passage)).dependence == ()

    def test_templates_are_not_inputs(self) -> None:
        frames = sides(np.random.default_rng(4), np.arange(400), 0.0)
        prompts = pl.Series("prompt", [f"template {i % 8}" for i in range(400)])
        assert compared(both(frames, prompts)).dependence == ()

    def test_the_hash_of_an_input_is_reported_once(self) -> None:
        runs = [
            RunData(
                ExampleTable(
                    ExampleTable.from_native(frame.rename({"question": "input_hash"}), name).frame,
                    name,
                    identity=("input_hash",),
                ),
                name,
            )
            for frame, name in zip(self.twins(1, 200), ("a", "b"), strict=True)
        ]
        found = compare_runs(runs[0], runs[1], load_statistic("accuracy"))
        notes = [note for note in notes_of(found) if "share their" in note]
        assert len(notes) == 1
        assert "design effect 2.0" in notes[0]
        by_hash = compare_runs(runs[0], runs[1], load_statistic("accuracy", cluster="input_hash"))
        assert not any("count as independent" in note for note in notes_of(by_hash)), "they do not"


class TestEngines:
    """Rows that DuckDB or Spark holds are searched there, with the same result."""

    @staticmethod
    def runs(kind: str) -> list[pl.DataFrame]:
        """Runs with clusters, in two orders, and columns that cannot be clusters."""
        rng = np.random.default_rng(1)
        frames = both(
            sides(rng, documents(), 1.0),
            pl.Series("author", [f"author {i // 30}" for i in range(400)]),
            pl.Series("source", ["web"] * 399 + [None]),
            pl.Series("language", ["en", "de", "fr", "en"] * 100),
            pl.Series("question", [f"what is {i // 2}?" for i in range(400)]),
        )
        frames[1] = frames[1].with_columns(thread=pl.col("document") + 1).sort("label", "id")
        frames[0] = frames[0].with_columns(thread=pl.col("document"))
        if kind == "scores":
            frames = [
                frame.with_columns(score=pl.col("prediction") * 0.7 + 0.01 * pl.col("label"))
                for frame in frames
            ]
        if kind == "repeats":
            frames = [
                pl.concat([frame.with_columns(epoch=pl.lit(epoch)) for epoch in range(3)]) for frame in frames
            ]
        if kind == "part of an id":
            frames = [
                frame.drop("author").rename({"document": "part"}).with_columns(id=pl.col("id") % 10)
                for frame in frames
            ]
        return [frames[0].head(396), frames[1]] if kind == "missing" else frames

    @pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
    @pytest.mark.parametrize(
        ("kind", "statistic", "options"),
        [
            ("plain", "accuracy", {}),
            ("plain", "f1", {}),
            ("plain", "macro_f1", {}),
            ("plain", "strata", {}),
            ("scores", "mean", {}),
            ("repeats", "accuracy", {}),
            ("repeats", "macro_f1", {}),
            ("repeats", "strata", {}),
            ("part of an id", "accuracy", {"columns": {"id": "part,id"}}),
            ("missing", "accuracy", {"missing": "wrong"}),
        ],
    )
    @pytest.mark.sample(4, spark=2)
    def test_the_engine_changes_nothing(
        self, engine: EngineName, kind: str, statistic: str, options: dict[str, Any], tmp_path: Path
    ) -> None:
        if engine == "spark":
            spark_session()
        frames = self.runs(kind)
        spec = load(tmp_path, MACRO) if statistic == "strata" else load_statistic(statistic)
        expected = compared(frames, spec, engine="polars", **options)
        found = compared(frames, spec, engine=engine, **options)
        assert expected.dependence
        assert [replace(each, icc=0.0, design_effect=0.0) for each in found.dependence] == [
            replace(each, icc=0.0, design_effect=0.0) for each in expected.dependence
        ]
        for one, other in zip(found.dependence, expected.dependence, strict=True):
            assert (one.icc, one.design_effect) == pytest.approx((other.icc, other.design_effect), rel=1e-9)
        assert (str(found), found.key) == (str(expected), expected.key)


class TestStatistics:
    @pytest.mark.sample(3)
    @pytest.mark.parametrize("name", ["accuracy", "f1", "mcc", "macro_f1", "mean", "strata"])
    def test_any_statistic(self, name: str, tmp_path: Path) -> None:
        frames = sides(np.random.default_rng(1), documents(), 1.0)
        frames = both(frames, pl.Series("language", ["en", "de", "fr", "en"] * 100))
        frames = [
            frame.with_columns(score=(pl.col("prediction") == pl.col("label")).cast(pl.Float64) * 0.7)
            for frame in frames
        ]
        statistic = load(tmp_path, MACRO) if name == "strata" else load_statistic(name)
        (seen,) = compared(frames, statistic).dependence
        assert seen.column == "document"
        assert 1.5 < seen.design_effect < 6
        assert seen.pvalue == compared(frames, load_statistic(statistic, cluster="document")).pvalue

    @pytest.mark.parametrize("name", ["accuracy", "strata", "f1", "macro_f1"])
    def test_shares_add_up_to_the_statistic(self, name: str, tmp_path: Path) -> None:
        """Exactly for additive statistics, to first order for others."""
        frames = sides(np.random.default_rng(1), documents(), 0.5, better=0.1)
        frames = both(frames, pl.Series("language", ["en", "de", "fr", "en"] * 100))
        statistic = load(tmp_path, MACRO) if name == "strata" else load_statistic(name)
        tables = [ExampleTable.from_native(frame, role) for frame, role in zip(frames, "ab", strict=True)]
        shares = shares_of(pair(tables[0], tables[1], statistic))
        assert shares is not None
        difference = compared(frames, statistic).difference
        is_additive = name in ("accuracy", "strata")
        assert shares.sum() == pytest.approx(difference, rel=1e-6 if is_additive else 0.02)
        if name == "accuracy":
            right = [(frame["prediction"] == frame["label"]).to_numpy().astype(int) for frame in frames]
            assert shares * 400 == pytest.approx(right[1] - right[0], abs=1e-6)

    def test_rows_of_an_example_that_are_taken_together(self) -> None:
        """Documents of examples that have five epochs each."""
        frames = [
            pl.concat([frame.with_columns(epoch=pl.lit(epoch)) for epoch in range(3)])
            for frame in sides(np.random.default_rng(1), documents(), 1.0)
        ]
        found = compared(frames)
        assert found.n_examples == 400
        (seen,) = found.dependence
        assert (seen.column, seen.n_examples) == ("document", 400)

    def test_rows_as_units_of_a_document_and_a_number(self) -> None:
        """The first part of an id of two columns is a cluster of what it identifies."""
        frames = [
            frame.rename({"document": "part"}).with_columns(id=pl.col("id") % 10)
            for frame in sides(np.random.default_rng(1), documents(), 1.0)
        ]
        found = compared(frames, columns={"id": "part,id"})
        assert [each.column for each in found.dependence] == ["part"]


@pytest.mark.slow
@pytest.mark.generated
class TestSize:
    """Rejection rates at 5 % for equally good runs; `-s` prints them."""

    def test_of_an_undeclared_document_effect(self, measured: Measured) -> None:
        n = cases(100)
        by_example, by_cluster, said = self.rates(0.9, n, measured)
        assert 0.18 * n < by_example < 0.36 * n
        assert by_cluster <= binom.ppf(1 - 1e-4, n, 0.05)
        assert by_cluster > 0.01 * n
        assert said >= 0.95 * n

    def test_of_independent_examples(self, measured: Measured) -> None:
        n = cases(100)
        by_example, _, said = self.rates(0.0, n, measured)
        assert by_example <= binom.ppf(1 - 1e-4, n, 0.05)
        assert said <= binom.ppf(1 - 1e-3, n, 0.01)

    def rates(self, effect: float, n: int, measured: Measured) -> tuple[int, int, int]:
        rng, document = np.random.default_rng(40), documents()
        statistics = load_statistic("accuracy"), load_statistic("accuracy", cluster="document")
        by_example = by_cluster = said = 0
        for _ in range(n):
            remark = pl.Series("remark", [f"remark {i}" for i in rng.integers(0, 80, document.size)])
            runs = run_data(*both(sides(rng, document, effect), remark))
            found, clustered = (compare_runs(runs[0], runs[1], each) for each in statistics)
            by_example += found.pvalue < 0.05
            by_cluster += clustered.pvalue < 0.05
            said += bool(found.dependence)
        shares = f"by example {by_example / n:.3f}, by document {by_cluster / n:.3f}, said {said / n:.3f}"
        measured(f"document effect {effect}: {shares}")
        return by_example, by_cluster, said


@pytest.mark.parametrize("pvalue", [0.0, 1e-300])
def test_a_p_value_below_the_range_of_floats_is_shown(pvalue: float) -> None:
    log10 = -400.0 if pvalue == 0.0 else -300.0
    found = Dependence("question", 10, 20, 20, False, 0.5, 1.5, pvalue, log10, "lattice", "better")
    assert found.sentence("p", 0.05).endswith(f"by `question`, p = 1e{log10:.0f}")


def test_a_certified_upper_end_is_shown_as_one() -> None:
    """Regression: an end as good as exact was shown with ≤, an upper bound of an exact engine with =."""
    found = Dependence("question", 10, 20, 20, False, 0.5, 1.5, 0.0212, -1.6737, "bracket", "better")
    assert found.sentence("p", 0.05).endswith("by `question`, p = 0.0212")
    found = replace(found, method="lattice", pvalue=0.02121, is_bound=True)
    assert found.sentence("p", 0.05).endswith("by `question`, p ≤ 0.0213")
