"""Recurrent layers written in other operations, step by step."""

from __future__ import annotations

from typing import Any

from burn_ir.catalog.decompose import Ops, Tensor, in_f32, zeros
from burn_ir.rules.recurrent import GATES, KEPT
from burn_std.dtypes import int64


def _parts(ops: Ops, x: Tensor, count: int) -> list[Tensor]:
    """Return the gates of [N, count * H]."""
    n, wide = x.shape
    size = wide // count
    return [ops.slice(x, (1, 1), (0, k * size), (n, (k + 1) * size)) for k in range(count)]


def _stacked(ops: Ops, steps: list[Tensor], reverse: bool, dtype: Any, shape: Any) -> Tensor:
    """Return steps, in the order in which they were computed, as a sequence of a shape."""
    if not steps:
        return zeros(ops, dtype, shape)
    ordered = steps[::-1] if reverse else steps
    return ops.cat([ops.unsqueeze(s, (0,)) for s in ordered], 0)


def _running(ops: Ops, lengths: Tensor | None, step: int) -> Tensor | None:
    """Return which sequences have a step, [N, 1]."""
    return None if lengths is None else ops.unsqueeze(ops.gt(lengths, step), (1,))


def _nothing(ops: Ops, like: Tensor) -> Tensor:
    """Return no elements, as a part of a matrix, so that it is tracked where that is."""
    return ops.reshape(ops.slice(like, (1, 1), (0, 0), (0, 0)), (0,))


def _choose(ops: Ops, active: Tensor | None, then: Tensor, other: Tensor | float) -> Tensor:
    return then if active is None else ops.where(active, then, other)


def _stepped(
    ops: Ops, cell: str, share: Tensor, h: Tensor, c: Tensor | None, weight: Tensor,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor | None, list[Tensor]]:  # fmt: skip
    """Return the new state, the new cell and the gates of one step."""
    own = ops.linear(h, weight, bias)
    if cell == "lstm":
        i, f, g, o = _parts(ops, ops.add(share, own), 4)
        i, f, g, o = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)
        c = ops.add(ops.mul(f, c), ops.mul(i, g))
        return ops.mul(o, ops.tanh(c)), c, [i, f, g, o]
    if cell == "gru":
        (xr, xz, xn), (hr, hz, hn) = _parts(ops, share, 3), _parts(ops, own, 3)
        r, z = ops.sigmoid(ops.add(xr, hr)), ops.sigmoid(ops.add(xz, hz))
        n = ops.tanh(ops.add(xn, ops.mul(r, hn)))
        return ops.add(n, ops.mul(z, ops.sub(h, n))), None, [r, z, n, hn]
    both = ops.add(share, own)
    return (ops.tanh(both) if cell == "rnn_tanh" else ops.relu(both)), None, []


