"""The device `cuda` without a GPU: kernels compiled for the host, graphs in any order they allow.

    python -m tests.cube.cuda_on_host FOLDER    # trains on it and on flex, and compares

A process of its own, since the name of the device then means this one.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "packages" / "burn-cube" / "tests"))
import fake_cuda
import host_cuda

sys.path.pop(0)


class Host:
    """Kernels as the driver knows them: by number."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources: list[str] = []
        self.built: dict[str, Any] = {}

    def load(self, image: bytes) -> int:
        self.sources.append(image.decode())
        return len(self.sources) - 1

    def counted(self, function: int) -> int:
        source = self.sources[function]
        found = re.search(r"\(([^()]*)\)\s*\{", source[source.rindex("__global__") :])
        assert found is not None
        return len([p for p in found[1].split(",") if p.strip()])

    def launch(self, function: int, *rest: int) -> None:
        source = self.sources[function]
        if source not in self.built:
            self.built.update(host_cuda.build([source], self.folder))
        grid, block, params = rest[:3], rest[3:6], rest[8]
        three = ctypes.c_uint * 3
        self.built[source](ctypes.c_void_p(params), three(*grid), three(*block))


def install(folder: Path) -> Any:
    """Put the device in the place of `cuda`; return its graphs."""
    patch = pytest.MonkeyPatch()
    made, host = fake_cuda.install(patch, memory=1 << 32), Host(folder)
    for name in [n for n in sys.modules if n.partition(".")[0] == "cupy"]:
        sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None, origin="here")
    driver, nvrtc = sys.modules["cupy.cuda.driver"], sys.modules["cupy.cuda.nvrtc"]
    patch.setattr(nvrtc, "getCUBIN", str.encode)
    patch.setattr(driver, "moduleLoadData", host.load)
    patch.setattr(driver, "moduleGetFunction", lambda module, name: module)
    patch.setattr(driver, "launchKernel", host.launch)
    made.counted = host.counted
    from burn_cube_backend.kernels import cublas

    graphs = fake_cuda.install_graphs(patch, made)
    patch.setattr(cublas, "CuBlas", library(cublas, graphs))
    return graphs


def library(cublas: Any, graphs: Any) -> Any:
    """Return numpy in the place of cuBLAS; two products in one lane may not meet."""

    class Products(cublas.CuBlas):  # type: ignore[misc]
        def __init__(self, runtime: Any, tf32: bool) -> None:
            self.runtime, self.tf32 = runtime, tf32
            self.plans: dict[Any, Any] = {}
            self.lane = 0
            self.lanes: set[int] = set()

        def take(self, lane: int) -> None:
            self.lane = lane

        def plan(
            self, dtype: Any, shape: Any, x: Any, y: Any, steps: Any, batch: Any
        ) -> Any:  # fmt: skip
            real = cublas.dense((*batch, *shape[:2]))
            about = (shape, (x.turned, x.lead), (y.turned, y.lead), steps, int(np.prod(batch)))
            out = (*batch, *shape[:2])
            size = int(np.prod(out))
            return cublas.Plan(None, (np.dtype(dtype.name), *about), (), (), (), out, real, size)

        def call(self, plan: Any, right: int, left: int, out: int) -> None:
            lane = self.lane

            def work() -> None:
                self.lanes.add(lane)
                dtype, (m, n, k), x, y, steps, count = plan.head
                for b in range(count):
                    one = matrix(left + b * steps[0] * dtype.itemsize, dtype, m, k, *x)
                    two = matrix(right + b * steps[1] * dtype.itemsize, dtype, k, n, *y)
                    start = out + b * m * n * dtype.itemsize
                    matrix(start, dtype, m, n, False, n)[...] = one @ two

            graphs.library(work)

    return Products


def matrix(address: int, dtype: Any, rows: int, columns: int, turned: bool, lead: int) -> Any:
    """Return memory as a matrix."""
    if turned:
        return matrix(address, dtype, columns, rows, False, lead).T
    size = ((rows - 1) * lead + columns) * dtype.itemsize
    flat = np.frombuffer((ctypes.c_char * size).from_address(address), dtype)
    steps = (lead * dtype.itemsize, dtype.itemsize)
    return np.lib.stride_tricks.as_strided(flat, (rows, columns), steps)


