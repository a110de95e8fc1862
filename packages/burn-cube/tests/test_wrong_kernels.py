"""Kernels that break a rule: what the error says, and the line and column it points at.

The line of each kernel that is at fault ends in the mark `# <-`; `at` is the text that begins at
the column.
"""

import linecache
import math

import pytest

import burn_cube as bc
from burn_cube import (
    ABSOLUTE_POS,
    CUBE_DIM,
    UNIT_POS,
    Array,
    Float,
    Generic,
    LocalArray,
    SharedMemory,
    Tensor,
    cast,
    cube,
    exp,
    fma,
    plane_all,
    plane_sum,
    select,
    splat,
    sync_cube,
    unroll,
    vector,
)
from burn_std.dtypes import float16, float32, float64, int8, int32, uint8

WRONG = []
F = Float
NUMBERS = [1, 2, 3]


def wrong(text, at, *args, **options):
    def add(fn):
        WRONG.append((cube(fn), text, at, args or (float32,), options))
        return fn

    return add


@wrong("add: both sides have one kind of number", "x[0]")
def _(x: Array[F]):
    x[0] = x[0] + ABSOLUTE_POS  # <-


@wrong("div: `/` divides floats; got i32", "x[0] /", int32)
def _(x: Array[int32]):
    x[0] = x[0] / 2  # <-


@wrong("store: needs f32; got i64. Use cast", "x[0] =")
def _(x: Array[F]):
    x[0] = ABSOLUTE_POS  # <-


@wrong("literal: 0.5 is no value of int32", "x[0] =", int32)
def _(x: Array[int32]):
    x[0] = 0.5  # <-


@wrong("literal: 300 is no value of uint8", "x[0] =", uint8)
def _(x: Array[uint8]):
    x[0] = 300  # <-


@wrong("literal: -1 is no value of uint8", "x[0] +", uint8)
def _(x: Array[uint8]):
    x[0] = x[0] + -1  # <-


@wrong("if: a condition is a bool; got a run-time i32. Compare it", "x[0]:", int32)
def _(x: Array[int32]):
    if x[0]:  # <-
        x[0] = 1


@wrong("while: a condition is a bool", "x[0]:")
def _(x: Array[F]):
    while x[0]:  # <-
        x[0] = 0.0


@wrong("not: a condition is a bool", "not")
def _(x: Array[F]):
    if not x[0]:  # <-
        x[0] = 1.0


@wrong("and: a condition is a bool", "x[0] and")
def _(x: Array[F]):
    if x[0] and x[1] > 0.0:  # <-
        x[0] = 1.0


@wrong("nothing: no such name", "nothing")
def _(x: Array[F]):
    x[0] = nothing  # <-  # noqa: F821


@wrong("y: the name is assigned in one branch only", "y")
def _(x: Array[F]):
    if x[0] > 0.0:
        y = x[0]
    x[1] = y  # <-


@wrong("y: the name is assigned inside the loop only", "y")
def _(x: Array[F]):
    for i in range(3):
        y = x[i]
    x[1] = y  # <-


@wrong("i: the name is assigned inside the loop only", "i]")
def _(x: Array[F]):
    for i in range(3):
        x[i] = 0.0
    x[i] = 1.0  # <-


@wrong("assignment: needs f32; got i64", "y = ABS")
def _(x: Array[F]):
    y = x[0]
    if x[0] > 0.0:
        y = ABSOLUTE_POS  # <-
    x[1] = y


@wrong("z: a compile-time object cannot be replaced under a run-time condition", "z = (1")
def _(x: Array[F]):
    z = (1, 2)
    if x[0] > 0.0:
        z = (1, 2, 3)  # <-
    x[1] = len(z)


@wrong("z: the name holds a run-time f32", "z = 'a'")
def _(x: Array[F]):
    z = x[0]
    if x[0] > 0.0:
        z = 'a'  # <-  # fmt: skip
    x[1] = z


@wrong("assignment: an item of a compile-time container changes", "parts[0]")
def _(x: Array[F]):
    parts = [x[0], x[1]]

    def change():
        parts[0] = x[2]  # <-

    for _ in range(3):
        change()
    x[0] = parts[0]


@wrong("try: this statement is not part of the kernel language", "try")
def _(x: Array[F]):
    try:  # <-
        x[0] = 1.0
    finally:
        x[1] = 1.0


@wrong("with: this statement is not part", "with")
def _(x: Array[F]):
    with open("f"):  # <-
        x[0] = 1.0


@wrong("import: this statement is not part", "import")
def _(x: Array[F]):
    import os  # <-  # noqa: F401


@wrong("delete: this statement is not part", "del")
def _(x: Array[F]):
    y = x[0]
    del y  # <-


@wrong("classdef: this statement is not part", "class")
def _(x: Array[F]):
    class Thing:  # <-
        pass


