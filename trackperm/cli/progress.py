"""Progress of what takes long, on the standard error of a terminal."""

from __future__ import annotations

import sys
import time
from threading import Lock, Timer
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_DELAY = 2.0  # seconds before anything is shown


class Steps:
    """A bar of steps that appears when they take longer than two seconds, and is wiped at the end.

    Where standard error is no terminal, nothing is ever shown.

    Parameters
    ----------
    n_steps : int
        How many times :meth:`begin` will be called.
    delay : float
        Seconds before the bar appears.
    console : Console, optional
        By default standard error.
    """

    def __init__(self, n_steps: int, *, delay: float = _DELAY, console: Console | None = None) -> None:
        is_terminal = sys.stderr.isatty() if console is None else console.is_terminal
        self._console = console
        self._timer = Timer(delay, self._show) if is_terminal else None
        self._lock = Lock()
        self._start = time.monotonic()
        self._bar: Progress | None = None
        self._is_over = False
        self._n_steps = n_steps
        self._n_begun = 0
        self._description, self._completed = "", 0.0

    def expect(self, n_steps: int) -> None:
        """Say how many steps there are in all, where more is known of it now."""
        self._n_steps = n_steps
        self._update()

    def begin(self, description: str) -> None:
        """Say what is done next; what was begun before is done."""
        self._description, self._completed = description, self._n_begun
        self._n_begun += 1
        self._update()

    def _show(self) -> None:
        # Most commands are over before anything is shown, and need no rich.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(file=sys.stderr) if self._console is None else self._console
        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
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
