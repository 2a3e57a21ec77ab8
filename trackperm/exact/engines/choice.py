"""Engines that say what they would cost, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trackperm.choices import Method
from trackperm.errors import CapacityError, InputError
from trackperm.exact.distributions.tilt import TailMass
from trackperm.messages import listed

PATIENCE = 60.0
"""Estimated seconds beyond which an exact engine is passed over unless it is asked for."""


@dataclass(frozen=True)
class Engine:
    """A way to compute tails of one law.

    Attributes
    ----------
    name : Method
        What `method` calls it.
    seconds : float
        Estimated time on one core.
    n_bytes : int
        Estimated memory.
    refusal : str or None
        Why it cannot take this problem at all.
    why : str
        What speaks for it, in a result's words.
    run : callable
        Computes the tails that were asked for; may still raise CapacityError.
    """

    name: Method
    seconds: float
    n_bytes: int
    refusal: str | None
    why: str
    run: Callable[[], list[TailMass]]

    def obstacle(self, memory_budget: int) -> str | None:
        """Say what keeps the engine from running, if anything does."""
        if self.refusal is None and self.n_bytes > memory_budget:
            return f"it needs about {_size(self.n_bytes)}; the memory budget is {_size(memory_budget)}"
        return self.refusal


def run_cheapest(engines: Sequence[Engine], memory_budget: int) -> tuple[list[TailMass], Engine]:
    """Run the cheapest engine that can; the next one where an estimate proves too low.

    Raises
    ------
    CapacityError
        If none can, with the obstacle of each.
    """
    obstacles = []
    for engine in sorted(engines, key=lambda engine: engine.seconds):
        obstacle = engine.obstacle(memory_budget)
        if obstacle is None and engine.seconds > PATIENCE:
            obstacle = f"it would take about {engine.seconds:.0f} s"
        if obstacle is None:
            try:
                return engine.run(), engine
            except CapacityError as error:
                obstacle = error.message
        obstacles.append(f"{engine.name}: {obstacle}")
    raise CapacityError("no exact engine fits: " + "; ".join(obstacles))


def run_named(engines: Sequence[Engine], method: str, memory_budget: int) -> tuple[list[TailMass], Engine]:
    """Run the engine of that name.

    Raises
    ------
    CapacityError
        If it cannot take the problem.
    InputError
        If there is no such engine for this kind of problem.
    """
    for engine in engines:
        if engine.name == method:
            obstacle = engine.obstacle(memory_budget)
            if obstacle is not None:
                raise CapacityError(
                    f"`--method {method}` cannot take this problem: {obstacle}",
                    hint="`--method auto` takes the engine that fits.",
                )
            return engine.run(), engine
    names = listed(engine.name for engine in engines)
    raise InputError(
        f"`--method {method}` is not for this statistic", hint=f"here there are {names} and `auto`."
    )


def _size(n_bytes: int) -> str:
    if n_bytes >= 2**60:
        return f"2^{n_bytes.bit_length() - 1} bytes"
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{max(n_bytes / 2**20, 0.1):.1f} MiB"
