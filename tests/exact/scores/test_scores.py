from __future__ import annotations

import itertools
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trackperm.errors import InputError, InputTypeError, LargeScoreError
from trackperm.exact import difference_test
from trackperm.exact.scores.denominators import denominators
from trackperm.exact.scores.floats import ScaledScores
from trackperm.exact.scores.resolution import format_unit, read_resolution
from trackperm.exact.scores.scaling import scale_scores


def exact(scores: ScaledScores) -> tuple[list[Fraction], list[Fraction]]:
    """The scores that the integers stand for."""
    candidate, baseline = (
        [int(integer) * scores.unit for integer in run] for run in (scores.candidate, scores.baseline)
    )
    return candidate, baseline


def shaken(values: list[Fraction], steps: list[int]) -> np.ndarray[Any, Any]:
    """`values` in floats, each a few units in the last place off, as arithmetic leaves them."""
    floats = np.array([float(value) for value in values])
    for _ in range(2):
        direction = np.where(np.array(steps[: len(values)]) > 0, np.inf, -np.inf)
        floats = np.where(np.array(steps[: len(values)]) == 0, floats, np.nextafter(floats, direction))
    return np.where(np.array(values) == 0, 0.0, floats)


DECIMALS = st.integers(0, 9).flatmap(
    lambda d: st.lists(
        st.integers(-(10**d), 10**d).map(lambda m: Fraction(m, 10**d)), min_size=1, max_size=20
    )
)
FRACTIONS = st.lists(
    st.tuples(st.integers(-500, 500), st.integers(1, 60)).map(lambda pair: Fraction(*pair)),
    min_size=1,
    max_size=20,
)
STEPS = st.lists(st.integers(-1, 1), min_size=20, max_size=20)


@given(DECIMALS, STEPS)
def test_decimals_are_read_back(values: list[Fraction], steps: list[int]) -> None:
    scores = scale_scores(shaken(values, steps), [float(value) for value in values])
    assert exact(scores) == (values, values)
    assert scores.largest_change == 0.0
    assert scores.how in ("integers", "decimals")


@given(FRACTIONS, STEPS)
def test_fractions_are_read_back(values: list[Fraction], steps: list[int]) -> None:
    scores = scale_scores(shaken(values, steps), [float(value) for value in values])
    assert exact(scores) == (values, values)
    assert scores.largest_change == 0.0


@given(
    st.lists(st.integers(0, 10**4).map(lambda m: Fraction(m, 10**4)), min_size=1, max_size=20),
    st.booleans(),
)
def test_single_precision_is_read_back(values: list[Fraction], as_json: bool) -> None:
    singles = np.array(values, dtype=float).astype(np.float32)
    given = singles.astype(np.float64) if as_json else singles
    assert exact(scale_scores(given, [float(value) for value in values])) == (values, values)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_floats_are_exact_or_their_rounding_is_noted(values: list[float]) -> None:
    scores = scale_scores(values, values)
    changes = [abs(x - Fraction(y)) for x, y in zip(exact(scores)[0], values, strict=True)]
    if scores.how == "binary":
        largest = max(map(abs, map(Fraction, values)))
        assert max(changes) <= largest * Fraction(1, 2**52)
        assert scores.largest_change == float(max(changes))
    else:
        assert all(change <= abs(Fraction(y)) / 2**49 for change, y in zip(changes, values, strict=True))


@pytest.mark.sample(1)
@pytest.mark.parametrize("single", [False, True])
def test_arbitrary_reals_are_rarely_taken_for_decimals_or_fractions(single: bool) -> None:
    reals = np.random.default_rng(3).random(1000)
    reals = reals.astype(np.float32) if single else reals
    found = [scale_scores([x], [x]).how for x in reals]
    # At most one in 500 in each of two readings; 4 standard deviations above that mean.
    expected = 2 * len(reals) / 500
    assert len(found) - found.count("binary") <= expected + 4 * expected**0.5


