"""Compiles LLVM IR for this machine, and links objects from a cache without compiling."""

from __future__ import annotations

import platform
import threading
from functools import cache
from typing import Any

import llvmlite  # type: ignore[import-untyped]  # ships no types
import llvmlite.binding as llvm  # type: ignore[import-untyped]

_LOCK = threading.RLock()


# LLVM calls this when it moves a sign from float64 to float16, and no library of the process has
# it for certain. It rounds to float32 towards an odd mantissa first, so that the second rounding is
# the only one that counts.
ROUND_TO_HALF = """
define half @__truncdfhf2(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %exact = fcmp ueq double %back, %x
  %a = call double @llvm.fabs.f64(double %back)
  %b = call double @llvm.fabs.f64(double %x)
  %above = fcmp ogt double %a, %b
  %bits = bitcast float %near to i32
  %lower = sub i32 %bits, 1
  %cut = select i1 %above, i32 %lower, i32 %bits
  %odd = or i32 %cut, 1
  %kept = select i1 %exact, i32 %bits, i32 %odd
  %middle = bitcast i32 %kept to float
  %out = fptrunc float %middle to half
  ret half %out
}
declare double @llvm.fabs.f64(double)
"""
_HELPER = "__truncdfhf2"


class Jit:
    """The compiler and the linker of this process.

    Attributes:
        machine: what an object is compiled for, part of every cache key.
        vector_bytes: of the widest register for vectors.
    """

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        # The `pause` of the thread pool is inline assembler.
        llvm.initialize_native_asmparser()
        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        known = features.split(",")
        self.vector_bytes = 64 if "+avx512f" in known else 32 if "+avx2" in known else 16
        self.machine = f"{platform.machine()} {cpu} {features} {llvmlite.__version__}"
        self._target = llvm.Target.from_default_triple()
        self._settings = {
            "cpu": cpu, "features": features, "opt": 2, "reloc": "pic", "codemodel": "small",
        }  # fmt: skip
        self._tm = self._target.create_target_machine(**self._settings)
        # The parts of an object come to lie in one piece. The other linker takes memory for each;
        # where addresses are in use far and wide they end too far apart, and LLVM aborts.
        self._jit = llvm.create_lljit_compiler(
            self._target.create_target_machine(**self._settings), use_jit_link=True
        )
        self._quick: Any = None
        self._count = 0
        self._helper: int | None = None
        self._linked: list[Any] = []

    def compile(self, text: str, written_out: bool = False) -> bytes:
        """Return the object code of a module.

        Args:
            text: the module.
            written_out: its loops are in vectors and unrolled; no more of that is tried.
        """
        with _LOCK:
            module = llvm.parse_assembly(text)
            module.triple = self._tm.triple
            module.data_layout = str(self._tm.target_data)
            tuning = llvm.create_pipeline_tuning_options(speed_level=2)
            tuning.loop_vectorization = tuning.loop_unrolling = not written_out
            tuning.slp_vectorization = False
            builder = llvm.create_pass_builder(self._tm, tuning)
            builder.getModulePassManager().run(module, builder)
            made: bytes = self._tm.emit_object(module)
            return made

    def compile_soon(self, text: str) -> bytes:
        """Return the object code of a module that calls more than it computes.

        It is there in a tenth of the time, and such code is as fast.
        """
        with _LOCK:
            if self._quick is None:
                self._quick = self._target.create_target_machine(**{**self._settings, "opt": 0})
            module = llvm.parse_assembly(text)
            module.triple = self._quick.triple
            module.data_layout = str(self._quick.target_data)
            passes = llvm.create_new_module_pass_manager()
            passes.add_always_inliner_pass()
            tuning = llvm.create_pipeline_tuning_options(speed_level=1)
            passes.run(module, llvm.create_pass_builder(self._quick, tuning))
            made: bytes = self._quick.emit_object(module)
            return made

    def link(self, image: bytes, *symbols: str, **imports: int) -> list[int]:
        """Return the addresses of an object's functions.

        Args:
            image: the object.
            symbols: names of the functions.
            imports: addresses of functions that it calls.
        """
        with _LOCK:
            asks = _HELPER not in symbols and _HELPER.encode() in image
            helper = self._helping() if asks else 0
            self._count += 1
            library = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
            if helper:
                library = library.import_symbol(_HELPER, helper)
            for name, address in imports.items():
                library = library.import_symbol(name, address)
            for symbol in symbols:
                library = library.export_symbol(symbol)
            tracker = library.link(self._jit, f"burn{self._count}")
            # Code stays as long as the process: programs are few and small.
            self._linked.append(tracker)
            return [tracker[symbol] for symbol in symbols]

    def _helping(self) -> int:
        if self._helper is None:
            (self._helper,) = self.link(self.compile(ROUND_TO_HALF), _HELPER)
        return self._helper

    def assembly(self, text: str) -> str:
        """Return the assembler text of a module, for a person to read."""
        with _LOCK:
            module = llvm.parse_assembly(text)
            tuning = llvm.create_pipeline_tuning_options(speed_level=2)
            builder = llvm.create_pass_builder(self._tm, tuning)
            builder.getModulePassManager().run(module, builder)
            made: str = self._tm.emit_assembly(module)
            return made


@cache
def jit() -> Jit:
    """Return the one compiler of this process."""
    return Jit()
