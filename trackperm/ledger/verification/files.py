"""Reconstruction of a comparison from its logged files, which anybody may have changed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from trackperm.comparison import (
    CORRECTIONS,
    AdjustedPValue,
    Comparison,
    Dependence,
    MissingDataCase,
    RunData,
    Slice,
    count_table_test,
)
from trackperm.errors import InputError, TrackpermError
from trackperm.exact import CountTable, TestOptions
from trackperm.exact.options import MEMORY_BUDGET
from trackperm.exact.pairwise import Influences, PartShares
from trackperm.ledger.verification.damaged_parquet import read_damaged_parquet
from trackperm.pairing import PairingReport
from trackperm.statistic import Statistic, document, read_statistic
from trackperm.tables.table import ExampleTable
from trackperm.trackers.references import RunReference, TrackedRun

RESULT, SPEC = "trackperm/comparison.json", "trackperm/statistic.yaml"
COUNTS, DISCORDANT = "trackperm/count_table.parquet", "trackperm/discordant.parquet"

UNREADABLE = (
    TrackpermError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    OSError,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
)
"""Errors of reading and recomputing from files that anybody may have changed."""


def run_references(files: Mapping[str, bytes]) -> tuple[str, str]:
    """Return the references of baseline and candidate."""
    try:
        data = read_result(files)
        return str(data["baseline"]), str(data["candidate"])
    except UNREADABLE as error:
        raise InputError(f"`{RESULT}` does not name the runs that were compared: {error}") from error


def read_result(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Parse ``comparison.json``; raise an error of :data:`UNREADABLE` if it is damaged."""
    data = json.loads(files[RESULT])
    if not isinstance(data, dict) or not isinstance(data.get("pairing"), dict):
        raise InputError("the file is not the result of a comparison")
    return data


def read_spec(content: bytes, data: Mapping[str, Any]) -> Statistic:
    """Compile the spec, with the score of the result if the spec is in its long form.

    A wrong score is noticed, because it gives the spec another document than the logged one.
    """
    if (function := logged_function(content)) is not None:
        raise InputError(f"the statistic is the Python function `{function}`, which logs do not contain")
    statistic = read_statistic(content, SPEC)
    score = data.get("score")
    if statistic.has_score or score is None:
        return statistic
    long = document.Document.parse(content, SPEC).data
    short = {name: value for name, value in long.items() if name not in ("g", "h")} | {"score": str(score)}
    return read_statistic(document.dump(short), f"{SPEC} with the score of {RESULT}")


def version_of(signature: object) -> str:
    """Return the version of trackperm in a signature, with which it ends."""
    return str(signature).rpartition("|trackperm:")[2]


def is_same_version(data: Mapping[str, Any], again: Comparison) -> bool:
    """Whether the same version of trackperm logged a result and computed it again."""
    return version_of(data.get("signature")) == version_of(again.signature)


def columns_of_spec(files: Mapping[str, bytes]) -> Mapping[str, str]:
    """Return the columns of a logged spec by name; empty if the spec cannot be read."""
    try:
        return read_spec(files[SPEC], read_result(files)).columns
    except UNREADABLE:
        return {}


def logged_function(content: bytes) -> str | None:
    """Return the call of the Python function that is the score of a logged spec; None if there is none."""
    try:
        found = document.Document.parse(content, SPEC).data.get("function")
    except UNREADABLE:
        return None
    return None if found is None else str(found)


def read_count_table(content: bytes, statistic: Statistic) -> CountTable:
    """Read the counts of `statistic`; raise an error of :data:`UNREADABLE` if the table is damaged."""
    frame = read_damaged_parquet(content)
    names = statistic.total_names
    sides = [[f"{run}.{name}" for name in names] for run in ("candidate", "baseline")]
    expected = [*sides[0], *sides[1], "multiplicity"]
    if frame.columns != expected or set(frame.dtypes) != {pl.Int64}:
        raise InputError(f"the table has the columns {frame.columns}; the spec counts {list(names)}")
    if any(frame.null_count().row(0)):
        raise InputError("the table has nulls")
    u, v = (frame.select(side).to_numpy() for side in sides)
    table = CountTable.from_counts(names, u, v, frame["multiplicity"].to_numpy())
    if len(table.multiplicities) != frame.height:
        raise InputError("the table has the same counts in several rows")
    return table


