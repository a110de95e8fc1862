"""Runs CUDA sources on the processor: a header in the place of CUDA's, a fiber for each unit.

So the meaning of what the CUDA emitter writes is tested where there is no GPU: arithmetic, vector
accesses, barriers, shuffles, atomics. What is inline PTX has a plain twin here.
"""

import ctypes
import re
import shutil
import subprocess

HEADER = r"""
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <ucontext.h>
#include <vector>
#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static
#define __launch_bounds__(n)
struct dim { unsigned x, y, z; };
static dim threadIdx, blockIdx, gridDim, cubeDim;
template <typename T, typename F> T as(F f) { T t; std::memcpy(&t, &f, sizeof(T)); return t; }
static unsigned __float_as_uint(float f) { return as<unsigned>(f); }
static float __uint_as_float(unsigned u) { return as<float>(u); }
static long long __double_as_longlong(double d) { return as<long long>(d); }
static double __longlong_as_double(long long l) { return as<double>(l); }
static int __popc(unsigned v) { return __builtin_popcount(v); }
static int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
static int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
static int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
static int __ffs(int v) { return __builtin_ffs(v); }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
static float rsqrtf(float x) { return (float)(1.0 / std::sqrt((double)x)); }
static double rsqrt(double x) { return 1.0 / std::sqrt(x); }
#define ATOMIC(name, expr) \
  template <typename T> static T name(T* p, T v) { T old = *p; *p = (expr); return old; }
ATOMIC(atomicAdd, old + v) ATOMIC(atomicSub, old - v) ATOMIC(atomicExch, v)
ATOMIC(atomicMin, v < old ? v : old) ATOMIC(atomicMax, v > old ? v : old)
ATOMIC(atomicAnd, old & v) ATOMIC(atomicOr, old | v) ATOMIC(atomicXor, old ^ v)
template <typename T> static T atomicCAS(T* p, T a, T b) {
  T old = *p;
  if (old == a) *p = b;
  return old;
}

// Units of a cube take turns; a barrier hands over to the next one.
static std::vector<ucontext_t> units;
static std::vector<dim> places;
static std::vector<char> finished;
static ucontext_t scheduler;
static unsigned current;
static void __syncthreads() { swapcontext(&units[current], &scheduler); }
static void __syncwarp() { __syncthreads(); }
static unsigned long long slots[1024];
static unsigned linear() {
  return threadIdx.x + cubeDim.x * (threadIdx.y + cubeDim.y * threadIdx.z);
}
template <typename T> static T __shfl_sync(unsigned, T v, int from, int width) {
  const unsigned me = linear();
  std::memcpy(&slots[me], &v, sizeof(T));
  __syncthreads();
  T got;
  std::memcpy(&got, &slots[me - me % width + from], sizeof(T));
  __syncthreads();
  return got;
}
static unsigned __ballot_sync(unsigned, bool b) {
  const unsigned me = linear(), size = cubeDim.x * cubeDim.y * cubeDim.z;
  slots[me] = b;
  __syncthreads();
  unsigned bits = 0;
  for (unsigned i = 0; i < 32 && me - me % 32 + i < size; ++i)
    bits |= (unsigned)slots[me - me % 32 + i] << i;
  __syncthreads();
  return bits;
}
// Tensor cores: fragments are laid open, and each unit computes its own sums from them.
static unsigned lefts[1024][4], rights[1024][4];
static float element(int kind, unsigned word, int high) {
  const unsigned short half = (unsigned short)(high ? word >> 16 : word);
  if (kind == 0) return (float)as<_Float16>(half);
  return kind == 1 ? as<float>((unsigned)half << 16) : as<float>(word);
}
template <int KIND, typename O, typename S> static S host_mma(O a, O b, S c) {
  const unsigned me = linear(), base = me - me % 32, g = me % 32 / 4, t = me % 4;
  std::memcpy(lefts[me], a.r, 16);
  std::memcpy(rights[me], b.r, 16);
  __syncthreads();
  for (int j = 0; j < 8; ++j) {
    const int row = g + (j / 2 % 2) * 8, col = t * 2 + j % 2 + j / 4 * 8;
    for (int k = 0; k < (KIND == 2 ? 8 : 16); ++k) {
      const int lane = KIND == 2 ? k % 4 : k % 8 / 2, upper = KIND == 2 ? k / 4 : k / 8;
      const unsigned x = lefts[base + row % 8 * 4 + lane][row / 8 + 2 * upper];
      const unsigned y = rights[base + col % 8 * 4 + lane][col / 8 * 2 + upper];
      c.r[j] += element(KIND, x, k % 2) * element(KIND, y, k % 2);
    }
  }
  __syncthreads();
  return c;
}
static const unsigned short* rows[1024];
template <typename O> static O host_ldmatrix(const unsigned short* row, bool transposed) {
  const unsigned me = linear(), base = me - me % 32, g = me % 32 / 4, t = me % 4;
  rows[me] = row;
  __syncthreads();
  O o;
  for (int j = 0; j < 4; ++j) {
    const unsigned first = base + j * 8;
    o.r[j] = transposed ? rows[first + t * 2][g] | rows[first + t * 2 + 1][g] << 16
                        : rows[first + g][t * 2] | rows[first + g][t * 2 + 1] << 16;
  }
  __syncthreads();
  return o;
}
// Four planes: operands are found by what a descriptor says, sums are those of the planes.
static unsigned char* asked_start;
static const unsigned* held_left[1024];
static unsigned short described(unsigned long long at, bool turned, int outer, int k) {
  const unsigned long long start = (at & 0x3fff) << 4, leading = (at >> 16 & 0x3fff) << 4,
    stride = (at >> 32 & 0x3fff) << 4;
  if (at >> 62 != 1 || (at >> 49 & 7)) std::abort();
  unsigned long long place = start;
  if (turned) place += outer / 64 * leading + k / 8 * stride + k % 8 * 128 + outer % 64 * 2;
  else place += outer / 8 * stride + outer % 8 * 128 + k * 2;
  place ^= (place >> 7 & 7) << 4;
  return *(const unsigned short*)(asked_start + place);
}
template <int TILES, int KIND, bool LA, bool RA>
static void host_group(float** sums, const unsigned* held, unsigned long long left,
                       unsigned long long right, bool keep) {
  const unsigned me = linear(), base = me - me % 32, g = me % 32 / 4, t = me % 4;
  if (held) { held_left[me] = held; __syncthreads(); }
  for (int n = 0; n < TILES * 8; ++n) {
    const int row = g + (n / 2 % 2) * 8, col = t * 2 + n % 2 + n / 4 * 8;
    float total = keep ? *sums[n] : 0.0f;
    for (int k = 0; k < 16; ++k) {
      const float a = held
        ? element(KIND, held_left[base + row % 8 * 4 + k % 8 / 2][row / 8 + 2 * (k / 8)], k % 2)
        : element(KIND, described(left, LA, me / 32 % 4 * 16 + row, k), 0);
      total += a * element(KIND, described(right, RA, col, k), 0);
    }
    *sums[n] = total;
  }
  __syncthreads();
}
template <typename... A, size_t... I>
static void call(void (*f)(A...), void** p, std::index_sequence<I...>) {
  f(*(std::remove_const_t<A>*)p[I]...);
}
static void (*entry)(void**);
static void** arguments;
static void unit() {
  entry(arguments);
  finished[current] = 1;
  swapcontext(&units[current], &scheduler);
}
template <typename... A> static void run(void (*)(A...), void (*enter)(void**), void** p,
                                         const unsigned* grid, const unsigned* cube) {
  gridDim = {grid[0], grid[1], grid[2]};
  cubeDim = {cube[0], cube[1], cube[2]};
  entry = enter; arguments = p;
  const unsigned size = cube[0] * cube[1] * cube[2];
  static std::vector<std::vector<char>> stacks;
  if (stacks.size() < size) stacks.resize(size, std::vector<char>(1 << 16));
  for (unsigned c = 0; c < grid[0] * grid[1] * grid[2]; ++c) {
    blockIdx = {c % grid[0], c / grid[0] % grid[1], c / (grid[0] * grid[1])};
    units.assign(size, ucontext_t{}); finished.assign(size, 0);
    for (unsigned u = 0; u < size; ++u) {
      getcontext(&units[u]);
      units[u].uc_stack.ss_sp = stacks[u].data(); units[u].uc_stack.ss_size = stacks[u].size();
      units[u].uc_link = nullptr;
      makecontext(&units[u], unit, 0);
    }
    for (unsigned left = size; left;) {
      left = 0;
      for (current = 0; current < size; ++current) {
        if (finished[current]) continue;
        const unsigned u = current;
        threadIdx = {u % cube[0], u / cube[0] % cube[1], u / (cube[0] * cube[1])};
        swapcontext(&scheduler, &units[u]);
        left += !finished[u];
      }
    }
  }
}
"""

