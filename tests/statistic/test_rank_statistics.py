"""Comparisons by rank statistics, against all swaps; their verification, and what is refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from support import rank_scores
from support.budget import cases

import trackperm
from trackperm.errors import InputError, SpecError
from trackperm.ledger.comparison_publication import evidence
from trackperm.ledger.verification.recomputation import verify_files
from trackperm.statistic import Statistic, load_statistic, read_statistic
from trackperm.statistic.load import BUILTIN

SCORES: dict[str, rank_scores.Score] = {
    "kendall_tau_b": rank_scores.kendall_tau_b,
    "spearman": rank_scores.spearman,
    "average_precision": rank_scores.average_precision,
}


def statistic(name: str, *keys: str, scale: str = "ranks") -> Statistic:
    text = (BUILTIN / f"{name}.yaml").read_text(encoding="utf-8").replace("scale: ranks", f"scale: {scale}")
    return read_statistic("\n".join([text, *keys]), f"{name}.yaml", name)


def random_runs(
    rng: np.random.Generator, name: str, n: int, values: Any = (0.0, 0.1, 0.3, 0.5, 0.8)
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Return examples with labels of every kind in both strata, and scores of baseline and candidate."""
    label = rng.integers(0, 2 if name == "average_precision" else 4, n)
    label[:4] = 0, 1, 1, 0
    rows = {
        "label": label,
        "stratum": [*"aabb", *rng.choice(["a", "b"], n - 4)],
        "user": rng.integers(0, 5, n),
    }
    baseline, candidate = rng.choice(values, (2, n))
    return rows, baseline, candidate


def frames(rows: dict[str, Any], *sides: Any) -> list[pl.DataFrame]:
    return [pl.DataFrame({"id": range(len(own)), **rows, "score": own}) for own in sides]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("scale", ["ranks", "raw"])
def test_against_all_swaps(name: str, scale: str) -> None:
    rng = np.random.default_rng(len(name) + len(scale))
    score = SCORES[name]
    for _ in range(cases(5)):
        rows, baseline, candidate = random_runs(rng, name, int(rng.integers(4, 9)))
        label = rows["label"]
        found = trackperm.compare(*frames(rows, baseline, candidate), statistic(name, scale=scale))
        assert found.baseline_score == pytest.approx(score(baseline, label), abs=1e-13)
        assert found.candidate_score == pytest.approx(score(candidate, label), abs=1e-13)
        if scale == "ranks":
            baseline, candidate = map(rank_scores.midranks, (baseline, candidate))
        expected = rank_scores.exact_pvalue(
            lambda u, v, label=label: score(u, label) - score(v, label),
            candidate,
            baseline,
            range(len(label)),
        )
        # Without ties in a run, ties of the ranks of two runs do not enter the denominator.
        if found.test.ties == "approximate":
            assert found.pvalue == pytest.approx(expected, rel=1e-12)


@pytest.mark.extended
@pytest.mark.parametrize("name", SCORES)
def test_strata_and_clusters_against_all_swaps(name: str) -> None:
    rng = np.random.default_rng(20)
    score = SCORES[name]
    for keys in (
        ["cluster: user"],
        ["strata: stratum", "weights: {a: 2, b: 1}"],
        ["cluster: user", "strata: stratum"],
    ):
        rows, baseline, candidate = random_runs(rng, name, 8)
        label, strata = rows["label"], np.array(rows["stratum"])
        weights = {"a": 2 if len(keys[-1]) > 20 else 1, "b": 1} if "strata" in "".join(keys) else {"": 1}

        def difference(
            u: Any, v: Any, label: Any = label, strata: Any = strata, weights: Any = weights
        ) -> float:
            parts = [(weight, strata == part if part else strata != "") for part, weight in weights.items()]
            return sum(w * (score(u[p], label[p]) - score(v[p], label[p])) for w, p in parts) / sum(
                weights.values()
            )

        found = trackperm.compare(*frames(rows, baseline, candidate), statistic(name, *keys, scale="raw"))
        units = rows["user"].tolist() if "cluster: user" in keys else range(8)
        expected = rank_scores.exact_pvalue(difference, candidate, baseline, units)
        assert found.difference == pytest.approx(difference(candidate, baseline), abs=1e-13)
        assert found.pvalue == pytest.approx(expected, rel=1e-12)
        assert found.n_examples == len(set(units))


