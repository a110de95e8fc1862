"""From the record a kernel left to the error its author reads."""

from __future__ import annotations

from typing import Any

from burn_cube.emit.layout import fault_codes
from burn_cube.errors import KernelFaultError
from burn_cube.ir import Kernel
from burn_cube.lowering import lower


def fault_of(kernel: Kernel, record: Any, **lowering: bool) -> KernelFaultError:
    """Return the error that a fault record stands for.

    Args:
        kernel: the kernel that wrote it.
        record: five int32: the code, then index and length with their low halves first.
        lowering: how the kernel was lowered for the device; codes count its operations.
    """
    code = int(record[0])
    index = _wide(record[1], record[2])
    length = _wide(record[3], record[4])
    codes = fault_codes(lower(kernel, **lowering))
    op = next((op for op, number in codes.items() if number == code), None)
    name = f"kernel {kernel.name}"
    if op is None:
        return KernelFaultError(name, "a fault was recorded", got=f"code {code}")
    if op.name == "assert":
        return KernelFaultError(name, f"assert: {op.attrs['message']}", where=op.where)
    memory = op.args[0].attrs.get("name", f"{op.args[0].type.space} memory")
    return KernelFaultError(
        name, f"{op.name}: the index is inside of {memory}, which has {length} elements",
        got=index, remedy="Guard it: if i < len(x).", where=op.where,
    )  # fmt: skip


def _wide(low: Any, high: Any) -> int:
    return (int(low) & 0xFFFFFFFF) | int(high) << 32
