"""Rule of recurrent layers: the gates' gradients step by step, all weights' in one product."""

from __future__ import annotations

from typing import Any

from burn_autodiff.rules.pieces import kernel_or_parts, transpose
from burn_autodiff.rules.table import Call, Grads, Tensor, rule
from burn_std.dtypes import int64


def _rows(c: Call, x: Tensor) -> Tensor:
    """Return the steps of a sequence as rows of one matrix."""
    count, n, size = x.shape
    return c.ops.reshape(x, (count * n, size))


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
    flat = _rows(c, d)
    side = _rows(c, e) if cell == "gru" else flat
    turned = transpose(c, flat)
    gx = gw = gu = gb = gs = None
    if c.need[0]:
        gx = ops.reshape(ops.matmul(flat, weight_ih), x.shape)
    if c.need[3]:
        gw = ops.matmul(turned, _rows(c, x))
    if c.need[4]:
        behind = turned if side is flat else transpose(c, side)
        gu = ops.matmul(behind, _rows(c, _before(c, h, out, lengths, reverse)))
    if c.need[5]:
        gb = ops.sum(flat, (0,), False, None)
    if c.need[6]:
        gs = gb if side is flat and gb is not None else ops.sum(side, (0,), False, None)
    return gx, dh, dc if lstm else None, gw, gu, gb, gs, None


def _before(c: Call, h: Tensor, out: Tensor, lengths: Tensor, reverse: bool) -> Tensor:
    """Return the states that the steps began with: the first one, then the outputs.

    A step of a sequence that has ended has no gradient, so that its state does not matter.
    """
    ops, count = c.ops, out.shape[0]
    if not count:
        return out
    first = ops.unsqueeze(h, (0,))
    if count == 1:
        return first
    start, stop = (1, count) if reverse else (0, count - 1)
    rest = ops.slice(out, (1, 1, 1), (start, 0, 0), (stop, *out.shape[1:]))
    if reverse and lengths is not None:  # sequences begin at their ends
        numbers = ops.unsqueeze(ops.arange(int64, count - 1, 1, 1), (1, 2))
        rest = ops.where(ops.lt(numbers, ops.unsqueeze(lengths, (1,))), rest, h)
    return ops.cat([rest, first] if reverse else [first, rest], 0)
