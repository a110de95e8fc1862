"""The operations of the IR: one table with what each takes and gives.

A *pure* operation depends on its operands alone, may be merged with an equal one, computed
earlier, or dropped. Everything else (memory, control, synchronisation) keeps its place.
"""

from __future__ import annotations

from typing import Final, NamedTuple

FLOAT: Final = frozenset({"float"})
INT: Final = frozenset({"int", "uint"})
NUMBER: Final = FLOAT | INT
BITS: Final = INT | {"bool"}
ANY: Final = NUMBER | {"bool"}


class Rule(NamedTuple):
    """What a pure operation takes and gives.

    Attributes:
        arity: number of operands, all of one type.
        kinds: kinds of dtype it is defined for.
        result: `same` as the operands, or `truth` (bool lanes).
    """

    arity: int
    kinds: frozenset[str]
    result: str = "same"


MATH: Final = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
    "floor", "ceil", "trunc", "round",
)  # fmt: skip

PURE: Final[dict[str, Rule]] = {
    **{name: Rule(1, FLOAT) for name in MATH},
    "neg": Rule(1, NUMBER),
    "abs": Rule(1, NUMBER),
    "sign": Rule(1, NUMBER),
    "not": Rule(1, BITS),
    "popcount": Rule(1, INT),
    "leading_zeros": Rule(1, INT),
    "isnan": Rule(1, FLOAT, "truth"),
    "isinf": Rule(1, FLOAT, "truth"),
    "isfinite": Rule(1, FLOAT, "truth"),
    "add": Rule(2, NUMBER),
    "sub": Rule(2, NUMBER),
    "mul": Rule(2, NUMBER),
    "mulhi": Rule(2, frozenset({"uint"})),
    "div": Rule(2, FLOAT),
    "floordiv": Rule(2, NUMBER),
    "mod": Rule(2, NUMBER),
    "truncdiv": Rule(2, INT),
    "rem": Rule(2, NUMBER),
    "min": Rule(2, NUMBER),
    "max": Rule(2, NUMBER),
    "pow": Rule(2, FLOAT),
    "atan2": Rule(2, FLOAT),
    "hypot": Rule(2, FLOAT),
    "copysign": Rule(2, FLOAT),
    "and": Rule(2, BITS),
    "or": Rule(2, BITS),
    "xor": Rule(2, BITS),
    "shl": Rule(2, INT),
    "shr": Rule(2, INT),
    "eq": Rule(2, ANY, "truth"),
    "ne": Rule(2, ANY, "truth"),
    "lt": Rule(2, NUMBER, "truth"),
    "le": Rule(2, NUMBER, "truth"),
    "gt": Rule(2, NUMBER, "truth"),
    "ge": Rule(2, NUMBER, "truth"),
    "fma": Rule(3, FLOAT),
    # What legalisation leaves for the emitters. `raw_div` and `raw_rem` may trap on zero, and
    # `raw_shl`, `raw_shr` take a shift below the width: only legalised code holds them.
    "raw_div": Rule(2, INT),
    "raw_rem": Rule(2, INT),
    "raw_shl": Rule(2, INT),
    "raw_shr": Rule(2, INT),
}

# Pure as well, but with type rules of their own, which the builder spells out.
SHAPED: Final = frozenset(
    {"const", "cast", "bitcast", "raw_cast", "select", "splat", "vector", "extract", "insert"}
)
# Read-only facts of a launch: as good as pure.
FACTS: Final = frozenset({"special", "length", "shape", "stride", "param"})

PLANE: Final = (
    "sum", "prod", "min", "max", "all", "any", "inclusive_sum", "exclusive_sum",
    "inclusive_prod", "exclusive_prod", "shuffle", "shuffle_xor", "shuffle_up", "shuffle_down",
    "broadcast", "ballot",
)  # fmt: skip
ATOMICS: Final = ("add", "sub", "min", "max", "and", "or", "xor", "exchange")

AXES: Final = ("x", "y", "z")
SPECIALS: Final = frozenset(
    {"absolute_pos", "unit_pos", "cube_pos", "cube_count", "plane_pos", "unit_pos_plane"}
    | {
        f"{name}_{axis}"
        for name in ("absolute_pos", "unit_pos", "cube_pos", "cube_count")
        for axis in AXES
    }
)
# Specials with one value for all units of a cube.
CUBE_FACTS: Final = frozenset(
    {"cube_pos", "cube_count"} | {f"{n}_{a}" for n in ("cube_pos", "cube_count") for a in AXES}
)

JUMPS: Final = frozenset({"break", "continue", "leave"})


def is_pure(name: str) -> bool:
    """Return whether an operation may be merged, moved or dropped.

    Example:
        >>> is_pure("add"), is_pure("store")
        (True, False)
    """
    return name in PURE or name in SHAPED or name in FACTS
