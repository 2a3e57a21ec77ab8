"""Mutation testing: draw one-line changes of load-bearing modules, and list those that no test notices.

The tests that reach a line are recorded once (`reached.py`). Each mutant then runs in a forked process with
the tests that reach its line, until the first failure: test modules near the changed one first, among these
the quickest, until a sum of seconds. A mutant that no test reaches survives at once. Survivors that
`survivors.toml` explains are named with their reason and not run.

Constants at the top of a module and estimates of time and memory are not mutated, because they change the
speed; `tests/exact/certificates` pins those that bound errors.

    python tests/mutants/mutants.py --draws 20 --seed 1 --under exact/engines
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from reached import Chosen, Recordings, enter, forked, run

ROOT = Path(__file__).resolve().parents[2]

LOAD_BEARING = (
    "exact",
    "pairing/checks",
    "pairing/counts/counting.py",
    "pairing/ids.py",
    "pairing/pair.py",
    "pairing/checked_join.py",
    "pairing/counts/repeats.py",
    "pairing/digests.py",
    "comparison/assumptions/dependence.py",
    "comparison/inference/evidence.py",
    "comparison/assumptions/intraclass.py",
    "comparison/several.py",
    "comparison/inference/verdict.py",
    "ledger/entries.py",
    "ledger/verification",
    "statistic/compiler/compile.py",
    "statistic/compiler/entries.py",
    "statistic/expressions",
    "statistic/compiler/symmetry.py",
)
"""Modules and folders below ``trackperm`` that decide p-values, verdicts and what is paired."""

UNTOUCHED = {"seconds", "_seconds", "exact_seconds", "n_bytes", "hint", "why", "strict", "__repr__"}
"""Functions and keyword arguments whose values change the speed or the words of a result only."""

_PAIRS: list[tuple[Any, Any]] = [
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div),
    (ast.And, ast.Or),
    ("min", "max"),
    ("minimum", "maximum"),
    ("floor", "ceil"),
]
SWAPPED = dict(_PAIRS) | {second: first for first, second in _PAIRS}
"""Operators and functions, and what replaces them."""


@dataclass(frozen=True)
class Mutant:
    """One change of one expression: its place in the source, and the whole lines before and after it."""

    path: str
    lines: range
    start: int
    end: int
    new: bytes
    before: str
    after: str

    def __str__(self) -> str:
        return f"trackperm/{self.path}:{self.lines[-1]}: {self.before} -> {self.after}"

    @property
    def key(self) -> tuple[str, str, str]:
        """Module, old lines and new lines, which stay the same when lines move."""
        return self.path, self.before, self.after

    def applied(self, source: bytes) -> bytes:
        """Return the source of the module with the change."""
        return source[: self.start] + self.new + source[self.end :]


def mutants(path: str) -> Iterator[Mutant]:
    """Yield all mutants of a module."""
    source = (ROOT / "trackperm" / path).read_bytes()
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    for node, statement in _expressions(ast.parse(source)):
        last = node.end_lineno or node.lineno
        first, end_of_last = offsets[node.lineno - 1], offsets[last]
        start = first + node.col_offset
        end = offsets[last - 1] + (node.end_col_offset or 0)
        before = source[first:end_of_last].decode()
        for change in _changes(node):
            new = change.encode()
            after = (source[first:start] + new + source[end:end_of_last]).decode()
            shown = (" ".join(text.split()) for text in (before, after))
            yield Mutant(path, range(statement, last + 1), start, end, new, *shown)


def _expressions(tree: ast.AST, statement: int = 0, inside: bool = False) -> Iterator[tuple[ast.expr, int]]:
    """Yield expressions inside functions, except messages, and the line of their statement."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.arg):
            continue
        if isinstance(node, ast.keyword) and node.arg in UNTOUCHED:
            continue
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id in UNTOUCHED for t in node.targets
        ):
            continue
        if isinstance(node, ast.stmt):
            statement = node.lineno
        if isinstance(node, ast.FunctionDef):
            if node.name not in UNTOUCHED:
                yield from _expressions(ast.Module(node.body, []), statement, inside=True)
            continue
        if inside and isinstance(node, ast.expr):
            yield node, statement
        if isinstance(node, ast.AnnAssign):
            values = [ast.Expr(node.value, lineno=statement)] if node.value else []
            yield from _expressions(ast.Module(values, []), statement, inside)
        else:
            yield from _expressions(node, statement, inside)


