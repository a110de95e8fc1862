"""One step of RNN, LSTM and GRU: the formulas, and cells as modules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from burn_core import Module, Parameter, init
from burn_dispatch import Device
from burn_std import ArgumentError, DType, ShapeError
from burn_tensor import Tensor, functional as F

# (share of the input, states, W_hh, b_hh, W_hr) to new states; shares and states are [N, *].
Step = Callable[[Tensor, tuple[Tensor, ...], Tensor, Any, Any], tuple[Tensor, ...]]


def _rnn(activation: Callable[[Tensor], Tensor]) -> Step:
    def step(
        share: Tensor, state: tuple[Tensor, ...], w_hh: Tensor, b_hh: Any, _w_hr: Any
    ) -> tuple[Tensor, ...]:
        return (activation(share + F.linear(state[0], w_hh, b_hh)),)

    return step


def lstm_step(
    share: Tensor, state: tuple[Tensor, ...], w_hh: Tensor, b_hh: Any, w_hr: Any
) -> tuple[Tensor, ...]:
    """Return (h', c') of (h, c)."""
    h, c = state
    i, f, g, o = (share + F.linear(h, w_hh, b_hh)).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return (h if w_hr is None else F.linear(h, w_hr)), c


def gru_step(
    share: Tensor, state: tuple[Tensor, ...], w_hh: Tensor, b_hh: Any, _w_hr: Any
) -> tuple[Tensor, ...]:
    """Return (h',) of (h,)."""
    h = state[0]
    xr, xz, xn = share.chunk(3, -1)
    hr, hz, hn = F.linear(h, w_hh, b_hh).chunk(3, -1)
    n = (xn + (xr + hr).sigmoid() * hn).tanh()
    z = (xz + hz).sigmoid()
    return (n + z * (h - n),)


class _Cell(Module):
    """What the cells share."""

    gates = 1

    def _make(
        self, input_size: int, hidden_size: int, bias: bool, device: Device | None,
        dtype: DType | None,
    ) -> None:  # fmt: skip
        self.input_size = input_size
        self.hidden_size = hidden_size
        rows = self.gates * hidden_size
        self.weight_ih = Parameter(init.fresh((rows, input_size), dtype, device))
        self.weight_hh = Parameter(init.fresh((rows, hidden_size), dtype, device))
        self.bias_ih = Parameter(init.fresh((rows,), dtype, device)) if bias else None
        self.bias_hh = Parameter(init.fresh((rows,), dtype, device)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill everything from U(-1/sqrt(hidden), 1/sqrt(hidden))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def _step(self, step: Step, input: Tensor, hx: tuple[Tensor, ...] | None, count: int) -> Any:
        if len(input.shape) not in (1, 2) or input.shape[-1] != self.input_size:
            raise ShapeError(
                type(self).__name__, f"needs [N, {self.input_size}] or [{self.input_size}]",
                got=input.shape,
            )  # fmt: skip
        if hx is None:
            hx = (input.new_zeros((*input.shape[:-1], self.hidden_size)),) * count
        share = F.linear(input, self.weight_ih, self.bias_ih)
        return step(share, hx, self.weight_hh, self.bias_hh, None)


class RNNCell(_Cell):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), one step.

    Args:
        input_size: size of an element.
        hidden_size: size of the state.
        bias: add biases.
        nonlinearity: tanh or relu.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [N, input_size] or [input_size]; hx and the result: [N, hidden_size] or without N

    Example:
        >>> burn.nn.RNNCell(3, 4)(burn.zeros(2, 3)).shape
        (2, 4)
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError("RNNCell", "nonlinearity is tanh or relu", got=nonlinearity)
        self.nonlinearity = nonlinearity
        self._make(input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the new state.

        Args:
            input: the element.
            hx: the old state; 0 if None.
        """
        step = _rnn(F.tanh if self.nonlinearity == "tanh" else F.relu)
        out: Tensor = self._step(step, input, None if hx is None else (hx,), 1)[0]
        return out


class GRUCell(_Cell):
    """One step of `GRU`.

    Args:
        input_size: size of an element.
        hidden_size: size of the state.
        bias: add biases.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [N, input_size] or [input_size]; hx and the result: [N, hidden_size] or without N

    Example:
        >>> burn.nn.GRUCell(3, 4)(burn.zeros(2, 3)).shape
        (2, 4)
    """

    gates = 3

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True,
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self._make(input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the new state.

        Args:
            input: the element.
            hx: the old state; 0 if None.
        """
        out: Tensor = self._step(gru_step, input, None if hx is None else (hx,), 1)[0]
        return out


class LSTMCell(_Cell):
    """One step of `LSTM`.

    Args:
        input_size: size of an element.
        hidden_size: size of the states.
        bias: add biases.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [N, input_size] or [input_size]; hx and the result: pairs of [N, hidden_size]

    Example:
        >>> h, c = burn.nn.LSTMCell(3, 4)(burn.zeros(2, 3))
        >>> h.shape, c.shape
        ((2, 4), (2, 4))
    """

    gates = 4

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True,
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self._make(input_size, hidden_size, bias, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the new (hidden state, cell state).

        Args:
            input: the element.
            hx: the old states; 0 if None.
        """
        h, c = self._step(lstm_step, input, hx, 2)
        return h, c
