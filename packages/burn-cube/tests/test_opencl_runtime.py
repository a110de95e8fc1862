"""What the opencl runtime does beyond the cases: order, memory, caches, errors."""

import os
import threading

import numpy as np
import pytest

import burn_cube as bc
from burn_cube.runtime.client import Client
from burn_std import DeviceError
from burn_std.dtypes import float32, int8, int32, int64

pytest.importorskip("pyopencl")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@bc.cube
def scaled(x: bc.Array[bc.Float], out: bc.Array[bc.Float], by: bc.Float):
    i = bc.ABSOLUTE_POS
    if i < len(out):
        out[i] = x[i] * by


@bc.cube
def constants(out: bc.Array[float32], a: int8, b: int64, c: float32):
    out[0] = bc.cast(a, float32)
    out[1] = bc.cast(b, float32)
    out[2] = 1.0 / c


@bc.cube
def checked(x: bc.Array[int32], out: bc.Array[int32]):
    assert x[bc.ABSOLUTE_POS] >= 0, "indices are not negative"
    out[bc.ABSOLUTE_POS] = x[bc.ABSOLUTE_POS]


@bc.cube
def doubled(x: bc.Array[float32, 4], out: bc.Array[float32, 4]):
    out[bc.ABSOLUTE_POS] = x[bc.ABSOLUTE_POS] * 2.0


@pytest.fixture(scope="module")
def device():
    from burn_cube.runtime.opencl import plugin

    if not plugin.count():
        pytest.skip("no OpenCL device")
    return bc.client("opencl")


def test_arguments_that_change_are_set_again(device):
    x = device.from_numpy(np.arange(4, dtype=np.float32))
    y = device.from_numpy(np.arange(4, 8, dtype=np.float32))
    out, other = device.zeros(4, float32), device.zeros(4, float32)
    scaled.launch(device, 1, x, out, 2.0, cube_dim=4)
    scaled.launch(device, 1, y, other, 2.0, cube_dim=4)
    np.testing.assert_array_equal(out.numpy(), [0, 2, 4, 6])
    np.testing.assert_array_equal(other.numpy(), [8, 10, 12, 14])
    scaled.launch(device, 1, y, other, -0.0, cube_dim=4)
    assert np.signbit(other.numpy()).all()
    scaled.launch(device, 1, y, other, 0.0, cube_dim=4)
    assert not np.signbit(other.numpy()).any()


def test_numbers_wrap_into_their_dtype(device):
    out = device.zeros(3, float32)
    constants.launch(device, 1, out, 200, 2**63 + 5, -0.0, cube_dim=1)
    np.testing.assert_array_equal(out.numpy(), np.array([-56, -(2.0**63), -np.inf], np.float32))
    constants.launch(device, 1, out, 1, 2, 1e300, cube_dim=1)
    np.testing.assert_array_equal(out.numpy(), [1, 2, 0])


def test_an_assertion_surfaces_at_the_next_sync_once(device):
    x = device.from_numpy(np.array([1, -2, 3], np.int32))
    out = device.zeros(3, int32)
    checked.launch(device, 1, x, out, cube_dim=3)
    with pytest.raises(bc.KernelFaultError, match="indices are not negative") as caught:
        device.sync()
    assert "checked(x=i32[3], out=i32[3])" in str(caught.value)
    assert caught.value.where.text.strip().startswith("assert x[")
    device.sync()


def test_the_launch_that_faulted_is_named_among_many(device):
    good = device.from_numpy(np.zeros(2, np.int32))
    bad = device.from_numpy(np.full(7, -1, np.int32))
    for x in (good, bad, good):
        checked.launch(device, 1, x, device.zeros(x.shape, int32), cube_dim=x.length)
    with pytest.raises(bc.KernelFaultError, match=r"checked\(x=i32\[7\]"):
        device.sync()


