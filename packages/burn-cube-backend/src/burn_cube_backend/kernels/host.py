"""The `host` provider: operations that go to the processor and back, one transfer each way.

Factorisations and CTC are sequential and small; they run on the reference backend, which is found
by its entry point. That is a capability of its own, no way out for kernels that are missing: the
list below is all of it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from burn_backend import API_VERSION, Backend
from burn_cube_backend.engine import Engine
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_ir import CATALOG
from burn_std import PluginGroup, parse_dtype

ON_HOST = ("det", "solve", "triangular_solve", "lu", "qr", "svd", "cholesky", "eigh", "ctc_loss")


@cache
def reference() -> Backend:
    """Return the backend that computes on the host."""
    made: Backend = PluginGroup("burn.backends", API_VERSION).load("flex").create(0)
    return made


def on_host(engine: Engine, name: str, args: tuple[Any, ...]) -> Any:
    """Run an operation on the host and bring its results back."""
    entry, backend = CATALOG[name], reference()
    count = len(entry.inputs)

    def down(x: Any) -> Any:
        if x.__class__ is CubeTensor:
            return backend.from_numpy(engine.to_numpy(x), False)
        return [down(e) for e in x] if isinstance(x, list) else x

    def up(array: Any) -> CubeTensor:
        host = np.asarray(backend.to_numpy(array))
        return engine.from_numpy(host, parse_dtype(host.dtype.name))

    out = backend.execute(entry, [down(x) for x in args[:count]], args[count:])
    return [up(a) for a in out] if entry.multi else up(out)


def _register(name: str) -> None:
    @kernel(name)
    def run(engine: Engine, *args: Any) -> Any:
        return on_host(engine, name, args)


for _name in ON_HOST:
    _register(_name)
