"""A queue in which clients take turns, and so do the pages of each client."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Hands out items to several threads, by client and page.

    Who has fewer items at work comes first; of equals, who has waited longest for a turn. Items of one page
    keep their order.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, OrderedDict[str, deque[T]]] = OrderedDict()
        self._n_waiting = 0
        self._at_work: Counter[str] = Counter()
        self._changed = threading.Condition()

    def __len__(self) -> int:
        """How many items wait."""
        return self._n_waiting

    def put(self, item: T, client: str, page: str) -> None:
        """Add `item`, for a page of a client."""
        with self._changed:
            pages = self._waiting.setdefault(client, OrderedDict())
            pages.setdefault(page, deque()).append(item)
            self._n_waiting += 1
            self._changed.notify()

    def get(self, timeout: float) -> T:
        """Take the item whose turn it is; :meth:`done` has to follow.

        Parameters
        ----------
        timeout : float
            Seconds to wait for one.

        Raises
        ------
        queue.Empty
            If none came.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while not self._n_waiting:
                if not self._changed.wait(deadline - time.monotonic()):
                    raise queue.Empty
            client = min(self._waiting, key=self._at_work.__getitem__)  # the first of equals
            pages = self._waiting[client]
            page = min(pages, key=self._at_work.__getitem__)
            item = pages[page].popleft()
            self._n_waiting -= 1
            pages.move_to_end(page)
            self._waiting.move_to_end(client)
            self._clean(client, page)
            self._at_work.update({client, page})
            return item

    def done(self, client: str, page: str) -> None:
        """Note that an item that was taken is no longer at work."""
        with self._changed:
            self._at_work.subtract({client, page})
            for name in (client, page):
                if not self._at_work[name]:
                    del self._at_work[name]

    def remove(self, is_removed: Callable[[T], bool]) -> list[T]:
        """Take out all items of which `is_removed` is true, in no turn."""
        removed: list[T] = []
        with self._changed:
            for client, pages in list(self._waiting.items()):
                for page, items in list(pages.items()):
                    verdicts = [(item, is_removed(item)) for item in items]
                    removed += [item for item, is_out in verdicts if is_out]
                    pages[page] = deque(item for item, is_out in verdicts if not is_out)
                    self._clean(client, page)
            self._n_waiting -= len(removed)
        return removed

    def _clean(self, client: str, page: str) -> None:
        """Forget who has nothing that waits."""
        pages = self._waiting[client]
        if not pages[page]:
            del pages[page]
        if not pages:
            del self._waiting[client]
