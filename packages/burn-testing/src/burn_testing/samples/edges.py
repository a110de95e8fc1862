"""Samples made from the edge semantics that entries declare, not from their names.

A new operation that declares `int_wraps` gets the extremes of every integer dtype without a line
written for it; what needs values of a certain kind (ties, NaN) stands with its family.
"""

from __future__ import annotations

from burn_ir import CATALOG, Entry
from burn_testing.samples.sample import FLOAT_NAMES, INT_NAMES, Draw, dtypes_of, sample, t, v

NAN, INF = float("nan"), float("inf")
COLUMN, ROW = Draw((7, 1), values="extremes"), Draw((7,), values="extremes")
# What stands beside the inputs of entries that are no plain maps.
_ALL = {
    "sum": (None, False, None),
    "prod": (None, False, None),
    "cumsum": (0, None),
    "cumprod": (0, None),
}


def _integers(entry: Entry) -> tuple[str, ...]:
    return tuple(d for d in dtypes_of(entry) if d in INT_NAMES)


def _wraps(entry: Entry) -> None:
    """Results outside the dtype wrap in two's complement."""
    kinds = _integers(entry)
    if entry.klass == "map" and not entry.attrs and kinds:
        inputs = (COLUMN, ROW)[: len(entry.inputs)]
        sample(entry.name, *inputs, name="extremes", dtypes=kinds, grad=False)
    elif entry.name in _ALL:
        sample(entry.name, ROW, attrs=_ALL[entry.name], name="extremes", dtypes=kinds, grad=False)
    elif entry.name == "matmul":
        sample(entry.name, COLUMN, Draw((1, 7), values="extremes"), name="extremes", dtypes=kinds)


def _divides_by_zero(entry: Entry) -> None:
    """x / 0 is 0 for integers, of whatever shape the zero has."""
    kinds = _integers(entry)
    sample(entry.name, COLUMN, v([0, 0, 1]), name="zero_divisor", dtypes=kinds, grad=False)
    sample(entry.name, ROW, 0, name="zero_number", dtypes=kinds, grad=False)


def _shifts(entry: Entry) -> None:
    """Counts of the width and more, and negative ones."""
    signed = tuple(d for d in _integers(entry) if d[0] == "i")
    counts = v([0, 1, 7, 8, 31, 32, 63, 64, 100])
    sample(entry.name, COLUMN, counts, name="counts", dtypes=_integers(entry), grad=False)
    sample(entry.name, COLUMN, v([-1, -8]), name="negative", dtypes=signed, grad=False)


def _nan(entry: Entry) -> None:
    """NaN among numbers, in every place of a short row."""
    rows = v([[NAN, 1.0, 2.0], [1.0, NAN, 2.0], [1.0, 2.0, NAN], [NAN, NAN, NAN]])
    over, along = ((1,), False), (1, False)
    attrs: dict[str, tuple[object, ...]] = {
        **dict.fromkeys(("amax", "amin"), over),
        **dict.fromkeys(("argmax", "argmin", "max_dim", "min_dim", "median_dim"), along),
        **dict.fromkeys(("cummax", "cummin"), (1,)),
    }
    if entry.name in attrs:
        sample(
            entry.name, rows, attrs=attrs[entry.name], name="nan", dtypes=FLOAT_NAMES, grad=False
        )
    elif entry.klass == "map" and len(entry.inputs) == 2 and entry.accepts in ("any", "numeric"):
        sample(entry.name, rows, v([NAN, 0.0, 2.0]), name="nan", dtypes=FLOAT_NAMES, grad=False)


def _empty(entry: Entry) -> None:
    """Reductions over nothing give their neutral element."""
    if [a.name for a in entry.attrs][:2] == ["dims", "keepdim"]:
        rest = tuple(1 if a.name == "correction" else None for a in entry.attrs[2:])
        for dims, keep in (((0, 1), False), ((1,), True)):
            sample(entry.name, t(2, 0), attrs=(dims, keep, *rest), name="neutral", grad=False)


MAKERS = {
    "int_wraps": _wraps, "zero_division_is_zero": _divides_by_zero, "shift_range": _shifts,
    "nan_propagates": _nan, "nan_first_wins": _nan, "nan_false": _nan,
    "empty_zero": _empty, "empty_one": _empty, "empty_nan": _empty, "empty_false": _empty,
    "empty_true": _empty,
}  # fmt: skip

for _entry in CATALOG:
    for _make in dict.fromkeys(MAKERS[e] for e in _entry.edges if e in MAKERS):
        _make(_entry)
