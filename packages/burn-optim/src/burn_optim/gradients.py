"""Gradients as values: what a step takes, and their sum over several batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from burn_core import Module, Parameter
from burn_optim.placing import moved, plain_context
from burn_std import ArgumentError, DeviceError, DType, ShapeError
from burn_std.dtypes import float32, float64
from burn_tensor import Tensor


class Gradients(Protocol):
    """What holds gradients by parameter: the result of `backward`, or a `GradientSet`."""

    def get(self, x: Any, /) -> Any:
        """Return the gradient of a parameter, or None."""
        ...

    def take(self, x: Any, /) -> Any:
        """Return the gradient of a parameter and forget it, or None."""
        ...

    def set(self, x: Any, gradient: Any, /) -> None:
        """Put a gradient in the place of the parameter's own."""
        ...


class GradientSet:
    """Gradients by parameter.

    Args:
        items: pairs of a parameter and its gradient.

    Example:
        >>> layer = burn.nn.Linear(1, 1)
        >>> grads = GradientSet([(layer.bias, burn.ones(1))])
        >>> layer.bias.grad(grads).tolist(), layer.weight.grad(grads)
        ([1.0], None)
    """

    __slots__ = ("_by_parameter",)

    def __init__(self, items: Iterable[tuple[Parameter, Tensor]] = ()) -> None:
        self._by_parameter: dict[Parameter, Tensor] = {}
        for p, g in items:
            self.set(p, g)

    def get(self, x: Parameter) -> Tensor | None:
        """Return the gradient of a parameter, or None."""
        return self._by_parameter.get(x)

    def take(self, x: Parameter) -> Tensor | None:
        """Return the gradient of a parameter and forget it, or None."""
        return self._by_parameter.pop(x, None)

    def set(self, x: Parameter, gradient: Tensor) -> None:
        """Put a gradient in the place of the parameter's own.

        Raises:
            ShapeError: it has another shape than the parameter.
            DeviceError: it is on another device.
        """
        if gradient.shape != x.shape:
            raise ShapeError(
                "GradientSet.set", "a gradient has the parameter's shape",
                got=f"{gradient.shape} for {x.shape}",
            )  # fmt: skip
        if gradient.device != x.device:
            raise DeviceError(
                "GradientSet.set", "a gradient is on the parameter's device",
                got=f"{gradient.device} for {x.device}", remedy="Move it with .to_device(device).",
            )  # fmt: skip
        self._by_parameter[x] = gradient

    def __contains__(self, x: object) -> bool:
        return isinstance(x, Parameter) and x in self._by_parameter

    def __len__(self) -> int:
        return len(self._by_parameter)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._by_parameter.values())

    def __repr__(self) -> str:
        return f"<gradients of {len(self)} parameters>"


class Bundle:
    """Gradients of one dtype on one resource, which one operation takes together.

    Attributes:
        ctx: the plain context of the resource.
        params: whose gradients these are.
        grads: the gradients, in the plain context.
    """

    __slots__ = ("ctx", "grads", "params")

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx
        self.params: list[Parameter] = []
        self.grads: list[Tensor] = []


def bundles(model: Module, grads: Gradients, take: bool = False) -> list[Bundle]:
    """Return the gradients of a model's parameters, bundled by resource and dtype."""
    found: dict[Any, Bundle] = {}
    for p in model.parameters():
        g = grads.take(p) if take else grads.get(p)
        if g is not None:
            ctx = plain_context(p)
            bundle = found.setdefault((id(ctx), g.dtype), Bundle(ctx))
            bundle.params.append(p)
            bundle.grads.append(ctx.make(g.v))
    return list(found.values())


