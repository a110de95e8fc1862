"""The verifier: what every emitter takes for granted about a kernel.

Types were checked when operations were added. Here: values are used where they are defined and
jumps leave what they stand in; barriers and plane operations are reached by all units of a cube
together (uniform control); kernel parameters are global memory.
"""

from __future__ import annotations

from burn_cube.errors import KernelError
from burn_cube.ir import Kernel, Op, Region, walk
from burn_cube.operations import CUBE_FACTS, is_pure

TILES = ("tile_load", "tile_store", "tile_mma", "tile_fill", "tile_operand")
TOGETHER = frozenset({"barrier", "plane", "group_mma", "group_wait", *TILES})


def verify(kernel: Kernel) -> None:
    """Check a kernel.

    Raises:
        KernelError: it breaks a rule; the error names the place of the operation.
    """
    _Scopes(kernel).check()
    _Uniformity(kernel).check()


class _Scopes:
    """Definitions come before uses, and a region's values stay inside it."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.known: set[Op] = set(kernel.params)
        self.open: list[Op] = []

    def check(self) -> None:
        self._region(self.kernel.body)

    def _region(self, region: Region) -> None:
        added = []
        for op in region:
            for arg in op.args:
                if arg not in self.known:
                    raise KernelError(
                        op.name, "a value is used where it was not computed",
                        got=f"the result of {arg.name}"
                        + (f" at line {arg.where.line}" if arg.where else ""),
                        remedy="Assign it to a name before the branch or loop, or keep it in a "
                        "local(value) cell.", where=op.where,
                    )  # fmt: skip
            target = op.attrs.get("target")
            if target is not None and target not in self.open:
                raise KernelError(op.name, "a jump leaves what it stands in", where=op.where)
            self.open.append(op)
            for number, inner in enumerate(op.regions):
                if op.name == "while" and number == 1:
                    # The condition's values are known in the body.
                    self.known.update(op.regions[0].ops)
                self._region(inner)
            if op.name == "while":
                self.known.difference_update(op.regions[0].ops)
            self.open.pop()
            self.known.add(op)
            added.append(op)
        self.known.difference_update(added)


class _Uniformity:
    """Which values differ between the units of a cube, and what stands under such a condition."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.varying: set[Op] = set()
        # The condition that some units of the cube left by, for the message.
        self.gone: Op | None = None

    def check(self) -> None:
        ops = list(walk(self.kernel.body))
        if not any(op.name in TOGETHER for op in ops):
            return
        if self.kernel.cube_size > 1:
            before = -1
            while before != len(self.varying):
                before = len(self.varying)
                self._mark(self.kernel.body, None)
        self._check(self.kernel.body, None)

    def _mark(self, region: Region, under: Op | None) -> None:
        for op in region:
            if self._varies(op) or (op.name == "set" and under is not None):
                self.varying.add(op)
                if op.name == "set":
                    self.varying.add(op.args[0])
            inner = op if op.name in ("if", "for") and self._any(op.args) else under
            if op.name == "while":
                self._mark(op.regions[0], under)
                last = op.regions[0].ops[-1]
                inner = last if self._any(last.args) else under
                self._mark(op.regions[1], inner)
                continue
            if op.name == "for" and inner is op:
                self.varying.add(op.regions[0].ops[0])
            for body in op.regions:
                self._mark(body, inner)

    def _any(self, args: tuple[Op, ...]) -> bool:
        return any(arg in self.varying for arg in args)

    def _varies(self, op: Op) -> bool:
        if op.name == "special":
            return op.attrs["name"] not in CUBE_FACTS
        if op.name == "load":
            space = op.args[0].type.space
            return space != "global" or self._any(op.args)
        if op.name in ("atomic", "atomic_cas", "tile_element"):
            return True
        if op.name == "plane":
            # One plane has one sum, but a cube may hold several planes.
            return True
        if op.name == "get":
            return op.args[0] in self.varying
        return (is_pure(op.name) or op.name in ("set", "yield")) and self._any(op.args)

    def _check(self, region: Region, under: Op | None) -> None:
        for op in region:
            blame = under or self.gone
            if op.name in TOGETHER and blame is not None:
                line = f"the condition at line {blame.where.line}" if blame.where else "a condition"
                word = {"barrier": "sync_cube"}.get(op.name, op.name)
                raise KernelError(
                    word, "every unit of the cube comes here together",
                    got=f"{line} differs between units",
                    remedy="Move it out of the branch, or make the condition one of CUBE_POS and "
                    "compile-time values.", where=op.where,
                )  # fmt: skip
            inner = under
            if (op.name in ("if", "for") and self._any(op.args)) or (
                op.name == "while" and self._any(op.regions[0].ops[-1].args)
            ):
                inner = op
            if op.name in ("break", "continue", "leave") and under is not None:
                self.gone = self.gone or under
            before = self.gone
            for body in op.regions:
                self._check(body, inner)
            # A loop or block that some units left early: behind it they are together again.
            if op.name in ("for", "while", "block") and self._stays(op):
                self.gone = before

    def _stays(self, op: Op) -> bool:
        inside = set(walk(op.regions[-1])) | {op}
        return all(
            jump.attrs["target"] in inside
            for jump in walk(op.regions[-1])
            if jump.name in ("break", "continue", "leave")
        )
