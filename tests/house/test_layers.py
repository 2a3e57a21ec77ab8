"""Imports point down only, as the contracts in `pyproject.toml` say."""

from __future__ import annotations

from processes import run, script


def test_layers_and_numerics_contracts():
    result = run([script("lint-imports")])
    assert result.returncode == 0, result.stdout + result.stderr
