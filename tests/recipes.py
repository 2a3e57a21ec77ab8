"""The commands that the README of an integration shows, run as its reader runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from processes import ROOT, run


class Recipe:
    """A copy of the folder of an integration, in which its commands run.

    Parameters
    ----------
    name : str
        Of the integration.
    folder : Path
        Where the copy lies.
    env : mapping of str to str
        Environment of the commands.
    """

    def __init__(self, name: str, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.folder = folder / name
        shutil.copytree(ROOT / "integrations" / name, self.folder)
        self._env = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "TRACKPERM_STATE": str(folder / "state"),
            "HOME": str(folder),
            **(env or {}),
        }

    def commands(self) -> list[str]:
        """List the lines of shell blocks, in their order; a line that ends in a backslash goes on."""
        text = (self.folder / "README.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
        return [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.strip()]

    def run(self, command: str, seconds: float = 180) -> subprocess.CompletedProcess[str]:
        """Run one command, with what earlier ones of ``export`` have set."""
        exports = [line for line in self.commands() if line.startswith("export ")]
        lines = [line for line in exports if line != command] + [command]
        return run(["bash", "-euc", "\n".join(lines)], cwd=self.folder, env=self._env, timeout=seconds)

    def succeeds(self, command: str, seconds: float = 180) -> subprocess.CompletedProcess[str]:
        """Run one command, which has to succeed."""
        result = self.run(command, seconds)
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
        return result
