"""Runs one case on one device and says in words what is wrong."""

from __future__ import annotations

import traceback
from typing import Any

import burn_tensor
from burn_backend import TensorBase
from burn_dispatch import Device
from burn_testing.cases.read import Case, Given
from burn_testing.layouts import strided
from burn_testing.tolerance import case_tolerance, difference


class Made:
    """Builds the arguments of a call and remembers the tensors that want a gradient."""

    def __init__(self, device: Device, track: bool) -> None:
        self.context = device.context
        self.track = track
        self.leaves: list[Any] = []

    def value(self, v: Any) -> Any:
        """Return an argument with every `Given` in it turned into a tensor."""
        if isinstance(v, Given):
            x: Any = tensor(self.context, v)
            if v.grad and self.track:
                x = x.require_grad()
                self.leaves.append(x)
            return x
        if isinstance(v, list):
            return [self.value(e) for e in v]
        if isinstance(v, tuple):
            return tuple(self.value(e) for e in v)
        return v


def tensor(context: Any, given: Given) -> TensorBase:
    """Return a tensor of a case file in its own layout."""
    # numpy has no bfloat16 of its own: made in float32, which holds it exactly, and cast.
    cast = given.dtype if given.dtype.name == "bfloat16" else None
    if given.strides is not None and given.values.size:
        return strided(context, given.values, given.strides, cast)
    x: TensorBase = context.tensor_from_numpy(given.values)
    return x if cast is None else context.cast(x, cast)


def find(fn: str, namespace: Any = burn_tensor) -> Any:
    """Return the function of a case: `Tensor.add`, `functional.relu`, `burn.linalg.qr`."""
    found = namespace
    for part in fn.removeprefix("burn.").split("."):
        found = getattr(found, part)
    return found


def run_case(case: Case, device: Device) -> list[str]:
    """Return what is wrong with a case, an empty list when nothing is.

    It runs forward on the plain device and, where it has gradients, forward and backward on the
    autodiff device.
    """
    plain = device.without_autodiff()
    wrong = _guarded(lambda: _forward(case, plain)[0], "forward")
    if case.grads is not None:
        wrong += _guarded(lambda: _backward(case, plain.autodiff()), "backward")
    return wrong


def _guarded(run: Any, what: str) -> list[str]:
    try:
        return [f"{what}: {line}" for line in run()]
    except Exception as error:  # noqa: BLE001 - reported with its place
        frames = traceback.extract_tb(error.__traceback__)
        place = next((f for f in reversed(frames) if "burn_testing" not in f.filename), frames[-1])
        file = "/".join(place.filename.split("/")[-2:])
        return [f"{what}: {type(error).__name__}: {error} ({file}:{place.lineno})"]


def _forward(case: Case, device: Device, track: bool = False) -> tuple[list[str], list[Any], Any]:
    made = Made(device, track)
    args = [made.value(a) for a in case.args]
    kwargs = {key: made.value(a) for key, a in case.kwargs.items()}
    result = find(case.fn)(*args, **kwargs)
    if case.single != isinstance(result, TensorBase):
        return [f"returns {type(result).__name__}, expected one tensor: {case.single}"], [], made
    outs = [result] if case.single else list(result)
    if len(outs) != len(case.out):
        return [f"returns {len(outs)} tensors, expected {len(case.out)}"], outs, made
    wrong = []
    for i, (actual, expected) in enumerate(zip(outs, case.out, strict=True)):
        line = compare(actual, expected)
        if line:
            wrong.append(f"output {i}: {line}")
    return wrong, outs, made


def _backward(case: Case, device: Device) -> list[str]:
    wrong, outs, made = _forward(case, device, track=True)
    if wrong:
        return wrong
    assert case.cotangents is not None and case.grads is not None  # noqa: S101 - by the caller
    pairs = [
        (out, tensor(device.context, c))
        for out, c in zip(outs, case.cotangents, strict=True)
        if c is not None
    ]
    outputs: list[Any] = [out for out, _ in pairs]
    cotangents: list[Any] = [c for _, c in pairs]
    grads = burn_tensor.backward(outputs, cotangents)
    for i, (leaf, expected) in enumerate(zip(made.leaves, case.grads, strict=True)):
        grad = leaf.grad(grads)
        if expected is None or grad is None:
            # A gradient of no elements says as little as none.
            if (expected is None) != (grad is None or 0 in grad.shape):
                wrong.append(f"gradient {i}: {grad}, expected {expected and 'a tensor'}")
            continue
        line = compare(grad, expected)
        if line:
            wrong.append(f"gradient {i}: {line}")
    return wrong


def compare(actual: Any, expected: Given) -> str | None:
    """Return how a tensor differs from the stored one in dtype, shape or values."""
    if not isinstance(actual, TensorBase):
        return f"a {type(actual).__name__}, expected a tensor"
    if actual.dtype is not expected.dtype:
        return f"dtype {actual.dtype.short}, expected {expected.dtype.short}"
    values = actual.b.to_numpy(actual)
    return difference(values, expected.values, case_tolerance(expected.dtype.short))
