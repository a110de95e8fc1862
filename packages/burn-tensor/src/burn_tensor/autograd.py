"""Gradients: what tensors know of the tape, and the functions that walk it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any

from burn_backend import TensorBase
from burn_dispatch import current_scope, scope
from burn_std import ArgumentError, AutodiffError, DeviceError, DTypeError
from burn_tensor.arguments import as_ints, need_tensor, tensor_list
from burn_tensor.methods import Methods

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


class AutogradMethods(Methods):
    """Marking leaves, walking back, reading gradients."""

    __slots__ = ()

    def require_grad(self) -> Tensor:
        """Return x as a marked leaf: what depends on it is tracked, and backward reaches it.

        Raises:
            AutodiffError: x is not on an autodiff device, is the result of a tracked operation,
                or is not of a float dtype.

        Example:
            >>> x = burn.tensor([2.0], device=burn.Device.default().autodiff()).require_grad()
            >>> x.is_require_grad()
            True
        """
        out: Tensor = self.b.need_autodiff("require_grad").leaf(self)
        return out

    def backward(
        self,
        cotangent: Tensor | None = None,
        retain_graph: bool = False,
        create_graph: bool = False,
    ) -> Any:
        """Return the gradients of x with respect to every leaf it depends on.

        Args:
            cotangent: of x's shape; None means 1 and needs one element.
            retain_graph: keep what the tape saved, for another backward.
            create_graph: track the gradients themselves, for higher orders.

        Returns:
            A value; read from it with `w.grad(grads)`.

        Raises:
            AutodiffError: x is not tracked, has several elements and no cotangent, or the tape
                was freed.

        Example:
            >>> x = burn.tensor([2.0], device=burn.Device.default().autodiff()).require_grad()
            >>> grads = (x * x).sum().backward()
            >>> x.grad(grads).tolist()
            [4.0]
        """
        decorator = self.b.need_autodiff("backward")
        if cotangent is not None:
            _check_cotangent(self, cotangent)
        return decorator.backward([self], [cotangent], retain_graph, create_graph)

    def grad(self, grads: Any) -> Tensor | None:
        """Return the gradient of this leaf, or None when the backward did not reach it.

        Args:
            grads: what `backward` returned.

        Raises:
            AutodiffError: an optimizer took it out of `grads`.

        Example:
            >>> x = burn.tensor([2.0], device=burn.Device.default().autodiff()).require_grad()
            >>> x.grad((x * 3).sum().backward()).tolist()
            [3.0]
        """
        get = getattr(grads, "get", None)
        if get is None or isinstance(grads, dict):
            raise DTypeError(
                "grad", "needs what backward returned", got=type(grads).__name__,
                remedy="Write grads = loss.backward(); w.grad(grads).",
            )  # fmt: skip
        found: Tensor | None = get(self)
        return found

    def detach(self) -> Tensor:
        """Return the same values, untracked, on the same device.

        Example:
            >>> x = burn.tensor([2.0], device=burn.Device.default().autodiff()).require_grad()
            >>> x.detach().is_tracked()
            False
        """
        return self.b.make(self.v)

    def is_autodiff(self) -> bool:
        """Return whether x is on an autodiff device.

        Example:
            >>> burn.zeros(1).is_autodiff()
            False
        """
        return self.b.is_autodiff

    def is_tracked(self) -> bool:
        """Return whether x is a marked leaf or depends on one.

        Example:
            >>> burn.zeros(1).is_tracked()
            False
        """
        return self.node is not None

    def is_require_grad(self) -> bool:
        """Return whether x is a marked leaf.

        Example:
            >>> burn.zeros(1).is_require_grad()
            False
        """
        return self.node is not None and bool(self.b.need_autodiff("is_require_grad").is_leaf(self))


def _check_cotangent(y: TensorBase, g: Any) -> None:
    """Raise unless a cotangent is a tensor on its output's device."""
    need_tensor("backward", "a cotangent", g)
    if g.b.resource is not y.b.resource:
        raise DeviceError(
            "backward", "a cotangent is on its output's device",
            got=f"{g.b.device} for {y.b.device}",
            remedy="Move it with .to_device(device).",
        )  # fmt: skip


