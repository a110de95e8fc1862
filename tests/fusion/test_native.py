"""Functions of operations in native code: what they do is what their text does."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from sys import getrefcount
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import burn
from burn_cube.runtime.frames import refusal
from burn_dispatch import source_of

pytest.importorskip("llvmlite")

NAMES = ("add", "sub", "mul", "div", "matmul", "linear", "relu", "tanh", "sum", "reshape", "eq")


def device(number: int) -> burn.Device:
    return burn.device(f"cpu:{number}")


@pytest.fixture(scope="module", autouse=True)
def setting() -> Iterator[None]:
    """What is native here is what a test makes so, however the others run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BURN_NATIVE", "on")
        yield


@pytest.fixture(scope="module")
def sides(setting: None) -> list[burn.Device]:
    """One device whose functions are Python, and one where they are native."""
    python, native = device(41), device(42)
    backend = native.resource.backend
    why = refusal()
    if why is not None:
        pytest.skip(why)
    assert backend.inner.engine.client.runtime.frames().refused is None
    for d in (native, native.autodiff()):
        for name in NAMES:
            getattr(d.context, name)
    for d in (native, native.autodiff()):
        d.context.natively(NAMES)
    backend.recorder.natively(backend.compiled)
    return [python, native]


@pytest.fixture(autouse=True)
def python_stays_python(sides: list[burn.Device]) -> Iterator[None]:
    """Check that what native code is compared with has not become native on the way."""
    yield
    for d in (sides[0], sides[0].autodiff()):
        for name in NAMES:
            assert isinstance(getattr(d.context, name), FunctionType), name


def is_native(function: Any) -> bool:
    return getattr(function, "__code__", None) is None


def told(call: Callable[[], Any]) -> Any:
    """Return what a call gives or raises, as something that compares."""
    try:
        out = call()
    except Exception as error:  # noqa: BLE001 - it is what is compared
        return type(error), str(error).replace(":41", "").replace(":42", "")
    return str(out.tolist()), out.dtype.name, out.shape, out.is_tracked()


class Mine(burn.Tensor):
    """A tensor of the user's."""

    __slots__ = ()


def cases(d: burn.Device, other: burn.Device) -> list[Callable[[], Any]]:
    f = burn.tensor(np.arange(6, dtype=np.float32).reshape(2, 3), device=d)
    i = burn.tensor(np.arange(3), device=d)
    t = burn.tensor([[1.0, 2.0, 3.0]], device=d.autodiff()).require_grad()
    bare = burn.Tensor.__new__(burn.Tensor)
    mine = Mine.__new__(Mine)
    mine.b, mine.v, mine.node = f.b, f.v, None
    half = Mine.__new__(Mine)
    half.b = f.b
    c, a = f.b, t.b
    p = burn.Parameter(burn.ones(3, device=d.autodiff()))
    far = burn.ones(2, 3, device=other)
    operands = [
        f,
        i,
        t,
        mine,
        p,
        p.twin(),
        far,
        2,
        2.5,
        True,
        np.float32(3),
        None,
        "x",
        [1.0],
        bare,
        half,
    ]
    out: list[Callable[[], Any]] = []
    for name in ("add", "mul", "div", "eq"):
        for x in (f, i, t, p):
            out += [lambda n=name, x=x, y=y: getattr(x.b, n)(x, y) for y in operands]
    out += [lambda y=y: c.relu(y) for y in operands]
    out += [lambda y=y: a.sum(y, None, False, None) for y in operands]
    out += [lambda y=y: c.linear(f, y, None) for y in (f, i, t, far, None, 3)]
    out += [lambda y=y: c.linear(f, f, y) for y in (None, burn.ones(2, device=d), i, f, far)]
    bad = burn.ones(4, device=d)
    out += [lambda: f + bad, lambda: f @ bad, lambda: c.add(f), lambda: c.add(f, f, f)]
    out += [lambda: c.add(x=f, y=f), lambda: c.add(f, y=f), lambda: c.add(f, z=f)]
    out += [lambda: c.sum(f, (9,), False, None), lambda: c.sum(f, "no", False, None)]
    out += [lambda: c.reshape(f, (4, 4)), lambda: c.reshape(f, [3, 2])]
    return out


