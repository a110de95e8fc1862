"""Linear algebra as methods, under PyTorch's names: each is the function of `burn.linalg`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn_std import ShapeError
from burn_tensor.arguments import Number
from burn_tensor.guard import guard_methods
from burn_tensor.methods import Methods, as_tensor

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


def _linalg() -> Any:
    """Return `burn_tensor.linalg`, which is written over tensors and so imported after them."""
    from burn_tensor import linalg

    return linalg


@guard_methods()
class MatrixMethods(Methods):
    """Determinants, inverses and factors of matrices [*, N, N]."""

    __slots__ = ()

    def det(self) -> Tensor:
        """Return determinants, as `burn.linalg.det`.

        Gradient: det(x) inv(x)^T; where x is singular, from its cofactors.

        Example:
            >>> burn.tensor([[2.0, 0.0], [0.0, 3.0]]).det()
            tensor(6.)
        """
        return self.b.det(self)

    def logdet(self) -> Tensor:
        """Return the logarithm of determinants, -inf where they are 0, NaN where negative.

        Gradient: inv(x)^T.

        Example:
            >>> burn.tensor([[1.0, 0.0], [0.0, 1.0]]).logdet()
            tensor(0.)
        """
        shape = self.v.shape
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ShapeError("logdet", "needs square matrices", got=list(shape))
        sign, size = _linalg().slogdet(self)
        b = self.b
        return b.where(b.lt(sign, 0), float("nan"), size)

    def slogdet(self) -> Any:
        """Return (sign, logabsdet) of determinants, as `burn.linalg.slogdet`.

        Gradient: of logabsdet, where x is not singular.

        Example:
            >>> burn.tensor([[-1.0]]).slogdet().sign
            tensor(-1.)
        """
        return _linalg().slogdet(self)

    def inverse(self) -> Tensor:
        """Return inverses, as `burn.linalg.inv`.

        Raises:
            ExecutionError: a matrix is singular.

        Gradient: -inv(x)^T g inv(x)^T.

        Example:
            >>> burn.tensor([[2.0]]).inverse()
            tensor([[0.5000]])
        """
        return self.b.inverse(self)

    def pinverse(self) -> Tensor:
        """Return the Moore-Penrose inverse, as `burn.linalg.pinv`.

        Gradient: defined where the singular values differ.

        Example:
            >>> burn.tensor([[2.0], [0.0]]).pinverse()
            tensor([[0.5000, 0.0000]])
        """
        out: Tensor = _linalg().pinv(self)
        return out

    def matrix_power(self, n: int) -> Tensor:
        """Return x multiplied n times, as `burn.linalg.matrix_power`.

        Args:
            n: the power; negative ones are of the inverse.

        Gradient: defined.

        Example:
            >>> burn.tensor([[2.0]]).matrix_power(3)
            tensor([[8.]])
        """
        out: Tensor = _linalg().matrix_power(self, n)
        return out

    def matrix_exp(self) -> Tensor:
        """Return the exponential of matrices, as `burn.linalg.matrix_exp`.

        Gradient: defined.

        Example:
            >>> burn.tensor([[0.0, 1.0], [0.0, 0.0]]).matrix_exp()
            tensor([[1., 1.],
                    [0., 1.]])
        """
        out: Tensor = _linalg().matrix_exp(self)
        return out

    def cholesky(self, upper: bool = False) -> Tensor:
        """Return the Cholesky factor, as `burn.linalg.cholesky`.

        Args:
            upper: the upper one, from the upper triangle.

        Raises:
            ExecutionError: a matrix is not positive definite.

        Gradient: symmetric, as if every change of x were.

        Example:
            >>> burn.tensor([[4.0, 2.0], [2.0, 2.0]]).cholesky()
            tensor([[2., 0.],
                    [1., 1.]])
        """
        return self.b.cholesky(self, bool(upper))

    def cholesky_solve(self, input2: Tensor, upper: bool = False) -> Tensor:
        """Return X with A X = x, from the Cholesky factor of A.

        Args:
            input2: the factor, [*, N, N].
            upper: it is the upper one.

        Gradient: defined for both.

        Example:
            >>> burn.tensor([[2.0]]).cholesky_solve(burn.tensor([[2.0]]))
            tensor([[0.5000]])
        """
        out: Tensor = _linalg().cholesky_solve(self, input2, upper)
        return out

    def cholesky_inverse(self, upper: bool = False) -> Tensor:
        """Return the inverse of A, x being the Cholesky factor of A.

        Args:
            upper: it is the upper one.

        Gradient: defined.

        Example:
            >>> burn.tensor([[2.0]]).cholesky_inverse()
            tensor([[0.2500]])
        """
        out: Tensor = _linalg().cholesky_inverse(self, upper)
        return out

    def kron(self, other: Tensor) -> Tensor:
        """Return the Kronecker product: every element of x times all of other.

        Args:
            other: right operand.

        Gradient: defined for both.

        Example:
            >>> burn.tensor([1, 10]).kron(burn.tensor([1, 2]))
            tensor([ 1,  2, 10, 20])
        """
        from burn_tensor.joins import kron  # written over tensors, as linalg is

        return kron(as_tensor(self), other)

    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return beta x + alpha times the outer product of two vectors.

        Args:
            vec1: [M].
            vec2: [N].
            beta: factor of x; 0 leaves x unread, so its NaN does not show.
            alpha: factor of the product.

        Raises:
            ShapeError: an operand is no vector.

        Gradient: defined for all three.

        Example:
            >>> burn.zeros(2, 2).addr(burn.tensor([1.0, 2.0]), burn.tensor([1.0, 10.0]))
            tensor([[ 1., 10.],
                    [ 2., 20.]])
        """
        if len(vec1.shape) != 1 or len(vec2.shape) != 1:
            raise ShapeError(
                "addr", "needs two vectors", got=f"{list(vec1.shape)} and {list(vec2.shape)}"
            )
        outer = vec1.outer(vec2)
        if alpha != 1:
            outer = outer * alpha
        if beta == 0:
            return outer
        return outer + (as_tensor(self) if beta == 1 else as_tensor(self) * beta)
