"""Devices, contexts, promotion, scopes and random streams over a backend of Python lists."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from burn_backend import Backend, Kernel
from burn_dispatch import (
    Device,
    DeviceConfig,
    DeviceFilter,
    Resource,
    autocast,
    current_scope,
    device,
    no_grad,
    resource as find,
    source_of,
)
from burn_ir import CATALOG
from burn_std import BackendLoadError, DeviceError, DTypeError, ShapeError, UnsupportedOpError
from burn_std.dtypes import bfloat16, bool_, float16, float32, float64, int64


class Box:
    """A payload of rank 0 or 1."""

    def __init__(self, data: list[Any], shape: tuple[int, ...], dtype: str = "f") -> None:
        self.data = data
        self.shape = shape
        self.dtype = dtype


class Lists(Backend):
    """Adds, multiplies and casts; whatever else is core is there and refuses."""

    name = "lists"

    def __init__(self) -> None:
        def wide(fn: Any) -> Any:
            def run(x: Box, y: Box) -> Box:
                n = max(len(x.data), len(y.data))
                a, b = (v.data * n if len(v.data) == 1 else v.data for v in (x, y))
                out = [fn(i, j) for i, j in zip(a, b, strict=True)]
                return Box(out, max(x.shape, y.shape, key=len), x.dtype)

            return run

        def missing(*args: Any) -> Any:
            raise RuntimeError("not here")

        given = {
            "add": wide(lambda a, b: a + b),
            "mul": wide(lambda a, b: a * b),
            "cast": lambda x, dtype: Box(x.data, x.shape, self.native[dtype]),
        }
        table = {
            e.name: Kernel(lambda d, e=e: given.get(e.name, missing))
            for e in CATALOG
            if e.grade == "core"
        }
        names = {float32: "f", float64: "d", int64: "i", float16: "h"}
        super().__init__(table, names)

    def scalar(self, value: Any, dtype: Any) -> Box:
        return Box([value], (), self.native[dtype])


@pytest.fixture
def resource() -> Resource:
    return Resource("lists", "lists", Lists(), 0)


def box(resource: Resource, *numbers: float, dtype: str = "f") -> Any:
    return resource.plain_context().make(Box(list(numbers), (len(numbers),), dtype))


def test_functions_are_generated_at_their_first_call(resource):
    ctx = resource.plain_context()
    assert "add" not in vars(ctx)
    out = ctx.add(box(resource, 1.0), box(resource, 2.0))
    assert out.v.data == [3.0]
    assert "def add(x, y)" in source_of(vars(ctx)["add"])
    with pytest.raises(AttributeError):
        ctx.no_such_operation  # noqa: B018 - the look-up is the test


def test_scalars_are_weak_and_dtypes_promote(resource):
    ctx = resource.plain_context()
    x, i = box(resource, 1.0), box(resource, 1, dtype="i")
    assert ctx.add(x, 2).dtype is float32
    assert ctx.add(i, 2).dtype is int64
    assert ctx.add(i, 2.5).dtype is float32
    assert ctx.add(i, x).dtype is float32
    assert ctx.add(x, box(resource, 1.0, dtype="d")).dtype is float64


def test_refusals_are_typed(resource):
    ctx = resource.plain_context()
    x = box(resource, 1.0, 2.0)
    with pytest.raises(ShapeError, match="add"):
        ctx.add(x, box(resource, 1.0, 2.0, 3.0))
    with pytest.raises(DTypeError, match="str"):
        ctx.add(x, "no")
    other = Resource("lists", "lists", Lists(), 1)
    with pytest.raises(DeviceError, match="lists:1"):
        ctx.add(x, box(other, 1.0, 2.0))


def test_what_is_missing_and_has_no_parts_is_unsupported(resource):
    with pytest.raises(UnsupportedOpError, match="svd"):
        resource.plain_context().svd(box(resource, 1.0), False)


def test_devices_are_values(resource):
    a, b = Device(resource), Device(resource)
    assert a == b
    assert hash(a) == hash(b)
    assert repr(a) == "lists"
    assert a.context is b.context
    with pytest.raises(DeviceError, match="autodiff"):
        a.gradient_checkpointing()
    with pytest.raises(BackendLoadError, match="burn-cube"):
        Device.cuda()


def test_the_default_of_a_block(resource):
    with Device(resource) as d:
        assert Device.default() is d


def test_one_device_and_one_block_object_serve_many_tasks(resource):
    device, other, block = Device(resource), Device(Resource("o", "o", Lists(), 0)), no_grad()

    async def task(d: Device, rest: float) -> None:
        with d, block:
            await asyncio.sleep(rest)
            assert Device.default() is d
            assert current_scope().no_grad
        assert not current_scope().no_grad

    async def all_tasks() -> None:
        await asyncio.gather(
            *(task(d, t) for d, t in [(device, 3e-3), (other, 1e-3), (device, 2e-3)])
        )

    asyncio.run(all_tasks())


def test_configured_once_and_before_the_first_tensor(resource):
    d = Device(resource).configure(float64)
    assert d.settings()["default_float"] is float64
    with pytest.raises(DeviceError, match="once"):
        d.configure(float32)
    with pytest.raises(DeviceError, match="support"):
        Device(Resource("lists", "lists", Lists(), 2)).configure(bfloat16)
    fresh = Device(Resource("lists", "lists", Lists(), 3))
    for wrong in (None, (), "f64", (float32, float64), (float32, int64, int64), bool_):
        with pytest.raises(DeviceError, match="takes a DeviceConfig"):
            fresh.configure(wrong)
    assert fresh.configure((float64, int64)).settings()["default_float"] is float64
    used = Resource("lists", "lists", Lists(), 4)
    used.plain_context().add(box(used, 1.0), box(used, 2.0))
    with pytest.raises(DeviceError, match="once"):
        Device(used).configure(float64)


def test_tf32_is_a_permission_that_reaches_the_backend():
    heard = []

    class Listening(Lists):
        def allow_tf32(self) -> None:
            heard.append(True)

    plain = Device(Resource("lists", "lists", Listening(), 5)).configure(float64)
    assert plain.settings()["tf32"] is False
    assert not heard
    allowed = Device(Resource("lists", "lists", Listening(), 6)).configure(DeviceConfig(tf32=True))
    assert allowed.settings() == {"default_float": float32, "default_int": int64, "tf32": True}
    assert heard == [True]
    Device(Resource("lists", "lists", Lists(), 7)).configure(DeviceConfig(tf32=True))
    for wrong in (1, "high", None):
        with pytest.raises(DeviceError, match="tf32 is True or False"):
            DeviceConfig(tf32=wrong)
    with pytest.raises(DeviceError, match="once"):
        allowed.configure(DeviceConfig(tf32=True))


def test_scopes_swap_functions_and_put_them_back(resource):
    ctx = resource.plain_context()
    x = box(resource, 1.0)
    ctx.add(x, x)
    plain = vars(ctx)["add"]
    with no_grad():
        assert current_scope().no_grad
        assert vars(ctx)["add"] is not plain
        assert ctx.add(x, x).v.data == [2.0]
    assert vars(ctx)["add"] is plain
    with autocast(float16):
        assert current_scope().autocast is float16
    assert current_scope().autocast is None
    with pytest.raises(DTypeError):
        autocast(float32)


def _generator(block: Any, seen: list[Any]) -> Any:
    with block:
        while True:
            seen.append(current_scope())
            yield


def test_blocks_in_generators_end_in_any_order(resource):
    ctx = resource.plain_context()
    ctx.add(box(resource, 1.0), box(resource, 1.0))
    plain, seen = vars(ctx)["add"], []
    first, second = _generator(no_grad(), seen), _generator(autocast(float16), seen)
    next(first), next(second)
    first.close()
    assert not current_scope().no_grad and current_scope().autocast is float16
    second.close()
    assert current_scope().is_plain and vars(ctx)["add"] is plain
    devices = [Device(resource), Device(Resource("o", "o", Lists(), 0))]
    around = Device(Resource("around", "around", Lists(), 0))
    with around:
        first, second = _generator(devices[0], seen), _generator(devices[1], seen)
        next(first), next(second)
        first.close()
        assert Device.default() is devices[1]
        second.close()
        assert Device.default() is around


def test_a_generator_may_be_closed_by_another_thread_or_context(resource):
    ctx = resource.plain_context()
    ctx.add(box(resource, 1.0), box(resource, 1.0))
    plain = vars(ctx)["add"]
    around = Device(Resource("around", "around", Lists(), 0))
    with ThreadPoolExecutor(1) as pool, around:
        for block in (no_grad(), Device(resource)):
            other = _generator(block, [])
            pool.submit(next, other).result()
            if isinstance(block, Device):
                assert pool.submit(Device.default).result() is block
            else:
                assert pool.submit(current_scope).result().no_grad
            other.close()
            assert Device.default() is around
            assert current_scope().is_plain and pool.submit(current_scope).result().is_plain
    assert vars(ctx)["add"] is plain

    async def outlives() -> bool:
        await asyncio.sleep(1e-3)
        return current_scope().no_grad

    async def start() -> bool:
        with no_grad():
            task = asyncio.create_task(outlives())
        with autocast(float16):  # another block, somewhere
            return await task

    assert not asyncio.run(start())


def test_what_a_decorated_generator_runs_is_in_the_block_and_its_caller_is_not():
    for block in (no_grad, no_grad(), autocast(float16)):

        @block
        def counts(start: int) -> Any:
            try:
                while True:
                    assert not current_scope().is_plain
                    try:
                        start += yield start
                    except KeyError:
                        assert not current_scope().is_plain
                        yield -1
            finally:
                assert not current_scope().is_plain

        made = counts(3)
        assert next(made) == 3 and current_scope().is_plain
        assert made.send(2) == 5 and current_scope().is_plain
        assert made.throw(KeyError) == -1 and current_scope().is_plain
        made.close()

        @block
        def ends() -> Any:
            yield 1
            return 2

        def outer() -> Any:
            return (yield from ends())

        made = outer()
        next(made)
        with pytest.raises(StopIteration) as end:
            next(made)
        assert end.value.value == 2

        @block
        async def later() -> bool:
            await asyncio.sleep(0)
            return current_scope().is_plain

        @block
        async def many() -> Any:
            try:
                for k in range(3):
                    await asyncio.sleep(0)
                    assert not current_scope().is_plain
                    yield k
            finally:
                assert not current_scope().is_plain

        async def run() -> list[int]:
            assert not await later()
            out = []
            async for k in many():
                assert current_scope().is_plain
                out.append(k)
            stopped = many()
            await anext(stopped)
            await stopped.aclose()
            return out

        assert asyncio.run(run()) == [0, 1, 2]
    assert current_scope().is_plain


def test_one_block_of_any_kind_is_entered_again_and_again():
    for block in (no_grad(), autocast(float16)):
        for _ in range(2):
            with block, block:
                assert not current_scope().is_plain
            assert current_scope().is_plain


def test_an_operation_that_is_missing_leaves_no_scope_half_closed(resource):
    ctx, other = resource.plain_context(), Resource("o", "o", Lists(), 0).plain_context()
    with pytest.raises(UnsupportedOpError), no_grad():
        ctx.svd(box(resource, 1.0), False)
    assert not current_scope().no_grad
    with no_grad():
        other.add  # noqa: B018 - made by looking at it
        ctx.add  # noqa: B018
    assert "scoped" not in {
        vars(ctx).get("add", len).__name__,
        vars(other).get("add", len).__name__,
    }


def test_a_first_call_beside_an_opening_scope_heeds_it(resource, monkeypatch):
    ctx = resource.plain_context()
    module = sys.modules["burn_dispatch.context"]
    make = module.generate
    blocks = []

    def slow(context: Any, entry: Any) -> Any:
        if not blocks:  # a scope opens while the plain function is being made
            blocks.append(no_grad())
            blocks[0].__enter__()
        return make(context, entry)

    monkeypatch.setattr(module, "generate", slow)
    assert ctx.mul.__name__ == "scoped"
    blocks[0].__exit__(None, None, None)
    assert ctx.mul.__name__ == "mul"


def test_random_streams_by_thread_and_seed(resource):
    resource.seed(7)
    assert [resource.next_key() for _ in range(2)] == [(7, 0), (7, 1)]
    seen: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: seen.append(resource.next_key()))
    thread.start()
    thread.join()
    assert seen[0][0] != 7
    assert seen[0][1] == 0
    state = resource.random_state()
    assert resource.next_key() == state
    resource.set_random_state(state)
    assert resource.next_key() == state
    resource.seed(7)
    assert resource.next_key() == (7, 0)


class Breaking:
    """A group with one backend that works and two that do not."""

    def __init__(self) -> None:
        self.plugins: dict[str, Any] = {"lists": Plugin(1), "deaf": Plugin(None), "bare": Plugin(0)}

    def names(self) -> list[str]:
        return [*self.plugins, "gone"]

    def installed(self, name: str) -> bool:
        return name in self.names()

    def load(self, name: str) -> Any:
        if name == "gone":
            raise BackendLoadError("gone", "acme-gone 0.1 (acme:plugin) does not import")
        return self.plugins[name]


class Plugin:
    """A backend with so many devices; None breaks."""

    def __init__(self, count: int | None) -> None:
        self.count = count

    def device_count(self) -> int:
        if self.count is None:
            raise OSError("ioctl failed")
        return self.count

    def create(self, index: int) -> Backend:
        return Lists()


def test_the_default_prefers_gpus_to_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["burn_dispatch.device"]
    monkeypatch.delenv("BURN_DEVICE", raising=False)
    monkeypatch.setattr(module, "_why", [])
    group = Breaking()
    monkeypatch.setattr(module, "BACKENDS", group)
    for gpus, chosen in ((1, "opencl"), (0, "cpu")):
        monkeypatch.setattr(module, "_RESOURCES", {})
        opencl = Plugin(2)
        opencl.gpu_count = lambda gpus=gpus: gpus  # type: ignore[attr-defined]
        group.plugins = {"opencl": opencl, "cpu": Plugin(1)}
        assert module._choose_default().name == chosen


def test_enumerate_reports_broken_backends_beside_the_devices(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # The package's `device` is the function; the module of that name is behind it.
    module = sys.modules["burn_dispatch.device"]
    monkeypatch.setattr(module, "BACKENDS", Breaking())
    monkeypatch.setattr(module, "_RESOURCES", {})
    found = Device.enumerate()
    assert [d.name for d in found] == ["lists"]
    assert sorted(found.broken) == ["deaf", "gone"]
    assert isinstance(found.broken["deaf"], BackendLoadError)
    assert isinstance(found.broken["deaf"].__cause__, OSError)
    assert "ioctl failed" in caplog.text


WRONG: list[tuple[Any, type[Exception]]] = [
    (lambda d: d.seed(1.5), DTypeError),
    (lambda d: d.seed(None), DTypeError),
    (lambda d: d.set_random_state(3), DTypeError),
    (lambda d: d.set_random_state(("a", 1)), DTypeError),
    (lambda d: d.supports_dtype("float32"), DTypeError),
    (lambda d: device(3), DeviceError),
    (lambda d: device("lists:x"), DeviceError),
    (lambda d: find("lists", "0"), DeviceError),
    (lambda d: find("lists", 1.5), DeviceError),
    (lambda d: find("lists", -1), DeviceError),
    (lambda d: find("twice-twice-lists"), DeviceError),
    (lambda d: find("property-lists"), DeviceError),
    (lambda d: Device.enumerate("lists"), DTypeError),
    (lambda d: DeviceFilter(3), DTypeError),
    (lambda d: DeviceFilter("lists") | "cuda", TypeError),
    (lambda d: DeviceConfig("float32"), DeviceError),
    (lambda d: DeviceConfig(None, float32), DeviceError),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_wrong_arguments_of_devices_are_typed_errors(
    case: int, resource: Resource, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["burn_dispatch.device"]
    monkeypatch.setattr(module, "BACKENDS", Breaking())
    monkeypatch.setattr(module, "_RESOURCES", {})
    decorators = Breaking()
    decorators.plugins = {"property": object(), "twice": object()}
    monkeypatch.setattr(module, "DECORATORS", decorators)
    call, error = WRONG[case]
    with pytest.raises(error):
        call(Device(resource))
