"""Notebooks of the site: each is executed when the site is built, and shown with what its cells return.

A line ``<!-- notebook: NAME.ipynb -->`` in a page is replaced by the cells of the file beside it. Cells
are plain Python, so that no kernel is needed: magics are syntax errors. Readers download the same file.
"""

from __future__ import annotations

import ast
import contextlib
import html
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

MARK = re.compile(r"^<!-- notebook: (\S+\.ipynb) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Replace the marks of a page; called by MkDocs for every page."""
    folder = Path(page.file.abs_src_path).parent
    return MARK.sub(lambda match: "\n\n".join(executed(folder / match[1])), markdown)


def executed(notebook: Path) -> Iterator[str]:
    """Yield the cells of a notebook as Markdown, each code cell followed by its output.

    Raises
    ------
    PluginError
        If a cell raises: which one, and what.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"], start=1):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source
            continue
        yield f"```python\n{source}\n```"
        try:
            printed, value = run_cell(source, names)
        except Exception as error:
            raise PluginError(f"{notebook.name}, cell {number}: {type(error).__name__}: {error}") from error
        if printed:
            yield f"```text\n{printed.rstrip()}\n```"
        if value is not None:
            yield f'<div class="notebook-output">\n{as_html(value)}\n</div>'


def run_cell(source: str, names: dict[str, Any]) -> tuple[str, object]:
    """Return what the code of a cell prints, and the value of its last line if that is an expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return printed.getvalue(), value


def as_html(value: object) -> str:
    """Return what a notebook shows for a value: its HTML, or else its text."""
    for method, options in (("_repr_mimebundle_", {"include": {"text/html"}}), ("_repr_html_", {})):
        if (render := getattr(type(value), method, None)) is None:
            continue
        shown = render(value, **options)
        if isinstance(shown, tuple):
            shown = shown[0]
        if isinstance(shown, dict):
            shown = shown.get("text/html")
        if shown:
            return str(shown)
    return f"<pre>{html.escape(repr(value))}</pre>"
