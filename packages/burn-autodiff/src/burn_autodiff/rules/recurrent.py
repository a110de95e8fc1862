"""Rule of recurrent layers: the gates' gradients step by step, the weights' over all steps."""

from __future__ import annotations

from typing import Any

from burn_autodiff.rules.pieces import kernel_or_parts
from burn_autodiff.rules.table import Call, Grads, Tensor, rule


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
    """With d of what goes into the gates: dx = d W_ih; weights and biases as their entry says."""
    ops, (cell, reverse, keep), need = c.ops, c.attrs, c.need
    g_out, g_last, g_cell, g_gates, g_cells = g
    if not keep:
        *_, gates, cells = ops.recurrent(
            x, h, first_cell, weight_ih, weight_hh, bias_ih, bias_hh, lengths, cell, reverse, True
        )
    lstm, plain = cell == "lstm", cell in ("rnn_tanh", "rnn_relu")
    d, e, dh, dc = kernel_or_parts(c, "recurrent_backward")(
        weight_hh, h, first_cell, out, gates, cells, g_out, g_last, g_cell if lstm else None,
        g_gates if keep and not plain else None, g_cells if keep and lstm else None, lengths,
        cell, reverse, need[1],
    )  # fmt: skip
    gx = gw = gu = gb = gs = None
    if need[0]:
        count, n, size = d.shape
        flat = ops.reshape(d, (count * n, size))
        gx = ops.reshape(ops.matmul(flat, weight_ih), x.shape)
    inputs, states, biases = need[3], need[4], need[5] or need[6]
    if inputs or states or biases:
        gw, gu, gb, gs = kernel_or_parts(c, "recurrent_weights")(
            d, e if cell == "gru" else None, x, h, out, lengths, reverse, inputs, states, biases
        )
    return (
        gx, dh if need[1] else None, dc if lstm else None, gw if inputs else None,
        gu if states else None, gb if need[5] else None,
        (gs if cell == "gru" else gb) if need[6] else None, None,
    )  # fmt: skip
