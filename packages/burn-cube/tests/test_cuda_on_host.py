"""CUDA sources run on the processor: every case through the cuda runtime, without a GPU."""

import ctypes
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import burn_cube as bc
from burn_cube.conformance import cases, check
from burn_cube.conformance.case import run_on
from burn_std.dtypes import float32

sys.path.insert(0, str(Path(__file__).parent))
import fake_cuda
import host_cuda

sys.path.pop(0)

pytestmark = pytest.mark.skipif(not host_cuda.available(), reason="needs g++")


@bc.cube
def tile_product(
    a: bc.Array[bc.Float], b: bc.Array[bc.Float], c: bc.Array[float32],
    *, size, start, stride, layouts, shared,
):  # fmt: skip
    left, right = a, b
    if shared:
        left, right = bc.SharedMemory(bc.Float, size), bc.SharedMemory(bc.Float, size)
        for i in range(bc.UNIT_POS, size, bc.CUBE_DIM):
            left[i] = a[i]
            right[i] = b[i]
        bc.sync_cube()
    x = bc.tile_load("a", left, start, stride, layout=layouts[0])
    y = bc.tile_load("b", right, start, stride, layout=layouts[1])
    bc.tile_store(c, 0, 16, bc.tile_mma(x, y, bc.tile_load("acc", c, 0, 16)))


class Host:
    """Collects the sources of a first run, compiles them together, runs them from then on."""

    def __init__(self, folder):
        self.sources = []
        self.built = {}
        self.folder = folder

    def load(self, image):
        self.sources.append(image.decode())
        return len(self.sources) - 1

    def launch(self, function, gx, gy, gz, bx, by, bz, shared, stream, params, extra):
        run = self.built.get(self.sources[function])
        if run is not None:
            three = ctypes.c_uint * 3
            run(ctypes.c_void_p(params), three(gx, gy, gz), three(bx, by, bz))

    def build(self):
        missing = sorted(set(self.sources) - set(self.built))
        self.built.update(host_cuda.build(missing, self.folder))


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    return Host(tmp_path_factory.mktemp("host"))


@pytest.fixture(scope="module")
def device(host):
    from burn_cube.runtime import queued
    from burn_cube.runtime.cache import DiskCache
    from burn_cube.runtime.client import Client
    from burn_cube.runtime.cuda import CudaPlugin

    patch = pytest.MonkeyPatch()
    fake_cuda.install(patch)
    driver, nvrtc = sys.modules["cupy.cuda.driver"], sys.modules["cupy.cuda.nvrtc"]
    patch.setattr(nvrtc, "getCUBIN", lambda program: program.encode())
    patch.setattr(driver, "moduleLoadData", host.load)
    patch.setattr(driver, "moduleGetFunction", lambda module, name: module)
    patch.setattr(driver, "launchKernel", host.launch)
    patch.setattr(queued, "kernel_cache", lambda: DiskCache(None))
    yield Client(CudaPlugin().create(0))
    patch.undo()


def test_every_case_gives_what_the_interpreter_gives(device, host):
    chosen = cases()
    for case in chosen:
        run_on(case, device)  # compiles only
    host.build()
    wrong = {}
    for case in chosen:
        try:
            check(case, device)
            device.sync()
        except AssertionError as error:
            wrong[case.name] = str(error)
    assert wrong == {}


def stored(matrix, layout, stride, start, size):
    out = np.zeros(size, np.float32)
    for (row, col), value in np.ndenumerate(matrix):
        out[start + (row * stride + col if layout == "row" else col * stride + row)] = value
    return out


def as_dtype(array, name):
    if name != "bfloat16":
        return array.astype(name)
    return array.astype(ml_dtypes.bfloat16)


def test_tiles_of_every_kind_and_place(device, host):
    rng = np.random.default_rng(0)
    runs = []
    size = 8 + 16 * 24 + 16
    for name, inner in (("float16", 16), ("bfloat16", 16), ("float32", 8)):
        # Aligned rows go through ldmatrix; odd strides and starts go element by element.
        for stride, start in ((24, 8), (19, 3)):
            for layouts in (("row", "row"), ("row", "col"), ("col", "row"), ("col", "col")):
                for shared in (False, True):
                    left = rng.integers(-8, 8, (16, inner)).astype(np.float32)
                    right = rng.integers(-8, 8, (inner, 16)).astype(np.float32)
                    given = [
                        device.from_numpy(as_dtype(stored(part, layout, stride, start, size), name))
                        for part, layout in zip((left, right), layouts, strict=True)
                    ]
                    options = {
                        "size": size, "start": start, "stride": stride, "layouts": layouts,
                        "shared": shared, "cube_dim": 32,
                    }  # fmt: skip
                    runs.append((name, left, right, given, options))
    out = device.zeros(256, float32)
    for _, _, _, given, options in runs:
        tile_product.launch(device, 1, *given, out, **options)
    host.build()
    for name, left, right, given, options in runs:
        before = rng.integers(-8, 8, (16, 16)).astype(np.float32)
        out = device.from_numpy(before.reshape(-1))
        tile_product.launch(device, 1, *given, out, **options)
        wanted = left @ right + before
        np.testing.assert_array_equal(out.numpy().reshape(16, 16), wanted, f"{name} {options}")