def test_odd_arguments_are_answered_as_python_answers(sides: list[burn.Device]) -> None:
    python, native = sides
    assert is_native(native.context.add)
    assert is_native(native.autodiff().context.mul)
    left, right = cases(python, device(43)), cases(native, device(43))
    for k, (one, two) in enumerate(zip(left, right, strict=True)):
        assert told(one) == told(two), k


def test_its_text_can_be_read(sides: list[burn.Device]) -> None:
    assert source_of(sides[1].context.add) == source_of(sides[0].context.add)


def test_programs_are_the_same(sides: list[burn.Device]) -> None:
    programs = []
    for d in sides:
        d.flush()
        x, y = burn.ones(2, 3, device=d), burn.ones(1, 3, device=d)
        d.flush()
        z = (x * y + y).tanh() @ x.T
        z = burn.functional.linear(z, z, z.sum(0)) + 2.5
        program, runtime = d.resource.backend.recorded()
        programs.append((str(program), str(runtime)))
        d.flush()
    assert programs[0] == programs[1]


def test_gradients_are_the_same(sides: list[burn.Device]) -> None:
    def grads(d: burn.Device) -> list[Any]:
        a = d.autodiff()
        x = burn.tensor([[0.5, -1.0], [2.0, 3.0]], device=a).require_grad()
        y = burn.tensor([1.5, 2.0], device=a).require_grad()
        z = burn.tensor([[1.0], [2.0]], device=d)
        v = (x * y + z).tanh() * x + (x @ x).relu()
        u, w = v.split(1, dim=1)
        w2 = burn.where(u > 1, u * y, w / z).clamp(-3.0, y.sum())
        found = (w2.sum() + (v * v).mean()).backward()
        return [x.grad(found).tolist(), y.grad(found).tolist()]

    want = grads(sides[0])
    for _ in range(20):
        assert grads(sides[1]) == want


def test_errors_in_a_backward_name_the_operation(sides: list[burn.Device]) -> None:
    x = burn.ones(2, device=sides[1].autodiff()).require_grad()
    loss = (x * x).sum()
    loss.backward()
    with pytest.raises(burn.AutodiffError, match="freed"):
        loss.backward()
    again = (x * x).sum()
    again.backward(retain_graph=True)
    assert x.grad(again.backward()).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("tracked", [False, True])
def test_nothing_stays_behind(sides: list[burn.Device], tracked: bool) -> None:
    d = sides[1].autodiff() if tracked else sides[1]
    x = burn.ones(4, 4, device=d)
    x = x.require_grad() if tracked else x
    y, bad = burn.ones(4, 4, device=sides[1]), burn.ones(3, device=sides[1])

    def work() -> None:
        v = x
        for _ in range(20):
            v = v * y + y
        with pytest.raises(burn.ShapeError):
            x + bad
        if tracked:
            x.grad(v.sum().backward())
        sides[1].flush()

    for _ in range(20):
        work()
    gc.collect()
    held = [x, y, x.v, y.v, x.b, type(x), x.v.shape, x.dtype]
    before, objects = [*map(getrefcount, held)], len(gc.get_objects())
    for _ in range(250):
        work()
    gc.collect()
    after = [*map(getrefcount, held)]
    assert max(abs(a - b) for a, b in zip(after, before, strict=True)) < 20
    assert abs(len(gc.get_objects()) - objects) < 100


def test_results_can_be_referred_to_weakly(sides: list[burn.Device]) -> None:
    x = burn.ones(2, device=sides[1].autodiff()).require_grad()
    y = x * x
    seen, node = weakref.ref(y), weakref.ref(y.node)
    assert seen() is y
    del y
    assert seen() is None
    assert node() is None


def test_a_segment_is_cut_where_it_would_be(sides: list[burn.Device]) -> None:
    counts = []
    for d in sides:
        d.flush()
        report = d.resource.backend.report
        before, x = report()["flushes"], burn.ones(2, device=d)
        y = x
        for _ in range(3000):
            y = y + x
        counts.append((report()["flushes"] - before, report()["waiting"]))
        assert y.tolist() == [3001.0, 3001.0]
    assert counts[0] == counts[1]


