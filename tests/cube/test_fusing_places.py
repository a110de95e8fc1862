"""argmax and argmin join the rows that they read, with the places that they find alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import burn
from burn_backend import Group, Part
from burn_cube_backend.plugin import interp
from burn_ir import CATALOG
from burn_std import dtypes as d
from tests.cube.row_programs import bits
from tests.cube.test_fusing_rows import kernels

F = burn.functional
RNG = np.random.default_rng(11)


def _waiting(x: Any, y: Any) -> Any:
    # `top` is read in the walk that finds the place, and nobody holds it.
    top = (x - x.amax(-1, keepdim=True)).exp()
    share = top / top.sum(-1, keepdim=True)
    return share, share.argmax(-1), share.argmin(-1) + 1


def _core(x: Any, y: Any) -> Any:
    share = F.softmax(x * 2 + y, -1)
    return share.exp(), share.argmax(-1)


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "map": lambda x, y: (x * 2 + y).argmax(-1),
    "kept": lambda x, y: (x - y).argmin(-1, keepdim=True),
    "beside": lambda x, y: ((z := x + y).argmax(-1), z.sum(-1), z.amax(-1)),
    "behind": lambda x, y: ((z := x - x.amax(-1, keepdim=True)).exp(), z.argmax(-1) * 2),
    "all": lambda x, y: (x * y).argmax(),
    "columns": lambda x, y: (x * y).argmax(0),
    "waiting": _waiting,
    "core": _core,
    "picked": lambda x, y: (z := x * y).gather(-1, z.argmax(-1, keepdim=True)),
}
SHAPES = [(6, 40), (300, 16), (3, 5), (2, 3, 70), (33,), (4, 130), (20, 2), (6, 1), (2, 40_000)]


def _arrays(shape: tuple[int, ...], kind: str) -> list[Any]:
    # Few values, so that many are equal.
    made = [RNG.integers(-3, 4, shape).astype(np.float32) for _ in range(2)]
    if kind == "wild":
        flat = made[0].reshape(-1)
        flat[RNG.integers(0, flat.size, 4)] = [np.inf, -np.inf, np.nan, np.nan]
        made[0][0] = -np.inf
    return made


def _numpy(made: Any) -> list[Any]:
    flex = burn.device("flex")
    return [t.to_device(flex).numpy() for t in (made if isinstance(made, tuple) else (made,))]


# Integers have no wild values, and some programs are of floats alone.
MADE = [
    (name, kind, dtype)
    for dtype in ("float32", "float16", "bfloat16", "float64", "int32")
    for kind in ("plain", "wild")
    for name in PROGRAMS
    if dtype != "int32" or (kind == "plain" and name not in ("behind", "waiting", "core"))
]


@pytest.mark.parametrize(("name", "kind", "dtype"), MADE)
def test_places_are_those_of_single_kernels(name: str, kind: str, dtype: str) -> None:
    for shape in SHAPES if dtype == "float32" else SHAPES[:3]:
        arrays = _arrays(shape, kind)
        found = []
        for device in ("cpu", "eager-cpu"):
            given = [burn.tensor(a, device=burn.device(device)) for a in arrays]
            given = [t.to(getattr(burn, dtype)) for t in given]
            with np.errstate(all="ignore"):
                found.append(_numpy(PROGRAMS[name](*given)))
        for one, other in zip(*found, strict=True):
            assert one.dtype == other.dtype
            assert bits(one) == bits(other)


@pytest.mark.parametrize("name", ["map", "kept", "beside", "behind", "picked"])
def test_they_are_one_kernel(name: str) -> None:
    given = [burn.tensor(a, device=burn.device("cpu")) for a in _arrays((12, 48), "plain")]
    assert len(kernels(PROGRAMS[name], *given)) == 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_opencl_finds_them_too(name: str) -> None:
    arrays = _arrays((5, 70), "wild")
    found = [
        _numpy(PROGRAMS[name](*(burn.tensor(a, device=burn.device(n)) for a in arrays)))
        for n in ("opencl", "eager-opencl")
    ]
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("length", [3, 40, 131, 1027])
def test_walks_of_other_devices(kind: str, length: int) -> None:
    """The watched interpreter walks rows as a device of either kind that is not the processor."""
    backend = interp.create(0)
    runtime = backend.engine.client.runtime
    more = {"capabilities": frozenset({"fp64", "planes"}), "index": d.int32}
    runtime.properties = replace(runtime.properties, kind=kind, **(more if kind == "gpu" else {}))
    t = d.float32
    (x, y) = (backend.from_numpy(a, True) for a in _arrays((3, length), "wild"))
    total = backend.execute(CATALOG["add"], [x, y], [])
    expected = [
        backend.execute(CATALOG["argmax"], [total], [1, False]),
        backend.execute(CATALOG["sum"], [total], [(1,), False, None]),
    ]
    parts = (
        Part("add", (-1, -2), (), 0, t, t),
        Part("argmax", (0,), (1, False), 0, t, d.int64, "cut"),
        Part("sum", (0,), ((1,), False, None), 0, t, t, "cut"),
    )
    group = Group(parts, (t, t), (1, 2), 1, (False, False))
    found = backend.fuser.fuse(group, lambda *a: pytest.fail("it is one kernel"))(x, y)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(backend.to_numpy(one), backend.to_numpy(other))
