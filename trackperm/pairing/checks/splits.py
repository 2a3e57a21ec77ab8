"""Note runs whose rows come from several parts of a data set, such as training and test data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trackperm.tables.columns.names import SPLITS
from trackperm.tables.lazy.table import COUNT
from trackperm.tables.table import ExampleTable, have

_TRAINING = frozenset(("train", "training", "trn"))
_MOST_PARTS = 10


def training_rows(tables: Sequence[ExampleTable]) -> Iterator[str]:
    """Yield a note for each column by which some rows of a run are training data, and others are not."""
    for name in SPLITS:
        for table in tables if have(tables, [name]) else ():
            counts = table.counts_of_few(name, _MOST_PARTS + 1)  # one may be null
            if counts is None:
                continue
            parts = dict(counts.select(name, COUNT).drop_nulls().sort(COUNT, name).iter_rows())
            if not 1 < len(parts) <= _MOST_PARTS:
                continue
            if _TRAINING.isdisjoint(str(part).strip().lower() for part in parts):
                continue
            shown = ", ".join(f"{part!r} ({n:,})" for part, n in reversed(parts.items()))
            yield (
                f"look: `{name}` of `{table.origin}` has {shown}, and all of these rows are counted;"
                f" `--slice {name}` compares each part"
            )
            break
