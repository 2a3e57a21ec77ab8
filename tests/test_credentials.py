"""What is said of an address is said without its credentials."""

from __future__ import annotations

import pytest

from trackperm.credentials import without_credentials


@pytest.mark.parametrize(
    ("text", "said"),
    [
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
        ("postgresql://db/runs?sslmode=verify-full&sslkey=/home/ann/client.key", None),
        ("sqlite:////home/ann@work/mlflow.db", "sqlite:////home/ann@work/mlflow.db"),
    ],
)
def test_addresses(text: str, said: str | None):
    assert without_credentials(text) == (text if said is None else said)
