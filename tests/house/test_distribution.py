"""The wheel and the sdist: content, metadata, and installations of each extra in an empty environment.

uv, which is quicker than pip, gets hatchling and the packages that the extras name from the package index
that pip is configured with.
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from functools import cache
from pathlib import Path

import pytest
from support.comparisons import answers
from support.processes import ROOT, run, script

from trackperm.cli.doctor import EXTRAS
from trackperm.version import __version__

ANSWERED = "p = 0.000488  exact, two-sided, 40 examples (12 discordant: 12 better, 0 worse)   ▲ better"

HEAVY = {
    "spark": (),
    # a version whose wheel needs no GPU libraries, of gigabytes
    "huggingface": ("torch==2.13.0",),
    "lightning": ("torch==2.13.0",),
}
"""Extras of hundreds of megabytes, with what is installed beside them."""

BY_DAY = ("mlflow", "wandb")
"""Extras that are installed alone with every change; the others are at night."""


OPTIONS_OF_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}
"""Options of pip, with the variable that says the same to uv."""


@cache
def package_index() -> dict[str, str]:
    """Return pip's configuration as an environment of uv."""
    listed = run([sys.executable, "-m", "pip", "config", "list"])
    found = re.findall(r"^(:env:|\w+)\.([\w-]+)='(.*)'$", listed.stdout, re.MULTILINE)
    found.sort(key=lambda option: option[0] == ":env:")  # variables override files
    env = {OPTIONS_OF_UV[name]: value for _, name, value in found if name in OPTIONS_OF_UV}
    if "UV_FIND_LINKS" in env:
        env["UV_FIND_LINKS"] = ",".join(env["UV_FIND_LINKS"].split())
    return {**env, "UV_INDEX_STRATEGY": "unsafe-best-match"}  # the best of all indexes, as pip takes it


def environment(folder: Path) -> Path:
    """Make an empty environment, and return its Python."""
    made = run([script("uv"), "venv", "-q", "--python", sys.executable, folder])
    assert made.returncode == 0, made.stderr
    return folder / "bin" / "python"


def install(interpreter: Path, *packages: str) -> None:
    command = [script("uv"), "pip", "install", "-q", "--python", interpreter, *packages]
    result = run(command, env=package_index(), timeout=1800)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("built")
    builder = environment(folder / "builder")
    install(builder, "hatchling>=1.26")
    result = run([builder, "-m", "hatchling", "build", "--directory", folder / "dist"], timeout=600)
    assert result.returncode == 0, result.stderr
    return folder / "dist"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def tracked(*folders: str) -> set[str]:
    """Files of the repository in these folders, or at its top."""
    listed = run(["git", "ls-files", "--", *folders])
    assert listed.returncode == 0, listed.stderr
    return set(listed.stdout.splitlines())


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_hints_name_extras_that_exist():
    files = [*(ROOT / "trackperm").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    files += (ROOT / "integrations").rglob("*.md")
    named = {
        extra.strip()
        for file in files
        for group in re.findall(r"trackperm\[([a-z0-9, -]+)\]", file.read_text(encoding="utf-8"))
        for extra in group.split(",")
    }
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    known = re.findall(r"^([a-z0-9-]+) = \[", project.partition("[project.optional-dependencies]")[2], re.M)
    assert {"mlflow", "wandb", "plots", "spark"} <= named <= set(known)
    assert set(EXTRAS) <= set(known)


@pytest.mark.slow
def test_the_wheel_has_the_package_and_nothing_else(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == tracked("trackperm")
    assert {"trackperm/py.typed", "trackperm/statistic/template.yaml"} <= names
    assert {Path(name).parts[2] for name in names if name.startswith("trackperm/server/")} >= {
        "static",
        "templates",
    }
    assert wheel.stat().st_size < 3_000_000


@pytest.mark.slow
def test_metadata(wheel: Path):
    found = metadata(wheel)
    assert (found["Name"], found["Version"]) == ("trackperm", __version__)
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Author"] == "the trackperm developers"
    assert found["Author-Email"] is None
    assert found["Description-Content-Type"] == "text/markdown"
    assert str(found.get_payload()).startswith("# trackperm")
    assert set(EXTRAS) <= set(found.get_all("Provides-Extra", []))
    newest = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n## ")[2].partition("\n")[0]
    assert re.fullmatch(rf"{re.escape(__version__)} \(\d{{4}}-\d\d-\d\d\)|Unreleased", newest)


@pytest.mark.slow
def test_the_sdist_has_the_repository_and_no_data(built: Path):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        files = {member.name.partition("/")[2]: member.size for member in archive if member.isfile()}
    assert set(files) - {"PKG-INFO"} <= tracked()
    assert tracked("trackperm", "tests", "examples", "docs") <= set(files)
    assert max(files.values()) < 500_000
    assert path.stat().st_size < 4_000_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "extra",
    ["", *(pytest.param(extra, marks=[pytest.mark.nightly] * (extra not in BY_DAY)) for extra in EXTRAS)],
)
def test_each_extra_alone_in_an_empty_environment(extra: str, wheel: Path, tmp_path: Path):
    interpreter = environment(tmp_path / "environment")
    wanted = f"trackperm[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    install(interpreter, wanted, *HEAVY.get(extra, ()))
    answers([False] * 12 + [True] * 28).write_csv(tmp_path / "old.csv")
    answers([True] * 40).write_csv(tmp_path / "new.csv")
    program = interpreter.parent / "trackperm"
    compared = run([program, "compare", "old.csv", "new.csv"], cwd=tmp_path)
    assert (compared.returncode, compared.stdout.splitlines()[1]) == (0, ANSWERED), compared.stderr
    checked = run([program, "doctor"], cwd=tmp_path, env={"HOME": str(tmp_path)})
    assert checked.returncode == 0, checked.stdout
    lines = re.findall(r"^(ok|absent|fails) +extra (\S+)", checked.stdout, re.MULTILINE)
    assert ("ok", extra) in [*lines, ("ok", "")]
    page = run([program, "compare", "old.csv", "new.csv", "-o", "page.html"], cwd=tmp_path)
    if page.returncode:
        assert "pip install 'trackperm[plots]'" in page.stderr
    else:
        assert "▲" in (tmp_path / "page.html").read_text(encoding="utf-8")
