"""Batches of sequences that differ in length: padded, or packed without the padding.

PyTorch's `nn.utils.rnn`. Lengths and batch sizes are numbers on the host, so packing reads nothing
from a device; where lengths are given as a tensor, it is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from burn_dispatch import Device
from burn_std import ArgumentError, ShapeError
from burn_tensor import Tensor, cat, functional as F, stack, tensor

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

Lengths = Tensor | Sequence[int]


class PackedSequence(NamedTuple):
    """The elements of several sequences step by step, without padding.

    `RNN`, `GRU` and `LSTM` take it in place of a tensor and return one of the same layout.

    Attributes:
        data: the first elements of all sequences, then all second ones, and so on, [sum, *].
        batch_sizes: how many sequences have a step, per step; descending.
        sorted_indices: the sequences from the longest to the shortest, None if they came so.
        unsorted_indices: the way back.

    Example:
        >>> packed = burn.nn.rnn.pack_sequence([burn.tensor([1, 2, 3]), burn.tensor([4])])
        >>> packed.data.tolist(), packed.batch_sizes
        ([1, 4, 2, 3], (2, 1, 1))
    """

    data: Tensor
    batch_sizes: tuple[int, ...]
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to_device(self, device: Device | str) -> PackedSequence:
        """Return the same on another device.

        Args:
            device: the device, or its name.
        """
        moved = [t if t is None else t.to_device(device) for t in self[2:]]
        return PackedSequence(self.data.to_device(device), self.batch_sizes, *moved)


def _host(op: str, lengths: Lengths) -> np.ndarray:
    given = lengths.numpy() if isinstance(lengths, Tensor) else lengths
    out = np.asarray(given)
    if out.ndim != 1 or (out.size and out.dtype.kind not in "iu"):
        raise ArgumentError(op, "lengths are integers, one per sequence", got=given)
    return out.astype(np.int64)


def _index(values: np.ndarray, like: Tensor) -> Tensor:
    return tensor(values, device=like.device.without_autodiff())


def _valid(sizes: tuple[int, ...]) -> np.ndarray:
    """Return which of [steps, sequences] exist, the longest sequence first."""
    return np.arange(sizes[0]) < np.array(sizes)[:, None]


def packed_like(x: Tensor, layout: PackedSequence) -> PackedSequence:
    """Return padded sequences [L, N, *] packed in the layout of others of the same lengths."""
    steps, count = len(layout.batch_sizes), layout.batch_sizes[0]
    if layout.sorted_indices is not None:
        x = x.index_select(1, layout.sorted_indices)
    rows = x[:steps].reshape(steps * count, *x.shape[2:])
    kept = np.flatnonzero(_valid(layout.batch_sizes))
    return PackedSequence(rows.index_select(0, _index(kept, x)), *layout[1:])


def pack_padded_sequence(
    input: Tensor, lengths: Lengths, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Return padded sequences without their padding.

    Args:
        input: the sequences.
        lengths: how much of each counts, at least 1.
        batch_first: the input is [N, L, *] instead of [L, N, *].
        enforce_sorted: the sequences come from the longest to the shortest; else they are sorted
            here, and the result remembers their order.

    Shapes:
        input: [L, N, *] or [N, L, *]

    Raises:
        ShapeError: lengths do not fit the input.
        ArgumentError: a length is below 1, or lengths are not sorted and should be.

    Gradient: defined for the input; 0 in the padding.

    Example:
        >>> x = burn.tensor([[1, 2, 3], [4, 0, 0]])
        >>> burn.nn.rnn.pack_padded_sequence(x, [3, 1], batch_first=True).data.tolist()
        [1, 4, 2, 3]
    """
    op = "pack_padded_sequence"
    ends = _host(op, lengths)
    if len(input.shape) < 2:
        raise ShapeError(op, "needs two dims or more", got=f"input {list(input.shape)}")
    x = input.transpose(0, 1) if batch_first else input
    if ends.shape != (x.shape[1],) or not ends.size or ends.max() > x.shape[0]:
        raise ShapeError(
            op, "there is one length per sequence, none beyond the input",
            got=f"lengths {ends.tolist()}, steps and sequences {list(x.shape[:2])}",
        )  # fmt: skip
    if ends.min() < 1:
        raise ArgumentError(op, "every length is at least 1", got=ends.tolist())
    order = back = None
    if not enforce_sorted:
        places = np.argsort(-ends, kind="stable")
        order, back = _index(places, x), _index(np.argsort(places), x)
    elif (np.diff(ends) > 0).any():
        raise ArgumentError(
            op, "lengths descend", got=ends.tolist(), remedy="Pass enforce_sorted=False."
        )
    sizes = tuple(int((ends > t).sum()) for t in range(ends.max()))
    return packed_like(x, PackedSequence(x, sizes, order, back))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return (padded sequences in their first order, their lengths).

    Args:
        sequence: packed sequences.
        batch_first: the result is [N, L, *] instead of [L, N, *].
        padding_value: what stands beyond the end of a sequence.
        total_length: steps of the result; those of the longest sequence if None.

    Shapes:
        returns: [L, N, *] or [N, L, *], and [N] as int64

    Raises:
        ArgumentError: the longest sequence exceeds total_length.

    Gradient: defined for the data.

    Example:
        >>> packed = burn.nn.rnn.pack_sequence([burn.tensor([1, 2]), burn.tensor([3])])
        >>> padded, lengths = burn.nn.rnn.pad_packed_sequence(packed, batch_first=True)
        >>> padded.tolist(), lengths.tolist()
        ([[1, 2], [3, 0]], [2, 1])
    """
    data, sizes, _, back = sequence
    steps = len(sizes) if total_length is None else total_length
    if steps < len(sizes):
        raise ArgumentError(
            "pad_packed_sequence", "total_length is no less than the longest sequence",
            got=f"total_length {total_length}, longest {len(sizes)}",
        )  # fmt: skip
    valid = np.zeros((steps, sizes[0]), bool)
    valid[: len(sizes)] = _valid(sizes)
    # What is padding reads one row more.
    places = np.full(valid.shape, data.shape[0], np.int64)
    places[valid] = np.arange(data.shape[0])
    rows = cat([data, data.new_full((1, *data.shape[1:]), padding_value)])
    out = rows.index_select(0, _index(places.ravel(), data)).reshape(*valid.shape, *data.shape[1:])
    lengths = _index(valid.sum(0), data)
    if back is not None:
        out, lengths = out.index_select(1, back), lengths.index_select(0, back)
    return (out.transpose(0, 1) if batch_first else out), lengths


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:  # fmt: skip
    """Return sequences of different lengths in one tensor.

    Args:
        sequences: tensors that differ in their first extent only.
        batch_first: the result is [N, L, *] instead of [L, N, *].
        padding_value: what fills the shorter ones.
        padding_side: right or left.

    Shapes:
        sequences: [L_i, *] each
        returns: [L, N, *] or [N, L, *]

    Raises:
        ArgumentError: there is none, or the side is unknown.
        ShapeError: they differ in more than the first extent.

    Gradient: defined for every sequence.

    Example:
        >>> both = [burn.tensor([1, 2, 3]), burn.tensor([4])]
        >>> burn.nn.rnn.pad_sequence(both, batch_first=True).tolist()
        [[1, 2, 3], [4, 0, 0]]
    """
    op = "pad_sequence"
    if padding_side not in ("left", "right"):
        raise ArgumentError(op, "padding_side is left or right", got=repr(padding_side))
    if not sequences:
        raise ArgumentError(op, "needs at least one sequence")
    shapes = [s.shape for s in sequences]
    if not shapes[0] or any(s[1:] != shapes[0][1:] or not s for s in shapes):
        raise ShapeError(op, "sequences differ in their first extent only", got=shapes)
    longest = max(s[0] for s in shapes)
    padded = []
    for s in sequences:
        missing = longest - s.shape[0]
        sides = [missing, 0] if padding_side == "left" else [0, missing]
        pads = [0, 0] * (len(s.shape) - 1) + sides
        padded.append(F.pad(s, pads, "constant", padding_value) if missing else s)
    return stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Lengths, batch_first: bool = False
) -> list[Tensor]:
    """Return the sequences of a padded tensor: the reverse of `pad_sequence`.

    Args:
        padded_sequences: the sequences, padded on the right.
        lengths: how much of each counts.
        batch_first: they are [N, L, *] instead of [L, N, *].

    Raises:
        ShapeError: there is not one length per sequence.

    Example:
        >>> x = burn.tensor([[1, 2], [3, 0]])
        >>> [s.tolist() for s in burn.nn.rnn.unpad_sequence(x, [2, 1], batch_first=True)]
        [[1, 2], [3]]
    """
    ends = _host("unpad_sequence", lengths).tolist()
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    if len(ends) != rows.shape[0]:
        raise ShapeError(
            "unpad_sequence", "there is one length per sequence",
            got=f"{len(ends)} for {rows.shape[0]}",
        )  # fmt: skip
    return [rows[k, :end] for k, end in enumerate(ends)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Return sequences of different lengths packed.

    Args:
        sequences: tensors that differ in their first extent only.
        enforce_sorted: they come from the longest to the shortest; else they are sorted here.

    Raises:
        ArgumentError, ShapeError: as for `pad_sequence` and `pack_padded_sequence`.

    Example:
        >>> both = [burn.tensor([1]), burn.tensor([2, 3])]
        >>> burn.nn.rnn.pack_sequence(both, enforce_sorted=False).sorted_indices.tolist()
        [1, 0]
    """
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences of a packed batch, in their first order.

    Args:
        packed_sequences: packed sequences.

    Example:
        >>> packed = burn.nn.rnn.pack_sequence([burn.tensor([1, 2]), burn.tensor([3])])
        >>> [s.tolist() for s in burn.nn.rnn.unpack_sequence(packed)]
        [[1, 2], [3]]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
