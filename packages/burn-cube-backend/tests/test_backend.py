"""The backend end to end on the watched interpreter."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from burn_backend import API_VERSION
from burn_cube_backend.plugin import CubeBackend, interp
from burn_ir import CATALOG
from burn_std import IndexRangeError, dtypes as d


@pytest.fixture(scope="module")
def cube() -> CubeBackend:
    return interp.create(0)


def run(cube: CubeBackend, name: str, *inputs: Any, attrs: tuple[Any, ...] = ()) -> Any:
    given = [cube.from_numpy(x, True) if isinstance(x, np.ndarray) else x for x in inputs]
    out = cube.execute(CATALOG[name], given, attrs)
    return cube.to_numpy(out)


_REGISTERED_BEFORE = """
from burn_ir import Entry, register

register(Entry("demo::twice", "x^", "", lambda x: x, "map", "2 x", accepts="float",
               decompose=lambda ops, x: ops.mul(x, 2)))
from burn_cube_backend.plugin import interp
assert "demo::twice" not in interp.create(0).table
"""


def test_a_custom_map_without_an_expression_is_left_to_its_decomposition() -> None:
    subprocess.run([sys.executable, "-c", _REGISTERED_BEFORE], check=True)


def test_plugin_names_the_contract() -> None:
    assert interp.api_version == API_VERSION
    assert interp.device_count() == 1


def test_every_core_primitive_has_a_kernel(cube: CubeBackend) -> None:
    missing = [e.name for e in CATALOG if e.grade == "core" and e.name not in cube.table]
    assert not missing


def test_a_map_broadcasts_and_reads_views(cube: CubeBackend) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = np.arange(3, dtype=np.float32)
    assert (run(cube, "add", x, y) == x + y).all()
    view = cube.execute(CATALOG["permute"], [cube.from_numpy(x, True)], ((1, 0),))
    out = cube.execute(CATALOG["mul"], [view, cube.scalar(2, d.float32)], ())
    assert (cube.to_numpy(out) == x.T * 2).all()


def test_a_scalar_has_no_memory_until_a_kernel_wants_it(cube: CubeBackend) -> None:
    two = cube.scalar(2, d.float32)
    assert two.buf is None
    out = cube.execute(CATALOG["expand"], [two], ((3,),))
    assert cube.to_numpy(out).tolist() == [2, 2, 2]


def test_an_index_outside_is_raised_at_the_next_sync(cube: CubeBackend) -> None:
    x = cube.from_numpy(np.arange(3, dtype=np.float32), True)
    bad = cube.from_numpy(np.array([0, 7]), True)
    cube.execute(CATALOG["gather"], [x, bad], (0,))
    with pytest.raises(IndexRangeError, match="index 7 for size 3"):
        cube.sync()
    cube.sync()  # once


def test_several_reads_are_started_before_one_is_waited_for(cube: CubeBackend) -> None:
    x = cube.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3), True)
    turned = cube.execute(CATALOG["permute"], [x], ((1, 0),))
    two, none = cube.scalar(2, d.int64), cube.from_numpy(np.zeros((0, 3), np.int32), True)
    arrays = cube.read_async([x, turned, two, none])()
    assert [a.tolist() for a in arrays] == [[[0, 1, 2], [3, 4, 5]], [[0, 3], [1, 4], [2, 5]], 2, []]
    assert [a.shape for a in arrays] == [(2, 3), (3, 2), (), (0, 3)]
    assert not any(a.flags.writeable for a in arrays)


def test_a_fault_is_raised_where_reads_are_waited_for(cube: CubeBackend) -> None:
    x = cube.from_numpy(np.arange(3, dtype=np.float32), True)
    bad = cube.from_numpy(np.array([0, 7]), True)
    wait = cube.read_async([cube.execute(CATALOG["gather"], [x, bad], (0,))])
    with pytest.raises(IndexRangeError, match="index 7 for size 3"):
        wait()
