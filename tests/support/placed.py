"""Texts of integrations with places of the machine that runs the tests in place of those that they name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path


def placed(text: str, places: Mapping[str, str | Path]) -> str:
    """Put the values of `places` for its keys, each of which has to stand in `text`.

    What is put in is not looked at again.
    """
    missing = [each for each in places if each not in text]
    assert not missing, f"{missing} not in {text!r}"
    found = "|".join(re.escape(each) for each in sorted(places, key=len, reverse=True))
    return re.sub(found, lambda match: str(places[match.group()]), text)
