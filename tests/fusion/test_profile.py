"""`burn.profile()`: events, memory, the trace; nothing of it outside the block."""

from __future__ import annotations

import json
import threading

import pytest

import burn
from burn import nn, optim

NAMES = ["flex", "fusion-flex", "eager-cpu", "cpu", "eager-opencl"]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """A device."""
    if "opencl" in request.param:
        pytest.importorskip("pyopencl")
        if not burn.Device.enumerate(burn.DeviceFilter("opencl")):
            pytest.skip("no OpenCL device")
    return request.param


def _step(name: str):
    device = burn.device(name)
    model = nn.Sequential(
        nn.Linear(4, 8, device=device.autodiff()), nn.Tanh(),
        nn.Linear(8, 1, device=device.autodiff()),
    )  # fmt: skip
    optimizer = optim.SGD(lr=0.1)
    x = burn.ones(16, 4, device=device)

    def step() -> None:
        optimizer.step(model, model(x).square().mean().backward())

    step()
    device.sync()
    return device, step


def test_lanes_of_a_step(name):
    device, step = _step(name)
    with burn.profile() as found:
        step()
        device.sync()
    lanes = {e.lane for e in found.events if e.device in (name, name.removeprefix("eager-"))}
    wanted = {"recording", "flushes"} if device.resource.backend.records else {"operations"}
    if name != "flex":
        wanted.add("kernels")
    if name == "cpu":
        wanted.add("launches")
    assert wanted <= lanes <= wanted | {"plans"}
    asked = [e for e in found.events if e.lane in ("recording", "operations")]
    assert {"linear", "tanh", "sgd_step"} <= {e.name for e in asked}
    lines = {e.facts["line"] for e in asked}
    assert all(line.startswith("test_profile.py:") and "in step" in line for line in lines)
    for e in found.events:
        assert e.start >= 0 and 0 <= e.seconds <= found.seconds
        assert e.start + e.seconds <= found.seconds + 1e-3


@pytest.mark.parametrize("name", ["fusion-flex", "cpu", "opencl"], indirect=True)
def test_kernels_lie_inside_flushes_and_flushes_follow(name):
    assert burn.device(name).resource.backend.records
    device, step = _step(name)
    with burn.profile() as found:
        step(), step()
        device.sync()
    flushes = [e for e in found.events if e.lane == "flushes" and e.device == name]
    assert len(flushes) == 2
    assert flushes[0].start + flushes[0].seconds <= flushes[1].start
    calls = [e for e in found.events if e.lane in ("launches", "kernels")]
    for c in calls:
        assert any(
            f.start - 1e-4 <= c.start and c.start + c.seconds <= f.start + f.seconds + 1e-4
            for f in flushes
        )


def test_a_new_plan_is_seen_once():
    device = burn.device("fusion-flex:61")
    x = burn.ones(5, device=device)
    device.flush()
    with burn.profile() as found:
        for _ in range(3):
            (x * 2 + 1).exp().tolist()
    assert [e.lane for e in found.events].count("plans") == 1
    assert [e.lane for e in found.events].count("flushes") == 3


def test_memory_of_results(name):
    device = burn.device(name)
    x = burn.ones(1000, 250, device=device)
    device.sync()
    with burn.profile() as found:
        kept = [x * k for k in range(2, 6)]
        device.flush()
        del kept[1:]
        y = x + 1
        device.flush()
    del y
    count = found.memory[-1].bytes
    if "flex" in name:
        sizes = [m.bytes["alive"] for m in found.memory]
        assert max(sizes) == 4_000_000 and sizes[-1] == 2_000_000
        assert found.peak()[name] == 4_000_000
    else:
        assert count["reserved"] >= count["in_use"] >= 2_000_000


