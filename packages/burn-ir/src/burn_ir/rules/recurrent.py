"""Rules of recurrent layers."""

from __future__ import annotations

from burn_ir.entry import Spec
from burn_ir.rules.basic import check_dtype
from burn_std import ArgumentError, DTypeError, ShapeError

# Rows of the weights per element of the state.
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
# What each keeps of a step for the backward, per element of the state.
KEPT = {"lstm": 4, "gru": 4, "rnn_tanh": 0, "rnn_relu": 0}


def _cell(op: str, cell: str, c: Spec | None) -> int:
    """Return the gates of a cell."""
    gates = GATES.get(cell)
    if gates is None:
        raise ArgumentError(op, f"cell is one of {', '.join(GATES)}", got=cell)
    if (c is None) == (cell == "lstm"):
        raise ArgumentError(
            op, "an lstm has a first cell state and no other cell has",
            got=f"{cell} and {'none' if c is None else c}",
        )  # fmt: skip
    return gates


def _lengths(op: str, lengths: Spec | None, batch: int) -> None:
    if lengths is None:
        return
    if not lengths.dtype.is_int:
        raise DTypeError(op, "lengths are integers", got=lengths)
    if lengths.shape != (batch,):
        raise ShapeError(op, "there is one length per sequence", got=f"{lengths} for {batch}")


def recurrent(
    x: Spec, h: Spec, c: Spec | None, weight_ih: Spec, weight_hh: Spec, bias_ih: Spec | None,
    bias_hh: Spec | None, lengths: Spec | None, cell: str, reverse: bool, keep: bool,
) -> tuple[Spec, ...]:  # fmt: skip
    """Rule of recurrent: x [L, N, I], states [N, H], weights [gates * H, I] and [gates * H, H]."""
    op = "recurrent"
    check_dtype(op, "float", x, h, c, weight_ih, weight_hh, bias_ih, bias_hh)
    gates = _cell(op, cell, c)
    if x.rank != 3 or h.rank != 2 or h.shape[0] != x.shape[1]:
        raise ShapeError(op, "x is [L, N, I], h is [N, H]", got=f"x {x}, h {h}")
    (count, batch, inputs), hidden = x.shape, h.shape[1]
    rows = gates * hidden
    for name, spec, shape in (
        ("c", c, (batch, hidden)), ("weight_ih", weight_ih, (rows, inputs)),
        ("weight_hh", weight_hh, (rows, hidden)), ("bias_ih", bias_ih, (rows,)),
        ("bias_hh", bias_hh, (rows,)),
    ):  # fmt: skip
        if spec is not None and spec.shape != shape:
            raise ShapeError(op, f"{name} of {cell} is {list(shape)}", got=spec)
    if (bias_ih is None) != (bias_hh is None):
        raise ArgumentError(op, "biases come in pairs", got=f"bias_ih {bias_ih}, bias_hh {bias_hh}")
    _lengths(op, lengths, batch)
    out, none = Spec((count, batch, hidden), x.dtype), Spec((0,), x.dtype)
    lstm = cell == "lstm"
    kept = Spec((count, batch, KEPT[cell] * hidden), x.dtype)
    return (
        out, Spec(h.shape, x.dtype), Spec(h.shape, x.dtype) if lstm else none,
        kept if keep and KEPT[cell] else none, out if keep and lstm else none,
    )  # fmt: skip


def recurrent_backward(
    weight_hh: Spec, h: Spec, c: Spec | None, out: Spec, gates: Spec, cells: Spec, g: Spec | None,
    g_last: Spec | None, g_last_cell: Spec | None, g_gates: Spec | None, g_cells: Spec | None,
    lengths: Spec | None, cell: str, reverse: bool, first: bool,
) -> tuple[Spec, ...]:  # fmt: skip
    """Rule of recurrent_backward: tensors as recurrent gave them with `keep`."""
    op = "recurrent_backward"
    check_dtype(op, "float", weight_hh, h, out)
    many = _cell(op, cell, c)
    if out.rank != 3 or h.shape != out.shape[1:]:
        raise ShapeError(op, "out is [L, N, H], h is [N, H]", got=f"out {out}, h {h}")
    count, batch, hidden = out.shape
    kept = (count, batch, KEPT[cell] * hidden) if KEPT[cell] else (0,)
    cell_shape = out.shape if cell == "lstm" else (0,)
    for name, spec, shape in (
        ("weight_hh", weight_hh, (many * hidden, hidden)), ("c", c, h.shape),
        ("gates", gates, kept), ("cells", cells, cell_shape), ("g", g, out.shape),
        ("g_last", g_last, h.shape), ("g_last_cell", g_last_cell, h.shape),
        ("g_gates", g_gates, kept), ("g_cells", g_cells, cell_shape),
    ):  # fmt: skip
        if spec is not None and spec.shape != shape:
            raise ShapeError(op, f"{name} of {cell} is {list(shape)}", got=spec)
    _lengths(op, lengths, batch)
    wide, none = Spec((count, batch, many * hidden), out.dtype), Spec((0,), out.dtype)
    state = Spec(h.shape, out.dtype)
    return (
        wide, wide if cell == "gru" else none, state if first else none,
        state if cell == "lstm" else none,
    )  # fmt: skip


def recurrent_weights(
    d_gates: Spec, d_hidden: Spec | None, x: Spec, h: Spec, out: Spec, lengths: Spec | None,
    reverse: bool, inputs: bool, states: bool, biases: bool,
) -> tuple[Spec, ...]:  # fmt: skip
    """Rule of recurrent_weights: gradients as recurrent_backward gave them; not wanted is [0]."""
    op = "recurrent_weights"
    check_dtype(op, "float", d_gates, d_hidden, x, h, out)
    if out.rank != 3 or h.shape != out.shape[1:]:
        raise ShapeError(op, "out is [L, N, H], h is [N, H]", got=f"out {out}, h {h}")
    for name, spec in (("d_gates", d_gates), ("x", x)):
        if spec.rank != 3 or spec.shape[:2] != out.shape[:2]:
            raise ShapeError(op, f"{name} is [L, N, *]", got=f"{name} {spec} for out {out}")
    if d_hidden is not None and d_hidden.shape != d_gates.shape:
        raise ShapeError(op, "d_hidden is like d_gates", got=f"{d_hidden} for {d_gates}")
    _lengths(op, lengths, h.shape[0])
    rows, none = d_gates.shape[2], Spec((0,), x.dtype)
    bias = Spec((rows,), x.dtype) if biases else none
    return (
        Spec((rows, x.shape[2]), x.dtype) if inputs else none,
        Spec((rows, h.shape[1]), x.dtype) if states else none,
        bias, bias if d_hidden is not None else none,
    )  # fmt: skip
