from __future__ import annotations

from dataclasses import replace

import pytest
from support.boards import of_scores, sweep
from support.comparisons import answers

import trackperm
from trackperm.leaderboards.paired_runs import ExcludedRun
from trackperm.report.leaderboard import cells
from trackperm.report.leaderboard.page import html
from trackperm.report.leaderboard.picture import svg
from trackperm.report.leaderboard.rendered import render_leaderboard
from trackperm.report.leaderboard.text import lines, markdown


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("right", "options", "finding"),
    [
        ((180, 60), {}, "m0 is better than m1"),
        ((180, 179), {}, "m0 and m1 cannot be told apart"),
        ((180, 60, 50), {}, "m0 is better than both others"),
        (
            (180, 179, 178),
            {},
            "No run is shown to be the best: neither of the other 2 can be told from the first",
        ),
        ((180, 179, 60, 50), {}, "1 of the other 3 runs cannot be told from the best"),
        ((20, 140), {"statistic": "error_rate"}, "m1 is better than m0"),
        ((100, 180), {"baseline": "m0"}, "m1 is better than the baseline"),
        ((100, 101), {"baseline": "m0"}, "m1 is not shown to be different from the baseline"),
        (
            (100, 101),
            {"baseline": "m0", "alternative": "greater"},
            "m1 is not shown to be better than the baseline",
        ),
        (
            (100, 101),
            {"statistic": "error_rate", "baseline": "m0", "alternative": "less"},
            "m1 is not shown to be better than the baseline",
        ),
        (
            (100, 180, 170, 101, 20),
            {"baseline": "m0"},
            "2 of 4 runs are better than the baseline, 1 is worse, 1 is undecided",
        ),
        (
            (100, 99, 20),
            {"baseline": "m0"},
            "None of 2 runs is shown to be better than the baseline, 1 is worse, 1 is undecided",
        ),
        ((100, 99, 101), {"baseline": "m0"}, "None of 2 runs is shown to be different from the baseline"),
    ],
)
def test_the_finding_counts_the_verdicts(
    right: tuple[int, ...], options: dict[str, str], finding: str
) -> None:
    board = of_scores(*right, **options)
    assert cells.finding(board) == finding
    assert lines(board)[0] == finding
    assert markdown(board).startswith(f"**{finding}**\n")


def test_one_sided_numbers_are_called_so() -> None:
    """Regression: "95 % interval" above [+0.0332, +1.0000]."""
    board = of_scores(100, 180, baseline="m0", alternative="greater")
    header = cells.cells(board).header
    assert "one-sided 95 % interval" in header
    assert "one-sided adjusted p" in header
    assert "exact, one-sided (greater), adjusted by" in cells.method(board)
    assert "one-sided 95 % intervals" in " ".join(cells.legend(board))
    assert "one-sided" not in " ".join(cells.cells(of_scores(100, 180, baseline="m0")).header)


def test_the_picture_says_what_was_counted_as_wrong() -> None:
    """Regression: the run was marked worse, and its 100 missing predictions were in other formats alone."""
    board = of_scores(100, 180)
    note = "m0: 100 missing predictions counted as wrong"
    board = replace(board, notes=(*board.notes, note), incomplete=(ExcludedRun("m9", "m9", "no ids"),))
    drawn = svg(board)
    assert f">{note}<" in drawn
    assert "; 1 of 3 runs is not compared<" in drawn


def test_names_that_are_cut_in_text_are_whole_below_the_table() -> None:
    long = "model-" + "with-a-long-name-" * 4
    right = {f"{long}a": 180, "b": 60}
    runs = {name: answers([i < k for i in range(200)]) for name, k in right.items()}
    shown = lines(trackperm.leaderboard(runs, "accuracy"))
    [key] = [line for line in shown if line.endswith(f"is `{long}a`")]
    assert len(key.partition(" is ")[0]) <= 40


def test_the_lead_names_all_that_are_first_and_never_calls_undecided_runs_equal() -> None:
    tied = of_scores(180, 180, 179, 60)
    assert cells.lead(tied).startswith("the best accuracy is 0.9000, of m0 and 1 other; ")
    assert cells.lead(tied).endswith("is neither shown to differ from it nor shown to equal it")
    assert cells.lead(of_scores(180, 60, 50)) == "the best accuracy is 0.9000, of m0"
    lower = cells.lead(of_scores(20, 140, 150, statistic="error_rate"))
    assert lower == "the best error_rate (lower is better) is 0.2500, of m2"
    against = cells.lead(of_scores(100, 180, 20, baseline="m0"))
    assert against == "the baseline m0 has accuracy 0.5000, rank 2"