@wrong("global: this statement is not part", "global")
def _(x: Array[F]):
    global NUMBERS  # <-


@wrong("for: a kernel's loop has no else", "x[1]")
def _(x: Array[F]):
    for i in range(3):
        x[i] = 0.0
    else:
        x[1] = 1.0  # <-


@wrong("while: a kernel's loop has no else", "x[1]")
def _(x: Array[F]):
    while x[0] > 0.0:
        x[0] = x[0] - 1.0
    else:
        x[1] = 1.0  # <-


@wrong("expression: Await is not part|expression: SetComp is not part", "{")
def _(x: Array[F]):
    y = {k + 1 for k in range(3)}  # <-
    x[0] = len(y)


@wrong("for: loops over a range or a compile-time sequence; got memory", "x:")
def _(x: Array[F]):
    for v in x:  # <-
        v = v + 1.0


@wrong("range: counts with integers; got f32", "range")
def _(x: Array[F]):
    for i in range(x[0]):  # <-
        x[i] = 0.0


@wrong("range: the step is not 0", "range")
def _(x: Array[F]):
    for i in range(0, 4, 0):  # <-
        x[i] = 0.0


@wrong("range: a run-time range stands in the head of a for loop", "range")
def _(x: Array[F]):
    for i in unroll(range(len(x))):  # <-
        x[i] = 0.0


@wrong("while: the condition changes at run time; got bool False", "NUMBERS ==")
def _(x: Array[F]):
    while NUMBERS == []:  # <-
        x[0] = 1.0


@wrong("index: is an integer scalar; got f32", "x[x[0]]")
def _(x: Array[F]):
    x[1] = x[x[0]]  # <-


@wrong("index: is an integer scalar; got float 1.5", "x[1.5]")
def _(x: Array[F]):
    x[1] = x[1.5]  # <-


@wrong("index: a compile-time index is not negative; got -1", "x[-1]")
def _(x: Array[F]):
    x[1] = x[-1]  # <-


@wrong("index: an Array has one dimension", "x[0, 1]")
def _(x: Array[F]):
    x[1] = x[0, 1]  # <-


@wrong("index: a Tensor of rank 2 takes 2 indices; got 1", "x[0]", (float32, 2))
def _(x: Tensor[F]):
    x[0, 0] = x[0]  # <-


@wrong("shape: the dim is known at compile time", "x.shape", (float32, 2))
def _(x: Tensor[F]):
    for d in range(2):
        x[0, 0] = cast(x.shape[d], F)  # <-


@wrong("shape: the dim is inside the rank 2; got 2", "x.shape", (float32, 2))
def _(x: Tensor[F]):
    x[0, 0] = cast(x.shape[2], F)  # <-


@wrong("index: a compile-time sequence takes a compile-time index", "NUMBERS")
def _(x: Array[F]):
    x[0] = NUMBERS[ABSOLUTE_POS]  # <-


@wrong("array: the size is a compile-time integer; got a run-time i64", "SharedMemory")
def _(x: Array[F]):
    tile = SharedMemory(F, len(x))  # <-
    tile[0] = x[0]


@wrong("local: an array has at least one element; got 0", "LocalArray")
def _(x: Array[F]):
    tile = LocalArray(F, 0)  # <-
    tile[0] = x[0]


@wrong("slice: a slice of memory has step 1; got 2", "x[0:4:2]")
def _(x: Array[F]):
    x[0] = x[0:4:2][0]  # <-


@wrong("lane: the lane is inside the vector; got lane 4 of f32x4", "v[4]")
def _(x: Array[F]):
    v = x.load(0, 4)
    x[0] = v[4]  # <-


@wrong("assignment: the lanes of a vector do not change", "v[0]")
def _(x: Array[F]):
    v = x.load(0, 4)
    v[0] = x[1]  # <-


@wrong("vector: Vector: the width is one of", "vector")
def _(x: Array[F]):
    v = vector(x[0], x[1], x[2])  # <-
    x[0] = v[0]


@wrong("add: both sides have one kind of number and as many lanes", "x.load(0, 2)")
def _(x: Array[F]):
    x.store(0, x.load(0, 2) + x.load(0, 4))  # <-


@wrong("store: needs f32; got f32x4|store: the value has the element type", "x[0]")
def _(x: Array[F]):
    x[0] = splat(x[1], 4)  # <-


@wrong("exp: is defined for float; got i32", "exp", int32)
def _(x: Array[int32]):
    x[0] = exp(x[0])  # <-


@wrong("shl: is defined for int, uint; got f32", "x[0] <<")
def _(x: Array[F]):
    x[0] = x[0] << x[1]  # <-


@wrong("fma: needs f32; got f64", "fma", float32, float64)
def _(x: Array[float32], y: Array[float64]):
    x[0] = fma(x[0], x[1], y[0])  # <-


