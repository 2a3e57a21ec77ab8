"""Mutation testing: draw one-line changes of load-bearing modules, and list those that no test notices.

Each mutant runs in a copy of the tree, with the tests of :data:`CONCERNED` only, until the first failure or a
time limit of four times the unchanged code. Constants at the top of a module and estimates of time and memory
are not mutated, because they change the speed; `tests/exact/certificates` pins those that bound errors.

    python tests/mutants/mutants.py --draws 20 --seed 1 --under exact/engines
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = subprocess.DEVNULL

CONCERNED = {
    "exact/attempts.py": "exact/certificates/test_permuted_attempts.py",
    "exact/counts.py": "exact/test_reference_pvalues.py exact/test_generated.py",
    "exact/differences.py": "exact/intervals/test_choice.py exact/power/test_from_counts.py",
    "exact/distributions": "exact/certificates exact/engines exact/test_attempts.py "
    "exact/test_adversarial.py",
    "exact/engines/attempts.py": "exact/certificates/test_permuted_attempts.py exact/test_attempts.py",
    "exact/engines/choice.py": "exact/engines/test_linear.py exact/test_limits.py",
    "exact/engines/enumeration.py": "exact/test_oracles.py exact/engines/test_linear.py "
    "exact/test_generated.py",
    "exact/engines/lattice": "exact/certificates/test_several_counts.py exact/functions/test_real_pvalues.py "
    "exact/test_generated.py exact/test_adversarial.py",
    "exact/engines/linear": "exact/certificates/test_one_weighted_sum.py exact/engines/test_linear.py "
    "exact/test_adversarial.py exact/test_generated.py",
    "exact/engines/monte_carlo.py": "",
    "exact/engines/studentized.py": "",
    "exact/functions": "exact/certificates/test_arithmetic.py",
    "exact/functions/rational.py": "exact/test_reference_pvalues.py exact/test_generated.py "
    "exact/engines/lattice statistic/test_symmetry.py",
    "exact/intervals": "",
    "exact/multiplicity": "ledger/test_entries.py",
    "exact/null_distribution.py": "exact/multiplicity/test_tarone.py exact/test_generated.py exact/engines",
    "exact/outcome.py": "exact/certificates exact/test_oracles.py exact/test_generated.py exact/engines",
    "exact/permutation.py": "exact/certificates/test_results.py exact/test_oracles.py "
    "exact/test_generated.py exact/test_limits.py exact/test_options.py exact/engines",
    "exact/power": "",
    "exact/ranking": "",
    "exact/result.py": "exact/certificates/test_results.py exact/engines report/test_which_p.py",
    "exact/root.py": "",
    "exact/scores": "",
    "pairing/checks": "pairing/test_pair.py",
    "pairing/counting.py": "pairing/test_decimals.py pairing/test_pair.py pairing/test_missing.py",
    "pairing/grouping.py": "pairing/test_pair.py pairing/test_strata.py pairing/test_each_engine.py",
    "pairing/ids.py": "pairing/test_pair.py",
    "pairing/pair.py": "pairing/test_clusters.py pairing/test_strata.py pairing/test_random_tables.py",
    "pairing/repeats.py": "",
    "pairing/row_hashes.py": "pairing/test_examples_digest.py",
    "comparison/dependence.py": "",
    "comparison/evidence.py": "comparison/test_verdict.py",
    "comparison/intraclass.py": "comparison/test_dependence.py",
    "comparison/several.py": "",
    "comparison/verdict.py": "comparison/test_published_results.py",
    "ledger/entries.py": "ledger/test_family.py",
    "ledger/verification": "",
    "statistic/compile.py": "statistic/test_builtin.py statistic/test_builtin_pvalues.py",
    "statistic/expressions": "statistic/test_random_specs.py statistic/test_compile.py",
    "statistic/symmetry.py": "statistic/test_compile.py",
}
"""Load-bearing modules and folders below ``trackperm``, and the tests below ``tests`` that concern them in
addition to those of the same name."""

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
    """One change of one expression, given by its place in the source."""

    path: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"trackperm/{self.path}:{self.line}: {old} -> {new}"


def mutants(path: str) -> Iterator[Mutant]:
    """Yield all mutants of a module."""
    source = (ROOT / "trackperm" / path).read_bytes()
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    for node in _expressions(ast.parse(source)):
        start = offsets[node.lineno - 1] + node.col_offset
        end = offsets[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        for new in _changes(node):
            yield Mutant(path, node.lineno, start, end, source[start:end].decode(), new)


def _expressions(tree: ast.AST, inside: bool = False) -> Iterator[ast.expr]:
    """Yield expressions inside functions, without annotations, messages and estimates."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.arg):
            continue
        if isinstance(node, ast.FunctionDef):
            if node.name not in UNTOUCHED:
                for statement in node.body:
                    yield from _expressions(ast.Module([statement], []), inside=True)
            continue
        if isinstance(node, ast.keyword) and node.arg in UNTOUCHED:
            continue
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id in UNTOUCHED for t in node.targets
        ):
            continue
        if inside and isinstance(node, ast.expr):
            yield node
        if isinstance(node, ast.AnnAssign):
            yield from _expressions(ast.Module([ast.Expr(node.value)] if node.value else [], []), inside)
        else:
            yield from _expressions(node, inside)


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


