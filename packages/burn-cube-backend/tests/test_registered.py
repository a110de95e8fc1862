"""Kernels that a package brings for an operation of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import burn_cube as bc
from burn_backend import Kernel
from burn_cube_backend import CubeTensor, Engine, kernel
from burn_cube_backend.plugin import CubeBackend, interp
from burn_cube_backend.table import MAKERS
from burn_ir import CATALOG, Entry, register
from burn_ir.rules.basic import unary
from burn_std import BackendContractError, GraphError

NAME = "cubetests::row_sums"


@bc.cube
def row_sums(x: bc.Tensor[bc.Float, 2], out: bc.Array[bc.Float]):  # type: ignore[no-untyped-def]
    row = bc.ABSOLUTE_POS
    if row < len(out):
        total = bc.Float(0)
        for k in range(x.shape[1]):
            total = total + x[row, k]
        out[row] = total


@pytest.fixture
def live() -> CubeBackend:
    return interp.create(0)


@pytest.fixture
def operation(live: CubeBackend) -> Iterator[Entry]:
    if NAME not in CATALOG:
        register(Entry(NAME, "x", "", unary(NAME, "float"), "reduce", "sum of each row"))

    @kernel(NAME, checked=True)
    def run(engine: Engine, x: CubeTensor) -> CubeTensor:
        out = engine.empty(x.shape[:1], x.dtype)
        args = engine.array(x, strided=True), engine.array(out)
        row_sums.launch(engine.client, 1, *args, cube_dim=32)
        return out

    yield CATALOG[NAME]
    del MAKERS[NAME]


def sums(backend: CubeBackend, *windows: Any) -> Any:
    made = []
    for x in windows:
        whole = backend.from_numpy(np.arange(12, dtype=np.float32).reshape(3, 4), True)
        for name, attrs in x:
            whole = backend.execute(CATALOG[name], [whole], attrs)
        made.append(backend.to_numpy(backend.execute(CATALOG[NAME], [whole], ())).tolist())
    return made


def test_a_device_that_is_open_takes_it_in(live: CubeBackend, operation: Entry) -> None:
    assert isinstance(live.table[NAME], Kernel)
    assert sums(live, []) == [[6, 22, 38]]


def test_a_device_that_is_opened_later_has_it(operation: Entry) -> None:
    assert sums(interp.create(0), []) == [[6, 22, 38]]


def test_views_are_read_as_they_lie(live: CubeBackend, operation: Entry) -> None:
    turned = [("permute", ((1, 0),))]
    inner = [("slice", ((1, 2), (1, 1), (3, 4)))]
    backwards = [("slice", ((-1, 1), (2, 0), (-1, 4)))]
    expected = [[12, 15, 18, 21], [5 + 7, 9 + 11], [38, 22, 6]]
    assert sums(live, turned, inner, backwards) == expected


def test_an_operation_has_one_kernel(operation: Entry) -> None:
    with pytest.raises(BackendContractError, match="one kernel"):
        kernel(NAME)(lambda engine, x: x)


def test_the_operation_comes_first() -> None:
    with pytest.raises(GraphError, match="no such operation"):
        kernel("cubetests::nobody")(lambda engine, x: x)
