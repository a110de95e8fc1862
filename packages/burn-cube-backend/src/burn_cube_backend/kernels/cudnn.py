"""The provider of convolutions on CUDA: cuDNN, by its frontend, on the stream of the device.

It is optional: a device whose Python finds `nvidia-cudnn-frontend` has it (the extra `cudnn`), and
`BURN_CUDA_CONV=off` leaves convolutions to the kernels of this package all the same. Halves add in
float32 and lie with their channels last, which is how tensor cores read them; float32 stays true
float32 and lies as its input does, unless the device was allowed tf32: then it is treated as halves
are. Only engines that give the same bits every time serve. What the library has no plan for is
remembered and takes the other way.

Source: cuDNN's frontend, graph interface (`pygraph`), and the notes of its engines.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

from burn_cube import LaunchError
from burn_cube.spi import CudaCall, profiles
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, channels_last, dense, size_of
from burn_cube_backend.kernels.maps import HALVES, computed, converted
from burn_cube_backend.kernels.orders import asks_last, lies, moved
from burn_cube_backend.payload import CubeTensor
from burn_std import BackendLoadError, DType, dtypes as d

LOG = logging.getLogger("burn.cuda")

REMEDY = (
    "Install the library (uv pip install nvidia-cudnn-cu13, or nvidia-cudnn-cu12), "
    "or leave it: BURN_CUDA_CONV=off"
)
# Names of data types in the frontend.
_KINDS = {d.float32: "FLOAT", d.float16: "HALF", d.bfloat16: "BFLOAT16"}
_MOST_PLANS = 4096
# Bytes of memory for one call, at most.
_WORKSPACE = 1 << 30
# Channels of float32 that tensor cores read at once.
_VECTOR = 4
# Bytes: the library takes pointers for as even as this.
_EVEN = 16
FORWARD, INPUT, WEIGHT = "forward", "input gradient", "weight gradient"
# By which a graph knows its tensors, in the order of the words of a call.
_UIDS = {FORWARD: ("x", "weight", "out"), INPUT: ("out", "weight", "x"),
         WEIGHT: ("out", "x", "weight")}  # fmt: skip
_NUMBER = {"x": 1, "weight": 2, "out": 3, "bias": 4}
_UNKNOWN: Any = object()


class Problem(NamedTuple):
    """A convolution of one shape.

    Attributes:
        kind: which of the three it is.
        dtype: of the elements.
        x: shape of the input, [N, C, *L].
        weight: shape of the weight, [O, C / groups, *K].
        out: shape of the result, [N, O, *out].
        stride, padding, dilation: by dim.
        last: channels lie last.
        bias: one is added before rounding.
        made: dtype of what is made.
    """

    kind: str
    dtype: DType
    x: Ints
    weight: Ints
    out: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    last: bool
    bias: bool
    made: DType


class Plan:
    """A graph of the library, ready to be called.

    Attributes:
        graph: of the frontend.
        uids: of its tensors, in the order of the words.
        space: bytes that a call needs besides.
        words: packs the addresses.
    """

    def __init__(self, graph: Any, uids: Ints, space: int) -> None:
        self.graph = graph
        self.uids = uids
        self.space = space
        self.words = struct.Struct(f"={len(uids) + 1}q")


class CuDnn:
    """A handle on one device and its stream.

    Args:
        runtime: the device.
        library: the module of the frontend.
        tf32: tensor cores may read factors of float32, of which they take the upper 19 bits.

    Attributes:
        plans: what was asked for before; None for what the library does not do.
    """

    def __init__(self, runtime: Any, library: Any, tf32: bool = False) -> None:
        self.runtime = runtime
        self.library = library
        self.tf32 = tf32
        self.plans: dict[Problem, Plan | None] = {}
        runtime.use()
        try:
            self.handle = library.create_handle()
        except RuntimeError as error:
            raise BackendLoadError(
                "cuda", "convolutions find cuDNN 9, whose frontend is installed", got=str(error),
                remedy=REMEDY,
            ) from error  # fmt: skip
        library.set_stream(handle=self.handle, stream=runtime.stream.ptr)

    def takes_tf32(self, problem: Problem) -> bool:
        """Return whether tensor cores may compute a convolution of float32.

        Where channels are few they are slower: the gradient of a weight [32, 1, 3, 3] took them
        109 to 243 us of an H200 in the place of 30.
        """
        wide, channels = problem.weight[:2]
        even = wide % _VECTOR == channels % _VECTOR == 0
        return self.tf32 and problem.dtype is d.float32 and even

    def plan(self, problem: Problem) -> Plan | None:
        """Return how a convolution is called, None where the library does not serve."""
        found = self.plans.get(problem, _UNKNOWN)
        if found is _UNKNOWN:
            if len(self.plans) >= _MOST_PLANS:
                self.plans.clear()
            with self.runtime.lock:
                self.runtime.use()
                found = self.plans[problem] = self._built(problem)
        made: Plan | None = found
        return made

    def _built(self, p: Problem) -> Plan | None:
        lib = self.library
        refused: type[Exception] = lib.cudnnGraphNotSupportedError
        try:
            graph, uids = self._graph(p)
            graph.validate()
            graph.build_operation_graph()
            graph.create_execution_plans([lib.heur_mode.A, lib.heur_mode.FALLBACK])
            note = lib.numerical_note
            barred = [
                "NONDETERMINISTIC",
                "DOWN_CONVERT_INPUTS",
                "REDUCED_PRECISION_REDUCTION",
                "FFT",
            ]
            if p.dtype is d.float32 and not self.takes_tf32(p):
                barred.append("TENSOR_CORE")
            graph.deselect_numeric_notes([getattr(note, name) for name in barred])
            graph.deselect_workspace_greater_than(_WORKSPACE)
            graph.check_support()
            graph.build_plans(lib.build_plan_policy.HEURISTICS_CHOICE)
        except refused:
            return None
        except RuntimeError as error:
            # The library says so of some shapes before it is asked for a plan.
            if "NOT_SUPPORTED" in str(error):
                return None
            if "BAD_PARAM" in str(error):
                # Of some shapes this means the same; else the question is wrong, and the slow
                # way should not hide it.
                LOG.warning(
                    "cuDNN calls the question wrong, and our own kernel answers: %s: %s", p, error
                )
                return None
            raise LaunchError("conv", "cuDNN plans the convolution", got=f"{p}: {error}") from error
        return Plan(graph, uids, int(graph.get_workspace_size()))

    def _graph(self, p: Problem) -> tuple[Any, Ints]:
        """Return the graph of a convolution and its tensors in the order of a call's words."""
        lib = self.library
        kinds = {t: getattr(lib.data_type, name) for t, name in _KINDS.items()}
        kind, wide = kinds[p.dtype], lib.data_type.FLOAT
        graph = lib.pygraph(
            name=p.kind, handle=self.handle, io_data_type=kind, intermediate_data_type=wide,
            compute_data_type=wide,
        )  # fmt: skip
        shapes = {"x": _flat(p.x), "weight": _flat(p.weight), "out": _flat(p.out)}

        def layout(name: str) -> tuple[list[int], list[int]]:
            shape = shapes[name]
            return list(shape), list(channels_last(shape) if p.last else dense(shape))

        def tensor(name: str) -> Any:
            shape, strides = layout(name)
            return graph.tensor(
                name=name, dim=shape, stride=strides, data_type=kind, uid=_NUMBER[name]
            )

        first, second, result = _UIDS[p.kind]
        names = [first, second]
        given = tensor(first), tensor(second)
        how = {
            "padding": _along(p.padding, 0), "stride": _along(p.stride, 1),
            "dilation": _along(p.dilation, 1), "compute_data_type": wide,
        }  # fmt: skip
        if p.kind == FORWARD:
            made = graph.conv_fprop(image=given[0], weight=given[1], **how)
        elif p.kind == INPUT:
            made = graph.conv_dgrad(loss=given[0], filter=given[1], **how)
        else:
            made = graph.conv_wgrad(loss=given[0], image=given[1], **how)
        if p.bias:
            shape, strides = layout("out")
            made.set_dim(shape)
            made.set_stride(strides)
            row = (1, p.out[1], *(1 for _ in shape[2:]))
            lies = channels_last(row) if p.last else dense(row)
            bias = graph.tensor(
                name="bias", dim=list(row), stride=list(lies), data_type=kind, uid=_NUMBER["bias"]
            )
            made = graph.bias(input=made, bias=bias, compute_data_type=wide)
            names.append("bias")
        shape, strides = layout(result)
        made.set_output(True)
        made.set_uid(_NUMBER[result])
        made.set_dim(shape)
        made.set_stride(strides)
        made.set_data_type(kinds[p.made])
        return graph, tuple(_NUMBER[name] for name in (*names, result))

    def call(self, plan: Plan, *addresses: int) -> None:
        """Put a convolution into the stream: addresses of its tensors, then of its memory."""
        pack = dict(zip(plan.uids, addresses, strict=False))
        try:
            plan.graph.execute(pack, addresses[-1], handle=self.handle)
        except RuntimeError as error:
            raise LaunchError("conv", "cuDNN takes the convolution", got=str(error)) from error

    def run(
        self, engine: Engine, p: Problem, plan: Plan, given: Sequence[CubeTensor]
    ) -> CubeTensor:
        """Return the result of a plan on tensors that lie as it wants."""
        runtime = self.runtime
        shape = {FORWARD: p.out, INPUT: p.x, WEIGHT: p.weight}[p.kind]
        flat = engine.flat(size_of(shape), p.made)
        space = engine.flat(plan.space, d.uint8, "workspace of cuDNN") if plan.space else None
        words = [_address(x) for x in given]
        words += [flat.pointer, 0 if space is None else space.pointer]
        runtime.alive()
        name = f"convolution, {p.kind} (cuDNN)"
        measured = engine.client.measured(name) if profiles() else nullcontext()
        with measured, runtime.lock:
            runtime.use()
            self.call(plan, *words)
        log = engine.log
        if log is not None and log.thread == threading.get_ident():
            stay = [x.buf for x in given if x.buf is not None and log.base_of(x.buf) is None]
            call = CudaCall(plan, plan.words.pack(*words), issue=partial(self.call, plan))
            # Neither the result nor the memory of the call is read before it is written.
            log.native(call, None, stay, writes=(len(words) - 2, len(words) - 1))
        return CubeTensor(flat, shape, channels_last(shape) if p.last else dense(shape), p.made)


