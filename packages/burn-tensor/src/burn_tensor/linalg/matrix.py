"""What matrices are, to the functions of this package."""

from __future__ import annotations

from burn_std import ShapeError
from burn_tensor.tensor import Tensor


def need_matrices(op: str, A: Tensor) -> None:
    """Raise ShapeError unless A has at least two dims."""
    if len(A.shape) < 2:
        raise ShapeError(op, "needs matrices [*, M, N]", got=f"{list(A.shape)}")


def transposed(x: Tensor) -> Tensor:
    """Return x with its last two dims swapped."""
    rank = len(x.shape)
    return x.b.permute(x, (*range(rank - 2), rank - 1, rank - 2))
