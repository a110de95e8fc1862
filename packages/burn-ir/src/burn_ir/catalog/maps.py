"""Elementwise operations. Inputs marked `~` promote together and take Python scalars.

The scalar expressions are in the language of `burn_ir.scalar`.
"""

from burn_ir.entry import op
from burn_ir.rules import basic as r

# A table reads better with one entry on as few lines as it needs.
# fmt: off

# name, expression, doc, autocast, derived or not; integers are lifted to the default float.
_FLOAT_UNARY = (
    ("exp", "exp(x)", "e to the power x", "f32", False),
    ("expm1", "expm1(x)", "exp(x) - 1, exact near 0", "f32", False),
    ("log", "log(x)", "natural logarithm", "f32", False),
    ("log1p", "log1p(x)", "log(1 + x), exact near 0", "f32", False),
    ("log2", "log2(x)", "base-2 logarithm", "f32", True),
    ("log10", "log10(x)", "base-10 logarithm", "f32", True),
    ("sqrt", "sqrt(x)", "square root", "follow", False),
    ("rsqrt", "1 / sqrt(x)", "reciprocal square root", "f32", True),
    ("reciprocal", "1 / x", "1 / x", "f32", True),
    ("sin", "sin(x)", "sine of x in radians", "follow", False),
    ("cos", "cos(x)", "cosine of x in radians", "follow", False),
    ("tan", "tan(x)", "tangent of x in radians", "f32", True),
    ("sinh", "sinh(x)", "hyperbolic sine", "f32", True),
    ("cosh", "cosh(x)", "hyperbolic cosine", "f32", True),
    ("tanh", "tanh(x)", "hyperbolic tangent", "follow", False),
    ("asin", "asin(x)", "inverse sine, in radians", "f32", True),
    ("acos", "acos(x)", "inverse cosine, in radians", "f32", True),
    ("atan", "atan(x)", "inverse tangent, in radians", "follow", True),
    ("asinh", "asinh(x)", "inverse hyperbolic sine", "follow", True),
    ("acosh", "acosh(x)", "inverse hyperbolic cosine", "follow", True),
    ("atanh", "atanh(x)", "inverse hyperbolic tangent", "follow", True),
    ("erf", "erf(x)", "error function", "follow", False),
    ("sigmoid", "1 / (1 + exp(-x))", "1 / (1 + exp(-x))", "follow", True),
    ("softsign", "x / (1 + abs(x))", "x / (1 + |x|)", "follow", True),
    ("tanhshrink", "x - tanh(x)", "x - tanh(x)", "follow", True),
)
for _name, _expr, _doc, _cast, _derived in _FLOAT_UNARY:
    op(_name, "x", "", r.unary(_name, "float"), "map", _doc, lift=True, accepts="float",
       expr=_expr, autocast=_cast, derived="maps" if _derived else None)

# Activations of floats (integers are refused, as in PyTorch).
_ACTIVATIONS = (
    ("selu", "", "1.0507009873554805 * where(x <= 0, 1.6732632423543772 * expm1(minimum(x, 0)), x)",
     "scaled ELU with the fixed constants"),
    ("silu", "", "x / (1 + exp(-x))", "x * sigmoid(x)"),
    ("mish", "", "x * tanh(maximum(x, 0) + log1p(exp(-abs(x))))", "x * tanh(log(1 + exp(x)))"),
    ("logsigmoid", "", "minimum(x, 0) - log1p(exp(-abs(x)))", "log(sigmoid(x)), stable"),
    ("hardsigmoid", "", "minimum(maximum(x + 3, 0), 6) / 6", "clamp(x + 3, 0, 6) / 6"),
    ("hardswish", "", "x * minimum(maximum(x + 3, 0), 6) / 6", "x * hardsigmoid(x)"),
    ("elu", "alpha@", "where(x <= 0, alpha * expm1(minimum(x, 0)), x)",
     "x if x > 0 else alpha (exp(x) - 1)"),
    ("celu", "alpha@", "where(x <= 0, alpha * expm1(minimum(x, 0) / alpha), x)",
     "x if x > 0 else alpha (exp(x / alpha) - 1)"),
    ("leaky_relu", "slope@", "where(x > 0, x, x * slope)", "x if x > 0 else slope x"),
    ("softplus", "beta@ threshold@",
     "where(x * beta > threshold, x,"
     " (maximum(x * beta, 0) + log1p(exp(-abs(x * beta)))) / beta)",
     "log(1 + exp(beta x)) / beta, x where beta x > threshold"),
    ("hardshrink", "lambd@", "where(abs(x) <= lambd, 0, x)", "0 where |x| <= lambd, else x"),
    ("softshrink", "lambd@", "x - minimum(maximum(x, -lambd), lambd)",
     "x moved towards 0 by lambd; NaN stays"),
)
for _name, _attrs, _expr, _doc in _ACTIVATIONS:
    op(_name, "x", _attrs, r.unary(_name, "float"), "map", _doc, accepts="float", expr=_expr,
       derived="maps")