@in_f32()
def recurrent(
    ops: Ops, x: Tensor, h: Tensor, c: Tensor | None, weight_ih: Tensor, weight_hh: Tensor,
    bias_ih: Tensor | None, bias_hh: Tensor | None, lengths: Tensor | None, cell: str,
    reverse: bool, keep: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return (out, last, last cell, gates, cells); what is not kept, or not there, is empty.

    A sequence that has ended keeps its state, its outputs and gates are 0; one that is read
    backwards begins at its end. The input's share of all steps is one product.
    """
    (count, batch, _), hidden, dtype = x.shape, h.shape[1], x.dtype
    shares = ops.linear(x, weight_ih, bias_ih)
    outs: list[Tensor] = []
    gates: list[Tensor] = []
    cells: list[Tensor] = []
    for t in range(count - 1, -1, -1) if reverse else range(count):
        active = _running(ops, lengths, t)
        share = ops.select(shares, 0, t)
        new, new_c, kept = _stepped(ops, cell, share, h, c, weight_hh, bias_hh)
        outs.append(_choose(ops, active, new, 0.0))
        h = _choose(ops, active, new, h)
        if new_c is not None:
            c = _choose(ops, active, new_c, c)
        if keep and kept:
            gates.append(_choose(ops, active, ops.cat(kept, 1), 0.0))
            if c is not None:
                cells.append(c)
    shape, none = (count, batch, hidden), _nothing(ops, h)
    wide = (count, batch, KEPT[cell] * hidden)
    return (
        _stacked(ops, outs, reverse, dtype, shape), h, none if c is None else c,
        _stacked(ops, gates, reverse, dtype, wide) if keep and KEPT[cell] else none,
        _stacked(ops, cells, reverse, dtype, shape) if keep and c is not None else none,
    )  # fmt: skip


def _slope_sigmoid(ops: Ops, y: Tensor) -> Tensor:
    return ops.mul(y, ops.sub(1.0, y))


def _slope_tanh(ops: Ops, y: Tensor) -> Tensor:
    return ops.sub(1.0, ops.square(y))


def _some(ops: Ops, x: Tensor, y: Tensor | None) -> Tensor:
    return x if y is None else ops.add(x, y)


@in_f32()
def recurrent_backward(
    ops: Ops, weight_hh: Tensor, h: Tensor, c: Tensor | None, out: Tensor, gates: Tensor,
    cells: Tensor, g: Tensor | None, g_last: Tensor | None, g_last_cell: Tensor | None,
    g_gates: Tensor | None, g_cells: Tensor | None, lengths: Tensor | None, cell: str,
    reverse: bool, first: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return gradients of what goes into the gates of every step, and of the first states.

    With (dh, dc) of a state: lstm has do = dh tanh(c), dc += dh o (1 - tanh(c)^2), di = dc g,
    df = dc c', dg = dc i, dc' = dc f; gru has dz = dh (h' - n), dn = dh (1 - z), dr = dn hn,
    dhn = dn r, dh' = dh z; each times the slope of its gate. dh' += d_hidden W_hh. What comes
    from the state into the gates of gru differs from what comes from the input: `d_hidden`.
    """
    (count, batch, hidden), dtype = out.shape, out.dtype
    none, zero = _nothing(ops, h), zeros(ops, dtype, (batch, hidden))
    dh = zero if g_last is None else g_last
    dc = zero if g_last_cell is None else g_last_cell
    behind: list[Tensor] = []
    outer: list[Tensor] = []
    for t in range(count) if reverse else range(count - 1, -1, -1):
        before = t + 1 if reverse else t - 1
        inner = 0 <= before < count
        active = _running(ops, lengths, t)
        whole = _some(ops, dh, None if g is None else ops.select(g, 0, t))
        more = [None] * 4 if g_gates is None else _parts(ops, ops.select(g_gates, 0, t), 4)
        carried: Tensor | None = None
        if cell == "lstm":
            i, f, m, o = _parts(ops, ops.select(gates, 0, t), 4)
            tc = ops.tanh(ops.select(cells, 0, t))
            old = ops.select(cells, 0, before) if inner else c
            given = _some(ops, dc, None if g_cells is None else ops.select(g_cells, 0, t))
            dc = ops.add(given, ops.mul(ops.mul(whole, o), _slope_tanh(ops, tc)))
            parts = [
                ops.mul(_some(ops, ops.mul(dc, m), more[0]), _slope_sigmoid(ops, i)),
                ops.mul(_some(ops, ops.mul(dc, old), more[1]), _slope_sigmoid(ops, f)),
                ops.mul(_some(ops, ops.mul(dc, i), more[2]), _slope_tanh(ops, m)),
                ops.mul(_some(ops, ops.mul(whole, tc), more[3]), _slope_sigmoid(ops, o)),
            ]
            dc = _choose(ops, active, ops.mul(dc, f), given)
            into = parts
        elif cell == "gru":
            r, z, n, hn = _parts(ops, ops.select(gates, 0, t), 4)
            old = h
            if inner:  # what is read first has the first state before it
                ahead = _running(ops, lengths, before)
                old = _choose(ops, ahead, ops.select(out, 0, before), h)
            dn = _some(ops, ops.mul(whole, ops.sub(1.0, z)), more[2])
            dn = ops.mul(dn, _slope_tanh(ops, n))
            dr = ops.mul(_some(ops, ops.mul(dn, hn), more[0]), _slope_sigmoid(ops, r))
            dz = _some(ops, ops.mul(whole, ops.sub(old, n)), more[1])
            dz = ops.mul(dz, _slope_sigmoid(ops, z))
            parts, into = [dr, dz, dn], [dr, dz, _some(ops, ops.mul(dn, r), more[3])]
            carried = ops.mul(whole, z)
        else:
            y = ops.select(out, 0, t)
            tanh = cell == "rnn_tanh"
            back = ops.mul(whole, _slope_tanh(ops, y)) if tanh else ops.where(
                ops.gt(y, 0.0), whole, 0.0
            )  # fmt: skip
            parts = into = [back]
        made = _choose(ops, active, ops.cat(parts, 1) if len(parts) > 1 else parts[0], 0.0)
        outer.append(made)
        if into is not parts:
            made = _choose(ops, active, ops.cat(into, 1), 0.0)
            behind.append(made)
        if active is not None:
            carried = ops.where(active, 0.0 if carried is None else carried, dh)
        if inner or first:
            dh = _some(ops, ops.matmul(made, weight_hh), carried)
    wide, lstm = (count, batch, GATES[cell] * hidden), cell == "lstm"
    # Steps were computed from the end.
    d_gates = _stacked(ops, outer, not reverse, dtype, wide)
    d_hidden = _stacked(ops, behind, not reverse, dtype, wide) if cell == "gru" else none
    return d_gates, d_hidden, dh if first else none, dc if lstm else none


def _rows(ops: Ops, x: Tensor) -> Tensor:
    """Return the steps of a sequence as rows of one matrix."""
    count, n, size = x.shape
    return ops.reshape(x, (count * n, size))


def _before(ops: Ops, h: Tensor, out: Tensor, lengths: Tensor | None, reverse: bool) -> Tensor:
    """Return the states that the steps began with: the first one, then the outputs.

    A step of a sequence that has ended has no gradient, so that its state does not matter.
    """
    count = out.shape[0]
    if not count:
        return out
    start = ops.unsqueeze(h, (0,))
    if count == 1:
        return start
    low, high = (1, count) if reverse else (0, count - 1)
    rest = ops.slice(out, (1, 1, 1), (low, 0, 0), (high, *out.shape[1:]))
    if reverse and lengths is not None:  # sequences begin at their ends
        numbers = ops.unsqueeze(ops.arange(int64, count - 1, 1, 1), (1, 2))
        rest = ops.where(ops.lt(numbers, ops.unsqueeze(lengths, (1,))), rest, h)
    return ops.cat([rest, start] if reverse else [start, rest], 0)


@in_f32()
def recurrent_weights(
    ops: Ops, d_gates: Tensor, d_hidden: Tensor | None, x: Tensor, h: Tensor, out: Tensor,
    lengths: Tensor | None, reverse: bool, inputs: bool, states: bool, biases: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return gradients of the weights and biases: products and sums over all steps.

    With d of what goes into the gates, e of the state's share in it (d but for gru), and h' of the
    states before: dW_ih = d^T x, dW_hh = e^T h', db_ih = sum(d), db_hh = sum(e). That of one bias
    serves both where e is d.
    """
    none = _nothing(ops, h)
    flat = _rows(ops, d_gates)
    side = flat if d_hidden is None else _rows(ops, d_hidden)
    turned = ops.permute(flat, (1, 0))
    behind = turned if d_hidden is None else ops.permute(side, (1, 0))
    return (
        ops.matmul(turned, _rows(ops, x)) if inputs else none,
        ops.matmul(behind, _rows(ops, _before(ops, h, out, lengths, reverse))) if states else none,
        ops.sum(flat, (0,), False, None) if biases else none,
        ops.sum(side, (0,), False, None) if biases and d_hidden is not None else none,
    )
