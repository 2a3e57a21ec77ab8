"""Command line of trackperm: entry point and exit codes.

Exit codes: 0 success, 2 bad input, 3 the tracker failed, 4 a verification found a mismatch, 70 a fault of
trackperm itself. `trackperm gate` has its own exit codes; see :mod:`trackperm.cli.gate`.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys

from trackperm.version import __version__

_ALLOCATIONS = 50_000
"""Threshold of the garbage collector for new objects.

Imports create far more objects than Python's default of 700 and free few of them, so that each collection
would be in vain.
"""


def main() -> None:
    """Run the command line; entry point of the console script."""
    try:
        _run()
    except KeyboardInterrupt:  # also while modules are imported
        if sys.stderr is not None:
            sys.stderr.write("interrupted\n")
        sys.exit(130)


def _run() -> None:
    _open_closed_streams()
    if sys.argv[1:] == ["--version"] and _is_printed(f"trackperm {__version__}"):
        return
    _start_quickly()
    # The import is slow, and `--version` does not need it.
    from trackperm.cli.commands import run

    run()


def _open_closed_streams() -> None:
    """Open the null device in place of standard streams that are closed, as by ``>&-``.

    Files that libraries open would get their descriptors, and be written to as standard output or error.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest free descriptor


def _start_quickly() -> None:
    """Shorten start and exit: fewer garbage collections, and no busy waiting of BLAS threads.

    No result depends on these settings.
    """
    # Nearly all objects that imports create live until the end, so that collections find no garbage.
    gc.set_threshold(_ALLOCATIONS)
    atexit.register(_skip_the_last_collection)
    # The threads of OpenBLAS in NumPy and SciPy busy-wait for 2^timeout cycles before they sleep. Small
    # comparisons give them no work, so that the smallest timeout is best.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


def _skip_the_last_collection() -> None:
    """Skip the last garbage collection, unless DuckDB is loaded, which would report leaks."""
    if "duckdb" not in sys.modules:
        gc.freeze()


def _is_printed(line: str) -> bool:
    """Print a line, and return whether that worked; on failure, the full command reports the error."""
    if sys.stdout is None:
        return True
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        return False
    return True
