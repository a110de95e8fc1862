"""For packages that make kernels without Python source, and for runtimes of third parties.

The builder itself is `burn_cube.Builder`. Here: the IR it makes, the passes, the interpreter, the
interface that a runtime implements, the caches, and autotuning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn_cube.aliasing import Over as Over, overlays as overlays
from burn_cube.autotune import (
    Candidate as Candidate,
    Tuner as Tuner,
    anchor as anchor,
    frozen as frozen,
)
from burn_cube.emit import source_of as source_of
from burn_cube.interpreter import interpret as interpret
from burn_cube.ir import (
    Kernel as Kernel,
    Op as Op,
    Region as Region,
    read as read,
    walk as walk,
    written as written,
)
from burn_cube.lowering import lower as lower
from burn_cube.passes import simplify as simplify
from burn_cube.runtime.base import (
    API_VERSION as API_VERSION,
    Event as Event,
    Plugin as Plugin,
    Program as Program,
    Properties as Properties,
    Runtime as Runtime,
)
from burn_cube.runtime.cache import (
    DiskCache as DiskCache,
    digest_of as digest_of,
    kernel_cache as kernel_cache,
)
from burn_cube.runtime.cuda_calls import CudaCall as CudaCall
from burn_cube.runtime.native_calls import NativeCall as NativeCall, number_word as number_word
from burn_cube.runtime.opencl_calls import OpenClCall as OpenClCall
from burn_cube.runtime.profiling import profiles as profiles
from burn_cube.runtime.record import Record as Record
from burn_cube.types import (
    Memory as Memory,
    Tile as Tile,
    Type as Type,
    scalar_of as scalar_of,
    width_of as width_of,
)
from burn_cube.verify import verify as verify

if TYPE_CHECKING:
    from burn_cube.runtime.llvm_jit import Jit


def jit() -> Jit:
    """Return the compiler of the cpu runtime, for native code beside kernels (needs llvmlite)."""
    from burn_cube.runtime.llvm_jit import jit as compiler

    return compiler()
