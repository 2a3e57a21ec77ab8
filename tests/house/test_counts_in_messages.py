"""Counts in messages have thousands separators, as in 1,319 examples."""

from __future__ import annotations

import re

from support.processes import ROOT

COUNT = re.compile(
    r"(?<!\^)\{([^{}:!]+)\} (?:distinct |random |paired |discordant )?"
    r"(?:examples|rows|swaps|draws|exchanges|sentences|instances|queries|differences|predictions|resamples)\b"
)

FORMATTED = {
    "trackperm/tables/wandb/logged_tables.py": {"kept", "noted"},
    "trackperm/automation/training/lightning.py": {"size"},
    "trackperm/exact/rank_statistics/permutation.py": {"n_coins"},
    "trackperm/ledger/run_texts.py": {"share"},
    "trackperm/pairing/checks/label_values.py": {"number"},
}
"""Counts that are formatted before, or small."""


def test_counts_have_separators() -> None:
    found = {}
    for file in sorted((ROOT / "trackperm").rglob("*.py")):
        if counts := set(COUNT.findall(file.read_text(encoding="utf-8"))):
            found[file.relative_to(ROOT).as_posix()] = counts
    assert found == FORMATTED
