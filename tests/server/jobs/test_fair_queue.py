"""Turns of clients and pages, against what a reader of the rules would deal out."""

from __future__ import annotations

import queue
import threading

import pytest

from trackperm.server.jobs.fair_queue import FairQueue


def drained(waiting: FairQueue[str]) -> list[str]:
    """Take everything, one at a time, each done before the next."""
    items = []
    while len(waiting):
        items.append(waiting.get(1))
        client, page, _ = items[-1].split("/")
        waiting.done(client, f"{client}/{page}")
    return items


def filled(*items: str) -> FairQueue[str]:
    waiting: FairQueue[str] = FairQueue()
    for item in items:
        client, page, _ = item.split("/")
        waiting.put(item, client, f"{client}/{page}")
    return waiting


def test_clients_take_turns_and_so_do_their_pages() -> None:
    waiting = filled("a/1/x", "a/1/y", "a/1/z", "a/2/x", "b/1/x", "b/1/y", "c/1/x")
    assert drained(waiting) == ["a/1/x", "b/1/x", "c/1/x", "a/2/x", "b/1/y", "a/1/y", "a/1/z"]


def test_a_thousand_made_up_pages_delay_another_client_by_one_turn() -> None:
    waiting = filled(*(f"flood/{number}/x" for number in range(1000)), "honest/1/x", "honest/1/y")
    assert drained(waiting)[:4] == ["flood/0/x", "honest/1/x", "flood/1/x", "honest/1/y"]


def test_who_has_less_in_progress_comes_first() -> None:
    waiting = filled("a/1/x", "a/1/y", "a/2/x")
    assert waiting.get(1) == "a/1/x"
    waiting.put("b/1/x", "b", "b/1")
    assert [waiting.get(1), waiting.get(1)] == ["b/1/x", "a/2/x"]
    waiting.done("b", "b/1")
    waiting.put("b/1/y", "b", "b/1")
    assert [waiting.get(1), waiting.get(1)] == ["b/1/y", "a/1/y"]


def test_a_program_is_its_own_page() -> None:
    waiting: FairQueue[str] = FairQueue()
    for item in ("first", "second"):
        waiting.put(item, "program", "program")
    for item in ("first", "second"):
        assert waiting.get(1) == item
        waiting.done("program", "program")
    assert not waiting._in_progress


def test_items_are_removed() -> None:
    waiting = filled("a/1/x", "a/1/y", "a/2/x", "b/1/x")
    assert waiting.remove(lambda item: item.startswith("a/1") or item == "b/1/x") == [
        "a/1/x",
        "a/1/y",
        "b/1/x",
    ]
    assert (len(waiting), drained(waiting)) == (1, ["a/2/x"])


def test_waiting_for_an_item() -> None:
    waiting: FairQueue[str] = FairQueue()
    with pytest.raises(queue.Empty):
        waiting.get(0.01)
    threading.Timer(0.05, lambda: waiting.put("late", "a", "a")).start()
    assert waiting.get(10) == "late"
