"""Every code block of the README and of the documentation runs, and prints what stands below it.

The blocks of one document run in order and in one folder, which begins as ``make demo`` leaves it.
Classifiers are trained, and another version of a library may train them a little differently: numbers that
come from them have to agree in sign and within a factor of three, everything else exactly. Shares that the
page of wrong stars draws with fixed seeds may differ by 0.05, since another NumPy may draw other numbers.
``TRACKPERM_UPDATE_DOCS=1`` writes into the documents what their console blocks print.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import runpy
import shlex
import shutil
import sqlite3
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import numpy as np
import pytest
from support.command_line import call_trackperm
from support.processes import ROOT, run, script

pytestmark = pytest.mark.tracker

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]\d)")
TIME = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b")
SHARES = re.compile(r"\((\d\.\d+), (\d\.\d+)\)")
RUN_ID = re.compile(r"\b[0-9a-f]{32}\b")


PAGES = ROOT / "docs" / "pages"
DOCUMENTS = [ROOT / "README.md", *sorted(PAGES.rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^<!-- picture: ([a-z-]+) -->$", re.MULTILINE)
RUN = {"console", "pycon"}
"""Languages of the blocks of which a document has one if anything in it runs."""

SIMULATED = {"undecided.md", "wrong-stars.md"}
"""Pages that simulate, which takes a third of the time of all."""

IS_UPDATED = bool(os.environ.get("TRACKPERM_UPDATE_DOCS"))


@dataclass
class Folder:
    """Where blocks run, after `make demo` printed `demo`, with the variables that they export and define."""

    path: Path
    demo: str
    env: dict[str, str]
    names: dict[str, object] = field(default_factory=dict)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Make it the current folder, with the environment that blocks have exported."""
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries; other tests are strict
            patch.chdir(self.path)
            for name, value in self.env.items():
                patch.setenv(name, value)
            yield


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def agree(found: str, stated: str) -> bool:
    """Whether two outputs say the same, their numbers taken loosely."""
    found, stated = (TIME.sub("<time>", RUN_ID.sub("<run id>", text.strip())) for text in (found, stated))
    if NUMBER.sub("<number>", found) != NUMBER.sub("<number>", stated):
        return False
    pairs = zip(numbers(found), numbers(stated), strict=True)
    return all(a == b or (b != 0 and 1 / 3 < a / b < 3) for a, b in pairs)


