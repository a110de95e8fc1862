"""Weights as functions of others, under the keys of PyTorch's `nn.utils.parametrizations`.

The attribute gives the computed weight at each use; what it is computed from is trained and saved
under `parametrizations.<name>`. Built on `burn_core`'s reparameterizations, as LoRA is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from burn_core import (
    Buffer,
    Module,
    Parameter,
    Reparameterization,
    reparameterize,
    reparameterized,
    restore_weight,
    updates_statistics,
)
from burn_nn.conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from burn_std import ArgumentError, IndexRangeError
from burn_tensor import Tensor, functional as F, linalg, randn

__all__ = ["is_parametrized", "remove_parametrizations", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)

# At each use; an absurd number would run for ever.
_MOST_ITERATIONS = 1 << 16


class _Parametrized(Reparameterization):
    """What the parametrizations share: PyTorch's names of their tensors."""

    # Whether the base alone stands for the weight, so that it can be left as it is.
    separable = True

    def __init__(self, base: Parameter) -> None:
        super().__init__(base, base.dtype, base.requires_grad)

    def named(self, name: str) -> Iterator[tuple[str, Tensor]]:
        """Yield (path below the module, tensor) of what it consists of.

        Args:
            name: attribute that the weight is.
        """
        for part, tensor in self.tensors().items():
            yield f"parametrizations.{name}.{part}", tensor


def _norm(v: Tensor, dim: int | None) -> Tensor:
    """Return the norms of the slices along a dim, which stays, or of the whole, of rank 0."""
    if dim is None:
        return linalg.vector_norm(v)
    others = tuple(d for d in range(len(v.shape)) if d != dim)
    return linalg.vector_norm(v, dim=others, keepdim=True) if others else v.abs()


class _WeightNorm(_Parametrized):
    """g v / |v|."""

    separable = False

    def __init__(self, base: Parameter, dim: int | None) -> None:
        super().__init__(base)
        self.dim = dim
        size = _norm(base.detach(), dim).to_device(base.device)
        self.magnitude = Parameter(size, requires_grad=base.requires_grad)

    def tensors(self) -> dict[str, Tensor]:
        """Return magnitudes and directions."""
        return {"original0": self.magnitude, "original1": self.base}

    def materialize(self) -> Tensor:
        """Return g v / |v|."""
        return self.base * (self.magnitude / _norm(self.base, self.dim))


class _SpectralNorm(_Parametrized):
    """w / sigma(w), with the largest singular value followed by the power method."""

    def __init__(self, base: Parameter, n_power_iterations: int, eps: float, dim: int) -> None:
        super().__init__(base)
        self.dim = dim
        self.eps = eps
        self.n_power_iterations = n_power_iterations
        if len(base.shape) > 1:
            w = self._matrix(base.detach())
            rows, columns = w.shape
            device, dtype = w.device, w.dtype
            self.u = Buffer(F.normalize(randn(rows, device=device, dtype=dtype), dim=0, eps=eps))
            self.v = Buffer(F.normalize(randn(columns, device=device, dtype=dtype), dim=0, eps=eps))
            self._iterate(w, 15)

    def tensors(self) -> dict[str, Tensor]:
        """Return the weight and the singular vectors."""
        if len(self.base.shape) < 2:
            return {"original": self.base}
        return {"original": self.base, "0._u": self.u, "0._v": self.v}

    def _matrix(self, w: Tensor) -> Tensor:
        return w.movedim(self.dim, 0).flatten(1)

    def _iterate(self, w: Tensor, times: int) -> None:
        u, v = self.u.detach(), self.v.detach()
        for _ in range(times):
            u = F.normalize(w @ v, dim=0, eps=self.eps)
            v = F.normalize(w.T @ u, dim=0, eps=self.eps)
        self.u.set(u)
        self.v.set(v)

    def materialize(self) -> Tensor:
        """Return w / sigma(w); in training the power method goes on first."""
        if len(self.base.shape) < 2:
            return F.normalize(self.base, dim=0, eps=self.eps)
        w = self._matrix(self.base)
        if updates_statistics():
            self._iterate(w.detach(), self.n_power_iterations)
        # The vectors are constants for the gradient.
        u, v = self.u.detach(), self.v.detach()
        return self.base / u.dot(w @ v)


def _dim(op: str, dim: int, w: Tensor) -> int:
    rank = len(w.shape)
    if not -rank <= dim < rank:
        raise IndexRangeError(op, f"dim must be in [{-rank}, {rank - 1}]", got=dim)
    return dim % rank


