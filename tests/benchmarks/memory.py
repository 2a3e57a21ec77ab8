"""Peak memory of a call beyond its inputs, measured in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

from benchmarks.workloads import MEASURED

_CLEAR_REFS, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def bytes_beyond_inputs(name: str, n_examples: int) -> tuple[int, int]:
    """(bytes of the inputs, peak bytes beyond them) of one of `MEASURED`.

    The larger of what the interpreter and NumPy say they allocated, and of what the kernel saw become
    resident, which also counts libraries that say nothing.
    """
    code = f"from benchmarks.memory import report; report({name!r}, {n_examples})"
    # with a fixed threshold, memory that was freed goes back to the kernel and is seen when taken again
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, env=environment, stdout=subprocess.PIPE, text=True
    )
    inputs, *peaks = map(int, done.stdout.split())
    return inputs, max(peaks)


def report(name: str, n_examples: int) -> None:
    """In the fresh process: print the bytes of the inputs, then the peaks beyond them."""
    make, call = MEASURED[name]
    call(*make(100))
    inputs = make(n_examples)
    figures = [sum(array.nbytes for array in inputs)]
    if _CLEAR_REFS.exists():  # Linux: 5 sets the high-water mark back to what is resident now
        _CLEAR_REFS.write_text("5", encoding="ascii")
        before = _high_water()
        call(*inputs)
        figures.append(_high_water() - before)
    tracemalloc.start()
    call(*inputs)
    figures.append(tracemalloc.get_traced_memory()[1])
    sys.stdout.write(" ".join(map(str, figures)))


def _high_water() -> int:
    (line,) = (line for line in _STATUS.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])
