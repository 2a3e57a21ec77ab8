"""The description of an MLflow experiment: within its limit, people's words kept, whole after crashes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlflow.utils.validation import MAX_EXPERIMENT_TAG_VAL_LENGTH
from support.budget import cases
from support.comparisons import answers
from support.faulty_proxy import Fate, FaultyProxy, is_write
from support.mlflow_stores import MlflowStore

import trackperm
from trackperm.errors import TrackerError
from trackperm.leaderboards import Leaderboard
from trackperm.report.leaderboard.text import markdown
from trackperm.trackers.markdown_limit import truncate_leaderboard
from trackperm.trackers.mlflow.description import BEGIN, END, Board, described
from trackperm.trackers.mlflow.tracker import MlflowTracker
from trackperm.trackers.publication import KIND_TAG, LEADERBOARD, Publication, Table

pytestmark = [pytest.mark.tracker, pytest.mark.extended]

N_RUNS = 30


@pytest.fixture(scope="module")
def board() -> Leaderboard:
    """Thirty runs and twelve that lack an example, one of them called as the end of a block."""
    runs = {f"run {i:02d} with a name": answers([j < i for j in range(40)]) for i in range(N_RUNS - 1)}
    runs[END] = answers([True] * 40)
    runs |= {f"short {i}": answers([True] * (20 + i)) for i in range(12)}
    return trackperm.leaderboard(runs, intervals=False)


@pytest.fixture(scope="module")
def text(board: Leaderboard) -> str:
    return markdown(board)


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ")][1:]


class TestFitted:
    def test_what_fits_is_left_as_it_is(self, text: str):
        assert truncate_leaderboard(text, len(text), "x") == text

    def test_a_line_that_only_looks_like_a_heading_is_left_as_it_is(self):
        table = "\n".join(["| a |", "|---|", *("| 1 |" for _ in range(50))])
        cut = truncate_leaderboard(f"{table}\n\nIncomplete, and not compared: none\n", 200, "there")
        assert cut.endswith("not compared: none")

    @given(st.integers(0, 20_000))
    @settings(max_examples=cases(60), deadline=None)
    def test_whole_rows_are_left_out_and_counted(self, text: str, limit: int):
        cut = truncate_leaderboard(text, limit, "`there`")
        if cut is None:
            assert limit < 2500
            return
        assert len(cut) <= limit
        shown = rows(cut)
        assert shown == rows(text)[: len(shown)]
        left = N_RUNS - len(shown)
        if left:
            assert f"\n{left} more run{'s are' if left > 1 else ' is'} in `there`." in cut
        incomplete = [line for line in cut.splitlines() if line.startswith("- short")]
        if len(incomplete) < 12:
            assert f"- {12 - len(incomplete)} more are in `there`" in cut

    def test_text_without_a_table_is_not_cut(self):
        assert truncate_leaderboard("x" * 100, 50, "there") is None


class TestDescribed:
    def shown(self, text: str, *names: str) -> list[Board]:
        return [Board(name, "1", text) for name in names or ("aa",)]

    def test_people_keep_their_words_and_again_changes_nothing(self, text: str):
        before = "# Digits\n\nAsk *Kim*. "
        once = described(before, self.shown(text), 20_000)
        assert once.startswith(f"{before}\n\n{BEGIN}\n\n")
        assert described(once, self.shown(text), 20_000) == once
        around = f"above {once} below"
        assert described(around, self.shown(text, "bb"), 20_000) == around.replace("aa", "bb")

    def test_a_name_cannot_end_the_block(self, text: str):
        once = described("", self.shown(text), 20_000)
        assert once.count(END) == 1
        assert described(once, [], 20_000) == ""

    @pytest.mark.parametrize("held", [f"{BEGIN} torn", f"torn {END}", f"{END} {BEGIN}"])
    def test_a_torn_block_is_people_s_own(self, held: str, text: str):
        once = described(held, self.shown(text), 20_000)
        assert once.startswith(held)
        assert described(once, self.shown(text), 20_000) == once

    def test_copies_of_the_block_go(self, text: str):
        once = described("ours", self.shown(text), 20_000)
        assert described(f"{once}{once}", self.shown(text), 20_000) == f"{once}ours\n\n"

    @given(st.integers(0, 21_000), st.integers(1, 6), st.sampled_from([5_000, 20_000]))
    @settings(max_examples=cases(60), deadline=None)
    def test_the_limit_holds(self, text: str, n: int, n_boards: int, limit: int):
        boards = self.shown(text, *(f"{i:032x}" for i in range(n_boards)))
        held = "x" * n
        made = described(held, boards, limit)
        assert made.startswith(held)
        assert made == held or len(made) <= limit
        if n <= limit - 500:
            assert boards[0].link in made
        if limit - n > 4000 * n_boards:
            assert all(board.link in made for board in boards)
            assert len(rows(made)) >= n_boards

    def test_without_room_the_old_block_goes(self, text: str):
        once = described("", self.shown(text), 20_000)
        held = "x" * 19_990
        assert described(held + once, self.shown(text), 20_000) == held


@pytest.fixture
def store(sqlite_store: MlflowStore) -> MlflowStore:
    return sqlite_store


def publication(key: str, text: str = "**board**\n\n| run |\n|:--|\n| a |\n", **tags: str) -> Publication:
    return Publication(
        key=key,
        name="f1: leaderboard of 2 runs",
        metrics={"f1/n_pairs": 1.0},
        tables={"pairs": Table(("p",), [("0.003",)])},
        files={"leaderboard.md": f"{key} {text}".encode(), "trackperm/statistic.yaml": b"name: f1\n"},
        tags={KIND_TAG: LEADERBOARD, "trackperm.statistic": "f1", "trackperm.n_pairs": "1", **tags},
        description="**board**",
        kind=LEADERBOARD,
    )


class TestInMlflow:
    def test_the_newest_by_each_statistic_is_shown(self, store: MlflowStore, experiment: str):
        store.describe(experiment, "ours")
        tracker = store.tracker()
        tracker.publish(publication("aa" * 8), experiment)
        newest = tracker.publish(publication("bb" * 8), experiment).run.reference.locator
        tracker.publish(publication("cc" * 8, **{"trackperm.statistic": "accuracy"}), experiment)
        text = store.description(experiment)
        assert text.startswith(f"ours\n\n{BEGIN}\n\n{'cc' * 8} **board**")
        assert "aa" * 8 not in text
        assert f"[run {newest}](#/experiments/{store.experiment(experiment)}/runs/{newest})" in text
        tracker.publish(publication("cc" * 8, **{"trackperm.statistic": "accuracy"}), experiment)
        assert store.description(experiment) == text

    def test_one_that_is_logged_again_is_the_newest(self, store: MlflowStore, experiment: str):
        """Regression: a leaderboard with a run that was withdrawn since stayed in the description."""
        tracker, shown = store.tracker(), []
        store.experiment(experiment)
        for key in ("aa", "bb", "aa", "bb"):
            tracker.publish(publication(key * 8), experiment)
            shown.append(store.description(experiment)[len(BEGIN) + 2 :][:2])
        assert shown == ["aa", "bb", "aa", "bb"]

    def test_an_unfinished_one_is_not_shown(self, store: MlflowStore, experiment: str):
        tags = publication("bb" * 8).tags | {"trackperm.created": "2999-01-01T00:00:00+00:00"}
        store.run(experiment, "f1: leaderboard of 2 runs", tags={**tags, "trackperm.state": "writing"})
        store.tracker().publish(publication("aa" * 8), experiment)
        assert store.description(experiment).startswith(f"{BEGIN}\n\n{'aa' * 8} **board**")

    def test_it_is_cut_to_what_mlflow_keeps(self, store: MlflowStore, experiment: str, text: str):
        theirs = "x" * (MAX_EXPERIMENT_TAG_VAL_LENGTH - 3_500)
        store.describe(experiment, theirs)
        published = store.tracker().publish(publication("aa" * 8, text), experiment)
        assert not published.remarks
        kept = store.description(experiment)
        assert kept.startswith(theirs)
        assert "more runs are in [run" in kept
        assert MAX_EXPERIMENT_TAG_VAL_LENGTH - 2_000 < len(kept) <= MAX_EXPERIMENT_TAG_VAL_LENGTH

    def test_without_room_that_is_said(self, store: MlflowStore, experiment: str):
        theirs = "x" * (MAX_EXPERIMENT_TAG_VAL_LENGTH - 10)
        store.describe(experiment, theirs)
        published = store.tracker().publish(publication("aa" * 8), experiment)
        assert published.run.reference.locator in published.remarks[0]
        assert store.description(experiment) == theirs


class TestCrashes:
    @pytest.mark.slow
    @pytest.mark.parametrize("fate", ["cut", pytest.param("lose", marks=pytest.mark.nightly)])
    def test_at_every_request_that_writes(
        self,
        http_store: MlflowStore,
        proxy: FaultyProxy,
        experiment: str,
        monkeypatch: pytest.MonkeyPatch,
        fate: Fate,
    ):
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        http_store.describe(experiment, "ours")
        tracker = MlflowTracker(proxy.uri)
        tracker.publish(publication("00000000"), experiment)
        n_writes = len(proxy.writes)
        assert "set-experiment-tag" in proxy.writes[-1]
        for step in range(n_writes):
            wanted = publication(f"{step + 1:08x}")
            proxy.writes.clear()
            proxy.fate = lambda method, path, step=step: (
                "pass" if len(proxy.writes) <= step else fate if is_write(method, path) else "cut"
            )
            with pytest.raises(TrackerError):
                tracker.publish(wanted, experiment)
            begun = [
                run
                for run in http_store.comparisons(experiment, "leaderboard")
                if run.data.tags["trackperm.key"] == wanted.key
            ]
            for run in begun:
                if run.info.status == "FINISHED" or run.data.tags["trackperm.state"] == "done":
                    assert wanted.files.items() <= http_store.artifacts(run.info.run_id).items()
            if wanted.key in http_store.description(experiment):
                assert begun[0].info.status == "FINISHED"

            proxy.fate = lambda method, path: "pass"
            published = tracker.publish(wanted, experiment)
            assert all(published.run.reference.locator == run.info.run_id for run in begun)
            assert tracker.comparison(published.run.reference.locator).is_finished
            assert http_store.description(experiment).startswith(f"ours\n\n{BEGIN}\n\n{wanted.key} **board**")
        assert len(http_store.comparisons(experiment, "leaderboard")) == n_writes + 1


def test_the_description_of_its_run_is_cut_too(store: MlflowStore, board: Leaderboard, experiment: str):
    """MLflow keeps 8,000 characters of it, without a word."""
    store.experiment(experiment)
    published = trackperm.log(board, store.tracker(), experiment)
    note = store.get(published.run.reference.locator).data.tags["mlflow.note.content"]
    assert len(note) <= 8000
    assert rows(note) == rows(markdown(board))[: len(rows(note))]
