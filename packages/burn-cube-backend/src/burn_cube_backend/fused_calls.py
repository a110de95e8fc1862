"""What the kernels of all groups share: how a call becomes a launch that was planned before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn_backend import LEAVES, Fused, Group
from burn_cube_backend import fused_views, row_code
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints
from burn_cube_backend.kernels.maps import plain
from burn_cube_backend.part_code import NumberKind, number_kind, number_word
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.random_code import Drawing, What

# Parts whose run-time values are extents or seeds.
_NO_NUMBERS = frozenset((*fused_views.VIEWS, *row_code.VIEWS, *LEAVES))
# Layouts whose launches are kept.
_MOST = 1024
_UNKNOWN: Any = object()


class GroupNumbers:
    """The numbers of a group as arguments of its kernels.

    Args:
        engine: the device.
        group: what they compute.
        apart: the same by several kernels; None where one kernel always does.

    Attributes:
        parted: the last call ran apart.
        numbers: of each run-time value its dtype, and whether it is an element of that dtype first
            because it stands for a tensor; None for a value that is no number.
    """

    def __init__(self, engine: Engine, group: Group, apart: Fused | None = None) -> None:
        self.engine = engine
        self.group = group
        self.apart = apart
        self.parted = False
        self.inputs = len(group.outside)
        self.numbers: list[NumberKind | None] = []
        for part in group.parts:
            kind = None if part.name in _NO_NUMBERS else number_kind(part)
            self.numbers += [kind] * part.numbers

    def outside_numbers(self, tensors: Sequence[CubeTensor]) -> list[Any]:
        """Return the arguments for outside tensors that are numbers."""
        named = zip(tensors, self.group.outside, strict=True)
        return [plain(x.value, dtype.kind) for x, dtype in named if x.buf is None]

    def part_numbers(self, given: Sequence[Any]) -> list[Any]:
        """Return the arguments for the run-time values that are numbers."""
        named = zip(given, self.numbers, strict=True)
        return [number_word(v, kind) for v, kind in named if v is not None and kind is not None]

    def part_wise(self, *args: Any) -> tuple[CubeTensor, ...]:
        """Compute the group by several kernels."""
        assert self.apart is not None  # noqa: S101 - given wherever one kernel may not do
        return self.apart(*args)


class GroupKernels(GroupNumbers):
    """The kernels of one group on one device, by the layouts of what comes from outside.

    Args:
        engine: the device.
        group: what they compute.
        apart: the same by several kernels; None where one kernel always does.
        sized: views whose run-time values a launch depends on.
    """

    def __init__(
        self, engine: Engine, group: Group, apart: Fused | None = None,
        sized: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        super().__init__(engine, group, apart)
        self.drawing = Drawing(group.parts)
        names = [part.name for part in group.parts for _ in range(part.numbers)]
        self.targets = [k for k, name in enumerate(names) if name in sized]
        self.targets += self.drawing.shapes
        self.launches: dict[Any, Any] = {}

    def __call__(self, *args: Any) -> tuple[CubeTensor, ...]:
        """Compute the group: payloads from outside, then run-time values."""
        engine = self.engine
        tensors, given = args[: self.inputs], args[self.inputs :]
        # A number alone is no layout of its own: its value is an argument.
        layouts = tuple(
            [None if x.buf is None else x.layout or engine.layout_of(x) for x in tensors]
        )
        absent = tuple([v is None or n is None for v, n in zip(given, self.numbers, strict=True)])
        targets = tuple([given[k] for k in self.targets])
        what, drawn = self.drawing.of(given)
        key = (layouts, absent, targets, what)
        launch = self.launches.get(key, _UNKNOWN)
        if launch is _UNKNOWN:
            if len(self.launches) >= _MOST:
                self.launches.clear()
            launch = self.launches[key] = self._planned(tensors, absent, targets, what)
        self.parted = launch is None
        if launch is None:
            return self.part_wise(*args)
        return self._started(launch, tensors, given, drawn)

    def _planned(
        self, tensors: Sequence[CubeTensor], absent: tuple[bool, ...], targets: Sequence[Ints],
        drawn: What,
    ) -> Any:  # fmt: skip
        """Return how one kernel computes the group, None where it runs apart.

        Args:
            tensors: from outside.
            absent: which run-time values are None, or no numbers.
            targets: the values of `sized` views, then the extents of random numbers.
            drawn: random numbers among the parts.
        """
        raise NotImplementedError

    def _started(
        self, launch: Any, tensors: Sequence[CubeTensor], given: Sequence[Any],
        drawn: Sequence[Any],
    ) -> tuple[CubeTensor, ...]:  # fmt: skip
        """Start what was planned; `drawn` are the arguments of random numbers."""
        raise NotImplementedError
