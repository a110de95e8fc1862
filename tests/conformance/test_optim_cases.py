"""Trajectories of PyTorch's optimizers and schedules."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import burn
from burn_testing.tolerance import case_tolerance, difference
from tests.conftest import CASES

OPTIM: dict[str, Any] = json.loads((CASES / "optim.json").read_text())
SCHEDULES: list[Any] = json.loads((CASES / "schedulers.json").read_text())


def _label(run: dict[str, Any]) -> str:
    settings = ",".join(f"{k}={v}" for k, v in run["kwargs"].items() if k != "lr")
    return f"{run['cls']}({settings})"


class Pair(burn.nn.Module):
    """Two parameters under one loss whose gradients are given."""

    def __init__(self, p: Any, q: Any) -> None:
        self.p = burn.nn.Parameter(p)
        if q is not None:
            self.q = burn.nn.Parameter(q)


@pytest.mark.parametrize("run", OPTIM["runs"], ids=_label)
def test_optimizer_trajectories_hold(run: Any, tracking: Any) -> None:
    cls = getattr(burn.optim, run["cls"])
    kwargs = {k: tuple(v) if isinstance(v, list) else v for k, v in run["kwargs"].items()}
    one = run["cls"] == "Muon"
    given = [burn.tensor(np.array(OPTIM[n], np.float32), device=tracking) for n in ("p0", "q0")]
    model = Pair(given[0], None if one else given[1])
    optimizer = cls(**kwargs)
    for step, (pair, want) in enumerate(zip(OPTIM["grads"], run["trajectory"], strict=True)):
        loss = (model.p * burn.tensor(np.array(pair[0], np.float32), device=tracking)).sum()
        if not one:
            loss = (
                loss + (model.q * burn.tensor(np.array(pair[1], np.float32), device=tracking)).sum()
            )
        optimizer.step(model, loss.backward())
        for name, expected in zip(("p",) if one else ("p", "q"), want, strict=False):
            found = getattr(model, name).numpy()
            line = difference(found, np.array(expected), case_tolerance("f32"))
            assert line is None, f"step {step}, {name}: {line}"


@pytest.mark.parametrize("run", SCHEDULES, ids=_label)
def test_schedules_hold(run: Any) -> None:
    schedule = getattr(burn.optim.lr_scheduler, run["cls"])(run["base_lr"], **run["kwargs"])
    for step, lr in enumerate(run["lrs"]):
        assert schedule.lr == pytest.approx(lr, rel=1e-12, abs=1e-15), f"step {step}"
        schedule.step(*([run["arg"][step]] if "arg" in run else []))