def test_vectors_start_at_whole_ones(device):
    x = device.zeros(16, float32)
    with pytest.raises(bc.LaunchError, match="multiple of their width"):
        doubled.launch(device, 1, x.view((8,), None, 3), x, cube_dim=2)
    with pytest.raises(bc.LaunchError, match="multiple of their width"):
        doubled.launch(device, 1, x.view((6,)), x, cube_dim=2)


def test_reads_are_asynchronous_and_in_order(device):
    x = device.from_numpy(np.arange(1 << 16, dtype=np.float32))
    out = device.zeros(1 << 16, float32)
    scaled.launch(device, 256, x, out, 3.0, cube_dim=256)
    readings = device.read_async([out, x.view((3, 2), (1, 3), 1), device.zeros(0, float32)])
    scaled.launch(device, 256, x, out, 5.0, cube_dim=256)
    np.testing.assert_array_equal(readings[0].result(), np.arange(1 << 16) * 3.0)
    np.testing.assert_array_equal(readings[1].result(), [[1, 4], [2, 5], [3, 6]])
    assert readings[2].done() and readings[2].result().shape == (0,)
    assert readings[0].done()


def test_small_arrays_share_a_buffer_and_do_not_meet(device):
    arrays = [device.from_numpy(np.full(50, n, np.float32)) for n in range(100)]
    for n, array in enumerate(arrays):
        scaled.launch(device, 1, array, array, 2.0, cube_dim=64)
        assert n < 100
    for n, array in enumerate(arrays):
        np.testing.assert_array_equal(array.numpy(), np.full(50, 2.0 * n, np.float32))


