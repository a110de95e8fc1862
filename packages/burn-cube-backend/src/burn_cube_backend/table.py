"""The table of kernels: families register functions, a backend binds them to its engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burn_backend import Kernel
from burn_cube_backend.engine import Engine
from burn_cube_backend.payload import CubeTensor
from burn_std import DType

Made = Callable[..., Any]
# Per entry: the function (engine, dtype) -> kernel, and whether its rule need not run first.
MAKERS: dict[str, tuple[Callable[[Engine, Any], Made], bool]] = {}


def kernel(name: str, *, checked: bool = False) -> Callable[[Made], Made]:
    """Register a function of an engine, payloads with memory, and attributes."""

    def register(fn: Made) -> Made:
        def make(engine: Engine, dtype: DType | None) -> Made:
            solid = engine.solid

            def ready(x: Any) -> Any:
                if x.__class__ is CubeTensor:
                    return solid(x) if x.buf is None else x
                if x.__class__ in (list, tuple) and x and x[0].__class__ is CubeTensor:
                    return [ready(e) for e in x]
                return x

            def call(*args: Any) -> Any:
                return fn(engine, *[ready(a) for a in args])

            return call

        MAKERS[name] = (make, checked)
        return fn

    return register


def maker(name: str, *, checked: bool = False) -> Callable[..., Any]:
    """Register a function (engine, dtype) that makes the kernel of one dtype."""

    def register(make: Callable[[Engine, Any], Made]) -> Callable[[Engine, Any], Made]:
        MAKERS[name] = (make, checked)
        return make

    return register


def table_of(engine: Engine) -> dict[str, Kernel]:
    """Return the table of a backend on one device."""
    import burn_cube_backend.kernels  # noqa: F401 - fills MAKERS

    def bound(make: Callable[[Engine, Any], Made]) -> Callable[[Any], Made]:
        return lambda dtype: make(engine, dtype)

    return {name: Kernel(bound(make), checked) for name, (make, checked) in MAKERS.items()}
