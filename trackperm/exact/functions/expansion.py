r"""Expansions of statistics in the deviations of their counts, with bounds of high probability.

Deviations. y is a sum of independent vectors +x/2 or -x/2, with even chances, and has the covariance C. As
log cosh t <= t^2 / 2, E exp(s . y) <= exp(s^T C s / 2). Let A A^T - C be positive semidefinite and |s| be
the norm of A^T s. For every form s and every u > 0,

    P(|s . y| > |s| sqrt(2 u)) <= 2 exp(-u),

and for a positive semidefinite N with M = A^T N A (Hsu, Kakade and Zhang 2012)

    P(y^T N y > tr M + 2 sqrt(tr(M^2) u) + 2 ||M|| u) <= exp(-u).

Expansions. f has a value v, a form a, products (theta, l, r), remainders (nu, l, r) and an error e, such that

    |f(y) - v - a . y - sum theta (l . y) (r . y)| <= sum nu |l . y| |r . y| + e

wherever the bounds of all forms hold. Sums, products and quotients follow by algebra, functions by Taylor's
theorem with a bound of the third derivative. e contains all roundings. Products of the two runs cancel in a
difference of scores, where |f - v - a . y| is therefore of third order.

References
----------
D. Hsu, S. Kakade and T. Zhang (2012), "A tail inequality for quadratic forms of subgaussian random vectors",
Electronic Communications in Probability 17.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact.functions.enclosure import EXACT
from trackperm.exact.functions.operations import OperationTree, parts_of

FloatArray = npt.NDArray[np.float64]

ROUNDING = 2.0**-46
"""Relative rounding error of an operation on numbers or vectors: several times those of NumPy's functions."""

SLACK = 1.0 + 1e-9
"""Factor that covers the roundings of norms and bounds, of up to some million operations."""

SPECTRAL = 1e-10
"""Error of eigenvalues relative to the Frobenius norm: far above that of a backward stable algorithm."""


@dataclass(frozen=True)
class Form:
    """Linear form of the deviations.

    Attributes
    ----------
    vector : ndarray of float, shape (n,)
        Its coefficients s.
    norm : float
        |s|, the norm of A^T s.
    reach : float
        Bound of |s . y| on the event on which the bounds of forms hold.
    size : float
        Bound of sum_i |s_i y_i| on that event, for rounding errors.
    """

    vector: FloatArray
    norm: float
    reach: float
    size: float


@dataclass(frozen=True)
class Product:
    """Product of two forms with a weight."""

    weight: float
    left: Form
    right: Form

    @property
    def reach(self) -> float:
        """Bound of the absolute value."""
        return abs(self.weight) * self.left.reach * self.right.reach


