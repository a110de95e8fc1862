"""Elementwise operations. Inputs marked `~` promote together and take Python scalars."""

from burn_ir.entry import op
from burn_ir.rules import basic as r

# name, expression, doc, autocast, edges; integers are lifted to the default float.
_FLOAT_UNARY = (
    ("exp", "exp(x)", "e to the power x", "f32", ""),
    ("expm1", "expm1(x)", "exp(x) - 1, exact near 0", "f32", ""),
    ("log", "log(x)", "natural logarithm", "f32", ""),
    ("log1p", "log1p(x)", "log(1 + x), exact near 0", "f32", ""),
    ("log2", "log2(x)", "base-2 logarithm", "f32", ""),
    ("log10", "log10(x)", "base-10 logarithm", "f32", ""),
    ("sqrt", "sqrt(x)", "square root", "follow", ""),
    ("rsqrt", "1 / sqrt(x)", "reciprocal square root", "f32", ""),
    ("reciprocal", "1 / x", "1 / x", "f32", ""),
    ("sin", "sin(x)", "sine of x in radians", "follow", ""),
    ("cos", "cos(x)", "cosine of x in radians", "follow", ""),
    ("tan", "tan(x)", "tangent of x in radians", "f32", ""),
    ("sinh", "sinh(x)", "hyperbolic sine", "f32", ""),
    ("cosh", "cosh(x)", "hyperbolic cosine", "f32", ""),
    ("tanh", "tanh(x)", "hyperbolic tangent", "follow", ""),
    ("asin", "asin(x)", "inverse sine, in radians", "f32", ""),
    ("acos", "acos(x)", "inverse cosine, in radians", "f32", ""),
    ("atan", "atan(x)", "inverse tangent, in radians", "follow", ""),
    ("asinh", "asinh(x)", "inverse hyperbolic sine", "follow", ""),
    ("acosh", "acosh(x)", "inverse hyperbolic cosine", "follow", ""),
    ("atanh", "atanh(x)", "inverse hyperbolic tangent", "follow", ""),
    ("erf", "erf(x)", "error function", "follow", ""),
    ("sigmoid", "sigmoid(x)", "1 / (1 + exp(-x))", "follow", ""),
    ("softsign", "x / (1 + abs(x))", "x / (1 + |x|)", "follow", ""),
    ("tanhshrink", "x - tanh(x)", "x - tanh(x)", "follow", ""),
)
for _name, _expr, _doc, _cast, _edges in _FLOAT_UNARY:
    op(_name, "x", "", r.unary(_name, "float"), "map", _doc, lift=True, accepts="float",
       expr=_expr, autocast=_cast, edges=_edges)  # fmt: skip

# Activations of floats (integers are refused, as in PyTorch).
_ACTIVATIONS = (
    ("selu", "", "selu(x)", "scaled ELU with the fixed constants"),
    ("silu", "", "x * sigmoid(x)", "x * sigmoid(x)"),
    ("mish", "", "x * tanh(softplus(x))", "x * tanh(log(1 + exp(x)))"),
    ("logsigmoid", "", "-softplus(-x)", "log(sigmoid(x)), stable"),
    ("hardsigmoid", "", "clamp(x + 3, 0, 6) / 6", "clamp(x + 3, 0, 6) / 6"),
    ("hardswish", "", "x * clamp(x + 3, 0, 6) / 6", "x * hardsigmoid(x)"),
    ("elu", "alpha@", "where(x > 0, x, alpha * expm1(x))", "x if x > 0 else alpha (exp(x) - 1)"),
    ("celu", "alpha@", "where(x > 0, x, alpha * expm1(x / alpha))",
     "x if x > 0 else alpha (exp(x / alpha) - 1)"),
    ("leaky_relu", "slope@", "where(x > 0, x, slope * x)", "x if x > 0 else slope x"),
    ("softplus", "beta@ threshold@", "where(x * beta > threshold, x, log1p(exp(x * beta)) / beta)",
     "log(1 + exp(beta x)) / beta, x where beta x > threshold"),
    ("hardshrink", "lambd@", "where(abs(x) > lambd, x, 0)", "x where |x| > lambd, else 0"),
    ("softshrink", "lambd@", "where(x > lambd, x - lambd, where(x < -lambd, x + lambd, 0))",
     "x moved towards 0 by lambd"),
)  # fmt: skip
for _name, _attrs, _expr, _doc in _ACTIVATIONS:
    op(_name, "x", _attrs, r.unary(_name, "float"), "map", _doc, accepts="float", expr=_expr)
