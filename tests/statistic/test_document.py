from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Literal

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict
from support.specs import underlined

from trackperm.errors import SpecError
from trackperm.statistic.document import MAX_BYTES, Document, dump, scalar


def refusal(content: str | bytes) -> str:
    with pytest.raises(SpecError) as caught:
        Document.parse(content, "f.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("y", "y"),
        ("1_000", "1_000"),
        ("12:30:00", "12:30:00"),
        ("2024-01-31", "2024-01-31"),
        ("0b11", "0b11"),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("-7", -7),
        ("0.10", 0.1),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.", 1.0),
        (".inf", float("inf")),
        ("-.INF", float("-inf")),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("'1'", "1"),
        ('"true"', "true"),
        ("=", "="),
    ],
)
def test_scalars_of_yaml_1_2(text: str, value: object) -> None:
    for found in (Document.parse(f"a: {text}\n", "f.yaml").data["a"], scalar(text)):
        assert found == value
        assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", "3:1", "the key `a` is already in line 1"),
        ("a: {b: 1, b: 2}\n", "1:11", "the key `b` is already in line 1"),
        ("a: &x 1\n", "1:4", "anchors are not supported"),
        ("a: *x\n", "1:4", "aliases are not supported"),
        ("a: !!str 1\n", "1:4", "tags are not supported"),
        ("a: !python/object:os.system x\n", "1:4", "tags are not supported"),
        ("<<: {a: 1}\n", "1:1", "merge keys are not supported"),
        ("a: 1\n---\nb: 2\n", "2:1", "more than one YAML document"),
        ("1: a\n", "1:1", "a key must be a name, not an integer"),
        ("? [a]\n: b\n", "1:3", "a key must be a name, not a list"),
        ("- a\n", "1:1", "expected keys and values, found another kind of document"),
        ("a: [1, 2\n", "2:1", "not valid YAML"),
        ("a: b: c\n", "1:5", "not valid YAML"),
        ("a: '\n", "2:1", "not valid YAML"),
        ("a: \x07\n", "1:4", "a character that YAML does not allow"),
        ("a: " + "[" * 1000, "1:23", "nested more than 20 levels deep"),
        ("a: " + "9" * 5000 + "\n", "1:4", "a number of 5000 characters"),
        ('a: "\\ud800"\n', "1:4", "half of a surrogate pair"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "1:4", "anchors are not supported"),
        ("a: &a [*a]\n", "1:4", "anchors are not supported"),
        ("a: {<<: {b: 1}}\n", "1:5", "merge keys are not supported"),
        ("a: !!python/object/apply:os.system ['id']\n", "1:4", "tags are not supported"),
        ("a: !x 1\n", "1:4", "tags are not supported"),
        ("a: ! 1\n", "1:4", "tags are not supported"),
        ("!!map {a: 1}\n", "1:1", "tags are not supported"),
        ("a: 1\nb: {c: {d: 1, d: 2}}\n", "2:15", "the key `d` is already in line 2"),
        ("{a: 1}: b\n", "1:1", "a key must be a name, not a mapping"),
        ("~: b\n", "1:1", "a key must be a name, not nothing"),
        ("a: x\0y\n", "1:5", "a character that YAML does not allow"),
        ("a: \x1b[31m\n", "1:4", "a character that YAML does not allow"),
        ("? " * 1000 + "a", "1:41", "nested more than 20 levels deep"),
        ("a:\tb:\tc\n", "1:3", "not valid YAML"),
    ],
)
def test_refused_with_a_place(text: str, place: str, problem: str) -> None:
    message = refusal(text)
    assert message.startswith(f"f.yaml:{place}: {problem}")
    assert "\n    " in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "f.yaml: the file is empty"),
        ("# nothing\n", "f.yaml: the file is empty"),
        ("a: 1\n" * 100_000, "f.yaml: more than 256 KiB; expected a spec"),
        ("a: 1\n".encode("utf-16"), "f.yaml:1:1: not UTF-8 text"),
        (b"a: \xed\xa0\x80\n", "f.yaml:1:4: not UTF-8 text"),
        (b"a: 1\nb: \xe4\xff\n", "f.yaml:2:4: not UTF-8 text\n\nHint: save the file as UTF-8."),
        ('a: "\\U00110000"\n', "f.yaml: not valid YAML: "),
    ],
)
def test_refused_without_a_line(content: str | bytes, message: str) -> None:
    assert refusal(content).startswith(message)


