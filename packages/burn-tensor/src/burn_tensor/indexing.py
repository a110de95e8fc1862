"""What stands between the brackets: numpy's indexing, for reading and for assigning.

Keys of ints, slices, None and `...` become one strided window, remembered per shape and key.
Integer arrays go to the `index` and `index_put` operations on the window; a mask stands for the
coordinates where it is true. Ints beside arrays count as arrays, as in numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from burn_backend import TensorBase
from burn_std import ArgumentError, DTypeError, IndexRangeError, ShapeError

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor

Shape = tuple[int, ...]
FULL = (None, None, None)


class Window:
    """A key without arrays.

    Attributes:
        steps: step per dim; with `starts` and `stops` the strided window.
        starts: first index per dim.
        stops: end per dim.
        drop: dims named by an int, which go.
        new: positions of None in the result.
        layout: per dim of the result, the dim of the window, or -1 for None.
        picks: (dim, index) pairs, last dim first, when the key is one or two ints and whole dims.
        whole: the window is all of the tensor.
    """

    __slots__ = ("drop", "layout", "new", "picks", "starts", "steps", "stops", "whole")

    def __init__(
        self,
        steps: Shape,
        starts: Shape,
        stops: Shape,
        drop: Shape,
        new: Shape,
        layout: Shape,
        picks: tuple[tuple[int, int], ...],
        whole: bool,
    ) -> None:
        self.steps = steps
        self.starts = starts
        self.stops = stops
        self.drop = drop
        self.new = new
        self.layout = layout
        self.picks = picks
        self.whole = whole


class _Windows(dict[Any, Window]):
    """Windows by (shape, parts); only plain keys are kept."""

    def __missing__(self, key: tuple[Shape, tuple[Any, ...]]) -> Window:
        shape, parts = key
        made = window(shape, parts)
        if len(self) > 4096:
            self.clear()
        if all(_plain(p) for part in parts for p in (part if isinstance(part, tuple) else (part,))):
            self[key] = made
        return made


class _Slices(dict[Any, tuple[Shape, Shape, Shape]]):
    """(steps, starts, stops) by (shape, start, stop, step): one slice alone, the usual key."""

    def __missing__(self, key: tuple[Shape, Any, Any, Any]) -> tuple[Shape, Shape, Shape]:
        w = window(key[0], (key[1:],))
        if len(self) > 4096:
            self.clear()
        bounds = w.steps, w.starts, w.stops
        if all(_plain(p) for p in key[1:]):
            self[key] = bounds
        return bounds


def _plain(p: Any) -> bool:
    return p is None or p is Ellipsis or p.__class__ is int


WINDOWS = _Windows()
SLICES = _Slices()


def bounds(n: int, part: tuple[Any, Any, Any]) -> tuple[int, int, int]:
    """Return (start, stop, step) of a slice over n elements, as the catalogue wants them."""
    try:
        start, stop, step = slice(*part).indices(n)
    except TypeError:
        raise DTypeError("index", "slice bounds are integers or None", got=part) from None
    except ValueError:
        raise ArgumentError("index", "a slice step is not 0", got=part) from None
    # Python writes some empty slices with bounds that mean something else to numpy.
    return (start, stop, step) if range(start, stop, step) else (0, 0, 1)


def position(i: int, dim: int, n: int) -> int:
    """Return an index as a non-negative one."""
    if not -n <= i < n:
        raise IndexRangeError(
            "index", "index must lie inside the dim", got=f"index {i}, dim {dim} of size {n}"
        )
    return i + n if i < 0 else i


def completed(shape: Shape, parts: Sequence[Any], taken: int) -> list[Any]:
    """Return the parts with `...` replaced by, or followed by, whole dims."""
    missing = len(shape) - taken
    if missing < 0:
        raise IndexRangeError("index", "too many indices", got=f"{taken} for rank {len(shape)}")
    places = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(places) > 1:
        raise IndexRangeError("index", "at most one `...`", got=len(places))
    at = places[0] if places else len(parts)
    return [*parts[:at], *[FULL] * missing, *parts[at + 1 :]]


def window(shape: Shape, parts: Sequence[Any]) -> Window:
    """Return the window of a key of ints, slices as triples, None and `...`."""
    taken = sum(p is not None and p is not Ellipsis for p in parts)
    starts, stops, steps = [], [], []
    drop: list[int] = []
    new: list[int] = []
    layout: list[int] = []
    at = 0
    whole = True
    for part in completed(shape, parts, taken):
        if part is None:
            new.append(len(layout))
            layout.append(-1)
            continue
        n = shape[at]
        if isinstance(part, tuple):
            start, stop, step = bounds(n, part)
            whole = whole and (start, stop, step) == (0, n, 1)
            layout.append(at)
        else:
            start = position(part, at, n)
            stop, step = start + 1, 1
            drop.append(at)
        starts.append(start)
        stops.append(stop)
        steps.append(step)
        at += 1
    picks: tuple[tuple[int, int], ...] = ()
    if 0 < len(drop) < 3 and not new and whole:
        picks = tuple([(d, starts[d]) for d in reversed(drop)])
    return Window(
        tuple(steps), tuple(starts), tuple(stops), tuple(drop), tuple(new), tuple(layout), picks,
        whole and not drop,
    )  # fmt: skip


def parts_of(key: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return a key with its slices as triples, or None when it has anything but basic parts."""
    parts = []
    for k in key:
        c = k.__class__
        if c is slice:
            parts.append((k.start, k.stop, k.step))
        elif c is int or k is None or k is Ellipsis:
            parts.append(k)
        else:
            return None
    return tuple(parts)


