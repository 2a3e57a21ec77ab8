"""Queue in which clients take turns, and the pages of each client as well."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Queue that hands items to several threads, by client and page.

    The client with the fewest items in progress comes next; among equals, the one that has waited longest for
    a turn. Items of one page keep their order.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, OrderedDict[str, deque[T]]] = OrderedDict()
        self._n_waiting = 0
        self._in_progress: Counter[str] = Counter()
        self._changed = threading.Condition()

    def __len__(self) -> int:
        """Return the number of waiting items."""
        return self._n_waiting

    def put(self, item: T, client: str, page: str) -> None:
        """Add an item of a page of a client."""
        with self._changed:
            pages = self._waiting.setdefault(client, OrderedDict())
            pages.setdefault(page, deque()).append(item)
            self._n_waiting += 1
            self._changed.notify()

    def get(self, timeout: float) -> T:
        """Take the next item; the taker calls :meth:`done` when it is finished.

        Raise :class:`queue.Empty` if no item came within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while not self._n_waiting:
                if not self._changed.wait(deadline - time.monotonic()):
                    raise queue.Empty
            client = min(self._waiting, key=self._in_progress.__getitem__)  # the first among equals
            pages = self._waiting[client]
            page = min(pages, key=self._in_progress.__getitem__)
            item = pages[page].popleft()
            self._n_waiting -= 1
            pages.move_to_end(page)
            self._waiting.move_to_end(client)
            self._remove_if_empty(client, page)
            self._in_progress.update({client, page})
            return item

    def done(self, client: str, page: str) -> None:
        """Mark a taken item as finished."""
        with self._changed:
            self._in_progress.subtract({client, page})
            for name in (client, page):
                if not self._in_progress[name]:
                    del self._in_progress[name]

    def remove(self, is_removed: Callable[[T], bool]) -> list[T]:
        """Take out all items for which `is_removed` returns True."""
        removed: list[T] = []
        with self._changed:
            for client, pages in list(self._waiting.items()):
                for page, items in list(pages.items()):
                    verdicts = [(item, is_removed(item)) for item in items]
                    removed += [item for item, is_out in verdicts if is_out]
                    pages[page] = deque(item for item, is_out in verdicts if not is_out)
                    self._remove_if_empty(client, page)
            self._n_waiting -= len(removed)
        return removed

    def _remove_if_empty(self, client: str, page: str) -> None:
        pages = self._waiting[client]
        if not pages[page]:
            del pages[page]
        if not pages:
            del self._waiting[client]
