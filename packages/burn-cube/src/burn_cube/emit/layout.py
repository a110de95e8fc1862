"""How a launch hands its arguments over: a row of 64-bit words, the same for every target.

A buffer takes its address and its length in elements, a tensor its extents and strides as well, a
scalar its bits in the low end of one word. Behind the parameters stand the number of cubes along
x, y and z, and the address of the fault record.
"""

from __future__ import annotations

from burn_cube.ir import Kernel, Op, walk
from burn_cube.types import Memory


class Layout:
    """The words of one kernel's launch.

    Attributes:
        first: the first word of each parameter.
        grid: the word of the number of cubes along x; y and z follow.
        fault: the word of the fault record's address.
        size: number of words.
    """

    __slots__ = ("fault", "first", "grid", "size")

    def __init__(self, kernel: Kernel) -> None:
        self.first: dict[Op, int] = {}
        at = 0
        for param in kernel.params:
            self.first[param] = at
            at += words_of(param)
        self.grid = at
        self.fault = at + 3
        self.size = at + 4


def words_of(param: Op) -> int:
    """Return how many words a parameter takes."""
    if not isinstance(param.type, Memory):
        return 1
    return 2 + 2 * (param.attrs.get("rank") or 0)


def fault_codes(kernel: Kernel) -> dict[Op, int]:
    """Return the number, from 1, by which each operation that may fail is known."""
    names = ("load", "store", "atomic", "atomic_cas", "assert")
    checked = [op for op in walk(kernel.body) if op.name in names]
    return {op: code for code, op in enumerate(checked, 1)}
