"""CUDA graphs of explicit kernel nodes: no capture, so allocation and other streams do not matter.

Nodes run one after the other, as the launches did. Grid and arguments of a node are replaced in
the executable graph, which costs a fraction of a launch.

Source: CUDA driver API, graph management; cupy has no calls for explicit nodes.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from burn_cube.errors import LaunchError
from burn_cube.runtime.base import Grid, Program

if TYPE_CHECKING:
    from burn_cube.runtime.cuda import CudaProgram, CudaRuntime


class NodeParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h, since CUDA 12."""

    _fields_ = [
        ("func", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("params", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kern", ctypes.c_void_p),
        ("ctx", ctypes.c_void_p),
    ]


@cache
def driver_library() -> ctypes.CDLL:
    """Return the driver's library, which cupy has loaded already."""
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    pointer, number = ctypes.c_void_p, ctypes.c_size_t
    signatures: dict[str, list[Any]] = {
        "cuGraphCreate": [pointer, ctypes.c_uint],
        "cuGraphAddKernelNode_v2": [pointer, pointer, pointer, number, pointer],
        "cuGraphInstantiateWithFlags": [pointer, pointer, ctypes.c_ulonglong],
        "cuGraphExecKernelNodeSetParams_v2": [pointer, pointer, pointer],
        "cuGraphAddChildGraphNode": [pointer, pointer, pointer, number, pointer],
        "cuGraphExecChildGraphNodeSetParams": [pointer, pointer, pointer],
        "cuStreamBeginCapture_v2": [pointer, ctypes.c_int],
        "cuStreamEndCapture": [pointer, pointer],
        "cuGraphLaunch": [pointer, pointer],
        "cuGraphExecDestroy": [pointer],
        "cuGraphDestroy": [pointer],
        "cuGetErrorString": [ctypes.c_int, pointer],
    }
    for name, arguments in signatures.items():
        call = getattr(library, name)
        call.argtypes = arguments
        call.restype = ctypes.c_int
    return library


def check(status: int, name: str) -> None:
    """Raise what the driver says of a call that failed."""
    if status:
        text = ctypes.c_char_p()
        driver_library().cuGetErrorString(status, ctypes.byref(text))
        words = (text.value or b"unknown error").decode()
        raise LaunchError("graph", f"the driver takes {name}", got=f"error {status}: {words}")


class CudaGraph:
    """Launches that are replayed together.

    Holds what its launches read and write for as long as it lives.

    Args:
        runtime: the device.
        launches: programs of the device with grid and arguments, in order.
    """

    def __init__(
        self, runtime: CudaRuntime, launches: Sequence[tuple[Program, Grid, Sequence[Any]]]
    ) -> None:
        self._runtime = runtime
        self._programs: list[CudaProgram] = []
        self._kept: list[Sequence[Any]] = []
        self._nodes: list[int] = []
        self._graph = ctypes.c_void_p()
        self._exec = ctypes.c_void_p()
        runtime.alive()
        driver = driver_library()
        with runtime.lock:
            runtime.use()
            check(driver.cuGraphCreate(ctypes.byref(self._graph), 0), "a new graph")
            for program, cubes, args in launches:
                self._add(program, cubes, args)
            made = driver.cuGraphInstantiateWithFlags(ctypes.byref(self._exec), self._graph, 0)
            check(made, "the graph")

    def _add(self, program: Any, cubes: Grid, args: Sequence[Any]) -> None:
        params = self._params(program, cubes, args)
        node = ctypes.c_void_p()
        before = (ctypes.c_void_p * 1)(self._nodes[-1] if self._nodes else 0)
        status = driver_library().cuGraphAddKernelNode_v2(
            ctypes.byref(node), self._graph, before, len(self._nodes[-1:]), ctypes.byref(params)
        )
        check(status, f"the launch of {program.kernel.name}")
        self._programs.append(program)
        self._kept.append(args)
        self._nodes.append(node.value or 0)

    def _params(self, program: CudaProgram, cubes: Grid, args: Sequence[Any]) -> NodeParams:
        if 0 in cubes:
            raise LaunchError(program.kernel.name, "a node of a graph has cubes", got=cubes)
        program.pack(args)
        unsigned = ctypes.c_uint * 3
        return NodeParams(
            program.function, unsigned(*cubes), unsigned(*program.kernel.cube_dim),
            program.source.shared, program.params, None, None, None,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self._nodes)

    def patch(self, node: int, cubes: Grid, args: Sequence[Any]) -> None:
        """Replace grid and arguments of one launch, by its number."""
        runtime, program = self._runtime, self._programs[node]
        with runtime.lock:
            runtime.use()
            params = self._params(program, cubes, args)
            status = driver_library().cuGraphExecKernelNodeSetParams_v2(
                self._exec, self._nodes[node], ctypes.byref(params)
            )
        check(status, f"the new arguments of {program.kernel.name}")
        self._kept[node] = args

    def replay(self) -> None:
        """Put all launches into the stream; returns at once."""
        runtime = self._runtime
        runtime.alive()
        with runtime.lock:
            runtime.use()
            runtime.recent.append((self._programs[-1], (1, 1, 1)))
            check(driver_library().cuGraphLaunch(self._exec, runtime.stream.ptr), "a replay")

    def __del__(self) -> None:
        # A forked child must not touch the parent's device.
        if self._runtime.is_owner():
            if self._exec.value is not None:
                driver_library().cuGraphExecDestroy(self._exec)
            if self._graph.value is not None:
                driver_library().cuGraphDestroy(self._graph)
