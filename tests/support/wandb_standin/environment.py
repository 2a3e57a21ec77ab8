"""Where the SDK keeps what is not part of a run, and how it is told of the stand-in."""

from __future__ import annotations

from pathlib import Path

from support.wandb_standin.server import API_KEY, Standin

_RETRIED = ("GRAPHQL", "FILE_STREAM", "FILE_TRANSFER")
_WAITS = (("MIN", 0.05), ("MAX", 0.2))
"""How long wandb waits before it tries again; as often as people's does, but sooner."""


def environment(folder: Path, standin: Standin | None = None) -> dict[str, str]:
    """Everything of W&B's that is kept outside a run, in `folder`; online where there is a stand-in."""
    home = folder / "wandb-home"
    home.mkdir(exist_ok=True)
    online = {} if standin is None else {"WANDB_BASE_URL": standin.url}
    return {
        "WANDB_DIR": str(folder),
        **{f"WANDB_{name}_DIR": str(home / name.lower()) for name in ("CACHE", "DATA", "CONFIG")},
        "NETRC": str(home / "netrc"),
        "WANDB_API_KEY": API_KEY,
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_CONSOLE": "off",
        "WANDB_SILENT": "true",
        **{
            f"WANDB_X_{what}_RETRY_WAIT_{end}_SECONDS": str(wait) for what in _RETRIED for end, wait in _WAITS
        },
        **online,
    }
