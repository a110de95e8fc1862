"""Optimizers without stored trajectories, against their formulas in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from burn_optim import LAMB, Adafactor, Adan, Lion, Muon
from burn_std import ShapeError

RNG = np.random.default_rng(2)
P = RNG.standard_normal((3, 2)).astype(np.float32).astype(np.float64)
GRADS = RNG.standard_normal((5, 3, 2)).astype(np.float32).astype(np.float64)


def _norm(x):
    return np.sqrt((x * x).sum())


def _run(weights, optimizer, grads=GRADS, value=P):
    model = weights(w=value)
    out = []
    for g in grads:
        optimizer.step(model, model.gradients(g))
        out.append(model.w.numpy().copy())
    return out


def _close(found, want):
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_lion(weights, decay):
    p, m, want = P.copy(), np.zeros_like(P), []
    for g in GRADS:
        p = p * (1 - 0.01 * decay) - 0.01 * np.sign(0.9 * m + 0.1 * g)
        m = 0.99 * m + 0.01 * g
        want.append(p)
    _close(_run(weights, Lion(lr=0.01, weight_decay=decay)), want)


@pytest.mark.parametrize("no_prox", [False, True])
def test_adan(weights, no_prox):
    b1, b2, b3, lr, decay = 0.98, 0.92, 0.99, 0.01, 0.1
    p, m, d, v, last, want = P.copy(), 0.0, 0.0, 0.0, GRADS[0], []
    for t, g in enumerate(GRADS, 1):
        difference = g - last
        m = b1 * m + (1 - b1) * g
        d = b2 * d + (1 - b2) * difference
        v = b3 * v + (1 - b3) * (g + b2 * difference) ** 2
        move = m / (1 - b1**t) + b2 * d / (1 - b2**t)
        move = lr * move / (np.sqrt(v / (1 - b3**t)) + 1e-8)
        p = p * (1 - lr * decay) - move if no_prox else (p - move) / (1 + lr * decay)
        last = g
        want.append(p)
    _close(_run(weights, Adan(lr=lr, weight_decay=decay, no_prox=no_prox)), want)


def test_lamb(weights):
    p, m, v, want = P.copy(), 0.0, 0.0, []
    for t, g in enumerate(GRADS, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        r = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6) + 0.05 * p
        p = p - 0.01 * _norm(p) / _norm(r) * r
        want.append(p)
    _close(_run(weights, LAMB(lr=0.01, weight_decay=0.05)), want)


def test_lamb_of_zeros_moves(weights):
    (found,) = _run(weights, LAMB(lr=0.01), GRADS[:1], np.zeros((3, 2)))
    np.testing.assert_allclose(np.abs(found), 0.01, rtol=1e-3)


@pytest.mark.parametrize("shape", [(3, 2), (4,), ()])
def test_adafactor(weights, shape):
    start, grads = RNG.standard_normal(shape), RNG.standard_normal((5, *shape))
    eps1 = 2.0**-23
    p, r, c, v, want = start.copy(), 0.0, 0.0, 0.0, []
    for t, g in enumerate(grads, 1):
        share, rho = t**-0.8, min(0.05, t**-0.5)
        size = max(1e-3, _norm(p) / p.size**0.5) * rho
        p = p * (1 - 0.05 * 0.1)
        if len(shape) > 1:
            r = r + share * ((g * g).mean(-1, keepdims=True) - r)
            c = c + share * ((g * g).mean(-2, keepdims=True) - c)
            power = r @ c / max(r.mean(), eps1)
        else:
            v = v + share * (g * g - v)
            power = v
        u = g / np.sqrt(np.maximum(power, eps1**2))
        p = p - size / max(1.0, _norm(u) / u.size**0.5) * u
        want.append(p)
    _close(_run(weights, Adafactor(lr=0.05, weight_decay=0.1), grads, start), want)


def test_adafactor_keeps_little(weights):
    model = weights(w=np.ones((30, 20)), b=np.ones(5))
    optimizer = Adafactor()
    optimizer.step(model, model.gradients(np.ones((30, 20)), np.ones(5)))
    state = optimizer.state_dict(model)
    assert {k: t.shape for k, t in state.items() if not k.endswith("step")} == {
        "w.row_var": (30, 1), "w.col_var": (1, 20), "b.variance": (5,),
    }  # fmt: skip


def test_muons_move_is_nearly_orthogonal(weights):
    start, grad = np.zeros((6, 4)), RNG.standard_normal((6, 4))
    (found,) = _run(weights, Muon(lr=1.0, weight_decay=0.0), [grad], start)
    singular = np.linalg.svd(found / np.sqrt(6 / 4), compute_uv=False)
    assert ((singular > 0.6) & (singular < 1.3)).all()
    (matched,) = _run(
        weights, Muon(lr=1.0, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"), [grad], start
    )
    np.testing.assert_allclose(matched / found, 0.2 * np.sqrt(6) / np.sqrt(1.5), rtol=1e-5)


def test_muon_refuses_vectors_by_name(weights):
    model = weights(w=np.ones((2, 2)), bias=np.ones(2))
    with pytest.raises(ShapeError, match=r"bias of shape \(2,\).*add_group"):
        Muon().step(model, model.gradients(np.ones((2, 2)), np.ones(2)))
