"""Specs of compiled statistics, written as YAML."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from trackperm.exact.scores.resolution import format_unit
from trackperm.statistic.definition import Statistic
from trackperm.statistic.document import dump
from trackperm.statistic.expressions.tree import Expression
from trackperm.statistic.pairs.term import PairTerm
from trackperm.statistic.rank_score import RankScore


def written_spec(statistic: Statistic) -> str:
    """Return the spec with all values as used: its long form as YAML, without the description.

    Specs with the same meaning mostly have the same document, however they are written (spaces, comments,
    short form). The short form stays if g and h cannot express it: with strata, classes or a contrast.
    Weights and classes are those used.
    """
    is_replaced = statistic.classes and not _reads(statistic, statistic.class_column)
    replaced = statistic.class_column if is_replaced else None
    by_class = statistic.class_column
    if statistic.predicts_classes:
        by_class = f"{by_class},prediction"
    optional: dict[str, Any] = {
        "parameters": dict(statistic.parameters),
        "columns": {
            name: column for name, column in statistic.columns.items() if name not in (column, replaced)
        },
        "resolution": _resolution_as_written(statistic),
        "missing": _written(statistic._missing),
        "worst": _written(statistic._worst),
        "best": _written(statistic._best),
        "ranges": {name: [_plain(str(end)) for end in ends] for name, ends in statistic.ranges.items()},
        "repeats": statistic.repeats,
        "cluster": statistic.cluster,
        "slices": list(statistic.slices),
        "strata": statistic.strata,
        "classes": list(statistic.classes) or by_class,
        "weights": {}
        if statistic.adds_classes
        else {name: _plain(str(weight)) for name, weight in statistic.weights.items()},
    }
    data: dict[str, Any] = {
        **_names(statistic),
        "counts": _written(statistic._counts),
        **{key: value for key, value in optional.items() if value},
    }
    if statistic.pair_term is not None:
        return dump(_of_pairs(statistic, statistic.pair_term, optional))
    if statistic.rank_score is not None:
        return dump(_of_ranks(statistic, statistic.rank_score, optional))
    if statistic.function is not None:
        data |= {"function": statistic.function.text, "source_digest": statistic.function.digest}
    elif statistic._score is not None and (
        statistic.strata is not None or statistic.has_classes or statistic.contrast != "difference"
    ):
        data |= {"score": _plain(str(statistic._score)), "contrast": statistic.contrast}
    else:
        data |= {"g": _written(statistic._g), "h": str(statistic._h)}
    if statistic.undefined is not None:
        data["undefined"] = _plain(str(statistic.undefined))
    data["alternative"] = statistic.alternative
    data["greater_is_better"] = statistic.greater_is_better
    return dump(data)


def _names(statistic: Statistic) -> dict[str, str]:
    """Return the name, and the title where it is another."""
    named = {"name": statistic.name}
    return named if statistic.title == statistic.name else {**named, "title": statistic.title}


def _of_pairs(statistic: Statistic, term: PairTerm, optional: Mapping[str, Any]) -> dict[str, Any]:
    expressions = {"left": term.left, "right": term.right, "term": term.term, "score": term.score}
    pairs: dict[str, Any] = {key: str(each) for key, each in expressions.items() if each is not None}
    # The weights of the data are known together with the units.
    if counts_weights := term.average == "weighted" and not statistic.resolution:
        pairs["average"] = term.average
    written = {
        **_names(statistic),
        **{key: optional[key] for key in ("parameters", "columns", "repeats", "cluster", "slices", "strata")},
        "classes": optional["classes"],
        "weights": {} if counts_weights else optional["weights"],
        "pairs": {**pairs, "scale": term.scale},
        "resolution": None if term.resolution is None else format_unit(term.resolution),
        "units": optional["resolution"],
    }
    return {
        **{key: value for key, value in written.items() if value},
        "alternative": statistic.alternative,
        "greater_is_better": statistic.greater_is_better,
    }


def _of_ranks(statistic: Statistic, rank_score: RankScore, optional: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("parameters", "columns", "repeats", "cluster", "slices", "strata", "weights")
    return {
        **_names(statistic),
        **{key: optional[key] for key in keys if optional[key]},
        "rank_statistic": {
            "function": rank_score.function,
            "label": _plain(str(rank_score.label)),
            "scale": rank_score.scale,
        },
        "alternative": statistic.alternative,
        "greater_is_better": statistic.greater_is_better,
    }


def _reads(statistic: Statistic, name: str | None) -> bool:
    """Whether a name is that of the id, label or cluster, or counts read it."""
    return name in ("id", "label", statistic.cluster) or any(
        node.full == name for expression in statistic._counts.values() for node in expression.names
    )


def _resolution_as_written(statistic: Statistic) -> Any:
    if isinstance(statistic.resolution, Fraction):
        return format_unit(statistic.resolution)
    return {name: format_unit(unit) for name, unit in statistic.resolution.items()}


def _written(expressions: Mapping[str, Expression]) -> dict[str, str | int]:
    return {name: _plain(str(expression)) for name, expression in expressions.items()}


def _plain(text: str) -> str | int:
    return int(text) if text.isdecimal() else text
