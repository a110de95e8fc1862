"""Samples of indexing, gathering and scattering, and of operations with data-dependent sizes."""

from __future__ import annotations

from burn_std import ArgumentError, DTypeError, IndexRangeError, ShapeError
from burn_testing.samples.sample import (
    ALL_NAMES,
    FLOAT_NAMES,
    INT_NAMES,
    NUMERIC_NAMES,
    error,
    ints,
    sample,
    t,
    v,
)

FEW = ("f32", "f64", "i64")

sample("gather", t(3, 4), ints([[0, 2], [3, 3]]), attrs=(1,), length=2)
sample("gather", t(3, 4), ints([[0, 2, 1, 0]]), attrs=(0,), length=2)
sample("gather", t(3, 4), t(0, 4, dtype="i64"), attrs=(0,))
sample("gather", t(), ints(0), attrs=(0,))
error("gather", "out_of_range", IndexRangeError, t(3), ints([0, 3]), attrs=(0,))
error("gather", "rank", ShapeError, t(3, 4), ints([0]), attrs=(0,))
error("gather", "float_index", DTypeError, t(3), t(2), attrs=(0,))

_at = ints([[0, 1, 1], [2, 0, 2]])
for _mode in ("assign", "add", "multiply", "amin", "amax"):
    # Assigning and extremes choose one source, so their gradients are not sums.
    _smooth = _mode in ("assign", "add")
    sample(
        "scatter",
        t(3, 3, low=0.5, high=2),
        _at,
        t(2, 3, low=0.5, high=2),
        attrs=(0, _mode),
        dtypes=NUMERIC_NAMES,
        grad=_smooth,
        length=3,
    )
    sample(
        "scatter",
        t(3, 4, low=0.5, high=2),
        ints([[0, 2], [1, 3]]),
        t(2, 2, low=0.5, high=2),
        attrs=(1, _mode),
        dtypes=NUMERIC_NAMES,
        grad=_smooth,
        length=3,
    )
    sample(
        "scatter",
        t(3, 4),
        t(0, 4, dtype="i64"),
        t(0, 4),
        attrs=(0, _mode),
        dtypes=NUMERIC_NAMES,
        grad=_smooth,
    )
sample("scatter", t(4), ints([1, 3]), t(2), attrs=(0, "assign"), name="any", dtypes=ALL_NAMES)
error("scatter", "out_of_range", IndexRangeError, t(3), ints([0, 3]), t(2), attrs=(0, "assign"))
error("scatter", "src", ShapeError, t(3), ints([0, 1]), t(1), attrs=(0, "assign"))
error("scatter", "mode", ArgumentError, t(3), ints([0]), t(1), attrs=(0, "mean"))
error("scatter", "float_index", DTypeError, t(3), t(1), t(1), attrs=(0, "add"))

sample("index_select", t(3, 4), ints([2, 0, 2]), attrs=(0,), length=2)
sample("index_select", t(3, 4), ints([1]), attrs=(1,))
sample("index_select", t(3, 4), t(0, dtype="i64"), attrs=(1,))
sample("index_select", t(), ints([0]), attrs=(0,))
error("index_select", "out_of_range", IndexRangeError, t(3), ints([5]), attrs=(0,))
error("index_select", "rank", ShapeError, t(3), ints([[0]]), attrs=(0,))
error("index_select", "scalar", ShapeError, t(), ints([0, 0]), attrs=(0,))

sample("index_add", t(3, 2), ints([0, 0, 2]), t(3, 2), attrs=(0, 1), dtypes=NUMERIC_NAMES, length=3)
sample("index_add", t(2, 3), ints([1, 1]), t(2, 2), attrs=(1, 2), dtypes=NUMERIC_NAMES, length=3)
sample("index_add", t(3, 2), t(0, dtype="i64"), t(0, 2), attrs=(0, 1), dtypes=NUMERIC_NAMES)
error("index_add", "out_of_range", IndexRangeError, t(3), ints([3]), t(1), attrs=(0, 1))
error("index_add", "src", ShapeError, t(3, 2), ints([0, 1]), t(3, 2), attrs=(0, 1))

sample("index", t(4, 3), [ints([0, -1, 2])], attrs=((0,),), length=2)
sample("index", t(4, 3), [ints([0, 1]), ints([2, 2])], attrs=((0, 1),))
sample("index", t(4, 3, 2), [ints([[0], [3]]), ints([1, 0])], attrs=((0, 2),))
sample("index", t(4, 3), [t(0, dtype="i64")], attrs=((1,),))
sample("index", t(2, 3, 4), [ints([1, 1])], attrs=((1,),), length=2)
error("index", "out_of_range", IndexRangeError, t(3), [ints([3])], attrs=((0,),))
error("index", "negative", IndexRangeError, t(3), [ints([-4])], attrs=((0,),))
error("index", "shapes", ShapeError, t(3, 3), [ints([0, 1]), ints([0, 1, 2])], attrs=((0, 1),))
error("index", "float", DTypeError, t(3), [t(1)], attrs=((0,),))

