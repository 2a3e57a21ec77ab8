"""Delays between attempts: full jitter, or what a server requests."""

from __future__ import annotations

import math
import random
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

from trackperm.trackers.failures import causes

BASE_SECONDS = 2.0
"""Bound of the first delay: a restarting server is back after a few seconds."""

MOST_SECONDS = 600.0
"""Bound of later delays: a tracker that is back is noticed within ten minutes."""

_RANDOM = random.Random()  # noqa: S311 - delays are not secret


def delay(attempts: int, most: float = MOST_SECONDS) -> float:
    """Draw a delay in seconds, uniform below a bound that doubles with each failed attempt, up to `most`.

    This "full jitter" spreads clients that failed at the same moment.
    """
    bound = min(most, BASE_SECONDS * 2.0 ** min(max(attempts, 0), 32))
    return _RANDOM.uniform(0.0, bound)


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that a server requests to wait (``Retry-After``), or None.

    The header is looked up in the HTTP responses that `error` and its causes carry; it has seconds or a date
    (RFC 9110, section 10.2.3).
    """
    for cause in causes(error):
        headers = getattr(getattr(cause, "response", None), "headers", None)
        written = None if headers is None else headers.get("Retry-After")
        if written is not None and (seconds := _seconds(str(written).strip())) is not None:
            return seconds
    return None


def _seconds(written: str) -> float | None:
    try:
        seconds = float(written)
    except ValueError:
        try:
            moment = parsedate_to_datetime(written)
        except (ValueError, OverflowError):
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        seconds = (moment - datetime.now(timezone.utc)).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None