def _changes(node: ast.expr) -> Iterator[str]:
    """Yield replacements of an expression in source form."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in SWAPPED:
            yield _unparsed(ast.Compare(node.left, [SWAPPED[type(operator)]()], node.comparators))
        case ast.BinOp(op=operator) if type(operator) in SWAPPED:
            yield _unparsed(ast.BinOp(node.left, SWAPPED[type(operator)](), node.right))
            if isinstance(operator, ast.Add | ast.Sub):
                yield _unparsed(node.left)
        case ast.BoolOp(op=operator):
            yield _unparsed(ast.BoolOp(SWAPPED[type(operator)](), node.values))
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield _unparsed(operand)
        case ast.Constant(value=bool() as value):
            yield str(not value)
        case ast.Constant(value=int() | float() as number):
            yield repr(number + 1)
        case ast.Call(func=ast.Name(name)) if name in SWAPPED:
            yield _unparsed(ast.Call(ast.Name(SWAPPED[name]), node.args, node.keywords))
        case ast.Call(func=ast.Attribute(value, name)) if name in SWAPPED:
            yield _unparsed(ast.Call(ast.Attribute(value, SWAPPED[name]), node.args, node.keywords))


def _unparsed(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


class Changed(MetaPathFinder, SourceFileLoader):
    """Importer of one module from a source that differs from its file."""

    def __init__(self, name: str, path: Path, source: bytes) -> None:
        super().__init__(name, str(path))
        self.source = source

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find the changed module only."""
        return spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        """Compile the changed source."""
        return compile(self.source, self.path, "exec", dont_inherit=True)


def judged(tree: Path, mutant: Mutant, tests: dict[str, float]) -> tuple[int, bool, str]:
    """Run the tests of a mutant: the last exit code, whether all ran, and the first that failed."""
    module = tree / "trackperm" / mutant.path
    name = ".".join(("trackperm", *Path(mutant.path).with_suffix("").parts)).removesuffix(".__init__")
    sys.meta_path.insert(0, Changed(name, module, mutant.applied(module.read_bytes())))
    enter(tree)
    chosen = Chosen(tests)
    waiting = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    n_modules, code = 1, 0
    while waiting and not code:  # few modules first, so that those that are not needed are not imported
        code = run(waiting[:n_modules], chosen, "-x")
        waiting, n_modules = waiting[n_modules:], 2 * n_modules
    return code, chosen.ran == len(tests), chosen.failed


def outcome(answer: tuple[int, bool, str] | None) -> str:
    """Return how a mutant ended: "survived", or "killed by" something."""
    match answer:
        case None:
            return "killed by the limit of time or memory"
        case (pytest.ExitCode.OK, True, _):
            return "survived"
        case (pytest.ExitCode.TESTS_FAILED | pytest.ExitCode.INTERRUPTED, _, failed):
            return f"killed by {failed}"
    return f"unclear: pytest ended with {answer}; expected passed or failed tests"


def explained() -> dict[tuple[str, str, str], str]:
    """Return the reasons of known survivors by their keys."""
    known = tomllib.loads((ROOT / "tests/mutants/survivors.toml").read_text(encoding="utf-8"))
    return {(s["path"], s["old"], s["new"]): s["reason"] for s in known["survivor"]}


def main() -> None:
    """Draw mutants and list the survivors."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--under", default="", help="only modules whose path below trackperm begins so")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests for a mutant, as recorded")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    package = ROOT / "trackperm"
    paths = [str(found.relative_to(package)) for found in sorted(package.rglob("*.py"))]
    chosen = [
        path
        for path in paths
        if path.startswith(options.under) and any(f"{path}/".startswith(f"{room}/") for room in LOAD_BEARING)
    ]
    every = [mutant for path in chosen for mutant in mutants(path)]
    drawn = random.Random(options.seed).sample(every, min(options.draws, len(every)))
    print(f"{len(drawn)} of {len(every)} mutants of {len(chosen)} modules", flush=True)
    times = Counter(mutant.key for mutant in every)
    reasons = {key: reason for key, reason in explained().items() if times[key] == 1}
    unknown = [mutant for mutant in drawn if mutant.key not in reasons]
    os.environ.setdefault("TRACKPERM_REFERENCE_DATA", str(ROOT.parent / "shared" / "data"))
    for name in ("hypothesis", "scipy.optimize", "scipy.stats"):  # imported once, before processes are forked
        import_module(name)
    survivors = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        recordings = Recordings(ROOT, tree, options.processes)
        if recordings.failed:
            print("these fail without any mutation and are left out:", *sorted(recordings.failed), sep="\n  ")
        began = time.monotonic()
        jobs = [
            (tree, mutant, recordings.tests(mutant.path, mutant.lines, options.seconds)) for mutant in unknown
        ]
        unreached = [mutant for _, mutant, tests in jobs if not tests]
        for (_, mutant, _), answer in forked(judged, [job for job in jobs if job[2]], options.processes):
            print(f"{mutant}\n    {outcome(answer)}", flush=True)
            if outcome(answer) == "survived":
                survivors.append(mutant)
        seconds = time.monotonic() - began
    print(f"{seconds / max(len(unknown), 1):.1f} seconds per mutant")
    print(f"{len(drawn) - len(unknown)} of {len(drawn)} are explained in survivors.toml")
    for mutant in drawn:
        if reason := reasons.get(mutant.key):
            print(f"  {mutant}  because {reason}")
    print(f"{len(unreached)} reached by no test", *unreached, sep="\n  ")
    print(f"{len(survivors)} survived", *survivors, sep="\n  ")
    if gone := [key for key in explained() if times[key] != 1 and key[0].startswith(options.under)]:
        print("in survivors.toml, but not once in the code:", *(" | ".join(key) for key in gone), sep="\n  ")


if __name__ == "__main__":
    main()
