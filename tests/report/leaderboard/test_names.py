from __future__ import annotations

import pytest

from trackperm.report.leaderboard.names import short_names


@pytest.mark.parametrize(
    ("names", "prefix", "suffix", "rest"),
    [
        (["large-lr1-seed1", "large-lr2-seed1"], "large-", "-seed1", ["lr1", "lr2"]),
        (["model/lr1e-05-s1", "model/lr2e-05-s1"], "model/", "-s1", ["lr1e-05", "lr2e-05"]),
        (["release-0.1", "release-0.2"], "release-", "", ["0.1", "0.2"]),
        (["first.csv", "second.csv"], "", "", ["first.csv", "second.csv"]),
        (["runs/first.csv", "runs/second.csv"], "runs/", ".csv", ["first", "second"]),
        (["sweep-base", "sweep-base-large"], "sweep-", "", ["base", "base-large"]),
        (["aaaaaa-", "aaaaaa-b"], "", "", ["aaaaaa-", "aaaaaa-b"]),
        (["alone-among-runs"], "", "", ["alone-among-runs"]),
    ],
)
def test_what_all_names_share_is_left_out_at_ends_of_words(
    names: list[str], prefix: str, suffix: str, rest: list[str]
) -> None:
    found = short_names(names)
    assert (found.prefix, found.suffix, list(found.names)) == (prefix, suffix, rest)
    assert [f"{prefix}{name}{suffix}" for name in found.names] == names
    assert (found.sentence is None) == (not prefix + suffix)


def test_long_names_keep_the_place_where_they_differ() -> None:
    names = [f"a long beginning of words {'x' * 40} {place:03d} {'y' * 40}" for place in range(120)]
    found = short_names([*names, "b"]).on_one_line(30)
    assert all(len(name) <= 30 for name in found)
    assert len(set(found)) == 121
    assert all(f" {place:03d} " in name for place, name in enumerate(found[:-1]))


def test_names_that_would_become_equal_stay_whole() -> None:
    names = [f"{'x' * 50}{middle}{'x' * 20}{end}{'x' * 50}" for middle in "ab" for end in "ab"]
    found = short_names(names).on_one_line(20)
    assert len(set(found)) == 4


def test_names_are_on_one_line() -> None:
    assert short_names(["two\nlines", "one"]).on_one_line() == ("two lines", "one")
