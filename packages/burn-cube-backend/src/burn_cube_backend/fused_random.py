"""Elementwise groups that draw their own random numbers."""

from __future__ import annotations

from typing import Any

from burn_backend import Fused, Group
from burn_cube_backend.engine import Engine
from burn_cube_backend.fused import FusedMap, Launch
from burn_cube_backend.fused_views import Walks
from burn_cube_backend.geometry import Ints, broadcast_shape, broadcast_strides, dense
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.random_code import Drawing, What

_UNKNOWN: Any = object()


class FusedRandom(FusedMap):
    """The kernels of one group with random numbers on one device.

    Args:
        engine: the device.
        group: what they compute.
        apart: the same by several kernels.

    Attributes:
        parted: the last call ran apart.
    """

    def __init__(self, engine: Engine, group: Group, apart: Fused) -> None:
        super().__init__(engine, group)
        self.apart = apart
        self.parted = False
        self.plans: dict[Any, Launch | None] = {}
        self.drawing = Drawing(group.parts)

    def __call__(self, *args: Any) -> tuple[CubeTensor, ...]:
        """Compute the group: payloads from outside, then run-time values."""
        tensors, given = args[: self.inputs], args[self.inputs :]
        layouts = tuple(
            [None if x.buf is None else x.layout or self.engine.layout_of(x) for x in tensors]
        )
        what, said = self.drawing.of(given)
        numbers = [None if k in self.drawing.own else v for k, v in enumerate(given)]
        absent = tuple([v is None for v in numbers])
        shape: Ints = given[self.drawing.shapes[0]]
        key = (layouts, absent, shape, what)
        launch = self.plans.get(key, _UNKNOWN)
        arrays = [x for x in tensors if x.buf is not None]
        if launch is _UNKNOWN:
            if len(self.plans) >= 1024:
                self.plans.clear()
            launch = self.plans[key] = self._drawn(tensors, shape, absent, what)
        self.parted = launch is None
        if launch is None:
            return self.apart(*args)
        return self.started(launch, tensors, arrays, numbers, said)

    def _drawn(
        self, tensors: Any, extents: Ints, absent: tuple[bool, ...], what: What
    ) -> Launch | None:
        """Return how one kernel computes the group, None where it would draw words in vain."""
        shape = broadcast_shape([extents, *[x.shape for x in tensors]])
        arrays = [x for x in tensors if x.buf is not None]
        results = len(self.group.outputs)
        own = dense(shape)  # a place's number is drawn by where it stands, not where it lies
        walks = Walks(
            shape, [broadcast_strides(x.shape, x.strides, shape) for x in arrays],
            (0,) * len(arrays), [own] * results, (0,) * results, (shape,) * results,
            (own,) * results,
        )  # fmt: skip
        bare = tuple([x.buf is None for x in tensors])
        return self.launch_on(walks, arrays, bare, absent, what)
