"""Activations as modules; PyTorch's names, arguments and defaults."""

from __future__ import annotations

from typing import Any

from burn_core import Module, Parameter, init
from burn_core.init import fresh
from burn_dispatch import Device
from burn_std import ArgumentError, DType
from burn_tensor import Tensor, functional as F


def _activation(name: str, fn: str, summary: str, **defaults: Any) -> type[Module]:
    """Return a module class that calls one function with its constructor's arguments."""
    import inspect

    fields = list(defaults)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.arguments.pop("inplace", False):
            raise ArgumentError(name, "tensors are values, nothing happens in place", remedy="Leave inplace out.")
        self.__dict__.update(bound.arguments)

    def forward(self: Any, x: Tensor) -> Tensor:
        out: Tensor = getattr(F, fn)(x, **{k: self.__dict__[k] for k in fields if k != "inplace"})
        return out

    def extra_repr(self: Any) -> str:
        return ", ".join(f"{k} {self.__dict__[k]}" for k in fields if k != "inplace")

    forward.__doc__ = f"Return {summary}."
    extra_repr.__doc__ = "Return the arguments."
    signature = inspect.Signature(
        [inspect.Parameter(k, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=v) for k, v in defaults.items()]
    )
    args = "".join(f"\n        {k}: as in `functional.{fn}`; default {v!r}." for k, v in defaults.items())
    doc = f"""Apply {summary} elementwise, see `functional.{fn}`.
{f'''
    Args:{args}
''' if args else ''}
    Example:
        >>> import burn_tensor as bt
        >>> {name}()(bt.zeros(2, 4)).shape
        {'(2, 2)' if name == 'GLU' else '(2, 4)'}
    """
    body = {
        "__init__": __init__, "forward": forward, "extra_repr": extra_repr, "__doc__": doc,
        "__module__": __name__, "__qualname__": name, "__signature__": signature,
    }  # fmt: skip
    return type(Module)(name, (Module,), body)


ReLU = _activation("ReLU", "relu", "max(x, 0)", inplace=False)
ReLU6 = _activation("ReLU6", "relu6", "clamp(x, 0, 6)", inplace=False)
ELU = _activation("ELU", "elu", "x if x > 0 else alpha (exp(x) - 1)", alpha=1.0, inplace=False)
SELU = _activation("SELU", "selu", "the scaled ELU", inplace=False)
CELU = _activation("CELU", "celu", "x if x > 0 else alpha (exp(x / alpha) - 1)", alpha=1.0, inplace=False)
GELU = _activation("GELU", "gelu", "x Phi(x)", approximate="none")
SiLU = _activation("SiLU", "silu", "x sigmoid(x)", inplace=False)
Mish = _activation("Mish", "mish", "x tanh(softplus(x))", inplace=False)
Sigmoid = _activation("Sigmoid", "sigmoid", "1 / (1 + exp(-x))")
LogSigmoid = _activation("LogSigmoid", "logsigmoid", "log(sigmoid(x))")
Tanh = _activation("Tanh", "tanh", "tanh(x)")
Tanhshrink = _activation("Tanhshrink", "tanhshrink", "x - tanh(x)")
Softplus = _activation("Softplus", "softplus", "log(1 + exp(beta x)) / beta", beta=1.0, threshold=20.0)
Softsign = _activation("Softsign", "softsign", "x / (1 + |x|)")
Softshrink = _activation("Softshrink", "softshrink", "x moved towards 0", lambd=0.5)
Hardshrink = _activation("Hardshrink", "hardshrink", "x where |x| > lambd, else 0", lambd=0.5)
Hardsigmoid = _activation("Hardsigmoid", "hardsigmoid", "clamp(x + 3, 0, 6) / 6", inplace=False)
Hardswish = _activation("Hardswish", "hardswish", "x clamp(x + 3, 0, 6) / 6", inplace=False)
Hardtanh = _activation("Hardtanh", "hardtanh", "clamp(x, min_val, max_val)", min_val=-1.0, max_val=1.0, inplace=False)
LeakyReLU = _activation("LeakyReLU", "leaky_relu", "x if x > 0 else slope x", negative_slope=0.01, inplace=False)
GLU = _activation("GLU", "glu", "a sigmoid(b) of the two halves", dim=-1)
Softmax = _activation("Softmax", "softmax", "exp(x) / sum(exp(x))", dim=None)
LogSoftmax = _activation("LogSoftmax", "log_softmax", "log(softmax(x))", dim=None)
Softmin = _activation("Softmin", "softmin", "softmax(-x)", dim=None)


class Threshold(Module):
    """Return x where x > threshold, else value.

    Example:
        >>> import burn_tensor as bt
        >>> Threshold(0.5, 9.0)(bt.tensor([0.0, 1.0])).tolist()
        [9.0, 1.0]
    """

    def __init__(self, threshold: float, value: float) -> None:
        self.threshold = threshold
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        """Return x where x > threshold, else value."""
        return F.threshold(x, self.threshold, self.value)


class PReLU(Module):
    """Return x if x > 0 else weight x, with a learned weight for all or per channel.

    Example:
        >>> import burn_tensor as bt
        >>> PReLU()(bt.tensor([-4.0, 4.0])).tolist()
        [-1.0, 4.0]

    Source: He et al. 2015.
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Device | None = None, dtype: DType | None = None
    ) -> None:
        self.num_parameters = num_parameters
        self.weight = Parameter(fresh((num_parameters,), dtype, device))
        _constant(self.weight, init)

    def forward(self, x: Tensor) -> Tensor:
        """Return x if x > 0 else weight x."""
        return F.prelu(x, self.weight)


_constant = init.constant_