def wanted(runtime: Any) -> bool:
    """Return whether a device has the provider: an extra brings it, and a variable leaves it."""
    if runtime.name.partition(":")[0] != "cuda" or os.environ.get("BURN_CUDA_CONV") == "off":
        return False
    found = find_spec("cudnn")
    # A folder that happens to have the name is a package without an origin.
    return found is not None and found.origin is not None


def provider(engine: Engine) -> CuDnn | None:
    """Return the library of a device, None where it has none."""
    found = engine.providers.get("cudnn", False)
    if found is False:
        runtime = engine.client.runtime
        found = engine.providers["cudnn"] = _opened(engine) if wanted(runtime) else None
    library: CuDnn | None = found
    return library


def _opened(engine: Engine) -> CuDnn:
    import cudnn  # type: ignore[import-not-found,import-untyped,unused-ignore]

    return CuDnn(engine.client.runtime, cudnn, engine.tf32)


def forward(
    engine: Engine, x: CubeTensor, weight: CubeTensor, bias: CubeTensor | None, out: Ints,
    stride: Ints, padding: Ints, dilation: Ints,
) -> CubeTensor | None:  # fmt: skip
    """Return the convolution of x [N, C, *L] with weight, None where the library does not serve.

    Args:
        engine: the device.
        x: input.
        weight: [O, C / groups, *K].
        bias: [O], or none; sum and bias round once together.
        out: extents of the windows.
        stride: by dim, as padding and dilation.
        padding: zeros on both sides.
        dilation: distance of the taps.
    """
    library = provider(engine)
    shape = (x.shape[0], weight.shape[0], *out)
    if library is None or not _served(x.dtype, x.shape, weight.shape, shape):
        return None
    how = (x.shape, weight.shape, shape, stride, padding, dilation)
    asked = [Problem(FORWARD, x.dtype, *how, False, bias is not None, x.dtype)]
    if bias is not None:
        # The sums apart, in float32, so that the bias is added before they round.
        asked.append(asked[0]._replace(bias=False, made=d.float32))
    p, plan = _planned(library, engine, x, weight, *asked)
    if plan is None:
        return None
    given = [_laid(engine, x, p.last), _weight(engine, weight, p.last)]
    if bias is None or p.bias:
        given += [] if bias is None else [engine.row_major(bias)]
        return _signal(engine, library.run(engine, p, plan, given))
    sums = _signal(engine, library.run(engine, p, plan, given))
    ones = (1,) * len(out)
    b = converted(engine, bias, d.float32)
    b = b.view((*b.shape, *ones), (*b.strides, *ones))
    return computed(engine, "x + y", x.dtype, x=sums, y=b)


