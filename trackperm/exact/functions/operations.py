"""Trees of operations, the common base of rational and real statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeVar, cast

from trackperm.errors import InputError

Tree = TypeVar("Tree", bound="OperationTree")


@dataclass(frozen=True)
class OperationTree:
    """Function of m integers as an immutable tree of operations.

    Attributes
    ----------
    operation : str
        ``variable``, ``constant``, or the operation on the operands.
    n_variables : int
        Number of variables m.
    operands : tuple of OperationTree
        Operands of the operation.
    index : int
        Index of a variable, or exponent of a power.
    value : Fraction
        Value of a constant.
    undefined : Fraction or None
        Declared value of 0/0 for a division.
    """

    operation: str
    n_variables: int
    operands: tuple[OperationTree, ...] = ()
    index: int = 0
    value: Fraction = Fraction(0)
    undefined: Fraction | None = None

    @classmethod
    def variable(cls: type[Tree], index: int, n_variables: int) -> Tree:
        """Return the statistic x_index of `n_variables` variables."""
        if not 0 <= index < n_variables:
            raise InputError(f"{index} is not a variable of this statistic; expected 0 to {n_variables - 1}")
        return cls("variable", n_variables, index=index)

    @classmethod
    def constant(cls: type[Tree], value: int | Fraction, n_variables: int) -> Tree:
        """Return the constant statistic `value`."""
        return cls("constant", n_variables, value=Fraction(value))

    @cached_property
    def variables(self) -> tuple[int, ...]:
        """Indices of the variables that occur, ascending."""
        return tuple(sorted({part.index for part in parts_of(self) if part.operation == "variable"}))

    def _coerce(self: Tree, other: Tree | int | Fraction) -> Tree:
        if not isinstance(other, OperationTree):
            return type(self).constant(other, self.n_variables)
        if type(other) is not type(self):
            raise InputError(f"a {type(self).__name__} cannot be combined with a {type(other).__name__}")
        if other.n_variables != self.n_variables:
            raise InputError(
                f"statistics of {self.n_variables} and {other.n_variables} variables cannot be combined"
            )
        return other

    def _join(self: Tree, operation: str, *others: Tree | int | Fraction) -> Tree:
        return type(self)(operation, self.n_variables, (self, *map(self._coerce, others)))

    def __add__(self: Tree, other: Tree | int | Fraction) -> Tree:
        return self._join("+", other)

    def __radd__(self: Tree, other: int | Fraction) -> Tree:
        return self + other

    def __neg__(self: Tree) -> Tree:
        return self * -1

    def __sub__(self: Tree, other: Tree | int | Fraction) -> Tree:
        return self + -self._coerce(other)

    def __rsub__(self: Tree, other: int | Fraction) -> Tree:
        return self._coerce(other) - self

    def __mul__(self: Tree, other: Tree | int | Fraction) -> Tree:
        return self._join("*", other)

    def __rmul__(self: Tree, other: int | Fraction) -> Tree:
        return self * other

    def __truediv__(self: Tree, other: Tree | int | Fraction) -> Tree:
        return self.divide(other)

    def __rtruediv__(self: Tree, other: int | Fraction) -> Tree:
        return self._coerce(other).divide(self)

    def divide(self: Tree, other: Tree | int | Fraction, undefined: int | Fraction | None = None) -> Tree:
        """Divide, with `undefined` as the value of 0/0.

        Raises
        ------
        InputError
            If the divisor is the constant 0.
        """
        divisor = self._coerce(other)
        if divisor.operation == "constant" and divisor.value == 0:
            raise InputError("the statistic divides by the constant 0")
        quotient = self._join("/", divisor)
        return quotient if undefined is None else replace(quotient, undefined=Fraction(undefined))


def parts_of(h: Tree) -> list[Tree]:
    """Return the trees of all operations, operands first, and each once: operands may be shared."""
    found: list[Tree] = []
    seen = set[int]()
    pending = [(h, False)]
    while pending:
        part, has_operands = pending.pop()
        if has_operands:
            found.append(part)
        elif id(part) not in seen:
            seen.add(id(part))
            pending.append((part, True))
            pending += [(operand, False) for operand in cast("tuple[Tree, ...]", part.operands)]
    return found


def are_alike(
    one: OperationTree, other: OperationTree, of_one: Sequence[int], of_other: Sequence[int]
) -> bool:
    """Whether two trees are the same after their variables i become of_one[i] and of_other[i]."""
    pending = [(one, other)]
    while pending:
        a, b = pending.pop()
        if a.operation != b.operation:
            return False
        if a.operation == "variable":
            if of_one[a.index] != of_other[b.index]:
                return False
        elif (a.index, a.value, a.undefined) != (b.index, b.value, b.undefined):
            return False
        pending += zip(a.operands, b.operands, strict=True)
    return True