class Deviations:
    """Bounds of forms of random deviations.

    Parameters
    ----------
    root : ndarray of float, shape (n, n)
        A, for which A A^T - C is positive semidefinite.
    ends : ndarray of float, shape (n,)
        Largest possible |y_i|.
    exponent : float
        u: each bound fails with a probability of at most 2 exp(-u). With 0, expansions have the right values,
        forms and products, but no bounds.
    """

    def __init__(self, root: FloatArray, ends: FloatArray, exponent: float) -> None:
        self.exponent, self.n_bounds = exponent, 0
        self._root, self._ends = root, ends
        self._axis_reach = np.minimum(np.linalg.norm(root, axis=1) * math.sqrt(2.0 * exponent), ends)
        self.n_bounds += ends.size

    def form(self, vector: FloatArray) -> Form | None:
        """Return the form with these coefficients, and count its bound; None if all are 0."""
        if not vector.any():
            return None
        self.n_bounds += 1
        size = np.abs(vector)
        norm = float(np.linalg.norm(vector @ self._root)) * SLACK
        reach = min(norm * math.sqrt(2.0 * self.exponent), float(size @ self._ends))
        return Form(vector, norm, reach * SLACK, float(size @ self._axis_reach) * SLACK)

    def log_failure(self) -> float:
        """Return the logarithm of a bound of the probability that any of the bounds so far fails."""
        return math.log(2.0 * self.n_bounds) - self.exponent

    def bound(self, products: Sequence[Product], remainders: Sequence[Product]) -> float:
        """Return a bound of |sum theta (l . y) (r . y)| + sum nu |l . y| |r . y|, and count it."""
        self.n_bounds += 1
        direct = sum(product.reach for product in (*products, *remainders))
        # The coordinates of y relative to A; |l . y| |r . y| <= t (l . y)^2 / 2 + (r . y)^2 / (2 t).
        squares = np.array([p.weight * p.right.norm / p.left.norm for p in remainders])
        others = np.array([p.weight * p.left.norm / p.right.norm for p in remainders])
        lefts, rights = ([getattr(p, side).vector for p in remainders] for side in ("left", "right"))
        form = self._gram(lefts, squares, lefts) / 2.0 + self._gram(rights, others, rights) / 2.0
        weights = np.array([p.weight for p in products])
        signed = self._gram([p.left.vector for p in products], weights, [p.right.vector for p in products])
        signed = (signed + signed.T) / 2.0
        values, vectors = np.linalg.eigh(signed)
        form = form + (vectors * np.abs(values)) @ vectors.T
        form = form + np.eye(len(form)) * (SPECTRAL * float(np.linalg.norm(signed)))
        frobenius = float(np.linalg.norm(form))
        largest = float(np.linalg.eigvalsh(form)[-1]) + SPECTRAL * frobenius
        u = self.exponent
        spectral = float(np.trace(form)) + 2.0 * math.sqrt(u) * frobenius + 2.0 * u * largest
        return min(direct, spectral) * SLACK

    def _gram(self, lefts: list[FloatArray], weights: FloatArray, rights: list[FloatArray]) -> FloatArray:
        """Return A^T (sum_j weights_j lefts_j rights_j^T) A."""
        if not lefts:
            return np.zeros(self._root.shape)
        left, right = (np.array(vectors) @ self._root for vectors in (lefts, rights))
        return np.asarray((left.T * weights) @ right)


@dataclass(frozen=True)
class Expansion:
    """Expansion of a function of the deviations, as defined above.

    Attributes
    ----------
    value : float
        v.
    form : Form or None
        a; None is 0.
    products, remainders : tuple of Product
        The products, of any sign, and the remainders, whose weights are positive.
    error : float
        e.
    """

    value: float
    form: Form | None = None
    products: tuple[Product, ...] = ()
    remainders: tuple[Product, ...] = ()
    error: float = 0.0

    @cached_property
    def curved(self) -> tuple[Product, ...]:
        """All terms of second order."""
        return self.products + self.remainders

    @cached_property
    def curve(self) -> float:
        """Bound of |f - v - a . y|."""
        return (sum(product.reach for product in self.curved) + self.error) * SLACK

    @property
    def slope(self) -> float:
        """Bound of |a . y|."""
        return 0.0 if self.form is None else self.form.reach

    @cached_property
    def reach(self) -> float:
        """Bound of |f - v|."""
        return (self.slope + self.curve) * SLACK

    @property
    def size(self) -> float:
        """Size of the terms whose roundings add up."""
        return (0.0 if self.form is None else self.form.size) + self.curve

    @property
    def is_constant(self) -> bool:
        """Whether f is exactly its value."""
        return self.form is None and not self.curved and self.error == 0.0

    @property
    def is_zero(self) -> bool:
        """Whether f is exactly 0."""
        return self.is_constant and self.value == 0.0

    @property
    def sign(self) -> int | None:
        """Sign of f; None if the bounds do not determine it."""
        if self.is_zero:
            return 0
        return None if not abs(self.value) > self.reach else (1 if self.value > 0.0 else -1)


ZERO = Expansion(0.0)


