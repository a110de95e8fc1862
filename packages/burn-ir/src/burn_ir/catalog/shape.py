"""Views, joins, padding and creation."""

from burn_ir.entry import op
from burn_ir.rules import basic as r, shape as s

op("reshape", "x", "shape#", s.reshape, "view", "same elements in row-major order, another shape")
op("permute", "x", "dims", s.permute, "view", "dims in another order")
op("expand", "x", "shape#", s.expand, "view", "dims of size 1 repeated without a copy")
op("squeeze", "x", "dims", s.squeeze, "view", "named dims of size 1 removed")
op("unsqueeze", "x", "dims", s.unsqueeze, "view", "dims of size 1 inserted, positions ascending")
op("slice", "x", "steps starts# stops#", s.slice_, "view", "a strided window, Python's bounds")
op("flip", "x", "dims", s.flip, "view", "reversed along dims")
op("diagonal", "x", "dim1 dim2 offset#", s.diagonal, "view", "a diagonal as the last dim")
op("unfold_dim", "x", "dim size step", s.unfold_dim, "view", "sliding windows along a dim")
op("slice_assign", "x^ value^", "steps starts# stops#", s.slice_assign, "index",
   "x with a strided window replaced by value (value takes x's dtype)")  # fmt: skip
op("slice_backward", "g", "steps starts# stops# shape#",
   lambda g, steps, starts, stops, shape: r.Spec(shape, g.dtype), "index",
   "zeros of `shape` with g in the window")  # fmt: skip
op("diagonal_backward", "g", "dim1 dim2 shape# offset#", s.diagonal_backward, "index",
   "zeros of `shape` with g on the diagonal")  # fmt: skip
op("unfold_dim_backward", "g", "dim size step shape#", s.unfold_dim_backward, "index",
   "the adjoint of unfold_dim: windows add up")  # fmt: skip
op("cat", "xs*^", "dim", s.cat, "opaque", "tensors joined along a dim")
op("pad", "x", "mode pads# value@", s.pad, "opaque",
   "one (before, after) per dim; constant, reflect, replicate, circular; negative crops")  # fmt: skip
op("pad_backward", "g", "mode pads#", s.pad_backward, "opaque", "the adjoint of pad")
op("roll", "x", "dims shifts#", s.roll, "opaque", "rotated along dims")
op("repeat", "x", "repeats#", s.repeat, "opaque", "tiled per dim")
op("tril", "x", "diagonal#", s.triangle, "map", "zeros above a diagonal")
op("triu", "x", "diagonal#", s.triangle, "map", "zeros below a diagonal")
op("full", "", "dtype shape# value@", r.created("full"), "map", "one value everywhere",
   differentiable=False)  # fmt: skip
op("arange", "", "dtype count# start@ step@", r.arange, "map", "start + i * step",
   differentiable=False)  # fmt: skip
op("contiguous", "x", "", r.unary("contiguous", "all"), "opaque", "a copy in row-major layout")
