"""A recurrent layer over a sequence, in one direction."""

from __future__ import annotations

from burn_std.dtypes import int64
from burn_tensor.functional.values import in_dtype, meeting
from burn_tensor.tensor import Tensor


def recurrent(
    input: Tensor,
    h: Tensor,
    c: Tensor | None,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    lengths: Tensor | None = None,
    cell: str = "lstm",
    reverse: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return a layer's outputs of all steps, its last state, and its last cell state for an LSTM.

    One layer and one direction of `nn.LSTM`, `nn.GRU` and `nn.RNN`; formulas stand there.

    Args:
        input: the sequences.
        h: first states.
        c: first cell states of an LSTM, None for the others.
        weight_ih: weight of the input.
        weight_hh: weight of the state.
        bias_ih: bias of the input's share; both biases or none.
        bias_hh: bias of the state's share.
        lengths: how many steps of each sequence count; outputs beyond are 0 and the state stays.
        cell: `lstm`, `gru`, `rnn_tanh` or `rnn_relu`, with 4, 3, 1 and 1 gates.
        reverse: read from the last step to the first.

    Shapes:
        input: [L, N, I]
        h and c: [N, H]
        weight_ih and weight_hh: [gates * H, I] and [gates * H, H]
        bias_ih and bias_hh: [gates * H]
        lengths: [N]
        returns: [L, N, H], [N, H], [N, H]

    DTypes: floats, which promote; lengths are integers. 16-bit floats compute in float32.

    Raises:
        ShapeError: shapes do not fit.
        ArgumentError: there is no such cell, c is there without an LSTM, one bias alone.

    Gradient: defined for all but lengths.

    Example:
        >>> x, h = burn.ones(5, 2, 3), burn.zeros(2, 4)
        >>> w, u = burn.ones(12, 3), burn.ones(12, 4)
        >>> out, last, _ = burn.functional.recurrent(x, h, None, w, u, cell="gru")
        >>> out.shape, last.shape
        ((5, 2, 4), (2, 4))
    """
    tensors = (input, h, c, weight_ih, weight_hh, bias_ih, bias_hh)
    context = meeting("recurrent", *tensors, lengths)
    if lengths is not None and lengths.dtype.is_int:
        lengths = in_dtype(lengths, int64)
    # Gates and cells of all steps are kept where a backward will ask for them.
    keep = any(t is not None and t.node is not None for t in tensors)
    out, last, last_cell, _, _ = context.recurrent(*tensors, lengths, cell, reverse, keep)
    return out, last, None if c is None else last_cell
