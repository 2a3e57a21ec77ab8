"""What keeps two runs from being paired, with the first differences side by side."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import narwhals as nw

from trackperm.errors import PairingError
from trackperm.pairing.run import KEY, KeyedRun

_SHOWN = 5
_WIDTH = 40
_COMPARED = 100_000


def require_same_length(baseline: KeyedRun, candidate: KeyedRun) -> None:
    """Refuse to pair by position where one run has more rows than the other.

    Raises
    ------
    PairingError
        If the lengths differ.
    """
    if len(baseline) != len(candidate):
        raise PairingError(
            f"`{baseline.origin}` has {len(baseline)} examples and `{candidate.origin}` has {len(candidate)}:"
            " they cannot be paired by position",
            hint="`--id NAME` names a column that identifies the examples.",
        )


def require_unique_ids(*runs: KeyedRun, id_: str) -> None:
    """Refuse ids that stand in several rows.

    Raises
    ------
    PairingError
        If a run has such ids.
    """
    messages = []
    for run in runs:
        if (run.keys[1:] == run.keys[:-1]).any():  # they are in ascending order
            repeated = run.keys.filter(run.keys.is_duplicated())
            messages.append(
                f"{len(repeated)} of {len(run)} rows of `{run.origin}` share their `{id_}` with another"
                f" {_first(repeated.unique().sort())}"
            )
    if messages:
        raise PairingError(
            "\n\n".join(messages),
            hint="each example has one row. Was the table logged twice? MLflow's `log_table` appends to a"
            " table that is there already. `--id NAME` names another column, `--id NAME,NAME` several that"
            " identify an example together.",
        )


def require_distinct_ids(*runs: KeyedRun, id_: str) -> None:
    """Refuse ids of one run that are the same text in different Unicode normal forms.

    Raises
    ------
    PairingError
        If a run has such ids.
    """
    for run in runs:
        if run.keys.dtype != nw.String:
            continue
        keys = run.keys.to_polars()
        beyond_ascii = keys.filter(keys.str.len_bytes() > keys.str.len_chars())
        seen: dict[str, str] = {}
        for id_value in beyond_ascii.unique().to_list():
            twin = seen.setdefault(unicodedata.normalize("NFC", id_value), id_value)
            if twin != id_value:
                raise PairingError(
                    f"`{run.origin}` has the `{id_}` {twin!a} and {id_value!a}, one text in two"
                    " Unicode normal forms: which of them the other run means cannot be told",
                    hint="normalise the ids, as `unicodedata.normalize('NFC', id)` does, or `--id NAME` names"
                    " another column.",
                )


def require_same_repeats(baseline: KeyedRun, candidate: KeyedRun) -> None:
    """Refuse examples that have more rows in one run than in the other.

    Raises
    ------
    PairingError
        If there are such.
    """
    if len(baseline) == len(candidate) and (baseline.keys == candidate.keys).all():
        return
    sizes = [run.frame.group_by(KEY).agg(nw.len().alias("n")).sort(KEY) for run in (baseline, candidate)]
    rows = [size.get_column("n") for size in sizes]
    differ = rows[0] != rows[1]
    found = [_few(series.filter(differ)) for series in (sizes[0].get_column(KEY), *rows)]
    table = _side_by_side(
        ("example", f"`{baseline.origin}`", f"`{candidate.origin}`"), zip(*found, strict=True)
    )
    raise PairingError(
        f"{int(differ.sum())} of {len(differ)} examples have more rows in one run than in the other{table}",
        hint="repeats are added up, so both runs need as many of each example.",
    )


def label_disagreement(baseline: KeyedRun, candidate: KeyedRun, label: str, *, nulls: bool) -> str | None:
    """Say where the labels of matched rows differ; with `nulls`, a null differs from a value."""
    sides = [run.frame.get_column(label) for run in (baseline, candidate)]
    is_null = [side.is_null() for side in sides]
    differ = (sides[0] != sides[1]).fill_null(False) & ~is_null[0] & ~is_null[1]
    if nulls:
        differ = differ | (is_null[0] != is_null[1])
    n_differ = int(differ.sum())
    if not n_differ:
        return None
    found = [_few(series.filter(differ)) for series in (baseline.keys, *sides)]
    table = _side_by_side(
        ("example", f"`{baseline.origin}`", f"`{candidate.origin}`"), zip(*found, strict=True)
    )
    return f"`{label}` differs between the runs on {n_differ} of {len(baseline)} examples{table}"


def without_id(run: KeyedRun, id_: str | None) -> str:
    """Say which rows have no id."""
    rows = ", ".join(map(str, run.rows_without_id[:_SHOWN]))
    return (
        f"{len(run.rows_without_id)} of {run.n_rows} examples of `{run.origin}` have no `{id_}` (rows counted"
        f" from 0: {rows})"
    )


def absences(
    runs: tuple[KeyedRun, KeyedRun], n_matched: int, id_: str | None, used: Sequence[str]
) -> list[str]:
    """Say which examples have no id, no partner, or no value that the statistic reads."""
    messages = [without_id(run, id_) for run in runs if run.rows_without_id]
    if any(len(run) > n_matched for run in runs):
        messages.append(_no_partner(runs, n_matched))
    for run in runs:
        lacking = run.filter(~run.is_complete(used))
        if len(lacking):
            names = " or ".join(
                f"`{name}`" for name in used if lacking.frame.get_column(name).is_null().any()
            )
            messages.append(
                f"{len(lacking)} of {len(run)} examples of `{run.origin}` have no value in {names}"
                f" {_first(lacking.keys)}"
            )
    return messages


def _no_partner(runs: tuple[KeyedRun, KeyedRun], n_matched: int) -> str:
    baseline, candidate = runs
    message = " and ".join(f"{len(run) - n_matched} of {len(run)} examples of `{run.origin}`" for run in runs)
    alone = [run for run in (baseline.join(candidate, "anti"), candidate.join(baseline, "anti")) if len(run)]
    if len(alone) == 1:
        return f"{message} have no partner {_first(alone[0].keys)}"
    rows = zip_longest(*(_few(run.keys) for run in alone), fillvalue="")
    table = _side_by_side([f"only in `{run.origin}`" for run in alone], rows)
    return f"{message} have no partner{table}" + _nearly_alike(alone[0].keys, alone[1].keys)


def _nearly_alike(first: nw.Series[Any], second: nw.Series[Any]) -> str:
    """Say what makes ids of two runs differ that would be the same without it."""
    if first.dtype != nw.String or second.dtype != nw.String:
        return ""
    keys = [keys.head(_COMPARED).to_list() for keys in (first, second)]
    for difference, plain in _PLAIN.items():
        sides = [{plain(key) for key in side} for side in keys]
        n_alike = len(sides[0] & sides[1])
        if n_alike:
            return f"\n\n{n_alike} of them differ in {difference} alone."
    return ""


def _without_zeros(text: str) -> str:
    return text.lstrip("0") or "0" if text.isdecimal() else text


_PLAIN: dict[str, Callable[[str], str]] = {
    "leading zeros": _without_zeros,
    "white space": lambda text: "".join(text.split()),
    "Unicode normal form": lambda text: unicodedata.normalize("NFC", text),
    "upper and lower case": str.casefold,
}


def shown(value: Any) -> str:
    """Value as Python writes it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def _few(values: nw.Series[Any]) -> list[str]:
    return [shown(value) for value in values.head(_SHOWN).to_list()]


def _first(values: nw.Series[Any]) -> str:
    return f"(first: {', '.join(_few(values))})"


def _side_by_side(header: Sequence[str], rows: Any) -> str:
    lines = [tuple(header), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n\n" + "\n".join(
        "    " + "   ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
