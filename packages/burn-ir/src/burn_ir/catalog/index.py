"""Indexing, gathering, scattering, and operations whose result size depends on data."""

from burn_ir.entry import op
from burn_ir.rules import index as i

# A table reads better with one entry on as few lines as it needs.
# fmt: off

op("gather", "x index", "dim", i.gather, "index", "x at index along a dim", edges="index_checked")
op("scatter", "x^ index src^", "dim mode", i.scatter, "index",
   "x with src assigned, added, multiplied, or its extremes taken at index along a dim",
   edges="index_checked duplicates_count last_wins")
op("index_select", "x index", "dim", i.index_select, "index", "slices of x along a dim",
   edges="index_checked", derived="index")
op("index_add", "x^ index src^", "dim alpha@", i.index_add, "index",
   "x with alpha * slices of src added along a dim", edges="index_checked duplicates_count",
   derived="index")
op("index", "x indices*", "dims", i.index, "index",
   "numpy's integer-array indexing on `dims`; negative indices count from the end",
   edges="index_checked")
op("index_put", "x^ value^ indices*", "dims accumulate", i.index_put, "index",
   "x with value assigned or added at integer arrays on `dims`",
   edges="index_checked duplicates_count last_wins")
op("embedding", "weight index", "padding_idx", i.embedding, "index", "rows of a table",
   edges="index_checked", derived="index")
op("embedding_backward", "g index", "padding_idx rows#", i.embedding_backward, "index",
   "the adjoint of embedding: rows of g add up", edges="duplicates_count", derived="index")
op("one_hot", "index", "num_classes#", i.one_hot, "index", "1 at the index, else 0, as int64",
   differentiable=False, edges="index_checked", derived="index")
op("searchsorted", "sorted^ values^", "right", i.searchsorted, "index",
   "where values would be inserted", differentiable=False, derived="index")
op("bincount", "x weights?", "length#", i.bincount, "index", "how often each value occurs",
   differentiable=False, edges="duplicates_count", derived="index")
op("nonzero", "x", "", i.unknown("nonzero"), "dynamic",
   "coordinates of elements not zero [n, rank]", differentiable=False)
op("masked_select", "x mask", "", i.unknown("masked_select"), "dynamic",
   "elements of x where mask, [n]; both already have one shape", derived="index")
op("unique", "x", "return_inverse return_counts", i.unknown("unique"), "dynamic",
   "sorted distinct values, with inverse and counts if asked", outputs="list",
   differentiable=False, grade="optional")
