"""How tensors print: like numpy's arrays, shortened when large.

Dtype and device are shown where they are not the default.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from burn_dispatch import Device
from burn_std import ArgumentError, BurnError

if TYPE_CHECKING:
    from burn_backend import TensorBase

_OPTIONS: dict[str, Any] = {
    "precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 88, "sci_mode": None,
}  # fmt: skip


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors print; what is not given stays.

    Args:
        precision: digits after the point.
        threshold: more elements than this are shortened.
        edgeitems: how many are shown at each end of a shortened dim.
        linewidth: characters per line.
        sci_mode: True forces scientific notation, False forbids it.

    Raises:
        ArgumentError: a number is negative.

    Example:
        >>> burn.set_printoptions(precision=2)
        >>> burn.tensor([0.12345])
        tensor([0.12])
        >>> burn.set_printoptions(precision=4)
    """
    given = {
        "precision": precision, "threshold": threshold, "edgeitems": edgeitems,
        "linewidth": linewidth,
    }  # fmt: skip
    for name, value in given.items():
        if value is not None:
            if value < 0:
                raise ArgumentError("set_printoptions", f"{name} is not negative", got=value)
            _OPTIONS[name] = value
    if sci_mode is not None:
        _OPTIONS["sci_mode"] = sci_mode


def _edges(x: TensorBase) -> Any:
    """Return the elements that will be shown, as an array, and whether it is shortened.

    A large tensor sends its ends only.
    """
    keep = _OPTIONS["edgeitems"]
    shape = x.shape
    if prod(shape) <= _OPTIONS["threshold"] or keep == 0:
        return x.b.to_numpy(x), False
    array = x
    for d, n in enumerate(shape):
        if n > 2 * keep + 1:
            rank = len(array.shape)

            def part(
                start: int, stop: int, d: int = d, rank: int = rank, a: TensorBase = array
            ) -> Any:
                lows = tuple([start if i == d else 0 for i in range(rank)])
                highs = tuple([stop if i == d else e for i, e in enumerate(a.shape)])
                return a.b.slice(a, (1,) * rank, lows, highs)

            # One more at the head, so that numpy still sees more than both edges.
            array = array.b.cat([part(0, keep + 1), part(n - keep, n)], d)
    return array.b.to_numpy(array), True


def _number(values: np.ndarray[Any, Any]) -> Any:
    """Return the format of one float: short when all are whole, else fixed or scientific."""
    finite = np.abs(values[np.isfinite(values)])
    nonzero = finite[finite != 0]
    digits = _OPTIONS["precision"]
    whole = bool(np.all(finite == np.floor(finite)))
    high = float(nonzero.max()) if nonzero.size else 0.0
    low = float(nonzero.min()) if nonzero.size else 0.0
    science = _OPTIONS["sci_mode"]
    if science is None:
        science = high >= 1e8 or (
            not whole and (low < 10.0**-digits or high / low > 1e5 if low else False)
        )
    if science:
        text = f"{{:.{digits}e}}"
    elif whole:
        text = "{:.0f}."
    else:
        text = f"{{:.{digits}f}}"
    plain = {"nan": "nan", "inf": "inf", "-inf": "-inf"}

    def one(v: Any) -> str:
        f = float(v)
        return plain.get(str(f)) or text.format(f)

    width = max((len(one(v)) for v in values.ravel()), default=0)
    return lambda v: one(v).rjust(width)


def _body(x: TensorBase, prefix: str) -> str:
    array, short = _edges(x)
    if array.dtype.kind not in "biuf":  # bfloat16 is foreign to numpy's printer
        array = array.astype(np.float32)
    formatter = {"float_kind": _number(array)} if array.dtype.kind == "f" else None
    return np.array2string(
        array,
        separator=", ",
        prefix=prefix,
        max_line_width=_OPTIONS["linewidth"],
        threshold=0 if short else max(array.size, 1),
        edgeitems=_OPTIONS["edgeitems"],
        formatter=formatter,  # type: ignore[arg-type] # numpy's stub lists other keys
    )


def render(x: TensorBase, name: str = "tensor") -> str:
    """Return the text of a tensor."""
    dtype = x.dtype
    facts = []
    default = dtype is x.b.default_float or dtype is x.b.default_int or dtype.is_bool
    if dtype.is_quantized:
        return f"{name}(shape={list(x.shape)}, dtype={dtype})"
    if 0 in x.shape:
        body = "[]"
        if len(x.shape) > 1:
            facts.append(f"size={x.shape}")
        default = dtype is x.b.default_float
    else:
        try:
            body = _body(x, f"{name}(")
        except BurnError as error:  # a value that failed, or that is not there to be read
            body = f"<{error.rule}>"
    if not default:
        facts.append(f"dtype={dtype!r}")
    if str(x.b.device) != str(Device.default()):
        facts.append(f"device='{x.b.device}'")
    if x.node is not None:
        leaf = x.b.need_autodiff("print").is_leaf(x)
        facts.append("require_grad=True" if leaf else "tracked=True")
    return f"{name}({', '.join([body, *facts])})"
