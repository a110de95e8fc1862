"""Plane operations of the C family, all built on one primitive: read the value of another unit.

A dialect gives `plane_read_T(value, from PLANE_ARGS)` and says in PLANE_PARAMS what it needs to
know of the plane: at least `plane_at` and `plane_count`. A plane at the end of a cube may be short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn_cube.emit.c_values import literal, value_of
from burn_std.dtypes import DType, bool_

if TYPE_CHECKING:
    from burn_cube.emit.c_memory import MemoryWriter


_NUMBERS = ("int", "uint", "float")


def plane_kinds(kind: str) -> tuple[str, ...]:
    """Return the kinds of dtypes that a plane operation takes."""
    if kind in ("all", "any", "ballot"):
        return ("bool",)
    return (*_NUMBERS, "bool") if "shuffle" in kind or kind == "broadcast" else _NUMBERS


def plane_call(kind: str, dtype: DType, t: str, args: list[str], writer: MemoryWriter) -> str:
    """Return the call of a plane operation, adding its function.

    Args:
        kind: one of `burn_cube.operations.PLANE`.
        dtype: dtype of the value.
        t: C type that travels between units.
        args: value, and lane where the kind has one.
        writer: where helpers go.
    """
    value = args[0]
    name = f"plane_{kind}_{t}" if dtype is not bool_ else f"plane_{kind}"
    if kind in ("all", "any", "ballot"):
        writer.need("plane_bits", _bits())
        bits = f"plane_bits({value} PLANE_ARGS)"
        if kind == "ballot":
            return bits
        if kind == "any":
            return f"{bits} != 0"
        return f"{bits} == (0xffffffffu >> (32 - plane_count))"
    if "shuffle" in kind or kind == "broadcast":
        writer.need(name, _move(kind, name, t))
        call = f"{name}({value}, (i32)({args[1]}) PLANE_ARGS)"
        return f"{call} != 0" if dtype is bool_ else call
    stem = {"sum": "add", "prod": "mul"}.get(kind.rpartition("_")[2], kind)
    combined = value_of(stem, dtype, ("v", "w"), writer)
    if kind in ("sum", "prod", "min", "max"):
        writer.need(name, _tree(name, t, combined))
    else:
        first = literal(0 if stem == "add" else 1, dtype, writer.dialect)
        combined = value_of(stem, dtype, ("w", "v"), writer)
        writer.need(name, _scan(name, t, combined, first, kind.startswith("exclusive")))
    return f"{name}({value} PLANE_ARGS)"


def _tree(name: str, t: str, combined: str) -> str:
    # A butterfly, so that every unit of a full plane ends with the same bits.
    return (
        f"FN {t} {name}({t} v PLANE_PARAMS) {{\n"
        "  for (u32 step = 1; step < PLANE; step <<= 1) {\n"
        "    const u32 peer = plane_at ^ step;\n"
        f"    const {t} w = plane_read_{t}(v, peer < plane_count ? peer : plane_at PLANE_ARGS);\n"
        f"    if (peer < plane_count) v = {combined};\n"
        "  }\n"
        "  // A short plane has holes: its first unit is the one that met all others.\n"
        f"  return plane_count == PLANE ? v : plane_read_{t}(v, 0 PLANE_ARGS);\n}}"
    )


def _scan(name: str, t: str, combined: str, first: str, exclusive: bool) -> str:
    end = "  return v;\n}"
    if exclusive:
        end = (
            f"  const {t} before = plane_read_{t}(v, plane_at ? plane_at - 1 : 0 PLANE_ARGS);\n"
            f"  return plane_at ? before : {first};\n}}"
        )
    return (
        f"FN {t} {name}({t} v PLANE_PARAMS) {{\n"
        "  for (u32 step = 1; step < PLANE; step <<= 1) {\n"
        "    const bool has = plane_at >= step;\n"
        f"    const {t} w = plane_read_{t}(v, has ? plane_at - step : plane_at PLANE_ARGS);\n"
        f"    if (has) v = {combined};\n"
        f"  }}\n{end}"
    )


def _move(kind: str, name: str, t: str) -> str:
    source = {
        "shuffle": "lane", "broadcast": "lane", "shuffle_xor": "(i32)plane_at ^ lane",
        "shuffle_up": "(i32)plane_at - lane", "shuffle_down": "(i32)plane_at + lane",
    }[kind]  # fmt: skip
    return (
        f"FN {t} {name}({t} v, i32 lane PLANE_PARAMS) {{\n"
        f"  const i32 from = {source};\n"
        f"  return plane_read_{t}(v, from >= 0 && from < (i32)plane_count ? (u32)from : plane_at "
        "PLANE_ARGS);\n}"
    )


def _bits() -> str:
    return (
        "FN u32 plane_bits(bool b PLANE_PARAMS) {\n"
        "  u32 v = b ? 1u << plane_at : 0u;\n"
        "  for (u32 step = 1; step < PLANE; step <<= 1) {\n"
        "    const u32 peer = plane_at ^ step;\n"
        "    const u32 w = plane_read_u32(v, peer < plane_count ? peer : plane_at PLANE_ARGS);\n"
        "    if (peer < plane_count) v |= w;\n"
        "  }\n"
        "  return plane_count == PLANE ? v : plane_read_u32(v, 0 PLANE_ARGS);\n}"
    )
