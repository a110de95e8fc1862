"""RNN, LSTM and GRU over sequences: layers, directions, dropout, projection, lengths.

PyTorch's keys and gate order (LSTM: input, forget, cell, output; GRU: reset, update, new).
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

from burn_core import Module, Parameter, init, is_training
from burn_dispatch import Device
from burn_nn.extent import layers_of
from burn_nn.recurrent_cell import lstm_step
from burn_nn.recurrent_variant import (
    Activation,
    Step,
    activation_of,
    clip_of,
    gru_variant,
    lstm_variant,
    rnn_variant,
    run_steps,
)
from burn_nn.rnn import Lengths, PackedSequence, packed_like, pad_packed_sequence
from burn_std import ArgumentError, DType, ShapeError
from burn_tensor import Tensor, as_tensor, cat, functional as F, stack

# What a layer hands on: hidden state, for LSTM with the cell state.
State = tuple[Tensor, ...]
# Padded or packed: what goes in comes out.
Batch = TypeVar("Batch", Tensor, PackedSequence)


class _Recurrent(Module):
    """What RNN, LSTM and GRU share."""

    gates = 1
    states = 1
    cell = ""
    reverse = False

    def _make(
        self, input_size: int, hidden_size: int, num_layers: int, bias: bool, batch_first: bool,
        dropout: float, bidirectional: bool, proj_size: int, device: Device | None,
        dtype: DType | None,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        if hidden_size < 1:
            raise ArgumentError(name, "hidden_size is positive", got=hidden_size)
        layers_of(name, num_layers, 1)
        if not 0.0 <= dropout <= 1.0:
            raise ArgumentError(name, "dropout is a probability", got=dropout)
        if not 0 <= proj_size < hidden_size:
            raise ArgumentError(name, "proj_size is below hidden_size", got=proj_size)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        if self.reverse and bidirectional:
            raise ArgumentError(
                name, "a layer reads backwards or in both directions", got="reverse, bidirectional"
            )
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows, out = self.gates * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            size = input_size if layer == 0 else out * (1 + bidirectional)
            for end in self._ends():
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, size), "weight_hh": (rows, out),
                }  # fmt: skip
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for key, shape in shapes.items():
                    made = Parameter(init.fresh(shape, dtype, device))
                    setattr(self, f"{key}_l{layer}{end}", made)
        self.reset_parameters()

    def _ends(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def reset_parameters(self) -> None:
        """Fill everything from U(-1/sqrt(hidden), 1/sqrt(hidden))."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def _weights(self, layer: int, end: str) -> list[Any]:
        keys = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        have = [True, True, self.bias, self.bias, bool(self.proj_size)]
        return [
            getattr(self, f"{key}_l{layer}{end}") if there else None
            for key, there in zip(keys, have, strict=True)
        ]

    # ---- running ------------------------------------------------------------------------------

    def _run(
        self, input: Tensor | PackedSequence, hx: State | None, lengths: Lengths | None
    ) -> tuple[Any, State]:
        """Return the output sequence and the last states, [layers * directions, N, H] each."""
        name = type(self).__name__
        if isinstance(input, PackedSequence):
            if lengths is not None:
                raise ArgumentError(name, "packed sequences know their lengths", got=lengths)
            padded, own = pad_packed_sequence(input, self.batch_first)
            output, state = self._run(padded, hx, own)
            return packed_like(output.transpose(0, 1) if self.batch_first else output, input), state
        rank = len(input.shape)
        if rank not in (2, 3) or input.shape[-1] != self.input_size:
            raise ShapeError(
                name, f"needs [L, N, {self.input_size}], or with batch_first [N, L, "
                f"{self.input_size}], or without N", got=input.shape,
            )  # fmt: skip
        single = rank == 2
        x = input.unsqueeze(1) if single else input.transpose(0, 1) if self.batch_first else input
        begin = None if hx is None else self._state(x, hx, single)
        zeros = self._zeros(x) if hx is None else ()
        counts = None if lengths is None else _ends(name, x, lengths)
        ends = self._ends()
        last: list[State] = []
        for layer in range(self.num_layers):
            outs = []
            for k, end in enumerate(ends):
                at = layer * len(ends) + k
                start = zeros if begin is None else tuple(s[at] for s in begin)
                out, final = self._direction(
                    x, start, self._weights(layer, end), counts, (k == 1) != self.reverse
                )
                outs.append(out)
                last.append(final)
            x = cat(outs, -1) if len(outs) > 1 else outs[0]
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, is_training())
        if len(last) == 1:
            finals = tuple(s.unsqueeze(0) for s in last[0])
        else:
            finals = tuple(stack([f[k] for f in last]) for k in range(self.states))
        if single:
            return x.squeeze(1), tuple(f.squeeze(1) for f in finals)
        return (x.transpose(0, 1) if self.batch_first else x), finals

    def _sizes(self) -> tuple[int, ...]:
        return (self.proj_size or self.hidden_size, self.hidden_size)[: self.states]

    def _zeros(self, x: Tensor) -> State:
        """Return what every layer and direction begins with unless something is given."""
        sizes = self._sizes()
        made = {size: x.new_zeros((x.shape[1], size)) for size in dict.fromkeys(sizes)}
        return tuple(made[size] for size in sizes)

    def _state(self, x: Tensor, hx: State, single: bool) -> State:
        count = self.num_layers * len(self._ends())
        wanted = [(count, x.shape[1], size) for size in self._sizes()]
        state = tuple(h.unsqueeze(1) for h in hx) if single else tuple(hx)
        if [h.shape for h in state] != wanted:
            raise ShapeError(
                type(self).__name__, f"the states have shapes {wanted}",
                got=[h.shape for h in state],
            )  # fmt: skip
        return state

    def _step(self) -> Step | None:
        """Return a step that is not the usual one, or None."""
        return None

    def _direction(
        self, x: Tensor, state: State, weights: list[Any], lengths: Tensor | None, back: bool
    ) -> tuple[Tensor, State]:
        w_ih, w_hh, b_ih, b_hh, w_hr = weights
        step = self._step()
        if step is not None or w_hr is not None:
            return run_steps(step or lstm_step, x, state, weights, lengths, back)
        c = state[1] if len(state) > 1 else None
        out, last, last_cell = F.recurrent(
            x, state[0], c, w_ih, w_hh, b_ih, b_hh, lengths, self.cell, back
        )
        return out, (last,) if last_cell is None else (last, last_cell)


