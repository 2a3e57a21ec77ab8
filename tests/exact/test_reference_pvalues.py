"""All 62 reference comparisons through the public functions, every alternative, within the stated bound."""

import numpy as np
import pytest
from support import reference_data
from support.certificates import check_pvalue
from support.oracles import ALTERNATIVES

from trackperm.exact import PermutationTest, RationalStatistic, difference_test, structured_test

pytestmark = reference_data.needs_data


def run(reference: reference_data.Reference, alternative: str) -> PermutationTest:
    u, v = np.array(reference.candidate), np.array(reference.baseline)
    if reference.statistic == "difference":
        return difference_test(u[:, 0], v[:, 0], alternative=alternative)
    tp, pred, gold, tp_v, pred_v, gold_v = (RationalStatistic.variable(i, 6) for i in range(6))
    if reference.statistic == "f1":
        h = 2 * tp / (gold + pred) - 2 * tp_v / (gold_v + pred_v)
    else:
        h = tp / pred - tp_v / pred_v
    return structured_test(np.hstack([u, v]), np.hstack([v, u]), h, alternative=alternative)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("identifier", reference_data.ids())
def test_reference_pvalue(identifier: str, alternative: str) -> None:
    reference = reference_data.reference(identifier)
    result = run(reference, alternative)
    check_pvalue(result, reference.pvalue(alternative), useful=1e-10)
    assert result.ties == "exact"
    assert (result.n_examples, result.n_discordant) == (reference.n_examples, reference.n_discordant)
    scale = reference.n_examples if reference.statistic == "difference" else 1
    assert result.observed == float(reference.observed / scale)
    if "discordant" in reference.entry:
        expected = (reference.entry["discordant"]["a_only"], reference.entry["discordant"]["b_only"])
        assert (result.n_better, result.n_worse) == expected
