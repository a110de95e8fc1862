"""Samples of recurrent layers: cells, directions, lengths, widths that fill no vector."""

from __future__ import annotations

from burn_std import ArgumentError, DTypeError, ShapeError
from burn_testing.samples.sample import FLOAT_NAMES, Draw, error, ints, sample, t

_CELLS = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def _weights(gates: int, inputs: int, hidden: int, biased: bool) -> tuple[Draw | None, ...]:
    rows = gates * hidden
    bias = t(rows, low=-0.5, high=0.5) if biased else None
    return (
        t(rows, inputs, low=-0.8, high=0.8), t(rows, hidden, low=-0.8, high=0.8), bias, bias
    )  # fmt: skip


def _call(
    cell: str, sizes: tuple[int, int, int, int], reverse: bool, keep: bool, biased: bool,
    lengths: list[int] | None,
) -> None:  # fmt: skip
    count, batch, inputs, hidden = sizes
    state = t(batch, hidden, low=-1, high=1)
    sample(
        "recurrent", t(count, batch, inputs), state, state if cell == "lstm" else None,
        *_weights(_CELLS[cell], inputs, hidden, biased), None if lengths is None else ints(lengths),
        attrs=(cell, reverse, keep), dtypes=FLOAT_NAMES, length=32,
        name=f"{cell}_{'x'.join(map(str, sizes))}{'_back' * reverse}{'_ends' * bool(lengths)}",
    )  # fmt: skip


def _call_backward(
    cell: str, sizes: tuple[int, int, int], reverse: bool, kept: bool, lengths: list[int] | None
) -> None:
    count, batch, hidden = sizes
    lstm, gated = cell == "lstm", cell in ("lstm", "gru")
    state = t(batch, hidden, low=-1, high=1)
    steps = t(count, batch, hidden, low=-0.9, high=0.9)
    gates = t(count, batch, 4 * hidden, low=0.1, high=0.9)
    sample(
        "recurrent_backward", t(_CELLS[cell] * hidden, hidden, low=-0.8, high=0.8), state,
        state if lstm else None, steps, gates if gated else t(0), steps if lstm else t(0), steps,
        state if kept else None, state if kept and lstm else None,
        gates if kept and gated else None, steps if kept and lstm else None,
        None if lengths is None else ints(lengths), attrs=(cell, reverse, not kept),
        dtypes=FLOAT_NAMES, length=32,
        name=f"{cell}{'_back' * reverse}{'_kept' * kept}{'_ends' * bool(lengths)}",
    )  # fmt: skip


def _call_weights(
    sizes: tuple[int, int, int, int, int], reverse: bool, side: bool, wants: tuple[bool, ...],
    lengths: list[int] | None,
) -> None:  # fmt: skip
    count, batch, inputs, hidden, rows = sizes
    steps = t(count, batch, rows)
    sample(
        "recurrent_weights", steps, steps if side else None, t(count, batch, inputs),
        t(batch, hidden), t(count, batch, hidden), None if lengths is None else ints(lengths),
        attrs=(reverse, *wants), dtypes=FLOAT_NAMES, length=32,
        name=f"{'x'.join(map(str, sizes))}{'_back' * reverse}{'_side' * side}"
        f"{'_ends' * bool(lengths)}{'_all' * all(wants)}",
    )  # fmt: skip


for _cell in _CELLS:
    _call(_cell, (3, 2, 3, 2), False, True, True, None)
    _call(_cell, (2, 3, 2, 3), True, False, False, None)
    _call(_cell, (3, 3, 2, 2), False, True, True, [3, 1, 2])
    _call(_cell, (3, 3, 1, 2), True, True, False, [1, 3, 2])
    _call(_cell, (0, 2, 3, 2), False, True, True, None)
    _call(_cell, (2, 0, 3, 2), False, True, True, None)
    _call_backward(_cell, (2, 2, 3), False, False, None)
    _call_backward(_cell, (2, 3, 2), True, True, None)
    _call_backward(_cell, (3, 3, 2), False, True, [3, 1, 2])
    _call_backward(_cell, (3, 3, 2), True, False, [1, 3, 2])

_ALL = (True, True, True)
_call_weights((3, 2, 3, 2, 8), False, False, _ALL, None)
_call_weights((2, 3, 2, 3, 9), True, True, _ALL, None)
_call_weights((3, 3, 5, 2, 6), True, False, _ALL, [1, 3, 2])
_call_weights((3, 3, 1, 2, 7), False, True, (True, False, True), [3, 1, 2])
_call_weights((1, 2, 3, 2, 2), True, False, (False, True, False), None)
_call_weights((70, 2, 17, 35, 5), True, False, _ALL, [69, 70])  # more than one piece of steps
_call_weights((0, 2, 3, 2, 4), False, False, _ALL, None)
_call_weights((2, 0, 3, 2, 4), False, True, _ALL, None)

_GOOD = (t(3, 2, 3), t(2, 2), None, t(6, 3), t(6, 2), None, None, None)
for _name, _kind, _place, _bad in (
    ("rank", ShapeError, 0, t(2, 3)), ("batch", ShapeError, 1, t(3, 2)),
    ("cell_state", ArgumentError, 2, t(2, 2)), ("input_weight", ShapeError, 3, t(8, 3)),
    ("state_weight", ShapeError, 4, t(6, 3)), ("one_bias", ArgumentError, 5, t(6)),
    ("lengths", ShapeError, 7, ints([1, 2, 3])), ("float_lengths", DTypeError, 7, t(2)),
):  # fmt: skip
    _inputs = [_bad if _k == _place else _v for _k, _v in enumerate(_GOOD)]
    error("recurrent", _name, _kind, *_inputs, attrs=("gru", False, False))
error("recurrent", "no_such_cell", ArgumentError, *_GOOD, attrs=("elman", False, False))
error(
    "recurrent_backward", "gates", ShapeError, t(6, 2), t(2, 2), None, t(3, 2, 2), t(3, 2, 6),
    t(0), None, None, None, None, None, None, attrs=("gru", False, True),
)  # fmt: skip
_STEPS = (t(3, 2, 8), None, t(3, 2, 3), t(2, 4), t(3, 2, 4), None)
for _name, _kind, _place, _bad in (
    ("state", ShapeError, 3, t(3, 4)), ("input", ShapeError, 2, t(2, 2, 3)),
    ("gates", ShapeError, 0, t(6, 8)), ("side", ShapeError, 1, t(3, 2, 4)),
    ("lengths", ShapeError, 5, ints([1, 2, 3])),
):  # fmt: skip
    _inputs = [_bad if _k == _place else _v for _k, _v in enumerate(_STEPS)]
    error("recurrent_weights", _name, _kind, *_inputs, attrs=(False, *_ALL))