def test_a_correlation_of_ranks_without_ties_is_exact() -> None:
    rng = np.random.default_rng(21)
    label = rng.permutation(500)
    both = frames({"label": label}, label + rng.normal(0, 150, 500), label + rng.normal(0, 110, 500))
    found = trackperm.compare(*both, "spearman")
    assert (found.test.ties, found.test.relation) == ("exact", "=")
    assert "exact for these ranks, level asymptotic" in str(found)
    drawn = trackperm.compare(*both, "spearman", method="monte-carlo", n_samples=20_000)
    assert drawn.test.interval[0] <= found.pvalue <= drawn.test.interval[1]
    scaled = [
        each.with_columns(pl.col("score") * factor) for each, factor in zip(both, (1, 900), strict=True)
    ]
    assert trackperm.compare(*scaled, "spearman").pvalue == found.pvalue


def test_without_ties_tau_b_is_exact_and_the_test_of_tau_a() -> None:
    rng = np.random.default_rng(1)
    label = rng.normal(size=200)
    both = frames({"label": label}, *(label + rng.normal(size=(2, 200)) * np.array([[1.0], [2.0]])))
    found, plain = (trackperm.compare(*both, name) for name in ("kendall_tau_b", "kendall_tau"))
    assert found.pvalue == pytest.approx(plain.pvalue, rel=1e-9)
    assert found.error_bound <= 1e-10


@pytest.mark.parametrize("name", ["average_precision", "kendall_tau_b"])
def test_monte_carlo_is_labelled(name: str) -> None:
    rows, baseline, candidate = random_runs(np.random.default_rng(22), name, 60)
    found = trackperm.compare(*frames(rows, baseline, candidate), name, n_samples=2000)
    assert (found.method, found.test.relation) == ("monte-carlo", "≈")
    assert "Monte Carlo of 2,000 swaps" in str(found)
    assert "for these ranks, level asymptotic" in str(found)
    assert found.interval is None
    assert "the rank of an example depends on the others" in str(found.interval_unavailable)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        *((name, ["cluster: user", "strata: stratum", "weights: {a: 3, b: 1}"]) for name in SCORES),
        pytest.param("average_precision", [], marks=pytest.mark.extended),
        pytest.param("spearman", ["cluster: user"], marks=pytest.mark.extended),
        pytest.param("kendall_tau_b", ["strata: stratum"], marks=pytest.mark.extended),
    ],
)
def test_verified_from_the_logged_codes(name: str, keys: list[str]) -> None:
    rows, baseline, candidate = random_runs(np.random.default_rng(23), name, 40)
    both = frames(rows, baseline, candidate)
    for options in ({"n_samples": 200}, {"n_samples": 200, "exceedances": 20}):
        found = trackperm.compare(*both, statistic(name, *keys), **options)
        checked = verify_files(evidence(found))
        assert [check for check in checked.checks if not check.matches] == []
    files = evidence(found)
    table = pl.read_parquet(files["trackperm/count_table.parquet"])
    other = trackperm.compare(*both[::-1], statistic(name, *keys), **options)
    assert table.height == len(found.count_table.multiplicities)
    files["trackperm/count_table.parquet"] = evidence(other)["trackperm/count_table.parquet"]
    assert [check.what for check in verify_files(files).checks if not check.matches]


@pytest.mark.extended
def test_leaderboards() -> None:
    rows, first, second = random_runs(np.random.default_rng(24), "spearman", 80, np.arange(1000.0))
    third = first + 1
    runs = dict(zip("abc", frames(rows, first, second, third), strict=True))
    board = trackperm.leaderboard(runs, "spearman")
    for row in board.rows:
        own = {"a": first, "b": second, "c": third}[row.name]
        assert row.score == pytest.approx(rank_scores.spearman(own, rows["label"]), abs=1e-12)
    pair = trackperm.compare(runs["a"], runs["b"], "spearman")
    assert any(each.test.pvalue == pytest.approx(pair.pvalue, rel=1e-9) for each in board.pairs)


