"""The cpu runtime: every conformance case, launches, faults, threads, the pool of memory."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import burn_cube as bc
from burn_cube.conformance import cases, check
from burn_std.dtypes import bfloat16, float32, int32

pytest.importorskip("llvmlite")


@pytest.fixture(scope="module")
def device():
    return bc.client("cpu")


@pytest.mark.parametrize("case", cases(), ids=repr)
def test_case(case, device):
    check(case, device)


@bc.cube
def double(x: bc.Array[bc.Float], out: bc.Array[bc.Float]):
    i = bc.ABSOLUTE_POS
    if i < len(out):
        out[i] = x[i] * 2.0


@bc.cube
def gather(x: bc.Array[float32], at: bc.Array[int32], out: bc.Array[float32]):
    i = bc.ABSOLUTE_POS
    if i < len(out):
        out[i] = x[at[i]]


@bc.cube
def much_shared(x: bc.Array[float32]):
    tile = bc.SharedMemory(float32, 100_000)
    tile[bc.UNIT_POS] = x[bc.UNIT_POS]
    bc.sync_cube()
    x[bc.UNIT_POS] = tile[0]


@bc.cube
def much_local(x: bc.Array[float32]):
    own = bc.LocalArray(float32, 5000)
    own[0] = x[bc.UNIT_POS]
    bc.sync_cube()
    x[bc.UNIT_POS] = own[0]


@bc.cube
def positive(x: bc.Array[float32]):
    assert x[bc.ABSOLUTE_POS] > 0.0, "values are positive"


@bc.cube
def shout(x: bc.Array[int32]):
    i = bc.ABSOLUTE_POS
    if i < len(x):
        print("x", i, "is", x[i])


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 100_003, 1_000_000])
def test_any_length(device, n):
    x = np.arange(n, dtype=np.float32)
    out = device.empty(n, float32)
    double.launch(device, -(-n // 256), device.from_numpy(x), out)
    np.testing.assert_array_equal(out.numpy(), x * 2)


def test_other_arrays_may_be_longer_or_shorter(device):
    out = device.zeros(1000, float32)
    double.launch(device, 4, device.from_numpy(np.ones(600, np.float32)), out)
    assert out.numpy().sum() == 1200


def test_bfloat16_rounds_each_operation(device):
    x = device.from_numpy(np.array([1.00390625, 3.0], np.float32))
    half = device.empty(2, bfloat16)

    bc_cast.launch(device, 1, x, half, cube_dim=2)
    back = device.empty(2, float32)
    bc_cast.launch(device, 1, half, back, cube_dim=2)
    np.testing.assert_array_equal(back.numpy(), [1.0, 3.0])


@bc.cube
def bc_cast(x: bc.Array[bc.Numeric], out: bc.Array):
    out[bc.ABSOLUTE_POS] = bc.cast(x[bc.ABSOLUTE_POS], out.dtype)


def test_out_of_range_reads_are_zero_and_writes_dropped(device):
    x = device.from_numpy(np.arange(1, 5, dtype=np.float32))
    at = device.from_numpy(np.array([0, 3, 4, -1, 2**31 - 1], np.int32))
    out = device.zeros(5, float32)
    gather.launch(device, 1, x, at, out, cube_dim=8)
    device.sync()
    np.testing.assert_array_equal(out.numpy(), [1, 4, 0, 0, 0])


def test_validated_bounds_surface_at_sync_with_the_line(device):
    x = device.from_numpy(np.arange(4, dtype=np.float32))
    at = device.from_numpy(np.array([0, 9], np.int32))
    gather.launch(device, 1, x, at, device.zeros(2, float32), cube_dim=2, bounds="validated")
    with pytest.raises(bc.KernelFaultError, match="load: the index is inside of x") as caught:
        device.sync()
    assert "got 9 in gather(x=f32[4], at=i32[2], out=f32[2])" in str(caught.value)
    assert "out[i] = x[at[i]]" in caught.value.where.text
    device.sync()  # a fault is told once


def test_assert_surfaces_at_sync(device):
    x = device.from_numpy(np.array([1.0, -1.0], np.float32))
    positive.launch(device, 1, x, cube_dim=2)
    with pytest.raises(bc.KernelFaultError, match="values are positive"):
        device.sync()


def test_print_reaches_the_terminal():
    code = (
        "import numpy as np, burn_cube as bc\n"
        f"import importlib.util as u; s = u.spec_from_file_location('t', {__file__!r})\n"
        "t = u.module_from_spec(s); s.loader.exec_module(t)\n"
        "d = bc.client('cpu')\n"
        "t.shout.launch(d, 1, d.from_numpy(np.array([5, -6], np.int32)), cube_dim=2)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["x 0 is 5", "x 1 is -6"]


def test_threads_launch_at_once(device):
    def work(seed):
        x = np.full(200_000, seed, np.float32)
        a, b = device.from_numpy(x), device.empty(200_000, float32)
        for _ in range(30):
            double.launch(device, 782, a, b)
        good[seed] = bool((b.numpy() == seed * 2).all())

    good = [False] * 4
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(good)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_pool_of_its_own(device):
    x = device.from_numpy(np.ones(1 << 20, np.float32))
    out = device.empty(1 << 20, float32)
    double.launch(device, 4096, x, out)
    child = os.fork()
    if child == 0:
        double.launch(device, 4096, x, out)
        os._exit(0 if out.numpy().sum() == 2 << 20 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_pool_gives_the_same_block_again(device):
    first = device.empty(12345, float32)
    pointer = first.pointer
    del first
    assert device.empty(12345, float32).pointer == pointer
    report = device.memory_report()
    assert report.reuses >= 1 and report.cached > 0
    device.memory_cleanup()
    # Pages that hold a part in use stay.
    assert device.memory_report().reserved < report.reserved


def test_out_of_memory_says_what_is_held(device):
    before = device.memory_report().in_use
    device.pool.limit = before + (64 << 20)
    try:
        kept = device.empty(8 << 20, float32)  # 32 MiB
        dropped = device.empty(7 << 20, float32)  # 28 MiB, cached afterwards
        del dropped
        again = device.empty(6 << 20, float32)  # fits only once the cache is emptied
        with pytest.raises(bc.OutOfMemoryError, match="in use"):
            device.empty(8 << 20, float32)
        assert kept.length + again.length > 0
    finally:
        device.pool.limit = None


def test_profile_lists_kernels(device):
    x, out = device.zeros(100, float32), device.zeros(100, float32)
    with bc.profile() as table:
        for _ in range(3):
            double.launch(device, 1, x, out)
    assert table.rows["cpu", "double"][0] == 3
    assert "double" in str(table)


def test_tensors_with_strides_are_read_in_place(device):
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    x = device.from_numpy(whole)
    out = device.empty((6, 4), float32)
    copy_2d.launch(device, (1, 1), x.view((6, 4), (1, 6)), out, cube_dim=(8, 8))
    np.testing.assert_array_equal(out.numpy(), whole.T)
    np.testing.assert_array_equal(x.view((6, 4), (1, 6)).numpy(), whole.T)


@bc.cube
def copy_2d(x: bc.Tensor[bc.Float, 2], out: bc.Tensor[bc.Float, 2]):
    row, col = bc.ABSOLUTE_POS_Y, bc.ABSOLUTE_POS_X
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = x[row, col]


def test_a_struct_is_an_argument(device):
    from burn_cube.conformance.control import Layer, struct_argument

    weights, x = np.array([1, 2, 3], np.float32), np.arange(6, dtype=np.float32)
    for square in (False, True):
        wanted = x * np.tile(weights, 2) + 0.5
        wanted = wanted**2 if square else wanted
        host = x.copy()
        struct_argument.interpret(1, Layer(weights, 0.5, square), host, cube_dim=8)
        np.testing.assert_array_equal(host, wanted)
        on = device.from_numpy(x)
        layer = Layer(device.from_numpy(weights), 0.5, square)
        struct_argument.launch(device, 1, layer, on, cube_dim=8)
        np.testing.assert_array_equal(on.numpy(), wanted)
    text = str(struct_argument.ir(Layer(float32, float32), float32))
    assert "%layer_weights: global<f32>, %layer_shift: f32, %x: global<f32>" in text
    with pytest.raises(bc.LaunchError, match="the parameter is a Layer; got buffer"):
        struct_argument.launch(device, 1, on, on)


class Affine:
    def __init__(self, slope):
        self.slope = slope

    @bc.cube
    def kernel(self, x: bc.Array[bc.Float], shift: bc.Float):
        i = bc.ABSOLUTE_POS
        if i < len(x):
            x[i] = self.at(x[i]) + shift

    @bc.cube
    def at(self, value):
        return value * self.slope


def test_a_method_is_a_kernel_of_its_object(device):
    x = device.from_numpy(np.arange(3, dtype=np.float32))
    Affine(3).kernel.launch(device, 1, x, 1, cube_dim=4)
    np.testing.assert_array_equal(x.numpy(), [1, 4, 7])


def test_a_missing_compiler_is_told_with_its_remedy(monkeypatch):
    from burn_cube.runtime.cpu import plugin
    from burn_std import BackendLoadError

    monkeypatch.setitem(sys.modules, "burn_cube.runtime.llvm_jit", None)
    with pytest.raises(BackendLoadError, match="--extra cpu"):
        plugin.create(0)


def test_equal_kernels_are_one_program():
    first, second = double.ir(float32, float32), double.ir(np.zeros(3, np.float32), float32)
    assert first is second


def test_a_runtime_that_is_not_there_is_told():
    from burn_std import BackendLoadError

    with pytest.raises(BackendLoadError, match="no plugin of that name"):
        bc.client("metal")
    with pytest.raises(bc.LaunchError, match="finds 1 devices; got 7"):
        bc.client("cpu", 7)


def test_arrays_too_large_for_a_stack_are_refused(device):
    with pytest.raises(bc.KernelError, match="at most 2097152 bytes on a cpu; got 5120000"):
        much_local.launch(device, 1, device.zeros(256, float32))


WRONG = [
    (lambda d, x: much_shared.launch(d, 1, x), "shares at most 262144 bytes; got 400000"),
    (lambda d, x: double.launch(d, 1, x), "takes 2 run-time arguments"),
    (lambda d, x: double.launch(d, 1, x, np.zeros(3, np.float32)), "takes an array of cpu"),
    (lambda d, x: double.launch(d, 1, x, 2.0), "the parameter is a Array; got a number"),
    (lambda d, x: double.launch(d, -1, x, x), "not negative"),
    (lambda d, x: double.launch(d, 1, x, x, cube_dim=4096), "at most 1024 units"),
    (lambda d, x: double.launch(d, 1, x, x, size=3), "has no compile-time parameters"),
    (lambda d, x: double.launch(d, 1, x, x, bounds="loose"), "bounds is one of"),
    (lambda d, x: double.launch(d, (1, 1, 1, 1), x, x), "one to three dimensions"),
    (lambda d, x: double.launch(d, 1, x.view((2,), (2,)), x), "an Array is contiguous"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_wrong_launches_say_what_is_wrong(device, call, text):
    x = device.zeros(3, float32)
    with pytest.raises(bc.LaunchError, match=text):
        call(device, x)


def test_float64_rounds_to_halves_once():
    # LLVM calls this of itself, when it moves a sign from one to the other.
    from burn_cube.runtime.llvm_jit import ROUND_TO_HALF, jit

    image = jit().compile(_EACH_TO_HALF + ROUND_TO_HALF)
    place, _ = jit().link(image, "each", "__truncdfhf2")
    each = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(place)
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    ties = (halves[1:] + halves[:-1]) / 2
    near = np.concatenate([np.nextafter(ties, 0), ties, np.nextafter(ties, np.inf)])
    edges = [0, 65519.999999, 65520, 1e300, 5e-324, np.inf, np.nan]
    x = np.concatenate([halves, near, edges])
    x = np.ascontiguousarray(np.concatenate([x, -x]))
    y = np.empty(x.size, np.float16)
    each(x.ctypes.data, y.ctypes.data, x.size)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y, x.astype(np.float16))


_EACH_TO_HALF = """
define void @each(ptr %x, ptr %y, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%k, %loop]
  %from = getelementptr double, ptr %x, i64 %i
  %value = load double, ptr %from
  %half = call half @__truncdfhf2(double %value)
  %to = getelementptr half, ptr %y, i64 %i
  store half %half, ptr %to
  %k = add i64 %i, 1
  %more = icmp slt i64 %k, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
