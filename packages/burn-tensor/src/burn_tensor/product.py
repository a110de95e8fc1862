"""Products of vectors, matrices and batches of them."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from burn_std import ArgumentError, DTypeError, ShapeError
from burn_std.dtypes import bool_
from burn_tensor.arguments import Number, need_rank, need_tensor, one_dim
from burn_tensor.arithmetic import unknown_operand
from burn_tensor.guard import guard_methods
from burn_tensor.methods import Methods, as_tensor

if TYPE_CHECKING:
    from burn_backend import TensorBase
    from burn_tensor.tensor import Tensor

_CDIST_MODES = tuple(
    f"{use}_mm_for_euclid_dist{when}"
    for use, when in (("use", "_if_necessary"), ("use", ""), ("donot_use", ""))
)


@guard_methods()
class ProductMethods(Methods):
    """Contractions; f16 and bf16 accumulate in f32, integers wrap."""

    __slots__ = ()

    def __matmul__(self, other: Tensor) -> Tensor:
        try:
            return self.b.matmul(self, other)
        except DTypeError as error:
            return unknown_operand(error, other)  # type: ignore[no-any-return]

    def matmul(self, other: Tensor) -> Tensor:
        """Return the matrix product; leading dims broadcast, vectors count as rows or columns.

        Args:
            other: right operand.

        Shapes:
            x: [..., M, K] or [K]
            other: [..., K, N] or [K]
            returns: [..., M, N], without the dims that vectors lack

        DTypes: integers and floats.

        Raises:
            ShapeError: inner sizes differ, or an operand has no dims.

        Gradient: g @ other.mT for x, x.mT @ g for other.

        Example:
            >>> burn.tensor([[1, 2], [3, 4]]).matmul(burn.tensor([1, 1]))
            tensor([3, 7])
        """
        return self.b.matmul(self, other)

    def mm(self, mat2: Tensor) -> Tensor:
        """Return the product of two matrices.

        Shapes:
            x: [M, K]
            mat2: [K, N]
            returns: [M, N]

        Gradient: as `matmul`.

        Example:
            >>> burn.ones(2, 3).mm(burn.ones(3, 1))
            tensor([[3.],
                    [3.]])
        """
        _ranks("mm", 2, self, mat2)
        return self.b.matmul(self, mat2)

    def bmm(self, mat2: Tensor) -> Tensor:
        """Return the products of two batches of matrices.

        Shapes:
            x: [B, M, K]
            mat2: [B, K, N]
            returns: [B, M, N]

        Gradient: as `matmul`.

        Example:
            >>> burn.ones(4, 2, 3).bmm(burn.ones(4, 3, 1)).shape
            (4, 2, 1)
        """
        _ranks("bmm", 3, self, mat2)
        if self.shape[0] != mat2.shape[0]:
            raise ShapeError(
                "bmm", "batches must match", got=f"{self.shape[0]} and {mat2.shape[0]}"
            )
        return self.b.matmul(self, mat2)

    def mv(self, vec: Tensor) -> Tensor:
        """Return the product of a matrix and a vector.

        Shapes:
            x: [M, K]
            vec: [K]
            returns: [M]

        Gradient: as `matmul`.

        Example:
            >>> burn.ones(2, 3).mv(burn.ones(3))
            tensor([3., 3.])
        """
        need_rank("mv", self, 2)
        _ranks("mv", 1, vec)
        return self.b.matmul(self, vec)

    def dot(self, other: Tensor) -> Tensor:
        """Return the sum of the products of two vectors.

        Shapes:
            x: [K]
            other: [K]
            returns: []

        Gradient: g other for x, g x for other.

        Example:
            >>> burn.tensor([1, 2]).dot(burn.tensor([3, 4]))
            tensor(11)
        """
        _ranks("dot", 1, self, other)
        return self.b.matmul(self, other)

    vdot = dot

    def inner(self, other: Tensor) -> Tensor:
        """Return sums of products over the last dims.

        out[i..., j...] = sum over k of x[i..., k] other[j..., k]

        Gradient: as `matmul`.

        Example:
            >>> burn.ones(2, 3).inner(burn.ones(4, 3)).shape
            (2, 4)
        """
        need_tensor("inner", "other", other)
        b = self.b
        if not self.shape or not other.shape:
            return b.mul(self, other)
        if self.shape[-1] != other.shape[-1]:
            raise ShapeError(
                "inner", "last extents must match", got=f"{self.shape[-1]} and {other.shape[-1]}"
            )
        k = self.shape[-1]
        left = as_tensor(self).reshape(_rows(self), k)
        right = other.reshape(_rows(other), k)
        return b.reshape(b.matmul(left, right.t()), (*self.shape[:-1], *other.shape[:-1]))

    def outer(self, vec2: Tensor) -> Tensor:
        """Return the products of every pair of two vectors.

        Shapes:
            x: [M]
            vec2: [N]
            returns: [M, N]

        Gradient: g @ vec2 for x, g.T @ x for vec2.

        Example:
            >>> burn.tensor([1, 2]).outer(burn.tensor([1, 10]))
            tensor([[ 1, 10],
                    [ 2, 20]])
        """
        _ranks("outer", 1, self, vec2)
        return self.b.mul(self.b.unsqueeze(self, (1,)), vec2)

    ger = outer

    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return beta x + alpha (mat1 @ mat2); x broadcasts and is not read when beta is 0.

        Shapes:
            x: broadcasts to [M, N]
            mat1: [M, K]
            mat2: [K, N]
            returns: [M, N]

        Gradient: defined for all three.

        Example:
            >>> burn.zeros(1).addmm(burn.ones(2, 3), burn.ones(3, 2), alpha=2).shape
            (2, 2)
        """
        _ranks("addmm", 2, mat1, mat2)
        return _scaled_sum(self, mat1, mat2, beta, alpha)

    def baddbmm(
        self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
    ) -> Tensor:
        """Return beta x + alpha (batch1 @ batch2); x broadcasts and is not read when beta is 0.

        Shapes:
            x: broadcasts to [B, M, N]
            batch1: [B, M, K]
            batch2: [B, K, N]
            returns: [B, M, N]

        Gradient: defined for all three.

        Example:
            >>> burn.zeros(1).baddbmm(burn.ones(4, 2, 3), burn.ones(4, 3, 2)).shape
            (4, 2, 2)
        """
        _ranks("baddbmm", 3, batch1, batch2)
        return _scaled_sum(self, batch1, batch2, beta, alpha)

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return beta x + alpha (mat @ vec); x broadcasts and is not read when beta is 0.

        Gradient: defined for all three.

        Example:
            >>> burn.zeros(2).addmv(burn.ones(2, 3), burn.ones(3))
            tensor([3., 3.])
        """
        _ranks("addmv", 2, mat)
        _ranks("addmv", 1, vec)
        return _scaled_sum(self, mat, vec, beta, alpha)

    def cross(self, other: Tensor, dim: int | None = None) -> Tensor:
        """Return the cross product of 3-vectors along a dim.

        Args:
            other: right operand, of a shape that broadcasts.
            dim: the dim of extent 3; None takes the first of that extent.

        Raises:
            ShapeError: the dim has another extent.

        Gradient: other x g for x, g x x for other.

        Example:
            >>> burn.tensor([1, 0, 0]).cross(burn.tensor([0, 1, 0]))
            tensor([0, 0, 1])
        """
        shape = self.shape
        if dim is None:
            if 3 not in shape:
                raise ShapeError("cross", "a dim must have extent 3", got=list(shape))
            dim = shape.index(3)
        return self.b.cross(self, other, one_dim("cross", dim, len(shape)))

    def cdist(
        self,
        x2: Tensor,
        p: float = 2.0,
        compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
    ) -> Tensor:
        """Return the p-norm distances of every pair of two batches of vectors.

        Args:
            x2: the other batch.
            p: order of the norm; 0 counts differing coordinates, inf takes the largest.
            compute_mode: one of PyTorch's three names. It gives leave to multiply matrices, which
                is never made use of: distances are taken from differences, exact near 0.

        Shapes:
            x: [..., P, M]
            x2: [..., R, M]
            returns: [..., P, R]

        Gradient: that of `norm`; 0 between equal vectors.

        Example:
            >>> burn.tensor([[0.0, 0.0]]).cdist(burn.tensor([[3.0, 4.0]]))
            tensor([[5.]])
        """
        if compute_mode not in _CDIST_MODES:
            raise ArgumentError(
                "cdist", f"compute_mode is one of {', '.join(_CDIST_MODES)}", got=repr(compute_mode)
            )
        b = self.b
        need_tensor("cdist", "x2", x2)
        if len(self.shape) < 2 or len(x2.shape) < 2 or self.shape[-1] != x2.shape[-1]:
            raise ShapeError(
                "cdist", "both need rank 2 or more and one last extent",
                got=f"{list(self.shape)} and {list(x2.shape)}",
            )  # fmt: skip
        rows = b.unsqueeze(self, (len(self.shape) - 1,))
        columns = b.unsqueeze(x2, (len(x2.shape) - 2,))
        gap = b.sub(rows, columns)
        last = (len(gap.shape) - 1,)
        out = b.vector_norm(gap, last, False, float(p))
        if p == 0 and gap.node is not None:
            # A count has no slope; both operands are reached all the same, with zeros.
            return b.where(b.scalar(False, bool_), b.sum(gap, last, False, None), out)
        return out

    def corrcoef(self) -> Tensor:
        """Return the correlation matrix of variables in rows and observations in columns.

        Shapes:
            x: [V, N], or [N] for one variable
            returns: [V, V], or []

        Gradient: defined.

        Example:
            >>> burn.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).corrcoef()
            tensor([[ 1., -1.],
                    [-1.,  1.]])
        """
        b = self.b
        cov = as_tensor(self).cov()
        if not cov.shape:
            return b.div(cov, cov)
        scale = b.sqrt(b.diagonal(cov, 0, 1, 0))
        out = b.div(b.div(cov, b.unsqueeze(scale, (1,))), scale)
        return b.clamp(out, -1, 1)


def _rows(x: TensorBase) -> int:
    n = 1
    for e in x.shape[:-1]:
        n *= e
    return n


def _ranks(op: str, rank: int, *xs: TensorBase) -> None:
    for x in xs:
        need_tensor(op, "every operand", x)
        need_rank(op, x, rank)


def _scaled_sum(x: ProductMethods, a: Tensor, c: Tensor, beta: Number, alpha: Number) -> Tensor:
    b = x.b
    product = b.matmul(a, c)
    if not product.dtype.is_float:
        if not (isfinite(beta) and isfinite(alpha)):
            raise ArgumentError(
                "addmm", "alpha and beta of integers are finite", got=f"{alpha} and {beta}"
            )
        beta, alpha = int(beta), int(alpha)  # as PyTorch: the dtype stays
    if alpha != 1:
        product = b.mul(product, alpha)
    shape = product.shape
    if beta == 0:
        return product
    scaled: Any = x if beta == 1 else b.mul(x, beta)
    out = b.add(scaled, product)
    if out.shape != shape:
        raise ShapeError(
            "addmm", "x must broadcast to the product", got=f"{list(x.shape)} and {list(shape)}"
        )
    return out
