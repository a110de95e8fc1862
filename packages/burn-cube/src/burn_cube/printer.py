"""The text of a kernel: one operation a line, regions indented, values numbered in order."""

from __future__ import annotations

from burn_cube.ir import Kernel, Op, Region

# Attributes that read better without their name.
BARE = ("value", "name", "kind", "dim", "lane", "scope")


def text_of(kernel: Kernel) -> str:
    """Return the printed form of a kernel."""
    return _Printer(kernel).text()


class _Printer:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names = {param: f"%{param.attrs['name']}" for param in kernel.params}
        self.lines: list[str] = []
        self.count = 0
        self.blocks: dict[Op, int] = {}

    def text(self) -> str:
        kernel = self.kernel
        params = ", ".join(f"{name}: {_kind(param)}" for param, name in self.names.items())
        dims = "x".join(map(str, kernel.cube_dim))
        head = (
            f"kernel {kernel.name}({params}) cube {dims} plane {kernel.plane_dim} "
            f"index {kernel.index.short} bounds {kernel.bounds}"
        )
        self.lines.append(head + (" fast_math" if kernel.fast_math else ""))
        self.region(kernel.body, 1)
        return "\n".join(self.lines)

    def region(self, region: Region, depth: int) -> None:
        indent = "  " * depth
        for op in region:
            self.lines.append(indent + self.line(op))
            words = {"if": ("", "else"), "while": ("", "do")}.get(op.name, ("",))
            for word, inner in zip(words, op.regions, strict=False):
                if word == "else" and not inner.ops:
                    continue
                if word:
                    self.lines.append(indent + word)
                self.region(inner, depth + 1)

    def line(self, op: Op) -> str:
        words = [op.name]
        words += [str(op.attrs[key]) for key in BARE if key in op.attrs]
        words += [
            f"{key}={value!r}" if isinstance(value, str) else f"{key}={value}"
            for key, value in op.attrs.items()
            if key not in BARE and not isinstance(value, Op)
        ]
        # A jump names the block it leaves: the text says all that the kernel is.
        if op.name == "block":
            self.blocks[op] = len(self.blocks)
            words.append(f"@{self.blocks[op]}")
        elif op.name == "leave":
            words.append(f"@{self.blocks[op.attrs['target']]}")
        line = " ".join(words)
        operands = ", ".join(self.names.get(arg, "%?") for arg in op.args)
        if operands:
            line += f" {operands}"
        if op.type is None:
            return line
        self.names[op] = f"%{self.count}"
        self.count += 1
        return f"{self.names[op]} = {line} : {op.type.short}"


def _kind(param: Op) -> str:
    rank = param.attrs.get("rank")
    return str(param.type.short) + (f" rank {rank}" if rank is not None else "")
