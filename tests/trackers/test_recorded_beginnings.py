"""Places of publications whose records of their beginnings are slow, repeated or late."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

from trackperm.trackers import publication
from trackperm.trackers.publication import CREATED_TAG, creation, record_beginning


class Store:
    """Store with records of beginnings by writer, whose writes may take long on a simulated clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        self.tags: dict[str, dict[str, str]] = {}
        clock = self

        class Clock(datetime):
            @classmethod
            def now(cls, tz: timezone | None = None) -> datetime:
                return datetime(2026, 1, 1, 12, tzinfo=tz) + timedelta(seconds=clock.seconds)

        class Time:
            monotonic = time = staticmethod(lambda: clock.seconds)

        monkeypatch.setattr(publication, "datetime", Clock)
        monkeypatch.setattr(publication, "time", Time)

    def recorded(self) -> list[datetime | None]:
        return [creation(tags) for tags in self.tags.values()]

    def order(self) -> list[str]:
        return sorted(self.tags, key=lambda name: creation(self.tags[name]) or datetime.max)

    def record(
        self, name: str, during: Callable[[int], object] = lambda _: None, announced: float = 0.0
    ) -> None:
        """Record a beginning; `during` each attempt, others may write and time may pass."""

        def write(text: str, attempt: int) -> None:
            during(attempt)
            self.tags.setdefault(name, {})[f"{CREATED_TAG}_{attempt}" if attempt else CREATED_TAG] = text
            self.seconds += 0.01

        begun = publication.datetime.now(timezone.utc) - timedelta(seconds=announced)
        record_beginning(None, self.recorded, write, begun)

    def wait(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    return Store(monkeypatch)


def test_a_quick_record_keeps_its_place(store: Store):
    def overtaken(_: int) -> None:
        store.wait(0.1)
        store.record("other")

    store.record("own", overtaken)
    assert (store.order(), len(store.tags["own"])) == (["own", "other"], 1)


def test_a_record_that_is_late_sorts_after_those_that_were_told_their_places(store: Store):
    def late(attempt: int) -> None:
        if attempt == 0:
            store.wait(1.0)
            store.record("other")
            store.wait(60.0)

    store.record("own", late)
    assert store.order() == ["other", "own"]
    store.tags["own"][CREATED_TAG] = "2026-01-01T12:00:00+00:00"  # the first request arrives once more
    assert store.order() == ["other", "own"]


def test_a_record_that_is_late_again_is_replaced_again(store: Store):
    def late(attempt: int) -> None:
        if attempt < 2:
            store.wait(1.0)
            store.record(f"other {attempt}")
            store.wait(60.0)

    store.record("own", late)
    assert store.order() == ["other 0", "other 1", "own"]
    assert len(store.tags["own"]) == 3


def test_a_late_record_that_nobody_overtook_is_kept(store: Store):
    store.record("first")
    store.record("own", lambda _: store.wait(60.0))
    assert len(store.tags["own"]) == 1
    store.record("last")
    assert store.order() == ["first", "own", "last"]


def test_a_run_that_was_created_long_ago_is_not_waited_for(store: Store):
    """Readers wait for runs that are new; another may overtake an older one, however quick its record is."""

    def overtaken(attempt: int) -> None:
        if attempt == 0:
            store.wait(0.1)
            store.record("other")

    store.record("own", overtaken, announced=58.0)
    assert store.order() == ["other", "own"]


def test_an_invented_time_is_not_followed_for_ever(store: Store):
    store.tags["invented"] = {CREATED_TAG: "9999-12-31T00:00:00+00:00"}
    store.record("own", lambda _: store.wait(60.0))
    assert len(store.tags["own"]) == 1