@wrong("select: both sides have|select: both sides", "select", float32, int32)
def _(x: Array[float32], y: Array[int32]):
    x[0] = select(x[0] > 0.0, x[1], y[0])  # <-


@wrong("bitcast: both types have the same number of bits", "x[0].bitcast")
def _(x: Array[F]):
    x[0] = cast(x[0].bitcast(float64), F)  # <-


@wrong("int: a run-time value converts with cast", "int")
def _(x: Array[F]):
    x[0] = int(x[0])  # <-


@wrong("sqrt: plain Python raised TypeError|sqrt: a compile-time|float: a compile-time|int: a comp",
       "math.sqrt")  # fmt: skip
def _(x: Array[F]):
    x[0] = math.sqrt(x[0])  # <-


@wrong("divmod: plain Python raised", "divmod")
def _(x: Array[F]):
    x[0] = divmod(x[0], 2.0)[0]  # <-


def helper(v):
    if v > 0.0:
        return v
    return -v


@wrong("branch: a condition that plain Python decides is known at compile time", "helper")
def _(x: Array[F]):
    x[0] = helper(x[0])  # <-


@wrong("sync_cube: every unit of the cube comes here together", "sync_cube")
def _(x: Array[F]):
    if UNIT_POS < 4:
        sync_cube()  # <-


@wrong("sync_cube: every unit of the cube comes here together", "sync_cube")
def _(x: Array[F]):
    if len(x) <= ABSOLUTE_POS:
        return
    tile = SharedMemory(F, CUBE_DIM)
    tile[UNIT_POS] = x[ABSOLUTE_POS]
    sync_cube()  # <-
    x[ABSOLUTE_POS] = tile[0]


@wrong("sync_cube: every unit of the cube comes here together", "sync_cube")
def _(x: Array[F]):
    for _ in range(UNIT_POS):
        sync_cube()  # <-


@wrong("plane: every unit of the cube comes here together", "plane_sum")
def _(x: Array[F]):
    if x[UNIT_POS] > 0.0:
        x[UNIT_POS] = plane_sum(x[UNIT_POS])  # <-


@wrong("plane_all: takes a bool; got f32", "plane_all")
def _(x: Array[F]):
    x[0] = select(plane_all(x[0]), 1.0, 0.0)  # <-


@wrong("atomic: 32 and 64 bit integers take every kind", "bc.atomic_max")
def _(x: Array[float32]):
    bc.atomic_max(x, 0, 1.0)  # <-


@wrong("atomic: 32 and 64 bit", "bc.atomic_add", int8)
def _(x: Array[int8]):
    bc.atomic_add(x, 0, 1)  # <-


@wrong("atomic: the memory is global or shared", "bc.atomic_add", int32)
def _(x: Array[int32]):
    own = LocalArray(int32, 2)
    bc.atomic_add(own, 0, 1)  # <-
    x[0] = own[0]


@wrong("width: the attribute is read-only|dtype: the attribute is read-only", "v.dtype")
def _(x: Array[F]):
    v = x[0]
    v.dtype = float64  # <-


@wrong("size2: memory global<f32> has no such attribute", "x.size2")
def _(x: Array[F]):
    x[0] = x.size2  # <-


@wrong("add: takes values, not memory", "x + 1.0")
def _(x: Array[F]):
    x[0] = x + 1.0  # <-


@wrong("f-string: holds compile-time values", 'f"{')
def _(x: Array[F]):
    print(f"{x[0]}")  # <-


@wrong("print: prints scalars", "print")
def _(x: Array[F]):
    print(x.load(0, 2))  # <-


@wrong("_: no kernels for this width", "raise")
def _(x: Array[F], *, width=3):
    if width not in (1, 2, 4):
        raise ValueError("no kernels for this width")  # <-
    x[0] = 1.0


@wrong("raise: a run-time branch cannot raise", "raise")
def _(x: Array[F]):
    if x[0] > 0.0:
        raise ValueError("positive")  # <-


@wrong("assert: width is even", "assert")
def _(x: Array[F], *, width=3):
    assert width % 2 == 0, "width is even"  # <-
    x[0] = 1.0


@wrong("x: Float is Float|x: Float is one of float16", "x: Array", int32)
def _(
    x: Array[F],  # <-
):
    x[0] = 1


@wrong("y: Float is float32 already, from another argument; got float64", "y: Array", float32,
       float64)  # fmt: skip
def _(
    x: Array[F],
    y: Array[F],  # <-
):
    x[0] = y[0]


@wrong("y: a run-time parameter is an Array", "y", float32, 3)
def _(
    x: Array[F],
    y,  # <-
):
    x[0] = y


@wrong("y: a run-time parameter is an Array", "y: int", float32, 3)
def _(
    x: Array[F],
    y: int,  # <-
):
    x[0] = y