@given(st.lists(st.floats(0, 30), min_size=1, max_size=20), st.integers(1, 200))
def test_denominators_against_limited_fractions(values: list[float], limit: int) -> None:
    tolerance = 1e-9
    found = denominators(np.array(values), tolerance, limit)
    near = [Fraction(x).limit_denominator(limit) for x in values]
    all_near = all(abs(y - Fraction(x)) <= tolerance * Fraction(x) for x, y in zip(values, near, strict=True))
    assert (found is not None) == all_near
    if found is not None:
        nearest = [Fraction(round(Fraction(x) * int(q)), int(q)) for x, q in zip(values, found, strict=True)]
        assert all(abs(float(y) - x) <= 1.001 * tolerance * x for x, y in zip(values, nearest, strict=True))
        assert all(int(q) <= y.denominator for q, y in zip(found, near, strict=True))


CASES: dict[str, tuple[Any, Any, str, Fraction, str]] = {
    "integers": ([1, 2], [True, False], "integers", Fraction(1), "integers"),
    "floats that are integers": ([1.0, 2.0], [3.0, -0.0], "integers", Fraction(1), "integers"),
    "ties of decimals": (
        [0.1 + 0.2], [0.3], "decimals", Fraction(1, 10), "1 decimal, without rounding",
    ),
    "a large offset": (
        [1e6 + 0.1], [1e6 + 0.25], "decimals", Fraction(1, 100), "2 decimals, without rounding",
    ),
    "thirds": (
        [1 / 3 + 1 / 6], [0.5 - 1 / 3], "fractions", Fraction(1, 6),
        "fractions, without rounding: multiples of 1/6",
    ),
    "reals": (
        [2**-1.5, 0.5], [0.25, 0.125], "binary", Fraction(1, 2**54),
        "binary numbers, without rounding: multiples of 2**-54",
    ),
    "reals of many scales": (
        [np.pi, 1e-9 * np.e], [0, 0], "binary", Fraction(1, 2**50),
        "rounded to multiples of 2**-50 (largest change 2.3e-16)",
    ),
    "Fraction beside float": (
        [Fraction(1, 3)], [0.25], "fractions", Fraction(1, 12),
        "fractions, without rounding: multiples of 1/12",
    ),
    "Decimal": ([Decimal("0.10")], [2], "decimals", Fraction(1, 10), "1 decimal, without rounding"),
    "single beside double": (
        np.float32([0.1, 0.3]), [0.1, 0.3], "decimals", Fraction(1, 10), "1 decimal, without rounding",
    ),
    "large integers beside halves": (
        np.array([2**60 + 1]), [0.5], "decimals", Fraction(1, 10), "1 decimal, without rounding",
    ),
    "nothing but zeros": ([0.0], [-0.0], "integers", Fraction(1), "integers"),
    "subnormal": (
        [5e-324], [0.0], "binary", Fraction(1, 2**1074),
        "binary numbers, without rounding: multiples of 2**-1074",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_readings(case: tuple[Any, Any, str, Fraction, str]) -> None:
    candidate, baseline, how, unit, note = case
    scores = scale_scores(candidate, baseline)
    assert (scores.how, scores.unit, scores.note()) == (how, unit, note)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_run_keeps_its_scores(case: tuple[Any, Any, str, Fraction, str]) -> None:
    for runs in (case[:2], case[1::-1]):
        found = [[float(score) for score in run] for run in exact(scale_scores(*runs))]
        wanted = [[float(score) for score in run] for run in runs]
        assert found == [pytest.approx(run, rel=1e-6, abs=1e-15) for run in wanted]


@pytest.mark.parametrize("integer", [2**60 + 1, -(2**60) - 1])
def test_integers_that_floats_do_not_hold_stay_exact(integer: int) -> None:
    assert exact(scale_scores(np.array([integer]), [0.5])) == ([integer], [Fraction(1, 2)])


def test_a_common_denominator_beyond_62_bits_takes_python_integers() -> None:
    values = [Fraction(1, q) for q in range(1, 101)]
    given = [float(value) for value in values]
    scores = scale_scores(given, given)
    assert scores.candidate.dtype == object
    assert exact(scores) == (values, values)
    assert scores.note() == "fractions, without rounding: over a common denominator of 136 bits"
    narrow = scale_scores(given, given, wide=False)
    assert narrow.candidate.dtype == np.int64
    assert narrow.how == "binary"
    assert [float(x) for x in exact(narrow)[0]] == given


@pytest.mark.parametrize(("resolution", "scale"), [("1e-13", 1e3), ("1/3", 2.0**51), ("1/3", 10.0)])
def test_a_resolution_takes_the_nearest_multiple(resolution: str, scale: float) -> None:
    """Also where quotients of floats are too imprecise to tell which it is."""
    candidate, baseline = np.random.default_rng(4).random((2, 200)) * scale
    scores = scale_scores(candidate, baseline, resolution=resolution)
    for run, given_run in ((scores.candidate, candidate), (scores.baseline, baseline)):
        for integer, score in zip(run.tolist(), given_run.tolist(), strict=True):
            assert abs(integer * scores.unit - Fraction(score)) <= scores.unit / 2


def test_fractions_with_long_denominators_are_rounded_with_a_note() -> None:
    values = [Fraction(1, 3**400), Fraction(1, 7**300)]
    scores = scale_scores(values, values)
    changes = [abs(x - y) for x, y in zip(exact(scores)[0], values, strict=True)]
    assert scores.how == "binary"
    assert scores.largest_change == float(max(changes)) > 0.0


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20),
    st.sampled_from(["0.001", "0.5", "1/3", "1e-13", "2**-30", "7"]),
)
def test_resolution_is_kept(values: list[float], text: str) -> None:
    unit = Fraction(read_resolution(text))
    scores = scale_scores(values, values, text)
    changes = [abs(x - Fraction(y)) for x, y in zip(exact(scores)[0], values, strict=True)]
    assert scores.unit == unit
    assert scores.how == "resolution"
    # The nearest multiple, but for halves that rounding errors of the quotient decide.
    assert all(
        c <= unit / 2 + min(abs(Fraction(y)) / 2**50, unit / 8) for c, y in zip(changes, values, strict=True)
    )
    assert scores.largest_change == pytest.approx(float(max(changes)), rel=1e-6, abs=1e-12)


