"""Presentation of results: what ``print``, notebooks and browsers show of a comparison or leaderboard.

A result is a value that knows nothing of pages. The package root names the presenter of each kind of result
(:func:`register`), which is imported when a result is first shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any, Protocol

Bundle = dict[str, str | bytes]
"""Forms of one result by media type, as notebooks take them."""


class Presenter(Protocol):
    """Functions that show one kind of result."""

    def text(self, result: Any) -> str:
        """Return the lines that the command line prints, with options as arguments of Python."""

    def markdown(self, result: Any) -> str:
        """Return Markdown in which names cannot act as markup."""

    def fragment(self, result: Any) -> str:
        """Return HTML for a notebook: no scripts, and no styles that reach beyond it."""

    def page(self, result: Any) -> str:
        """Return a self-contained HTML page."""

    def png(self, result: Any) -> bytes:
        """Return a picture; raise MissingDependencyError without the libraries of ``trackperm[plots]``."""


_presenters: dict[str, Callable[[], Presenter]] = {}


def register(kind: str, load: Callable[[], Presenter]) -> None:
    """Name the presenter of results whose class is called `kind`; `load` imports it."""
    _presenters[kind] = load


class Presented(ABC):
    """Base of results: readable text, and forms for notebooks and browsers.

    Results are equal if they are of one kind and have the same JSON, which contains their key.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def key(self) -> str:
        """Digest that identifies the result."""

    @abstractmethod
    def to_json(self) -> str:
        """Return the result as JSON text."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Presented) or type(self) is not type(other):
            return NotImplemented
        return self is other or (self.key == other.key and self.to_json() == other.to_json())

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def _presenter(self) -> Presenter:
        return _presenters[type(self).__name__]()

    def __str__(self) -> str:
        return self._presenter.text(self)

    def to_html(self) -> str:
        """Render the result as one HTML page that needs no network."""
        return self._presenter.page(self)

    def _repr_html_(self) -> str:
        return self._presenter.fragment(self)

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> Bundle:
        """Return the forms that a notebook may choose from; PNG only if `include` names ``image/png``."""
        shown = self._presenter
        forms: dict[str, Callable[[Any], str | bytes]] = {
            "text/plain": shown.text,
            "text/html": shown.fragment,
            "text/markdown": shown.markdown,
            "image/png": shown.png,
        }
        wanted = [name for name in forms if name != "image/png"] if include is None else include
        return {name: forms[name](self) for name in forms if name in wanted and name not in (exclude or ())}
