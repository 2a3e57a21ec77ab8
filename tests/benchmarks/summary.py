"""The table of a benchmark run: its rows, and how they print as text, Markdown and JSON."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy

HEADER = ("work", "ours", "beside", "ratio", "target", "reached", "note")


@dataclass(frozen=True)
class Row:
    """One measurement, what it stands beside, and the figure to reach.

    `ours` and `theirs` are in `unit`: seconds, bytes or a plain number. `compare` says which way the ratio
    reads: ``faster`` is theirs / ours, ``share`` is ours / theirs. The `limit` is on that ratio or on `ours`.
    Rows of one `series` differ in `n_examples` alone: they give scaling exponents.
    """

    work: str
    ours: float
    unit: Literal["s", "B", ""] = "s"
    beside: str = ""
    theirs: float | None = None
    compare: Literal["faster", "share", "none"] = "faster"
    limit: float | None = None
    limit_on: Literal["ours", "ratio"] = "ours"
    series: str = ""
    n_examples: int = 0
    note: str = ""
    summary: bool = False

    @property
    def ratio(self) -> float | None:
        if self.theirs is None or self.compare == "none":
            return None
        return self.theirs / self.ours if self.compare == "faster" else self.ours / self.theirs

    @property
    def shortfall(self) -> float | None:
        """The factor by which the limit is missed; at most 1 where it is reached."""
        if self.limit is None:
            return None
        if self.limit_on == "ours":
            return self.ours / self.limit
        assert self.ratio is not None
        return self.limit / self.ratio if self.compare == "faster" else self.ratio / self.limit

    @property
    def reached(self) -> bool | None:
        return None if self.shortfall is None else self.shortfall <= 1

    def cells(self) -> dict[str, str]:
        target = ""
        if self.limit is not None:
            of_ratio = self.limit_on == "ratio"
            limit = self._ratio_text(self.limit) if of_ratio else _quantity(self.limit, self.unit)
            target = f"{'>=' if of_ratio and self.compare == 'faster' else '<='} {limit}"
        theirs = "" if self.theirs is None else f" {_quantity(self.theirs, self.unit)}"
        return {
            "work": self.work,
            "ours": _quantity(self.ours, self.unit),
            "beside": self.beside + theirs,
            "ratio": "" if self.ratio is None else self._ratio_text(self.ratio),
            "target": target,
            "reached": {None: "", True: "yes", False: "NO"}[self.reached],
            "note": self.note,
        }

    def _ratio_text(self, ratio: float) -> str:
        return f"{_digits(ratio)}x{' faster' if self.compare == 'faster' else ''}"


def scaling(rows: Iterable[Row]) -> list[Row]:
    """Slopes of log time on log N, by series: ours, then ours and theirs over the N that both were given."""
    ours: dict[str, dict[int, float]] = {}
    theirs: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        if row.series:
            ours.setdefault(row.series, {})[row.n_examples] = row.ours
            if row.theirs is not None:
                theirs.setdefault((row.series, row.beside), {})[row.n_examples] = row.theirs

    def slope(series: str, sizes: Iterable[int], **beside: Any) -> Row:
        times = {n: ours[series][n] for n in sizes}
        span = f"N = {_count(min(times))} to {_count(max(times))}"
        return Row(f"scaling exponent: {series}, {span}", _slope(times), "", compare="none", **beside)

    both = {key: times for key, times in theirs.items() if len(times) > 1}
    return [
        line
        for series in ours
        if len(ours[series]) > 1
        for line in (
            slope(series, ours[series], summary=True),
            *(
                slope(series, times, beside=beside, theirs=_slope(times))
                for (of, beside), times in both.items()
                if of == series
            ),
        )
    ]


def provenance() -> dict[str, Any]:
    """Where and with what the figures were measured."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return {
        "processor": next(models, platform.processor() or platform.machine()),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def provenance_line() -> str:
    machine = provenance()
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}; Python {machine['python']}, "
        f"NumPy {machine['numpy']}, SciPy {machine['scipy']}; times are medians"
    )


def as_text(rows: Sequence[Row]) -> str:
    """A plain table; what repeats from one row to the next is left blank."""
    table = [row.cells() for row in rows]
    widths = {name: max(len(name), *(len(cells[name]) for cells in table)) for name in HEADER}

    def line(cells: dict[str, str]) -> str:
        aligned = (
            cells[name].rjust(widths[name]) if name in ("ours", "ratio") else cells[name].ljust(widths[name])
            for name in HEADER
        )
        return "  ".join(aligned).rstrip()

    lines = [line({name: name for name in HEADER}), "  ".join("-" * widths[name] for name in HEADER)]
    before: dict[str, str] = {}
    for cells in table:
        same = [name for name in ("work", "ours", "note") if cells[name] == before.get(name)]
        lines.append(line({**cells, **dict.fromkeys(same, "")} if "work" in same else cells))
        before = cells
    return "\n".join([*lines, "", provenance_line()])


def as_markdown(rows: Sequence[Row]) -> str:
    """The rows of the summary as a Markdown table, ratios first."""
    order = ("ratio", "work", "ours", "beside", "target", "reached", "note")
    lines = [f"| {' | '.join(order)} |", f"|{'|'.join('---' for _ in order)}|"]
    for row in rows:
        if row.summary or row.limit is not None:
            cells = row.cells()
            lines.append(f"| {' | '.join(cells[name].replace('|', chr(92) + '|') for name in order)} |")
    return "\n".join([*lines, "", provenance_line(), ""])


def as_document(rows: Sequence[Row]) -> dict[str, Any]:
    """Every row with its ratio and verdict, for JSON."""
    lines = [{**asdict(row), "ratio": row.ratio, "reached": row.reached} for row in rows]
    return {"provenance": provenance(), "rows": lines}


def _slope(times: dict[int, float]) -> float:
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def _count(n: int) -> str:
    exponent = round(math.log10(n))
    return f"10^{exponent}" if n == 10**exponent >= 10**5 else f"{n:,}"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _quantity(value: float, unit: str) -> str:
    if unit == "B":
        return f"{value / 2**20:.3g} MiB"
    if unit == "":
        return _digits(value) if value >= 100 else f"{value:.3g}"
    for name, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value / 1e-6:.3g} us"
