"""What the fuzz targets share: a run that goes on after a finding, limits, words and seeds of the language.

A finding is an exception that is none of the refusals that a target expects, or an input that takes more
than `SECONDS` of processor time. It is written to ``.fuzz/findings``, once for each place in the code: the
input, and beside it what was raised. With files in place of libFuzzer's options, a target shows what becomes
of them: ``python tests/fuzz/fuzz_specs.py .fuzz/findings/specs-1``.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

import atheris

INSTRUMENTED = ["trackperm.statistic.document", "trackperm.statistic", "trackperm.exact.functions", "yaml"]

with atheris.instrument_imports(include=INSTRUMENTED):
    import yaml

    from trackperm.statistic import builtin_names
    from trackperm.statistic.counters import COUNTERS
    from trackperm.statistic.expressions.tree import _BINDING, _PREFIX, FUNCTIONS
    from trackperm.statistic.load import BUILTIN
    from trackperm.statistic.schema import LongSpec, Pairs, PairSpec, ShortSpec

SECONDS = 2.0  # instrumented code is slower
ROOT = Path(__file__).parents[2]
SCRATCH = ROOT / ".fuzz"

BUILTINS = tuple((BUILTIN / f"{name}.yaml").read_bytes() for name in builtin_names())
EXPRESSIONS = tuple(
    str(value).encode()
    for text in BUILTINS
    for data in [yaml.safe_load(text)]
    for part in ("counts", "missing", "pairs")
    for value in [*data.get(part, {}).values(), data.get("score", "1")]
)
WORDS = (
    *_BINDING,
    *_PREFIX,
    *FUNCTIONS,
    *COUNTERS,
    *ShortSpec.model_fields,
    *LongSpec.model_fields,
    *PairSpec.model_fields,
    *Pairs.model_fields,
    *"u. v. left. right. ( ) , ' \" **-1 1e9 0.5 9223372036854775807 prediction label class".split(),
    *"{ } [ ] | > &a *a !! <<: --- true null 1/3 .inf 0x1f".split(),
    *(": ", "\n", "\n  "),
    *("two-sided", "greater", "less", "sum", "difference", "log ratio"),
)


class TooSlowError(Exception):
    """An input that takes too much processor time."""


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise TooSlowError(f"more than {SECONDS} s")


def run(check: Callable[[bytes], None], name: str, seeds: Iterable[bytes]) -> None:
    """Fuzz `check` under libFuzzer's options in the command line, or show it files of inputs."""
    signal.signal(signal.SIGPROF, _interrupt)
    files = [Path(argument) for argument in sys.argv[1:] if not argument.startswith("-")]
    if files:
        for file in files:
            check(file.read_bytes())
        return
    corpus, findings = SCRATCH / "corpus" / name, SCRATCH / "findings"
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds):
        (corpus / f"seed-{i}").write_bytes(seed)
    words = SCRATCH / "words"
    escaped = ("".join(f"\\x{byte:02x}" for byte in word.encode()) for word in dict.fromkeys(WORDS))
    words.write_text("".join(f'"{word}"\n' for word in escaped))
    known: set[str] = set()

    def checked(content: bytes) -> None:
        try:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                check(content)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
        except Exception as error:
            place = f"{type(error).__name__} at {_place(error)}"
            if place not in known:
                known.add(place)
                file = findings / f"{name}-{len(known)}"
                file.write_bytes(content)
                file.with_suffix(".txt").write_text("".join(traceback.format_exception(error)))

    options = ["-timeout=60", "-rss_limit_mb=3000", f"-dict={words}", *sys.argv[1:], str(corpus)]
    atheris.Setup([sys.argv[0], *options], checked)
    atheris.Fuzz()


def _place(error: BaseException) -> str:
    """Name the innermost place in trackperm or in the fuzz target that an error comes from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if str(ROOT) in frame.filename]
    frame = frames[-1]
    return f"{frame.filename}:{frame.name if isinstance(error, TooSlowError) else frame.lineno}"