def test_resolution_is_read_as_it_is_written() -> None:
    for resolution in (0.1, "0.1", Fraction(1, 10), Decimal("0.1"), np.float32(0.1), " 1e-1", "1/10"):
        assert read_resolution(resolution) == Fraction(1, 10)
    assert scale_scores([0.1234], [0.3], 0.001).note() == (
        "rounded to multiples of 0.001 (largest change 0.0004)"
    )
    assert scale_scores([0.1 + 0.2], [0.2], 0.1).note() == "numbers, without rounding: multiples of 0.1"
    assert scale_scores([1, 3], [2, 2], 0.5).candidate.tolist() == [2, 6]
    assert scale_scores([Fraction(1, 3)], [1], "1/2").candidate.tolist() == [1]
    # Multiples of 2^-40 / 3 near 1: more digits than products of floats have.
    assert scale_scores([2 / 3], [1 / 3], Fraction(1, 3 * 2**51)).candidate.tolist() == [2**52]


@given(
    st.fractions(min_value=Fraction(1, 10**9), max_value=10**6)
    | st.integers(-1100, 1000).map(lambda k: Fraction(2) ** k)
    | st.integers(0, 30).map(lambda d: Fraction(3, 10**d))
)
def test_units_are_read_back(unit: Fraction) -> None:
    assert read_resolution(format_unit(unit)) == unit


