"""A stand-in for cupy without a GPU: memory of the host, calls that are written down.

It has the calls that `burn_cube.runtime.cuda` makes, with cupy's names and arguments, so the
runtime's own work (packing, order, errors, reads) is tested where there is no device.
"""

import ctypes
import sys
from types import ModuleType, SimpleNamespace


class Failure(RuntimeError):
    """What cupy raises; `status` is the number of the error."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class RuntimeFailure(Failure):
    pass


class DriverFailure(Failure):
    pass


class CompilerFailure(Exception):
    pass


class FakeCuda:
    """One device; `launches` holds (function, grid, block, shared, stream, parameters).

    `formats` maps the name of a kernel to the letters of its parameters.
    """

    def __init__(self, memory=1 << 30, archs=(80, 90)):
        self.blocks = {}
        self.left = memory
        self.launches = []
        self.formats = {}
        self.functions = {}
        self.compiled = []
        self.attributes = []
        self.broken = None
        self.archs = archs
        self.events = 0
        self.pinned = []

    # --- memory ------------------------------------------------------------------------------

    def malloc(self, size):
        if size > self.left:
            raise RuntimeFailure(2, "cudaErrorMemoryAllocation: out of memory")
        self.left -= size
        block = ctypes.create_string_buffer(size)
        address = ctypes.addressof(block)
        self.blocks[address] = block
        return address

    def free(self, address):
        if address:
            self.left += len(self.blocks.pop(address))

    def memcpy(self, target, source, size, kind, stream):
        self.check()
        ctypes.memmove(target, source, size)

    def check(self, *_):
        if self.broken:
            raise RuntimeFailure(700, self.broken)

    # --- code --------------------------------------------------------------------------------

    def compile(self, program, options):
        self.compiled.append((program, options))
        if "broken_kernel" in program:
            raise CompilerFailure("NVRTC_ERROR_COMPILATION")

    def function(self, module, name):
        handle = 1000 + len(self.functions)
        self.functions[handle] = name
        return handle

    def launch(self, function, gx, gy, gz, bx, by, bz, shared, stream, params, extra):
        self.check()
        if gy > 65535 or gz > 65535:
            raise DriverFailure(1, "CUDA_ERROR_INVALID_VALUE: invalid argument")
        name = self.functions[function]
        types = self.formats[name]
        pointers = (ctypes.c_void_p * len(types)).from_address(params)
        values = [t.from_address(p).value for t, p in zip(types, pointers, strict=True)]
        assert all(p % ctypes.alignment(t) == 0 for t, p in zip(types, pointers, strict=True))
        self.launches.append((name, (gx, gy, gz), (bx, by, bz), shared, stream, values))

    def modules(self):
        """Return what `import cupy` and its parts give."""
        facts = {
            "name": b"Fake GPU", "major": 9, "minor": 0, "multiProcessorCount": 132,
            "totalGlobalMem": 1 << 30, "maxThreadsPerBlock": 1024,
            "maxGridSize": (2**31 - 1, 65535, 65535),
        }  # fmt: skip

        def new_event(flags):
            self.events += 1
            return self.events

        def pinned(size):
            self.pinned.append(ctypes.create_string_buffer(size))
            return SimpleNamespace(ptr=ctypes.addressof(self.pinned[-1]))

        runtime = ModuleType("cupy.cuda.runtime")
        vars(runtime).update(
            CUDARuntimeError=RuntimeFailure, cudaDevAttrMaxSharedMemoryPerBlockOptin=97,
            getDeviceCount=lambda: 1, getDeviceProperties=lambda index: facts,
            deviceGetAttribute=lambda attribute, index: 227 << 10, setDevice=lambda index: None,
            driverGetVersion=lambda: 13000, malloc=self.malloc, free=self.free,
            memcpyAsync=self.memcpy, streamSynchronize=self.check,
            eventCreateWithFlags=new_event, eventRecord=lambda event, stream: None,
            eventQuery=lambda event: 0, eventSynchronize=self.check,
            eventElapsedTime=lambda start, end: 0.25,
        )  # fmt: skip
        driver = ModuleType("cupy.cuda.driver")
        vars(driver).update(
            CUDADriverError=DriverFailure, launchKernel=self.launch,
            moduleLoadData=lambda image: 7, moduleGetFunction=self.function,
            funcSetAttribute=lambda *args: self.attributes.append(args),
        )  # fmt: skip
        nvrtc = ModuleType("cupy.cuda.nvrtc")
        vars(nvrtc).update(
            NVRTCError=CompilerFailure, getVersion=lambda: (13, 0),
            getSupportedArchs=lambda: self.archs,
            createProgram=lambda text, name, headers, names: text, compileProgram=self.compile,
            getCUBIN=lambda program: b"cubin", getPTX=lambda program: b"ptx",
            getProgramLog=lambda program: "line 3: what is this", destroyProgram=lambda p: None,
        )  # fmt: skip
        cuda = ModuleType("cupy.cuda")
        vars(cuda).update(
            runtime=runtime, driver=driver, nvrtc=nvrtc, alloc_pinned_memory=pinned,
            Stream=lambda non_blocking: SimpleNamespace(ptr=42),
        )  # fmt: skip
        cupy = ModuleType("cupy")
        vars(cupy).update(cuda=cuda)
        made = {"cupy": cupy, "cupy.cuda": cuda}
        return made | {f"cupy.cuda.{m.__name__[10:]}": m for m in (runtime, driver, nvrtc)}


def install(monkeypatch, **options):
    """Put a fake cupy in the place of the real one."""
    made = FakeCuda(**options)
    for name, module in made.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    return made
