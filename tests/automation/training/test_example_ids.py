"""Digests by which examples without ids are known: the same for equal examples, whatever holds them."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np
import pytest

from trackperm.automation.training.example_ids import example_digest, numbered
from trackperm.errors import InputError

EXAMPLE = {"input_ids": [5, 7, 9], "pixels": [[0.0, 0.5], [1.0, 0.25]], "text": "é", "flags": [True, False]}


@pytest.mark.parametrize(
    "same",
    [
        dict(reversed(EXAMPLE.items())),
        {**EXAMPLE, "input_ids": np.array([5, 7, 9], dtype=np.int32)},
        {**EXAMPLE, "input_ids": (5, 7, 9)},
        {**EXAMPLE, "pixels": np.array([[0.0, 0.5], [1.0, 0.25]], dtype=np.float32)},
        {**EXAMPLE, "pixels": [np.array([-0.0, 0.5]), [1.0, 0.25]]},
        {**EXAMPLE, "flags": np.array([True, False])},
    ],
)
def test_equal_examples(same: Any):
    assert example_digest(same) == example_digest(EXAMPLE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (EXAMPLE, {**EXAMPLE, "input_ids": [5, 9, 7]}),
        (EXAMPLE, {**EXAMPLE, "text": "e"}),
        (EXAMPLE, {**EXAMPLE, "pixels": [0.0, 0.5, 1.0, 0.25]}),
        ([["a"], ["b"]], [["a", "b"]]),
        (["ab", "c"], ["a", "bc"]),
        ([1, "2"], ["1", "2"]),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ([[1, 2], [3]], [[1], [2, 3]]),
        (None, "None"),
        (b"a", "a"),
        ([], [[]]),
        (10**30, 10**30 + 1),
        (float("nan"), 0.0),
    ],
)
def test_other_examples(one: Any, other: Any):
    assert example_digest(one) != example_digest(other)


def test_against_hashlib():
    """What is logged today has to pair with what will be logged tomorrow, on other machines."""
    written = b"m2;" + b"s9;input_ids" + b"a(3,);" + struct.pack("<3q", 5, 7, 9)
    written += b"s4;rest" + b"l4;" + b"s1;a" + b"n1;" + b"nNone;" + b"b1;x"
    expected = hashlib.blake2b(written, digest_size=8).hexdigest()
    assert example_digest({"rest": ["a", True, None, b"x"], "input_ids": [5, 7, 9]}) == expected


def test_equal_examples_are_numbered():
    assert numbered(["a", "b", "a", "a"]) == ["a", "b", "a-2", "a-3"]


@pytest.mark.parametrize("value", [object(), {1, 2}, [object()], np.array([object()])])
def test_what_has_no_digest(value: Any):
    with pytest.raises(InputError, match="which has no digest to identify the example in other runs"):
        example_digest({"x": value})
