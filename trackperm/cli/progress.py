"""Progress bar of long commands, on the standard error of a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from types import TracebackType
from typing import TYPE_CHECKING

from trackperm.cli.output import is_terminal
from trackperm.messages import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_DELAY = 1.0  # seconds before the bar appears: most commands are finished by then


@contextmanager
def working(description: str) -> Iterator[None]:
    """Show that a step without known length is in progress, until the block ends."""
    with Steps(None) as steps:
        steps.begin(description)
        yield


class Steps:
    """Progress bar of steps that appears after a delay, and is erased at the end.

    If standard error is not a terminal, the bar never appears.

    Parameters
    ----------
    n_steps : int or None
        Number of expected calls of :meth:`begin`; None if it is unknown.
    delay : float
        Seconds before the bar appears.
    console : Console, optional
        Console of the bar; by default standard error.
    """

    def __init__(self, n_steps: int | None, *, delay: float = _DELAY, console: Console | None = None) -> None:
        has_terminal = is_terminal(sys.stderr) if console is None else console.is_terminal
        self._console = console
        self._timer = Timer(delay, self._show) if has_terminal else None
        self._lock = Lock()
        self._start = time.monotonic()
        self._bar: Progress | None = None
        self._is_over = False
        self._n_steps = n_steps
        self._n_begun = 0
        self._description, self._completed = "", 0.0

    def expect(self, n_steps: int) -> None:
        """Correct the number of all steps."""
        self._n_steps = n_steps
        self._update()

    def begin(self, description: str) -> None:
        """Begin a step, which ends the step before it."""
        self._description, self._completed = printable(description), self._n_begun
        self._n_begun += 1
        self._update()

    def _show(self) -> None:
        # Imported late: most commands end before the bar appears, and do not need rich.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(file=sys.stderr) if self._console is None else self._console
        columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
        bar = Progress(*columns, console=console, transient=True, get_time=time.monotonic)
        bar.add_task("")
        bar.tasks[0].start_time = self._start
        with self._lock:
            if not self._is_over:
                self._bar = bar
                self._update()
                bar.start()

    def _update(self) -> None:
        if self._bar is not None:
            self._bar.update(
                self._bar.task_ids[0],
                total=self._n_steps,
                description=self._description,
                completed=self._completed,
            )

    def __enter__(self) -> Steps:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._bar is not None:
                self._bar.stop()
