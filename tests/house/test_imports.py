"""What an import loads, in a fresh interpreter: people pay for what they use."""

from __future__ import annotations

import pytest
from support.processes import python

TRACKERS = {"mlflow", "wandb"}
CHARTS = {"altair", "vl_convert", "matplotlib", "plotly"}
FRAMES = {"narwhals", "polars", "pandas", "pyarrow", "duckdb"}
SPECS = {"pydantic", "yaml"}
NUMBERS = {"numpy", "scipy"}
SHELL = {"typer", "rich", "jinja2"}


def loaded(code: str) -> set[str]:
    """Top-level modules in memory after `code`."""
    return set(
        python(f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})").split()
    )


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import trackperm", TRACKERS | CHARTS | FRAMES | SPECS | NUMBERS | SHELL),
        ("import trackperm.exact", TRACKERS | CHARTS | FRAMES | SPECS | SHELL),
        ("import trackperm; trackperm.compare", TRACKERS | CHARTS | SHELL | {"pandas", "duckdb"}),
        ("import trackperm; trackperm.log_predictions", TRACKERS | CHARTS | SHELL | {"pandas", "duckdb"}),
        ("import trackperm; trackperm.report", TRACKERS | CHARTS | FRAMES | SPECS | NUMBERS | SHELL),
        ("import trackperm.trackers.base", TRACKERS | CHARTS | {"pandas", "duckdb"}),
        ("import trackperm.cli", TRACKERS | CHARTS | FRAMES | NUMBERS),
        (
            "import contextlib, trackperm.cli\n"
            "sys.argv[1:] = ['compare', '--help']\n"
            "with contextlib.redirect_stdout(None), contextlib.suppress(SystemExit):\n"
            "    trackperm.cli.main()",
            TRACKERS | CHARTS | FRAMES | NUMBERS,
        ),
        ("import trackperm.trackers.wandb.tracker", TRACKERS | CHARTS | {"pandas", "duckdb", "google"}),
    ],
)
def test_import_leaves_out(code: str, unwanted: set[str]):
    modules = loaded(code)
    assert "trackperm" in modules
    assert not modules & unwanted


def test_every_public_name_is_there():
    python("import trackperm\nfor name in trackperm.__all__:\n    getattr(trackperm, name)")


def test_unknown_names_are_refused_as_of_any_module():
    python(
        "import trackperm\n"
        "try:\n    trackperm.comparision\n"
        "except AttributeError as error:\n    assert 'comparision' in str(error)\n"
        "else:\n    raise AssertionError"
    )