for _add in (False, True):
    _kinds = NUMERIC_NAMES if _add else ALL_NAMES
    sample(
        "index_put",
        t(4, 3),
        t(3, 3),
        [ints([0, -1, 2])],
        attrs=((0,), _add),
        dtypes=_kinds,
        length=3,
    )
    sample(
        "index_put",
        t(4, 3),
        t(),
        [ints([0, 1]), ints([2, 2])],
        attrs=((0, 1), _add),
        dtypes=_kinds,
        length=3,
    )
    sample("index_put", t(4, 3), t(0, 3), [t(0, dtype="i64")], attrs=((0,), _add), dtypes=_kinds)
sample(
    "index_put",
    t(4),
    t(3),
    [ints([1, 1, 1])],
    attrs=((0,), True),
    name="duplicates",
    dtypes=NUMERIC_NAMES,
    length=4,
)
sample(
    "index_put", t(4), t(3), [ints([1, 1, 1])], attrs=((0,), False), name="last_wins", grad=False
)
error("index_put", "out_of_range", IndexRangeError, t(3), t(), [ints([3])], attrs=((0,), False))
error("index_put", "value", ShapeError, t(4), t(3), [ints([0, 1])], attrs=((0,), False))

for _padding in (None, 1):
    sample(
        "embedding",
        t(4, 3),
        ints([[0, 1], [3, 1]]),
        attrs=(_padding,),
        dtypes=FLOAT_NAMES,
        length=3,
        grad=_padding is None,
    )
    sample(
        "embedding_backward",
        t(2, 2, 3),
        ints([[0, 1], [3, 1]]),
        attrs=(_padding, 4),
        dtypes=FLOAT_NAMES,
        length=3,
    )
sample("embedding", t(4, 3), ints(2), attrs=(None,), dtypes=FLOAT_NAMES)
sample("embedding", t(4, 3), t(0, dtype="i64"), attrs=(None,), dtypes=FLOAT_NAMES)
error("embedding", "out_of_range", IndexRangeError, t(4, 3), ints([4]), attrs=(None,))
error("embedding", "rank", ShapeError, t(4), ints([0]), attrs=(None,))
error("embedding", "float", DTypeError, t(4, 2), t(1), attrs=(None,))
error("embedding_backward", "not_a_tensor", DTypeError, None, ints([0]), attrs=(None, 2))

sample("one_hot", t(2, 3, low=0, high=4, dtype="i64"), attrs=(5,), dtypes=("i64",))
sample("one_hot", ints(2), attrs=(3,), dtypes=("i64",))
sample("one_hot", t(0, dtype="i64"), attrs=(3,), dtypes=("i64",))
error("one_hot", "out_of_range", IndexRangeError, ints([3]), attrs=(3,), dtype="i64")
error("one_hot", "classes", ArgumentError, ints([0]), attrs=(0,), dtype="i64")
error("one_hot", "float", DTypeError, t(2), attrs=(3,))

for _right in (False, True):
    sample("searchsorted", v([1, 3, 3, 5, 7]), t(2, 3, low=0, high=8), attrs=(_right,), dtypes=FEW)
    sample(
        "searchsorted",
        v([[1, 3, 5], [2, 4, 6]]),
        t(2, 2, low=0, high=8),
        attrs=(_right,),
        dtypes=FEW,
    )
    sample("searchsorted", t(0), t(3), attrs=(_right,), dtypes=FEW)
error("searchsorted", "leading", ShapeError, t(2, 3), t(3, 2), attrs=(False,))

sample("bincount", ints([0, 2, 2, 4]), None, attrs=(5,), dtypes=("i64",))
sample("bincount", ints([0, 2, 2, 4]), t(4), attrs=(6,), dtypes=("f32", "f64"), length=2)
sample("bincount", t(0, dtype="i64"), None, attrs=(3,), dtypes=("i64",))
error("bincount", "rank", ShapeError, ints([[0]]), None, attrs=(1,), dtype="i64")
error("bincount", "float", DTypeError, t(2), None, attrs=(1,))

sample("nonzero", t(3, 4))
sample("nonzero", t())
sample("nonzero", t(0, 3))
error("nonzero", "not_a_tensor", DTypeError, None)
sample("masked_select", t(3, 4), t(3, 4, dtype="bool"))
sample("masked_select", t(2), v([False, False], "bool"), name="none")
sample("masked_select", t(0), t(0, dtype="bool"))
error("masked_select", "not_a_tensor", DTypeError, None, t(2, dtype="bool"))
for _inverse, _counts in ((False, False), (True, True), (True, False), (False, True)):
    sample("unique", t(3, 4), attrs=(_inverse, _counts), dtypes=("bool", *INT_NAMES, "f32", "f64"))
sample("unique", t(0), attrs=(True, True), dtypes=FEW)
error("unique", "not_a_tensor", DTypeError, None, attrs=(False, False))