REFUSED: dict[str, tuple[Any, Any, Any, type[InputError] | type[InputTypeError], str]] = {
    "NaN": ([1.0, np.nan], [1, 2], None, InputError, "`candidate` is nan at index 1"),
    "infinite": ([1.0, 2.0], [1, -np.inf], None, InputError, "`baseline` is -inf at index 1"),
    "NaN among objects": ([Fraction(1), np.nan], [1, 2], None, InputError, "is nan at index 1"),
    "Decimal NaN": ([Decimal("sNaN")], [1], None, InputError, "`candidate` is sNaN at index 0"),
    "beyond floats": ([Decimal("1e400")], [1], None, InputError, "`candidate` is 1E\\+400 at index 0"),
    "None": ([1, None], [1, 2], None, InputTypeError, "`candidate` is None at index 1"),
    "text": ([1, "a"], [1, 2], None, InputTypeError, "`candidate` is 'a' at index 1"),
    "text array": (np.array(["1"]), [1], None, InputTypeError, "`candidate` is '1' at index 0"),
    "complex": ([1j], [1], None, InputTypeError, "`candidate` has type complex128 \\(index 0: 1j\\)"),
    "extended": (np.array([1], "longdouble"), [1], None, InputTypeError, "up to 64 bits"),
    "date": (np.array(["2020-01-01"], "M8[D]"), [1], None, InputTypeError, "has type datetime64"),
    "ragged": ([[1, 2], [1]], [1, 2], None, InputTypeError, "`candidate` cannot be read as an array"),
    "masked": (np.ma.masked_array([1, 2], [0, 1]), [1, 2], None, InputError, "at index 1 \\(masked\\)"),
    "empty": ([], [], None, InputError, "are empty"),
    "lengths": ([1.0], [1, 2], None, InputError, "shape \\(1,\\), `baseline` \\(2,\\)"),
    "matrix": ([[1.0]], [[1]], None, InputError, "expected \\(N,\\) for both"),
    "resolution 0": ([1.0], [2], 0, InputError, "`resolution` is 0; expected a number above 0"),
    "resolution below 0": ([1.0], [2], "-0.1", InputError, "`resolution` is -0.1; expected a number above 0"),
    "resolution NaN": ([1.0], [2], float("nan"), InputError, "'nan'; expected a finite number"),
    "resolution infinite": ([1.0], [2], float("inf"), InputError, "'inf'; expected a finite number"),
    "resolution over 0": ([1.0], [2], "1/0", InputError, "'1/0'; expected a finite number"),
    "resolution text": ([1.0], [2], "fine", InputError, "'fine'; expected a finite number"),
    "resolution boolean": ([1.0], [2], True, InputTypeError, "is a `bool`"),
    "too fine": ([1.0], [0.5], "1e-30", InputError, "is too fine: a score of 1 "),
    "too coarse": ([0.5, 0.1], [0.25, 0.1], 1, InputError, "resolution 1 makes both runs equal"),
    "too coarse for fractions": ([Fraction(1, 4)], [0], 1, InputError, "scores differ by up to 0.25"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refusals(case: tuple[Any, Any, Any, type[InputError], str]) -> None:
    candidate, baseline, resolution, error, message = case
    with pytest.raises(error, match=message):
        scale_scores(candidate, baseline, resolution)


def test_equal_scores_need_no_fine_resolution() -> None:
    assert scale_scores([0.25, 0.75], [0.25, 0.75], 1).candidate.tolist() == [0, 1]
    assert scale_scores([0.1 + 0.2], [0.3], 1).baseline.tolist() == [0]


def share_of_sign_flips(differences: list[Fraction]) -> Fraction:
    """P(|sum of differences with fair signs| >= |their sum|), one by one."""
    observed = abs(sum(differences))
    flips = list(itertools.product((1, -1), repeat=len(differences)))
    n = sum(abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= observed for signs in flips)
    return Fraction(n, len(flips))


@settings(deadline=None)
@given(
    st.sampled_from([10, 12, 100, 7]), st.lists(st.tuples(*[st.integers(0, 40)] * 2), min_size=1, max_size=8)
)
def test_ties_against_enumeration_in_fractions(q: int, pairs: list[tuple[int, int]]) -> None:
    u, v = ([Fraction(pair[i], q) for pair in pairs] for i in range(2))
    scores = scale_scores([float(x) for x in u], [float(x) for x in v])
    wanted = share_of_sign_flips([a - b for a, b in zip(u, v, strict=True)])
    assert difference_test(scores.candidate, scores.baseline).pvalue == pytest.approx(
        float(wanted), rel=1e-12
    )


def test_ties_that_floats_miss() -> None:
    u, v = [0.1, 0.2, 0.0, 0.6], [0.0, 0.0, 0.3, 0.0]
    scores = scale_scores(u, v)
    wanted = share_of_sign_flips([Fraction(n, 10) for n in (1, 2, -3, 6)])
    in_floats = share_of_sign_flips([Fraction(a) - Fraction(b) for a, b in zip(u, v, strict=True)])
    assert difference_test(scores.candidate, scores.baseline).pvalue == float(wanted) != float(in_floats)


def test_integer_arrays_are_not_copied() -> None:
    u, v = np.array([0, 1], dtype=np.int8), np.array([True, False])
    scores = scale_scores(u, v)
    assert scores.candidate is u
    assert scores.baseline is v


def test_the_last_of_many_scores_counts() -> None:
    u = np.full(300_000, 0.5)
    u[-1] = 0.125
    assert scale_scores(u, u).unit == Fraction(1, 1000)
    u[-1] = 1 / 3
    assert scale_scores(u, u).unit == Fraction(1, 6)
    u[-1] = 2**-1.5
    assert scale_scores(u, u).how == "binary"


def test_differences_beyond_the_range_of_floats_are_quiet() -> None:
    """Regression: NumPy warned of an overflow; warnings are errors here."""
    assert difference_test([1e308, 1e300], [-1e308, 0.0]).pvalue == 0.5


LOSSES = [round(0.2 + 0.137 * n, 3) for n in range(12)]
WORSE = [round(loss + 0.5 + 0.01 * n, 3) for n, loss in enumerate(LOSSES)]


@pytest.mark.parametrize("common", [1e9, 1e15, -1e15, 1e16, 3.4028234663852886e38, 1e308])
def test_a_large_score_of_both_runs_hides_no_difference(common: float) -> None:
    """Regression: all scores were rounded to 2^-52 of the common one: the runs were called identical."""
    wanted = difference_test([*WORSE, 0.0], [*LOSSES, 0.0])
    found = difference_test([*WORSE, common], [*LOSSES, common])
    assert (found.pvalue, found.n_discordant) == (wanted.pvalue, wanted.n_discordant) == (2**-11, 12)
    assert found.observed == pytest.approx(wanted.observed, rel=1e-12)
    with_resolution = difference_test([*WORSE, common], [*LOSSES, common], resolution=0.001)
    assert with_resolution.pvalue == wanted.pvalue
    if abs(common) > 1e15:
        with pytest.raises(LargeScoreError, match="which both runs have, is too large for the other values"):
            scale_scores([*WORSE, common], [*LOSSES, common])
    else:
        scores = scale_scores([*WORSE, common], [*LOSSES, common])
        assert (scores.unit, scores.largest_change) == (Fraction(1, 1000), 0.0)
        assert [float(x) for x in exact(scores)[0]] == pytest.approx([*WORSE, common], rel=1e-15)


def test_reals_beside_a_large_score_of_both_runs_keep_their_precision() -> None:
    u, v = (np.append(np.sqrt(values), 1e10) for values in (WORSE, LOSSES))
    scores = scale_scores(u, v)
    assert scores.how == "binary"
    assert scores.largest_change < 2**-27


@pytest.mark.parametrize(
    ("candidate", "baseline"),
    [([*WORSE, 1.5e20], [*LOSSES, 1e20]), ([1e308, 1.0], [-1e308, 0.0]), ([1e20, *WORSE], [0.0, *LOSSES])],
)
def test_differences_that_are_lost_beside_a_larger_one_are_refused(
    candidate: list[float], baseline: list[float]
) -> None:
    with pytest.raises(LargeScoreError, match=r"^a value of 1(.5e\+20|e\+20|e\+308) is too large"):
        scale_scores(candidate, baseline)


def test_negligible_differences_are_rounded_with_a_note() -> None:
    reals = np.sqrt(np.arange(2.0, 30.0)) / 6.0
    noisy = np.append(reals[:-1], np.nextafter(reals[:3], 1.0)), np.append(reals[1:], reals[:3])
    assert scale_scores(*noisy).largest_change < 1e-15
    scores = scale_scores(np.append(reals[:-1], 1e-30), np.append(reals[1:], 3e-30))
    assert scores.note().endswith("; some differences count as equal, of up to 2e-30")


def test_an_outlier_of_both_runs_may_hide_a_few_tiny_differences() -> None:
    small = np.sqrt(np.arange(2.0, 40.0)) * 1e-3
    u, v = np.append(small[:-1], [1e-15, 1e6]), np.append(small[1:], [3e-15, 1e6])
    assert "some differences count as equal, of up to 2e-15" in scale_scores(u, v).note()


def test_a_coarse_resolution_is_refused_beside_a_large_score() -> None:
    """Regression: differences below 8 roundings of the largest score were taken for noise."""
    with pytest.raises(InputError, match="resolution 100 makes both runs equal"):
        scale_scores([0.5, 1e20], [0.25, 1e20], 100)
