"""Reductions and scans. `dims` is None (all) or a tuple of non-negative ints."""

from burn_ir.entry import op
from burn_ir.rules import basic as r, shape as s

op("sum", "x", "dims keepdim dtype", r.reduction("sum", "any", "acc"), "reduce",
   "sum; integers and bools give int64", edges="empty_zero int_wraps", autocast="f32")  # fmt: skip
op("prod", "x", "dims keepdim dtype", r.reduction("prod", "any", "acc"), "reduce",
   "product; integers and bools give int64", edges="empty_one int_wraps", autocast="f32")  # fmt: skip
op("mean", "x", "dims keepdim dtype", r.reduction("mean", "float"), "reduce",
   "sum / count; integers are refused", accepts="float", edges="empty_nan")  # fmt: skip
for _name in ("amax", "amin"):
    op(_name, "x", "dims keepdim", r.reduction(_name, "any", nonempty=True), "reduce",
       f"{_name[1:]}imum; equal extremes share the gradient",
       edges="nan_propagates ties_share empty_raises")  # fmt: skip
for _name in ("any", "all"):
    op(_name, "x", "dims keepdim", r.reduction(_name, "any", "bool"), "reduce",
       f"{_name} element is not zero", differentiable=False,
       edges="empty_false" if _name == "any" else "empty_true")  # fmt: skip
for _name in ("argmax", "argmin"):
    op(_name, "x", "dim keepdim", r.arg_reduction(_name), "reduce",
       f"index of the {_name[3:]}imum, lowest on ties", differentiable=False,
       accepts="numeric", edges="nan_first_wins ties_lowest empty_raises")  # fmt: skip
for _name in ("max_dim", "min_dim"):
    op(_name, "x", "dim keepdim", r.dim_pair(_name, "any"), "reduce",
       f"{_name[:3]}imum along one dim and its lowest index", outputs="values indices",
       edges="nan_propagates ties_lowest empty_raises")  # fmt: skip
op("median_dim", "x", "dim keepdim", r.dim_pair("median_dim", "numeric"), "reduce",
   "lower median along one dim and an index of it", accepts="numeric",
   outputs="values indices", edges="nan_propagates empty_raises")  # fmt: skip
op("var", "x", "dims keepdim correction", r.reduction("var", "float"), "reduce",
   "sum (x - mean)^2 / max(0, n - correction)", accepts="float", edges="empty_nan")  # fmt: skip
op("logsumexp", "x", "dims keepdim", r.reduction("logsumexp", "float"), "reduce",
   "log(sum(exp(x))), stable", accepts="float", lift=True, autocast="f32")  # fmt: skip
op("vector_norm", "x", "dims keepdim ord", r.reduction("vector_norm", "float"), "reduce",
   "(sum |x|^ord)^(1/ord); ord inf, -inf and 0 as numpy", accepts="float",
   autocast="f32")  # fmt: skip
op("count_nonzero", "x", "dims keepdim", r.reduction("count_nonzero", "any", "int64"), "reduce",
   "number of elements that are not zero", differentiable=False)  # fmt: skip
for _name in ("cumsum", "cumprod"):
    op(_name, "x", "dim dtype", r.scan(_name), "reduce", f"cumulative {_name[3:]} along one dim",
       edges="int_wraps", autocast="f32")  # fmt: skip
for _name in ("cummax", "cummin"):
    op(_name, "x", "dim", r.scan_pair(_name), "reduce",
       f"cumulative {_name[3:]} along one dim, with the last index on ties",
       outputs="values indices", edges="nan_propagates ties_last")  # fmt: skip
op("sort", "x", "dim descending", s.sort, "opaque", "stable sort along one dim, NaN largest",
   outputs="values indices", edges="nan_first_wins ties_lowest stable", grade="optional")  # fmt: skip
op("topk", "x", "dim largest sorted k#", s.topk, "opaque", "the k largest or smallest, in order",
   accepts="numeric", outputs="values indices", edges="nan_first_wins ties_lowest stable",
   grade="optional")  # fmt: skip
