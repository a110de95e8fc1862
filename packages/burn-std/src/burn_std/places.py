"""Where in the user's program something happens: the frame below those of the framework."""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType
from typing import NamedTuple


class Place(NamedTuple):
    """A line of the user's program.

    Attributes:
        file: path of the source.
        line: number of the line.
        function: name of the function around it.

    Example:
        >>> str(Place("project/train.py", 12, "step"))
        'train.py:12 in step'
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

    Outside of any program's function, as in a thread of the framework, its parts are `?`.
    """
    frame = user_frame()
    if frame is None:  # a thread of the framework
        return Place("?", 0, "?")
    return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def warn_user(warning: Warning) -> None:
    """Warn in the user's line.

    Args:
        warning: what to say; Python shows one of a class and text for each line.
    """
    frame = user_frame()
    if frame is None:
        warnings.warn(warning, stacklevel=2)
        return
    warnings.warn_explicit(
        warning, warning.__class__, frame.f_code.co_filename, frame.f_lineno,
        frame.f_globals.get("__name__"), frame.f_globals.setdefault("__warningregistry__", {}),
    )  # fmt: skip


def _is_own(frame: FrameType) -> bool:
    # Generated functions run without a module name.
    name = frame.f_globals.get("__name__", "burn")
    return name == "burn" or name.startswith(("burn_", "burn.")) or _is_library(frame)


def _is_library(frame: FrameType) -> bool:
    # Blocks and decorators of the standard library stand between the user and the framework.
    return frame.f_globals.get("__name__") in ("contextlib", "functools")