def _ends(name: str, x: Tensor, lengths: Lengths) -> Tensor:
    """Return how many steps of each sequence count, [N]."""
    ends = as_tensor(lengths).to_device(x.device.without_autodiff())
    if ends.shape != (x.shape[1],):
        raise ShapeError(name, "lengths has one number per sequence", got=ends.shape)
    return ends


class RNN(_Recurrent):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh) over a sequence.

    Args:
        input_size: size of an element.
        hidden_size: size of the state.
        num_layers: layers, each fed with the one before.
        nonlinearity: tanh or relu, another activation's name or a function.
        bias: add biases.
        batch_first: input and output are [N, L, *] instead of [L, N, *]; states are not.
        dropout: probability with which outputs of all layers but the last are dropped in training.
        bidirectional: read backwards too; outputs stand beside each other.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        reverse: read from the last step to the first.
        clip: states are kept within [-clip, clip] after every step; None leaves them.

    Shapes:
        input: [L, N, input_size] or [L, input_size], or packed
        hx: [layers * directions, N, hidden_size]
        returns: output [L, N, directions * hidden_size], last states like hx

    Raises:
        ArgumentError: a setting is out of range.
        ShapeError: input or states do not fit.

    Example:
        >>> output, h = burn.nn.RNN(3, 4, num_layers=2)(burn.zeros(5, 2, 3))
        >>> output.shape, h.shape
        ((5, 2, 4), (2, 2, 4))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1,
        nonlinearity: Activation = "tanh", bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False, device: Device | None = None, dtype: DType | None = None,
        *, reverse: bool = False, clip: float | None = None,
    ) -> None:  # fmt: skip
        activation_of("RNN", "nonlinearity", nonlinearity)
        self.nonlinearity = nonlinearity
        self.reverse = reverse
        self.clip = clip_of("RNN", clip)
        self.cell = f"rnn_{nonlinearity}" if nonlinearity in ("tanh", "relu") else ""
        self._make(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                   0, device, dtype)  # fmt: skip

    def _step(self) -> Step | None:
        if self.clip is None and self.cell:
            return None
        return rnn_variant(activation_of("RNN", "nonlinearity", self.nonlinearity), self.clip)

    def forward(
        self, input: Batch, hx: Tensor | None = None, lengths: Lengths | None = None
    ) -> tuple[Batch, Tensor]:
        """Return (output, last states).

        Args:
            input: sequences, padded or packed (`nn.rnn`); the output comes likewise.
            hx: first states; 0 if None.
            lengths: how much of each padded sequence counts; outputs beyond are 0.
        """
        output, state = self._run(input, None if hx is None else (hx,), lengths)
        return output, state[0]


