"""Arithmetic of two and three tensors, and the operators of Python.

Everything here broadcasts like numpy and promotes: a Python or numpy scalar takes the tensor's
dtype, int with float gives the float (see the numerics contract).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn_backend import TensorBase
from burn_std import ArgumentError, DTypeError
from burn_tensor.arguments import Number, stored
from burn_tensor.guard import guard_methods
from burn_tensor.methods import Methods

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


def unknown_operand(error: DTypeError, other: Any) -> Any:
    """Return NotImplemented for what is neither number nor tensor: its own class may answer.

    Raises what the operation said otherwise.
    """
    if isinstance(other, (TensorBase, bool, int, float, list, tuple)) or hasattr(other, "dtype"):
        raise error.with_traceback(None)
    return NotImplemented


def number_like(x: TensorBase, number: Any) -> Any:
    """Return a number that takes the dtype of x as a tensor, anything else as it is.

    The generated functions know numbers on the right; elsewhere this spares the slow path.
    """
    try:
        payload = x.b.scalar_payload(x.v.dtype, number)
    except AttributeError:
        return number
    return number if payload is None else x.b.make(payload)


@guard_methods()
class ArithmeticMethods(Methods):
    """Sums, products, powers, remainders, and what joins two tensors elementwise."""

    __slots__ = ()

    # ---- operators ----------------------------------------------------------------------------
    # Python specialises the look-up of an attribute, not of a method that is one: hence two lines.

    def __add__(self, other: Tensor | Number) -> Tensor:
        try:
            function = self.b.add
            return function(self, other)
        except DTypeError as error:
            return unknown_operand(error, other)  # type: ignore[no-any-return]

    __radd__ = __add__

    def __sub__(self, other: Tensor | Number) -> Tensor:
        try:
            function = self.b.sub
            return function(self, other)
        except DTypeError as error:
            return unknown_operand(error, other)  # type: ignore[no-any-return]

    def __rsub__(self, other: Number) -> Tensor:
        return self.b.sub(number_like(self, other), self)

    def __mul__(self, other: Tensor | Number) -> Tensor:
        try:
            function = self.b.mul
            return function(self, other)
        except DTypeError as error:
            return unknown_operand(error, other)  # type: ignore[no-any-return]

    __rmul__ = __mul__

    def __truediv__(self, other: Tensor | Number) -> Tensor:
        try:
            function = self.b.div
            return function(self, other)
        except DTypeError as error:
            return unknown_operand(error, other)  # type: ignore[no-any-return]

    def __rtruediv__(self, other: Number) -> Tensor:
        return self.b.div(number_like(self, other), self)

    def __floordiv__(self, other: Tensor | Number) -> Tensor:
        return self.b.floor_divide(self, other)

    def __rfloordiv__(self, other: Number) -> Tensor:
        return self.b.floor_divide(number_like(self, other), self)

    def __mod__(self, other: Tensor | Number) -> Tensor:
        return self.b.remainder(self, other)

    def __rmod__(self, other: Number) -> Tensor:
        return self.b.remainder(number_like(self, other), self)

    def __divmod__(self, other: Tensor | Number) -> tuple[Tensor, Tensor]:
        return self.b.floor_divide(self, other), self.b.remainder(self, other)

    def __rdivmod__(self, other: Number) -> tuple[Tensor, Tensor]:
        return self.b.floor_divide(other, self), self.b.remainder(other, self)

    def __pow__(self, other: Tensor | Number) -> Tensor:
        return self.b.pow(self, other)

    def __rpow__(self, other: Number) -> Tensor:
        return self.b.pow(number_like(self, other), self)

    def __neg__(self) -> Tensor:
        return self.b.neg(self)

    def __pos__(self) -> Tensor:
        return self.b.reshape(self, self.v.shape)

    def __abs__(self) -> Tensor:
        return self.b.abs(self)

    # ---- sums and products --------------------------------------------------------------------

    def add(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """Return x + alpha * other; `or` of bools.

        Args:
            other: a tensor that broadcasts with x, or a number.
            alpha: factor of `other`.

        Gradient: g for x, alpha g for other, summed over broadcast dims.

        Example:
            >>> burn.tensor([1, 2]).add(burn.tensor([10, 20]), alpha=2)
            tensor([21, 42])
        """
        if alpha == 1:
            return self.b.add(self, other)
        return self.b.add(self, _times(other, alpha))

    def sub(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """Return x - alpha * other.

        Args:
            other: a tensor that broadcasts with x, or a number.
            alpha: factor of `other`.

        Raises:
            DTypeError: both are bool.

        Gradient: g for x, -alpha g for other.

        Example:
            >>> burn.tensor([5, 5]).sub(1)
            tensor([4, 4])
        """
        if alpha == 1:
            return self.b.sub(self, other)
        return self.b.sub(self, _times(other, alpha))

    def rsub(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """Return other - alpha * x.

        Gradient: -alpha g for x, g for other.

        Example:
            >>> burn.tensor([1, 2]).rsub(10)
            tensor([9, 8])
        """
        return self.b.sub(other, self if alpha == 1 else self.b.mul(self, alpha))

    def mul(self, other: Tensor | Number) -> Tensor:
        """Return x * other; `and` of bools.

        Gradient: g other for x, g x for other.

        Example:
            >>> burn.tensor([1.0, 2.0]).mul(3)
            tensor([3., 6.])
        """
        return self.b.mul(self, other)

    def div(self, other: Tensor | Number, *, rounding_mode: str | None = None) -> Tensor:
        """Return x / other, rounded as asked.

        Args:
            other: a tensor that broadcasts with x, or a number.
            rounding_mode: None for true division (integers give the default float), `trunc` to
                round towards zero, `floor` to round down. Integers divided by zero give 0.

        Raises:
            ArgumentError: another rounding mode.

        Gradient: g / other for x, -g x / other^2 for other; zero when rounded.

        Example:
            >>> burn.tensor([-7, 7]).div(2, rounding_mode="floor")
            tensor([-4,  3])
        """
        if rounding_mode is None:
            return self.b.div(self, other)
        if rounding_mode == "floor":
            return self.b.floor_divide(self, other)
        if rounding_mode == "trunc":
            return self.b.div_trunc(self, other)
        raise ArgumentError(
            "div", "rounding_mode is None, 'trunc' or 'floor'", got=repr(rounding_mode)
        )

    def true_divide(self, other: Tensor | Number) -> Tensor:
        """Return x / other; integers give the default float.

        Gradient: g / other for x, -g x / other^2 for other.

        Example:
            >>> burn.tensor([1, 2]).true_divide(2)
            tensor([0.5000, 1.0000])
        """
        return self.b.div(self, other)

    def floor_divide(self, other: Tensor | Number) -> Tensor:
        """Return floor(x / other); integers divided by zero give 0.

        Gradient: zero.

        Example:
            >>> burn.tensor([-7, 7]).floor_divide(2)
            tensor([-4,  3])
        """
        return self.b.floor_divide(self, other)

    def remainder(self, other: Tensor | Number) -> Tensor:
        """Return x modulo other with the divisor's sign, as Python's `%`.

        x - other * floor(x / other)

        Gradient: g for x, -g floor(x / other) for other.

        Example:
            >>> burn.tensor([-7, 7]).remainder(4)
            tensor([1, 3])
        """
        return self.b.remainder(self, other)

    def fmod(self, other: Tensor | Number) -> Tensor:
        """Return x modulo other with the dividend's sign, as C's fmod.

        x - other * trunc(x / other)

        Gradient: g for x, -g trunc(x / other) for other.

        Example:
            >>> burn.tensor([-7, 7]).fmod(4)
            tensor([-3,  3])
        """
        return self.b.fmod(self, other)

    def pow(self, exponent: Tensor | Number) -> Tensor:
        """Return x to the power `exponent`.

        Args:
            exponent: the power, a tensor or a number; broadcasts with x.

        Gradient: g exponent x^(exponent - 1) for x (0 where exponent is 0),
        g x^exponent log(x) for exponent (0 where x is 0 and exponent >= 0).

        Example:
            >>> burn.tensor([1.0, 2.0, 3.0]).pow(2)
            tensor([1., 4., 9.])
        """
        return self.b.pow(self, exponent)

    def float_power(self, exponent: Tensor | Number) -> Tensor:
        """Return x to the power `exponent`, computed in float64.

        Gradient: as `pow`.

        Example:
            >>> burn.tensor([4]).float_power(0.5)
            tensor([2.], dtype=burn.float64)
        """
        from burn_std.dtypes import float64

        power = exponent.b.cast(exponent, float64) if isinstance(exponent, TensorBase) else exponent
        return self.b.pow(self.b.cast(self, float64), power)

    # ---- extremes and mixtures ----------------------------------------------------------------

    def maximum(self, other: Tensor | Number) -> Tensor:
        """Return the larger of x and other; NaN wins.

        Gradient: g to the larger one, halves where they are equal.

        Example:
            >>> burn.tensor([1, 5]).maximum(burn.tensor([3, 2]))
            tensor([3, 5])
        """
        return self.b.maximum(self, stored("maximum", other, self.dtype))

    def minimum(self, other: Tensor | Number) -> Tensor:
        """Return the smaller of x and other; NaN wins.

        Gradient: g to the smaller one, halves where they are equal.

        Example:
            >>> burn.tensor([1, 5]).minimum(burn.tensor([3, 2]))
            tensor([1, 2])
        """
        return self.b.minimum(self, stored("minimum", other, self.dtype))

    def clamp(
        self, min: Tensor | Number | None = None, max: Tensor | Number | None = None
    ) -> Tensor:
        """Return min(max(x, min), max); NaN stays.

        Args:
            min: lower bound, a number or a tensor that broadcasts, or None.
            max: upper bound, likewise.

        Raises:
            ArgumentError: both bounds are None.
            DTypeError: a bound is an integer that the dtype of x cannot hold.

        Gradient: g where min <= x <= max; a tensor bound gets g where it is the result.

        Example:
            >>> burn.tensor([-1.0, 0.5, 2.0]).clamp(0, 1)
            tensor([0.0000, 0.5000, 1.0000])
        """
        if min is None and max is None:
            raise ArgumentError(
                "clamp", "at least one of min and max must be given", got="None, None"
            )
        return self.b.clamp(
            self,
            min if min is None else number_like(self, stored("clamp", min, self.dtype)),
            max if max is None else number_like(self, stored("clamp", max, self.dtype)),
        )

    clip = clamp

    def clamp_min(self, min: Tensor | Number) -> Tensor:
        """Return max(x, min).

        Gradient: g where x >= min.

        Example:
            >>> burn.tensor([-1, 1]).clamp_min(0)
            tensor([0, 1])
        """
        return self.b.clamp(self, number_like(self, stored("clamp_min", min, self.dtype)), None)

    def clamp_max(self, max: Tensor | Number) -> Tensor:
        """Return min(x, max).

        Gradient: g where x <= max.

        Example:
            >>> burn.tensor([-1, 1]).clamp_max(0)
            tensor([-1,  0])
        """
        return self.b.clamp(self, None, number_like(self, stored("clamp_max", max, self.dtype)))

    def lerp(self, end: Tensor | Number, weight: Tensor | Number) -> Tensor:
        """Return x + weight (end - x).

        Args:
            end: value at weight 1.
            weight: a number or a tensor that broadcasts.

        DTypes: floats.

        Gradient: g (1 - weight) for x, g weight for end, g (end - x) for weight.

        Example:
            >>> burn.tensor([0.0, 10.0]).lerp(burn.tensor([10.0, 20.0]), 0.5)
            tensor([ 5., 15.])
        """
        return self.b.lerp(self, end, weight)

    def atan2(self, other: Tensor | Number) -> Tensor:
        """Return the angle in radians, in [-pi, pi], of the points (other, x).

        Gradient: g other / (x^2 + other^2) for x, -g x / (x^2 + other^2) for other.

        Example:
            >>> burn.tensor([1.0]).atan2(burn.tensor([1.0]))
            tensor([0.7854])
        """
        return self.b.atan2(self, other)

    arctan2 = atan2

    def hypot(self, other: Tensor | Number) -> Tensor:
        """Return sqrt(x^2 + other^2) without overflow.

        DTypes: floats.

        Gradient: g x / out for x, g other / out for other.

        Example:
            >>> burn.tensor([3.0]).hypot(burn.tensor([4.0]))
            tensor([5.])
        """
        return self.b.hypot(self, other)

    def logaddexp(self, other: Tensor | Number) -> Tensor:
        """Return log(exp(x) + exp(other)), stable.

        Gradient: g softmax weights of the two.

        Example:
            >>> burn.tensor([0.0]).logaddexp(burn.tensor([0.0]))
            tensor([0.6931])
        """
        return self.b.logaddexp(self, other)

    def xlogy(self, other: Tensor | Number) -> Tensor:
        """Return x log(other), and 0 where x is 0 unless other is NaN.

        Gradient: g log(other) for x, g x / other for other.

        Example:
            >>> burn.tensor([0.0, 1.0]).xlogy(burn.tensor([0.0, 1.0]))
            tensor([0., 0.])
        """
        b = self.b
        log = (
            b.log(other)
            if isinstance(other, TensorBase)
            else b.log(b.scalar(other, b.default_float))
        )
        zero = b.logical_and(b.eq(self, 0), b.logical_not(b.isnan(log)))
        # The product is not formed where it would be 0 * inf, so no NaN enters the gradient.
        return b.where(zero, 0.0, b.mul(self, b.where(zero, 0.0, log)))

    # ---- three tensors ------------------------------------------------------------------------

    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """Return x + value * tensor1 * tensor2.

        Gradient: defined for all three.

        Example:
            >>> burn.tensor([1.0]).addcmul(burn.tensor([2.0]), burn.tensor([3.0]), value=0.5)
            tensor([4.])
        """
        product = self.b.mul(tensor1, tensor2)
        return self.b.add(self, product if value == 1 else self.b.mul(product, value))

    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """Return x + value * tensor1 / tensor2.

        Gradient: defined for all three.

        Example:
            >>> burn.tensor([1.0]).addcdiv(burn.tensor([6.0]), burn.tensor([3.0]))
            tensor([3.])
        """
        quotient = self.b.div(tensor1, tensor2)
        return self.b.add(self, quotient if value == 1 else self.b.mul(quotient, value))

    subtract = sub
    multiply = mul
    divide = div


def _times(x: Tensor | Number, factor: Number) -> Any:
    return x.b.mul(x, factor) if isinstance(x, TensorBase) else x * factor
