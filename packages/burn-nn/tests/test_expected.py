"""Modules against what PyTorch 2.13 answers; `expected/make.py` says how that was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn_nn as nn
import burn_tensor as bt
from burn_dispatch import Device

HERE = Path(__file__).parent / "expected"
CASES = json.loads((HERE / "modules.json").read_text())
with np.load(HERE / "modules.npz") as _file:
    POOL = {kind: _file[kind] for kind in _file.files}


def read(value: Any) -> Any:
    if isinstance(value, list):
        return [read(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "at" in value:
        size = int(np.prod(value["shape"]))
        flat = POOL[value["kind"]][value["at"] : value["at"] + size]
        return flat.reshape(value["shape"])
    if "tuple" in value:
        return tuple(read(v) for v in value["tuple"])
    return {k: read(v) for k, v in value.items()}


def tensors(value: Any, device: Device) -> Any:
    return bt.tensor(value, device=device) if isinstance(value, np.ndarray) else value


def flat(out: Any) -> list[Any]:
    if isinstance(out, (tuple, list)):
        return [t for part in out for t in flat(part)]
    return [] if out is None else [out]


def compare(wrong: list[str], name: str, found: Any, expected: Any) -> None:
    if expected is None:
        return
    if found is None:
        if np.abs(expected).max(initial=0) > 0:
            wrong.append(f"{name}: no gradient")
        return
    array = found.numpy()
    if array.shape != expected.shape or array.dtype != expected.dtype:
        wrong.append(f"{name}: {array.dtype}{array.shape} for {expected.dtype}{expected.shape}")
    elif not np.allclose(array, expected, rtol=2e-5, atol=2e-5, equal_nan=True):
        wrong.append(f"{name}: off by {np.nanmax(np.abs(array - expected))}")


@pytest.mark.parametrize("case", CASES, ids=[f"{k}-{c['cls']}" for k, c in enumerate(CASES)])
def test_module_answers_as_pytorch_does(case: dict[str, Any], tracking: Device) -> None:
    kwargs = {k: tensors(v, Device.default()) for k, v in read(case["kwargs"]).items()}
    with tracking:
        model = getattr(nn, case["cls"])(**kwargs)
    buffers = read(case["buffers"])
    state = {k: bt.tensor(v) for k, v in read(case["state"]).items()}
    # Buffers that a training run moves start as the module makes them.
    kept = {k: v for k, v in state.items() if not case["train"] or k not in buffers}
    model.load_state_dict(kept, strict=not case["train"])
    assert set(model.state_dict()) == set(state)
    inputs = []
    for k, a in enumerate(read(case["args"])):
        x = bt.tensor(a, device=tracking)
        wants = x.dtype.is_float and (k == 0 or not case["cls"].endswith("Loss"))
        inputs.append(x.require_grad() if wants else x)
    call = {k: tensors(v, tracking) for k, v in read(case["call"]).items()}
    run = model if case["train"] else model.valid(grad=True)
    outs = flat(run(*inputs, **call))
    wrong: list[str] = []
    expected = read(case["out"])
    assert len(outs) == len(expected)
    for k, (y, e) in enumerate(zip(outs, expected, strict=True)):
        compare(wrong, f"output {k}", y, e)
    cotangents = [bt.tensor(c, device=tracking) for c in read(case["cotangents"])]
    pairs = [(y, c) for y, c in zip(outs, cotangents, strict=True) if y.is_tracked()]
    grads = bt.backward([y for y, _ in pairs], [c for _, c in pairs])
    leaves = [x for x in inputs if x.is_require_grad()]
    for k, (x, e) in enumerate(zip(leaves, read(case["input_grads"]), strict=True)):
        compare(wrong, f"gradient of input {k}", x.grad(grads), e)
    wanted = read(case["parameter_grads"])
    for path, p in model.named_parameters():
        compare(wrong, f"gradient of {path}", p.grad(grads), wanted[path])
    for path, b in model.named_buffers():
        compare(wrong, path, b, buffers[path])
    assert not wrong, "\n".join(wrong)
