"""Choice of an engine by estimated time and memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from trackperm.choices import Method
from trackperm.errors import CapacityError, InputError
from trackperm.messages import listed, size

PATIENCE = 2.0
"""Estimated seconds beyond which `auto` skips an exact engine, where swaps can be drawn with tilted coins."""

LONGEST = 60.0
"""Estimated seconds beyond which `auto` skips an exact engine in any case: a minute is as long as a user
waits."""


Tails = TypeVar("Tails")


@dataclass(frozen=True)
class Engine(Generic[Tails]):
    """Engine that can compute a tail or several of one distribution, and its estimated costs.

    Attributes
    ----------
    name : Method
        Its name as a `method`.
    seconds : float
        Estimated time on one core.
    n_bytes : int
        Estimated memory.
    refusal : str or None
        Reason why it cannot solve this problem at all.
    why : str
        Reason for choosing it, as stated in results.
    run : callable
        Computes the tails; may still raise CapacityError.
    """

    name: Method
    seconds: float
    n_bytes: int
    refusal: str | None
    why: str
    run: Callable[[], Tails]

    def obstacle(self, memory_budget: int) -> str | None:
        """Return the reason why the engine cannot run; None if it can."""
        if self.refusal is None and self.n_bytes > memory_budget:
            return f"it needs about {size(self.n_bytes)}; the memory budget is {size(memory_budget)}"
        return self.refusal


def run_cheapest(
    engines: Sequence[Engine[Tails]], memory_budget: int, *, patience: float = LONGEST
) -> tuple[Tails, Engine[Tails]]:
    """Run the cheapest engine that can run within `patience` seconds; if it gives up, the next one.

    If all fail, it raises CapacityError.
    """
    return run_first(fitting_engines(engines, memory_budget, patience=patience))


def fitting_engines(
    engines: Sequence[Engine[Tails]], memory_budget: int, *, patience: float
) -> list[Engine[Tails]]:
    """Return the engines that can run within `patience` seconds, the cheapest first.

    If there are none, the CapacityError lists the obstacle of each.
    """
    fitting, obstacles = [], []
    for engine in sorted(engines, key=lambda engine: engine.seconds):
        obstacle = engine.obstacle(memory_budget)
        if obstacle is None and engine.seconds > patience:
            obstacle = f"it would take about {engine.seconds:.0f} s; `--method {engine.name}` runs it"
            if math.isinf(engine.seconds):  # as of enumeration, whose time is known up to a limit
                obstacle = "it has too many configurations to list"
        if obstacle is None:
            fitting.append(engine)
        else:
            obstacles.append(f"{engine.name}: {obstacle}")
    if not fitting:
        raise CapacityError("no exact engine fits: " + "; ".join(obstacles))
    return fitting


def run_first(engines: Sequence[Engine[Tails]]) -> tuple[Tails, Engine[Tails]]:
    """Run the first engine; if it gives up, the next one.

    If all give up, the CapacityError lists the obstacle of each. Random swaps must not replace them, since
    giving up may depend on the observed value.
    """
    obstacles = []
    for engine in engines:
        try:
            return engine.run(), engine
        except CapacityError as error:
            obstacles.append(f"{engine.name}: {error.message}")
    raise CapacityError(
        "no exact engine has a result: " + "; ".join(obstacles),
        hint="`--method monte-carlo` draws random swaps.",
    )


def run_named(
    method: str, engines: Sequence[Engine[Tails]], memory_budget: int, *, others: Sequence[Method] = ()
) -> tuple[Tails, Engine[Tails]]:
    """Run the engine of that name; `others` are further methods for this kind of problem.

    It raises CapacityError if the engine cannot solve the problem, and InputError if the engine is not known
    for this kind of problem.
    """
    for engine in engines:
        if engine.name == method:
            obstacle = engine.obstacle(memory_budget)
            if obstacle is not None:
                raise cannot_solve(method, obstacle)
            return engine.run(), engine
    names = listed([*(engine.name for engine in engines), *others])
    raise InputError(f"`--method {method}` does not apply to this statistic; expected {names} or `auto`")


def cannot_solve(method: str, obstacle: str) -> CapacityError:
    """Return the error of an engine that was chosen by name and cannot run."""
    return CapacityError(
        f"`--method {method}` cannot solve this problem: {obstacle}",
        hint="use `--method auto`, which chooses an engine that fits.",
    )