def trained(name: str, capture: bool) -> list[Any]:
    """Return the losses and parameters of a few steps."""
    import burn
    from burn import nn, optim

    device = burn.device(name)
    tracked = device.autodiff()
    burn.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(24, 32, device=tracked), nn.ReLU(), nn.Linear(32, 32, device=tracked), nn.ReLU(),
        nn.Linear(32, 4, device=tracked),
    )  # fmt: skip
    optimizer = optim.Adam(lr=1e-2)

    def step(x: Any, y: Any) -> Any:
        loss = burn.functional.cross_entropy(model(x), y)
        optimizer.step(model, loss.backward())
        return loss

    run = burn.capture(step, state=(model, optimizer)) if capture else step
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(14):
        x = burn.tensor(rng.standard_normal((8, 24)).astype(np.float32), device=device)
        losses.append(run(x, burn.tensor(rng.integers(0, 4, 8), device=device)).item())
    return [np.array(losses), *(p.numpy() for p in model.parameters())]


def results(name: str) -> dict[str, Any]:
    """Return what operations make whose kernels have forms that only a GPU has."""
    import burn

    F, device = burn.functional, burn.device(name)
    rng = np.random.default_rng(0)
    # Enough elements for vectors.
    left, right = (rng.standard_normal((160, 128)).astype(np.float32) for _ in range(2))
    a, b, row = (burn.tensor(v, device=device) for v in (left, right, left[0]))
    y = burn.tensor(rng.integers(0, 128, 160), device=device)
    image = burn.tensor(rng.standard_normal((8, 16, 14, 14)).astype(np.float32), device=device)
    packed = b.quantize(burn.quantized(4, block=32))
    odd = (b[:, 1:] * 1).quantize(burn.quantized(4, symmetric=False, block=32))
    tracked = device.autodiff()

    def slope(made: Any, x: Any) -> Any:
        leaf = x.to_device(tracked).detach().require_grad()
        return leaf.grad(made(leaf).sum().backward())

    device.sync()
    found = {
        "vectors": a + b, "vectors of lines": a[:, 4:] * b[:, 4:] + row[4:], "odd": a[1:, 1:] * 2,
        "turned": a[:128].t() + b[:128], "halves": (a.half() * row.half()).float(),
        "joint": burn.cat([-a[:, 64:], a[:, :64]], -1) * b, "rim": F.pad(a, (1, 3, 2, 0)) * 2,
        "loss": F.cross_entropy(a * 0.5, y), "columns": (a * b).sum(0),
        "gradient of a loss": slope(lambda x: F.cross_entropy(x * 0.5, y.to_device(tracked)), a),
        "norm": F.relu(F.batch_norm(image, None, None, training=True)),
        "mean of planes": F.adaptive_avg_pool2d(image, (1, 1)),
        "its gradient": slope(lambda x: F.adaptive_avg_pool2d(x, (1, 1)) ** 2, image),
        "packed": F.linear(a[:3], packed), "packed columns": a.t()[:3] @ packed,
        "packed odd": F.linear(a[:3, 1:], odd), "packed odd columns": a.t()[:3] @ odd,
    }  # fmt: skip
    return {key: value.numpy() for key, value in found.items()}


def quantised() -> None:
    """Run plans with quantised inputs and results again, as graphs."""
    os.environ["BURN_DEVICE"] = "cuda"
    import burn
    from tests.cube import test_quantized_replays as tests

    assert tests.FUSED.name.startswith("cuda")
    tests.test_one_matrix_and_scales_that_change()
    tests.test_results_that_are_quantised(burn.quantized(4, symmetric=False, block=32))
    tests.test_gradients_and_an_input_beside_its_integers()
    tests.test_captured_steps()


def main() -> None:
    graphs = install(Path(sys.argv[1]))
    made = {name: results(name) for name in ("flex", "cuda", "eager-cuda")}
    for key, value in made["flex"].items():
        for name in ("cuda", "eager-cuda"):
            close = 2e-2 if key == "halves" or "packed" in key else 1e-4
            np.testing.assert_allclose(made[name][key], value, close, close, err_msg=key)
    expected = trained("flex", False)
    for capture in (False, True):
        before = graphs.launched
        found = trained("cuda", capture)
        assert graphs.launched > before + 6
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    quantised()
    import burn
    from burn_cube_backend.kernels.cublas import provider

    engine: Any = burn.device("cuda").resource.backend.inner.engine
    products: Any = provider(engine)
    assert products.lanes == {0, 1}
    print("equal")


if __name__ == "__main__":
    main()