LARGE = {
    "one line": "a: " + "x" * MAX_BYTES,
    "one key": "? " + "k" * MAX_BYTES,
    "spaces": "a:" + " " * MAX_BYTES,
    "lines": "a: 1" + "\n" * MAX_BYTES,
    "folded lines": "a: x" + "\n x" * (MAX_BYTES // 3),
    "a block": "a: |\n" + "  x\n" * (MAX_BYTES // 4),
    "keys": "".join(f"k{i}: 1\n" for i in range(MAX_BYTES // 12)),
    "open brackets": "[" * MAX_BYTES,
    "open braces": "{" * MAX_BYTES,
    "an open quote": "a: '" + "x\n " * (MAX_BYTES // 3),
    "directives": "%a\n" * (MAX_BYTES // 3),
    "colons": ":" * MAX_BYTES,
    "anchors": "&a " * (MAX_BYTES // 3),
    "digits": "a: " + "1" * MAX_BYTES,
    "escapes": 'a: "' + "\\x41" * (MAX_BYTES // 4),
    "values": "a: [" + "1," * (MAX_BYTES // 2),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_the_largest_files_take_seconds_at_most(text: str) -> None:
    started = time.process_time()
    with contextlib.suppress(SpecError):
        Document.parse(text[:MAX_BYTES], "f.yaml")
    assert time.process_time() - started < 5


def test_too_many_keys_and_values() -> None:
    text = "counts:\n" + "".join(f"  c{i}: 1\n" for i in range(20_000))
    assert refusal(text).startswith("f.yaml:5000:10: more than 10,000 keys and values")


@pytest.mark.parametrize("name", ["n" * 200, "n" * 100_000])
def test_long_names_are_cut_in_messages(name: str) -> None:
    with pytest.raises(SpecError, match=r"unknown key `n+…n+` at `") as caught:
        Document.parse(f"name: a\n? {name}\n: 1\n", "f.yaml").validate(Shape)
    assert len(caught.value.message) < 500


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="there is no file"):
        Document.read(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="cannot be read: Is a directory"):
        Document.read(tmp_path)
    with pytest.raises(SpecError, match="cannot be read"):
        Document.read(Path("a\0b"))


def test_pipes_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f.yaml")
    with pytest.raises(SpecError, match=r"f.yaml` is a pipe; expected an ordinary file"):
        Document.read(tmp_path / "f.yaml")


def test_byte_order_mark_and_line_ends() -> None:
    document = Document.parse("\ufeffa: x\r\nb: |\r\n  foo\r\n  bar\r\n".encode(), "f.yaml")
    assert document.data == {"a": "x", "b": "foo\nbar\n"}
    assert str(document.passage(("b",)).error("no", 4, 7)).startswith("f.yaml:4:3:")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("e: foo + bar\n", "1:10"),
        ("top: 1\ne:   foo + bar   # comment\n", "2:12"),
        ("e: foo +\n     bar\n", "2:6"),
        ("e: foo\n   +\n\n\n   bar\n", "5:4"),
        ("e: 'foo + bar'\n", "1:11"),
        ("e: 'it''s + bar'\n", "1:13"),
        ("e: 'foo +\n     bar'\n", "2:6"),
        ('e: "foo + bar"\n', "1:11"),
        ("e: |\n  foo +\n  bar\n", "3:3"),
        ("e: |-\n  foo +\n    bar", "3:5"),
        ("e: |2  # comment\n   foo +\n  bar\n", "3:3"),
        ("e: |+\n\n\n  foo\n\n  + bar\n\n", "6:5"),
        ("{e: foo + bar, f: 1}\n", "1:11"),
        # Where characters cannot be traced: the start of the scalar.
        ('e: "f\\x6fo + bar"\n', "1:4"),
        ('e: "foo +\n   bar"\n', "1:4"),
    ],
)
def test_place_inside_a_scalar(text: str, place: str) -> None:
    passage = Document.parse(text, "f.yaml").passage(("e",))
    at = passage.text.index("bar")
    message = str(passage.error("wrong", at, at + 3))
    assert message.startswith(f"f.yaml:{place}: wrong at `$.e`")
    if not place.endswith("1:4"):
        assert underlined(message) == "bar"


def test_place_at_the_end_of_a_scalar() -> None:
    passage = Document.parse("e: foo +\nf: 1\n", "f.yaml").passage(("e",))
    assert str(passage.error("wrong", 5, 6)).startswith("f.yaml:1:9: ")


def test_folded_blocks_are_not_expressions() -> None:
    with pytest.raises(SpecError, match=r"f\.yaml:1:4: a folded block at `\$\.e`"):
        Document.parse("e: >\n  foo\n", "f.yaml").passage(("e",))


@pytest.mark.parametrize("quote", ["", "'"])
def test_places_among_many_blanks_take_time_with_their_number(quote: str) -> None:
    """Regression: one took time with the square of it, ten seconds for 130 KiB."""
    n = MAX_BYTES - 100
    document = Document.parse(f"e: {quote}foo +{' ' * n}bar{quote}\n", "f.yaml")
    started = time.process_time()
    passage = document.passage(("e",))
    assert time.process_time() - started < 5
    at = passage.text.index("bar")
    assert str(passage.error("wrong", at, at + 3)).startswith(f"f.yaml:1:{9 + len(quote) + n}: ")


def test_wide_characters_and_tabs_keep_carets_in_place() -> None:
    passage = Document.parse("e: '数据\t+ bar'\n", "f.yaml").passage(("e",))
    message = str(passage.error("wrong", 5, 8))
    assert message.split("\n")[2:4] == ["    e: '数据\t+ bar'", "    " + " " * 8 + "\t  ^^^"]


def test_long_lines_are_cut_around_the_place() -> None:
    passage = Document.parse(f"e: {'a' * 500} bar {'b' * 500}\n", "f.yaml").passage(("e",))
    message = str(passage.error("wrong", 501, 504))
    assert underlined(message) == "bar"
    assert max(map(len, message.split("\n"))) < 130


@pytest.mark.parametrize("before", [0, 30, 55, 100, 400])
@pytest.mark.parametrize("after", [0, 30, 400])
def test_lines_are_shown_without_credentials(before: int, after: int) -> None:
    """Regression: what the cut had left of an address was not known for one."""
    uri = "https://someuser:hunter2secretpassword@h.example/?token=swordfish"
    document = Document.parse(f'e: ["{"a" * before}", bar, "{"b" * after} {uri}", baz]\n', "f.yaml")
    for number, word in ((1, "bar"), (3, "baz")):
        message = str(document.error("wrong", ("e", number)))
        assert underlined(message) == word
        for secret in ("some", "user", "hunter2", "password", "sword", "fish"):
            assert secret not in message


def test_messages_are_cut_without_showing_credentials() -> None:
    password = "hunter2" * 20
    document = Document.parse(f"e: https://ann:{password}@host/{'a' * 80}\n", "f.yaml")
    error = document.error(f"found `{document.data['e']}`", ("e",))
    assert "found `https://host/aaa" in error.message
    assert "hunter2" not in error.message


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    alternative: Literal["two-sided", "less"] = "less"
    version: Literal[1, 2] = 1
    flag: bool = True
    table: dict[str, str] = {}


@pytest.mark.parametrize(
    ("text", "message", "at", "hint"),
    [
        (
            "name: a\nnmae: b\n",
            "f.yaml:2:1: unknown key `nmae` at `$.nmae`",
            "nmae",
            "the keys are `name`, `alternative`, `version`, `flag`, `table`. Did you mean `name`?",
        ),
        ("flag: true\n", "f.yaml:1:1: the key `name` is missing at `$`", "flag: true", None),
        ("name: 1\n", "f.yaml:1:7: expected text, found an integer at `$.name`", "1", "put it in quotes."),
        ("name: [a]\n", "f.yaml:1:7: expected text, found a list at `$.name`", "[a]", None),
        ("name:\n", "f.yaml:1:6: expected text, found nothing at `$.name`", "", None),
        (
            "name: a\nflag: yes\n",
            "f.yaml:2:7: expected `true` or `false`, found text at `$.flag`",
            "yes",
            None,
        ),
        (
            "name: a\ntable: 1\n",
            "f.yaml:2:8: expected keys and values, found an integer at `$.table`",
            "1",
            None,
        ),
        (
            "name: a\ntable: {x y: 1.5}\n",
            "f.yaml:2:14: expected text, found a decimal at `$.table['x y']`",
            "1.5",
            "put it in quotes.",
        ),
        (
            "name: a\nalternative: two sided\n",
            "f.yaml:2:14: expected one of `two-sided`, `less`, found `two sided` at `$.alternative`",
            "two sided",
            "Did you mean `two-sided`?",
        ),
        (
            "name: a\nversion: 3\n",
            "f.yaml:2:10: expected one of `1`, `2`, found `3` at `$.version`",
            "3",
            None,
        ),
        (
            "name: a\nversion: '1'\n",
            "f.yaml:2:10: expected one of `1`, `2`, found text at `$.version`",
            "'1'",
            "Did you mean `1`?",
        ),
        # Of several problems, the first in the document.
        (
            "name: a\nflag: 1\nmore: 2\n",
            "f.yaml:2:7: expected `true` or `false`, found an integer at `$.flag`",
            "1",
            None,
        ),
    ],
)
def test_misfits(text: str, message: str, at: str, hint: str | None) -> None:
    with pytest.raises(SpecError) as caught:
        Document.parse(text, "f.yaml").validate(Shape)
    assert caught.value.message.split("\n\n")[0] == message
    assert underlined(str(caught.value)).strip() == at
    assert caught.value.hint == hint


def test_fitting() -> None:
    shape = Document.parse("name: a\ntable: {b: c}\n", "f.yaml").validate(Shape)
    assert shape == Shape(name="a", table={"b": "c"})


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff")),
    st.sampled_from(["0o7", "0x1f", "yes", "null", "~", "1e5", "012", "- a", "a: b", "#", "'", "1_0", "="]),
)


@given(st.dictionaries(st.sampled_from("abcdef"), SCALARS, min_size=1))
def test_dump_reads_back(data: dict[str, object]) -> None:
    assert Document.parse(dump(data), "f.yaml").data == data


@settings(deadline=None)
@given(
    st.text(alphabet=st.sampled_from("ab1:-,.?![]{}&*|>'\"%@`# \n\t\\~<=\x85\u2028\r\ufeff🙂")) | st.text()
)
@example("? ")
@example("%YAML 9999999999999999.1\n--- a: 1")
@example("%TAG ! !\n---\na: 1\n")
@example("a: !<tag:yaml.org,2002:python/object> 1")
@example("- " * 3000 + "a")
def test_arbitrary_text_is_a_document_or_one_error(text: str) -> None:
    try:
        document = Document.parse(text, "f.yaml")
    except SpecError as error:
        message = str(error)
    else:
        message = f"f.yaml: {document.data}"
    assert message.startswith("f.yaml:")


@settings(deadline=None)
@given(st.binary())
def test_arbitrary_bytes_are_a_document_or_one_error(content: bytes) -> None:
    with contextlib.suppress(SpecError):
        Document.parse(content, "f.yaml")


@settings(deadline=None)
@given(
    st.text(alphabet=st.sampled_from("ab'\"+ \n\t#:|\\"), min_size=1),
    st.sampled_from([None, "'", '"', "|"]),
    st.sampled_from(["", "first: 1\n", "# ä🙂\n\n"]),
)
def test_every_traced_character_is_the_one_in_the_file(value: str, style: str | None, before: str) -> None:
    node = yaml.MappingNode(
        "tag:yaml.org,2002:map",
        [
            (
                yaml.ScalarNode("tag:yaml.org,2002:str", "e"),
                yaml.ScalarNode("tag:yaml.org,2002:str", value, style=style),
            )
        ],
    )
    text = before + yaml.serialize(node, width=12)
    passage = Document.parse(text, "f.yaml").passage(("e",))
    assert passage.text == value
    start = str(passage.error("wrong", 0, 1)).split(": ")[0]
    lines = text.split("\n")
    for i, character in enumerate(value):
        where = str(passage.error("wrong", i, i + 1)).split(": ")[0]
        _, line, column = where.split(":")
        traced = f'{before}e: "' not in text or where != start  # escapes in double quotes cannot be traced
        if traced and not character.isspace():
            assert lines[int(line) - 1][int(column) - 1] == character
