"""New tensors on the device of another: `x.new_zeros(...)`, and draws by what x holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn_dispatch import Device
from burn_std import DType
from burn_tensor.arguments import Number, flat, stored
from burn_tensor.guard import guard_methods
from burn_tensor.methods import Methods, as_tensor

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


@guard_methods()
class LikenessMethods(Methods):
    """Creation with dtype and device taken from x unless given."""

    __slots__ = ()

    def new_tensor(
        self, data: Any, *, dtype: DType | None = None, device: Device | None = None
    ) -> Tensor:
        """Return a tensor of data; see `burn.tensor`.

        Example:
            >>> burn.zeros(1).new_tensor([1, 2])
            tensor([1., 2.])
        """
        from burn_tensor.creation import tensor

        return tensor(data, dtype=dtype or self.dtype, device=device or self.b.device)

    def new_full(
        self,
        size: Any,
        fill_value: Number,
        *,
        dtype: DType | None = None,
        device: Device | None = None,
    ) -> Tensor:
        """Return one value everywhere.

        Example:
            >>> burn.zeros(1).new_full((2,), 7)
            tensor([7., 7.])
        """
        b = device.context if device is not None else self.b
        kind = dtype or self.dtype
        value = stored("new_full", fill_value, kind)
        out: Tensor = b.full(kind, flat("new_full", "size", (size,)), value)
        return out

    def new_zeros(
        self, *size: Any, dtype: DType | None = None, device: Device | None = None
    ) -> Tensor:
        """Return zeros.

        Example:
            >>> burn.ones(1).new_zeros(2)
            tensor([0., 0.])
        """
        return self.new_full(flat("new_zeros", "size", size), 0, dtype=dtype, device=device)

    def new_ones(
        self, *size: Any, dtype: DType | None = None, device: Device | None = None
    ) -> Tensor:
        """Return ones.

        Example:
            >>> burn.zeros(1).new_ones(2)
            tensor([1., 1.])
        """
        return self.new_full(flat("new_ones", "size", size), 1, dtype=dtype, device=device)

    def new_empty(
        self, *size: Any, dtype: DType | None = None, device: Device | None = None
    ) -> Tensor:
        """Return zeros: there is no memory without values here.

        Example:
            >>> burn.zeros(1).new_empty(2).shape
            (2,)
        """
        return self.new_full(flat("new_empty", "size", size), 0, dtype=dtype, device=device)

    # ---- draws ---------------------------------------------------------------------------------

    def bernoulli(self, p: float | None = None) -> Tensor:
        """Return 1 with the probability that each element says, else 0; see `burn.bernoulli`.

        Args:
            p: one probability for all, in place of the elements.

        Gradient: none.

        Example:
            >>> burn.tensor([0.0, 1.0]).bernoulli()
            tensor([0., 1.])
        """
        from burn_tensor.random import bernoulli  # written over tensors

        return bernoulli(as_tensor(self), p)

    def multinomial(self, num_samples: int, replacement: bool = False) -> Tensor:
        """Return indices drawn with the given weights, per row; see `burn.multinomial`.

        Args:
            num_samples: how many to draw per row.
            replacement: an index may come again; else each at most once.

        Raises:
            ArgumentError: more samples than elements, without replacement.

        Gradient: none.

        Example:
            >>> burn.tensor([0.0, 1.0]).multinomial(1)
            tensor([1])
        """
        from burn_tensor.random import multinomial  # written over tensors

        return multinomial(as_tensor(self), num_samples, replacement)
