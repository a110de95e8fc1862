"""The backend's side of fusion: what can be a part of a kernel, and which kernels a group has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from burn_backend import CORES, JOINTS, LEAVES, Fused, Group
from burn_cube_backend import fused_conv
from burn_cube_backend.engine import Engine
from burn_cube_backend.fused import FusedMap, FusedViews
from burn_cube_backend.fused_columns import FusedColumns
from burn_cube_backend.fused_conv import FusedConv
from burn_cube_backend.fused_cores import FusedCores
from burn_cube_backend.fused_joints import FusedJoints
from burn_cube_backend.fused_norm import FusedNorm
from burn_cube_backend.fused_rows import FusedRows
from burn_cube_backend.kernels.cross_entropy import entropy_gradient, entropy_kept
from burn_cube_backend.kernels.maps import is_map
from burn_cube_backend.kernels.reduce import first_stage
from burn_cube_backend.payload import CubeTensor
from burn_ir import Entry
from burn_std import DType

# What a group with rows may hold beside elementwise operations.
_OF_ROWS = ("sum", "prod", "amax", "amin", "any", "all", "argmax", "argmin", "gather", *CORES)
# What makes the elements that the operations of a group are computed of.
HEADS = ("conv",)


class CubeFuser:
    """The backend's side of fusion on one device."""

    def __init__(self, engine: Engine, supported: Callable[[DType], bool]) -> None:
        self.engine = engine
        self.supported = supported
        self.made: dict[Group, Fused] = {}
        self.norms = FusedNorm(engine)

    @property
    def first_stage(self) -> Callable[..., CubeTensor] | None:
        """The first launch of a sum over the first and the last dims; on a processor alone."""
        return partial(first_stage, self.engine) if self.engine.client.name == "cpu" else None

    @property
    def losses(self) -> Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]]:
        """Losses whose gradient takes what the forward found out about each row."""
        pair = partial(entropy_kept, self.engine), partial(entropy_gradient, self.engine)
        return {"cross_entropy": pair}

    @property
    def tails(self) -> Mapping[str, Callable[..., Any]]:
        """Operations whose last kernel can compute elementwise operations behind it."""
        return {"batch_norm": self.norms}

    def takes(self, entry: Entry, dtypes: Sequence[DType], out: DType) -> bool:
        """Return whether an operation can be a part and the device has its dtypes."""
        if entry.name in HEADS:
            return fused_conv.takes(self.engine, entry, dtypes, out)
        if not (is_map(entry) or entry.name in (*_OF_ROWS, *LEAVES, *JOINTS)):
            return False
        return all(not t.is_quantized and self.supported(t) for t in (*dtypes, out))

    def fuse(self, group: Group, apart: Fused) -> Fused:
        """Return the kernel of a group; equal groups share one."""
        found = self.made.get(group)
        if found is None:
            if len(self.made) >= 4096:
                self.made.clear()
            made: Fused
            if any(part.name in CORES for part in group.parts):
                made = FusedCores(self.engine, group, apart)
            elif group.rows:
                kind = FusedRows if group.rows > 0 else FusedColumns
                made = kind(self.engine, group, apart)
            elif any(part.name in JOINTS for part in group.parts):
                made = FusedJoints(self.engine, group, apart)
            elif any(part.name in HEADS for part in group.parts):
                made = FusedConv(self.engine, group, apart)
            elif group.through:
                made = FusedViews(self.engine, group, apart)
            else:
                made = FusedMap(self.engine, group, apart)
            found = self.made[group] = made
        return found