class Expander:
    """Expansions of trees of operations.

    Parameters
    ----------
    deviations : Deviations
        Bounds of the forms.
    variables : sequence of m Expansion
        The variables of the trees.
    """

    def __init__(self, deviations: Deviations, variables: Sequence[Expansion]) -> None:
        self._deviations, self._variables = deviations, variables

    def expand(self, h: OperationTree) -> Expansion | None:
        """Return the expansion of h; None if the bounds do not prove that it is smooth where they hold."""
        found: dict[int, Expansion | None] = {}
        with np.errstate(all="ignore"):
            for part in parts_of(h):
                try:
                    expansion = self._part(part, [found[id(operand)] for operand in part.operands])
                    usable = expansion is not None and math.isfinite(expansion.value + expansion.size)
                except (OverflowError, ZeroDivisionError):  # beyond the range of floats
                    usable = False
                found[id(part)] = expansion if usable else None
        return found[id(h)]

    def _part(self, part: OperationTree, operands: Sequence[Expansion | None]) -> Expansion | None:
        match part.operation:
            case "variable":
                return self._variables[part.index]
            case "constant":
                return _constant(part.value)
            case "where":
                condition, yes, no = operands
                sign = None if condition is None else condition.sign
                return None if sign is None else (yes if sign else no)
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return None
        first = known[0]
        match part.operation:
            case "+":
                return self.add(first, known[1])
            case "*":
                return self.multiply(first, known[1])
            case "/":
                declared = None if part.undefined is None else _constant(part.undefined)
                return self.divide(first, known[1], declared)
            case "**":
                power = first
                for _ in range(part.index - 1):
                    power = self.multiply(power, first)
                return power
            case "sqrt" | "log" | "exp":
                return self.function(part.operation, first)
            case "abs":
                return self.extreme([first, self.scale(first, -1.0)], 1)
            case "min" | "max":
                return self.extreme(known, 1 if part.operation == "max" else -1)
        # A condition: > 0, >= 0 or == 0.
        sign = first.sign
        if sign is None:
            return None
        return Expansion(float({"> 0": sign > 0, ">= 0": sign >= 0, "== 0": sign == 0}[part.operation]))

    def add(self, f: Expansion, g: Expansion) -> Expansion:
        """Return f + g."""
        value = f.value + g.value
        if f.is_constant and g.is_constant and _is_exact(f.value, g.value, value):
            return Expansion(value)
        rounding = ROUNDING * (abs(f.value) + abs(g.value) + f.size + g.size)
        return Expansion(
            value,
            self._combined((f.form, 1.0), (g.form, 1.0)),
            _merged(f.products + g.products),
            _merged(f.remainders + g.remainders),
            (f.error + g.error) * SLACK + rounding,
        )

    def scale(self, f: Expansion, factor: float) -> Expansion:
        """Return f times a number."""
        return self.multiply(f, Expansion(factor))

    def multiply(self, f: Expansion, g: Expansion) -> Expansion:
        """Return f * g."""
        if f.is_zero or g.is_zero:
            return ZERO
        value = f.value * g.value
        if f.is_constant and g.is_constant and _is_exact(f.value, g.value, value):
            return Expansion(value)
        products = (*_times(g.products, f.value), *_times(f.products, g.value))
        if f.form is not None and g.form is not None:
            products += (Product(1.0, f.form, g.form),)
        own, other = abs(f.value), abs(g.value)
        remainders = (
            *_times(g.remainders, own),
            *_times(f.remainders, other),
            *_times(g.curved, f.slope),
            *_times(f.curved, g.reach),
        )
        error = (own + f.slope) * g.error + (other + g.reach) * f.error
        rounding = ROUNDING * (own + f.size) * (other + g.size)
        form = self._combined((g.form, f.value), (f.form, g.value))
        return Expansion(value, form, _merged(products), _positive(remainders), error * SLACK + rounding)

    def divide(self, f: Expansion, g: Expansion, declared: Expansion | None) -> Expansion | None:
        """Return f / g, with a declared value of 0/0; None if g may be 0 elsewhere."""
        if f.is_zero and (g.is_zero or (declared is not None and declared.is_zero)):
            return declared
        reciprocal = self.function("reciprocal", g)
        if reciprocal is None or f.is_zero:
            return None if reciprocal is None else ZERO
        # f / g = q + (f - q g) / g, where the numerator's form is small.
        quotient = f.value / g.value
        rest = self.add(f, self.scale(g, -quotient))
        rest = replace(rest, value=0.0, error=rest.error + abs(rest.value))
        found = self.multiply(rest, reciprocal)
        return replace(found, value=quotient, error=found.error + ROUNDING * abs(quotient))

    def function(self, name: str, g: Expansion) -> Expansion | None:
        """Return a root, logarithm, exponential or reciprocal; None if it is not smooth where bounds hold."""
        x, least = g.value, (abs(g.value) - g.reach) * (2.0 - SLACK)
        if name != "exp" and not (least > 0.0 and (x > 0.0 or name == "reciprocal")):
            return None
        # Value, slope, half the second derivative; bound of (F - its expansion) / |d|^3.
        match name:
            case "reciprocal":
                terms = 1.0 / x, -1.0 / x**2, 1.0 / x**3, 1.0 / (abs(x) ** 3 * least)
            case "sqrt":
                root = math.sqrt(x)
                terms = root, 0.5 / root, -0.125 / (x * root), 1.0 / (16.0 * least**2 * math.sqrt(least))
            case "log":
                terms = math.log(x), 1.0 / x, -0.5 / x**2, 1.0 / (3.0 * least**3)
            case _:
                if x + g.reach > 700.0:
                    return None
                top = math.exp(x)
                terms = top, top, top / 2.0, math.exp(x + g.reach) / 6.0
        value, slope, half, cubic = terms
        spread = (abs(half) + cubic * g.reach) * (2.0 * g.slope + g.curve) * SLACK
        products = _times(g.products, slope)
        remainders = _times(g.remainders, abs(slope)) + _times(g.curved, spread)
        if g.form is not None:
            products += (Product(half, g.form, g.form),)
            remainders += (Product(cubic * g.reach, g.form, g.form),)
        rounding = ROUNDING * (abs(value) + abs(slope) * g.size + abs(half) * g.reach**2)
        error = (abs(slope) + spread) * g.error * SLACK + rounding
        form = self._combined((g.form, slope))
        return Expansion(value, form, _merged(products), _positive(remainders), error)

    def extreme(self, parts: Sequence[Expansion], side: int) -> Expansion | None:
        """Return the greatest (side 1) or the smallest (-1) of several functions; None if it may change."""
        best = parts[0]
        for part in parts[1:]:
            sign = self.add(part, self.scale(best, -1.0)).sign
            if sign is None:
                return None
            best = part if sign == side else best
        return best

    def _combined(self, *weighted: tuple[Form | None, float]) -> Form | None:
        """Return a sum of forms with weights."""
        present = [(form, weight) for form, weight in weighted if form is not None]
        if not present:
            return None
        if len(present) == 1 and present[0][1] == 1.0:
            return present[0][0]
        return self._deviations.form(np.sum([form.vector * weight for form, weight in present], axis=0))


def _constant(value: Any) -> Expansion:
    """Return the expansion of a rational number."""
    number = float(value)
    return Expansion(number, error=0.0 if number == value else ROUNDING * abs(number))


def _is_exact(*values: float) -> bool:
    """Whether all numbers are integers below 2^53, so that their sum or product is exact."""
    return all(value.is_integer() and abs(value) < EXACT for value in values)


def _times(products: Iterable[Product], factor: float) -> tuple[Product, ...]:
    if factor == 0.0:
        return ()
    return tuple(replace(product, weight=product.weight * factor) for product in products)


def _positive(products: Iterable[Product]) -> tuple[Product, ...]:
    """Return remainders with their weights made positive."""
    return _merged(replace(p, weight=abs(p.weight) * SLACK) for p in products)


def _merged(products: Iterable[Product]) -> tuple[Product, ...]:
    """Return the products with one term for each pair of forms, so that powers stay short."""
    found: dict[tuple[int, int], Product] = {}
    for product in products:
        key = id(product.left), id(product.right)
        if key in found:
            product = replace(product, weight=found[key].weight + product.weight)
        found[key] = product
    return tuple(product for product in found.values() if product.weight != 0.0)
