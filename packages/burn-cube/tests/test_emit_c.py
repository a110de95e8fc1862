"""Sources of the C family: what is in them, what is refused, and that nvcc takes them all."""

import re
import shutil
import subprocess

import pytest

import burn_cube as bc
from burn_cube.conformance import cases
from burn_cube.emit.cuda import Architecture, emit_cuda
from burn_cube.emit.opencl import Capabilities, emit_opencl
from burn_cube.errors import Where
from burn_std.dtypes import bfloat16, bool_, float16, float32, float64, int8, int32, int64, uint32

BOTH = pytest.mark.parametrize("emit", [emit_opencl, emit_cuda], ids=["opencl", "cuda"])


def unary(name, dtype, cube=32, **options):
    b = bc.Builder("one", cube_dim=cube, **options)
    x, i = b.buffer("x", dtype), b.special("absolute_pos")
    b.store(x, i, b.op(name, b.load(x, i)))
    return b.finish()


def binary(name, dtype, **options):
    b = bc.Builder("two", cube_dim=32, **options)
    x, i = b.buffer("x", dtype), b.special("absolute_pos")
    value = b.load(x, i)
    b.store(x, i, b.op(name, value, b.const(3, dtype)))
    return b.finish()


@BOTH
def test_integers_compute_unsigned_and_wrap(emit):
    assert "(i32)((u32)" in emit(binary("add", int32))
    assert "(i8)((u32)" in emit(binary("mul", int8))
    assert "(i64)((u64)" in emit(binary("sub", int64))


@BOTH
def test_division_never_traps(emit):
    text = emit(binary("floordiv", int32))
    assert "if (b == 0) return 0;" in text and "if (b == -1)" in text
    assert "b == -1" not in emit(binary("mod", uint32))


@BOTH
def test_shifts_by_the_width_have_a_value(emit):
    assert "(u32)n < 8" in emit(binary("shl", int8))
    assert "a < 0 ? -1 : 0" in emit(binary("shr", int64))


@BOTH
@pytest.mark.parametrize("dtype", [float16, bfloat16])
def test_halves_are_stored_as_bits_and_computed_in_float32(emit, dtype):
    text = emit(binary("add", dtype))
    assert re.search(r"u16\* ", text)
    assert f"f32_from_{dtype.short}(" in text and f"{dtype.short}_from_f32(" in text


@BOTH
def test_casts_of_floats_saturate(emit):
    b = bc.Builder("to_int", cube_dim=1)
    x, out = b.buffer("x", float32), b.buffer("out", int8)
    zero = b.const(0, int32)
    b.store(out, zero, b.cast(b.load(x, zero), int8))
    text = emit(b.finish())
    assert "i8_from_f32" in text and "(127)" in text and "(-128)" in text


@BOTH
def test_bounds_modes(emit):
    checked = emit(unary("neg", float32, bounds="checked"))
    assert "p_x_length" in checked and "fault_record" not in checked
    validated = emit(unary("neg", float32, bounds="validated"))
    assert validated.count("fault_record[1] = launch") == 2
    unchecked = emit(unary("neg", float32, bounds="unchecked"))
    assert "length" not in unchecked


@BOTH
def test_an_index_known_to_be_inside_is_not_tested(emit):
    b = bc.Builder("known", cube_dim=1)
    x, local = b.buffer("x", float32), b.local(float32, 4)
    b.store(local, b.const(3, int32), b.const(1.0, float32))
    b.store(x, b.const(0, int32), b.load(local, b.const(9, int32)))
    text = emit(b.finish())
    assert "(4)" in text and text.count("< (u") == 2


@BOTH
def test_sixty_four_bit_indices_on_request(emit):
    assert "const i64 p_x_length" in emit(unary("neg", float32, index=int64))
    assert "const i32 p_x_length" in emit(unary("neg", float32, index=int32))


@BOTH
def test_constants_keep_their_bits(emit):
    b = bc.Builder("constants", cube_dim=1)
    x = b.buffer("x", float32)
    for at, value in enumerate((float("inf"), float("nan"), -0.0, 0.1)):
        b.store(x, b.const(at, int32), b.const(value, float32))
    text = emit(b.finish())
    assert "0x7f800000u" in text and "0x7fc00000u" in text
    assert "(-0.0f)" in text and "0x1.99999a" in text


