"""Recurrent layers whose step is not the usual one: run step by step, as functions of tensors.

Projected states, clipped ones, coupled gates, other activations. The usual steps are one operation
(`functional.recurrent`); what is here is many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burn_std import ArgumentError
from burn_tensor import Tensor, functional as F, stack, where

Function = Callable[[Tensor], Tensor]
Activation = str | Function
State = tuple[Tensor, ...]
# (share of the input [N, gates * H], states, W_hh, b_hh, W_hr) to the new states
Step = Callable[[Tensor, State, Tensor, Any, Any], State]

_NAMED: dict[str, Function] = {
    "sigmoid": F.sigmoid, "tanh": F.tanh, "relu": F.relu, "hardsigmoid": F.hardsigmoid,
    "hardtanh": F.hardtanh, "softsign": F.softsign, "softplus": F.softplus, "elu": F.elu,
    "leaky_relu": F.leaky_relu, "silu": F.silu, "gelu": F.gelu,
}  # fmt: skip


def activation_of(name: str, argument: str, given: Activation) -> Function:
    """Return an activation as a function.

    Args:
        name: of the layer.
        argument: of its constructor.
        given: a function, or its name.

    Raises:
        ArgumentError: it is neither.
    """
    found = _NAMED.get(given) if isinstance(given, str) else given
    if found is None or not callable(found):
        raise ArgumentError(
            name, f"{argument} is a function or one of {', '.join(_NAMED)}", got=given
        )
    return found


def clip_of(name: str, given: float | None) -> float | None:
    """Return the bound of a state as a float, or None.

    Args:
        name: of the layer.
        given: the bound.

    Raises:
        ArgumentError: it is no positive number.
    """
    if given is None:
        return None
    bound: Any = given
    if not isinstance(bound, (int, float)) or not bound > 0:
        raise ArgumentError(name, "clip is positive, or None", got=given)
    return float(bound)


def _clipped(state: Tensor, clip: float | None) -> Tensor:
    return state if clip is None else state.clamp(-clip, clip)


def rnn_variant(hidden: Function, clip: float | None) -> Step:
    """Return the step h' = hidden(x + W_hh h + b_hh), clipped.

    Args:
        hidden: the activation.
        clip: bound of the state.
    """

    def step(share: Tensor, state: State, w_hh: Tensor, b_hh: Any, _w_hr: Any) -> State:
        return (_clipped(hidden(share + F.linear(state[0], w_hh, b_hh)), clip),)

    return step


def gru_variant(gate: Function, hidden: Function, clip: float | None, reset_after: bool) -> Step:
    """Return the step of a GRU.

    Args:
        gate: activation of reset and update.
        hidden: activation of what is new.
        clip: bound of the state.
        reset_after: the state is reset after its product with W_hn, else before.
    """

    def step(share: Tensor, state: State, w_hh: Tensor, b_hh: Any, _w_hr: Any) -> State:
        h = state[0]
        xr, xz, xn = share.chunk(3, -1)
        if reset_after:
            hr, hz, hn = F.linear(h, w_hh, b_hh).chunk(3, -1)
            n = hidden(xn + gate(xr + hr) * hn)
        else:
            size = h.shape[-1]
            gates = F.linear(h, w_hh[: 2 * size], None if b_hh is None else b_hh[: 2 * size])
            hr, hz = gates.chunk(2, -1)
            kept = gate(xr + hr) * h
            n = hidden(
                xn + F.linear(kept, w_hh[2 * size :], None if b_hh is None else b_hh[2 * size :])
            )
        z = gate(xz + hz)
        return (_clipped(n + z * (h - n), clip),)

    return step


def lstm_variant(
    gate: Function, cell: Function, hidden: Function, clip: float | None, input_forget: bool
) -> Step:
    """Return the step of an LSTM.

    Args:
        gate: activation of the gates.
        cell: activation of what the cell is offered.
        hidden: activation of the cell on its way to the hidden state.
        clip: bound of the cell.
        input_forget: what is forgotten is what comes in: f = 1 - i.
    """

    def step(share: Tensor, state: State, w_hh: Tensor, b_hh: Any, w_hr: Any) -> State:
        h, c = state
        i, f, g, o = (share + F.linear(h, w_hh, b_hh)).chunk(4, -1)
        i = gate(i)
        f = 1.0 - i if input_forget else gate(f)
        c = _clipped(f * c + i * cell(g), clip)
        h = gate(o) * hidden(c)
        return (h if w_hr is None else F.linear(h, w_hr)), c

    return step


def run_steps(
    step: Step, x: Tensor, state: State, weights: list[Any], lengths: Tensor | None, back: bool
) -> tuple[Tensor, State]:
    """Run one direction of a layer; return outputs [L, N, H] and the last states.

    Args:
        step: of the layer.
        x: the sequences, [L, N, I].
        state: the first states.
        weights: W_ih, W_hh, b_ih, b_hh and W_hr, None where there is none.
        lengths: how many steps of each sequence count, or None.
        back: read from the last step to the first.
    """
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    # The input's share of all steps is one product.
    shares = F.linear(x, w_ih, b_ih).unbind(0)
    outs: list[Tensor] = []
    order = range(len(shares) - 1, -1, -1) if back else range(len(shares))
    for t in order:
        new = step(shares[t], state, w_hh, b_hh, w_hr)
        if lengths is None:
            state = new
            outs.append(new[0])
        else:
            # A sequence that has ended keeps its state; one read backwards begins at its end.
            active = (lengths > t).unsqueeze(-1)
            state = tuple(where(active, n, s) for n, s in zip(new, state, strict=True))
            outs.append(where(active, new[0], 0.0))
    if not outs:
        return x.new_zeros((0, x.shape[1], state[0].shape[-1])), state
    return stack(outs[::-1] if back else outs), state
