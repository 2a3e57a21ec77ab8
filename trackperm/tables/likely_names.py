"""Which of several tables most likely holds the predictions on a test set, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LIKELY = re.compile(r"pred|eval|test|result|answer|example|sample|output|score", re.IGNORECASE)
_UNLIKELY = re.compile(r"train|histor|loss|metric|config|param|importance|dataset", re.IGNORECASE)


def likeliest(names: Iterable[str]) -> str:
    """Return the name that a hint suggests: of predictions, and not of training data; of equals the first."""
    return max(names, key=lambda name: bool(_LIKELY.search(name)) - 2 * bool(_UNLIKELY.search(name)))
