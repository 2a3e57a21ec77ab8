"""Choice of an engine by estimated time and memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trackperm.choices import Method
from trackperm.errors import CapacityError, InputError
from trackperm.exact.distributions.tilt import TailMass
from trackperm.messages import listed, size

PATIENCE = 2.0
"""Estimated seconds beyond which `auto` skips an exact engine, where swaps can be drawn with tilted coins."""

LONGEST = 60.0
"""Estimated seconds beyond which `auto` skips an exact engine in any case: a minute is as long as a user
waits."""


@dataclass(frozen=True)
class Engine:
    """Engine that can compute tails of one distribution, and its estimated costs.

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
        Computes the tails, the greatest first; may still raise CapacityError.
    """

    name: Method
    seconds: float
    n_bytes: int
    refusal: str | None
    why: str
    run: Callable[[], list[TailMass]]

    def obstacle(self, memory_budget: int) -> str | None:
        """Return the reason why the engine cannot run; None if it can."""
        if self.refusal is None and self.n_bytes > memory_budget:
            return f"it needs about {size(self.n_bytes)}; the memory budget is {size(memory_budget)}"
        return self.refusal


def run_cheapest(
    engines: Sequence[Engine], memory_budget: int, *, patience: float = LONGEST
) -> tuple[list[TailMass], Engine]:
    """Run the cheapest engine that can run within `patience` seconds; go on as :func:`run_first` does."""
    return run_first(fitting_engines(engines, memory_budget, patience=patience))


def fitting_engines(engines: Sequence[Engine], memory_budget: int, *, patience: float) -> list[Engine]:
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


def run_first(engines: Sequence[Engine]) -> tuple[list[TailMass], Engine]:
    """Run the first engine; if it gives up, or knows no more than upper bounds, the next one.

    If all do, it returns the least upper bounds. If all give up, the CapacityError lists the obstacle of
    each. Random swaps must not replace them, since giving up may depend on the observed value.
    """
    obstacles: list[str] = []
    bounds: list[tuple[list[TailMass], Engine]] = []
    for engine in engines:
        try:
            tails = engine.run()
        except CapacityError as error:
            obstacles.append(f"{engine.name}: {error.message}")
            continue
        if all(tail.error < 1.0 for tail in tails):
            return tails, engine
        bounds.append((tails, engine))
    if bounds:
        return min(bounds, key=lambda found: found[0][0].log)
    raise CapacityError(
        "no exact engine has a result: " + "; ".join(obstacles),
        hint="`--method monte-carlo` draws random swaps.",
    )


def run_named(
    method: str, engines: Sequence[Engine], memory_budget: int, *, others: Sequence[Method] = ()
) -> tuple[list[TailMass], Engine]:
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
