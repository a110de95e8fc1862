"""Clipping of gradients: by value, by the norm of each, by the norm of all.

The functions put new gradients in the place of the old ones and read nothing on the host.
"""

from __future__ import annotations

from math import inf

from burn_core import Module
from burn_optim.gradients import Gradients, bundles
from burn_std import ArgumentError, BurnError
from burn_std.dtypes import float32
from burn_tensor import Tensor, where, zeros

# As PyTorch has it, so that a norm of exactly zero divides.
_TINY = 1e-6


def clip_grad_norm(
    model: Module,
    grads: Gradients,
    max_norm: float,
    norm_type: float = 2.0,
    *,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients by one factor so that their norm is at most `max_norm`.

    The norm is that of all gradients of the model as one vector. Zero gradients stay zero. A norm
    that is not finite changes nothing, so that infinities are not made into NaN: the returned norm
    says so, and `optimizer.step(..., skip=~norm.isfinite())` leaves the step out.

    Args:
        model: whose gradients they are.
        grads: what `backward` returned; the clipped gradients are put into it.
        max_norm: the bound.
        norm_type: p of the norm; `inf` for the largest absolute value.
        error_if_nonfinite: raise instead, which reads the norm on the host.

    Returns:
        The norm before clipping, of rank 0; 0 if there is no gradient.

    Raises:
        ArgumentError: the bound is not positive, or p is less than 1.
        BurnError: the norm is not finite and an error was asked for.

    Example:
        >>> model = burn.nn.Linear(1, 1, bias=False, device=burn.Device.default().autodiff())
        >>> grads = (model(burn.tensor([[3.0]])) * 2).sum().backward()
        >>> clip_grad_norm(model, grads, 1.0).item()
        6.0
        >>> round(model.weight.grad(grads).item(), 5)
        1.0
    """
    _bounded("clip_grad_norm", max_norm, norm_type)
    found = bundles(model, grads)
    if not found:
        device = next((p.b.device for p in model.parameters()), None)
        return zeros((), dtype=float32, device=device.without_autodiff() if device else None)
    parts: list[Tensor] = [b.ctx.norm_all(b.grads, float(norm_type)) for b in found]
    home = found[0].ctx
    total = parts[0]
    if len(parts) > 1:
        total = home.norm_all(
            [p.to_device(home.device).to(float32) for p in parts], float(norm_type)
        )
    if error_if_nonfinite and not bool(total.isfinite().item()):
        raise BurnError(
            "clip_grad_norm", "the norm of the gradients is finite", got=total.item(),
            remedy="Lower the learning rate or the loss scale, or skip the step.",
        )  # fmt: skip
    factor = _factor(total, max_norm)
    for bundle in found:
        here = factor if bundle.ctx is home else factor.to_device(bundle.ctx.device)
        scaled = bundle.ctx.scale_all(bundle.grads, here)
        for p, g in zip(bundle.params, scaled, strict=True):
            grads.set(p, g)
    return total


def clip_grad_norm_each(
    model: Module, grads: Gradients, max_norm: float, norm_type: float = 2.0
) -> None:
    """Scale each gradient by itself so that its norm is at most `max_norm`.

    A norm that is not finite changes nothing.

    Args:
        model: whose gradients they are.
        grads: what `backward` returned; the clipped gradients are put into it.
        max_norm: the bound.
        norm_type: p of the norm; `inf` for the largest absolute value.

    Raises:
        ArgumentError: the bound is not positive, or p is less than 1.

    Example:
        >>> model = burn.nn.Linear(1, 1, device=burn.Device.default().autodiff())
        >>> grads = (model(burn.tensor([[0.5]])) * 2).sum().backward()
        >>> clip_grad_norm_each(model, grads, 1.5)
        >>> model.weight.grad(grads).item(), round(model.bias.grad(grads).item(), 5)
        (1.0, 1.5)
    """
    _bounded("clip_grad_norm_each", max_norm, norm_type)
    for bundle in bundles(model, grads):
        for p, g in zip(bundle.params, bundle.grads, strict=True):
            factor = _factor(bundle.ctx.norm_all([g], float(norm_type)), max_norm)
            grads.set(p, bundle.ctx.scale_all([g], factor)[0])


def clip_grad_value(model: Module, grads: Gradients, clip_value: float) -> None:
    """Clamp every element of the gradients to [-clip_value, clip_value]; NaN stays NaN.

    Args:
        model: whose gradients they are.
        grads: what `backward` returned; the clipped gradients are put into it.
        clip_value: the bound.

    Raises:
        ArgumentError: the bound is not positive.

    Example:
        >>> model = burn.nn.Linear(1, 1, bias=False, device=burn.Device.default().autodiff())
        >>> grads = (model(burn.tensor([[3.0]])) * 2).sum().backward()
        >>> clip_grad_value(model, grads, 0.5)
        >>> model.weight.grad(grads).item()
        0.5
    """
    if not clip_value > 0:
        raise ArgumentError("clip_grad_value", "the bound is positive", got=clip_value)
    for bundle in bundles(model, grads):
        for p, g in zip(bundle.params, bundle.grads, strict=True):
            grads.set(p, g.clamp(-clip_value, clip_value))


def _bounded(name: str, max_norm: float, norm_type: float) -> None:
    if not max_norm > 0:
        raise ArgumentError(name, "the bound is positive", got=max_norm)
    if not 1 <= norm_type <= inf:
        raise ArgumentError(name, "p of the norm is at least 1", got=norm_type)


def _factor(norm: Tensor, max_norm: float) -> Tensor:
    """Return what brings a norm down to the bound; 1 where it is no number to divide by."""
    factor = (max_norm / (norm + _TINY)).clamp(max=1.0)
    kept: Tensor = where(norm.isfinite(), factor, 1.0)
    return kept
