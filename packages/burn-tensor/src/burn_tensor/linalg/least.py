"""Least squares, the exponential, and matrices of powers."""

from __future__ import annotations

from math import ceil, isfinite, log2
from typing import NamedTuple

from burn_std import ArgumentError, ShapeError
from burn_tensor.arguments import as_int, need_dim
from burn_tensor.functional.values import constant, in_dtype, meeting, widened
from burn_tensor.linalg.factor import svdvals
from burn_tensor.linalg.matrix import need_matrices
from burn_tensor.linalg.solve import matrix_rank, pinv
from burn_tensor.linalg.symmetric import identity
from burn_tensor.tensor import Tensor


class LeastSquares(NamedTuple):
    """What `lstsq` returns.

    Attributes:
        solution: X.
        residuals: the squared lengths of A X - B, column by column; empty unless M > N.
        rank: of A.
        singular_values: of A.
    """

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None) -> LeastSquares:
    """Return the X of least length among those with the least |A X - B|.

    It comes from the singular values, so A may lack rank; PyTorch calls this the driver `gelsd`.

    Args:
        A: matrices.
        B: right sides: matrices, or vectors if it has one dim, or A's dims but the last.
        rcond: singular values up to this share of the largest count as zero; None is max(M, N) eps.

    Shapes:
        A: [*, M, N]
        B: [*, M, K] or [*, M]
        returns: solution [*, N, K] or [*, N], residuals [*, K] or [0], rank [*],
            singular_values [*, min(M, N)]

    DTypes: floats; the two promote.

    Raises:
        ShapeError: shapes do not fit.

    Gradient: of the solution and the residuals, where the singular values differ.

    Example:
        >>> A = burn.tensor([[1.0], [1.0]])
        >>> burn.linalg.lstsq(A, burn.tensor([[1.0], [3.0]])).solution
        tensor([[2.0000]])
    """
    need_matrices("lstsq", A)
    b = meeting("lstsq", A, B)
    vector = len(B.shape) == 1 or B.shape == A.shape[:-1]
    rows = B.shape[-1] if vector else B.shape[-2] if len(B.shape) > 1 else 0
    if rows != A.shape[-2]:
        raise ShapeError(
            "lstsq", "A [*, M, N] and B [*, M, K] or [*, M]",
            got=f"A {list(A.shape)} and B {list(B.shape)}",
        )  # fmt: skip
    right = b.unsqueeze(B, (len(B.shape),)) if vector else B
    solution = b.matmul(pinv(A, rtol=rcond), right)
    tall = A.shape[-2] > A.shape[-1]
    if tall:
        rest = b.square(b.sub(b.matmul(A, solution), right))
        residuals = b.sum(rest, (len(rest.shape) - 2,), False, None)
        if vector:
            residuals = b.squeeze(residuals, (len(residuals.shape) - 1,))
    else:
        residuals = b.full(solution.dtype, (0,), 0.0)
    if vector:
        solution = b.squeeze(solution, (len(solution.shape) - 1,))
    return LeastSquares(solution, residuals, matrix_rank(A, rtol=rcond), svdvals(constant(A)))


# Coefficients of the [13/13] approximant, and the norm up to which it is exact to double precision.
_PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
    10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_EXACT = 5.37


def matrix_exp(A: Tensor) -> Tensor:
    """Return the exponential of matrices, 1 + A + A^2 / 2 + A^3 / 6 + ...

    The norm of A is read on the host: it decides how often the result is squared.

    Args:
        A: square matrices.

    Shapes:
        A: [*, N, N]
        returns: [*, N, N]

    DTypes: floats.

    Raises:
        ShapeError: the matrices are not square.
        ArgumentError: an element is NaN or infinite.

    Gradient: defined.

    Example:
        >>> burn.linalg.matrix_exp(burn.tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
        [[1.0, 1.0], [0.0, 1.0]]

    Source: Higham 2005, The scaling and squaring method for the matrix exponential revisited
    """
    need_matrices("matrix_exp", A)
    if A.shape[-1] != A.shape[-2]:
        raise ShapeError("matrix_exp", "needs square matrices", got=f"{list(A.shape)}")
    if 0 in A.shape:
        return A.b.exp(A)
    dtype, x = A.dtype, widened(A)
    size = constant(x).abs().sum(-2).amax().item()
    if not isfinite(size):
        raise ArgumentError("matrix_exp", "all elements are finite", got=f"a norm of {size}")
    squarings = max(0, ceil(log2(size / _EXACT))) if size else 0
    b = x.b
    x = b.mul(x, 0.5**squarings)
    two = b.matmul(x, x)
    four = b.matmul(two, two)
    six = b.matmul(two, four)
    one = identity(x)
    c = [p / _PADE[0] for p in _PADE]

    def series(start: int) -> Tensor:
        """Return the powers 0, 2, 4, ... with every second coefficient."""
        k = c[start::2]
        high = b.add(b.add(b.mul(six, k[6]), b.mul(four, k[5])), b.mul(two, k[4]))
        low = b.add(b.add(b.mul(six, k[3]), b.mul(four, k[2])), b.mul(two, k[1]))
        return b.add(b.add(b.matmul(six, high), low), b.mul(one, k[0]))

    odd, even = b.matmul(x, series(1)), series(0)
    out = b.solve(b.sub(even, odd), b.add(even, odd))
    for _ in range(squarings):
        out = b.matmul(out, out)
    return in_dtype(out, dtype)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the powers 0, 1, ..., N - 1 of every element as a last dim.

    Args:
        x: the elements.
        N: how many powers; None is as many as elements.

    Shapes:
        x: [*, n]
        returns: [*, n, N]

    DTypes: ints and floats.

    Raises:
        ShapeError: rank 0.
        ArgumentError: N is not positive.

    Gradient: defined.

    Example:
        >>> burn.linalg.vander(burn.tensor([1, 2, 3]), N=3).tolist()
        [[1, 1, 1], [1, 2, 4], [1, 3, 9]]
    """
    need_dim("vander", x)
    count = x.shape[-1] if N is None else as_int("vander", "N", N)
    if count < 1:
        raise ArgumentError("vander", "N is positive", got=count)
    b, last = x.b, len(x.shape)
    factors = b.expand(b.unsqueeze(x, (last,)), (*x.shape, count - 1))
    powers = b.cumprod(factors, last, x.dtype)
    return b.cat([b.full(x.dtype, (*x.shape, 1), 1), powers], last)
