"""Measure other paired tests on the same data as trackperm, and print Markdown tables.

``python docs/other_tests.py`` measures trackperm, SciPy's tests and bootstrap, and sacrebleu. MLflow 3.18 and
evalstats 0.3.3 need environments of their own, in which ``--tools`` names them, as in
``python docs/other_tests.py --what tests --tools evalstats``. The page "Against other tests" has the results.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

Scores = npt.NDArray[np.int64]
Found = tuple[float | None, tuple[float, float] | None]
"""p-value, and the 95 % interval of the mean difference candidate - baseline."""
Tool = Callable[[Scores, Scores], Found]
N_RESAMPLES = 1_000


def trackperm(old: Scores, new: Scores) -> Found:
    """`trackperm.compare` of two data frames of scores."""
    import polars as pl

    import trackperm

    runs = [pl.DataFrame({"id": range(len(scores)), "score": scores}) for scores in (old, new)]
    comparison = trackperm.compare(*runs, "mean")
    interval = comparison.interval
    return comparison.pvalue, None if interval is None else (interval.low, interval.high)


def difference_test(old: Scores, new: Scores) -> Found:
    """Exact test of trackperm on two arrays."""
    from trackperm.exact import difference_test

    return difference_test(new, old).pvalue, None


def t_test(old: Scores, new: Scores) -> Found:
    """Paired t-test of SciPy; without a difference, p = 1."""
    result = stats.ttest_rel(new, old)
    return (float(result.pvalue) if (new != old).any() else 1.0), tuple(result.confidence_interval())


def wilcoxon(old: Scores, new: Scores) -> Found:
    """Wilcoxon's signed-rank test of SciPy, with its defaults."""
    return (float(stats.wilcoxon(new, old).pvalue) if (new != old).any() else 1.0), None


def mcnemar(old: Scores, new: Scores) -> Found:
    """McNemar's test with the chi-squared law, without continuity correction."""
    up, down = int((new > old).sum()), int((new < old).sum())
    return (float(stats.chi2.sf((up - down) ** 2 / (up + down), 1)) if up + down else 1.0), None


def percentile_bootstrap(old: Scores, new: Scores) -> Found:
    """Bootstrap of the mean difference; significant if the percentile interval excludes 0."""
    return None, _bootstrap(_mean, (new - old,), "percentile")


def bca_bootstrap(old: Scores, new: Scores) -> Found:
    """Bootstrap of the mean difference; significant if the BCa interval excludes 0."""
    return None, _bootstrap(_mean, (new - old,), "BCa")


def mlflow(old: Scores, new: Scores) -> Found:
    """Test of `mlflow.genai.compare_evaluations` in MLflow 3.18."""
    from mlflow.genai.evaluation.comparison import significance_tests as theirs

    differences = (new - old).astype(float)
    is_binary = set(np.unique([old, new])) <= {0, 1}
    return (theirs._mcnemar if is_binary else theirs._wilcoxon)(differences)[1], None


def mlflow_interval(old: Scores, new: Scores) -> Found:
    """Interval of `mlflow.genai.compare_evaluations` in MLflow 3.18."""
    from mlflow.genai.evaluation.comparison import significance_tests as theirs

    differences = (new - old).astype(float)
    return None, None if np.ptp(differences) == 0 else theirs._bootstrap_mean_ci(differences, 0.95)


def evalstats(old: Scores, new: Scores) -> Found:
    """`compare` of evalstats 0.3.3 with its defaults."""
    import evalstats
    import pandas as pd

    runs = [
        pd.DataFrame({"model": name, "item": range(len(scores)), "score": scores})
        for name, scores in (("old", old), ("new", new))
    ]
    pair = evalstats.compare(evalstats.load_from(pd.concat(runs)), factors="model").to_dict()["pairwise"][0]
    sign = 1 if pair["a"] == "new" else -1
    low, high = sorted((sign * pair["ci_low"], sign * pair["ci_high"]))
    return pair["p_value"], (low, high)


TOOLS: dict[str, Tool] = {
    "trackperm": trackperm,
    "difference_test": difference_test,
    "t": t_test,
    "wilcoxon": wilcoxon,
    "mcnemar": mcnemar,
    "percentile": percentile_bootstrap,
    "bca": bca_bootstrap,
    "mlflow": mlflow,
    "mlflow_interval": mlflow_interval,
    "evalstats": evalstats,
}


def discordant(up: int, down: int, n: int) -> tuple[Scores, Scores]:
    """Right and wrong answers of two runs that differ on up + down of n examples."""
    new = np.repeat([1, 0, 1], [up, down, n - up - down])
    old = np.repeat([0, 1, 1], [up, down, n - up - down])
    return old, new