def backward(
    outputs: Tensor | Sequence[Tensor],
    cotangents: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> Any:
    """Return the gradients of several outputs at once, on whatever devices they are.

    Args:
        outputs: tracked tensors.
        cotangents: one per output, of its shape; None means 1 and needs one element.
        retain_graph: keep what the tape saved, for another backward.
        create_graph: track the gradients themselves, for higher orders.

    Raises:
        AutodiffError: an output is not tracked, or the tape was freed.

    Example:
        >>> x = burn.tensor([2.0], device=burn.Device.default().autodiff()).require_grad()
        >>> grads = burn.backward([x * 2, x * 3])
        >>> x.grad(grads).tolist()
        [5.0]
    """
    ys = [outputs] if isinstance(outputs, TensorBase) else tensor_list("backward", outputs)
    gs: list[Any]
    if cotangents is None:
        gs = [None] * len(ys)
    else:
        many = isinstance(cotangents, (tuple, list))
        gs = list(cotangents) if many else [cotangents]
    if not ys:
        raise ArgumentError("backward", "needs at least one output", got="none")
    for y, g in zip(ys, gs, strict=False):  # another number of them is the tape's error
        if g is not None:
            _check_cotangent(y, g)
    tracked = next((y for y in ys if y.node is not None), ys[0])
    return tracked.b.need_autodiff("backward").backward(ys, gs, retain_graph, create_graph)


def _need_function(op: str, f: Any) -> None:
    if not callable(f):
        raise DTypeError(op, "needs a function", got=type(f).__name__)


def value_and_grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns (f(...), gradients of it).

    Args:
        f: returns a tensor of one element; with `has_aux` a pair of it and anything.
        argnums: position of the argument, or positions, to differentiate with respect to.
        has_aux: f returns more than the value.

    Returns:
        A function of f's arguments. The gradients are one tensor for an int, else a tuple. Under
        another `grad` they are tracked themselves, so the two nest. An argument that the value
        does not depend on has zeros.

    Raises:
        AutodiffError: the value has several elements.

    Example:
        >>> value, slope = burn.value_and_grad(lambda x: (x * x).sum())(burn.tensor([3.0]))
        >>> value.item(), slope.tolist()
        (9.0, [6.0])
    """
    _need_function("value_and_grad", f)
    numbers = as_ints("value_and_grad", "argnums", argnums)

    @wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        inner = list(args)
        nested = False
        for n in numbers:
            if not -len(args) <= n < len(args):
                raise ArgumentError(
                    "grad", "argnums names positional arguments", got=f"{n} of {len(args)}"
                )
            x = args[n]
            need_tensor("grad", f"argument {n}", x)
            nested = nested or x.node is not None
            inner[n] = _entry(x)
        with scope(no_grad=False) if current_scope().no_grad else nullcontext():
            out = f(*inner, **kwargs)
        if has_aux and (not isinstance(out, (tuple, list)) or len(out) != 2):
            raise ArgumentError(
                "grad", "with has_aux the function returns a pair", got=type(out).__name__
            )
        value, aux = out if has_aux else (out, None)
        need_tensor("grad", "the value", value)
        wanted = [inner[n] for n in numbers]
        if value.node is None:  # f does not depend on them: zeros, as for any that is not reached
            slopes = tuple([x.b.full(x.dtype, x.shape, 0.0) for x in wanted])
        else:
            decorator = value.b.need_autodiff("grad")
            grads = decorator.backward([value], [None], nested, nested, wanted)
            slopes = tuple([_slope(grads, x) for x in wanted])
        result = slopes[0] if isinstance(argnums, int) else slopes
        plain = value if nested else value.detach()
        return ((plain, aux), result) if has_aux else (plain, result)

    return function


def grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns the gradients of f.

    Args:
        f: returns a tensor of one element; with `has_aux` a pair of it and anything.
        argnums: position of the argument, or positions, to differentiate with respect to.
        has_aux: f returns more than the value; it is returned after the gradients.

    Raises:
        AutodiffError: the value has several elements.

    Example:
        >>> cube = lambda x: (x * x * x).sum()
        >>> burn.grad(burn.grad(cube))(burn.tensor(2.0)).item()
        12.0
    """
    both = value_and_grad(f, argnums, has_aux=has_aux)

    @wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        value, slopes = both(*args, **kwargs)
        return (slopes, value[1]) if has_aux else slopes

    return function


def _entry(x: Tensor) -> Tensor:
    """Return x as something a backward can stop at: a tracked copy, or a new leaf."""
    if x.node is not None:
        return x.b.reshape(x, x.shape)
    tracked = x if x.is_autodiff() else x.to_device(x.device.autodiff())
    return tracked.require_grad()


def _slope(grads: Any, x: Tensor) -> Tensor:
    found: Tensor | None = grads.get(x)
    return x.b.full(x.dtype, x.shape, 0.0) if found is None else found


def checkpoint(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return fn(*args), keeping its arguments only; the backward runs it again.

    Saves the memory of what happens inside at the cost of a second forward. Random numbers are
    the same in both runs.

    Args:
        fn: returns a tensor or a tuple of tensors.
        args: its arguments; `checkpoint(fn)` without any returns a function.
        kwargs: its keyword arguments.

    Example:
        >>> x = burn.tensor([2.0], device=burn.Device.default().autodiff()).require_grad()
        >>> y = burn.checkpoint(lambda t: (t * t).exp(), x)
        >>> round(x.grad(y.sum().backward()).item(), 2)
        218.39
    """
    _need_function("checkpoint", fn)
    if not args and not kwargs:
        return wraps(fn)(lambda *a, **k: checkpoint(fn, *a, **k) if a or k else fn())
    decorator = next(
        (
            a.b.need_autodiff("checkpoint")
            for a in (*args, *kwargs.values())
            if isinstance(a, TensorBase) and a.b.is_autodiff
        ),
        None,
    )
    # Inside no_grad, or in the first run of an outer checkpoint, nothing would be kept anyway.
    if decorator is None or current_scope().no_grad:
        return fn(*args, **kwargs)
    return decorator.checkpoint(scope, fn, args, kwargs)


def refuse_assignment(x: TensorBase) -> AutodiffError:
    """Return the error of an assignment into a marked leaf."""
    return AutodiffError(
        "assign", "a marked leaf keeps its value: gradients are read from it",
        got=f"{x.dtype.name}{list(x.shape)}", remedy="Assign into x.clone(), or inside no_grad().",
    )  # fmt: skip
