"""Compiler of specs: makes a statistic of checked entries, with g and h in integers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from trackperm.errors import InputError
from trackperm.exact import RationalStatistic, RealStatistic
from trackperm.messages import printable
from trackperm.statistic.compiler.declared_parts import (
    check_classes,
    check_classes_of_pairs,
    classes_of,
    columns_of_classes,
    ranges_of,
    require_moderate_size,
    require_no_groups,
    weights_of,
)
from trackperm.statistic.compiler.entries import CheckedEntries, Entries
from trackperm.statistic.compiler.entries_of_pairs import checked_pairs, checked_rank_score
from trackperm.statistic.compiler.symmetry import require_antisymmetry
from trackperm.statistic.definition import ClassValue, ParameterValue, Statistic
from trackperm.statistic.expressions.exact_functions import exact_function
from trackperm.statistic.expressions.parts import (
    CLASS,
    has_totals,
    in_part,
    in_parts,
    over_classes,
    weighted_mean,
    without_totals,
)
from trackperm.statistic.expressions.tree import (
    Binary,
    Call,
    Expression,
    Name,
)
from trackperm.statistic.expressions.units import in_units, with_units
from trackperm.statistic.pairs.term import SHARE
from trackperm.statistic.pairs.trees import with_side
from trackperm.statistic.rank_score import CLUSTER, RANK, STRATUM, TARGET, no_sum
from trackperm.statistic.schema import Contrast, LongSpec, PairSpec, RankSpec, ShortSpec, Spec, form


def compile_statistic(
    entries: Entries,
    name: str,
    *,
    known_strata: Collection[str] | None = None,
    known_classes: Collection[ClassValue] | None = None,
    known_weights: Mapping[str, Fraction] | None = None,
) -> Statistic:
    """Compile a spec; `name` is its name if it has none of its own.

    `known_strata` and `known_classes` are those in the data, `known_weights` the weights of classes whose
    numbers of examples are their weights.

    Raises
    ------
    SpecError
        If the spec is not valid. If `entries` collects errors, those of single entries are in its list,
        and the first of them is raised.
    InputError, InputTypeError
        If what the caller sets does not suit the spec.
    """
    if form(entries.document) is PairSpec:
        return _compile_pairs(entries, name, known_strata, known_classes, known_weights)
    if form(entries.document) is RankSpec:
        return _compile_ranks(entries, name, known_strata)
    return _compile_sums(entries, name, known_strata, known_classes)


def _compile_sums(
    entries: Entries,
    name: str,
    known_strata: Collection[str] | None,
    known_classes: Collection[ClassValue] | None,
) -> Statistic:
    """Compile a spec of counts: its score, or its h, is a function of their sums over the examples."""
    document, checked = entries.document, entries.checked(name)
    name, spec, counts = checked.name, checked.spec, checked.counts
    parameters, undefined, resolution = checked.parameters, checked.undefined, checked.resolution
    missing, worst, best = checked.missing, checked.worst, checked.best
    g, h, score = checked.g, checked.value, None
    if isinstance(spec, ShortSpec):
        score = checked.value
        g, h = _contrast_of(without_totals(score), counts, spec.contrast)
    entries.check_groups(spec, g)
    if entries.has_classes:
        check_classes(document, spec, counts, checked.value)
    require_no_groups(document, spec, counts)
    declared = _declared(entries, name, spec, parameters, counts, entries.names_of_columns(counts))
    ranges = ranges_of(document, entries.names_of_columns(counts))
    units = dict.fromkeys(counts, Fraction(1))
    if not isinstance(resolution, Fraction):
        units |= resolution
    scaled_g, compiled = _compiled(g, h, units, undefined)
    if isinstance(spec, LongSpec) and spec.alternative == "two-sided":
        _require_antisymmetry(checked, scaled_g, compiled, has_classes=entries.has_classes)
    classes = classes_of(document, spec, known_classes)
    weights = weights_of(document, spec, name, known_strata, classes)
    require_moderate_size(h if score is None else score, len(weights))
    names, total = tuple(counts), None if score is None else without_totals(score)
    part_score = None if total is None else exact_function(with_units(total, units), names, undefined)
    adds_classes = score is not None and has_totals(score)
    if adds_classes:
        part_score = None
    if weights:
        names = in_parts(counts, weights)
        units = dict(zip(names, [*units.values()] * len(weights), strict=True))
        if score is None:
            of_parts = [in_part(expression, part) for part in weights for expression in g.values()]
            parted = dict(zip(in_parts(g, weights), of_parts, strict=True))
            scaled_g, compiled = _compiled(parted, weighted_mean(h, weights), units, undefined)
        else:
            total = over_classes(score, weights) if adds_classes else weighted_mean(score, weights)
            parted, contrast = _contrast_of(total, dict.fromkeys(names, total), _contrast(spec))
            scaled_g, compiled = _compiled(parted, contrast, units, undefined)
    return replace(
        declared,
        resolution=resolution,
        g_names=tuple(scaled_g),
        h=compiled,
        score=None if total is None else exact_function(with_units(total, units), names, undefined),
        part_score=part_score,
        contrast=_contrast(spec),
        class_column=columns_of_classes(spec.classes)[0],
        predicts_classes=columns_of_classes(spec.classes)[1],
        classes=classes,
        weights=weights,
        undefined=undefined,
        ranges=ranges,
        _g=g,
        _scaled_g=scaled_g,
        _h=h,
        _score=score,
        _missing=missing,
        _worst=worst,
        _best=best,
    )


def _contrast(spec: ShortSpec | LongSpec) -> Contrast:
    """Return how h compares the scores of two runs; the long form has no scores."""
    return spec.contrast if isinstance(spec, ShortSpec) else "difference"


def _require_antisymmetry(
    checked: CheckedEntries,
    g: Mapping[str, Expression],
    h: RationalStatistic | RealStatistic,
    *,
    has_classes: bool,
) -> None:
    """Refuse a two-sided h that does not change its sign if the runs are exchanged."""
    of_any: dict[str, ParameterValue] = {CLASS: 1} if has_classes else {}
    counts, *substitutes = (
        {key: expression.bind(of_any) for key, expression in expressions.items()}
        for expressions in (checked.counts, checked.missing, checked.worst, checked.best)
    )
    require_antisymmetry(counts, substitutes, g, h, checked.value)


def _compile_pairs(
    entries: Entries,
    name: str,
    known_strata: Collection[str] | None,
    known_classes: Collection[ClassValue] | None,
    known_weights: Mapping[str, Fraction] | None,
) -> Statistic:
    """Compile a spec of pairs: its score is a sum of the shares of examples, which their pairs determine."""
    checked = checked_pairs(entries, name)
    name, spec, term = checked.name, checked.spec, checked.term
    _require_single_rows(name, "compares pairs of examples", spec.repeats)
    counts = {SHARE: term.merged}
    declared = _declared(entries, name, spec, checked.parameters, counts, term.names)
    if term.has_classes:
        check_classes_of_pairs(entries.document, spec, term)
    classes = classes_of(entries.document, spec, known_classes)
    weights = known_weights or weights_of(entries.document, spec, name, known_strata, classes)
    share = replace(term.term, tree=Name(0, 0, SHARE))
    score = weighted_mean(share, weights) if weights else share
    require_moderate_size(share, len(weights))
    names = in_parts(counts, weights)
    units = {total: checked.units.get(total, Fraction(1)) for total in names}
    g, h = _contrast_of(score, dict.fromkeys(names, share), "difference")
    scaled_g, compiled = _compiled(
        g, h, {f"{side}.{total}": units[total] for side in "uv" for total in names} | units, None
    )
    return replace(
        declared,
        resolution=checked.units,
        g_names=tuple(scaled_g),
        h=compiled,
        score=exact_function(with_units(score, units), names, None),
        part_score=exact_function(share, (SHARE,), None),
        class_column=columns_of_classes(spec.classes)[0],
        classes=classes,
        weights=weights,
        pair_term=term,
        _g={f"{side}.{SHARE}": replace(share, tree=Name(0, 0, SHARE, side)) for side in "uv"},
        _scaled_g=scaled_g,
        _h=h,
        _score=share,
    )


def _compile_ranks(entries: Entries, name: str, known_strata: Collection[str] | None) -> Statistic:
    """Compile a rank statistic: its counts are codes, from which the score is computed as a whole."""
    checked = checked_rank_score(entries, name)
    name, spec, rank_score = checked.name, checked.spec, checked.rank_score
    _require_single_rows(name, "compares the order of examples", spec.repeats)
    counts = {RANK: rank_score.score, TARGET: rank_score.label}
    declared = _declared(entries, name, spec, checked.parameters, counts, rank_score.names)
    groups = [
        count for count, column in ((STRATUM, spec.strata), (CLUSTER, spec.cluster)) if column is not None
    ]
    return replace(
        declared,
        count_names=(*counts, *groups),
        # Twice the mid-ranks are integers.
        resolution={RANK: Fraction(1, 2)} if rank_score.scale == "ranks" else {},
        weights=weights_of(entries.document, spec, name, known_strata, ()),
        rank_score=rank_score,
    )


def _declared(
    entries: Entries,
    name: str,
    spec: Spec,
    parameters: Mapping[str, ParameterValue],
    counts: Mapping[str, Expression],
    used: Iterable[str],
) -> Statistic:
    """Return a statistic with what all forms of specs declare, and without g, h and score.

    `used` are the names of the columns that the counts read.
    """
    columns = entries.columns(counts, spec, name)
    return Statistic(
        name=name,
        title=printable(" ".join((spec.title or "").split())) or name,
        description=" ".join(spec.description.split()),
        alternative=spec.alternative,
        greater_is_better=spec.greater_is_better,
        count_names=tuple(counts),
        columns=columns,
        used_columns=tuple(dict.fromkeys(columns[each] for each in used)),
        parameters=parameters,
        set_parameters=frozenset(parameters) if entries.set_parameters is None else entries.set_parameters,
        resolution={},
        g_names=(),
        h=no_sum,
        score=None,
        part_score=None,
        contrast="difference",
        repeats=spec.repeats,
        cluster=spec.cluster,
        strata=spec.strata,
        class_column=None,
        classes=(),
        predicts_classes=False,
        weights={},
        slices=tuple(dict.fromkeys(spec.slices)),
        undefined=None,
        ranges={},
        _counts=counts,
        _g={},
        _scaled_g={},
        _h=None,
        _score=None,
        _missing={},
        _worst={},
        _best={},
        _source=entries.document,
    )


def _require_single_rows(name: str, what: str, repeats: str | None) -> None:
    """Refuse to combine several rows of one example."""
    if repeats not in (None, "rows"):
        raise InputError(
            f"`{name}` {what}, so that several rows of one example cannot be combined by `{repeats}`",
            hint="`--unit row` takes each row as an example; or keep one row for each example.",
        )


def _contrast_of(
    score: Expression, counts: Mapping[str, Expression], contrast: Contrast
) -> tuple[dict[str, Expression], Expression]:
    """Expand the short form: g are the counts of both runs, and h contrasts their scores."""
    start, end = score.tree.start, score.tree.end
    g = {
        f"{side}.{name}": replace(expression, tree=Name(start, end, name, side))
        for side in "uv"
        for name, expression in counts.items()
    }
    u, v = with_side(score.tree, "u"), with_side(score.tree, "v")
    if contrast == "log ratio":
        u, v = Call(start, end, "log", (u,)), Call(start, end, "log", (v,))
    return g, replace(score, tree=Binary(start, end, "-", u, v))


def _compiled(
    g: Mapping[str, Expression], h: Expression, units: Mapping[str, Fraction], undefined: Fraction | None
) -> tuple[dict[str, Expression], RationalStatistic | RealStatistic]:
    """Return g of counts in integers of their units, and h of the sums of g."""
    scaled = {key: in_units(expression, lambda node: units[node.name]) for key, expression in g.items()}
    real_h = with_units(h, {key: unit for key, (_, unit) in scaled.items()})
    integers = {key: expression for key, (expression, _) in scaled.items()}
    return integers, exact_function(real_h, tuple(g), undefined)
