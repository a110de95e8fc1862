"""Whether the arguments of a launch fit, and how OpenCL and CUDA pass them: what the kernel uses.

For each parameter its pointer or its value, then the length, extents and strides that the body or
its bounds checks read. Emitters declare parameters in this order; runtimes gather values in it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from burn_cube.builder import wrap
from burn_cube.errors import LaunchError
from burn_cube.ir import Kernel, Op, walk
from burn_cube.types import Memory, Vector, scalar_of, width_of
from burn_std.dtypes import DType, bfloat16, bool_, float16, int32

if TYPE_CHECKING:
    from burn_cube.runtime.client import Client, DeviceArray

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
        if op.name in ("length", "shape", "stride") and op.args[0] in used:
            used[op.args[0]].add((op.name, op.attrs.get("dim", 0)))
        elif op.name in ACCESSES and kernel.bounds != "unchecked" and op.args[0] in used:
            used[op.args[0]].add(("length", 0))
        elif op.name == "async_copy" and kernel.bounds != "unchecked":
            used[op.args[2]].add(("length", 0))
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


def acceptor(kernel: Kernel, client: Client) -> Callable[[Sequence[Any]], bool]:
    """Return the function that says whether arguments fit, without saying why they do not.

    One expression, compiled once a kernel: what a launch costs is what it looks at.
    """
    tests = [f"len(args) == {len(kernel.params)}"]
    names: dict[str, Any] = {"client": client, "numbers": (int, float, bool)}
    for number, param in enumerate(kernel.params):
        arg = f"args[{number}]"
        if not isinstance(param.type, Memory):
            tests.append(f"type({arg}) in numbers")
            continue
        rank = param.attrs.get("rank")
        names[f"t{number}"] = scalar_of(param.type.elem)
        tests += [f"{arg}.client is client", f"{arg}.dtype is t{number}"]
        tests.append(f"{arg}.dense" if rank is None else f"len({arg}.shape) == {rank}")
    fits: Callable[[Sequence[Any]], bool] = eval(f"lambda args: {' and '.join(tests)}", names)

    def run(args: Sequence[Any]) -> bool:
        try:
            return fits(args)
        except AttributeError:  # a number in the place of an array
            return False

    return run


@cache
def _flattener(spec: tuple[tuple[str, int, int, int], ...]) -> Callable[..., list[Any]]:
    # One expression a kernel signature, compiled once: a launch then runs no interpreter loop.
    forms = {
        "pointer": "pointer(args[{n}])",
        "length": "args[{n}].length // {w}",
        "shape": "args[{n}].shape[{d}]",
        "stride": "args[{n}].strides[{d}]",
        "bf16": "bits(args[{n}])",
        "bool": "bool(args[{n}])",
        "float": "float(args[{n}])",
        "int": "int(args[{n}])",
        "launch": "number",
        "fault": "fault",
    }
    texts = [forms[kind].format(n=n, d=d, w=w).removesuffix(" // 1") for kind, n, d, w in spec]
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
            words = {bfloat16: "bf16", bool_: "bool"}
            kind = words.get(dtype, "float" if dtype.is_float else "int")
        spec.append((kind, number, dim, width))
    return _flattener(tuple(spec))


def packer(
    kernel: Kernel, entries: list[Entry], pack_into: Callable[..., None], block: Any
) -> Callable[..., None]:
    """Return the function (args, launch number, fault) that packs arguments into a block.

    One call without a loop. It converts nothing: what `struct` does not take by itself raises, and
    the caller packs what `flattener` makes of the arguments.

    Args:
        kernel: whose arguments are packed.
        entries: what a launch passes, in order.
        pack_into: of the `Struct` of the entries.
        block: where the bytes go.
    """
    forms = {
        "pointer": "args[{n}].pointer", "shape": "args[{n}].shape[{d}]",
        "stride": "args[{n}].strides[{d}]", "scalar": "args[{n}]", "launch": "number",
        "fault": "fault",
    }  # fmt: skip
    texts = []
    for kind, number, dim, dtype in entries:
        if kind == "length":
            width = width_of(kernel.params[number].type.elem)
            texts.append(f"args[{number}].length" + (f" // {width}" if width > 1 else ""))
        elif dtype is bfloat16:
            texts.append(f"bits(args[{number}])")
        else:
            texts.append(forms[kind].format(n=number, d=dim))
    return _packer(", ".join(texts))(pack_into, block, bfloat_bits)


@cache
def _packer(text: str) -> Callable[..., Callable[..., None]]:
    source = f"lambda pack, block, bits: lambda args, number=0, fault=0: pack(block, 0, {text})"
    made: Callable[..., Callable[..., None]] = eval(source)
    return made


def code_of(dtype: DType) -> str:
    """Return the letter by which `struct` packs a value of a dtype.

    Example:
        >>> from burn_std.dtypes import int64, uint8
        >>> code_of(int64), code_of(uint8)
        ('q', 'B')
    """
    if dtype.is_float:
        return {float16: "e", bfloat16: "H"}.get(dtype, "d" if dtype.bits == 64 else "f")
    if dtype is bool_:
        return "?"
    code = {8: "b", 16: "h", 32: "i", 64: "q"}[dtype.bits]
    return code if dtype.is_signed else code.upper()


def wrapped(entries: list[Entry], values: list[Any]) -> list[Any]:
    """Return the values of a launch with integers wrapped and floats kept in range.

    What `struct` refuses comes here: an integer beyond its dtype wraps, a float becomes infinite.
    """
    made = list(values)
    for number, ((kind, _, _, dtype), value) in enumerate(zip(entries, values, strict=True)):
        if kind != "scalar" or dtype is None:
            continue
        if dtype.is_int:
            made[number] = wrap(int(value), dtype)
        elif dtype.is_float and dtype is not bfloat16:
            try:
                struct.pack("<" + code_of(dtype), value)
            except OverflowError:
                made[number] = float("inf") if value > 0 else float("-inf")
    return made


def vectors_of(kernel: Kernel) -> list[tuple[int, int, int]]:
    """Return the parameters that are arrays of vectors: number, lanes, bytes of a vector."""
    found = []
    for number, param in enumerate(kernel.params):
        elem = param.type.elem if isinstance(param.type, Memory) else None
        if isinstance(elem, Vector):
            found.append((number, elem.width, elem.width * elem.dtype.itemsize))
    return found


def aligned(kernel: Kernel, vectors: Sequence[tuple[int, int, int]], args: Sequence[Any]) -> None:
    """Check that arrays of vectors, as `vectors_of` names them, start and end at whole ones.

    Raises:
        LaunchError: one does not.
    """
    for number, width, size in vectors:
        arg = args[number]
        if arg.length % width or arg.offset % size:
            raise LaunchError(
                f"{kernel.name}, {kernel.params[number].attrs['name']}",
                f"vectors of {width} fill the array from a multiple of their width on",
                got=f"{arg.length} elements at byte {arg.offset}",
            )


def bfloat_bits(value: float) -> int:
    """Return the bits of the bfloat16 nearest to a number.

    Example:
        >>> hex(bfloat_bits(1.0))
        '0x3f80'
    """
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
        text = repr(arg) if not isinstance(param.type, Memory) else _array(arg)
        words.append(f"{param.attrs['name']}={text}")
    return ", ".join(words)


def _array(array: DeviceArray) -> str:
    return f"{array.dtype.short}{list(array.shape)}"