def test_dependent_examples_are_found() -> None:
    rng = np.random.default_rng(25)
    document = np.repeat(np.arange(40), 10)
    label = rng.integers(0, 2, 400)
    effect = rng.normal(size=40)[document] * np.where(label, 1, -1)
    both = frames(
        {"label": label, "document": document}, rng.normal(size=400), 3 * effect + rng.normal(size=400)
    )
    for name in SCORES:
        found = trackperm.compare(*both, name, n_samples=500)
        assert [each.column for each in found.dependence] == ["document"]
        assert found.dependence[0].pvalue is not None


def test_slices_and_one_sided_tests() -> None:
    rows, baseline, candidate = random_runs(np.random.default_rng(26), "average_precision", 80)
    both = frames(rows, baseline, candidate)
    found = trackperm.compare(*both, "average_precision", slices=["stratum"], n_samples=300)
    parts = [each.filter(pl.col("stratum") == "a") for each in both]
    assert found[1].pvalue == trackperm.compare(*parts, "average_precision", n_samples=300).pvalue
    sides = [
        trackperm.compare(*both, "average_precision", alternative=side, n_samples=300).pvalue
        for side in ("less", "greater")
    ]
    assert sum(sides) > 1.0


def test_refused_data() -> None:
    rows, baseline, candidate = random_runs(np.random.default_rng(27), "average_precision", 9)
    both = frames(rows, baseline, candidate)
    cases: list[tuple[str, Any, str]] = [
        ("average_precision", pl.lit(0).alias("label"), "has no positive examples: none of its 9"),
        ("spearman", pl.lit(1).alias("label"), "is undefined: all 9 labels are equal"),
        ("spearman", pl.lit("x").alias("label"), "is text"),
        ("spearman", pl.format("s{}", "score").alias("score"), "needs scores that are numbers"),
    ]
    for name, change, said in cases:
        with pytest.raises((InputError, SpecError), match=said):
            trackperm.compare(*(each.with_columns(change) for each in both), name)
    of_numbers = read_statistic("rank_statistic: {function: average_precision, label: label + 1}", "spec")
    with pytest.raises(SpecError, match="needs a label that is true or false"):
        trackperm.compare(*both, of_numbers)
    with pytest.raises(InputError, match="a missing score cannot be compared"):
        trackperm.compare(both[0], both[1][:7], "spearman", missing="wrong")
    with pytest.raises(InputError, match="several rows of one example cannot be combined by `sum`"):
        load_statistic("spearman", repeats="sum")
    with pytest.raises(InputError, match="has no counts, and so no resolution"):
        load_statistic("spearman", resolution="0.1")
    with pytest.raises(InputError, match="is a rank statistic, not a function of sums"):
        load_statistic("spearman").pairs(np.zeros((1, 2), np.int64), np.zeros((1, 2), np.int64))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{function: kendall, label: label}", "expected one of"),
        ("{function: spearman}", "the key `label` is missing"),
        ("{function: spearman, label: score}", "`score` cannot be used in a label"),
        ("{function: spearman, label: n_tokens(label)}", "`n_tokens` cannot be used in a label"),
    ],
)
def test_refused_specs(text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_statistic(f"rank_statistic: {text}", "spec")
    assert said in caught.value.message


@pytest.mark.parametrize(
    "key", ["counts: {a: a}", "pairs: {term: left.score > right.score}", "resolution: 0.1"]
)
def test_other_forms_do_not_go_together_with_a_rank_statistic(key: str) -> None:
    with pytest.raises(SpecError, match="cannot be used with `rank_statistic`"):
        read_statistic(f"{key}\nrank_statistic: {{function: spearman, label: label}}", "spec")


@pytest.mark.parametrize("name", SCORES)
def test_mid_p_of_equal_scores(name: str) -> None:
    """All swaps are as extreme, and those that keep the scores equal count half."""
    label, baseline, candidate = [1, 0, 1, 0], [0.5, 0.3, 0.1, 0.8], [0.1, 0.3, 0.5, 0.8]
    found = trackperm.compare(
        *frames({"label": label}, baseline, candidate), statistic(name, scale="raw"), mid_p=True
    )
    assert found.difference == 0
    score, n_equal = SCORES[name], 0
    for swapped in product([False, True], repeat=4):
        sides = np.where(swapped, [baseline, candidate], [candidate, baseline])
        n_equal += score(sides[0], label) == pytest.approx(score(sides[1], label), abs=1e-12)
    assert 0 < n_equal < 16
    assert found.pvalue == pytest.approx(1 - n_equal / 32)