def right_or_wrong(rng: np.random.Generator, n: int, gain: float = 0.0) -> tuple[Scores, Scores]:
    """Answers to questions of unequal difficulty; the candidate mends a share `gain` of its errors."""
    old, new = (rng.random((2, n)) < rng.beta(4, 1, n)).astype(int)
    return old, new | (rng.random(n) < gain)


def judged(rng: np.random.Generator, n: int) -> tuple[Scores, Scores]:
    """Scores from 1 to 5, most of them 5."""
    old, new = 5 - np.minimum(rng.geometric(0.7, (2, n)) - 1, 4)
    return old, new


def skewed(rng: np.random.Generator, n: int) -> tuple[Scores, Scores]:
    """Costs in cents: a few are much larger than the others."""
    old, new = np.rint(100 * rng.lognormal(0, 1.5, (2, n))).astype(int)
    return old, new


CASES: dict[str, tuple[Scores, Scores]] = {
    "0/1: 23 better, 14 worse, N = 899": discordant(23, 14, 899),
    "0/1: 154 better, 12 worse, N = 899": discordant(154, 12, 899),
    "1 to 5, N = 200": judged(np.random.default_rng(1), 200),
    "cents, N = 30": skewed(np.random.default_rng(4), 30),
}
EQUAL: dict[str, Callable[[np.random.Generator], tuple[Scores, Scores]]] = {
    "0/1, N = 30": lambda rng: right_or_wrong(rng, 30),
    "0/1, N = 300": lambda rng: right_or_wrong(rng, 300),
    "1 to 5, N = 30": lambda rng: judged(rng, 30),
    "cents, N = 30": lambda rng: skewed(rng, 30),
}
DIFFERENT = {
    "0/1, N = 300, errors mended: 1 in 4": lambda rng: right_or_wrong(rng, 300, 0.25),
}


def is_star(found: Found) -> bool:
    """Whether the tool says that the runs differ: by its p-value, else by its interval."""
    pvalue, interval = found
    if pvalue is not None:
        return pvalue < 0.05
    return interval is not None and not interval[0] <= 0 <= interval[1]


def rows_of(tool: str, n_pairs: int) -> Iterator[str]:
    """Yield the lines of a tool: its p-values and time, and the shares of pairs with a star."""
    test = TOOLS[tool]
    quick = difference_test if test is trackperm else test  # the same p-value, without pairing
    pvalues = []
    for old, new in CASES.values():
        pvalue, interval = test(old, new)
        shown = [] if pvalue is None else [f"{pvalue:.3g}"]
        if interval is not None:
            shown.append("[{:+.4f}, {:+.4f}]".format(*interval))
        pvalues.append(" ".join(shown))
    yield f"| {tool} | {' | '.join(pvalues)} | {_milliseconds(test):.2f} |"
    shares = []
    for law in (*EQUAL.values(), *DIFFERENT.values()):
        if test is mcnemar and law not in (*list(EQUAL.values())[:2], *DIFFERENT.values()):
            shares.append("")
            continue
        stars = sum(is_star(quick(*law(np.random.default_rng(seed)))) for seed in range(n_pairs))
        shares.append(f"{100 * stars / n_pairs:.1f} %")
    yield f"| {tool} | {' | '.join(shares)} |"


def _milliseconds(test: Tool) -> float:
    """Median CPU time of a test of 1,000 examples that are right or wrong."""
    pair = right_or_wrong(np.random.default_rng(0), 1000)
    taken = []
    for _ in range(7):
        begin = time.process_time()
        test(*pair)
        taken.append(time.process_time() - begin)
    return 1000 * float(np.median(taken))


def f1_coverage(n_pairs: int) -> Iterator[str]:
    """Yield how often 95 % intervals of an F1 difference cover it."""
    for n, share, recalls in (
        (100, 0.05, (0.8, 0.8)),
        (400, 0.1, (0.8, 0.8)),
        (400, 0.1, (0.9, 0.7)),
    ):
        truth = float(np.subtract(*(_population_f1(recall, share) for recall in recalls)))
        covered = dict.fromkeys(("percentile", "BCa", "trackperm"), 0)
        n_shown = n_stars = 0
        for seed in range(n_pairs):
            rng = np.random.default_rng(seed)
            label = (rng.random(n) < share).astype(int)
            new, old = (np.where(label, rng.random(n) < r, rng.random(n) < 0.01).astype(int) for r in recalls)
            for method in ("percentile", "BCa"):
                low, high = _bootstrap(_f1_difference, (new, old, label), method)
                covered[method] += low <= truth <= high
            comparison = _compared(old, new, label)
            n_stars += comparison.pvalue < 0.05
            if comparison.interval is not None:
                n_shown += 1
                covered["trackperm"] += comparison.interval.low <= truth <= comparison.interval.high
        shares = [f"{100 * covered[name] / n_pairs:.1f} %" for name in ("percentile", "BCa")]
        ours = f"{100 * covered['trackperm'] / max(n_shown, 1):.1f} % of the {n_shown:,} shown"
        stars = f"{100 * n_stars / n_pairs:.1f} %"
        law = f"N = {n:,}, {share:.0%} positive, recall {recalls[1]} and {recalls[0]}"
        yield f"| {law} | {truth:+.3f} | {shares[0]} | {shares[1]} | {ours} | {stars} |"


