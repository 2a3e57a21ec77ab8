"""Problems that pydantic finds, in our words: of policies, specs, and what pages ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from support.command_line import call_trackperm

from trackperm.automation.policy.policy import PolicyDocument, PolicyKeys
from trackperm.errors import InputError
from trackperm.server.jobs.requests import ChoicesRequest, CompareRequest, LeaderboardRequest, read_request
from trackperm.statistic import schema
from trackperm.statistic.document import Document, dump

VALUES: list[Any] = [
    None,
    True,
    3,
    -1,
    2.5,
    10**30,
    float("inf"),
    "",
    "text",
    "x" * 2000,
    [],
    [1],
    [[1]],
    ["a"],
]
VALUES += [[None], {}, {"a": 1}, {"a": [1]}, {"a": None}, [{"a": 1}], ["a"] * 100]
SPEC = schema.form(Document.parse("score: a", "f"))
POLICY = {"name": "a", "baseline": {"newest": {}}}
PYDANTIC = (
    "nput should",
    "alue error",
    "valid ",
    "unable",
    "ermitted",
    "equired",
    "match pattern",
    "at least 1 item",
)


def require_our_words(said: str) -> None:
    assert not [words for words in PYDANTIC if words in said.partition("\n\n    ")[0]], said
    assert "is not a valid value" not in said


@pytest.mark.sample(10)
@pytest.mark.parametrize("key", [*PolicyKeys.model_fields, "nope"])
def test_policies(key: str):
    for value in VALUES:
        document = Document.parse(dump({"policies": [{**POLICY, key: value}]}), "f")
        for error in document.misfits(PolicyDocument):
            require_our_words(error.message)
            assert error.message.startswith("f:")


@pytest.mark.sample(10)
@pytest.mark.parametrize("key", [*SPEC.model_fields, "nope"])
def test_specs(key: str):
    for value in VALUES:
        document = Document.parse(dump({"counts": {"a": "prediction"}, "score": "a", key: value}), "f")
        for error in document.misfits(SPEC):
            require_our_words(error.message)


@pytest.mark.parametrize(
    ("kind", "request_model"),
    [("choices", ChoicesRequest), ("compare", CompareRequest), ("leaderboard", LeaderboardRequest)],
)
def test_requests_of_pages(kind: str, request_model: type[BaseModel]):
    n_refused = 0
    for key in [*request_model.model_fields, "nope"]:
        for value in VALUES:
            try:
                read_request({"kind": kind, "runs": ["a" * 32, "b" * 32], key: value})
            except InputError as error:
                n_refused += 1
                require_our_words(str(error))
    assert n_refused > 20


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[1", "the request is not valid: not JSON: "),
        (b"3", "expected keys and values, found an integer"),
        (b"{}", "the key `kind` is missing"),
        (
            b'{"kind": "chioces"}',
            "`choices`, `compare`, `leaderboard`, found `chioces`\n\nHint: Did you mean `choices`?",
        ),
        (
            b'{"kind": "compare", "runs": ["a"]}',
            "`runs` of the request is not valid: expected at least 2",
        ),
        (b'{"kind": "compare", "runs": ["a", "b"], "alhpa": 1}', "Did you mean `alpha`?"),
        (b'{"kind": "choices"}', "expected either runs or an experiment"),
    ],
)
def test_messages_about_requests(content: bytes, said: str):
    with pytest.raises(InputError) as caught:
        read_request(content)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "a", "b", "--missing", "dorp"], "Did you mean `drop`?"),
        (["compare", "a", "b", "--alternative", "two sided"], "Did you mean `two-sided`?"),
        (["statistic", "check", "a", "--format", "jsn"], "Did you mean `json`?"),
        (["compare", "a", "b", "--alpha", "abc"], None),
        (["compare", "a", "b", "--seed", "1.5"], None),
        (["watch", "--interval", "0"], None),
        (["watch", "--since", "yesterday"], None),
    ],
)
def test_options_of_the_command_line(tmp_path: Path, arguments: list[str], said: str | None):
    ended = call_trackperm(tmp_path, *arguments)
    assert ended.returncode == 2
    assert (said or "expected ") in ended.stderr
    require_our_words(ended.stderr.replace("Invalid value for", ""))