@BOTH
def test_the_least_integers_are_spelled_without_overflow(emit):
    b = bc.Builder("least", cube_dim=1)
    x, y = b.buffer("x", int32), b.buffer("y", int64)
    zero = b.const(0, int32)
    b.store(x, zero, b.const(-(2**31), int32))
    b.store(y, zero, b.const(-(2**63), int64))
    text = emit(b.finish())
    assert "(-2147483647 - 1)" in text and re.search(r"\(-9223372036854775807l+ - 1\)", text)


@BOTH
def test_early_return_and_leave(emit):
    b = bc.Builder("jumps", cube_dim=1)
    x = b.buffer("x", float32)
    zero, yes = b.const(0, int32), b.const(True, bool_)
    with b.block() as inner:
        with b.if_(yes):
            b.leave(inner)
        b.store(x, zero, b.const(1.0, float32))
    with b.block() as outer:
        with b.if_(yes):
            b.leave(outer)
        b.store(x, zero, b.const(2.0, float32))
    text = emit(b.finish())
    assert "goto end0;" in text and "end0: ;" in text and "return;" in text


def test_a_cube_below_all_limits_tests_nothing_on_a_processor():
    b = bc.Builder("below", cube_dim=32, index=int32)
    x, out, limit = b.buffer("x", float32), b.buffer("out", float32), b.scalar("n", int32)
    i = b.special("absolute_pos")
    with b.if_(b.op("lt", i, limit)):
        with b.block() as middle:
            with b.if_(b.op("lt", b.load(x, i), b.const(0.0, float32))):
                b.leave(middle)
            b.store(out, i, b.load(x, i))
        b.store(out, i, b.op("neg", b.load(out, i)))
    kernel = b.finish()
    text = emit_opencl(kernel, Capabilities(processor=True))
    limits = {"(i64)p_n", "(i64)p_x_length", "(i64)p_out_length"}
    (test,) = re.findall(r"if \((behind <= [^{]*)\) {", text)
    assert set(test.replace("behind <= ", "").split(" && ")) == limits
    below, rest = text.split("} else {")
    assert "(u32)" not in below and "(u32)" in rest
    # The body stands there twice; its labels do not.
    assert sorted(re.findall(r"(\w+): ;", text)) == ["end0", "end1"]
    assert "behind" not in emit_opencl(kernel)


def test_a_kernel_whose_units_meet_has_one_body():
    b = bc.Builder("meets", cube_dim=32)
    x, i = b.buffer("x", float32), b.special("absolute_pos")
    b.barrier()
    b.store(x, i, b.const(1.0, float32))
    assert "behind" not in emit_opencl(b.finish(), Capabilities(processor=True))


@BOTH
def test_print_takes_values_of_every_width(emit):
    b = bc.Builder("talks", cube_dim=1)
    values = [b.const(1, int64), b.const(2, int8), b.const(0.5, float64), b.const(True, bool_)]
    b.print('a "{}" of 100%: {} {} {}', *values)
    text = emit(b.finish())
    assert 'printf("a \\"%l' in text and "100%%: %d %.17g %d\\n" in text


def test_contraction_is_off_unless_the_kernel_gives_it_up():
    assert "FP_CONTRACT OFF" in emit_opencl(unary("neg", float32))
    assert "FP_CONTRACT" not in emit_opencl(unary("neg", float32, fast_math=True))


def test_opencl_refuses_what_the_device_lacks():
    weak = Capabilities(fp64=False, atomics_64=False, atomics_64_extended=False, max_cube_size=64)
    with pytest.raises(bc.LaunchError, match="float64"):
        emit_opencl(unary("neg", float64), weak)
    b = bc.Builder("counts", cube_dim=1)
    x = b.buffer("x", int64)
    b.atomic("add", x, b.const(0, int32), b.const(1, int64))
    with pytest.raises(bc.LaunchError, match="64-bit atomics"):
        emit_opencl(b.finish(), weak)
    with pytest.raises(bc.LaunchError, match="at most 64 units"):
        emit_opencl(unary("neg", float32, cube=128), weak)


def test_cuda_refuses_what_no_device_has():
    with pytest.raises(bc.LaunchError, match="1024 units"):
        emit_cuda(unary("neg", float32, cube=2048))
    with pytest.raises(bc.LaunchError, match="32 units"):
        emit_cuda(unary("neg", float32, plane_dim=64))
    b = bc.Builder("hungry", cube_dim=1)
    memory = b.shared(float32, 100_000)
    b.store(memory, b.const(0, int32), b.const(0.0, float32))
    with pytest.raises(bc.LaunchError, match="shared memory"):
        emit_cuda(b.finish())