def read_window(x: Tensor, w: Window) -> Tensor:
    """Return x through a window."""
    out = x
    if w.picks:
        for dim, index in w.picks:
            out = x.b.select(out, dim, index)
        return out
    if not w.whole or not w.new:
        out = x.b.slice(x, w.steps, w.starts, w.stops)
    if w.drop:
        out = x.b.squeeze(out, w.drop)
    return x.b.unsqueeze(out, w.new) if w.new else out


# ---- keys with arrays --------------------------------------------------------------------------


class Lookup:
    """A key with arrays.

    Attributes:
        window: what to slice first, ints and None apart.
        new: dims to insert after slicing.
        arrays: integer tensors.
        dims: where they apply, after `new` was inserted.
        mask: the whole key is this one boolean tensor.
    """

    __slots__ = ("arrays", "dims", "mask", "new", "window")

    def __init__(
        self,
        window: Window,
        new: Shape,
        arrays: list[Tensor],
        dims: Shape,
        mask: Tensor | None = None,
    ) -> None:
        self.window = window
        self.new = new
        self.arrays = arrays
        self.dims = dims
        self.mask = mask


def item_of(x: Tensor, k: Any) -> Any:
    """Return one part of a key as a triple, an int, None, `...` or a tensor."""
    if isinstance(k, slice):
        return (k.start, k.stop, k.step)
    if k is None or k is Ellipsis or k.__class__ is int:
        return k
    if isinstance(k, TensorBase):
        if not k.dtype.is_int and not k.dtype.is_bool:
            raise DTypeError(
                "index", "an index tensor is of an integer dtype or bool", got=k.dtype.name,
                remedy="Convert with .to(burn.int64).",
            )  # fmt: skip
        return k
    if isinstance(k, (bool, list, tuple, np.ndarray, np.generic, range)):
        array = _host_array(k)
        if array.dtype.kind in "iu" and not array.ndim:
            return int(array)
        return x.b.tensor_from_numpy(array)
    if hasattr(k, "__index__"):
        return k.__index__()
    raise DTypeError(
        "index", "a key has ints, slices, None, `...`, and integer or boolean arrays",
        got=type(k).__name__,
    )  # fmt: skip