class GRU(_Recurrent):
    """The gated recurrent unit over a sequence.

    r = sigmoid(W_ir x + b_ir + W_hr h + b_hr), z likewise,
    n = tanh(W_in x + b_in + r (W_hn h + b_hn)), h' = (1 - z) n + z h

    Args:
        input_size: size of an element.
        hidden_size: size of the state.
        num_layers: layers, each fed with the one before.
        bias: add biases.
        batch_first: input and output are [N, L, *] instead of [L, N, *]; states are not.
        dropout: probability with which outputs of all layers but the last are dropped in training.
        bidirectional: read backwards too; outputs stand beside each other.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        reverse: read from the last step to the first.
        clip: states are kept within [-clip, clip] after every step; None leaves them.
        reset_after: the state is reset after its product with W_hn, as the formula says; False
            resets it before: n = tanh(W_in x + b_in + W_hn (r h) + b_hn).
        gate_activation: in the place of sigmoid, a function or its name.
        hidden_activation: in the place of tanh.

    Shapes:
        input: [L, N, input_size] or [L, input_size], or packed
        hx: [layers * directions, N, hidden_size]
        returns: output [L, N, directions * hidden_size], last states like hx

    Raises:
        ArgumentError: a setting is out of range.
        ShapeError: input or states do not fit.

    Example:
        >>> output, h = burn.nn.GRU(3, 4, bidirectional=True)(burn.zeros(5, 2, 3))
        >>> output.shape, h.shape
        ((5, 2, 8), (2, 2, 4))

    Source: Cho et al. 2014
    """

    gates = 3
    cell = "gru"

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        device: Device | None = None, dtype: DType | None = None, *, reverse: bool = False,
        clip: float | None = None, reset_after: bool = True,
        gate_activation: Activation = "sigmoid", hidden_activation: Activation = "tanh",
    ) -> None:  # fmt: skip
        activation_of("GRU", "gate_activation", gate_activation)
        activation_of("GRU", "hidden_activation", hidden_activation)
        self.reverse = reverse
        self.clip = clip_of("GRU", clip)
        self.reset_after = reset_after
        self.gate_activation = gate_activation
        self.hidden_activation = hidden_activation
        self._make(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                   0, device, dtype)  # fmt: skip

    def _step(self) -> Step | None:
        gate, hidden = self.gate_activation, self.hidden_activation
        if (gate, hidden, self.clip, self.reset_after) == ("sigmoid", "tanh", None, True):
            return None
        return gru_variant(
            activation_of("GRU", "gate_activation", gate),
            activation_of("GRU", "hidden_activation", hidden), self.clip, self.reset_after,
        )  # fmt: skip

    def forward(
        self, input: Batch, hx: Tensor | None = None, lengths: Lengths | None = None
    ) -> tuple[Batch, Tensor]:
        """Return (output, last states).

        Args:
            input: sequences, padded or packed (`nn.rnn`); the output comes likewise.
            hx: first states; 0 if None.
            lengths: how much of each padded sequence counts; outputs beyond are 0.
        """
        output, state = self._run(input, None if hx is None else (hx,), lengths)
        return output, state[0]


