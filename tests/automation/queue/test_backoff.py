"""How long a tracker is left alone after it failed."""

from __future__ import annotations

import pytest
import requests

from trackperm.automation.queue.backoff import delay, retry_after
from trackperm.errors import TrackerError


def test_delays_are_drawn_below_a_growing_bound():
    for attempts, bound in ((0, 2.0), (3, 16.0), (100, 600.0)):
        drawn = [delay(attempts) for _ in range(300)]
        assert 0.6 * bound < max(drawn) <= bound
        assert min(drawn) < 0.2 * bound


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("7", 7.0),
        ("-3", 0.0),
        ("soon", None),
        ("inf", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 99999999999 Oct 2015 07:28:00 GMT", None),
    ],
)
def test_what_a_server_asks_for(written: str, seconds: float | None):
    response = requests.Response()
    response.status_code, response.headers["Retry-After"] = 429, written
    error = TrackerError("refused")
    error.__cause__ = OSError("wrapped")
    error.__cause__.__context__ = requests.HTTPError("too many", response=response)
    assert retry_after(error) == seconds
    assert retry_after(TrackerError("no answer")) is None
