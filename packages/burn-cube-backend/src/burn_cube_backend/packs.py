"""Forms in which kernels read weights again and again, kept with the value they were made from.

What a kernel packs is a value, never its memory: a form hangs on the payload, goes with it, and is
dropped where a replay writes new elements under the same payload. A value that is packed for the
first time keeps nothing, so the weights of a training step, which change each time, cost no memory;
the second time its form stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from burn_cube import DeviceArray

if TYPE_CHECKING:
    from burn_cube_backend.launch_log import LaunchLog
    from burn_cube_backend.payload import CubeTensor

Arrays = tuple[DeviceArray, ...]
# Of an engine, a tensor and more arguments: packs the tensor.
Make = Callable[..., Arrays]
# By whom reports name the memory of packed forms.
LABEL = "packed weights"


class Packs:
    """The packed forms of one value.

    Attributes:
        forms: arrays by key; None for what was packed once and not kept.
    """

    __slots__ = ("__weakref__", "forms")

    def __init__(self) -> None:
        self.forms: dict[Any, Arrays | None] = {}


def key_of(x: CubeTensor, make: Make, args: tuple[Any, ...]) -> Any:
    """Return what a packed form is known by among those of one payload."""
    return make, args, x.shape, x.strides, x.offset, x.dtype


def seen(x: CubeTensor, keys: Collection[Any]) -> bool:
    """Note that a value is packed; return whether all those forms were asked for before."""
    packs = x.packed
    if packs is None:
        packs = x.packed = Packs()
    forms = packs.forms
    before = True
    for key in keys:
        if key not in forms:
            forms[key] = None
            before = False
    return before


class Packing(NamedTuple):
    """Launches of a noted run that pack an input.

    Attributes:
        owner: number of the input.
        make, args: what packed it.
        window: shape, strides, dtype and offset of what is packed, in the input's memory.
        calls: the launches.
        blocks: the memory of what they made.
    """

    owner: int
    make: Make
    args: tuple[Any, ...]
    window: tuple[Any, ...]
    calls: range
    blocks: tuple[int, ...]

    @property
    def key(self) -> Any:
        """What the form is known by."""
        shape, strides, dtype, offset = self.window
        return self.make, self.args, shape, strides, offset, dtype


def packings_of(log: LaunchLog, results: Collection[int]) -> list[Packing]:
    """Return the packings of a run that can be left out where their forms are kept.

    Args:
        log: the run.
        results: numbers of blocks that live on.
    """
    return [p for p in log.packings if _is_apart(log, p, results)]


def _is_apart(log: LaunchLog, packing: Packing, results: Collection[int]) -> bool:
    """Return whether launches read the input alone, and no other writes what they make."""
    from burn_cube_backend.launch_log import WRITES

    if any(n.call in packing.calls for n in log.numbers) or not packing.calls:
        return False
    inner = set(packing.blocks)
    for p in log.pointers:
        if p.call in packing.calls:
            kind, number = p.base
            if kind == "block":
                inner.add(number)
            elif number != packing.owner or p.mode & WRITES:
                return False
    if not inner.isdisjoint(results):
        return False
    for p in log.pointers:
        kind, number = p.base
        elsewhere = kind == "block" and number in inner and p.call not in packing.calls
        if elsewhere and (number not in packing.blocks or p.mode & WRITES):
            return False
    return True
