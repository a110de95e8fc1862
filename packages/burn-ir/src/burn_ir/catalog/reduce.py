"""Reductions and scans. `dims` is None (all) or a tuple of non-negative ints."""

from burn_ir.entry import op
from burn_ir.rules import basic as r, shape as s

# A table reads better with one entry on as few lines as it needs.
# fmt: off

op("sum", "x", "dims keepdim dtype", r.reduction("sum", "any", "acc"), "reduce",
   "sum; integers and bools give int64", edges="empty_zero int_wraps", autocast="f32")
op("prod", "x", "dims keepdim dtype", r.reduction("prod", "any", "acc"), "reduce",
   "product; integers and bools give int64", edges="empty_one int_wraps", autocast="f32")
op("mean", "x", "dims keepdim dtype", r.reduction("mean", "float"), "reduce",
   "sum / count; integers are refused", accepts="float", edges="empty_nan", derived="reduce")
for _name, _derived in (("amax", None), ("amin", "reduce")):
    op(_name, "x", "dims keepdim", r.reduction(_name, "any", nonempty=True), "reduce",
       f"{_name[1:]}imum; equal extremes share the gradient", derived=_derived,
       edges="nan_propagates ties_share empty_raises")
for _name in ("any", "all"):
    op(_name, "x", "dims keepdim", r.reduction(_name, "any", "bool"), "reduce",
       f"{_name} element is not zero", differentiable=False,
       edges="empty_false" if _name == "any" else "empty_true", derived="reduce")
for _name, _derived in (("argmax", None), ("argmin", "reduce")):
    op(_name, "x", "dim keepdim", r.arg_reduction(_name), "reduce",
       f"index of the {_name[3:]}imum, lowest on ties", differentiable=False, derived=_derived,
       accepts="numeric", edges="nan_first_wins ties_lowest empty_raises")
for _name in ("max_dim", "min_dim"):
    op(_name, "x", "dim keepdim", r.dim_pair(_name, "any"), "reduce",
       f"{_name[:3]}imum along one dim and its lowest index", outputs="values indices",
       derived="reduce",
       edges="nan_propagates ties_lowest empty_raises")
op("median_dim", "x", "dim keepdim", r.dim_pair("median_dim", "numeric"), "reduce",
   "lower median along one dim and an index of it", accepts="numeric",
   outputs="values indices", edges="nan_propagates empty_raises", derived="reduce")
op("var", "x", "dims keepdim correction", r.reduction("var", "float"), "reduce",
   "sum (x - mean)^2 / max(0, n - correction)", accepts="float", edges="empty_nan",
   derived="reduce")
op("logsumexp", "x", "dims keepdim", r.reduction("logsumexp", "float"), "reduce",
   "log(sum(exp(x))), stable", accepts="float", lift=True, autocast="f32", derived="reduce")
op("vector_norm", "x", "dims keepdim ord", r.vector_norm, "reduce",
   "(sum |x|^ord)^(1/ord); ord inf, -inf and 0 as numpy", accepts="float",
   autocast="f32", derived="reduce")
op("count_nonzero", "x", "dims keepdim", r.reduction("count_nonzero", "any", "int64"), "reduce",
   "number of elements that are not zero", differentiable=False, derived="reduce")
for _name in ("cumsum", "cumprod"):
    op(_name, "x", "dim dtype", r.scan(_name), "reduce", f"cumulative {_name[3:]} along one dim",
       edges="int_wraps", autocast="f32")
for _name in ("cummax", "cummin"):
    op(_name, "x", "dim", r.scan_pair(_name), "reduce",
       f"cumulative {_name[3:]} along one dim, with the last index on ties",
       outputs="values indices", edges="nan_propagates ties_last", derived="reduce")
op("sort", "x", "dim descending", s.sort, "opaque", "stable sort along one dim, NaN largest",
   outputs="values indices", edges="nan_first_wins ties_lowest stable", grade="optional")
op("topk", "x", "dim largest sorted k#", s.topk, "opaque", "the k largest or smallest, in order",
   accepts="numeric", outputs="values indices", edges="nan_first_wins ties_lowest stable",
   derived="reduce")
