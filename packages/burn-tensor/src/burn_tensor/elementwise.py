"""Maps of one tensor: exponentials, roots, trigonometry, rounding, activations.

Those that leave the integers (exp, sqrt, sin, ...) turn integers and bools into the default float.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn_std import ArgumentError, DType
from burn_std.dtypes import int64
from burn_tensor.arguments import as_float, as_int, one_dim
from burn_tensor.guard import guard_methods
from burn_tensor.methods import Methods, as_tensor

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


@guard_methods()
class ElementwiseMethods(Methods):
    """One value in, one value out, the shape stays."""

    __slots__ = ()

    def exp(self) -> Tensor:
        """Return e to the power x.

        Gradient: g exp(x).

        Example:
            >>> burn.tensor([0.0, 1.0]).exp()
            tensor([1.0000, 2.7183])
        """
        return self.b.exp(self)

    def expm1(self) -> Tensor:
        """Return exp(x) - 1, exact near 0.

        Gradient: g exp(x).

        Example:
            >>> burn.tensor([0.0]).expm1()
            tensor([0.])
        """
        return self.b.expm1(self)

    def log(self) -> Tensor:
        """Return the natural logarithm of x.

        Gradient: g / x.

        Example:
            >>> burn.tensor([1.0, 10.0]).log()
            tensor([0.0000, 2.3026])
        """
        return self.b.log(self)

    def log1p(self) -> Tensor:
        """Return log(1 + x), exact near 0.

        Gradient: g / (1 + x).

        Example:
            >>> burn.tensor([0.0]).log1p()
            tensor([0.])
        """
        return self.b.log1p(self)

    def log2(self) -> Tensor:
        """Return the base-2 logarithm of x.

        Gradient: g / (x log 2).

        Example:
            >>> burn.tensor([8.0]).log2()
            tensor([3.])
        """
        return self.b.log2(self)

    def log10(self) -> Tensor:
        """Return the base-10 logarithm of x.

        Gradient: g / (x log 10).

        Example:
            >>> burn.tensor([1.0]).log10()
            tensor([0.])
        """
        return self.b.log10(self)

    def sqrt(self) -> Tensor:
        """Return the square root of x; NaN below 0.

        Gradient: g / (2 sqrt(x)).

        Example:
            >>> burn.tensor([4.0, 9.0]).sqrt()
            tensor([2., 3.])
        """
        return self.b.sqrt(self)

    def rsqrt(self) -> Tensor:
        """Return 1 / sqrt(x).

        Gradient: -g x^(-3/2) / 2.

        Example:
            >>> burn.tensor([4.0]).rsqrt()
            tensor([0.5000])
        """
        return self.b.rsqrt(self)

    def reciprocal(self) -> Tensor:
        """Return 1 / x.

        Gradient: -g / x^2.

        Example:
            >>> burn.tensor([4.0]).reciprocal()
            tensor([0.2500])
        """
        return self.b.reciprocal(self)

    def sin(self) -> Tensor:
        """Return the sine of x, in radians.

        Gradient: g cos(x).

        Example:
            >>> burn.tensor([0.0]).sin()
            tensor([0.])
        """
        return self.b.sin(self)

    def cos(self) -> Tensor:
        """Return the cosine of x, in radians.

        Gradient: -g sin(x).

        Example:
            >>> burn.tensor([0.0]).cos()
            tensor([1.])
        """
        return self.b.cos(self)

    def tan(self) -> Tensor:
        """Return the tangent of x, in radians.

        Gradient: g (1 + tan(x)^2).

        Example:
            >>> burn.tensor([0.0]).tan()
            tensor([0.])
        """
        return self.b.tan(self)

    def sinh(self) -> Tensor:
        """Return the hyperbolic sine of x.

        Gradient: g cosh(x).

        Example:
            >>> burn.tensor([0.0]).sinh()
            tensor([0.])
        """
        return self.b.sinh(self)

    def cosh(self) -> Tensor:
        """Return the hyperbolic cosine of x.

        Gradient: g sinh(x).

        Example:
            >>> burn.tensor([0.0]).cosh()
            tensor([1.])
        """
        return self.b.cosh(self)

    def tanh(self) -> Tensor:
        """Return the hyperbolic tangent of x.

        Gradient: g (1 - tanh(x)^2).

        Example:
            >>> burn.tensor([0.0]).tanh()
            tensor([0.])
        """
        return self.b.tanh(self)

    def asin(self) -> Tensor:
        """Return the inverse sine of x, in radians; NaN outside [-1, 1].

        Gradient: g / sqrt(1 - x^2).

        Example:
            >>> burn.tensor([1.0]).asin()
            tensor([1.5708])
        """
        return self.b.asin(self)

    def acos(self) -> Tensor:
        """Return the inverse cosine of x, in radians; NaN outside [-1, 1].

        Gradient: -g / sqrt(1 - x^2).

        Example:
            >>> burn.tensor([1.0]).acos()
            tensor([0.])
        """
        return self.b.acos(self)

    def atan(self) -> Tensor:
        """Return the inverse tangent of x, in radians.

        Gradient: g / (1 + x^2).

        Example:
            >>> burn.tensor([1.0]).atan()
            tensor([0.7854])
        """
        return self.b.atan(self)

    def asinh(self) -> Tensor:
        """Return the inverse hyperbolic sine of x.

        Gradient: g / sqrt(x^2 + 1).

        Example:
            >>> burn.tensor([0.0]).asinh()
            tensor([0.])
        """
        return self.b.asinh(self)

    def acosh(self) -> Tensor:
        """Return the inverse hyperbolic cosine of x; NaN below 1.

        Gradient: g / sqrt(x^2 - 1).

        Example:
            >>> burn.tensor([1.0]).acosh()
            tensor([0.])
        """
        return self.b.acosh(self)

    def atanh(self) -> Tensor:
        """Return the inverse hyperbolic tangent of x; NaN outside [-1, 1].

        Gradient: g / (1 - x^2).

        Example:
            >>> burn.tensor([0.0]).atanh()
            tensor([0.])
        """
        return self.b.atanh(self)

    def erf(self) -> Tensor:
        """Return the error function of x.

        Gradient: g 2 / sqrt(pi) exp(-x^2).

        Example:
            >>> burn.tensor([0.0]).erf()
            tensor([0.])
        """
        return self.b.erf(self)

    def sigmoid(self) -> Tensor:
        """Return 1 / (1 + exp(-x)).

        Gradient: g s (1 - s) with s = sigmoid(x).

        Example:
            >>> burn.tensor([0.0]).sigmoid()
            tensor([0.5000])
        """
        return self.b.sigmoid(self)

    def neg(self) -> Tensor:
        """Return -x; integers wrap.

        Gradient: -g.

        Example:
            >>> burn.tensor([1, -2]).neg()
            tensor([-1,  2])
        """
        return self.b.neg(self)

    def abs(self) -> Tensor:
        """Return |x|; the smallest integer stays.

        Gradient: g sign(x), 0 at 0.

        Example:
            >>> burn.tensor([-1.5, 2.0]).abs()
            tensor([1.5000, 2.0000])
        """
        return self.b.abs(self)

    def sign(self) -> Tensor:
        """Return -1, 0 or 1; 0 for NaN.

        Gradient: zero.

        Example:
            >>> burn.tensor([-3.0, 0.0]).sign()
            tensor([-1.,  0.])
        """
        return self.b.sign(self)

    def square(self) -> Tensor:
        """Return x * x; bools give int64.

        Gradient: 2 g x.

        Example:
            >>> burn.tensor([3, -4]).square()
            tensor([ 9, 16])
        """
        b = self.b
        return b.square(b.cast(self, int64) if self.dtype.is_bool else self)

    def floor(self) -> Tensor:
        """Return the largest integer not above x.

        Gradient: zero.

        Example:
            >>> burn.tensor([1.7, -1.2]).floor()
            tensor([ 1., -2.])
        """
        return self.b.floor(self)

    def ceil(self) -> Tensor:
        """Return the smallest integer not below x.

        Gradient: zero.

        Example:
            >>> burn.tensor([1.2, -1.7]).ceil()
            tensor([ 2., -1.])
        """
        return self.b.ceil(self)

    def trunc(self) -> Tensor:
        """Return x without its fraction.

        Gradient: zero.

        Example:
            >>> burn.tensor([1.7, -1.7]).trunc()
            tensor([ 1., -1.])
        """
        return self.b.trunc(self)

    def relu(self) -> Tensor:
        """Return max(x, 0); NaN stays.

        Gradient: g where x > 0.

        Example:
            >>> burn.tensor([-1.0, 2.0]).relu()
            tensor([0., 2.])
        """
        return self.b.relu(self)

    absolute = abs
    negative = neg
    sgn = sign
    fix = trunc
    arcsin = asin
    arccos = acos
    arctan = atan
    arcsinh = asinh
    arccosh = acosh
    arctanh = atanh

    def exp2(self) -> Tensor:
        """Return 2 to the power x.

        Gradient: g 2^x log 2.

        Example:
            >>> burn.tensor([3.0]).exp2()
            tensor([8.])
        """
        return self.b.pow(2, as_float(self))

    def frac(self) -> Tensor:
        """Return x - trunc(x).

        Gradient: g.

        Example:
            >>> burn.tensor([1.5, -1.5]).frac()
            tensor([ 0.5000, -0.5000])
        """
        return self.b.sub(self, self.b.trunc(self))

    def logit(self, eps: float | None = None) -> Tensor:
        """Return log(x / (1 - x)), the inverse of sigmoid.

        Args:
            eps: x is clamped to [eps, 1 - eps] first; None leaves it.

        Gradient: g / (x (1 - x)).

        Example:
            >>> burn.tensor([0.5]).logit()
            tensor([0.])
        """
        b = self.b
        x = as_tensor(self) if eps is None else b.clamp(self, eps, 1 - eps)
        return b.log(b.div(x, b.sub(1, x)))

    def deg2rad(self) -> Tensor:
        """Return degrees as radians: x pi / 180.

        Units: degrees in, radians out.

        Gradient: g pi / 180.

        Example:
            >>> burn.tensor([180.0]).deg2rad()
            tensor([3.1416])
        """
        return self.b.mul(self, 0.017453292519943295)

    def rad2deg(self) -> Tensor:
        """Return radians as degrees: x 180 / pi.

        Units: radians in, degrees out.

        Gradient: g 180 / pi.

        Example:
            >>> burn.tensor([0.0]).rad2deg()
            tensor([0.])
        """
        return self.b.mul(self, 57.29577951308232)

    def round(self, *, decimals: int = 0) -> Tensor:
        """Return x rounded to the nearest, halves to even, at a decimal place.

        Args:
            decimals: places after the point; negative rounds before it.

        Gradient: zero.

        Example:
            >>> burn.tensor([0.5, 1.5, 2.5]).round()
            tensor([0., 2., 2.])
        """
        return self.b.round(self, as_int("round", "decimals", decimals))

    def nan_to_num(
        self, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None
    ) -> Tensor:
        """Return x with NaN and infinities replaced.

        Args:
            nan: stands for NaN; None means 0.
            posinf: stands for inf; None means the largest finite value of the dtype.
            neginf: stands for -inf; None means the smallest.

        Gradient: g where x is finite, else 0.

        Example:
            >>> burn.tensor([float("nan"), 1.0]).nan_to_num()
            tensor([0., 1.])
        """
        return self.b.nan_to_num(self, 0.0 if nan is None else nan, posinf, neginf)

    def softmax(self, dim: int, dtype: DType | None = None) -> Tensor:
        """Return exp(x) / sum(exp(x)) along a dim, stable; a row of -inf gives NaN.

        Args:
            dim: the dim that sums to 1.
            dtype: x is converted to it first.

        DTypes: floats; integers need `dtype`.

        Gradient: s (g - sum(g s)) with s the result.

        Example:
            >>> burn.tensor([0.0, 0.0]).softmax(0)
            tensor([0.5000, 0.5000])
        """
        return self.b.softmax(self, one_dim("softmax", dim, len(self.v.shape)), dtype)

    def log_softmax(self, dim: int, dtype: DType | None = None) -> Tensor:
        """Return log(softmax(x)) along a dim, stable.

        Args:
            dim: the dim that the softmax sums over.
            dtype: x is converted to it first.

        Gradient: g - exp(out) sum(g).

        Example:
            >>> burn.tensor([0.0, 0.0]).log_softmax(0)
            tensor([-0.6931, -0.6931])
        """
        return self.b.log_softmax(self, one_dim("log_softmax", dim, len(self.v.shape)), dtype)

    def quantize(
        self, dtype: DType, scale: Tensor | None = None, zero: Tensor | None = None
    ) -> Tensor:
        """Return x in a quantised dtype.

        q = clamp(round(x / scale) + zero, qmin, qmax)

        Args:
            dtype: a scheme made by `burn.quantized(...)`.
            scale: size of one step; None takes it from the range of x.
            zero: integer that stands for 0 (affine schemes); None likewise.

        Raises:
            ArgumentError: `dtype` is no quantised scheme.

        Gradient: none.

        Example:
            >>> burn.tensor([-1.0, 1.0]).quantize(burn.quantized(8)).dequantize()
            tensor([-1.,  1.])
        """
        if not dtype.is_quantized:
            raise ArgumentError(
                "quantize",
                "dtype is a quantised scheme",
                got=dtype,
                remedy="Write burn.quantized(8).",
            )
        return self.b.quantize(self, scale, zero, dtype)

    def dequantize(self, dtype: DType | None = None) -> Tensor:
        """Return the floats that a quantised tensor stands for: scale (q - zero).

        Args:
            dtype: float dtype of the result; None means the device's default.

        Gradient: 1: the cotangent of a quantised tensor is that of the floats it stands for.

        Example:
            >>> burn.tensor([0.0, 2.0]).quantize(burn.quantized(8)).dequantize()
            tensor([0., 2.])
        """
        return self.b.dequantize(self, dtype or self.b.default_float)
