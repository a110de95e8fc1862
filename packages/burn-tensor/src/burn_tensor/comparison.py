"""Comparisons, predicates, logic and bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn_backend import TensorBase
from burn_std import DTypeError
from burn_tensor.arguments import Number
from burn_tensor.arithmetic import unknown_operand
from burn_tensor.guard import guard_methods
from burn_tensor.methods import Methods

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


@guard_methods()
class ComparisonMethods(Methods):
    """Maps to bool, and bit operations of integers and bools; none of them has a gradient."""

    __slots__ = ()

    # ---- operators ----------------------------------------------------------------------------

    # Other classes answer for themselves; what nobody knows compares by identity.
    def __eq__(self, other: Any) -> Any:
        try:
            return self.b.eq(self, other)
        except DTypeError as error:
            return unknown_operand(error, other)

    def __ne__(self, other: Any) -> Any:
        try:
            return self.b.ne(self, other)
        except DTypeError as error:
            return unknown_operand(error, other)

    def __lt__(self, other: Tensor | Number) -> Tensor:
        return self.b.lt(self, other)

    def __le__(self, other: Tensor | Number) -> Tensor:
        return self.b.le(self, other)

    def __gt__(self, other: Tensor | Number) -> Tensor:
        return self.b.gt(self, other)

    def __ge__(self, other: Tensor | Number) -> Tensor:
        return self.b.ge(self, other)

    # A tensor is a key by identity: equal values are different tensors.
    def __hash__(self) -> int:
        return id(self)

    def __invert__(self) -> Tensor:
        return self.b.bitwise_not(self)

    def __and__(self, other: Tensor | Number) -> Tensor:
        return self.b.bitwise_and(self, other)

    def __rand__(self, other: Number) -> Tensor:
        return self.b.bitwise_and(other, self)

    def __or__(self, other: Tensor | Number) -> Tensor:
        return self.b.bitwise_or(self, other)

    def __ror__(self, other: Number) -> Tensor:
        return self.b.bitwise_or(other, self)

    def __xor__(self, other: Tensor | Number) -> Tensor:
        return self.b.bitwise_xor(self, other)

    def __rxor__(self, other: Number) -> Tensor:
        return self.b.bitwise_xor(other, self)

    def __lshift__(self, other: Tensor | Number) -> Tensor:
        return self.b.bitwise_left_shift(self, other)

    def __rlshift__(self, other: Number) -> Tensor:
        return self.b.bitwise_left_shift(other, self)

    def __rshift__(self, other: Tensor | Number) -> Tensor:
        return self.b.bitwise_right_shift(self, other)

    def __rrshift__(self, other: Number) -> Tensor:
        return self.b.bitwise_right_shift(other, self)

    # ---- methods ------------------------------------------------------------------------------

    def eq(self, other: Tensor | Number) -> Tensor:
        """Return x == other, elementwise; false where either is NaN.

        Example:
            >>> burn.tensor([1, 2]).eq(2)
            tensor([False,  True])
        """
        return self.b.eq(self, other)

    def ne(self, other: Tensor | Number) -> Tensor:
        """Return x != other, elementwise; true where either is NaN.

        Example:
            >>> burn.tensor([1, 2]).ne(2)
            tensor([ True, False])
        """
        return self.b.ne(self, other)

    def lt(self, other: Tensor | Number) -> Tensor:
        """Return x < other, elementwise; false where either is NaN.

        Example:
            >>> burn.tensor([1, 2]).lt(2)
            tensor([ True, False])
        """
        return self.b.lt(self, other)

    def le(self, other: Tensor | Number) -> Tensor:
        """Return x <= other, elementwise; false where either is NaN.

        Example:
            >>> burn.tensor([1, 2]).le(2)
            tensor([ True,  True])
        """
        return self.b.le(self, other)

    def gt(self, other: Tensor | Number) -> Tensor:
        """Return x > other, elementwise; false where either is NaN.

        Example:
            >>> burn.tensor([1, 2]).gt(2)
            tensor([False, False])
        """
        return self.b.gt(self, other)

    def ge(self, other: Tensor | Number) -> Tensor:
        """Return x >= other, elementwise; false where either is NaN.

        Example:
            >>> burn.tensor([1, 2]).ge(2)
            tensor([False,  True])
        """
        return self.b.ge(self, other)

    greater = gt
    greater_equal = ge
    less = lt
    less_equal = le
    not_equal = ne

    def isnan(self) -> Tensor:
        """Return whether x is NaN, elementwise.

        Example:
            >>> burn.tensor([1.0, float("nan")]).isnan()
            tensor([False,  True])
        """
        return self.b.isnan(self)

    def isinf(self) -> Tensor:
        """Return whether x is inf or -inf, elementwise.

        Example:
            >>> burn.tensor([1.0, float("inf")]).isinf()
            tensor([False,  True])
        """
        return self.b.isinf(self)

    def isfinite(self) -> Tensor:
        """Return whether x is neither NaN nor infinite, elementwise.

        Example:
            >>> burn.tensor([1.0, float("inf")]).isfinite()
            tensor([ True, False])
        """
        return self.b.isfinite(self)

    def logical_not(self) -> Tensor:
        """Return whether x is zero, elementwise.

        Example:
            >>> burn.tensor([0, 3]).logical_not()
            tensor([ True, False])
        """
        return self.b.logical_not(self)

    def logical_and(self, other: Tensor | Number) -> Tensor:
        """Return the truth of x and the truth of other; what is not zero is true.

        Example:
            >>> burn.tensor([0, 1, 2]).logical_and(burn.tensor([0, 0, 5]))
            tensor([False, False,  True])
        """
        return self.b.logical_and(self, other)

    def logical_or(self, other: Tensor | Number) -> Tensor:
        """Return the truth of x or the truth of other; what is not zero is true.

        Example:
            >>> burn.tensor([0, 1, 2]).logical_or(burn.tensor([0, 0, 5]))
            tensor([False,  True,  True])
        """
        return self.b.logical_or(self, other)

    def logical_xor(self, other: Tensor | Number) -> Tensor:
        """Return the truth of x xor the truth of other; what is not zero is true.

        Example:
            >>> burn.tensor([0, 1, 2]).logical_xor(burn.tensor([0, 0, 5]))
            tensor([False,  True, False])
        """
        return self.b.logical_xor(self, other)

    def bitwise_not(self) -> Tensor:
        """Return x with its bits flipped; `not` of bools.

        DTypes: integers and bool.

        Example:
            >>> burn.tensor([0, 5]).bitwise_not()
            tensor([-1, -6])
        """
        return self.b.bitwise_not(self)

    def bitwise_and(self, other: Tensor | Number) -> Tensor:
        """Return `and` of the bits of x and other.

        DTypes: integers and bool.

        Example:
            >>> burn.tensor([6, 3]).bitwise_and(burn.tensor([3, 1]))
            tensor([2, 1])
        """
        return self.b.bitwise_and(self, other)

    def bitwise_or(self, other: Tensor | Number) -> Tensor:
        """Return `or` of the bits of x and other.

        DTypes: integers and bool.

        Example:
            >>> burn.tensor([6, 3]).bitwise_or(burn.tensor([3, 1]))
            tensor([7, 3])
        """
        return self.b.bitwise_or(self, other)

    def bitwise_xor(self, other: Tensor | Number) -> Tensor:
        """Return `xor` of the bits of x and other.

        DTypes: integers and bool.

        Example:
            >>> burn.tensor([6, 3]).bitwise_xor(burn.tensor([3, 1]))
            tensor([5, 2])
        """
        return self.b.bitwise_xor(self, other)

    def bitwise_left_shift(self, other: Tensor | Number) -> Tensor:
        """Return x << other; shifts by the width or more give 0.

        DTypes: integers.

        Example:
            >>> burn.tensor([1, 2]).bitwise_left_shift(2)
            tensor([4, 8])
        """
        return self.b.bitwise_left_shift(self, other)

    def bitwise_right_shift(self, other: Tensor | Number) -> Tensor:
        """Return x >> other; shifts by the width or more give 0 or the sign.

        DTypes: integers.

        Example:
            >>> burn.tensor([1, 2]).bitwise_right_shift(1)
            tensor([0, 1])
        """
        return self.b.bitwise_right_shift(self, other)

    # ---- closeness ----------------------------------------------------------------------------

    def isclose(
        self, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> Tensor:
        """Return whether |x - other| <= atol + rtol |other|, elementwise.

        Args:
            other: a tensor that broadcasts with x.
            rtol: relative tolerance.
            atol: absolute tolerance.
            equal_nan: NaN is close to NaN.

        Example:
            >>> burn.tensor([1.0, 2.0]).isclose(burn.tensor([1.0, 2.1]))
            tensor([ True, False])
        """
        b = self.b
        if self.dtype.is_bool:
            return b.eq(self, other)
        gap = b.abs(b.sub(self, other))
        near = b.le(gap, b.add(b.mul(b.abs(other), rtol), atol))
        # inf - inf is NaN and inf <= inf is true: equality decides about infinities.
        close = b.logical_or(b.eq(self, other), b.logical_and(b.isfinite(gap), near))
        if equal_nan:
            close = b.logical_or(close, b.logical_and(b.isnan(self), b.isnan(other)))
        return close

    def allclose(
        self, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> bool:
        """Return whether every element is close, as a Python bool; reads the result.

        Args:
            other: a tensor that broadcasts with x.
            rtol: relative tolerance.
            atol: absolute tolerance.
            equal_nan: NaN is close to NaN.

        Example:
            >>> burn.tensor([1.0]).allclose(burn.tensor([1.0 + 1e-9]))
            True
        """
        return bool(self.isclose(other, rtol, atol, equal_nan).all())

    def equal(self, other: Any) -> bool:
        """Return whether both have one shape and equal elements, as a Python bool.

        Example:
            >>> burn.tensor([1, 2]).equal(burn.tensor([1, 2]))
            True
        """
        if not isinstance(other, TensorBase) or self.v.shape != other.shape:
            return False
        return bool(self.b.all(self.b.eq(self, other), None, False))
