"""The command line: parse, call, print, exit code.

Exit codes: 0 done, 2 bad input, 3 the tracker failed, 4 what was verified does not match. (70 is a fault of
trackperm itself.) Those of `trackperm gate` are in its own module.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys

from trackperm.version import __version__

_ALLOCATIONS = 50_000
"""Objects that are made before the youngest are searched for garbage; Python's default is 700."""


def main() -> None:
    """Run the command line; the console script's entry point."""
    if sys.argv[1:] == ["--version"] and _is_printed(f"trackperm {__version__}"):
        return
    _start_quickly()
    # `--version` needs none of this.
    from trackperm.cli.commands import run

    run()


def _start_quickly() -> None:
    """Leave out what libraries do while they are imported, and the interpreter at the end, to no avail.

    No number depends on it.
    """
    # Nearly all objects that imports make live to the end, and collecting garbage among them finds none.
    gc.set_threshold(_ALLOCATIONS)
    atexit.register(_skip_the_last_collection)
    # Threads of OpenBLAS, of NumPy and of SciPy, wait for work in a loop of so many steps (as a power of 2)
    # before they sleep; small comparisons never give them any.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


def _skip_the_last_collection() -> None:
    """Keep the interpreter from searching all objects at the end; DuckDB would report its own as leaked."""
    if "duckdb" not in sys.modules:
        gc.freeze()


def _is_printed(line: str) -> bool:
    """Print a line; if that fails, the commands try it again and say why."""
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        return False
    return True