op("gelu", "x", "approximate", r.gelu, "map",
   "x Phi(x); approximate is none (erf) or tanh", accepts="float", derived="maps",
   expr="0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * (x * (x * x)))))"
        " if approximate == 'tanh' else 0.5 * x * (1 + erf(x * 0.7071067811865476))")
op("relu", "x", "", r.unary("relu", "numeric"), "map", "max(x, 0); -0.0 stays", accepts="numeric",
   expr="where(x < 0, 0, x)", edges="nan_propagates", derived="maps")
op("relu6", "x", "", r.unary("relu6", "numeric"), "map", "clamp(x, 0, 6); -0.0 stays",
   accepts="numeric", expr="where(x < 0, 0, where(x >= 6, 6, x))", edges="nan_propagates",
   derived="maps")
op("hardtanh", "x", "low@ high@", r.unary("hardtanh", "numeric"), "map",
   "clamp(x, low, high) with zero gradient at the bounds", accepts="numeric",
   expr="where(x <= low, low, where(x >= high, high, x))", edges="nan_propagates", derived="maps")
op("threshold", "x", "threshold@ value@", r.unary("threshold", "numeric"), "map",
   "value where x <= threshold, else x", accepts="numeric",
   expr="where(x <= threshold, value, x)", edges="nan_propagates", derived="maps")
op("prelu", "x^ weight^", "", r.broadcast("prelu", "float"), "map",
   "x if x > 0 else weight x; weight already broadcasts", accepts="float",
   expr="where(x > 0, x, weight * x)", derived="maps")

# Same dtype in and out.
op("neg", "x", "", r.unary("neg", "numeric"), "map", "-x", accepts="numeric", expr="-x",
   edges="int_wraps")
op("abs", "x", "", r.unary("abs", "numeric"), "map", "|x|; 0 has gradient 0", accepts="numeric",
   expr="abs(x)", edges="int_wraps")
op("sign", "x", "", r.unary("sign", "any"), "map", "-1, 0 or 1; sign(NaN) is 0",
   expr="where(x > 0, 1, where(x < 0, -1, 0))", edges="nan_false", derived="maps")
op("square", "x", "", r.unary("square", "numeric"), "map", "x * x", accepts="numeric", expr="x * x",
   edges="int_wraps", derived="maps")
op("floor", "x", "", r.unary("floor", "numeric"), "map", "largest integer <= x",
   accepts="numeric", expr="floor(x) if floating else x")
op("ceil", "x", "", r.unary("ceil", "numeric"), "map", "smallest integer >= x",
   accepts="numeric", expr="ceil(x) if floating else x", derived="maps")
op("trunc", "x", "", r.unary("trunc", "numeric"), "map", "x without its fraction",
   accepts="numeric", expr="trunc(x) if floating else x", derived="maps")
op("round", "x", "decimals", r.unary("round", "numeric"), "map",
   "nearest with halves to even, at a decimal place", accepts="numeric",
   expr="x if not floating else round(x) if decimals == 0 else"
        " round(x * 10 ** decimals) / 10 ** decimals if decimals > 0 else"
        " round(x / 10 ** -decimals) * 10 ** -decimals")
op("cast", "x", "dtype", r.cast, "map", "x in another dtype", expr="cast(x, dtype)",
   edges="saturating_cast", accepts="any")
op("nan_to_num", "x", "nan@ posinf@ neginf@", r.unary("nan_to_num", "any"), "map",
   "NaN to nan, inf to posinf, -inf to neginf (None: 0 and the dtype's largest)", derived="maps",
   expr="x if not floating else where(x != x, 0 if nan is None else nan,"
        " where(x == inf, largest if posinf is None else posinf,"
        " where(x == -inf, -largest if neginf is None else neginf, x)))")
op("bitwise_not", "x", "", r.unary("bitwise_not", "bits"), "map", "bits flipped; not of bools",
   accepts="bits", expr="~x", differentiable=False)

# To bool.
for _name, _doc, _expr in (
    ("isnan", "x is NaN", "x != x"),
    ("isinf", "x is inf or -inf", "abs(x) == inf if floating else x != x"),
    ("isfinite", "x is neither NaN nor infinite", "abs(x) < inf if floating else x == x"),
    ("logical_not", "x is zero", "x == 0"),
):
    op(_name, "x", "", r.predicate(_name), "map", _doc, expr=_expr, differentiable=False,
       derived="maps")
for _name, _sign, _derived in (("eq", "==", False), ("ne", "!=", True), ("lt", "<", False),
                               ("le", "<=", False), ("gt", ">", True), ("ge", ">=", True)):
    op(_name, "x~ y~", "", r.predicate(_name), "map", f"x {_sign} y", expr=f"x {_sign} y",
       differentiable=False, edges="nan_false", derived="maps" if _derived else None)
