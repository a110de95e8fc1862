"""Keys and values of the past, for generation one position after the other.

The capacity is fixed, so every decode step has the same shapes: plans and captured graphs stay.
"""

from __future__ import annotations

from burn_dispatch import Device
from burn_std import ArgumentError, DType, ShapeError
from burn_std.dtypes import bool_
from burn_tensor import Tensor, arange, zeros


class KVCache:
    """Keys and values of one attention layer, up to a fixed number of positions.

    It is state that a call advances: pass a new one (or `reset` it) for a new sequence.

    Args:
        batch_size: N.
        num_heads: heads of keys and values.
        capacity: most positions that fit.
        head_dim: size of a head.
        device: where it lives; the default device if None.
        dtype: of keys and values; the device's default float if None.

    Attributes:
        length: positions filled so far.

    Raises:
        ArgumentError: the capacity is not positive.

    Example:
        >>> cache = burn.nn.KVCache(1, 2, 8, 4)
        >>> k, v, allowed = cache.update(burn.ones(1, 2, 3, 4), burn.ones(1, 2, 3, 4))
        >>> k.shape, allowed.shape, cache.length
        ((1, 2, 8, 4), (3, 8), 3)
    """

    def __init__(
        self, batch_size: int, num_heads: int, capacity: int, head_dim: int,
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        if capacity < 1:
            raise ArgumentError("KVCache", "the capacity is positive", got=capacity)
        shape = (batch_size, num_heads, capacity, head_dim)
        self.keys = zeros(shape, dtype=dtype, device=device)
        self.values = zeros(shape, dtype=dtype, device=device)
        self.ignored: Tensor | None = None
        self.capacity = capacity
        self.length = 0

    def update(
        self, keys: Tensor, values: Tensor, key_padding_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Add positions and return all keys, all values and who may attend to what.

        Args:
            keys: of the new positions, [N, heads, L, head_dim].
            values: likewise.
            key_padding_mask: [N, L] bool, True for new positions that nobody attends to.

        Returns:
            keys and values [N, heads, capacity, head_dim]; a bool mask that broadcasts to
            [N, heads, L, capacity], True where the new positions may attend: at positions up to
            their own.

        Raises:
            ShapeError: the positions do not fit in.
        """
        start, count = self.length, keys.shape[2]
        if start + count > self.capacity:
            raise ShapeError(
                "KVCache.update", f"{self.capacity} positions fit in", got=f"{start} + {count}",
                remedy="Make a cache of a larger capacity.",
            )  # fmt: skip
        # Generation is inference: what stays in the cache carries no gradient.
        self.keys[:, :, start : start + count] = keys.detach().to(self.keys.dtype)
        self.values[:, :, start : start + count] = values.detach().to(self.values.dtype)
        self.length = start + count
        device = self.keys.device
        columns = arange(self.capacity, device=device)
        rows = arange(start, start + count, device=device)
        allowed = columns.unsqueeze(0) <= rows.unsqueeze(1)
        if key_padding_mask is not None and self.ignored is None:
            self.ignored = zeros(self.keys.shape[0], self.capacity, dtype=bool_, device=device)
        if self.ignored is not None:
            if key_padding_mask is not None:
                self.ignored[:, start : start + count] = key_padding_mask
            allowed = allowed & ~self.ignored[:, None, None, :]
        return self.keys.to(keys.dtype), self.values.to(values.dtype), allowed

    def reset(self) -> None:
        """Forget all positions."""
        self.length = 0
        self.ignored = None


class DecoderCache:
    """Caches of a decoder layer: its own past, and keys and values of the memory.

    Attributes:
        past: of the layer's own positions.
        memory: (keys, values) of the encoder's output, kept from the first call.
    """

    def __init__(self, past: KVCache) -> None:
        self.past = past
        self.memory: tuple[Tensor, Tensor] | None = None

    @property
    def length(self) -> int:
        """Positions filled so far."""
        return self.past.length

    def reset(self) -> None:
        """Forget all positions and the memory."""
        self.past.reset()
        self.memory = None
