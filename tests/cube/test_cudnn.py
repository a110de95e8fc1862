"""The provider of convolutions, on a library that computes on the host."""

from __future__ import annotations

import ctypes
import threading
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import burn
from burn import functional as F
from burn_cube import LaunchError
from burn_cube_backend.geometry import is_dense, is_last
from burn_cube_backend.kernels import cudnn
from burn_cube_backend.kernels.cudnn import CuDnn
from burn_cube_backend.launch_log import READS, WRITES, LaunchLog
from burn_cube_backend.plugin import CubeBackend, cpu
from burn_ir import CATALOG
from burn_std import BackendLoadError, dtypes as d

FLEX = burn.device("flex")
RNG = np.random.default_rng(11)
NUMPY: dict[str, Any] = {
    "FLOAT": np.float32, "HALF": np.float16,
    "BFLOAT16": burn.zeros(1, dtype=burn.bfloat16, device=FLEX).numpy().dtype,
}  # fmt: skip


class Refused(Exception):
    """What the library raises where no engine serves."""


class Tensor:
    def __init__(self, **facts: Any) -> None:
        self.facts = facts

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("set_"):
            raise AttributeError(name)
        return lambda value: self.facts.__setitem__(name[4:], value)


class Graph:
    """A graph that computes by the operations of flex, on memory of the host."""

    def __init__(self, library: Any, **facts: Any) -> None:
        self.library, self.facts = library, facts
        self.given: list[Tensor] = []
        self.bias_of: Tensor | None = None
        self.bars: list[str] = []

    def tensor(self, **facts: Any) -> Tensor:
        made = Tensor(**facts)
        self.given.append(made)
        return made

    def _conv(self, kind: str, how: dict[str, Any]) -> Tensor:
        self.kind = kind
        self.how = tuple(tuple(how[n]) for n in ("stride", "padding", "dilation"))
        self.out = Tensor()
        return self.out

    def conv_fprop(self, image: Any, weight: Any, **how: Any) -> Tensor:
        return self._conv("conv", how)

    def conv_dgrad(self, loss: Any, filter: Any, **how: Any) -> Tensor:
        return self._conv("conv_input_grad", how)

    def conv_wgrad(self, loss: Any, image: Any, **how: Any) -> Tensor:
        return self._conv("conv_weight_grad", how)

    def bias(self, input: Tensor, bias: Tensor, **_: Any) -> Tensor:
        self.bias_of, self.out = bias, Tensor()
        return self.out

    def validate(self) -> None:
        assert len(self.out.facts["dim"]) in (4, 5)

    build_operation_graph = validate

    def create_execution_plans(self, modes: Any) -> None:
        pass

    def deselect_numeric_notes(self, notes: Any) -> None:
        self.bars = [note.name for note in notes]

    def deselect_workspace_greater_than(self, size: int) -> None:
        pass

    def check_support(self) -> None:
        self.library.graphs.append(self)
        if self.library.refuses(self):
            raise Refused

    def build_plans(self, policy: Any) -> None:
        pass

    def get_workspace_size(self) -> int:
        return 96

    def execute(self, pack: dict[int, int], workspace: int, handle: Any) -> None:
        assert handle == self.library.handle
        assert workspace
        ctypes.memset(workspace, 255, 96)  # what the library leaves there is nobody's
        inputs = [self._array(t, pack[t.facts["uid"]]) for t in self.given]
        wide = [burn.tensor(np.array(x, np.float32), device=FLEX) for x in inputs]
        if self.bias_of is not None:
            wide[2] = wide[2].reshape(-1)
        groups = self._groups()
        out = self._array(self.out, pack[self.out.facts["uid"]])
        context = FLEX.context
        if self.kind == "conv":
            x, w, b = (*wide, None)[:3]
            made = context.conv(x, w, b, *self.how, groups)
        else:
            made = getattr(context, self.kind)(*wide, *self.how, groups, out.shape)
        out[...] = made.numpy().astype(out.dtype)

    def _groups(self) -> int:
        dims = {t.facts["name"]: t.facts["dim"] for t in self.given}
        dims.setdefault({"conv": "out", "conv_input_grad": "x"}.get(self.kind, "weight"),
                        self.out.facts["dim"])  # fmt: skip
        return int(dims["x"][1] // dims["weight"][1])

    @staticmethod
    def _array(t: Tensor, address: int) -> Any:
        kind = np.dtype(NUMPY[t.facts["data_type"].name])
        shape, strides = t.facts["dim"], t.facts["stride"]
        size = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
        raw = (ctypes.c_uint8 * (size * kind.itemsize)).from_address(address)
        flat = np.frombuffer(raw, kind)
        return np.lib.stride_tricks.as_strided(
            flat, shape, [s * kind.itemsize for s in strides], writeable=True
        )


class Library:
    """Stands for the frontend.

    Attributes:
        graphs: those whose support was asked for.
    """

    cudnnGraphNotSupportedError = Refused
    heur_mode = Enum("heur_mode", "A B FALLBACK")
    build_plan_policy = Enum("build_plan_policy", "HEURISTICS_CHOICE ALL")
    data_type = Enum("data_type", "FLOAT HALF BFLOAT16")
    numerical_note = Enum(
        "numerical_note",
        "TENSOR_CORE DOWN_CONVERT_INPUTS REDUCED_PRECISION_REDUCTION NONDETERMINISTIC FFT",
    )
    handle = 77

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self.stream: Any = None

    def create_handle(self) -> int:
        return self.handle

    def set_stream(self, handle: int, stream: int) -> None:
        self.stream = (handle, stream)

    def pygraph(self, **facts: Any) -> Graph:
        return Graph(self, **facts)

    def refuses(self, graph: Graph) -> bool:
        return False


def served(library: Any, tf32: bool = False) -> CubeBackend:
    """Return the processor with a provider on a library."""
    backend = cpu.create(0)
    if tf32:
        backend.allow_tf32()
    runtime = SimpleNamespace(
        lock=threading.RLock(), use=lambda: None, alive=lambda: None,
        stream=SimpleNamespace(ptr=5),
    )  # fmt: skip
    backend.engine.providers["cudnn"] = CuDnn(runtime, library, backend.engine.tf32)
    backend.engine.keeps_last = True
    return backend


def call(backend: CubeBackend, name: str, *args: Any) -> Any:
    given = [backend.from_numpy(a, True) if isinstance(a, np.ndarray) else a for a in args]
    count = len(CATALOG[name].inputs)
    return backend.execute(CATALOG[name], given[:count], tuple(given[count:]))


def normal(dtype: str, *shape: int) -> Any:
    return RNG.standard_normal(shape).astype(NUMPY[dtype])


def expected(name: str, *args: Any) -> Any:
    wide = [
        burn.tensor(a.astype(np.float32), device=FLEX) if isinstance(a, np.ndarray) else a
        for a in args
    ]
    return getattr(FLEX.context, name)(*wide).numpy()


# Shapes of x and weight, then stride, padding, dilation and groups.
CASES = {
    "1d": ((2, 4, 11), (6, 2, 3), (2,), (1,), (1,), 2),
    "1d pointwise": ((2, 4, 11), (6, 4, 1), (1,), (0,), (1,), 1),
    "2d": ((2, 3, 9, 8), (5, 3, 3, 2), (2, 1), (1, 0), (1, 2), 1),
    "2d pointwise": ((2, 6, 5, 5), (4, 6, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "depthwise": ((2, 4, 6, 6), (4, 1, 3, 3), (1, 1), (1, 1), (1, 1), 4),
    "3d": ((1, 2, 4, 5, 6), (3, 2, 2, 2, 2), (1, 2, 1), (1, 0, 1), (1, 1, 1), 1),
}
TOLERANCE = {"FLOAT": 1e-5, "HALF": 2e-3, "BFLOAT16": 2e-2}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", NUMPY)
def test_the_three_convolutions(case: str, dtype: str) -> None:
    xs, ws, *how = CASES[case]
    library = Library()
    backend = served(library)
    x, w, b = normal(dtype, *xs), normal(dtype, *ws), normal(dtype, ws[0])
    want = expected("conv", x, w, b, *how)
    g = normal(dtype, *want.shape)
    jobs = [
        ("conv", (x, w, b), (), want), ("conv", (x, w, None), (), None),
        ("conv_input_grad", (g, w), (xs,), None), ("conv_weight_grad", (g, x), (ws,), None),
    ]  # fmt: skip
    for name, inputs, shape, known in jobs:
        want = expected(name, *inputs, *how, *shape) if known is None else known
        made = call(backend, name, *inputs, *how, *shape)
        halves = dtype != "FLOAT"
        if name != "conv_weight_grad" and len(xs) > 3 and want.shape[1] > 1:
            assert is_last(made.shape, made.strides) == halves
        if name == "conv_weight_grad":
            assert not is_last(made.shape, made.strides)
        if len(made.shape) < 4:
            assert is_dense(made.shape, made.strides)
        scale = max(1.0, float(np.abs(want).max()))
        tolerance = TOLERANCE[dtype]
        found = backend.to_numpy(made).astype(np.float32)
        np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance * scale)
    assert len(library.graphs) == 4
    for graph in library.graphs:
        assert {"NONDETERMINISTIC", "REDUCED_PRECISION_REDUCTION", "FFT"} <= set(graph.bars)
        # Of float32 tensor cores read the upper bits alone.
        assert ("TENSOR_CORE" in graph.bars) == (dtype == "FLOAT")
        assert graph.facts["compute_data_type"].name == "FLOAT"
    assert library.stream == (Library.handle, 5)


def test_float32_lies_as_halves_do_where_tf32_is_allowed() -> None:
    library = Library()
    backend = served(library, tf32=True)
    how = ((1, 1), (1, 1), (1, 1), 1)
    x, w = normal("FLOAT", 2, 4, 6, 6), normal("FLOAT", 4, 4, 3, 3)
    made = call(backend, "conv", x, w, None, *how)
    assert is_last(made.shape, made.strides)
    want = expected("conv", x, w, None, *how)
    np.testing.assert_allclose(backend.to_numpy(made), want, rtol=1e-5, atol=1e-5)
    assert "TENSOR_CORE" not in library.graphs[0].bars
    # One channel in: tensor cores are slower there. It lies either way, and what follows lies last.
    x, w = normal("FLOAT", 2, 1, 6, 6), normal("FLOAT", 4, 1, 3, 3)
    made = call(backend, "conv", x, w, None, *how)
    assert is_last(made.shape, made.strides)
    call(backend, "conv_weight_grad", backend.to_numpy(made), x, *how, w.shape)
    assert all("TENSOR_CORE" in graph.bars for graph in library.graphs[1:])
    orders = [graph.given[0].facts["stride"][1] == 1 for graph in library.graphs]
    assert orders == [True, True, False]


def test_plans_are_kept_by_shape_and_order() -> None:
    library = Library()
    backend = served(library)
    how = ((1, 1), (1, 1), (1, 1), 1)
    w = backend.from_numpy(normal("FLOAT", 4, 4, 3, 3), True)
    x = backend.from_numpy(normal("FLOAT", 2, 6, 6, 4), True)
    seen = backend.execute(CATALOG["permute"], [x], ((0, 3, 1, 2),))
    results = []
    for given in (seen, backend.engine.row_major(seen), seen):
        made = backend.execute(CATALOG["conv"], [given, w, None], how)
        results.append(backend.to_numpy(made))
        assert is_last(made.shape, made.strides) == (given is seen)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-5)
    assert results[0].tobytes() == results[2].tobytes()
    assert len(library.graphs) == 2


def test_windows_at_odd_places_are_copied() -> None:
    backend = served(Library())
    x = backend.from_numpy(normal("HALF", 1 + 2 * 4 * 6 * 6), True)
    window = x.view((2, 4, 6, 6), (144, 36, 6, 1), 1)
    w = backend.from_numpy(normal("HALF", 4, 4, 3, 3), True)
    how = ((1, 1), (1, 1), (1, 1), 1)
    made = backend.to_numpy(backend.execute(CATALOG["conv"], [window, w, None], how))
    plain = np.ascontiguousarray(backend.to_numpy(window)), backend.to_numpy(w)
    want = expected("conv", *plain, None, *how)
    np.testing.assert_allclose(made.astype(np.float32), want, rtol=2e-3, atol=2e-2)


def test_what_is_refused_goes_another_way_and_is_remembered() -> None:
    library = Library()
    library.refuses = lambda graph: True  # type: ignore[method-assign]
    backend = served(library)
    how = ((1, 1), (1, 1), (1, 1), 1)
    x, w, b = normal("FLOAT", 2, 3, 6, 6), normal("FLOAT", 4, 3, 3, 3), normal("FLOAT", 4)
    want = expected("conv", x, w, b, *how)
    for _ in range(2):
        made = backend.to_numpy(call(backend, "conv", x, w, b, *how))
        np.testing.assert_allclose(made, want, rtol=1e-5, atol=1e-5)
    # Row by row and channels last, the bias within and apart: each once.
    assert len(library.graphs) == 4
    g = normal("FLOAT", *want.shape)
    for name, inputs, shape in (
        ("conv_input_grad", (g, w), x.shape), ("conv_weight_grad", (g, x), w.shape),
    ):  # fmt: skip
        made = backend.to_numpy(call(backend, name, *inputs, *how, shape))
        known = expected(name, *inputs, *how, shape)
        np.testing.assert_allclose(made, known, rtol=1e-5, atol=2e-5)


def test_a_bias_that_is_refused_is_added_before_rounding() -> None:
    library = Library()
    library.refuses = lambda graph: graph.bias_of is not None  # type: ignore[method-assign]
    backend = served(library)
    how = ((1, 1), (1, 1), (1, 1), 1)
    x, w, b = normal("BFLOAT16", 2, 3, 6, 6), normal("BFLOAT16", 4, 3, 3, 3), normal("BFLOAT16", 4)
    made = call(backend, "conv", x, w, b, *how)
    assert made.dtype is d.bfloat16
    assert is_last(made.shape, made.strides)
    want = expected("conv", x, w, b, *how).astype(x.dtype)
    unequal = np.flatnonzero(backend.to_numpy(made).ravel() != want.ravel())
    # Sums in another order may round to the other side, now and then.
    assert len(unequal) <= made.size // 100
    assert library.graphs[-1].out.facts["data_type"].name == "FLOAT"


def test_float64_and_nothing_are_not_asked_for() -> None:
    library = Library()
    backend = served(library)
    how = ((1,), (1,), (1,), 1)
    x, w = RNG.standard_normal((2, 3, 6)), RNG.standard_normal((4, 3, 3))
    made = backend.to_numpy(call(backend, "conv", x, w, None, *how))
    flex = [burn.tensor(v, device=FLEX) for v in (x, w)]
    np.testing.assert_allclose(made, F.conv1d(*flex, padding=1).numpy(), rtol=1e-12, atol=1e-12)
    none = call(backend, "conv", normal("FLOAT", 0, 3, 6), normal("FLOAT", 4, 3, 3), None, *how)
    assert none.shape == (0, 4, 6)
    assert not library.graphs


def test_a_note_says_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = served(Library())
    engine = backend.engine
    how = ((1, 1), (1, 1), (1, 1), 1)
    x, w = normal("HALF", 2, 8, 6, 6), normal("HALF", 4, 8, 1, 1)
    last = backend.execute(
        CATALOG["permute"], [backend.from_numpy(np.ascontiguousarray(np.moveaxis(x, 1, -1)), True)],
        ((0, 3, 1, 2),),
    )  # fmt: skip
    weight = backend.from_numpy(w, True)
    how = ((1, 1), (0, 0), (1, 1), 1)
    log = LaunchLog([last, weight])
    monkeypatch.setattr(engine.client, "log", log)
    made = backend.execute(CATALOG["conv"], [last, weight, None], how)
    assert len(log.calls) == 1
    assert log.broken is None
    modes = [(p.word, p.base[0], p.mode) for p in log.pointers]
    assert modes == [
        (0, "input", READS), (1, "input", READS), (2, "block", WRITES), (3, "block", WRITES),
    ]  # fmt: skip
    # Made again with other addresses, it writes there.
    out = engine.flat(made.size, d.float16)
    words = np.frombuffer(log.calls[0].words, np.int64).tolist()
    log.calls[0].issue(*words[:2], out.pointer, words[3])
    again = made.on(out)
    assert backend.to_numpy(again).tobytes() == backend.to_numpy(made).tobytes()


def test_errors_name_the_remedy() -> None:
    class Lost(Library):
        def create_handle(self) -> int:
            raise RuntimeError("Unable to find symbol cudnnCreate")

    with pytest.raises(BackendLoadError, match="BURN_CUDA_CONV=off"):
        served(Lost())

    class Broken(Library):
        def refuses(self, graph: Graph) -> bool:
            raise RuntimeError("CUDNN_BACKEND_API_FAILED: out of luck")

    backend = served(Broken())
    x, w = normal("FLOAT", 2, 3, 6, 6), normal("FLOAT", 4, 3, 3, 3)
    with pytest.raises(LaunchError, match="out of luck"):
        call(backend, "conv", x, w, None, (1, 1), (1, 1), (1, 1), 1)


def test_a_question_that_the_library_calls_wrong_is_told(caplog: pytest.LogCaptureFixture) -> None:
    class Asked(Library):
        word = "CUDNN_STATUS_NOT_SUPPORTED"

        def refuses(self, graph: Graph) -> bool:
            raise RuntimeError(f"{self.word}: at most so many")

    x, w = normal("FLOAT", 2, 3, 6, 6), normal("FLOAT", 4, 3, 3, 3)
    how = ((1, 1), (1, 1), (1, 1), 1)
    want = F.conv2d(*(burn.tensor(v, device=FLEX) for v in (x, w)), padding=1).numpy()
    for word, told in (("CUDNN_STATUS_NOT_SUPPORTED", 0), ("CUDNN_STATUS_BAD_PARAM", 2)):
        caplog.clear()
        backend = served(type("Says", (Asked,), {"word": word})())
        for _ in range(2):  # once for each order of the elements
            made = backend.to_numpy(call(backend, "conv", x, w, None, *how))
            np.testing.assert_allclose(made, want, rtol=1e-5, atol=2e-5)
        said = [r.getMessage() for r in caplog.records if r.name == "burn.cuda"]
        assert len(said) == told
        assert all(word in line and "x=(2, 3, 6, 6)" in line for line in said)


def test_who_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    there = SimpleNamespace(origin="/site/cudnn/__init__.py")
    folder = SimpleNamespace(origin=None)
    device = SimpleNamespace(name="cuda:1")
    for found, name, setting, answer in (
        (there, device, None, True), (there, device, "off", False), (folder, device, None, False),
        (None, device, None, False), (there, SimpleNamespace(name="cpu"), None, False),
    ):  # fmt: skip
        monkeypatch.setattr(cudnn, "find_spec", lambda _, found=found: found)
        if setting is None:
            monkeypatch.delenv("BURN_CUDA_CONV", raising=False)
        else:
            monkeypatch.setenv("BURN_CUDA_CONV", setting)
        assert cudnn.wanted(name) is answer
