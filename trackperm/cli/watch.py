"""``trackperm watch``: automatic comparison of finished runs by policies."""

from __future__ import annotations

import signal
import threading
from _thread import start_new_thread
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trackperm.cli.output import Renderers, as_json, emit, require_formats, require_other_files
from trackperm.errors import InputError
from trackperm.messages import printable

if TYPE_CHECKING:
    from trackperm.automation.policy.policy import Policy
    from trackperm.automation.queue.queue import Entry, Queue

PolicyPath = Annotated[Path, typer.Option("--policy", metavar="FILE", help="Policies in YAML.")]
PolicyName = Annotated[str | None, typer.Option(metavar="POLICY", help="Only this policy of the file.")]
StateFolder = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FOLDER",
        help="Folder of the queue, on a local disk. [default: $TRACKPERM_STATE, or a folder for the policy"
        " file in ~/.local/state/trackperm]",
        show_default=False,
    ),
]


def watch(
    policy: PolicyPath = Path("trackperm.yaml"),
    name: PolicyName = None,
    state: StateFolder = None,
    interval: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=1.0, max=86400.0, help="Time between two listings of the runs."),
    ] = 30.0,
    since: Annotated[
        datetime | None, typer.Option(metavar="TIME", help="Skip runs that ended before this time, in UTC.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="List the runs, compare those that are due, and exit: for cron.")
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Print the queue, and exit.")] = False,
    format_: Annotated[
        Literal["text", "json"],
        typer.Option("--format", help="With `--status`: format of the printed queue."),
    ] = "text",
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="With `--status`: write the queue also to a file, in the format of its suffix; repeatable.",
        ),
    ] = None,
    retry_refused: Annotated[
        bool, typer.Option("--retry-refused", help="Retry runs that could not be compared.")
    ] = False,
    lease: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=5.0,
            max=3600.0,
            help="Take over the work of a dead watcher after this time.",
        ),
    ] = 60.0,
    health: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a health file after every step.")
    ] = None,
    health_port: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=65535, help="Answer GET /health on this port of 127.0.0.1."),
    ] = None,
) -> None:
    """Compare every finished run that a policy selects once, and print a JSON line for every decision.

    Exit code with --once: 0 if nothing failed, 2 for bad input, 3 if a tracker failed.
    """
    from trackperm.automation.decision_log import DecisionLog
    from trackperm.automation.policy.edits import EditedPolicies
    from trackperm.automation.queue.database import default_folder
    from trackperm.automation.queue.health import Health, endpoint
    from trackperm.automation.queue.queue import Queue
    from trackperm.automation.queue.watch import Watcher

    if not status and (output or format_ != "text"):
        option = "--output" if output else "--format"
        raise InputError(f"`{option}` needs `--status`", hint="decisions are printed as JSON lines.")
    require_formats(output, ("text", "json"))
    require_other_files(output, {"the policy file": (policy,)})
    if status:
        if state is None and not policy.is_file():
            raise InputError(
                f"the policy file `{policy}` does not exist",
                hint="name one by `--policy FILE`, or its queue by `--state FOLDER`.",
            )
        queue = Queue(state or default_folder(policy), lease=lease)
        entries = queue.entries()
        renderers: Renderers = {
            "text": lambda: "\n".join(map(printable, _status(queue, entries))),
            "json": lambda: as_json([asdict(replace(entry, token=None)) for entry in entries]),
        }
        emit(renderers, format_, output)
        return
    edits = EditedPolicies(policy, name)
    chosen = edits.load()
    queue = Queue(state or default_folder(policy), lease=lease)
    if not any(each.runs for each in chosen):
        _require_rows(queue, chosen, policy)
    log = DecisionLog()
    if retry_refused:
        again = queue.retry_refused([each.queue_key for each in chosen])
        log("retry-refused", rows=again)
    if since is not None and since.tzinfo is None:
        since = since.replace(tzinfo=timezone.utc)
    well = Health(patience=max(10 * interval, 300.0), file=health)
    well.beat(is_good=True)  # an unwritable health file fails at once
    watcher = Watcher(chosen, queue, log, interval=interval, since=since, health=well, edits=edits)
    with stopped_by_signals() as stop, ExitStack() as stack:
        port = None if health_port is None else stack.enter_context(endpoint(well, health_port))
        log("started", policies=[each.name for each in chosen], state=str(queue.folder), health_port=port)
        try:
            if once:
                error = watcher.once(stop)
                if error is not None:
                    raise error
            else:
                watcher.run(stop)
        finally:
            log("stopped", **queue.counts())


def policies(path: Path, name: str | None) -> list[Policy]:
    """Load the policies of a file, or only the one with a name."""
    from trackperm.automation.policy.load import load_policies

    found = load_policies(path)
    return list(found.policies) if name is None else [found.find(name)]


def _require_rows(queue: Queue, chosen: list[Policy], path: Path) -> None:
    """Refuse policies without `runs`, unless their queue has entries from other processes."""
    keys = {each.queue_key for each in chosen}
    if not any(entry.queue_key in keys for entry in queue.entries()):
        raise InputError(
            f"no policy of `{printable(path)}` has `runs`, and none has a run in the queue"
            f" `{printable(queue.folder)}`",
            hint="add `runs: mlflow:EXPERIMENT` or `runs: wandb:ENTITY/PROJECT` to a policy; without it, only"
            " runs that `compare_on_exit` has queued are compared.",
        )


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """Set an event at the first SIGTERM or SIGINT; raise :exc:`KeyboardInterrupt` at the second one."""
    stop = threading.Event()

    def handle(*_: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        # The interrupted code may hold the event's lock, so that another thread has to set the event.
        # Unlike `threading.Thread`, this function starts one without taking a lock.
        start_new_thread(stop.set, ())

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _status(queue: Queue, entries: Iterable[Entry]) -> Iterator[str]:
    """Format the queue as lines for a terminal: one for each entry, and one with counts by state."""
    yield from map(_line, entries)
    counts = ", ".join(f"{number} {state}" for state, number in queue.counts().items())
    yield f"{counts}; {queue.folder}"


def _line(entry: Entry) -> str:
    moment = datetime.fromtimestamp(entry.changed, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    against = "" if entry.baseline is None else f" against {entry.baseline}"
    tried = f", tried {entry.attempts} times" if entry.attempts > 1 else ""
    result = (entry.outcome if entry.state == "done" else entry.reason) or ""
    task = f"{entry.policy}  {entry.candidate}{against}{tried}"
    return f"{moment}  {entry.state:8} {task}{': ' if result else ''}{result}"