def input_grad(
    engine: Engine, g: CubeTensor, weight: CubeTensor, stride: Ints, padding: Ints, dilation: Ints,
    shape: Ints,
) -> CubeTensor | None:  # fmt: skip
    """Return the gradient [N, C, *L] of the input for g [N, O, *out], None as in `forward`."""
    library = provider(engine)
    if library is None or not _served(g.dtype, shape, weight.shape, g.shape):
        return None
    how = (shape, weight.shape, g.shape, stride, padding, dilation)
    asked = Problem(INPUT, g.dtype, *how, False, False, g.dtype)
    p, plan = _planned(library, engine, g, weight, asked)
    if plan is None:
        return None
    given = [_laid(engine, g, p.last), _weight(engine, weight, p.last)]
    return _signal(engine, library.run(engine, p, plan, given))


def weight_grad(
    engine: Engine, g: CubeTensor, x: CubeTensor, stride: Ints, padding: Ints, dilation: Ints,
    shape: Ints,
) -> CubeTensor | None:  # fmt: skip
    """Return the gradient [O, C / groups, *K] of the weight, row by row; None as in `forward`."""
    library = provider(engine)
    if library is None or not _served(g.dtype, x.shape, shape, g.shape):
        return None
    how = (x.shape, shape, g.shape, stride, padding, dilation)
    asked = Problem(WEIGHT, g.dtype, *how, False, False, g.dtype)
    p, plan = _planned(library, engine, x, g, asked)
    if plan is None:
        return None
    made = library.run(engine, p, plan, [_laid(engine, g, p.last), _laid(engine, x, p.last)])
    # An optimizer reads it beside its weight, which lies row by row.
    return _laid(engine, made, last=False)