op("gelu", "x", "approximate", r.unary("gelu", "float"), "map",
   "x Phi(x); approximate is none (erf) or tanh", accepts="float", expr="gelu(x)")
op("relu", "x", "", r.unary("relu", "numeric"), "map", "max(x, 0)", accepts="numeric",
   expr="maximum(x, 0)", edges="nan_propagates")
op("relu6", "x", "", r.unary("relu6", "numeric"), "map", "clamp(x, 0, 6)", accepts="numeric",
   expr="clamp(x, 0, 6)", edges="nan_propagates")
op("hardtanh", "x", "low@ high@", r.unary("hardtanh", "numeric"), "map",
   "clamp(x, low, high) with zero gradient at the bounds", accepts="numeric",
   expr="clamp(x, low, high)", edges="nan_propagates")
op("threshold", "x", "threshold@ value@", r.unary("threshold", "numeric"), "map",
   "x where x > threshold, else value", accepts="numeric",
   expr="where(x > threshold, x, value)")  # fmt: skip
op("prelu", "x^ weight^", "", r.broadcast("prelu", "float"), "map",
   "x if x > 0 else weight x; weight already broadcasts", accepts="float",
   expr="where(x > 0, x, weight * x)")  # fmt: skip

# Same dtype in and out.
op("neg", "x", "", r.unary("neg", "numeric"), "map", "-x", accepts="numeric", expr="-x",
   edges="int_wraps")
op("abs", "x", "", r.unary("abs", "numeric"), "map", "|x|; 0 has gradient 0", accepts="numeric",
   expr="abs(x)", edges="int_wraps")
op("sign", "x", "", r.unary("sign", "any"), "map", "-1, 0 or 1; sign(NaN) is 0",
   expr="sign(x)", edges="nan_false")
op("square", "x", "", r.unary("square", "numeric"), "map", "x * x", accepts="numeric", expr="x * x",
   edges="int_wraps")
for _name, _doc in (("floor", "largest integer <= x"), ("ceil", "smallest integer >= x"),
                    ("trunc", "x without its fraction")):  # fmt: skip
    op(_name, "x", "", r.unary(_name, "numeric"), "map", _doc, accepts="numeric", expr=f"{_name}(x)")
op("round", "x", "decimals", r.unary("round", "numeric"), "map",
   "nearest with halves to even, at a decimal place", accepts="numeric", expr="round(x)")
op("cast", "x", "dtype", r.cast, "map", "x in another dtype", expr="cast(x)",
   edges="saturating_cast", accepts="any")
op("nan_to_num", "x", "nan@ posinf@ neginf@", r.unary("nan_to_num", "any"), "map",
   "NaN to nan, inf to posinf, -inf to neginf (None: the dtype's largest)", expr="nan_to_num(x)")
op("bitwise_not", "x", "", r.unary("bitwise_not", "bits"), "map", "bits flipped; not of bools",
   accepts="bits", expr="~x", differentiable=False)  # fmt: skip

# To bool.
for _name, _doc in (("isnan", "x is NaN"), ("isinf", "x is inf or -inf"),
                    ("isfinite", "x is neither NaN nor infinite"),
                    ("logical_not", "x is zero")):  # fmt: skip
    op(_name, "x", "", r.predicate(_name), "map", _doc, expr=f"{_name}(x)", differentiable=False)
for _name, _sign in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    op(_name, "x~ y~", "", r.predicate(_name), "map", f"x {_sign} y", expr=f"x {_sign} y",
       differentiable=False, edges="nan_false")  # fmt: skip
