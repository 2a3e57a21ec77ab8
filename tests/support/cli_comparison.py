"""What `trackperm compare` prints and refuses, called in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.command_line import invoke
from support.reference_data import reference


def compared(*arguments: str | Path) -> dict[str, Any]:
    """The result of one statistic, as `--format json` prints it."""
    (found,) = json.loads(invoke("compare", *arguments, "--no-log", "--format", "json"))
    assert isinstance(found, dict)
    return found


def check_reference(identifier: str, *arguments: str | Path) -> dict[str, Any]:
    """The two-sided result of a comparison whose p-values, of all alternatives, are as the reference says."""
    expected = reference(identifier)
    results = {}
    for alternative in ("two-sided", "greater", "less"):
        found = compared(*arguments, "--alternative", alternative)
        exact = float(expected.pvalue(alternative))
        assert abs(found["pvalue"] - exact) <= 1e-9 * exact, alternative
        assert found["n_discordant"] == expected.n_discordant
        assert found["n_examples"] == expected.n_examples
        results[alternative] = found
    return results["two-sided"]
