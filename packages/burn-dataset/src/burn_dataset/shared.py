"""Batches through shared memory: a worker lays arrays into a block, the loader copies them out.

Only what stands around the arrays (tuples, names, strings) is pickled. A block is written again
only after the loader has said that it copied it.
"""

from __future__ import annotations

import contextlib
from multiprocessing.shared_memory import SharedMemory
from typing import Any, NamedTuple

import numpy as np

# Arrays begin at multiples of a cache line.
_ALIGN = 64


class Place(NamedTuple):
    """Where an array lies in a block.

    Attributes:
        offset: in bytes.
        dtype: as numpy writes it.
        shape: extents.
    """

    offset: int
    dtype: str
    shape: tuple[int, ...]


def lay_out(batch: Any, arrays: list[tuple[int, np.ndarray[Any, Any]]]) -> Any:
    """Return a batch with places for its arrays, which are appended with their offsets.

    Args:
        batch: arrays, or tuples, lists and dicts of them; what is no plain array stays.
        arrays: gets (offset, array).
    """
    if isinstance(batch, np.ndarray) and not batch.dtype.hasobject:
        end = arrays[-1][0] + arrays[-1][1].nbytes if arrays else 0
        offset = -(-end // _ALIGN) * _ALIGN
        arrays.append((offset, batch))
        return Place(offset, batch.dtype.str, batch.shape)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(lay_out(b, arrays) for b in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(lay_out(b, arrays) for b in batch)
    if isinstance(batch, dict):
        return {k: lay_out(b, arrays) for k, b in batch.items()}
    return batch


def take_out(plan: Any, block: SharedMemory | None) -> Any:
    """Return a batch with its arrays copied out of a block.

    Args:
        plan: what `lay_out` returned.
        block: holds the arrays.
    """
    if isinstance(plan, Place):
        assert block is not None  # noqa: S101 - a worker that sends places sends their block
        seen: np.ndarray[Any, Any] = np.ndarray(
            plan.shape, np.dtype(plan.dtype), block.buf, plan.offset
        )
        return seen.copy()
    if isinstance(plan, tuple) and hasattr(plan, "_fields"):
        return type(plan)(*(take_out(p, block) for p in plan))
    if isinstance(plan, (tuple, list)):
        return type(plan)(take_out(p, block) for p in plan)
    if isinstance(plan, dict):
        return {k: take_out(p, block) for k, p in plan.items()}
    return plan


def remove(block: SharedMemory) -> None:
    """Remove a block from the system; the other side may have done so.

    Args:
        block: is closed here.
    """
    block.close()
    with contextlib.suppress(FileNotFoundError):
        block.unlink()


class Slots:
    """A worker's blocks, one per batch that may be under way; a block grows when it must."""

    def __init__(self) -> None:
        self._blocks: dict[int, SharedMemory] = {}

    def write(self, slot: int, batch: Any) -> tuple[Any, str | None]:
        """Return the plan of a batch and the name of the block its arrays are in.

        Args:
            slot: which block; the loader has copied what was there.
            batch: of arrays.
        """
        arrays: list[tuple[int, np.ndarray[Any, Any]]] = []
        plan = lay_out(batch, arrays)
        size = arrays[-1][0] + arrays[-1][1].nbytes if arrays else 0
        if not size:
            # Nothing to share: arrays without elements travel by pickle.
            return batch, None
        block = self._blocks.get(slot)
        if block is None or block.size < size:
            if block is not None:
                block.close()  # the loader unlinks it when it sees the new one's name
            block = self._blocks[slot] = SharedMemory(create=True, size=size + size // 4)
        for offset, a in arrays:
            target: np.ndarray[Any, Any] = np.ndarray(a.shape, a.dtype, block.buf, offset)
            target[...] = a
        return plan, block.name

    def close(self) -> None:
        """Remove the blocks from the system, those that the loader never saw as well."""
        for block in self._blocks.values():
            remove(block)


class Blocks:
    """The loader's view of the blocks of one worker, by slot."""

    def __init__(self) -> None:
        self._blocks: dict[int, SharedMemory] = {}

    def read(self, slot: int, plan: Any, name: str | None) -> Any:
        """Return a batch, copied.

        Args:
            slot: which block.
            plan: what the worker sent.
            name: of the block, or None.
        """
        block = self._blocks.get(slot)
        if name is not None and (block is None or block.name != name):
            self._drop(slot)
            block = self._blocks[slot] = SharedMemory(name)
        return take_out(plan, block) if name is not None else plan

    def _drop(self, slot: int) -> None:
        block = self._blocks.pop(slot, None)
        if block is not None:
            remove(block)

    def close(self) -> None:
        """Remove the blocks from the system."""
        for slot in list(self._blocks):
            self._drop(slot)