def options_of_test(options: Mapping[str, str]) -> TestOptions:
    """Parse the options of a test from the options of a comparison, which are text."""
    n_samples, exceedances = options.get("n_samples"), options.get("exceedances", "None")
    alternative: Any = options["alternative"]
    method: Any = options["method"]
    interval: Any = options.get("interval", "auto")
    return TestOptions(
        alternative=alternative,
        alpha=float(options["alpha"]),
        mid_p=options.get("mid_p") == "true",
        method=method,
        n_samples=None if n_samples is None else int(n_samples),
        seed=int(options.get("seed", 0)),
        exceedances=None if exceedances == "None" else int(exceedances),
        interval=interval,
        memory_budget=int(options.get("memory_budget", MEMORY_BUDGET)),
    )


def rebuilt(data: Mapping[str, Any], statistic: Statistic, table: CountTable) -> Comparison:
    """Build the comparison with these counts; values that do not follow from counts are taken as logged."""
    options = data["options"]
    pairing = {**data["pairing"], "inputs_checked": tuple(data["pairing"]["inputs_checked"])}
    pairing["notes"] = tuple(pairing["notes"])
    if (influences := pairing["influences"]) is not None:
        parts = influences.get("parts")
        pairing["influences"] = Influences(
            **{
                **influences,
                **{name: tuple(influences[name]) for name in ("values", "counts")},
                "parts": None if parts is None else PartShares(**_as_tuples(parts)),
            }
        )
    return Comparison(
        statistic=statistic,
        baseline_data=_run(data["baseline"], data["baseline_name"]),
        candidate_data=_run(data["candidate"], data["candidate_name"]),
        test=count_table_test(statistic, table, options_of_test(options)),
        alpha=float(options["alpha"]),
        count_table=table,
        pairing=PairingReport(**pairing),
        discordant=pl.DataFrame(),
        options=options,
        cases=tuple(MissingDataCase(**case) for case in data["cases"]),
        dependence=tuple(Dependence(**each) for each in data["dependence"]),
        **of_family(data),
    )


def _as_tuples(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}


def of_family(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return margin, slice and correction of a comparison, which do not follow from its counts."""
    margin, part, corrected = data["margin"], data["slice"], data["corrected"]
    alpha = float(data["options"]["alpha"])
    return {
        "margin": None if margin is None else float(margin),
        "slice": None if part is None else Slice(**part),
        "corrected": None if corrected is None else _adjusted(corrected, alpha),
    }


def _adjusted(logged: Mapping[str, Any], alpha: float) -> AdjustedPValue:
    """Return the corrected p-value with this logarithm; only what other tests determine is as logged."""
    rule, log10 = CORRECTIONS[logged["method"]], float(logged["log10_pvalue"])
    pvalue, written = 10.0**log10, logged["pvalue"]
    if isinstance(written, float) and math.isclose(pvalue, written, rel_tol=1e-9):
        pvalue = written  # without the rounding of the logarithm, which may decide next to alpha
    return AdjustedPValue(
        method=rule.name,
        title=rule.title,
        controls=rule.controls,
        valid_under=rule.valid_under,
        n_tests=int(logged["n_tests"]),
        pvalue=pvalue,
        log10_pvalue=log10,
        rejected=pvalue < alpha,
        relation=logged["relation"],
    )


def _run(origin: str, name: str) -> RunData:
    reference = RunReference.parse(origin)
    run = None if reference.scheme == "file" else TrackedRun(reference, name, "")
    return RunData(ExampleTable.from_native(pl.DataFrame(), origin), name, run)
