"""What a spec says of its strata or classes: which there are, what each weighs, and whether that can be."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from fractions import Fraction

from trackperm.errors import InputError
from trackperm.messages import kind
from trackperm.statistic.definition import CLASS, ClassValue, class_text
from trackperm.statistic.document import Document
from trackperm.statistic.expressions.parts import MAX_PARTS
from trackperm.statistic.expressions.tree import Expression, size
from trackperm.statistic.expressions.types import literal_type
from trackperm.statistic.schema import LongSpec, ShortSpec

_MAX_SIZE = 50_000  # in nodes, of the mean over strata or classes


def classes_of(
    document: Document, spec: ShortSpec | LongSpec, known: Collection[ClassValue] | None
) -> tuple[ClassValue, ...]:
    """Return the classes in ascending order; none as long as they are not known.

    Parameters
    ----------
    known : collection of str, int or bool, optional
        Those of the data, where the spec names their column.

    Raises
    ------
    SpecError
        If the list of classes is empty, or has one twice, of another type, or of none that classes have.
    """
    if not isinstance(spec.classes, list):
        return tuple(sorted(known or ()))
    if not spec.classes:
        hint = "`classes: label` takes those of the labels."
        raise document.error("there are no classes in the list", ("classes",), hint=hint)
    seen: set[ClassValue] = set()
    for i, value in enumerate(spec.classes):
        path = ("classes", i)
        if not isinstance(value, str | int):
            raise document.error(f"a class is text, an integer or a boolean, not {kind(value)}", path)
        if literal_type(value) is not literal_type(spec.classes[0]):
            found, first = (literal_type(item).value for item in (value, spec.classes[0]))
            hint = "classes are of one type; quote those that are text."
            raise document.error(f"a class that is {found} after one that is {first}", path, hint=hint)
        if value in seen:
            raise document.error(f"the class {value!r} stands in the list twice", path)
        seen.add(value)
    return tuple(sorted(spec.classes))


def weights_of(
    document: Document,
    spec: ShortSpec | LongSpec,
    name: str,
    strata: Collection[str] | None,
    classes: tuple[ClassValue, ...],
) -> dict[str, Fraction]:
    """Return the weights of the strata or classes in their order; none as long as these are not known.

    Parameters
    ----------
    name : str
        Of the statistic.
    strata : collection of str, optional
        Those of the data.
    classes : tuple of str, int or bool
        As :func:`classes_of` gives them.

    Raises
    ------
    SpecError
        If a weight is no number above 0, or there is nothing to weigh.
    InputError
        If there are too many parts, or other ones than have weights.
    """
    if spec.strata is None and spec.classes is None:
        if spec.weights:
            problem = "there are no strata or classes to weigh"
            hint = "`strata: COLUMN` or `classes: COLUMN` names the column that has them."
            raise document.error(problem, ("weights",), key=True, hint=hint)
        return {}
    noun = "strata" if spec.strata is not None else "classes"
    known: Collection[str] | None = [class_text(value) for value in classes] or None
    if spec.strata is not None and strata is not None:
        known = sorted(strata)
    written = {key: exact_number(document, ("weights", key)) for key in spec.weights}
    for key, weight in written.items():
        if weight <= 0:
            raise document.error(f"the weight {weight} is not above 0", ("weights", key))
    parts = sorted(written) if known is None else known
    if len(parts) > MAX_PARTS:
        raise InputError(
            f"`{name}` has {len(parts)} {noun}; the limit is {MAX_PARTS}",
            hint=f"`{noun}` in its file names the column that has them: is it the right one?",
        )
    if not written:
        return dict.fromkeys(parts, Fraction(1))
    for lacking, problem in (
        (sorted(set(parts) - set(written)), "have no weight"),
        (sorted(set(written) - set(parts)), "have a weight and no example"),
    ):
        if lacking:
            message = f"{len(lacking)} {noun} of `{name}` {problem} (first: {lacking[0]!r})"
            raise InputError(message, hint=f"`weights` in its file gives all {noun} of the data one.")
    return {key: written[key] for key in parts}


def exact_number(document: Document, path: tuple[str, ...]) -> Fraction:
    """Return a number as it is written, such as ``0.1`` or ``1/3``.

    Raises
    ------
    SpecError
        If it is none.
    """
    text = document.passage(path).text
    if re.fullmatch(r"[-+]?(\d{1,50}(/0*[1-9]\d{0,50})?|\d{0,50}\.\d{1,50})", text, re.ASCII):
        return Fraction(text)
    hint = "such as `0`, `0.5` or `1/2`."
    raise document.error(f"`{text}` is not an exact number", path, hint=hint)


def require_moderate_size(expression: Expression, n_parts: int) -> None:
    """Refuse what would be too long where every stratum or class has a copy of it.

    Raises
    ------
    SpecError
        If all copies together have too many nodes.
    """
    if size(expression.tree) * n_parts > _MAX_SIZE:
        hint = "name parts of it as counts, or sum columns before logging."
        raise expression.error(expression.tree, f"too long for the mean of {n_parts} parts", hint=hint)


def check_classes(document: Document, spec: ShortSpec | LongSpec, counts: Mapping[str, Expression]) -> None:
    """Check that `class` can mean nothing but the class, and that the counts read it.

    Raises
    ------
    SpecError
        If it can, or they do not, or there are strata as well.
    """
    if spec.strata is not None:
        hint = "classes of strata would be more parts than a score can be the mean of; choose one."
        raise document.error("`classes` does not go with `strata`", ("classes",), key=True, hint=hint)
    hint = f"where there are `classes`, `{CLASS}` stands for one of them in every count."
    for section in ("parameters", "counts", "columns"):
        is_column = section == "columns" and spec.classes == CLASS
        if CLASS in document.data.get(section, {}) and not is_column:
            raise document.error(f"`{CLASS}` cannot be a name here", (section, CLASS), key=True, hint=hint)
    if not any(node.full == CLASS for expression in counts.values() for node in expression.names):
        hint += " As in `label == class`."
        raise document.error(f"no count reads `{CLASS}`", ("classes",), key=True, hint=hint)
