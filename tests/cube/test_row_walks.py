"""Each way to walk rows, on the device it is for or on one that says it is: bits of single kernels.

Groups are those of recorded programs; they run on a backend as one kernel and part by part.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import burn
from burn_cube_backend.fused_rows import FusedRows
from burn_cube_backend.late import Late
from burn_cube_backend.plugin import interp
from burn_ir import CATALOG
from burn_std import dtypes as d
from tests.cube.row_programs import bits, run

FUSED = burn.device("cpu")


@pytest.fixture(scope="module")
def gpu() -> Any:
    """A backend on the watched interpreter that says that it is a GPU."""
    made = interp.create(0)
    runtime = made.engine.client.runtime
    runtime.properties = replace(
        runtime.properties, kind="gpu", capabilities=frozenset({"fp64", "planes"}), index=d.int32,
        units=2,
    )  # fmt: skip
    return made


def recorded(monkeypatch: pytest.MonkeyPatch, seed: int, *given: Any) -> list[Any]:
    """Return groups of a random program with the arguments they ran on."""
    found: list[Any] = []
    plain = FusedRows.__call__

    def noted(self: FusedRows, *args: Any) -> Any:
        inner: Any = FUSED.context.resource.backend.inner
        arrays = [inner.to_numpy(x).copy() for x in args[: self.inputs]]
        bare = [x.buf is None for x in args[: self.inputs]]
        # A run that is being logged for a replay has numbers that refuse to be looked at.
        numbers = [n.plain if isinstance(n, Late) else n for n in args[self.inputs :]]
        found.append((self.group, arrays, bare, numbers))
        return plain(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(FusedRows, "__call__", noted)
        run(seed, FUSED, *given)
    return found


def one_by_one(backend: Any, group: Any, tensors: list[Any], numbers: list[Any]) -> list[Any]:
    """Return what the parts of a group give by their own kernels."""
    made: list[Any] = []
    left = iter(numbers)
    for part in group.parts:
        run_time = [next(left) for _ in range(part.numbers)]
        if part.name == "full":
            made.append(backend.scalar(run_time[0], part.dtype))
            continue
        inputs = [None if i is None else tensors[-1 - i] if i < 0 else made[i] for i in part.inputs]
        made.append(backend.execute(CATALOG[part.name], inputs, [*part.static, *run_time]))
    return [made[p] for p in group.outputs]


def agree(backend: Any, group: Any, arrays: Any, bare: Any, numbers: Any) -> bool:
    """Compare both ways to compute a group; return whether there were two."""
    apart = False

    def other(*args: Any) -> Any:
        nonlocal apart
        apart = True
        return tuple(one_by_one(backend, group, list(args[: len(arrays)]), list(numbers)))

    tensors = [
        backend.scalar(a.item(), t) if number else backend.from_numpy(a, True)
        for a, t, number in zip(arrays, group.outside, bare, strict=True)
    ]
    found = FusedRows(backend.engine, group, other)(*tensors, *numbers)
    if apart:
        return False
    for one, two in zip(found, other(*tensors), strict=True):
        a, b = backend.to_numpy(one), backend.to_numpy(two)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert bits(a) == bits(b)
    return True


SHAPES = [(5, 7), (70, 100), (3, 1100), (600, 4), (2, 3, 40), (2, 9000), (1, 40000)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("kind", ["gpu", "interp"])
def test_walks_of_the_interpreter(
    monkeypatch: pytest.MonkeyPatch, gpu: Any, kind: str, shape: tuple[int, ...], dtype: str
) -> None:
    backend = gpu if kind == "gpu" else burn.device("interp").context.resource.backend
    both = 0
    with np.errstate(all="ignore"):
        for seed in range(4):
            for group in recorded(monkeypatch, seed, shape, 1, getattr(burn, dtype)):
                both += agree(backend, *group)
    assert both


def test_walks_of_a_processor_by_opencl(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = burn.device("eager-opencl").context.resource.backend
    both = 0
    for seed, shape in enumerate([(20, 30), (3, 1500)]):
        for group in recorded(monkeypatch, seed, shape, 1, burn.float32):
            both += agree(backend, *group)
    assert both


def test_every_walk_was_taken(monkeypatch: pytest.MonkeyPatch, gpu: Any) -> None:
    kinds = set()
    interpreted: Any = burn.device("interp").context.resource.backend
    for shape in [(600, 4), (600, 1100)]:
        for group in recorded(monkeypatch, 2, shape, 1, burn.float32):
            for backend in (gpu, interpreted):
                kernel = FusedRows(backend.engine, group[0], lambda *args: ())
                walk, *_ = kernel._walk(*shape, d.int32, kernel.reducers)
                kinds.add(walk and walk.kind)
    assert kinds >= {"plane", "block", "unit", "cube"}
