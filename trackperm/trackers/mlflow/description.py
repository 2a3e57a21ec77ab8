"""The description of an MLflow experiment: the newest leaderboards of it, between two markers.

What stands between the markers is made anew from the runs of the leaderboards each time, so that writers
cannot lose each other's; what people wrote outside of them stays. MLflow has no way to change a description
only if it is still what was read: who edits it by hand in the same moment may have to do so again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.exceptions import MlflowException

from trackperm.trackers.markdown_limit import truncate_leaderboard
from trackperm.trackers.mlflow.store import Store
from trackperm.trackers.mlflow.write import DIGEST_TAG, DONE, STATE_TAG
from trackperm.trackers.publication import KIND_TAG, LEADERBOARD, creation

BEGIN = "<!-- trackperm leaderboards: written by trackperm, which replaces all up to the end -->"
END = "<!-- end of trackperm leaderboards -->"
NOTE = "mlflow.note.content"
LIMITS = (20_000, 5_000)
"""Most characters of an experiment's tag, in newer stores and in older ones."""

BOARD_FILE = "leaderboard.md"

_BLOCK = re.compile(
    rf"{re.escape(BEGIN)}(?:(?!{re.escape(BEGIN)})[\s\S])*?{re.escape(END)}",
)
_TRIES = 5
_UNKNOWN = datetime.max.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Board:
    """A leaderboard as the description shows it.

    Attributes
    ----------
    run_id, experiment_id : str
        Where the whole is.
    text : str
        The whole, in Markdown.
    """

    run_id: str
    experiment_id: str
    text: str

    @property
    def link(self) -> str:
        """Markdown that names its run and leads there from the experiment's page."""
        return f"[run {self.run_id}](#/experiments/{self.experiment_id}/runs/{self.run_id})"


def describe_experiment(store: Store, experiment_id: str) -> tuple[str, ...]:
    """Show the newest finished leaderboard by each statistic in the description of their experiment.

    Returns
    -------
    tuple of str
        What could not be shown, and why.

    Raises
    ------
    TrackerError
        If MLflow failed; the next try completes it.
    """
    read: dict[tuple[str, str], str] = {}
    limits = list(LIMITS)
    with store.calls(f"describing experiment `{experiment_id}`", writes=True) as client:
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
    return ("the description of the experiment is being changed by others; log again to bring it up to date",)


def described(held: str, boards: Sequence[Board], limit: int) -> str:
    """Return a description with `boards` in place of those that it had; without any where there is no room.

    Parameters
    ----------
    held : str
        The description as it is.
    boards : sequence of Board
        In the order in which they are shown, each in an equal share of the room.
    limit : int
        The most characters.
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
        return f"A leaderboard that is too long to be shown here is in {board.link}."
    return f"{text}\n\n{where}"


def _no_room(boards: Sequence[Board]) -> str:
    runs = ", ".join(f"mlflow:{board.run_id}" for board in boards)
    return f"the description of the experiment has no room for a leaderboard; the whole is in {runs}"


def _newest(store: Store, experiment_id: str) -> list[Run]:
    """Find the finished leaderboard that was begun last by each statistic, in the order of their names."""
    newest: dict[str, Run] = {}
    for run in store.search(
        "looking up leaderboards", [experiment_id], f"tags.`{KIND_TAG}` = '{LEADERBOARD}'"
    ):
        tags = run.data.tags
        if (tags.get(STATE_TAG), run.info.status) == (DONE, "FINISHED"):
            name = tags.get("trackperm.statistic", "")
            newest[name] = max(newest.get(name, run), run, key=_begun)
    return [newest[name] for name in sorted(newest)]


def _begun(run: Run) -> tuple[datetime, str]:
    return creation(run.data.tags) or _UNKNOWN, run.info.run_id


def _board(client: MlflowClient, run: Run, read: dict[tuple[str, str], str]) -> Board:
    """Read a leaderboard, each version of it once."""
    run_id = run.info.run_id
    version = run_id, run.data.tags.get(DIGEST_TAG, "")
    if version not in read:
        with TemporaryDirectory(prefix="trackperm-") as folder:
            file = Path(client.download_artifacts(run_id, BOARD_FILE, folder))
            read[version] = file.read_text(encoding="utf-8")
    return Board(run_id, run.info.experiment_id, read[version])
