"""How long to wait before the next attempt: full jitter, and what a server has asked for."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

BASE_SECONDS = 2.0
MOST_SECONDS = 600.0

_RANDOM = random.Random()  # noqa: S311 - delays are no secret


def delay(attempts: int, most: float = MOST_SECONDS) -> float:
    """Draw the seconds to wait after `attempts` failures, uniform below a bound that doubles with each.

    Clients that failed at the same moment so come back spread out ("full jitter").

    Parameters
    ----------
    attempts : int
        Failures so far, at least 0.
    most : float
        Where the bound stops growing.
    """
    bound = min(most, BASE_SECONDS * 2.0 ** min(max(attempts, 0), 32))
    return _RANDOM.uniform(0.0, bound)


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that the server behind `error` asked to wait (``Retry-After``), if it did.

    The header is looked for in the answers that `error` and its causes carry; it holds seconds or a date
    (RFC 9110, section 10.2.3).
    """
    for cause in causes(error):
        headers = getattr(getattr(cause, "response", None), "headers", None)
        written = None if headers is None else headers.get("Retry-After")
        if written is not None and (seconds := _seconds(str(written).strip())) is not None:
            return seconds
    return None


def causes(error: BaseException) -> Iterator[BaseException]:
    """Walk from `error` to what it came from; wandb keeps some under ``exc``."""
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        further = (one.__context__, one.__cause__, getattr(one, "exc", None))
        waiting += [each for each in further if isinstance(each, BaseException)]


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
