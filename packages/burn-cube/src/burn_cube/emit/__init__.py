"""Emitters: from lowered IR to the text that a target compiles."""

from __future__ import annotations

from burn_cube.errors import LaunchError
from burn_cube.ir import Kernel


def source_of(target: str, kernel: Kernel) -> str:
    """Return the text that is compiled for a target.

    Args:
        target: `cpu` (LLVM IR), `opencl` (OpenCL C) or `cuda` (CUDA C++).
        kernel: what is compiled.

    Raises:
        LaunchError: no such target.
    """
    from burn_cube.lowering import lower

    if target == "cpu":
        from burn_cube.emit.llvm import emit_llvm

        return emit_llvm(lower(kernel, planes=True, math=True))
    if target == "opencl":
        from burn_cube.emit.opencl import emit_opencl

        return emit_opencl(kernel)
    if target == "cuda":
        from burn_cube.emit.cuda import emit_cuda

        return emit_cuda(kernel)
    raise LaunchError("source", "the target is cpu, opencl or cuda", got=repr(target))
