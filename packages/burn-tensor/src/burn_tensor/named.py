"""Results of several tensors, as named tuples with PyTorch's fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


class ValuesIndices(NamedTuple):
    """What max, min, median, sort, topk, cummax, cummin and kthvalue along a dim return.

    Attributes:
        values: elements of the input.
        indices: int64 positions of them along the dim.
    """

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    """What aminmax returns.

    Attributes:
        min: smallest elements.
        max: largest elements.
    """

    min: Tensor
    max: Tensor


class VarMean(NamedTuple):
    """What var_mean returns.

    Attributes:
        var: variances.
        mean: means.
    """

    var: Tensor
    mean: Tensor


class StdMean(NamedTuple):
    """What std_mean returns.

    Attributes:
        std: standard deviations.
        mean: means.
    """

    std: Tensor
    mean: Tensor
