"""What a recorder asks of a backend that puts several operations into one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from burn_ir import Entry
from burn_std import DType


class Part(NamedTuple):
    """One operation of a fused kernel.

    Attributes:
        name: the operation.
        inputs: per input a part of the group by its number, an outside tensor as -1 - number, or
            None for one that is absent.
        static: its static attributes.
        numbers: how many run-time numbers it takes.
        lead: dtype of the input that leads the promotion.
        dtype: of its result.
    """

    name: str
    inputs: tuple[int | None, ...]
    static: tuple[Any, ...]
    numbers: int
    lead: DType
    dtype: DType


class Group(NamedTuple):
    """Elementwise operations over one shape, and numbers (`full` of rank 0) that they read.

    Every part that is no number has the shape to which the outside tensors broadcast.

    Attributes:
        parts: operations, each after those that it reads.
        outside: dtypes of the tensors from outside.
        outputs: the parts whose results are wanted.
    """

    parts: tuple[Part, ...]
    outside: tuple[DType, ...]
    outputs: tuple[int, ...]


class Fuser(Protocol):
    """A backend's side of fusion."""

    def takes(self, entry: Entry, dtypes: Sequence[DType], out: DType) -> bool:
        """Return whether an elementwise operation can be a part, for dtypes of its inputs."""

    def fuse(self, group: Group) -> Callable[..., tuple[Any, ...]]:
        """Return the kernel of a group.

        It takes the outside payloads and then the numbers of all parts, in order, and returns the
        wanted results.
        """
