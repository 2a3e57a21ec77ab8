"""Entries of specs of pairs and of rank statistics, which have no counts; see :mod:`.entries`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from trackperm.errors import InputError
from trackperm.exact.scores.resolution import read_resolution
from trackperm.statistic.compiler.entries import Entries
from trackperm.statistic.counter_columns import look_up_labels
from trackperm.statistic.definition import ParameterValue
from trackperm.statistic.expressions.tree import EXAMPLES, Expression
from trackperm.statistic.expressions.types import Checker
from trackperm.statistic.pairs.term import PairTerm, by_order
from trackperm.statistic.pairs.trees import SCORE
from trackperm.statistic.rank_score import RankScore
from trackperm.statistic.schema import PairSpec, RankSpec


@dataclass(frozen=True)
class CheckedPairs:
    """Entries of a spec of pairs that passed the checks of single entries."""

    name: str
    spec: PairSpec
    parameters: dict[str, ParameterValue]
    term: PairTerm
    units: dict[str, Fraction]


@dataclass(frozen=True)
class CheckedRankScore:
    """Entries of a spec of a rank statistic that passed the checks of single entries."""

    name: str
    spec: RankSpec
    parameters: dict[str, ParameterValue]
    rank_score: RankScore


def checked_pairs(entries: Entries, name: str) -> CheckedPairs:
    """Parse the entries of a spec of pairs and check each by itself; collected errors hide no others."""
    document, spec = entries.document, entries.spec()
    if not isinstance(spec, PairSpec):
        raise TypeError(f"{name!r} is not a statistic of pairs")
    name = entries.checked_name(spec, name)
    parameters = entries.checked_parameters(spec, name)
    found = {}
    for key in ("left", "right", "term"):
        if getattr(spec.pairs, key) is not None:
            with entries.attempt():
                parsed = Expression.parse(document.passage(("pairs", key)), EXAMPLES)
                found[key] = parsed.bind(parameters)
    score = None
    if spec.pairs.score is not None:
        score = entries.parsed([("pairs", "score")], parameters).get("score")
    read = [*found.values(), *([] if score is None else [score])]
    entries.check_parameters(parameters, read, name)
    if spec.pairs.average == "weighted" and (spec.classes is None or spec.weights):
        with entries.attempt():
            hint = "`average: weighted` weighs each class by the number of its left examples."
            problem = "it needs `classes` and no `weights`"
            raise document.error(problem, ("pairs", "average"), hint=hint)
    resolution = None
    with entries.attempt():
        resolution = _resolution_of_pairs(entries, name)
    units = entries.units
    if units is None:
        units = {key: entries.written_resolution(("units", key)) for key in spec.units}
    if entries.errors or "term" not in found:
        raise entries.errors[0] if entries.errors else document.error("`term` is missing", ("pairs",))
    term = PairTerm(
        found.get("left"),
        found.get("right"),
        found["term"],
        spec.pairs.scale,
        resolution,
        score,
        entries.has_classes,
        spec.pairs.average,
    )
    if score is not None:
        with entries.attempt():
            _check_score_of_example(score)
    term.check(lambda _expression, _name: None, str, entries.attempt)
    with entries.attempt():
        if resolution is not None and by_order(term):
            hint = "only what is computed from the scores themselves is rounded."
            raise term.term.error(term.term.tree, "a term of comparisons has no `resolution`", hint=hint)
    if entries.errors:
        raise entries.errors[0]
    return CheckedPairs(name, spec, parameters, term, dict(units))


def checked_rank_score(entries: Entries, name: str) -> CheckedRankScore:
    """Parse the entries of a rank statistic and check each by itself."""
    document, spec = entries.document, entries.spec()
    if not isinstance(spec, RankSpec):
        raise TypeError(f"{name!r} is not a rank statistic")
    name = entries.checked_name(spec, name)
    parameters = entries.checked_parameters(spec, name)
    label = None
    with entries.attempt():
        label = Expression.parse(document.passage(("rank_statistic", "label"))).bind(parameters)
    if entries.overriding_resolution:
        raise InputError(
            f"`{name}` has no counts, and so no resolution", hint="scores are compared, not added."
        )
    if label is None:
        raise (entries.errors or [])[0]
    entries.check_parameters(parameters, [label], name)
    found = RankScore(spec.rank_statistic.function, label, spec.rank_statistic.scale)
    found.check(lambda _expression, _name: None, str, entries.attempt)
    if entries.errors:
        raise entries.errors[0]
    return CheckedRankScore(name, spec, parameters, found)


def _resolution_of_pairs(entries: Entries, name: str) -> Fraction | None:
    given = entries.overriding_resolution
    if isinstance(given, Mapping):
        hint = "`--resolution 0.001`, for example, rounds what a pair counts."
        raise InputError(f"`{name}` has one resolution, not one for each count", hint=hint)
    if given is not None:
        return read_resolution(given)
    return entries.written_resolution(("resolution",)) if "resolution" in entries.document.data else None


def _check_score_of_example(score: Expression) -> None:
    """Check the score of an example in pairs as far as it does not depend on the types of columns."""
    for name in score.names:
        if name.scope or name.name == SCORE:
            hint = "the score of an example is computed from columns of its run."
            raise score.error(name, f"`{name.full}` cannot be used in `score`", hint=hint)
    if look_up_labels([score]):
        hint = "`label_count` and `label_distance` look them up; counts may do so."
        raise score.error(score.tree, "the score of an example cannot look up all labels", hint=hint)
    Checker(True, lambda _expression, _name: None, "column", decimals=True).result(score, "the score")
