"""Groups with a convolution: its kernel computes the elementwise operations behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn_backend import Fused, Group, Part
from burn_cube import DeviceArray
from burn_cube_backend.engine import Engine
from burn_cube_backend.fused_calls import GroupNumbers
from burn_cube_backend.geometry import Ints, broadcast_strides, dense, size_of
from burn_cube_backend.kernels.conv import conv_with, out_lengths
from burn_cube_backend.kernels.epilogue import Epilogue, Spec, is_array
from burn_cube_backend.payload import CubeTensor
from burn_ir import Entry
from burn_std import DType, dtypes as d


def takes(engine: Engine, entry: Entry, dtypes: Sequence[DType], out: DType) -> bool:
    """Return whether a convolution may have more operations in its kernel."""
    return (
        entry.name == "conv" and engine.client.runtime.name == "cpu"
        and all(t is d.float32 for t in (*dtypes, out))
    )  # fmt: skip


class FusedConv(GroupNumbers):
    """The kernels of one group with a convolution on one device."""

    def __init__(self, engine: Engine, group: Group, apart: Fused) -> None:
        super().__init__(engine, group, apart)
        self.conv = next(p for p in group.parts if p.name == "conv")
        others = [p for p in group.parts if p is not self.conv]
        # The kernel knows nothing of where its convolution comes from: several share one.
        bare = Part("conv", (), (), 0, self.conv.lead, self.conv.dtype)
        self.then = group._replace(
            parts=tuple(bare if p is self.conv else p for p in group.parts)
        )  # fmt: skip
        self.used = {-1 - i for p in others for i in p.inputs if i is not None and i < 0}

    def __call__(self, *args: Any) -> tuple[CubeTensor, ...]:
        """Compute the group: payloads from outside, then numbers."""
        tensors, given = args[: self.inputs], args[self.inputs :]
        x, weight, bias = (None if i is None else tensors[-1 - i] for i in self.conv.inputs)
        assert x is not None and weight is not None  # noqa: S101 - only a bias may be absent
        stride, padding, dilation, groups = self.conv.static
        lengths = out_lengths(x.shape[2:], weight.shape[2:], stride, padding, dilation)
        out = (x.shape[0], weight.shape[0], *lengths)
        epilogue = self._epilogue(tensors, given, out)
        made = None
        if epilogue is not None:
            how = stride, padding, dilation, groups
            made = conv_with(self.engine, x, weight, bias, *how, epilogue)
        self.parted = made is None
        return self.part_wise(*args) if made is None else (made,)

    def _epilogue(
        self, tensors: Sequence[CubeTensor], given: Sequence[Any], out: Ints
    ) -> Epilogue | None:
        """Return what is computed behind the convolution, None where its kernel cannot."""
        group = self.group
        (result,) = group.outputs
        if group.parts[result].dtype is not d.float32 or not size_of(out):
            return None
        reads: list[str] = []
        buffers: list[DeviceArray] = []
        places: list[int] = []
        for k, x in enumerate(tensors):
            how = self._read(x, out) if k in self.used else ""
            if how is None:
                return None
            reads.append(how)
            if is_array(how):
                assert x.buf is not None  # noqa: S101 - what has none is a number
                buffers.append(x.buf)
                places += [x.offset, broadcast_strides(x.shape, x.strides, out)[1]]
        numbers = [*self.outside_numbers(tensors), *self.part_numbers(given)]
        spec = Spec(self.then, tuple(reads), tuple([v is None for v in given]))
        return Epilogue(spec, tuple(buffers), (*numbers, *places))

    @staticmethod
    def _read(x: CubeTensor, out: Ints) -> str | None:
        """Return how a tensor is read along the result, None where it cannot be."""
        if x.buf is None:
            return "number"
        strides = broadcast_strides(x.shape, x.strides, out)
        moving = [k for k, (s, n) in enumerate(zip(strides, out, strict=True)) if s and n > 1]
        if moving in ([], [1]):
            return "channel" if moving else "one"
        same = all(s == t or n == 1 for s, t, n in zip(strides, dense(out), out, strict=True))
        return "place" if same and x.dtype is d.float32 else None
