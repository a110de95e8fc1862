"""Every backward rule against central differences, of first and second order, and checkpointed."""

from __future__ import annotations

from typing import Any

import pytest

from burn_ir import CATALOG
from burn_testing import gradcheck

# Differentiable, but with nothing for differences to measure; each has a test of its own in
# test_special.py. Gradients by symmetric matrices are symmetric, which differences by one element
# are not: tests/rules/test_rules_linalg.py takes differences of symmetric changes, of both orders.
APART = {"ctc_loss", "quantize", "dequantize", "quantized_matmul", "cholesky", "eigh"}

DIFFERENTIABLE = sorted(e.name for e in CATALOG if e.differentiable and "::" not in e.name)
CHECKED = [name for name in DIFFERENTIABLE if name not in APART]
CLOSED = [name for name in CHECKED if CATALOG[name].closed]


def test_every_differentiable_operation_has_a_sample_with_gradients() -> None:
    assert [name for name in CHECKED if not gradcheck.checkable(name)] == []


@pytest.mark.parametrize("name", CHECKED)
def test_gradients_are_the_differences(name: str, device: Any) -> None:
    wrong = gradcheck.check(device, name, gradcheck.first_order)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", CLOSED)
def test_gradients_of_gradients_are_the_differences(name: str, device: Any) -> None:
    wrong = gradcheck.check(device, name, gradcheck.second_order)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", CHECKED)
def test_checkpointing_changes_no_bit(name: str, device: Any) -> None:
    wrong = gradcheck.check(device, name, gradcheck.checkpointed)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if not CATALOG[n].closed])
def test_an_operation_that_is_not_closed_says_so_at_once(name: str, device: Any) -> None:
    from burn_std import AutodiffError
    from burn_testing.samples import SAMPLES

    s = next(s for s in SAMPLES[name] if "f64" in s.dtypes)
    context = device.autodiff().context
    probe = gradcheck.Probe(s)
    leaves = [context.decorator.leaf(context.tensor_from_numpy(v)) for v in probe.leaves]
    outs = probe.run(context, leaves)[:1]
    seeds = [context.tensor_from_numpy(c) for c in probe.draw_cotangents(outs)]
    with pytest.raises(AutodiffError) as caught:
        context.decorator.backward(outs, seeds, create_graph=True)
    assert caught.value.op == name
