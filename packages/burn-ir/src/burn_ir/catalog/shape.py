"""Views, joins, padding and creation."""

from burn_ir.entry import op
from burn_ir.rules import basic as r, shape as s

# A table reads better with one entry on as few lines as it needs.
# fmt: off

op("reshape", "x", "shape#", s.reshape, "view", "same elements in row-major order, another shape")
op("permute", "x", "dims", s.permute, "view", "dims in another order")
op("expand", "x", "shape#", s.expand, "view", "dims of size 1 repeated without a copy")
op("squeeze", "x", "dims", s.squeeze, "view", "named dims of size 1 removed", derived="shape")
op("unsqueeze", "x", "dims", s.unsqueeze, "view", "dims of size 1 inserted, positions ascending",
   derived="shape")
op("slice", "x", "steps starts# stops#", s.slice_, "view", "a strided window, Python's bounds")
op("select", "x", "dim index#", s.select, "view", "one slice along a dim, which goes",
   derived="shape")
op("flip", "x", "dims", s.flip, "view", "reversed along dims", derived="shape")
op("diagonal", "x", "dim1 dim2 offset#", s.diagonal, "view", "a diagonal as the last dim",
   derived="shape")
op("unfold_dim", "x", "dim size step", s.unfold_dim, "view", "sliding windows along a dim",
   derived="shape")
op("slice_assign", "x^ value^", "steps starts# stops#", s.slice_assign, "index",
   "x with a strided window replaced by value (value takes x's dtype)")
op("slice_backward", "g", "steps starts# stops# shape#",
   s.slice_backward, "index",
   "zeros of `shape` with g in the window", derived="shape")
op("diagonal_backward", "g", "dim1 dim2 shape# offset#", s.diagonal_backward, "index",
   "zeros of `shape` with g on the diagonal", derived="shape")
op("unfold_dim_backward", "g", "dim size step shape#", s.unfold_dim_backward, "index",
   "the adjoint of unfold_dim: windows add up", derived="shape")
op("cat", "xs*^", "dim", s.cat, "opaque", "tensors joined along a dim")
op("pad", "x", "mode pads# value@", s.pad, "opaque",
   "one (before, after) per dim; constant, reflect, replicate, circular; negative crops",
   derived="shape")
op("pad_backward", "g", "mode pads#", s.pad_backward, "opaque", "the adjoint of pad",
   derived="shape")
op("roll", "x", "dims shifts#", s.roll, "opaque", "rotated along dims", derived="shape")
op("repeat", "x", "repeats#", s.repeat, "opaque", "tiled per dim", derived="shape")
op("tril", "x", "diagonal#", s.triangle("tril"), "map", "zeros above a diagonal",
   expr="where(_column <= _row + diagonal, x, 0)", derived="shape")
op("triu", "x", "diagonal#", s.triangle("triu"), "map", "zeros below a diagonal",
   expr="where(_column >= _row + diagonal, x, 0)", derived="shape")
op("full", "", "dtype shape# value@", r.created("full"), "map", "one value everywhere",
   differentiable=False, expr="value")
op("arange", "", "dtype count# start@ step@", r.counted("arange"), "map", "start + i * step",
   differentiable=False, expr="start + _i * step")
op("contiguous", "x", "", r.unary("contiguous", "all"), "opaque", "a copy in row-major layout")
