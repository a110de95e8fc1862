"""The machine: all units of all cubes step together, each one a lane of numpy arrays.

A mask says which units are live. Stepping together satisfies every barrier; that a kernel depends
on it is what the watcher finds.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from burn_cube.errors import KernelFaultError, LaunchError
from burn_cube.interpreter.memory import Watched, Watcher
from burn_cube.interpreter.numeric import NUMERIC, cast, native
from burn_cube.interpreter.planes import plane
from burn_cube.ir import Kernel, Op, Region
from burn_cube.lowering.copies import copies_at_once
from burn_cube.lowering.halves import widen_halves
from burn_cube.lowering.rewrite import clone
from burn_cube.lowering.tiles import tiles_in_memory
from burn_cube.types import Memory, Vector, scalar_of, width_of

Array = Any
# Lanes that step together at most; more cubes come in turns.
BATCH = 1 << 18


def interpret(kernel: Kernel, cubes: tuple[int, int, int], args: tuple[Any, ...]) -> None:
    """Run a kernel on numpy arrays, which it changes in place.

    Args:
        kernel: what to run. With bounds `checked` an index outside gives 0 or is dropped; else
            it raises.
        cubes: number of cubes along x, y and z.
        args: a numpy array or a number for each parameter.

    Raises:
        KernelFaultError: an index out of bounds, a race between units, a failed assertion.
        LaunchError: the arguments do not fit.
    """
    kernel = widen_halves(tiles_in_memory(copies_at_once(clone(kernel))))
    if len(args) != len(kernel.params):
        raise LaunchError(kernel.name, f"takes {len(kernel.params)} arguments", got=len(args))
    total = cubes[0] * cubes[1] * cubes[2]
    step = max(1, BATCH // kernel.cube_size)
    buffers: dict[Op, Watched] = {}
    for first in range(0, total, step):
        machine = _Machine(kernel, cubes, args, range(first, min(first + step, total)), buffers)
        with np.errstate(all="ignore"):
            machine.run()


class _Machine:
    def __init__(
        self,
        kernel: Kernel,
        cubes: tuple[int, int, int],
        args: tuple[Any, ...],
        chosen: range,
        buffers: dict[Op, Watched],
    ) -> None:
        self.kernel = kernel
        self.cubes = cubes
        size = kernel.cube_size
        self.lanes = len(chosen) * size
        every = np.arange(self.lanes)
        self.unit = every % size
        self.cube = every // size + chosen.start
        # Lanes have one number over all turns, so that races between turns are seen.
        self.first = chosen.start * size
        count = cubes[0] * cubes[1] * cubes[2]
        self.watcher = Watcher(
            kernel.name, np.arange(count * size) // size, kernel.bounds != "checked", self._name
        )
        self.live: Array = np.ones(self.lanes, bool)
        self.values: dict[Op, Array] = {}
        self.memory: dict[Op, Watched] = buffers
        self.slots: dict[Op, Array] = {}
        self.jumped: dict[tuple[Op, str], Array] = {}
        self.shapes: dict[Op, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        for param, arg in zip(kernel.params, args, strict=True):
            self._bind(param, arg)

    def _name(self, lane: int) -> str:
        lane %= max(self.lanes, 1)
        x, y, _ = self.cubes
        cube, unit = int(self.cube[lane]), int(self.unit[lane])
        dx, dy, _ = self.kernel.cube_dim
        at = (cube % x, cube // x % y, cube // (x * y))
        inner = (unit % dx, unit // dx % dy, unit // (dx * dy))
        return f"cube {at}, unit {inner}"

    def _bind(self, param: Op, arg: Any) -> None:
        if not isinstance(param.type, Memory):
            self.values[param] = np.asarray(arg).astype(native(param.type))
            return
        name, elem = param.attrs["name"], param.type.elem
        if not isinstance(arg, np.ndarray) or arg.dtype.name != scalar_of(elem).name:
            got = getattr(arg, "dtype", type(arg).__name__)
            raise LaunchError(f"{self.kernel.name}, {name}", f"takes a {elem.short} array", got=got)
        if param.attrs.get("rank") is not None:
            self.shapes[param] = (arg.shape, tuple(s // arg.itemsize for s in arg.strides))
            arg = _whole(arg)
        if param in self.memory:
            return
        data = arg.reshape(-1).view(native(scalar_of(elem)))
        if not np.shares_memory(data, arg) and arg.size:
            raise LaunchError(f"{self.kernel.name}, {name}", "an Array is contiguous in memory")
        if isinstance(elem, Vector):
            data = data.reshape(-1, elem.width)
        self.memory[param] = Watched(name, data, len(data), 0, True)

    def run(self) -> None:
        self._region(self.kernel.body)

    # --- control ---------------------------------------------------------------------------

    def _region(self, region: Region) -> None:
        for op in region.ops:
            if not self.live.any():
                return
            self._op(op)

    def _op(self, op: Op) -> None:
        method = getattr(self, f"_do_{op.name}", None)
        if method is not None:
            method(op)
            return
        numeric = NUMERIC[op.name]
        made = numeric(*[self._value(arg) for arg in op.args])
        kind = native(scalar_of(op.type))
        self.values[op] = made if made.dtype == kind else made.astype(kind)

    def _value(self, op: Op) -> Array:
        return self.values[op]

    def _mask(self, op: Op) -> Array:
        return np.broadcast_to(self._value(op), (self.lanes,))

    def _do_if(self, op: Op) -> None:
        before, cond = self.live, self._mask(op.args[0])
        self.live = before & cond
        self._region(op.regions[0])
        then, self.live = self.live, before & ~cond
        self._region(op.regions[1])
        self.live = then | self.live

    def _jumps(self, op: Op, kind: str) -> Array:
        return self.jumped.pop((op, kind), np.zeros(self.lanes, bool))

    def _jump(self, op: Op) -> None:
        key = (op.attrs["target"], op.name)
        self.jumped[key] = self.jumped.get(key, np.zeros(self.lanes, bool)) | self.live
        self.live = np.zeros(self.lanes, bool)

    _do_break = _do_continue = _do_leave = _jump

    def _do_for(self, op: Op) -> None:
        start, stop, step = (self._value(arg) for arg in op.args)
        index = np.broadcast_to(start, (self.lanes,)).copy()
        done = np.zeros(self.lanes, bool)
        while True:
            ahead = np.where(step > 0, index < stop, (index > stop) & (step < 0))
            done |= self.live & ~ahead
            self.live = self.live & ahead
            if not self.live.any():
                break
            self.values[op.regions[0].ops[0]] = index.copy()
            self._region(op.regions[0])
            self.live = self.live | self._jumps(op, "continue")
            done |= self._jumps(op, "break")
            index = np.where(self.live, index + step, index)
        self.live = done

    def _do_index(self, op: Op) -> None:
        pass

    def _do_while(self, op: Op) -> None:
        done = np.zeros(self.lanes, bool)
        while self.live.any():
            self._region(op.regions[0])
            cond = self._mask(op.regions[0].ops[-1].args[0])
            done |= self.live & ~cond
            self.live = self.live & cond
            self._region(op.regions[1])
            self.live = self.live | self._jumps(op, "continue")
            done |= self._jumps(op, "break")
        self.live = done

    def _do_yield(self, op: Op) -> None:
        pass

    def _do_block(self, op: Op) -> None:
        self._region(op.regions[0])
        self.live = self.live | self._jumps(op, "leave")

    def _do_barrier(self, op: Op) -> None:
        self.watcher.interval += 1

    # --- values ----------------------------------------------------------------------------

    def _do_const(self, op: Op) -> None:
        kind = native(scalar_of(op.type))
        if op.type.name == "bfloat16":
            from burn_cube.interpreter.numeric import to_bfloat16

            self.values[op] = to_bfloat16(np.array([op.attrs["value"]], np.float32))[0]
        else:
            self.values[op] = np.asarray(op.attrs["value"], kind)

    def _do_cast(self, op: Op) -> None:
        old, new = scalar_of(op.args[0].type), scalar_of(op.type)
        self.values[op] = cast(np.asarray(self._value(op.args[0])), old, new)

    _do_raw_cast = _do_cast

    def _do_bitcast(self, op: Op) -> None:
        value = np.ascontiguousarray(self._value(op.args[0]))
        self.values[op] = value.view(native(scalar_of(op.type))).reshape(
            np.shape(self._value(op.args[0]))
        )

    def _do_select(self, op: Op) -> None:
        cond, a, b = (self._value(arg) for arg in op.args)
        if isinstance(op.type, Vector) and not isinstance(op.args[0].type, Vector):
            cond = np.asarray(cond)[..., None]
        self.values[op] = np.where(cond, a, b)

    def _do_splat(self, op: Op) -> None:
        value = np.asarray(self._value(op.args[0]))[..., None]
        self.values[op] = np.broadcast_to(value, (*value.shape[:-1], op.type.width))

    def _do_vector(self, op: Op) -> None:
        lanes = np.broadcast_arrays(*[self._value(arg) for arg in op.args])
        self.values[op] = np.stack(lanes, axis=-1)

    def _do_extract(self, op: Op) -> None:
        self.values[op] = self._value(op.args[0])[..., op.attrs["lane"]]

    def _do_insert(self, op: Op) -> None:
        whole, new = self._value(op.args[0]), np.asarray(self._value(op.args[1]))
        shape = np.broadcast_shapes(whole.shape[:-1], new.shape)
        made = np.broadcast_to(whole, (*shape, whole.shape[-1])).copy()
        made[..., op.attrs["lane"]] = new
        self.values[op] = made

    def _do_special(self, op: Op) -> None:
        self.values[op] = np.asarray(self._special(op.attrs["name"])).astype(
            native(self.kernel.index)
        )

    def _special(self, name: str) -> Array:
        dims, cubes = self.kernel.cube_dim, self.cubes
        if name == "plane_pos":
            return self.unit // self.kernel.plane_dim
        if name == "unit_pos_plane":
            return self.unit % self.kernel.plane_dim
        word, _, axis = name.rpartition("_")
        if axis not in ("x", "y", "z"):
            if name == "unit_pos":
                return self.unit
            if name == "cube_pos":
                return self.cube
            if name == "cube_count":
                return cubes[0] * cubes[1] * cubes[2]
            x, y, z = (self._special(f"absolute_pos_{a}") for a in "xyz")
            return (z * (cubes[1] * dims[1]) + y) * (cubes[0] * dims[0]) + x
        at = "xyz".index(axis)
        if word == "cube_count":
            return cubes[at]
        if word == "absolute_pos":
            cube, unit = self._special(f"cube_pos_{axis}"), self._special(f"unit_pos_{axis}")
            return cube * dims[at] + unit
        linear, extent = (self.cube, cubes) if word == "cube_pos" else (self.unit, dims)
        below = int(np.prod(extent[:at])) if at else 1
        return linear // below % extent[at]

    # --- memory ----------------------------------------------------------------------------

    def _fact(self, op: Op, value: int) -> None:
        self.values[op] = np.asarray(value, native(self.kernel.index))

    def _do_length(self, op: Op) -> None:
        self._fact(op, self.memory[op.args[0]].size)

    def _do_shape(self, op: Op) -> None:
        self._fact(op, self.shapes[op.args[0]][0][op.attrs["dim"]])

    def _do_stride(self, op: Op) -> None:
        self._fact(op, self.shapes[op.args[0]][1][op.attrs["dim"]])

    def _do_alloc(self, op: Op) -> None:
        size, shared = op.attrs["size"], op.type.space == "shared"
        owners = self.lanes // self.kernel.cube_size if shared else self.lanes
        base = (np.arange(self.lanes) // (self.kernel.cube_size if shared else 1)) * size
        width = width_of(op.type.elem)
        shape = (owners * size, width) if width > 1 else (owners * size,)
        data = np.zeros(shape, native(scalar_of(op.type.elem)))
        self.memory[op] = Watched(f"{op.type.space} memory", data, size, base, shared)

    def _do_slot(self, op: Op) -> None:
        width = width_of(op.type)
        shape = (self.lanes, width) if width > 1 else (self.lanes,)
        self.slots[op] = np.zeros(shape, native(scalar_of(op.type)))

    def _do_get(self, op: Op) -> None:
        self.values[op] = self.slots[op.args[0]]

    def _do_set(self, op: Op) -> None:
        old, new = self.slots[op.args[0]], self._value(op.args[1])
        live = self.live[:, None] if old.ndim == 2 else self.live
        # A new array: values that were read before stay what they were.
        self.slots[op.args[0]] = np.where(live, new, old)

    def _access(self, op: Op, width: int) -> tuple[Watched, Array, Array]:
        """Return the memory, the lanes that are inside, and the first place of each."""
        memory = self.memory[op.args[0]]
        index = np.broadcast_to(self._value(op.args[1]), (self.lanes,)).astype(np.int64)
        good = np.flatnonzero(self.watcher.inside(op, memory, index, width, self.live))
        base = memory.base if np.ndim(memory.base) == 0 else memory.base[good]
        return memory, good, index[good] + base

    def _neighbours(self, op: Op, type_: Any) -> int:
        wide = isinstance(type_, Vector) and not isinstance(op.args[0].type.elem, Vector)
        return type_.width if wide else 1

    def _do_load(self, op: Op) -> None:
        width = self._neighbours(op, op.type)
        memory, lanes, places = self._access(op, width)
        many = width_of(op.type)
        shape = (self.lanes, many) if many > 1 else (self.lanes,)
        made = np.zeros(shape, memory.data.dtype)
        for at in range(width):
            self.watcher.reads(op, memory, places + at, lanes + self.first)
            if width > 1:
                made[lanes, at] = memory.data[places + at]
            else:
                made[lanes] = memory.data[places]
        self.values[op] = made

    def _do_store(self, op: Op) -> None:
        width = self._neighbours(op, op.args[2].type)
        memory, lanes, places = self._access(op, width)
        value = np.asarray(self._value(op.args[2]))
        many = width_of(op.args[2].type)
        value = np.broadcast_to(value, (self.lanes, many) if many > 1 else (self.lanes,))[lanes]
        for at in range(width):
            part = value[:, at] if width > 1 else value
            self.watcher.writes(op, memory, places + at, lanes + self.first, part)
            memory.data[places + at] = part

    def _do_atomic(self, op: Op) -> None:
        memory, lanes, places = self._access(op, 1)
        value = np.broadcast_to(self._value(op.args[2]), (self.lanes,))
        old = np.zeros(self.lanes, memory.data.dtype)
        kind = op.attrs["kind"]
        for lane, place in zip(lanes, places, strict=True):
            old[lane] = memory.data[place]
            new = value[lane] if kind == "exchange" else NUMERIC[kind](old[lane], value[lane])
            memory.data[place] = new
        self.values[op] = old

    def _do_atomic_cas(self, op: Op) -> None:
        memory, lanes, places = self._access(op, 1)
        expected = np.broadcast_to(self._value(op.args[2]), (self.lanes,))
        value = np.broadcast_to(self._value(op.args[3]), (self.lanes,))
        old = np.zeros(self.lanes, memory.data.dtype)
        for lane, place in zip(lanes, places, strict=True):
            old[lane] = memory.data[place]
            if old[lane] == expected[lane]:
                memory.data[place] = value[lane]
        self.values[op] = old

    # --- units together, effects -----------------------------------------------------------

    def _do_plane(self, op: Op) -> None:
        value = np.broadcast_to(self._value(op.args[0]), (self.lanes,))
        lane = None if len(op.args) == 1 else np.broadcast_to(
            self._value(op.args[1]), (self.lanes,)
        )  # fmt: skip
        self.values[op] = plane(
            op.attrs["kind"], value, lane, self.kernel.cube_size, self.kernel.plane_dim
        )

    def _do_print(self, op: Op) -> None:
        values = [np.broadcast_to(self._value(arg), (self.lanes,)) for arg in op.args]
        for lane in np.flatnonzero(self.live):
            sys.stdout.write(op.attrs["text"].format(*[v[lane] for v in values]) + "\n")

    def _do_assert(self, op: Op) -> None:
        failed = np.flatnonzero(self.live & ~self._mask(op.args[0]))
        if len(failed):
            raise KernelFaultError(
                f"kernel {self.kernel.name}", f"assert: {op.attrs['message']}",
                got=f"false in {self._name(int(failed[0]))}", where=op.where,
            )  # fmt: skip


def _whole(arg: Array) -> Array:
    """Return the memory behind a strided array from its first element on."""
    if arg.flags.c_contiguous:
        return arg
    span = 1 + sum((n - 1) * abs(s) for n, s in zip(arg.shape, arg.strides, strict=True)) // (
        arg.itemsize
    )
    if any(s < 0 for s in arg.strides):
        raise LaunchError("interpret", "strides are not negative", got=arg.strides)
    return np.lib.stride_tricks.as_strided(arg, (span,), (arg.itemsize,))
