"""The math table of the C family, where a language's own functions do not meet the rules.

`HELPERS` maps a name to the text of its function for a float type; they use only the typedefs and
macros of the preludes. Everything else is a function of the language.
"""

from __future__ import annotations

from burn_std.dtypes import DType

# Division that floors, as Python and PyTorch have it; `FMOD` and friends come from the prelude.
HELPERS: dict[str, str] = {
    "mod": """FN T mod_T(T a, T b) {
  const T r = F(fmod)(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}""",
    "floordiv": """FN T floordiv_T(T a, T b) {
  if (b == 0) return a / b;
  const T r = F(fmod)(a, b);
  T q = (a - r) / b;
  if (r != 0 && (r < 0) != (b < 0)) q -= 1;
  if (q == 0) return F(copysign)((T)0, a / b);
  T down = F(floor)(q);
  if (q - down > (T)0.5) down += 1;
  return down;
}""",
    # The languages' fmin and fmax drop NaN.
    "min": "FN T min_T(T a, T b) { return (a != a || a < b) ? a : b; }",
    "max": "FN T max_T(T a, T b) { return (a != a || a > b) ? a : b; }",
}

# Names that differ from ours.
SPELLED = {"abs": "fabs", "round": "rint", "rem": "fmod"}


def helper(name: str, dtype: DType, suffix: str) -> str:
    """Return the text of a helper for a float type.

    Args:
        name: key of `HELPERS`.
        dtype: float32 or float64.
        suffix: what the language appends to functions of this type, `f` or nothing.
    """
    text = HELPERS[name]
    for plain in ("fmod", "copysign", "floor"):
        text = text.replace(f"F({plain})", plain + suffix)
    t = dtype.short
    return text.replace("_T(", f"_{t}(").replace("(T)", f"({t})").replace("T ", f"{t} ")