def _compared(old: Scores, new: Scores, label: Scores) -> Any:
    import polars as pl

    import trackperm

    runs = [pl.DataFrame({"id": range(len(label)), "prediction": x, "label": label}) for x in (old, new)]
    return trackperm.compare(*runs, "f1")


def _population_f1(recall: float, share: float) -> float:
    tp, fp, fn = share * recall, (1 - share) * 0.01, share * (1 - recall)
    return 2 * tp / (2 * tp + fp + fn)


def _f1_difference(new: Any, old: Any, label: Any, axis: int = -1) -> Any:
    first, second = (
        np.divide(
            2.0 * (predicted & label).sum(axis=axis),
            predicted.sum(axis=axis) + label.sum(axis=axis),
            where=predicted.sum(axis=axis) + label.sum(axis=axis) > 0,
            out=np.zeros(np.shape(label.sum(axis=axis))),
        )
        for predicted in (new, old)
    )
    return first - second


def _mean(values: Any, axis: int = -1) -> Any:
    return np.mean(values, axis=axis)


def _bootstrap(statistic: Any, data: tuple[Any, ...], method: str) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a constant sample has no BCa interval: nan, which excludes nothing
        found = stats.bootstrap(
            data,
            statistic,
            method=method,
            n_resamples=N_RESAMPLES,
            paired=len(data) > 1,
            random_state=np.random.default_rng(0),
        ).confidence_interval
    low, high = float(found.low), float(found.high)
    return (-np.inf, np.inf) if np.isnan(low) or np.isnan(high) else (low, high)


def bleu() -> Iterator[str]:
    """Yield sacrebleu's paired approximate randomisation and ours on 300 segments."""
    import polars as pl
    from sacrebleu.metrics import BLEU
    from sacrebleu.significance import PairedTest

    import trackperm

    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(400)])
    reference = [list(rng.choice(words, 20)) for _ in range(300)]

    def system(error: float) -> list[str]:
        return [
            " ".join(rng.choice(words) if rng.random() < error else w for w in line) for line in reference
        ]

    systems = system(0.20), system(0.19)
    texts = [" ".join(line) for line in reference]
    for n in (10_000, 100_000):
        begin = time.process_time()
        test = PairedTest(
            [("old", systems[0]), ("new", systems[1])],
            {"BLEU": BLEU(references=[texts], tokenize="none", force=True)},
            references=None,
            test_type="ar",
            n_samples=n,
        )
        pvalue = test()[1]["BLEU"][1].p_value
        yield f"| sacrebleu, {n:,} swaps | {pvalue:.4f} | | {time.process_time() - begin:.1f} s |"
    begin = time.process_time()
    runs = [pl.DataFrame({"id": range(300), "prediction": s, "label": texts}) for s in systems]
    comparison = trackperm.compare(*runs, "bleu")
    low, high = comparison.test.interval
    taken = time.process_time() - begin
    yield f"| trackperm | {comparison.pvalue:.4f} | [{low:.4f}, {high:.4f}] | {taken:.1f} s |"


def main(tools: list[str], n_pairs: int, what: list[str]) -> None:
    """Print the tables."""
    if "tests" in what:
        lines = [list(rows_of(tool, n_pairs)) for tool in tools]
        print(f"| | {' | '.join(CASES)} | ms |")
        print("\n".join(line[0] for line in lines))
        print(f"\n| | {' | '.join([*EQUAL, *DIFFERENT])} |")
        print("\n".join(line[1] for line in lines))
    if "f1" in what:
        print("\n| law | true difference | percentile | BCa | trackperm | stars |")
        print("\n".join(f1_coverage(n_pairs)))
    if "bleu" in what:
        print("\n| BLEU | p | interval of p | time |")
        print("\n".join(bleu()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS)[:7])
    parser.add_argument("--pairs", type=int, default=1000, help="pairs of runs for each law")
    parser.add_argument("--what", nargs="+", choices=("tests", "f1", "bleu"), default=["tests", "f1", "bleu"])
    options = parser.parse_args()
    main(options.tools, options.pairs, options.what)
