"""What trackperm does by itself reaches no network: imports, help, comparisons of files, and `doctor`.

MLflow and wandb may have habits of their own once they are used; importing them is quiet.
"""

from __future__ import annotations

import pkgutil
from pathlib import Path

import pytest
from support.comparisons import answers
from support.processes import python

import trackperm

REFUSING = """\
import asyncio, contextlib, importlib, os, socket, sys

os.environ.pop("MLFLOW_DISABLE_TELEMETRY", None)  # which tests set
tried = []

def refuse(name):
    def refused(*arguments, **named):
        tried.append((name, arguments))
        raise OSError(f"socket.{name} is called")
    return refused

for name in ("connect", "connect_ex", "sendto", "sendmsg"):
    setattr(socket.socket, name, refuse(name))
for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "create_connection"):
    setattr(socket, name, refuse(name))
"""
"""Code after which whoever looks a name up or connects is refused, and found in `tried`."""

TRAINING = ("trackperm.automation.training.huggingface", "trackperm.automation.training.lightning")
"""What imports libraries that have an environment of their own."""


def modules() -> list[str]:
    return [module.name for module in pkgutil.walk_packages(trackperm.__path__, "trackperm.")]


def test_a_refusal_is_found():
    asked = "urllib.request.urlopen('http://127.0.0.1:9')"
    code = f"import urllib.request\nwith contextlib.suppress(OSError):\n    {asked}\n"
    assert "127.0.0.1" in python(f"{REFUSING}{code}print(tried)")


@pytest.mark.extended
def test_importing_every_module():
    names = [name for name in modules() if name not in TRAINING]
    assert len(names) > 300
    code = f"import trackperm\nfor name in {names!r}:\n    importlib.import_module(name)\n"
    assert python(f"{REFUSING}{code}print(tried)").splitlines()[-1] == "[]"


def test_commands_on_files(tmp_path: Path):
    """And ``doctor``, which contacts no tracker that is not configured."""
    for name, correct in (("a", [True] * 9 + [False] * 9), ("b", [True] * 18)):
        answers(correct).write_parquet(tmp_path / f"{name}.parquet")
    code = (
        f"os.environ.update(HOME={str(tmp_path)!r}, NETRC='none')\n"
        "from trackperm import cli\n"
        "for words in (['--help'], ['doctor'], ['compare', 'a.parquet', 'b.parquet', '-o', 'out.html']):\n"
        "    sys.argv[1:] = words\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        cli.main()\n"
    )
    printed = python(f"{REFUSING}{code}print(tried)", cwd=tmp_path)
    assert "Usage: " in printed
    assert "absent  tracker wandb" in printed
    assert "exact, two-sided, 18 examples" in printed
    assert printed.splitlines()[-1] == "[]"
    assert (tmp_path / "out.html").exists()
