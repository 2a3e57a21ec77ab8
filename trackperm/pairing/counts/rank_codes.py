"""Codes of scores and labels, from which a rank statistic is computed, in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import InputError, UntestableError
from trackperm.exact.pairwise import coded_scores, ranked_scores
from trackperm.pairing.counts.pairwise import in_memory, numbered, values_of
from trackperm.pairing.engines.base import Frame, Types
from trackperm.pairing.joined import SIDES, JoinedRows, count_of
from trackperm.statistic import Statistic, load_statistic
from trackperm.statistic.expressions.types import of_columns
from trackperm.statistic.pairs.columns import score_column
from trackperm.statistic.pairs.trees import SCORE
from trackperm.statistic.rank_score import CLUSTER, RANK, STRATUM, TARGET, RankScore
from trackperm.tables.columns.types import ColumnType

RANKED_ANEW = (
    "scores are replaced by their mid-ranks within each run, which are exchanged and ranked again: the level"
    " of p holds only for many examples; with `scale: raw` it holds if scores themselves are exchangeable"
)

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Examples of two runs with the codes of scores and labels.

    Attributes
    ----------
    rows : JoinedRows
        The rows in the test, in memory.
    frame : narwhals.LazyFrame
        The same rows, with the codes as counts.
    statistic : Statistic
        The statistic, with the weights of the strata.
    """

    rows: JoinedRows
    frame: Frame
    statistic: Statistic


def codes_of_ranks(rows: JoinedRows, statistic: Statistic, score: RankScore, types: Types) -> CodedRows:
    """Compute the codes of all examples that are in the test.

    Raises
    ------
    InputError
        If a score or a label is not finite, or all labels of a stratum are equal.
    SpecError
        If types of columns do not suit the rank statistic.
    """
    score.check(*of_columns(statistic.columns, types))
    column = statistic.columns[SCORE]
    if types[column] not in (ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.BOOLEAN):
        raise InputError(
            f"column `{column}` is {types[column].value}; `{statistic.name}` needs scores that are numbers",
            hint="`--column score=NAME` names another column.",
        )
    local = in_memory(rows)
    frame = local.engine.collected(local.rows)
    if not len(frame):
        raise InputError(f"`{statistic.name}` has no examples")
    values = values_of(local, statistic, score.example_names, types)
    names, strata = numbered(local, local.columns.strata)
    scores = (ranked_scores if score.scale == "ranks" else coded_scores)(
        *(values[score_column(side)].to_numpy() for side in reversed(SIDES))
    )
    labels = score.labels(values, statistic.columns, types)
    _require_labels(statistic, score, names, strata, labels)
    codes = {TARGET: labels, STRATUM: strata, CLUSTER: numbered(local, local.columns.cluster)[1]}
    counts = [
        pl.Series(count_of(side, name), ranks if name == RANK else codes[name])
        for side, ranks in zip(SIDES, (scores.v, scores.u), strict=True)
        for name in statistic.count_names
    ]
    statistic = load_statistic(statistic, strata=names or None)
    return CodedRows(local, local.engine.local(frame.with_columns(counts)), statistic)


def _require_labels(
    statistic: Statistic, score: RankScore, names: list[str], strata: Integers, labels: Integers
) -> None:
    """Refuse labels that are all equal, in any stratum, and examples of which none is positive.

    Only positive examples have the average precision 1, so that a stratum may have no others.
    """
    given = ", ".join(f"`{name}` is {value!r}" for name, value in statistic.parameters.items())
    for i, name in enumerate(names or [""]):
        own = labels[strata == i]
        where = f" in the stratum {name!r}" if name else ""
        if score.is_binary and not own.any():
            raise UntestableError(
                f"`{statistic.name}` has no positive examples{where}: none of its {own.size:,} examples has"
                f" `{score.label}`",
                hint=f"check that the data contain it: {given}." if given else None,
            )
        if not score.is_binary and (own == own[0]).all():
            raise UntestableError(
                f"`{statistic.name}` is undefined{where}: all {own.size} labels are equal",
                hint="`--label NAME` names another column.",
            )
    if score.is_binary and labels.all():
        raise UntestableError(
            f"`{statistic.name}` is 1 for any scores: all {labels.size:,} examples have `{score.label}`",
            hint="it needs examples of two classes" + (f"; {given}." if given else "."),
        )
