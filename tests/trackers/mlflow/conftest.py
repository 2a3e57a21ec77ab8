"""Experiments of their own for tests of MLflow alone."""

from __future__ import annotations

from uuid import uuid4

import pytest


@pytest.fixture
def experiment() -> str:
    return f"digits-{uuid4().hex[:8]}"