def _planned(
    library: CuDnn, engine: Engine, x: CubeTensor, other: CubeTensor, *asked: Problem
) -> tuple[Problem, Plan | None]:
    """Return the first of several ways that the library serves, in the better order first."""
    if x.dtype in HALVES or library.takes_tf32(asked[0]):
        better = True
    elif library.tf32:
        # Neighbours lie last, and one channel lies either way; the gradient of a weight in float32
        # takes 243 us in place of 30 there.
        better = asked[0].kind == FORWARD and lies(x, last=True)
    else:
        better = asks_last(engine, x, other)
    for last in (better, not better):
        for problem in asked:
            p = problem._replace(last=last)
            plan = library.plan(p)
            if plan is not None:
                return p, plan
    return asked[0], None


def _flat(shape: Ints) -> Ints:
    """Return a shape as one of images: a signal is an image of one row."""
    return shape if len(shape) > 3 else (*shape[:2], 1, shape[2])


def _along(sizes: Ints, neutral: int) -> list[int]:
    return list(sizes) if len(sizes) > 1 else [neutral, *sizes]


def _served(dtype: DType, *shapes: Ints) -> bool:
    return dtype in _KINDS and all(map(size_of, shapes))


def _is_even(x: CubeTensor) -> bool:
    return x.offset * x.dtype.itemsize % _EVEN == 0


def _signal(engine: Engine, made: CubeTensor) -> CubeTensor:
    """Return a result, a signal row by row: maps do not know one that lies otherwise."""
    return _laid(engine, made, last=False) if len(made.shape) < 4 else made


def _laid(engine: Engine, x: CubeTensor, last: bool) -> CubeTensor:
    """Return a tensor in one of the two orders, a copy if it lies otherwise or at an odd place."""
    return x if lies(x, last) and _is_even(x) else moved(engine, x, last)


def _weight(engine: Engine, weight: CubeTensor, last: bool) -> CubeTensor:
    """Return a weight in one of the two orders; its copy is kept while it is used again."""
    if lies(weight, last) and _is_even(weight):
        return weight
    (flat,) = engine.packed(weight, weight, _copy, last)
    strides = channels_last(weight.shape) if last else dense(weight.shape)
    return CubeTensor(flat, weight.shape, strides, weight.dtype)


def _copy(engine: Engine, x: CubeTensor, last: bool) -> tuple[Any, ...]:
    return (moved(engine, x, last).buf,)


def _address(x: CubeTensor) -> int:
    assert x.buf is not None  # noqa: S101 - a number is made solid before
    return x.buf.pointer + x.offset * x.dtype.itemsize
