"""Certificates of statistics of several counts, held against all swaps over 30,000 generated cases.

As in `test_certificates`, in a module of its own, so that two processes share the work.
"""

from __future__ import annotations

import pytest
from support import score_laws
from support.certification import check, chunks

LAWS = 30
"""Laws that a chunk may take its cases from."""

N_CHUNKS = {"plane": 60, "irrational": 30, "space": 30}


@pytest.mark.sample(1)
@pytest.mark.parametrize(("family", "number"), chunks(N_CHUNKS))
def test_certificates(family: str, number: int) -> None:
    check(score_laws.cases(family, LAWS * number, LAWS * (number + 1)), score_laws.answer)
