"""A format of another package: that of CONTRIBUTING.md, installed by pip and read by the command line."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

import pytest
from support.processes import ROOT, run, script

METADATA = "Metadata-Version: 2.1\nName: trackperm-verdicts\nVersion: 1\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def blocks(language: str) -> list[str]:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## Add a format\n")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, flags=re.DOTALL)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip has put the package."""
    folder = tmp_path_factory.mktemp("package")
    (module,), (entry_points,) = blocks("python"), blocks("toml")
    group, name, target = re.findall(r'"(.*?)"\]\n(\w+) = "(.*?)"', entry_points)[0]
    members = {
        "trackperm_verdicts.py": module,
        "trackperm_verdicts-1.dist-info/METADATA": METADATA,
        "trackperm_verdicts-1.dist-info/WHEEL": WHEEL,
        "trackperm_verdicts-1.dist-info/entry_points.txt": f"[{group}]\n{name} = {target}\n",
    }
    record = "".join(f"{member},,\n" for member in members)
    wheel = folder / "trackperm_verdicts-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for member, text in {**members, "trackperm_verdicts-1.dist-info/RECORD": record}.items():
            archive.writestr(member, text)
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--no-build-isolation"]
    result = run([*pip, "--target", folder / "site", wheel])
    assert result.returncode == 0, result.stderr
    return folder / "site"


def write(path: Path, *verdicts: str) -> Path:
    lines = [f"q{i} {verdict}\n" for i, verdict in enumerate(verdicts)]
    path.write_text("%verdicts 1\n" + "".join(lines))
    return path


def test_files_of_another_package_are_compared(installed: Path, tmp_path: Path) -> None:
    paths = write(tmp_path / "a", *["fail"] * 5), write(tmp_path / "b", *["pass"] * 5)
    command = [script("trackperm"), "compare", *paths, "-s", "pass_at_1"]
    result = run(command, env={"PYTHONPATH": str(installed)})
    assert "p = 0.0625" in result.stdout, result.stderr
    assert "p = 0.0625" not in run(command).stdout


def test_its_refusals_are_ours(installed: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "a", "pass", "maybe")
    command = [script("trackperm"), "compare", path, path, "-s", "pass_at_1"]
    result = run(command, env={"PYTHONPATH": str(installed)})
    assert result.returncode == 2
    assert result.stderr == f"error: `{path}`, line 3: 'maybe' is not a verdict\n\nHint: `pass` or `fail`.\n"


def test_the_lines_are_few() -> None:
    (module,) = blocks("python")
    assert sum(1 for line in module.splitlines() if line.strip()) <= 20
