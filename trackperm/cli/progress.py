"""Progress of what takes long, on the standard error of a terminal."""

from __future__ import annotations

import sys
from threading import Lock, Timer
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

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
        console = Console(file=sys.stderr) if console is None else console
        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task("", total=n_steps)
        self._n_begun = 0
        self._timer = Timer(delay, self._show) if console.is_terminal else None
        self._lock = Lock()
        self._is_shown = self._is_over = False

    def expect(self, n_steps: int) -> None:
        """Say how many steps there are in all, where more is known of it now."""
        self._progress.update(self._task, total=n_steps)

    def begin(self, description: str) -> None:
        """Say what is done next; what was begun before is done."""
        self._progress.update(self._task, description=description, completed=self._n_begun)
        self._n_begun += 1

    def _show(self) -> None:
        with self._lock:
            if not self._is_over:
                self._progress.start()
                self._is_shown = True

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
            if self._is_shown:
                self._progress.stop()
