"""L-BFGS, with a strong-Wolfe line search: for full batches and few parameters.

It decides on the host how far to go, so it reads the loss and a few products in every iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from burn_core import Module, Parameter
from burn_optim.gradients import Gradients
from burn_optim.line_search import Point, strong_wolfe
from burn_optim.placing import moved, plain_context, snapshot
from burn_std import ArgumentError, Closed, StoreError
from burn_std.dtypes import float64
from burn_tensor import Tensor, cat, tensor

Closure = Callable[[], tuple[Tensor, Gradients]]


class _Pair(NamedTuple):
    """A past move, the change of the gradient along it, and 1 over their product."""

    move: Tensor
    change: Tensor
    inverse: float


class LBFGS(Closed):
    """Quasi-Newton steps from the last moves and changes of the gradient.

    Args:
        lr: length of a step; with the line search, what it tries first.
        max_iter: iterations per step.
        max_eval: evaluations of the closure per step; 1.25 max_iter if None.
        tolerance_grad: done when no element of the gradient is larger.
        tolerance_change: done when moves or changes of the loss are smaller.
        history_size: how many pairs are kept.
        line_search_fn: `strong_wolfe` or None.

    Raises:
        ArgumentError: a setting has no meaning.

    Example:
        >>> class Point(burn.nn.Module):
        ...     def __init__(self):
        ...         device = burn.Device.default().autodiff()
        ...         self.x = burn.Parameter(burn.tensor([3.0, -2.0], device=device))
        >>> model = Point()
        >>> def closure():
        ...     loss = ((model.x - 1) ** 2).sum()
        ...     return loss, loss.backward()
        >>> opt = LBFGS(line_search_fn="strong_wolfe")
        >>> first = opt.step(model, closure)
        >>> first.item(), [round(v, 4) for v in model.x.tolist()]
        (13.0, [1.0, 1.0])

    Source: Nocedal and Wright, Numerical Optimization, algorithms 7.4, 7.5, 3.5 and 3.6.
    """

    def __init__(
        self, lr: float = 1.0, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        if not lr > 0 or max_iter < 1 or history_size < 1:
            raise ArgumentError(
                "LBFGS", "lr, max_iter and history_size are positive",
                got=f"{lr=}, {max_iter=}, {history_size=}",
            )  # fmt: skip
        if line_search_fn not in (None, "strong_wolfe"):
            raise ArgumentError(
                "LBFGS", "line_search_fn is strong_wolfe or None", got=line_search_fn
            )
        self.lr = lr
        self.max_iter = max_iter
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad = tolerance_grad
        self.tolerance_change = tolerance_change
        self.history_size = history_size
        self.line_search_fn = line_search_fn
        self.iterations = 0
        self._pairs: list[_Pair] = []
        self._scale = 1.0
        self._direction: Tensor | None = None
        self._last_grad: Tensor | None = None
        self._length = lr

    def step(self, model: Module, closure: Closure) -> Tensor:
        """Go down from where the model is, calling the closure as often as it takes.

        Args:
            model: whose trainable parameters are moved.
            closure: evaluates the model as it is then; returns the loss and its gradients.

        Returns:
            The loss before the step.

        Raises:
            ArgumentError: the model has no trainable parameter, or they lie on several devices or
                have several dtypes.
        """
        params = [p for p in model.parameters() if p.requires_grad]
        if len({(id(p.b.resource), p.dtype) for p in params}) != 1:
            raise ArgumentError(
                "LBFGS.step", "trainable parameters of one dtype on one device",
                got=f"{len(params)} parameters",
            )  # fmt: skip
        loss, grad = self._evaluate(params, closure)
        value = float(loss.item())
        evaluations = 1
        for k in range(self.max_iter):
            if _largest(grad) <= self.tolerance_grad:
                break
            direction = self._next_direction(grad)
            slope = _dot(grad, direction)
            if slope > -self.tolerance_change:
                break
            first = self.iterations == 1
            length = min(1.0, 1.0 / float(grad.abs().sum().item())) * self.lr if first else self.lr
            before = value
            start = [p.detach() for p in params]
            if self.line_search_fn is None:
                _move(params, start, direction, length)
                if k + 1 < self.max_iter:
                    loss_here, grad = self._evaluate(params, closure)
                    value = float(loss_here.item())
                    evaluations += 1
            else:

                def at(t: float, start: Any = start, direction: Any = direction) -> Point:
                    _move(params, start, direction, t)
                    found, g = self._evaluate(params, closure)
                    return Point(t, float(found.item()), g, _dot(g, direction))

                best, used = strong_wolfe(
                    at, Point(0.0, value, grad, slope), length, _largest(direction),
                    tolerance_change=self.tolerance_change,
                )  # fmt: skip
                _move(params, start, direction, best.t)
                length, value, grad = best.t, best.value, best.grad
                evaluations += used
            self._length = length
            if evaluations >= self.max_eval or _largest(grad) <= self.tolerance_grad:
                break
            still = _largest(direction) * length <= self.tolerance_change
            if still or abs(value - before) < self.tolerance_change:
                break
        return loss

    def _evaluate(self, params: list[Parameter], closure: Closure) -> tuple[Tensor, Tensor]:
        loss, grads = closure()
        ctx = plain_context(params[0])
        flat = []
        for p in params:
            g = grads.take(p)
            made = ctx.at_once("full", p.dtype, p.shape, 0) if g is None else ctx.make(g.v)
            flat.append(made.reshape(-1))
        whole = cat(flat)
        found = loss.detach()
        params[0].b.resource.backend.flush()
        return found, whole

    def _next_direction(self, grad: Tensor) -> Tensor:
        """Return minus the inverse curvature's estimate times the gradient."""
        self.iterations += 1
        if self._direction is None or self._last_grad is None:
            direction = -grad
        else:
            change, move = grad - self._last_grad, self._direction * self._length
            product = _dot(change, move)
            if product > 1e-10:
                self._pairs = [*self._pairs, _Pair(move, change, 1.0 / product)]
                self._pairs = self._pairs[-self.history_size :]
                self._scale = product / _dot(change, change)
            direction = self._two_loops(grad)
        self._direction, self._last_grad = direction, grad
        return direction

    def _two_loops(self, grad: Tensor) -> Tensor:
        shares: list[Tensor] = []
        q = -grad
        for pair in reversed(self._pairs):
            shares.append((pair.move * q).sum() * pair.inverse)
            q = q - shares[-1] * pair.change
        r = q * self._scale
        for pair, share in zip(self._pairs, reversed(shares), strict=True):
            r = r + pair.move * (share - (pair.change * r).sum() * pair.inverse)
        return r

    # ---- state --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Return all state, the numbers as tensors of rank 0: a snapshot."""
        numbers = {
            "iterations": float(self.iterations), "scale": self._scale, "length": self._length,
        }  # fmt: skip
        out = {name: tensor(value, dtype=float64) for name, value in numbers.items()}
        if self._direction is not None and self._last_grad is not None:
            out |= {"direction": self._direction, "last_grad": self._last_grad}
        for k, pair in enumerate(self._pairs):
            out |= {
                f"move.{k}": pair.move, f"change.{k}": pair.change,
                f"inverse.{k}": tensor(pair.inverse, dtype=float64),
            }  # fmt: skip
        return out

    def load_state_dict(self, model: Module, state: Mapping[str, Tensor]) -> None:
        """Take what `state_dict` returned.

        Args:
            model: whose parameters it belongs to.
            state: tensors by name.

        Raises:
            StoreError: the state belongs to another model, or is not whole; nothing is changed.
        """
        params = [p for p in model.parameters() if p.requires_grad]
        size = sum(p.numel() for p in params)
        count = sum(name.startswith("move.") for name in state)
        names = {"iterations", "scale", "length"}
        names |= {f"{n}.{k}" for k in range(count) for n in ("move", "change", "inverse")}
        vectors = {"direction", "last_grad"} & set(state)
        if set(state) != names | vectors or len(vectors) == 1:
            raise StoreError("LBFGS", "the state is whole", got=sorted(set(state) ^ names)[:5])
        if any(t.shape not in ((), (size,)) for t in state.values()):
            raise StoreError("LBFGS", f"vectors have the model's {size} elements", got="others")
        here = {n: moved(t, params[0].device) for n, t in state.items()}
        self.iterations = int(state["iterations"].item())
        self._scale = float(state["scale"].item())
        self._length = float(state["length"].item())
        self._direction, self._last_grad = here.get("direction"), here.get("last_grad")
        self._pairs = [
            _Pair(here[f"move.{k}"], here[f"change.{k}"], float(state[f"inverse.{k}"].item()))
            for k in range(count)
        ]


def _move(params: list[Parameter], start: list[Tensor], direction: Tensor, length: float) -> None:
    """Put start + length direction into the parameters."""
    at = 0
    for p, value in zip(params, start, strict=True):
        part = direction[at : at + value.numel()].reshape(value.shape)
        p.set(snapshot(value) + part * length)
        at += value.numel()


def _dot(a: Tensor, b: Tensor) -> float:
    return float((a * b).sum().item())


def _largest(x: Tensor) -> float:
    return float(x.abs().max().item())
