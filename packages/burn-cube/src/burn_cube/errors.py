"""The errors of the kernel language and of its runtimes.

    BurnError
      KernelError(ValueError)        a kernel breaks a rule of the language; it knows the place
        KernelTypeError(TypeError)   the types of its operands do not fit
      LaunchError(ValueError)        a launch has the wrong arguments, grid or cube size
      KernelFaultError               (ExecutionError) a running kernel broke a rule
      OutOfMemoryError               (ExecutionError) the device has no memory left

A message of the first group ends in the user's source line with a caret under the column.
"""

from __future__ import annotations

from typing import NamedTuple

from burn_std import BurnError, ExecutionError


class Where(NamedTuple):
    """A place in the user's source.

    Attributes:
        file: path of the file.
        line: line number, from 1.
        column: column, from 1.
        text: the source line, without its end.
        function: name of the function that holds the line.
    """

    file: str
    line: int
    column: int
    text: str
    function: str

    def __str__(self) -> str:
        caret = " " * (self.column - 1) + "^"
        place = f"{self.file}:{self.line}:{self.column}, in {self.function}"
        return f"  at {place}\n    {self.text}\n    {caret}"


class KernelError(BurnError, ValueError):
    """A kernel breaks a rule of the language.

    Attributes:
        where: the place in the user's source, innermost first to be named; None for a kernel
            that was made with the builder.
        callers: the places of the inlined calls that led there, innermost first.
    """

    def __init__(
        self,
        op: str,
        rule: str,
        *,
        got: object = None,
        remedy: str | None = None,
        where: Where | None = None,
    ) -> None:
        super().__init__(op, rule, got=got, remedy=remedy)
        self.where = where
        self.callers: list[Where] = []

    @property
    def line(self) -> int | None:
        """Line of the user's source, from 1."""
        return self.where.line if self.where else None

    @property
    def column(self) -> int | None:
        """Column of the user's source, from 1."""
        return self.where.column if self.where else None

    @property
    def file(self) -> str | None:
        """File of the user's source."""
        return self.where.file if self.where else None

    def __str__(self) -> str:
        lines = [str(self.args[0])]
        if self.where is not None:
            lines.append(str(self.where))
        lines += [f"  called at {at.file}:{at.line}: {at.text.strip()}" for at in self.callers]
        return "\n".join(lines)


class KernelTypeError(KernelError, TypeError):
    """Types of operands, arguments or assignments do not fit."""


class LaunchError(BurnError, ValueError):
    """A launch has the wrong arguments, grid or cube size."""


class KernelFaultError(ExecutionError):
    """A running kernel broke a rule: an index out of bounds, a write race, a failed assertion.

    Attributes:
        where: the place in the user's source, or None.
    """

    def __init__(
        self,
        op: str,
        rule: str,
        *,
        got: object = None,
        remedy: str | None = None,
        where: Where | None = None,
    ) -> None:
        super().__init__(op, rule, got=got, remedy=remedy)
        self.where = where

    def __str__(self) -> str:
        return str(self.args[0]) + (f"\n{self.where}" if self.where else "")


class OutOfMemoryError(ExecutionError):
    """The device has no memory left, even after the caches were emptied."""
