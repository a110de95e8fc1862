"""Registration of kernels with several inputs and outputs that see float32 instead of halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from burn_flex.kernels.precision import BF16, F16, Array as Array
from burn_flex.table import maker

F = TypeVar("F", bound=Callable[..., Any])

HALVES = frozenset((F16, BF16))


def up(x: Any) -> Any:
    """Return x in float32 when it is a half, else x itself (None and attributes too)."""
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype in HALVES:
        return x.astype(np.float32)
    return x


def wide(name: str, *, keep: tuple[int, ...] = (), checked: bool = False) -> Callable[[F], F]:
    """Register a kernel that sees float32 where the call has halves.

    Float32 outputs are rounded to the dtype of the call, except those at the positions `keep`
    (statistics that stay in float32). The decorated function itself is left as it is, so other
    kernels call it with float32 arrays.
    """

    def register(fn: F) -> F:
        def make(dtype: np.dtype[Any]) -> Callable[..., Any]:
            if dtype not in HALVES:
                return fn

            def rounded(*args: Any) -> Any:
                out = fn(*map(up, args))
                if type(out) is not tuple:
                    return out.astype(dtype)
                return tuple(
                    o if i in keep or o.dtype != np.float32 else o.astype(dtype)
                    for i, o in enumerate(out)
                )

            return rounded

        maker(name, checked=checked)(make)
        return fn

    return register
