"""Outcomes that one comparison allows, against those of the judge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.comparisons import accuracy

from trackperm.automation.judging import duplicates
from trackperm.automation.judging.judge import judge
from trackperm.automation.policy.load import load_policies
from trackperm.comparison import Comparison
from trackperm.ledger import policy_outcome
from trackperm.ledger.policy_outcome import (
    OUTCOME_TAG,
    PARTS_TAG,
    RULE_TAG,
    agreed_outcome,
    possible_outcomes,
)

COMPARISONS: dict[str, Callable[..., Comparison]] = {
    "worse": lambda **options: accuracy(69, 109, 935, 206, **options),
    "better": lambda **options: accuracy(109, 69, 935, 206, **options),
    "not worse": lambda **options: accuracy(100, 110, 900, 200, **options),
    "too few": lambda **options: accuracy(0, 4, 10, 2, **options),
    "equal": lambda **options: accuracy(0, 0, 500, **options),
    "equivalent": lambda **options: accuracy(2, 2, 900, 96, **options),
    "worse within": lambda **options: accuracy(10, 30, 5000, 96, **options),
    "much worse": lambda **options: accuracy(0, 400, 500, 96, **options),
    "lower is better": lambda **options: accuracy(109, 69, 935, 206, statistic="error_rate", **options),
    "one-sided": lambda **options: accuracy(69, 109, 935, 206, alternative="less", **options),
}
RULES: dict[str, dict[str, Any]] = {
    "regression": {},
    "regression with a margin": {"margin": 0.02},
    "not-shown-non-inferior": {"fail_on": "not-shown-non-inferior", "margin": 0.02},
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", COMPARISONS)
def test_against_the_judge(name: str, rule: str, tmp_path: Path):
    keys = RULES[rule]
    file = tmp_path / "trackperm.yaml"
    lines = "".join(f"    {key}: {value}\n" for key, value in keys.items())
    file.write_text(f"policies:\n  - name: gate\n    baseline: {{run: base.csv}}\n{lines}")
    policy = load_policies(file).find()
    margin = {"margin": keys["margin"]} if "margin" in keys else {}
    comparison, better = COMPARISONS[name](**margin), COMPARISONS["better"](**margin)
    for parts in ([comparison], [comparison, better]):
        outcome = judge(policy, parts).outcome
        tags = {RULE_TAG: policy.fail_on, PARTS_TAG: str(len(parts))}
        assert outcome in possible_outcomes(comparison, tags)


@pytest.mark.parametrize(
    ("name", "rule", "parts", "possible"),
    [
        ("worse", "regression", "1", {"fail"}),
        ("worse", "regression", "3", {"fail"}),
        ("worse", "regression", "?", {"fail"}),
        ("better", "regression", "1", {"pass"}),
        ("better", "regression", "2", {"pass", "fail", "undecided"}),
        ("too few", "regression", "1", {"pass", "undecided"}),
        ("worse", "not-shown-non-inferior", "1", set()),  # the rule needs a margin
        ("worse", "another", "1", set()),
    ],
)
def test_what_a_comparison_allows(name: str, rule: str, parts: str, possible: set[str]):
    assert possible_outcomes(COMPARISONS[name](), {RULE_TAG: rule, PARTS_TAG: parts}) == possible


def test_non_inferiority_is_decided_by_the_bounds():
    tags = {RULE_TAG: "not-shown-non-inferior", PARTS_TAG: "1"}
    assert possible_outcomes(COMPARISONS["worse within"](margin=0.02), tags) == {"pass"}
    assert possible_outcomes(COMPARISONS["much worse"](margin=0.02), {**tags, PARTS_TAG: "2"}) == {"fail"}


def test_the_names_of_the_tags_are_those_of_the_judge():
    for name in ("OUTCOME_TAG", "PARTS_TAG", "POLICY_TAG", "RULE_TAG"):
        assert getattr(policy_outcome, name) == getattr(duplicates, name)


@pytest.mark.parametrize(
    ("parts", "agreed"),
    [
        ([("pass", "▲ better"), ("pass", "≈ undecided")], "pass"),
        ([("fail", "▼ worse"), ("fail", "▲ better")], "fail"),
        ([("undecided", "≈ undecided")], "undecided"),
        ([("pass", "▲ better"), ("pass", "▼ worse")], None),
        ([("undecided", "▼ worse")], None),
        ([("pass", "▲ better"), ("fail", "≈ undecided")], None),
        ([(None, "▲ better")], None),
    ],
)
def test_an_outcome_is_agreed_on_by_all_parts(parts: list[tuple[str | None, str]], agreed: str | None):
    tags = [
        {"trackperm.verdict": verdict, **({} if outcome is None else {OUTCOME_TAG: outcome})}
        for outcome, verdict in parts
    ]
    assert agreed_outcome(tags) == agreed
