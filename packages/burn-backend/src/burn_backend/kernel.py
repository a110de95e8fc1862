"""One operation of one backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Kernel:
    """What a backend's table holds per entry.

    Attributes:
        make: called once per payload dtype of the promoted (or first) input, None for entries
            without inputs; returns the function from payloads and attributes to payloads.
        checked: the function itself raises for every illegal shape.
        quiet: the function needs no silenced floating-point state.
        fixed: the function itself when it is the same for every dtype, else None.
    """

    __slots__ = ("checked", "fixed", "make", "quiet")

    def __init__(
        self,
        make: Callable[[Any], Callable[..., Any]],
        checked: bool = False,
        quiet: bool = False,
        fixed: Callable[..., Any] | None = None,
    ) -> None:
        self.make = make
        self.checked = checked
        self.quiet = quiet
        self.fixed = fixed
