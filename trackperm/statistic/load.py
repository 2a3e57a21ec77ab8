"""Statistics by name, file or text, and what a comparison changes of a spec."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from trackperm.choices import RepeatsInSpec
from trackperm.errors import InputTypeError, SpecError
from trackperm.exact.scores.resolution import Resolution
from trackperm.messages import did_you_mean, listed, printable
from trackperm.statistic.compile import _Compiler
from trackperm.statistic.definition import ClassValue, Statistic
from trackperm.statistic.document import Document

BUILTIN = Path(__file__).parent / "builtin"

TEMPLATE = Path(__file__).parent / "template.yaml"
"""A spec with comments, to write one from."""


def builtin_names() -> tuple[str, ...]:
    """Return the names of the statistics that come with trackperm."""
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
) -> Statistic:
    """Load and compile a statistic.

    Parameters
    ----------
    source : str, path or Statistic
        Name of a built-in statistic, path of a spec (``.yaml`` or ``.yml``), or a statistic to be loaded
        again with other parameters, columns or resolution.
    parameters : mapping, optional
        Values in place of those in the spec.
    columns : mapping, optional
        Actual columns by name: ``id``, ``prediction``, ``label`` and any name in the counts.
    resolution : str, float, Fraction, Decimal, or mapping of str to such, optional
        What decimal counts are rounded to multiples of, all or by name, in place of what the spec says.
    repeats : str, optional
        What becomes of several rows of one example, in place of what the spec says.
    cluster : str, optional
        Column of clusters, in place of that of the spec.
    strata : collection of str, optional
        The strata that there are in the data, where the spec names a column of them.
    classes : collection of str, int or bool, optional
        The classes that there are in the data, where the spec names a column of them.

    Raises
    ------
    SpecError
        If there is no such statistic or its spec is not valid, with file, line and column; also if a spec is
        called like an error and does not say whether a greater value is better.
    InputError
        If a parameter, column or count is named that the statistic does not have, a resolution is not above
        0, or the strata or classes are too many or not those that have weights.
    InputTypeError
        If a parameter's value is neither a finite number nor text nor a boolean, or not of the type of its
        default, a column's no text, or a resolution no number.
    """
    parameters, columns = dict(parameters or {}), dict(columns or {})
    set_: frozenset[str] | None
    if isinstance(source, Statistic):
        changes = (repeats, cluster, resolution, strata, classes)
        if not parameters and not columns and all(change is None for change in changes):
            return source
        document, name = source._source, source.name
        repeats, cluster = repeats or source.repeats, cluster or source.cluster
        replaced = None if cluster == source.cluster else source.cluster
        kept = {key: column for key, column in source.columns.items() if key != replaced}
        set_ = source.set_parameters | parameters.keys()
        parameters, columns = {**source.parameters, **parameters}, {**kept, **columns}
        resolution = source.resolution if resolution is None else resolution
        chosen, found = source.chosen, source.found
    else:
        document, name = _read(source)
        is_builtin = isinstance(source, str) and source in builtin_names()
        set_ = frozenset(parameters) if is_builtin else None
        chosen, found = "", ()
    groups = {"repeats": repeats, "cluster": cluster}
    compiler = _Compiler(document, parameters, columns, groups, resolution, strata, classes, set_)
    return replace(compiler.statistic(name), chosen=chosen, found=found)


def read_statistic(content: str | bytes, origin: str, name: str = "statistic") -> Statistic:
    """Compile a spec that is at hand as text.

    Parameters
    ----------
    content : str or bytes
        The YAML.
    origin : str
        What messages call it.
    name : str
        What the statistic is called where its spec does not say it.

    Raises
    ------
    SpecError
        If it is not valid, with line and column.
    """
    return _Compiler(Document.parse(content, origin), {}, {}).statistic(name)


def _read(source: str | Path) -> tuple[Document, str]:
    builtins = builtin_names()
    if isinstance(source, str) and source in builtins:
        return Document.read(BUILTIN / f"{source}.yaml", f"built-in {source}.yaml"), source
    if not isinstance(source, str | Path):
        raise InputTypeError(f"a statistic is a name, a path or a `Statistic`, not `{type(source).__name__}`")
    path = Path(source)
    if isinstance(source, str) and path.suffix.lower() not in (".yaml", ".yml"):
        raise SpecError(
            f"no statistic is called `{printable(source)}`; built in are {listed(builtins)}",
            hint=f"a spec of your own is a file ending in `.yaml`.{did_you_mean(source, builtins)}",
        )
    return Document.read(path), name_of_file(path)


def name_of_file(path: Path) -> str:
    """Return what a statistic is called whose spec does not say it."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", path.stem)[:64]
