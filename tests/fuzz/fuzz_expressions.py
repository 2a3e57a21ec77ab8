"""Fuzz the parser of expressions: any text is an expression or refused, in bounded time."""

from __future__ import annotations

from harness import EXPRESSIONS, run
from properties import expression_or_one_error


def check(content: bytes) -> None:
    expression_or_one_error(content.decode("utf-8", "replace"))


if __name__ == "__main__":
    run(check, "expressions", EXPRESSIONS)