def are_near(found: str, stated: str) -> bool:
    """Whether two pairs of shares differ by at most 0.05."""
    one, other = (SHARES.fullmatch(text.strip()) for text in (found, stated))
    return bool(one and other) and np.allclose(*(np.float64(m.groups()) for m in (one, other)), 0, 0.05)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Commands of a console block and what they print; `make demo` prints commands itself."""
    if text.startswith("$ make demo\n"):
        yield "make demo", text.removeprefix("$ make demo\n")
        return
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def demo(path: Path) -> str:
    """What `make demo` prints in the folder `path`, with the environment called as it is in a clone."""
    result = run([sys.executable, ROOT / "examples" / "demo.py"], cwd=path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
    return result.stdout.replace(os.path.relpath(script("mlflow"), path), ".venv/bin/mlflow")


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    path = tmp_path_factory.mktemp("documents")
    return Folder(path, demo(path), {})


@pytest.fixture
def folder(demonstrated: Folder, tmp_path: Path) -> Folder:
    """The folder of one document."""
    path = tmp_path / "document"
    shutil.copytree(demonstrated.path, path)
    database = path / "demo-store" / "mlflow.db"
    with contextlib.closing(sqlite3.connect(database)) as store, store:
        for table, column in (("experiments", "artifact_location"), ("runs", "artifact_uri")):
            store.execute(
                f"update {table} set {column} = replace({column}, ?, ?)", (str(demonstrated.path), str(path))
            )
    (path / "examples").symlink_to(ROOT / "examples")
    uri = absolute("sqlite:///demo-store/mlflow.db", path)
    return Folder(path, demonstrated.demo, {"MLFLOW_TRACKING_URI": uri})


def absolute(uri: str, folder: Path) -> str:
    """Return the address with the folder: MLflow keeps one store per address in a process."""
    return uri.replace("sqlite:///", f"sqlite:///{folder}/")


def run_console(text: str, folder: Folder) -> str:
    """Run the commands of a block, and return the block with what they print."""
    printed = []
    for command, stated in commands(text):
        name, _, value = command.removeprefix("export ").partition("=")
        if command.startswith("export "):
            folder.env[name] = absolute(value, folder.path)
            printed.append(f"$ {command}\n")
            continue
        if command == "make demo":
            found = folder.demo
        else:
            program, *arguments = shlex.split(command)
            assert program == "trackperm"
            with folder.entered():
                result = call_trackperm(folder.path, *arguments, env=folder.env)
            assert result.returncode == (2 if stated.startswith("error:") else 0), result.stderr
            found = result.stdout + result.stderr
        same = agree(found, stated)
        assert same or IS_UPDATED, f"$ {command}\n{found}"
        printed.append(f"$ {command}\n{stated if same else found.rstrip() + chr(10)}")
    return "".join(printed)


def run_pycon(text: str, folder: Folder) -> str:
    class Loosely(doctest.OutputChecker):
        def check_output(self, want: str, got: str, optionflags: int) -> bool:
            return (
                super().check_output(want, got, optionflags)
                or ("mlflow:" in text and agree(got, want))
                or ("wrong_stars(" in text and are_near(got, want))
            )

    example = doctest.DocTestParser().get_doctest(text, folder.names, "block", "block", 0)
    said: list[str] = []
    with folder.entered():
        runner = doctest.DocTestRunner(checker=Loosely(), optionflags=doctest.ELLIPSIS)
        runner.run(example, out=said.append, clear_globs=False)
    folder.names = example.globs
    assert runner.failures == 0, "".join(said)
    return text


def write_yaml(text: str, folder: Folder) -> str:
    name = re.match(r"# ([\w-]+\.yaml)\n", text)
    assert name is not None, "the first line of a YAML block says the file's name"
    (folder.path / name[1]).write_text(text, encoding="utf-8")
    return text


RUNNERS = {"console": run_console, "pycon": run_pycon, "yaml": write_yaml, "text": lambda text, _: text}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(
            path, marks=[pytest.mark.extended] * (path.name in SIMULATED), id=str(path.relative_to(ROOT))
        )
        for path in DOCUMENTS
        if RUN & {match[1] for match in BLOCK.finditer(path.read_text(encoding="utf-8"))}
    ],
)
def test_every_block_in_order(document: Path, folder: Folder) -> None:
    text = document.read_text(encoding="utf-8")
    written = BLOCK.sub(lambda match: f"```{match[1]}\n{RUNNERS[match[1]](match[2], folder)}```", text)
    if IS_UPDATED:
        document.write_text(written, encoding="utf-8")


@pytest.mark.extended
def test_the_site_is_built_strictly(tmp_path: Path) -> None:
    """Pages that no menu has, links and anchors that lead nowhere, and names that do not exist are errors."""
    command = [script("mkdocs"), "build", "-q", "-f", ROOT / "docs" / "mkdocs.yml", "-d", tmp_path / "site"]
    done = run(command, env={"NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((tmp_path / "site").rglob("*.html"))) > 30
    shares = re.findall(
        r">(\d+) %</td>", (tmp_path / "site/verdict/wrong-stars.html").read_text(encoding="utf-8")
    )
    assert len(shares) == 24, "each of the twelve ways has a share without and a share with trackperm"
    assert all(
        int(wrong) >= 9 and int(right) <= 7 for wrong, right in zip(shares[::2], shares[1::2], strict=True)
    )
    notebook = (tmp_path / "site/start/notebook.html").read_text(encoding="utf-8")
    assert notebook.count('class="notebook-output"') >= 4


@pytest.mark.extended
def test_other_tests_on_the_page_are_those_of_the_script() -> None:
    command = [sys.executable, ROOT / "docs" / "other_tests.py", "--what", "tests", "--pairs", "1", "--tools"]
    done = run([*command, "trackperm", "t", "wilcoxon", "mcnemar"])
    assert done.returncode == 0, done.stderr
    page = (PAGES / "method" / "other-tests.md").read_text(encoding="utf-8")
    found = [line.split(" | ")[1:3] for line in done.stdout.splitlines()[1:5]]
    assert len(found) == 4
    for cells in found:
        assert f"| {' | '.join(cells)} |" in page


LINK = re.compile(r"https?://[^\s)>\"'`\]|]+")
LOCAL = ("127.0.0.1", "localhost")


def test_external_links_are_well_formed() -> None:
    """No link is followed, since the suite uses no network; hosts of package indexes are in no document."""
    texts = [*DOCUMENTS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *PAGES.rglob("*.ipynb")]
    for document in texts:
        for link in LINK.findall(document.read_text(encoding="utf-8")):
            parts = urlsplit(link.rstrip(".,;:"))
            where = f"{document.relative_to(ROOT)}: {link}"
            assert parts.hostname is not None, where
            if parts.hostname not in LOCAL:
                assert parts.scheme == "https", where
                assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.hostname), where
                assert not re.search(r"(^|\.)(py|test\.py)pi\.|pythonhosted|anaconda", parts.hostname), where


def test_every_notebook_has_a_page() -> None:
    """The build of the site runs the cells of notebooks that a page names."""
    notebooks = sorted(PAGES.rglob("*.ipynb"))
    assert notebooks
    for notebook in notebooks:
        assert f"<!-- notebook: {notebook.name} -->" in "".join(
            page.read_text(encoding="utf-8") for page in notebook.parent.glob("*.md")
        )


def test_pictures_are_shown_or_their_absence_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screenshots = runpy.run_path(str(ROOT / "docs" / "screenshots.py"))
    hook, names = screenshots["on_page_markdown"], screenshots["PICTURES"]
    monkeypatch.setitem(hook.__globals__, "IMAGES", tmp_path)
    page = SimpleNamespace(file=SimpleNamespace(src_uri="start/mlflow.md"))
    absent = {name: hook(f"<!-- picture: {name} -->", page=page) for name in names}
    for name, text in absent.items():
        assert text.startswith('!!! note "A picture is missing in this build"')
        assert text.endswith(names[name].alt)
        for scheme in ("light", "dark"):
            (tmp_path / f"{name}-{scheme}.png").touch()
    shown = hook("before\n\n<!-- picture: compare -->\n", page=page)
    alt = names["compare"].alt
    assert f"![{alt}](../images/compare-light.png#only-light)" in shown
    assert f"![{alt}](../images/compare-dark.png#only-dark)" in shown
    marked = {name for path in PAGES.rglob("*.md") for name in PICTURE.findall(path.read_text("utf-8"))}
    assert marked == set(names)


def test_the_picture_of_the_readme_is_small() -> None:
    assert (ROOT / "docs" / "picture.png").stat().st_size < 100_000


@pytest.mark.slow
def test_demo_adds_nothing_twice(folder: Folder):
    def rows() -> list[tuple[object, ...]]:
        with sqlite3.connect(folder.path / "demo-store" / "mlflow.db") as store:
            query = "select run_uuid, name, status, lifecycle_stage from runs order by run_uuid"
            return store.execute(query).fetchall()

    before = rows()
    printed = demo(folder.path)
    assert rows() == before
    assert printed.count("found ") == 6
    assert printed.count("already logged") == 4


def test_shares_can_differ():
    assert are_near("(0.22, 0.04)", "(0.24, 0.01)")
    assert not are_near("(0.22, 0.1)", "(0.22, 0.04)")
    assert not are_near("(True, 0.04)", "(0.22, 0.04)")


def test_agreement_can_fail():
    assert agree("p = 0.188  exact", "p = 0.19  exact")
    assert not agree("p = 0.188  exact", "p = 0.188  certified")
    assert not agree("p = 0.188", "p = 0.01")
    assert not agree("difference +0.01", "difference -0.01")
    assert agree("logged: mlflow:" + "0a" * 16, "logged: mlflow:" + "1b" * 16)
