"""Times at which publications begin, by clocks that differ."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

import pytest

from trackperm.trackers import publication
from trackperm.trackers.publication import CREATED_TAG, beginning, creation

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "now", lambda: NOON.isoformat(timespec="microseconds"))


def recorded(begun_after: datetime | None, *others: datetime | None) -> datetime | None:
    return creation({CREATED_TAG: beginning(begun_after, lambda: others)})


def unread() -> Iterable[datetime | None]:
    raise AssertionError("the times of others were read again")


@pytest.mark.parametrize("before", [None, timedelta(microseconds=1), timedelta(days=1)])
def test_a_clock_that_is_ahead_decides_without_another_request(before: timedelta | None):
    begun_after = None if before is None else NOON - before
    assert creation({CREATED_TAG: beginning(begun_after, unread)}) == NOON


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=1)])
def test_a_clock_that_is_behind_follows_the_latest(ahead: timedelta):
    step = timedelta(microseconds=1)
    latest = NOON + ahead
    assert recorded(latest, None, NOON - ahead) == latest + step
    assert recorded(latest, latest + 5 * step, latest) == latest + 6 * step


def test_times_of_other_zones_are_compared():
    east = (NOON + timedelta(hours=1)).astimezone(timezone(timedelta(hours=9)))
    text = beginning(east, lambda: ())
    assert text == "2026-01-01T13:00:00.000001+00:00"


def test_an_impossible_time_is_not_exceeded():
    assert recorded(datetime.max.replace(tzinfo=timezone.utc)) == NOON
