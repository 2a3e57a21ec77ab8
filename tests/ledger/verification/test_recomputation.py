"""Every number is recomputed from the logged files, and changes are detected."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.changed_evidence import changed, failures, rewritten
from support.comparisons import accuracy, answers, numbered, run_data

import trackperm
from trackperm.comparison import Comparison, compare_runs, compare_statistics, corrected
from trackperm.comparison.second_opinions import STUDENTIZED
from trackperm.errors import InputError
from trackperm.ledger.comparison_publication import evidence
from trackperm.ledger.verification import run_references, verify_files, verify_from_runs
from trackperm.ledger.verification.files import read_count_table
from trackperm.statistic import load_statistic

N = 60


def frames(**columns: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(7)
    label = rng.choice(["a", "b", "c"], N).tolist()
    made = []
    for keep in (0.6, 0.8):
        predictions = [x if rng.random() < keep else "a" for x in label]
        scores = np.round(rng.random(N), 3).tolist()
        made.append(numbered(label=label, prediction=predictions, score=scores, **columns))
    return made[0], made[1]


def spec(folder: Path, text: str) -> str:
    path = folder / "own.yaml"
    path.write_text(f"name: own\ncounts: {{right: prediction == label, n: 1}}\n{text}\n")
    return str(path)


def gaps(column: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    first, second = frames()
    silent = pl.when(pl.col("id") < 2).then(None).otherwise(column)
    return first, second.with_columns(silent.alias(column))


def sliced(correction: str) -> Comparison:
    """One slice among three."""
    topics = ["x", "y", "z"] * (N // 3)
    runs = run_data(*frames(topic=topics))
    accuracy_ = trackperm.load_statistic("accuracy")
    found = compare_statistics(*runs, [accuracy_], slices=["topic"], correction="none")
    return corrected(found[1:], correction)[1]


CASES: dict[str, Callable[[Path], Comparison]] = {
    "accuracy": lambda _: accuracy(20, 4, both=10, neither=3),
    "underflow": lambda _: accuracy(4000, 0),
    "identical": lambda _: accuracy(0, 0, both=5),
    "one-sided": lambda _: accuracy(9, 4, alternative="greater", alpha=0.01),
    "margin": lambda _: accuracy(9, 8, both=400, margin=0.05),
    "corrected": lambda _: corrected([accuracy(20, 4, both=10, neither=3), accuracy(9, 4)])[0],
    "slice": lambda _: sliced("tarone-holm"),
    "mid-p": lambda _: accuracy(9, 2, mid_p=True),
    "f1": lambda _: trackperm.compare(*frames(), "f1", parameters={"positive": "b"}),
    "mcc": lambda _: trackperm.compare(*frames(), "mcc", parameters={"positive": "b"}),
    "classes": lambda _: trackperm.compare(*frames(), "macro_f1"),
    "true as text": lambda _: trackperm.compare(
        *(each.with_columns(passed=(pl.col("prediction") == "a").cast(pl.String)) for each in frames()),
        "pass_at_1",
    ),
    "decimals": lambda _: trackperm.compare(*frames(), "mean", columns={"score": "score"}),
    "resolution": lambda _: trackperm.compare(*frames(), "mean", resolution="0.05"),
    "strata": lambda p: trackperm.compare(
        *frames(topic=["x", "y", "z"] * (N // 3)), spec(p, "score: right / n\nstrata: topic")
    ),
    "weights": lambda p: trackperm.compare(
        *frames(topic=["x", "y"] * (N // 2)),
        spec(p, "score: right / n\nstrata: topic\nweights: {x: 1/3, y: 2/3}"),
    ),
    "clusters": lambda p: trackperm.compare(
        *frames(topic=[str(i // 4) for i in range(N)]), spec(p, "score: right / n\ncluster: topic")
    ),
    "log ratio": lambda p: trackperm.compare(
        *frames(), spec(p, "score: (right + 0.5) / (n + 1)\ncontrast: log ratio")
    ),
    "long form": lambda p: trackperm.compare(
        *frames(), spec(p, "g: {x: u.right - v.right}\nh: x\nalternative: greater")
    ),
    "monte carlo": lambda _: accuracy(12, 5, method="monte-carlo", n_samples=2000, seed=11),
    "tilted": lambda _: trackperm.compare(*frames(), "macro_f1", method="tilted", n_samples=2000, seed=7),
    "certified ends": lambda _: trackperm.compare(*frames(), "macro_f1", method="bracket"),
    "stopped": lambda _: accuracy(12, 5, method="monte-carlo", n_samples=2000, seed=3, exceedances=20),
    "bounds": lambda _: trackperm.compare(*gaps("prediction"), "accuracy", missing="bounds"),
    "by position": lambda _: trackperm.compare(*frames(), "accuracy", by_position=True),
}


def test_a_memory_budget_is_logged_and_obeyed() -> None:
    """The budget excludes the engine that the default takes, so that another p-value is logged."""
    runs = np.random.default_rng(7).integers(0, 3, (3, 150)).tolist()
    usual, small = (
        trackperm.compare(*runs, statistic="multiclass_mcc", memory_budget=budget)
        for budget in ("1GiB", "4MiB")
    )
    assert (usual.method, small.method) == ("lattice", "monte-carlo")
    assert "memory_budget" not in usual.options
    assert small.options["memory_budget"] == str(2**22)
    assert not failures(verify_files(evidence(small)))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CASES)
def test_logged_values_are_recomputed(name: str, tmp_path: Path):
    comparison = CASES[name](tmp_path)
    found = verify_files(evidence(comparison))
    assert not failures(found)
    numbers = {check.what: check.found for check in found.checks}
    assert numbers["log10 p"] == repr(comparison.log10_pvalue)
    for field in ("baseline_score", "candidate_score", "difference"):
        assert numbers[field] == json.dumps(comparison.to_dict()[field])


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return evidence(accuracy(20, 4, both=10, neither=3))


@pytest.mark.sample(14)
@pytest.mark.parametrize(
    ("field", "value", "seen_as"),
    [
        ("pvalue", 0.04, "p-value"),
        ("pvalue", None, "p-value"),
        ("pvalue", "0.0015", "p-value"),
        ("log10_pvalue", -1.5, "log10 p"),
        ("error_bound", 0.9, "error bound"),
        ("pvalue_interval", [0.0, 1.0], "upper end of p"),
        ("pvalue_interval", None, "lower end of p"),
        ("difference", 0.5, "difference"),
        ("baseline_score", 0.1, "baseline_score"),
        ("candidate_score", None, "candidate_score"),
        ("score", "correct / (n + 1)", "spec"),
        ("n_examples", 38, "n_examples"),
        ("n_discordant", 23, "n_discordant"),
        ("n_better", 21, "n_better"),
        ("alpha", 0.5, "alpha"),
        ("verdict", "worse", "verdict"),
        ("alternative", "less", "alternative"),
        ("method", "dp", "method"),
        ("ties", "approximate", "ties"),
        ("key", "ab" * 32, "key"),
        ("signature", "accuracy|n:37|trackperm:1", "signature"),
        ("baseline", "mlflow:" + "a" * 32, "key"),
        (
            "options",
            {"alternative": "two-sided", "alpha": "0.01", "missing": "error", "method": "auto"},
            "key",
        ),
        (
            "options",
            {"alternative": "less", "alpha": "0.05", "missing": "error", "method": "auto"},
            "p-value",
        ),
        ("options", {}, "recomputation"),
        ("options", None, "recomputation"),
        ("cases", [{"missing": "worst"}], "recomputation"),
        ("pairing", None, "trackperm/comparison.json"),
    ],
)
def test_a_changed_result_is_seen(files: dict[str, bytes], field: str, value: Any, seen_as: str):
    found = verify_files(changed(files, **{field: value}))
    assert seen_as in failures(found)


def test_a_changed_digest_of_the_data_is_seen(files: dict[str, bytes]):
    pairing = json.loads(files["trackperm/comparison.json"])["pairing"]
    found = verify_files(changed(files, pairing={**pairing, "baseline_digest": "0" * 64}))
    assert failures(found) == {"key", "signature"}


@pytest.mark.parametrize("field", ["pvalue", "name"])
def test_a_changed_second_opinion_is_seen(field: str):
    files = evidence(accuracy(9, 2, both=20).with_second_opinions())
    assert verify_files(files).matches
    said = json.loads(files["trackperm/comparison.json"])["second_opinions"]
    said[0][field] = {"pvalue": 0.04, "name": "z-test"}[field]
    seen = {"pvalue": {"paired t-test"}, "name": {"z-test"}}[field]
    found = failures(verify_files(changed(files, second_opinions=said)))
    assert {f"second opinion, {name}" for name in seen} <= found


@pytest.mark.parametrize("field", ["differs", "overturns", "sentence"])
def test_a_changed_word_of_a_second_opinion_is_seen(field: str):
    """Regression: only name and p-value were compared."""
    files = evidence(accuracy(9, 2, both=20).with_second_opinions())
    said = json.loads(files["trackperm/comparison.json"])["second_opinions"]
    said[0][field] = {"sentence": "It agrees."}.get(field, not said[0][field])
    found = verify_files(changed(files, second_opinions=said))
    assert failures(found) == {f"{field} of the second opinion, paired t-test"}


@pytest.mark.parametrize(
    "name", ["interval", "effect_sizes", "minimum_detectable_effect", "n_better", "sign"]
)
def test_a_deleted_field_is_seen(files: dict[str, bytes], name: str):
    """Regression: a field that was deleted was not compared; older versions did not write all of them."""
    data = json.loads(files["trackperm/comparison.json"])
    del data[name]
    found = verify_files({**files, "trackperm/comparison.json": json.dumps(data).encode()})
    assert f"field {name}" in failures(found)


def test_an_added_field_is_seen(files: dict[str, bytes]):
    data = json.loads(files["trackperm/comparison.json"]) | {"certified_pvalue": 1e-9}
    found = verify_files({**files, "trackperm/comparison.json": json.dumps(data).encode()})
    assert failures(found) == {"field certified_pvalue"}


def test_the_sign_of_a_corrected_p_value_is_not_stronger_than_that_of_the_test():
    drawn = accuracy(12, 5, method="monte-carlo", n_samples=2000, seed=11)
    files = evidence(corrected([drawn, accuracy(9, 4)])[0])
    logged = json.loads(files["trackperm/comparison.json"])["corrected"]
    assert logged["relation"] == "≈"
    found = verify_files(changed(files, corrected={**logged, "relation": "="}))
    assert "sign of the corrected p" in failures(found)


@pytest.mark.parametrize("beside", [False, True])
def test_a_changed_studentized_opinion_is_seen(beside: bool):
    frame = pl.DataFrame({"id": range(20), "label": [0, 1] * 10, "prediction": [1, 1, 0, 1] * 5})
    other = frame.with_columns(prediction=pl.Series([0, 1, 0, 0] * 5))
    comparison = trackperm.compare(frame, other, "f1")
    comparison = comparison.with_second_opinions() if beside else comparison
    files = evidence(comparison.with_studentized())
    assert verify_files(files).matches
    said = json.loads(files["trackperm/comparison.json"])["second_opinions"]
    assert len(said) == 8 if beside else 1
    said[-1]["pvalue"] = 0.04
    found = failures(verify_files(changed(files, second_opinions=said)))
    assert found == {f"second opinion, {STUDENTIZED}"}


@pytest.mark.parametrize(
    ("field", "value"), [("null_hypothesis", "the scores are equal"), ("remarks", ["look: nothing"])]
)
def test_a_changed_claim_is_seen(files: dict[str, bytes], field: str, value: Any):
    assert failures(verify_files(changed(files, **{field: value}))) == {field}


def test_changed_counts_are_seen(files: dict[str, bytes]):
    more = rewritten(files, "count_table", lambda frame: frame.with_columns(pl.col("multiplicity") + 1))
    assert {"p-value", "log10 p", "difference", "n_examples", "n_better", "n_paired"} <= failures(
        verify_files(more)
    )
    swap = {"candidate.correct": "baseline.correct", "baseline.correct": "candidate.correct"}
    swapped = rewritten(files, "count_table", lambda f: f.rename(swap).select(f.columns))
    assert {"difference", "verdict", "n_better"} <= failures(verify_files(swapped))


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.rename({"candidate.correct": "x"}),
        lambda frame: frame.drop("multiplicity"),
        lambda frame: frame.cast(pl.Float64),
        lambda frame: frame.with_columns(multiplicity=pl.lit(None, pl.Int64)),
        lambda frame: frame.with_columns(multiplicity=pl.lit(0, pl.Int64)),
        lambda frame: frame.with_columns(pl.lit(2**63 - 1, pl.Int64).alias("candidate.correct")),
        lambda frame: frame.head(0),
        lambda frame: pl.concat([frame, frame]),
    ],
)
def test_counts_of_another_shape_are_seen(files: dict[str, bytes], change: Any):
    assert failures(verify_files(rewritten(files, "count_table", change))) == {
        "trackperm/count_table.parquet"
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.cast(pl.Int32),
        lambda frame: frame.cast({"multiplicity": pl.Float64}),
        lambda frame: frame.with_columns(more=pl.lit(1, pl.Int64)),
        lambda frame: frame.select(frame.columns[::-1]),
    ],
)
def test_a_count_table_has_the_columns_of_its_spec_as_int64(files: dict[str, bytes], change: Any):
    table = rewritten(files, "count_table", change)["trackperm/count_table.parquet"]
    with pytest.raises(InputError, match="the table has the columns"):
        read_count_table(table, load_statistic("accuracy"))


def test_changed_discordant_examples_are_seen(files: dict[str, bytes]):
    fewer = rewritten(files, "discordant", lambda frame: frame.head(3))
    assert failures(verify_files(fewer)) == {"rows of discordant examples", "counts of discordant examples"}


@pytest.mark.parametrize(
    ("old", "new", "seen_as"),
    [
        ("prediction == label", "prediction != label", "key"),
        ("alternative: two-sided", "alternative: less", "key"),
        ("greater_is_better: true", "greater_is_better: false", "verdict"),
        ("name: accuracy", "name: accurate", "statistic"),
        ("name: accuracy", "# a remark\nname: accuracy", "spec"),
        ("name: accuracy", "name: [", "trackperm/statistic.yaml"),
        ("counts:", "count:", "trackperm/statistic.yaml"),
    ],
)
def test_a_changed_spec_is_seen(files: dict[str, bytes], old: str, new: str, seen_as: str):
    text = files["trackperm/statistic.yaml"].decode()
    assert old in text
    found = verify_files({**files, "trackperm/statistic.yaml": text.replace(old, new).encode()})
    assert seen_as in failures(found)


@pytest.mark.extended
@given(st.data())
@settings(max_examples=15)
def test_any_changed_byte_of_spec_or_counts_is_detected_or_harmless(data: st.DataObject):
    original = evidence(accuracy(6, 1, both=2))
    path = data.draw(st.sampled_from(sorted(original)))
    content = bytearray(original[path])
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    found = verify_files({**original, path: bytes(content)})
    if not found.matches:
        return
    assert not path.endswith(".yaml")
    if path.endswith("count_table.parquet"):
        assert pl.read_parquet(bytes(content)).equals(pl.read_parquet(original[path]))


@pytest.mark.extended
@pytest.mark.parametrize("name", ["count_table", "discordant"])
def test_a_table_on_which_the_reader_aborts_is_seen(
    files: dict[str, bytes], name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.undo()  # of `read_here`
    assert verify_files(files).matches
    path, written = f"trackperm/{name}.parquet", io.BytesIO()
    pl.DataFrame({"n": [1, 2, 3]}).write_parquet(written, compression="uncompressed", statistics=False)
    of_page, changed = b"\x2c\x15\x06", b"\x2c\x15\x07"  # 3 values, -4 values, in Thrift's compact protocol
    assert of_page in written.getvalue()
    assert path in failures(verify_files({**files, path: written.getvalue().replace(of_page, changed)}))


@pytest.mark.parametrize("path", ["comparison.json", "statistic.yaml", "count_table.parquet"])
def test_files_that_lack_are_refused(files: dict[str, bytes], path: str):
    fewer = {name: content for name, content in files.items() if not name.endswith(path)}
    with pytest.raises(InputError, match="is missing"):
        verify_files(fewer)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"pvalue": 0.001, "rejected": True}, {"corrected p", "rejected of the correction", "verdict"}),
        ({"title": "nothing"}, {"title of the correction"}),
        ({"controls": "FDR", "log10_pvalue": -3.0, "pvalue": 0.001}, {"log10 of the corrected p"}),
    ],
)
def test_a_corrected_p_value_cannot_be_invented(change: dict[str, Any], what: set[str]) -> None:
    """Regression: with another p-value beside its logarithm, a star was certified that does not exist."""
    comparison = corrected([accuracy(9, 2), accuracy(9, 4)])[0]
    files = evidence(comparison)
    data = json.loads(files["trackperm/comparison.json"])
    verdict = {"verdict": "better"} if "rejected" in change else {}
    assert what <= failures(verify_files(changed(files, corrected=data["corrected"] | change, **verdict)))


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("margin", "equivalent"),
        ("margin", "equivalence_pvalue"),
        ("margin", "equivalence_power.at_zero"),
        ("accuracy", "effect_sizes.odds"),
        ("accuracy", "interval.method"),
        ("identical", "no_interval"),
        ("one-sided", "minimum_detectable_effect.effect"),
        ("corrected", "sign"),
    ],
)
def test_every_part_of_a_result_is_checked(name: str, path: str, tmp_path: Path) -> None:
    files = evidence(CASES[name](tmp_path))
    field, _, part = path.partition(".")
    value = json.loads(files["trackperm/comparison.json"])[field]
    other: Any = {**value, part: 0.123} if part else 0.123
    assert len(failures(verify_files(changed(files, **{field: other})))) == 1


class TestFromRuns:
    @pytest.mark.parametrize(
        ("statistic", "options"),
        [
            ("pass_at_k", {"parameters": {"k": 2}}),
            ("pass_hat_k", {"parameters": {"k": 2}}),
            ("pass_at_1", {"unit": "attempt"}),
            ("pass_at_1", {"repeats": "mean"}),
            ("pass_at_1", {"repeats": "any"}),
        ],
    )
    def test_rules_of_attempts(self, statistic: str, options: dict[str, Any]) -> None:
        """Regression: the logged unit of averages, such as 1/6, was taken for counts other than 0 and 1."""
        rng = np.random.default_rng(3)
        runs = [
            pl.DataFrame({"id": np.repeat(range(20), 4), "passed": (rng.random(80) < rate).astype(int)})
            for rate in (0.4, 0.6)
        ]
        comparison = trackperm.compare(*runs, statistic, **options)
        assert not failures(verify_from_runs(evidence(comparison), *run_data(*runs)))

    @pytest.mark.parametrize("name", ["f1", "classes", "strata", "bounds", "monte carlo"])
    def test_the_same_runs_give_the_same(self, name: str, tmp_path: Path):
        comparison = CASES[name](tmp_path)
        files = evidence(comparison)
        assert run_references(files) == ("baseline", "candidate")
        found = verify_from_runs(files, comparison.baseline_data, comparison.candidate_data)
        assert not failures(found)

    @pytest.mark.parametrize("statistic", ["multiclass_log_loss", "multiclass_brier", "macro_roc_auc"])
    def test_columns_by_class(self, statistic: str):
        """Regression: the pattern in the spec, `probability_*`, was taken for the name of a column."""
        label = [0, 1, 2] * 8
        runs = []
        for step in (3, 5):
            sure = [(i % step) / 8 for i in range(24)]
            columns = {
                f"probability_{each}": [
                    0.25 + s if each == meant else (0.75 - s) / 2
                    for s, meant in zip(sure, label, strict=True)
                ]
                for each in range(3)
            }
            runs.append(numbered(label=label, half=["first", "second"] * 12, **columns))
        for comparison in trackperm.compare(*runs, statistic, slices=["half"]):
            assert not failures(verify_from_runs(evidence(comparison), *run_data(*runs)))

    def test_an_id_that_was_named(self):
        """Regression: other inputs under the same ids were refused, although `id` had been named."""
        words = ["apple", "river", "stone", "cloud", "tiger", "piano", "bread", "light", "ocean", "violin"]
        asked = [f"what is the {a} of the {b}" for a in words for b in words[:3]]
        runs = [
            answers([i % n > 0 for i in range(30)]).with_columns(question=pl.Series(each))
            for n, each in ((2, asked), (5, asked[1:] + asked[:1]))
        ]
        with pytest.raises(InputError, match="question"):
            trackperm.compare(*runs, "accuracy")
        comparison = trackperm.compare(*runs, "accuracy", columns={"id": "id"})
        assert not failures(verify_from_runs(evidence(comparison), *run_data(*runs)))

    def test_labels_that_are_refused_today_were_compared(self):
        """Logged comparisons are recomputed even if labels have to pass new checks."""
        label = ["0", "1", "2"] * 6
        tables = [
            pl.DataFrame({"id": range(18), "prediction": said, "label": label})
            for said in (["one"] * 18, ["1", "2", "2"] * 6)
        ]
        runs = run_data(*tables)
        for statistic in (load_statistic("f1", parameters={"positive": "1"}), load_statistic("accuracy")):
            with pytest.raises(InputError, match="none of the 18"):
                trackperm.compare(*tables, statistic)
            comparison = compare_runs(*runs, statistic)
            assert not failures(verify_from_runs(evidence(comparison), *runs))

    def test_other_discordant_examples_are_seen(self):
        """The counts do not tell which examples differ."""
        tables = [answers([True] * 4 + [False] * 5), answers([False] * 3 + [True] * 6)]
        files = evidence(trackperm.compare(*tables))
        other = rewritten(files, "discordant", lambda frame: frame.with_columns(id=pl.col("id").reverse()))
        assert verify_files(other).matches
        assert failures(verify_from_runs(other, *run_data(*tables))) == {"discordant examples, from the runs"}

    def test_other_predictions_are_seen(self):
        tables = [answers([True] * 4 + [False] * 5), answers([False] * 3 + [True] * 6)]
        files = evidence(trackperm.compare(*tables))
        tables[0][0, "prediction"] = "perhaps"
        found = failures(verify_from_runs(files, *run_data(*tables)))
        assert {"baseline_digest, from the runs", "p-value, from the runs"} <= found
        assert "candidate_digest, from the runs" not in found