def test_threads_that_flush_each_other(sides: list[burn.Device]) -> None:
    d, wrong, stop = sides[1], [], threading.Event()
    x = burn.ones(3, device=d)
    d.sync()

    def record(n: int) -> None:
        for _ in range(40):
            y = x
            for _ in range(n):
                y = y + x
            if y.tolist() != [n + 1.0] * 3:
                wrong.append(n)

    def seal() -> None:
        while not stop.is_set():
            d.sync()

    other = threading.Thread(target=seal)
    threads = [threading.Thread(target=record, args=(n,)) for n in (3, 8, 21)]
    other.start()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    stop.set()
    other.join()
    assert not wrong


def test_scopes_keep_their_functions(
    sides: list[burn.Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BURN_NATIVE", "on")
    d = device(44).autodiff()
    x = burn.ones(2, device=d).require_grad()
    x + x
    with burn.no_grad():
        assert not (x + x).is_tracked()
        d.resource.natively(["add", "mul"])
        assert not (x + x).is_tracked()
        assert not (x * x).is_tracked()
    assert is_native(d.context.add)
    assert is_native(d.context.mul)
    assert (x * x).is_tracked()
    with burn.no_fusion():
        assert (x + x).tolist() == [2.0, 2.0]
    assert (x + x).is_tracked()


def test_a_loop_becomes_native_and_stays_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURN_NATIVE", "on")
    d = device(45)
    a = d.autodiff()
    x = burn.tensor([1.0, 2.0], device=a).require_grad()
    y = burn.tensor([3.0, 4.0], device=d)
    for k in range(40):
        v = x
        for _ in range(5):
            v = v * y + k
        g = x.grad(v.sum().backward())
        assert g.tolist() == [243.0, 1024.0]
        if k % 7 == 3:  # another program in between
            assert (y - y).tolist() == [0.0, 0.0]
    assert is_native(a.context.mul)
    assert is_native(d.resource.backend.recorder.ran)


def test_what_comes_often_is_compiled_in_some_runs_and_not_in_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from burn_fusion import recorder as module

    monkeypatch.setenv("BURN_NATIVE", "on")
    monkeypatch.setattr(module, "AT_MOST", 0.0)
    monkeypatch.setattr(module, "AT_LEAST", 0.0)
    d = device(46)
    recorder = d.resource.backend.recorder
    x = burn.tensor([1.0, 2.0], device=d)
    for _ in range(module.OFTEN - 1):
        assert (x * 2 + x).tolist() == [3.0, 6.0]
    assert not recorder.waiting
    assert (x * 2 + x).tolist() == [3.0, 6.0]
    most = len(recorder.waiting)
    assert most >= 7  # the recorder's own five, mul and add
    for left in range(most - 1, -1, -1):
        module.AT_MOST = module.AT_LEAST = 1e-9  # time for the first alone
        monkeypatch.setattr(module, "perf_counter", iter([0.0, 0.0, 1.0, 1.0]).__next__)
        assert (x * 2 + x).tolist() == [3.0, 6.0]
        assert len(recorder.waiting) == left
    made = [recorder.taken, recorder.opened, recorder.scalar, recorder.rebound, recorder.ran]
    assert all(map(is_native, [*made, d.context.mul, d.context.numbers]))


@pytest.mark.parametrize("mode", ["off", "always"])
def test_the_setting_and_the_end_of_a_process(mode: str) -> None:
    code = (
        "import burn\nd = burn.device('cpu').autodiff()\n"
        "x = burn.ones(2, device=d).require_grad()\n"
        "for _ in range(12):\n    g = x.grad((x * x + 1).sum().backward())\n"
        "    assert g.tolist() == [2, 2]\n"
        "print(type(d.context.mul).__name__)\nkept = x * x"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"BURN_NATIVE": mode}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["function" if mode == "off" else "builtin_function_or_method"]
    assert not done.stderr


def test_another_setting_is_an_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import burn; burn.ones(2, device=burn.device('cpu')) + 1"],
        env=os.environ | {"BURN_NATIVE": "perhaps"}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert "BURN_NATIVE: is one of on, off, always; got 'perhaps'" in done.stderr


def test_devices_that_are_no_processor_have_native_functions_too() -> None:
    if not burn.Device.enumerate(burn.DeviceFilter("opencl")):
        pytest.skip("no driver finds an OpenCL device")
    backend = burn.device("opencl").resource.backend
    assert backend.uncompiled() == refusal()
    if refusal() is not None:
        return

    def twice(x: Any) -> Any:
        return x + x

    native = backend.compiled(twice)
    assert is_native(native)
    assert native(4) == 8
