"""Description of the columns of a run, and of what each could be: id, prediction, label or score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trackperm.errors import TrackpermError

if TYPE_CHECKING:
    from trackperm.tables.table import ExampleTable


@dataclass(frozen=True)
class Column:
    """Description of a column.

    `why_not` is the reason why it cannot be used, or empty; `has_tags` states that it holds lists of tags of
    entity spans.
    """

    name: str
    type: str
    n_distinct: int
    n_null: int
    example: object
    why_not: str = ""
    has_tags: bool = False

    @property
    def usable(self) -> bool:
        """Whether the column has values of a supported type."""
        return not self.why_not and self.type != "nothing"

    @property
    def says_true(self) -> bool:
        """Whether it says true or false, or yes or no, as text."""
        words = ("true", "false", "yes", "no")
        return self.type == "text" and self.n_distinct <= 2 and str(self.example).lower() in words

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers or booleans."""
        return self.type in ("integer", "decimal", "boolean")


def described(table: ExampleTable, name: str) -> Column:
    """Describe the only column of a table."""
    from trackperm.tables.columns.tags import hold_tags
    from trackperm.tables.columns.types import typed_columns

    raw = table.frame.get_column(name)
    n_null = raw.null_count()
    try:
        typed, _, types = typed_columns(table, table, [name])
    except TrackpermError as error:
        why = error.message.partition("\n")[0].partition(f"`{table.origin}` ")[2]
        type_ = "objects" if holds_objects(table, name) else "none"
        return Column(name, type_, 0, n_null, None, why)
    values = typed.frame.get_column(name).to_polars()
    present = values.drop_nulls()
    example = present[0] if len(present) else None
    type_ = types[name].value if len(present) else "nothing"
    has_tags = hold_tags(values)
    return Column(name, type_, present.n_unique(), values.null_count(), example, has_tags=has_tags)


def holds_objects(table: ExampleTable, name: str) -> bool:
    """Whether a column holds mappings or structs, which may be one system each."""
    import polars as pl

    values = table.frame.get_column(name).to_polars()
    if values.dtype == pl.Object:
        return all(value is None or isinstance(value, Mapping) for value in values.to_list())
    return isinstance(values.dtype, pl.Struct)


def candidates_of(
    columns: Sequence[Column], n_rows: int, repeated_id: str | None = None
) -> dict[str, list[str]]:
    """Return the columns that could have each role, likeliest first.

    `repeated_id` is the id of examples with several rows. Columns called an index of something are scores if
    no other column is: they may number rows, or be such as ``walkability_index``.
    """
    from trackperm.tables.columns.names import ATTEMPT, names_clusters, names_number_of_row
    from trackperm.tables.columns.tags import roles_of_tags

    usable = [column for column in columns if column.usable]
    ids = [
        column.name
        for column in usable
        if column.type in ("integer", "text")
        and not column.n_null
        and (column.n_distinct == n_rows or column.name == repeated_id)
    ]
    others = [column for column in usable if column.name not in ids or is_called(column.name, "score")]
    scores = [
        column.name
        for column in others
        if not ATTEMPT.fullmatch(column.name)
        and (
            (is_called(column.name, "score") and (column.is_number or column.says_true))
            or (column.is_number and not is_called(column.name, "label") and not is_called(column.name, "id"))
        )
    ]
    integers = [column.name for column in others if column.type == "integer"]
    numbered = [name for name in scores if name in integers and names_number_of_row(name)]
    scores = [name for name in scores if name not in numbered] or [
        name for name in numbered if not names_clusters(name)
    ]

    def named(role: str) -> list[str]:
        names = [column.name for column in usable if is_called(column.name, role)]
        return sorted(names, key=lambda name: _names(role).index(name.lower()))

    predictions, labels = named("prediction"), named("label")
    if not predictions and any(column.name in labels and column.type == "decimal" for column in columns):
        unknown = [name for name in scores if not is_called(name, "score")]
        if len(unknown) == len(scores) == 1:  # a forecast by its model, such as `AutoARIMA` beside `y`
            predictions, scores = unknown, []
    tags = roles_of_tags([column.name for column in usable if column.has_tags])
    if tags is not None and not (predictions and labels):
        predictions, labels = [tags[0]], [tags[1]]
    return {
        "id": sorted(ids, key=lambda name: not is_called(name, "id")),
        "prediction": predictions,
        "label": labels,
        "score": sorted(scores, key=lambda name: not is_called(name, "score")),
    }


def classes_of_columns(columns: Sequence[Column]) -> dict[str, list[str]]:
    """Return the classes of columns of probabilities, by the pattern of their names."""
    from trackperm.statistic.class_columns import classes_of
    from trackperm.tables.columns.names import CLASS_PROBABILITIES

    numbers = [column.name for column in columns if column.usable and column.is_number]
    found = {pattern: list(classes_of(pattern, numbers)) for pattern in CLASS_PROBABILITIES}
    return {pattern: classes for pattern, classes in found.items() if len(classes) > 1}


def is_called(name: str, role: str) -> bool:
    """Whether a name is a usual one for a role."""
    name = name.lower()
    return name in _names(role) or (role == "id" and name.endswith(("_id", "_hash")))


def _names(role: str) -> Sequence[str]:
    """Return common column names of a role, the most common first; ``answer`` has two roles."""
    from trackperm.tables.columns.names import IDS, LABELS, PREDICTIONS, SCORES

    return {
        "id": IDS,
        "prediction": (*PREDICTIONS, "answer"),
        "label": (*LABELS, "answer"),
        "score": SCORES,
    }[role]