@pytest.mark.extended
def test_ten_groups_have_letters_and_more_have_ranks() -> None:
    few, many, by = sweep(8), sweep(40), sweep(40, correction="by")
    assert {"group", "possible ranks"} < set(cells.cells(few).header)
    assert "group" not in cells.cells(many).header
    assert "possible ranks" in cells.cells(many).header
    assert not any("share a letter" in sentence for sentence in cells.legend(many))
    assert not any("letters go on" in note for note in cells.notes(many))
    # without control of all verdicts at once there are no ranks, so that letters stay
    assert "group" in cells.cells(by).header
    assert "possible ranks" not in cells.cells(by).header
    assert all(row.letters for row in many.rows)


def test_names_are_short_in_text_and_whole_in_numbers() -> None:
    board = sweep(40)
    text = "\n".join(lines(board))
    assert text.count("roberta-large-") == 1
    assert "every name begins with `roberta-large-`" in text
    for row in trackperm.report.render(board, "csv").decode().splitlines()[1:]:
        assert "roberta-large-lr" in row


def test_no_marker_is_without_its_word() -> None:
    for board in (sweep(40), sweep(40, baseline=12)):
        table = cells.cells(board)
        words = {row[table.header.index("verdict")] for row in table.rows}
        assert words <= {"▲ better", "▼ worse", "≈ undecided", "best", "baseline"}


def test_runs_that_are_left_out_for_one_reason_are_one_line() -> None:
    """Regression: an experiment with 4,000 runs without predictions had 4,000 lines."""
    runs = [ExcludedRun(f"r{i}", f"mlflow:{i}", f"run `mlflow:{i}` has no table") for i in range(1200)]
    other = ExcludedRun("o", "mlflow:o", "its labels differ")
    board = replace(sweep(3), incomplete=(*runs, other))
    said = [line for line in str(board).splitlines() if line.startswith("incomplete: ")]
    assert said == [
        "incomplete: r0, r1, r2 and 1,197 more: all for one reason, of the first:"
        " run `mlflow:0` has no table",
        "incomplete: o: its labels differ",
    ]
    assert cells.incomplete_groups(replace(board, incomplete=tuple(runs[:3]))) == [
        (f"r{i}", f"run `mlflow:{i}` has no table") for i in range(3)
    ]


def test_the_reason_of_an_excluded_run_is_one_line_without_its_table() -> None:
    """Regression: the table of the first examples stood behind the reason, as "example `a` `b` 0 0 1"."""
    reason = "`label` differs between the runs on 144 of 300 examples\n\n    example   `a`\n    0         1"
    ends = ":\n    example 'a': 'x', and 'y' in the labels\n    example 'b': 'x'"
    runs = (
        ExcludedRun("a", "a.csv", reason),
        ExcludedRun("b", "b.csv", f"its label differs{ends}\n\nAnd more."),
    )
    assert cells.incomplete(replace(sweep(3), incomplete=runs)) == [
        ("a", "`label` differs between the runs on 144 of 300 examples"),
        ("b", "its label differs And more."),
    ]
    assert cells.incomplete(
        replace(sweep(3), incomplete=(replace(runs[0], reason=f"it differs{ends}"),))
    ) == [("a", "it differs")]


@pytest.mark.parametrize("baseline", [None, "m0"])
def test_the_finding_counts_the_runs_that_are_left_out(baseline: str | None) -> None:
    """Regression: three of six runs were left out, and the only line that is read was silent."""
    left_out = tuple(ExcludedRun(name, name, "its labels differ", "use `--label gold`.") for name in "abc")
    whole = of_scores(20, 180, 100, baseline=baseline)
    board = replace(whole, incomplete=left_out)
    finding = f"{cells.finding(whole)}; 3 of 6 runs are not compared"
    assert cells.finding(board) == finding
    assert "not compared" not in cells.finding(whole)
    assert render_leaderboard(board).name.startswith("accuracy: leaderboard of 3 of 6 runs")
    assert lines(board)[0] == finding
    assert lines(board)[-1] == "hint: use `--label gold`."
    assert "Hint: use" in markdown(board)
    assert f"<h1>{finding}</h1>" in html(board)
    assert html(board).count("use `--label gold`.") == 1
