"""Products of few rows and linear layers on the cpu against products in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn
from burn_cube_backend.kernels import blas, narrow

CPU = burn.device("eager-cpu")
REGISTERS = narrow.registers()
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-11}


def blas_of_cpu() -> Any:
    """Return the provider, or skip where it is off."""
    backend: Any = CPU.without_autodiff().context.resource.backend
    found = blas.provider(backend.engine)
    if found is None:
        pytest.skip("no BLAS library")
    return found


@pytest.mark.parametrize("registers", sorted({REGISTERS, (32, 2), (16, 3)}))
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_tiles(registers: tuple[int, int], kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = blas_of_cpu()
    monkeypatch.setattr(narrow, "registers", lambda: registers)
    provider.plans.clear()
    dice = np.random.default_rng(0)
    for m in (1, 2, 5, 7, 13):
        for k in (64, 67):
            for n in (1, 3, 8, 17, 100):
                x, w, b = (
                    dice.standard_normal(s).astype(kind) for s in ((m, k + 3), (n, k), (n + 2,))
                )
                bx, bw, bb = (burn.tensor(v, device=CPU) for v in (x, w, b))
                x, bx, b, bb = x[:, 2:-1], bx[:, 2:-1], b[1:-1], bb[1:-1]
                exact = x.astype(np.float64) @ w.T.astype(np.float64)
                limit = TOLERANCE[kind] * max(1.0, np.abs(exact).max())
                turned = burn.tensor(np.ascontiguousarray(w.T), device=CPU)
                for found, wanted in (
                    (burn.functional.linear(bx, bw, bb), exact + b), (bx @ bw.T, exact),
                    (bx @ turned, exact),
                ):  # fmt: skip
                    assert np.abs(found.numpy() - wanted).max() <= limit, (m, k, n)
    assert any(isinstance(p, narrow.Narrow) for p in provider.plans.values())
    provider.plans.clear()


@pytest.mark.parametrize("kind", [burn.float32, burn.bfloat16, burn.int64])
@pytest.mark.parametrize("bias", [None, (4,), (1,), (), (2, 1, 4)])
def test_linear_of_any_bias(kind: Any, bias: Any) -> None:
    dice = np.random.default_rng(0)
    x, w = dice.integers(-4, 5, (2, 3, 6)), dice.integers(-4, 5, (4, 6))
    b = None if bias is None else dice.integers(-4, 5, bias)
    device = CPU
    given = [None if v is None else burn.tensor(v, dtype=kind, device=device) for v in (x, w, b)]
    found = burn.functional.linear(*given).to(burn.float32).numpy()
    np.testing.assert_array_equal(found, x @ w.T + (0 if b is None else b))
    # All dims of x but the last in another order, and a weight that is one row.
    swapped = burn.functional.linear(given[0].transpose(0, 1), given[1]).to(burn.float32).numpy()
    np.testing.assert_array_equal(swapped, x.transpose(1, 0, 2) @ w.T)
    row = burn.functional.linear(given[0], given[1][0]).to(burn.float32).numpy()
    np.testing.assert_array_equal(row, x @ w[0])
