"""Every entry of the reference p-values, recomputed in integers from the data that it names."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from support import oracles, reference_data

pytestmark = pytest.mark.skipif(not reference_data.available(), reason=reference_data.ABSENT)
IDS = reference_data.ids()
each_entry = pytest.mark.parametrize("identifier", IDS)


def test_all_entries_are_there() -> None:
    assert len(IDS) == 62
    kinds = [reference_data.reference(identifier).statistic for identifier in IDS]
    assert [kinds.count(kind) for kind in ("difference", "f1", "precision")] == [50, 6, 6]


@each_entry
def test_inputs(identifier: str) -> None:
    reference = reference_data.reference(identifier)
    assert len(reference.candidate) == len(reference.baseline) == reference.n_examples
    pairs = list(zip(reference.candidate, reference.baseline, strict=True))
    assert sum(u != v for u, v in pairs) == reference.n_discordant
    u, v = ([sum(column) for column in zip(*system, strict=True)] for system in zip(*pairs, strict=True))
    entry = reference.entry
    if reference.statistic == "difference":
        assert (u, v) == ([entry["sum_a"]], [entry["sum_b"]])
        assert u[0] - v[0] == reference.observed
    else:
        totals = entry["totals"]
        assert u == [totals["tp_a"], totals["pred_a"], totals["gold"]]
        assert v == [totals["tp_b"], totals["pred_b"], totals["gold"]]
    for unit, here in (("a_only", 1), ("b_only", -1)):
        if "discordant" in entry:
            assert sum(a[0] - b[0] == here for a, b in pairs) == entry["discordant"][unit]


@pytest.mark.extended
@each_entry
def test_pvalues_against_integer_polynomials(identifier: str) -> None:
    reference = reference_data.reference(identifier)
    if reference.statistic == "difference":
        pairs = zip(reference.candidate, reference.baseline, strict=True)
        pvalues = oracles.difference_pvalues(u[0] - v[0] for u, v in pairs)
    else:
        pvalues = _structured_pvalues(reference, oracles.sums_by_polynomial)
    for alternative in oracles.ALTERNATIVES:
        assert pvalues[alternative] == reference.pvalue(alternative)
        key = "p_" + alternative.replace("-", "_")
        assert float(pvalues[alternative]) == reference.entry[key]["float"]


@pytest.mark.slow
def test_pvalues_against_a_dictionary() -> None:
    reference = reference_data.reference("wnut17/F1/sjtu_adapt__vs__uh_ritual")
    pvalues = _structured_pvalues(reference, oracles.sums_by_dictionary)
    for alternative in oracles.ALTERNATIVES:
        assert pvalues[alternative] == reference.pvalue(alternative)


def test_absent_data_are_said_to_be_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reference_data, "DATA", tmp_path)
    assert not reference_data.available()
    assert reference_data.ids() == []


def _structured_pvalues(
    reference: reference_data.Reference, count: Callable[..., dict[oracles.Point, int]]
) -> dict[str, Fraction]:
    """F1 or precision; what the baseline has follows from the totals, so two counts are enough."""
    observed = [(tp, pred) for tp, pred, _ in reference.candidate]
    swapped = [(tp, pred) for tp, pred, _ in reference.baseline]
    tp_both, pred_both = (sum(column) for column in zip(*observed, *swapped, strict=True))
    gold = sum(gold for _, _, gold in reference.candidate)

    def score(tp: int, pred: int) -> Fraction:
        return Fraction(2 * tp, gold + pred) if reference.statistic == "f1" else Fraction(tp, pred)

    def difference(point: oracles.Point) -> Fraction:
        tp, pred = point
        return score(tp, pred) - score(tp_both - tp, pred_both - pred)

    at = tuple(map(sum, zip(*observed, strict=True)))
    assert difference(at) == reference.observed
    return oracles.structured_pvalues(count(observed, swapped), observed, difference)
