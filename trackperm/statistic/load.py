"""Load statistics by name, file or text, with the values that a comparison overrides."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

from trackperm.choices import RepeatsInSpec
from trackperm.errors import InputError, InputTypeError, SpecError
from trackperm.exact.scores.resolution import Resolution
from trackperm.messages import did_you_mean, listed, printable
from trackperm.statistic.class_columns import reading_class_columns
from trackperm.statistic.compiler.compile import compile_statistic
from trackperm.statistic.compiler.entries import Entries
from trackperm.statistic.definition import ClassValue, Statistic
from trackperm.statistic.document import Document
from trackperm.statistic.function import with_function
from trackperm.statistic.library_names import LIBRARY_NAMES

BUILTIN = Path(__file__).parent / "builtin"

TEMPLATE = Path(__file__).parent / "template.yaml"
"""A commented spec, as a template for new ones."""

FUNCTION_HINT = (
    'a function needs counts: `trackperm.statistic.from_function(f, {"tp": "prediction & label", ...})`.'
)
"""Hint for a Python function in place of a statistic."""


@cache
def builtin_names() -> tuple[str, ...]:
    """Return the names of the built-in statistics."""
    return tuple(sorted(path.stem for path in BUILTIN.glob("*.yaml")))


def load_statistic(
    source: str | Path | Statistic,
    *,
    parameters: Mapping[str, object] | None = None,
    columns: Mapping[str, str] | None = None,
    resolution: Resolution | Mapping[str, Resolution] | None = None,
    repeats: RepeatsInSpec | None = None,
    cluster: str | None = None,
    strata: Collection[str] | None = None,
    classes: Collection[ClassValue] | None = None,
    units: Mapping[str, Fraction] | None = None,
    weights: Mapping[str, Fraction] | None = None,
) -> Statistic:
    """Load and compile a statistic.

    :func:`read_statistic` compiles a spec that is in memory.

    Parameters
    ----------
    source : str, path or Statistic
        Name of a built-in statistic, path of a spec (``.yaml`` or ``.yml``), or a statistic that is to be
        loaded again with other parameters, columns or resolution.
    parameters : mapping, optional
        Values that replace those in the spec.
    columns : mapping, optional
        Columns by name: ``id``, ``prediction``, ``label`` and any name in the counts.
    resolution : str, float, Fraction, Decimal, or mapping of str to such, optional
        Number to whose multiples decimal counts are rounded, for all or by name; replaces that in the spec.
    repeats : str, optional
        Treatment of several rows of one example; replaces that in the spec.
    cluster : str, optional
        Column of clusters; replaces that in the spec.
    strata : collection of str, optional
        Strata in the data, where the spec names their column.
    classes : collection of str, int or bool, optional
        Classes in the data, where the spec names their column.
    units : mapping of str to Fraction, optional
        Units of the shares of examples in a score over pairs, by `total_names`; the data determine them.
    weights : mapping of str to Fraction, optional
        Weights of the classes in a score over pairs, where the data determine them.

    Raises
    ------
    SpecError
        If the statistic does not exist, or its spec is not valid, with file, line and column; also if a spec
        is named like an error and does not say whether greater is better.
    InputError
        If the statistic does not have a named parameter, column or count, a resolution is not positive, the
        column of clusters has no name, or strata or classes are too many or differ from those with weights.
    InputTypeError
        If the value of a parameter is not a finite number, text or a boolean, or not of the type of its
        default, a column is not text, or a resolution not a number.

    Examples
    --------
    >>> from trackperm.statistic import load_statistic
    >>> load_statistic("f1", parameters={"positive": "spam"}).count_names
    ('tp', 'incorrect')
    """
    if cluster == "":
        raise InputError("`cluster` is ''; expected the name of a column", hint="leave it out to have none.")
    parameters, columns = dict(parameters or {}), dict(columns or {})
    set_: frozenset[str] | None
    if isinstance(source, str) and source in builtin_names():
        source = _builtin(source)
    if isinstance(source, Statistic):
        changes = (
            None if repeats == source.repeats else repeats,
            cluster,
            resolution,
            strata,
            classes,
            units,
        )
        has_columns = columns.items() <= source.columns.items()
        if not parameters and has_columns and all(change is None for change in changes):
            return source
        document, name = source._source, source.name
        repeats, cluster = repeats or source.repeats, cluster or source.cluster
        replaced = None if cluster == source.cluster else source.cluster
        kept = {key: column for key, column in source.columns.items() if key != replaced}
        set_ = source.set_parameters | parameters.keys()
        parameters, columns = {**source.parameters, **parameters}, {**kept, **columns}
        own = None if source.depends_on_both else source.resolution
        if source.pair_term is not None:
            own = source.pair_term.resolution
        resolution = own if resolution is None else resolution
        chosen, found, function = source.chosen, source.found, source.function
        id_is_named = source.id_is_named
        by_class = {
            key: own for key, own in source.class_columns.items() if columns[key] == source.columns[key]
        }
    else:
        document, name = _read(source)
        set_, chosen, found, function, by_class = None, "", (), None, {}
        id_is_named = False
    groups = {"repeats": repeats, "cluster": cluster}
    entries = Entries(document, parameters, columns, groups, resolution, set_, units=units)
    statistic = compile_statistic(
        entries, name, known_strata=strata, known_classes=classes, known_weights=weights
    )
    if function is not None:
        statistic = with_function(statistic, function.function, function.undefined)
    if by_class:
        statistic = reading_class_columns(statistic, by_class)
    return replace(statistic, chosen=chosen, found=found, id_is_named=id_is_named)


def read_statistic(content: str | bytes, origin: str, name: str = "statistic") -> Statistic:
    r"""Compile a spec that is in memory.

    Parameters
    ----------
    content : str or bytes
        The spec, in YAML.
    origin : str
        Name of the spec in messages.
    name : str
        Name of the statistic, where the spec does not contain one.

    Raises
    ------
    SpecError
        If the spec is not valid, with line and column.

    Examples
    --------
    >>> from trackperm.statistic import read_statistic
    >>> spec = "counts: {correct: prediction == label, n: 1}\nscore: correct / n"
    >>> read_statistic(spec, "hit_rate.yaml", "hit_rate").score_text
    'correct / n'
    """
    return compile_statistic(Entries(Document.parse(content, origin), {}, {}), name)


@cache
def _builtin(name: str) -> Statistic:
    """Compile a statistic that comes with trackperm, once in a process."""
    document = Document.read(BUILTIN / f"{name}.yaml", f"built-in {name}.yaml")
    return compile_statistic(Entries(document, {}, {}, set_parameters=frozenset()), name)


def _read(source: str | Path) -> tuple[Document, str]:
    if not isinstance(source, str | Path):
        raise InputTypeError(
            f"the statistic is of type `{type(source).__name__}`; expected a name, a path or a `Statistic`",
            hint=FUNCTION_HINT if callable(source) else None,
        )
    path = Path(source)
    if isinstance(source, str) and path.suffix.lower() not in (".yaml", ".yml"):
        builtins = builtin_names()
        raise SpecError(
            f"no statistic is called `{printable(source)}`; built in are {listed(builtins)}",
            hint=f"a spec of your own is a file ending in `.yaml`.{_suggested(source)}",
        )
    return Document.read(path), name_of_file(path)


def _suggested(name: str) -> str:
    """Return the statistics that an unknown name may mean, as the end of a hint."""
    known = LIBRARY_NAMES.get(name.lower())
    if known is None:
        return did_you_mean(name, builtin_names())
    return f" Did you mean {' or '.join(f'`{each}`' for each in known)}?"


def name_of_file(path: Path) -> str:
    """Return the name of a statistic whose spec does not contain one: that of its file."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", path.stem)[:64]
