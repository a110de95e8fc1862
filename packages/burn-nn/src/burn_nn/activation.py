"""Smooth activations and the softmax family as modules; PyTorch's names and defaults."""

from __future__ import annotations

from burn_core import Module
from burn_dispatch import Device
from burn_nn.linear import Linear
from burn_std import DType, ShapeError
from burn_tensor import Tensor, functional as F


class Sigmoid(Module):
    """1 / (1 + exp(-x)), elementwise.

    Example:
        >>> burn.nn.Sigmoid()(burn.tensor([0.0])).tolist()
        [0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """log(1 / (1 + exp(-x))), elementwise and stable.

    Example:
        >>> round(burn.nn.LogSigmoid()(burn.tensor(0.0)).item(), 4)
        -0.6931
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.logsigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent, elementwise.

    Example:
        >>> burn.nn.Tanh()(burn.tensor([0.0])).tolist()
        [0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.tanh(input)


class Tanhshrink(Module):
    """x - tanh(x), elementwise.

    Example:
        >>> burn.nn.Tanhshrink()(burn.tensor([0.0])).tolist()
        [0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.tanhshrink(input)


class Softplus(Module):
    """log(1 + exp(beta x)) / beta, elementwise.

    Args:
        beta: steepness.
        threshold: where beta x is above it, x is returned.

    Example:
        >>> round(burn.nn.Softplus()(burn.tensor(0.0)).item(), 4)
        0.6931
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.softplus(input, self.beta, self.threshold)


class Softsign(Module):
    """x / (1 + |x|), elementwise.

    Example:
        >>> burn.nn.Softsign()(burn.tensor([1.0])).tolist()
        [0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.softsign(input)


class ELU(Module):
    """x where x > 0, else alpha (exp(x) - 1).

    Args:
        alpha: limit at minus infinity, with its sign turned.
        inplace: leave to overwrite the input, which is never made use of.

    Example:
        >>> burn.nn.ELU()(burn.tensor([2.0, 0.0])).tolist()
        [2.0, 0.0]

    Source: Clevert et al. 2015
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.elu(input, self.alpha)


class SELU(Module):
    """The ELU with the scale and alpha that keep mean 0 and variance 1.

    Args:
        inplace: leave to overwrite the input, which is never made use of.

    Example:
        >>> burn.nn.SELU()(burn.tensor([0.0])).tolist()
        [0.0]

    Source: Klambauer et al. 2017
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.selu(input)


class CELU(Module):
    """x where x > 0, else alpha (exp(x / alpha) - 1).

    Args:
        alpha: limit at minus infinity, with its sign turned.
        inplace: leave to overwrite the input, which is never made use of.

    Example:
        >>> burn.nn.CELU()(burn.tensor([2.0, 0.0])).tolist()
        [2.0, 0.0]

    Source: Barron 2017
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.celu(input, self.alpha)


class GELU(Module):
    """x Phi(x), with the distribution function of the normal distribution.

    Args:
        approximate: none is exact, tanh a formula with tanh.

    Example:
        >>> burn.nn.GELU()(burn.tensor([0.0])).tolist()
        [0.0]

    Source: Hendrycks and Gimpel 2016
    """

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.gelu(input, self.approximate)


class SiLU(Module):
    """x / (1 + exp(-x)), also called swish.

    Args:
        inplace: leave to overwrite the input, which is never made use of.

    Example:
        >>> burn.nn.SiLU()(burn.tensor([0.0])).tolist()
        [0.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.silu(input)


class Mish(Module):
    """x tanh(log(1 + exp(x))), elementwise.

    Args:
        inplace: leave to overwrite the input, which is never made use of.

    Example:
        >>> burn.nn.Mish()(burn.tensor([0.0])).tolist()
        [0.0]

    Source: Misra 2019
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.mish(input)


class GLU(Module):
    """a / (1 + exp(-b)) of the two halves a and b of a dim.

    Args:
        dim: the dim, of even extent.

    Example:
        >>> burn.nn.GLU()(burn.tensor([4.0, 0.0])).tolist()
        [2.0]

    Source: Dauphin et al. 2017
    """

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.glu(input, self.dim)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along a dim.

    Args:
        dim: the dim; None takes 1 for inputs of rank 2, 4 and more, else 0.

    Example:
        >>> burn.nn.Softmax(0)(burn.tensor([1.0, 1.0])).tolist()
        [0.5, 0.5]
    """

    def __init__(self, dim: int | None = None) -> None:
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.softmax(input, self.dim)


class LogSoftmax(Module):
    """x - log(sum(exp(x))) along a dim.

    Args:
        dim: the dim, as in `Softmax`.

    Example:
        >>> burn.nn.LogSoftmax(0)(burn.tensor([3.0])).tolist()
        [0.0]
    """

    def __init__(self, dim: int | None = None) -> None:
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.log_softmax(input, self.dim)


class Softmin(Module):
    """exp(-x) / sum(exp(-x)) along a dim.

    Args:
        dim: the dim, as in `Softmax`.

    Example:
        >>> burn.nn.Softmin(0)(burn.tensor([1.0, 1.0])).tolist()
        [0.5, 0.5]
    """

    def __init__(self, dim: int | None = None) -> None:
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of [N, C, H, W] or [C, H, W].

    Raises:
        ShapeError: another rank.

    Example:
        >>> burn.nn.Softmax2d()(burn.zeros(1, 2, 1, 1)).ravel().tolist()
        [0.5, 0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        if len(input.shape) not in (3, 4):
            raise ShapeError("Softmax2d", "the input has rank 3 or 4", got=input.shape)
        return F.softmax(input, -3)


class SwiGLU(Module):
    """silu(x W^T + b) (x V^T + c): a gated layer.

    Args:
        in_features: size of the last dim of the input.
        out_features: size of the last dim of the output.
        bias: add biases b and c.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [..., in_features]; returns [..., out_features]

    Example:
        >>> burn.nn.SwiGLU(3, 2)(burn.ones(4, 3)).shape
        (4, 2)

    Source: Shazeer, GLU Variants Improve Transformer, 2020
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = False,
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self.linear_inner = Linear(in_features, out_features, bias, device, dtype)
        self.linear_outer = Linear(in_features, out_features, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Return the gated output."""
        result: Tensor = F.silu(self.linear_inner(input)) * self.linear_outer(input)
        return result
