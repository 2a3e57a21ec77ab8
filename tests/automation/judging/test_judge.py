"""Whether candidates pass, in each case that the rules of `trackperm.automation.judging.judge` know."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.comparisons import accuracy, answers, run_data

import trackperm
from trackperm.automation.judging.judge import judge
from trackperm.automation.policy.load import load_policies
from trackperm.automation.policy.policy import Policy
from trackperm.comparison import Comparison, compare_statistics, corrected
from trackperm.errors import InputError
from trackperm.exact.intervals import Interval
from trackperm.report import text
from trackperm.statistic import load_statistic


@pytest.fixture
def policy(tmp_path: Path) -> Any:
    def made(**keys: object) -> Policy:
        lines = [f"    {name}: {value}\n" for name, value in keys.items()]
        file = tmp_path / "trackperm.yaml"
        file.write_text("policies:\n  - name: gate\n    baseline: {run: base.csv}\n" + "".join(lines))
        return load_policies(file).find()

    return made


NON_INFERIOR = {"fail_on": "not-shown-non-inferior", "margin": 0.05}


def bounded(worse: int, **options: Any) -> Comparison:
    """Compare runs with bounds; the candidate lacks 30 examples."""
    baseline, candidate = answers([True] * 200), answers([False] * worse + [True] * (200 - worse))
    return trackperm.compare(baseline, candidate[:-30], "accuracy", missing="bounds", **options)


@pytest.mark.parametrize(
    ("keys", "compared", "outcome", "said"),
    [
        (
            {},
            lambda: accuracy(69, 109, 935, 206),
            "fail",
            "significantly worse (difference -0.0303, p = 0.00335)",
        ),
        ({}, lambda: accuracy(109, 69, 935, 206), "pass", "the candidate is better"),
        ({}, lambda: accuracy(100, 110, 900, 200), "pass", "not shown to be worse"),
        ({}, lambda: accuracy(0, 4, 10, 2), "undecided", "with 4 discordant examples, p is at least 0.125"),
        ({}, lambda: accuracy(0, 6, 10, 2), "fail", "p = 0.0312"),
        ({}, lambda: bounded(0), "undecided", "missing predictions"),
        ({}, lambda: bounded(60), "fail", "significantly worse"),  # in both cases
        # the smallest effect that is detected exceeds the margin, or does not
        (
            {"margin": 0.02},
            lambda: accuracy(10, 12, 60, 20, margin=0.02),
            "undecided",
            "and the margin is 0.02",
        ),
        ({"margin": 0.5}, lambda: accuracy(10, 12, 60, 20, margin=0.5), "pass", "equivalent within 0.5"),
        # no p below 0.05 is within reach, and equivalence is shown
        ({"margin": 0.02}, lambda: accuracy(2, 2, 900, 96, margin=0.02), "pass", "equivalent within 0.02"),
        # significantly worse, by less than the margin
        (
            NON_INFERIOR,
            lambda: accuracy(69, 109, 935, 206, margin=0.05),
            "pass",
            "at most 0.05 worse (90% CI [-0.04",
        ),
        (NON_INFERIOR, lambda: accuracy(40, 160, 700, 100, margin=0.05), "fail", "significantly worse"),
        # non-inferiority could have been shown
        (
            NON_INFERIOR,
            lambda: accuracy(105, 134, 600, 161, margin=0.05),
            "fail",
            "not shown to be at most 0.05 w",
        ),
        (NON_INFERIOR, lambda: accuracy(5, 6, 30, 9, margin=0.05), "undecided", "minimum detectable effect"),
        (
            {**NON_INFERIOR, "missing": "bounds"},
            lambda: bounded(0, margin=0.05),
            "undecided",
            "missing predictions",
        ),
    ],
)
def test_outcomes(
    policy: Any, keys: dict[str, object], compared: Callable[[], Comparison], outcome: str, said: str
):
    found = judge(policy(**keys), [compared()])
    assert found.outcome == outcome
    assert said in found.reasons[0]


@pytest.mark.parametrize(("n", "outcome"), [(5, "undecided"), (6, "pass"), (1000, "pass")])
def test_identical_runs_pass_if_so_many_examples_could_tell(policy: Any, n: int, outcome: str):
    # all discordant and all worse, 6 examples have p = 2 * 0.5**6 = 0.03125, and 5 have 0.0625
    assert (accuracy(0, n).pvalue < 0.05) == (outcome == "pass")
    assert judge(policy(), [accuracy(0, 0, n)]).outcome == outcome


def test_the_worst_of_several_decides(policy: Any):
    worse, better, few = accuracy(69, 109, 935, 206), accuracy(109, 69, 935, 206), accuracy(0, 4, 10, 2)
    assert judge(policy(), [better, few]).outcome == "undecided"
    found = judge(policy(), [better, few, worse])
    assert found.outcome == "fail"
    assert [each.outcome for each in found.findings] == ["pass", "undecided", "fail"]
    assert len(found.reasons) == 1


def test_the_corrected_p_decides(policy: Any):
    frames = [answers([False] * 8 + [True] * 50), answers([True] * 8 + [False] * 20 + [True] * 30)]
    runs = run_data(*frames)
    specs = [load_statistic("accuracy"), load_statistic("error_rate")]
    alone = compare_statistics(*runs, specs[:1])
    assert 0.05 / 2 < alone[0].pvalue < 0.05
    assert judge(policy(), alone).outcome == "fail"
    together = compare_statistics(*runs, specs)
    assert judge(policy(), together).outcome == "pass"
    assert "adjusted" in judge(policy(), together).reasons[0]


def test_non_inferiority_is_judged_at_the_level_of_one_test(policy: Any):
    """No correction is needed where all comparisons have to pass: this candidate could have passed."""
    alone = accuracy(105, 134, 600, 161, margin=0.05)
    family = corrected([alone] * 5)
    assert alone.detectable.effect < 0.05 < family[0].detectable.effect
    assert judge(policy(**NON_INFERIOR), family).outcome == "fail"
    few = judge(policy(margin=0.05), family).findings[0]
    assert few.outcome == "undecided"
    assert "corrected for 5 tests), and the margin is 0.05" in few.reason


def test_an_interval_that_ends_on_the_margin_does_not_show_it(policy: Any):
    low = accuracy(69, 109, 935, 206).size.low
    for margin, outcome in ((-low, "fail"), (math.nextafter(-low, 1.0), "pass")):
        rules = policy(fail_on="not-shown-non-inferior", margin=margin)
        assert judge(rules, [accuracy(69, 109, 935, 206, margin=margin)]).outcome == outcome


def test_non_inferiority_is_about_the_direction_of_better(policy: Any):
    baseline, candidate = answers([True] * 80 + [False] * 920), answers([True] * 20 + [False] * 980)
    fewer = trackperm.compare(candidate, baseline, "error_rate", margin=0.05)
    more = trackperm.compare(baseline, candidate, "error_rate", margin=0.05)
    assert judge(policy(**NON_INFERIOR), [fewer]).outcome == "pass"
    assert judge(policy(**NON_INFERIOR), [more]).outcome == "fail"


@pytest.mark.parametrize("counts", [(0, 300), (2, 30, 60, 8)], ids=["all worse", "most worse"])
@pytest.mark.parametrize(("name", "alternative"), [("accuracy", "greater"), ("error_rate", "less")])
def test_an_interval_below_the_margin_fails_where_the_test_looks_for_the_better_alone(
    policy: Any, counts: tuple[int, ...], name: str, alternative: str
):
    inferior = accuracy(*counts, statistic=name, alternative=alternative, margin=0.05)
    assert inferior.decision.sign != "worse"
    found = judge(policy(**NON_INFERIOR, statistics=f"[{name}]", alternative=alternative), [inferior])
    assert found.outcome == "fail"
    assert "more than 0.05 worse (90% CI " in found.reasons[0]


def test_an_interval_above_the_margin_passes_where_the_test_looks_for_the_worse_alone(policy: Any):
    superior = accuracy(300, 0, alternative="less", margin=0.01)
    assert superior.decision.sign != "better"
    found = judge(policy(statistics=["accuracy"], alternative="less", margin=0.01), [superior])
    assert found.outcome == "pass"
    assert "at most 0.01 worse" in found.reasons[0]


def test_what_no_outcome_could_have_shown_once_corrected_is_undecided(policy: Any):
    baseline, candidate = answers([True] * 40), answers([True] * 34 + [False] * 6)
    both = [trackperm.compare(baseline, candidate, name) for name in ("accuracy", "error_rate")]
    assert judge(policy(), both).outcome == "fail", "p = 0.03125"
    found = judge(policy(), corrected(both, "holm"))
    assert found.outcome == "undecided"
    assert judge(policy(), corrected(both, "tarone-holm")).outcome == "undecided"
    assert "with 6 discordant examples, p is at least 0.0312, 0.0625 by Holm over 2 tests" in found.reasons[0]
    larger = corrected([accuracy(0, 6, 34), accuracy(0, 60, 34)], "holm")
    assert judge(policy(), larger).reasons[0].endswith("0.0312: Holm over 2 tests)"), "which counts once"


@pytest.mark.parametrize("n", [2, 4, 20, 60, 600])
def test_runs_that_count_the_same_are_as_close_as_so_many_examples_could_tell(policy: Any, n: int):
    labels = ["yes", "no"] * (n // 2)
    frame = pl.DataFrame({"id": range(n), "prediction": labels, "label": labels})
    mcc = load_statistic("mcc", parameters={"positive": "yes"})
    comparison = trackperm.compare(frame, frame, mcc, margin=0.05)
    assert isinstance(comparison.size.basis, str)
    # 1 - 0.05**(1/60) is 4.9 %, so that 3 may be wrong: MCC falls by 0.1; of 600 so many as well, by 0.01
    shown = "pass" if n == 600 else "undecided"
    assert (comparison.verdict == "equivalent") == (shown == "pass")
    assert judge(policy(**NON_INFERIOR), [comparison]).outcome == shown
    assert judge(policy(margin=0.05), [comparison]).outcome == ("pass" if n >= 6 else "undecided")


def scores(*differences: float, n: int, unit: float = 1.0, **options: Any) -> Comparison:
    """Compare means of `n` scores between 0 and 1, in a unit; the first few differ."""
    first = [0.2 + 0.6 * i / (n - 1) for i in range(n)]
    second = [x + d for x, d in zip(first, [*differences, *[0.0] * (n - len(differences))], strict=True)]
    frames = [
        pl.DataFrame({"id": range(n), "score": [round(unit * x, 9) for x in run]}) for run in (first, second)
    ]
    return trackperm.compare(*frames, "mean", **options)


FEW_DIFFER = [
    (0.01,),
    (-0.0001,),
    (0.01, 0.02, 0.03, 0.04),
    # p = 2/32 by one side, but ties keep the interval from going below 0
    (0.03, 0.03, 0.04, 0.03, -0.01),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("differences", FEW_DIFFER)
@pytest.mark.parametrize("unit", [0.001, 1.0, 100.0])
def test_shifts_know_nothing_of_what_few_examples_show(
    policy: Any, differences: tuple[float, ...], unit: float
):
    margin = 0.05 * unit
    rules = policy(fail_on="not-shown-non-inferior", margin=margin)
    few, enough = (scores(*differences, n=n, unit=unit, margin=margin) for n in (10, 400))
    for comparison in (few, enough):
        assert isinstance(comparison.size.basis, str)
    found = judge(rules, [few])
    assert found.outcome == "undecided"
    number = "1 example differs" if len(differences) == 1 else f"{len(differences)} examples differ"
    assert f"too few examples to tell: only {number} between the runs" in found.reasons[0]
    found = judge(rules, [enough])
    # P(Binomial(400, 2.6 %) <= 5) = 0.05, each by less than 0.9
    assert (found.outcome, f"{len(differences)} of 400 examples" in found.reasons[0]) == ("pass", True)


def test_equivalence_is_not_shown_by_few_examples(policy: Any):
    few, enough = (scores(0.01, n=n, margin=0.05) for n in (10, 400))
    assert (few.verdict, enough.verdict) == ("undecided", "equivalent")
    found = judge(policy(margin=0.05), [few])
    assert found.outcome == "undecided"
    assert "with 1 discordant example, p is at least 1" in found.reasons[0]
    found = judge(policy(margin=0.05), [enough])
    assert (found.outcome, "equivalent within 0.05" in found.reasons[0]) == ("pass", True)


@pytest.mark.parametrize(("n", "outcome"), [(100, "undecided"), (200, "pass")])
def test_a_failure_that_nobody_saw_may_cost_more_than_the_margin(policy: Any, n: int, outcome: str):
    comparison = scores(*([0.01, -0.01, 0.02, -0.02] * (n // 4)), n=n, margin=0.02)
    interval = comparison.size.basis
    assert isinstance(interval, Interval)
    assert interval.within(0.01)
    assert comparison.verdict == ("equivalent" if outcome == "pass" else "undecided")
    # 1 - 0.05**(1/100) is 3 %, each by 0.81
    said = (
        "a difference as large as the range of the scores, 0.8139, on an unseen 3 % of the examples would"
        " change the score by 0.02402"
    )
    assert (said in str(comparison.decision)) == (outcome == "undecided")
    found = judge(policy(fail_on="not-shown-non-inferior", margin=0.02), [comparison])
    assert found.outcome == outcome
    if outcome == "undecided":
        assert found.reasons[0].endswith(f"not shown to be at most 0.02 worse; {said}")
    assert not any("so few" in line for line in text.lines(comparison)), "the range decides"


def test_what_a_one_sided_test_shows_needs_no_more_examples(policy: Any):
    rules = policy(fail_on="not-shown-non-inferior", margin=0.001)
    for last, outcome in (([], "undecided"), ([0.01], "pass")):
        comparison = scores(0.01, 0.02, 0.03, 0.04, *last, n=10, alternative="greater")
        assert (comparison.pvalue < 0.05) == (outcome == "pass"), "0.5**4 and 0.5**5"
        assert judge(rules, [comparison]).outcome == outcome


def f1(n: int, better: int, **options: Any) -> Comparison:
    """Compare F1 of runs that differ on `better` examples, all in favour of the candidate."""
    labels = ["yes", "no"] * (n // 2)
    missed = ["no" if i % 2 == 0 and i < 2 * better else label for i, label in enumerate(labels)]
    baseline, candidate = (
        pl.DataFrame({"id": range(n), "prediction": x, "label": labels}) for x in (missed, labels)
    )
    return trackperm.compare(baseline, candidate, "f1", parameters={"positive": "yes"}, **options)


@pytest.mark.parametrize(
    ("n", "better", "outcome"),
    [(10, 1, "undecided"), (10, 4, "undecided"), (10, 5, "pass"), (80, 1, "undecided"), (400, 1, "pass")],
)
def test_few_examples_show_little(policy: Any, n: int, better: int, outcome: str):
    comparison = f1(n, better)
    assert isinstance(comparison.size.basis, str) == (better < 6)
    found = judge(policy(**NON_INFERIOR), [comparison])
    assert found.outcome == outcome
    # of 5 that are all better p = 1/32 by one side
    assert ("the candidate is better" in found.reasons[0]) == (better == 5)


def test_equivalence_of_ratios_takes_enough_examples():
    for better, word in ((5, "undecided"), (6, "better"), (40, "better")):
        comparison = f1(1000, better)
        assert (comparison.interval is None) == (better == 5)
        assert comparison.verdict == word
    close = [f1(40, 5, margin=0.01), f1(40, 5, margin=0.5), f1(4000, 5, margin=0.01)]
    assert [each.decision.equivalent for each in close] == [None, True, True]
    assert str(close[0].decision) == (
        "undecided; not shown to be equivalent within 0.01:"
        " no interval is available, 5 of 40 examples are discordant, and up to 25 % may be"
    )
    assert "equivalence is shown by a bound on discordant examples: 5 of 4,000" in str(text.lines(close[2]))
    apart = f1(1000, 40, margin=0.001)
    assert apart.decision.equivalent is False
    assert "equivalence is not shown by the score interval" in str(text.lines(apart))


def test_exact_intervals_count_however_few_examples_differ(policy: Any):
    for n, outcome in ((40, "undecided"), (60, "pass")):
        comparison = accuracy(1, 0, n - 1)
        interval = comparison.size.basis
        assert isinstance(interval, Interval)
        assert (interval.method, interval.low > -0.05) == ("paired proportions", outcome == "pass")
        assert judge(policy(**NON_INFERIOR), [comparison]).outcome == outcome
    # 1 - 0.05**(1/50) is 0.058, and the interval ends above -0.05
    assert judge(policy(**NON_INFERIOR), [accuracy(1, 0, 49)]).outcome == "pass"


def test_too_few_random_swaps_are_undecided(policy: Any):
    drawn = {n: accuracy(0, 60, 40, method="monte-carlo", n_samples=n) for n in (103, 104)}
    assert all(each.test.n_samples == n and each.pvalue == 1 / (n + 1) for n, each in drawn.items())
    found = judge(policy(), [drawn[103]])
    assert (found.outcome, found.exit_code) == ("undecided", 4)
    assert found.reasons == (
        "accuracy: too few random swaps to tell: with 103 no 99 % interval ends below 0.0501;"
        " at least 104 are needed, which `trackperm compare --samples` draws;"
        " a policy needs a larger `alpha`",
    )
    assert judge(policy(), [drawn[104]]).outcome == "fail"
    few = accuracy(0, 4, 40, method="monte-carlo", n_samples=10_000)
    assert "with 4 discordant examples, p is at least 0.125" in judge(policy(), [few]).reasons[0]


@pytest.mark.parametrize(("method", "title"), [("holm", "Holm"), ("tarone-holm", "Tarone-Holm")])
def test_too_few_random_swaps_once_corrected_are_undecided(policy: Any, method: str, title: str):
    drawn = {n: accuracy(0, 60, 40, method="monte-carlo", n_samples=n) for n in (209, 210)}
    assert judge(policy(), [drawn[209]]).outcome == "fail"
    found = judge(policy(), corrected([drawn[209]] * 2, method))
    assert found.outcome == "undecided"
    assert f"0.0501 by {title} over 2 tests; at least 210 are needed" in found.reasons[0]
    assert found.reasons[0].endswith("a policy needs a larger `alpha` or fewer tests")
    assert judge(policy(), corrected([drawn[210]] * 2, method)).outcome == "fail"
    # of which no outcome has p < alpha, which Tarone's correction cannot know of p-values that are drawn
    other = accuracy(0, 5, 40, method="monte-carlo", n_samples=209)
    assert judge(policy(), corrected([drawn[209], other], method)).findings[0].outcome == "undecided"


def test_swaps_that_were_left_out_are_not_too_few(policy: Any):
    stopped = accuracy(32, 28, 40, method="monte-carlo", n_samples=10_000, exceedances=5)
    assert 5 <= (stopped.test.n_samples or 0) < 50
    assert judge(policy(), [stopped]).outcome == "pass"
    assert not any("draw more" in line for line in text.lines(stopped))


def test_nothing_to_judge_is_refused(policy: Any):
    with pytest.raises(InputError, match="no comparison was made"):
        judge(policy(), [])


def test_what_no_exchange_changes_is_undecided(policy: Any):
    """Regression: F1 of runs that find no positive example is 0 after every exchange, and gates passed."""
    label = [1] * 50 + [0] * 350
    runs = [
        pl.DataFrame({"id": range(400), "prediction": [0] * 50 + [1] * n + [0] * (350 - n), "label": label})
        for n in (10, 120)
    ]
    judgement = judge(policy(), [trackperm.compare(*runs, "f1")])
    assert (judgement.outcome, judgement.exit_code) == ("undecided", 4)
    assert "the test cannot tell: the exchange of no single example changes the score" in judgement.reasons[0]


def test_scores_that_are_equal_by_rounding_are_not_called_identical(policy: Any) -> None:
    scores = [1e-6 * math.sqrt(n) for n in range(2, 40)]
    baseline, candidate = (
        pl.DataFrame({"id": range(39), "score": [math.sqrt(0.5), *own]})
        for own in (scores, [math.nextafter(score, 1.0) for score in scores])
    )
    comparison = trackperm.compare(baseline, candidate, "mean")
    shown = text.lines(comparison)
    assert not any("identical" in line for line in shown)
    assert "equal by rounding: both runs have the same rounded scores on every example" in shown
    (finding,) = judge(policy(), [comparison]).findings
    assert "both runs have the same rounded scores on all 39 examples" in finding.reason
    assert any("some differences count as equal, of up to" in note for note in finding.notes)
