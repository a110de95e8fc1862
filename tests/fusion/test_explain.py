"""`burn.explain`: counts, bytes and names are those of the plans that ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import burn
from burn import nn

F = burn.functional


def test_counts_and_bytes_of_a_fused_program() -> None:
    x = burn.ones(100, 10, device=burn.device("cpu"))
    row = burn.ones(10, device=x.device)
    found = burn.explain(lambda x: F.relu(x * 2 + row).permute(1, 0), x)
    (plan,) = found.plans
    assert [k.operations for k in plan.kernels] == [("mul", "add", "relu"), ("permute",)]
    assert (plan.kernels[0].reads, plan.kernels[0].writes) == (4040, 4000)
    assert plan.kernels[1].is_view
    assert plan.least == 8040
    assert (found.operations, found.kernels) == (4, 1)
    assert plan.seconds > 0
    assert "mul add relu" in str(found)


def test_without_a_fuser_every_operation_is_a_kernel() -> None:
    x = burn.ones(8, device=burn.device("fusion-flex"))
    found = burn.explain(lambda x: (x * 2).exp(), x)
    assert [k.operations for k in found.plans[0].kernels] == [("full",), ("mul",), ("exp",)]


def test_modules_gradients_and_the_page(tmp_path: Path) -> None:
    device = burn.device("cpu")
    model = nn.Linear(4, 3, device=device.autodiff())

    def gradients(x: Any) -> Any:
        grads = model(x).square().mean().backward()
        return [p.grad(grads) for p in model.parameters()]

    x = burn.ones(2, 4, device=device)
    found = burn.explain(gradients, x)
    assert any("matmul" in k.operations for k in found.plans[0].kernels)
    found.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "matmul" in page
    assert str(found.kernels) in page
    forward = burn.explain(model.valid(), x)
    assert forward.operations < found.operations


def test_what_cannot_be_explained() -> None:
    with pytest.raises(burn.CaptureError, match="fusion-flex"):
        burn.explain(lambda x: x + 1, burn.ones(2, device=burn.device("flex")))
    x = burn.ones(2, device=burn.device("fusion-flex"))
    with pytest.raises(burn.CaptureError, match="reads nothing"):
        burn.explain(lambda x: x.sum().item(), x)


@pytest.mark.parametrize("name", ["fusion-flex", "fusion-cpu"])
def test_a_program_that_is_explained_changes_what_it_changes_once(name):
    device = burn.device(name)
    x, held = burn.ones(64, device=device), {"total": burn.ones(64, device=device) * 2}
    device.flush()

    def program(x):
        held["total"] = held["total"] + x

    burn.explain(program, x)
    assert held["total"].tolist() == [3.0] * 64
    burn.explain(program, x)
    assert held["total"].tolist() == [4.0] * 64


def test_no_plan_moves_less_than_the_least(device="fusion-cpu"):
    x = burn.ones(1000, 10, device=burn.device(device))
    for program in (lambda x: x[0] + 1, lambda x: x[:0].sum(), lambda x: x[::100], lambda x: x * 2):
        for plan in burn.explain(program, x).plans:
            assert plan.least <= sum(k.reads + k.writes for k in plan.kernels)
