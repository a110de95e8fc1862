"""From the record a kernel left to the error its author reads."""

from __future__ import annotations

from typing import Any

from burn_cube.emit.layout import fault_codes
from burn_cube.errors import KernelFaultError
from burn_cube.ir import Kernel, Op
from burn_cube.lowering import lower


def fault_of(kernel: Kernel, site: Op, index: int, length: int, words: str) -> KernelFaultError:
    """Return the error of one operation that broke a rule.

    Args:
        kernel: what ran.
        site: the operation, an access to memory or an assertion.
        index: the index that was used.
        length: the elements there are.
        words: the arguments of the launch, as `describe` gives them.
    """
    name, call = f"kernel {kernel.name}", f"{kernel.name}({words})"
    if site.name == "assert":
        rule = f"assert: {site.attrs['message']}"
        return KernelFaultError(name, rule, got=f"false in {call}", where=site.where)
    memory = site.args[0].attrs.get("name", f"{site.args[0].type.space} memory")
    return KernelFaultError(
        name, f"{site.name}: the index is inside of {memory}, which has {length} elements",
        got=f"{index} in {call}", remedy="Guard it: if i < len(x).", where=site.where,
    )  # fmt: skip


def recorded_fault(
    kernel: Kernel, code: int, index: int, length: int, words: str, **lowering: bool
) -> KernelFaultError:
    """Return the error of a code that counts the operations of the lowered kernel.

    Args:
        kernel: what ran.
        code: which of the operations that can fault.
        index: the index that was used.
        length: the elements there are.
        words: the arguments of the launch.
        lowering: how the kernel was lowered for the device.
    """
    codes = fault_codes(lower(kernel, **lowering))
    site = next((op for op, number in codes.items() if number == code), None)
    if site is None:
        got: Any = f"code {code} in {kernel.name}({words})"
        return KernelFaultError(f"kernel {kernel.name}", "a fault was recorded", got=got)
    return fault_of(kernel, site, index, length, words)
