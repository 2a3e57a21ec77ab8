"""Entries of a spec: each is parsed and checked by itself, so that one refusal hides no other."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction

from trackperm.errors import InputError, InputTypeError, TrackpermError
from trackperm.exact.scores.resolution import Resolution, read_resolution
from trackperm.messages import did_you_mean, listed
from trackperm.statistic.compiler.declared_parts import columns_of_classes, exact_number
from trackperm.statistic.compiler.parameters import computed_with, parameter_value
from trackperm.statistic.definition import ATTEMPTS, ParameterValue
from trackperm.statistic.direction import direction_word
from trackperm.statistic.document import Document
from trackperm.statistic.expressions.parts import CLASS, first_not_additive
from trackperm.statistic.expressions.tree import (
    MAX_NAME,
    RESERVED,
    Expression,
    Literal,
    Name,
)
from trackperm.statistic.expressions.types import Checker, NameType, literal_type
from trackperm.statistic.schema import LongSpec, ShortSpec, Spec, validate
from trackperm.tables.columns.types import ColumnType

_ROLES = ("id", "prediction", "label")
_NAMED_BY = ("name", "score", "h", "counts", "pairs", "rank_statistic")  # keys that show what is named
_MAX_NAMES = 200  # entries of a section: each count makes two g, and each g a dimension of the test


@contextmanager
def collected(errors: list[TrackpermError] | None) -> Iterator[None]:
    """Append an error of the block to `errors`; raise it if that is None."""
    try:
        yield
    except TrackpermError as error:
        if errors is None:
            raise
        errors.append(error)


@dataclass(frozen=True)
class CheckedEntries:
    """Entries of a spec that passed the checks of single entries; `value` is h, or the score."""

    name: str
    spec: ShortSpec | LongSpec
    parameters: dict[str, ParameterValue]
    undefined: Fraction | None
    counts: dict[str, Expression]
    g: dict[str, Expression]
    value: Expression
    missing: dict[str, Expression]
    worst: dict[str, Expression]
    best: dict[str, Expression]
    resolution: Fraction | dict[str, Fraction]


@dataclass
class Entries:
    """Entries of a spec, with the parameters, columns and groups that the caller sets in their place."""

    document: Document
    overriding_parameters: Mapping[str, object]
    overriding_columns: Mapping[str, object]
    overriding_groups: Mapping[str, str | None] = field(default_factory=dict)  # `repeats` and `cluster`
    overriding_resolution: Resolution | Mapping[str, Resolution] | None = None
    set_parameters: frozenset[str] | None = None  # None: all, as in a spec that is not built in
    errors: list[TrackpermError] | None = None  # errors that are collected; None: the first one is raised
    units: Mapping[str, Fraction] | None = None  # units of the shares in a score of pairs

    @property
    def has_classes(self) -> bool:
        """Whether the score is a mean over classes."""
        return "classes" in self.document.data

    def attempt(self) -> AbstractContextManager[None]:
        """Raise an error of the block at once, or collect it if `errors` is a list."""
        return collected(self.errors)

    def checked(self, name: str) -> CheckedEntries:
        """Parse all entries and check each by itself; collected errors hide no others."""
        document = self.document
        spec = self.spec()
        if not isinstance(spec, ShortSpec | LongSpec):
            raise TypeError(f"{name!r} is not a statistic of counts")
        is_long = isinstance(spec, LongSpec)
        name = self.checked_name(spec, name)
        parameters = self.checked_parameters(spec, name)
        undefined = None
        with self.attempt():
            undefined = self._undefined()
        g = self._expressions("g", parameters, scoped_keys=True)
        counts = self._expressions("counts", parameters) or _implicit_counts(g)
        if len(counts) > _MAX_NAMES:
            raise document.error(f"more than {_MAX_NAMES} counts", ("g",))
        h = self.parsed([("h" if is_long else "score",)], parameters)
        missing, worst, best = (self._expressions(key, parameters) for key in ("missing", "worst", "best"))
        if spec.repeats == "attempts":
            counts, missing, worst, best = map(_with_attempts, (counts, missing, worst, best))
        substitutes = {"missing": missing, "worst": worst, "best": best}
        sections = (counts, *substitutes.values(), g, h)
        self.check_parameters(parameters, [each for section in sections for each in section.values()], name)
        # Names whose expressions were refused are known names, too.
        names = {**dict.fromkeys(document.data.get("counts", ())), **counts}
        for expression in () if is_long else h.values():
            with self.attempt():
                self._check_score(expression, names)
        self._check_counts(counts)
        for section, substitute in substitutes.items():
            self._check_substitute(section, substitute, names)
        self._check_g(g, names, declared="counts" in document.data)
        for expression in h.values() if is_long else ():
            with self.attempt():
                self._check_h(expression, document.data["g"])
        resolution: Fraction | dict[str, Fraction] = {}
        with self.attempt():
            resolution = self._resolution(names, name)
        if self.errors:
            raise self.errors[0]
        (value,) = h.values()
        return CheckedEntries(
            name, spec, parameters, undefined, counts, g, value, missing, worst, best, resolution
        )

    def spec(self) -> Spec:
        """Return the entries of the spec by their keys, with the groups that the caller sets."""
        groups = {key: value for key, value in self.overriding_groups.items() if value is not None}
        return validate(self.document).model_copy(update=groups)

    def checked_name(self, spec: Spec, name: str) -> str:
        """Return the name of the statistic, checked; `name` is its name if it has none of its own."""
        if spec.name is not None:
            name = spec.name
            with self.attempt():
                if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
                    hint = "a name has up to 64 letters, digits, `_`, `-` and `.`."
                    raise self.document.error(f"the name `{name}` cannot be used", ("name",), hint=hint)
        with self.attempt():
            self._check_direction(name)
        return name

    def _check_direction(self, name: str) -> None:
        """Refuse a spec that is named like an error and does not say whether greater is better."""
        data = self.document.data
        word = direction_word(name)
        if word is None or "greater_is_better" in data:
            return
        path = next((key,) for key in _NAMED_BY if key in data)
        raise self.document.error(
            f"`{name}` needs the key `greater_is_better`, as a lower `{word}` may be better",
            path,
            key=path != ("name",),
            hint="add the line `greater_is_better: false`, or `greater_is_better: true` if a greater value"
            " really is better.",
        )

    def checked_parameters(self, spec: Spec, name: str) -> dict[str, ParameterValue]:
        """Return the values of the parameters, with the caller's in place of the defaults."""
        values: dict[str, ParameterValue] = {}
        for key, value in spec.parameters.items():
            path = ("parameters", key)
            # A refused parameter counts as defined, so that expressions that read it are not refused as well.
            values[key] = 1
            with self.attempt():
                self._check_name(key, path)
                for section in ("counts", "g"):
                    if key in self.document.data.get(section, {}):
                        problem = f"`{key}` is both a parameter and an entry of `{section}`"
                        raise self.document.error(problem, path, key=True)
                try:
                    values[key] = parameter_value(key, value)
                except (InputError, InputTypeError) as error:
                    raise self.document.error(error.message, path) from None
        for key, value in self.overriding_parameters.items():
            if key not in values:
                hint = f"`{name}` takes no parameters; leave out `--set`."
                if values:
                    hint = f"its parameters are {listed(values)}.{did_you_mean(key, values)}"
                raise InputError(f"the statistic `{name}` has no parameter `{key}`", hint=hint)
            values[key] = parameter_value(key, value)
        return values

    def _undefined(self) -> Fraction | None:
        if self.document.data.get("undefined") is None:
            return None
        return exact_number(self.document, ("undefined",))

    def _check_substitute(
        self, section: str, substitute: Mapping[str, Expression], counts: Collection[str]
    ) -> None:
        """Check that `missing`, `worst` or `best` defines every count, from the label alone."""
        known = ("label", CLASS) if self.has_classes else ("label",)

        def label(expression: Expression, node: Name) -> None:
            if node.full not in known:
                hint = "where the prediction is missing, only `label` is known."
                raise expression.error(node, f"`{node.full}` cannot be used in `{section}`", hint=hint)

        hint = f"the counts of this statistic are {', '.join(counts)}."
        for key, expression in substitute.items():
            with self.attempt():
                self._require_count(key, counts, (section, key))
                Checker(True, label, "column").result(expression, f"the {section} count `{key}`")
        written = {*substitute, *self.document.data.get(section, ())}
        lacking = [key for key in counts if key not in written]
        if written and lacking:
            with self.attempt():
                problem = f"`{section}` does not define {listed(lacking)}"
                raise self.document.error(problem, (section,), hint=hint)

    def _require_count(self, key: str, counts: Collection[str], path: tuple[str, ...]) -> None:
        """Refuse a key that is not the name of a count."""
        if key not in counts:
            hint = f"the counts of this statistic are {', '.join(counts)}.{did_you_mean(key, counts)}"
            raise self.document.error(f"`{key}` is not a count", path, key=True, hint=hint)

    def names_of_columns(self, counts: Mapping[str, Expression]) -> list[str]:
        """Return the names in counts that refer to columns."""
        names = [node.full for expression in counts.values() for node in expression.names]
        return [name for name in names if name != CLASS or not self.has_classes]

    def check_groups(self, spec: ShortSpec | LongSpec, g: Mapping[str, Expression]) -> None:
        """Check that g is additive where counts are summed over groups before g is computed."""
        groups = [key for key in ("repeats", "cluster", "strata") if getattr(spec, key) not in (None, "rows")]
        for name, expression in g.items() if groups else ():
            place = first_not_additive(expression.tree)
            if place is not None:
                raise expression.error(
                    place,
                    f"`{name}` is not additive over examples, which `{groups[0]}` requires",
                    hint="with groups, `g` consists of sums and multiples of counts.",
                )

    def check_parameters(
        self, parameters: Mapping[str, ParameterValue], expressions: Iterable[Expression], name: str
    ) -> None:
        """Refuse values of another type than the default's.

        Labels are exempt, as they are only compared.
        """
        typed = {key for expression in expressions for key in computed_with(expression.tree)}
        for key in self.overriding_parameters:
            default, value = self.document.data["parameters"][key], parameters[key]
            found, wanted = literal_type(value), literal_type(default)
            widened = (found, wanted) == (ColumnType.INTEGER, ColumnType.DECIMAL)
            if key in typed and found is not wanted and not widened:
                raise InputTypeError(
                    f"the parameter `{key}` of `{name}` is {value!r}, of type {found.value}; expected"
                    f" {wanted.value}, like its default {default!r}",
                    hint=f"`--set {key}={default}`, for example.",
                )

    def _resolution(self, counts: Collection[str], name: str) -> Fraction | dict[str, Fraction]:
        """Return the units of counts by name, or one resolution for all decimal counts."""
        known = f"the counts of this statistic are {', '.join(counts)}."
        given = self.overriding_resolution
        if given is not None and not isinstance(given, Mapping):
            return read_resolution(given)
        if given is not None:
            for key in given:
                if key not in counts:
                    hint = known + did_you_mean(key, counts)
                    raise InputError(f"the statistic `{name}` has no count `{key}`", hint=hint)
            return {key: read_resolution(value) for key, value in given.items()}
        section = self.document.data.get("resolution", {})
        if not isinstance(section, Mapping):
            return self.written_resolution(("resolution",))
        for key in section:
            self._require_count(key, counts, ("resolution", key))
        return {key: self.written_resolution(("resolution", key)) for key in section}

    def written_resolution(self, path: tuple[str, ...]) -> Fraction:
        """Return the resolution at a path of the spec; refuse one that is not a positive number."""
        text = self.document.passage(path).text
        try:
            return read_resolution(text)
        except InputError as error:
            raise self.document.error(error.message, path, hint=error.hint) from None

    def parsed(
        self, paths: Iterable[tuple[str, ...]], parameters: dict[str, ParameterValue]
    ) -> dict[str, Expression]:
        """Return the expressions at some paths, by their last keys."""
        found = {}
        for path in paths:
            with self.attempt():
                found[path[-1]] = Expression.parse(self.document.passage(path)).bind(parameters)
        return found

    def _expressions(
        self, section: str, parameters: dict[str, ParameterValue], *, scoped_keys: bool = False
    ) -> dict[str, Expression]:
        entries: Mapping[str, object] = self.document.data.get(section, {})
        if len(entries) > _MAX_NAMES:
            raise self.document.error(f"more than {_MAX_NAMES} entries", (section,))
        if section in self.document.data and not entries:
            raise self.document.error(f"`{section}` is empty", (section,))
        for key in entries:
            scope, _, name = key.rpartition(".")
            bare = name if scoped_keys and scope in ("u", "v") else key
            with self.attempt():
                self._check_name(bare, (section, key))
        return self.parsed(((section, key) for key in entries), parameters)

    def _check_name(self, name: str, path: tuple[str, ...]) -> None:
        if not re.fullmatch(r"[^\W\d]\w*", name) or len(name) > MAX_NAME or name in RESERVED:
            hint = f"a name has up to {MAX_NAME} letters, digits and `_`, and is not `and`, `or` or `not`."
            raise self.document.error(f"`{name}` cannot be a name", path, key=True, hint=hint)

    def _check_counts(self, counts: Mapping[str, Expression]) -> None:
        """Check everything about counts that does not depend on the types of columns."""

        def column(expression: Expression, node: Name) -> ColumnType | None:
            if node.scope:
                hint = f"counts are of one run: write `{node.name}`."
                raise expression.error(node, f"`{node.full}` cannot be used in a count", hint=hint)
            return None

        for name, expression in counts.items():
            reads = any(True for _ in expression.names)
            with self.attempt():
                Checker(True, column, "column", decimals=reads).result(expression, f"the count `{name}`")

    def _check_score(self, score: Expression, counts: Collection[str]) -> None:
        hint = f"the counts of this statistic are {', '.join(counts)}."
        Checker(False, _known(counts, hint), totals=self.has_classes).result(score, "the score")

    def _check_g(self, g: Mapping[str, Expression], counts: Collection[str], *, declared: bool) -> None:
        joint = [f"{side}.{name}" for side in "uv" for name in counts]
        hint = f"the counts of this statistic are {', '.join(counts)}, each behind `u.` or `v.`."
        if not declared:
            hint = "columns are written behind `u.` (candidate) or `v.` (baseline)."
        checker = Checker(True, _known(joint, hint))
        for name, expression in g.items():
            with self.attempt():
                checker.result(expression, f"`{name}`")

    def _check_h(self, h: Expression, g: Collection[str]) -> None:
        hint = f"h takes {', '.join(g)}."
        Checker(False, _known(g, hint), "value").result(h, "h")

    def columns(self, counts: Mapping[str, Expression], spec: Spec, name: str) -> dict[str, str]:
        """Return the column of every name in the spec, and of ``id`` and ``label``."""
        named = {
            "cluster": spec.cluster,
            "strata": spec.strata,
            "classes": columns_of_classes(spec.classes)[0],
        }
        groups = {key: value for key, value in named.items() if isinstance(value, str)}
        if "" in groups.values():
            path = next((key,) for key, value in groups.items() if not value)
            raise self.document.error("an empty column name", path)
        needed = list(dict.fromkeys(["id", "label", *self.names_of_columns(counts), *groups.values()]))
        allowed = {*needed, *_ROLES}
        chosen = dict(self.document.data.get("columns", {}))
        hint = f"the names are {listed(sorted(allowed))}."
        for key, column in chosen.items():
            if key not in allowed:
                problem = f"the counts use no name `{key}`"
                more = did_you_mean(key, allowed)
                raise self.document.error(problem, ("columns", key), key=True, hint=hint + more)
            if not column:
                raise self.document.error("an empty column name", ("columns", key))
        for key, column in self.overriding_columns.items():
            if key not in allowed:
                problem = f"the statistic `{name}` uses no column `{key}`"
                raise InputError(problem, hint=hint + did_you_mean(key, allowed))
            if not isinstance(column, str):
                raise InputTypeError(f"the column for `{key}` must be text, not {type(column).__name__}")
            chosen[key] = column
        return {key: chosen.get(key, key) for key in needed}


def _known(names: Collection[str], hint: str) -> NameType:
    def name_type(expression: Expression, node: Name) -> ColumnType:
        if node.full in names:
            return ColumnType.INTEGER
        more = did_you_mean(node.full, names) or did_you_mean(node.name, names)
        raise expression.error(node, f"unknown name `{node.full}`", hint=hint + more)

    return name_type


def _with_attempts(counts: Mapping[str, Expression]) -> dict[str, Expression]:
    """Add the number of attempts, which a test of attempts within examples needs."""
    if not counts or ATTEMPTS in counts:
        return dict(counts)
    first = next(iter(counts.values()))
    one = replace(first, tree=Literal(first.tree.start, first.tree.end, 1))
    return {**counts, ATTEMPTS: one}


def _implicit_counts(g: Mapping[str, Expression]) -> dict[str, Expression]:
    """Return counts for a spec without `counts`: the integer columns that g reads."""
    counts: dict[str, Expression] = {}
    for expression in g.values():
        for node in expression.names:
            if node.scope and node.name not in counts:
                counts[node.name] = replace(expression, tree=replace(node, scope=""))
    return counts
