"""``trackperm receive``: queue and compare the runs that webhooks announce."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from trackperm.cli.watch import PolicyName, PolicyPath, StateFolder, policies, stopped_by_signals
from trackperm.errors import InputError

_BUSY_SECONDS = 5.0  # wait for a busy database; then the sender is told to retry
_LOOK_SECONDS = 1.0


def receive(
    policy: PolicyPath = Path("trackperm.yaml"),
    name: PolicyName = None,
    state: StateFolder = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on, behind a TLS proxy.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=65535, help="Port; 0 chooses a free one and prints it."),
    ] = 8642,
    queue_only: Annotated[
        bool, typer.Option("--queue-only", help="Only queue runs; `trackperm watch` compares them.")
    ] = False,
) -> None:
    """Receive webhooks at POST /wandb and POST /mlflow, and compare the runs that they announce.

    It needs at least one of TRACKPERM_WANDB_WEBHOOK_SECRET and TRACKPERM_MLFLOW_WEBHOOK_SECRET. Runs are
    added to the queue of `trackperm watch`, and a JSON line is printed for every decision. If lines can no
    longer be written, pending requests are answered, and the command ends with exit code 2.
    """
    from trackperm.automation.decision_log import DecisionLog
    from trackperm.automation.queue.database import default_folder
    from trackperm.automation.queue.queue import Queue
    from trackperm.automation.queue.watch import Watcher
    from trackperm.automation.webhooks.http import ReceiverServer
    from trackperm.automation.webhooks.receive import Receiver, Secrets

    secrets = Secrets.of_environment()
    chosen = policies(policy, name)
    folder = state or default_folder(policy)
    queue = Queue(folder)
    with stopped_by_signals() as stop, ExitStack() as stack:
        log = DecisionLog(broken=stop.set)
        receiver = Receiver(chosen, Queue(folder, busy=_BUSY_SECONDS), secrets, log)
        server = stack.enter_context(ReceiverServer(receiver, host, port))
        thread = threading.Thread(target=server.serve, name="trackperm-receive", daemon=True)
        thread.start()
        log("started", policies=[each.name for each in chosen], host=host, port=server.port)
        try:
            if queue_only:
                while not stop.wait(_LOOK_SECONDS):  # a signal may arrive in another thread
                    continue
            else:
                Watcher(chosen, queue, log, is_listing=False).run(stop)
        finally:
            server.shutdown()
            thread.join(10)
            log("stopped", **queue.counts())
    if log.failure is not None:
        # Python would flush the rest of the line at exit, and report that failure a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise InputError(
            "decisions can no longer be written to standard output:"
            f" {getattr(log.failure, 'strerror', None) or log.failure}",
            hint="earlier webhooks are queued; start the command again with a working standard output.",
        )