T = Generic("T")


@wrong("T: no argument of the kernel brought a dtype", "T(0)")
def _(x: Array[F]):
    y = T(0)  # <-
    x[0] = y


@cube
def inner(v: float32):
    return v + UNIT_POS  # the error is here, called from below


@cube
def needs_half(v: float16):
    return v


@wrong("v: the parameter is float16; got float32", "v: float16")
def _(x: Array[F]):
    x[0] = needs_half(x[0])


@cube
def forever(v):
    return forever(v)


@wrong("call: calls are inlined and nest at most 40 deep", "forever")
def _(x: Array[F]):
    x[0] = forever(x[0])


@wrong("return: every return of a function gives the same kind of result", "return")
def _(x: Array[F]):
    def pick(v):
        if v > 0.0:
            return v
        return v, v  # <-

    x[0] = pick(x[0])


@wrong("_: a kernel returns nothing", "def")
def _(x: Array[F]):  # <-
    return x[0]


@wrong("compare: None has no order", "x[0] <")
def _(x: Array[F]):
    if x[0] < None:  # <-
        x[0] = 1.0


@wrong("tile: the layout is row or col; got diag", "bc.tile_load", float16)
def _(x: Array[float16]):
    t = bc.tile_load("a", x, 0, 16, layout="diag")  # <-
    bc.tile_mma(t, t, bc.tile_fill(0.0))


@wrong("tile_mma: takes a tile `a`, a tile `b`", "bc.tile_mma", float16)
def _(x: Array[float16]):
    t = bc.tile_load("a", x, 0, 16)
    bc.tile_mma(t, t, bc.tile_fill(0.0))  # <-


@wrong("group_mma: operands are shared memory of f16 or bf16", "bc.group_mma", float16)
def _(x: Array[float16]):
    sums = [bc.local(bc.tile_fill(0.0))]
    bc.group_mma(sums, (x, [0]), x, [0])  # <-


@wrong("group_mma: both operands have the same steps; got 1 and 2", "bc.group_mma", float16)
def _(x: Array[float16]):
    near = bc.SharedMemory(float16, 4096)
    bc.group_mma([bc.local(bc.tile_fill(0.0))], (near, [0]), near, [0, 16])  # <-


@wrong("group_mma: a cube has whole groups of four planes", "bc.group_mma", float16)
def _(x: Array[float16]):
    near = bc.SharedMemory(float16, 4096)
    bc.group_mma([bc.local(bc.tile_fill(0.0))], (near, [0]), near, [0])  # <-


@wrong("group_mma: tiles on the left are made where they are multiplied", "bc.group_mma", float16)
def _(x: Array[float16]):
    near = bc.SharedMemory(float16, 4096)
    tile = bc.tile_load("a", x, 0, 16)
    sums = [bc.local(bc.tile_fill(0.0))]
    for _ in range(len(x)):
        bc.group_mma(sums, [tile], near, [0])  # <-


@pytest.mark.parametrize(("kernel", "text", "at", "args", "options"), WRONG)
def test_the_message_and_its_place(kernel, text, at, args, options):
    with pytest.raises(bc.KernelError, match=text) as caught:
        kernel.ir(*args, cube_dim=64, **options)
    where = caught.value.where
    assert where is not None and where.file == __file__
    line = linecache.getline(__file__, where.line).rstrip("\n")
    assert where.text == line and str(where) in str(caught.value)
    assert line[where.column - 1 :].startswith(at), (line, where.column)
    first = kernel.python.__code__.co_firstlineno
    source = [linecache.getline(__file__, n) for n in range(first, first + 25)]
    marked = [n for n, text in enumerate(source, first) if "# <-" in text]
    if marked and marked[0] < first + 20 and "forever" not in at and "float16" not in at:
        assert where.line == marked[0]


def test_there_are_enough_of_them():
    assert len(WRONG) >= 60


def test_an_error_in_an_inlined_function_names_the_calls():
    @cube
    def outer(x: Array[F]):
        x[0] = inner(x[0])

    with pytest.raises(bc.KernelTypeError) as caught:
        outer.ir(float32)
    assert "v + UNIT_POS" in caught.value.where.text
    assert [place.text.strip() for place in caught.value.callers] == ["x[0] = inner(x[0])"]
    assert "called at" in str(caught.value)


def test_a_plain_call_says_how_to_launch():
    with pytest.raises(bc.KernelError, match="a @cube function runs in a kernel"):
        inner(1.0)
    with pytest.raises(bc.KernelError, match="while a kernel is expanded"):
        bc.sync_cube()


def test_source_that_cannot_be_read_is_refused():
    names = {"cube": cube, "Array": Array}
    exec("@cube\ndef made(x: Array): pass", names)
    with pytest.raises(bc.KernelError, match="can be read from its file"):
        names["made"].ir(float32)
