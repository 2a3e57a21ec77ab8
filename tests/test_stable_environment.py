"""The environment that tests change: native code and processes see it, and its array stays in its place."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="glibc")


def address() -> int | None:
    return ctypes.c_void_p.in_dll(ctypes.CDLL(None), "environ").value


def native(name: str) -> str | None:
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    found = getenv(name.encode())
    return None if found is None else found.decode()


def of_a_process(name: str) -> str:
    command = [sys.executable, "-c", f"import os; print(os.environ.get({name!r}))"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def test_changes_are_seen_and_move_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before, n_variables = address(), len(os.environ)
    for value in ("first", "second"):
        monkeypatch.setenv("TRACKPERM_NEW", value)
        assert native("TRACKPERM_NEW") == of_a_process("TRACKPERM_NEW") == value
    for i in range(300):
        os.environ[f"TRACKPERM_NEW_{i}"] = "x" * i
    assert native("TRACKPERM_NEW_299") == "x" * 299
    for i in range(300):
        del os.environ[f"TRACKPERM_NEW_{i}"]
    monkeypatch.delenv("TRACKPERM_NEW")
    assert native("TRACKPERM_NEW") is None
    assert of_a_process("TRACKPERM_NEW") == "None"
    assert native("PATH") == os.environ["PATH"]
    assert (address(), len(os.environ)) == (before, n_variables)
