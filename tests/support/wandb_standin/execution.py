"""GraphQL over plain Python objects: the query text that the SDK sends is parsed and walked as it stands."""

from __future__ import annotations

from collections.abc import Mapping, MutableSet, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from graphql import parse
from graphql.language import ast

_INTERFACES = {
    "ArtifactSequence": {"ArtifactCollection"},
    "ArtifactPortfolio": {"ArtifactCollection"},
}


class RefusedError(Exception):
    """What a backend answers with ``errors``."""


@dataclass(frozen=True)
class Node:
    """A GraphQL object: its type, and values or callables that take the arguments of the field."""

    typename: str
    fields: Mapping[str, Any]


class Mutations(Protocol):
    """Methods called as mutations: fields of ``input`` that are not null in, those of the payload out."""

    def __getattribute__(self, name: str, /) -> Any: ...


def node(typename: str, **fields: Any) -> Node:
    return Node(typename, fields)


def connection(nodes: Sequence[Node], first: int | None = None, after: str | None = None) -> Node:
    """One page of `nodes` as Relay lays pages out; cursors are positions."""
    start = int(after or 0)
    page = nodes[start : start + (first or len(nodes) or 1)]
    end = start + len(page)
    return node(
        "Connection",
        edges=[node("Edge", node=item, cursor=str(start + i + 1)) for i, item in enumerate(page)],
        pageInfo=node(
            "PageInfo",
            startCursor=str(start),
            endCursor=str(end) if page else None,
            hasNextPage=end < len(nodes),
            hasPreviousPage=start > 0,
        ),
        totalCount=len(nodes),
    )


def operation_name(query: str) -> str:
    """Return the name of the first operation in `query`."""
    for definition in parse(query, no_location=True).definitions:
        if isinstance(definition, ast.OperationDefinitionNode) and definition.name:
            return definition.name.value
    return "?"


class Execution:
    """One request.

    What is `unmodelled` is answered with null, or refused.
    """

    def __init__(
        self, request: Mapping[str, Any], query: Node, mutations: Mutations, unmodelled: MutableSet[str]
    ) -> None:
        definitions = parse(request["query"], no_location=True).definitions
        self._query, self._mutations, self._unmodelled = query, mutations, unmodelled
        self._operation = next(d for d in definitions if isinstance(d, ast.OperationDefinitionNode))
        self._fragments = {d.name.value: d for d in definitions if isinstance(d, ast.FragmentDefinitionNode)}
        self._variables = dict(request.get("variables") or {})
        for definition in self._operation.variable_definitions or ():
            name = definition.variable.name.value
            if name not in self._variables and definition.default_value is not None:
                self._variables[name] = self._value(definition.default_value)

    def run(self) -> dict[str, Any]:
        """Return the answer's ``data``."""
        if self._operation.operation.value == "query":
            return self._object(self._query, self._operation.selection_set)
        return {
            (field.alias or field.name).value: self._mutate(field)
            for field in self._operation.selection_set.selections
            if isinstance(field, ast.FieldNode)
        }

    def _mutate(self, field: ast.FieldNode) -> Any:
        name = field.name.value
        mutation = getattr(self._mutations, name, None)
        if mutation is None:
            self._unmodelled.add(f"Mutation.{name}")
            raise RefusedError(f"mutation {name} is not modelled")
        given = next(self._value(a.value) for a in field.arguments if a.name.value == "input")
        payload = mutation({key: value for key, value in given.items() if value is not None})
        return self._selected(Node(f"{name[0].upper()}{name[1:]}Payload", payload), field.selection_set)

    def _value(self, tree: ast.ValueNode) -> Any:
        if isinstance(tree, ast.VariableNode):
            return self._variables.get(tree.name.value)
        if isinstance(tree, ast.ListValueNode):
            return [self._value(item) for item in tree.values]
        if isinstance(tree, ast.ObjectValueNode):
            return {field.name.value: self._value(field.value) for field in tree.fields}
        if isinstance(tree, ast.IntValueNode):
            return int(tree.value)
        if isinstance(tree, ast.NullValueNode):
            return None
        return getattr(tree, "value")  # noqa: B009 (of booleans, strings and enumerations)

    def _is_included(self, selection: ast.SelectionNode) -> bool:
        for directive in selection.directives or ():
            condition = self._value(directive.arguments[0].value)
            if bool(condition) != (directive.name.value == "include"):
                return False
        return True

    def _selected(self, value: Any, selections: ast.SelectionSetNode | None) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._selected(item, selections) for item in value]
        if isinstance(value, Node):
            return None if selections is None else self._object(value, selections)
        return value

    def _object(self, of: Node, selections: ast.SelectionSetNode) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        for selection in selections.selections:
            if not self._is_included(selection):
                continue
            if isinstance(selection, ast.FieldNode):
                _merge(answer, {(selection.alias or selection.name).value: self._field(of, selection)})
                continue
            fragment = (
                self._fragments[selection.name.value]
                if isinstance(selection, ast.FragmentSpreadNode)
                else selection
            )
            condition = fragment.type_condition.name.value if fragment.type_condition else of.typename
            if condition in {of.typename, *_INTERFACES.get(of.typename, ())}:
                _merge(answer, self._object(of, fragment.selection_set))
        return answer

    def _field(self, of: Node, field: ast.FieldNode) -> Any:
        name = field.name.value
        if name == "__typename":
            return of.typename
        if name not in of.fields:
            self._unmodelled.add(f"{of.typename}.{name}")
            return None
        value = of.fields[name]
        if callable(value):
            value = value(**{a.name.value: self._value(a.value) for a in field.arguments})
        return self._selected(value, field.selection_set)


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Two selections of one field give one object with the fields of both."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