def _host_array(k: Any) -> np.ndarray[Any, Any]:
    if isinstance(k, (list, tuple)) and any(isinstance(e, TensorBase) for e in k):
        k = [e.b.to_numpy(e) if isinstance(e, TensorBase) else e for e in k]
    try:
        array = np.asarray(k)
    except ValueError:
        raise DTypeError("index", "an index list is rectangular", got=k) from None
    if not array.size and array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise DTypeError("index", "an index array holds integers or bools", got=array.dtype)
    return array


def _host_bounds(key: Any, dim: int, n: int) -> None:
    """Raise at once for what is known on the host."""
    if key.__class__ is list and key and key[0].__class__ is int:
        for i in (min(key), max(key)):  # quicker than numpy for the few that one writes down
            position(i, dim, n)
    elif isinstance(key, (list, tuple, np.ndarray, range)):
        known = np.asarray(key)
        if known.size and known.dtype.kind in "iu":
            for i in (int(known.min()), int(known.max())):
                position(i, dim, n)


def lookup(x: Tensor, key: tuple[Any, ...]) -> Lookup | Window:
    """Return what a key with anything in it means; a Window if there are no arrays after all."""
    shape = x.shape
    items = [item_of(x, k) for k in key]
    arrays = [i for i in items if isinstance(i, TensorBase)]
    if not arrays:
        return window(shape, items)
    if len(items) == 1 and items[0].dtype.is_bool and items[0].shape == shape and shape:
        return Lookup(window(shape, ()), (), [], (), items[0])
    given = {id(i): k for i, k in zip(items, key, strict=True) if isinstance(i, TensorBase)}
    taken = 0
    for i in items:
        if isinstance(i, TensorBase):
            taken += len(i.shape) if i.dtype.is_bool else 1
        elif i is not None and i is not Ellipsis:
            taken += 1
    basic: list[Any] = []
    new: list[int] = []
    found: list[Tensor] = []
    dims: list[int] = []
    at = 0  # dim of the window with `new` inserted
    for part in completed(shape, items, taken):
        source = len(basic)
        if part is None:
            new.append(at)
            at += 1
        elif isinstance(part, tuple):
            basic.append(part)
            at += 1
        elif isinstance(part, int):
            found.append(x.b.tensor_from_numpy(np.asarray(position(part, source, shape[source]))))
            dims.append(at)
            basic.append(FULL)
            at += 1
        elif part.dtype.is_bool and not part.shape:
            # One more dim, kept when true and emptied when false.
            new.append(at)
            found.append(x.b.tensor_from_numpy(np.zeros(1 if bool(part) else 0, np.int64)))
            dims.append(at)
            at += 1
        elif part.dtype.is_bool:
            covered = shape[source : source + len(part.shape)]
            if part.shape != covered:
                raise IndexRangeError(
                    "index", "a mask has the extents of the dims it covers",
                    got=f"mask {list(part.shape)} on {list(covered)}",
                )  # fmt: skip
            for column in part.b.nonzero(part).unbind(1):
                found.append(column)
                dims.append(at)
                basic.append(FULL)
                at += 1
        else:
            _host_bounds(given[id(part)], source, shape[source])
            found.append(part)
            dims.append(at)
            basic.append(FULL)
            at += 1
    return Lookup(window(shape, basic), tuple(new), found, tuple(dims))


def _opened(x: Tensor, look: Lookup) -> Tensor:
    w = look.window
    out = x if w.whole else x.b.slice(x, w.steps, w.starts, w.stops)
    return x.b.unsqueeze(out, look.new) if look.new else out


def getitem(x: Tensor, key: Any) -> Tensor:
    """Return x[key] for any key."""
    found = lookup(x, key if isinstance(key, tuple) else (key,))
    if isinstance(found, Window):
        return read_window(x, found)
    if found.mask is not None:
        return x.b.masked_select(x, found.mask)
    return x.b.index(_opened(x, found), found.arrays, found.dims)