def test_the_trace_is_of_the_format(name, tmp_path):
    device, step = _step(name)
    path = tmp_path / "trace.json"
    with burn.profile(path) as found:
        step()
        device.sync()
    trace = json.loads(path.read_text())
    rows = trace["traceEvents"]
    assert {r["ph"] for r in rows} == {"M", "X", "C"}
    spans = [r for r in rows if r["ph"] == "X"]
    assert len(spans) == len(found.events)
    named = {(r["pid"], r["tid"]): r["args"]["name"] for r in rows if r["name"] == "thread_name"}
    assert all(named[r["pid"], r["tid"]] == r["cat"] for r in spans)
    assert all(isinstance(r["ts"], float) and isinstance(r["dur"], float) for r in spans)
    assert all(all(isinstance(v, int) for v in r["args"].values()) for r in rows if r["ph"] == "C")


def test_the_table_sorts_by_time(name):
    device, step = _step(name)
    with burn.profile() as found:
        step()
        device.sync()
    lines = found.table(top=2).splitlines()
    assert lines[0].split() == ["device", "lane", "name", "count", "total", "ms", "us"]
    assert any("more names" in line for line in lines)
    assert str(found) == found.table()


def test_the_same_bits_inside(name):
    burn.manual_seed(1)
    device = burn.device(name)
    x = burn.rand(33, 7, device=device)

    def f(x):
        return ((x @ x.T).softmax(-1) * x.sum(1)).exp()

    expected = f(x).numpy().tobytes()
    with burn.profile():
        assert f(x).numpy().tobytes() == expected
        with burn.no_grad(), burn.profile():
            assert f(x).numpy().tobytes() == expected


def test_errors_pass_and_end_the_block(name):
    device = burn.device(name)
    x = burn.ones(2, 3, device=device)
    plain = x.b.add
    with pytest.raises(burn.ShapeError), burn.profile():
        x @ x
    with burn.profile() as found, pytest.raises(burn.IndexRangeError):
        (x + 1).index_select(0, burn.tensor([7], device=device)).numpy()
    assert found.events
    assert x.b.add is plain
    backend = device.resource.backend
    if backend.records:
        assert "launch" not in vars(backend.recorder)


def test_threads_and_nested_blocks():
    device = burn.device("fusion-flex")
    x = burn.ones(4, device=device)
    device.flush()

    def other() -> None:
        (x + 5).tolist()

    with burn.profile() as outer:
        with burn.profile() as inner:
            (x * 2).tolist()
        thread = threading.Thread(target=other, name="helper")
        thread.start()
        thread.join()
    assert [e.name for e in inner.events if e.lane == "recording"] == ["mul"]
    assert [e.name for e in outer.events if e.lane == "recording"] == ["mul"]
    assert "flushes helper" in {e.lane for e in outer.events}
    assert "flushes helper" not in {e.lane for e in inner.events}


def test_a_device_made_inside_is_heard_of():
    with burn.profile() as found:
        burn.ones(3, device=burn.device("fusion-flex:62")).add(1).tolist()
    assert {"recording", "flushes"} <= {e.lane for e in found.events}


def test_no_fusion_inside_is_at_once():
    x = burn.ones(4, device=burn.device("fusion-flex"))
    x.device.flush()
    with burn.profile() as found, burn.no_fusion():
        x * 2
    assert [(e.lane, e.name) for e in found.events] == [("operations", "mul")]


@pytest.mark.parametrize("name", ["fusion-flex", "fusion-cpu"])
def test_replays_of_a_captured_step_are_seen(name):
    x = burn.ones(8, device=burn.device(name))
    step = burn.capture(lambda x: (x * 2 + 1).sum())
    for _ in range(6):
        step(x)
    with burn.profile() as found:
        for _ in range(3):
            step(x)
    assert step.replays == 5
    called = [e.name for e in found.events if e.lane in ("launches", "kernels")]
    assert called.count("sum" if name == "fusion-flex" else "mul add sum") == 3


def test_a_number_is_no_path():
    with pytest.raises(TypeError), burn.profile(1):
        pass
