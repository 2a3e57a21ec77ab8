"""Description of an MLflow experiment: its newest leaderboards, between two markers.

The text between the markers is generated from the runs of the leaderboards each time, so that concurrent
writers do not lose each other's. Text that people wrote outside the markers stays. MLflow cannot make a
change depend on the text that was read, so an edit by hand in the same moment may be lost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.exceptions import MlflowException

from trackperm.trackers.markdown_limit import truncate_leaderboard
from trackperm.trackers.mlflow.store import Store, downloaded
from trackperm.trackers.mlflow.write import DIGEST_TAG, DONE, STATE_TAG
from trackperm.trackers.publication import KIND_TAG, LEADERBOARD, LOGGED_TAG, beginning, last_logged

BEGIN = "<!-- trackperm leaderboards: written by trackperm, which replaces all up to the end -->"
END = "<!-- end of trackperm leaderboards -->"
NOTE = "mlflow.note.content"
LIMITS = (20_000, 5_000)
"""Maximum number of characters of an experiment's tag, in newer stores and in older ones."""

BOARD_FILE = "leaderboard.md"

_BLOCK = re.compile(
    rf"{re.escape(BEGIN)}(?:(?!{re.escape(BEGIN)})[\s\S])*?{re.escape(END)}",
)
_TRIES = 5  # attempts; each simultaneous writer of the description requires one more
_UNKNOWN = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Board:
    """A leaderboard in the description of an experiment.

    Attributes
    ----------
    run_id, experiment_id : str
        Run and experiment that hold the whole leaderboard.
    text : str
        The whole leaderboard in Markdown.
    """

    run_id: str
    experiment_id: str
    text: str

    @property
    def link(self) -> str:
        """Link in Markdown to its run, relative to the experiment's page."""
        return f"[run {self.run_id}](#/experiments/{self.experiment_id}/runs/{self.run_id})"


def describe_experiment(store: Store, experiment_id: str, run_id: str) -> tuple[str, ...]:
    """Write the last logged leaderboard of each statistic into the description of the experiment.

    The run `run_id` has just been logged, possibly again, when others were logged in the meantime.
    Return the reasons why leaderboards could not be shown. Raise TrackerError if MLflow failed; the next call
    completes the description.
    """
    read: dict[tuple[str, str], str] = {}
    limits = list(LIMITS)
    with store.calls(f"describing experiment `{experiment_id}`", writes=True) as client:
        _make_newest(client, _finished(store, experiment_id), run_id)
        for _ in range(_TRIES):
            boards = [_board(client, run, read) for run in _newest(store, experiment_id)]
            held = client.get_experiment(experiment_id).tags.get(NOTE, "")
            wanted = described(held, boards, limits[0])
            if wanted == held:
                return () if not boards or BEGIN in held else (_no_room(boards),)
            try:
                client.set_experiment_tag(experiment_id, NOTE, wanted)
            except MlflowException as error:
                if error.error_code != "INVALID_PARAMETER_VALUE" or len(limits) == 1:
                    raise
                del limits[0]
    return ("others are changing the description of the experiment; log again to update it",)


def described(held: str, boards: Sequence[Board], limit: int) -> str:
    """Replace the leaderboards in a description by `boards`, which share the room equally.

    Leave them out if they do not fit into `limit` characters.
    """
    found = _BLOCK.search(held)
    if found is None:
        before, after = (f"{held}\n\n" if held.strip() else held), ""
    else:
        before, after = held[: found.start()], _BLOCK.sub("", held[found.end() :])
    room = limit - len(before) - len(after) - len(BEGIN) - len(END) - 4
    for shown in (boards, boards[:1]):
        share = room // max(len(shown), 1) - 8
        texts = [_section(board, share) for board in shown]
        left = len(boards) - len(shown)
        if left:
            texts.append(f"No room for {left} more by other statistics.")
        block = "\n\n".join([BEGIN, *texts, END])
        if boards and len(before) + len(block) + len(after) <= limit:
            return before + block + after
    return held if found is None else before + after


def _section(board: Board, limit: int) -> str:
    where = f"Logged as {board.link}."
    text = truncate_leaderboard(board.text.rstrip(), limit - len(where) - 2, board.link)
    if text is None:
        return f"A leaderboard that is too long for this description is in {board.link}."
    return f"{text}\n\n{where}"


def _no_room(boards: Sequence[Board]) -> str:
    runs = ", ".join(f"mlflow:{board.run_id}" for board in boards)
    return f"the description of the experiment has no room for a leaderboard; the whole is in {runs}"


def _finished(store: Store, experiment_id: str) -> list[Run]:
    """Find the finished leaderboards of an experiment."""
    found = store.search("looking up leaderboards", [experiment_id], f"tags.`{KIND_TAG}` = '{LEADERBOARD}'")
    return [run for run in found if (run.data.tags.get(STATE_TAG), run.info.status) == (DONE, "FINISHED")]


def _make_newest(client: MlflowClient, finished: Sequence[Run], run_id: str) -> None:
    """Tag a leaderboard with a time after all others of its statistic, unless it is the newest already."""
    own = next((run for run in finished if run.info.run_id == run_id), None)
    if own is None:
        return  # somebody deleted it
    newest = max((run for run in finished if _statistic(run) == _statistic(own)), key=_logged)
    if newest is not own:
        client.set_tag(run_id, LOGGED_TAG, beginning(_logged(newest)[0], list))


def _newest(store: Store, experiment_id: str) -> list[Run]:
    """Find the newest finished leaderboard of each statistic, in the order of the statistics' names."""
    newest: dict[str, Run] = {}
    for run in _finished(store, experiment_id):
        name = _statistic(run)
        newest[name] = max(newest.get(name, run), run, key=_logged)
    return [newest[name] for name in sorted(newest)]


def _statistic(run: Run) -> str:
    return str(run.data.tags.get("trackperm.statistic", ""))


def _logged(run: Run) -> tuple[datetime, str]:
    return last_logged(run.data.tags) or _UNKNOWN, run.info.run_id


def _board(client: MlflowClient, run: Run, read: dict[tuple[str, str], str]) -> Board:
    """Read a leaderboard; `read` caches each version of it."""
    run_id = run.info.run_id
    version = run_id, run.data.tags.get(DIGEST_TAG, "")
    if version not in read:
        read[version] = downloaded(client, run_id, BOARD_FILE).decode()
    return Board(run_id, run.info.experiment_id, read[version])
