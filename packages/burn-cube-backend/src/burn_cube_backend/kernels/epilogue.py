"""What a kernel computes of each element that it made, before it writes it.

The parts of a group behind its convolution, as code inside another kernel: on vectors or single
elements, each part rounded to its dtype, so the bits are those of the operations one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from burn_backend import GIVEN, Group
from burn_cube import DeviceArray, Vector
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.kernels.maps import plain, wide
from burn_cube_backend.lanes import load
from burn_cube_backend.part_code import number_kind, number_word, part_numbers, part_value
from burn_cube_backend.payload import CubeTensor
from burn_std import DType

# Of a value and its place in the result.
Change = Callable[[Val, Val], Val]


class Spec(NamedTuple):
    """What a kernel depends on.

    Attributes:
        group: its result is what is written.
        reads: per outside tensor how it is read: `number`, an element for each `place`, for each
            `channel`, or `one`; empty for what the convolution reads.
        absent: which run-time numbers are None.
    """

    group: Group
    reads: tuple[str, ...]
    absent: tuple[bool, ...]


class Epilogue(NamedTuple):
    """The same for one launch: `buffers` and `numbers` are the arguments behind all others."""

    spec: Spec
    buffers: tuple[DeviceArray, ...]
    numbers: tuple[Any, ...]

    @property
    def by_place(self) -> bool:
        """Whether it reads a tensor with an element for each of the result."""
        return "place" in self.spec.reads

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments, in order of the parameters."""
        return (*self.buffers, *self.numbers)


class EpilogueCode:
    """The parameters of an epilogue in a kernel, and its code.

    Parameters are arrays, numbers of outside tensors, numbers of parts, then for each array its
    offset and the distance from channel to channel; their names begin with `name`.
    """

    def __init__(self, code: Code, spec: Spec, name: str = "") -> None:
        self.code, self.group = code, spec.group
        named = list(enumerate(zip(spec.reads, spec.group.outside, strict=True)))
        self.reads = spec.reads
        self.arrays: dict[int, Buf] = {
            k: code.buffer(f"{name}with{k}", dtype) for k, (how, dtype) in named if is_array(how)
        }
        self.given: dict[int, Val] = {
            k: code.scalar(f"{name}number{k}", wide(dtype)).cast(dtype)
            for k, (how, dtype) in named
            if how == "number"
        }
        self.numbers = part_numbers(code, spec.group.parts, spec.absent, name)
        self.places = {k: code.places(f"{name}with{k}_", 2) for k in self.arrays}

    def channel(self, channel: Val) -> Change:
        """Return the code for elements of one channel."""
        outside = dict(self.given)
        for k, x in self.arrays.items():
            if self.reads[k] != "place":
                offset, step = self.places[k]
                outside[k] = x[offset + channel * step]

        def change(value: Val, place: Val) -> Val:
            kind = value.op.type
            width = kind.width if isinstance(kind, Vector) else 1
            made: dict[int, Val] = {}

            def of(ref: int) -> Val:
                if ref < 0:
                    k = -1 - ref
                    if k in outside:
                        return outside[k]
                    ref_at = self.places[k][0] + place
                    x = self.arrays[k]
                    return x[ref_at] if width == 1 else load(x, ref_at, width)
                if ref not in made:
                    made[ref] = self._part(ref, value, of)
                return made[ref]

            (result,) = self.group.outputs
            return of(result)

        return change

    def _part(self, p: int, value: Val, of: Callable[[int], Val]) -> Val:
        part = self.group.parts[p]
        if part.name in ("conv", GIVEN):
            return value
        given = [None if i is None else of(i) for i in part.inputs]
        return part_value(self.code, part, given, self.numbers[p])


def is_array(how: str) -> bool:
    """Return whether an outside tensor is read from memory here."""
    return how in ("place", "channel", "one")


# A group with `GIVEN`, its outside tensors of rank 0, and its numbers.
Chain = tuple[Group, Sequence[CubeTensor], Sequence[Any]]


def epilogue_of(chain: Chain) -> Epilogue:
    """Return a chain of elementwise operations on one tensor and numbers."""
    group, tensors, given = chain
    reads = tuple(["number" if x.buf is None else "one" for x in tensors])
    arrays = [x for x in tensors if x.buf is not None]
    numbers: list[Any] = [plain(x.value, x.dtype.kind) for x in tensors if x.buf is None]
    kinds = [number_kind(part) for part in group.parts for _ in range(part.numbers)]
    numbers += [number_word(v, kind) for v, kind in zip(given, kinds, strict=True) if v is not None]
    places = [n for x in arrays for n in (x.offset, 0)]
    spec = Spec(group, reads, tuple([v is None for v in given]))
    return Epilogue(spec, tuple([x.buf for x in arrays if x.buf is not None]), (*numbers, *places))


def out_of(chain: Epilogue) -> DType:
    """Return the dtype of what a chain makes."""
    group = chain.spec.group
    return group.parts[group.outputs[0]].dtype
