"""Expansions with remainders, against values at points that their bounds cover."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from support.budget import cases

from trackperm.exact.functions.expansion import Deviations, Expander, Expansion, Form, Product
from trackperm.exact.functions.operations import parts_of
from trackperm.exact.functions.real import RealStatistic

Floats = npt.NDArray[np.float64]

MEANS = (40.0, 35.5, 60.0, 7.0)


class Recorded(Deviations):
    """Deviations that keep all forms whose bounds are used."""

    def __init__(self, root: Floats, ends: Floats, exponent: float) -> None:
        super().__init__(root, ends, exponent)
        self.forms: list[Form] = []

    def form(self, vector: Floats) -> Form | None:
        found = super().form(vector)
        self.forms += [found] if found is not None else []
        return found

    def covers(self, y: Floats) -> bool:
        """Whether the bounds of all forms hold at y."""
        return all(abs(form.vector @ y) <= form.reach for form in self.forms) and bool(
            (np.abs(y) <= self._axis_reach).all()
        )


def tree(rng: np.random.Generator, depth: int) -> RealStatistic:
    """A function of four counts; the last one does not vary."""
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.2:
            return RealStatistic.constant(int(rng.integers(-3, 9)), 4)
        return RealStatistic.variable(int(rng.integers(0, 4)), 4)
    one, other = tree(rng, depth - 1), tree(rng, depth - 1)
    match int(rng.integers(0, 11)):
        case 0 | 1:
            return one + other
        case 2:
            return one - other
        case 3:
            return one * other
        case 4 | 5:
            return one.divide(other + 50, undefined=0)
        case 6:
            return (one**2 + 1).sqrt()
        case 7:
            return (one**2 + 1).log()
        case 8:
            return (one / 100).minimum(other / 90 + 1).exp()
        case 9:
            return abs(one - other)
    return (one > other).where(one / (other**2 + 1), other)


def value(h: RealStatistic, point: Floats) -> float:
    """The value at a point of floats."""
    match h.operation:
        case "variable":
            return float(point[h.index])
        case "constant":
            return float(h.value)
        case "where":
            condition, yes, no = h.operands
            return value(yes if value(condition, point) else no, point)
    x = [value(operand, point) for operand in h.operands]
    match h.operation:
        case "+":
            return x[0] + x[1]
        case "*":
            return x[0] * x[1]
        case "/":
            return float(h.undefined or 0) if x[0] == 0.0 == x[1] else x[0] / x[1]
        case "**":
            return x[0] ** h.index
        case "min" | "max":
            return min(x) if h.operation == "min" else max(x)
        case "abs":
            return abs(x[0])
        case "> 0":
            return float(x[0] > 0.0)
    return float(getattr(math, h.operation)(x[0]))


def total(products: tuple[Product, ...], y: Floats, *, absolute: bool) -> float:
    terms = [p.weight * float(p.left.vector @ y) * float(p.right.vector @ y) for p in products]
    return sum(map(abs, terms) if absolute else terms)


def expanded(h: RealStatistic, exponent: float, scale: float) -> tuple[Recorded, Expansion | None]:
    root = scale * np.array([[2.0, 0.0, 0.0], [0.8, 1.5, 0.0], [-0.5, 0.3, 2.5]])
    deviations = Recorded(root, np.full(3, 18.0), exponent)
    units = [deviations.form(row) for row in np.eye(3)]
    variables = [Expansion(mean, form) for mean, form in zip(MEANS, [*units, None], strict=True)]
    return deviations, Expander(deviations, variables).expand(h)


@pytest.mark.extended
def test_remainders_at_points_within_the_bounds() -> None:
    rng = np.random.default_rng(0)
    n_checked, closest = 0, 0.0
    for _ in range(cases(800)):
        h = tree(rng, int(rng.integers(1, 5)))
        deviations, found = expanded(
            h, float(rng.choice([0.5, 2.0, 8.0])), float(rng.choice([0.1, 0.4, 1.0]))
        )
        if found is None:
            continue
        for _ in range(8):
            y = (
                deviations._root
                @ rng.normal(size=3)
                * math.sqrt(deviations.exponent)
                * rng.choice([0.3, 1.0])
            )
            if not deviations.covers(y):
                continue
            linear = 0.0 if found.form is None else float(found.form.vector @ y)
            actual = value(h, np.append(np.array(MEANS[:3]) + y, MEANS[3]))
            missing = abs(actual - found.value - linear - total(found.products, y, absolute=False))
            allowed = total(found.remainders, y, absolute=True) + found.error
            assert missing <= allowed + 1e-12 * (abs(actual) + abs(found.value)), h
            assert abs(actual - found.value) <= found.reach * (1.0 + 1e-12)
            n_checked += 1
            if allowed > 1e-9 * abs(actual) and missing > 0.0:
                closest = max(closest, missing / allowed)
    assert n_checked > 2.0 * cases(800)
    assert closest > 0.5  # the bounds are not loose everywhere


def test_bounds_of_forms_and_of_quadratic_terms_hold_for_random_signs() -> None:
    rng = np.random.default_rng(1)
    steps = rng.integers(-3, 4, (300, 3)).astype(float)
    root = np.linalg.cholesky(steps.T @ steps / 4.0)
    signs = rng.integers(0, 2, (20_000, 300)) * 2.0 - 1.0
    y = signs @ steps / 2.0
    for exponent in (1.0, 3.0, 6.0):
        deviations = Deviations(root, np.abs(steps).sum(axis=0) / 2.0, exponent)
        one, other = (deviations.form(np.array(vector)) for vector in ([1.0, -1.0, 0.5], [0.0, 2.0, 1.0]))
        assert one is not None
        assert other is not None
        allowed = 2.0 * math.exp(-exponent)
        beyond = float(np.mean(np.abs(y @ one.vector) > one.reach))
        assert beyond <= allowed
        bound = deviations.bound(
            [Product(-1.5, one, other)], [Product(0.7, one, one), Product(0.2, one, other)]
        )
        a, b = y @ one.vector, y @ other.vector
        found = np.abs(-1.5 * a * b) + 0.7 * a * a + 0.2 * np.abs(a * b)
        # The products of forms also need the bounds of both.
        assert float(np.mean(found > bound)) <= 3.0 * allowed
        assert bound < 12.0 * (1.0 + exponent) * float(np.mean(found))
        assert deviations.n_bounds == 6


def test_products_of_the_two_runs_cancel() -> None:
    """The remainder of a difference of scores is of third order."""
    one, other, sum_ = (RealStatistic.variable(i, 4) for i in range(3))
    h = one / (one + 50) - (sum_ - one) / (sum_ - one + 50) + other * 0
    bounds = []
    for scale in (0.1, 0.2):
        deviations, found = expanded(h.renamed([0, 1, 3, 3]), 5.0, scale)
        assert found is not None
        bounds.append(deviations.bound((), found.remainders))
    assert 7.0 < bounds[1] / bounds[0] < 9.5


@pytest.mark.extended
def test_numbers_beyond_the_range_of_floats_have_no_expansion() -> None:
    x = RealStatistic.variable(0, 4)
    for h in (
        1 / (x * 10**200),
        1 / (x / 10**200),
        (x * 10**300).log(),
        (x * 20).exp(),
        x**400,
        x * 10**400,
        (x - x - 1).sqrt(),
    ):
        assert expanded(h, 3.0, 0.1)[1] is None
    assert expanded((x * 10**90).log(), 3.0, 0.1)[1] is not None


def test_shared_operands_are_expanded_once() -> None:
    """Written out, the function has more than 3^30 operations."""
    h, x = RealStatistic.variable(0, 4) / 80, MEANS[0] / 80
    for _ in range(30):
        h, x = (h + h * h) / 2, (x + x * x) / 2
    assert len(parts_of(h)) < 130
    deviations, found = expanded(h, 4.0, 0.1)
    assert found is not None
    assert deviations.n_bounds < 200
    assert found.value == pytest.approx(x, rel=1e-9)
