"""The class users hold.

Its methods stand in the classes it inherits; keys, rebinding, text and the names that do not exist
stand here.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any

from burn_backend import TensorBase, register_tensor_class
from burn_dispatch import current_scope
from burn_std import Absent, ArgumentError, BurnError, present
from burn_tensor.absent import remedies
from burn_tensor.arithmetic import ArithmeticMethods
from burn_tensor.autograd import AutogradMethods, refuse_assignment
from burn_tensor.comparison import ComparisonMethods
from burn_tensor.convert import ConvertMethods
from burn_tensor.edits import EditMethods
from burn_tensor.elementwise import ElementwiseMethods
from burn_tensor.indexing import SLICES, WINDOWS, getitem, parts_of, read_window, setitem
from burn_tensor.interop import InteropMethods
from burn_tensor.likeness import LikenessMethods
from burn_tensor.lookup import LookupMethods, value_like
from burn_tensor.matrices import MatrixMethods
from burn_tensor.order import OrderMethods
from burn_tensor.parts import PartMethods
from burn_tensor.printing import render
from burn_tensor.product import ProductMethods
from burn_tensor.reduce import ReduceMethods
from burn_tensor.shape import ShapeMethods
from burn_tensor.special import SpecialMethods


def _calibrated() -> int:
    """Return the reference count of an assignment into a temporary, 0 if it cannot be told.

    A named object has one reference more than a temporary; how many there are in all differs
    between versions of Python, so it is measured with the same calls.
    """
    seen = []

    class Probe:
        def __setitem__(self, key: int, value: int) -> None:
            seen.append(getrefcount(self))

    named = Probe()
    named[0] = 0
    Probe()[0] = 0
    return seen[1] if seen[1] < seen[0] else 0


_TEMPORARY = _calibrated()


class TensorType(type):
    """The class of `Tensor`: its `dir` leaves out the names that only say what to write."""

    def __dir__(cls) -> list[str]:
        return present(cls, type.__dir__(cls))


class Tensor(
    ArithmeticMethods,
    ComparisonMethods,
    ElementwiseMethods,
    SpecialMethods,
    ReduceMethods,
    ShapeMethods,
    PartMethods,
    EditMethods,
    LookupMethods,
    OrderMethods,
    ProductMethods,
    MatrixMethods,
    AutogradMethods,
    ConvertMethods,
    InteropMethods,
    LikenessMethods,
    TensorBase,
    metaclass=TensorType,
):
    """An n-dimensional array on a device, of one dtype, that is never changed in place.

    Make one with `burn.tensor`, `burn.zeros` and their relatives, or as the result of an
    operation. `x[key] = value` and nothing else gives a name another value: the object then
    stands for the new one, and tensors derived from it before keep the old.

    Attributes:
        shape: extents of the dims, a tuple.
        dtype: element type.
        device: where it lives, and whether gradients can be had.

    Example:
        >>> x = burn.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x @ x + 1
        tensor([[ 8., 11.],
                [16., 23.]])
    """

    __slots__ = ()

    # ---- keys ---------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Tensor:
        try:
            c = key.__class__
            if c is slice:
                steps, starts, stops = SLICES[self.v.shape, key.start, key.stop, key.step]
                function = self.b.slice  # two lines: Python specialises this look-up only
                return function(self, steps, starts, stops)
            shape = self.v.shape
            if c is int:
                if shape and -shape[0] <= key < shape[0]:
                    return self.b.select(self, 0, key if key >= 0 else key + shape[0])
                return getitem(self, key)
            if key is None:
                return self.b.unsqueeze(self, (0,))
            if key is Ellipsis:
                key, c = (key,), tuple
            if c is tuple:
                if len(key) == 2 and key[0].__class__ is int and key[1].__class__ is int:
                    i, j = key
                    if len(shape) > 1 and -shape[0] <= i < shape[0] and -shape[1] <= j < shape[1]:
                        row = self.b.select(self, 0, i if i >= 0 else i + shape[0])
                        return row.b.select(row, 0, j if j >= 0 else j + shape[1])
                parts = parts_of(key)
                if parts is not None:
                    w = WINDOWS[shape, parts]
                    if w.drop or w.new:
                        return read_window(self, w)
                    return self.b.slice(self, w.steps, w.starts, w.stops)
            elif c is Tensor and key.dtype.is_int and shape:
                return self.b.index(self, [key], (0,))
            return getitem(self, key)
        except BurnError as error:
            # Keys are read by several functions; the user's line is what matters.
            raise error.with_traceback(None) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        if getrefcount(self) <= _TEMPORARY:
            raise ArgumentError(
                "assign", "the assignment goes into a temporary and would be lost",
                remedy="Write x[i, j] = v instead of x[i][j] = v, or name the part, "
                "assign into it and put it back.",
            )  # fmt: skip
        if self.node is not None and self.is_require_grad() and not current_scope().no_grad:
            raise refuse_assignment(self)
        try:
            self._rebind(setitem(self, key, value_like(self, value)))
        except BurnError as error:
            raise error.with_traceback(None) from None

    def _rebind(self, new: TensorBase) -> None:
        """Stand for another value from now on; a leaf (inside no_grad) stays a leaf."""
        new.b.resource.backend.rebinding(self, new.v)
        if self.node is None or not self.is_require_grad():
            self.b = new.b
            self.node = new.node
        self.v = new.v

    # ---- text ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return render(self)

    def __format__(self, spec: str) -> str:
        if spec and not self.v.shape:
            return format(self.item(), spec)
        return format(str(self), spec)

    def __dir__(self) -> list[str]:
        own = [n for n in object.__dir__(self) if n not in ("b", "v", "node")]
        return present(type(self), own)


for _name, _said in remedies([n for n in dir(Tensor) if n[0] != "_"]).items():
    setattr(Tensor, _name, Absent(_name, "tensors", _said, "Tensor"))

register_tensor_class(Tensor)