class LSTM(_Recurrent):
    """Long short-term memory over a sequence.

    i, f, o = sigmoid(W x + b + U h + c) each, g = tanh of the same form,
    c' = f c + i g, h' = o tanh(c'), with proj_size h' = W_hr (o tanh(c'))

    Args:
        input_size: size of an element.
        hidden_size: size of the cell state.
        num_layers: layers, each fed with the one before.
        bias: add biases.
        batch_first: input and output are [N, L, *] instead of [L, N, *]; states are not.
        dropout: probability with which outputs of all layers but the last are dropped in training.
        bidirectional: read backwards too; outputs stand beside each other.
        proj_size: size of the hidden state; hidden_size without projection if 0.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        reverse: read from the last step to the first.
        clip: cells are kept within [-clip, clip] after every step; None leaves them.
        input_forget: couples two gates, f = 1 - i; the rows of f in the weights are not used then.
        gate_activation: in the place of sigmoid, a function or its name.
        cell_activation: in the place of tanh in g.
        hidden_activation: in the place of tanh in h'.

    Shapes:
        input: [L, N, input_size] or [L, input_size], or packed
        hx: (h [layers * directions, N, proj_size or hidden_size], c [.., N, hidden_size])
        returns: output [L, N, directions * (proj_size or hidden_size)], last states like hx

    Raises:
        ArgumentError: a setting is out of range.
        ShapeError: input or states do not fit.

    Example:
        >>> lstm = burn.nn.LSTM(3, 4, batch_first=True)
        >>> output, (h, c) = lstm(burn.zeros(2, 5, 3), lengths=[5, 2])
        >>> output.shape, c.shape, output[1, 2:].abs().sum().item()
        ((2, 5, 4), (1, 2, 4), 0.0)

    Source: Hochreiter and Schmidhuber 1997; Sak et al. 2014 for the projection
    """

    gates = 4
    states = 2
    cell = "lstm"

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        proj_size: int = 0, device: Device | None = None, dtype: DType | None = None,
        *, reverse: bool = False, clip: float | None = None, input_forget: bool = False,
        gate_activation: Activation = "sigmoid", cell_activation: Activation = "tanh",
        hidden_activation: Activation = "tanh",
    ) -> None:  # fmt: skip
        activation_of("LSTM", "gate_activation", gate_activation)
        activation_of("LSTM", "cell_activation", cell_activation)
        activation_of("LSTM", "hidden_activation", hidden_activation)
        self.reverse = reverse
        self.clip = clip_of("LSTM", clip)
        self.input_forget = input_forget
        self.gate_activation = gate_activation
        self.cell_activation = cell_activation
        self.hidden_activation = hidden_activation
        self._make(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                   proj_size, device, dtype)  # fmt: skip

    def _step(self) -> Step | None:
        own = (self.gate_activation, self.cell_activation, self.hidden_activation)
        if (*own, self.clip, self.input_forget) == ("sigmoid", "tanh", "tanh", None, False):
            return None
        gate, cell, hidden = (
            activation_of("LSTM", f"{part}_activation", given)
            for part, given in zip(("gate", "cell", "hidden"), own, strict=True)
        )
        return lstm_variant(gate, cell, hidden, self.clip, self.input_forget)

    def forward(
        self, input: Batch, hx: tuple[Tensor, Tensor] | None = None,
        lengths: Lengths | None = None,
    ) -> tuple[Batch, tuple[Tensor, Tensor]]:  # fmt: skip
        """Return (output, (last hidden states, last cell states)).

        Args:
            input: sequences, padded or packed (`nn.rnn`); the output comes likewise.
            hx: first states; 0 if None.
            lengths: how much of each padded sequence counts; outputs beyond are 0.
        """
        output, (h, c) = self._run(input, hx, lengths)
        return output, (h, c)
