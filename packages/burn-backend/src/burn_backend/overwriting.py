"""What a recorder and a backend say to each other when results take the memory of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from burn_std import ExecutionError


class Free(Protocol):
    """Says which inputs of a run nobody reads afterwards; what stands for a plan may ask."""

    @property
    def heirs(self) -> Mapping[int, int]:
        """The input that a result succeeds (a parameter, say), by the result's position."""
        ...

    def __call__(self, numbers: Sequence[int]) -> Sequence[bool]:
        """Return of inputs whether only the run itself holds their values."""
        ...


class OverwrittenError(ExecutionError):
    """A run failed after it may have written over inputs that were free.

    Attributes:
        inputs: their numbers; what they held is gone.
    """

    inputs: tuple[int, ...] = ()
