"""How a launch passes its arguments: one list of values, the same for every target.

A kernel gets what it uses and no more: for each parameter its pointer or its value, then the
length, extents and strides that the body or its bounds checks read. Emitters declare parameters
in this order; runtimes gather values in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from burn_cube.errors import LaunchError
from burn_cube.ir import Kernel, Op, walk
from burn_cube.runtime.interface import Device, DeviceArray
from burn_cube.types import Memory, Vector, scalar_of, width_of
from burn_std.dtypes import DType, bfloat16, bool_, int32

# Operations that touch memory, and so need the length where bounds are checked.
ACCESSES = frozenset({"load", "store", "atomic", "atomic_cas", "tile_load", "tile_store"})


class Entry(NamedTuple):
    """One value of a launch.

    Attributes:
        kind: `pointer`, `length`, `shape`, `stride`, `scalar`, `launch` or `fault`.
        param: number of the parameter it belongs to, -1 for the last two kinds.
        dim: dimension of an extent or a stride.
        dtype: dtype of the value; None for a pointer.
    """

    kind: str
    param: int
    dim: int
    dtype: DType | None


def may_fault(kernel: Kernel) -> bool:
    """Return whether a kernel can report a fault: validated bounds or an assertion."""
    ops = walk(kernel.body)
    return any(
        op.name == "assert" or (kernel.bounds == "validated" and op.name in ACCESSES) for op in ops
    )


def layout(kernel: Kernel) -> list[Entry]:
    """Return the values that a launch of the kernel passes, in order.

    Example:
        >>> from burn_cube import Builder
        >>> from burn_std.dtypes import float32
        >>> b = Builder("clear")
        >>> x = b.buffer("x", float32)
        >>> b.store(x, b.special("absolute_pos"), b.const(0.0, float32))
        >>> [entry.kind for entry in layout(b.finish())]
        ['pointer', 'length']
    """
    used: dict[Op, set[tuple[str, int]]] = {param: set() for param in kernel.params}
    for op in walk(kernel.body):
        if op.name in ("length", "shape", "stride"):
            used[op.args[0]].add((op.name, op.attrs.get("dim", 0)))
        elif op.name in ACCESSES and kernel.bounds != "unchecked" and op.args[0] in used:
            used[op.args[0]].add(("length", 0))
    entries = []
    for number, param in enumerate(kernel.params):
        if isinstance(param.type, Memory):
            entries.append(Entry("pointer", number, 0, None))
            entries += [Entry(kind, number, dim, kernel.index) for kind, dim in sorted(used[param])]
        else:
            entries.append(Entry("scalar", number, 0, param.type))
    if may_fault(kernel):
        entries += [Entry("launch", -1, 0, int32), Entry("fault", -1, 0, None)]
    return entries


def checker(kernel: Kernel, device: Device) -> Callable[[Sequence[Any]], None]:
    """Return the function that checks the arguments of each launch.

    The common case is one compiled expression; only what it refuses is looked at in words.
    """
    tests = [f"len(args) == {len(kernel.params)}"]
    names: dict[str, Any] = {"device": device, "numbers": (bool, int, float)}
    for number, param in enumerate(kernel.params):
        arg = f"args[{number}]"
        if not isinstance(param.type, Memory):
            wanted = "numbers" if param.type.is_float else "numbers[:2]"
            tests.append(f"isinstance({arg}, {wanted})")
            continue
        elem, rank = param.type.elem, param.attrs.get("rank")
        names[f"t{number}"] = scalar_of(elem)
        tests += [f"{arg}.dtype is t{number}", f"{arg}.buffer.device is device"]
        if rank is not None:
            tests.append(f"len({arg}.shape) == {rank}")
        if isinstance(elem, Vector):
            tests.append(f"({arg}.length | {arg}.offset) % {elem.width} == 0")
    good = eval(f"lambda args: {' and '.join(tests)}", names)

    def run(args: Sequence[Any]) -> None:
        try:
            if good(args):
                return
        except (AttributeError, TypeError):
            pass
        check(kernel, args, device)

    return run


def check(kernel: Kernel, args: Sequence[Any], device: Device) -> None:
    """Check that arguments fit the parameters of a kernel.

    Raises:
        LaunchError: the count, a device, an element type, a rank or an alignment does not fit.
    """
    if len(args) != len(kernel.params):
        names = ", ".join(param.attrs["name"] for param in kernel.params)
        rule = f"takes {len(kernel.params)} arguments ({names})"
        raise LaunchError(kernel.name, rule, got=len(args))
    for param, arg in zip(kernel.params, args, strict=True):
        name = f"{kernel.name}, {param.attrs['name']}"
        if isinstance(param.type, Memory):
            _check_buffer(name, param, arg, device)
        elif not isinstance(arg, bool | int | float) and not hasattr(arg, "item"):
            raise LaunchError(name, f"is a number ({param.type.name})", got=repr(arg))
        elif not param.type.is_float and int(arg) != arg:
            raise LaunchError(name, f"is an integer ({param.type.name})", got=arg)


def _check_buffer(name: str, param: Op, arg: Any, device: Device) -> None:
    if not isinstance(arg, DeviceArray):
        raise LaunchError(name, "is an array of the device", got=repr(arg))
    if arg.device is not device:
        raise LaunchError(name, f"is an array on {device.name}", got=f"one on {arg.device.name}")
    elem = param.type.elem
    dtype = scalar_of(elem)
    if arg.dtype is not dtype:
        raise LaunchError(name, f"holds {dtype.name}", got=arg.dtype.name)
    rank = param.attrs.get("rank")
    if rank is not None and len(arg.shape) != rank:
        raise LaunchError(name, f"has rank {rank}", got=f"shape {arg.shape}")
    if isinstance(elem, Vector) and (arg.length % elem.width or arg.offset % elem.width):
        got = f"{arg.length} elements at offset {arg.offset}"
        rule = f"vectors of {elem.width} fill the array from a multiple of their width on"
        raise LaunchError(name, rule, got=got)


@cache
def _flattener(spec: tuple[tuple[str, int, int, int, str], ...]) -> Callable[..., list[Any]]:
    # One expression per kernel signature, compiled once: a launch then runs no interpreter loop.
    forms = {
        "pointer": "{p}(args[{n}])",
        "length": "args[{n}].length // {w}",
        "shape": "args[{n}].shape[{d}]",
        "stride": "args[{n}].strides[{d}]",
        "int": "int(args[{n}])",
        "bf16": "bits(args[{n}])",
        "bool": "bool(args[{n}])",
        "float": "float(args[{n}])",
        "launch": "number",
        "fault": "fault",
    }
    texts = [
        forms[kind].format(p="pointer", n=n, d=d, w=w).removesuffix(" // 1")
        for kind, n, d, w, _ in spec
    ]
    source = f"lambda args, pointer, number=0, fault=0: [{', '.join(texts)}]"
    made: Callable[..., list[Any]] = eval(source, {"bits": bfloat_bits})
    return made


def flattener(kernel: Kernel, entries: list[Entry]) -> Callable[..., list[Any]]:
    """Return the function (args, pointer, launch number, fault) -> values of a launch.

    `pointer` makes what the target passes for a `DeviceArray`.
    """
    spec = []
    for kind, number, dim, dtype in entries:
        width = 1
        if kind == "length":
            width = width_of(kernel.params[number].type.elem)
        if kind == "scalar" and dtype is not None:
            if dtype is bfloat16:
                kind = "bf16"
            elif dtype is bool_:
                kind = "bool"
            else:
                kind = "float" if dtype.is_float else "int"
        spec.append((kind, number, dim, width, ""))
    return _flattener(tuple(spec))


def bfloat_bits(value: float) -> int:
    """Return the bits of the bfloat16 nearest to a number.

    Example:
        >>> hex(bfloat_bits(1.0))
        '0x3f80'
    """
    import struct

    if value != value:
        return 0x7FC0
    try:
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
    except OverflowError:
        return 0x7F80 if value > 0 else 0xFF80
    return int(bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def describe(kernel: Kernel, args: Sequence[Any]) -> str:
    """Return the arguments of a launch in words, for an error that comes later."""
    words = []
    for param, arg in zip(kernel.params, args, strict=False):
        text = f"{arg.dtype.short}{list(arg.shape)}" if isinstance(arg, DeviceArray) else repr(arg)
        words.append(f"{param.attrs['name']}={text}")
    return ", ".join(words)