class GradientAccumulator:
    """The mean gradient over several batches, equal to that of the one big batch.

    Each batch's gradient counts by a weight: how many samples its loss is the mean of, or how many
    tokens. So a smaller last batch, or one with fewer tokens, counts as what it is. Nothing is
    read on the host.

    Example:
        >>> model = burn.nn.Linear(1, 1, device=burn.Device.default().autodiff())
        >>> x = burn.tensor([[1.0], [2.0], [6.0]])
        >>> sums = GradientAccumulator()
        >>> for part in (x[:2], x[2:]):
        ...     sums.add(model, model(part).mean().backward(), weight=part.shape[0])
        >>> grads = sums.take()
        >>> model.weight.grad(grads).tolist(), sums.batches
        ([[3.0]], 0)

    Attributes:
        batches: how many were added since the last `take`.
    """

    def __init__(self) -> None:
        self.batches = 0
        # How the last sums were; parameters whose sums are zeros; those of the last batch.
        self._forms: list[tuple[Parameter, Any, DType, tuple[int, ...]]] = []
        self._zeros: set[Parameter] = set()
        self._last: list[Parameter] = []
        self._sums: dict[Parameter, Tensor] = {}
        self._weights: dict[Any, Tensor] = {}

    def add(self, model: Module, grads: Gradients, weight: float | Tensor = 1.0) -> None:
        """Add the gradients of one batch, which are taken out of `grads`.

        Args:
            model: whose gradients they are.
            grads: what `loss.backward()` returned.
            weight: a number, or a tensor of rank 0, for what the loss is a mean over.

        Raises:
            ArgumentError: the weight is not positive, or `grads` holds no gradient of the model.
        """
        if not isinstance(weight, Tensor) and not weight > 0:
            raise ArgumentError("GradientAccumulator.add", "weight is positive", got=weight)
        found = bundles(model, grads, take=True)
        if not found:
            raise ArgumentError(
                "GradientAccumulator.add", "grads holds no gradient of this model's parameters"
            )
        self._last = [p for bundle in found for p in bundle.params]
        self._zeros.difference_update(self._last)
        for bundle in found:
            ctx = bundle.ctx
            factor = _number(ctx, weight)
            for p in bundle.params:
                if p not in self._sums:
                    # Zeros made at once: the first batch records the same program as the others.
                    # Sums of 16-bit gradients would lose what the later batches bring.
                    dtype = float32 if p.dtype.bits == 16 else p.dtype
                    self._sums[p] = ctx.at_once("full", dtype, p.shape, 0)
            sums = [self._sums[p] for p in bundle.params]
            self._sums |= zip(
                bundle.params, ctx.add_scaled_all(sums, bundle.grads, factor), strict=True
            )
        for ctx in {id(b.ctx): b.ctx for b in found}.values():
            have = self._weights.get(ctx)
            have = ctx.at_once("full", float64, (), 0) if have is None else have
            self._weights[ctx] = have + _number(ctx, weight)
        self.batches += 1

    def take(self) -> GradientSet:
        """Return the weighted mean and begin anew.

        Raises:
            ArgumentError: nothing was added.
        """
        if not self.batches:
            raise ArgumentError("GradientAccumulator.take", "nothing was added")
        out = GradientSet()
        together: dict[Any, list[Parameter]] = {}
        for p in self._zeros:
            del self._sums[p]
        for p, total in self._sums.items():
            together.setdefault((total.b, total.dtype), []).append(p)
        for (ctx, _), params in together.items():
            share = 1.0 / self._weights[ctx]
            means = ctx.scale_all([self._sums[p] for p in params], share)
            for p, g in zip(params, means, strict=True):
                out.set(p, g)
        self._forms = [(p, t.b, t.dtype, t.shape) for p, t in self._sums.items()]
        self._sums, self._weights, self._zeros, self.batches = {}, {}, set(), 0
        return out

    # ---- captured steps -------------------------------------------------------------------------

    def begin(self) -> None:
        """Make the zeros that the next batches are added to, for the parameters of the last ones.

        A step that is captured finds the same sums before each batch.
        """
        for p, ctx, dtype, shape in () if self._sums else self._forms:
            self._sums[p] = ctx.at_once("full", dtype, shape, 0)
            self._zeros.add(p)
            if ctx not in self._weights:
                self._weights[ctx] = ctx.at_once("full", float64, (), 0)

    def replayed(self, taken: bool) -> None:
        """Note what a captured step did: it added a batch.

        Args:
            taken: it took the mean then, and began anew.
        """
        if taken:
            self._zeros, self.batches = {*self._sums}, 0
        else:
            self._zeros.difference_update(self._last)
            self.batches += 1

    def step_tensors(self) -> list[Tensor]:
        """Return the tensors that a batch is added to, for `burn.capture`."""
        return [*self._sums.values(), *self._weights.values()]

    def step_rates(self) -> list[float]:
        """Return the numbers that a step takes from it: none."""
        return []

    def step_settings(self) -> list[Any]:
        """Return what else a step depends on: whose sums these are."""
        return [*self._sums]

    def __copy__(self) -> GradientAccumulator:
        made = GradientAccumulator()
        made.batches, made._forms, made._last = self.batches, self._forms, self._last
        made._sums, made._weights = dict(self._sums), dict(self._weights)
        made._zeros = set(self._zeros)
        return made


def _number(ctx: Any, value: float | Tensor) -> Tensor:
    """Return a number as a float64 of rank 0 on a resource, read nowhere."""
    if isinstance(value, Tensor):
        if value.shape:
            raise ShapeError("GradientAccumulator.add", "weight has rank 0", got=value.shape)
        return moved(value, ctx.device).to(float64)
    scalar: Tensor = ctx.scalar(float(value), float64)
    return scalar
