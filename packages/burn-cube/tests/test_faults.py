"""What only shows when a kernel runs, found by the interpreter."""

import numpy as np
import pytest

import burn_cube as bc
from burn_cube import (
    ABSOLUTE_POS,
    CUBE_DIM,
    CUBE_POS,
    UNIT_POS,
    Array,
    Float,
    SharedMemory,
    cast,
    cube,
    sync_cube,
)
from burn_std.dtypes import bool_

F = Float


@cube
def reads_outside(x: Array[F], out: Array[F]):
    out[ABSOLUTE_POS] = x[ABSOLUTE_POS + 1]


@cube
def writes_outside(out: Array[F]):
    out[ABSOLUTE_POS * 2] = 1.0


@cube
def outside_of_shared(out: Array[F]):
    tile = SharedMemory(F, 4)
    out[ABSOLUTE_POS] = tile[UNIT_POS]


@cube
def all_write_one(out: Array[F]):
    out[0] = cast(ABSOLUTE_POS, F)


@cube
def no_barrier(out: Array[F]):
    tile = SharedMemory(F, CUBE_DIM)
    tile[UNIT_POS] = cast(UNIT_POS, F)
    out[ABSOLUTE_POS] = tile[(UNIT_POS + 1) % CUBE_DIM]


@cube
def write_after_read(x: Array[F]):
    value = x[(ABSOLUTE_POS + 1) % len(x)]
    x[ABSOLUTE_POS] = value


@cube
def across_cubes(x: Array[F]):
    sync_cube()
    x[UNIT_POS] = cast(CUBE_POS, F)


@cube
def asserts(x: Array[F]):
    assert x[ABSOLUTE_POS] < 5.0, "small"


FAULTS = [
    (reads_outside, 2, "load: the index is inside of x, which has 8 elements; got 8"),
    (writes_outside, 1, "store: the index is inside of out"),
    (outside_of_shared, 1, "shared memory, which has 4 elements; got 4"),
    (all_write_one, 1, "no two units race for one element of out"),
    (no_barrier, 1, "with no barrier between"),
    (write_after_read, 1, "has a write where .* read it"),
    (across_cubes, 1, "cube .1, 0, 0., unit"),
    (asserts, 1, "assert: small; got false in cube .0, 0, 0., unit .5, 0, 0."),
]


@pytest.mark.parametrize(("kernel", "arrays", "text"), FAULTS)
def test_the_interpreter_finds_faults(kernel, arrays, text):
    args = [np.arange(8, dtype=np.float32) for _ in range(arrays)]
    with pytest.raises(bc.KernelFaultError, match=text) as caught:
        kernel.interpret(2 if kernel is across_cubes else 1, *args, cube_dim=8)
    assert caught.value.where.file == __file__


def test_bool_is_its_own_kind():
    @cube
    def mixed(x: Array[bool_]):
        x[0] = x[0] & x[1]

    x = np.array([True, False])
    mixed.interpret(1, x, cube_dim=1)
    assert not x[0]
