"""Systems of one file against each other: the GSM8K solutions that OpenAI published."""

from __future__ import annotations

import pytest
from support import reference_data
from support.cli_comparison import check_reference

FILE = reference_data.DATA / "per_example" / "gsm8k_openai" / "example_model_solutions_3sys.jsonl"


@reference_data.needs_data
@pytest.mark.parametrize(
    ("candidate", "baseline"),
    [
        ("6b_finetuning", "6b_verification"),
        ("6b_finetuning", "175b_finetuning"),
        ("6b_verification", "175b_finetuning"),
    ],
)
def test_gsm8k(candidate: str, baseline: str) -> None:
    check_reference(
        f"gsm8k/{candidate}__vs__{baseline}",
        *(f"{FILE}::{system}" for system in (baseline, candidate)),
        *("-s", "mean", "--column", "score=is_correct", "--id", "question"),
    )
