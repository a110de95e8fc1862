"""Functions that change the values of single tensors on their way to a file or from one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from burn_std import StoreError
from burn_store.elements import NATIVE, Array
from burn_store.selection import Select, selects

Mapper = Callable[[Array], Any]
Mappers = Mapping[str, Mapper] | Sequence[tuple[Select, Mapper]]


class MapperTable:
    """Which tensor has which mapper.

    Args:
        mappers: whole paths and functions, or pairs of a filter and a function, of which the first
            that chooses a path counts; None for none.

    Example:
        >>> table = MapperTable([("weight$", np.transpose)])
        >>> table.of("fc.weight") is np.transpose, table.of("fc.bias")
        (True, None)
    """

    def __init__(self, mappers: Mappers | None) -> None:
        pairs = mappers.items() if isinstance(mappers, Mapping) else mappers or ()
        exact = isinstance(mappers, Mapping)
        self._pairs: list[tuple[Callable[[str], bool], Mapper, str]] = []
        for select, mapper in pairs:
            if not callable(mapper):
                raise StoreError(
                    "store", "a mapper is a function of an array", got=f"{select!r}: {mapper!r}"
                )
            whole = exact and isinstance(select, str)
            chosen = select.__eq__ if whole else selects(select)
            self._pairs.append((chosen, mapper, repr(select)))
        self._idle = {what for _, _, what in self._pairs}

    def of(self, path: str) -> Mapper | None:
        """Return the function of a tensor, or None.

        Args:
            path: in the model.
        """
        for chosen, mapper, what in self._pairs:
            if chosen(path):
                self._idle.discard(what)
                return mapper
        return None

    def check_used(self) -> None:
        """Raise StoreError if one was asked for no tensor: it was meant for one."""
        if self._idle:
            raise StoreError(
                "store", "every mapper is for a tensor that is saved or loaded",
                got=", ".join(sorted(self._idle)),
            )  # fmt: skip


def check_plain(path: str, dtype: str) -> None:
    """Raise StoreError for a quantised tensor: its integers alone mean nothing.

    Args:
        path: in the model.
        dtype: its name.
    """
    if dtype not in NATIVE:
        raise StoreError(
            "store", f"a mapper changes plain numbers; {path} is not of such", got=dtype,
            remedy="Leave it out of mappers=.",
        )  # fmt: skip


def mapped(mapper: Mapper, array: Array, path: str) -> Array:
    """Return what a mapper makes of an array, as an array of its own.

    Args:
        mapper: the function.
        array: its argument.
        path: in the model, for messages.

    Raises:
        StoreError: it makes something that no tensor can be.
    """
    try:
        made = np.array(mapper(array), order="C")
    except Exception as error:
        error.add_note(f"in the mapper of {path}")
        raise
    if made.dtype.name not in NATIVE:
        raise StoreError(
            "store", f"the mapper of {path} returns an array of numbers", got=made.dtype
        )
    return made
