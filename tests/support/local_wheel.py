"""A wheel that stands for trackperm and all that it needs, so that `pip install` works without an index."""

from __future__ import annotations

import base64
import hashlib
import sysconfig
import zipfile
from pathlib import Path

from support.processes import ROOT

_NAME = "trackperm_here"


def local_wheel(folder: Path) -> Path:
    """Write a wheel into `folder` whose installation makes this interpreter's packages importable.

    It contains the command `trackperm`, and no code: the code is that which is tested.
    """
    info = f"{_NAME}-0.dist-info"
    places = [sysconfig.get_path("purelib"), str(ROOT)]
    files = {
        f"{_NAME}.pth": "\n".join(places) + "\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: 0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntrackperm = trackperm.cli:main\n",
    }
    record = [f"{path},{_hash(content)},{len(content)}" for path, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    wheel = folder / f"{_NAME}-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return wheel


def _hash(content: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest())
    return f"sha256={digest.decode().rstrip('=')}"
