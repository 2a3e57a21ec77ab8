"""Strata and classes that a spec declares, and their weights."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from fractions import Fraction

from trackperm.errors import InputError
from trackperm.messages import did_you_mean, kind, listed
from trackperm.statistic.counter_columns import look_up_labels
from trackperm.statistic.definition import ClassValue, class_text
from trackperm.statistic.document import Document
from trackperm.statistic.expressions.parts import CLASS, MAX_PARTS, has_totals, outside_totals
from trackperm.statistic.expressions.tree import Expression, size
from trackperm.statistic.expressions.types import literal_type
from trackperm.statistic.pairs.term import PairTerm
from trackperm.statistic.schema import LongSpec, PairSpec, ShortSpec, Spec

_MAX_SIZE = 50_000  # nodes of a mean over strata or classes; compiling so many takes seconds


def classes_of(
    document: Document, spec: ShortSpec | LongSpec | PairSpec, known: Collection[ClassValue] | None
) -> tuple[ClassValue, ...]:
    """Return the classes in ascending order; empty as long as they are unknown.

    `known` are the classes in the data, where the spec names their column. It raises SpecError if the list of
    classes is empty, has duplicates or mixed types, or a value that is not text, an integer or a boolean.
    """
    if not isinstance(spec.classes, list):
        return tuple(sorted(known or ()))
    if not spec.classes:
        hint = "`classes: label` takes the classes of the labels."
        raise document.error("the list of classes is empty", ("classes",), hint=hint)
    seen: set[ClassValue] = set()
    for i, value in enumerate(spec.classes):
        path = ("classes", i)
        if not isinstance(value, str | int):
            raise document.error(f"expected text, an integer or a boolean, found {kind(value)}", path)
        if literal_type(value) is not literal_type(spec.classes[0]):
            found, first = (literal_type(item).value for item in (value, spec.classes[0]))
            hint = "classes have one type; quote those that are text."
            raise document.error(f"a class that is {found} after one that is {first}", path, hint=hint)
        if value in seen:
            raise document.error(f"the class {value!r} is in the list twice", path)
        seen.add(value)
    return tuple(sorted(spec.classes))


def weights_of(
    document: Document,
    spec: Spec,
    name: str,
    strata: Collection[str] | None,
    classes: tuple[ClassValue, ...],
) -> dict[str, Fraction]:
    """Return the weights of strata or classes in their order; empty as long as these are unknown.

    `strata` are those in the data; `classes` is the result of :func:`classes_of`. It raises SpecError if a
    weight is not a positive number or has no strata or classes, and InputError if there are too many parts,
    or they differ from those with weights.
    """
    if spec.strata is None and spec.classes is None:
        if spec.weights:
            problem = "`weights` needs strata or classes"
            hint = "`strata: COLUMN` or `classes: COLUMN` names their column."
            raise document.error(problem, ("weights",), key=True, hint=hint)
        return {}
    noun = "strata" if spec.strata is not None else "classes"
    known: Collection[str] | None = [class_text(value) for value in classes] or None
    if spec.strata is not None and strata is not None:
        known = sorted(strata)
    written = {key: exact_number(document, ("weights", key)) for key in spec.weights}
    for key, weight in written.items():
        if weight <= 0:
            raise document.error(f"the weight {weight} is not positive", ("weights", key))
    parts = sorted(written) if known is None else known
    if len(parts) > MAX_PARTS:
        raise InputError(
            f"`{name}` has {len(parts)} {noun}; the limit is {MAX_PARTS}",
            hint=f"is the column that `{noun}` names in its file the right one?",
        )
    if not written:
        return dict.fromkeys(parts, Fraction(1))
    for lacking, problem in (
        (sorted(set(parts) - set(written)), "have no weight"),
        (sorted(set(written) - set(parts)), "have a weight but no example"),
    ):
        if lacking:
            message = f"{len(lacking)} {noun} of `{name}` {problem} (first: {lacking[0]!r})"
            raise InputError(message, hint=f"`weights` in its file has one for each of these {noun}.")
    return {key: written[key] for key in parts}


def columns_of_classes(classes: object) -> tuple[str | None, bool]:
    """Return the column whose values are the classes, and whether predictions are classes as well.

    These are written as `label` and `label,prediction`; the column is None for a list of classes.
    """
    if not isinstance(classes, str):
        return None, False
    name, comma, other = classes.partition(",")
    return (name.strip(), True) if comma and other.strip() == "prediction" else (classes, False)


def ranges_of(document: Document, names: Collection[str]) -> dict[str, tuple[Fraction, Fraction]]:
    """Return the least and the greatest value of each column that has a range.

    `names` are those that the counts read. It raises SpecError for another name, and for a range that is not
    two numbers in ascending order.
    """
    found = {}
    for name, ends in document.data.get("ranges", {}).items():
        if name not in names:
            hint = f"the counts read {listed(sorted(names))}.{did_you_mean(name, names)}"
            raise document.error(f"the counts use no name `{name}`", ("ranges", name), key=True, hint=hint)
        hint = "write the least and the greatest value, as in `[0, 1]`."
        if len(ends) != 2:
            raise document.error(f"a range of {len(ends)} numbers", ("ranges", name), hint=hint)
        low, high = (exact_number(document, ("ranges", name, i)) for i in range(2))
        if low > high:
            raise document.error(f"a range from {low} to {high}", ("ranges", name), hint=hint)
        found[name] = low, high
    return found


def exact_number(document: Document, path: tuple[str | int, ...]) -> Fraction:
    """Return the exact value of a number as it is written, such as ``0.1`` or ``1/3``."""
    text = document.passage(path).text
    if re.fullmatch(r"[-+]?(\d{1,50}(/0*[1-9]\d{0,50})?|\d{0,50}\.\d{1,50})", text, re.ASCII):
        return Fraction(text)
    hint = "expected one such as `0`, `0.5` or `1/2`."
    raise document.error(f"`{text}` is not an exact number", path, hint=hint)


def require_moderate_size(expression: Expression, n_parts: int) -> None:
    """Refuse an expression that is too long to be copied for every stratum or class."""
    if size(expression.tree) * n_parts > _MAX_SIZE:
        hint = "define parts of it as counts, or sum columns before logging."
        raise expression.error(expression.tree, f"too long for a mean of {n_parts} parts", hint=hint)


def require_no_groups(
    document: Document, spec: ShortSpec | LongSpec, counts: Mapping[str, Expression]
) -> None:
    """Refuse counts that look up all labels with strata or classes, or with several rows of an example."""
    if not look_up_labels(counts.values()):
        return
    for key in ("strata", "classes", "repeats"):
        if getattr(spec, key) not in (None, "rows"):
            path = (key,) if key in document.data else ()
            raise document.error(
                f"`{key}` cannot be used with counts that look up the labels of all examples",
                path,
                key=bool(path),
                hint="`label_count` and `label_distance` look them up.",
            )


def check_classes(
    document: Document, spec: ShortSpec | LongSpec, counts: Mapping[str, Expression], score: Expression
) -> None:
    """Check that a count reads `class`, that nothing else has this name, and that there are no strata.

    Counts of one class cannot be used in the score beside sums over classes.
    """
    adds_classes = has_totals(score)
    for node in outside_totals(score.tree) if adds_classes else ():
        if any(name.full == CLASS for name in counts[node.full].names):
            hint = f"write `total({node.full})` for the sum over all classes."
            raise score.error(node, f"`{node.full}` is the count of one class", hint=hint)
    if adds_classes and spec.weights:
        hint = "multiply by weights inside of `total`."
        raise document.error("`weights` cannot be used with `total`", ("weights",), key=True, hint=hint)
    _require_no_strata(document, spec)
    hint = f"with `classes`, `{CLASS}` in a count is the class that is counted."
    for section in ("parameters", "counts", "columns"):
        is_column = section == "columns" and spec.classes == CLASS
        if CLASS in document.data.get(section, {}) and not is_column:
            raise document.error(f"`{CLASS}` cannot be a name here", (section, CLASS), key=True, hint=hint)
    if not any(node.full == CLASS for expression in counts.values() for node in expression.names):
        hint += " Write `label == class`, for example."
        raise document.error(f"no count reads `{CLASS}`", ("classes",), key=True, hint=hint)


def check_classes_of_pairs(document: Document, spec: PairSpec, term: PairTerm) -> None:
    """Check that pairs read `class`, that classes are labels, and that there are no strata."""
    _require_no_strata(document, spec)
    if columns_of_classes(spec.classes)[1]:
        hint = "`classes: label` takes the classes of the labels."
        raise document.error("predictions cannot be classes of pairs", ("classes",), hint=hint)
    if not any(name.full == CLASS for expression in term.expressions for name in expression.names):
        hint = "write `left: label == class`, for example."
        raise document.error(f"no condition reads `{CLASS}`", ("classes",), key=True, hint=hint)


def _require_no_strata(document: Document, spec: ShortSpec | LongSpec | PairSpec) -> None:
    if spec.strata is not None:
        hint = "a score is a mean over strata or over classes, not over both."
        raise document.error("`classes` cannot be used with `strata`", ("classes",), key=True, hint=hint)
