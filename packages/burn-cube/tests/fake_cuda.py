"""A stand-in for cupy without a GPU: memory of the host, calls that are written down.

It has the calls that `burn_cube.runtime.cuda` makes, with cupy's names and arguments, so the
runtime's own work (packing, order, errors, reads) is tested where there is no device.
"""

import ctypes
import random
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

    def counted(self, function):
        """Return how many parameters a kernel has."""
        return len(self.formats[self.functions[function]])

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


class FakeGraphs:
    """The driver's calls for graphs; a launch runs nodes in any order that keeps their edges.

    Attributes:
        patched: nodes that got other arguments.
        launched: graphs that were launched.
        refuses: a launch fails.
    """

    def __init__(self, cuda, seed=0):
        self.cuda = cuda
        self.random = random.Random(seed)
        self.patched = self.launched = 0
        self.refuses = False
        self.objects = {}
        self.captured = None
        pointer, number = ctypes.c_void_p, ctypes.c_size_t
        graph, node = (pointer, ctypes.c_uint), (pointer, pointer, pointer, number, pointer)
        signatures = {
            "cuGraphCreate": graph, "cuGraphAddKernelNode_v2": node,
            "cuGraphInstantiateWithFlags": (pointer, pointer, ctypes.c_ulonglong),
            "cuGraphExecKernelNodeSetParams_v2": (pointer,) * 3, "cuGraphAddChildGraphNode": node,
            "cuGraphExecChildGraphNodeSetParams": (pointer,) * 3,
            "cuStreamBeginCapture_v2": (pointer, ctypes.c_int),
            "cuStreamEndCapture": (pointer,) * 2, "cuGraphLaunch": (pointer,) * 2,
            "cuGraphExecDestroy": (pointer,), "cuGraphDestroy": (pointer,),
            "cuGetErrorString": (ctypes.c_int, pointer),
        }  # fmt: skip
        for name, arguments in signatures.items():
            setattr(self, name, ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(getattr(self, name[2:])))

    def put(self, place, thing):
        number = len(self.objects) + 1
        self.objects[number] = thing
        ctypes.c_void_p.from_address(place).value = number
        return 0

    def library(self, call):
        """Do what a library does with a stream: at once, or noted while the stream is captured."""
        if self.captured is None:
            call()
        else:
            self.captured.append(call)

    def kernel(self, params):
        """Return what a kernel node does, with the arguments as they are now."""
        from burn_cube.runtime.cuda_graph import NodeParams

        p = NodeParams.from_address(params)
        function, grid, block, shared = p.func or 0, tuple(p.grid), tuple(p.block), p.shared
        count = self.cuda.counted(function)
        places = (ctypes.c_void_p * count).from_address(p.params)
        slots = (ctypes.c_int64 * max(count, 1))(
            *[ctypes.c_int64.from_address(place).value for place in places]
        )
        first = ctypes.addressof(slots)
        pointers = (ctypes.c_void_p * max(count, 1))(*range(first, first + 8 * count, 8))

        def run(keep=slots):
            start = sys.modules["cupy.cuda.driver"].launchKernel
            start(function, *grid, *block, shared, 42, ctypes.addressof(pointers), 0)

        return run

    def node(self, out, graph, before, count, work):
        waits = [*(ctypes.c_void_p * count).from_address(before)] if count else []
        self.put(out, None)
        self.objects[graph][ctypes.c_void_p.from_address(out).value] = (waits, work)
        return 0

    # The driver's names follow, without their first two letters.

    def GraphCreate(self, out, flags):
        return self.put(out, {})

    def GraphAddKernelNode_v2(self, out, graph, before, count, params):
        return self.node(out, graph, before, count, [self.kernel(params)])

    def GraphAddChildGraphNode(self, out, graph, before, count, child):
        return self.node(out, graph, before, count, self.objects[child])

    def GraphInstantiateWithFlags(self, out, graph, flags):
        return self.put(out, dict(self.objects[graph]))

    def GraphExecKernelNodeSetParams_v2(self, made, node, params):
        self.patched += 1
        self.objects[made][node] = self.objects[made][node][0], [self.kernel(params)]
        return 0

    def GraphExecChildGraphNodeSetParams(self, made, node, child):
        self.patched += 1
        self.objects[made][node] = self.objects[made][node][0], self.objects[child]
        return 0

    def StreamBeginCapture_v2(self, stream, mode):
        self.captured = []
        return 0

    def StreamEndCapture(self, stream, out):
        captured, self.captured = self.captured, None
        return self.put(out, captured)

    def GraphLaunch(self, made, stream):
        if self.refuses:
            return 700
        self.launched += 1
        waiting, done = dict(self.objects[made]), set()
        while waiting:
            ready = [k for k, (before, _) in waiting.items() if done.issuperset(before)]
            k = self.random.choice(ready)
            for call in waiting.pop(k)[1]:
                call()
            done.add(k)
        return 0

    def GraphExecDestroy(self, made):
        self.objects[made] = None
        return 0

    def GraphDestroy(self, graph):
        return 0

    def GetErrorString(self, status, out):
        return 0


def install_graphs(monkeypatch, cuda, seed=0):
    """Put graphs in the place of the driver's."""
    from burn_cube.runtime import cuda_calls, cuda_graph

    made = FakeGraphs(cuda, seed)
    for module in (cuda_calls, cuda_graph):
        monkeypatch.setattr(module, "driver_library", lambda: made)
    return made