# ---- assignment --------------------------------------------------------------------------------


def setitem(x: Tensor, key: Any, value: Tensor) -> Tensor:
    """Return x with x[key] replaced by a value of x's dtype."""
    keys = key if isinstance(key, tuple) else (key,)
    parts = parts_of(keys)
    if not x.shape and len(keys) == 1 and isinstance(keys[0], TensorBase):
        # A mask of rank 0 on a number: nothing is read.
        mask = item_of(x, keys[0])
        if mask.dtype.is_bool and not mask.shape and all(n == 1 for n in value.shape):
            return x.b.where(mask, x.b.reshape(value, ()), x)
    found = lookup(x, keys) if parts is None else WINDOWS[x.shape, parts]
    if isinstance(found, Window):
        fitted = _fitted(value, found)
        return x.b.slice_assign(x, fitted, found.steps, found.starts, found.stops)
    if found.mask is not None:
        if all(n == 1 for n in value.shape):
            return x.b.where(found.mask, x.b.reshape(value, ()), x)
        mask_dims = tuple(range(len(x.shape)))
        columns = list(found.mask.b.nonzero(found.mask).unbind(1))
        return put(x, value, columns, mask_dims, False)
    w = found.window
    out = put(_opened(x, found), value, found.arrays, found.dims, False)
    if found.new:
        out = x.b.squeeze(out, found.new)
    return out if w.whole else x.b.slice_assign(x, out, w.steps, w.starts, w.stops)


def put(x: Tensor, value: Tensor, arrays: list[Tensor], dims: Shape, accumulate: bool) -> Tensor:
    """Return x with a value at integer arrays; ones in front of the value's shape are ignored."""
    if not arrays:
        return x.b.slice_assign(x, value, (1,) * len(x.shape), (0,) * len(x.shape), x.shape)
    rank = len(x.shape) - len(dims) + max(len(a.shape) for a in arrays)
    return x.b.index_put(x, _trimmed(value, rank), arrays, dims, accumulate)


def spread_masks(x: Tensor, indices: list[Tensor | None]) -> tuple[list[Tensor], Shape]:
    """Return index tensors and their dims for `index_put`: masks become coordinates."""
    arrays: list[Tensor] = []
    dims: list[int] = []
    at = 0
    for i in indices:
        if i is None:
            at += 1
            continue
        part = item_of(x, i)
        if not isinstance(part, TensorBase):
            part = x.b.tensor_from_numpy(np.asarray(part))
        columns = part.b.nonzero(part).unbind(1) if part.dtype.is_bool else (part,)
        for column in columns:
            arrays.append(column)
            dims.append(at)
            at += 1
    if at > len(x.shape):
        raise IndexRangeError("index_put", "too many indices", got=f"{at} for rank {len(x.shape)}")
    return arrays, tuple(dims)


def _trimmed(value: Tensor, rank: int) -> Tensor:
    """Return a value without ones in front of the dims that can be used."""
    extra = len(value.shape) - rank
    if extra > 0 and all(n == 1 for n in value.shape[:extra]):
        return value.b.reshape(value, value.shape[extra:])
    return value


def _fitted(value: Tensor, w: Window) -> Tensor:
    """Return a value shaped so that it broadcasts to the window before ints and None count."""
    rank = len(w.layout)
    value = _trimmed(value, rank)
    shape = value.shape
    if not (w.drop or w.new) or not shape:
        return value
    if len(shape) > rank:
        raise ShapeError(
            "index", "the value has too many dims", got=f"{list(shape)} for rank {rank}"
        )
    target = [1] * len(w.steps)
    for n, d in zip(shape, w.layout[rank - len(shape) :], strict=True):
        if d >= 0:
            target[d] = n
        elif n != 1:
            raise ShapeError(
                "index", "the value must broadcast to the indexed window", got=list(shape)
            )
    return value.b.reshape(value, tuple(target))
