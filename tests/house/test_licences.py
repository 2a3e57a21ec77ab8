"""Licences of what is installed with trackperm are permitted, and a page of the documentation names them."""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.comparisons import check_golden
from support.installed import required
from support.processes import ROOT, run

PERMITTED = {
    "0BSD",
    "Apache-2.0",
    "BSD",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CNRI-Python",
    "ISC",
    "MIT",
    "MIT-0",
    "MIT-CMU",
    "MPL-2.0",
    "PSF-2.0",
    "Unlicense",
    "Zlib",
}
"""SPDX names of licences under which any program may use a library; `BSD` is any one of them."""

SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
"""What classifiers call them."""

EXCEPTIONS = {
    "huey": "MIT",  # in its file LICENSE; its metadata say nothing
    "skops": "MIT",  # in its file LICENSE; its metadata say nothing
}
"""Packages whose metadata do not say it."""

ELSEWHERE = {"lightning": "Apache-2.0", "pyspark": "Apache-2.0", "transformers": "Apache-2.0"}
"""Direct dependencies that have an environment of their own, and what they say there."""

EXTRAS = (
    "plots",
    "mlflow",
    "wandb",
    "wandb-reports",
    "server",
    "inspect",
    "spark",
    "huggingface",
    "lightning",
    "trec",
)
"""Extras for people who use trackperm; the others are for its tests and demonstration."""


def declared() -> Iterator[tuple[str, str]]:
    """List the direct dependencies with the extra that needs them, empty for those of every installation."""
    for line in importlib.metadata.requires("trackperm") or ():
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name == "trackperm":
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield name, ""
        for extra in EXTRAS:
            if requirement.marker is not None and f'extra == "{extra}"' in str(requirement.marker):
                yield name, extra


def installed() -> set[str]:
    """List what is installed because of trackperm, for all extras that are there."""
    found: dict[str, set[str]] = {}
    for name, _ in declared():
        required(name, frozenset(), found)
    return found.keys() & licences().keys()


@cache
def licences() -> dict[str, str]:
    """Read what every installed package says of its licence, by `pip-licenses`."""
    program = [sys.executable, "-m", "piplicenses", "--with-system", "--from=mixed", "--format=json"]
    result = run(program)
    assert result.returncode == 0, result.stderr
    return {canonicalize_name(each["Name"]): each["License"] for each in json.loads(result.stdout)}


def licence(name: str) -> str:
    """Return the licence of a package as an SPDX expression, or what it says itself where that is unknown."""
    said = licences()[name]
    said = EXCEPTIONS.get(name, said) if said == "UNKNOWN" else said
    said = re.sub(r"^The MIT License \(MIT\)[\s\S]*", "MIT", said)
    parts = dict.fromkeys(SPDX.get(part, part) for part in said.split("; "))
    return " AND ".join(parts)


def kind(name: str) -> str:
    """Return the licence of a package's own code, of BSD licences without their clauses."""
    return re.sub(r"^BSD-.*", "BSD", licence(name).partition(" AND ")[0])


def refused(names: Iterable[str]) -> dict[str, str]:
    """Return the packages whose licences are not all permitted."""
    said = {name: licence(name) for name in names}
    terms = {name: {*re.split(r" AND | OR |[()]", text)} - {""} for name, text in said.items()}
    return {name: said[name] for name in names if not terms[name] <= PERMITTED}


def test_what_is_installed_is_permitted():
    names = installed()
    assert {"scipy", "mlflow", "wandb", "sqlalchemy", "markdown-it-py"} <= names
    assert not refused(names)


def test_others_are_refused():
    """Tools that test are used and not passed on; one of them is under another licence."""
    assert list(refused(["psycopg2-binary", "scipy"])) == ["psycopg2-binary"]


def test_the_page_names_the_direct_dependencies():
    rows = {}
    for name, extra in declared():
        rows.setdefault(name, []).append(f"`{extra}`" if extra else "every installation")
    lines = [
        f"| {name} | {', '.join(rows[name])} | {ELSEWHERE.get(name) or licence(name)} |"
        for name in sorted(rows)
    ]
    check_golden(PAGE.format(rows="\n".join(lines)), ROOT / "docs" / "pages" / "about" / "licences.md")


@pytest.mark.parametrize("name", ["lightning", "pyspark", "transformers"])
def test_what_is_elsewhere_is_not_here(name: str):
    assert name not in licences() or licence(name) == ELSEWHERE[name]


PAGE = """\
# Licences

trackperm is under the Apache License 2.0. These are the libraries that it uses, and what each is needed for:
every installation, or an extra, which `pip install 'trackperm[EXTRA]'` installs. What they bring along is
under licences of the same kinds: `tests/house/test_licences.py` reads all of them, has the list of permitted
ones, and writes this page.

| library | needed for | licence |
|---|---|---|
{rows}
"""
