"""Recomputation of a logged comparison from its files or runs, with a check per logged value."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import polars as pl

from trackperm.comparison import Comparison, RunData, compare_runs, runs_of_slice
from trackperm.comparison.second_opinions import STUDENTIZED
from trackperm.errors import InputError, TrackpermError
from trackperm.exact import CountTable
from trackperm.ledger.comparison_publication import parquet
from trackperm.ledger.verification.checks import BOUND_CLOSE, CLOSE, Check, Verification
from trackperm.ledger.verification.damaged_parquet import read_damaged_parquet
from trackperm.ledger.verification.files import (
    COUNTS,
    DISCORDANT,
    RESULT,
    SPEC,
    UNREADABLE,
    is_same_version,
    logged_function,
    of_family,
    options_of_test,
    read_count_table,
    read_result,
    read_spec,
    rebuilt,
    version_of,
)
from trackperm.ledger.verification.shown_values import Shown
from trackperm.messages import listed
from trackperm.statistic import Statistic
from trackperm.statistic.class_columns import with_class_columns
from trackperm.statistic.written_spec import written_spec
from trackperm.trackers.publication import LoggedComparison

_EXACT = (
    "null_hypothesis",
    "remarks",
    "statistic",
    "score",
    "alternative",
    "alpha",
    "mid_p",
    "n_examples",
    "n_discordant",
    "n_better",
    "n_worse",
    "n_samples",
    "relation",
    "method",
    "ties",
    "verdict",
    "key",
)
_SIGNS = ("=", "≤", "≈")
"""Signs before a p-value; a correction keeps the sign of a test, or takes a later one of another test."""

_NUMBERS = ("baseline_score", "candidate_score", "difference", "log10_smallest_pvalue")
_DERIVED = ("sign", "n_uncorrected", "effect_sizes", "minimum_detectable_effect")
_REVISED = "minimum_detectable_effect"
"""Value that older versions computed at another level, without the correction for several tests."""

_OF_BOTH_CASES = (
    "interval",
    "no_interval",
    "equivalent",
    "no_equivalence",
    "equivalence_pvalue",
    "equivalence_pvalue_is_bound",
    "equivalence_power",
)
"""Values that need the counts of both cases of missing predictions, where these are bounded."""

_FOR_READING = ("artifacts", "run_columns", "labels")
"""Values that say how the runs were read; no number depends on them, and 0.2.0 logged none of them."""

_OF_RUNS = ("baseline", "candidate", "cases", "options")
_OF_PAIRING = (
    "by",
    "n_baseline",
    "n_candidate",
    "n_paired",
    "n_dropped",
    "labels_checked",
    "missing",
    "baseline_digest",
    "candidate_digest",
    "test_set",
    "n_changed",
)


def verify_files(
    files: Mapping[str, bytes],
    logged: LoggedComparison | None = None,
    tables: Mapping[str, bytes] | None = None,
) -> Verification:
    """Recompute a comparison from its count table and spec, and compare what its run `logged` shows.

    `files` has the files below ``trackperm/`` by path, and `tables` the tables that the run shows, as JSON.
    An InputError names a missing file, or the Python function that is the score, which logs do not contain.
    """
    for path in (RESULT, SPEC, COUNTS):
        if path not in files:
            raise InputError(
                f"`{path}` is missing; it is needed to recompute the comparison",
                hint="very large tables of counts are not logged; read the runs again by `--from-runs`."
                if path == COUNTS
                else "name the folder that contains `comparison.json`, or the run that trackperm logged.",
            )
    _require_spec(files[SPEC])
    try:
        data = read_result(files)
    except UNREADABLE as error:
        return Verification((Check.failed(RESULT, error),))
    try:
        statistic = read_spec(files[SPEC], data)
    except UNREADABLE as error:
        return Verification((Check.failed(SPEC, error),))
    spec = Check.equal("spec", _digest(files[SPEC]), _digest(written_spec(statistic).encode()))
    try:
        table = read_count_table(files[COUNTS], statistic)
    except UNREADABLE as error:
        return Verification((spec, Check.failed(COUNTS, error)))
    try:
        again = _with_discordant(_with_opinions(data, rebuilt(data, statistic, table)), files)
        checks = [spec, *_of_result(data, again), *_of_discordant(files, again)]
        if DISCORDANT not in files and logged is not None and is_same_version(data, again):
            checks.append(Check.failed(DISCORDANT, "the file is missing"))
        shown = Shown(logged, tables)
        checks += shown.checks(data, again)
        of_shown = list(shown.notes(data, again))
    except UNREADABLE as error:
        return Verification((spec, Check.failed("recomputation", error)))
    notes = [
        "taken as logged: names and digests of the runs, and how they were paired (`--from-runs`)",
        "taken as logged: why the statistic and the method were chosen",
        *_of_other_tests(again),
        *_unread_discordant(files, again),
        *of_shown,
    ]
    if again.dependence:
        notes.append("taken as logged: dependence of examples, and p-values by cluster (`--from-runs`)")
    if again.cases:
        notes.append(
            "not verified: the stronger case of missing predictions, because only the weaker one is logged"
            " (`--from-runs`)"
        )
    return Verification(tuple(checks), (*notes, *_of_versions(data, again)))


def _require_spec(content: bytes) -> None:
    """Refuse a statistic that is a Python function, which cannot be computed from its log."""
    if (function := logged_function(content)) is not None:
        raise InputError(
            f"the statistic is the Python function `{function}`, which logs do not contain, so that the"
            " comparison cannot be recomputed from its log",
            hint="repeat it with `trackperm.compare` and the function; `count_table.parquet` has the counts.",
        )


def verify_from_runs(
    files: Mapping[str, bytes],
    baseline: RunData,
    candidate: RunData,
    logged: LoggedComparison | None = None,
    tables: Mapping[str, bytes] | None = None,
) -> Verification:
    """Compare the runs again with the logged options, and check the result and what its run `logged` shows.

    The runs keep the names that were logged, as people rename runs. The count table may be missing; `tables`
    are as for :func:`verify_files`.

    Raises
    ------
    InputError
        If the files lack the result or the spec, or the runs cannot be compared any more.
    """
    for path in (RESULT, SPEC):
        if path not in files:
            raise InputError(f"`{path}` is missing; it is needed to compare the runs again")
    _require_spec(files[SPEC])
    try:
        data = read_result(files)
        statistic = read_spec(files[SPEC], data)
        again = _with_opinions(data, _compared_again(data, statistic, baseline, candidate))
    except TrackpermError:
        raise
    except UNREADABLE as error:
        return Verification((Check.failed(RESULT, error),))
    fresh, pairing = again.to_dict(), data["pairing"]
    checks = [*_of_result(data, again)]
    checks += [Check.equal(name, data.get(name), fresh[name]) for name in _OF_RUNS]
    checks += [Check.equal(name, pairing.get(name), fresh["pairing"][name]) for name in _OF_PAIRING]
    checks += [*_of_dependence(data, again), *_of_frame(files, again)]
    shown = Shown(logged, tables)
    try:
        checks += shown.checks(data, again)
        of_shown = list(shown.notes(data, again))
    except UNREADABLE as error:
        checks.append(Check.failed("the run", error))
        of_shown = []
    if COUNTS in files:
        try:
            table = read_count_table(files[COUNTS], again.statistic)
            checks.append(Check.equal("count table", _table_digest(table), _table_digest(again.count_table)))
        except UNREADABLE as error:
            checks.append(Check.failed(COUNTS, error))
    notes = (
        "recomputed from the predictions: all lines that end in `from the runs`",
        "taken as logged: names of the runs, spec and options",
        "taken as logged: notes on the pairing, and why the statistic and the method were chosen",
        *_of_other_tests(again),
        *of_shown,
        *_of_versions(data, again),
    )
    return Verification(tuple(replace(check, what=f"{check.what}, from the runs") for check in checks), notes)


def _compared_again(
    data: Mapping[str, Any], statistic: Statistic, baseline: RunData, candidate: RunData
) -> Comparison:
    """Compare the runs under their logged names, with the logged options and as part of the logged family."""
    baseline = replace(baseline, name=data["baseline_name"])
    candidate = replace(candidate, name=data["candidate_name"])
    options, of_logged = data["options"], of_family(data)
    by_position = data["pairing"]["by"] == "position"
    # The id need not be proved again: whether the user named it is not logged, and the pairing was accepted.
    statistic = replace(statistic, id_is_named=True)
    if statistic.names_by_class:
        statistic = with_class_columns(statistic, (baseline.table, candidate.table))
    if (part := of_logged["slice"]) is not None:
        baseline, candidate = runs_of_slice(baseline, candidate, statistic, part, by_position=by_position)
    again = compare_runs(
        baseline,
        candidate,
        statistic,
        options_of_test(options),
        margin=of_logged["margin"],
        missing=options["missing"],
        by_position=by_position,
        is_slice=part is not None,
    )
    further = {
        name: options[name] for name in ("slice", "correction", "family", "n_tests") if name in options
    }
    return replace(again, **of_logged, options={**again.options, **further})


def _with_opinions(data: Mapping[str, Any], again: Comparison) -> Comparison:
    """Return the comparison with the second opinions that were logged."""
    names = {each["name"] for each in data["second_opinions"]}
    if names - {STUDENTIZED}:
        again = again.with_second_opinions()
    return again.with_studentized() if STUDENTIZED in names else again


def _with_discordant(again: Comparison, files: Mapping[str, bytes]) -> Comparison:
    """Return the comparison with the logged discordant examples; without any if these cannot be read."""
    try:
        return replace(again, discordant=read_damaged_parquet(files[DISCORDANT]))
    except UNREADABLE:
        return again


def _of_result(data: Mapping[str, Any], again: Comparison) -> Iterator[Check]:
    """Check every number of a result."""
    fresh, test = again.to_dict(), again.test
    yield from _of_fields(data, fresh, is_same=is_same_version(data, again))
    claimed = data.get("error_bound")
    tolerance = CLOSE + sum(
        bound
        for bound in (claimed, fresh["error_bound"])
        if isinstance(bound, int | float) and 0 <= bound < 1
    )
    yield Check.close("p-value", data.get("pvalue"), fresh["pvalue"], tolerance)
    log10 = data.get("log10_pvalue")
    allowed = tolerance / math.log(10.0) + CLOSE * abs(test.log10_pvalue)
    is_close = isinstance(log10, int | float) and abs(log10 - test.log10_pvalue) <= allowed
    yield Check("log10 p", repr(log10), repr(test.log10_pvalue), is_close)
    yield Check.close("error bound", claimed, fresh["error_bound"], BOUND_CLOSE)
    ends = data.get("pvalue_interval")
    for i, name in enumerate(("lower", "upper")):
        end = ends[i] if isinstance(ends, list) and len(ends) == 2 else None
        yield Check.close(f"{name} end of p", end, test.interval[i], tolerance)
    for name in _NUMBERS:
        yield Check.close(name, data.get(name), fresh[name])
    yield from _of_estimate(data.get("estimate"), fresh["estimate"])
    has_all_counts = not again.cases or bool(again.bounds)
    for name in (*_DERIVED, *(_OF_BOTH_CASES if has_all_counts else ())):
        is_comparable = name != _REVISED or is_same_version(data, again)
        if name in data and is_comparable:  # `_of_fields` reports what is missing
            yield from _of_parts(name, data[name], fresh[name])
    yield from _of_correction(data, again)
    yield from _of_opinions(data, again)
    for name in _EXACT:
        yield Check.equal(name, data.get(name), fresh[name])
    yield Check.equal("signature", _unversioned(data.get("signature")), _unversioned(fresh["signature"]))
    if again.statistic.cluster is None:
        yield Check.equal("n_paired", data["pairing"].get("n_paired"), again.n_examples)
    if again.cases:
        weaker = max(again.cases, key=lambda case: case.log10_pvalue)
        yield Check.close("p-value of the weaker case", weaker.pvalue, again.pvalue, tolerance)
        yield Check.close("difference of the weaker case", weaker.difference, again.difference)


def _of_fields(data: Mapping[str, Any], fresh: Mapping[str, Any], *, is_same: bool) -> Iterator[Check]:
    """Check that a result of this version has all fields and no others; older versions wrote fewer."""
    for prefix, logged, found in (
        ("", data, fresh),
        ("pairing.", data["pairing"], fresh["pairing"]),
    ):
        for name in sorted(({*found} ^ {*logged}) - {*_FOR_READING}) if is_same else ():
            there = "logged" if name in logged else "missing"
            yield Check(f"field {prefix}{name}", there, "missing" if name in logged else "a value", False)


def _of_estimate(logged: object, fresh: Mapping[str, float] | None) -> Iterator[Check]:
    """Check the estimate beside a valid p-value, if there is one."""
    if fresh is None or not isinstance(logged, Mapping):
        yield Check.equal("estimate of p", logged, fresh)
        return
    for name, value in fresh.items():
        yield Check.close(f"estimate of p, {name}", logged.get(name), value)


def _of_parts(name: str, logged: object, found: object) -> Iterator[Check]:
    """Check a value and all of its parts; numbers may differ by the rounding of another machine."""
    if isinstance(logged, Mapping) and isinstance(found, Mapping):
        for part in found:
            yield from _of_parts(f"{part} of {_spaced(name)}", logged.get(part), found[part])
    elif isinstance(found, float):
        yield Check.close(_spaced(name), logged, found, 1e-6)
    else:
        yield Check.equal(_spaced(name), logged, found)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _of_correction(data: Mapping[str, Any], again: Comparison) -> Iterator[Check]:
    """Check the corrected p-value as far as the counts of this comparison bound it."""
    if (corrected := again.corrected) is not None:
        least = again.log10_pvalue + math.log10(1.0 - CLOSE)
        shown = repr(corrected.log10_pvalue)
        is_possible = corrected.log10_pvalue >= least
        yield Check("log10 of the corrected p", shown, f"at least {again.log10_pvalue!r}", is_possible)
        written = data["corrected"]
        yield Check.close("corrected p", written["pvalue"], corrected.pvalue)
        for name in ("title", "controls", "valid_under", "rejected"):
            yield Check.equal(f"{name} of the correction", written[name], getattr(corrected, name))
        possible = _SIGNS[_SIGNS.index(again.test.relation) :]
        sign = written["relation"]
        yield Check("sign of the corrected p", str(sign), " or ".join(possible), sign in possible)
        yield Check.equal("correction", again.options.get("correction"), corrected.method)


def _of_opinions(data: Mapping[str, Any], again: Comparison) -> Iterator[Check]:
    """Check the second opinions, if any were logged; another version may have explained them otherwise."""
    logged = data["second_opinions"]
    names = [each["name"] for each in logged]
    fresh = {each.name: asdict(each) for each in again.second_opinions}
    parts = ("differs", "overturns", *(("sentence",) if is_same_version(data, again) else ()))
    yield Check.equal("second opinions", names, list(fresh))
    for each in logged:
        what, found = f"second opinion, {each['name']}", fresh.get(each["name"], {})
        yield Check.close(what, each["pvalue"], found.get("pvalue"), 1e-6)
        for name in parts:
            yield Check.equal(f"{name} of the {what}", each.get(name), found.get(name))


def _of_dependence(data: Mapping[str, Any], again: Comparison) -> Iterator[Check]:
    """Check the dependence of examples against the columns of the runs."""
    logged, found = data.get("dependence"), again.dependence
    rows = [each for each in logged if isinstance(each, Mapping)] if isinstance(logged, list) else []
    columns, fresh = [row.get("column") for row in rows], [each.column for each in found]
    yield Check.equal("columns of dependent examples", columns, fresh)
    for row, each in zip(rows, found, strict=False):
        for name in ("n_clusters", "n_shared", "verdict"):
            yield Check.equal(f"{name} by {each.column}", row.get(name), getattr(each, name))
        for name in ("icc", "design_effect", "pvalue"):
            yield Check.close(f"{name} by {each.column}", row.get(name), getattr(each, name), 1e-6)


def _has_row_per_example(again: Comparison) -> bool:
    return not again.statistic.weights and again.statistic.repeats != "attempts"


def _of_frame(files: Mapping[str, bytes], again: Comparison) -> Iterator[Check]:
    """Check the discordant examples against those of the runs."""
    if DISCORDANT not in files:
        return
    try:
        logged = read_damaged_parquet(files[DISCORDANT])
        found = pl.read_parquet(io.BytesIO(parquet(again.discordant)))
        what = "discordant examples"
        yield Check(what, f"{logged.height:,} rows", f"{found.height:,} rows", logged.equals(found))
    except UNREADABLE as error:
        yield Check.failed(DISCORDANT, error)


def _of_discordant(files: Mapping[str, bytes], again: Comparison) -> Iterator[Check]:
    """Check the discordant examples against the counts, if each row is an example."""
    if DISCORDANT not in files or not _has_row_per_example(again):
        return
    try:
        frame = read_damaged_parquet(files[DISCORDANT])
        n_shown = again.pairing.n_shown
        expected = again.count_table.n_discordant if n_shown is None else n_shown
        yield Check.equal("rows of discordant examples", frame.height, expected)
        if again.statistic.resolution or n_shown is not None:
            return
        table, names = again.count_table, again.count_table.names
        differ = (table.candidate != table.baseline).any(axis=1)
        kept = CountTable(
            names, table.candidate[differ], table.baseline[differ], table.multiplicities[differ]
        )
        sides = ([f"{run}.{name}" for name in names] for run in ("candidate", "baseline"))
        if frame.height:
            found = CountTable.from_counts(names, *(frame.select(side).to_numpy() for side in sides))
            yield Check.equal("counts of discordant examples", _table_digest(found), _table_digest(kept))
    except UNREADABLE as error:
        yield Check.failed(DISCORDANT, error)


def _of_other_tests(again: Comparison) -> Iterator[str]:
    """Note that a corrected p-value depends on tests that are not in these files."""
    if again.corrected is not None:
        n = again.corrected.n_tests - 1
        others = "the other test" if n == 1 else f"the other {n} tests"
        yield f"taken as logged: the effect of {others} on the corrected p-value and its sign"


def _unread_discordant(files: Mapping[str, bytes], again: Comparison) -> Iterator[str]:
    """Note what the counts do not tell of the discordant examples."""
    if DISCORDANT not in files:
        yield f"not verified: the discordant examples, because `{DISCORDANT}` is missing"
    elif not _has_row_per_example(again):
        yield "taken as logged: the discordant examples (`--from-runs`)"
    elif again.statistic.resolution or again.pairing.n_shown is not None:
        yield "taken as logged: the discordant examples, except for their number (`--from-runs`)"
    else:
        yield "taken as logged: ids and columns of the discordant examples (`--from-runs`)"


def _of_versions(data: Mapping[str, Any], again: Comparison) -> Iterator[str]:
    """Note that another version computed the logged numbers."""
    logged, own = version_of(data.get("signature")), version_of(again.signature)
    if logged == own:
        return
    yield f"logged by trackperm {logged}, verified by {own}"
    fresh = again.to_dict()
    if missing := sorted({*fresh} - {*data}):
        yield f"not logged by that version: {listed(missing)}"
    if unknown := sorted({*data} - {*fresh}):
        yield f"not verified: {listed(unknown)} of `{RESULT}`"
    if _REVISED in data:
        yield "not verified: the minimum detectable effect"
    if again.second_opinions:
        yield "not verified: the sentences of the second opinions"


def _unversioned(signature: object) -> str:
    return str(signature).rpartition("|trackperm:")[0]


def _table_digest(table: CountTable) -> str:
    parts = (table.candidate, table.baseline, table.multiplicities)
    return _digest(repr(table.names).encode() + b"".join(part.astype("<i8").tobytes() for part in parts))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