def _install(op: str, module: Any, name: str, wrap: Callable[[Parameter], _Parametrized]) -> None:
    if is_parametrized(module, name):
        raise ArgumentError(
            op, "the attribute is not parametrized yet", got=f"{type(module).__name__}.{name}",
            remedy="Call remove_parametrizations(module, name) first.",
        )  # fmt: skip
    reparameterize(module, name, wrap)


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Split a weight of a module into magnitude and direction, in place; return the module.

    w = g v / |v|, with a norm per slice along dim. Magnitudes are saved as
    `parametrizations.<name>.original0`, directions as `original1`. The weight's values stay.

    Args:
        module: the module.
        name: attribute that is a parameter.
        dim: the dim along which norms differ; None, or -1 as in PyTorch, for one norm of all.

    Raises:
        ArgumentError: the attribute is no parameter, or is parametrized already.
        IndexRangeError: dim is out of range.

    Gradient: to magnitude and direction.

    Example:
        >>> layer = burn.nn.parametrizations.weight_norm(burn.nn.Linear(3, 2))
        >>> list(layer.state_dict())[1:]
        ['parametrizations.weight.original0', 'parametrizations.weight.original1']

    Source: Salimans and Kingma, Weight Normalization, 2016
    """

    def wrap(p: Parameter) -> _WeightNorm:
        return _WeightNorm(p, None if dim in (None, -1) else _dim("weight_norm", dim, p))

    _install("weight_norm", module, name, wrap)
    return module


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> M:  # fmt: skip
    """Divide a weight of a module by its largest singular value, in place; return the module.

    The weight is read as a matrix with `dim` as its rows. Its singular vectors are followed by the
    power method: 15 steps now, and n_power_iterations at each use in training. The weight is saved
    as `parametrizations.<name>.original`, the vectors as `0._u` and `0._v` beside it.

    Args:
        module: the module.
        name: attribute that is a parameter; a vector is divided by its norm.
        n_power_iterations: steps of the power method per use in training.
        eps: least norm that is divided by.
        dim: the rows; 1 for transposed convolutions and 0 for others if None.

    Raises:
        ArgumentError: the attribute is no parameter, is parametrized already, or
            n_power_iterations is not positive.
        IndexRangeError: dim is out of range.

    Gradient: to the weight; the vectors count as constants.

    Example:
        >>> layer = burn.nn.parametrizations.spectral_norm(burn.nn.Linear(3, 2))
        >>> burn.linalg.svd(layer.weight).S.max().item() < 1.1
        True

    Source: Miyato et al., Spectral Normalization, 2018
    """
    if not 1 <= n_power_iterations <= _MOST_ITERATIONS:
        raise ArgumentError(
            "spectral_norm", f"n_power_iterations is positive, and {_MOST_ITERATIONS} at most",
            got=n_power_iterations,
        )  # fmt: skip
    if dim is None:
        transposed = isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d))
        dim = 1 if transposed else 0
    rows = dim

    def wrap(p: Parameter) -> _SpectralNorm:
        return _SpectralNorm(p, n_power_iterations, eps, _dim("spectral_norm", rows, p))

    _install("spectral_norm", module, name, wrap)
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module's attribute, or any of them, is parametrized.

    Args:
        module: the module; those below it are not asked.
        tensor_name: the attribute; any if None.

    Example:
        >>> layer = burn.nn.Linear(1, 1)
        >>> burn.nn.parametrizations.is_parametrized(layer)
        False
    """
    made = reparameterized(module)
    names = made if tensor_name is None else [tensor_name] if tensor_name in made else []
    return any(isinstance(made[n], _Parametrized) for n in names)


def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """Make a parametrized attribute a plain parameter again, in place; return the module.

    It is the parameter that was there before, with its identity and id.

    Args:
        module: the module.
        tensor_name: the attribute.
        leave_parametrized: it takes the computed value; else that which it was computed from.

    Raises:
        ArgumentError: the attribute is not parametrized, or is computed from several parameters
            and should take the value of one.

    Example:
        >>> layer = burn.nn.parametrizations.weight_norm(burn.nn.Linear(3, 2))
        >>> burn.nn.parametrizations.remove_parametrizations(layer, "weight").state_dict().keys()
        dict_keys(['bias', 'weight'])
    """
    op = "remove_parametrizations"
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(
            op, "the attribute is parametrized", got=f"{type(module).__name__}.{tensor_name}"
        )
    made: Any = reparameterized(module)[tensor_name]
    if not leave_parametrized and not made.separable:
        raise ArgumentError(
            op, "a weight computed from several parameters takes the computed value",
            got="leave_parametrized=False",
        )  # fmt: skip
    restore_weight(module, tensor_name, leave_parametrized)
    return module