def test_tiles_go_to_tensor_cores_where_there_are_some():
    case = next(case for case in cases() if case.name == "tile_matmul_float16")
    kernel = case.kernel.ir(*case.args(), **case.options)
    assert "mma.sync.aligned.m16n8k16" in emit_cuda(kernel)
    assert "mma.sync" not in emit_cuda(kernel, Architecture(75, 64 << 10))


def test_vectors_are_moved_at_once():
    b = bc.Builder("moves", cube_dim=32, bounds="unchecked")
    x = b.buffer("x", bc.Vector(float32, 4))
    i = b.special("absolute_pos")
    b.store(x, i, b.load(x, i))
    kernel = b.finish()
    assert "vload4" in emit_opencl(kernel) and "vstore4" in emit_opencl(kernel)
    assert "load_aligned<f32, 4>" in emit_cuda(kernel)


def test_emitting_leaves_the_kernel_as_it_is():
    kernel = binary("add", float16)
    before = str(kernel)
    emit_cuda(kernel)
    emit_opencl(kernel)
    assert str(kernel) == before


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])
def test_nvcc_compiles_every_case(tmp_path, arch):
    # One file, as starting the compiler costs more than a kernel; namespaces keep helpers apart.
    units = ["#include <cstdio>"]
    capability = Architecture(int(arch[3:5]))
    for number, case in enumerate(cases()):
        text = emit_cuda(case.kernel.ir(*case.args(), **case.options), capability)
        macros = set(re.findall(r"^#define (\w+)", text, re.MULTILINE))
        units += [f"namespace n{number} {{ // {case.name}", text.replace('extern "C" ', ""), "}"]
        units += [f"#undef {name}" for name in macros]
    source = tmp_path / "all.cu"
    source.write_text("\n".join(units))
    command = ["nvcc", "-w", "-ptx", f"-arch={arch}", "--fmad=false", "-o", "all.ptx", "all.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    assert (tmp_path / "all.ptx").read_text().count(".entry") == len(cases())


def test_four_planes_multiply_where_the_chip_can():
    case = next(case for case in cases() if case.name == "group_product")
    kernel = case.kernel.ir(*case.args(), **case.options)
    text = emit_cuda(kernel)
    assert "wgmma.mma_async.sync.aligned.m64n80k16.f32.f16.f16" in text
    # What units wrote is shown to the tensor cores before the barrier; arrays begin at patterns.
    assert re.search(r"fence\.proxy\.async[^\n]*__syncthreads", text)
    assert "asked_shared + 8192" in text
    for other in (emit_cuda(kernel, Architecture(100)), emit_cuda(kernel, Architecture(80)),
                  emit_opencl(kernel)):  # fmt: skip
        assert "wgmma" not in other and re.search(r"fmaf?\(", other)


def test_copies_go_on_behind_where_the_chip_can():
    case = next(case for case in cases() if case.name == "copied_ahead_4")
    kernel = case.kernel.ir(*case.args(), **case.options)
    assert "cp.async.cg.shared.global" in emit_cuda(kernel)
    assert "cp.async.wait_all" in emit_cuda(kernel)
    for text in (emit_cuda(kernel, Architecture(75, 64 << 10)), emit_opencl(kernel)):
        assert "async" not in text


@BOTH
def test_what_a_language_lacks_is_refused_at_the_users_line(emit):
    b = bc.Builder("odd", cube_dim=32)
    x, i = b.buffer("x", float32), b.special("absolute_pos")
    b.where = Where("model.py", 7, 5, "    y = cbrt(x[i])", "kernel")
    b.store(x, i, b.emit("cbrt", float32, (b.load(x, i),)))
    with pytest.raises(bc.KernelError, match=r"cbrt: (opencl|cuda) has no cbrt") as caught:
        emit(b.finish())
    assert (caught.value.file, caught.value.line, caught.value.column) == ("model.py", 7, 5)


@BOTH
def test_a_plane_sum_of_bools_is_refused_at_the_users_line(emit):
    b = bc.Builder("odd", cube_dim=32)
    x, i = b.buffer("x", bool_), b.special("absolute_pos")
    b.where = Where("model.py", 9, 1, "plane_sum(x[i])", "kernel")
    b.store(x, i, b.emit("plane", bool_, (b.load(x, i),), {"kind": "sum"}))
    with pytest.raises(bc.KernelError, match="has no plane sum of bool") as caught:
        emit(b.finish())
    assert caught.value.line == 9