for _name, _word, _sign in (("logical_and", "and", "&"), ("logical_or", "or", "|"),
                            ("logical_xor", "xor", "^")):
    op(_name, "x~ y~", "", r.predicate(_name), "map", f"truth of x {_word} truth of y",
       expr=f"(x != 0) {_sign} (y != 0)", differentiable=False, derived="maps")

# Two tensors.
op("add", "x~ y~", "", r.broadcast("add", "any"), "map", "x + y; or of bools",
   expr="x + y", edges="int_wraps")
op("sub", "x~ y~", "", r.subtract, "map", "x - y", expr="x - y", edges="int_wraps")
op("mul", "x~ y~", "", r.broadcast("mul", "any"), "map", "x * y; and of bools",
   expr="x * y", edges="int_wraps")
op("div", "x~ y~", "", r.broadcast("div", "float"), "map", "x / y, true division", expr="x / y",
   lift=True, accepts="float")
op("div_trunc", "x~ y~", "", r.broadcast("div_trunc", "numeric"), "map",
   "x / y rounded towards 0", accepts="numeric", edges="zero_division_is_zero int_wraps",
   expr="trunc(x / y) if floating else x // y + where((x % y != 0) & (x // y < 0), 1, 0)",
   derived="maps")
op("floor_divide", "x~ y~", "", r.broadcast("floor_divide", "numeric"), "map",
   "x / y rounded down: the quotient that goes with remainder", expr="x // y", accepts="numeric",
   edges="zero_division_is_zero int_wraps")
op("remainder", "x~ y~", "", r.broadcast("remainder", "numeric"), "map",
   "x modulo y with the divisor's sign", expr="x % y", accepts="numeric",
   edges="zero_division_is_zero")
op("fmod", "x~ y~", "", r.broadcast("fmod", "numeric"), "map",
   "x modulo y with the dividend's sign", expr="fmod(x, y)", accepts="numeric",
   edges="zero_division_is_zero", derived="maps")
op("pow", "x~ y~", "", r.broadcast("pow", "numeric"), "map", "x to the power y", expr="x ** y",
   accepts="numeric", autocast="f32", edges="int_wraps")
for _name in ("maximum", "minimum"):
    op(_name, "x~ y~", "", r.broadcast(_name, "any"), "map", f"the {_name[:3]} of x and y",
       expr=f"{_name}(x, y)", edges="nan_propagates ties_share")
op("atan2", "y~ x~", "", r.broadcast("atan2", "float"), "map", "angle of (x, y), in radians",
   expr="atan2(y, x)", lift=True, accepts="float")
op("hypot", "x~ y~", "", r.broadcast("hypot", "float"), "map", "sqrt(x^2 + y^2)",
   expr="hypot(x, y)", accepts="float", derived="maps")
op("logaddexp", "x~ y~", "", r.broadcast("logaddexp", "float"), "map", "log(exp(x) + exp(y))",
   expr="maximum(x, y) + log1p(exp(-abs(where(x == y, 0, x - y))))", lift=True, accepts="float",
   derived="maps")
op("mul_no_nan", "g~ factor~", "", r.broadcast("mul_no_nan", "float"), "map",
   "g * factor, and 0 where g is exactly 0", expr="where(g == 0, 0, g * factor)", accepts="float",
   derived="maps")
op("lerp", "x~ end~ weight~", "", r.broadcast("lerp", "float"), "map", "x + weight (end - x)",
   expr="where(abs(weight) < 0.5, x + weight * (end - x), end - (end - x) * (1 - weight))",
   accepts="float", derived="maps")
for _name, _sign in (("bitwise_and", "&"), ("bitwise_or", "|"), ("bitwise_xor", "^")):
    op(_name, "x~ y~", "", r.broadcast(_name, "bits"), "map", f"{_name[8:]} of the bits",
       expr=f"x {_sign} y", accepts="bits", differentiable=False)
for _name, _sign in (("bitwise_left_shift", "<<"), ("bitwise_right_shift", ">>")):
    op(_name, "x~ y~", "", r.broadcast(_name, "int"), "map", f"x {_sign} y",
       expr=f"x {_sign} y", accepts="int", differentiable=False, edges="shift_range")

# Three tensors.
op("where", "cond x~ y~", "", r.where, "map", "x where cond, else y", expr="where(cond, x, y)")
op("clamp", "x~ min?~ max?~", "", r.broadcast("clamp", "any"), "map",
   "min(max(x, min), max); gradient where min <= x <= max", derived="maps",
   expr="(x if min is None else maximum(x, min)) if max is None else"
        " minimum(x if min is None else maximum(x, min), max)",
   edges="nan_propagates")
