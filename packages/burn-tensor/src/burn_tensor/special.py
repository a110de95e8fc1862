"""Special functions, and functions of sign: what densities and their logarithms are made of."""

from __future__ import annotations

from math import inf, log, pi
from typing import TYPE_CHECKING

from burn_backend import TensorBase
from burn_std import ArgumentError, DTypeError
from burn_tensor.arguments import Number, as_float, as_int, as_number, one_dim
from burn_tensor.guard import guard_methods
from burn_tensor.methods import Methods, as_tensor

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


@guard_methods()
class SpecialMethods(Methods):
    """Gamma, the error function's kin, and what signs decide."""

    __slots__ = ()

    # ---- gamma --------------------------------------------------------------------------------

    def lgamma(self) -> Tensor:
        """Return the logarithm of the magnitude of gamma(x); inf at 0, -1, -2, ...

        Gradient: g digamma(x).

        Example:
            >>> burn.tensor([1.0, 0.5, 5.0]).lgamma()
            tensor([0.0000, 0.5724, 3.1781])
        """
        return self.b.lgamma(self)

    def digamma(self) -> Tensor:
        """Return the derivative of lgamma; NaN at negative integers.

        Gradient: g polygamma(1, x).

        Example:
            >>> burn.tensor([1.0, 0.5]).digamma()
            tensor([-0.5772, -1.9635])
        """
        return self.b.digamma(self)

    def polygamma(self, n: int) -> Tensor:
        """Return the derivative of digamma, n times.

        Args:
            n: how often, up to 100; 0 is digamma itself.

        Raises:
            ArgumentError: n is negative or too large.

        Gradient: g polygamma(n + 1, x).

        Example:
            >>> burn.tensor([1.0, 0.5]).polygamma(1)
            tensor([1.6449, 4.9348])
        """
        order = as_int("polygamma", "n", n)
        return self.b.polygamma(self, order) if order else self.b.digamma(self)

    def mvlgamma(self, p: int) -> Tensor:
        """Return the logarithm of the multivariate gamma function of dimension p.

        log gamma_p(x) = p (p - 1) / 4 log(pi) + sum over j < p of lgamma(x - j / 2)

        Args:
            p: the dimension, up to 10000; x above (p - 1) / 2 has a finite value.

        Raises:
            ArgumentError: p is not positive, or too large.

        Gradient: g times the digammas, summed.

        Example:
            >>> burn.tensor([2.0]).mvlgamma(2)
            tensor([0.4516])
        """
        count = as_int("mvlgamma", "p", p)
        if not 1 <= count <= 10_000:
            raise ArgumentError("mvlgamma", "p is from 1 to 10000", got=count)
        b = self.b
        out = b.lgamma(self)
        for j in range(1, count):
            out = b.add(out, b.lgamma(b.sub(self, j / 2)))
        return b.add(out, count * (count - 1) / 4 * log(pi))

    # ---- the error function -------------------------------------------------------------------

    def erfc(self) -> Tensor:
        """Return 1 - erf(x), exact where erf rounds to 1.

        Gradient: -g 2 / sqrt(pi) exp(-x^2).

        Example:
            >>> burn.tensor([0.0, 1.0]).erfc()
            tensor([1.0000, 0.1573])
        """
        return self.b.erfc(self)

    def erfinv(self) -> Tensor:
        """Return y with erf(y) = x; infinite at -1 and 1, NaN beyond.

        Gradient: g sqrt(pi) / 2 exp(y^2).

        Example:
            >>> burn.tensor([0.0, 0.5]).erfinv()
            tensor([0.0000, 0.4769])
        """
        return self.b.erfinv(self)

    # ---- logarithms and quotients -------------------------------------------------------------

    def sinc(self) -> Tensor:
        """Return sin(pi x) / (pi x), and 1 at 0.

        Gradient: g (cos(pi x) - sinc(x)) / x, 0 at 0; of second order it is 0 at 0 too.

        Example:
            >>> burn.tensor([0.0, 0.5]).sinc()
            tensor([1.0000, 0.6366])
        """
        b = self.b
        angle = b.mul(self, pi)
        zero = b.eq(self, 0)
        safe = b.where(zero, 1.0, angle)
        return b.where(zero, 1.0, b.div(b.sin(safe), safe))

    def logcumsumexp(self, dim: int) -> Tensor:
        """Return log(cumsum(exp(x))) along a dim, without overflow.

        Args:
            dim: the dim to walk.

        Gradient: each sum's g by the share of its terms.

        Example:
            >>> burn.tensor([0.0, 0.0, 10.0]).logcumsumexp(0)
            tensor([ 0.0000,  0.6931, 10.0001])
        """
        return self.b.logcumsumexp(self, one_dim("logcumsumexp", dim, len(self.v.shape)))

    def logaddexp2(self, other: Tensor) -> Tensor:
        """Return log2(2^x + 2^other), without overflow.

        Gradient: the shares of the two terms.

        Example:
            >>> burn.tensor([3.0]).logaddexp2(burn.tensor([3.0]))
            tensor([4.])
        """
        b = self.b
        return b.div(b.logaddexp(b.mul(self, log(2.0)), b.mul(other, log(2.0))), log(2.0))

    def ldexp(self, other: Tensor | Number) -> Tensor:
        """Return x 2^other.

        Gradient: g 2^other for x, g out log(2) for a float other.

        Example:
            >>> burn.tensor([1.5]).ldexp(burn.tensor([2]))
            tensor([6.])
        """
        b = self.b
        if isinstance(other, TensorBase):
            x = as_float(other)
        else:
            x = b.scalar(float(as_number("ldexp", "other", other)), b.default_float)
        return b.mul(self, b.pow(2.0, x))

    # ---- signs --------------------------------------------------------------------------------

    def signbit(self) -> Tensor:
        """Return where x is negative, -0.0 being so.

        Example:
            >>> burn.tensor([-1.0, -0.0, 0.0]).signbit()
            tensor([ True,  True, False])
        """
        b = self.b
        below = b.lt(self, 0)
        if not self.dtype.is_float:
            return below
        return b.logical_or(below, b.logical_and(b.eq(self, 0), b.lt(b.reciprocal(self), 0)))

    def copysign(self, other: Tensor | Number) -> Tensor:
        """Return the magnitude of x with the sign of other, -0.0 being negative.

        Args:
            other: whose sign is taken.

        Gradient: g sign(x) sign(other) for x, 0 at 0; none for other.

        Example:
            >>> burn.tensor([1.0, -2.0]).copysign(burn.tensor([-0.0, 3.0]))
            tensor([-1.,  2.])
        """
        b = self.b
        x = as_float(self)
        size = b.abs(x)
        if not isinstance(other, TensorBase):
            other = x.new_full((), other)
        return b.where(as_tensor(other).signbit(), b.neg(size), size)

    def heaviside(self, values: Tensor) -> Tensor:
        """Return 0 where x is negative or NaN, 1 where it is positive, `values` where it is 0.

        Args:
            values: of x's dtype; the two broadcast.

        Raises:
            DTypeError: the dtypes differ.

        Example:
            >>> burn.tensor([-1.0, 0.0, 2.0]).heaviside(burn.tensor(0.5))
            tensor([0.0000, 0.5000, 1.0000])
        """
        if values.dtype is not self.dtype:
            raise DTypeError(
                "heaviside", "both have one dtype", got=f"{self.dtype.name}, {values.dtype.name}",
                remedy="Convert values with values.to(x.dtype).",
            )  # fmt: skip
        b = self.b
        return b.where(b.eq(self, 0), values, b.cast(b.gt(self, 0), self.dtype)).detach()

    def isposinf(self) -> Tensor:
        """Return where x is inf.

        Example:
            >>> burn.tensor([1.0, float("inf")]).isposinf()
            tensor([False,  True])
        """
        return self._is(inf)

    def isneginf(self) -> Tensor:
        """Return where x is -inf.

        Example:
            >>> burn.tensor([1.0, float("-inf")]).isneginf()
            tensor([False,  True])
        """
        return self._is(-inf)

    def _is(self, value: float) -> Tensor:
        b = self.b
        return b.eq(self, value) if self.dtype.is_float else b.ne(self, self)

    def fmax(self, other: Tensor) -> Tensor:
        """Return the larger of x and other; a number wins over NaN.

        Args:
            other: the two broadcast and promote.

        Gradient: g for the one taken, halves where they are equal.

        Example:
            >>> nan = float("nan")
            >>> burn.tensor([1.0, nan, 3.0]).fmax(burn.tensor([2.0, 2.0, nan]))
            tensor([2., 2., 3.])
        """
        return self._number("maximum", other)

    def fmin(self, other: Tensor) -> Tensor:
        """Return the smaller of x and other; a number wins over NaN.

        Args:
            other: the two broadcast and promote.

        Gradient: g for the one taken, halves where they are equal.

        Example:
            >>> nan = float("nan")
            >>> burn.tensor([1.0, nan, 3.0]).fmin(burn.tensor([2.0, 2.0, nan]))
            tensor([1., 2., 3.])
        """
        return self._number("minimum", other)

    def _number(self, name: str, other: Tensor) -> Tensor:
        b = self.b
        out: Tensor = getattr(b, name)(self, other)
        if not out.dtype.is_float:
            return out
        out = b.where(b.isnan(other), self, out) if other.dtype.is_float else out
        return b.where(b.isnan(self), other, out) if self.dtype.is_float else out