for _name, _word in (("logical_and", "and"), ("logical_or", "or"), ("logical_xor", "xor")):
    op(_name, "x~ y~", "", r.predicate(_name), "map", f"truth of x {_word} truth of y",
       expr=f"{_name}(x, y)", differentiable=False)  # fmt: skip

# Two tensors.
op("add", "x~ y~", "", r.broadcast("add", "any"), "map", "x + y; or of bools", expr="x + y",
   edges="int_wraps")
op("sub", "x~ y~", "", r.subtract, "map", "x - y", expr="x - y", edges="int_wraps")
op("mul", "x~ y~", "", r.broadcast("mul", "any"), "map", "x * y; and of bools", expr="x * y",
   edges="int_wraps")
op("div", "x~ y~", "", r.broadcast("div", "float"), "map", "x / y, true division", expr="x / y",
   lift=True, accepts="float")
op("div_trunc", "x~ y~", "", r.broadcast("div_trunc", "numeric"), "map",
   "x / y rounded towards 0", expr="trunc(x / y)", accepts="numeric",
   edges="zero_division_is_zero int_wraps")  # fmt: skip
op("floor_divide", "x~ y~", "", r.broadcast("floor_divide", "numeric"), "map",
   "x / y rounded down", expr="floor(x / y)", accepts="numeric",
   edges="zero_division_is_zero int_wraps")  # fmt: skip
op("remainder", "x~ y~", "", r.broadcast("remainder", "numeric"), "map",
   "x modulo y with the divisor's sign", expr="remainder(x, y)", accepts="numeric",
   edges="zero_division_is_zero")  # fmt: skip
op("fmod", "x~ y~", "", r.broadcast("fmod", "numeric"), "map",
   "x modulo y with the dividend's sign", expr="fmod(x, y)", accepts="numeric",
   edges="zero_division_is_zero")  # fmt: skip
op("pow", "x~ y~", "", r.broadcast("pow", "numeric"), "map", "x to the power y", expr="pow(x, y)",
   accepts="numeric", autocast="f32", edges="int_wraps")  # fmt: skip
for _name in ("maximum", "minimum"):
    op(_name, "x~ y~", "", r.broadcast(_name, "any"), "map", f"the {_name[:3]} of x and y",
       expr=f"{_name}(x, y)", edges="nan_propagates ties_share")  # fmt: skip
op("atan2", "y~ x~", "", r.broadcast("atan2", "float"), "map", "angle of (x, y), in radians",
   expr="atan2(y, x)", lift=True, accepts="float")
op("hypot", "x~ y~", "", r.broadcast("hypot", "float"), "map", "sqrt(x^2 + y^2)",
   expr="hypot(x, y)", accepts="float")
op("logaddexp", "x~ y~", "", r.broadcast("logaddexp", "float"), "map", "log(exp(x) + exp(y))",
   expr="logaddexp(x, y)", lift=True, accepts="float")
op("mul_no_nan", "g~ factor~", "", r.broadcast("mul_no_nan", "float"), "map",
   "g * factor, and 0 where g is exactly 0", expr="where(g == 0, 0, g * factor)", accepts="float")
op("lerp", "x~ end~ weight~", "", r.broadcast("lerp", "float"), "map", "x + weight (end - x)",
   expr="lerp(x, end, weight)", accepts="float")
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    op(_name, "x~ y~", "", r.broadcast(_name, "bits"), "map", f"{_name[8:]} of the bits",
       expr=f"{_name}(x, y)", accepts="bits", differentiable=False)  # fmt: skip
for _name in ("bitwise_left_shift", "bitwise_right_shift"):
    op(_name, "x~ y~", "", r.broadcast(_name, "int"), "map", f"x {'<<' if 'left' in _name else '>>'} y",
       expr=f"{_name}(x, y)", accepts="int", differentiable=False, edges="shift_range")  # fmt: skip

# Three tensors.
op("where", "cond x~ y~", "", r.where, "map", "x where cond, else y", expr="where(cond, x, y)")
op("clamp", "x~ min?~ max?~", "", r.broadcast("clamp", "any"), "map",
   "min(max(x, min), max); gradient where min <= x <= max", expr="clamp(x, min, max)",
   edges="nan_propagates")  # fmt: skip
