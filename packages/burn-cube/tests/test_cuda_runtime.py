"""The cuda runtime on a stand-in for cupy: what reaches the driver, byte by byte."""

import ctypes as ct
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

import burn_cube as bc
from burn_cube.runtime.client import Client
from burn_cube.runtime.cuda_calls import CudaCall, in_lanes
from burn_std import BackendLoadError, DeviceError, DeviceLostError
from burn_std.dtypes import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint64,
)

spec = importlib.util.spec_from_file_location("fake_cuda", Path(__file__).parent / "fake_cuda.py")
fake_cuda = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake_cuda)


@bc.cube
def scale(x: bc.Tensor[float32, 2], out: bc.Array[float32], by: float32):
    i = bc.ABSOLUTE_POS
    if i < len(out):
        out[i] = x[i // x.shape[1], i % x.shape[1]] * by


@bc.cube
def every_scalar(
    out: bc.Array[float64], a: bool_, b: int8, c: int64, d: uint64, e: float16, f: bfloat16,
    g: float64,
):  # fmt: skip
    total = bc.cast(a, float64) + bc.cast(b, float64) + bc.cast(c, float64) + bc.cast(d, float64)
    out[0] = total + bc.cast(e, float64) + bc.cast(f, float64) + g


@bc.cube
def big_shared(out: bc.Array[float32]):
    tile = bc.SharedMemory(float32, 20000)
    tile[bc.UNIT_POS] = 1.0
    bc.sync_cube()
    out[bc.UNIT_POS] = tile[0]


@bc.cube
def guarded(x: bc.Array[float32]):
    x[bc.ABSOLUTE_POS] = 1.0


@pytest.fixture
def cuda(monkeypatch, tmp_path):
    made = fake_cuda.install(monkeypatch)
    made.formats["k_scale"] = [
        ct.c_uint64, ct.c_int32, ct.c_int32, ct.c_int32, ct.c_int32, ct.c_uint64, ct.c_int32,
        ct.c_float,
    ]  # fmt: skip
    return made


@pytest.fixture
def device(cuda, monkeypatch):
    from burn_cube.runtime import queued
    from burn_cube.runtime.cache import DiskCache
    from burn_cube.runtime.cuda import CudaPlugin

    monkeypatch.setattr(queued, "kernel_cache", lambda: DiskCache(None))
    plugin = CudaPlugin()
    assert plugin.count() == 1
    return Client(plugin.create(0))


def test_arguments_reach_the_driver_in_order(device, cuda):
    x = device.zeros((4, 6), float32)
    out = device.empty(24, float32)
    scale.launch(device, 3, x.view((6, 4), (1, 6)), out, 2.5, cube_dim=8)
    ((name, grid, block, shared, stream, values),) = cuda.launches
    assert (name, grid, block, shared, stream) == ("k_scale", (3, 1, 1), (8, 1, 1), 0, 42)
    assert values == [x.pointer, 24, 4, 1, 6, out.pointer, 24, 2.5]


def test_views_start_at_their_offset(device, cuda):
    x = device.zeros(100, float32)
    scale.launch(device, 1, x.view((2, 3), None, 10), x, 1.0)
    assert cuda.launches[0][5][0] == x.pointer + 40


def test_scalars_are_packed_by_dtype_and_wrap(device, cuda):
    out = device.zeros(1, float64)
    cuda.formats["k_every_scalar"] = [
        ct.c_uint64, ct.c_int32, ct.c_uint8, ct.c_int8, ct.c_int64, ct.c_uint64, ct.c_uint16,
        ct.c_uint16, ct.c_double,
    ]  # fmt: skip
    every_scalar.launch(device, 1, out, True, 200, -1, -1, 1.5, 1.0, 0.1)
    values = cuda.launches[0][5]
    assert values[2:] == [1, -56, -1, 2**64 - 1, 0x3E00, 0x3F80, 0.1]


def test_the_grid_of_cuda_has_limits(device):
    x = device.zeros((1, 1), float32)
    with pytest.raises(bc.LaunchError, match=r"at most .*65535"):
        scale.launch(device, (1, 70000), x, device.zeros(1, float32), 1.0)


def test_much_shared_memory_is_asked_for(device, cuda):
    cuda.formats["k_big_shared"] = [ct.c_uint64, ct.c_int32]
    big_shared.launch(device, 1, device.zeros(32, float32), cube_dim=32)
    assert cuda.launches[0][3] == 80000
    assert cuda.attributes == [(1000, 8, 80000)]
    assert "extern __shared__" in cuda.compiled[0][0]


def test_code_is_made_for_the_chip_without_contraction(device, cuda):
    device.load(guarded.ir(float32))
    options = cuda.compiled[0][1]
    assert "--gpu-architecture=sm_90" in options and "--fmad=false" in options
    device.load(guarded.ir(float32, fast_math=True))
    assert "--use_fast_math" in cuda.compiled[1][1]


def test_an_older_compiler_makes_code_that_the_driver_finishes(monkeypatch):
    cuda = fake_cuda.install(monkeypatch, archs=(75, 80))
    from burn_cube.runtime.cuda import CudaPlugin

    runtime = CudaPlugin().create(0)
    monkeypatch.setenv("BURN_CACHE_DIR", "off")
    runtime.load(guarded.ir(float32, cube_dim=96))
    assert "--gpu-architecture=compute_80" in cuda.compiled[0][1]


def test_a_kernel_is_compiled_once(device, cuda):
    first = device.load(guarded.ir(float32))
    again = Client(device.runtime).load(guarded.ir(float32))
    assert first is again and len(cuda.compiled) == 1


def test_an_error_of_the_compiler_shows_log_and_source(device):
    kernel = bc.Builder("broken_kernel", cube_dim=1).finish()
    with pytest.raises(bc.LaunchError, match="what is this") as caught:
        device.load(kernel)
    assert "k_broken_kernel" in str(caught.value)


def test_reads_and_writes_go_through_memory(device):
    host = np.arange(1000, dtype=np.float32)
    x = device.from_numpy(host)
    np.testing.assert_array_equal(x.numpy(), host)
    big = np.arange(5 << 20, dtype=np.float32)
    np.testing.assert_array_equal(device.from_numpy(big).numpy(), big)
    first, second = device.read_async([x, x.view((10, 10), (10, 1), 900)])
    assert first.done()
    np.testing.assert_array_equal(second.result(), host[900:].reshape(10, 10))
    y = device.empty(1000, float32)
    device.copy(y, x)
    np.testing.assert_array_equal(y.numpy(), host)


def test_uploads_go_through_pinned_memory_that_waits_for_its_copy(device, cuda, monkeypatch):
    runtime, host = device.runtime, np.arange(1 << 16, dtype=np.float32)
    waited = []
    monkeypatch.setattr(runtime.api, "eventQuery", lambda event: 600)
    monkeypatch.setattr(runtime.api, "eventSynchronize", lambda event: waited.append(event))
    made = [device.from_numpy(host + k) for k in range(8)]
    assert len(runtime._ways) == 8 and len({p.ptr for _, p in runtime._ways}) == 8
    assert waited == []
    oldest = runtime._ways[0][0].ptr
    made.append(device.from_numpy(host + 8))
    # No more than that are on their way before the host waits.
    assert waited == [oldest] and len(runtime._ways) == 8
    monkeypatch.undo()
    made.append(device.from_numpy(host + 9))
    assert len(runtime._ways) == 1  # those that have arrived gave their memory back
    for k, x in enumerate(made):
        np.testing.assert_array_equal(x.numpy(), host + k)


def test_events_are_used_again(device, cuda):
    for _ in range(20):
        start = device.runtime.event()
        end = device.runtime.event()
        assert end.done() and end.seconds_since(start) == pytest.approx(0.25e-3)
    assert cuda.events <= 3


def test_a_fault_names_launch_and_line(device, cuda):
    cuda.formats["k_guarded"] = [ct.c_uint64, ct.c_int32, ct.c_int32, ct.c_uint64]
    x = device.zeros(5, float32)
    guarded.launch(device, 1, x, cube_dim=8, bounds="validated")
    pointer, length, number, record = cuda.launches[0][5]
    assert (pointer, length) == (x.pointer, 5)
    words = (ct.c_int32 * 6).from_address(record)
    words[:] = [1, number, 7, 0, 5, 0]
    with pytest.raises(bc.KernelFaultError, match=r"7 in guarded\(x=f32\[5\]\)") as caught:
        device.sync()
    assert caught.value.where.text.strip() == "x[bc.ABSOLUTE_POS] = 1.0"
    assert words[0] == 0
    device.sync()


def test_a_lost_device_names_the_last_launches(device, cuda):
    x = device.zeros((1, 1), float32)
    scale.launch(device, 2, x, device.zeros(1, float32), 1.0)
    cuda.broken = "CUDA_ERROR_ILLEGAL_ADDRESS"
    with pytest.raises(DeviceLostError, match=r"behind scale on cubes \(2, 1, 1\)"):
        device.sync()
    with pytest.raises(DeviceLostError, match="scale"):
        scale.launch(device, 2, x, x.view((1,)), 1.0)
    cuda.broken = None


def test_a_full_device_frees_its_caches_first(device, cuda):
    cuda.left = 64 << 20
    first = device.empty(10 << 20, float32, "first")
    del first
    second = device.empty(14 << 20, float32, "second")
    with pytest.raises(bc.OutOfMemoryError, match="second"):
        device.empty(14 << 20, float32)
    assert second.length == 14 << 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_refused_in_words(device):
    x = device.zeros(4, float32)
    child = os.fork()
    if child == 0:
        try:
            device.sync()
        except DeviceError as error:
            os._exit(0 if "spawn" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert x.length == 4


def test_without_cupy_the_remedy_is_named(monkeypatch):
    import sys

    from burn_cube.runtime.cuda import CudaPlugin

    for name in ("cupy", "cupy.cuda"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(BackendLoadError, match="cuda13"):
        CudaPlugin().count()


def test_index_dtype_follows_the_size(device, cuda):
    assert device.properties.index is int32
    kernel = scale.ir((float32, 2), float32, 1.0, index=int64)
    assert "const i64 p_x_shape_1" in device.runtime.load(kernel).source.text


# ---- lists of launches -------------------------------------------------------------------------


class Library:
    """Adds one to numbers; what two calls do at a time in one lane is wrong."""

    def __init__(self, graphs):
        self.graphs = graphs
        self.lane = 0
        self.taken = []

    def take(self, lane):
        self.lane = lane
        self.taken.append(lane)

    def call(self, device, array):
        """Return a call that writes its lane and the next number behind the last."""

        def issue(place):
            lane = self.lane

            def work():
                numbers = (ct.c_float * 4).from_address(place)
                numbers[0], numbers[1] = numbers[0] + 1, lane

            self.graphs.library(work)

        words = np.array([array.pointer], np.int64).tobytes()
        return CudaCall("library", words, issue=issue, lanes=self)


@pytest.fixture
def graphs(cuda, monkeypatch):
    return fake_cuda.install_graphs(monkeypatch, cuda)


def listed(device, before=None, count=4):
    """Return a list of launches, x -> out[k], and its arrays."""
    x = device.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    outs = [device.zeros(6, float32) for _ in range(count)]
    program = device.runtime.load(scale.ir(x, outs[0], 1.0, cube_dim=8))
    calls = [program.prepared((1, 1, 1), (x, out, float(k))) for k, out in enumerate(outs)]
    return device.runtime.sequence(calls, before), x, outs


def numbers_of(launches):
    return [values[-1] for *_, values in launches]


def test_launches_of_a_list_keep_their_order_where_one_waits_for_another(device, cuda, graphs):
    orders = set()
    calls, *_ = listed(device, [[], [], [0], [1, 2]])
    calls.run()  # one by one
    assert numbers_of(cuda.launches) == [0, 1, 2, 3]
    for _ in range(40):
        cuda.launches.clear()
        calls.run()
        found = numbers_of(cuda.launches)
        assert found.index(0) < found.index(2) and found[-1] == 3
        orders.add(tuple(found))
    assert len(orders) == 3  # the second may come first, second or third
    calls, *_ = listed(device)  # each waits for the one before
    for _ in range(10):
        cuda.launches.clear()
        calls.run()
        assert numbers_of(cuda.launches) == [0, 1, 2, 3]


def test_one_native_call_launches_the_graph_that_has_the_words(device, cuda, graphs):
    pytest.importorskip("llvmlite")
    calls, _x, outs = listed(device)
    starts = calls._starts
    # The entry of `out` is the sixth of `k_scale`.
    start = calls.placed([s + 5 for s in starts[:4]], [0, 1, 2, 3], [0] * 4)
    places = [out.pointer for out in outs]
    other = [places[1], places[0], *places[2:]]

    def run(at):
        cuda.launches.clear()
        done = start(*at)
        if done != len(calls):
            calls.faulted(done)
        assert [values[5] for *_, values in cuda.launches] == at
        return done

    assert run(places) == 0  # one by one
    assert run(places) == 0  # makes the graph
    assert run(places) == 4 and run(places) == 4
    assert run(other) == 0  # half of its nodes change: another graph is made
    assert run(places) == 4 and run(other) == 4 and run(places) == 4
    assert graphs.patched == 0
    graphs.refuses = True
    assert start(*places) == 0
    with pytest.raises(bc.LaunchError, match="the driver takes a graph"):
        calls.faulted(0)


def test_a_node_that_changes_often_gets_a_graph_of_its_own(device, cuda, graphs):
    calls, _x, outs = listed(device, count=8)
    at = calls._starts[3] + 5
    places = [outs[3].pointer, outs[4].pointer]
    for k in range(60):
        calls.words[at] = places[k % 2]
        calls.run()
    assert len(calls._instances) == 2
    patched = graphs.patched
    for k in range(10):
        calls.words[at] = places[k % 2]
        calls.run()
    assert graphs.patched == patched


def test_calls_of_a_library_that_may_meet_have_lanes_of_their_own(device, cuda, graphs):
    library = Library(graphs)
    arrays = [device.zeros(4, float32) for _ in range(5)]
    # The first three meet; the last two wait for the first.
    before = [[], [], [], [0], [0]]
    made = [library.call(device, array) for array in arrays]
    calls = device.runtime.sequence(made, before)
    for k in range(6):
        calls.run()
        assert [array.numpy()[0] for array in arrays] == [k + 1] * 5
    lanes = [int(array.numpy()[1]) for array in arrays]
    assert library.lane == 0  # what is launched alone has the first one
    waits, assigned = in_lanes(made, before)
    assert lanes == assigned
    done = [set() for _ in made]
    for k, mine in enumerate(waits):
        for j in mine:
            done[k] |= done[j] | {j}
        assert all(lanes[j] != lanes[k] or j in done[k] for j in range(k))


def test_faults_are_seen_without_a_copy(device, cuda, monkeypatch):
    cuda.formats["k_guarded"] = [ct.c_uint64, ct.c_int32, ct.c_int32, ct.c_uint64]
    guarded.launch(device, 1, device.zeros(8, float32), cube_dim=4, bounds="validated")
    copies = []
    monkeypatch.setattr(device.runtime.api, "memcpyAsync", lambda *args: copies.append(args))
    device.sync()
    assert copies == []


def test_a_graph_that_was_changed_in_part_is_not_used_again(device, cuda, graphs, monkeypatch):
    pytest.importorskip("llvmlite")
    calls, _x, outs = listed(device, count=12)
    start = calls.placed([s + 5 for s in calls._starts[:12]], [*range(12)], [0] * 12)
    places = [out.pointer for out in outs]
    other = [places[1], places[0], *places[2:]]
    for _ in range(2):
        calls.faulted(start(*places))
    assert start(*places) == 12
    answers = iter([0, 1])  # the second node is refused
    inner = graphs.cuGraphExecKernelNodeSetParams_v2
    refusing = lambda *args: next(answers) or inner(*args)  # noqa: E731
    monkeypatch.setattr(graphs, "cuGraphExecKernelNodeSetParams_v2", refusing)
    assert start(*other) == 0
    with pytest.raises(bc.LaunchError, match="new arguments"):
        calls.faulted(0)
    assert start(*places) == 0  # no graph is taken for one that has these words
    calls.faulted(0)
    cuda.launches.clear()
    assert start(*places) == 12
    assert sorted(values[5] for *_, values in cuda.launches) == sorted(places)
