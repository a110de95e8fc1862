"""Objects are linked in processes whose addresses are in use far and wide."""

import platform
import subprocess
import sys

import pytest

pytest.importorskip("llvmlite")

# All addresses are taken but for some holes of three pages, six GiB apart.
PROGRAM = """
import ctypes
from burn_cube.runtime.llvm_jit import Jit

TEXT = '''
@t = private constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5]
define double @h(i64 %k) {
  %p = getelementptr [4 x double], ptr @t, i64 0, i64 %k
  %v = load double, ptr %p
  ret double %v
}
'''
PAGE, NOTHING, KIND = 4096, 0, 0x4022  # neither read nor written; private, anonymous, not reserved
jit = Jit()
image = jit.compile(TEXT)
jit.link(image, "h")
libc = ctypes.CDLL(None)
word, pointer, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
libc.mmap.restype = pointer
libc.mmap.argtypes = [pointer, word, number, number, number, ctypes.c_long]
libc.munmap.argtypes = [pointer, word]
size, taken = 1 << 46, []
while size >= PAGE:
    at = libc.mmap(None, size, NOTHING, KIND, -1, 0)
    if at in (None, ctypes.c_void_p(-1).value):
        size >>= 1
    else:
        taken.append((size, at))
size, base = max(taken)
for k in range(1, 64):
    if k * (6 << 30) + 3 * PAGE < size:
        libc.munmap(base + k * (6 << 30), 3 * PAGE)
for _ in range(8):
    (address,) = jit.link(image, "h")
    print(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_long)(address)(2))
"""


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="sizes of pages and of addresses are those of Linux on x86-64",
)
def test_parts_of_an_object_are_never_far_apart():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["3.5"] * 8