def entry(path: str) -> str | None:
    """Return the longest entry of the table that contains a module."""
    return max((known for known in CONCERNED if f"{path}/".startswith(f"{known}/")), key=len, default=None)


def concerned(path: str) -> list[str]:
    """Return the tests of a module: the listed ones, and those of the same name."""
    module = Path(entry(path) or path)
    own = module.with_name(f"test_{module.name}") if module.suffix else module
    listed = CONCERNED[str(module)].split()
    return [f"tests/{test}" for test in [*listed, str(own)] if (ROOT / "tests" / test).exists()]


def passes(tree: Path, tests: list[str], limit: float | None = None) -> bool:
    """Run tests in a tree: whether all pass within the limit in seconds."""
    environment = {**os.environ, "PYTHONPATH": f"{tree}:{tree / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    with subprocess.Popen(
        command, cwd=tree, env=environment, stdout=NOWHERE, stderr=NOWHERE, start_new_session=True
    ) as process:
        try:
            return process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return False


def judge(mutant: Mutant, trees: SimpleQueue[Path], limit: float) -> bool:
    """Run the tests of a mutant in a free copy of the tree: whether it survives."""
    tree = trees.get()
    module = tree / "trackperm" / mutant.path
    source = module.read_bytes()
    try:
        module.write_bytes(source[: mutant.start] + mutant.new.encode() + source[mutant.end :])
        survived = passes(tree, concerned(mutant.path), limit)
    finally:
        module.write_bytes(source)
        trees.put(tree)
    print("SURVIVED" if survived else "killed  ", mutant, flush=True)
    return survived


def main() -> None:
    """Draw mutants and list the survivors."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--under", default="", help="only modules whose path below trackperm begins so")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    paths = (
        str(found.relative_to(ROOT / "trackperm")) for found in sorted((ROOT / "trackperm").rglob("*.py"))
    )
    chosen = [path for path in paths if path.startswith(options.under) and entry(path)]
    every = [mutant for path in chosen for mutant in mutants(path)]
    drawn = random.Random(options.seed).sample(every, min(options.draws, len(every)))
    print(f"{len(drawn)} of {len(every)} mutants of {len(chosen)} modules", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        ThreadPoolExecutor(options.processes) as pool,
    ):
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.processes):
            tree = Path(folder) / str(number)
            shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__"))
            trees.put(tree)
        limits: dict[str, float] = {}
        for tests in {" ".join(concerned(mutant.path)) for mutant in drawn}:
            began = time.monotonic()
            if not passes(tree, tests.split()):
                raise SystemExit(f"the tests fail without any mutation: {tests}")
            limits[tests] = 30.0 + 4.0 * (time.monotonic() - began)
        jobs = [pool.submit(judge, m, trees, limits[" ".join(concerned(m.path))]) for m in drawn]
        survivors = [mutant for mutant, job in zip(drawn, jobs, strict=True) if job.result()]
    print(f"{len(survivors)} of {len(drawn)} survived", *survivors, sep="\n  ")


if __name__ == "__main__":
    main()
