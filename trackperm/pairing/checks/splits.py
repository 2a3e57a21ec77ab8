"""Note runs whose rows come from several parts of a data set, such as training and test data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trackperm.errors import InputTypeError
from trackperm.pairing.checks.label_values import DistinctValues
from trackperm.tables.column_names import SPLITS
from trackperm.tables.table import ExampleTable, have

_TRAINING = frozenset(("train", "training", "trn"))


def training_rows(tables: Sequence[ExampleTable]) -> Iterator[str]:
    """Yield a note for each column by which some rows of a run are training data, and others are not."""
    for name in SPLITS:
        for table in tables if have(tables, [name]) else ():
            try:
                found = DistinctValues.of([table], name)
            except InputTypeError:
                continue
            if found is None or len(found.counts) < 2:
                continue
            if _TRAINING.isdisjoint(str(value).strip().lower() for value in found.counts):
                continue
            parts = ", ".join(found.shown())
            yield (
                f"look: `{name}` of `{table.origin}` has {parts}, and all of these rows are counted;"
                f" `--slice {name}` compares each part"
            )
            break
