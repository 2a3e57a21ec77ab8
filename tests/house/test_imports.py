"""What an import loads, in a fresh interpreter: people pay for what they use."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.processes import python

TRACKERS = {"mlflow", "wandb"}
CHARTS = {"vl_convert", "matplotlib", "plotly"}
FRAMES = {"narwhals", "polars", "pandas", "pyarrow", "duckdb"}
SPECS = {"pydantic", "yaml"}
NUMBERS = {"numpy", "scipy"}
SHELL = {"typer", "rich", "jinja2"}


def loaded(code: str) -> set[str]:
    """Top-level modules in memory after `code`."""
    return set(
        python(f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})").split()
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import trackperm.exact", TRACKERS | CHARTS | FRAMES | SPECS | SHELL),
        (
            "import trackperm; trackperm.compare, trackperm.log_predictions",
            TRACKERS | CHARTS | SHELL | {"pandas", "duckdb"},
        ),
        ("import trackperm; trackperm.report", TRACKERS | CHARTS | FRAMES | SPECS | NUMBERS | SHELL),
        (
            "import trackperm.report.text, trackperm.report.page, trackperm.report.presented\n"
            "import trackperm.ledger.comparison_publication",
            TRACKERS | CHARTS,
        ),
        (
            "import contextlib, trackperm.cli\n"
            "sys.argv[1:] = ['compare', '--help']\n"
            "with contextlib.redirect_stdout(None), contextlib.suppress(SystemExit):\n"
            "    trackperm.cli.main()",
            TRACKERS | CHARTS | FRAMES | NUMBERS | {"rich"},
        ),
        ("import trackperm.trackers.wandb.tracker", TRACKERS | CHARTS | {"pandas", "duckdb", "google"}),
    ],
)
def test_import_leaves_out(code: str, unwanted: set[str]):
    modules = loaded(code)
    assert "trackperm" in modules
    assert not modules & unwanted


HEAVY = {
    "scipy.optimize",
    "scipy.stats",
    "scipy.sparse",
    "scipy.fft",
    "scipy.linalg",
    "rich",
    "jinja2",
    "mlflow",
    "wandb",
    "pandas",
    "pyarrow",
    "duckdb",
    "trackperm.automation",
    "trackperm.leaderboards",
    "trackperm.ledger",
    "trackperm.server",
}
NOT_AT_ALL = FRAMES | SPECS | NUMBERS | SHELL | TRACKERS | CHARTS


def modules_after(arguments: list[str]) -> set[str]:
    """Names of all modules in memory after a command has succeeded."""
    code = (
        "import sys, trackperm.cli\n"
        f"sys.argv[1:] = {arguments!r}\n"
        "try:\n    trackperm.cli.main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print('modules:', *sys.modules)"
    )
    return set(python(code).rpartition("modules:")[2].split())


def test_version_is_told_before_anything_is_imported():
    modules = modules_after(["--version"])
    assert "trackperm.version" in modules
    assert not modules & (NOT_AT_ALL | {"trackperm.cli.commands", "trackperm.errors"})


def test_help_imports_little():
    assert not modules_after(["--help"]) & {"polars", "numpy", "scipy", "mlflow", "wandb", "rich"}


def test_comparing_two_files_leaves_out_what_it_does_not_need(tmp_path: Path):
    for name, every in (("baseline", 3), ("candidate", 4)):
        rows = "".join(f"e{i},{int(i % every > 0)}\n" for i in range(200))
        (tmp_path / f"{name}.csv").write_text(f"id,correct\n{rows}", encoding="utf-8")
    modules = modules_after(["compare", str(tmp_path / "baseline.csv"), str(tmp_path / "candidate.csv")])
    assert {"polars", "trackperm.comparison", "trackperm.cli.compare"} <= modules
    assert not modules & HEAVY
    assert {name for name in modules if name.startswith("trackperm.cli.")} == {
        f"trackperm.cli.{name}"
        for name in ("arguments", "commands", "compare", "help", "log", "output", "progress")
    }


def test_every_public_name_is_there():
    python("import trackperm\nfor name in trackperm.__all__:\n    getattr(trackperm, name)")


def test_unknown_names_are_refused_as_of_any_module():
    python(
        "import trackperm\n"
        "try:\n    trackperm.comparision\n"
        "except AttributeError as error:\n    assert 'comparision' in str(error)\n"
        "else:\n    raise AssertionError"
    )
