"""Rule of recurrent layers: the gates' gradients step by step, all weights' in one product."""

from __future__ import annotations

from typing import Any

from burn_autodiff.rules.pieces import add_some, kernel_or_parts, transpose
from burn_autodiff.rules.table import Call, Grads, Tensor, rule
from burn_std.dtypes import int64


def _steps(c: Call, x: Tensor, start: int, stop: int) -> Tensor:
    """Return steps of a sequence as rows of one matrix."""
    n, size = x.shape[1:]
    if start or stop < x.shape[0]:
        x = c.ops.slice(x, (1, 1, 1), (start, 0, 0), (stop, n, size))
    return c.ops.reshape(x, ((stop - start) * n, size))


@rule(
    "recurrent",
    saves="x h c weight_ih weight_hh bias_ih bias_hh lengths out gates cells",
    wide=True,
)
def recurrent(
    c: Call, g: Any, x: Tensor, h: Tensor, first_cell: Tensor, weight_ih: Tensor,
    weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor, lengths: Tensor, out: Tensor,
    gates: Tensor, cells: Tensor,
) -> Grads:  # fmt: skip
    """With d of what goes into the gates, and e of the state's share in it (d but for gru):

    dx = d W_ih, dW_ih = d^T x, dW_hh = e^T h', db_ih = sum(d), db_hh = sum(e), over all steps.
    """
    ops = c.ops
    cell, reverse, keep = c.attrs
    g_out, g_last, g_cell, g_gates, g_cells = g
    if not keep:
        *_, gates, cells = ops.recurrent(
            x, h, first_cell, weight_ih, weight_hh, bias_ih, bias_hh, lengths, cell, reverse, True
        )
    lstm, plain = cell == "lstm", cell in ("rnn_tanh", "rnn_relu")
    d, e, dh, dc = kernel_or_parts(c, "recurrent_backward")(
        weight_hh, h, first_cell, out, gates, cells, g_out, g_last, g_cell if lstm else None,
        g_gates if keep and not plain else None, g_cells if keep and lstm else None, lengths,
        cell, reverse,
    )  # fmt: skip
    count = out.shape[0]
    e = e if cell == "gru" else d
    flat = _steps(c, d, 0, count)
    side = flat if e is d else _steps(c, e, 0, count)
    gx = gw = gu = gb = gs = None
    if c.need[0]:
        gx = ops.reshape(ops.matmul(flat, weight_ih), x.shape)
    if c.need[3]:
        gw = ops.matmul(transpose(c, flat), _steps(c, x, 0, count))
    if c.need[4]:
        gu = _of_recurrent(c, e, h, out, lengths, reverse)
    if c.need[5]:
        gb = ops.sum(flat, (0,), False, None)
    if c.need[6]:
        gs = gb if side is flat and gb is not None else ops.sum(side, (0,), False, None)
    return gx, dh, dc if lstm else None, gw, gu, gb, gs, None


def _of_recurrent(
    c: Call, e: Tensor, h: Tensor, out: Tensor, lengths: Tensor, reverse: bool
) -> Tensor:
    """Return e^T times the states that the steps began with: the first one, then the outputs.

    A step of a sequence that has ended has no gradient, so that its state does not matter.
    """
    ops, count = c.ops, out.shape[0]
    if not count:
        return ops.full(e.dtype, (e.shape[2], h.shape[1]), 0)
    begin, rest = (count - 1, (0, count - 1)) if reverse else (0, (1, count))
    states = (1, count) if reverse else (0, count - 1)
    made = ops.matmul(transpose(c, _steps(c, e, begin, begin + 1)), h)
    if count == 1:
        return made
    before = ops.slice(out, (1, 1, 1), (states[0], 0, 0), (states[1], *out.shape[1:]))
    if reverse and lengths is not None:  # sequences begin at their ends
        numbers = ops.unsqueeze(ops.arange(int64, count - 1, 1, 1), (1, 2))
        before = ops.where(ops.lt(numbers, ops.unsqueeze(lengths, (1,))), before, h)
    left = transpose(c, _steps(c, e, *rest))
    return add_some(c, ops.matmul(left, _steps(c, before, 0, count - 1)), made)