# Plain twins of inline PTX and of what only nvcc takes in this order.
TWINS = {
    'f32 x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h)); return x;':
        "return (float)as<_Float16>(h);",
    'u16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h;':
        "return as<u16>((_Float16)x);",
    "__shared__ alignas(16)": "alignas(16) static",
    "extern __shared__ __align__(1024) u8 asked_shared[];":
        "alignas(1024) static u8 asked_shared[232448]; asked_start = asked_shared;",
    'asm("{.reg .u64 s; cvta.to.shared.u64 s, %1; cvt.u32.u64 %0, s;}" : "=r"(place) : "l"(p));\n'
    "  return place;": "return (u32)((const unsigned char*)p - asked_start);",
}  # fmt: skip


# A whole function or block, from its first words to its last.
BLOCKS = {
    r'u32 n; asm\("mov\.u32 %0, %%laneid;" : "=r"\(n\)\); return n;': "return linear() % 32;",
    r"(void copy_ahead\(T\* to, const T\* from\)) \{.*?\n}":
        r"\1 { std::memcpy(to, from, BYTES); }",
    r"(void copy_aligned\(T\* to, const T\* from, const bool inside\)) \{.*?\n}":
        r"\1 { if (inside) std::memcpy(to, from, BYTES); else std::memset((void*)to, 0, BYTES); }",
    r"  u32 place;\n  asm.*?return o;": "  return host_ldmatrix<Operand>(row, !ALONG_K);",
    r'asm volatile\("cp\.async\.(wait|commit)\w*( \d)?;" : : : "memory"\);': "",
    r'asm\("cvt\.rn\.f16x2.*?return w;':
        "return as<u16>((_Float16)low) | (u32)as<u16>((_Float16)high) << 16;",
    r"FN Sums tile_mma_f16\(.*?\n}":
        "FN Sums tile_mma_f16(Operand a, Operand b, Sums c) { return host_mma<0>(a, b, c); }",
    r"FN Sums tile_mma_bf16\(.*?\n}":
        "FN Sums tile_mma_bf16(Operand a, Operand b, Sums c) { return host_mma<1>(a, b, c); }",
    r"FN Sums tile_mma_f32\(.*?\n}":
        "FN Sums tile_mma_f32(Operand a, Operand b, Sums c) { return host_mma<2>(a, b, c); }",
}  # fmt: skip


