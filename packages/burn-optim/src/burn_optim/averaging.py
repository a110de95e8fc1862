"""Exponential moving average of a model's weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from burn_core import Module, Parameter
from burn_optim.placing import moved, plain_context, snapshot
from burn_optim.ranges import share
from burn_std import Closed, ShapeError, StoreError
from burn_std.dtypes import float64
from burn_tensor import Tensor

M = TypeVar("M", bound=Module)


class EMA(Closed):
    """a += (1 - decay) (p - a) for every trainable parameter p, after each step.

    Running statistics (buffers) are not averaged: an averaged model shares them. One operation per
    dtype, and nothing is read on the host.

    Args:
        model: whose weights are averaged; the averages begin as its weights.
        decay: share of the old average.
        warmup: use min(decay, (1 + n) / (10 + n)) in update n, so that the random first weights
            are forgotten soon.

    Attributes:
        updates: how many there were.

    Raises:
        ArgumentError: decay is outside [0, 1].

    Example:
        >>> model = burn.nn.Linear(1, 1, bias=False, device=burn.Device.default().autodiff())
        >>> model.weight.set(burn.zeros(1, 1))
        >>> ema = EMA(model, decay=0.75)
        >>> model.weight.set(burn.ones(1, 1))
        >>> ema.update(model)
        >>> ema.averaged(model).weight.item(), model.weight.item()
        (0.25, 1.0)

    Source: Polyak and Juditsky 1992; the warm-up follows Tensorflow's ExponentialMovingAverage.
    """

    def __init__(self, model: Module, decay: float = 0.999, *, warmup: bool = False) -> None:
        self.decay = share("EMA", "decay", decay)
        self.warmup = warmup
        self.updates = 0
        self._averages: dict[str, Tensor] = {}
        for ctx, named in _together(_trained(model)):
            # Copies: an average that is its parameter would make the first step another program.
            copies = ctx.scale_all([snapshot(p) for _, p in named], ctx.scalar(1.0, float64))
            self._averages |= {path: t for (path, _), t in zip(named, copies, strict=True)}

    def update(self, model: Module) -> None:
        """Take in the weights as they are now.

        Args:
            model: the one this was made with, or of the same architecture.

        Raises:
            ShapeError: a parameter has no average of its shape.
        """
        (share_of_new,) = self.step_rates()
        trained = list(_trained(model))
        for path, p in trained:
            have = self._averages.get(path)
            if have is None or have.shape != p.shape or have.dtype is not p.dtype:
                raise ShapeError(
                    "EMA.update", "the model is the one whose average this is", got=path
                )
        for ctx, named in _together(trained):
            old = [self._averages[path] for path, _ in named]
            new = [snapshot(p) for _, p in named]
            found = ctx.lerp_all(old, new, ctx.scalar(share_of_new, float64))
            self._averages |= {path: t for (path, _), t in zip(named, found, strict=True)}
        self.updates += 1

    def step_tensors(self) -> list[Tensor]:
        """Return the averages, which a step changes, for `burn.capture`."""
        return list(self._averages.values())

    def step_rates(self) -> list[float]:
        """Return the number that a step takes from it: the share of the new weights."""
        n = self.updates
        return [1.0 - (min(self.decay, (1 + n) / (10 + n)) if self.warmup else self.decay)]

    def step_settings(self) -> list[Any]:
        """Return what else a step depends on: nothing."""
        return []

    @property
    def step_count(self) -> int:
        """How many steps there were; a captured step counts on without `update`."""
        return self.updates

    @step_count.setter
    def step_count(self, count: int) -> None:
        self.updates = count

    def averaged(self, model: M) -> M:
        """Return a copy of a model that has the averages as its weights.

        Args:
            model: of the architecture whose average this is.
        """
        made = model.fork()
        self.copy_to(made)
        return made

    def copy_to(self, model: Module) -> None:
        """Put the averages into a model.

        Args:
            model: of the architecture whose average this is.
        """
        for path, p in model.named_parameters():
            if path in self._averages:
                p.set(self._averages[path])

    @contextmanager
    def applied(self, model: Module) -> Iterator[None]:
        """Let a model have the averages as its weights for a block, then its own again.

        Args:
            model: of the architecture whose average this is.

        Example:
            >>> model = burn.nn.Linear(1, 1, bias=False)
            >>> ema = EMA(model)
            >>> model.weight.set(burn.ones(1, 1) * 5)
            >>> with ema.applied(model):
            ...     inside = model.weight.item()
            >>> inside < 5, model.weight.item()
            (True, 5.0)
        """
        own = [(p, p.detach()) for _, p in model.named_parameters()]
        self.copy_to(model)
        try:
            yield
        finally:
            for p, value in own:
                p.set(value)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the averages by path: a snapshot."""
        return {path: snapshot(t) for path, t in self._averages.items()}

    def load_state_dict(self, state: Mapping[str, Tensor], updates: int = 0) -> None:
        """Take averages that `state_dict` returned.

        Args:
            state: tensors by path.
            updates: how many updates they have seen, for the warm-up.

        Raises:
            StoreError: other paths; nothing is changed then.
            ShapeError: a shape differs; nothing is changed then.
        """
        if set(state) != set(self._averages):
            other = sorted(set(state) ^ set(self._averages))
            raise StoreError("EMA", "the averages are those of this model's paths", got=other[:5])
        for path, t in state.items():
            if t.shape != self._averages[path].shape:
                raise ShapeError("EMA", f"the average of {path} keeps its shape", got=t.shape)
        self._averages = {p: moved(state[p], old.device) for p, old in self._averages.items()}
        self.updates = updates


def _together(
    named: Iterable[tuple[str, Parameter]],
) -> Iterator[tuple[Any, list[tuple[str, Parameter]]]]:
    """Yield parameters of one dtype on one resource, with its plain context."""
    found: dict[Any, list[tuple[str, Parameter]]] = {}
    for path, p in named:
        found.setdefault((plain_context(p), p.dtype), []).append((path, p))
    for (ctx, _), group in found.items():
        yield ctx, group


def _trained(model: Module) -> Iterator[tuple[str, Parameter]]:
    return ((path, p) for path, p in model.named_parameters() if p.requires_grad)
