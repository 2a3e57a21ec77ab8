"""Elements and texts of a page or a part of one, all of which have to be closed."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = {"meta", "link", "br", "img", "hr", "input", "wbr"}


class Markup(HTMLParser):
    """Elements with their attributes, and texts with the names of the elements around them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]

    def within(self, *tags: str) -> list[tuple[str, str]]:
        """List the texts inside of elements of these names, with the outermost of them."""
        found = [([tag for tag in around if tag in tags], text) for around, text in self.texts]
        return [(around[0], text) for around, text in found if around]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self._open), data))