# A product of four planes: its columns, kind, order of lines, sums and inputs.
GROUP = re.compile(
    r'asm volatile\("\{\.reg \.pred p; setp[^"]*m64n(\d+)k16\.f32\.(b?f16)\.[^"]*'
    r'p, 1, 1, ([01, ]+);\}" : (.*?) : (.*?) : "memory"\);'
)
GROUP_ORDER = re.compile(
    r'asm volatile\("(?:wgmma\.(?:fence|commit_group|wait_group)\.sync\.aligned[^"]*'
    r'|fence\.proxy\.async[^"]*)" : .*?: "memory"\);'
)


def _group(found):
    columns, kind, order, sums, inputs = found.groups()
    sums = ", ".join(f"&{name}" for name in re.findall(r"\((v\d+)\)", sums))
    parts = re.split(r', (?="[lrn]"\()', inputs)
    given = [part[part.index("(") + 1 : -1] for part in parts]
    held = len(given) == 6
    turned = [int(n) for n in order.split(", ")]
    turned = [0, *turned] if held else turned
    left = given[:-2]
    call = (
        f"host_group<{int(columns) // 16}, {int(kind == 'bf16')}, {turned[0]}, {turned[1]}>"
        f"(group_sums, {'group_left' if held else 'nullptr'}, {'0' if held else left[0]}, "
        f"{given[-2]}, {given[-1]});"
    )
    words = f"const unsigned group_left[] = {{{', '.join(left)}}}; " if held else ""
    return f"{{ float* group_sums[] = {{{sums}}}; {words}{call} }}"


def available():
    """Return whether there is a compiler that knows half floats."""
    return shutil.which("g++") is not None


def build(sources, folder):
    """Compile CUDA sources into one library; return the functions by source."""
    units = [HEADER]
    for number, text in enumerate(sources):
        for ptx, twin in TWINS.items():
            text = text.replace(ptx, twin)
        for pattern, twin in BLOCKS.items():
            text = re.sub(pattern, twin, text, flags=re.DOTALL)
        text = GROUP_ORDER.sub("", GROUP.sub(_group, text))
        macros = set(re.findall(r"^#define (\w+)", text, re.MULTILINE))
        entry = re.search(r"__global__ void __launch_bounds__\(\d+\) (\w+)\(", text)[1]
        units += [
            f"namespace n{number} {{", text.replace('extern "C" ', ""),
            "template <typename... A> void into(void (*f)(A...), void** p) "
            "{ call(f, p, std::index_sequence_for<A...>{}); }",
            f"void enter(void** p) {{ into({entry}, p); }}", "}",
            f'extern "C" void run{number}(void** p, const unsigned* grid, const unsigned* cube) '
            f"{{ run(n{number}::{entry}, n{number}::enter, p, grid, cube); }}",
        ]  # fmt: skip
        units += [f"#undef {macro}" for macro in macros]
    # A library that is loaded keeps its name for good.
    name = f"kernels{len(list(folder.iterdir()))}"
    (folder / f"{name}.cpp").write_text("\n".join(units))
    command = ["g++", "-std=c++17", "-O1", "-w", "-ffp-contract=off", "-shared", "-fPIC",
               "-fno-strict-aliasing", "-o", f"{name}.so", f"{name}.cpp"]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[:4000])
    library = ctypes.CDLL(str(folder / f"{name}.so"))
    return {text: getattr(library, f"run{number}") for number, text in enumerate(sources)}
