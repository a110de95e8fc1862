"""Show that a package's own operation is one like any other, on the device that is asked for.

    python examples/custom_kernel/main.py
    BURN_DEVICE=opencl python examples/custom_kernel/main.py

Every line compares with the reference composite, `relu(x @ weight + bias)`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from operation import NAME, matmul_add_relu

import burn
from burn.functional import relu
from burn_ir import (
    check_program,
    program_from_wire,
    program_to_wire,
    runtime_from_wire,
    runtime_to_wire,
)
from burn_std import ShapeError

Function = Callable[..., burn.Tensor]
SHAPES = (((5, 7), (7, 32)), ((2, 3, 33), (33, 17)), ((4, 0), (0, 6)), ((0, 3), (3, 4)))


def composite(x: burn.Tensor, weight: burn.Tensor, bias: burn.Tensor) -> burn.Tensor:
    """The reference; rounds once, as one operation does."""
    if x.dtype in (burn.float16, burn.bfloat16):
        wide = composite(*(t.to(burn.float32) for t in (x, weight, bias)))
        return wide.to(x.dtype)
    return relu(x @ weight + bias)


def operands(
    x: tuple[int, ...], weight: tuple[int, ...], dtype: Any, device: burn.Device
) -> list[burn.Tensor]:
    """Return x, weight and bias, marked where the device takes gradients."""
    rng = np.random.default_rng(0)
    made = [rng.standard_normal(shape) for shape in (x, weight, weight[1:])]
    tensors = [burn.tensor(a, dtype=dtype, device=device) for a in made]
    return [t.require_grad() for t in tensors] if device.is_autodiff() else tensors


def answers(fn: Function, dtype: Any, device: burn.Device) -> list[Any]:
    """Return results, gradients and gradients of gradients over all shapes."""
    out = []
    for shapes in SHAPES:
        given = operands(*shapes, dtype, device)
        y = fn(*given)
        first = (y * y).sum().backward(create_graph=True)
        grads = [t.grad(first) for t in given]
        second = sum((g * g).sum() for g in grads).backward()
        out += [y, *grads, *(t.grad(second) for t in given)]
    return [t.to(burn.float64).numpy() for t in out]


def difference(dtype: Any, device: burn.Device) -> float:
    """Return the largest difference from the composite, relative to the largest value."""
    mine, theirs = (answers(fn, dtype, device) for fn in (matmul_add_relu, composite))
    return max(
        float(np.max(np.abs(a - b), initial=0) / np.max(np.abs(b), initial=1))
        for a, b in zip(mine, theirs, strict=True)
    )


def travels(device: burn.Device) -> tuple[str, float]:
    """Record a call, send it as JSON, run it on flex.

    Returns:
        The operations that were recorded, and the difference from this device's result.
    """
    given = operands((5, 7), (7, 32), burn.float32, device)
    device.flush()
    y = matmul_add_relu(*given)
    program, runtime = device.resource.backend.recorded()
    sent = json.dumps([program_to_wire(program), runtime_to_wire(runtime)])

    there = burn.Device.flex().context
    form, values = json.loads(sent)
    received, known = program_from_wire(form), runtime_from_wire(values)
    assert received == program
    assert check_program(received, known)[-1].shape == y.shape
    # External number k stands in slot -1 - k, results follow from 0 up.
    slots = {-1 - k: there.tensor_from_numpy(t.numpy()) for k, t in enumerate(given)}
    for slot, op in received.numbered():
        attrs = (*op.static, *known.values.get(slot, ()))
        slots[slot] = getattr(there, op.name)(*(slots[i] for i in op.reads()), *attrs)
    found = slots[received.slots - 1].numpy()
    return ", ".join(op.name for op in received.ops), float(np.max(np.abs(found - y.numpy())))


def milliseconds(fn: Function, given: list[burn.Tensor]) -> float:
    """Return the time of the fastest of ten calls."""
    best = float("inf")
    for _ in range(10):
        given[0].device.sync()
        start = time.perf_counter()
        fn(*given)
        given[0].device.sync()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def main() -> None:
    """Compare, record, send, refuse, time."""
    device = burn.Device.default()
    print(f"{NAME} on {device}")
    for dtype in (burn.float32, burn.float64, burn.float16, burn.bfloat16):
        if device.supports_dtype(dtype):
            found = difference(dtype, device.autodiff())
            print(f"{dtype.name}: differs by {found:.1e} from the composite, gradients included")
    if hasattr(device.resource.backend, "recorded"):
        names, found = travels(device)
        print(f"recorded {names}; sent as JSON and run on flex it differs by {found:.1e}")
    try:
        matmul_add_relu(burn.ones(2, 3), burn.ones(4, 5), burn.ones(5))
    except ShapeError as error:
        print(f"refused: {error}")
    given = operands((256, 256), (256, 256), burn.float32, device)
    one, parts = (milliseconds(fn, given) for fn in (matmul_add_relu, composite))
    print(f"256 x 256 x 256: {one:.2f} ms, as three operations {parts:.2f} ms")


if __name__ == "__main__":
    main()