def test_two_threads_use_one_device(device):
    def work(number):
        x = device.from_numpy(np.full(1000, number, np.float32))
        out = device.zeros(1000, float32)
        for _ in range(20):
            scaled.launch(device, 8, x, out, float(number), cube_dim=128)
            found.append((out.numpy() == number * number).all())

    found = []
    threads = [threading.Thread(target=work, args=(n,)) for n in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 40 and all(found)


def test_too_much_memory_says_who_holds_it(device):
    device.pool.limit = device.memory_report().reserved + (48 << 20)
    try:
        kept = device.empty(10 << 20, float32, "the kept one")
        with pytest.raises(bc.OutOfMemoryError, match="the kept one"):
            device.empty(10 << 20, float32)
        assert kept.length
    finally:
        device.pool.limit = None
    with pytest.raises(bc.OutOfMemoryError):
        device.empty(1 << 42, float32)


def test_code_comes_from_the_disk(device, monkeypatch, tmp_path):
    from burn_cube.runtime import queued
    from burn_cube.runtime.cache import DiskCache

    disk = DiskCache(tmp_path / "kernels.sqlite")
    monkeypatch.setattr(queued, "kernel_cache", lambda: disk)
    kernel = scaled.ir(float32, float32, 1.0, cube_dim=48)
    monkeypatch.setattr(device.runtime, "_made", {})
    device.runtime.load(kernel)
    assert (disk.hits, disk.misses) == (0, 1)
    device.runtime._made.clear()
    program = device.runtime.load(kernel)
    assert (disk.hits, disk.misses) == (1, 1)
    x, out = device.from_numpy(np.ones(48, np.float32)), device.zeros(48, float32)
    device.run(program, (1, 1, 1), [x, out, 4.0])
    np.testing.assert_array_equal(out.numpy(), np.full(48, 4, np.float32))
    # Bytes that no driver takes are compiled again.
    device.runtime._made.clear()
    monkeypatch.setattr(disk, "get", lambda key: b"no code")
    device.run(device.runtime.load(kernel), (1, 1, 1), [x, out, 5.0])
    np.testing.assert_array_equal(out.numpy(), np.full(48, 5, np.float32))


def test_equal_kernels_report_faults_at_their_own_lines(device):
    def made():
        @bc.cube
        def fill(x: bc.Array[float32]):
            x[bc.ABSOLUTE_POS + 7] = 1.0

        return fill

    def other():
        @bc.cube
        def fill(x: bc.Array[float32]):
            x[bc.ABSOLUTE_POS + 7] = 1.0

        return fill

    lines = []
    for kernel in (made(), other(), made()):
        kernel.launch(device, 1, device.zeros(3, float32), cube_dim=1, bounds="validated")
        with pytest.raises(bc.KernelFaultError) as caught:
            device.sync()
        lines.append(caught.value.where.line)
    assert lines[0] == lines[2] != lines[1]


def test_a_second_client_finds_the_code_in_memory(device):
    kernel = scaled.ir(float32, float32, 1.0, cube_dim=48)
    assert device.load(kernel) is Client(device.runtime).load(kernel)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_refused_in_words(device):
    x = device.zeros(4, float32)
    child = os.fork()
    if child == 0:
        try:
            scaled.launch(device, 1, x, x, 1.0, cube_dim=4)
        except DeviceError as error:
            os._exit(0 if "spawn" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_there_are_no_graphs(device):
    assert device.runtime.graph([]) is None


def test_a_driver_that_finds_nothing_is_no_device(monkeypatch):
    import pyopencl as cl

    from burn_cube.runtime.opencl import OpenClPlugin

    def none():
        raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr(cl, "get_platforms", none)
    assert OpenClPlugin().count() == 0


def test_without_pyopencl_the_remedy_is_named(monkeypatch):
    import sys

    from burn_cube.runtime.opencl import OpenClPlugin
    from burn_std import BackendLoadError

    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(BackendLoadError, match="--package burn-cube --extra opencl"):
        OpenClPlugin().count()


def test_a_list_of_launches_runs_again_with_other_memory_and_numbers(device):
    x = device.from_numpy(np.arange(4, dtype=np.float32))
    middle, out = device.zeros(4, float32), device.zeros(4, float32)
    program = device.load(scaled.ir(x, out, 2.0, cube_dim=4, index=int32))
    steps = [(x, middle, 2.0), (middle, out, 3.0)]
    calls = [program.prepared((1, 1, 1), args) for args in steps]
    listed = device.runtime.sequence(calls)
    at, by = [], []
    for call, start in zip(
        calls, np.cumsum([0, *[len(c.words) // 8 for c in calls]]), strict=False
    ):
        assert call.number == 0
        at += [start + word for word in program.places[:2]]
        by.append(start + program.places[2])

    def run(source, target, *factors):
        for word, factor in zip(by, factors, strict=True):
            listed.words[word] = np.float32(factor).view(np.int32)
        rows, deltas = np.array([0, 1, 1, 2]), np.zeros(4, np.int64)
        listed.locate(np.array(at), rows, deltas, [source, middle, target])
        listed.run()
        return target.numpy()

    assert len(listed) == 2
    np.testing.assert_array_equal(run(x, out, 2.0, 3.0), [0, 6, 12, 18])
    np.testing.assert_array_equal(run(x, out, 2.0, -1.0), [0, -2, -4, -6])
    long = device.from_numpy(np.arange(8, dtype=np.float32))
    tail, other = long.view((4,), None, 4), device.zeros(4, float32)
    np.testing.assert_array_equal(run(tail, other, 1.0, 1.0), [4, 5, 6, 7])
    np.testing.assert_array_equal(out.numpy(), [0, -2, -4, -6])
    # A buffer that was given back may leave its handle to another one.
    del long, tail
    device.memory_cleanup()
    fresh = device.from_numpy(np.arange(4, dtype=np.float32) + 10)
    np.testing.assert_array_equal(run(fresh, other, 1.0, 2.0), [20, 22, 24, 26])


def test_a_fault_in_a_list_names_its_kernel(device):
    bad = device.from_numpy(np.array([1, -1], np.int32))
    out = device.zeros(2, int32)
    program = device.load(checked.ir(bad, out, cube_dim=2, index=int32))
    call = program.prepared((1, 1, 1), (bad, out))
    listed = device.runtime.sequence([call])
    at = np.array(program.places)
    listed.locate(at, np.array([0, 1]), np.array([0, 0]), [bad, out])
    listed.run()
    with pytest.raises(bc.KernelFaultError, match="not negative"):
        device.sync()
    device.sync()
