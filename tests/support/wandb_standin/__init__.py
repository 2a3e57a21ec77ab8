"""A stand-in for the part of a W&B backend that trackperm and its tests touch.

The client is the shipped SDK with its own core process, talking HTTP over the loopback interface; what it
is answered is checked by its own models. This shows what the client sends and accepts, not what a W&B server
does with it.
"""

from support.wandb_standin.environment import environment
from support.wandb_standin.server import API_KEY, Received, Standin
from support.wandb_standin.state import ArtifactRecord, RunRecord

__all__ = ["API_KEY", "ArtifactRecord", "Received", "RunRecord", "Standin", "environment"]
