"""The table of kernels: families register functions, a backend binds them to its engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar
from weakref import ref

from burn_backend import Kernel
from burn_cube_backend.engine import Engine
from burn_cube_backend.payload import CubeTensor
from burn_ir import CATALOG
from burn_std import BackendContractError, DType

Made = Callable[..., Any]
F = TypeVar("F", bound=Made)


class Maker(NamedTuple):
    """What is registered for an entry.

    Attributes:
        make: `(engine, dtype) -> kernel`.
        checked: the entry's rule need not run first.
        runtime: the one runtime that has this kernel; None for all of them.
    """

    make: Callable[[Engine, Any], Made]
    checked: bool
    runtime: str | None


MAKERS: dict[str, Maker] = {}


class Table(dict[str, Kernel]):
    """The kernels of one engine; what is registered later comes in while the engine lives."""

    __slots__ = ("__weakref__", "engine")

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine
        for name in MAKERS:
            self.bind(name)

    def bind(self, name: str) -> None:
        """Take in the kernel of an entry, if this runtime has it."""
        make, checked, runtime = MAKERS[name]
        if runtime in (None, self.engine.client.name.partition(":")[0]):
            self[name] = Kernel(lambda dtype: make(self.engine, dtype), checked)


_live: list[ref[Table]] = []


def _add(
    name: str, make: Callable[[Engine, Any], Made], checked: bool, runtime: str | None = None
) -> None:
    if "::" in name:
        _ = CATALOG[name]  # raises for a name that nobody registered
        if name in MAKERS:
            raise BackendContractError(
                name, "an operation has one kernel on this backend", got="a second one"
            )
    MAKERS[name] = Maker(make, checked, runtime)
    _live[:] = [known for known in _live if known() is not None]
    for known in _live:
        table = known()
        if table is not None:
            table.bind(name)


def kernel(name: str, *, checked: bool = False, runtime: str | None = None) -> Callable[[F], F]:
    """Register the kernel of an operation, for every device of this backend.

    A package registers its own operation's kernel at any time before the operation's first call
    on a device; a device that called it before keeps to the decomposition.

    Args:
        name: entry of the catalogue.
        checked: the function itself raises for every illegal shape, so the entry's rule need not
            run first.
        runtime: the only runtime that gets it; the devices of the others run the operation by its
            parts.

    Returns:
        A decorator of a function `(engine, *inputs, *attrs)` that returns a `CubeTensor`, or a
        list of them. Inputs are `CubeTensor`s with memory, None, or lists of them.

    Raises:
        GraphError: no such operation is registered.
        BackendContractError: the operation of a package has a kernel already.

    Example:
        >>> import burn_cube as bc
        >>> from burn_ir import Entry, register
        >>> from burn_ir.rules.basic import unary
        >>> name = "docs::half"
        >>> _ = register(Entry(name, "x", "", unary(name, "float"), "map", "x / 2"))
        >>> @bc.cube
        ... def halve(x: bc.Array[bc.Float], out: bc.Array[bc.Float]):
        ...     if bc.ABSOLUTE_POS < len(out):
        ...         out[bc.ABSOLUTE_POS] = x[bc.ABSOLUTE_POS] * 0.5
        >>> @kernel(name)
        ... def half(engine, x):
        ...     out = engine.empty(x.shape, x.dtype)
        ...     cubes = -(-out.size // 256)
        ...     halve.launch(engine.client, cubes, engine.array(x), engine.array(out))
        ...     return out
        >>> x = burn.tensor([3.0, 5.0], device=burn.device("interp"))
        >>> getattr(x.b, name)(x).tolist()
        [1.5, 2.5]
    """

    def register(fn: F) -> F:
        def make(engine: Engine, dtype: DType | None) -> Made:
            solid = engine.solid

            def ready(x: Any) -> Any:
                if x.__class__ is CubeTensor:
                    return solid(x) if x.buf is None else x
                if x.__class__ in (list, tuple) and x and x[0].__class__ is CubeTensor:
                    return [ready(e) for e in x]
                return x

            def call(*args: Any) -> Any:
                engine.label = name
                return fn(engine, *[ready(a) for a in args])

            return call

        _add(name, make, checked, runtime)
        return fn

    return register


def maker(name: str, *, checked: bool = False) -> Callable[..., Any]:
    """Register a function (engine, dtype) that makes the kernel of one dtype."""

    def register(make: Callable[[Engine, Any], Made]) -> Callable[[Engine, Any], Made]:
        _add(name, make, checked)
        return make

    return register


def table_of(engine: Engine) -> Table:
    """Return the table of a backend on one device."""
    import burn_cube_backend.kernels  # noqa: F401 - fills MAKERS

    made = Table(engine)
    _live.append(ref(made))
    return made
