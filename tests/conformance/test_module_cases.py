"""Modules of PyTorch with their checkpoints: outputs, gradients and buffers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import burn
from burn_testing.tolerance import case_tolerance, difference
from tests.conformance.torch_file import read_state_dict
from tests.conftest import CASES

FOLDER = CASES / "modules"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def _flat(out: Any) -> list[Any]:
    if isinstance(out, (tuple, list)):
        return [t for part in out for t in _flat(part)]
    return [] if out is None else [out]


class Case:
    """One module case on one device."""

    def __init__(self, name: str) -> None:
        self.about = json.loads((FOLDER / f"{name}.json").read_text())
        with np.load(FOLDER / f"{name}.npz") as file:
            self.arrays = {key: file[key] for key in file.files}
        self.state = read_state_dict(FOLDER / f"{name}.pt")

    def model(self, device: Any) -> Any:
        kwargs = {
            k: tuple(v) if isinstance(v, list) else v for k, v in self.about["kwargs"].items()
        }
        with device:
            model = getattr(burn.nn, self.about["cls"])(**kwargs)
        model.load_state_dict({k: burn.tensor(v, device=device) for k, v in self.state.items()})
        return model

    def inputs(self, device: Any, grad: bool) -> list[Any]:
        found = []
        while f"x{len(found)}" in self.arrays:
            x = burn.tensor(self.arrays[f"x{len(found)}"], device=device)
            wants = grad and f"gx{len(found)}" in self.arrays
            found.append(x.require_grad() if wants else x)
        return found

    def call(self, inputs: list[Any]) -> dict[str, Any]:
        if self.about["call"].get("attn_mask") != "causal_bool":
            return {}
        length = inputs[0].shape[1]
        mask = np.triu(np.ones((length, length), bool), 1)
        return {"attn_mask": burn.tensor(mask, device=inputs[0].device)}

    def compare(self, wrong: list[str], key: str, found: Any) -> None:
        expected = self.arrays[key]
        if found is None:
            wrong.append(f"{key}: no gradient")
            return
        short = found.dtype.short
        if found.numpy().dtype != expected.dtype:
            wrong.append(f"{key}: dtype {short}")
        line = difference(found.numpy(), expected, case_tolerance(short))
        if line:
            wrong.append(f"{key}: {line}")

    def outputs(self, wrong: list[str], out: Any) -> list[Any]:
        outs = _flat(out)
        count = sum(key[0] == "y" for key in self.arrays)
        if len(outs) != count:
            wrong.append(f"{len(outs)} outputs, expected {count}")
        for i, y in enumerate(outs[:count]):
            self.compare(wrong, f"y{i}", y)
        return outs


@pytest.mark.parametrize("name", NAMES)
def test_module_cases_hold(name: str, device: Any) -> None:
    case = Case(name)
    tracking = device.autodiff()
    wrong: list[str] = []
    model = case.model(tracking)
    inputs = case.inputs(tracking, grad=True)
    run = model if case.about["train"] else model.valid(grad=True)
    outs = case.outputs(wrong, run(*inputs, **case.call(inputs)))
    pairs = [
        (y, burn.tensor(case.arrays[f"c{i}"], device=tracking))
        for i, y in enumerate(outs)
        if f"c{i}" in case.arrays
    ]
    grads = burn.backward([y for y, _ in pairs], [c for _, c in pairs])
    for i, x in enumerate(inputs):
        if f"gx{i}" in case.arrays:
            case.compare(wrong, f"gx{i}", x.grad(grads))
    for key, p in model.named_parameters():
        if f"gp:{key}" in case.arrays:
            case.compare(wrong, f"gp:{key}", p.grad(grads))
    for key, b in model.named_buffers():
        if f"b:{key}" in case.arrays:
            case.compare(wrong, f"b:{key}", b)
    if not case.about["train"]:
        plain = case.inputs(device, grad=False)
        case.outputs(wrong, case.model(device).valid()(*plain, **case.call(plain)))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", NAMES)
def test_state_dicts_have_pytorchs_keys_and_shapes(name: str, device: Any) -> None:
    case = Case(name)
    state = case.model(device).state_dict()
    assert {k: tuple(v.shape) for k, v in state.items()} == {
        k: v.shape for k, v in case.state.items()
    }
