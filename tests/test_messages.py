"""Wording of messages: suggestions, and what must not be shown."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from trackperm.messages import (
    amount,
    did_you_mean,
    listed,
    masked,
    printable,
    printable_lines,
    without_credentials,
    without_secrets,
)

ADDRESSES = [
    ("postgresql://ann:hunter2@db:5432/runs", "postgresql://db:5432/runs"),
    ("postgresql://ann:hun@ter@2@db/runs", "postgresql://db/runs"),
    ("at `https://token@host/a`, not https://host/b", "at `https://host/a`, not https://host/b"),
    ("https://host/?api_key=abc&page=2", "https://host/?api_key=…&page=2"),
    ("`https://host/a?X-Amz-Signature=abc`", "`https://host/a?X-Amz-Signature=…`"),
    ("https://host/@ann?mail=ann@host and ann@host", "https://host/@ann?mail=ann@host and ann@host"),
    ("https://host?mail=ann@host", "https://host?mail=ann@host"),
    ("postgresql://ann:hun/ter#2?@db:5432/runs", "postgresql://db:5432/runs"),
    ("http://ann:hunter#2@host, not http://host", "http://host, not http://host"),
    ("http://ann:hunter?2@host/", "http://host/"),
    ("http://host:5000/@ann and http://host:5000?mail=ann@host", None),
    ("http://[::1]:5000/@ann", None),
    ("https://host/a?sv=1&sig=abc%3D&se=2", "https://host/a?sv=1&sig=…&se=2"),
    ("https://host/?access_token=abc", "https://host/?access_token=…"),
    ("https://host/?design=1", None),
    ("https://host/?auth=abc&code=abc&pat=abc&jwt=abc", "https://host/?auth=…&code=…&pat=…&jwt=…"),
    ("https://host/?session_id=abc&o.code=abc#x", "https://host/?session_id=…&o.code=…"),
    ("https://host/#id_token=abc", "https://host/#id_token=…"),
    ("https://host/?author=ann&codec=flac&pattern=x&encode=1", None),
    ("jdbc:sqlserver://host;user=ann;password=abc", "jdbc:sqlserver://host;user=ann;password=…"),
    ("mssql+pyodbc:///?odbc_connect=DRIVER%3DODBC%3BPWD%3Dabc", "mssql+pyodbc:///?odbc_connect=…"),
    ("no server: host=db password=abc user=ann", "no server: host=db password=… user=ann"),
    ("no server: password = 'ab c' user=ann", "no server: password = … user=ann"),
    ("https://host/?oauth=abc&pw=abc&pwned=1", "https://host/?oauth=…&pw=…&pwned=1"),
    ("no server: {'user': 'ann', 'password': 'ab c'}", "no server: {'user': 'ann', 'password': …}"),
    ('no server: {"password":"abc"}', 'no server: {"password":…}'),
    ("`password`: a column, no password: a word", None),
    ("https://host/?x=eyJhbGciOiJI.eyJzdWIi.abc_-1", "https://host/?x=…"),
    ("token ghp_abcabcabcabcabcabcabcabc, not ghp_x", "token …, not ghp_x"),
    ("postgresql://db/runs?sslmode=verify-full&sslkey=/home/ann/client.key", None),
    ("sqlite:////home/ann@work/mlflow.db", "sqlite:////home/ann@work/mlflow.db"),
]


@pytest.mark.parametrize(("text", "said"), ADDRESSES)
def test_addresses(text: str, said: str | None):
    assert without_credentials(text) == (text if said is None else said)


@pytest.mark.parametrize(("text", "said"), ADDRESSES)
def test_what_is_masked_leaves_everything_else_in_its_place(text: str, said: str | None):
    shown = masked(text)
    assert all(c in (before, "…") for before, c in zip(text, shown, strict=True))
    assert (shown == text) == (said is None or said == text)
    assert without_credentials(shown) == masked(shown) == shown
    for secret in ("hun", "ter#", "token@", "abc", "ab c"):
        assert secret not in shown


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "text",
    [
        "?",
        "&key",
        "?key=",
        "://",
        "://:",
        "://a:",
        "://a@",
        "a?token",
        "://a:@",
        "eyJaaaaaaaa.",
        "ghp_a",
        "password=",
        ";",
    ],
)
def test_long_lines_take_seconds_at_most(text: str):
    """Regression: the time grew with the square of a line's length."""
    began = time.process_time()
    masked((text * 2**18)[: 2**18])
    assert time.process_time() - began < 5


def test_values_of_secret_variables_are_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG")
    monkeypatch.setenv("REGISTRY_AUTH", "correct-horse")
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:battery%21staple@db/runs")
    monkeypatch.setenv("LANGUAGE", "battery")
    said = without_secrets("wJalrXUtnFEMI/K7MDENG, correct-horse, battery!staple, battery%21staple, battery")
    assert said == "…, …, …, …, battery"
    assert without_secrets("Authorization: Bearer abcdefgh") == "Authorization: Bearer …"
    assert without_secrets("authorization: bearer abcdefgh") == "authorization: bearer …"


def test_control_characters_are_escaped():
    assert printable(Path("a\nerror: b\r\x1b[31m\u202e")) == r"a\nerror: b\r\x1b[31m\u202e"
    assert printable("実験 é 👩\u200d🔬 a\\b") == "実験 é 👩\u200d🔬 a\\b"
    assert printable_lines("a\n\tb\x07\x9b") == "a\n\tb\\x07\\x9b"
    assert listed(["a\nb"]) == r"`a\nb`"


def test_did_you_mean() -> None:
    assert did_you_mean("fpp", ["tp", "fp", "fn"]) == " Did you mean `fp`?"
    assert did_you_mean("zzz", ["tp"]) == ""


def test_amount() -> None:
    assert [amount(n, "example") for n in (0, 1, 2, 1319)] == [
        "0 examples",
        "1 example",
        "2 examples",
        "1,319 examples",
    ]
