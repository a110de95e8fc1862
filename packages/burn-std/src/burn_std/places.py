"""Where in the user's program something happens: the frame below those of the framework."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import NamedTuple


class Place(NamedTuple):
    """A line of the user's program.

    Attributes:
        file: path of the source.
        line: number of the line.
        function: name of the function around it.
    """

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line} in {self.function}"


def user_frame() -> FrameType | None:
    """Return the innermost frame that is not the framework's; None where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_own(frame):
        frame = frame.f_back
    return frame


def user_place() -> Place:
    """Return the line of the user's program that is running.

    Example:
        >>> def where():
        ...     return user_place().function
        >>> where()
        'where'
    """
    frame = user_frame()
    if frame is None:  # a thread of the framework
        return Place("?", 0, "?")
    return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def _is_own(frame: FrameType) -> bool:
    # Generated functions run without a module name.
    name = frame.f_globals.get("__name__", "burn")
    return name == "burn" or name.startswith(("burn_", "burn.")) or _is_library(frame)


def _is_library(frame: FrameType) -> bool:
    # Blocks and decorators of the standard library stand between the user and the framework.
    return frame.f_globals.get("__name__") in ("contextlib", "functools")
